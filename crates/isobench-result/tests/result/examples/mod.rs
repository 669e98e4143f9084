//! Example documents for the tests, as a runner would fill them. Every number is made up and
//! nothing is random.

mod factors;
mod faults;
mod kinds;
mod observed;
mod seen;
mod tried;

use std::sync::LazyLock;
use std::time::Duration;

use isobench_isolation::{EffectiveLevel, Level};
use isobench_plan::Observe;
use isobench_result::{
    AnomalyFound, Cell, CellLevel, Client, Conflict, Document, ExaminedHistory, Invariant, Plan,
    PlannedScript, Round, Server, Verdict, Warmup, Withheld, WitnessArrow, WitnessTransaction,
};
use isobench_stats::{Attempts, LatencyHistogram, Ledger, TimeLedger, Transactions};

/// A script with a conflict at lines 7 and 9.
const TPCB_LIKE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
--@ write registers key=:bid version=$1
UPDATE pgbench_branches SET bbalance = bbalance + :delta
  WHERE bid = :bid RETURNING version;
END;
";

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The counts of a made-up round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Story {
    pub committed: u64,
    pub retried: u64,
    pub given_up: u64,
    pub ambiguous: u64,
    pub cut_off: u64,
    pub swallowed: u64,
    pub rolled_back: u64,
    pub errored: u64,
    pub skipped: u64,
    /// Mean latency in microseconds.
    pub latency_us: u64,
}

impl Story {
    pub fn ledger(self) -> Ledger {
        let Story {
            committed,
            retried,
            given_up,
            ambiguous,
            cut_off,
            swallowed,
            rolled_back,
            errored,
            skipped,
            latency_us,
        } = self;
        let ran = committed + given_up + swallowed + rolled_back + ambiguous + cut_off + errored;
        let ms = latency_us * 1000;
        Ledger {
            attempts: Attempts {
                started: ran + retried,
                committed,
                retried,
                given_up,
                swallowed,
                rolled_back,
                ambiguous,
                cut_off,
                errored,
            },
            transactions: Transactions {
                total: ran + skipped,
                committed,
                given_up,
                swallowed,
                rolled_back,
                ambiguous,
                cut_off,
                errored,
                skipped,
            },
            time: TimeLedger {
                useful: committed * ms,
                wasted: (retried + given_up + swallowed) * ms / 2,
                backoff: retried * ms / 8,
                waiting: 0,
            },
            conflicts: retried + given_up + swallowed,
            further_errors: 0,
            retries: retried,
            late: 0,
        }
    }

    fn latencies(self) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for index in 0..self.committed {
            // From half the mean upwards, with a tail of one in fifty.
            let spread = self.latency_us * (500 + index * 7919 % 1000);
            histogram.record(if index % 50 == 49 { spread * 6 } else { spread });
        }
        histogram
    }

    pub fn round(self, number: u32, seconds: u64) -> Round {
        let ledger = self.ledger();
        let share = ledger.conflicts / 3;
        let conflict = |command: &str, reason: &str, count: u64| Conflict {
            sqlstate: "40001".to_owned(),
            command: command.to_owned(),
            script: Some("tpcb-like".to_owned()),
            line: Some(if command == "END" { 9 } else { 7 }),
            reason: reason.to_owned(),
            object: None,
            count,
        };
        let concurrent = "could not serialize access due to concurrent update";
        let dependencies = "could not serialize access due to read/write dependencies among transactions";
        let mut conflicts = vec![
            conflict("UPDATE pgbench_branches", concurrent, ledger.conflicts - share),
            conflict("END", dependencies, share),
        ];
        conflicts.retain(|conflict| conflict.count > 0);
        let duration = Duration::from_secs(seconds);
        let mut round = Round::from_ledger(number, &ledger, &self.latencies(), duration, conflicts);
        round.order = Some(number);
        round.client_cpu_s = Some(0.25);
        round.connect_s = Some(0.012);
        round.warmup = Some(Warmup {
            seconds: 1.0,
            steps: 2,
            steady: Some(true),
            attempts: 200,
            committed: 150,
            ambiguous: 0,
        });
        round
    }
}

