//! The beginning of a client's connection, in a thread of its own: encryption is refused unless there is
//! a certificate for it, cancel requests are sent on, and a session is relayed until the server is ready
//! for its first statement.
//!
//! Authentication passes through: no password is known here, and none of its messages is recorded.
//! Only one byte sequence is changed. A client without encryption can't use SCRAM-SHA-256-PLUS, and
//! libpq refuses a server that offers it; so it is struck from the list where only the way to the
//! server is encrypted.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use isobench_capture::Opened;
use isobench_pgwire::frontend::{CANCEL_REQUEST_CODE, GSSENC_REQUEST_CODE, SSL_REQUEST_CODE};
use isobench_pgwire::{CancelRoute, ConnectOptions, FailedAttempt, Link, Links, Socket, TlsAcceptor, server};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::identity::{is_own, lends_identity};
use crate::reading::SessionReading;

/// The time a client has for its first packet. Source: PostgreSQL: `authentication_timeout`.
const PATIENCE: Duration = Duration::from_mins(1);

/// The time a client that was refused has to close its end.
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// The most bytes of a first packet. Source: PostgreSQL, `MAX_STARTUP_PACKET_LENGTH`.
const LONGEST_PACKET: usize = 10_000;

/// The longest message that is examined before the session is ready, in bytes.
const LONGEST_MESSAGE: usize = 1 << 20;

/// A fatal alert of TLS, `handshake_failure`: the answer to a client that begins to encrypt at once.
const TLS_ALERT: [u8; 7] = [0x15, 3, 1, 0, 2, 2, 40];

/// The first byte of a client that does.
const TLS_HANDSHAKE: u8 = 0x16;

/// Where cancel requests go, by process number and key as they stand in the request.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<HashMap<Vec<u8>, CancelRoute>>);

impl Keys {
    fn insert(&self, key: &[u8], route: &CancelRoute) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_vec(), route.clone());
    }

    fn find(&self, key: &[u8]) -> Option<CancelRoute> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Forgets the key of a session that has ended.
    pub(crate) fn remove(&self, key: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// A session whose server is ready, or whose messages aren't examined.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) client: Socket,
    pub(crate) server: Socket,
    /// Bytes of the client that were read and not sent on.
    pub(crate) from_client: Vec<u8>,
    /// The parameters of the session.
    pub(crate) opened: Opened,
    /// How the server reads its texts.
    pub(crate) reading: SessionReading,
    /// Why nothing is recorded of it.
    pub(crate) unseen: Option<&'static str>,
    /// Its key for cancel requests.
    pub(crate) key: Vec<u8>,
}

/// How the beginning of a connection ended.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// As a session.
    Started(Box<Started>),
    /// As one that the server refused, or that broke off.
    Refused(Opened, String),
    /// As something else, such as a cancel request.
    Other,
}

/// The first packet of a client.
#[derive(Debug, PartialEq)]
enum Packet {
    Startup { packet: Vec<u8>, parameters: BTreeMap<String, String> },
    Cancel(Vec<u8>),
}

/// The way from clients to the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    /// The server.
    pub(crate) options: &'a ConnectOptions,
    /// Where cancel requests go.
    pub(crate) keys: &'a Keys,
    /// The command, for messages to clients.
    pub(crate) program: &'static str,
    /// Settings that a session begins with, as in PGOPTIONS; those of the client come after them. Without
    /// any, the client's packet is passed on as it is.
    pub(crate) defaults: &'a str,
    /// Encrypts the connections of clients that ask for it; without it they are refused encryption.
    pub(crate) acceptor: Option<&'a TlsAcceptor>,
}

