//! The contents of the tables: as they were at first, what has changed since, and putting it back.
//!
//! Rows are put back without triggers and foreign keys, over one session of isobench's own, so the
//! application's sessions stay. Small tables are filled again as a whole: their rows are then where they
//! were at first, which decides what a query without ORDER BY returns.
//!
//! Not here: what of a change says nothing (`masks`).

mod catalog;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use isobench_pgwire::{ConnectOptions, Connection};

use crate::RaceError;
use catalog::Sequence;
pub(crate) use catalog::{Column, Table};

/// A row as text.
pub(crate) type Row = Vec<Option<String>>;

/// The most rows of a table that is filled again as a whole.
const SMALL: usize = 5000;

/// The time that a session of the server needs to end.
const ENDING: Duration = Duration::from_millis(500);

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The times that tables are filled again.
const REFILLED: usize = 5;

/// The distance between the ids of two runs of the same order.
pub(crate) const AHEAD: i64 = 1000;

/// The settings of the session: texts of values don't depend on those of roles, nothing fires, and no user's
/// lock is waited for without end.
const SETTINGS: &str = "SET search_path = pg_catalog; SET timezone = 'UTC'; SET datestyle = 'ISO, MDY'; \
    SET intervalstyle = 'postgres'; SET extra_float_digits = 1; SET bytea_output = 'hex'; SET row_security = off; \
    SET statement_timeout = 0; SET lock_timeout = '3s'; SET default_transaction_isolation = 'read committed'; \
    SET default_transaction_read_only = off";

/// How one table differs from its first contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The number of the table.
    pub(crate) table: usize,
    /// Rows that are gone.
    pub(crate) gone: Vec<Row>,
    /// Rows that are new.
    pub(crate) new: Vec<Row>,
}

/// The tables of a database, and the session that looks after them.
#[derive(Debug)]
pub(crate) struct Ground {
    session: Connection,
    database: String,
    pub(crate) tables: Vec<Table>,
    /// The names of functions that aren't PostgreSQL's own.
    pub(crate) functions: BTreeSet<String>,
    sequences: Vec<Sequence>,
    base: Vec<Vec<Row>>,
    hashes: Vec<String>,
    /// True once the first contents are known.
    kept: bool,
    /// A transaction: what was committed after the last look has its number or a later one.
    mark: Option<u32>,
    /// The tables that were changed when that was last looked for, until the rows are put back.
    changed: Option<Vec<usize>>,
    /// The first contents of tables in which the application wrote when it was started again, with their
    /// hashes.
    before: BTreeMap<usize, (Vec<Row>, String)>,
}

impl Ground {
    /// Opens the session, and refuses a database that others use.
    ///
    /// # Errors
    /// No server, rights that are missing, or others who use the database.
    pub(crate) fn open(options: &ConnectOptions) -> Result<Self, RaceError> {
        let mut session = Connection::open(options)?;
        // A pooler has keys of its own. Before anything is set: the next user of the session would have it.
        let own = session.value("SELECT pg_backend_pid()")?.and_then(|pid| pid.parse::<i32>().ok());
        let told = session.cancel_token().pid();
        if told != 0 && own != Some(told) {
            return Err(RaceError::Pooled);
        }
        session.execute(SETTINGS)?;
        session
            .execute("SET session_replication_role = replica")
            .map_err(|error| RaceError::NoRights { why: error.to_string() })?;
        let database = session.value("SELECT current_database()")?.unwrap_or_default();
        let ground = Self {
            session,
            database,
            tables: Vec::new(),
            functions: BTreeSet::new(),
            sequences: Vec::new(),
            base: Vec::new(),
            hashes: Vec::new(),
            kept: false,
            mark: None,
            changed: None,
            before: BTreeMap::new(),
        };
        ground.alone()
    }

    fn alone(mut self) -> Result<Self, RaceError> {
        let prepared = self.session.value(
            "SELECT string_agg('prepared transaction ' || gid, ', ') FROM pg_prepared_xacts \
             WHERE database = current_database()",
        )?;
        let mut who = prepared;
        // A session that has just ended is listed for a moment.
        let end = Instant::now() + ENDING;
        while who.is_none() {
            let Some(strangers) = self.strangers(&[])? else { return Ok(self) };
            who = (Instant::now() > end).then_some(strangers);
            thread::sleep(LOOK);
        }
        Err(RaceError::InUse { database: self.database.clone(), who: who.unwrap_or_default() })
    }

