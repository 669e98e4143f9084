//! A history in parts, each with all the operations on some of its rows.
//!
//! Everything that rows show can be found part by part: their anomalies, and their dependencies. So
//! only one part for each thread is in memory as an index of rows, and every part fits into the
//! processor's caches. [`MemoryParts`] are those of a history in memory, and `spill.rs` has those of
//! a recording that isn't.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;

use super::Pieces;
use super::context::Context;
use super::dependencies::Node;
use super::numbers::take_node;
use super::promises::ToEach;
use super::rows::{Class, Row, Rows};
use super::status::CommitStatus;
use crate::history::binary::encode::number;
use crate::history::{History, Operation, Transaction, TransactionOutcome};

/// The number of operations that a part should have.
pub(super) const PART: usize = 1 << 16;

/// The most parts.
const MOST_PARTS: usize = 1 << 10;

/// The fewest operations for which further threads are started.
const WORTH_THREADS: u64 = 1 << 17;

/// The most threads.
const MOST_THREADS: usize = 16;

/// A history in parts.
pub(super) trait Source: Sync + Sized {
    /// The reason why a part can't be read.
    type Error: Send;

    /// The history's transactions; their operations may be missing.
    fn frame(&self) -> &History;

    /// The number of transactions that are checked.
    fn transactions(&self) -> u32;

    /// The number of operations of all transactions.
    fn operations(&self) -> u64;

    /// The number of parts.
    fn parts(&self) -> u32;

    /// The sizes of what is examined at a time.
    fn pieces(&self) -> Pieces;

    /// The rows written by transactions of unknown outcome.
    fn unsure_rows(&self) -> &FxHashSet<Row>;

    /// The parts that have operations.
    fn filled(&self) -> Vec<u32>;

    /// The operations of a part.
    fn load(&self, part: u32) -> Result<Part, Self::Error>;

    /// The operations of some transactions, which are sorted by index.
    fn gather(&self, nodes: &[Node]) -> Result<History, Self::Error>;

    /// The whole history, which is an error if it isn't in memory.
    fn whole(&self) -> Result<&History, Self::Error>;

    /// A history with only the operations on these rows, and the index of each of its transactions in
    /// the whole one.
    fn only_rows(&self, rows: &FxHashSet<Row>) -> Result<(History, Vec<Node>), Self::Error> {
        Ok(sorted(self.frame(), &pick_rows(self, rows)?))
    }
}

/// All operations on some rows.
#[derive(Debug)]
pub(super) struct Part {
    /// The transactions with such operations, and only these operations.
    pub(super) history: History,
    /// The index of each transaction in the whole history.
    pub(super) nodes: Vec<Node>,
    /// The position of each operation in the whole history.
    pub(super) records: Vec<u32>,
}

impl Part {
    /// A part without operations.
    pub(super) fn new(frame: &History) -> Part {
        Part { history: frame.blank(), nodes: Vec::new(), records: Vec::new() }
    }

    /// Makes this transaction the one to which operations are added.
    pub(super) fn of(&mut self, node: Node) {
        if self.nodes.last() != Some(&node) {
            self.end();
            self.nodes.push(node);
        }
    }

    fn end(&mut self) {
        if !self.nodes.is_empty() {
            self.history.end_operations();
        }
    }

    /// Ends the last transaction.
    pub(super) fn finish(&mut self, frame: &History) {
        self.end();
        self.history.set_transactions(frame, &self.nodes);
    }

    /// The position of a transaction in this part.
    pub(super) fn local(&self, node: Node) -> Option<Node> {
        self.nodes.binary_search(&node).ok().and_then(|local| Node::try_from(local).ok())
    }

    /// The commit status of each transaction, given that of all.
    pub(super) fn status(&self, all: &[CommitStatus]) -> Vec<CommitStatus> {
        self.nodes.iter().map(|node| all[*node as usize]).collect()
    }
}

/// The part that has a row. All groups of a table are in the same part, because a row belongs to
/// one of them only.
pub(super) fn part_of(row: &Row, parts: u32) -> u32 {
    let (class, id) = match row.class {
        Class::Register => (0, row.id),
        Class::List => (1, row.id),
        Class::Group => (2, 0),
    };
    let mixed =
        (id.cast_unsigned() ^ u64::from(row.table) << 48 ^ class << 46).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let high = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
    u32::try_from((high * u64::from(parts)) >> 32).unwrap_or(0)
}

