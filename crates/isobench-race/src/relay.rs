//! The listener: each connection of the application is a session of the server, in a thread of its own.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use isobench_pgwire::{Address, ConnectOptions, Connection, Host, Socket, SslMode, TlsAcceptor, server};
use isobench_record::Door;
use rustix::event::{EventfdFlags, eventfd};

use crate::gate::{Gate, Seat};
use crate::process;
use crate::session::Session;

/// The command, for messages to clients.
const PROGRAM: &str = "isobench race";

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    gate: Arc<Gate>,
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Relays what comes to the listener to this server.
    ///
    /// # Errors
    /// The system has no thread, or no address.
    pub(crate) fn start(
        gate: &Arc<Gate>,
        listener: TcpListener,
        server: ConnectOptions,
        acceptor: Option<TlsAcceptor>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let database = server.dbname.clone();
        let door = Door::new(plain_nearby(server), PROGRAM).encrypting(acceptor);
        let entrance = Entrance { gate: Arc::clone(gate), door, database, next: AtomicU64::new(1) };
        let entrance = Arc::new(entrance);
        let stop = Arc::clone(&stopping);
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for client in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                let Ok(client) = client else { continue };
                let own = Arc::clone(&entrance);
                let begun =
                    thread::Builder::new().name("session".to_owned()).spawn(move || own.serve(client));
                if let Err(error) = begun {
                    entrance.gate.note(format!("a connection couldn't be served: {error}"));
                }
            }
        })?;
        Ok(Self { gate: Arc::clone(gate), address, stopping, thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        {
            let mut state = self.gate.lock();
            state.closing = true;
            state.release();
        }
        // It wakes the listener.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            // A panic of it has been reported.
            let _ = thread.join();
        }
    }
}

/// The way to a server of this machine isn't encrypted unless it has to be: clients bind SCRAM to the encryption
/// that they see, which ends here, and an encrypted server takes that for an attack.
fn plain_nearby(server: ConnectOptions) -> ConnectOptions {
    let is_near = |host: &Host| match &host.address {
        Address::Unix(_) => true,
        Address::Tcp(name) => {
            let address = host.hostaddr.as_ref().unwrap_or(name);
            address == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
    };
    match server.ssl_mode {
        SslMode::Prefer if server.hosts.iter().all(is_near) => {
            ConnectOptions { ssl_mode: SslMode::Allow, ..server }
        }
        _ => server,
    }
}

/// True if the way to the server is encrypted. If there is none, the race says so later.
pub fn encrypts(server: &ConnectOptions) -> bool {
    let Ok(mut session) = Connection::open(&plain_nearby(server.clone())) else { return false };
    let own = session.value("SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()");
    own.ok().flatten().is_some_and(|ssl| ssl == "t")
}

/// What all sessions begin with.
struct Entrance {
    gate: Arc<Gate>,
    door: Door,
    /// The database whose rows are put back.
    database: String,
    next: AtomicU64,
}

impl Entrance {
    /// Why a session is refused: changes in another database can't be put back.
    fn foreign(&self, parameters: &BTreeMap<String, String>) -> Option<String> {
        let wanted = parameters.get("database").or(parameters.get("user"))?;
        (*wanted != self.database).then(|| {
            format!(
                "a session for database \"{wanted}\" was refused, as only rows of \"{}\" are put back; let the \
                 application use PGDATABASE or DATABASE_URL of its environment",
                self.database
            )
        })
    }

    fn serve(&self, client: TcpStream) {
        if let Err(why) = self.relay(client) {
            self.gate.note(why);
        }
    }

    fn relay(&self, client: TcpStream) -> Result<(), String> {
        let broken = |error: io::Error| format!("a connection of the application broke off: {error}");
        client.set_nodelay(true).map_err(broken)?;
        let (here, there) =
            (client.local_addr().map_err(broken)?.port(), client.peer_addr().map_err(broken)?.port());
        let defaults = self.gate.lock().defaults.clone();
        let Some(mut open) = self.door.open(Socket::Tcp(client), &defaults)? else { return Ok(()) };
        let key = open.key.clone();
        if let Some(why) = self.foreign(&open.parameters) {
            self.door.close(&key);
            let mut refusal = Vec::new();
            let text = format!("{PROGRAM}: {why}");
            server::error_response(
                &mut refusal,
                &[(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "28000"), (b'M', &text)],
            );
            // It may be gone already.
            let _ = open.client.write_all(&refusal);
            return Err(why);
        }
        let pid = key.first_chunk::<4>().map_or(0, |pid| i32::from_be_bytes(*pid));
        let process = process::owner_of(there, here, &self.gate.groups());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(wake.map_err(|error| broken(error.into()))?);
        self.gate.enter(number, Seat::new(pid, process, Arc::clone(&wake)));
        Session::new(Arc::clone(&self.gate), number, open, wake).run();
        self.gate.leave(number);
        self.door.close(&key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_to_a_server_of_this_machine_need_not_be_encrypted() {
        let mode = |host: Host, ssl_mode| {
            plain_nearby(ConnectOptions { ssl_mode, ..ConnectOptions::new(host, "ada", "shop") }).ssl_mode
        };
        for near in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(mode(Host::tcp(near, 5432), SslMode::Prefer), SslMode::Allow, "{near}");
            assert_eq!(mode(Host::tcp(near, 5432), SslMode::Require), SslMode::Require, "{near}");
        }
        assert_eq!(mode(Host::tcp("db.example", 5432), SslMode::Prefer), SslMode::Prefer);
    }
}
