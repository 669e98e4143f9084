//! The recorded transactions with what they did to rows, and requests.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_replay::{End, Role, Transaction};
use isobench_robustness::{Columns, Kind as Does, Operation};

use super::change::is_same;
use super::form::{Query, Update};
use crate::between::{History, operations};
use crate::programs::Programs;
use crate::template::{Run, runs};
use crate::touched::{meet, writes};

/// A row: its table, and the columns of a unique key with their values.
pub(super) type RowName = (String, Vec<(String, String)>);

/// How many statements of a request are looked at before or after one.
pub(super) const FARTHEST: usize = 300;

/// Recorded transactions.
pub(super) struct Traffic<'a> {
    pub(super) history: &'a History<'a>,
    programs: &'a Programs,
    /// What each did; empty if that doesn't count.
    pub(super) runs: Vec<Vec<Ran>>,
    /// The transactions of each request, in order.
    pub(super) requests: Vec<Vec<usize>>,
    /// The request of each transaction.
    pub(super) request: Vec<usize>,
    /// The numbers of transactions with statements that no program describes.
    doubtful: BTreeSet<usize>,
}

/// A statement, and what its text says.
pub(super) struct Ran {
    pub(super) run: Run,
    /// The only table that it touches, if there is one.
    pub(super) table: Option<String>,
    /// It reads its table.
    pub(super) query: Option<Query>,
    /// It sets columns of one row.
    pub(super) update: Option<(RowName, Vec<(String, String)>)>,
    /// It inserts one row, with these values.
    pub(super) insert: Option<Vec<(String, String)>>,
}

