//! The readings at the edge of a window: all counters, the use of each table, the sessions that
//! exist. They come in one answer where that is possible, so that an edge costs little.
//!
//! Not here: what is done with them (`part`).

use isobench_pgwire::Rows;

use crate::activity;
use crate::capabilities::{Capabilities, ReadingWay};
use crate::counters::{CounterReading, Unreadable};
use crate::scans::{self, ScanReading};
use crate::session::{ObserverSession, Refusal};

/// The numbers that mark the rows of tables and of sessions among those of the counters' views.
const TABLES: &str = "-1";
const SESSIONS: &str = "-2";

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
}

/// Prepares a statement for all readings at once, of the views that can be read.
///
/// # Errors
/// [`Refusal`]: they must be read one by one.
pub fn prepare(
    session: &mut ObserverSession,
    capabilities: &Capabilities,
    database: &str,
) -> Result<(), Refusal> {
    let counters = capabilities.counters.queries();
    let tables = capabilities.sees_tables.then(|| (TABLES.to_owned(), scans::arm()));
    let sessions = capabilities.sees_sessions.then(|| (SESSIONS.to_owned(), activity::arm(database)));
    // The sessions first: one that isn't seen any more is then in the counters.
    let arms: Vec<(String, Arm)> = sessions.into_iter().chain(counters).chain(tables).collect();
    let width = arms.iter().map(|(_, arm)| arm.columns.len()).max().unwrap_or(0);
    let arms: Vec<String> = arms.iter().map(|(mark, arm)| arm.query(mark, width)).collect();
    session.query(&format!("prepare isobench_edge as {}", arms.join(" union all "))).map(drop)
}

/// A query of several that give one answer: a mark, a name, and as many columns as the widest has.
pub struct Arm {
    /// The expression of the name; `None` if there is one row.
    pub name: Option<String>,
    /// The expressions of the columns.
    pub columns: Vec<String>,
    /// The rest of the query.
    pub from: String,
    /// The columns are sums over rows of the same name.
    pub sums: bool,
}

impl Arm {
    fn query(&self, mark: &str, width: usize) -> String {
        let name = self.name.as_deref().unwrap_or("null");
        let columns = self.columns.iter().map(String::as_str).chain(std::iter::repeat("null")).take(width);
        let text = |expression| format!("({expression})::text");
        let all: Vec<String> = std::iter::once(name).chain(columns).map(text).collect();
        let group = if self.sums { " group by 1, 2" } else { "" };
        format!("select '{mark}'::text, {} {}{group}", all.join(", "), self.from)
    }
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
    Edge { own: (0, 0), counters, commits, tables, present }
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