/// Adds the rows that a transaction of unknown outcome wrote.
pub(super) fn note_unsure(rows: &mut FxHashSet<Row>, transaction: &Transaction, operation: &Operation<'_>) {
    let writes =
        matches!(operation, Operation::Write { .. } | Operation::Append { .. } | Operation::Insert { .. });
    if transaction.outcome == TransactionOutcome::Unknown && writes {
        rows.insert(Row::of(operation));
    }
}

/// What is common to the examinations of all parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'s> {
    /// The status of all transactions.
    pub(super) status: &'s [CommitStatus],
    /// See [`Context::complete`].
    pub(super) complete: bool,
    /// See [`Context::vouched`].
    pub(super) vouched: bool,
    /// See [`Context::assume`].
    pub(super) assume: bool,
    /// The promises to the transactions, if they differ.
    pub(super) each: Option<&'s ToEach>,
}

impl Setting<'_> {
    /// Examines a part in its context.
    pub(super) fn within<T>(&self, part: &Part, work: impl FnOnce(Context<'_>, &Rows) -> T) -> T {
        let status = part.status(self.status);
        let inserts = OnceCell::new();
        let context = Context {
            history: &part.history,
            status: &status,
            complete: self.complete,
            vouched: self.vouched,
            assume: self.assume,
            inserts: &inserts,
        };
        work(context, &Rows::new(&part.history))
    }
}

/// Does work on parts, by several threads if there is much to do. Each thread has a state of its
/// own, and takes the next part when it is done with one. Returns the states.
pub(super) fn each_part<S: Source, T: Send>(
    source: &S,
    parts: &[u32],
    start: impl Fn() -> T + Sync,
    work: impl Fn(&mut T, u32, &Part) + Sync,
) -> Result<Vec<T>, S::Error> {
    let next = AtomicU32::new(0);
    let failed: Mutex<Option<S::Error>> = Mutex::new(None);
    let run = || {
        let mut state = start();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            match source.load(*part) {
                Ok(loaded) => work(&mut state, *part, &loaded),
                Err(error) => {
                    next.store(u32::MAX / 2, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            }
        }
        state
    };
    let share = source.operations() * parts.len() as u64 / u64::from(source.parts().max(1));
    let threads = match source.pieces() {
        Pieces::Smallest if parts.len() < 32 => 1,
        Pieces::Smallest => 2,
        Pieces::Usual | Pieces::Whole if share < WORTH_THREADS => 1,
        Pieces::Usual | Pieces::Whole => threads().min(parts.len()),
    };
    let states = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut states = vec![run()];
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(states),
    }
}

/// The number of threads.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
}

/// The operations on these rows.
pub(super) fn pick_rows<S: Source>(source: &S, rows: &FxHashSet<Row>) -> Result<Vec<Picked>, S::Error> {
    let mut parts: Vec<u32> = rows.iter().map(|row| part_of(row, source.parts())).collect();
    parts.sort_unstable();
    parts.dedup();
    each_part(
        source,
        &parts,
        || Picked::new(source.frame()),
        |picked, _, part| {
            picked.pick(part, |_, operation| rows.contains(&Row::of(operation)));
        },
    )
}

/// Operations picked from parts.
pub(super) struct Picked {
    pool: History,
    /// The transaction, the position in the whole history, and that in the pool.
    places: Vec<(Node, u32, usize)>,
}

impl Picked {
    /// None so far.
    pub(super) fn new(frame: &History) -> Picked {
        Picked { pool: frame.blank(), places: Vec::new() }
    }

    /// The operations, each with its transaction, its position in the whole history and its statement.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Node, u32, Operation<'_>, Option<u16>)> {
        self.places.iter().map(|(node, record, at)| {
            (*node, *record, self.pool.operation(*at), self.pool.statement_number(*at))
        })
    }

    /// Adds an operation.
    pub(super) fn add(&mut self, node: Node, record: u32, operation: Operation<'_>, statement: Option<u16>) {
        self.places.push((node, record, self.pool.operation_count()));
        self.pool.push_operation(operation, statement);
    }

    /// Picks the operations of a part that are wanted.
    pub(super) fn pick(&mut self, part: &Part, wanted: impl Fn(Node, &Operation<'_>) -> bool) {
        for (local, node) in part.nodes.iter().enumerate() {
            for record in part.history.range(local) {
                if wanted(*node, &part.history.operation(record)) {
                    self.places.push((*node, part.records[record], self.pool.operation_count()));
                    self.pool.push_copy(&part.history, record);
                }
            }
        }
    }
}

