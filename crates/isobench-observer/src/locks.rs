//! Predicate locks held, and locks waited for: queries of `pg_locks`.
//!
//! Reading `pg_locks` takes all partition locks of the lock manager, and then those of the
//! predicate lock manager, in shared mode, which keeps others from taking locks for that moment. So
//! it is done less often than sampling the sessions, which shows the types of lock waits, too,
//! without that cost. PostgreSQL manual, "`pg_locks`".

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::observed::{LockWait, PredicateLocks};
use crate::session::{ObserverSession, Refusal};

/// Prepares the samples of a database, given by its OID.
///
/// # Errors
/// [`Refusal`].
pub fn prepare(session: &mut ObserverSession, database: &str) -> Result<(), Refusal> {
    // Locks on transactions don't belong to a database.
    let sql = format!(
        "prepare isobench_locks as select locktype, mode, granted, \
         case when not granted then (select relname from pg_catalog.pg_class c where c.oid = relation) end, count(*) \
         from pg_catalog.pg_locks where (mode = 'SIReadLock' or not granted) \
         and (database is null or database in (0, {database})) group by 1, 2, 3, 4"
    );
    session.query(&sql).map(drop)
}

/// The samples of the locks.
#[derive(Debug, Default)]
pub struct Locks {
    held: PredicateLocks,
    waits: BTreeMap<(String, String, Option<String>), u64>,
}

impl Locks {
    /// Takes a sample.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn look(&mut self, session: &mut ObserverSession, at_s: f64) -> Result<(), Refusal> {
        let rows = session.query("execute isobench_locks")?;
        self.take(&rows, at_s);
        Ok(())
    }

    fn take(&mut self, rows: &Rows, at_s: f64) {
        let mut held = [0_u64; 3];
        for row in &rows.rows {
            let [Some(locktype), Some(mode), Some(granted), table, Some(count)] = &row[..] else { continue };
            let count: u64 = count.parse().unwrap_or(0);
            if granted == "f" {
                *self.waits.entry((locktype.clone(), mode.clone(), table.clone())).or_default() += count;
            } else if let Some(place) = ["tuple", "page", "relation"].iter().position(|kind| kind == locktype)
            {
                held[place] += count;
            }
        }
        self.held.at_s.push(at_s);
        self.held.tuple.push(held[0]);
        self.held.page.push(held[1]);
        self.held.relation.push(held[2]);
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.held.at_s.len() as u64
    }

    /// Returns the predicate locks over time, if there was a sample, and the locks waited for, the
    /// most frequent first.
    pub fn into_parts(self) -> (Option<PredicateLocks>, Vec<LockWait>) {
        let wait = |((locktype, mode, table), seen)| LockWait { locktype, mode, table, seen };
        let mut waits: Vec<LockWait> = self.waits.into_iter().map(wait).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.seen));
        ((!self.held.at_s.is_empty()).then_some(self.held), waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_and_awaited_locks_are_distinguished() {
        let row = |texts: [&str; 5]| {
            texts.iter().map(|text| (*text != "NULL").then(|| (*text).to_owned())).collect::<Vec<_>>()
        };
        let rows = vec![
            row(["page", "SIReadLock", "t", "NULL", "12"]),
            row(["tuple", "SIReadLock", "t", "NULL", "7"]),
            row(["tuple", "ExclusiveLock", "f", "pgbench_branches", "5"]),
            row(["transactionid", "ShareLock", "f", "NULL", "6"]),
        ];
        let mut locks = Locks::default();
        locks.take(&Rows { columns: Vec::new(), rows: rows.clone() }, 0.2);
        locks.take(&Rows { columns: Vec::new(), rows: rows[2..3].to_vec() }, 0.4);
        assert_eq!(locks.samples(), 2);
        let (held, waits) = locks.into_parts();
        let held = held.unwrap();
        assert_eq!((held.at_s, held.tuple), (vec![0.2, 0.4], vec![7, 0]));
        assert_eq!((held.page, held.relation), (vec![12, 0], vec![0, 0]));
        let seen: Vec<_> = waits.iter().map(|wait| (wait.locktype.as_str(), wait.seen)).collect();
        assert_eq!(seen, [("tuple", 10), ("transactionid", 6)]);
        assert_eq!(waits[0].table.as_deref(), Some("pgbench_branches"));
        assert_eq!(waits[1].table, None);
    }

    #[test]
    fn without_a_look_there_is_nothing() {
        assert_eq!(Locks::default().into_parts(), (None, Vec::new()));
    }
}
