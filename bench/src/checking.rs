//! The speed of checking a history: makes one like a recording, reads it, checks it, and measures
//! the time.
//!
//! The history is that of a correct database that commits one transaction at a time: registers with
//! counters and values, and transactions with reads (two, usually) and two increments of random rows. At
//! serializable every transaction sees all commits before its own. At snapshot isolation it sees
//! those before its snapshot, which is up to half a round of all clients old, and the first
//! committer wins. At read committed each read has its own such snapshot.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use isobench_isolation::check::{GrowingRecording, Options, Pieces, Report, check};
use isobench_isolation::history::binary::{self, Encoder};
use isobench_isolation::history::{
    Draft, FormatError, Key, Mode, Operation, Transaction, TransactionOutcome, Version,
};
use isobench_isolation::model::Order;
use isobench_isolation::{History, LevelPromises, Mixing, Model};
use rustix::time::{ClockId, clock_gettime};

/// The kind of history to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// It contradicts no model.
    Serializable,
    /// It has a lot of write skew.
    Snapshot,
    /// It also has a lot of read skew: each read has its own snapshot.
    ReadCommitted,
}

/// The levels that the history says its transactions ran at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stated {
    /// None.
    None,
    /// All at serializable, so that this is what is promised.
    One,
    /// A third each at read committed, repeatable read and serializable, so that each is judged by its
    /// own.
    Mixed,
}

impl Stated {
    /// The modes of a client's transactions.
    fn mode(self, client: u32) -> Option<Mode> {
        let level = match (self, client % 3) {
            (Stated::None, _) => return None,
            (Stated::One, _) | (Stated::Mixed, 0) => isobench_isolation::Level::Serializable,
            (Stated::Mixed, 1) => isobench_isolation::Level::RepeatableRead,
            (Stated::Mixed, _) => isobench_isolation::Level::ReadCommitted,
        };
        Some(Mode::of(level))
    }
}

/// PostgreSQL's promises.
const PROMISES: LevelPromises = LevelPromises {
    models: [Model::ReadCommitted, Model::ReadCommitted, Model::SnapshotIsolation, Model::Serializable],
    mixing: Mixing::AmongSerializable,
};

/// The way of checking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// The recording is read as a whole, and there is one graph of all transactions.
    Whole,
    /// The recording is read as a whole, and cycles are looked for piece by piece.
    Memory,
    /// The recording is read once, and sorted, as may be done while it grows; it is never in memory
    /// as a whole.
    Recording,
}

impl Way {
    /// All ways.
    pub const ALL: [Way; 3] = [Way::Whole, Way::Memory, Way::Recording];
}

/// The name of a value in options.
pub fn name<T: ValueEnum>(value: &T) -> String {
    let possible = value.to_possible_value();
    possible.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The head of a table.
pub const HEADING: &str = "| transactions | operations | way | reading, s | checking, s | CPU, s | transactions/s | \
                           peak memory, MiB | recording, MiB |\n|---|---|---|---|---|---|---|---|---|";

/// A line of a table.
pub fn line(way: Way, checked: &Checked) -> String {
    let Checked { bytes, read, check, peak, report } = checked;
    let transactions = report.examined.committed + report.examined.aborted + report.examined.unknown;
    let elapsed = (read.elapsed + check.elapsed).as_secs_f64();
    format!(
        "| {transactions} | {} | {} | {:.2} | {:.2} | {:.2} | {:.0} | {} | {} |",
        report.examined.operations,
        name(&way),
        read.elapsed.as_secs_f64(),
        check.elapsed.as_secs_f64(),
        (read.cpu + check.cpu).as_secs_f64(),
        transactions as f64 / elapsed.max(1e-9),
        peak.map_or_else(|| "unknown".to_owned(), |peak| peak.to_string()),
        bytes >> 20
    )
}

/// The parameters of the history and of the check.
#[derive(Debug, Clone, Copy)]
pub struct CheckPlan {
    /// The number of transactions.
    pub transactions: u64,
    /// The number of reads of each, two at least.
    pub reads: u32,
    /// The number of clients that run them.
    pub clients: u32,
    /// The number of rows.
    pub rows: u32,
    /// The kind of history.
    pub level: Level,
    /// The levels that it states.
    pub stated: Stated,
    /// The orders to check.
    pub order: Order,
    /// The way of checking.
    pub way: Way,
}

/// The result.
#[derive(Debug)]
pub struct Checked {
    /// The size of the history as a recording, in bytes.
    pub bytes: u64,
    /// The time for reading it, and sorting it by rows if it isn't in memory as a whole.
    pub read: Spent,
    /// The time for checking it.
    pub check: Spent,
    /// The peak memory of this process so far, in MiB; `None` if the system doesn't report it. What
    /// makes the history takes more than the check, and is another process if this is to mean anything.
    pub peak: Option<u64>,
    /// The result of the check.
    pub report: Report,
}

/// The time that a part took.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// The elapsed time.
    pub elapsed: Duration,
    /// The CPU time.
    pub cpu: Duration,
}