fn held() -> Vec<Invariant> {
    vec![
        Invariant::checked("sums agree", true, "accounts = tellers = branches = history = -1234"),
        Invariant::checked("history rows = committed", true, "2150 rows"),
    ]
}

fn base() -> Document {
    let server = Server {
        product: "PostgreSQL".to_owned(),
        version: "15.18".to_owned(),
        settings: [("fsync".to_owned(), "on".to_owned()), ("max_connections".to_owned(), "200".to_owned())]
            .into(),
        embedded: true,
        description: "PostgreSQL 15.18 on x86_64-pc-linux-gnu".to_owned(),
        ..Server::default()
    };
    let client = Client {
        version: "0.1.0".to_owned(),
        cpu: "Example CPU @ 3.00GHz".to_owned(),
        cores: 2,
        os: "Linux 6.1".to_owned(),
        ..Client::default()
    };
    let plan = Plan {
        levels: Some(LEVELS.to_vec()),
        workload: Some(vec!["tpcb-like".to_owned()]),
        clients: Some(vec![8]),
        jobs: Some(2),
        scale: Some(1),
        time: Some(5.0),
        warmup: Some(1.0),
        rounds: Some(3),
        backoff: Some(vec!["none".to_owned()]),
        protocol: Some("simple".to_owned()),
        seed: Some(42),
        observe: Some(Observe::Rows),
        ..Plan::default()
    };
    let mut document = Document::new(server, client, plan);
    document.workload.scripts = vec![PlannedScript {
        name: "tpcb-like".to_owned(),
        weight: 1,
        text: TPCB_LIKE.to_owned(),
        ..PlannedScript::default()
    }];
    document.started_at = Some("2025-01-01T12:00:00Z".to_owned());
    document.complete = true;
    document
}

fn cell(level: Level) -> Cell {
    let level = CellLevel::new(Some(level), EffectiveLevel::Standard(level));
    Cell { clients: 8, jobs: 2, ..Cell::new("tpcb-like", level) }
}

/// Rounds of a level whose share of conflicts grows with its strength, scaled by the round's drift.
fn rounds(level: Level, numbers: &[u32], factor: u64) -> Vec<Round> {
    numbers
        .iter()
        .map(|number| {
            let drift = 100 - u64::from(*number);
            let (committed, retried, latency_us) = match level {
                Level::ReadUncommitted | Level::ReadCommitted => (2000, 0, 20_000),
                Level::RepeatableRead => (960 + 10 * u64::from(*number), 1900, 8_000),
                Level::Serializable => (820, 2000, 9_000),
            };
            let story = Story {
                committed: committed * drift * factor / 100,
                retried: retried * drift * factor / 100,
                cut_off: 8,
                latency_us: latency_us / factor,
                ..Story::default()
            };
            let mut round = story.round(*number, 5);
            round.invariants = held();
            round
        })
        .collect()
}

fn three_levels() -> Document {
    let mut document = base();
    document.cells =
        LEVELS.iter().map(|level| Cell { rounds: rounds(*level, &[1, 2, 3], 1), ..cell(*level) }).collect();
    document
}

fn single_round() -> Document {
    let mut document = base();
    document.plan.rounds = Some(1);
    document.cells =
        LEVELS.iter().map(|level| Cell { rounds: rounds(*level, &[1], 1), ..cell(*level) }).collect();
    document
}