    /// Other sessions of the database than those of these processes of the server.
    pub(crate) fn strangers(&mut self, known: &[i32]) -> Result<Option<String>, RaceError> {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let sql = format!(
            "SELECT string_agg(coalesce(nullif(application_name, ''), usename, '') || ' (process ' || pid || ' of the \
             server)', ', ') FROM pg_stat_activity WHERE datname = current_database() AND backend_type IN ('client \
             backend', 'walsender') AND pid <> pg_backend_pid() AND NOT pid = ANY ('{{{}}}')",
            known.join(",")
        );
        Ok(self.session.value(&sql)?)
    }

    /// Keeps the contents as they are now.
    ///
    /// # Errors
    /// They are too large, or can't be put back.
    pub(crate) fn keep(&mut self, ignored: &[String], limit: u64) -> Result<(), RaceError> {
        self.tables = catalog::tables(&mut self.session, ignored)?;
        self.sequences = catalog::sequences(&mut self.session)?;
        self.functions = catalog::functions(&mut self.session)?;
        let megabytes = catalog::megabytes(&mut self.session, &self.tables)?;
        if megabytes > limit {
            return Err(RaceError::TooLarge { megabytes, limit });
        }
        catalog::require_silence(&mut self.session, &self.tables)?;
        (self.hashes, self.base) = self.at_once(|ground| {
            let base = (0..ground.tables.len()).map(|table| ground.rows(table)).collect::<Result<_, _>>()?;
            ground.set_mark()?;
            Ok((ground.hash(&ground.all())?, base))
        })?;
        (self.kept, self.changed) = (true, None);
        Ok(())
    }

