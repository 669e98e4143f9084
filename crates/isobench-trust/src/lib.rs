//! Which files and folders other users of the machine could have put there, and therefore aren't used.
//!
//! | file | holds |
//! |---|---|
//! | `place` | folders and programs that others can't replace |
//! | `links` | links of other users, which nobody follows |
//! | `input` | files that lead to SQL or programs being run |
//!
//! The rules are for users of one machine. A root that runs what others wrote gives them its rights, so
//! for root they are stricter.
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let script = folder.path().join("transfer.sql");
//! std::fs::write(&script, "SELECT 1;")?;
//! assert_eq!(isobench_trust::read_to_string(&script)?, "SELECT 1;");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Not here: what is done with the files.

mod input;
mod links;
mod place;

pub use input::{open, read, read_to_string, require_own};
pub use links::{open_to_show, refuse_foreign_links};
pub use place::{
    PlaceError, is_own_folder, open_plain, safe_folder, safe_place, untrusted_folder, untrusted_program,
};
