//! The time that a report takes, and its size: of a large result, made by repeating the cells and
//! rounds of a real one.
//!
//! Not here: the renderings (`isobench_report`), and files: everything happens in memory.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use isobench_report::{Extent, Terminal, to_csv, to_html, to_markdown};
use isobench_result::{
    Counter, Document, DocumentError, Journal, Round, Series, ServerSide, WaitRow, summarise,
};
use rustix::time::{ClockId, clock_gettime};

/// The result whose cells and rounds are repeated: three levels, eight rounds each, without what a
/// round has for each moment.
const MODEL: &str = include_str!("../../docs/examples/compare.json");

/// The size of the result.
#[derive(Clone, Copy, Debug)]
pub struct ReportPlan {
    /// Cells.
    pub cells: usize,
    /// Rounds of each cell.
    pub rounds: u32,
}

/// A step's name, time, CPU time and the size of what it read or wrote, in bytes.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// Elapsed time.
    pub elapsed: Duration,
    /// CPU time of the process.
    pub cpu: Duration,
    /// Bytes; `None` if it makes no text.
    pub bytes: Option<usize>,
}

/// The table's heading.
pub fn heading() -> String {
    format!("{:34} {:>10} {:>10} {:>12}", "step", "elapsed ms", "CPU ms", "bytes")
}

/// One line of the table.
pub fn line(step: &Step) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut text = format!("{:34} {:10.1} {:10.1}", step.name, ms(step.elapsed), ms(step.cpu));
    if let Some(bytes) = step.bytes {
        // Writing to a String can't fail.
        let _ = write!(text, " {bytes:12}");
    }
    text
}

/// Reads, summarises and renders a large result, saves its last round, and measures each.
///
/// # Errors
/// The model isn't a result.
pub fn run(plan: ReportPlan) -> Result<Vec<Step>, DocumentError> {
    let mut steps = Vec::new();
    let text = document(plan)?.to_json();
    let mut document = measured(&mut steps, "read", || Document::from_json(&text), |_| Some(text.len()))?;
    measured(&mut steps, "summarise", || summarise(&mut document), |()| None);
    let of = |text: &String| Some(text.len());
    measured(&mut steps, "HTML", || to_html(&document), of);
    let terminal = Terminal { width: 120, extent: Extent::Details, unicode: true };
    measured(&mut steps, "text", || terminal.render(&document).to_string(), of);
    measured(&mut steps, "Markdown", || to_markdown(&document), of);
    measured(&mut steps, "CSV", || to_csv(&document), of);
    measured(&mut steps, "JSON", || document.to_json(), of);
    save(&mut steps, document);
    Ok(steps)
}

/// Saves the result as measured but for its last round, and then that.
fn save(steps: &mut Vec<Step>, mut document: Document) {
    let Some(last) = document.cells.last_mut().and_then(|cell| cell.rounds.pop()) else { return };
    let mut journal = Journal::default();
    let of = |text: &String| Some(text.len());
    measured(steps, "save everything, at the first save", || journal.text(&document), of);
    document.cells.last_mut().into_iter().for_each(|cell| cell.rounds.push(last.clone()));
    measured(steps, "save one more round", || journal.text(&document), of);
}

fn measured<T>(
    steps: &mut Vec<Step>,
    name: &'static str,
    work: impl FnOnce() -> T,
    bytes: impl FnOnce(&T) -> Option<usize>,
) -> T {
    let (began, cpu) = (Instant::now(), cpu());
    let made = work();
    let step = Step { name, elapsed: began.elapsed(), cpu: self::cpu().saturating_sub(cpu), bytes: None };
    steps.push(Step { bytes: bytes(&made), ..step });
    made
}

fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// A result of that size: the model's cells with 1, 2, 3 … clients, its rounds again and again.
///
/// # Errors
/// The model isn't a result.
pub fn document(plan: ReportPlan) -> Result<Document, DocumentError> {
    let mut document = Document::from_json(MODEL)?;
    let models = std::mem::take(&mut document.cells);
    let mut numbers = Vec::new();
    for clients in 1_u32.. {
        if document.cells.len() >= plan.cells {
            break;
        }
        numbers.push(clients);
        for model in &models {
            let mut cell = model.clone();
            cell.clients = clients;
            let rounds = model.rounds.iter().cycle().zip(1..=plan.rounds);
            cell.rounds = rounds.map(|(round, number)| again(round, number)).collect();
            document.cells.push(cell);
        }
    }
    document.cells.truncate(plan.cells);
    document.plan.clients = Some(numbers);
    document.plan.rounds = Some(plan.rounds);
    Ok(document)
}

/// A round as it might have been another time: up to 5 % slower or faster.
fn again(round: &Round, number: u32) -> Round {
    let slower = 0.95 + f64::from(number.wrapping_mul(7919) % 101) / 1000.0;
    let seconds = round.seconds * slower;
    let tps = Some(round.transactions.committed as f64 / seconds);
    let (series, server) = (Some(series(round)), Some(server_side(round)));
    Round { round: number, seconds, tps, series, server, ..round.clone() }
}

/// Bins of each round and samples of the server, and the events that its sessions wait for, as many
/// as comparisons have.
const MOMENTS: u32 = 25;
const EVENTS: u32 = 8;
const COUNTERS: u32 = 40;

/// The round's counts, evenly over its time.
fn series(round: &Round) -> Series {
    let bins = u64::from(MOMENTS);
    let share = |count: u64| (0..bins).map(|bin| count * (bin + 1) / bins - count * bin / bins).collect();
    let committed: Vec<u64> = share(round.transactions.committed);
    let mean = round.latency_ms.mean.unwrap_or(1.0);
    Series {
        bin_s: round.seconds / f64::from(MOMENTS),
        latency_sum_ms: committed.iter().map(|count| *count as f64 * mean).collect(),
        committed,
        attempts: share(round.attempts.started),
        conflicts: share(round.conflicts.iter().map(|conflict| conflict.count).sum()),
    }
}

/// Made-up statistics of the server in the round.
fn server_side(round: &Round) -> ServerSide {
    let wait = |event| WaitRow {
        kind: "LWLock".to_owned(),
        event: format!("Event{event}"),
        sessions: (0..MOMENTS).map(|moment| (moment + event) % EVENTS).collect(),
    };
    let counter = |number| Counter {
        name: format!("pg_stat_database.counter_{number}"),
        meaning: "what a counter counts, in about as many words".to_owned(),
        change: f64::from(number) * 1000.0,
    };
    ServerSide {
        at_s: (1..=MOMENTS).map(|moment| round.seconds * f64::from(moment) / f64::from(MOMENTS)).collect(),
        waits: (0..EVENTS).map(wait).collect(),
        counters: (0..COUNTERS).map(counter).collect(),
        sampling_s: 0.01,
        ..ServerSide::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_has_the_size_asked_for_and_sound_rounds() {
        let document = document(ReportPlan { cells: 7, rounds: 12 }).expect("a model");
        assert_eq!(document.cells.len(), 7);
        assert_eq!(document.cells.last().map(|cell| cell.clients), Some(3));
        for round in document.cells.iter().flat_map(|cell| &cell.rounds) {
            round.check().expect("sound accounts");
            let series = round.series.as_ref().expect("made above");
            assert_eq!(series.committed.iter().sum::<u64>(), round.transactions.committed);
            assert_eq!(series.attempts.iter().sum::<u64>(), round.attempts.started);
        }
        assert!(document.cells.iter().all(|cell| cell.rounds.len() == 12));
    }
}
