//! A server that speaks the PostgreSQL protocol and answers at once, with as little CPU as it can:
//! what is left to measure is the client.
//!
//! One thread, one epoll loop, a Unix socket and loopback TCP under one port number. What it
//! answers is in [`answers`], how it speaks in [`session`] and [`wire`]; this file moves the bytes.
//! It has no tables, checks no password and keeps no data.

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

use connections::Loop;

/// A running null server; dropping it stops the thread, closes every connection and removes the
/// socket file.
#[derive(Debug)]
pub struct NullServer {
    directory: PathBuf,
    port: u16,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<Result<(), NullServerError>>>,
}

/// Why a null server can't start or had to end.
#[derive(Debug, thiserror::Error)]
pub enum NullServerError {
    /// Loopback TCP is not to be had.
    #[error("the null server can't listen on 127.0.0.1 port {port}: {source}; choose another port")]
    Tcp {
        /// The port asked for; 0 means any.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The Unix socket is not to be had.
    #[error(
        "the null server can't listen on the socket {path}: {source}; choose a folder that exists, \
         is writable and has a short name"
    )]
    Unix {
        /// The socket file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The event loop broke.
    #[error("the null server's event loop failed: {0}")]
    Loop(#[from] io::Error),
}

impl NullServer {
    /// Starts a server on `DIRECTORY/.s.PGSQL.PORT` and on 127.0.0.1; port 0 takes a free one.
    ///
    /// Raises the process's limit of open files to the hard limit.
    ///
    /// # Errors
    /// One of the sockets can't be had, or the thread can't be started.
    pub fn start(directory: &Path, port: u16) -> Result<NullServer, NullServerError> {
        raise_file_limit();
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|source| NullServerError::Tcp { port, source })?;
        let port = tcp.local_addr()?.port();
        let path = socket_path(directory, port);
        // We hold the TCP port, so whoever left this file is gone.
        let _ = std::fs::remove_file(&path);
        let unix = UnixListener::bind(&path).map_err(|source| NullServerError::Unix { path, source })?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?);
        let mut server =
            NullServer { directory: directory.to_path_buf(), port, stop: Arc::clone(&stop), thread: None };
        let mut events = Loop::new(unix, tcp, stop)?;
        let run = move || events.run().map_err(NullServerError::Loop);
        server.thread = Some(std::thread::Builder::new().name("null-server".into()).spawn(run)?);
        Ok(server)
    }

    /// The folder of the Unix socket: what to give as `-h`.
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
    /// The event loop had failed before.
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
        // Nobody is left to tell; stop() is for those who want to know.
        let _ = self.end();
    }
}

fn socket_path(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

/// Raises the soft limit of open files to the hard one, for this process and those it starts.
pub fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it fewer connections fit, which accept reports when it happens.
    let _ = setrlimit(Resource::Nofile, limit);
}
