//! The readings at the edge of a window: all counters, the use of each table, the sessions that
//! exist. They come in one answer where that is possible, so that an edge costs little.
//!
//! Not here: what is done with them (`part`).

use isobench_pgwire::Rows;

use crate::activity;
use crate::arm::Arm;
use crate::autovacuum;
use crate::capabilities::{Capabilities, ReadingWay};
use crate::counters::{CounterReading, Unreadable};
use crate::scans::{self, ScanReading};
use crate::session::{ObserverSession, Refusal};

/// The numbers that mark the rows of tables, of sessions, and of autovacuum's among those of the counters' views.
const TABLES: &str = "-1";
const SESSIONS: &str = "-2";
const AUTOVACUUM: &str = "-3";

/// The readings at the edge of a window.
#[derive(Debug, Clone, Default)]
pub struct Edge {
    /// The observer's own transactions that the server has counted by then, committed and rolled
    /// back.
    pub own: (u64, u64),
    /// The counters.
    pub counters: CounterReading,
    /// The transactions that the server has counted as committed, which never get fewer unless its
    /// statistics are reset; `None` if unknown.
    pub commits: Option<f64>,
    /// The use of each table; `None` if it couldn't be read.
    pub tables: Option<ScanReading>,
    /// The sessions in the database except our own; `None` if they can't be seen.
    pub present: Option<Vec<u32>>,
    /// The most vacuums and analyses of a table by autovacuum whose transactions the server may count
    /// later.
    pub unreported: u64,
}

/// Prepares one statement for all readings, after those that are refused are known.
pub fn prepare(session: &mut ObserverSession, capabilities: &mut Capabilities) {
    if let ReadingWay::Preparable(database) = &capabilities.reading {
        let prepared = prepare_all(session, capabilities, database).is_ok();
        capabilities.reading = if prepared { ReadingWay::AtOnce } else { ReadingWay::OneByOne };
    }
}

/// Prepares a statement for all readings at once, of the views that can be read.
fn prepare_all(
    session: &mut ObserverSession,
    capabilities: &Capabilities,
    database: &str,
) -> Result<(), Refusal> {
    let counters = capabilities.counters.queries();
    let tables = capabilities.sees_tables.then(|| (TABLES.to_owned(), scans::arm()));
    let sessions = capabilities.sees_sessions.then(|| (SESSIONS.to_owned(), activity::arm(database)));
    let autovacuum = capabilities.naptime.map(|_| (AUTOVACUUM.to_owned(), autovacuum::arm()));
    // The sessions first: one that isn't seen any more is then in the counters.
    let sessions = sessions.into_iter().chain(autovacuum);
    let arms: Vec<(String, Arm)> = sessions.chain(counters).chain(tables).collect();
    let width = arms.iter().map(|(_, arm)| arm.columns.len()).max().unwrap_or(0);
    let arms: Vec<String> = arms.iter().map(|(mark, arm)| arm.query(mark, width)).collect();
    session.query(&format!("prepare isobench_edge as {}", arms.join(" union all "))).map(drop)
}

/// Reads everything. Reports what can't be read to `note`.
pub fn read(
    session: &mut ObserverSession,
    capabilities: &mut Capabilities,
    note: &mut dyn FnMut(Unreadable),
) -> Edge {
    if matches!(capabilities.reading, ReadingWay::AtOnce) {
        match session.query("execute isobench_edge") {
            Ok(rows) => return take(capabilities, rows),
            Err(Refusal::Lost) => return Edge::default(),
            Err(Refusal::Never(_)) => capabilities.reading = ReadingWay::OneByOne,
            // Perhaps only one of the views is slow.
            Err(Refusal::Now(_)) => {}
        }
    }
    one_by_one(session, capabilities, note)
}

fn one_by_one(
    session: &mut ObserverSession,
    capabilities: &mut Capabilities,
    note: &mut dyn FnMut(Unreadable),
) -> Edge {
    let unreported = capabilities.naptime.and_then(|_| autovacuum::unreported(session).ok()).unwrap_or(0);
    let counters = capabilities.counters.read(session, note);
    let commits = capabilities.counters.commits(&counters);
    let mut tables = None;
    if capabilities.sees_tables {
        match scans::read(session) {
            Ok(reading) => tables = Some(reading),
            Err(Refusal::Never(why) | Refusal::Now(why)) => {
                note(Unreadable { what: "pg_stat_user_tables", why, for_good: false });
            }
            // Reported once, with its reason, at the end.
            Err(Refusal::Lost) => {}
        }
    }
    let present = if capabilities.sees_sessions { activity::pids(session).ok() } else { None };
    Edge { own: (0, 0), counters, commits, tables, present, unreported }
}

/// Sorts the rows of the one answer.
fn take(capabilities: &Capabilities, rows: Rows) -> Edge {
    let mut edge = Edge {
        tables: capabilities.sees_tables.then(ScanReading::default),
        present: capabilities.sees_sessions.then(Vec::new),
        ..Edge::default()
    };
    for row in rows.rows {
        let [Some(mark), name, values @ ..] = &row[..] else { continue };
        match mark.as_str() {
            TABLES => {
                let entry = name.as_ref().map(|name| (name.clone(), scans::numbers(values)));
                edge.tables.get_or_insert_default().extend(entry);
            }
            SESSIONS => {
                let pid: Option<u32> = name.as_ref().and_then(|pid| pid.parse().ok());
                edge.present.get_or_insert_default().extend(pid);
            }
            AUTOVACUUM => {
                let count = values.first().and_then(|count| count.as_ref()?.parse().ok());
                edge.unreported = count.unwrap_or(0);
            }
            view => {
                if let Ok(index) = view.parse() {
                    capabilities.counters.take(&mut edge.counters, index, name.as_deref(), values);
                }
            }
        }
    }
    edge.present.iter_mut().for_each(|pids| pids.sort_unstable());
    edge.commits = capabilities.counters.commits(&edge.counters);
    edge
}