fn interrupted() -> Document {
    let mut document = base();
    document.complete = false;
    document.incomplete_reason = Some("interrupted by Ctrl-C in round 2 of 3".to_owned());
    document.warnings =
        vec!["the machine was busy: its load was 7.2 on 2 cores before the measurement began".to_owned()];
    let [mut committed, mut repeatable, serializable] = LEVELS.map(cell);
    committed.rounds = rounds(Level::ReadCommitted, &[1, 2], 1);
    let story = Story {
        committed: 300,
        retried: 420,
        cut_off: 7,
        ambiguous: 1,
        latency_us: 9_000,
        ..Story::default()
    };
    let mut cut = story.round(1, 2);
    cut.complete = false;
    cut.invariants = vec![Invariant::unchecked("sums agree", "interrupted before the check")];
    repeatable.rounds = vec![cut];
    document.cells = vec![committed, repeatable, serializable];
    document
}

fn violated() -> Document {
    let mut document = base();
    document.server.embedded = false;
    "db.example.com:5432/shop as bench".clone_into(&mut document.server.description);
    document.server.settings.clear();
    document.workload.scripts = vec![PlannedScript {
        name: "withdraw.sql".to_owned(),
        weight: 1,
        text: "BEGIN; …".to_owned(),
        ..PlannedScript::default()
    }];
    document.cells =
        LEVELS.iter().map(|level| Cell { rounds: rounds(*level, &[1, 2, 3], 1), ..cell(*level) }).collect();
    for cell in &mut document.cells {
        cell.workload = String::from("withdraw.sql");
    }
    document.cells[0].rounds[1].invariants =
        vec![Invariant::checked("no account is overdrawn", false, "17 accounts below zero, expected 0")];
    document
}

fn transaction(name: &str, client: &str) -> WitnessTransaction {
    WitnessTransaction { name: name.to_owned(), client: client.to_owned() }
}

fn arrow(from: usize, to: usize, label: &str) -> WitnessArrow {
    WitnessArrow { from, to, label: label.to_owned() }
}

/// A verdict as a check would give it: promised, strongest guarantees not contradicted, anomalies.
fn verdict(promised: &str, not_contradicted: &[&str], anomalies: &[(&str, &str, u64, bool)]) -> Verdict {
    let anomalies: Vec<AnomalyFound> = anomalies
        .iter()
        .map(|(name, known_as, count, breaks_promise)| AnomalyFound {
            name: (*name).to_owned(),
            known_as: (*known_as).to_owned(),
            order: "data".to_owned(),
            count: *count,
            breaks_promise: *breaks_promise,
            witness: vec![
                "T12 (client 3) read version 5 of registers 7, and T15 (client 1) wrote version 6".to_owned(),
                "T15 (client 1) read version 8 of registers 9, and T12 (client 3) wrote version 9".to_owned(),
            ],
            transactions: vec![transaction("T12", "client 3"), transaction("T15", "client 1")],
            arrows: vec![arrow(0, 1, "rw"), arrow(1, 0, "rw")],
            ..AnomalyFound::default()
        })
        .collect();
    let anomalous = anomalies.iter().map(|anomaly| anomaly.count).sum();
    Verdict {
        mixed: None,
        cleared: None,
        unsearched: Vec::new(),
        between: Vec::new(),
        harmless: 0,
        lost_between: None,
        written_back: None,
        anomalous,
        promised: Some(promised.to_owned()),
        kept: Some(anomalies.iter().all(|anomaly| !anomaly.breaks_promise)),
        withheld: Vec::new(),
        not_contradicted: not_contradicted.iter().map(|&name| name.to_owned()).collect(),
        anomalies,
        examined: ExaminedHistory {
            committed: 2100,
            aborted: 400,
            operations: 9000,
            write_write: 800,
            write_read: 900,
            read_write: 700,
            ..ExaminedHistory::default()
        },
        blind: vec!["no transaction read by a predicate, so phantoms can't show".to_owned()],
        check_s: 0.004,
    }
}

