//! The format of recordings: a few bytes per operation, written while a benchmark runs.
//!
//! A file is a header, chunks, and a trailer. Each has its own checksum (CRC-32, as in zlib) of its bytes before it
//! (of a chunk: its head and its body), so that several threads can make chunks, and a file cut short by a crash
//! can still be read. Chunks may be in any order that keeps each client's.
//!
//! `u32` and `u64` are little-endian. All other numbers are *varints* (LEB128: 7 bits a byte, the lowest first; the
//! highest bit says that another one follows). Signed ones are zigzag-coded (0, -1, 1, -2, … are 0, 1, 2, 3, …).
//! Differences wrap at 64 bits.
//!
//! | header | |
//! |---|---|
//! | 8 bytes | `89 49 42 48 0D 0A 1A 0A` (`\x89IBH\r\n\x1a\n`) |
//! | 1 byte | version of the format: 1 |
//! | `u32` | length of the rest without the checksum |
//! | varint | how many tables: at most 65,536 |
//! | for each | varint: length in bytes; its name in UTF-8. Operations name tables by place, from 0 |
//! | if the history was observed | six varints, as in the line `observed`; the statements; varint: how many tables have keys that aren't integers; for each a varint, the table, and the texts of its keys. Statements and texts: varint, how many; for each its length and UTF-8 |
//! | `u32` | checksum |
//!
//! | chunk | |
//! |---|---|
//! | 1 byte | `43` (`C`) |
//! | `u64` | length of the body |
//! | `u64` | transactions in the body |
//! | `u32` | checksum of the 17 bytes before and the body |
//! | body | the transactions, one after the other |
//!
//! | trailer | |
//! |---|---|
//! | 1 byte | `45` (`E`) |
//! | `u64` | transactions in all chunks |
//! | `u64` | dropped transactions |
//! | `u32` | checksum |
//!
//! Not here: a chunk's transactions byte by byte (`encode.rs`).

pub(crate) mod decode;
pub(crate) mod encode;
mod reader;
mod write;

pub use encode::Encoder;
pub use reader::{Reader, Share, read, read_chunk, read_lenient, take_chunk};
pub use write::write;

use super::{Kind, Provenance, Record};

/// The first bytes of every recording. The first byte and the line breaks show whether the file was
/// transferred as text (an idea of PNG's).
pub const MAGIC: [u8; 8] = *b"\x89IBH\r\n\x1a\n";

/// The version of the format.
pub const VERSION: u8 = 1;

const CHUNK: u8 = b'C';
const TRAILER: u8 = b'E';

/// The size of tag, length, number and checksum.
const CHUNK_HEAD: usize = 1 + 8 + 8 + 4;

/// The kinds of operations in the order of their codes.
const KINDS: [Kind; 7] =
    [Kind::Read, Kind::Write, Kind::Insert, Kind::Append, Kind::ReadList, Kind::ReadGroup, Kind::Missed];

/// Bits of an operation's first byte, beside the kind in the lowest three.
mod bits {
    /// The table is that of the preceding operation.
    pub const SAME_TABLE: u8 = 1 << 3;
    /// The key is that of the preceding operation.
    pub const SAME_KEY: u8 = 1 << 4;
    /// The operation has a counter.
    pub const COUNTER: u8 = 1 << 5;
    /// The position of the two bits that select the encoding of the value.
    pub const VALUE_SHIFT: u8 = 6;
}

/// The encoding of a value: bits 6 and 7 of an operation's first byte.
mod value {
    /// There is no value.
    pub const NONE: u8 = 0;
    /// The value itself.
    pub const ABSOLUTE: u8 = 1;
    /// The difference from the transaction's number.
    pub const RELATIVE: u8 = 2;
    /// The transaction's number.
    pub const OWN: u8 = 3;
}

/// A bit in a transaction's first number, which has the outcome's code in the lowest two bits, this
/// one, and the number of operations above.
const OPEN_END: u64 = 1 << 2;

/// The lowest two bits of a number before a transaction's first one, which has the code of its modes
/// above. No outcome has this code.
const MODE: u64 = 3;

/// Maps signed numbers near 0 to small unsigned ones: 0, -1, 1, -2, …
pub(crate) const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The inverse of [`zigzag`].
pub(crate) const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// The reference for the relative encoding of an operation: the preceding one in the same
/// transaction.
struct Reference {
    table: u16,
    id: i64,
    counter: u64,
}

impl Reference {
    /// The reference for the first operation of each transaction.
    const START: Reference = Reference { table: 0, id: 0, counter: 0 };

    fn now(&mut self, record: &Record) {
        self.table = record.table;
        self.id = record.id;
    }
}

/// The header of a file with a history of these tables, and of this provenance.
pub fn header(tables: &[String], provenance: Option<&Provenance>) -> Vec<u8> {
    let mut names = Vec::new();
    encode::texts(&mut names, tables);
    if let Some(provenance) = provenance {
        let Provenance { statements, keys, .. } = provenance;
        for number in provenance.numbers() {
            encode::number(&mut names, number);
        }
        encode::texts(&mut names, statements);
        encode::number(&mut names, keys.len() as u64);
        for (table, keys) in keys {
            encode::number(&mut names, u64::from(*table));
            encode::texts(&mut names, keys);
        }
    }
    let length = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let mut header = MAGIC.to_vec();
    header.push(VERSION);
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(&names);
    with_checksum(header)
}

/// The trailer of a file: the number of transactions in all chunks, and of those executed but not
/// recorded.
pub fn trailer(transactions: u64, dropped: u64) -> Vec<u8> {
    let mut trailer = vec![TRAILER];
    trailer.extend_from_slice(&transactions.to_le_bytes());
    trailer.extend_from_slice(&dropped.to_le_bytes());
    with_checksum(trailer)
}

fn with_checksum(mut part: Vec<u8>) -> Vec<u8> {
    let sum = crc32fast::hash(&part);
    part.extend_from_slice(&sum.to_le_bytes());
    part
}

/// The checksum of a chunk: over its head without the checksum, and its body.
fn chunk_checksum(head: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(body);
    hasher.finalize()
}

#[cfg(test)]
mod tests;
