//! Splits a byte stream into messages (type byte, length, body) without examining the bodies and
//! without I/O.
//!
//! This is a benchmark's hot path: a message that has arrived completely is borrowed from the
//! caller's read buffer, and nothing is allocated unless the end of a read splits a message.

use crate::ProtocolError;

/// The size of the type byte and the length word before the body of every message.
const HEADER: usize = 5;

/// The default maximum size of a message, in bytes: 256 MiB.
pub const DEFAULT_LIMIT: usize = 256 << 20;

/// A message: its type byte and its body (without type byte and length word).
///
/// Source: PostgreSQL: Protocol, Messages Overview.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Frame<'a> {
    /// The type byte; those of servers are named in `backend::tag`.
    pub tag: u8,
    /// The body after the length word.
    pub body: &'a [u8],
}

/// Splits a byte stream into messages; keeps only an incomplete message between reads.
///
/// If no message is incomplete, it owns no memory besides itself (under 50 bytes), so ten thousand
/// idle connections cost very little. Memory grows with the bytes received, never with the length
/// in a message's header.
///
/// ```
/// let mut buffer = isobench_pgwire::FrameBuffer::new();
/// let mut frames = buffer.feed(b"Z\0\0\0\x05I1\0\0");   // ReadyForQuery, and the beginning of ParseComplete
/// let ready = frames.next()?.expect("a whole message");
/// assert_eq!((ready.tag, ready.body), (b'Z', &b"I"[..]));
/// assert_eq!(frames.next()?, None);
/// drop(frames);
/// assert_eq!(buffer.feed(b"\0\x04").next()?.map(|frame| frame.tag), Some(b'1'));
/// # Ok::<(), isobench_pgwire::ProtocolError>(())
/// ```
#[derive(Debug)]
pub struct FrameBuffer {
    /// Bytes of earlier reads that haven't been returned, from `read` on; usually an incomplete
    /// message.
    kept: Vec<u8>,
    read: usize,
    limit: usize,
}

impl Default for FrameBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameBuffer {
    /// An empty buffer that accepts messages of up to [`DEFAULT_LIMIT`] bytes.
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }

    /// An empty buffer that accepts messages of up to `limit` bytes (length word and body).
    pub fn with_limit(limit: usize) -> Self {
        Self { kept: Vec::new(), read: 0, limit }
    }

    /// Continues the stream with `bytes`, and returns the messages that are now complete.
    ///
    /// Dropping the [`Frames`] early keeps the rest for the next call.
    #[inline]
    pub fn feed<'a>(&'a mut self, bytes: &'a [u8]) -> Frames<'a> {
        Frames { buffer: self, rest: bytes }
    }

    /// True if no bytes are waiting, that is, the stream is between two messages.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The bytes that were received and haven't been returned in messages.
    pub fn pending(&self) -> &[u8] {
        &self.kept[self.read..]
    }

    /// The memory held besides the buffer itself, in bytes; 0 if no message is incomplete.
    pub fn heap_size(&self) -> usize {
        self.kept.capacity()
    }

    /// Releases memory that has been processed; called at the end of a [`Frames`].
    fn compact(&mut self) {
        if self.read == self.kept.len() {
            self.kept = Vec::new();
            self.read = 0;
        } else if self.read >= self.kept.len() / 2 {
            // Moving at most as many bytes as were read keeps the total cost linear.
            self.kept.drain(..self.read);
            self.read = 0;
        }
    }
}

/// The messages completed by a [`FrameBuffer::feed`].
///
/// A lending iterator: each message must be processed before the next one is taken.
#[derive(Debug)]
pub struct Frames<'a> {
    buffer: &'a mut FrameBuffer,
    rest: &'a [u8],
}

impl Frames<'_> {
    /// The next complete message, or `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// A length word below 4 or above the limit. The stream can't be used then: all further calls
    /// return the same error.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it lends from self, which Iterator can't express")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, ProtocolError> {
        if !self.buffer.kept.is_empty() {
            return self.next_kept();
        }
        match whole_size(self.rest, self.buffer.limit)? {
            Some(size) if size <= self.rest.len() => {
                let (message, rest) = self.rest.split_at(size);
                self.rest = rest;
                Ok(Some(Frame { tag: message[0], body: &message[HEADER..] }))
            }
            _ => {
                self.buffer.kept.extend_from_slice(self.rest);
                self.rest = &[];
                Ok(None)
            }
        }
    }

    /// The next message, if its start was kept from an earlier read.
    #[cold]
    fn next_kept(&mut self) -> Result<Option<Frame<'_>>, ProtocolError> {
        if self.buffer.read == self.buffer.kept.len() {
            self.buffer.compact();
            return self.next();
        }
        self.top_up(HEADER);
        let Some(size) = whole_size(self.buffer.pending(), self.buffer.limit)? else {
            return Ok(None);
        };
        self.top_up(size);
        if self.buffer.pending().len() < size {
            return Ok(None);
        }
        let start = self.buffer.read;
        self.buffer.read += size;
        let message = &self.buffer.kept[start..start + size];
        Ok(Some(Frame { tag: message[0], body: &message[HEADER..] }))
    }

    /// Moves bytes from the new read to the kept ones until there are `size`, as far as possible.
    fn top_up(&mut self, size: usize) {
        let missing = size.saturating_sub(self.buffer.pending().len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(missing);
        self.buffer.kept.extend_from_slice(now);
        self.rest = later;
    }
}

impl Drop for Frames<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.buffer.kept.is_empty() && self.rest.is_empty() {
            return;
        }
        // After an invalid length only its header is kept, which makes the next feed fail too.
        let limit = self.buffer.limit;
        let pending = self.buffer.pending();
        let keep = if pending.is_empty() {
            if whole_size(self.rest, limit).is_err() { HEADER } else { self.rest.len() }
        } else {
            if whole_size(pending, limit).is_err() { 0 } else { self.rest.len() }
        };
        self.buffer.kept.extend_from_slice(&self.rest[..keep]);
        self.buffer.compact();
    }
}

/// The size of the message at the start of `bytes`, including the header, or `None` if the header
/// is incomplete.
#[inline]
fn whole_size(bytes: &[u8], limit: usize) -> Result<Option<usize>, ProtocolError> {
    let Some(&[tag, a, b, c, d]) = bytes.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let claimed = i32::from_be_bytes([a, b, c, d]);
    match usize::try_from(claimed) {
        Ok(length) if length >= 4 => {
            if length > limit {
                return Err(ProtocolError::TooLong { tag, length, limit });
            }
            Ok(Some(length + 1))
        }
        _ => Err(ProtocolError::InvalidLength { tag, length: claimed }),
    }
}