/// A checked workload, at three levels that keep their promises.
fn checked() -> Document {
    let mut document = three_levels();
    let verdicts = [
        verdict(
            "read committed",
            &["strong session read committed"],
            &[("P4", "lost update", 210, false), ("G-single", "read skew", 33, false)],
        ),
        verdict("snapshot isolation", &["strong snapshot isolation"], &[("G2-item", "write skew", 7, false)]),
        verdict("serializable", &["strict serializable"], &[]),
    ];
    for (cell, verdict) in document.cells.iter_mut().zip(verdicts) {
        "registers".clone_into(&mut cell.workload);
        for round in &mut cell.rounds {
            round.verdict = Some(verdict.clone());
        }
    }
    // What no level promises.
    for round in &mut document.cells[2].rounds {
        let verdict = round.verdict.as_mut().expect("a verdict");
        verdict.not_contradicted = vec!["strong session serializable".to_owned()];
        verdict.anomalies = vec![AnomalyFound {
            name: "G-single".to_owned(),
            known_as: "read skew".to_owned(),
            order: "real time".to_owned(),
            count: 2,
            witness: vec!["T1 (client 3) ended before T2 (client 1) began".to_owned()],
            ..AnomalyFound::default()
        }];
    }
    // What the weaker levels don't promise.
    let mut skewed = Invariant::checked("every shift has a doctor on call", false, "12 shifts have none");
    skewed.violations = Some(12);
    skewed.unit = Some("shifts".to_owned());
    skewed.promised = false;
    document.cells[0].rounds[2].invariants.push(skewed);
    document
}

/// The same with a level that lets write skew through.
fn broken_promise() -> Document {
    let mut document = checked();
    let broken = verdict("serializable", &["snapshot isolation"], &[("G2-item", "write skew", 1, true)]);
    document.cells[2].rounds[1].verdict = Some(broken);
    document
}

/// The same with scripts whose lines `--@` leave a write out, and with a round that has no history.
fn withheld() -> Document {
    let mut document = broken_promise();
    let mut doubtful =
        verdict("serializable", &[], &[("garbage read", "read of what nobody wrote", 9, false)]);
    doubtful.kept = None;
    doubtful.withheld = vec![Withheld {
        reason: "the history does not account for what was read, so a write is probably missing \
                 from it: T2 (client 1) read version 7 of registers 5, which nobody wrote (9 such \
                 cases)"
            .to_owned(),
        doubtful: true,
    }];
    document.cells[2].rounds[0].verdict = Some(doubtful);
    cut(document.cells[1].rounds[2].verdict.as_mut().expect("a verdict"));
    document
}

/// Takes a verdict back because transactions are missing.
pub fn cut(verdict: &mut Verdict) {
    verdict.kept = None;
    verdict.not_contradicted.clear();
    let reason = "the history is not complete: no space left on device".to_owned();
    verdict.withheld.push(Withheld { reason, doubtful: false });
}

fn level_mismatch() -> Document {
    let mut document = base();
    document.server = Server {
        product: "CockroachDB".to_owned(),
        version: "20.1.5".to_owned(),
        description: "localhost:26257/defaultdb as root".to_owned(),
        ..Server::default()
    };
    document.cells = LEVELS
        .iter()
        .map(|level| Cell { rounds: rounds(Level::Serializable, &[1, 2, 3], 1), ..cell(*level) })
        .collect();
    document.cells[0].level.effective = EffectiveLevel::Standard(Level::Serializable);
    document.cells[1].level.effective = EffectiveLevel::Unknown;
    document.warnings = vec![
        "read committed was asked for, but the server says it runs serializable; use \
              --strict-levels to refuse"
            .to_owned(),
    ];
    document
}

