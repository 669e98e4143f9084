//! An encrypted stream over a TCP socket, which reads and writes like the socket itself.
//!
//! rustls' interface without buffers is used: between two messages a stream owns no memory but its
//! keys. Not here: how the session came about (`handshake.rs`).

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;

use rustix::net::{self, RecvFlags, SendFlags};
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};

use super::words;

/// Encrypted bytes received at once.
const SPACE: usize = 32 * 1024;

/// The most bytes that one record holds.
const RECORD: usize = 16 * 1024;

/// What encryption adds to a record, at most.
const OVERHEAD: usize = 64;

/// An outgoing buffer up to this size is kept.
const KEPT: usize = 1024;

/// An encrypted stream over TCP.
///
/// Reading without waiting takes all there is: fewer bytes than the buffer holds mean that nothing
/// is left, neither in the socket nor here. So an edge-triggered loop can treat it like a socket.
///
/// What is encrypted can't be taken back: whoever is told that not all bytes were written must
/// offer the rest again, the same bytes first (as with OpenSSL's `SSL_write`).
pub struct TlsStream {
    socket: TcpStream,
    session: UnbufferedClientConnection,
    /// The beginning of a record whose end hasn't arrived.
    incoming: Vec<u8>,
    /// Decrypted and not handed out.
    plain: VecDeque<u8>,
    /// Encrypted and not sent, from `sent` on.
    outgoing: Vec<u8>,
    sent: usize,
    /// How many bytes `outgoing` stands for that the writer doesn't know to be written.
    held: usize,
    /// No more bytes will come.
    closed: bool,
    /// Why the session is of no further use.
    failed: Option<String>,
}

impl TlsStream {
    /// A stream whose session has been agreed on; `incoming` are bytes that have arrived meanwhile.
    pub(super) fn new(socket: TcpStream, session: UnbufferedClientConnection, incoming: Vec<u8>) -> Self {
        Self {
            socket,
            session,
            incoming,
            plain: VecDeque::new(),
            outgoing: Vec::new(),
            sent: 0,
            held: 0,
            closed: false,
            failed: None,
        }
    }

    /// The socket under the stream.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether bytes wait here, so that the socket may have nothing to read although the stream
    /// has.
    pub(crate) fn has_buffered(&self) -> bool {
        !self.plain.is_empty()
    }

