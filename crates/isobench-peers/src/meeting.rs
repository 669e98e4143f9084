//! Connections between all machines, and the first exchange on each: both sides prove that they know the
//! secret (HMAC-SHA-256, RFC 2104), and compare what must be the same.
//!
//! Every rank listens on its own address alone, and connects to all ranks below its own. The secret keeps
//! strangers out; it doesn't encrypt anything, so the network must be trusted.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

use crate::link::{Link, Lost};
use crate::refusal::{instead_of_task, said_on, say_on, say_to};
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
    rank: usize,
    number: usize,
    nonce: [u8; 32],
    version: String,
    task: String,
}

/// A machine that waits for the others.
struct Waiting<'w> {
    place: &'w Place,
    credentials: &'w Credentials,
    end: Instant,
    patience: Duration,
    /// The machines that it has met.
    met: Mutex<Vec<(usize, TcpStream)>>,
    /// Why it waits no longer.
    failed: OnceLock<PeersError>,
}

impl Waiting<'_> {
    /// Remembers a connection to a rank, on which it may say that it can't take part after all.
    fn has_met(&self, rank: usize, stream: TcpStream) -> Result<TcpStream, PeersError> {
        let copy = stream.try_clone().map_err(|error| PeersError::Engine(error.to_string()))?;
        self.met.lock().unwrap_or_else(PoisonError::into_inner).push((rank, copy));
        Ok(stream)
    }

    /// Why there is nothing more to wait for, if so.
    fn hindered(&self) -> Result<(), PeersError> {
        if let Some(error) = self.failed.get() {
            return Err(error.clone());
        }
        let met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let said = met.iter().find_map(|(rank, stream)| Some((*rank, said_on(stream)?)));
        said.map_or(Ok(()), |(rank, why)| {
            let address = self.place.addresses[rank].clone();
            Err(PeersError::Differs { rank, address, why: refused(&why) })
        })
    }

    /// Passes on what came of one direction; the other one needn't wait any longer for nothing.
    fn noted<T>(&self, outcome: Result<T, PeersError>) -> Result<T, PeersError> {
        outcome.inspect_err(|error| {
            let _ = self.failed.set(error.clone());
        })
    }

    /// Says to all others why this machine can't take part, if they have nothing to wait for either.
    fn tell(&self, listener: &TcpListener) {
        let Some(error @ PeersError::Differs { .. }) = self.failed.get() else { return };
        let (why, met) = (error.to_string(), self.met.lock().unwrap_or_else(PoisonError::into_inner));
        met.iter().for_each(|(_, stream)| say_on(stream, &why));
        let unmet: Vec<usize> = (0..self.place.number())
            .filter(|rank| *rank != self.place.rank && met.iter().all(|(known, _)| known != rank))
            .collect();
        say_to(self.place, self.credentials, &why, &unmet, Some(listener), Instant::now() + LIMITS.refusal);
    }
}

