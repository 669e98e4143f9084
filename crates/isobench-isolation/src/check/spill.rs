//! The parts of a recording that isn't kept in memory as a history: some ten bytes per operation,
//! in memory as long as they are few, then in a temporary file.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Pieces;
use super::dependencies::{MOST_TRANSACTIONS, Node};
use super::numbers::{take_node, take_number};
use super::parts::{Part, Picked, Source, each_part, note_unsure, part_of, sorted};
use super::rows::Row;
use crate::history::binary::encode::number;
use crate::history::binary::{unzigzag, zigzag};
use crate::history::{FormatError, History, Key, Operation, Version};

/// The number of parts. Each has a buffer.
pub(super) const PARTS: u32 = 1 << 10;

/// The size at which a buffer is put away, in bytes.
const BLOCK: usize = 1 << 15;

/// The most bytes that are kept in memory.
const MEMORY: usize = 64 << 20;

/// The reason why a part can't be read.
#[derive(Debug)]
pub(super) enum SpillError {
    /// The temporary file can't be read, or another machine can't be asked.
    Io(io::Error),
    /// The whole history is needed.
    WholeNeeded,
}

/// The parts of a recording.
#[derive(Debug)]
pub(super) struct Spill {
    /// The transactions without their operations.
    frame: History,
    /// The number of transactions that are checked.
    transactions: u32,
    operations: u64,
    pieces: Pieces,
    parts: Vec<PartBytes>,
    /// The bytes in blocks in memory.
    held: usize,
    file: Option<File>,
    /// The length of the file.
    length: u64,
    unsure_rows: FxHashSet<Row>,
    /// What other machines have added, if several check the history together.
    shared: Option<Shared>,
}

/// The operations that each machine has added to the parts of this one.
#[derive(Debug)]
struct Shared {
    /// This machine's number; its own operations are in [`Spill::parts`].
    rank: usize,
    /// The number of the first transaction and the position of the first operation of each machine.
    starts: Vec<(Node, u32)>,
    /// The parts of each other machine.
    parts: Vec<FxHashMap<u32, PartBytes>>,
}

/// The operations that one machine has added to a part.
pub(super) struct Stretch {
    /// The number of the machine's first transaction, and the position of its first operation.
    pub(super) start: (Node, u32),
    pub(super) bytes: Vec<u8>,
}

/// The operations of a part.
#[derive(Debug, Default)]
struct PartBytes {
    blocks: Vec<Block>,
    /// The last block, which isn't full.
    open: Vec<u8>,
    /// The transaction and the position of the last operation.
    last: (Node, u32),
}

#[derive(Debug)]
enum Block {
    Memory(Vec<u8>),
    /// A part of the file.
    File {
        offset: u64,
        length: usize,
    },
}

/// The kinds of operations in a part's bytes; two bits above tell which parts of a version follow.
mod kind {
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const INSERT: u64 = 2;
    pub const APPEND: u64 = 3;
    pub const READ_LIST: u64 = 4;
    pub const READ_GROUP: u64 = 5;
    pub const MISSED: u64 = 6;
}

impl Spill {
    /// Without transactions; `frame` has the tables and the provenance.
    pub(super) fn new(frame: History) -> Spill {
        let mut parts = Vec::new();
        parts.resize_with(PARTS as usize, PartBytes::default);
        Spill {
            frame,
            transactions: 0,
            operations: 0,
            pieces: Pieces::Usual,
            parts,
            held: 0,
            file: None,
            length: 0,
            unsure_rows: FxHashSet::default(),
            shared: None,
        }
    }

    /// Moves start and end of all transactions apart ([`crate::history::Transaction::widen`]).
    pub(super) fn widen(&mut self, within: u64) {
        self.frame.widen(within);
    }

    /// Sets the number of missing transactions.
    pub(super) fn set_dropped(&mut self, transactions: u64) {
        self.frame.set_dropped(transactions);
    }

    /// Sets the sizes of what is examined at a time.
    pub(super) fn set_pieces(&mut self, pieces: Pieces) {
        self.pieces = pieces;
    }

