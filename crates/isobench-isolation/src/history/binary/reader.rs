//! Reading a recording, part by part or as a whole.

use std::io::{self, Read};

use super::super::error::FormatError;
use super::super::{History, MOST_TABLES};
use super::decode::{self, Bytes};
use super::{CHUNK, CHUNK_HEAD, MAGIC, TRAILER, VERSION, chunk_checksum};

/// Reads a recording, chunk by chunk.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// How many bytes were read, for messages.
    offset: u64,
    tables: Vec<String>,
    transactions: u64,
    dropped: Option<u64>,
    /// The chunk, kept because its memory is.
    body: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// It is none, or one of a newer version, or truncated or damaged.
    pub fn open(input: R) -> Result<Reader<R>, FormatError> {
        let (tables, body) = (Vec::new(), Vec::new());
        let mut reader = Reader { input, offset: 0, tables, transactions: 0, dropped: None, body };
        reader.header()?;
        Ok(reader)
    }

    /// The tables' names.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// How many transactions the chunks had that were read.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// How many transactions were carried out and not recorded; known after the trailer.
    pub fn dropped(&self) -> Option<u64> {
        self.dropped
    }

    /// Adds the transactions of the next chunk to a history of the same tables. False after the
    /// trailer.
    ///
    /// # Errors
    /// The chunk is truncated or damaged (then nothing is added), or there are not as many
    /// transactions as the trailer says.
    pub fn next_chunk(&mut self, history: &mut History) -> Result<bool, FormatError> {
        if self.dropped.is_some() {
            return Ok(false);
        }
        let at = self.offset;
        let mut tag = [0];
        if self.fill(&mut tag)? == 0 {
            return Err(FormatError::Truncated(format!(
                "it ends after {} transactions without a trailer, so whoever wrote it was interrupted",
                self.transactions
            )));
        }
        match tag[0] {
            CHUNK => self.chunk(at, history).map(|()| true),
            TRAILER => self.trailer(at).map(|()| false),
            _ => Err(damaged(at, "neither a chunk nor the trailer begins there")),
        }
    }

    fn header(&mut self) -> Result<(), FormatError> {
        const HEAD: usize = MAGIC.len() + 1 + 4;
        let mut head = [0; HEAD];
        let read = self.fill(&mut head)?;
        let magic = &head[..read.min(MAGIC.len())];
        if magic.is_empty() || !MAGIC.starts_with(magic) {
            return Err(FormatError::Foreign(
                "this is no recording of isobench: it begins otherwise".to_owned(),
            ));
        }
        if read < HEAD {
            return Err(cut(0));
        }
        let version = head[MAGIC.len()];
        if version != VERSION {
            return Err(FormatError::Foreign(format!(
                "the recording has version {version} of the format, this isobench reads version {VERSION}"
            )));
        }
        let length = u32::from_le_bytes(array(&head[HEAD - 4..]));
        let names = self.bytes(u64::from(length), 0)?;
        let mut sum = [0; 4];
        let whole = self.fill(&mut sum)? == 4;
        let right = chunk_checksum(&head, &names) == u32::from_le_bytes(sum);
        if !whole || !right {
            // Without the names there is nothing to be had.
            return Err(FormatError::Foreign("the header of the recording is damaged".to_owned()));
        }
        self.tables = names_of(&names).map_err(|problem| FormatError::Foreign(problem.to_owned()))?;
        self.body = names;
        Ok(())
    }

    fn chunk(&mut self, at: u64, history: &mut History) -> Result<(), FormatError> {
        let mut head = [0; CHUNK_HEAD];
        head[0] = CHUNK;
        if self.fill(&mut head[1..])? < CHUNK_HEAD - 1 {
            return Err(cut(at));
        }
        let length = u64::from_le_bytes(array(&head[1..9]));
        let transactions = u64::from_le_bytes(array(&head[9..17]));
        let sum = u32::from_le_bytes(array(&head[17..]));
        let body = self.bytes(length, at)?;
        let outcome = if chunk_checksum(&head[..17], &body) == sum {
            decode::chunk(&body, transactions, history).map_err(|problem| damaged(at, problem))
        } else {
            Err(damaged(at, "the checksum of the chunk that begins there is wrong"))
        };
        self.body = body;
        outcome?;
        self.transactions += transactions;
        Ok(())
    }

    fn trailer(&mut self, at: u64) -> Result<(), FormatError> {
        let mut rest = [0; 20];
        if self.fill(&mut rest)? < rest.len() {
            return Err(cut(at));
        }
        let sum = u32::from_le_bytes(array(&rest[16..]));
        if chunk_checksum(&[TRAILER], &rest[..16]) != sum {
            return Err(damaged(at, "the checksum of the trailer is wrong"));
        }
        let transactions = u64::from_le_bytes(array(&rest[..8]));
        let dropped = u64::from_le_bytes(array(&rest[8..16]));
        self.dropped = Some(dropped.saturating_add(transactions.saturating_sub(self.transactions)));
        if transactions != self.transactions {
            return Err(FormatError::Damaged(format!(
                "it has {} transactions, and its trailer says {transactions}",
                self.transactions
            )));
        }
        if self.fill(&mut [0])? != 0 {
            return Err(damaged(self.offset - 1, "there is something after the trailer"));
        }
        Ok(())
    }

    /// Reads so many bytes, in memory that grows with what there is, not with what is announced.
    fn bytes(&mut self, length: u64, at: u64) -> Result<Vec<u8>, FormatError> {
        let mut bytes = std::mem::take(&mut self.body);
        bytes.clear();
        let read = (&mut self.input).take(length).read_to_end(&mut bytes)?;
        self.offset += read as u64;
        if (read as u64) < length { Err(cut(at)) } else { Ok(bytes) }
    }

    /// Reads until the buffer is full or the input ends; returns how many bytes there were.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }
}

