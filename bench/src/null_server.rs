//! A server that implements the PostgreSQL protocol and replies immediately, with as little CPU as
//! possible, so that only the client is measured.
//!
//! It has one thread with one epoll loop, and a Unix socket and a loopback TCP socket with the same
//! port number. [`answers`] has the replies, [`session`] and [`wire`] the protocol; this file has
//! the sockets. It has no tables, passwords or data.

pub mod answers;
mod connections;
pub mod session;
pub mod sql;
pub mod wire;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};

use connections::EventLoop;

/// A running null server; dropping it stops the thread, closes every connection and removes the
/// socket file.
#[derive(Debug)]
pub struct NullServer {
    directory: PathBuf,
    port: u16,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<Result<(), NullServerError>>>,
}

/// The reason that a null server can't start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum NullServerError {
    /// The loopback TCP socket can't be created.
    #[error("the null server can't listen on 127.0.0.1 port {port}: {source}; choose another port")]
    Tcp {
        /// The requested port; 0 for any.
        port: u16,
        /// The system's error.
        source: io::Error,
    },
    /// The Unix socket can't be created.
    #[error(
        "the null server can't listen on the socket {path}: {source}; choose a folder that exists, \
         is writable and has a short name"
    )]
    Unix {
        /// The socket file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The event loop failed.
    #[error("the null server's event loop failed: {0}")]
    Loop(#[from] io::Error),
}

impl NullServer {
    /// Starts a server on `DIRECTORY/.s.PGSQL.PORT` and on 127.0.0.1; port 0 selects a free one.
    ///
    /// Raises the process's limit of open files to the hard limit.
    ///
    /// # Errors
    /// If one of the sockets can't be created, or the thread can't be started.
    pub fn start(directory: &Path, port: u16) -> Result<NullServer, NullServerError> {
        raise_file_limit();
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|source| NullServerError::Tcp { port, source })?;
        let port = tcp.local_addr()?.port();
        let path = socket_path(directory, port);
        // This process holds the TCP port, so the server that left this file has ended.
        let _ = std::fs::remove_file(&path);
        let unix = UnixListener::bind(&path).map_err(|source| NullServerError::Unix { path, source })?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?);
        let mut server =
            NullServer { directory: directory.to_path_buf(), port, stop: Arc::clone(&stop), thread: None };
        let mut events = EventLoop::new(unix, tcp, stop)?;
        let run = move || events.run().map_err(NullServerError::Loop);
        server.thread = Some(std::thread::Builder::new().name("null-server".into()).spawn(run)?);
        Ok(server)
    }

    /// The folder of the Unix socket, to be used as `-h`.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The port, the same for both sockets.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Stops the server.
    ///
    /// # Errors
    /// If the event loop had already failed.
    pub fn stop(mut self) -> Result<(), NullServerError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), NullServerError> {
        let _ = std::fs::remove_file(socket_path(&self.directory, self.port));
        let Some(thread) = self.thread.take() else { return Ok(()) };
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes()).map_err(io::Error::from)?;
        match thread.join() {
            Ok(result) => result,
            Err(_) => Err(NullServerError::Loop(io::Error::other("its thread panicked"))),
        }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        // The error can't be reported here; stop() reports it.
        let _ = self.end();
    }
}

fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Raises the soft limit of open files to the hard one, for this process and its children.
pub fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, fewer connections are possible, which accept will report.
    let _ = setrlimit(Resource::Nofile, limit);
}
