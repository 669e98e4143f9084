//! Waits for many sockets at once, with epoll.
//!
//! poll isn't used, although it leaves no watchers at the sockets that every send would have to
//! call: since a turn's requests are sent together, it saves nothing
//! (`docs/decisions/0042-event-loops.md`).
//!
//! `epoll_pwait` knows milliseconds. Short waits are therefore made by `ppoll` on the epoll
//! descriptor, whose resolution is the clock's. `epoll_pwait2`, which would do both in one call, is
//! missing in kernels before 5.11, and in emulators.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use isobench_pgwire::Socket;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The most events taken at once.
const EVENTS: usize = 256;

/// Waits for the sockets of one worker.
pub(crate) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    /// A poller without sockets.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Watches a socket: reports its connection once for each arrival. What has arrived already is
    /// reported, too. A socket that is closed is no longer watched.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn add(&self, connection: usize, socket: &Socket) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, data(connection), READABLE)?)
    }

    /// Turns on or off that room for more bytes to send is reported, too.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn watch_writable(&self, connection: usize, socket: &Socket, on: bool) -> io::Result<()> {
        let wanted = if on { READABLE.union(EventFlags::OUT) } else { READABLE };
        Ok(epoll::modify(&self.epoll, socket, data(connection), wanted)?)
    }

    /// Waits at most for `timeout` and appends the connections that are ready. Returns early if
    /// interrupted by a signal, and up to a millisecond early from a wait that isn't short.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn wait(&self, timeout: Duration, ready: &mut Vec<usize>) -> io::Result<()> {
        let mut timeout = timeout.min(LONGEST);
        if timeout < SHORT && !timeout.is_zero() {
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timespec(timeout))) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                outcome => outcome?,
            };
            timeout = Duration::ZERO;
        }
        // What isn't a whole millisecond would be rounded up.
        let below = Duration::from_nanos(u64::from(timeout.subsec_nanos() % 1_000_000));
        let whole = timespec(timeout.saturating_sub(below));
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        let (events, _) = match epoll::wait(&self.epoll, &mut events, Some(&whole)) {
            Err(Errno::INTR) => return Ok(()),
            outcome => outcome?,
        };
        for event in events.iter() {
            let (flags, data) = (event.flags, event.data);
            let Ok(connection) = usize::try_from(data.u64()) else { continue };
            ready.push(connection);
            // Bytes that arrived together with the end of the stream are one event, but the end
            // needs a receive of its own.
            if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
                ready.push(connection);
            }
        }
        Ok(())
    }
}

/// Shorter waits take a second call if something arrives; longer ones may take a second wait.
const SHORT: Duration = Duration::from_millis(10);

/// The longest wait at once; a longer one doesn't fit the call.
const LONGEST: Duration = Duration::from_hours(24);

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

/// Edge-triggered: each arrival is reported once.
const READABLE: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

fn data(connection: usize) -> EventData {
    EventData::new_u64(connection as u64)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    fn watched() -> (Poller, Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let ours = Socket::Unix(ours);
        let poller = Poller::new().unwrap();
        poller.add(5, &ours).unwrap();
        (poller, ours, theirs)
    }

    fn look(poller: &Poller) -> Vec<usize> {
        let mut ready = Vec::new();
        poller.wait(Duration::ZERO, &mut ready).unwrap();
        ready
    }

    #[test]
    fn an_arrival_ends_a_wait_of_any_length() {
        for timeout in [Duration::from_nanos(1), Duration::from_millis(10), Duration::MAX] {
            let (poller, _ours, mut theirs) = watched();
            theirs.write_all(b"x").unwrap();
            let mut ready = Vec::new();
            poller.wait(timeout, &mut ready).unwrap();
            assert_eq!(ready, [5]);
        }
    }

    #[test]
    fn only_a_long_wait_is_shortened_and_by_less_than_a_millisecond() {
        for (micros, shortest) in [(1, 1), (300, 300), (9999, 9999), (10_000, 10_000), (12_500, 12_000)] {
            let (poller, _ours, _theirs) = watched();
            let (mut ready, start) = (Vec::new(), Instant::now());
            poller.wait(Duration::from_micros(micros), &mut ready).unwrap();
            assert_eq!(ready, [0; 0]);
            assert!(start.elapsed() >= Duration::from_micros(shortest), "{micros} µs");
        }
    }

    #[test]
    fn an_arrival_is_reported_once() {
        let (poller, _ours, mut theirs) = watched();
        assert_eq!(look(&poller), [0; 0]);
        for _ in 0..3 {
            theirs.write_all(b"x").unwrap();
            assert_eq!(look(&poller), [5]);
            assert_eq!(look(&poller), [0; 0]);
        }
    }

    #[test]
    fn what_has_arrived_before_is_reported() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"x").unwrap();
        let poller = Poller::new().unwrap();
        poller.add(7, &Socket::Unix(ours.try_clone().unwrap())).unwrap();
        assert_eq!(look(&poller), [7]);
    }

    #[test]
    fn room_to_send_is_reported_if_wanted() {
        let (poller, mut ours, mut theirs) = watched();
        while ours.send_now(&[0; 4096]).is_ok() {}
        poller.watch_writable(5, &ours, true).unwrap();
        assert_eq!(look(&poller), [0; 0]);
        theirs.set_nonblocking(true).unwrap();
        while theirs.read(&mut [0; 4096]).is_ok() {}
        assert_eq!(look(&poller), [5]);
        poller.watch_writable(5, &ours, false).unwrap();
        assert_eq!(look(&poller), [0; 0]);
    }

    #[test]
    fn an_end_is_reported_twice() {
        let (poller, _ours, theirs) = watched();
        drop(theirs);
        assert_eq!(look(&poller), [5, 5]);
        assert_eq!(look(&poller), [0; 0]);
    }
}
