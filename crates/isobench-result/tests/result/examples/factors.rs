//! Examples of what else a plan can vary: strategies, parameters, the server's version; and of
//! counted transactions.

use isobench_isolation::Level;
use isobench_result::{
    Cell, Document, Experiment, PlannedScript, PlannedStrategy, PredicateLocks, PublishedFigure,
    PublishedRow, Round, Selector, Server, ServerSide, Shape,
};

use super::{Story, base, cell, held};

fn strategy(name: &str, summary: &str, least: u32, most: u32) -> PlannedStrategy {
    let script = PlannedScript {
        name: name.to_owned(),
        weight: 1,
        text: format!("-- {name}\n"),
        ..PlannedScript::default()
    };
    PlannedStrategy {
        name: name.to_owned(),
        summary: summary.to_owned(),
        scripts: vec![script],
        round_trips_least: least,
        round_trips_most: most,
    }
}

fn story(strategy: &str, level: Level) -> Story {
    let conflicts = level != Level::ReadCommitted;
    match (strategy, conflicts) {
        // Most of what the server acknowledged did nothing.
        ("swallow", true) => Story { committed: 640, swallowed: 9900, latency_us: 4_000, ..Story::default() },
        ("swallow", false) => Story { committed: 11_000, latency_us: 3_000, ..Story::default() },
        ("for-update", _) => Story { committed: 1900, retried: 20, latency_us: 20_000, ..Story::default() },
        (_, true) => Story { committed: 900, retried: 1900, latency_us: 8_000, ..Story::default() },
        (_, false) => Story { committed: 2000, latency_us: 20_000, ..Story::default() },
    }
}

/// A little more in each round than in the one before.
fn drifting(story: Story, number: u32, shift: u64) -> Round {
    let more = |count: u64| count * (100 + u64::from(number) + shift) / 100;
    let story = Story {
        committed: more(story.committed),
        retried: more(story.retried),
        swallowed: more(story.swallowed),
        ..story
    };
    story.round(number, 5)
}

/// Three strategies at three levels, one of which loses work.
pub fn strategies() -> Document {
    let mut document = base();
    document.plan.strategies = Some(["retry", "for-update", "swallow"].map(str::to_owned).to_vec());
    document.workload.strategies = vec![
        strategy("retry", "The client repeats the transaction.", 7, 7),
        strategy("for-update", "The client locks the rows first.", 8, 9),
        strategy("swallow", "A function catches the error and returns.", 1, 1),
    ];
    for level in document.plan.levels().to_vec() {
        for (place, name) in ["retry", "for-update", "swallow"].into_iter().enumerate() {
            let mut cell = Cell { strategy: Some(name.to_owned()), ..cell(level) };
            let shift = place as u64 * u64::from(level == Level::Serializable);
            cell.rounds = (1..=3)
                .map(|number| drifting(story(name, level), number, shift * u64::from(number)))
                .collect();
            for round in &mut cell.rounds {
                round.invariants = held();
            }
            document.cells.push(cell);
        }
    }
    document
}

fn selector(level: &str, strategy: &str) -> Selector {
    Selector { level: Some(level.to_owned()), strategy: Some(strategy.to_owned()), ..Selector::default() }
}

fn published(level: &str, strategy: &str, figures: &[(&str, &str, Option<&str>)]) -> PublishedRow {
    let figure = |(name, value, metric): &(&str, &str, Option<&str>)| PublishedFigure {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
        metric: metric.map(str::to_owned),
    };
    PublishedRow { cell: selector(level, strategy), figures: figures.iter().map(figure).collect() }
}

fn shape(says: &str, metric: &str, of: (&str, &str)) -> Shape {
    Shape {
        says: says.to_owned(),
        metric: metric.to_owned(),
        of: selector(of.0, of.1),
        to: None,
        published: None,
        least: None,
        most: None,
        differs: [("PostgreSQL".to_owned(), "This is made up.".to_owned())].into(),
    }
}

