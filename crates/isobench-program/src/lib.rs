//! Scripts as programs: what their transactions do with rows, how values flow through them, and how they could be
//! written otherwise.
//!
//! | file | holds |
//! |---|---|
//! | `statement` | one statement: its accesses to rows, the values that pass through it, and other ways to write it |
//! | `flow` | which statement's result goes, through variables, into what another one writes |
//! | `templates` | scripts as the programs of the theory, and the changes that could be made |
//! | `beyond` | mistakes that no level prevents, as far as the texts show them |
//! | `proof` | the levels that are proved for scripts |
//!
//! The server's own tree says what a statement does ([`isobench_sql`]); its words only say where a change can stand.
//! Each changed statement is read by the server again. Where there is no tree, a statement may do anything.
//!
//! Not here: which levels programs need (`isobench_robustness`), which rows a result shows
//! (`isobench_observation`), and the choice among changes (`isobench_advice`).

mod beyond;
mod flow;
mod proof;
mod statement;
mod templates;

pub use beyond::{Beyond, Order};
pub use flow::{Carried, Flows, StatementPlace};
pub use proof::proved_levels;
pub use statement::{Fix, LockWithin, Overlap, PartialKey, Rewritten};
pub use templates::{
    FirstLock, FirstLockKind, Ignored, Rows, TemplateStatement, Templates, templates, templates_with,
};