/// Runs a function and measures its time.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let cpu = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let (began, cpu_before) = (Instant::now(), cpu());
    let result = work();
    (result, Spent { elapsed: began.elapsed(), cpu: cpu().saturating_sub(cpu_before) })
}

/// Reads a history that [`record`] wrote, and checks it.
///
/// # Errors
/// If the file can't be read.
pub fn run(plan: &CheckPlan, mut file: File) -> Result<Checked, FormatError> {
    let bytes = file.metadata()?.len();
    file.rewind()?;
    let options = Options { order: plan.order, levels: Some(PROMISES), ..Options::default() };
    let input = BufReader::with_capacity(1 << 20, file);
    if plan.way == Way::Recording {
        let mut recording = GrowingRecording::new(&["registers".to_owned()]);
        let (sorted, read) = timed(|| recording.add_recording(input));
        sorted?;
        let (checked, check) = timed(|| recording.check(0, &options));
        return Ok(Checked { bytes, read, check, peak: peak(), report: checked?.0 });
    }
    let pieces = if plan.way == Way::Whole { Pieces::Whole } else { Pieces::Usual };
    let (history, read) = timed(|| binary::read(input));
    let history: History = history?;
    let (report, check) = timed(|| check(&history, &Options { pieces, ..options }));
    Ok(Checked { bytes, read, check, peak: peak(), report })
}

/// The peak memory of this process, in MiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib / 1024)
}

/// A version of a row, and the number of the commit that wrote it.
#[derive(Debug, Clone, Copy, Default)]
struct CommittedVersion {
    commit: u64,
    counter: u64,
    writer: Option<i64>,
}

/// The latest versions of a row; no snapshot includes older ones.
#[derive(Debug, Clone)]
struct Row {
    versions: Vec<CommittedVersion>,
}

impl Row {
    /// The version in a snapshot.
    fn at(&self, snapshot: u64) -> CommittedVersion {
        self.versions.iter().rev().find(|made| made.commit <= snapshot).copied().unwrap_or_default()
    }

    fn latest(&self) -> CommittedVersion {
        self.at(u64::MAX)
    }
}

/// Random numbers from xorshift64*, which suffices for choosing rows and is the same everywhere.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound.max(1)
    }
}

/// The time between commits, in nanoseconds.
const TICK: u64 = 1000;
/// The size at which a worker's chunk is written, in bytes, as in the runner.
const CHUNK: usize = 1 << 20;