/// The strategies as a published experiment: shapes of every outcome.
pub fn experiment() -> Document {
    let mut document = strategies();
    let reported = Some("acknowledged_tps");
    let kept = Some("kept_share");
    let times = |says: &str, of: (&str, &str), published: f64, least: f64| Shape {
        to: Some(selector("read committed", "retry")),
        published: Some(published),
        least: Some(least),
        most: Some(1.3),
        ..shape(says, "tps", of)
    };
    document.plan.experiment = Some(Experiment {
        name: "e0-example".to_owned(),
        title: "What is a swallowed conflict worth?".to_owned(),
        source: "somebody, 2018".to_owned(),
        product: "PostgreSQL 11".to_owned(),
        size: "quick".to_owned(),
        published: vec![
            published(
                "read committed",
                "retry",
                &[("tps reported", "94,528", reported), ("committed", "100 %", kept)],
            ),
            published(
                "serializable",
                "swallow",
                &[
                    ("tps reported", "43,058", reported),
                    ("rows in history", "411,820", None),
                    ("committed", "8.0 %", kept),
                ],
            ),
            published("serializable", "procedure", &[("tps reported", "1", reported)]),
        ],
        shapes: vec![
            Shape {
                published: Some(0.08),
                most: Some(0.2),
                ..shape(
                    "most of what was acknowledged did nothing",
                    "kept_share",
                    ("serializable", "swallow"),
                )
            },
            times("locking first costs little", ("serializable", "for-update"), 1.0, 0.8),
            times("trying again costs little", ("serializable", "retry"), 0.9, 0.6),
            Shape {
                differs: std::collections::BTreeMap::new(),
                ..times("work is lost", ("serializable", "swallow"), 0.9, 0.6)
            },
            times("locking first costs a little", ("serializable", "for-update"), 0.95, 0.98),
            shape("a procedure keeps the most", "tps", ("serializable", "procedure")),
        ],
        missed: vec!["What was lost wasn't counted.".to_owned()],
        ..Experiment::default()
    });
    document
}

/// Two levels, where each client makes so many transactions.
pub fn counted() -> Document {
    let mut document = base();
    document.plan.levels = Some(vec![Level::ReadCommitted, Level::RepeatableRead]);
    document.plan.time = None;
    document.plan.transactions = Some(1000);
    document.plan.rounds = Some(2);
    for (level, given_up) in [(Level::ReadCommitted, 0), (Level::RepeatableRead, 1250)] {
        let story = |number| Story {
            committed: 8000 - given_up,
            given_up,
            latency_us: 900 + number,
            ..Story::default()
        };
        let rounds =
            (1..=2).map(|number| story(u64::from(number)).round(number, 5 + u64::from(number))).collect();
        document.cells.push(Cell { rounds, ..cell(level) });
    }
    document
}

/// The predicate locks of a scan of this many rows.
fn locks(rows: u64) -> ServerSide {
    let at_s = vec![1.0, 2.0];
    let (tuple, page) = if rows > 5000 { (0, rows / 100) } else { (rows, 3) };
    ServerSide {
        at_s: at_s.clone(),
        predicate_locks: Some(PredicateLocks {
            at_s,
            tuple: vec![tuple / 2, tuple],
            page: vec![page / 2, page],
            relation: vec![0, 1],
            ..PredicateLocks::default()
        }),
        ..ServerSide::default()
    }
}

/// The cost of predicate locks for a scan: rows, two versions of the server, one level that takes
/// such locks.
pub fn scan() -> Document {
    let mut document = base();
    let parameter = |text: &str| text.parse().expect("it has the form");
    document.plan.levels = Some(vec![Level::RepeatableRead, Level::Serializable]);
    document.plan.vary = Some(vec![parameter("server-version=14,18"), parameter("rows=100,1000,10000")]);
    document.plan.clients = Some(vec![1]);
    document.plan.jobs = Some(1);
    document.plan.no_server_side = Some(false);
    let server = |version: &str| Server {
        version: version.to_owned(),
        description: format!("PostgreSQL {version} on x86_64-pc-linux-gnu"),
        ..document.server.clone()
    };
    document.other_servers = vec![server("18.4")];
    document.server = server("14.20");
    for version in ["14", "18"] {
        for rows in [100_u64, 1000, 10_000] {
            for level in [Level::RepeatableRead, Level::Serializable] {
                let mut cell = Cell { clients: 1, jobs: 1, workload: "scan".to_owned(), ..cell(level) };
                let values = [("server-version", version.to_owned()), ("rows", rows.to_string())];
                cell.varied = values.map(|(name, value)| (name.to_owned(), value)).into();
                let plain = 400_000 / (rows + 100);
                let locking = level == Level::Serializable;
                let committed = if locking { plain * 1000 / (1100 + rows / 20) } else { plain };
                let story = Story { committed, latency_us: 5_000_000 / committed.max(1), ..Story::default() };
                cell.rounds = (1..=3)
                    .map(|number| drifting(story, number, u64::from(number % 2 * u32::from(locking))))
                    .collect();
                for round in cell.rounds.iter_mut().filter(|_| locking) {
                    round.server = Some(locks(rows));
                }
                document.cells.push(cell);
            }
        }
    }
    document
}
