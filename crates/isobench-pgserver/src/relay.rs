//! A relay between clients and a server's Unix socket, whose connections can be held up or cut. It stands
//! for the network that embedded servers don't have.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::ServerError;

/// The pause after a connection that couldn't be made.
const PAUSE: Duration = Duration::from_millis(5);

/// What is copied at once.
const BUFFER: usize = 64 * 1024;

/// A socket that passes everything on to a server's, in both directions, unless it is held up.
#[derive(Debug)]
pub(crate) struct Relay {
    folder: PathBuf,
    socket: PathBuf,
    gate: Arc<Gate>,
}

/// The connections of a relay, and whether anything passes.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing passes.
    held: bool,
    /// No connection is accepted any more.
    closed: bool,
    /// Both ends of each connection, by its number.
    connections: BTreeMap<u64, [UnixStream; 2]>,
    /// The number of the next one.
    next: u64,
}

impl Relay {
    /// Opens a relay in a new folder of the caller's, to the socket of this port in `server`.
    ///
    /// # Errors
    /// [`ServerError::Io`].
    pub(crate) fn open(folder: &Path, server: &Path, port: u16) -> Result<Relay, ServerError> {
        let name = format!(".s.PGSQL.{port}");
        let (socket, upstream) = (folder.join(&name), server.join(&name));
        let listen = || {
            fs::create_dir(folder)?;
            fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            UnixListener::bind(&socket)
        };
        let listener = listen().map_err(|error| ServerError::io("open", &socket, error))?;
        let gate = Arc::new(Gate::default());
        let accepting = Arc::clone(&gate);
        // It ends with the relay.
        thread::spawn(move || accept(&listener, &upstream, &accepting));
        Ok(Relay { folder: folder.to_owned(), socket, gate })
    }

    /// The folder of its socket.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lets nothing pass, in either direction, nor new connections, until [`Relay::go_on`]. Nothing is
    /// lost.
    pub(crate) fn hold(&self) {
        self.gate.lock().held = true;
    }

    /// Lets everything pass again, first what was held up.
    pub(crate) fn go_on(&self) {
        self.gate.lock().held = false;
        self.gate.changed.notify_all();
    }

    /// Cuts all connections, at both ends. New ones are accepted.
    pub(crate) fn cut(&self) {
        let connections = std::mem::take(&mut self.gate.lock().connections);
        connections.into_values().flatten().for_each(|end| close(&end));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.gate.lock().closed = true;
        self.go_on();
        self.cut();
        // The thread that waits for connections gets one, and ends.
        let _ = UnixStream::connect(&self.socket);
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while nothing passes; returns false if it never will again.
    fn pass(&self) -> bool {
        let held = |state: &mut State| state.held && !state.closed;
        let state = self.changed.wait_while(self.lock(), held).unwrap_or_else(PoisonError::into_inner);
        !state.closed
    }

    /// Keeps a connection, to be cut; `None` if it is too late.
    fn keep(&self, ends: [UnixStream; 2]) -> Option<u64> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.connections.insert(number, ends);
        Some(number)
    }

    fn forget(&self, number: u64) {
        self.lock().connections.remove(&number);
    }
}

fn accept(listener: &UnixListener, upstream: &Path, gate: &Arc<Gate>) {
    for client in listener.incoming() {
        if !gate.pass() {
            return;
        }
        // A server that is down refuses, and so does its relay.
        let connected = client.and_then(|client| Ok((client, UnixStream::connect(upstream)?)));
        let Ok((client, server)) = connected else {
            // Such as too many open files, which pass.
            thread::sleep(PAUSE);
            continue;
        };
        let _ = pass_on(client, server, gate);
    }
}

/// Copies in both directions, in threads of their own.
fn pass_on(client: UnixStream, server: UnixStream, gate: &Arc<Gate>) -> io::Result<()> {
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let ends = [client.try_clone()?, server.try_clone()?];
    let Some(number) = gate.keep(ends) else { return Ok(()) };
    let start = |from: UnixStream, to: UnixStream| {
        let gate = Arc::clone(gate);
        thread::Builder::new().spawn(move || {
            copy(from, to, &gate);
            gate.forget(number);
        })
    };
    start(from_client, server)?;
    start(from_server, client)?;
    Ok(())
}

/// Copies until one end is closed, and then closes both, as neither of them goes on with one direction.
fn copy(mut from: UnixStream, mut to: UnixStream, gate: &Gate) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !gate.pass() || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // The end of a connection doesn't pass either.
    gate.pass();
    close(&from);
    close(&to);
}

fn close(end: &UnixStream) {
    // It fails if it is closed.
    let _ = end.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that returns what it gets, and a relay to it.
    fn echo() -> (tempfile::TempDir, Relay) {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut other = stream.try_clone().expect("a stream");
                    io::copy(&mut stream, &mut other)
                });
            }
        });
        let relay = Relay::open(&folder.path().join("relay"), folder.path(), 5432).expect("a relay");
        (folder, relay)
    }

    fn client(relay: &Relay) -> UnixStream {
        UnixStream::connect(&relay.socket).expect("a connection")
    }

    fn ask(stream: &mut UnixStream) -> io::Result<[u8; 5]> {
        stream.write_all(b"hello")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).map(|()| answer)
    }

    #[test]
    fn what_is_held_up_arrives_later() {
        let (_folder, relay) = echo();
        let mut one = client(&relay);
        assert_eq!(&ask(&mut one).expect("an answer"), b"hello");
        relay.hold();
        let mut other = client(&relay);
        one.write_all(b"later").expect("written");
        one.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
        let mut answer = [0; 5];
        assert!(one.read_exact(&mut answer).is_err(), "nothing passes");
        relay.go_on();
        one.set_read_timeout(None).expect("no limit");
        one.read_exact(&mut answer).expect("it passes");
        assert_eq!((&answer, &ask(&mut other).expect("so does a new one")), (b"later", b"hello"));
    }

    #[test]
    fn what_is_cut_is_gone_at_both_ends() {
        let (folder, relay) = echo();
        let mut one = client(&relay);
        ask(&mut one).expect("an answer");
        relay.cut();
        assert!(ask(&mut one).is_err());
        ask(&mut client(&relay)).expect("a new connection");
        let mode = fs::metadata(relay.folder()).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(relay);
        let late = UnixStream::connect(folder.path().join("relay/.s.PGSQL.5432"));
        assert!(late.map_or(true, |mut late| ask(&mut late).is_err()), "nobody answers any more");
    }

    #[test]
    fn a_server_that_is_down_refuses_through_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let relay = Relay::open(&folder.path().join("relay"), folder.path(), 5432).expect("a relay");
        assert!(ask(&mut client(&relay)).is_err());
    }
}
