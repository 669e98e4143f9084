//! The parts of a recording that isn't kept in memory as a history: some ten bytes per operation,
//! in memory as long as they are few, then in a temporary file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use rustc_hash::FxHashSet;

use super::Pieces;
use super::dependencies::{MOST_TRANSACTIONS, Node};
use super::parts::{Part, Picked, Source, each_part, note_unsure, part_of, sorted, take_node, take_number};
use super::rows::Row;
use crate::history::binary::encode::number;
use crate::history::binary::{unzigzag, zigzag};
use crate::history::{FormatError, History, Key, Operation, Version};

/// The number of parts. Each has a buffer.
const PARTS: u32 = 1 << 10;

/// The size at which a buffer is put away, in bytes.
const BLOCK: usize = 1 << 15;

/// The most bytes that are kept in memory.
const MEMORY: usize = 256 << 20;

/// The reason why a part can't be read.
#[derive(Debug)]
pub(super) enum SpillError {
    /// The temporary file can't be read.
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
        }
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
        let own = &mut self.parts[part];
        if self.held + own.open.len() <= MEMORY {
            self.held += own.open.len();
            own.open.shrink_to_fit();
            own.blocks.push(Block::Memory(std::mem::take(&mut own.open)));
            return Ok(());
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        file.write_all(&own.open)?;
        self.file = Some(file);
        own.blocks.push(Block::File { offset: self.length, length: own.open.len() });
        self.length += own.open.len() as u64;
        own.open.clear();
        Ok(())
    }

    /// The whole history.
    ///
    /// # Errors
    /// The temporary file can't be read.
    pub(super) fn into_history(self) -> Result<History, SpillError> {
        let mut history = self.frame.clone();
        history.keep_first(self.transactions as usize);
        history.make_room(usize::try_from(self.operations).unwrap_or(usize::MAX));
        for part in self.filled() {
            let part = self.load(part)?;
            for (local, node) in part.nodes.iter().enumerate() {
                for at in part.history.range(local) {
                    history.put(*node as usize, part.records[at] as usize, &part.history, at);
                }
            }
        }
        history.settle();
        Ok(history)
    }
}

/// Appends an operation. Of values and elements it is the distance from the number of the
/// transaction, to which they are often close.
fn encode(bytes: &mut Vec<u8>, own: u64, operation: &Operation<'_>) {
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
fn decode<'l>(bytes: &mut &[u8], list: &'l mut Vec<i64>) -> Operation<'l> {
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
        (0..).zip(&self.parts).filter(|(_, part)| filled(part)).map(|(part, _)| part).collect()
    }

    fn load(&self, part: u32) -> Result<Part, SpillError> {
        let own = &self.parts[part as usize];
        let mut all = Vec::new();
        for block in &own.blocks {
            match (block, &self.file) {
                (Block::Memory(bytes), _) => all.extend_from_slice(bytes),
                (Block::File { offset, length }, Some(file)) => {
                    let start = all.len();
                    all.resize(start + length, 0);
                    file.read_exact_at(&mut all[start..], *offset).map_err(SpillError::Io)?;
                }
                (Block::File { .. }, None) => {}
            }
        }
        all.extend_from_slice(&own.open);
        let observed = self.frame.provenance().is_some();
        let (mut part, mut bytes, mut list) = (Part::new(&self.frame), all.as_slice(), Vec::new());
        let (mut node, mut record) = (0, 0);
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
        part.finish(&self.frame);
        part.history.add_own();
        Ok(part)
    }

    fn gather(&self, nodes: &[Node]) -> Result<History, SpillError> {
        let parts = self.filled();
        let wanted: FxHashSet<Node> = nodes.iter().copied().collect();
        let picked = each_part(
            self,
            &parts,
            || Picked::new(&self.frame),
            |picked, _, part| picked.pick(part, |node, _| wanted.contains(&node)),
        )?;
        let (history, with) = sorted(&self.frame, &picked);
        let mut all = self.frame.blank();
        let mut own = with.iter().enumerate().peekable();
        for node in nodes {
            if let Some((local, _)) = own.next_if(|(_, with)| *with == node) {
                history.range(local).for_each(|at| all.push_copy(&history, at));
            }
            all.end_transaction(self.frame.transactions()[*node as usize]);
        }
        Ok(all)
    }

    fn whole(&self) -> Result<&History, SpillError> {
        Err(SpillError::WholeNeeded)
    }
}

impl From<SpillError> for FormatError {
    fn from(error: SpillError) -> FormatError {
        match error {
            SpillError::Io(error) => error.into(),
            SpillError::WholeNeeded => io::Error::other("the whole history is needed").into(),
        }
    }
}
