//! An example with everything that a comparison can have: series, the client's load, the server's
//! side, an A/A cell.

use isobench_plan::Share;
use isobench_result::{
    Cell, ClientLoad, CountComparison, Counter, Document, LockWait, LockedRelation, LocksSeen,
    PredicateLocks, RelationSize, Resolution, Round, Series, ServerProcesses, ServerSide, SweepResult,
    SweepStep, TableUse, WaitRow,
};

/// Bins of a round.
const BINS: u64 = 50;

/// Adds to a comparison of three levels what was observed meanwhile.
pub fn observed(mut document: Document) -> Document {
    document.command = ["isobench", "compare", "--calibrate", "--resolve", "2%"].map(str::to_owned).into();
    document.finished_at = Some("2025-01-01T12:01:30Z".to_owned());
    document.plan.calibrate = Some(true);
    document.plan.no_server_side = Some(false);
    document.plan.resolve = Some(Share(0.02));
    document.plan.time_limit = Some(600.0);
    document.resolution = Some(Resolution { wanted: 0.02, reached: Some(0.06), more_rounds: Some(14) });
    document.client.memory_bytes = 8 << 30;
    document.client.same_machine = true;
    "PostgreSQL 15.18 on x86_64-pc-linux-gnu, compiled by gcc".clone_into(&mut document.server.version_text);
    document.server.extensions = [("plpgsql".to_owned(), "1.0".to_owned())].into();
    document.server.role_settings = vec!["role app: default_transaction_isolation = serializable".to_owned()];
    document.server.relations = vec![
        relation("pgbench_accounts", "table", 13_434_880, Some(100_000)),
        relation("pgbench_accounts_pkey", "index", 2_260_992, None),
    ];
    let mut again = document.cells[0].clone();
    again.calibration = true;
    again.rounds.rotate_left(1);
    for (round, number) in again.rounds.iter_mut().zip(1..) {
        round.round = number;
    }
    document.cells.insert(1, again);
    for (index, cell) in document.cells.iter_mut().enumerate() {
        observe(cell, index as u64);
    }
    document.sweeps = vec![sweep(&document.cells[0], 1200.0), sweep(&document.cells[3], 420.0)];
    document
}

fn relation(name: &str, kind: &str, bytes: u64, rows: Option<u64>) -> RelationSize {
    RelationSize { name: name.to_owned(), kind: kind.to_owned(), bytes, rows }
}

fn observe(cell: &mut Cell, index: u64) {
    for round in &mut cell.rounds {
        round.series = Some(series(round));
        round.client = Some(ClientLoad {
            workers: 2,
            busiest: 0.42,
            starved: Some(0.05),
            share_of_cores: 0.11,
            lag_mean_ms: Some(0.04),
            lag_p99_ms: Some(0.31),
            lag_max_ms: Some(2.5),
        });
        round.server = Some(server_side(index, round));
    }
}

/// Spreads a round's counts over its bins, unevenly, so that they add up.
fn series(round: &Round) -> Series {
    let spread = |total: u64| -> Vec<u64> {
        let weight = |bin: u64| 80 + bin * 7919 % 41;
        let all: u64 = (0..BINS).map(weight).sum();
        let mut counts: Vec<u64> = (0..BINS).map(|bin| total * weight(bin) / all).collect();
        let rest = total - counts.iter().sum::<u64>();
        let middle = counts.len() / 2;
        counts[middle] += rest;
        counts
    };
    let committed = spread(round.transactions.committed);
    let mean = round.latency_ms.mean.unwrap_or(0.0);
    Series {
        bin_s: round.seconds / BINS as f64,
        latency_sum_ms: committed.iter().map(|count| *count as f64 * mean).collect(),
        committed,
        attempts: spread(round.attempts.started),
        conflicts: spread(round.ledger().conflicts),
    }
}

fn server_side(index: u64, round: &Round) -> ServerSide {
    let at_s: Vec<f64> = (1..=30).map(|sample| f64::from(sample) * round.seconds / 31.0).collect();
    let row = |kind: &str, event: &str, most: u32| WaitRow {
        kind: kind.to_owned(),
        event: event.to_owned(),
        sessions: (0..30).map(|sample| most.saturating_sub(sample * 3 % 4)).collect(),
    };
    let mut waits = vec![row("Client", "ClientRead", 2), row("CPU", "", 2), row("IO", "WALSync", 1)];
    if index > 1 {
        waits.insert(0, row("Lock", "tuple", 4));
        waits.insert(1, row("Lock", "transactionid", 3));
    }
    if index > 2 {
        waits.push(row("LWLock", "SerializableFinishedList", 3));
    }
    let committed = round.transactions.committed;
    ServerSide {
        at_s,
        waits,
        predicate_locks: (index > 2).then(|| PredicateLocks {
            at_s: vec![1.0, 2.0, 3.0, 4.0],
            tuple: vec![410, 520, 515, 530],
            page: vec![40, 80, 96, 101],
            relation: vec![0, 2, 3, 3],
            relations: vec![locked()],
            other_relations: 2,
        }),
        lock_waits: vec![LockWait {
            locktype: "transactionid".to_owned(),
            mode: "ShareLock".to_owned(),
            table: None,
            seen: 31 * index,
        }],
        tables: vec![TableUse {
            table: "pgbench_accounts".to_owned(),
            index_scans: committed * 2,
            updated: committed,
            hot_updated: committed - 12,
            ..TableUse::default()
        }],
        counters: vec![
            counter("pg_stat_wal.wal_bytes", "bytes of WAL written", committed as f64 * 410.0),
            counter("pg_stat_database.blks_read", "blocks read from outside the buffer pool", 12.0),
        ],
        comparison: vec![CountComparison {
            what: "commits".to_owned(),
            ours: committed + 151,
            servers: committed + 151,
            agrees: true,
            explanation: String::new(),
        }],
        processes: Some(ServerProcesses { cpu_s: 3.25, memory_bytes: Some(64 << 20) }),
        sampling_s: 0.012,
        notes: vec!["pg_stat_io came with version 16; this server is of version 15.18".to_owned()],
    }
}

fn locked() -> LockedRelation {
    LockedRelation {
        name: "pgbench_accounts_pkey".to_owned(),
        table: Some("pgbench_accounts".to_owned()),
        rows: Some(100_000),
        pages: Some(276),
        page: LocksSeen { most: 80, share: 1.0 },
        ..LockedRelation::default()
    }
}

fn counter(name: &str, meaning: &str, change: f64) -> Counter {
    Counter { name: name.to_owned(), meaning: meaning.to_owned(), change }
}

fn sweep(cell: &Cell, highest: f64) -> SweepResult {
    let step = |rate: f64, within: f64| SweepStep {
        rate,
        within_limit: within,
        p99_ms: Some(rate / 40.0),
        kept: within >= 0.99,
        broken: false,
    };
    SweepResult {
        level: cell.level.requested,
        clients: cell.clients,
        backoff: cell.backoff.clone(),
        workload: String::new(),
        strategy: cell.strategy.clone(),
        varied: cell.varied.clone(),
        limit_ms: 50.0,
        capacity: highest * 1.4,
        highest_kept: Some(highest),
        lowest_missed: Some(highest * 1.1),
        tried: vec![step(highest * 0.7, 1.0), step(highest * 1.1, 0.91), step(highest, 0.995)],
    }
}
