//! What scripts do with what their statements read, and the part of a history that was used.
//!
//! A transaction that reads a row which another one replaces is not thereby wrong for the
//! application: what counts is whether the value went anywhere. A result is used if it flows into
//! what the transaction writes, or into the decision whether it writes; in a transaction that only
//! reads, the rows are its product, and count. A transaction that reads a version, tests it in the
//! WHERE of its UPDATE and hits no row has declined: its pattern works. A row whose columns in use
//! stay as they were is, for the statement that read it, still the same version.
//!
//! A value that is read in one transaction and written in another is protected by no level.
//! [`History::carried`] puts such reads into the transaction that writes, where the check finds what
//! was lost between the two.

use std::collections::BTreeMap;

use crate::check::WritingBack;
use crate::history::statement_use::StatementUse;
use crate::history::{Draft, History, Operation, Provenance, Transaction, TransactionOutcome};

impl History {
    /// The part of an observed history that its transactions used: the same transactions, without the
    /// reads whose results went nowhere. `None` if nothing is known of their use.
    pub fn used(&self) -> Option<History> {
        let usage = self.usage()?;
        Some(self.rebuilt(|index, draft| {
            let attempt = Attempt::of(self, index, usage);
            let mut whole = Draft::new();
            whole.fill(self, index);
            for (operation, statement) in whole.with_statements() {
                if attempt.used(operation, statement) {
                    draft.push_again(operation, statement);
                }
            }
            self.transactions()[index]
        }))
    }

    /// The same history in which what was read in one transaction and written in a later one of the
    /// same client stands in the one that writes, which then begins with the first of them. `None` if
    /// the scripts carry no value between transactions.
    pub fn carried(&self) -> Option<History> {
        let usage = self.usage()?;
        usage.iter().any(|one| !one.carried.is_empty()).then_some(())?;
        let mut read: BTreeMap<(u32, u16), Carried> = BTreeMap::new();
        Some(self.rebuilt(|index, draft| {
            let mut transaction = self.transactions()[index];
            let mut whole = Draft::new();
            whole.fill(self, index);
            let written: Vec<u16> = whole
                .with_statements()
                .filter(|(operation, _)| matches!(operation, Operation::Write { .. }))
                .filter_map(|(_, statement)| statement)
                .collect();
            let reads = |from: u16| {
                let flows = usage.get(usize::from(from)).map_or(&[][..], |one| &one.carried);
                flows.iter().any(|flow| written.contains(&flow.statement))
            };
            let client = (transaction.client, 0)..=(transaction.client, u16::MAX);
            let consumed: Vec<(u32, u16)> =
                read.range(client).map(|(key, _)| *key).filter(|(_, from)| reads(*from)).collect();
            for key in &consumed {
                let Some(carried) = read.get(key) else { continue };
                transaction.begin = transaction.begin.min(carried.begin);
                for (operation, statement) in carried.draft.with_statements() {
                    draft.push_again(operation, statement);
                }
            }
            if transaction.outcome == TransactionOutcome::Committed {
                for key in &consumed {
                    read.remove(key);
                }
                note_carried(&mut read, usage, transaction, &whole);
            }
            draft.append(&whole);
            transaction
        }))
    }

    /// The same history, with its statements as they would be without the columns that they write back
    /// as they were read. `None` if there are none.
    pub(crate) fn without_unchanged(&self) -> Option<History> {
        let mut usage = self.usage()?.to_vec();
        usage.iter().any(|one| !one.unchanged.is_empty()).then_some(())?;
        for one in &mut usage {
            let StatementUse { uses, changes, unchanged, .. } = one;
            let stays = |column: &u16| !unchanged.iter().any(|one| one.column == *column);
            for columns in [uses, changes].into_iter().flatten() {
                columns.retain(stays);
            }
        }
        let mut without = self.clone();
        without.set_provenance(Provenance { usage, ..self.provenance()?.clone() });
        Some(without)
    }