fn all_failed() -> Document {
    let mut document = base();
    document.plan.max_tries = Some(1);
    document.plan.rounds = Some(2);
    let [mut committed, mut repeatable, mut serializable] = LEVELS.map(cell);
    committed.rounds = rounds(Level::ReadCommitted, &[1, 2], 1);
    let nothing = Story { given_up: 5000, cut_off: 8, skipped: 12, latency_us: 8_000, ..Story::default() };
    repeatable.rounds = vec![nothing.round(1, 5), nothing.round(2, 5)];
    let errors = Story { errored: 8, ..Story::default() };
    serializable.rounds = vec![errors.round(1, 0), errors.round(2, 0)];
    for round in &mut serializable.rounds {
        round.complete = false;
        round.errors = vec!["client 3: ERROR 42P01: relation \"pgbench_history\" does not exist.".to_owned()];
    }
    document.cells = vec![committed, repeatable, serializable];
    document
}

fn many_factors() -> Document {
    let mut document = base();
    let policies = ["none", "exponential:base=1ms,factor=2,max=100ms,jitter=full"].map(str::to_owned);
    document.plan.clients = Some(vec![8, 64]);
    document.plan.backoff = Some(policies.to_vec());
    for level in LEVELS {
        for (clients, factor) in [(8, 1), (64, 2)] {
            for (index, backoff) in policies.iter().enumerate() {
                let rounds = rounds(level, &[1, 2, 3], factor + index as u64);
                document.cells.push(Cell { clients, backoff: backoff.clone(), rounds, ..cell(level) });
            }
        }
    }
    document
}

fn single_run() -> Document {
    let mut document = base();
    document.plan = Plan {
        levels: Some(Vec::new()),
        clients: Some(vec![1]),
        jobs: Some(1),
        rounds: Some(1),
        time: None,
        transactions: Some(90),
        max_tries: Some(10),
        rate: Some(vec![20.0]),
        latency_limit: Some(50.0),
        protocol: Some("prepared".to_owned()),
        ..document.plan
    };
    let level = CellLevel::new(None, EffectiveLevel::Standard(Level::ReadCommitted));
    let mut cell = Cell { protocol: "prepared".to_owned(), ..Cell::new("my.sql, other.sql", level) };
    let mut round = Story { committed: 90, latency_us: 4_000, ..Story::default() }.round(1, 4);
    round.late = Some(2);
    cell.rounds.push(round);
    document.cells.push(cell);
    document
}

static EXAMPLES: LazyLock<Vec<(&'static str, Document)>> = LazyLock::new(build);

/// Every example with its name.
pub fn all() -> Vec<(&'static str, Document)> {
    EXAMPLES.clone()
}

/// The example of this name.
pub fn example(name: &str) -> Document {
    let found = EXAMPLES.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no example {name}")).1.clone()
}

fn build() -> Vec<(&'static str, Document)> {
    let mut examples = vec![
        ("three-levels", three_levels()),
        ("single-round", single_round()),
        ("interrupted", interrupted()),
        ("violated", violated()),
        ("checked", checked()),
        ("broken-promise", broken_promise()),
        ("withheld", withheld()),
        ("level-mismatch", level_mismatch()),
        ("all-failed", all_failed()),
        ("many-factors", many_factors()),
        ("single-run", single_run()),
        ("observed", observed::observed(checked())),
        ("strategies", factors::strategies()),
        ("experiment", factors::experiment()),
        ("counted", factors::counted()),
        ("scan", factors::scan()),
        ("safe", kinds::safe()),
        ("noise", kinds::noise()),
        ("one-client", kinds::one_client()),
        ("incomplete", kinds::incomplete()),
        ("contradicted", kinds::contradicted()),
        ("checked-strategies", kinds::checked_strategies()),
        ("mixed", kinds::mixed()),
        ("unsafe", kinds::unsafe_everywhere()),
        ("sweep", kinds::sweep()),
        ("seen", seen::seen()),
        ("faults", faults::faults()),
        ("standby", faults::standby()),
        ("machines", faults::machines()),
        ("tried", tried::tried()),
        ("nothing", base()),
    ];
    for (_, document) in &mut examples {
        isobench_result::summarise(document);
    }
    examples
}
