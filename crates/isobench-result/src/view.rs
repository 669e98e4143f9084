//! The typed view between the summary and its renderings: tables whose entries say what they are.
//!
//! Words, emphasis and order of lines are decided here, once. A rendering asks for the lines of an
//! entry and lays them out; it never looks for anything in their words, which may be a user's. Not
//! here: widths, escaping, markup.

pub mod columns;
mod entry;
mod heading;
mod level;
mod line;
pub mod matrix;
mod table;
pub mod tried;
mod verdict;

pub use entry::{Entry, Estimate, Medium};
pub use heading::Heading;
pub use level::{Mark, errored, is_incomplete};
pub use line::{Emphasis, Line};
pub use matrix::matrix;
pub use table::{Row, Table};
pub use verdict::{Proof, Tables};
