//! From what an application sent to its database (a capture) to scripts that do the same.
//!
//! A capture's sessions are split into transactions, transactions that differ in their values only are
//! a template, and each value of a template gets a rule: a constant, a value read before, the sum of
//! such a one and another value, a new key, the time, or else an input, of which the recorded ones are
//! used again. [`Folder::of`] makes the files.
//!
//! | file | holds |
//! |---|---|
//! | `statement` | a statement's normal form |
//! | `sessions` | sessions, split into transactions |
//! | `template` | transactions that differ in their values only |
//! | `outputs` | the columns that a statement returns |
//! | `constraints` | the keys of tables |
//! | `values` | recorded values: as numbers, times and SQL |
//! | `inference` | the rule of each value |
//! | `script` | a template as a script |
//! | `folder` | all files, in one's words |
//! | `past` | what takes a copy back to where transactions found it |
//! | `dump` | a dump that can be loaded in any schema |
//!
//! Not here: files and servers. Nothing is executed.

mod constraints;
mod dump;
mod folder;
mod inference;
mod outputs;
mod past;
mod script;
mod sessions;
mod statement;
mod template;
mod values;

pub use dump::{DumpError, placeable};
pub use folder::{Expected, ExpectedScript, Folder, Instance, Options, Tables, Unmade};
pub use past::Past;
pub use sessions::{Beyond, End, Executed, Recorded, Transaction, read};
pub use statement::{Clause, Normal, Place, Role};
pub use template::{Scope, Template, Templates};
