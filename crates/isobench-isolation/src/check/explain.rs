//! Explains a dependency of a cycle, by finding the operations that prove it.
//!
//! The graph doesn't store operations, so the rows shared by the two transactions are examined
//! again with a sink that picks the dependency's operations.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{Context, name};
use super::dependencies::{Label, Link, Node, OperationRef, Sink};
use super::examine::examine_row;
use super::findings::Findings;
use super::parts::{Part, Setting, Source, each_part, part_of};
use super::report::WitnessStep;
use super::rows::{Row, Rows};
use crate::history::History;

/// The steps of witnesses for these dependencies. One for which no operations are found is missing.
pub(super) fn steps<S: Source>(
    source: &S,
    setting: Setting<'_>,
    mut links: Vec<Link>,
) -> Result<FxHashMap<Link, WitnessStep>, S::Error> {
    links.sort_unstable();
    links.dedup();
    let outside = links.iter().filter_map(|link| Some((*link, of_order(source.frame(), *link)?)));
    let mut explained: FxHashMap<Link, WitnessStep> = outside.collect();
    links.retain(|link| !explained.contains_key(link));
    if links.is_empty() {
        return Ok(explained);
    }
    // By part: a dependency, the rows that both its transactions used, and which of them it is.
    let mut wanted: FxHashMap<u32, Vec<(Link, usize, Row)>> = FxHashMap::default();
    for (link, rows) in common_rows(source, &links)? {
        for (nth, row) in rows.into_iter().enumerate() {
            wanted.entry(part_of(&row, source.parts())).or_default().push((link, nth, row));
        }
    }
    let mut parts: Vec<u32> = wanted.keys().copied().collect();
    parts.sort_unstable();
    let found = each_part(source, &parts, Vec::new, |found, number, part| {
        setting.within(part, |context, rows| {
            for (link, nth, row) in wanted.get(&number).into_iter().flatten() {
                let step = rows.number(row).and_then(|row| of_row(context, rows, part, row, *link));
                found.extend(step.map(|step| (*link, *nth, step)));
            }
        });
    })?;
    let mut found: Vec<(Link, usize, WitnessStep)> = found.into_iter().flatten().collect();
    found.sort_by_key(|(link, nth, _)| (*link, *nth));
    for (link, _, step) in found {
        explained.entry(link).or_insert(step);
    }
    Ok(explained)
}

/// The step for a dependency that isn't one of the data.
fn of_order(history: &History, link: Link) -> Option<WitnessStep> {
    let (from, to) = (link.from as usize, link.to as usize);
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
        _ => return None,
    };
    Some(WitnessStep { from, to, dependency: link.label.dependency(), why, statements: Vec::new() })
}

/// For each dependency, the rows that both its transactions used, in the order in which the first
/// one used them.
fn common_rows<S: Source>(source: &S, links: &[Link]) -> Result<Vec<(Link, Vec<Row>)>, S::Error> {
    let mut nodes: Vec<Node> = links.iter().flat_map(|link| [link.from, link.to]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let history = source.gather(&nodes)?;
    let of = |node: Node| {
        let local = nodes.partition_point(|known| *known < node);
        history.operations(local).map(|operation| Row::of(&operation))
    };
    let common = |link: &Link| {
        let theirs: FxHashSet<Row> = of(link.to).collect();
        let mut looked = FxHashSet::default();
        let rows = of(link.from).filter(|row| theirs.contains(row) && looked.insert(*row)).collect();
        (*link, rows)
    };
    Ok(links.iter().map(common).collect())
}

/// The step for a dependency, if this row shows it.
fn of_row(context: Context<'_>, rows: &Rows, part: &Part, row: u32, link: Link) -> Option<WitnessStep> {
    let local = Link { from: part.local(link.from)?, to: part.local(link.to)?, label: link.label };
    let mut witness = Witness { link: local, operations: None };
    examine_row(context, rows, row, &mut Findings::default(), &mut witness);
    let (first, second) = witness.operations?;
    let step = context.step(first, second, link.label);
    Some(WitnessStep { from: link.from as usize, to: link.to as usize, ..step })
}

fn instant(nanoseconds: u64) -> String {
    if nanoseconds < 100_000 {
        return format!("{nanoseconds} ns");
    }
    format!("{}.{:09} s", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
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
