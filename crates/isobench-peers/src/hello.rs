//! The first exchange on a connection: both sides prove that they know the secret (HMAC-SHA-256, RFC 2104),
//! and say what must be the same.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

use crate::{PeersError, Place};

/// The pause between two attempts to connect to a machine that isn't there yet.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// The first bytes of every connection.
const MAGIC: &[u8; 17] = b"isobench peers 1\n";

/// The longest text in a hello, in bytes.
const LONGEST: u16 = 4096;

/// What all machines know, and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// A secret from a text.
    pub fn new(text: &str) -> Secret {
        Secret(text.as_bytes().to_vec())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A short text for a long one; two texts have the same only if they are equal (SHA-256).
pub fn digest(text: &str) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
    digest::digest(&digest::SHA256, text.as_bytes())
        .as_ref()
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// What must be the same on all machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The secret.
    pub secret: Secret,
    /// The program's version.
    pub version: String,
    /// What the machines are to do, as a text that is the same for all.
    pub task: String,
}

/// What one side says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) rank: usize,
    pub(crate) number: usize,
    nonce: [u8; 32],
    pub(crate) version: String,
    pub(crate) task: String,
}

/// Listens on the own address. One that is taken may be that of a run that is just ending.
pub(crate) fn listen(place: &Place, end: Instant) -> Result<TcpListener, PeersError> {
    let (rank, address) = (place.rank, place.addresses[place.rank].clone());
    let taken = end.min(Instant::now() + LIMITS.exchange);
    loop {
        let listening = TcpListener::bind(&address[..]).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        match listening {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < taken => {
                thread::sleep(PAUSE);
            }
            Err(error) => return Err(PeersError::Listen { rank, address, why: error.to_string() }),
        }
    }
}

/// Connects, if somebody listens.
pub(crate) fn connect(address: &str, limit: Duration) -> Option<TcpStream> {
    let mut found = address.to_socket_addrs().ok()?;
    found.find_map(|one| TcpStream::connect_timeout(&one, limit.min(LIMITS.exchange)).ok())
}

/// Why a first exchange came to nothing.
#[derive(Debug)]
pub(crate) enum Unmet {
    /// Nobody said anything.
    Silent,
    /// What was said, or that it ended in the middle.
    Told(io::Error),
}

impl From<io::Error> for Unmet {
    fn from(error: io::Error) -> Unmet {
        Unmet::Told(error)
    }
}

/// The first exchange of the side that has connected.
pub(crate) fn introduce(
    stream: &TcpStream,
    place: &Place,
    credentials: &Credentials,
) -> Result<Hello, Unmet> {
    let own = prepared(stream, place, credentials)?;
    send(stream, &own).map_err(|_| Unmet::Silent)?;
    let mut first = [0];
    if !matches!(stream.peek(&mut first), Ok(1..)) {
        return Err(Unmet::Silent);
    }
    let theirs = receive(stream).map_err(|error| unanswered(&error))?;
    let (key, said) = (credentials.secret.key(), [&own[..], &theirs.1]);
    send_proof(stream, hmac::sign(&key, &statement(b"from above", said)).as_ref())?;
    let shown = read_proof(stream).map_err(|error| unanswered(&error))?;
    hmac::verify(&key, &statement(b"from below", said), &shown).map_err(|_| stranger())?;
    Ok(theirs.0)
}

/// The first exchange of the side that was connected to, which proves nothing to a stranger.
pub(crate) fn welcome(stream: &TcpStream, place: &Place, credentials: &Credentials) -> io::Result<Hello> {
    stream.set_nonblocking(false)?;
    let own = prepared(stream, place, credentials)?;
    let theirs = receive(stream)?;
    send(stream, &own)?;
    let (key, said) = (credentials.secret.key(), [&theirs.1[..], &own]);
    hmac::verify(&key, &statement(b"from above", said), &read_proof(stream)?).map_err(|_| stranger())?;
    send_proof(stream, hmac::sign(&key, &statement(b"from below", said)).as_ref())?;
    Ok(theirs.0)
}

/// The own hello, in bytes; the connection gets its limits.
fn prepared(stream: &TcpStream, place: &Place, credentials: &Credentials) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(LIMITS.exchange))?;
    stream.set_write_timeout(Some(LIMITS.exchange))?;
    let mut nonce = [0; 32];
    SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("the system has no random numbers"))?;
    let (version, task) = (credentials.version.clone(), credentials.task.clone());
    let hello = Hello { rank: place.rank, number: place.number(), nonce, version, task };
    Ok(hello.encode())
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.rank, self.number] {
            bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        bytes.extend(self.nonce);
        for text in [&self.version, &self.task] {
            let text = &text.as_bytes()[..text.len().min(usize::from(LONGEST))];
            bytes.extend(u16::try_from(text.len()).unwrap_or(LONGEST).to_le_bytes());
            bytes.extend(text);
        }
        bytes
    }
}

fn send(mut stream: &TcpStream, hello: &[u8]) -> io::Result<()> {
    stream.write_all(hello)
}

/// The other side's hello, and its bytes.
fn receive(mut stream: &TcpStream) -> io::Result<(Hello, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut next = |length: usize, bytes: &mut Vec<u8>| {
        let from = bytes.len();
        bytes.resize(from + length, 0);
        stream.read_exact(&mut bytes[from..])?;
        Ok::<_, io::Error>(bytes[from..].to_vec())
    };
    if next(MAGIC.len(), &mut bytes)? != MAGIC {
        return Err(io::Error::other("it isn't an isobench of this kind"));
    }
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum: usize, byte| sum << 8 | usize::from(*byte));
    let rank = number(&next(4, &mut bytes)?);
    let count = number(&next(4, &mut bytes)?);
    let nonce = next(32, &mut bytes)?.try_into().unwrap_or([0; 32]);
    let mut text = |bytes: &mut Vec<u8>| {
        let length = number(&next(2, bytes)?);
        if length > usize::from(LONGEST) {
            return Err(io::Error::other("it says more than there is to say"));
        }
        Ok(String::from_utf8_lossy(&next(length, bytes)?).into_owned())
    };
    let (version, task) = (text(&mut bytes)?, text(&mut bytes)?);
    Ok((Hello { rank, number: count, nonce, version, task }, bytes))
}

/// What the proof of one side covers: its direction, and all that both have said, the side with the
/// higher rank first.
fn statement(direction: &[u8], said: [&[u8]; 2]) -> Vec<u8> {
    let parts = [direction, said[0], said[1]];
    parts
        .iter()
        .flat_map(|part| (part.len() as u64).to_le_bytes().into_iter().chain(part.iter().copied()))
        .collect()
}

fn send_proof(mut stream: &TcpStream, proof: &[u8]) -> io::Result<()> {
    stream.write_all(proof)
}

fn read_proof(mut stream: &TcpStream) -> io::Result<[u8; 32]> {
    let mut proof = [0; 32];
    stream.read_exact(&mut proof).map(|()| proof)
}

fn stranger() -> io::Error {
    io::Error::other("doesn't know the secret (ISOBENCH_PEERS_SECRET must be the same on all machines)")
}

/// A side that is told nothing was refused, or has come to something else.
fn unanswered(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "has refused this machine, or isn't an isobench ({error}); ISOBENCH_PEERS_SECRET must be the same on all \
         machines, and --peers name them in the same order"
    ))
}