    /// Reads tables as they are at one moment, whatever others do meanwhile.
    fn at_once<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, RaceError>) -> Result<T, RaceError> {
        self.session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let found = read(self);
        self.session.execute("COMMIT")?;
        found
    }

    /// Keeps what the application has written since the rows were put back, as it was started again.
    pub(crate) fn keep_start(&mut self) -> Result<(), RaceError> {
        self.changed = None;
        self.at_once(|ground| {
            for table in ground.dirty()? {
                let rows = ground.rows(table)?;
                let rows = std::mem::replace(&mut ground.base[table], rows);
                ground.before.entry(table).or_insert((rows, ground.hashes[table].clone()));
            }
            ground.set_mark()?;
            ground.hashes = ground.hash(&ground.all())?;
            Ok(())
        })
    }

    /// Forgets what the application wrote when it was started again.
    /// The next look is at all rows.
    pub(crate) fn forget_start(&mut self) {
        (self.changed, self.mark) = (None, None);
        for (table, (rows, hash)) in std::mem::take(&mut self.before) {
            (self.base[table], self.hashes[table]) = (rows, hash);
        }
    }

    /// The first contents of a table.
    pub(crate) fn base(&self, table: usize) -> &[Row] {
        &self.base[table]
    }

    fn all(&self) -> Vec<usize> {
        (0..self.tables.len()).collect()
    }

    /// A hash of each of these tables, whatever the order of its rows.
    fn hash(&mut self, tables: &[usize]) -> Result<Vec<String>, RaceError> {
        if tables.is_empty() {
            return Ok(Vec::new());
        }
        let each: Vec<String> = tables.iter().map(|table| self.tables[*table].hash(*table)).collect();
        let found = self.session.query(&format!("{} ORDER BY 1", each.join(" UNION ALL ")))?;
        Ok(found.rows.into_iter().map(|row| row.into_iter().nth(1).flatten().unwrap_or_default()).collect())
    }

    /// Notes the oldest transaction that runs, or the next one: changes that aren't visible now are its own, or
    /// those of later ones.
    fn set_mark(&mut self) -> Result<(), RaceError> {
        let oldest = self.session.value("SELECT txid_snapshot_xmin(txid_current_snapshot())")?;
        // Rows have the lower half of the number.
        let oldest =
            oldest.and_then(|text| text.parse::<u64>().ok()).map(|number| number & u64::from(u32::MAX));
        self.mark = oldest.and_then(|number| u32::try_from(number).ok());
        Ok(())
    }

    /// The tables that may have changed since the mark. A table with the same number of rows, none of which is
    /// newer, has the same rows.
    fn suspects(&mut self) -> Result<Vec<usize>, RaceError> {
        let Some(mark) = self.mark.filter(|_| !self.tables.is_empty()) else { return Ok(self.all()) };
        let each: Vec<String> =
            self.tables.iter().enumerate().map(|(at, table)| table.newer(at, mark)).collect();
        let found = self.session.query(&format!("{} ORDER BY 1", each.join(" UNION ALL ")))?;
        let number = |row: &Row, at: usize| row.get(at)?.as_ref()?.parse::<usize>().ok();
        let is_same = |(table, row): (usize, &Row)| {
            (number(row, 1), number(row, 2)) == (Some(self.base[table].len()), Some(0))
        };
        let rows = found.rows.iter().enumerate();
        Ok(rows.filter(|one| !is_same(*one)).map(|(table, _)| table).collect())
    }

    fn rows(&mut self, table: usize) -> Result<Vec<Row>, RaceError> {
        Ok(self.session.query(&self.tables[table].select())?.rows)
    }

    /// The tables that aren't as they were at first.
    fn dirty(&mut self) -> Result<Vec<usize>, RaceError> {
        let suspects = self.suspects()?;
        let now = self.hash(&suspects)?;
        let differs = |(table, now): (usize, String)| (now != self.hashes[table]).then_some(table);
        Ok(suspects.into_iter().zip(now).filter_map(differs).collect())
    }

    /// How the tables differ from their first contents.
    pub(crate) fn changes(&mut self) -> Result<Vec<Change>, RaceError> {
        self.at_once(|ground| {
            let mut changes = Vec::new();
            let dirty = ground.dirty()?;
            ground.changed = Some(dirty.clone());
            for table in dirty {
                let now = ground.rows(table)?;
                let (gone, new) = (without(&ground.base[table], &now), without(&now, &ground.base[table]));
                if !(gone.is_empty() && new.is_empty()) {
                    changes.push(Change { table, gone, new });
                }
            }
            Ok(changes)
        })
    }

    /// Puts rows and sequences back; the next ids are `ahead` of the first ones.
    ///
    /// # Errors
    /// A session holds its locks, or the rows aren't what they were.
    pub(crate) fn restore(&mut self, ahead: i64) -> Result<(), RaceError> {
        if !self.kept {
            return Ok(());
        }
        // Others may have been changed since: that is looked for afterwards.
        let mut dirty = match self.changed.take() {
            Some(changed) => changed,
            None => self.dirty()?,
        };
        // Something that happens now and then, such as the heartbeat of a worker, may come between.
        for _ in 0..REFILLED {
            self.put_back(&dirty, ahead).inspect_err(|_| {
                // The transaction may be gone with its session.
                let _ = self.session.execute("ROLLBACK");
            })?;
            // Before the look: what changes from now on is newer than it.
            let before = self.mark;
            self.set_mark()?;
            let next = std::mem::replace(&mut self.mark, before);
            dirty = self.dirty()?;
            if dirty.is_empty() {
                self.mark = next;
                break;
            }
            thread::sleep(LOOK);
        }
        if let Some(table) = dirty.first() {
            let why = if self.tables[*table].is_view {
                "a refresh of this materialized view doesn't give its first contents; refresh it before, or leave it \
                 out by --ignore"
            } else {
                "something else changes it; if it doesn't matter, leave it out by --ignore"
            };
            let why = why.to_owned();
            return Err(RaceError::NotRestored { table: self.tables[*table].name.clone(), why });
        }
        Ok(())
    }

    /// Fills tables again, and sets the sequences, in one transaction: each commit waits for a disk.
    fn put_back(&mut self, tables: &[usize], ahead: i64) -> Result<(), RaceError> {
        self.session.execute("BEGIN")?;
        for table in tables {
            self.refill(*table).map_err(|error| RaceError::NotRestored {
                table: self.tables[*table].name.clone(),
                why: error.to_string(),
            })?;
        }
        if !self.sequences.is_empty() {
            let all: Vec<String> = self.sequences.iter().map(|one| one.set(ahead)).collect();
            self.session.execute(&format!("SELECT {}", all.join(", ")))?;
        }
        self.session.execute("COMMIT")?;
        Ok(())
    }

    fn refill(&mut self, table: usize) -> Result<(), RaceError> {
        let name = self.tables[table].name.clone();
        if self.tables[table].is_view {
            self.session.execute(&format!("REFRESH MATERIALIZED VIEW {name}"))?;
        } else if self.base[table].len() <= SMALL {
            self.session.execute(&format!("DELETE FROM ONLY {name}"))?;
            self.fill(table, &self.base[table].clone())?;
        } else {
            let placed = self.session.query(&self.tables[table].select_placed())?.rows;
            let mut spare = counted(&self.base[table]);
            let mut odd = Vec::new();
            for row in placed {
                let Some((place, row)) = row.split_first() else { continue };
                match spare.get_mut(row) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => odd.extend(place.clone()),
                }
            }
            let missing: Vec<Row> =
                spare.into_iter().flat_map(|(row, count)| vec![row.to_vec(); count]).collect();
            let places: Vec<String> = odd.iter().map(|place| format!("\"{place}\"")).collect();
            let sql = format!("DELETE FROM ONLY {name} WHERE ctid = ANY ('{{{}}}'::tid[])", places.join(","));
            self.session.execute(&sql)?;
            self.fill(table, &missing)?;
        }
        Ok(())
    }

    fn fill(&mut self, table: usize, rows: &[Row]) -> Result<(), RaceError> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut rest = rows.iter();
        let mut write = |out: &mut Vec<u8>| match rest.next() {
            Some(row) => {
                copy_line(out, row);
                true
            }
            None => false,
        };
        self.session.copy_in(&self.tables[table].copy(), &mut write)?;
        Ok(())
    }

    /// The processes of the server that those of these processes wait for.
    pub(crate) fn blockers(&mut self, waiting: &[i32]) -> Result<Vec<i32>, RaceError> {
        let list: Vec<String> = waiting.iter().map(ToString::to_string).collect();
        let sql =
            format!("SELECT unnest(pg_blocking_pids(p)) FROM unnest('{{{}}}'::int[]) AS p", list.join(","));
        let found = self.session.query(&sql)?;
        Ok(found.rows.iter().filter_map(|row| row.first()?.as_ref()?.parse().ok()).collect())
    }

    /// The conditions that don't hold, by name.
    ///
    /// # Errors
    /// One of them isn't a query that returns true or false.
    pub(crate) fn violated(&mut self, conditions: &[(String, String)]) -> Result<Vec<String>, RaceError> {
        let mut violated = Vec::new();
        for (name, sql) in conditions {
            self.session.execute("BEGIN READ ONLY; SET LOCAL search_path = DEFAULT")?;
            let found = self.session.value(sql);
            self.session.execute("ROLLBACK")?;
            let wrong = |why: String| RaceError::Server(format!("--invariant {name}: {why}"));
            match found.map_err(|error| wrong(error.to_string()))?.as_deref() {
                Some("t") => {}
                Some("f") => violated.push(name.clone()),
                other => {
                    return Err(wrong(format!("it returned {}, not true or false", other.unwrap_or("NULL"))));
                }
            }
        }
        Ok(violated)
    }

    /// A setting of the session's role and database.
    pub(crate) fn default_level(&mut self) -> Result<Option<String>, RaceError> {
        Ok(self.session.value(
            "SELECT coalesce((SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_isolation'), '')",
        )?)
    }

    /// The version of the server.
    pub(crate) fn version(&mut self) -> Result<String, RaceError> {
        Ok(self.session.value("SELECT current_setting('server_version')")?.unwrap_or_default())
    }
}

