//! Reads a recording, in parts or as a whole.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use super::super::error::FormatError;
use super::super::{History, MOST_TABLES, Provenance};
use super::decode::{self, Bytes};
use super::{CHUNK, CHUNK_HEAD, MAGIC, TRAILER, VERSION, chunk_checksum};

/// What is wrong where neither starts.
const NEITHER: &str = "neither a chunk nor the trailer starts there";

/// Reads a recording, chunk by chunk.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// The number of bytes read, for messages.
    offset: u64,
    /// A history without transactions, with what the header says.
    blank: History,
    transactions: u64,
    dropped: Option<u64>,
    /// The chunk, kept in order to reuse its memory.
    body: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the input isn't a recording, has a newer version, or is truncated or damaged.
    pub fn open(input: R) -> Result<Reader<R>, FormatError> {
        let mut reader = Reader::of(input);
        reader.header()?;
        Ok(reader)
    }

    /// Before anything is read.
    fn of(input: R) -> Reader<R> {
        Reader {
            input,
            offset: 0,
            blank: History::default(),
            transactions: 0,
            dropped: None,
            body: Vec::new(),
        }
    }

    /// The names of the tables.
    pub fn tables(&self) -> &[String] {
        self.blank.tables()
    }

    /// A history without transactions, with the tables and the provenance of this one.
    pub fn blank(&self) -> History {
        self.blank.blank()
    }

    /// The number of transactions in the chunks read so far.
    pub fn transactions(&self) -> u64 {
        self.transactions
    }

    /// The number of transactions executed but not recorded, known after the trailer.
    pub fn dropped(&self) -> Option<u64> {
        self.dropped
    }

    /// Adds the transactions of the next chunk to a history with the same tables. Returns false
    /// after the trailer.
    ///
    /// # Errors
    /// If the chunk is truncated or damaged (then nothing is added), or the number of transactions
    /// differs from that in the trailer.
    pub fn next_chunk(&mut self, history: &mut History) -> Result<bool, FormatError> {
        if self.dropped.is_some() {
            return Ok(false);
        }
        let at = self.offset;
        let mut tag = [0];
        if self.fill(&mut tag)? == 0 {
            return Err(self.no_trailer());
        }
        match tag[0] {
            CHUNK => self.chunk(at, history).map(|()| true),
            TRAILER => self.trailer(at).map(|()| false),
            _ => Err(damaged(at, NEITHER)),
        }
    }

    fn no_trailer(&self) -> FormatError {
        FormatError::Truncated(format!(
            "it ends after {} transactions without a trailer, so the program that wrote it was interrupted",
            self.transactions
        ))
    }

    fn header(&mut self) -> Result<(), FormatError> {
        const HEAD: usize = MAGIC.len() + 1 + 4;
        let mut head = [0; HEAD];
        let read = self.fill(&mut head)?;
        let magic = &head[..read.min(MAGIC.len())];
        if magic.is_empty() || !MAGIC.starts_with(magic) {
            return Err(FormatError::Foreign(
                "this isn't a recording of isobench: its first bytes are different".to_owned(),
            ));
        }
        if read < HEAD {
            return Err(cut(0));
        }
        let version = head[MAGIC.len()];
        if version != VERSION {
            return Err(FormatError::Foreign(format!(
                "the recording has version {version} of the format, but this isobench reads version {VERSION}"
            )));
        }
        let length = u32::from_le_bytes(array(&head[HEAD - 4..]));
        let names = self.bytes(u64::from(length), 0)?;
        let mut sum = [0; 4];
        let whole = self.fill(&mut sum)? == 4;
        let right = chunk_checksum(&head, &names) == u32::from_le_bytes(sum);
        if !whole || !right {
            // Nothing can be read without the names.
            return Err(FormatError::Foreign("the header of the recording is damaged".to_owned()));
        }
        self.blank = blank_of(&names).map_err(|problem| FormatError::Foreign(problem.to_owned()))?;
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
            Err(damaged(at, "the checksum of the chunk that starts there is wrong"))
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
                "it has {} transactions, but its trailer says {transactions}",
                self.transactions
            )));
        }
        if self.fill(&mut [0])? != 0 {
            return Err(damaged(self.offset - 1, "there are bytes after the trailer"));
        }
        Ok(())
    }

    /// Reads this many bytes. Memory grows with the input, not with the announced length.
    fn bytes(&mut self, length: u64, at: u64) -> Result<Vec<u8>, FormatError> {
        let mut bytes = std::mem::take(&mut self.body);
        bytes.clear();
        let read = (&mut self.input).take(length).read_to_end(&mut bytes)?;
        self.offset += read as u64;
        if (read as u64) < length { Err(cut(at)) } else { Ok(bytes) }
    }

    /// Reads until the buffer is full or the input ends; returns the number of bytes read.
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

