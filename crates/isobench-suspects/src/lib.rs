//! From a recording to the pairs of transactions that can race, by theory alone, and to what went wrong in it.
//!
//! Statements get one normal form, and transactions that differ in their values are a template. Each template is a
//! script in memory, of which theory makes a program; nothing of it is executed. Pairs of programs with common
//! tables and columns are judged at the levels at which they ran.
//!
//! Two sets of programs are made. In one of them what was recorded is believed: values that were always equal are,
//! and rows that were always found are there. It names the suspects. In the other one next to nothing is believed.
//! It decides what is *proved*, for all templates that share tables at once, or not at all.
//!
//! | file | holds |
//! |---|---|
//! | `folding` | sequences without repetitions |
//! | `template` | transactions that differ in their values alone, and what is known of these values |
//! | `locks` | which advisory locks are the same one |
//! | `script`, `programs` | a template as a script, and as a program |
//! | `copied` | COPY as a statement that theory knows |
//! | `touched`, `suspect` | the tables and columns that templates share, and what can go wrong |
//! | `judge`, `judged` | pairs of templates, by theory |
//! | `excluded` | which templates can race with none, by theory |
//! | `between` | what is read in one transaction and written in a later one |
//! | `live` | what certainly went wrong while the capture was recorded |
//! | `words` | what a template does, in words |
//! | `answer` | what was found, as a document |
//! | `accepted` | the file of suspects that are accepted |
//! | `text` | the same on one screen |
//!
//! Not here: captures' formats (`isobench_capture`), the normal form of a statement and how a server reads it (`isobench_sql`), what statements
//! do with rows (`isobench_program`), theory (`isobench_robustness`), servers and files.

mod accepted;
mod answer;
mod between;
mod copied;
mod excluded;
mod folding;
mod judge;
mod judged;
mod live;
mod locks;
mod programs;
mod script;
mod suspect;
mod template;
mod text;
mod touched;
mod words;

pub use accepted::{ACCEPTED_START, Accepted, AcceptedError, Unaccepted, Unknown, Why};
pub use answer::{Answer, Between, FORMAT, Group, Row, Schedule};
pub use between::{Carried, History};
pub use judged::{Judged, judge};
pub use live::{Live, Side};
pub use locks::Lock;
pub use programs::{Programs, Scripts};
pub use script::{Assume, Written};
pub use suspect::{Kind, State, Suspect};
pub use template::{Known, Step, Template, templates};
pub use text::{Screen, render};
