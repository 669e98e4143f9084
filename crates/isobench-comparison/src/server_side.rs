//! The server's own statistics of a round, and isobench's own work that they include.
//!
//! Not here: reading them (`isobench_observer`).

use isobench_observer as observer;
use isobench_observer::{Observed, Observer, ObserverOptions, OwnCounts};
use isobench_result as report;
use isobench_runner::{Job, Protocol, RETRIED_INSIDE, Restart, RunOutcome, commit_points};
use isobench_script::{CommandKind, Script, Statement};

use crate::target::Target;

/// Starts to watch a server.
pub fn observer(target: &Target) -> Observer {
    let connector = target.controller();
    let connect = Box::new(move || connector.open());
    Observer::start(connect, &target.database, target.local(), &ObserverOptions::default())
}

/// Returns what the clients' sessions are waiting for at the moment: event and number of sessions,
/// in descending order.
pub fn waits_now(observer: &Observer) -> Vec<(String, u32)> {
    let Some(sample) = observer.latest() else { return Vec::new() };
    let name = |((kind, event), sessions): ((String, String), u32)| {
        let name = if event.is_empty() { kind } else { format!("{kind}/{event}") };
        (name, sessions)
    };
    let mut waits: Vec<(String, u32)> = sample.sessions.into_iter().map(name).collect();
    waits.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    waits
}

/// The most transactions that a pooler runs for each session: its start, a check and a reset, each at both
/// ends.
const POOLERS: u64 = 6;

/// Isobench's own work on the server between the observer's first and last reading of a round.
pub struct OwnWork {
    counts: OwnCounts,
    /// The reason why the server's counts can't be compared with the client's, if there is one.
    incomparable: Option<&'static str>,
    /// Statements are repeated inside the server, which reports the number of repetitions on
    /// success only.
    inside: bool,
    /// Some of them failed, so the number of repetitions is unknown.
    unknown: bool,
}

impl OwnWork {
    /// Creates the record once the clients of a job are connected; `transactions` is the number of
    /// transactions that setting up their sessions took, `readers` that of clients on a standby.
    pub fn new(job: &Job, transactions: u64, readers: usize) -> OwnWork {
        let spec = job.spec();
        let scripts = job.workload().mix.scripts();
        let clients = spec.clients as u64;
        let mut counts =
            OwnCounts { sessions: clients, other_committed: transactions, ..OwnCounts::default() };
        if spec.protocol == Protocol::Prepared {
            // The first statement of a script is prepared in its own transaction; a client may
            // never choose a given script.
            let prepared = clients * scripts.len() as u64;
            counts.other_committed += clients;
            counts.uncertain += prepared - clients;
        }
        let inside = |script: &Script| {
            script.annotations().any(|line| matches!(line.what, isobench_script::Annotated::Inside { .. }))
        };
        OwnWork {
            counts,
            incomparable: if readers > 0 {
                Some("some clients are on a standby, which counts by itself")
            } else if spec.connect_each {
                Some("each transaction has a connection of its own")
            } else if spec.retry.restart != Restart::Transaction
                || !scripts.iter().all(|weighted| is_one_transaction(&weighted.script))
            {
                // An attempt that returns to a savepoint is part of a transaction.
                Some("a script isn't exactly one transaction")
            } else {
                None
            },
            inside: scripts.iter().any(|weighted| inside(&weighted.script)),
            unknown: false,
        }
    }

    /// Another session works at the same time, whose transactions the server counts, too.
    pub fn share_the_server(&mut self) {
        self.incomparable = Some("another session works at the same time (--background)");
    }

    /// Adds sessions besides the clients', and their transactions.
    pub fn admin(&mut self, sessions: u64, transactions: u64) {
        self.counts.sessions += sessions;
        self.counts.other_committed += transactions;
    }

    /// The clients' sessions are a pooler's, in which it may run transactions of its own: as each starts, is
    /// checked and is reset. `reports` transactions of ours made them report; `None`: there is no pooler.
    pub fn behind_pooler(&mut self, clients: usize, reports: Option<u64>) {
        let Some(reports) = reports else { return };
        let clients = clients as u64;
        self.counts.sessions = self.counts.sessions.saturating_sub(clients);
        self.counts.other_committed += reports;
        self.counts.between = POOLERS * (clients + reports + 1);
    }

    /// Adds the work of the clients.
    pub fn clients(&mut self, run: &RunOutcome) {
        let ledger = run.ledger();
        let attempts = ledger.attempts;
        // An error that a script's own SQL caught ends in a commit, with its work undone.
        self.counts.committed += attempts.committed + attempts.swallowed;
        // Attempts cut off after a conflict or a further error were rolled back; the state of the others is unknown.
        let failed = ledger.conflicts + ledger.further_errors;
        let conflicts = failed.saturating_sub(attempts.retried + attempts.given_up + attempts.swallowed);
        let conflicts = conflicts.min(attempts.cut_off);
        self.counts.rolled_back +=
            attempts.retried + attempts.given_up + attempts.rolled_back + attempts.errored + conflicts;
        self.counts.uncertain += attempts.ambiguous + attempts.cut_off - conflicts;
        // Each of them is a transaction that the server rolled back, and is in the bucket
        // "retried".
        let inside = run.conflicts.iter().filter(|conflict| conflict.reason == RETRIED_INSIDE);
        let inside = inside.map(|conflict| conflict.count).sum::<u64>();
        self.counts.inside += inside;
        let ended = attempts.started - attempts.committed - attempts.swallowed - attempts.rolled_back;
        self.unknown |= self.inside && ended > inside;
        let deadlocks = run
            .conflicts
            .iter()
            .filter(|conflict| conflict.sqlstate == isobench_pgwire::SqlState::DEADLOCK_DETECTED);
        self.counts.deadlocks += deadlocks.map(|conflict| conflict.count).sum::<u64>();
    }
}

