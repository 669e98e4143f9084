//! What of a change says nothing about the order of the commands: ids, times, tokens. They differ between
//! two runs of the same order. Any other column that differs is an error, since masking it would hide what
//! a race loses.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::ground::{AHEAD, Change, Column, Ground, Row, Table};

/// A time that is no further from now is the time of a run.
const NEAR: Duration = Duration::from_mins(10);

/// Parts of a second since 1970 in which applications keep times as numbers: whole ones, and thousandths, millionths
/// and billionths.
const PARTS: [f64; 4] = [1.0, 1e3, 1e6, 1e9];

/// What stands in place of a value that says nothing.
const MASK: &str = "*";

/// Changes of each table without what says nothing: rows that are gone, and rows that are new.
pub(crate) type Canonical = BTreeMap<usize, (Vec<Row>, Vec<Row>)>;

/// Columns that are left out of comparisons.
#[derive(Debug, Clone, Default)]
pub(crate) struct Masks {
    columns: BTreeSet<(usize, usize)>,
    /// The values that columns had at first; they always count.
    known: BTreeMap<usize, Vec<HashSet<Option<String>>>>,
}

/// A column that may not be left out, or a table with other rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Odd {
    pub(crate) table: usize,
    pub(crate) column: Option<usize>,
}

impl Odd {
    /// Its name.
    pub(crate) fn name(&self, contents: &dyn Contents) -> String {
        let table = contents.table(self.table);
        match self.column {
            Some(column) => format!("{}.{}", table.short, table.columns[column].name),
            None => table.short.clone(),
        }
    }
}

/// The first contents of tables: what masks need to know of a database.
pub(crate) trait Contents {
    /// A table.
    fn table(&self, table: usize) -> &Table;
    /// Its first rows.
    fn rows(&self, table: usize) -> &[Row];
    /// The names of the database's own functions, any of which may change rows.
    fn functions(&self) -> &BTreeSet<String>;
}

impl Contents for Ground {
    fn table(&self, table: usize) -> &Table {
        &self.tables[table]
    }

    fn rows(&self, table: usize) -> &[Row] {
        self.base(table)
    }

    fn functions(&self) -> &BTreeSet<String> {
        &self.functions
    }
}

impl Masks {
    /// Learns from two runs of the same order, of which the second has ids `AHEAD` of the first.
    pub(crate) fn learn(
        &mut self,
        contents: &dyn Contents,
        one: &[Change],
        other: &[Change],
    ) -> Result<(), Odd> {
        let none = |table| Change { table, gone: Vec::new(), new: Vec::new() };
        let of = |changes: &[Change], table: usize| {
            changes.iter().find(|change| change.table == table).cloned().unwrap_or_else(|| none(table))
        };
        let tables: BTreeSet<usize> = one.iter().chain(other).map(|change| change.table).collect();
        for table in tables {
            let (left, right) = (of(one, table), of(other, table));
            for (at, column) in contents.table(table).columns.iter().enumerate() {
                let (left, right) = (values(&left, at), values(&right, at));
                if left == right {
                    continue;
                }
                if !column.is_ignored && !may_differ(column, &left, &right) {
                    return Err(Odd { table, column: Some(at) });
                }
                self.columns.insert((table, at));
            }
            let canonical = |masks: &mut Self, change| masks.canonical(contents, &[change], false);
            if canonical(self, left) != canonical(self, right) {
                return Err(Odd { table, column: None });
            }
        }
        Ok(())
    }

    /// The same columns, for other first contents.
    pub(crate) fn without_contents(&self) -> Self {
        Self { columns: self.columns.clone(), known: BTreeMap::new() }
    }

    /// Changes without what says nothing. A row that differs in nothing else hasn't changed. With `soft`,
    /// rows that changed only in columns that are left out haven't changed either.
    pub(crate) fn canonical(&mut self, contents: &dyn Contents, changes: &[Change], soft: bool) -> Canonical {
        let mut found = Canonical::new();
        for change in changes {
            let table = contents.table(change.table);
            let columns = &self.columns;
            let known = self
                .known
                .entry(change.table)
                .or_insert_with(|| known(contents.rows(change.table), table.columns.len()));
            let value = |at: usize, value: &Option<String>| {
                let column = &table.columns[at];
                let masked = columns.contains(&(change.table, at)) || column.is_ignored;
                let is_new = !known[at].contains(value);
                let hidden = (masked && (soft || column.is_ignored))
                    || (is_new
                        && (masked || value.as_ref().is_some_and(|value| is_of_run(&column.kind, value))));
                if hidden { Some(MASK.to_owned()) } else { value.clone() }
            };
            let masked = |rows: &[Row]| -> Vec<Row> {
                let row = |row: &Row| row.iter().enumerate().map(|(at, one)| value(at, one)).collect();
                rows.iter().map(row).collect()
            };
            let (gone, new) = (masked(&change.gone), masked(&change.new));
            let mut gone_only = crate::ground::without(&gone, &new);
            let mut new_only = crate::ground::without(&new, &gone);
            gone_only.sort();
            new_only.sort();
            if !(gone_only.is_empty() && new_only.is_empty()) {
                found.insert(change.table, (gone_only, new_only));
            }
        }
        found
    }

