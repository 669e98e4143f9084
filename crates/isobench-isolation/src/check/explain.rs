//! Explains a dependency of a cycle, by finding the operations that prove it.
//!
//! The graph doesn't store operations, so the rows shared by the two transactions are examined
//! again with a sink that picks the dependency's operations.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::context::{Context, name};
use super::dependencies::{Label, OperationRef, Sink};
use super::examine::examine_row;
use super::findings::Findings;
use super::report::WitnessStep;
use super::rows::Rows;
use super::search::Link;
use crate::history::History;

/// The step without its proof.
pub(super) fn brief(history: &History, link: Link) -> WitnessStep {
    let (from, to) = (link.from as usize, link.to as usize);
    let why = format!("{} comes before {}", name(history, from), name(history, to));
    WitnessStep { from, to, dependency: link.label.dependency(), why, statements: Vec::new() }
}

/// The step of a witness for a dependency.
pub(super) fn step(context: Context<'_>, rows: &Rows, link: Link) -> WitnessStep {
    let (from, to) = (link.from as usize, link.to as usize);
    let history = context.history;
    let why = match link.label {
        Label::Session => {
            let client = history.transactions()[from].client;
            format!(
                "{} came before {} in the session of client {client}",
                name(history, from),
                name(history, to)
            )
        }
        Label::RealTime => format!(
            "{} had ended (at {}) before {} began (at {})",
            name(history, from),
            instant(history.transactions()[from].end),
            name(history, to),
            instant(history.transactions()[to].begin)
        ),
        _ => {
            if let Some((first, second)) = operations(context, rows, link) {
                return context.step(first, second, link.label);
            }
            return brief(history, link);
        }
    };
    WitnessStep { from, to, dependency: link.label.dependency(), why, statements: Vec::new() }
}

fn instant(nanoseconds: u64) -> String {
    if nanoseconds < 100_000 {
        return format!("{nanoseconds} ns");
    }
    format!("{}.{:09} s", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

fn operations(context: Context<'_>, rows: &Rows, link: Link) -> Option<(OperationRef, OperationRef)> {
    let of =
        |node: u32| context.history.operations(node as usize).filter_map(|operation| rows.number(&operation));
    let theirs: FxHashSet<u32> = of(link.to).collect();
    let mut looked = FxHashSet::default();
    for row in of(link.from).filter(|row| theirs.contains(row)) {
        if looked.insert(row) {
            let mut witness = Witness { link, operations: None };
            examine_row(context, rows, row, &mut Findings::default(), &mut witness);
            if witness.operations.is_some() {
                return witness.operations;
            }
        }
    }
    None
}

/// A sink that waits for one dependency.
struct Witness {
    link: Link,
    operations: Option<(OperationRef, OperationRef)>,
}

impl Sink for Witness {
    type Fan = Vec<OperationRef>;

    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label) {
        let link = self.link;
        let wanted = from.transaction == link.from && to.transaction == link.to && label == link.label;
        if wanted && self.operations.is_none() {
            self.operations = Some((from, to));
        }
    }

    fn fan(&mut self, targets: Vec<OperationRef>) -> Vec<OperationRef> {
        targets
    }

    fn link(&mut self, from: OperationRef, fan: &mut Vec<OperationRef>, range: Range<usize>, label: Label) {
        if from.transaction == self.link.from && self.operations.is_none() {
            fan[range].iter().for_each(|to| self.edge(from, *to, label));
        }
    }
}