    /// Adds the transactions of a chunk.
    ///
    /// # Errors
    /// The temporary file can't be written.
    pub(super) fn add(&mut self, chunk: &History) -> io::Result<()> {
        let observed = self.frame.provenance().is_some();
        for (index, transaction) in chunk.transactions().iter().enumerate() {
            self.frame.push_frame(*transaction);
            let range = chunk.range(index);
            self.operations += range.len() as u64;
            let fits = self.transactions < MOST_TRANSACTIONS && u32::try_from(self.operations).is_ok();
            if !fits || (self.transactions as usize) + 1 < self.frame.transactions().len() {
                continue;
            }
            let node = self.transactions;
            self.transactions += 1;
            let first = self.operations - range.len() as u64;
            for (record, at) in (first..).zip(range) {
                let operation = chunk.operation(at);
                note_unsure(&mut self.unsure_rows, transaction, &operation);
                let part = part_of(&Row::of(&operation), PARTS) as usize;
                let own = &mut self.parts[part];
                let record = u32::try_from(record).unwrap_or(u32::MAX);
                number(&mut own.open, u64::from(node - own.last.0));
                number(&mut own.open, u64::from(record - own.last.1));
                own.last = (node, record);
                encode(&mut own.open, transaction.id, &operation);
                if observed {
                    let statement = chunk.statement_number(at);
                    number(&mut own.open, statement.map_or(0, |statement| u64::from(statement) + 1));
                }
                if own.open.len() >= BLOCK {
                    self.put_away(part)?;
                }
            }
        }
        Ok(())
    }

    /// Ends a part's open block.
    fn put_away(&mut self, part: usize) -> io::Result<()> {
        if self.held + self.parts[part].open.len() <= MEMORY {
            let own = &mut self.parts[part];
            self.held += own.open.len();
            own.open.shrink_to_fit();
            own.blocks.push(Block::Memory(std::mem::take(&mut own.open)));
            return Ok(());
        }
        let mut open = std::mem::take(&mut self.parts[part].open);
        let block = self.put_into_file(&open)?;
        open.clear();
        let own = &mut self.parts[part];
        own.blocks.push(block);
        own.open = open;
        Ok(())
    }

    fn put_into_file(&mut self, bytes: &[u8]) -> io::Result<Block> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        file.write_all(bytes)?;
        self.file = Some(file);
        let block = Block::File { offset: self.length, length: bytes.len() };
        self.length += bytes.len() as u64;
        Ok(block)
    }

    /// Prepares for what other machines add: this one is the one of this number, and each has so many
    /// transactions and operations. The history is that of all, one after the other; `frame` has
    /// its transactions. `None`, without a change, if there are too many.
    pub(super) fn share(&mut self, rank: usize, counts: &[(u64, u64)]) -> Option<()> {
        let (mut starts, mut transactions, mut operations) = (Vec::new(), 0_u64, 0_u64);
        for (more_transactions, more_operations) in counts {
            starts.push((u32::try_from(transactions).ok()?, u32::try_from(operations).ok()?));
            transactions += more_transactions;
            operations += more_operations;
        }
        let transactions = u32::try_from(transactions).ok().filter(|count| *count <= MOST_TRANSACTIONS)?;
        u32::try_from(operations).ok()?;
        let mut parts = Vec::new();
        parts.resize_with(counts.len(), FxHashMap::default);
        (self.transactions, self.operations) = (transactions, operations);
        self.shared = Some(Shared { rank, starts, parts });
        Some(())
    }

    /// The numbers of the transactions that this machine has added.
    pub(super) fn own_nodes(&self) -> Range<Node> {
        let Some(Shared { rank, starts, .. }) = &self.shared else { return 0..self.transactions };
        let end = starts.get(rank + 1).map_or(self.transactions, |(node, _)| *node);
        starts[*rank].0..end
    }

    /// Replaces the transactions by those of all machines.
    pub(super) fn set_frame(&mut self, frame: History) {
        self.frame = frame;
    }

    /// Takes what this machine has added to a part, in pieces.
    ///
    /// # Errors
    /// The temporary file can't be read.
    pub(super) fn take_part(&mut self, part: u32) -> io::Result<Vec<Vec<u8>>> {
        let own = std::mem::take(&mut self.parts[part as usize]);
        let mut pieces = Vec::new();
        for block in own.blocks {
            pieces.push(match block {
                Block::Memory(bytes) => {
                    self.held -= bytes.len();
                    bytes
                }
                Block::File { offset, length } => self.read(offset, length)?,
            });
        }
        if !own.open.is_empty() {
            pieces.push(own.open);
        }
        Ok(pieces)
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        if let Some(file) = &self.file {
            file.read_exact_at(&mut bytes, offset)?;
        }
        Ok(bytes)
    }

    /// Adds a piece that another machine has added to a part of this one.
    ///
    /// # Errors
    /// The temporary file can't be written.
    pub(super) fn put(&mut self, from: usize, part: u32, bytes: Vec<u8>) -> io::Result<()> {
        let block = if self.held + bytes.len() <= MEMORY {
            self.held += bytes.len();
            Block::Memory(bytes)
        } else {
            self.put_into_file(&bytes)?
        };
        let shared = self.shared.as_mut().and_then(|shared| shared.parts.get_mut(from));
        if let Some(parts) = shared {
            parts.entry(part).or_default().blocks.push(block);
        }
        Ok(())
    }

    /// Adds rows that transactions of unknown outcome wrote elsewhere.
    pub(super) fn add_unsure_rows(&mut self, rows: impl IntoIterator<Item = Row>) {
        self.unsure_rows.extend(rows);
    }

    /// The operations of a part, machine by machine.
    ///
    /// # Errors
    /// The temporary file can't be read.
    pub(super) fn stretches(&self, part: u32) -> Result<Vec<Stretch>, SpillError> {
        let own = &self.parts[part as usize];
        let Some(shared) = &self.shared else {
            return Ok(vec![Stretch { start: (0, 0), bytes: self.bytes(own)? }]);
        };
        let mut all = Vec::new();
        for (number, (start, parts)) in shared.starts.iter().zip(&shared.parts).enumerate() {
            let bytes = if number == shared.rank { Some(own) } else { parts.get(&part) };
            if let Some(bytes) = bytes {
                all.push(Stretch { start: *start, bytes: self.bytes(bytes)? });
            }
        }
        Ok(all)
    }

    fn bytes(&self, part: &PartBytes) -> Result<Vec<u8>, SpillError> {
        let mut all = Vec::new();
        for block in &part.blocks {
            match block {
                Block::Memory(bytes) => all.extend_from_slice(bytes),
                Block::File { offset, length } => {
                    all.extend(self.read(*offset, *length).map_err(SpillError::Io)?);
                }
            }
        }
        all.extend_from_slice(&part.open);
        Ok(all)
    }
}