    /// The columns that are left out, by table.
    pub(crate) fn names(&self, contents: &dyn Contents) -> Vec<String> {
        let name = |(table, column): &(usize, usize)| {
            let table = contents.table(*table);
            format!("{}.{}", table.short, table.columns[*column].name)
        };
        self.columns.iter().map(name).collect()
    }
}

fn known(rows: &[Row], columns: usize) -> Vec<HashSet<Option<String>>> {
    (0..columns).map(|at| rows.iter().map(|row| row[at].clone()).collect()).collect()
}

/// The values of a column in rows that are gone or new, sorted.
fn values(change: &Change, at: usize) -> Vec<Option<String>> {
    let mut values: Vec<Option<String>> =
        change.gone.iter().chain(&change.new).map(|row| row[at].clone()).collect();
    values.sort();
    values
}

/// True if a column may differ between two runs: ids, times (also as numbers), texts (which may hold either), UUIDs.
fn may_differ(column: &Column, left: &[Option<String>], right: &[Option<String>]) -> bool {
    let kind = column.kind.as_str();
    let is_text = ["text", "character", "json", "bytea", "citext"].iter().any(|name| kind.starts_with(name));
    let is_time = ["timestamp", "date", "time", "interval"].iter().any(|name| kind.starts_with(name));
    let same_rows = left.len() == right.len();
    let is_clock = || are_times(left, right) && are_times(right, left);
    same_rows
        && (column.is_id || is_text || is_time || kind == "uuid" || follows_ids(left, right) || is_clock())
}

/// True if all numbers that the other run hasn't are times near to now.
fn are_times(values: &[Option<String>], others: &[Option<String>]) -> bool {
    let now = now().as_secs_f64();
    let is_near = |number: f64| PARTS.iter().any(|parts| (number / parts - now).abs() < NEAR.as_secs_f64());
    let mut own = values.iter().filter(|value| !others.contains(value));
    own.all(|value| value.as_ref().is_some_and(|value| value.parse().is_ok_and(is_near)))
}

/// The time since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// True if numbers that differ do so by the distance between the ids of the runs.
fn follows_ids(left: &[Option<String>], right: &[Option<String>]) -> bool {
    let numbers = |values: &[Option<String>], others: &[Option<String>]| -> Option<Vec<i64>> {
        let mut numbers = Vec::new();
        for value in values.iter().filter(|value| !others.contains(value)).flatten() {
            numbers.push(value.parse::<i64>().ok()?);
        }
        numbers.sort_unstable();
        Some(numbers)
    };
    let (Some(own), Some(others)) = (numbers(left, right), numbers(right, left)) else { return false };
    own.len() == others.len()
        && own.iter().zip(&others).all(|(own, other)| own.abs_diff(*other) == AHEAD.unsigned_abs())
}

/// True for a new value that no order determines: a UUID, or a time near to now.
fn is_of_run(kind: &str, value: &str) -> bool {
    if kind == "uuid" {
        return true;
    }
    let now = i64::try_from(now().as_secs()).unwrap_or(i64::MAX);
    kind.starts_with("timestamp") && seconds(value).is_some_and(|time| time.abs_diff(now) < NEAR.as_secs())
}