fn counted(rows: &[Row]) -> HashMap<&[Option<String>], usize> {
    let mut counts: HashMap<&[Option<String>], usize> = HashMap::new();
    for row in rows {
        *counts.entry(row.as_slice()).or_default() += 1;
    }
    counts
}

/// The rows of one list that the other lacks, each as often as it does.
pub(crate) fn without(rows: &[Row], others: &[Row]) -> Vec<Row> {
    let mut spare = counted(others);
    let lacks = |row: &&Row| match spare.get_mut(row.as_slice()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    rows.iter().filter(lacks).cloned().collect()
}

/// A row in the text format of COPY (PostgreSQL manual, "COPY", File Formats).
fn copy_line(out: &mut Vec<u8>, row: &Row) {
    for (at, value) in row.iter().enumerate() {
        if at > 0 {
            out.push(b'\t');
        }
        let Some(value) = value else {
            out.extend_from_slice(b"\\N");
            continue;
        };
        for byte in value.bytes() {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                byte => out.push(byte),
            }
        }
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> Row {
        values.iter().map(|value| Some((*value).to_owned())).collect()
    }

    #[test]
    fn rows_are_counted() {
        let (one, two) = (row(&["1"]), row(&["2"]));
        let left = [one.clone(), one.clone(), two.clone()];
        assert_eq!(without(&left, std::slice::from_ref(&one)), [one.clone(), two.clone()]);
        assert!(without(&[one, two], &left).is_empty());
    }

    #[test]
    fn copied_values_are_escaped() {
        let mut out = Vec::new();
        copy_line(&mut out, &vec![Some("a\tb\\\n\r".to_owned()), None, Some(String::new())]);
        assert_eq!(out, b"a\\tb\\\\\\n\\r\t\\N\t\n");
    }
}
