//! Encodes chunks. This is on a benchmark's hot path, so only the chunk itself is allocated.
//!
//! | transaction | |
//! |---|---|
//! | varint | only if its modes are known: 3 + 4 × level (0 read uncommitted to 3 serializable) + 16 if read only + 32 if deferrable. The lowest two bits are 3 in no other first number |
//! | varint | number of operations × 8 + (4 if the end is unknown) + outcome (0 committed, 1 aborted, 2 unknown) |
//! | signed varint | its number, less that of the one before in this chunk (0 before the first) |
//! | varint | client |
//! | signed varint | begin, likewise |
//! | varint | end less begin; missing if the end is unknown |
//! | operations | one after the other |
//!
//! | operation | |
//! |---|---|
//! | 1 byte | bits 0 to 2: 0 read, 1 write, 2 insert, 3 append, 4 read of a list, 5 read of a group, 6 row that a search missed. Bit 3: same table as the operation before. Bit 4: same key. Bit 5: a counter follows. Bits 6 and 7: the value; 0 none, 1 as it is, 2 as the difference to the transaction's number, 3 it is the transaction's number |
//! | varint | table, if it isn't the same |
//! | signed varint | key (of a group's read: the group), less that of the operation before; missing if it is the same |
//! | signed varint | counter, less that of the last operation before that had one; if bit 5 is set |
//! | signed varint | value, or its difference; if bits 6 and 7 are 1 or 2. An append's element is its value |
//! | signed varint | of an insert: the group |
//! | varint | in an observed history, of a read, a write or a row missed: the statement's number + 1, or 0 |
//! | list | of a read of a list or a group: varint, how many; for each a signed varint, the difference to the one before (to 0 for the first) |
//!
//! Before a transaction's first operation table, key and counter are 0. Inserts and reads of lists and groups have
//! no value and no counter, appends no counter. A missed row has *after* as its counter and *before* as its value,
//! each only if there is one.
//!
//! Not here: header, trailer and numbers (`binary.rs`).

use super::super::{Draft, FormatError, History, Kind, Record, Transaction, TransactionOutcome};
use super::{CHUNK, CHUNK_HEAD, MODE, OPEN_END, Reference, bits, chunk_checksum, read_chunk, value, zigzag};

/// Collects transactions of one thread into chunks.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Space for the head, followed by the transactions.
    bytes: Vec<u8>,
    transactions: u64,
    /// The number of the last transaction.
    id: u64,
    begin: u64,
    /// True if operations have the numbers of their statements.
    statements: bool,
}

impl Encoder {
    /// An empty encoder.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// An empty encoder for the transactions of a history like this one.
    pub(super) fn like(history: &History) -> Encoder {
        Encoder { statements: history.provenance().is_some(), ..Encoder::default() }
    }

    /// Adds a transaction.
    pub fn push(&mut self, transaction: &Transaction, operations: &Draft) {
        if self.bytes.is_empty() {
            self.bytes.resize(CHUNK_HEAD, 0);
        }
        let Transaction { id, client, begin, end, outcome, mode } = *transaction;
        let bytes = &mut self.bytes;
        // The maximum size, so that the vector grows in one place: a first byte and three numbers
        // for each operation, and the numbers read.
        bytes.reserve(50 + operations.records.len() * 37 + operations.numbers.len() * 10);
        if let Some(mode) = mode {
            number(bytes, mode.code() << 2 | MODE);
        }
        let open = end == u64::MAX;
        let head = (operations.records.len() as u64) << 3 | if open { OPEN_END } else { 0 } | code(outcome);
        number(bytes, head);
        difference(bytes, id, self.id);
        number(bytes, u64::from(client));
        difference(bytes, begin, self.begin);
        if !open {
            number(bytes, end.wrapping_sub(begin));
        }
        let mut before = Reference::START;
        for record in &operations.records {
            operation(bytes, record, &operations.numbers, id, &mut before);
            if self.statements && record.has_statement() {
                number(bytes, u64::from(record.length));
            }
        }
        (self.id, self.begin) = (id, begin);
        self.transactions += 1;
    }

    /// Adds the transactions of a chunk that another process has made of the same tables. Their
    /// times are widened by `within` nanoseconds on both sides, by which that process's clock may
    /// be wrong.
    ///
    /// # Errors
    /// The chunk is damaged.
    pub fn adopt(&mut self, chunk: &[u8], tables: &[String], within: u64) -> Result<(), FormatError> {
        let mut history = History::new(tables.to_vec());
        read_chunk(chunk, &mut history)?;
        let mut draft = Draft::new();
        for (index, transaction) in history.transactions().iter().enumerate() {
            draft.fill(&history, index);
            let mut transaction = *transaction;
            transaction.widen(within);
            self.push(&transaction, &draft);
        }
        Ok(())
    }