impl<'a> Traffic<'a> {
    pub(super) fn of(history: &'a History<'a>, programs: &'a Programs) -> Traffic<'a> {
        let all = &history.recorded.transactions;
        let mut doubtful = BTreeSet::new();
        let mut forms: BTreeMap<usize, BTreeMap<usize, Option<String>>> = BTreeMap::new();
        let ran = all.iter().enumerate().map(|(number, transaction)| {
            let Some(template) = history.numbers[number] else { return Vec::new() };
            if programs.unknown(template).is_some() {
                doubtful.insert(number);
                return Vec::new();
            }
            if !is_certain(transaction) && !is_read(transaction, template, programs) {
                return Vec::new();
            }
            let tables = forms.entry(template).or_insert_with(|| tables(template, programs));
            let of = |run: Run| Ran::of(programs, tables.get(&run.step).cloned().flatten(), run);
            runs(transaction).into_iter().map(of).collect()
        });
        let ran = ran.collect();
        let requests = history.requests();
        let mut request = vec![usize::MAX; all.len()];
        for (number, own) in requests.iter().enumerate() {
            for transaction in own {
                request[*transaction] = number;
            }
        }
        Traffic { history, programs, runs: ran, requests, request, doubtful }
    }

    pub(super) fn transaction(&self, number: usize) -> &Transaction {
        &self.history.recorded.transactions[number]
    }

    /// The level at which a transaction ran.
    pub(super) fn level(&self, number: usize) -> Option<Level> {
        self.history.numbers[number].map(|template| self.history.templates[template].level)
    }

    /// The earliest time at which others could see what a transaction wrote.
    pub(super) fn visible(&self, number: usize) -> u64 {
        self.transaction(number).until
    }

    /// True if no other transaction can have given columns of a row another value between two times, apart from
    /// those named here. With `change`, a column and a value, others may have written other values there.
    pub(super) fn is_quiet(
        &self,
        row: &RowName,
        columns: &Columns,
        change: Option<(&str, &str)>,
        [from, to]: [u64; 2],
        apart_from: &[usize],
    ) -> bool {
        let overlaps = |transaction: &Transaction| transaction.at <= to && transaction.ended >= from;
        let recorded = self.history.recorded;
        let writes = |number: Option<usize>| {
            number.is_none_or(|template| {
                self.programs.unknown(template).is_some() || !self.writing(template, row, columns).is_empty()
            })
        };
        let mut beyond = recorded.beyond.iter().zip(&self.history.beyond);
        if beyond.any(|(transaction, number)| overlaps(transaction) && writes(*number)) {
            return false;
        }
        let ends = recorded.transactions.partition_point(|transaction| transaction.at <= to);
        (0..ends).filter(|number| !apart_from.contains(number)).all(|number| {
            let transaction = self.transaction(number);
            let undone = matches!(transaction.end, End::RolledBack | End::Failed(_));
            !overlaps(transaction)
                || !self.doubtful.contains(&number) && (undone || self.leaves(number, row, columns, change))
        })
    }

    /// True if no statement of a transaction gives the columns of a row this value, or removes the row.
    fn leaves(&self, number: usize, row: &RowName, columns: &Columns, change: Option<(&str, &str)>) -> bool {
        let Some(template) = self.history.numbers[number] else { return true };
        let suspect = self.writing(template, row, columns);
        if suspect.is_empty() {
            return true;
        }
        let (Some((column, value)), false) = (change, self.runs[number].is_empty()) else { return false };
        self.runs[number].iter().filter(|ran| suspect.contains(&ran.run.step)).all(|ran| {
            let sets = |set: &[(String, String)]| {
                set.iter().any(|(name, text)| name == column && !is_same(text, value))
            };
            ran.update.as_ref().is_some_and(|(own, set)| is_other(own, row) || sets(set))
        })
    }

    /// True if only the statement of a line of a transaction may write these columns of rows, or remove some.
    pub(super) fn writes_rows_once(
        &self,
        number: usize,
        row: &RowName,
        columns: &Columns,
        line: u64,
    ) -> bool {
        let Some(template) = self.history.numbers[number] else { return false };
        let suspect = self.writing(template, row, columns);
        !self.runs[number].iter().any(|ran| ran.run.line != line && suspect.contains(&ran.run.step))
    }

    /// True if only the statement of a line of a transaction writes the columns of a row.
    pub(super) fn writes_once(&self, number: usize, row: &RowName, column: &str, line: u64) -> bool {
        let Some(template) = self.history.numbers[number] else { return false };
        let suspect = self.writing(template, row, &Columns::These(BTreeSet::from([column.to_owned()])));
        let others = self.runs[number].iter().filter(|ran| ran.run.line != line);
        others
            .filter(|ran| suspect.contains(&ran.run.step))
            .all(|ran| ran.update.as_ref().is_some_and(|(own, _)| is_other(own, row)))
    }

    /// True if a transaction may change columns of a row, or remove it.
    pub(super) fn may_remove(&self, number: usize, row: &RowName, columns: &Columns) -> bool {
        let template = self.history.numbers[number];
        template.is_none_or(|template| !self.writing(template, row, columns).is_empty())
    }

    /// The statements of a template that may write columns of a row or remove it. Who inserts doesn't: the row
    /// is there.
    fn writing(&self, template: usize, row: &RowName, columns: &Columns) -> BTreeSet<usize> {
        let may = |one: &Operation| match one.kind {
            Does::Delete => true,
            Does::Update => meet(&one.writes, columns),
            _ => false,
        };
        let all = operations(template, self.programs, writes).into_iter();
        all.filter(|(_, one)| one.table == row.0 && may(one)).map(|(step, _)| step).collect()
    }
}

/// True if two names of one table are of different rows.
fn is_other(one: &RowName, other: &RowName) -> bool {
    let names = |row: &RowName| row.1.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    // A number may be written in two ways.
    let differs = |(one, other): (&(String, String), &(String, String))| !is_same(&one.1, &other.1);
    one.0 == other.0 && names(one) == names(other) && one.1.iter().zip(&other.1).any(differs)
}

/// True if what a transaction wrote is certainly there, all of it.
fn is_certain(transaction: &Transaction) -> bool {
    let undone = |role: &Role| matches!(role, Role::Savepoint(words, _) if words.starts_with("ROLLBACK"));
    transaction.end == End::Committed
        && transaction.acknowledged.is_some()
        && !transaction.statements.iter().any(|one| undone(&one.role) || one.answer.error.is_some())
}

/// True if a transaction only read, and was rolled back: so applications end a request that they decline.
fn is_read(transaction: &Transaction, template: usize, programs: &Programs) -> bool {
    transaction.end == End::RolledBack
        && !transaction.statements.iter().any(|one| one.answer.error.is_some())
        && operations(template, programs, writes).is_empty()
}

/// For each statement of a template the only table that it writes, or of its operations if it writes none: who inserts
/// looks at tables of foreign keys, too.
fn tables(template: usize, programs: &Programs) -> BTreeMap<usize, Option<String>> {
    let mut touched: BTreeMap<usize, [BTreeSet<&str>; 2]> = BTreeMap::new();
    for (step, operation) in operations(template, programs, |one| !one.newest || writes(one)) {
        let [written, all] = touched.entry(step).or_default();
        if writes(operation) {
            written.insert(&operation.table);
        }
        all.insert(&operation.table);
    }
    let only = |[written, all]: [BTreeSet<&str>; 2]| {
        let own = if written.is_empty() { all } else { written };
        own.first().filter(|_| own.len() == 1).map(|table| (*table).to_owned())
    };
    touched.into_iter().map(|(step, both)| (step, only(both))).collect()
}

impl Ran {
    fn of(programs: &Programs, table: Option<String>, run: Run) -> Ran {
        let query = table.as_ref().and_then(|_| Query::of(&run.key));
        let update = table.as_ref().and_then(|table| update(programs, table, &run));
        let insert = table.as_ref().and_then(|_| insert(&run));
        Ran { run, table, query, update, insert }
    }