/// Relays the beginning of a connection.
///
/// # Errors
/// The client sent what isn't the protocol; the text is for the user.
pub(crate) fn begin(mut client: Socket, way: &Way<'_>) -> Result<Beginning, String> {
    let Way { options, keys, program, defaults, acceptor } = *way;
    let lost = |error: io::Error| format!("a connection of the application broke off: {error}");
    client.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let packet = match first_packet(&mut client, acceptor) {
        Ok(Some(packet)) => packet,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error.to_string()),
        // Such as a client that only looks whether the port is open.
        Ok(None) | Err(_) => return Ok(Beginning::Other),
    };
    client.set_read_timeout(None).map_err(lost)?;
    match packet {
        Packet::Cancel(packet) => {
            cancel(&packet, options, keys);
            Ok(Beginning::Other)
        }
        Packet::Startup { packet, parameters } => {
            let opened = Opened { parameters, ..Opened::default() };
            if lends_identity(options) && !is_own(&client) {
                let mut refusal = Vec::new();
                fatal(&mut refusal, program, "28000", FOREIGN);
                // It may be gone already.
                let _ = client.write_all(&refusal);
                let_go(&mut client);
                return Ok(Beginning::Refused(opened, FOREIGN.to_owned()));
            }
            let packet = if defaults.is_empty() { packet } else { with_defaults(&packet, defaults) };
            Ok(start(client, &packet, opened, way))
        }
    }
}

/// The note on a client that goes away because its connection isn't encrypted.
const ENCRYPTED: &str = "an application demands an encrypted connection and went away; only the way to the server is \
    encrypted: use sslmode=disable or sslmode=prefer in its settings";

/// Why a client is refused that another user runs.
const FOREIGN: &str = "the server may take whoever comes through the recorder for the user who runs it, and this client \
    is another user's; let the recorder connect by TCP, with a password";

/// Appends an error of the recorder's own.
fn fatal(out: &mut Vec<u8>, program: &str, code: &str, why: &str) {
    let text = format!("{program}: {why}");
    server::error_response(out, &[(b'S', "FATAL"), (b'V', "FATAL"), (b'C', code), (b'M', &text)]);
}

/// Reads the first packet that isn't a request for encryption; those are refused, or met by the acceptor.
/// `None` if the client goes away first.
fn first_packet(client: &mut Socket, acceptor: Option<&TlsAcceptor>) -> io::Result<Option<Packet>> {
    let packet = read_packet(client, acceptor);
    if packet.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
        let_go(client);
    }
    packet
}

/// Encrypts a connection that isn't encrypted yet.
fn encrypt(client: &mut Socket, acceptor: &TlsAcceptor) -> io::Result<()> {
    let Socket::Tcp(plain) = client else { return Ok(()) };
    let plain = plain.try_clone()?;
    *client = acceptor.accept(plain, PATIENCE).map_err(|why| {
        let why = format!(
            "an application demands an encrypted connection and didn't accept the certificate that isobench made \
             ({why}): use sslmode=require or less in its settings, or the file in PGSSLROOTCERT as sslrootcert"
        );
        io::Error::new(io::ErrorKind::InvalidData, why)
    })?;
    Ok(())
}

/// True if a client encrypts at once, without a request.
fn encrypts_at_once(client: &Socket) -> io::Result<bool> {
    let Socket::Tcp(plain) = client else { return Ok(false) };
    let mut first = [0];
    Ok(plain.peek(&mut first)? == 1 && first[0] == TLS_HANDSHAKE)
}

