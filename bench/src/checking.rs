//! How fast a history is checked: makes one as a recording leaves it, reads it, checks it, and says
//! what that took.
//!
//! The history is what a correct database with one commit at a time would give: registers with
//! counters and values, each transaction two reads and two increments of random rows. At
//! serializable every transaction sees all commits before its own; at snapshot isolation it sees
//! those before its snapshot, up to half a round of all clients ago, and the first committer wins;
//! at read committed each read has such a snapshot of its own.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use isobench_isolation::History;
use isobench_isolation::check::{Options, Report, check};
use isobench_isolation::history::binary::{self, Encoder};
use isobench_isolation::history::{Draft, FormatError, Key, Operation, Outcome, Transaction, Version};
use isobench_isolation::model::Order;
use rustix::time::{ClockId, clock_gettime};

/// What kind of history to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing contradicts any model.
    Serializable,
    /// Full of write skew.
    Snapshot,
    /// Full of read skew, too: each read has a snapshot of its own.
    ReadCommitted,
}

/// What to make and check.
#[derive(Debug, Clone, Copy)]
pub struct CheckPlan {
    /// How many transactions.
    pub transactions: u64,
    /// How many clients run them.
    pub clients: u32,
    /// How many rows there are.
    pub rows: u32,
    /// What kind of history.
    pub level: Level,
    /// The orders to look at.
    pub order: Order,
}

/// What came out.
#[derive(Debug)]
pub struct Checked {
    /// Size of the history as a recording, in bytes.
    pub bytes: u64,
    /// Time to read it.
    pub read: Spent,
    /// Time to check it.
    pub check: Spent,
    /// The most memory of this process so far, in MiB; `None` if the system doesn't tell.
    pub peak: Option<u64>,
    /// The answer.
    pub report: Report,
}

/// Time that a part took.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// On the wall's clock.
    pub elapsed: Duration,
    /// Of the processors.
    pub cpu: Duration,
}

/// Does something and takes the time.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let cpu = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let (began, cpu_before) = (Instant::now(), cpu());
    let result = work();
    (result, Spent { elapsed: began.elapsed(), cpu: cpu().saturating_sub(cpu_before) })
}

/// Makes the history in a file, reads and checks it.
///
/// # Errors
/// The file can't be written or read.
pub fn run(plan: &CheckPlan) -> Result<Checked, FormatError> {
    let mut file = tempfile::tempfile()?;
    record(plan, &file)?;
    let bytes = file.stream_position()?;
    file.rewind()?;
    let (history, read) = timed(|| binary::read(BufReader::with_capacity(1 << 20, file)));
    let history: History = history?;
    let (report, check) = timed(|| check(&history, &Options { order: plan.order, ..Options::default() }));
    Ok(Checked { bytes, read, check, peak: peak(), report })
}

/// The most memory that this process had, in MiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib / 1024)
}

/// A version of a row, and the number of the commit that made it.
#[derive(Debug, Clone, Copy, Default)]
struct Made {
    commit: u64,
    counter: u64,
    writer: Option<i64>,
}

/// The last versions of a row; older ones are in nobody's snapshot.
#[derive(Debug, Clone)]
struct Row {
    versions: Vec<Made>,
}

impl Row {
    /// What a snapshot sees.
    fn at(&self, snapshot: u64) -> Made {
        self.versions.iter().rev().find(|made| made.commit <= snapshot).copied().unwrap_or_default()
    }

    fn latest(&self) -> Made {
        self.at(u64::MAX)
    }
}

/// Random numbers: xorshift64*, enough for choosing rows, and the same everywhere.
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

/// Nanoseconds between commits.
const TICK: u64 = 1000;
/// A worker's chunk is written when it has this many bytes, as the runner does.
const CHUNK: usize = 1 << 20;

/// Writes the history as two workers of a runner would have recorded it.
fn record(plan: &CheckPlan, file: &File) -> io::Result<()> {
    let mut output = BufWriter::with_capacity(1 << 20, file);
    output.write_all(&binary::header(&["registers".to_owned()]))?;
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
        // At read committed nobody minds what was committed since.
        let since = if plan.level == Level::Snapshot { first } else { commit };
        operations(&mut draft, &mut rows, &mut random, commit, snapshots, since);
        let client = u32::try_from(commit % clients).unwrap_or(0);
        // A client's transactions are a round apart, so that half a round before and after the
        // commit is its own.
        let half = clients * TICK / 2;
        let now = commit * TICK + clients * TICK;
        // A snapshot is taken after the begin, so the begin lies before it.
        let early = if plan.level == Level::Serializable { random.below(half) } else { half };
        let transaction = Transaction {
            id: commit,
            client,
            begin: now - early.max(1),
            end: now + random.below(half),
            outcome: Outcome::Committed,
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

/// Two reads and two increments, these of rows that nobody has changed since.
fn operations(
    draft: &mut Draft,
    rows: &mut [Row],
    random: &mut Random,
    commit: u64,
    snapshots: [u64; 2],
    since: u64,
) {
    let count = rows.len() as u64;
    let mut chosen = [usize::MAX; 4];
    for place in 0..4 {
        loop {
            let row = usize::try_from(random.below(count)).unwrap_or(0);
            let conflict = place >= 2 && rows[row].latest().commit > since;
            if !chosen.contains(&row) && !conflict {
                chosen[place] = row;
                break;
            }
        }
    }
    let key = |row: usize| Key { table: 0, id: i64::try_from(row).unwrap_or(0) };
    for (row, snapshot) in chosen.iter().zip(snapshots) {
        let made = rows[*row].at(snapshot);
        let version = Version { counter: Some(made.counter), value: made.writer };
        draft.push(Operation::Read { key: key(*row), version });
    }
    for row in &chosen[2..] {
        let counter = rows[*row].latest().counter + 1;
        let writer = Some(commit.cast_signed());
        let versions = &mut rows[*row].versions;
        if versions.len() > 64 {
            versions.drain(..32);
        }
        versions.push(Made { commit, counter, writer });
        draft.push(Operation::Write {
            key: key(*row),
            version: Version { counter: Some(counter), value: writer },
        });
    }
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Model;

    use super::*;

    #[test]
    fn histories_are_what_they_are_called() {
        for (level, strongest) in [
            (Level::Serializable, Model::Serializable),
            (Level::Snapshot, Model::SnapshotIsolation),
            (Level::ReadCommitted, Model::ReadCommitted),
        ] {
            let plan =
                CheckPlan { transactions: 5000, clients: 16, rows: 100, level, order: Order::RealTime };
            let checked = run(&plan).unwrap();
            let left = &checked.report.verdict.not_contradicted;
            assert_eq!(left.len(), 1, "{left:?}");
            assert_eq!((left[0].model, left[0].order), (strongest, Order::RealTime));
            assert_eq!(checked.report.examined.committed, plan.transactions);
        }
    }
}
