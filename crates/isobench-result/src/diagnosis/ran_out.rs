//! The server ran out of predicate locks: how full they were, which statement found no room, and the
//! setting that ends it.
//!
//! PostgreSQL keeps the predicate locks of all serializable transactions in a table of fixed size. If it
//! is full, the statement that needs one more fails with SQLSTATE 53200. PostgreSQL manual,
//! "Lock Management", `max_pred_locks_per_transaction`.

use std::collections::BTreeMap;

use super::{Diagnosis, DiagnosisKind, place};
use crate::document::{Cell, Document, Server, ServerSide};
use crate::numbers::count;
use crate::words::{distinct, enumerated};

/// The setting that the server's hint names, in every language of its messages.
const SETTING: &str = "max_pred_locks_per_transaction";

/// The server's error code: out of memory.
const OUT_OF_MEMORY: &str = "53200";

/// More statements than this aren't named.
const FEW: usize = 3;

/// Diagnoses a row in which statements found no room for a predicate lock; `None` for the others.
pub(super) fn of(document: &Document, cell: &Cell) -> Option<Diagnosis> {
    let server = document.server_of(cell);
    let room = Room::of(server);
    let most = most_locks(cell);
    let mut places = distinct(cell.rounds.iter().flat_map(|round| &round.errors).filter_map(|it| failed(it)));
    // An error that was retried is kept without the server's hint.
    let half_full = room.zip(most).is_some_and(|(room, most)| most.saturating_mul(2) >= room.targets());
    let retried = cell.rounds.iter().flat_map(|round| &round.further_errors);
    let retried = retried.filter(|error| error.sqlstate == OUT_OF_MEMORY && half_full);
    places.extend(retried.map(|error| match (&error.script, error.line) {
        (Some(script), Some(line)) => format!("{script}:{line}"),
        _ => format!("\"{}\"", error.command),
    }));
    if server.product != "PostgreSQL" || places.is_empty() {
        return None;
    }
    let mut places = distinct(places);
    let more = places.len().saturating_sub(FEW);
    places.truncate(FEW);
    if more > 0 {
        places.push(format!("{more} further statements"));
    }
    let found = match most {
        Some(most) if most > 0 => format!("a sample found {} locks", count(most)),
        _ => "no sample was taken in time".to_owned(),
    };
    let full = match room {
        Some(room) => format!(
            "The server has room for locks on about {} rows, pages and tables at a time ({SETTING} {} × {} sessions \
             and processes); {found}.",
            count(room.targets()),
            room.each,
            count(room.processes)
        ),
        None => format!("How many fit is unknown; {found}."),
    };
    let sentence = format!(
        "The server ran out of predicate locks at {} (SQLSTATE {OUT_OF_MEMORY}, at {}). {full} Raise {SETTING}, \
         which takes a restart (embedded server: --server-setting {SETTING}={}). Locks outlive their transaction \
         while others that overlap it are open, so shorter transactions need fewer.",
        place(document, cell),
        enumerated(&places),
        room.map_or(DEFAULT_EACH * 2, |room| (room.each * 2).max(DEFAULT_EACH)),
    );
    let conflict_ratio = cell.summary.conflict_ratio;
    Some(Diagnosis { kind: DiagnosisKind::RanOut, relations: Vec::new(), conflict_ratio, sentence })
}

/// The place of an error of a client, if that is one for lack of predicate locks: "pay.sql:3".
fn failed(error: &str) -> Option<String> {
    if !error.contains(SETTING) {
        return None;
    }
    let at = error.lines().find_map(|line| line.strip_prefix("  at "));
    // The command follows.
    Some(at.and_then(|at| Some(at.split_once(": ")?.0)).unwrap_or("a statement").to_owned())
}

/// The most predicate locks that a sample found.
fn most_locks(cell: &Cell) -> Option<u64> {
    let servers = cell.rounds.iter().filter_map(|round| round.server.as_ref());
    servers.filter_map(ServerSide::most_predicate_locks).max()
}

/// The default of the setting.
const DEFAULT_EACH: u64 = 64;

/// The room for predicate locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    /// The setting.
    each: u64,
    /// Processes and prepared transactions that can be at a time.
    processes: u64,
}

/// The settings that make processes, with their defaults, which a document leaves out. PostgreSQL's
/// source: `InitializeMaxBackends`, `NPREDICATELOCKTARGETENTS`.
const PROCESSES: [(&str, u64); 3] =
    [("max_worker_processes", 8), ("max_wal_senders", 10), ("max_prepared_transactions", 0)];

/// The settings and numbers of autovacuum's and further processes before version 18, and since.
const AUTOVACUUM: [(&str, u64, u64); 2] =
    [("autovacuum_max_workers", 3, 1), ("autovacuum_worker_slots", 16, 2)];

impl Room {
    /// That of a server; `None` if its settings aren't known.
    fn of(server: &Server) -> Option<Room> {
        let number =
            |settings: &BTreeMap<String, String>, name: &str| settings.get(name)?.parse::<u64>().ok();
        let or = |name: &str, default: u64| number(&server.settings, name).unwrap_or(default);
        let connections = number(&server.settings, "max_connections")?;
        let each = number(&server.settings, SETTING)?;
        let major: u32 = server.version.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()?;
        let (autovacuum, workers, further) = AUTOVACUUM[usize::from(major >= 18)];
        let processes = PROCESSES.iter().map(|(name, default)| or(name, *default));
        let processes = processes.chain([connections, or(autovacuum, workers), further]);
        Some(Room { each, processes: processes.fold(0, u64::saturating_add) })
    }

    /// The number of rows, pages and tables that can be locked.
    fn targets(self) -> u64 {
        self.each.saturating_mul(self.processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(version: &str, settings: &[(&str, &str)]) -> Server {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Server {
            product: "PostgreSQL".to_owned(),
            version: version.to_owned(),
            settings,
            ..Server::default()
        }
    }

    #[test]
    fn the_room_follows_from_the_settings() {
        let given = [("max_connections", "100"), (SETTING, "10")];
        assert_eq!(Room::of(&server("15.4", &given)).map(Room::targets), Some(10 * (100 + 3 + 1 + 8 + 10)));
        assert_eq!(Room::of(&server("18.1", &given)).map(Room::targets), Some(10 * (100 + 16 + 2 + 8 + 10)));
        let more = [&given[..], &[("max_prepared_transactions", "20"), ("max_wal_senders", "0")]].concat();
        assert_eq!(Room::of(&server("16.0", &more)).map(Room::targets), Some(10 * (100 + 3 + 1 + 8 + 20)));
        assert_eq!(Room::of(&server("16.0", &given[..1])), None);
    }

    #[test]
    fn the_statement_is_found_in_the_error() {
        let error = format!(
            "ERROR:  out of shared memory\nHINT:  You might need to increase {SETTING}.\n  at a.sql:3: SELECT v: b"
        );
        assert_eq!(failed(&error).as_deref(), Some("a.sql:3"));
        assert_eq!(
            failed("HINT:  You might need to increase max_locks_per_transaction.\n  at a.sql:3: X"),
            None
        );
    }
}
