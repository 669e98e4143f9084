//! Predicate locks held, and locks waited for: queries of `pg_locks`.
//!
//! Reading `pg_locks` takes all partition locks of the lock manager, and then those of the
//! predicate lock manager, in shared mode, which keeps others from taking locks for that moment. So
//! it is done less often than sampling the sessions, which shows the types of lock waits, too,
//! without that cost. PostgreSQL manual, "`pg_locks`".

use std::collections::BTreeMap;

use isobench_pgwire::Rows;

use crate::activity::list;
use crate::observed::{LockWait, LockedRelation, LocksSeen, PredicateLocks};
use crate::session::{ObserverSession, Refusal};

/// The granularities of predicate locks, as `pg_locks.locktype` has them.
const GRANULARITIES: [&str; 3] = ["tuple", "page", "relation"];

/// More tables and indexes than this aren't kept; those with the most locks are.
const MOST: usize = 20;

/// Prepares the samples of a database, given by its OID.
///
/// # Errors
/// [`Refusal`].
pub fn prepare(session: &mut ObserverSession, database: &str) -> Result<(), Refusal> {
    // Locks on transactions don't belong to a database. Names are looked up for the few locks that
    // are waited for; predicate locks may be thousands, so those have numbers only.
    let sql = format!(
        "prepare isobench_locks (int[]) as select locktype, mode, granted, \
         case when not granted then (select relname from pg_catalog.pg_class c where c.oid = relation) end, \
         case when granted then relation end, count(*), count(pid) \
         from pg_catalog.pg_locks where (not granted or mode = 'SIReadLock' and (pid is null or pid <> all ($1))) \
         and (database is null or database in (0, {database})) group by 1, 2, 3, 4, 5"
    );
    session.query(&sql).map(drop)
}

/// The sessions with predicate locks so far. Those of a committed transaction stay while others
/// overlap it, even after its session has ended.
///
/// # Errors
/// [`Refusal`].
pub fn holders(session: &mut ObserverSession) -> Result<Vec<u32>, Refusal> {
    let sql = "select distinct pid from pg_catalog.pg_locks where mode = 'SIReadLock' and pid is not null";
    let rows = session.query(sql)?.rows;
    Ok(rows.iter().filter_map(|row| row.first()?.as_ref()?.parse().ok()).collect())
}

/// The samples of the locks.
#[derive(Debug, Default)]
pub struct Locks {
    held: PredicateLocks,
    waits: BTreeMap<(String, String, Option<String>), u64>,
    /// By the relation's OID: for each granularity the most locks, and the samples with any.
    relations: BTreeMap<u32, [(u64, u64); 3]>,
}