/// The chunks of a recording that one of several readers takes: about as many bytes as each other one,
/// in the order of the readers.
#[derive(Debug)]
pub struct Share<R> {
    reader: Reader<R>,
    /// What is left of the share, bytes.
    left: u64,
    dropped: u64,
    problem: Option<FormatError>,
    identity: u32,
}

impl<R: Read + Seek> Share<R> {
    /// Finds the share of a reader (from 0) among so many. Chunks of others are passed over.
    ///
    /// An incomplete recording is accepted if `partial`, and used as far as it goes.
    ///
    /// # Errors
    /// The input isn't a recording, isn't complete, or can't be read.
    pub fn open(input: R, reader: usize, readers: usize, partial: bool) -> Result<Share<R>, FormatError> {
        let mut reading = Reader::open(input)?;
        let size = reading.size()?;
        let mut identity = crc32fast::Hasher::new();
        // The start of each chunk, and the end of the last.
        let (mut starts, start) = (Vec::new(), reading.offset);
        let mut end = start;
        let (dropped, problem) = loop {
            let at = reading.offset;
            match reading.pass_over(size, &mut identity) {
                Ok(true) => {
                    starts.push(at);
                    end = reading.offset;
                }
                Ok(false) => break (reading.dropped.unwrap_or(0), None),
                Err(error) if partial && error.leaves_a_part() => break (1, Some(error)),
                Err(error) => return Err(error),
            }
        };
        // The first chunk that starts in a reader's stretch of the bytes is its first one.
        let stretch = |reader: usize| {
            let from = start + (end - start) / readers as u64 * reader as u64;
            if reader == readers { end } else { starts.iter().copied().find(|at| *at >= from).unwrap_or(end) }
        };
        let (from, to) = (stretch(reader), stretch(reader + 1));
        reading.input.seek(SeekFrom::Start(from))?;
        reading.offset = from;
        reading.dropped = None;
        Ok(Share { reader: reading, left: to - from, dropped, problem, identity: identity.finalize() })
    }
}

impl<R: Read> Share<R> {
    /// A history without transactions, with the tables and the provenance of this one.
    pub fn blank(&self) -> History {
        self.reader.blank()
    }

    /// Adds the transactions of the next chunk of the share to a history with the same tables. Returns
    /// false after the last.
    ///
    /// # Errors
    /// The chunk is damaged.
    pub fn next_chunk(&mut self, history: &mut History) -> Result<bool, FormatError> {
        if self.left == 0 {
            return Ok(false);
        }
        let at = self.reader.offset;
        let more = self.reader.next_chunk(history)?;
        self.left = self.left.saturating_sub(self.reader.offset - at);
        Ok(more)
    }

    /// The number of transactions that all chunks lack.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The reason why the recording isn't complete, if so.
    pub fn problem(self) -> Option<FormatError> {
        self.problem
    }

    /// A number that differs, but for chance, if another recording was read.
    pub fn identity(&self) -> u32 {
        self.identity
    }
}

impl<R: Read + Seek> Reader<R> {
    /// The number of bytes.
    fn size(&mut self) -> io::Result<u64> {
        let at = self.input.stream_position()?;
        let size = self.input.seek(SeekFrom::End(0))?;
        self.input.seek(SeekFrom::Start(at))?;
        Ok(size)
    }

    /// Passes over a chunk, of which only the head is read. Returns false after the trailer.
    fn pass_over(&mut self, size: u64, identity: &mut crc32fast::Hasher) -> Result<bool, FormatError> {
        let at = self.offset;
        let mut head = [0; CHUNK_HEAD];
        if self.fill(&mut head[..1])? == 0 {
            return Err(self.no_trailer());
        }
        match head[0] {
            CHUNK => {
                if self.fill(&mut head[1..])? < CHUNK_HEAD - 1 {
                    return Err(cut(at));
                }
                let next = u64::from_le_bytes(array(&head[1..9])).checked_add(self.offset);
                let Some(next) = next.filter(|next| *next <= size) else { return Err(cut(at)) };
                identity.update(&head);
                self.transactions += u64::from_le_bytes(array(&head[9..17]));
                self.input.seek(SeekFrom::Start(next))?;
                self.offset = next;
                Ok(true)
            }
            TRAILER => self.trailer(at).map(|()| false),
            _ => Err(damaged(at, NEITHER)),
        }
    }
}