fn read_packet(client: &mut Socket, acceptor: Option<&TlsAcceptor>) -> io::Result<Option<Packet>> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text);
    let mut refused = false;
    if let Some(acceptor) = acceptor
        && encrypts_at_once(client)?
    {
        encrypt(client, acceptor)?;
    }
    loop {
        let mut length = [0; 4];
        if client.read(&mut length[..1])? == 0 {
            return if refused { Err(wrong(ENCRYPTED)) } else { Ok(None) };
        }
        if length[0] == TLS_HANDSHAKE {
            // The client may be gone; then there is no one to answer.
            let _ = client.write_all(&TLS_ALERT);
            return Err(wrong(
                "an application tried to encrypt its connection to the recorder at once (sslnegotiation=direct); \
                 only the way to the server is encrypted: use sslmode=disable",
            ));
        }
        client.read_exact(&mut length[1..])?;
        let size = u32::from_be_bytes(length) as usize;
        if !(8..=LONGEST_PACKET).contains(&size) {
            return Err(wrong("a connection began with something else than PostgreSQL's protocol"));
        }
        let mut packet = vec![0; size];
        packet[..4].copy_from_slice(&length);
        client.read_exact(&mut packet[4..])?;
        let code = i32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
        match (code, acceptor) {
            (SSL_REQUEST_CODE, Some(acceptor)) if matches!(client, Socket::Tcp(_)) => {
                client.write_all(b"S")?;
                encrypt(client, acceptor)?;
            }
            (SSL_REQUEST_CODE | GSSENC_REQUEST_CODE, _) => {
                refused = code == SSL_REQUEST_CODE;
                client.write_all(b"N")?;
            }
            (CANCEL_REQUEST_CODE, _) => return Ok(Some(Packet::Cancel(packet))),
            _ => {
                let parameters = parameters(&packet[8..]);
                return Ok(Some(Packet::Startup { packet, parameters }));
            }
        }
    }
}

/// Ends a connection so that the client gets all that it was sent: what it has sent itself is read, as
/// the system would otherwise cut the connection off.
fn let_go(client: &mut Socket) {
    // It may be gone already, and then there is nothing to wait for.
    let _ = client.shutdown(Shutdown::Write);
    let _ = client.set_read_timeout(Some(FAREWELL));
    let mut buffer = [0; 1024];
    let mut total = 0;
    while total < LONGEST_MESSAGE {
        match client.read(&mut buffer) {
            Ok(count @ 1..) => total += count,
            _ => return,
        }
    }
}

/// The names and values of a start-up packet.
fn parameters(packet: &[u8]) -> BTreeMap<String, String> {
    let mut texts = packet.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    let mut parameters = BTreeMap::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        if name.is_empty() {
            break;
        }
        parameters.insert(name, value);
    }
    parameters
}

/// The start-up packet with settings before those that it has. They come first in `options`, so that the
/// client's own win.
fn with_defaults(packet: &[u8], defaults: &str) -> Vec<u8> {
    let mut texts = packet.get(8..).unwrap_or_default().split(|byte| *byte == 0);
    let (mut body, mut own) = (Vec::new(), Vec::new());
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        match name {
            b"" => break,
            b"options" => own = value.to_vec(),
            _ => body.extend([name, value].into_iter().flat_map(|text| [text, &b"\0"[..]]).flatten()),
        }
    }
    body.extend_from_slice(b"options\0");
    body.extend_from_slice(defaults.as_bytes());
    if !own.is_empty() {
        body.push(b' ');
        body.extend_from_slice(&own);
    }
    body.extend_from_slice(b"\0\0");
    let size = u32::try_from(8 + body.len()).unwrap_or(u32::MAX);
    [&size.to_be_bytes()[..], packet.get(4..8).unwrap_or_default(), &body].concat()
}

/// Sends a cancel request to the server of its session. There is no answer, as in the protocol.
fn cancel(packet: &[u8], options: &ConnectOptions, keys: &Keys) {
    if let Some(route) = keys.find(&packet[8..]) {
        let _ = route.send(packet);
    } else if let Some(Ok(link)) = Links::new(options).next_link() {
        // A session of before, or none: the server knows.
        let _ = link.cancel.send(packet);
    }
}