impl Locks {
    /// Takes a sample, without predicate locks of `others`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn look(&mut self, session: &mut ObserverSession, others: &[u32], at_s: f64) -> Result<(), Refusal> {
        let rows = session.query(&format!("execute isobench_locks('{{{}}}')", list(others)))?;
        self.take(&rows, at_s);
        Ok(())
    }

    fn take(&mut self, rows: &Rows, at_s: f64) {
        let mut held = [0_u64; 3];
        // The server keeps locks of transactions long past in sum, without their sessions. Where no
        // session has any, they are from before.
        let own = rows.rows.iter().any(|row| {
            let of_sessions = row.get(6).and_then(Option::as_ref).is_some_and(|count| count != "0");
            of_sessions && row.get(2).and_then(Option::as_deref) == Some("t")
        });
        for row in &rows.rows {
            let [Some(locktype), Some(mode), Some(granted), table, relation, Some(count), _] = &row[..]
            else {
                continue;
            };
            if granted == "t" && !own {
                continue;
            }
            let count: u64 = count.parse().unwrap_or(0);
            if granted == "f" {
                *self.waits.entry((locktype.clone(), mode.clone(), table.clone())).or_default() += count;
            } else if let Some(place) = GRANULARITIES.iter().position(|kind| kind == locktype) {
                held[place] += count;
                if let Some(oid) = relation.as_ref().and_then(|oid| oid.parse().ok()) {
                    let (most, samples) = &mut self.relations.entry(oid).or_default()[place];
                    *most = count.max(*most);
                    *samples += 1;
                }
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

    /// Looks up the names and sizes of the tables and indexes that had the most locks.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn name_relations(&mut self, session: &mut ObserverSession) -> Result<(), Refusal> {
        if self.relations.is_empty() {
            return Ok(());
        }
        let all = |seen: &[(u64, u64); 3]| seen.iter().map(|(most, _)| *most).fold(0, u64::saturating_add);
        let mut oids: Vec<(u64, u32)> = self.relations.iter().map(|(oid, seen)| (all(seen), *oid)).collect();
        oids.sort_unstable_by_key(|(most, oid)| (std::cmp::Reverse(*most), *oid));
        oids.truncate(MOST);
        let oids: Vec<u32> = oids.into_iter().map(|(_, oid)| oid).collect();
        let rows = session.query(&names(&oids))?;
        self.held.relations = oids.iter().filter_map(|oid| self.named(*oid, &rows)).collect();
        self.held.other_relations = (self.relations.len() - self.held.relations.len()) as u64;
        Ok(())
    }

    /// A relation with its locks, if the answer to [`names`] has it.
    fn named(&self, oid: u32, rows: &Rows) -> Option<LockedRelation> {
        let found = |row: &&Vec<Option<String>>| {
            row.first().and_then(Option::as_ref).is_some_and(|text| text.parse() == Ok(oid))
        };
        let [_, Some(name), table, rows, pages, indexes] = &rows.rows.iter().find(found)?[..] else {
            return None;
        };
        let samples = self.samples().max(1) as f64;
        let [tuple, page, relation] =
            self.relations.get(&oid)?.map(|(most, seen)| LocksSeen { most, share: seen as f64 / samples });
        let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        Some(LockedRelation {
            name: name.clone(),
            table: table.clone(),
            rows: number(rows),
            pages: number(pages),
            indexes: indexes.iter().flat_map(|indexes| indexes.lines()).map(str::to_owned).collect(),
            tuple,
            page,
            relation,
        })
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

/// The query for names and sizes of relations. A table that was never analyzed has -1 rows, before
/// version 14 none.
fn names(oids: &[u32]) -> String {
    let oids = oids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    format!(
        "select c.oid, c.relname, t.relname, \
         case when coalesce(t.relpages, c.relpages) > 0 and coalesce(t.reltuples, c.reltuples) >= 0 \
         then coalesce(t.reltuples, c.reltuples)::bigint end, \
         pg_catalog.pg_relation_size(c.oid) / current_setting('block_size')::bigint, \
         (select string_agg(substring(pg_catalog.pg_get_indexdef(own.indexrelid) from ' USING [^ ]+ (.*)$'), \
         chr(10) order by own.indexrelid) from pg_catalog.pg_index own where own.indrelid = c.oid) \
         from pg_catalog.pg_class c left join pg_catalog.pg_index i on i.indexrelid = c.oid \
         left join pg_catalog.pg_class t on t.oid = i.indrelid where c.oid in ({oids})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(texts: &[&str]) -> Vec<Option<String>> {
        texts.iter().map(|text| (*text != "NULL").then(|| (*text).to_owned())).collect()
    }

    #[test]
    fn held_and_awaited_locks_are_distinguished() {
        let rows = vec![
            row(&["page", "SIReadLock", "t", "NULL", "16385", "12", "12"]),
            row(&["tuple", "SIReadLock", "t", "NULL", "16384", "7", "7"]),
            row(&["tuple", "ExclusiveLock", "f", "pgbench_branches", "NULL", "5", "5"]),
            row(&["transactionid", "ShareLock", "f", "NULL", "NULL", "6", "6"]),
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
    fn locks_are_counted_by_relation() {
        let looks = [
            vec![row(&["tuple", "SIReadLock", "t", "NULL", "16384", "7", "7"])],
            vec![
                row(&["tuple", "SIReadLock", "t", "NULL", "16384", "3", "3"]),
                row(&["relation", "SIReadLock", "t", "NULL", "16384", "8", "8"]),
                row(&["page", "SIReadLock", "t", "NULL", "16385", "12", "12"]),
                row(&["page", "SIReadLock", "t", "NULL", "16386", "1", "1"]),
            ],
        ];
        let mut locks = Locks::default();
        for rows in looks {
            locks.take(&Rows { columns: Vec::new(), rows }, 0.2);
        }
        let names = Rows {
            columns: Vec::new(),
            rows: vec![
                row(&["16384", "account", "NULL", "100", "2", "(id)\n(owner, day)"]),
                row(&["16385", "account_pkey", "account", "NULL", "NULL", "NULL"]),
            ],
        };
        let table = locks.named(16384, &names).unwrap();
        assert_eq!((table.name.as_str(), table.table, table.rows), ("account", None, Some(100)));
        assert_eq!((table.tuple, table.pages), (LocksSeen { most: 7, share: 1.0 }, Some(2)));
        assert_eq!(
            (table.page, table.indexes),
            (LocksSeen::default(), vec!["(id)".into(), "(owner, day)".into()])
        );
        assert_eq!(table.relation, LocksSeen { most: 8, share: 0.5 });
        let index = locks.named(16385, &names).unwrap();
        assert_eq!((index.table.as_deref(), index.rows, index.pages), (Some("account"), None, None));
        assert_eq!(index.indexes, Vec::<String>::new());
        assert_eq!(index.page, LocksSeen { most: 12, share: 0.5 });
        assert_eq!(locks.named(16386, &names), None, "it was dropped meanwhile");
    }

    #[test]
    fn locks_without_a_session_are_older_unless_sessions_have_some() {
        let past = row(&["page", "SIReadLock", "t", "NULL", "16385", "5", "0"]);
        let own = row(&["tuple", "SIReadLock", "t", "NULL", "16384", "7", "2"]);
        let mut locks = Locks::default();
        locks.take(&Rows { columns: Vec::new(), rows: vec![past.clone()] }, 0.2);
        locks.take(&Rows { columns: Vec::new(), rows: vec![past, own] }, 0.4);
        let held = locks.into_parts().0.unwrap();
        assert_eq!((held.page, held.tuple), (vec![0, 5], vec![0, 7]));
    }

    #[test]
    fn without_a_look_there_is_nothing() {
        assert_eq!(Locks::default().into_parts(), (None, Vec::new()));
    }
}