/// A slice of the right length, as an array.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

fn cut(at: u64) -> FormatError {
    FormatError::Truncated(format!("it ends within the part that starts at byte {at}"))
}

fn damaged(at: u64, problem: &str) -> FormatError {
    FormatError::Damaged(format!("at byte {at}: {problem}"))
}

/// The history without transactions that a header describes.
fn blank_of(bytes: &[u8]) -> Result<History, &'static str> {
    const PROBLEM: &str = "the names in the recording's header are invalid";
    let mut bytes = Bytes { left: bytes };
    let tables = texts(&mut bytes).map_err(|_| PROBLEM)?;
    if tables.len() > MOST_TABLES {
        return Err("the recording names more than 65,536 tables");
    }
    let mut history = History::new(tables);
    if !bytes.left.is_empty() {
        history.set_provenance(provenance(&mut bytes).map_err(|_| PROBLEM)?);
    }
    Ok(history)
}

fn texts(bytes: &mut Bytes<'_>) -> Result<Vec<String>, &'static str> {
    let mut texts = Vec::new();
    for _ in 0..bytes.number()? {
        let length = bytes.number()?;
        let text = str::from_utf8(bytes.take(length)?).map_err(|_| "a text isn't UTF-8")?;
        texts.push(text.to_owned());
    }
    Ok(texts)
}

fn provenance(bytes: &mut Bytes<'_>) -> Result<Provenance, &'static str> {
    let mut numbers = [0; 6];
    for number in &mut numbers {
        *number = bytes.number()?;
    }
    let statements = texts(bytes)?;
    let mut keys = BTreeMap::new();
    for _ in 0..bytes.number()? {
        let table = u16::try_from(bytes.number()?).map_err(|_| "a table's number is too large")?;
        keys.insert(table, texts(bytes)?);
    }
    Ok(Provenance { statements, keys, ..Provenance::of_numbers(numbers) })
}

/// Adds the transactions of one chunk, as [`super::Encoder::take`] returns it, to a history with the
/// same tables.
///
/// # Errors
/// If the chunk is truncated or damaged.
pub fn read_chunk(chunk: &[u8], history: &mut History) -> Result<(), FormatError> {
    Reader::of(chunk).next_chunk(history).map(|_| ())
}

/// Takes the next of several chunks as it is; `None` after the last one.
///
/// # Errors
/// The input can't be read, or isn't a chunk.
pub fn take_chunk(mut input: impl Read) -> Result<Option<Vec<u8>>, FormatError> {
    let mut chunk = Vec::new();
    input.by_ref().take(CHUNK_HEAD as u64).read_to_end(&mut chunk)?;
    if chunk.is_empty() {
        return Ok(None);
    }
    let length = chunk.get(1..9).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let (Some(length), CHUNK, CHUNK_HEAD) = (length, chunk[0], chunk.len()) else {
        return Err(FormatError::Damaged("a chunk has no head".to_owned()));
    };
    input.take(length).read_to_end(&mut chunk)?;
    Ok(Some(chunk))
}

/// Reads a recording as a whole.
///
/// # Errors
/// If the input isn't a complete recording.
pub fn read(input: impl Read) -> Result<History, FormatError> {
    let mut reader = Reader::open(input)?;
    let mut history = reader.blank();
    while reader.next_chunk(&mut history)? {}
    history.set_dropped(reader.dropped().unwrap_or(0));
    Ok(history)
}

/// Reads a recording as far as possible, and also returns the error if it isn't complete. Then at
/// least one transaction is counted as dropped, because a missing one may have written the versions
/// read.
///
/// # Errors
/// If the input isn't a recording, or can't be read.
pub fn read_lenient(input: impl Read) -> Result<(History, Option<FormatError>), FormatError> {
    let mut reader = Reader::open(input)?;
    let mut history = reader.blank();
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