    /// The values of a row that the statement returned, by the table's columns, if it is this one.
    pub(super) fn returned(&self, row: &RowName) -> Option<BTreeMap<String, String>> {
        let query = self.query.as_ref().filter(|_| self.table.as_ref() == Some(&row.0))?;
        let named = |result: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let pairs = result.iter();
            pairs.filter_map(|(name, value)| Some((query.column(name)?.to_owned(), value.clone()))).collect()
        };
        let only = query.equal.is_some() && self.run.rows == Some(1);
        let mut same = self.run.results.iter().map(named).filter(|result| {
            row.1.iter().all(|pair| match result.get(&pair.0) {
                Some(value) => *value == pair.1,
                None => only && self.run.compared.contains(pair),
            })
        });
        same.next().filter(|_| same.next().is_none())
    }

    /// True if the statement may have returned or written the row in a way that its form doesn't show, or returned
    /// rows that aren't recorded.
    pub(super) fn may_touch(&self, row: &RowName) -> bool {
        let whole = self.query.is_some() && self.run.rows == Some(self.run.results.len() as u64);
        self.table.as_ref() == Some(&row.0) && !whole
    }
}

/// The row and the columns of an UPDATE that changed one row, which a unique key names.
fn update(programs: &Programs, table: &str, run: &Run) -> Option<(RowName, Vec<(String, String)>)> {
    let form = Update::of(&run.key).filter(|_| run.rows == Some(1))?;
    let named: BTreeSet<String> = run.compared.iter().map(|(column, _)| column.clone()).collect();
    let all: BTreeSet<String> = form.equal.iter().cloned().collect();
    let once = named.len() == run.compared.len() && all.len() == form.equal.len();
    if !once || named != all {
        return None;
    }
    let key = programs.unique_key(table, &named)?;
    let mut row: Vec<(String, String)> =
        run.compared.iter().filter(|(column, _)| key.contains(column)).cloned().collect();
    row.sort();
    let mut set: Vec<(String, String)> =
        run.assigned.iter().filter(|(column, _)| form.set.contains(column)).cloned().collect();
    set.sort();
    let apart = set.windows(2).all(|pair| pair[0].0 != pair[1].0);
    // A change of the key makes another row.
    let keeps = set.iter().all(|(column, _)| !key.contains(column));
    (apart && keeps).then(|| ((table.to_owned(), row), set))
}

/// The values of an INSERT of one row.
fn insert(run: &Run) -> Option<Vec<(String, String)>> {
    let mut words = run.key.split(' ');
    let inserts = words.next().is_some_and(|word| word.eq_ignore_ascii_case("insert"));
    let plain =
        !run.key.contains(" CONFLICT") && !run.key.contains("SELECT") && !run.key.contains(" conflict");
    (inserts && plain && run.rows == Some(1)).then(|| run.assigned.clone())
}