/// The whole history of a source that has it in parts.
///
/// # Errors
/// A part can't be read.
pub(super) fn whole<S: Source>(source: &S) -> Result<History, S::Error> {
    let mut history = source.frame().clone();
    history.keep_first(source.transactions() as usize);
    history.make_room(usize::try_from(source.operations()).unwrap_or(usize::MAX));
    for part in source.filled() {
        let part = source.load(part)?;
        for (local, node) in part.nodes.iter().enumerate() {
            for at in part.history.range(local) {
                history.put(*node as usize, part.records[at] as usize, &part.history, at);
            }
        }
    }
    history.settle();
    Ok(history)
}

/// The part of a history with these transactions that has these operations.
pub(super) fn part_of_stretches(frame: &History, stretches: &[Stretch]) -> Part {
    let observed = frame.provenance().is_some();
    let (mut part, mut list) = (Part::new(frame), Vec::new());
    for Stretch { start, bytes } in stretches {
        let ((mut node, mut record), mut bytes) = (*start, bytes.as_slice());
        while !bytes.is_empty() {
            node += take_node(&mut bytes);
            record += take_node(&mut bytes);
            part.of(node);
            let operation = decode(&mut bytes, &mut list);
            let statement = if observed { take_number(&mut bytes) } else { 0 };
            let statement = statement.checked_sub(1).and_then(|statement| u16::try_from(statement).ok());
            part.history.push_operation(operation, statement);
            part.records.push(record);
        }
    }
    part.finish(frame);
    part.history.add_own();
    part
}

/// Appends an operation. Of values and elements it is the distance from the number of the
/// transaction, to which they are often close.
pub(super) fn encode(bytes: &mut Vec<u8>, own: u64, operation: &Operation<'_>) {
    let distance = |version: Version| Version {
        value: version.value.map(|value| value.wrapping_sub(own.cast_signed())),
        ..version
    };
    let mut head = |kind: u64, version: Version, table: u16, id: i64| {
        let parts = u64::from(version.counter.is_some()) | u64::from(version.value.is_some()) << 1;
        number(bytes, kind | parts << 3);
        number(bytes, u64::from(table));
        number(bytes, zigzag(id));
        version.counter.into_iter().for_each(|counter| number(bytes, counter));
        version.value.into_iter().for_each(|value| number(bytes, zigzag(value)));
    };
    match *operation {
        Operation::Read { key, version } => head(kind::READ, distance(version), key.table, key.id),
        Operation::Write { key, version } => head(kind::WRITE, distance(version), key.table, key.id),
        Operation::Insert { key, group } => head(kind::INSERT, Version::valued(group), key.table, key.id),
        Operation::Append { key, element } => {
            head(kind::APPEND, distance(Version::valued(element)), key.table, key.id);
        }
        Operation::Missed { key, after, before } => {
            let value = before.map(u64::cast_signed);
            head(kind::MISSED, Version { counter: after, value }, key.table, key.id);
        }
        Operation::ReadList { key, elements } => {
            head(kind::READ_LIST, Version::INITIAL, key.table, key.id);
            encode_list(bytes, elements);
        }
        Operation::ReadGroup { table, group, rows } => {
            head(kind::READ_GROUP, Version::INITIAL, table, group);
            encode_list(bytes, rows);
        }
    }
}