/// Writes the history as it would be recorded by two workers of a runner.
///
/// # Errors
/// If the file can't be written.
pub fn record(plan: &CheckPlan, file: &File) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 20, file);
    output.write_all(&binary::header(&["registers".to_owned()], None))?;
    let mut rows = vec![Row { versions: Vec::new() }; plan.rows.max(8) as usize];
    let mut random = Random(0x5eed);
    let mut workers = [Encoder::new(), Encoder::new()];
    let clients = u64::from(plan.clients.max(1));
    let mut draft = Draft::new();
    for commit in 1..=plan.transactions {
        draft.clear();
        let most = if plan.level == Level::Serializable { 1 } else { clients / 2 };
        let mut snapshot = || (commit - 1).saturating_sub(random.below(most));
        let first = snapshot();
        let snapshots = if plan.level == Level::ReadCommitted { [first, snapshot()] } else { [first; 2] };
        // At read committed, concurrent commits don't matter.
        let since = if plan.level == Level::Snapshot { first } else { commit };
        let first_writes = plan.reads.max(2) as usize;
        operations(&mut draft, &mut rows, &mut random, commit, (snapshots, first_writes), since);
        let client = u32::try_from(commit % clients).unwrap_or(0);
        // A client's transactions are a round apart, so half a round before and after each commit
        // is its own.
        let half = clients * TICK / 2;
        let now = commit * TICK + clients * TICK;
        // A snapshot is taken after the start of its transaction.
        let early = if plan.level == Level::Serializable { random.below(half) } else { half };
        let transaction = Transaction {
            id: commit,
            client,
            begin: now - early.max(1),
            end: now + random.below(half),
            outcome: TransactionOutcome::Committed,
            mode: plan.stated.mode(client),
        };
        let worker = &mut workers[usize::from(client >= plan.clients / 2)];
        worker.push(&transaction, &draft);
        if worker.len() >= CHUNK {
            output.write_all(&worker.take())?;
        }
    }
    for worker in &mut workers {
        output.write_all(&worker.take())?;
    }
    output.write_all(&binary::trailer(plan.transactions, 0))?;
    output.flush()
}

/// Reads, so many, and two increments, the latter of rows without concurrent changes.
fn operations(
    draft: &mut Draft,
    rows: &mut [Row],
    random: &mut Random,
    commit: u64,
    (snapshots, reads): ([u64; 2], usize),
    since: u64,
) {
    let count = rows.len() as u64;
    let mut chosen = vec![usize::MAX; reads + 2];
    for place in 0..reads + 2 {
        loop {
            let row = usize::try_from(random.below(count)).unwrap_or(0);
            let conflict = place >= reads && rows[row].latest().commit > since;
            if !chosen.contains(&row) && !conflict {
                chosen[place] = row;
                break;
            }
        }
    }
    let key = |row: usize| Key { table: 0, id: i64::try_from(row).unwrap_or(0) };
    for (row, snapshot) in chosen[..reads].iter().zip(snapshots.into_iter().cycle()) {
        let made = rows[*row].at(snapshot);
        let version = Version { counter: Some(made.counter), value: made.writer };
        draft.push(Operation::Read { key: key(*row), version });
    }
    for row in &chosen[reads..] {
        let counter = rows[*row].latest().counter + 1;
        let writer = Some(commit.cast_signed());
        let versions = &mut rows[*row].versions;
        if versions.len() > 64 {
            versions.drain(..32);
        }
        versions.push(CommittedVersion { commit, counter, writer });
        draft.push(Operation::Write {
            key: key(*row),
            version: Version { counter: Some(counter), value: writer },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_what_they_are_called() {
        for (level, strongest) in [
            (Level::Serializable, Model::Serializable),
            (Level::Snapshot, Model::SnapshotIsolation),
            (Level::ReadCommitted, Model::ReadCommitted),
        ] {
            for way in [Way::Whole, Way::Memory, Way::Recording] {
                let (transactions, order) = (5000, Order::RealTime);
                let stated = Stated::None;
                let plan =
                    CheckPlan { transactions, reads: 2, clients: 16, rows: 100, level, stated, order, way };
                let check = |plan: &CheckPlan| {
                    let file = tempfile::tempfile().unwrap();
                    record(plan, &file).unwrap();
                    run(plan, file).unwrap()
                };
                let mixed = check(&CheckPlan { stated: Stated::Mixed, ..plan }).report;
                let checked = check(&plan);
                let left = &checked.report.verdict.not_contradicted;
                assert_eq!(left.len(), 1, "{left:?}");
                assert_eq!((left[0].model, left[0].order), (strongest, Order::RealTime));
                assert_eq!(checked.report.examined.committed, plan.transactions);
                assert_eq!(mixed.verdict.not_contradicted, *left);
                let serializable = level == Level::Serializable;
                assert_eq!(mixed.verdict.kept, Some(serializable), "write skew of serializable transactions");
            }
        }
    }
}