/// The operations that were picked, in order, and the index of each transaction that has some.
pub(super) fn sorted(frame: &History, picked: &[Picked]) -> (History, Vec<Node>) {
    let mut all: Vec<(Node, u32, usize, usize)> = Vec::new();
    for (number, picked) in picked.iter().enumerate() {
        all.extend(picked.places.iter().map(|(node, record, at)| (*node, *record, number, *at)));
    }
    all.sort_unstable();
    let mut part = Part::new(frame);
    for (node, _, number, at) in all {
        part.of(node);
        part.history.push_copy(&picked[number].pool, at);
    }
    part.finish(frame);
    (part.history, part.nodes)
}

/// Places of operations, a few bytes each.
#[derive(Debug, Default)]
struct Places {
    bytes: Vec<u8>,
    node: Node,
    record: u32,
}

impl Places {
    fn push(&mut self, node: Node, record: u32) {
        number(&mut self.bytes, u64::from(node - self.node));
        number(&mut self.bytes, u64::from(record - self.record));
        (self.node, self.record) = (node, record);
    }
}

/// The parts of a history in memory.
#[derive(Debug)]
pub(super) struct MemoryParts<'h> {
    history: &'h History,
    transactions: u32,
    pieces: Pieces,
    places: Vec<Places>,
    unsure_rows: FxHashSet<Row>,
}

impl<'h> MemoryParts<'h> {
    /// Finds the parts of the first `transactions` of a history.
    pub(super) fn new(history: &'h History, transactions: u32, pieces: Pieces) -> MemoryParts<'h> {
        let size = if pieces == Pieces::Smallest { 1 } else { PART };
        let parts = (history.operation_count() / size).clamp(1, MOST_PARTS);
        let mut places: Vec<Places> = Vec::new();
        places.resize_with(parts, Places::default);
        let count = u32::try_from(parts).unwrap_or(1);
        let mut unsure_rows = FxHashSet::default();
        let mut record = 0;
        for (node, transaction) in (0..transactions).zip(history.transactions()) {
            for operation in history.operations(node as usize) {
                places[part_of(&Row::of(&operation), count) as usize].push(node, record);
                note_unsure(&mut unsure_rows, transaction, &operation);
                record += 1;
            }
        }
        MemoryParts { history, transactions, pieces, places, unsure_rows }
    }
}

impl Source for MemoryParts<'_> {
    type Error = Infallible;

    fn frame(&self) -> &History {
        self.history
    }

    fn transactions(&self) -> u32 {
        self.transactions
    }

    fn operations(&self) -> u64 {
        self.history.operation_count() as u64
    }

    fn parts(&self) -> u32 {
        u32::try_from(self.places.len()).unwrap_or(1)
    }

    fn pieces(&self) -> Pieces {
        self.pieces
    }

    fn unsure_rows(&self) -> &FxHashSet<Row> {
        &self.unsure_rows
    }

    fn filled(&self) -> Vec<u32> {
        (0..).zip(&self.places).filter(|(_, places)| !places.bytes.is_empty()).map(|(part, _)| part).collect()
    }

    fn load(&self, part: u32) -> Result<Part, Infallible> {
        let mut bytes = self.places[part as usize].bytes.as_slice();
        let mut part = Part::new(self.history);
        let (mut node, mut record) = (0, 0);
        let mut ends = Vec::new();
        while !bytes.is_empty() {
            node += take_node(&mut bytes);
            record += take_node(&mut bytes);
            if part.nodes.last() != Some(&node) {
                ends.push(part.records.len());
                part.nodes.push(node);
            }
            part.records.push(record);
        }
        if !part.nodes.is_empty() {
            ends.push(part.records.len());
        }
        part.history.push_copies(self.history, &part.records);
        part.history.set_ends(ends.split_off(ends.len().min(1)));
        part.history.set_transactions(self.history, &part.nodes);
        Ok(part)
    }

    fn gather(&self, nodes: &[Node]) -> Result<History, Infallible> {
        let mut some = self.history.blank();
        for node in nodes {
            let node = *node as usize;
            self.history.range(node).for_each(|record| some.push_copy(self.history, record));
            some.end_transaction(self.history.transactions()[node]);
        }
        Ok(some)
    }

    fn whole(&self) -> Result<&History, Infallible> {
        Ok(self.history)
    }
}