    /// The size of the chunk so far, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if the chunk has no transactions.
    pub fn is_empty(&self) -> bool {
        self.transactions == 0
    }

    /// The number of transactions in the chunk so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Returns the finished chunk, empty if there are no transactions, and starts the next one.
    pub fn take(&mut self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let next = Vec::with_capacity(self.bytes.capacity());
        let mut chunk = std::mem::replace(&mut self.bytes, next);
        let (head, body) = chunk.split_at_mut(CHUNK_HEAD);
        head[0] = CHUNK;
        head[1..9].copy_from_slice(&(body.len() as u64).to_le_bytes());
        head[9..17].copy_from_slice(&self.transactions.to_le_bytes());
        let sum = chunk_checksum(&head[..17], body);
        head[17..].copy_from_slice(&sum.to_le_bytes());
        (self.transactions, self.id, self.begin) = (0, 0, 0);
        chunk
    }
}

/// The code of an outcome: its index in [`TransactionOutcome::ALL`].
const fn code(outcome: TransactionOutcome) -> u64 {
    match outcome {
        TransactionOutcome::Committed => 0,
        TransactionOutcome::Aborted => 1,
        TransactionOutcome::Unknown => 2,
    }
}

/// The code of a kind: its index in `super::KINDS`.
const fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Read => 0,
        Kind::Write => 1,
        Kind::Insert => 2,
        Kind::Append => 3,
        Kind::ReadList => 4,
        Kind::ReadGroup => 5,
        Kind::Missed => 6,
    }
}

fn operation(bytes: &mut Vec<u8>, record: &Record, numbers: &[i64], own: u64, before: &mut Reference) {
    let same_table = record.table == before.table;
    let same_key = record.id == before.id;
    let counted = record.flags & 1 != 0 && record.kind != Kind::Insert;
    let (how, shown) = match record.flags & 2 {
        0 => (value::NONE, 0),
        _ => shortest(record.b, own),
    };
    bytes.push(
        kind_code(record.kind)
            | if same_table { bits::SAME_TABLE } else { 0 }
            | if same_key { bits::SAME_KEY } else { 0 }
            | if counted { bits::COUNTER } else { 0 }
            | how << bits::VALUE_SHIFT,
    );
    if !same_table {
        number(bytes, u64::from(record.table));
    }
    if !same_key {
        number(bytes, zigzag(record.id.wrapping_sub(before.id)));
    }
    if counted {
        difference(bytes, record.a, before.counter);
        before.counter = record.a;
    }
    if matches!(how, value::ABSOLUTE | value::RELATIVE) {
        number(bytes, shown);
    }
    match record.kind {
        Kind::Insert => number(bytes, zigzag(record.a.cast_signed())),
        Kind::ReadList | Kind::ReadGroup => list(bytes, record.numbers(numbers)),
        Kind::Read | Kind::Write | Kind::Append | Kind::Missed => {}
    }
    before.now(record);
}

/// The shortest encoding of a value in a transaction.
fn shortest(this: i64, own: u64) -> (u8, u64) {
    let relative = zigzag(this.wrapping_sub(own.cast_signed()));
    let absolute = zigzag(this);
    match relative {
        0 => (value::OWN, 0),
        _ if relative < absolute => (value::RELATIVE, relative),
        _ => (value::ABSOLUTE, absolute),
    }
}

/// Encodes the number of items, and the difference of each from the preceding one.
fn list(bytes: &mut Vec<u8>, numbers: &[i64]) {
    number(bytes, numbers.len() as u64);
    let mut before = 0;
    for this in numbers {
        number(bytes, zigzag(this.wrapping_sub(before)));
        before = *this;
    }
}

/// Encodes the number of texts, and the length of each before it.
pub(super) fn texts(bytes: &mut Vec<u8>, texts: &[String]) {
    number(bytes, texts.len() as u64);
    for text in texts {
        number(bytes, text.len() as u64);
        bytes.extend_from_slice(text.as_bytes());
    }
}

#[inline]
fn difference(bytes: &mut Vec<u8>, this: u64, before: u64) {
    number(bytes, zigzag(this.wrapping_sub(before).cast_signed()));
}

/// Encodes a number with 7 bits per byte, the lowest first; the highest bit is set if more bytes
/// follow.
#[inline]
pub(crate) fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}
