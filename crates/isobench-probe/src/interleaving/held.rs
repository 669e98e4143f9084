//! Locks of a transaction that is under way, which another session takes over when it has ended: so a
//! statement that passes by locked rows can be run after it, and passes by the same rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use isobench_script::literal;

use super::TryError;
use super::tables::{Delta, Row, WatchedTable, WatchedTables, composite, fields, query};
use crate::tester::{Patience, TestSession};

/// Locks of a transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Locks {
    /// The locked rows of each table, by its index, as they were before the transaction.
    rows: BTreeMap<usize, Vec<LockedRow>>,
    /// Statements that take its other locks.
    others: Vec<String>,
}

/// A row, and how it is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LockedRow {
    row: Row,
    strength: &'static str,
}

/// The strengths of row locks, each with the weakest lock that it excludes, the strongest first.
const STRENGTHS: [(&str, &str); 4] = [
    ("UPDATE", "KEY SHARE"),
    ("NO KEY UPDATE", "SHARE"),
    ("SHARE", "NO KEY UPDATE"),
    ("KEY SHARE", "UPDATE"),
];

/// The calls that take the advisory locks of a process, and the statements that take its table locks.
const OTHERS: &str = "SELECT CASE objsubid WHEN 1 THEN format('SELECT pg_try_advisory_xact_lock%s(%s)', shared, \
    (classid::int8 << 32) | objid::int8) ELSE format('SELECT pg_try_advisory_xact_lock%s(%s, %s)', shared, \
    (classid::int8::bit(32))::int4, (objid::int8::bit(32))::int4) END FROM (SELECT *, CASE mode WHEN 'ShareLock' THEN \
    '_shared' ELSE '' END AS shared FROM pg_catalog.pg_locks) l WHERE locktype = 'advisory' AND granted AND pid = {pid} \
    UNION ALL SELECT format('LOCK TABLE %s IN %s MODE NOWAIT', l.relation::regclass, upper(trim(regexp_replace( \
    replace(l.mode, 'Lock', ''), '([A-Z])', ' \\1', 'g')))) FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON \
    c.oid = l.relation WHERE l.locktype = 'relation' AND l.granted AND l.pid = {pid} AND c.relkind IN ('r', 'p') AND \
    c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema()) AND l.mode NOT IN \
    ('AccessShareLock', 'SIReadLock')";

impl Locks {
    /// The locks of a transaction that is under way in the process of this number.
    ///
    /// # Errors
    /// The server can't say, or is gone.
    pub fn of(
        pid: i32,
        tables: &WatchedTables,
        control: &mut TestSession,
        patience: Patience<'_>,
    ) -> Result<Locks, TryError> {
        let others = query(control, &OTHERS.replace("{pid}", &pid.to_string()), patience)?;
        let others = others.into_iter().flatten().flatten().collect();
        query(control, "BEGIN ISOLATION LEVEL READ COMMITTED", patience)?;
        let mut rows = BTreeMap::new();
        let mut result = Ok(());
        for (number, table) in tables.all.iter().enumerate() {
            match locked_rows(table, control, patience) {
                Ok(locked) if locked.is_empty() => {}
                Ok(locked) => drop(rows.insert(number, locked)),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        query(control, "ROLLBACK", patience)?;
        result.map(|()| Locks { rows, others })
    }

    /// Takes these locks in a transaction of another session; of rows that were changed since, in the
    /// state that they have now. Returns false if one can't be taken.
    ///
    /// # Errors
    /// The server is gone.
    pub fn take(
        &self,
        tables: &WatchedTables,
        changed: &Delta,
        session: &mut TestSession,
        patience: Patience<'_>,
    ) -> Result<bool, TryError> {
        let mut sql = "BEGIN ISOLATION LEVEL READ COMMITTED;".to_owned();
        for statement in &self.others {
            let _ = write!(sql, "{statement};");
        }
        for (number, locked) in &self.rows {
            let table = &tables.all[*number];
            let added = changed.tables.get(number).map_or(&[][..], |changed| &changed.added);
            for (strength, _) in STRENGTHS {
                let locked = locked.iter().filter(|locked| locked.strength == strength);
                let now = locked.flat_map(|locked| {
                    let same = added.iter().filter(|row| table.is_same_row(row, &locked.row));
                    std::iter::once(&locked.row).chain(same)
                });
                let texts: BTreeSet<String> = now.map(|row| literal(&composite(row))).collect();
                if texts.is_empty() {
                    continue;
                }
                let texts: Vec<String> = texts.into_iter().collect();
                let _ = write!(
                    sql,
                    "SELECT 1 FROM {} AS isobench_t WHERE (isobench_t.*)::text IN ({}) FOR {strength} NOWAIT;",
                    table.qualified,
                    texts.join(", ")
                );
            }
        }
        match query(session, &sql, patience) {
            Ok(_) => Ok(true),
            Err(TryError::Server(_)) => {
                query(session, "ROLLBACK", patience)?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// The rows of a table that are locked by others than this session, which is in a transaction.
fn locked_rows(
    table: &WatchedTable,
    control: &mut TestSession,
    patience: Patience<'_>,
) -> Result<Vec<LockedRow>, TryError> {
    let from = format!("FROM {} AS isobench_t WHERE isobench_t.xmax::text <> '0'", table.qualified);
    let sql = format!("SELECT isobench_t.ctid::text, (isobench_t.*)::text {from}");
    let candidates: Vec<Row> = query(control, &sql, patience)?;
    let mut left: BTreeMap<String, Row> = candidates
        .into_iter()
        .filter_map(|row| match <[_; 2]>::try_from(row) {
            Ok([Some(place), Some(text)]) => Some((place, fields(&text))),
            _ => None,
        })
        .collect();
    let mut locked = Vec::new();
    for (strength, excluded) in STRENGTHS {
        if left.is_empty() {
            break;
        }
        let sql = format!("SELECT isobench_t.ctid::text {from} FOR {excluded} SKIP LOCKED");
        let free = query(control, &sql, patience)?;
        let free: BTreeSet<String> = free.into_iter().flatten().flatten().collect();
        let excluded: Vec<String> = left.keys().filter(|place| !free.contains(*place)).cloned().collect();
        locked.extend(
            excluded.iter().filter_map(|place| left.remove(place)).map(|row| LockedRow { row, strength }),
        );
    }
    Ok(locked)
}
