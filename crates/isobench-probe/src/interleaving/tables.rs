//! The tables on which scripts are tried: which rows have changed, and how they are put back.
//!
//! On PostgreSQL a trigger writes each change into a table of isobench's. What it costs is a matter of
//! the rows that change, not of the size of the tables. Elsewhere small tables are read whole.

mod catalog;
mod changes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use isobench_database::Product;
use isobench_database::products::POSTGRESQL;

use self::catalog::Catalog;
use self::changes::difference;
use super::TryError;
use super::side_effects::{Around, SideEffects};
use crate::tester::{Patience, Reply, TestSession};

pub use self::catalog::WatchedTable;
pub use self::changes::{Changed, Delta, Row, composite, fields};

/// Whole numbers that matter to the tables.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    /// Some of the least by which rows are found.
    there: BTreeSet<i64>,
    /// Some by which no rows are found in any of these tables, or in one.
    free: BTreeSet<i64>,
}

impl Keys {
    /// Those by which rows are found, then the others.
    pub fn all(&self) -> impl Iterator<Item = i64> {
        self.there.iter().chain(&self.free).copied()
    }

    /// A few of each.
    pub fn few(&self) -> impl Iterator<Item = i64> {
        self.there.iter().take(2).chain(self.free.iter().take(2)).copied()
    }
}

/// How changes of rows are seen.
#[derive(Debug)]
enum Noting {
    /// By triggers; the number of the last change that has been read.
    Triggers {
        /// That number.
        seen: i64,
    },
    /// By reading all rows: those of each table when they were read last, and how often each is there.
    Contents(Vec<BTreeMap<Row, i64>>),
}

/// A sequence, and the value that the next call of `nextval` follows.
#[derive(Debug, Clone)]
struct Sequence {
    qualified: String,
    last: i64,
    called: bool,
}

/// The tables of a schema.
pub struct WatchedTables {
    /// The tables.
    pub all: Vec<WatchedTable>,
    /// True if something in the schema or in a default asks for the time.
    pub asks_for_time: bool,
    schema: String,
    sequences: Vec<Sequence>,
    /// The sequences as they were found.
    first_sequences: Vec<Sequence>,
    noting: Noting,
    side_effects: SideEffects,
}

/// The most rows of a table that is read whole after each trial.
const MOST_ROWS: usize = 1000;

/// The table into which triggers write changes, and the trigger and its function.
const CHANGES: &str = "isobench_changes";
const NOTE: &str = "isobench_note_change";

/// The most keys of a table with which a script is tried that doesn't work with the least numbers.
const NUMBERS: usize = 5;

/// The most keys of a table among which one is looked for that isn't there.
const LOOKED_AT: usize = 200;

/// The trigger's name, so that it comes before others, whose changes then follow.
const TRIGGER: &str = "\"!isobench\"";

const SEQUENCES: &str = "SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename) \
    FROM pg_catalog.pg_sequences WHERE schemaname = current_schema() AND sequencename !~ '^isobench_changes'";

/// Counts functions and defaults that ask for the time, by the names of the functions that return it.
const CLOCKS: &str = "SELECT count(*) FROM (SELECT prosrc AS text FROM pg_catalog.pg_proc \
    WHERE pronamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()) UNION ALL \
    SELECT pg_get_expr(adbin, adrelid) FROM pg_catalog.pg_attrdef) s \
    WHERE text ~* '(now\\(|current_time|current_date|localtime|clock_timestamp|statement_timestamp|timeofday)'";

impl WatchedTables {
    /// Prepares the tables of the session's schema.
    ///
    /// # Errors
    /// The server refuses or is gone, or rows couldn't be put back.
    pub fn prepare(
        control: &mut TestSession,
        product: &Product,
        patience: Patience<'_>,
    ) -> Result<WatchedTables, TryError> {
        let schema = single(&query(control, "SELECT quote_ident(current_schema())", patience)?);
        let Catalog { tables, triggered } = Catalog::read(control, patience)?;
        let asks_for_time = single(&query(control, CLOCKS, patience)?) != "0";
        let side_effects = SideEffects::find(control, product, patience)?;
        let noting = if product.name == POSTGRESQL.name {
            query(control, &installation(&schema, &triggered), patience)?;
            Noting::Triggers { seen: 0 }
        } else {
            Noting::Contents(contents(&tables, control, patience)?)
        };
        let mut prepared = WatchedTables {
            all: tables,
            asks_for_time,
            schema,
            sequences: Vec::new(),
            first_sequences: Vec::new(),
            noting,
            side_effects,
        };
        prepared.note_sequences(control, patience)?;
        prepared.first_sequences.clone_from(&prepared.sequences);
        Ok(prepared)
    }

    /// True if a column is one of those by which a row of some table is found: of a primary key or a
    /// unique constraint.
    pub fn finds_rows(&self, column: &str) -> bool {
        let found = |table: &WatchedTable| {
            table.unique.iter().any(|number| table.columns[*number].eq_ignore_ascii_case(column))
        };
        self.all.iter().any(found)
    }

