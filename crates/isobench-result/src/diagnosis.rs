//! Diagnoses: why transactions of a row fail more often than they would have to, and the setting, index
//! or option that ends it.
//!
//! | file | says |
//! |---|---|
//! | `false_conflicts` | conflicts at serializable may be false: locks cover more than was read |
//! | `ran_out` | the server had no room for further predicate locks |
//! | `hidden_retries` | something between clients and server retries |
//! | `lockstep` | retries that start at once meet again |
//!
//! Not here: the conflicts themselves, and what they cost.

mod false_conflicts;
mod hidden_retries;
mod lockstep;
mod ran_out;

use crate::document::{Cell, Document};
use crate::factor::{FactorId, strategies_vary, varying};

/// What is diagnosed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosisKind {
    /// The server ran out of predicate locks, so transactions failed.
    RanOut,
    /// Whole tables are locked, because they are scanned.
    Scanned,
    /// Whole tables are locked, because of too many locks on their rows and pages.
    Promoted,
    /// Pages of a small index are locked, and entries are added to them.
    IndexPages,
    /// Something between clients and server retries.
    HiddenRetries,
    /// Retries start at once and meet again.
    Lockstep,
}

/// A reason why transactions of a row fail more often than they would have to.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// What is diagnosed.
    pub kind: DiagnosisKind,
    /// The tables or indexes with locks that cover more than was read, the most locks first.
    pub relations: Vec<Suspect>,
    /// The share of the row's attempts that ended in a conflict, from 0 to 1.
    pub conflict_ratio: f64,
    /// The diagnosis in words, with its doubt and its remedy.
    pub sentence: String,
}

/// A table or an index whose locks cover more than was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspect {
    /// Its name.
    pub name: String,
    /// The table: its own name, or that of an index's table.
    pub table: String,
    /// Rows of the table, as the server estimates them.
    pub rows: Option<u64>,
    /// Pages of the table or index.
    pub pages: Option<u64>,
    /// What the indexes of a table are on, such as "(customer, day)"; empty if unknown.
    pub indexes: Vec<String>,
    /// The statements that scan the table as a whole, as the planner said before: "pay.sql:3".
    pub scanned_by: Vec<String>,
}

impl Diagnosis {
    /// True if transactions failed with an error that isn't retried; else they only cost more.
    pub fn is_failure(&self) -> bool {
        self.kind == DiagnosisKind::RanOut
    }
}

/// Diagnoses the rows of a summarised document: rows with the same reason together, failures first, then
/// those with the most conflicts.
pub fn diagnoses(document: &Document) -> Vec<Diagnosis> {
    let measured = document.cells.iter().filter(|cell| !cell.calibration);
    let of = |cell: &Cell| {
        let conflicts = false_conflicts::of(document, cell).or_else(|| lockstep::of(document, cell));
        [ran_out::of(document, cell), hidden_retries::of(document, cell), conflicts].into_iter().flatten()
    };
    let mut found: Vec<Diagnosis> = measured.flat_map(of).collect();
    let worst_first =
        |one: &Diagnosis, other: &Diagnosis| other.conflict_ratio.total_cmp(&one.conflict_ratio);
    found.sort_by(|one, other| {
        other.is_failure().cmp(&one.is_failure()).then_with(|| worst_first(one, other))
    });
    let mut several: Vec<Diagnosis> = Vec::new();
    for diagnosis in found {
        let names = |diagnosis: &Diagnosis| -> Vec<String> {
            diagnosis.relations.iter().map(|suspect| suspect.name.clone()).collect()
        };
        let same = |known: &Diagnosis| known.kind == diagnosis.kind && names(known) == names(&diagnosis);
        if !several.iter().any(same) {
            several.push(diagnosis);
        }
    }
    several
}

/// The row, by all in which rows differ: "serializable, for-update, 8 clients".
fn place(document: &Document, cell: &Cell) -> String {
    let strategy = strategies_vary(document).then(|| cell.strategy().to_owned());
    let varying = varying(document);
    let others = varying.iter().filter(|factor| factor.id() != FactorId::Strategy);
    let others = others.map(|factor| factor.said(cell));
    [cell.level.said()].into_iter().chain(strategy).chain(others).collect::<Vec<_>>().join(", ")
}
