//! A place to connect to, after name lookup: a socket path or an IP address. Used for connections
//! and cancel requests.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::config::{ConnectOptions, Host, Keepalives};
use crate::error_text::errno_text;
use crate::socket::{Deadline, Socket};

/// A place to connect to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Endpoint {
    /// A Unix-domain socket; a path that starts with `@` is a name in the abstract namespace.
    Unix(PathBuf),
    /// An IP address, and the name from which it was looked up.
    Tcp { host: String, address: SocketAddr },
}

/// The maximum length of a path in a socket address.
const MAX_SOCKET_PATH: usize = 107;

impl Endpoint {
    /// The places for a host: one, or as many as its name has addresses.
    pub(crate) fn lookup(host: &Host) -> Result<Vec<Self>, String> {
        if let Some(path) = host.socket_path() {
            let length = path.as_os_str().len();
            if length > MAX_SOCKET_PATH {
                let path = path.display();
                return Err(format!(
                    "Unix-domain socket path \"{path}\" is too long (maximum {MAX_SOCKET_PATH} bytes)"
                ));
            }
            return Ok(vec![Self::Unix(path)]);
        }
        if let Some(numeric) = &host.hostaddr {
            return match numeric.parse::<IpAddr>() {
                // As in libpq, messages then contain the address.
                Ok(ip) => {
                    let address = SocketAddr::new(ip, host.port);
                    Ok(vec![Self::Tcp { host: numeric.clone(), address }])
                }
                Err(_) => {
                    Err(format!("could not parse network address \"{numeric}\": Name or service not known"))
                }
            };
        }
        let name = host.name();
        match (name.as_str(), host.port).to_socket_addrs() {
            Ok(addresses) => Ok(addresses.map(|address| Self::Tcp { host: name.clone(), address }).collect()),
            Err(error) => {
                let text = errno_text(&error);
                let cause = text.rsplit_once(": ").map_or(text.as_str(), |(_, cause)| cause);
                Err(format!("could not translate host name \"{name}\" to address: {cause}"))
            }
        }
    }

    /// Opens a blocking socket to it. `options` determine how a dead peer is detected, which isn't
    /// needed for Unix sockets.
    pub(crate) fn open(&self, deadline: &Deadline, options: Option<&ConnectOptions>) -> io::Result<Socket> {
        match self {
            Self::Unix(path) => open_unix(path, deadline).map(Socket::Unix),
            Self::Tcp { address, .. } => {
                let stream = open_tcp(address, deadline, options)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }

    /// The question in messages if it can't be reached.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Unix(_) => "Is the server running locally and accepting connections on that socket?",
            Self::Tcp { .. } => "Is the server running on that host and accepting TCP/IP connections?",
        }
    }
}

/// The place as named by libpq.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "on socket \"{}\"", path.display()),
            Self::Tcp { host, address } => {
                write!(f, "at \"{host}\"")?;
                if *host != address.ip().to_string() {
                    write!(f, " ({})", address.ip())?;
                }
                write!(f, ", port {}", address.port())
            }
        }
    }
}

/// Opens a TCP connection; unlike std's, the wait can be ended at any time.
fn open_tcp(
    address: &SocketAddr,
    deadline: &Deadline,
    options: Option<&ConnectOptions>,
) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(options) = options {
        // Set before connecting, as in libpq, because the limit for unacknowledged bytes applies to
        // the first packet too.
        watch_peer(&socket, options.keepalives, options.tcp_user_timeout)?;
    }
    match rustix::net::connect(&socket, address) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => finish(&socket, deadline)?,
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Waits until a connection is established.
fn finish(socket: &OwnedFd, deadline: &Deadline) -> io::Result<()> {
    loop {
        deadline.wait(socket, PollFlags::OUT)?;
        sockopt::socket_error(socket)??;
        match rustix::net::getpeername(socket) {
            Ok(_) => return Ok(()),
            Err(Errno::NOTCONN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The duration of each wait of a Unix socket for a server whose queue of connections is full.
const UNIX_WAIT: Duration = Duration::from_millis(100);

/// Opens a Unix socket; unlike std's, the wait for a server whose queue of connections is full can
/// be ended.
fn open_unix(path: &Path, deadline: &Deadline) -> io::Result<UnixStream> {
    let address = match path.as_os_str().as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name)?,
        name => SocketAddrUnix::new(name)?,
    };
    let socket: OwnedFd =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(UNIX_WAIT))?;
    loop {
        deadline.left()?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    Ok(socket.into())
}

/// Sets the options of a TCP socket for detecting dead peers.
fn watch_peer(stream: &OwnedFd, keepalives: Keepalives, user_timeout: Option<Duration>) -> io::Result<()> {
    if keepalives.enabled {
        sockopt::set_socket_keepalive(stream, true)?;
        if let Some(idle) = keepalives.idle {
            sockopt::set_tcp_keepidle(stream, idle)?;
        }
        if let Some(interval) = keepalives.interval {
            sockopt::set_tcp_keepintvl(stream, interval)?;
        }
        if let Some(count) = keepalives.count {
            sockopt::set_tcp_keepcnt(stream, count)?;
        }
    }
    #[cfg(target_os = "linux")]
    if let Some(limit) = user_timeout {
        let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    }
    Ok(())
}