/// A slice of the right length as an array.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

fn cut(at: u64) -> FormatError {
    FormatError::Truncated(format!("it ends within the part that begins at byte {at}"))
}

fn damaged(at: u64, problem: &str) -> FormatError {
    FormatError::Damaged(format!("at byte {at}: {problem}"))
}

fn names_of(bytes: &[u8]) -> Result<Vec<String>, &'static str> {
    const PROBLEM: &str = "the tables' names in the recording's header can't be understood";
    let mut bytes = Bytes { left: bytes };
    let count = bytes.number().map_err(|_| PROBLEM)?;
    if count > MOST_TABLES as u64 {
        return Err("the recording names more than 65,536 tables");
    }
    let mut names = Vec::new();
    for _ in 0..count {
        let length = bytes.number().map_err(|_| PROBLEM)?;
        let name = bytes.take(length).map_err(|_| PROBLEM)?;
        names.push(str::from_utf8(name).map_err(|_| PROBLEM)?.to_owned());
    }
    Ok(names)
}

/// Reads a recording as a whole.
///
/// # Errors
/// It is none, or it isn't whole.
pub fn read(input: impl Read) -> Result<History, FormatError> {
    let mut reader = Reader::open(input)?;
    let mut history = History::new(reader.tables().to_vec());
    while reader.next_chunk(&mut history)? {}
    history.set_dropped(reader.dropped().unwrap_or(0));
    Ok(history)
}

/// Reads a recording as far as it goes: if it isn't whole, also says why. Then at least one
/// transaction counts as dropped, because what was read may have been written by one that is
/// missing.
///
/// # Errors
/// It is none, or can't be read.
pub fn read_lenient(input: impl Read) -> Result<(History, Option<FormatError>), FormatError> {
    let mut reader = Reader::open(input)?;
    let mut history = History::new(reader.tables().to_vec());
    let problem = loop {
        match reader.next_chunk(&mut history) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) if error.leaves_a_part() => break Some(error),
            Err(error) => return Err(error),
        }
    };
    let dropped = reader.dropped().unwrap_or(0);
    history.set_dropped(if problem.is_some() { dropped.max(1) } else { dropped });
    Ok((history, problem))
}
