//! A server whose behaviour on each connection is a closure that speaks the protocol with a
//! [`Peer`].
//!
//! It covers what a script of queries and answers ([`crate::scripted`]) can't express: unusual
//! starts and ends of connections, any number of connections, fragmented messages.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::{self, JoinHandle};

use isobench_pgwire::server::{self, FrontendMessage};
use isobench_pgwire::{FrameBuffer, TransactionStatus};

/// Both directions of a connection.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// The server's end of a connection. A client that has disconnected isn't a failure: there is just
/// nothing more to read.
pub struct Peer {
    stream: Box<dyn Stream>,
    frames: FrameBuffer,
    piece: usize,
}

impl Peer {
    /// The server's end of this stream.
    pub fn new(stream: impl Read + Write + Send + 'static) -> Self {
        Peer { stream: Box::new(stream), frames: FrameBuffer::new(), piece: usize::MAX }
    }

    /// Writes at most this many bytes at once.
    #[must_use]
    pub fn in_pieces(mut self, piece: usize) -> Self {
        self.piece = piece;
        self
    }

    /// Sends the bytes that the closure appends.
    pub fn send(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        encode(&mut out);
        for piece in out.chunks(self.piece) {
            // The client may have disconnected.
            let _ = self.stream.write_all(piece);
        }
    }

    /// The packet at the start of a connection, in the format of `Debug`, after refusing TLS; empty
    /// if there is none.
    pub fn beginning(&mut self) -> String {
        let mut bytes = Vec::new();
        let mut byte = [0];
        loop {
            if let Ok(Some((message, _))) = server::parse_initial(&bytes) {
                if message != FrontendMessage::SslRequest {
                    return format!("{message:?}");
                }
                bytes.clear();
                self.send(|out| out.push(b'N'));
            }
            match self.stream.read(&mut byte) {
                Ok(1) => bytes.push(byte[0]),
                _ => return String::new(),
            }
        }
    }

    /// The next message, if there is one.
    ///
    /// # Panics
    /// If the client sends anything other than messages.
    pub fn next<T>(&mut self, with: impl Fn(FrontendMessage<'_>) -> T) -> Option<T> {
        let mut buffer = [0; 4096];
        let mut count = 0;
        loop {
            let mut frames = self.frames.feed(&buffer[..count]);
            if let Some(frame) = frames.next().expect("well-formed") {
                return Some(with(server::parse(frame).expect("well-formed")));
            }
            drop(frames);
            count = match self.stream.read(&mut buffer) {
                Ok(count @ 1..) => count,
                _ => return None,
            };
        }
    }

    /// The text of the next message, if it is a query.
    pub fn query(&mut self) -> Option<String> {
        self.next(|message| match message {
            FrontendMessage::Query(sql) => Some(String::from_utf8_lossy(sql).into_owned()),
            _ => None,
        })?
    }

    /// Accepts any user, without a password.
    pub fn welcome(&mut self) {
        self.welcome_to(7);
    }

    /// Accepts any user, without a password, and reports this process id. Returns false if the
    /// connection isn't a session, but a cancel request.
    pub fn welcome_to(&mut self, process: i32) -> bool {
        if !self.beginning().starts_with("Startup") {
            return false;
        }
        self.send(|out| {
            server::authentication_ok(out);
            for (name, value) in [
                ("server_version", "15.18"),
                ("client_encoding", "UTF8"),
                ("standard_conforming_strings", "on"),
            ] {
                server::parameter_status(out, name, value);
            }
            server::backend_key_data(out, process, &[1, 2, 3, 4]);
            server::ready_for_query(out, TransactionStatus::Idle);
        });
        true
    }
}

/// The handler of a connection.
pub type Handler = Box<dyn FnMut(&mut Peer) + Send>;

/// Handles the connections to a socket one after the other, each with the next handler, and ends.
///
/// # Errors
/// If the socket can't be created.
///
/// # Panics
/// The thread panics if a connection can't be accepted, or if a handler panics.
pub fn serve_in_turn(socket: &Path, piece: usize, handlers: Vec<Handler>) -> io::Result<JoinHandle<()>> {
    let listener = UnixListener::bind(socket)?;
    Ok(thread::spawn(move || {
        for mut handler in handlers {
            let (stream, _) = listener.accept().expect("a connection");
            handler(&mut Peer::new(stream).in_pieces(piece));
        }
    }))
}

/// Handles all connections to a socket concurrently, until the process ends. The handler receives
/// the connection's number, from 0.
///
/// # Errors
/// If the socket can't be created.
pub fn serve_all<P>(socket: &Path, handler: P) -> io::Result<()>
where
    P: FnMut(&mut Peer, usize) + Clone + Send + 'static,
{
    let listener = UnixListener::bind(socket)?;
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let mut handler = handler.clone();
            thread::spawn(move || handler(&mut Peer::new(stream), number));
        }
    });
    Ok(())
}