/// Returns whether every path through a script is exactly one transaction of the server: the block
/// starts and ends outside of branches, and the script doesn't roll back by itself.
fn is_one_transaction(script: &Script) -> bool {
    let mut depth = 0_usize;
    let mut unconditional = script.clone();
    unconditional.commands.retain(|command| {
        match command.kind {
            CommandKind::If(_) => depth += 1,
            CommandKind::Endif => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    commit_points(script) == 1
        && commit_points(&unconditional) == 1
        && bounds(script) == bounds(&unconditional)
        && !bounds(script).contains(&Statement::Rollback)
}

/// The statements of a script that start or end a block.
fn bounds(script: &Script) -> Vec<Statement> {
    let bound = |statement: &Statement| {
        matches!(statement, Statement::Begin | Statement::Commit | Statement::Rollback)
    };
    script.sql().flat_map(|sql| &sql.statements).copied().filter(bound).collect()
}

/// Returns the server's side of a round. Counts aren't compared if a script isn't exactly one
/// transaction of the server.
pub fn server_side(observed: Observed, own: &OwnWork) -> report::ServerSide {
    let mut notes = observed.notes.clone();
    let comparison = if own.unknown {
        notes.push(
            "the server's counts aren't compared with ours, because statements failed that retry inside the \
             server, and only those that succeed say how often"
                .to_owned(),
        );
        Vec::new()
    } else if let Some(why) = own.incomparable {
        notes.push(format!("the server's counts aren't compared with ours, because {why}"));
        Vec::new()
    } else {
        observed.compare(&own.counts).into_iter().map(comparison).collect()
    };
    report::ServerSide {
        at_s: observed.at_s,
        waits: observed.waits.into_iter().map(wait).collect(),
        predicate_locks: observed.predicate_locks.map(predicate_locks),
        lock_waits: observed.lock_waits.into_iter().map(lock_wait).collect(),
        tables: observed.tables.into_iter().map(table_use).collect(),
        counters: observed.counters.into_iter().map(counter).collect(),
        comparison,
        processes: observed.processes.map(|processes| report::ServerProcesses {
            cpu_s: processes.cpu_s,
            memory_bytes: processes.memory_bytes,
        }),
        sampling_s: observed.sampling_s,
        notes,
    }
}

fn wait(row: observer::WaitRow) -> report::WaitRow {
    report::WaitRow { kind: row.kind, event: row.event, sessions: row.sessions }
}

fn predicate_locks(locks: observer::PredicateLocks) -> report::PredicateLocks {
    report::PredicateLocks {
        at_s: locks.at_s,
        tuple: locks.tuple,
        page: locks.page,
        relation: locks.relation,
        relations: locks.relations.into_iter().map(locked).collect(),
        other_relations: locks.other_relations,
    }
}

fn locked(relation: observer::LockedRelation) -> report::LockedRelation {
    let seen = |seen: observer::LocksSeen| report::LocksSeen { most: seen.most, share: seen.share };
    report::LockedRelation {
        name: relation.name,
        table: relation.table,
        rows: relation.rows,
        pages: relation.pages,
        indexes: relation.indexes,
        tuple: seen(relation.tuple),
        page: seen(relation.page),
        relation: seen(relation.relation),
    }
}

fn table_use(table: observer::TableUse) -> report::TableUse {
    report::TableUse {
        table: table.table,
        seq_scans: table.seq_scans,
        seq_rows: table.seq_rows,
        index_scans: table.index_scans,
        inserted: table.inserted,
        updated: table.updated,
        hot_updated: table.hot_updated,
    }
}

fn lock_wait(lock: observer::LockWait) -> report::LockWait {
    report::LockWait { locktype: lock.locktype, mode: lock.mode, table: lock.table, seen: lock.seen }
}

fn counter(counter: observer::Counter) -> report::Counter {
    report::Counter { name: counter.name, meaning: counter.meaning, change: counter.change }
}

fn comparison(count: observer::CountComparison) -> report::CountComparison {
    report::CountComparison {
        what: count.what.to_owned(),
        ours: count.ours,
        servers: count.servers,
        agrees: count.agrees,
        explanation: count.explanation,
    }
}

#[cfg(test)]
mod tests {
    use isobench_script::{Symbols, parse};

    use super::*;

    #[test]
    fn a_script_is_one_transaction_whatever_it_branches_to() {
        let one = |text: &str| is_one_transaction(&parse("test.sql", text, &mut Symbols::new()).unwrap());
        assert!(one("UPDATE t SET v = 1;"));
        assert!(one("BEGIN;\n\\if :a\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\nEND;"));
        assert!(!one("SELECT 1;\nSELECT 2;"));
        assert!(!one("\\if :a\nUPDATE t SET v = 1;\n\\endif"), "it may do nothing");
        assert!(!one("\\if :a\nBEGIN;\n\\endif\nUPDATE t SET v = 1;\nCOMMIT;"));
        assert!(!one("BEGIN;\n\\if :a\nROLLBACK;\n\\else\nCOMMIT;\n\\endif"));
        assert!(!one("BEGIN;\nROLLBACK;\nUPDATE t SET v = 1;"));
    }
}