    /// Reads; `wait` are the flags for the first receive, the further ones never wait.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], wait: RecvFlags) -> io::Result<usize> {
        let mut count = self.plain.read(buffer)?;
        let mut drained = false;
        while count < buffer.len() && !drained && !self.closed && self.failed.is_none() {
            let flags = if count > 0 { RecvFlags::DONTWAIT } else { wait };
            match self.receive_once(&mut buffer[count..], flags) {
                Ok((decrypted, received)) => {
                    count += decrypted;
                    self.closed |= received == 0;
                    // With nothing decrypted only another receive can say whether to wait.
                    drained = count > 0 && received < SPACE;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It comes again, if it matters.
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
        }
        match &self.failed {
            Some(text) if count == 0 => Err(io::Error::new(io::ErrorKind::InvalidData, text.clone())),
            _ => Ok(count),
        }
    }

    /// One receive from the socket; how many bytes it brought decrypted, and how many encrypted.
    #[expect(
        clippy::large_stack_arrays,
        reason = "on the heap it would have to be allocated for each receive"
    )]
    fn receive_once(&mut self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<(usize, usize)> {
        let mut sink = Sink { buffer, count: 0, rest: &mut self.plain };
        let received;
        let used;
        if self.incoming.is_empty() {
            let mut space = [const { MaybeUninit::<u8>::uninit() }; SPACE];
            let ((raw, _), _) = net::recv(&self.socket, &mut space, flags)?;
            received = raw.len();
            used = decrypt(&mut self.session, raw, &mut self.outgoing, &mut sink);
            if let Ok(used) = &used {
                self.incoming.extend_from_slice(&raw[used.bytes..]);
            }
        } else {
            let before = self.incoming.len();
            self.incoming.resize(before + SPACE, 0);
            let outcome = net::recv(&self.socket, &mut self.incoming[before..], flags);
            self.incoming.truncate(before + outcome.as_ref().map_or(0, |(count, _)| *count));
            received = outcome?.0;
            used = decrypt(&mut self.session, &mut self.incoming, &mut self.outgoing, &mut sink);
            if let Ok(used) = &used {
                self.incoming.drain(..used.bytes);
            }
            if self.incoming.is_empty() {
                self.incoming = Vec::new();
            }
        }
        let count = sink.count;
        match used {
            Ok(used) => self.closed |= used.closed,
            Err(error) => self.failed = Some(words::error(&error)),
        }
        Ok((count, received))
    }

    /// Writes as much as `flags` allow; how many of the bytes were written.
    pub(crate) fn send(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match self.send_outgoing(flags) {
                Ok(()) => {}
                // It comes again, if it matters.
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
            let taken = self.held.min(bytes.len() - count);
            self.held -= taken;
            count += taken;
            let piece = &bytes[count..];
            if piece.is_empty() {
                return Ok(count);
            }
            let piece = &piece[..piece.len().min(RECORD)];
            self.encrypt(piece)?;
            self.held = piece.len();
        }
    }

    /// Sends what is encrypted already.
    fn send_outgoing(&mut self, flags: SendFlags) -> io::Result<()> {
        while self.sent < self.outgoing.len() {
            match net::send(&self.socket, &self.outgoing[self.sent..], flags | SendFlags::NOSIGNAL)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => self.sent += count,
            }
        }
        self.sent = 0;
        if self.outgoing.capacity() > KEPT {
            self.outgoing = Vec::new();
        }
        self.outgoing.clear();
        Ok(())
    }

    /// Appends a record to what is to be sent.
    fn encrypt(&mut self, piece: &[u8]) -> io::Result<()> {
        if let Some(text) = &self.failed {
            return Err(io::Error::new(io::ErrorKind::InvalidData, text.clone()));
        }
        let error = loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(&mut self.incoming);
            let mut sink = Sink { buffer: &mut [], count: 0, rest: &mut self.plain };
            let step = state.and_then(|state| step(state, &mut self.outgoing, &mut sink));
            match step {
                Ok(Step::Write(mut traffic)) => {
                    return encrypt(&mut traffic, piece, &mut self.outgoing).map_err(io::Error::other);
                }
                Ok(Step::More(further)) => discard += further,
                Ok(Step::Closed) => self.closed = true,
                Ok(Step::Idle) => return Err(io::ErrorKind::NotConnected.into()),
                Err(error) => break error,
            }
            self.incoming.drain(..discard);
        };
        let text = words::error(&error);
        self.failed = Some(text.clone());
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }
}

/// Where decrypted bytes go: into the reader's buffer, and what doesn't fit is kept.
struct Sink<'a> {
    buffer: &'a mut [u8],
    count: usize,
    rest: &'a mut VecDeque<u8>,
}

impl Sink<'_> {
    fn take(&mut self, bytes: &[u8]) {
        let free = &mut self.buffer[self.count..];
        let (now, later) = bytes.split_at(bytes.len().min(free.len()));
        free[..now.len()].copy_from_slice(now);
        self.count += now.len();
        self.rest.extend(later);
    }
}

/// What became of received bytes.
struct Used {
    bytes: usize,
    closed: bool,
}

/// What a session wants after a status has been dealt with.
enum Step<'c> {
    /// Nothing but more bytes; it can write.
    Write(WriteTraffic<'c, ClientConnectionData>),
    /// To be asked again, with so many further bytes discarded.
    More(usize),
    /// To be asked again; the peer has said goodbye.
    Closed,
    /// Nothing but more bytes.
    Idle,
}