    /// The statements that write back columns as they were read.
    pub(crate) fn writing_back(&self) -> impl Iterator<Item = WritingBack> {
        let usage = self.usage().unwrap_or_default().iter();
        let statements = self.provenance().map_or(&[][..], |provenance| &provenance.statements);
        let writing = usage.zip(statements).filter(|(one, _)| one.writes && !one.unchanged.is_empty());
        writing.map(|(one, statement)| WritingBack {
            statement: statement.clone(),
            columns: one.unchanged.iter().map(|column| column.name.clone()).collect(),
        })
    }

    fn usage(&self) -> Option<&[StatementUse]> {
        self.provenance().map(|provenance| provenance.usage.as_slice()).filter(|usage| !usage.is_empty())
    }

    /// A history with the same transactions, whose operations `fill` writes.
    fn rebuilt(&self, mut fill: impl FnMut(usize, &mut Draft) -> Transaction) -> History {
        let mut rebuilt = self.blank();
        rebuilt.set_dropped(self.dropped());
        if let Some(provenance) = self.provenance() {
            rebuilt.set_provenance(Provenance { by_use: true, visibility: None, ..provenance.clone() });
        }
        let mut draft = Draft::new();
        for index in 0..self.transactions().len() {
            draft.clear();
            let transaction = fill(index, &mut draft);
            rebuilt.push(transaction, &draft);
        }
        rebuilt
    }
}

/// What a statement read that later transactions of the client may write.
#[derive(Default)]
struct Carried {
    begin: u64,
    draft: Draft,
}

fn note_carried(
    read: &mut BTreeMap<(u32, u16), Carried>,
    usage: &[StatementUse],
    transaction: Transaction,
    whole: &Draft,
) {
    let mut fresh: BTreeMap<u16, Draft> = BTreeMap::new();
    for (operation, statement) in whole.with_statements() {
        let Some(statement) = statement else { continue };
        let carries = usage.get(usize::from(statement)).is_some_and(|one| !one.carried.is_empty());
        if carries && !matches!(operation, Operation::Write { .. }) {
            fresh.entry(statement).or_default().push_again(operation, Some(statement));
        }
    }
    for (statement, draft) in fresh {
        read.insert((transaction.client, statement), Carried { begin: transaction.begin, draft });
    }
}

/// What an attempt did, as far as it decides which of its reads were used.
struct Attempt<'u> {
    usage: &'u [StatementUse],
    /// The statements with which it wrote rows, as far as they are known.
    written: Vec<u16>,
    /// It wrote a row.
    wrote: bool,
    /// It read what might have been written, and then wrote nothing.
    declined: bool,
}