    /// The index of the table with this object id.
    pub fn table(&self, oid: &str) -> Option<usize> {
        self.all.iter().position(|table| table.oid == oid)
    }

    /// Takes the present state of the sequences as that to which they are put back.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn note_sequences(
        &mut self,
        control: &mut TestSession,
        patience: Patience<'_>,
    ) -> Result<(), TryError> {
        self.sequences.clear();
        for row in query(control, SEQUENCES, patience)? {
            let qualified = row.into_iter().next().flatten().unwrap_or_default();
            let state = query(control, &format!("SELECT last_value, is_called FROM {qualified}"), patience)?;
            let mut values = state.into_iter().flatten().map(Option::unwrap_or_default);
            let last = values.next().and_then(|text| text.parse().ok());
            let last = last.ok_or(TryError::Answer("the state of a sequence"))?;
            let called = values.next().is_some_and(|text| text == "t");
            self.sequences.push(Sequence { qualified, last, called });
        }
        Ok(())
    }

    /// Some of the least whole numbers by which rows are found, and some by which none are.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn keys(&self, control: &mut TestSession, patience: Patience<'_>) -> Result<Keys, TryError> {
        let mut keys = Keys::default();
        for table in &self.all {
            let Some(column) = table.key.first().map(|column| &table.quoted[*column]) else { continue };
            let name = &table.qualified;
            let sql = format!("SELECT DISTINCT {column} FROM {name} ORDER BY 1 LIMIT {LOOKED_AT}");
            let values = query(control, &sql, patience)?.into_iter().flatten().flatten();
            let values: Vec<i64> = values.filter_map(|value| value.parse::<i64>().ok()).collect();
            keys.there.extend(values.iter().take(NUMBERS));
            let after = |value: &i64| value.saturating_add(1);
            let gap = values.windows(2).find(|pair| after(&pair[0]) != pair[1]).map(|pair| after(&pair[0]));
            let last = if values.len() < LOOKED_AT {
                values.last().copied()
            } else {
                let last = query(control, &format!("SELECT max({column}) FROM {name}"), patience)?;
                last.into_iter().flatten().flatten().find_map(|value| value.parse::<i64>().ok())
            };
            keys.free.extend(gap.into_iter().chain(last.as_ref().map(after)));
        }
        let free = &keys.free - &keys.there;
        Ok(Keys { free, ..keys })
    }

    /// True if it is known which session made a change.
    pub fn knows_writers(&self) -> bool {
        matches!(self.noting, Noting::Triggers { .. })
    }

    /// Reads what has changed since the last call, and which of these sessions (by their processes)
    /// changed it, as far as that is known.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn changes(
        &mut self,
        control: &mut TestSession,
        patience: Patience<'_>,
    ) -> Result<(Delta, BTreeSet<i32>), TryError> {
        match &mut self.noting {
            Noting::Triggers { seen } => {
                let rows = query(control, &question(&self.schema, *seen), patience)?;
                Ok(self.tally(rows))
            }
            Noting::Contents(before) => {
                let now = contents(&self.all, control, patience)?;
                let delta = difference(before, &now);
                *before = now;
                Ok((delta, BTreeSet::new()))
            }
        }
    }

    /// Adds up changes.
    fn tally(&mut self, noted: Vec<Row>) -> (Delta, BTreeSet<i32>) {
        let mut writers = BTreeSet::new();
        let mut balances: BTreeMap<usize, BTreeMap<String, i64>> = BTreeMap::new();
        for row in noted {
            let mut values = row.into_iter();
            let mut value = || values.next().flatten();
            let (number, relation, pid, old, new) = (value(), value(), value(), value(), value());
            if let (Noting::Triggers { seen }, Some(number)) = (&mut self.noting, number) {
                *seen = number.parse().unwrap_or(*seen);
            }
            writers.extend(pid.and_then(|text| text.parse::<i32>().ok()));
            let Some(table) = relation.and_then(|oid| self.table(&oid)) else { continue };
            let balance = balances.entry(table).or_default();
            if let Some(old) = old {
                *balance.entry(old).or_default() -= 1;
            }
            if let Some(new) = new {
                *balance.entry(new).or_default() += 1;
            }
        }
        let mut delta = Delta::default();
        for (table, balance) in balances {
            let mut changed = Changed::default();
            for (text, count) in balance {
                let list = if count < 0 { &mut changed.removed } else { &mut changed.added };
                let row = fields(&text);
                list.extend((0..count.unsigned_abs()).map(|_| row.clone()));
            }
            changed.removed.sort();
            changed.added.sort();
            if changed != Changed::default() {
                delta.tables.insert(table, changed);
            }
        }
        (delta, writers)
    }

    /// Puts everything back as it was found, if this is the difference from that.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn start_again(
        &mut self,
        control: &mut TestSession,
        delta: &Delta,
        patience: Patience<'_>,
    ) -> Result<(), TryError> {
        self.sequences.clone_from(&self.first_sequences);
        self.put_back(control, delta, 0, patience)
    }

    /// Puts the tables back to the state from which this is the difference, and the sequences to
    /// their noted values plus `ahead`.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn put_back(
        &mut self,
        control: &mut TestSession,
        delta: &Delta,
        ahead: i64,
        patience: Patience<'_>,
    ) -> Result<(), TryError> {
        let changes = |oid: &str| self.table(oid).is_some_and(|table| delta.tables.contains_key(&table));
        let around = !delta.tables.is_empty();
        let around = if around { self.side_effects.around(&changes) } else { Around::default() };
        let Around { before: mut sql, after } = around;
        for (table, changed) in &delta.tables {
            let number = *table;
            let table = &self.all[number];
            match &self.noting {
                Noting::Triggers { .. } => {
                    changed.added.iter().for_each(|row| table.delete_one(row, &mut sql));
                    changed.removed.iter().for_each(|row| table.insert(row, &mut sql));
                }
                Noting::Contents(now) => {
                    let rows: BTreeSet<&Row> = changed.added.iter().chain(&changed.removed).collect();
                    let times = |row: &Row, list: &[Row]| list.iter().filter(|other| *other == row).count();
                    for row in &rows {
                        table.delete_equal(row, &mut sql);
                    }
                    for row in rows {
                        let there =
                            now[number].get(row).map_or(0, |count| usize::try_from(*count).unwrap_or(0));
                        let wanted =
                            there + times(row, &changed.removed) - times(row, &changed.added).min(there);
                        (0..wanted).for_each(|_| table.insert(row, &mut sql));
                    }
                }
            }
        }
        sql.push_str(&after);
        for sequence in &self.sequences {
            let (value, called) = (sequence.last + ahead, sequence.called || ahead > 0);
            // Writing to a String can't fail.
            let _ = write!(
                sql,
                "SELECT setval('{}', {value}, {called});",
                sequence.qualified.replace('\'', "''")
            );
        }
        if sql.is_empty() {
            return Ok(());
        }
        if delta.tables.is_empty() {
            query(control, &sql, patience)?;
            return Ok(());
        }
        let put_back = match &self.noting {
            Noting::Triggers { seen } => {
                sql.push_str(&question(&self.schema, *seen));
                let rows = query(control, &sql, patience)?;
                self.tally(rows).0
            }
            Noting::Contents(_) => {
                query(control, &sql, patience)?;
                self.changes(control, patience)?.0
            }
        };
        if put_back == delta.inverse() { Ok(()) } else { Err(TryError::NotPutBack) }
    }
}