/// The connections to all other ranks, `None` at this one's own.
///
/// # Errors
/// [`PeersError::Listen`], [`PeersError::Missing`], [`PeersError::Differs`].
pub(crate) fn meet(
    place: &Place,
    credentials: &Credentials,
    patience: Duration,
    lost: &Lost,
) -> Result<Vec<Option<Link>>, PeersError> {
    let end = Instant::now() + patience;
    let listener = listen(place, end)?;
    let (met, failed) = (Mutex::default(), OnceLock::new());
    let waiting = Waiting { place, credentials, end, patience, met, failed };
    let (below, above) = thread::scope(|scope| {
        let accepting = scope.spawn(|| waiting.noted(accept(&listener, &waiting)));
        let below: Result<Vec<TcpStream>, PeersError> =
            waiting.noted((0..place.rank).map(|rank| reach(rank, &waiting)).collect());
        let above = accepting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (below, above)
    });
    waiting.tell(&listener);
    let below = below?.into_iter().map(Some);
    let streams = below.chain([None]).chain(above?.into_iter().map(Some));
    let link = |(rank, stream): (usize, Option<TcpStream>)| {
        let link = stream.map(|stream| Link::new(stream, rank, lost)).transpose();
        link.map_err(|error| PeersError::Engine(error.to_string()))
    };
    streams.enumerate().map(link).collect()
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

/// Takes the connections of all ranks above this one, in the order of the ranks.
fn accept(listener: &TcpListener, waiting: &Waiting<'_>) -> Result<Vec<TcpStream>, PeersError> {
    let Waiting { place, credentials, end, patience, .. } = *waiting;
    let mut found: Vec<Option<TcpStream>> = (place.rank + 1..place.number()).map(|_| None).collect();
    let mut refused = None;
    while let Some(missing) = found.iter().position(Option::is_none) {
        waiting.hindered()?;
        let Ok((stream, from)) = listener.accept() else {
            if Instant::now() >= end {
                let missing = place.rank + 1 + missing;
                return Err(absent(place, missing, patience, refused));
            }
            thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
            continue;
        };
        match welcome(&stream, place, credentials) {
            Ok(hello) => {
                if let Some(why) = differs(&hello, place, credentials) {
                    let (rank, address) = (hello.rank, address_of(place, hello.rank, from));
                    return Err(PeersError::Differs { rank, address, why });
                }
                let index = hello.rank.checked_sub(place.rank + 1).filter(|index| *index < found.len());
                match index.map(|index| &mut found[index]) {
                    // One that gave up, and tries again, is the same machine.
                    Some(place) if place.as_ref().is_none_or(has_ended) => {
                        *place = Some(waiting.has_met(hello.rank, stream)?);
                    }
                    Some(_) => {
                        refused = Some((from, format!("another one is rank {} already", hello.rank)));
                    }
                    None => refused = Some((from, format!("rank {} has no business here", hello.rank))),
                }
            }
            // Whoever it was, the others are waited for.
            Err(why) => refused = Some((from, why.to_string())),
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// True if the other side has closed a connection.
fn has_ended(stream: &TcpStream) -> bool {
    let waits = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    let reset = stream.set_nonblocking(false);
    reset.is_err() || !matches!(peeked, Ok(1..)) && !peeked.is_err_and(|error| waits(&error))
}

/// Connects to a rank below this one.
fn reach(rank: usize, waiting: &Waiting<'_>) -> Result<TcpStream, PeersError> {
    let Waiting { place, credentials, end, patience, .. } = *waiting;
    let address = &place.addresses[rank];
    loop {
        waiting.hindered()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(absent(place, rank, patience, None));
        }
        let Some(stream) = connect(address, left) else {
            thread::sleep(PAUSE.min(left));
            continue;
        };
        return match introduce(&stream, place, credentials) {
            Ok(hello) => {
                let wrong = (hello.rank != rank).then(|| format!("says that it is rank {}", hello.rank));
                match wrong.or_else(|| differs(&hello, place, credentials)) {
                    None => waiting.has_met(rank, stream),
                    Some(why) => Err(PeersError::Differs { rank, address: address.clone(), why }),
                }
            }
            // It may be about to end, or to begin, or busy with somebody else.
            Err(Unmet::Silent) => {
                thread::sleep(PAUSE.min(left));
                continue;
            }
            Err(Unmet::Told(why)) => {
                Err(PeersError::Differs { rank, address: address.clone(), why: why.to_string() })
            }
        };
    }
}

pub(crate) fn connect(address: &str, limit: Duration) -> Option<TcpStream> {
    let mut found = address.to_socket_addrs().ok()?;
    found.find_map(|one| TcpStream::connect_timeout(&one, limit.min(LIMITS.exchange)).ok())
}

fn absent(
    place: &Place,
    missing: usize,
    patience: Duration,
    refused: Option<(SocketAddr, String)>,
) -> PeersError {
    let refused = refused.map(|(from, why)| format!("; a connection from {from} was refused: {why}"));
    PeersError::Missing {
        missing,
        address: place.addresses[missing].clone(),
        seconds: patience.as_secs(),
        refused: refused.unwrap_or_default(),
    }
}

fn address_of(place: &Place, rank: usize, from: SocketAddr) -> String {
    place.addresses.get(rank).cloned().unwrap_or_else(|| from.to_string())
}

/// What is different there, though it knows the secret.
fn differs(hello: &Hello, place: &Place, credentials: &Credentials) -> Option<String> {
    let Hello { number, version, task, .. } = hello;
    if let Some(why) = instead_of_task(task) {
        Some(refused(why))
    } else if *version != credentials.version {
        Some(format!("runs isobench {version}, and this machine {}", credentials.version))
    } else if *number != place.number() {
        Some(format!("expects {number} machines, and this one {}", place.number()))
    } else if *task != credentials.task {
        Some("was given another plan, seed or options than this machine".to_owned())
    } else {
        None
    }
}

/// What is said of a machine that refuses, for this reason.
fn refused(why: &str) -> String {
    format!("can't take part: {why}")
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

#[cfg(test)]
pub(crate) mod tests {
    use isobench_testkit::ports::free_addresses;

    use super::*;
    use crate::refusal::refuse;

    pub(crate) fn credentials(secret: &str, version: &str, task: &str) -> Credentials {
        Credentials { secret: Secret::new(secret), version: version.to_owned(), task: task.to_owned() }
    }

    /// What becomes of each rank that brings these.
    fn outcomes(all: &[Credentials], patience: Duration) -> Vec<Result<usize, PeersError>> {
        let addresses = free_addresses(all.len());
        thread::scope(|scope| {
            let start = |(rank, credentials): (usize, &Credentials)| {
                let (place, credentials) =
                    (Place { rank, addresses: addresses.clone() }, credentials.clone());
                scope.spawn(move || {
                    let links = meet(&place, &credentials, patience, &Lost::default())?;
                    Ok(links.iter().flatten().count())
                })
            };
            let threads: Vec<_> = all.iter().enumerate().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(600);

    #[test]
    fn all_meet_all() {
        let all = vec![credentials("s", "1.0", "plan"); 4];
        assert_eq!(outcomes(&all, LONG), vec![Ok(3); 4]);
    }

    #[test]
    fn another_version_or_plan_is_named() {
        for (other, part) in [
            (credentials("s", "1.1", "plan"), "runs isobench 1."),
            (credentials("s", "1.0", "another plan"), "another plan, seed or options"),
        ] {
            let all = [credentials("s", "1.0", "plan"), other];
            for outcome in outcomes(&all, LONG) {
                let message = outcome.unwrap_err().to_string();
                assert!(message.contains(part), "{message}");
            }
        }
    }

    /// Of three the last one differs, so that the first two wait for nobody.
    #[test]
    fn all_hear_of_one_that_differs() {
        let like = credentials("s", "1.0", "plan");
        for differing in 0..3 {
            let mut all = vec![like.clone(); 3];
            all[differing].task = "another plan".to_owned();
            for outcome in outcomes(&all, LONG) {
                let message = outcome.unwrap_err().to_string();
                assert!(message.contains("another plan, seed or options"), "{message}");
            }
        }
    }

    #[test]
    fn those_that_wait_hear_a_refusal() {
        let credentials = credentials("s", "1.0", "plan");
        for refusing in 0..3 {
            let addresses = free_addresses(3);
            let place = |rank| Place { rank, addresses: addresses.clone() };
            let others: Vec<Place> = (0..3).filter(|rank| *rank != refusing).map(place).collect();
            let wait =
                |place: &Place| meet(place, &credentials, LONG, &Lost::default()).unwrap_err().to_string();
            thread::scope(|scope| {
                let waiting: Vec<_> = others.iter().map(|place| scope.spawn(|| wait(place))).collect();
                thread::sleep(5 * PAUSE);
                refuse(&place(refusing), &credentials, "there is no such plan");
                for waiting in waiting {
                    let message = waiting.join().expect("no panic");
                    let part = format!(
                        "rank {refusing} ({}) can't take part: there is no such plan",
                        addresses[refusing]
                    );
                    assert!(message.contains(&part), "{message}");
                }
            });
        }
    }

    #[test]
    fn one_with_another_secret_is_refused() {
        let all = [credentials("s", "1.0", "plan"), credentials("other", "1.0", "plan")];
        let messages: Vec<String> =
            outcomes(&all, SHORT).into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect();
        assert!(
            messages[0].contains("rank 1") && messages[0].contains("doesn't know the secret"),
            "{messages:?}"
        );
        assert!(messages[1].contains("ISOBENCH_PEERS_SECRET must be the same"), "{messages:?}");
    }

    #[test]
    fn strangers_do_no_harm() {
        let addresses = free_addresses(2);
        let credentials = credentials("s", "1.0", "plan");
        let place = |rank| Place { rank, addresses: addresses.clone() };
        let (zero, one) = (place(0), place(1));
        thread::scope(|scope| {
            let first = scope.spawn(|| meet(&zero, &credentials, LONG, &Lost::default()).map(|it| it.len()));
            for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"", &[0xff; 200]] {
                let mut stranger = connect_soon(&addresses[0]);
                let _ = stranger.write_all(said);
            }
            let second = scope.spawn(|| meet(&one, &credentials, LONG, &Lost::default()).map(|it| it.len()));
            assert_eq!(first.join().expect("no panic"), Ok(2));
            assert_eq!(second.join().expect("no panic"), Ok(2));
        });
    }

    fn connect_soon(address: &str) -> TcpStream {
        loop {
            if let Ok(stream) = TcpStream::connect(address) {
                return stream;
            }
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn who_hangs_up_is_tried_again() {
        let addresses = free_addresses(2);
        let credentials = credentials("s", "1.0", "plan");
        let place = |rank| Place { rank, addresses: addresses.clone() };
        let (zero, one) = (place(0), place(1));
        thread::scope(|scope| {
            // Whatever was there before takes two connections, and ends without a word.
            let before = TcpListener::bind(&addresses[0][..]).expect("a port");
            let second = scope.spawn(|| meet(&one, &credentials, LONG, &Lost::default()).map(|it| it.len()));
            for _ in 0..2 {
                drop(before.accept().expect("a connection"));
            }
            drop(before);
            let first = scope.spawn(|| meet(&zero, &credentials, LONG, &Lost::default()).map(|it| it.len()));
            assert_eq!((first.join().expect("no panic"), second.join().expect("no panic")), (Ok(2), Ok(2)));
        });
    }

    #[test]
    fn who_is_missing_is_named() {
        let place = Place { rank: 1, addresses: free_addresses(2) };
        let error = meet(&place, &credentials("s", "1.0", "plan"), SHORT, &Lost::default()).unwrap_err();
        assert!(matches!(error, PeersError::Missing { missing: 0, .. }), "{error}");
        let taken = TcpListener::bind(&place.addresses[1][..]).expect("a port");
        let error = meet(&place, &credentials("s", "1.0", "plan"), SHORT, &Lost::default()).unwrap_err();
        assert!(matches!(error, PeersError::Listen { rank: 1, .. }), "{error}");
        drop(taken);
        let elsewhere = Place { rank: 0, addresses: vec!["192.0.2.1:7001".to_owned(), "b:1".to_owned()] };
        let error = meet(&elsewhere, &credentials("s", "1.0", "plan"), SHORT, &Lost::default()).unwrap_err();
        assert!(matches!(error, PeersError::Listen { rank: 0, .. }), "{error}");
    }
}