/// Connects to the server, and relays until it is ready.
fn start(
    mut client: Socket,
    packet: &[u8],
    mut opened: Opened,
    Way { options, keys, program, .. }: &Way<'_>,
) -> Beginning {
    let mut links = Links::new(options);
    let mut attempts: Vec<FailedAttempt> = Vec::new();
    let mut refusal = Vec::new();
    while let Some(link) = links.next_link() {
        let Link { mut socket, encrypted, other_choice, cancel } = match link {
            Ok(link) => link,
            Err(attempt) => {
                attempts.push(attempt);
                continue;
            }
        };
        opened.encrypted = encrypted;
        let sent = socket.write_all(packet);
        let mut relayed = Relayed {
            client: &mut client,
            server: &mut socket,
            encrypted,
            other_choice,
            opened: &mut opened,
            reading: SessionReading::default(),
        };
        let outcome = sent.map_err(|error| error.to_string()).and_then(|()| relayed.until_ready());
        let reading = relayed.reading;
        match outcome {
            Ok(Ready::Refused { message, starting }) => {
                refusal = message;
                if starting {
                    links.leave_place();
                }
            }
            Ok(Ready::Session { from_client, key, understood }) => {
                if !key.is_empty() {
                    keys.insert(&key, &cancel);
                }
                let replicates = opened.parameters.get("replication").is_some_and(|value| {
                    !matches!(
                        value.to_ascii_lowercase().as_str(),
                        "false" | "off" | "no" | "0" | "f" | "n" | "of"
                    )
                });
                let unseen = match (understood, replicates) {
                    (false, _) => Some("messages at the start of a session that aren't understood"),
                    (true, true) => Some("a session for replication"),
                    (true, false) => None,
                };
                return Beginning::Started(Box::new(Started {
                    client,
                    server: socket,
                    from_client,
                    opened,
                    reading,
                    unseen,
                    key,
                }));
            }
            Ok(Ready::Ended(why)) => {
                let_go(&mut client);
                return Beginning::Refused(opened, why);
            }
            Err(why) => {
                attempts.push(FailedAttempt {
                    place: None,
                    problem: isobench_pgwire::ConnectProblem::Lost(io::Error::other(why)),
                });
            }
        }
    }
    let why = if refusal.is_empty() {
        let texts: Vec<String> = attempts.iter().map(ToString::to_string).collect();
        fatal(&mut refusal, program, "08001", &texts.join("\n"));
        texts.join("; ")
    } else {
        "refused by the server".to_owned()
    };
    let _ = client.write_all(&refusal);
    let_go(&mut client);
    Beginning::Refused(opened, why)
}

/// Both ends of a session that isn't ready yet.
struct Relayed<'a> {
    client: &'a mut Socket,
    server: &'a mut Socket,
    encrypted: bool,
    other_choice: bool,
    opened: &'a mut Opened,
    reading: SessionReading,
}

/// What relaying came to.
enum Ready {
    /// The server is ready, or sent what isn't understood.
    Session { from_client: Vec<u8>, key: Vec<u8>, understood: bool },
    /// The server refused before it asked for anything, and another way may help. Nothing was passed on.
    Refused { message: Vec<u8>, starting: bool },
    /// One end closed the connection.
    Ended(String),
}