/// The query for what triggers have noted since the change of this number.
fn question(schema: &str, seen: i64) -> String {
    format!("SELECT n, relation, pid, old, new FROM {schema}.{CHANGES} WHERE n > {seen} ORDER BY n")
}

/// All rows of these tables.
fn contents(
    tables: &[WatchedTable],
    control: &mut TestSession,
    patience: Patience<'_>,
) -> Result<Vec<BTreeMap<Row, i64>>, TryError> {
    let mut contents = Vec::new();
    for table in tables {
        let columns = table.quoted.join(", ");
        let sql = format!("SELECT {columns} FROM {} LIMIT {}", table.qualified, MOST_ROWS + 1);
        let rows = query(control, &sql, patience)?;
        if rows.len() > MOST_ROWS {
            return Err(TryError::TooLarge { table: table.name.clone(), most: MOST_ROWS });
        }
        let mut counted = BTreeMap::new();
        for row in rows {
            *counted.entry(row).or_default() += 1;
        }
        contents.push(counted);
    }
    Ok(contents)
}

/// The SQL that makes the table of changes and its triggers. Its function doesn't depend on the role
/// that a script has taken.
fn installation(schema: &str, tables: &[String]) -> String {
    let mut sql = format!(
        "CREATE UNLOGGED TABLE {schema}.{CHANGES} (n bigserial PRIMARY KEY, relation oid, pid int, old text, new text);\
         CREATE FUNCTION {schema}.{NOTE}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $note$ BEGIN \
         INSERT INTO {schema}.{CHANGES} (relation, pid, old, new) VALUES (TG_RELID, pg_catalog.pg_backend_pid(), \
         CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END); \
         RETURN NULL; END $note$;"
    );
    for table in tables {
        let _ = write!(
            sql,
            "CREATE TRIGGER {TRIGGER} AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION \
             {schema}.{NOTE}();ALTER TABLE {table} ENABLE ALWAYS TRIGGER {TRIGGER};"
        );
    }
    sql
}

/// Runs statements and returns the rows of the last one.
///
/// # Errors
/// The server refuses or is gone.
pub fn query(control: &mut TestSession, sql: &str, patience: Patience<'_>) -> Result<Vec<Row>, TryError> {
    let replies = control.execute(sql, patience, &mut |_| {}).map_err(|_| TryError::Stopped)?;
    let mut rows = Vec::new();
    for reply in replies {
        match reply {
            Reply::Rows(table) => rows = table.rows,
            Reply::Command(_) | Reply::Copy(_) => {}
            Reply::Error(error) => {
                return Err(TryError::Server(error.report(Some(sql))));
            }
            Reply::Lost(why) => return Err(TryError::Lost(why)),
        }
    }
    Ok(rows)
}

fn single(rows: &[Row]) -> String {
    rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or_default()
}
