//! Connections between all machines, on each of which both sides compare what must be the same.
//!
//! Every rank listens on its own address alone, and connects to all ranks below its own. The secret keeps
//! strangers out; it doesn't encrypt anything, so the network must be trusted.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;

use crate::hello::{Credentials, Hello, PAUSE, Unmet, connect, introduce, listen, welcome};
use crate::link::{Link, Lost};
use crate::refusal::{instead_of_task, said_on, say_on, say_to};
use crate::{PeersError, Place};

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

#[cfg(test)]
pub(crate) mod tests {
    use isobench_testkit::ports::free_addresses;

    use std::io::Write as _;

    use super::*;
    use crate::hello::Secret;
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