impl<'u> Attempt<'u> {
    fn of(history: &History, index: usize, usage: &'u [StatementUse]) -> Attempt<'u> {
        let (mut wrote, mut lost, mut flows) = (false, false, false);
        let mut written = Vec::new();
        for record in history.range(index) {
            let known = history.statement_number(record).and_then(|number| usage.get(usize::from(number)));
            match (history.operation(record), known) {
                (Operation::Read { .. }, Some(known)) => flows |= known.flows(),
                (Operation::Missed { .. }, Some(known)) => {
                    flows |= known.flows();
                    lost |= known.writes && !known.guarded;
                }
                (Operation::Read { .. } | Operation::Missed { .. }, None) => {}
                _ => {
                    wrote = true;
                    written.extend(history.statement_number(record));
                }
            }
        }
        Attempt { usage, written, wrote, declined: !wrote && !lost && flows }
    }

    /// True if an operation of the attempt was of consequence.
    fn used(&self, operation: Operation<'_>, statement: Option<u16>) -> bool {
        let read = matches!(operation, Operation::Read { .. } | Operation::Missed { .. });
        let known = statement.and_then(|number| self.usage.get(usize::from(number)));
        match known {
            Some(known) if read => {
                let flows = known.writes || known.flows() || self.carries(known);
                known.product || !self.declined && (flows || !self.wrote)
            }
            _ => true,
        }
    }

    /// True if what a statement of an earlier transaction read stands in this one, which wrote it.
    fn carries(&self, known: &StatementUse) -> bool {
        known.carried.iter().any(|flow| self.written.contains(&flow.statement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Options, check};
    use crate::history::statement_use::{Dependence, Flow, Unchanged};
    use crate::history::{Key, Version};
    use crate::{Anomaly, History, Order};

    const ROW: Key = Key { table: 0, id: 1 };

    /// A history of attempts of one client each: operations with the statements that made them.
    fn history(usage: Vec<StatementUse>, attempts: &[(u32, &[(Operation<'_>, u16)])]) -> History {
        let mut history = History::new(vec!["t".to_owned()]);
        history.set_provenance(Provenance { usage, ..Provenance::default() });
        for (id, (client, operations)) in (0_u64..).zip(attempts) {
            let mut draft = Draft::new();
            operations.iter().for_each(|(operation, statement)| draft.push_by(*operation, *statement));
            let outcome = TransactionOutcome::Committed;
            history.push(
                Transaction { id, client: *client, begin: 2 * id, end: 2 * id + 1, outcome, mode: None },
                &draft,
            );
        }
        history
    }

    fn read(counter: u64) -> Operation<'static> {
        let version = if counter == 0 { Version::INITIAL } else { version(counter) };
        Operation::Read { key: ROW, version }
    }

    fn write(counter: u64) -> Operation<'static> {
        Operation::Write { key: ROW, version: version(counter) }
    }

    fn version(counter: u64) -> Version {
        Version { counter: Some(counter), value: Some(counter.cast_signed() * 100) }
    }

    /// Statement 0 reads, statement 1 writes.
    fn usage(into: &[Dependence]) -> Vec<StatementUse> {
        let into = into.iter().map(|how| Flow { statement: 1, how: *how }).collect();
        vec![
            StatementUse { into, ..StatementUse::default() },
            StatementUse { writes: true, ..StatementUse::default() },
        ]
    }

    fn found(history: &History) -> Vec<Anomaly> {
        let report = check(history, &Options { order: Order::Data, ..Options::default() });
        report.findings.iter().map(|finding| finding.anomaly).collect()
    }

    /// Both read the initial version, and write one after the other.
    fn two_updates(usage: Vec<StatementUse>) -> History {
        history(usage, &[(0, &[(read(0), 0), (write(1), 1)]), (1, &[(read(0), 0), (write(2), 1)])])
    }

    #[test]
    fn what_goes_nowhere_is_no_lost_update() {
        let unused = two_updates(usage(&[]));
        assert_eq!(found(&unused), [Anomaly::LostUpdate], "by the letter");
        assert_eq!(found(&unused.used().expect("usage")), []);
        let used = two_updates(usage(&[Dependence::Value])).used().expect("usage");
        assert_eq!(found(&used), [Anomaly::LostUpdate]);
        let decided = two_updates(usage(&[Dependence::Decision])).used().expect("usage");
        assert_eq!(found(&decided), [Anomaly::GSingle], "another value wouldn't have been written");
        assert!(two_updates(Vec::new()).used().is_none());
    }

    #[test]
    fn other_columns_leave_the_version_as_it_was() {
        // Statement 2 changes other columns than statement 0 uses and statement 1 changes.
        let mut flow = usage(&[Dependence::Value]);
        flow.push(StatementUse { writes: true, changes: Some(vec![8]), ..StatementUse::default() });
        (flow[0].uses, flow[1].changes) = (Some(vec![7]), Some(vec![7]));
        let of = |attempts: &[(u32, &[(Operation<'_>, u16)])]| {
            found(&history(flow.clone(), attempts).used().expect("usage"))
        };
        let mine: &[(Operation<'_>, u16)] = &[(read(0), 0), (write(2), 1)];
        assert_eq!(of(&[(0, mine), (1, &[(write(1), 1)])]), [Anomaly::LostUpdate]);
        assert_eq!(of(&[(0, mine), (1, &[(write(1), 2)])]), []);
        // What follows in the columns that it uses counts.
        let mine: &[(Operation<'_>, u16)] = &[(read(1), 0), (write(4), 1)];
        let theirs = |number| [(write(number), 2)];
        let (first, second) = (theirs(1), theirs(2));
        let between: &[(Operation<'_>, u16)] = &[(write(3), 1)];
        assert_eq!(of(&[(0, mine), (1, &first), (2, &second), (3, between)]), [Anomaly::LostUpdate]);
        assert_eq!(of(&[(0, mine), (1, &first), (2, &second), (3, &theirs(3))]), []);
        // Who wrote the columns that were read is who is depended on.
        let reads: &[(Operation<'_>, u16)] = &[(read(2), 0), (read(1), 1)];
        let skewed: [(u32, &[(Operation<'_>, u16)]); 3] =
            [(0, reads), (1, &[(write(1), 1)]), (2, &[(write(2), 2)])];
        assert_eq!(found(&history(flow.clone(), &skewed)), [Anomaly::GSingle], "by the letter");
        assert_eq!(of(&skewed), []);
    }

    /// Two transactions save a row of which each changes another column.
    #[test]
    fn whole_rows_that_are_saved_make_anomalies() {
        let unchanged = |column: u16| vec![Unchanged { column, name: format!("c{column}") }];
        let of = |read: u16, changed: [u16; 2]| {
            let (write, other) = (read + 1, changed[1]);
            let reads = StatementUse {
                into: vec![Flow { statement: write, how: Dependence::Value }],
                uses: Some(vec![7, 8]),
                unchanged: unchanged(other),
                ..StatementUse::default()
            };
            let writes = StatementUse {
                writes: true,
                changes: Some(vec![7, 8]),
                unchanged: unchanged(other),
                ..StatementUse::default()
            };
            [reads, writes]
        };
        let report = |second: [u16; 2]| {
            let usage = [of(0, [7, 8]), of(2, second)].concat();
            let first: &[(Operation<'_>, u16)] = &[(read(0), 0), (write(1), 1)];
            let attempts = [(0, first), (1, &[(read(0), 2), (write(2), 3)])];
            let mut history = history(usage, &attempts);
            let provenance = history.provenance().expect("usage").clone();
            let statements = (0..4).map(|number| format!("save.sql:{number}: UPDATE")).collect();
            history.set_provenance(Provenance { statements, ..provenance });
            let report = check(&history, &Options::default());
            crate::check::by_use(history, report, &Options::default()).1
        };
        let saved = report([8, 7]);
        assert_eq!(saved.findings[0].anomaly, Anomaly::LostUpdate);
        let back = saved.written_back.as_ref().expect("whole rows");
        assert_eq!(
            (back.transactions, back.anomalies.as_slice()),
            (saved.anomalous, &[Anomaly::LostUpdate][..])
        );
        let names: Vec<String> = back.statements.iter().map(|one| one.columns.join(", ")).collect();
        assert_eq!(names, ["c8", "c7"]);
        let shown = crate::check::render(&saved);
        assert!(shown.contains("WRITTEN BACK: if statements set only"), "{shown}");
        assert!(shown.contains("- c8: save.sql:1: UPDATE"), "{shown}");
        // Both change the same one.
        assert_eq!(report([7, 8]).written_back, None);
    }

    /// Of two rows: a transaction of read committed reads a column, and another one changes it and a
    /// column of another row, of which the first one then changes a third column.
    #[test]
    fn writes_of_different_columns_of_a_row_do_not_follow_each_other() {
        let (x, y) = (ROW, Key { table: 0, id: 2 });
        let of = |changes: u16| {
            let sets = |column| StatementUse {
                writes: true,
                changes: Some(vec![column]),
                ..StatementUse::default()
            };
            let into = vec![Flow { statement: 3, how: Dependence::Value }];
            let read = StatementUse { uses: Some(vec![7]), into, ..StatementUse::default() };
            let usage = vec![read, sets(7), sets(8), sets(changes)];
            let read = Operation::Read { key: x, version: Version::INITIAL };
            let write = |key, counter| Operation::Write { key, version: version(counter) };
            let first: &[(Operation<'_>, u16)] = &[(read, 0), (write(y, 2), 3)];
            let second: &[(Operation<'_>, u16)] = &[(write(x, 1), 1), (write(y, 1), 2)];
            history(usage, &[(0, first), (1, second)])
        };
        assert_eq!(found(&of(9)), [Anomaly::GSingle], "by the letter");
        assert_eq!(found(&of(9).used().expect("usage")), []);
        assert_eq!(found(&of(8).used().expect("usage")), [Anomaly::GSingle]);
    }

    /// A read of two columns depends on both writers, and precedes both.
    #[test]
    fn each_column_has_its_own_versions() {
        let sets =
            |column| StatementUse { writes: true, changes: Some(vec![column]), ..StatementUse::default() };
        let read_both = StatementUse { uses: Some(vec![7, 8]), product: true, ..StatementUse::default() };
        let usage = vec![read_both, sets(7), sets(8)];
        let other = Key { table: 0, id: 2 };
        let old = Operation::Read { key: other, version: Version::INITIAL };
        let new = Operation::Write { key: other, version: version(1) };
        // The first writer also wrote the other row, of which the reader saw the initial version.
        let torn: [(u32, &[(Operation<'_>, u16)]); 3] =
            [(0, &[(write(1), 1), (new, 1)]), (1, &[(write(2), 2)]), (2, &[(read(2), 0), (old, 0)])];
        assert_eq!(found(&history(usage.clone(), &torn).used().expect("usage")), [Anomaly::GSingle]);
        // And the other way round.
        let seen = Operation::Read { key: other, version: version(1) };
        let torn: [(u32, &[(Operation<'_>, u16)]); 3] =
            [(0, &[(write(1), 2)]), (1, &[(write(2), 1), (new, 1)]), (2, &[(read(0), 0), (seen, 0)])];
        assert_eq!(found(&history(usage, &torn).used().expect("usage")), [Anomaly::GSingle]);
    }

    #[test]
    fn who_declines_used_nothing() {
        let flow = usage(&[Dependence::Value]);
        let writes: &[(Operation<'_>, u16)] = &[(write(1), 1)];
        let declined = history(flow.clone(), &[(0, &[(read(0), 0), (read(1), 0)]), (1, writes)]);
        assert_eq!(found(&declined), [Anomaly::GSingle], "by the letter");
        assert_eq!(found(&declined.used().expect("usage")), []);
        // An UPDATE that doesn't find the row, and tests nothing that was read: its change is lost.
        let missed = Operation::Missed { key: ROW, after: Some(1), before: None };
        let lost: &[(Operation<'_>, u16)] = &[(read(0), 0), (missed, 1)];
        assert_eq!(
            found(&history(flow.clone(), &[(0, lost), (1, writes)]).used().expect("usage")),
            [Anomaly::GSingle]
        );
        let mut guarded = flow;
        guarded[1].guarded = true;
        assert_eq!(found(&history(guarded, &[(0, lost), (1, writes)]).used().expect("usage")), []);
    }

    #[test]
    fn the_rows_of_a_report_are_its_product() {
        let mut reports = usage(&[]);
        reports[0].product = true;
        let skewed = history(reports, &[(0, &[(read(0), 0), (read(1), 0)]), (1, &[(write(1), 1)])]);
        assert_eq!(found(&skewed.used().expect("usage")), [Anomaly::GSingle]);
    }

    #[test]
    fn what_is_carried_to_another_transaction_is_lost_there() {
        let mut carries = usage(&[]);
        carries[0].carried.push(Flow { statement: 1, how: Dependence::Value });
        let reads: &[(Operation<'_>, u16)] = &[(read(0), 0)];
        let apart = [(0, reads), (1, reads), (1, &[(write(1), 1)][..]), (0, &[(write(2), 1)][..])];
        let history = history(carries, &apart);
        assert_eq!(found(&history), [], "each transaction by itself is right");
        assert_eq!(found(&history.carried().expect("it carries")), [Anomaly::LostUpdate]);
        assert!(two_updates(usage(&[Dependence::Value])).carried().is_none());
    }
}