impl Relayed<'_> {
    fn until_ready(&mut self) -> Result<Ready, String> {
        let mut from_server = Vec::new();
        let mut from_client = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        let (mut first, mut authenticated) = (true, false);
        let mut key = Vec::new();
        let mut why = "the server closed the connection".to_owned();
        loop {
            let mut idle = true;
            match now(self.server, &mut buffer) {
                Ok(Some(0)) | Err(_) => {
                    let _ = self.client.write_all(&from_server);
                    return Ok(Ready::Ended(why));
                }
                Ok(Some(count)) => {
                    idle = false;
                    from_server.extend_from_slice(&buffer[..count]);
                }
                Ok(None) => {}
            }
            while let Some(size) = size_of(&from_server) {
                let Some(message) = from_server.get(..size).filter(|_| size <= LONGEST_MESSAGE) else {
                    if size <= LONGEST_MESSAGE && b"RESKZNv".contains(&from_server[0]) {
                        break;
                    }
                    // Such as the errors of old servers, which have no length.
                    self.pass(&from_server)?;
                    return Ok(Ready::Session { from_client, key, understood: false });
                };
                let body = &message[5..];
                match message[0] {
                    b'E' => {
                        let code = isobench_pgwire::backend::sqlstate(body);
                        let starting = code.as_str() == "57P03";
                        if first && (self.other_choice || starting) {
                            return Ok(Ready::Refused { message: message.to_vec(), starting });
                        }
                        why = self.refused(code.as_str());
                        self.pass(message)?;
                    }
                    b'R' if self.encrypted && body.starts_with(&10_i32.to_be_bytes()) => {
                        self.pass(&without_plus(message))?;
                    }
                    b'R' => {
                        authenticated |= body == 0_i32.to_be_bytes();
                        self.pass(message)?;
                    }
                    b'S' => {
                        self.reading.report(body);
                        let mut texts = body.split(|byte| *byte == 0);
                        if let (Some(b"server_version"), Some(version)) = (texts.next(), texts.next()) {
                            self.opened.server_version = Some(String::from_utf8_lossy(version).into_owned());
                        }
                        self.pass(message)?;
                    }
                    b'K' => {
                        key = body.to_vec();
                        self.pass(message)?;
                    }
                    b'Z' => {
                        self.reading.ready();
                        // Nothing follows before the client's first statement but what belongs to nobody.
                        self.pass(&from_server)?;
                        return Ok(Ready::Session {
                            from_client,
                            key,
                            understood: from_server.len() == size,
                        });
                    }
                    b'N' | b'v' => self.pass(message)?,
                    _ => {
                        self.pass(&from_server)?;
                        return Ok(Ready::Session { from_client, key, understood: false });
                    }
                }
                first = false;
                from_server.drain(..size);
            }
            if !authenticated {
                match now(self.client, &mut buffer) {
                    Ok(Some(0)) | Err(_) => {
                        return Ok(Ready::Ended("the client closed the connection".to_owned()));
                    }
                    Ok(Some(count)) => {
                        idle = false;
                        from_client.extend_from_slice(&buffer[..count]);
                    }
                    Ok(None) => {}
                }
                // Statements that a client sends ahead stay until the session is ready.
                while from_client.first() == Some(&b'p')
                    && let Some(size) = size_of(&from_client)
                    && size <= from_client.len()
                {
                    self.server.write_all(&from_client[..size]).map_err(|error| error.to_string())?;
                    from_client.drain(..size);
                }
            }
            if idle {
                self.wait(!authenticated && from_client.len() < LONGEST_MESSAGE);
            }
        }
    }

    /// Why there is no session after an error of the server with this SQLSTATE.
    fn refused(&self, code: &str) -> String {
        // libpq tells the server that it could bind SCRAM to its encryption, which ends here.
        let binds = self.encrypted && code == "28000" && matches!(self.client, Socket::Tls(_));
        let hint = if binds { "; add channel_binding=disable to the application's settings" } else { "" };
        format!("refused by the server ({code}){hint}")
    }

    /// Passes bytes on to the client. That it is gone shows when it is read.
    fn pass(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.client.write_all(bytes).map_err(|error| error.to_string())
    }

    fn wait(&self, for_client: bool) {
        let mut both = [
            PollFd::new(&*self.server, PollFlags::IN),
            PollFd::new(&*self.client, if for_client { PollFlags::IN } else { PollFlags::empty() }),
        ];
        match poll(&mut both, None) {
            Ok(_) | Err(Errno::INTR) => {}
            // Reading shows the problem.
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// Reads what has arrived; `None` if nothing has.
fn now(socket: &mut Socket, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match socket.receive_now(buffer) {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The size of the message at the start, with its type byte; `None` if that isn't known yet.
fn size_of(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(1..5)?;
    Some(u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize + 1)
        .map(|size| size.max(5))
}

/// AuthenticationSASL without SCRAM-SHA-256-PLUS.
fn without_plus(message: &[u8]) -> Vec<u8> {
    let mechanisms = message[9..].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut out = Vec::new();
    let left: Vec<&str> = mechanisms
        .filter(|name| *name != b"SCRAM-SHA-256-PLUS")
        .filter_map(|name| std::str::from_utf8(name).ok())
        .collect();
    server::authentication_sasl(&mut out, &left);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn packet(code: i32, rest: &[u8]) -> Vec<u8> {
        let length = u32::try_from(8 + rest.len()).expect("short");
        [&length.to_be_bytes(), &code.to_be_bytes(), rest].concat()
    }

    fn first(bytes: &[u8]) -> (io::Result<Option<Packet>>, Vec<u8>) {
        let (mut client, recorder) = UnixStream::pair().expect("sockets");
        client.write_all(bytes).expect("written");
        client.shutdown(Shutdown::Write).expect("shut down");
        let packet = {
            let mut socket = Socket::Unix(recorder);
            first_packet(&mut socket, None)
        };
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an answer");
        (packet, answer)
    }

    #[test]
    fn requests_for_encryption_are_refused_and_the_next_packet_is_read() {
        // Protocol 3.2 with an option: whatever the version, the packet stays as it is.
        let start = packet(3 << 16 | 2, b"user\0ada\0_pq_.x\0y\0\0");
        let bytes = [packet(GSSENC_REQUEST_CODE, b""), packet(SSL_REQUEST_CODE, b""), start.clone()].concat();
        let (found, answer) = first(&bytes);
        let Some(Packet::Startup { packet, parameters }) = found.expect("a packet") else {
            panic!("no packet")
        };
        assert_eq!((answer.as_slice(), packet), (&b"NN"[..], start));
        assert_eq!(parameters["user"], "ada");
    }

    #[test]
    fn cancel_requests_keep_their_bytes() {
        for length in [4, 32, 256] {
            let request = packet(CANCEL_REQUEST_CODE, &vec![7; 4 + length]);
            let (found, answer) = first(&request);
            assert_eq!((found.expect("a packet"), answer), (Some(Packet::Cancel(request)), Vec::new()));
        }
    }

    #[test]
    fn a_client_that_demands_encryption_is_named() {
        let (found, answer) = first(&packet(SSL_REQUEST_CODE, b""));
        let error = found.expect_err("it went away").to_string();
        assert!(error.contains("sslmode=disable") && answer == b"N", "{error}");
        let (found, _) = first(&packet(GSSENC_REQUEST_CODE, b""));
        assert_eq!(found.expect("nothing"), None, "GSSAPI is tried first by clients that don't need it");
    }

    #[test]
    fn settings_of_the_client_come_after_the_defaults() {
        let start = packet(3 << 16, b"user\0ada\0options\0-c a=1\0\0");
        let changed = with_defaults(&start, "-c b=2");
        assert_eq!(changed, packet(3 << 16, b"user\0ada\0options\0-c b=2 -c a=1\0\0"));
        let plain = packet(3 << 16, b"user\0ada\0\0");
        assert_eq!(with_defaults(&plain, "-c b=2"), packet(3 << 16, b"user\0ada\0options\0-c b=2\0\0"));
    }

    #[test]
    fn other_beginnings_are_refused() {
        let (found, answer) = first(&[0x16, 3, 1, 0, 5]);
        let error = found.expect_err("refused").to_string();
        assert!(error.contains("sslmode=disable") && answer == TLS_ALERT, "{error}");
        let (found, _) = first(b"GET / HTTP/1.1\r\n");
        assert!(found.expect_err("refused").to_string().contains("PostgreSQL's protocol"));
        assert_eq!(first(b"").0.expect("nothing"), None);
    }

    #[test]
    fn plus_is_struck_from_the_mechanisms() {
        let mut offered = Vec::new();
        server::authentication_sasl(&mut offered, &["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]);
        let mut left = Vec::new();
        server::authentication_sasl(&mut left, &["SCRAM-SHA-256"]);
        assert_eq!(without_plus(&offered), left);
    }
}