/// Deals with one status of a session.
fn step<'c>(
    state: ConnectionState<'c, '_, ClientConnectionData>,
    outgoing: &mut Vec<u8>,
    sink: &mut Sink<'_>,
) -> Result<Step<'c>, rustls::Error> {
    Ok(match state {
        ConnectionState::ReadTraffic(mut traffic) => {
            let mut discard = 0;
            while let Some(record) = traffic.next_record() {
                let record = record?;
                discard += record.discard;
                sink.take(record.payload);
            }
            Step::More(discard)
        }
        ConnectionState::EncodeTlsData(mut data) => {
            append_message(&mut data, outgoing);
            Step::More(0)
        }
        // It goes out with the next write.
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Step::More(0)
        }
        ConnectionState::PeerClosed => Step::Closed,
        ConnectionState::WriteTraffic(traffic) => Step::Write(traffic),
        _ => Step::Idle,
    })
}

/// Decrypts the whole records among received bytes.
fn decrypt(
    session: &mut UnbufferedClientConnection,
    raw: &mut [u8],
    outgoing: &mut Vec<u8>,
    sink: &mut Sink<'_>,
) -> Result<Used, rustls::Error> {
    let mut used = Used { bytes: 0, closed: false };
    loop {
        let UnbufferedStatus { discard, state } = session.process_tls_records(&mut raw[used.bytes..]);
        used.bytes += discard;
        match step(state?, outgoing, sink)? {
            Step::More(further) => used.bytes += further,
            Step::Closed => used.closed = true,
            Step::Write(_) | Step::Idle => return Ok(used),
        }
    }
}

/// Appends an encrypted record.
fn encrypt(
    traffic: &mut WriteTraffic<'_, ClientConnectionData>,
    piece: &[u8],
    outgoing: &mut Vec<u8>,
) -> Result<(), EncryptError> {
    let mut exhausted = None;
    append(outgoing, piece.len() + OVERHEAD, |space| match traffic.encrypt(piece, space) {
        Err(EncryptError::InsufficientSize(needed)) => Err(Some(needed.required_size)),
        Err(error) => {
            exhausted = Some(error);
            Err(None)
        }
        Ok(count) => Ok(count),
    });
    exhausted.map_or(Ok(()), Err)
}

/// Appends a message of the handshake.
pub(super) fn append_message(data: &mut EncodeTlsData<'_, ClientConnectionData>, outgoing: &mut Vec<u8>) {
    append(outgoing, 0, |space| match data.encode(space) {
        Err(EncodeError::InsufficientSize(needed)) => Err(Some(needed.required_size)),
        // Anything else can't happen to a message that was never encoded.
        other => other.map_err(|_| None),
    });
}

/// Appends what `fill` writes into a space of `size` bytes, or of the size it asks for.
fn append(
    out: &mut Vec<u8>,
    mut size: usize,
    mut fill: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) {
    let start = out.len();
    loop {
        out.resize(start + size, 0);
        match fill(&mut out[start..]) {
            Ok(count) => return out.truncate(start + count),
            Err(Some(needed)) if needed > size => size = needed,
            Err(_) => return out.truncate(start),
        }
    }
}

impl Read for TlsStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, RecvFlags::empty())
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes, SendFlags::empty())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_outgoing(SendFlags::empty())
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Says goodbye, as far as that goes without waiting.
impl Drop for TlsStream {
    fn drop(&mut self) {
        if self.failed.is_some() || !self.outgoing.is_empty() {
            return;
        }
        let status = self.session.process_tls_records(&mut self.incoming);
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state {
            let mut goodbye = [0; OVERHEAD];
            if let Ok(count) = traffic.queue_close_notify(&mut goodbye) {
                // Whoever doesn't hear it sees the socket closed.
                let _ = net::send(&self.socket, &goodbye[..count], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
        }
    }
}
