//! What an application sent to its database, and what came back: the file that `isobench record`
//! writes.
//!
//! The file is JSON, an object per line. The first line is the header; each of the others has one
//! member that says what it holds. Texts of statements and descriptions of columns are written once,
//! when they are first needed, and have a number from then on. A file that breaks off is read up to its
//! last whole line.
//!
//! | file | holds |
//! |---|---|
//! | `record` | what the lines hold |
//! | `writer` | lines, written |
//! | `reader` | lines, read |
//!
//! Not here: where the records come from, and what is made of them.

mod reader;
mod record;
mod writer;

pub use reader::{ReadError, Reader};
pub use record::{
    Answer, Closed, Column, Datum, End, ErrorAnswer, FORMAT, Header, Opened, Record, Source, Statement,
    Unseen,
};
pub use writer::Writer;
