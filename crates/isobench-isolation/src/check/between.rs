//! Which SQL statements the dependencies of an observed history are between.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::context::Context;
use super::dependencies::{Label, OperationRef, SHORT, Sink};
use super::examine::examine_row;
use super::findings::Findings;
use super::parts::{Setting, Source, each_part};
use super::report::{Dependency, StatementDependencies};

/// The number of dependencies, by the numbers of both statements.
type Counts = FxHashMap<(u16, u16, Dependency), u64>;

/// Counts the dependencies between transactions of an observed history by their statements, in the
/// order of these; none of any other history.
pub(super) fn between<S: Source>(
    source: &S,
    setting: Setting<'_>,
) -> Result<Vec<StatementDependencies>, S::Error> {
    let history = source.frame();
    if history.provenance().is_none() {
        return Ok(Vec::new());
    }
    let all = each_part(source, &source.filled(), Counts::default, |counts, _, part| {
        setting.within(part, |context, rows| {
            for row in 0..rows.len() {
                let mut counter = Counter { context, counts };
                examine_row(context, rows, row, &mut Findings::default(), &mut counter);
            }
        });
    })?;
    let mut counts = Counts::default();
    for (key, more) in all.into_iter().flatten() {
        *counts.entry(key).or_default() += more;
    }
    let mut counts: Vec<((u16, u16, Dependency), u64)> = counts.into_iter().collect();
    counts.sort_unstable();
    let statements = history.provenance().map_or(&[][..], |provenance| &provenance.statements);
    let text = |number: u16| statements.get(usize::from(number)).cloned().unwrap_or_default();
    let named = counts.into_iter().map(|((first, then, dependency), count)| StatementDependencies {
        first: text(first),
        then: text(then),
        dependency,
        count,
    });
    Ok(named.collect())
}

/// A sink that counts.
struct Counter<'a, 'h> {
    context: Context<'h>,
    counts: &'a mut Counts,
}

/// Targets of many dependencies: their positions, by statement.
struct Targets {
    targets: Vec<OperationRef>,
    positions: FxHashMap<u16, Vec<usize>>,
}

impl Counter<'_, '_> {
    fn add(&mut self, first: u16, then: u16, label: Label, count: u64) {
        if let Some(dependency) = label.dependency().filter(|_| count > 0) {
            *self.counts.entry((first, then, dependency)).or_default() += count;
        }
    }
}

impl Sink for Counter<'_, '_> {
    type Fan = Targets;

    fn edge(&mut self, from: OperationRef, to: OperationRef, label: Label) {
        if from.transaction == to.transaction {
            return;
        }
        if let Some((first, then)) = self.context.statement(from).zip(self.context.statement(to)) {
            self.add(first, then, label, 1);
        }
    }

    fn fan(&mut self, targets: Vec<OperationRef>) -> Targets {
        let mut positions: FxHashMap<u16, Vec<usize>> = FxHashMap::default();
        for (position, target) in targets.iter().enumerate() {
            if let Some(statement) = self.context.statement(*target) {
                positions.entry(statement).or_default().push(position);
            }
        }
        Targets { targets, positions }
    }

    /// The range must be short, or not contain the transaction itself.
    fn link(&mut self, from: OperationRef, fan: &mut Targets, range: Range<usize>, label: Label) {
        if range.len() <= SHORT {
            fan.targets[range].iter().for_each(|to| self.edge(from, *to, label));
            return;
        }
        let Some(first) = self.context.statement(from) else { return };
        for (then, positions) in &fan.positions {
            let below = |bound: usize| positions.partition_point(|position| *position < bound);
            let count = below(range.end) - below(range.start);
            self.add(first, *then, label, count as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dependency, Options, check};
    use crate::History;
    use crate::history::{Draft, Key, Operation, Provenance, Transaction, TransactionOutcome, Version};

    const READS: u16 = 0;
    const WRITES: u16 = 1;
    const ROW: Key = Key { table: 0, id: 1 };

    /// A history of transactions of one operation each, with the statements that made them.
    fn history(operations: &[(Operation<'_>, u16)]) -> History {
        let mut history = History::new(vec!["t".to_owned()]);
        let statements = ["reads", "writes"].map(str::to_owned).to_vec();
        history.set_provenance(Provenance { statements, ..Provenance::default() });
        for (id, (operation, statement)) in (0_u32..).zip(operations) {
            let mut draft = Draft::new();
            draft.push_by(*operation, *statement);
            let (begin, end) = (2 * u64::from(id), 2 * u64::from(id) + 1);
            let outcome = TransactionOutcome::Committed;
            let transaction = Transaction { id: u64::from(id), client: id, begin, end, outcome, mode: None };
            history.push(transaction, &draft);
        }
        history
    }

    #[test]
    fn dependencies_are_counted_by_statements() {
        let first = Version::counted(1);
        let reads = |version| (Operation::Read { key: ROW, version }, READS);
        let mut all = vec![reads(Version::INITIAL); 100];
        all.push((Operation::Write { key: ROW, version: first }, WRITES));
        all.extend(vec![reads(first); 70]);
        let history = history(&all);
        let asked = Options { between: true, ..Options::default() };
        let report = check(&history, &asked);
        let found: Vec<(&str, &str, Dependency, u64)> = report
            .between
            .iter()
            .map(|one| (one.first.as_str(), one.then.as_str(), one.dependency, one.count))
            .collect();
        assert_eq!(
            found,
            [("reads", "writes", Dependency::ReadWrite, 100), ("writes", "reads", Dependency::WriteRead, 70)]
        );
        assert_eq!(check(&history, &Options::default()).between, [], "not asked for");
    }
}