/// The seconds since 1970 of an instant in ISO format, in UTC.
fn seconds(value: &str) -> Option<i64> {
    let part = |from: usize, to: usize| value.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hours, minutes, seconds) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    // Days of the civil calendar. Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let era = year.div_euclid(400);
    let (of_era, of_year) = (year.rem_euclid(400), (153 * month + 2) / 5 + day - 1);
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Tables of a test.
    pub(crate) struct Shop(pub(crate) Vec<(Table, Vec<Row>)>);

    impl Contents for Shop {
        fn table(&self, table: usize) -> &Table {
            &self.0[table].0
        }

        fn rows(&self, table: usize) -> &[Row] {
            &self.0[table].1
        }

        fn functions(&self) -> &BTreeSet<String> {
            const { &BTreeSet::new() }
        }
    }

    /// A row of the values between blanks.
    pub(crate) fn row(values: &str) -> Row {
        values.split(' ').map(|value| (value != "NULL").then(|| value.to_owned())).collect()
    }

    /// One table `item` with an id and a stock, and one `orders` with an id, the item, a note and a time.
    pub(crate) fn shop() -> Shop {
        let item = Table::of("item", &[("id", "integer", true), ("stock", "integer", false)]);
        let orders = Table::of(
            "orders",
            &[
                ("id", "integer", true),
                ("item", "integer", false),
                ("note", "text", false),
                ("at", "timestamp with time zone", false),
            ],
        );
        Shop(vec![(item, vec![row("1 5"), row("2 7")]), (orders, Vec::new())])
    }

    /// A change of the stock of item 1.
    pub(crate) fn stock(stock: &str) -> Change {
        Change { table: 0, gone: vec![row("1 5")], new: vec![row(&format!("1 {stock}"))] }
    }

    /// New orders.
    pub(crate) fn orders(rows: &[&str]) -> Change {
        Change { table: 1, gone: Vec::new(), new: rows.iter().map(|values| row(values)).collect() }
    }

    #[test]
    fn ids_and_times_are_left_out_and_numbers_are_not() {
        let (shop, mut masks) = (shop(), Masks::default());
        let one = [stock("4"), orders(&["1 1 x 2020-01-01T00:00:00"])];
        let other = [stock("4"), orders(&["1001 1 y 2020-01-01T00:00:01"])];
        assert_eq!(masks.learn(&shop, &one, &other), Ok(()));
        assert_eq!(masks.names(&shop), ["orders.id", "orders.note", "orders.at"]);
        assert_eq!(masks.canonical(&shop, &one, false), masks.canonical(&shop, &other, false));
        let lost = [stock("3"), other[1].clone()];
        assert_ne!(masks.canonical(&shop, &one, false), masks.canonical(&shop, &lost, false));
    }

    #[test]
    fn a_column_that_a_race_may_lose_is_never_left_out() {
        let (shop, mut masks) = (shop(), Masks::default());
        let odd = masks.learn(&shop, &[stock("4")], &[stock("3")]);
        assert_eq!(odd, Err(Odd { table: 0, column: Some(1) }));
        let odd = masks.learn(&shop, &[orders(&["1 1 x NULL"])], &[]);
        assert_eq!(odd, Err(Odd { table: 1, column: Some(0) }), "another number of rows");
    }

    #[test]
    fn numbers_that_follow_ids_are_left_out() {
        let (shop, mut masks) = (shop(), Masks::default());
        let (one, other) = ([orders(&["1 7 x NULL"])], [orders(&["1001 1007 x NULL"])]);
        assert_eq!(masks.learn(&shop, &one, &other), Ok(()));
        assert_eq!(masks.names(&shop), ["orders.id", "orders.item"]);
    }

    #[test]
    fn times_as_numbers_are_left_out_and_other_numbers_are_not() {
        let shop = shop();
        let now = now().as_secs();
        for (one, other) in [
            (now.to_string(), (now + 1).to_string()),
            (format!("{now}123"), format!("{}001", now + 1)),
            (format!("{now}.25"), format!("{}.75", now + 1)),
            (format!("{now}123456"), format!("{}000000", now + 1)),
        ] {
            let mut masks = Masks::default();
            let learnt = masks.learn(&shop, &[stock(&one)], &[stock(&other)]);
            assert_eq!((learnt, masks.names(&shop)), (Ok(()), vec!["item.stock".to_owned()]), "{one}");
        }
        for (one, other) in [(now.to_string(), "4".to_owned()), (format!("{now}9"), format!("{now}8"))] {
            let learnt = Masks::default().learn(&shop, &[stock(&one)], &[stock(&other)]);
            assert_eq!(learnt, Err(Odd { table: 0, column: Some(1) }), "{one}");
        }
    }

    #[test]
    fn a_first_value_counts_even_where_new_ones_do_not() {
        let (shop, mut masks) = (shop(), Masks::default());
        let new = |id: &str| [Change { table: 0, gone: Vec::new(), new: vec![row(&format!("{id} 9"))] }];
        masks.learn(&shop, &new("3"), &new("1003")).expect("ids may differ");
        assert_eq!(masks.canonical(&shop, &new("4"), false), masks.canonical(&shop, &new("5"), false));
        assert_ne!(masks.canonical(&shop, &new("4"), false), masks.canonical(&shop, &new("2"), false));
        let visited = [Change { table: 0, gone: vec![row("2 7")], new: vec![row("8 7")] }];
        assert!(masks.canonical(&shop, &visited, true).is_empty(), "only an id differs");
    }

    #[test]
    fn times_near_to_now_say_nothing() {
        assert_eq!(seconds("1970-01-02 00:00:01+00"), Some(86_401));
        assert_eq!(seconds("2026-11-29 05:50:00"), Some(1_795_931_400));
        assert!(!is_of_run("timestamp with time zone", "2020-01-01 00:00:00+00"));
        assert!(is_of_run("uuid", "x") && !is_of_run("integer", "7"));
    }
}