fn encode_list(bytes: &mut Vec<u8>, list: &[i64]) {
    number(bytes, list.len() as u64);
    for element in list {
        number(bytes, zigzag(*element));
    }
}

/// Takes an operation that [`encode`] wrote, with the distances; `list` holds the elements of a list.
pub(super) fn decode<'l>(bytes: &mut &[u8], list: &'l mut Vec<i64>) -> Operation<'l> {
    let head = take_number(bytes);
    let table = u16::try_from(take_number(bytes)).unwrap_or(u16::MAX);
    let key = Key { table, id: unzigzag(take_number(bytes)) };
    let counter = (head & 8 != 0).then(|| take_number(bytes));
    let value = (head & 16 != 0).then(|| unzigzag(take_number(bytes)));
    let version = Version { counter, value };
    match head & 7 {
        kind::READ => Operation::Read { key, version },
        kind::WRITE => Operation::Write { key, version },
        kind::INSERT => Operation::Insert { key, group: value.unwrap_or(0) },
        kind::APPEND => Operation::Append { key, element: value.unwrap_or(0) },
        kind::MISSED => Operation::Missed { key, after: counter, before: value.map(i64::cast_unsigned) },
        other => {
            list.clear();
            let count = take_number(bytes);
            list.extend((0..count).map(|_| unzigzag(take_number(bytes))));
            match other {
                kind::READ_LIST => Operation::ReadList { key, elements: list },
                _ => Operation::ReadGroup { table, group: key.id, rows: list },
            }
        }
    }
}

impl Source for Spill {
    type Error = SpillError;

    fn frame(&self) -> &History {
        &self.frame
    }

    fn transactions(&self) -> u32 {
        self.transactions
    }

    fn operations(&self) -> u64 {
        self.operations
    }

    fn parts(&self) -> u32 {
        PARTS
    }

    fn pieces(&self) -> Pieces {
        self.pieces
    }

    fn unsure_rows(&self) -> &FxHashSet<Row> {
        &self.unsure_rows
    }

    fn filled(&self) -> Vec<u32> {
        let filled = |part: &PartBytes| !part.open.is_empty() || !part.blocks.is_empty();
        let shared = self.shared.iter().flat_map(|shared| &shared.parts);
        let others: FxHashSet<u32> = shared.flat_map(|parts| parts.keys().copied()).collect();
        let all = (0..).zip(&self.parts);
        all.filter(|(number, part)| filled(part) || others.contains(number))
            .map(|(number, _)| number)
            .collect()
    }

    fn load(&self, part: u32) -> Result<Part, SpillError> {
        Ok(part_of_stretches(&self.frame, &self.stretches(part)?))
    }

    fn gather(&self, nodes: &[Node]) -> Result<History, SpillError> {
        Ok(gathered(&self.frame, nodes, &pick_nodes(self, nodes)?))
    }

    fn whole(&self) -> Result<&History, SpillError> {
        Err(SpillError::WholeNeeded)
    }
}

/// The operations of these transactions.
pub(super) fn pick_nodes(spill: &Spill, nodes: &[Node]) -> Result<Vec<Picked>, SpillError> {
    let wanted: FxHashSet<Node> = nodes.iter().copied().collect();
    each_part(
        spill,
        &spill.filled(),
        || Picked::new(&spill.frame),
        |picked, _, part| picked.pick(part, |node, _| wanted.contains(&node)),
    )
}

/// The history of these transactions, given all their operations.
pub(super) fn gathered(frame: &History, nodes: &[Node], picked: &[Picked]) -> History {
    let (history, with) = sorted(frame, picked);
    let mut all = frame.blank();
    let mut own = with.iter().enumerate().peekable();
    for node in nodes {
        if let Some((local, _)) = own.next_if(|(_, with)| *with == node) {
            history.range(local).for_each(|at| all.push_copy(&history, at));
        }
        all.end_transaction(frame.transactions()[*node as usize]);
    }
    all
}

impl fmt::Display for SpillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpillError::Io(error) => error.fmt(f),
            SpillError::WholeNeeded => f.write_str("the whole history is needed"),
        }
    }
}

impl From<SpillError> for FormatError {
    fn from(error: SpillError) -> FormatError {
        match error {
            SpillError::Io(error) => error.into(),
            SpillError::WholeNeeded => io::Error::other(SpillError::WholeNeeded.to_string()).into(),
        }
    }
}
