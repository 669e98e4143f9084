//! Examples of what a run can show about safety and cost: one client, nothing wrong anywhere, no
//! measurable difference, a level that couldn't be measured, strategies with histories, a search
//! for the highest rate.

use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, EffectiveLevel, Level};
use isobench_result::{
    Cell, CellLevel, Document, LevelTransactions, MixedVerdict, Round, ScriptLevel, SweepResult, SweepStep,
    Verdict,
};

use super::{Story, base, cell, checked, factors, held, rounds, verdict};

fn clean() -> Verdict {
    verdict("serializable", &["strict serializable"], &[])
}

/// A workload in which nothing goes wrong, at levels that cost differently.
pub fn safe() -> Document {
    let mut document = checked();
    for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.verdict = Some(clean());
        round.invariants = held();
    }
    document
}

/// The same with levels that cost the same.
pub fn noise() -> Document {
    let mut document = safe();
    for (cell, shift) in document.cells.iter_mut().zip([0, 3, 7]) {
        let fresh = [1, 2, 3].map(|number| round(number, 2000 + (u64::from(number) * 7 + shift) % 5 * 40));
        cell.rounds = fresh.into();
    }
    document
}

fn round(number: u32, committed: u64) -> Round {
    let mut round = Story { committed, latency_us: 20_000, ..Story::default() }.round(number, 5);
    round.verdict = Some(clean());
    round.invariants = held();
    round
}

/// A single client.
pub fn one_client() -> Document {
    let mut document = noise();
    document.plan.clients = Some(vec![1]);
    for cell in &mut document.cells {
        cell.clients = 1;
    }
    document
}

/// A comparison of which a level couldn't be measured.
pub fn incomplete() -> Document {
    let mut document = checked();
    document.complete = false;
    document.incomplete_reason =
        Some("serializable, 8 clients could not be measured: out of shared memory".to_owned());
    document.cells[2].rounds.clear();
    document
}

/// What can't have happened at the level that the row is named after.
pub fn contradicted() -> Document {
    let mut document = safe();
    document.cells[2].rounds[0].contradictions =
        vec!["a transaction said that it runs at read committed".to_owned()];
    document
}

/// Strategies whose histories were recorded: updates are lost at read committed unless rows are
/// locked first.
pub fn checked_strategies() -> Document {
    let mut document = factors::strategies();
    for cell in &mut document.cells {
        "orders".clone_into(&mut cell.workload);
        let lost = cell.level.requested == Some(Level::ReadCommitted) && cell.strategy() != "for-update";
        if cell.level.requested == Some(Level::ReadCommitted) && !lost {
            // Cheaper than at the other levels.
            let story =
                |number: u64| Story { committed: 2300 + 10 * number, latency_us: 16_000, ..Story::default() };
            cell.rounds = [1, 2, 3].map(|number| story(number.into()).round(number, 5)).into();
        }
        let (promised, shown) = if lost {
            (
                "read committed",
                verdict("read committed", &["read committed"], &[("P4", "lost update", 420, false)]),
            )
        } else {
            ("serializable", clean())
        };
        for round in &mut cell.rounds {
            round.verdict = Some(Verdict { promised: Some(promised.to_owned()), ..shown.clone() });
        }
    }
    document
}

/// A level for each script next to levels for all: readers at repeatable read among serializable
/// writers see what nothing promises to prevent.
pub fn mixed() -> Document {
    let mut document = checked();
    let script = |name: &str, level| {
        ScriptLevel::new(name.to_owned(), Mode::of(level), EffectiveLevel::Standard(level))
    };
    let allocation: Allocation = "report.sql=rr,*=ser".parse().expect("an allocation");
    let scripts = vec![script("report.sql", Level::RepeatableRead), script("sale.sql", Level::Serializable)];
    let cell = &mut document.cells[1];
    cell.level = CellLevel::mixed(allocation.clone(), scripts);
    let transactions = |level, transactions| LevelTransactions { level: Some(level), transactions };
    for round in &mut cell.rounds {
        let anomalies = [("G2", "read-only anomaly", 210, false)];
        round.verdict = Some(Verdict {
            promised: None,
            kept: Some(true),
            mixed: Some(MixedVerdict {
                levels: vec![
                    transactions(Level::RepeatableRead, 1500),
                    transactions(Level::Serializable, 1700),
                ],
                serializable: Some(false),
                broken: Vec::new(),
                permitted: vec![
                    transactions(Level::RepeatableRead, 90),
                    transactions(Level::Serializable, 120),
                ],
            }),
            ..verdict("serializable", &["strong snapshot isolation"], &anomalies)
        });
    }
    document.plan.levels = Some(vec![Level::ReadCommitted, Level::Serializable]);
    document.plan.allocation = Some(vec![allocation]);
    document
}

/// Unsafe levels only.
pub fn unsafe_everywhere() -> Document {
    let mut document = checked();
    document.plan.levels = Some(vec![Level::ReadCommitted, Level::RepeatableRead]);
    document.cells.truncate(2);
    document
}

/// A search for the highest rate of each level.
pub fn sweep() -> Document {
    let mut document = base();
    document.plan.sweep = Some(true);
    document.plan.latency_limit = Some(50.0);
    for level in [Level::ReadCommitted, Level::Serializable] {
        document.cells.push(Cell { rounds: rounds(level, &[1, 2, 3], 1), ..cell(level) });
        let (capacity, kept) = if level == Level::Serializable { (160.0, 120.0) } else { (400.0, 350.0) };
        let step = |rate: f64, kept: bool| SweepStep { rate, kept, ..SweepStep::default() };
        document.sweeps.push(SweepResult {
            workload: String::new(),
            level: Some(level),
            clients: 8,
            limit_ms: 50.0,
            capacity,
            highest_kept: Some(kept),
            lowest_missed: Some(kept + 10.0),
            tried: vec![step(kept, true), step(kept + 10.0, false)],
            backoff: "none".to_owned(),
            strategy: None,
            varied: std::collections::BTreeMap::new(),
        });
    }
    document
}
