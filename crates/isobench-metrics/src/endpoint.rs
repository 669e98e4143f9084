//! The HTTP server that answers `GET /metrics`, one request per connection, in a thread of its own.
//!
//! It reads what the meter holds, so however often it is asked, the clients' threads don't notice.
//! Not here: the text (`openmetrics`).

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use httparse::{EMPTY_HEADER, Request, Status};
use isobench_limits::LIMITS;

use crate::meter::Meter;
use crate::openmetrics::{CONTENT_TYPE, text};

/// The path of the metrics.
const PATH: &str = "/metrics";

/// The longest head of a request, bytes.
const LONGEST_HEAD: usize = 16 << 10;

/// The most header lines of a request.
const MOST_HEADERS: usize = 64;

/// Time before another try when no connection can be accepted, for example because there are too many
/// open files.
const PAUSE: Duration = Duration::from_millis(200);

/// The endpoint can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address can't be bound.
    #[error("could not listen on {0}: {1}; choose a free port (0: any) of an address that this machine has")]
    Bind(SocketAddr, #[source] io::Error),
    /// There is no thread for it.
    #[error("could not start a thread to answer on {0}: {1}")]
    Thread(SocketAddr, #[source] io::Error),
}

/// An open endpoint, which is closed on drop.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens on exactly this address, and answers with what the meter holds.
    ///
    /// # Errors
    /// The address can't be bound, or there is no thread.
    pub fn open(address: SocketAddr, meter: &Meter) -> Result<Endpoint, EndpointError> {
        let bind = |error| EndpointError::Bind(address, error);
        let listener = TcpListener::bind(address).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let (answering, meter) = (listener.try_clone().map_err(bind)?, meter.clone());
        let thread = thread::Builder::new().name("metrics".to_owned());
        let thread = thread.spawn(move || serve(&answering, &meter));
        let thread = thread.map_err(|error| EndpointError::Thread(address, error))?;
        Ok(Endpoint { listener, address, thread: Some(thread) })
    }

    /// The address of the metrics.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // Wakes the thread, which has the same socket.
        let woken = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let (Ok(()), Some(thread)) = (woken, self.thread.take()) {
            // A thread that has panicked has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Answers requests until the socket is shut down.
fn serve(listener: &TcpListener, meter: &Meter) {
    loop {
        match listener.accept() {
            // Whoever has asked and left doesn't matter.
            Ok((mut socket, _)) => drop(answer(&mut socket, meter)),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => thread::sleep(PAUSE),
        }
    }
}

/// Answers one request.
///
/// # Errors
/// The other side is gone, or too slow.
fn answer(socket: &mut TcpStream, meter: &Meter) -> io::Result<()> {
    let end = Instant::now() + LIMITS.metrics;
    socket.set_write_timeout(Some(LIMITS.metrics))?;
    let asked = read_head(socket, end)?;
    let body = || text(meter);
    let (status, headers, body) = match &asked {
        Asked::Metrics { .. } => ("200 OK", format!("Content-Type: {CONTENT_TYPE}\r\n"), body()),
        Asked::Elsewhere => ("404 Not Found", PLAIN.to_owned(), format!("isobench has {PATH} only\n")),
        Asked::Otherwise => {
            ("405 Method Not Allowed", format!("{PLAIN}Allow: GET, HEAD\r\n"), "use GET\n".to_owned())
        }
        Asked::Nonsense => ("400 Bad Request", PLAIN.to_owned(), "not a request of HTTP/1.1\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n\
        \r\n",
        body.len()
    );
    let body = if matches!(asked, Asked::Metrics { without_body: true }) { "" } else { &body };
    socket.write_all((head + body).as_bytes())?;
    socket.shutdown(Shutdown::Write)
}

const PLAIN: &str = "Content-Type: text/plain; charset=utf-8\r\n";

/// What a request is about.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Metrics { without_body: bool },
    Elsewhere,
    Otherwise,
    Nonsense,
}

/// Reads the head of a request until an instant.
///
/// # Errors
/// The other side is gone, or too slow.
fn read_head(socket: &mut TcpStream, end: Instant) -> io::Result<Asked> {
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let read = match socket.read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&part[..read]);
        if let Some(asked) = asked(&head) {
            return Ok(asked);
        }
        if head.len() > LONGEST_HEAD {
            return Ok(Asked::Nonsense);
        }
    }
}

/// Understands the head of a request; `None` if there has to be more of it.
fn asked(head: &[u8]) -> Option<Asked> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Partial) => return None,
        Err(_) => return Some(Asked::Nonsense),
        Ok(Status::Complete(_)) => {}
    }
    let path = request.path.unwrap_or_default();
    Some(match request.method.unwrap_or_default() {
        method @ ("GET" | "HEAD") if path.split('?').next() == Some(PATH) => {
            Asked::Metrics { without_body: method == "HEAD" }
        }
        "GET" | "HEAD" => Asked::Elsewhere,
        _ => Asked::Otherwise,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::tests::seen;

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    /// What the endpoint answers to these bytes.
    fn ask(endpoint: &Endpoint, request: &[u8]) -> String {
        let mut socket = TcpStream::connect(endpoint.address).expect("a connection");
        for byte in request.chunks(7) {
            socket.write_all(byte).expect("sent");
        }
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn metrics_are_what_is_asked_for() {
        let endpoint = Endpoint::open(local(), &seen()).expect("an endpoint");
        assert!(endpoint.url().starts_with("http://127.0.0.1:") && endpoint.url().ends_with("/metrics"));
        let full = ask(&endpoint, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = full.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(body.ends_with("# EOF\n"));
        let only = ask(&endpoint, b"HEAD /metrics?x=1 HTTP/1.1\r\n\r\n");
        assert!(only.starts_with("HTTP/1.1 200") && only.ends_with("\r\n\r\n"), "{only}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
            (b"\x16\x03\x01 hello\r\n\r\n", "400"),
            (b"GET /metrics HTTP/9\r\n\r\n", "400"),
        ] {
            assert!(ask(&endpoint, request).starts_with(&format!("HTTP/1.1 {status}")), "{status}");
        }
    }

    #[test]
    fn a_head_without_end_is_refused() {
        let endless = [b"GET /metrics HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; LONGEST_HEAD]].concat();
        assert_eq!(asked(&endless), None);
        let many = [b"GET /metrics HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(MOST_HEADERS + 1)].concat();
        assert_eq!(asked(&many), Some(Asked::Nonsense));
        let endpoint = Endpoint::open(local(), &Meter::default()).expect("an endpoint");
        assert!(ask(&endpoint, &endless).starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn who_leaves_or_says_nothing_keeps_nobody_waiting_for_long() {
        let endpoint = Endpoint::open(local(), &Meter::default()).expect("an endpoint");
        drop(TcpStream::connect(endpoint.address).expect("a connection"));
        let silent = TcpStream::connect(endpoint.address).expect("a connection");
        assert!(ask(&endpoint, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n# EOF\n"));
        drop(silent);
    }

    #[test]
    fn an_address_in_use_is_an_error_and_one_that_was_closed_is_free() {
        let endpoint = Endpoint::open(local(), &Meter::default()).expect("an endpoint");
        let address = endpoint.address;
        let error = Endpoint::open(address, &Meter::default()).expect_err("in use").to_string();
        assert!(error.starts_with(&format!("could not listen on {address}: ")), "{error}");
        drop(endpoint);
        assert!(TcpStream::connect(address).is_err());
    }
}
