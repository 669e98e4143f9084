//! Waits for many sockets at once, with poll or epoll, whichever costs less at the moment.
//!
//! epoll leaves a watcher at every socket, which each send and receive, both of the client and of a
//! server on the same machine, then has to call under a lock that both want. poll leaves nothing
//! behind, but looks at every socket each time. So poll is cheaper if a good part of the sockets is
//! ready whenever it looks (a server that answers at once: 5 to 15 % less processor time per
//! transaction with 8, 64 and 512 clients), and epoll if few are: its cost doesn't grow with their
//! number. Only polling shows which is the case, because epoll returns fewer events at a time. So
//! poll is tried repeatedly, less and less often if it doesn't pay.
//!
//! The resolution of waits is the clock's (`ppoll`, `epoll_pwait2`); if the kernel lacks the
//! latter, rustix rounds to milliseconds.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use isobench_pgwire::Socket;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The most events taken from epoll at once.
const EVENTS: usize = 256;

/// Number of polls after which their result is judged.
const TRIAL: u64 = 32;

/// poll is kept while on average one socket in this number is ready.
const LEAST_FOR_POLL: u64 = 6;

/// A socket of the poller.
pub(crate) struct PolledSocket {
    pub(crate) socket: Socket,
    /// Room for more bytes to send is an event, too.
    pub(crate) writable: bool,
    /// The end of the connection has been reported. Nothing else is reported then; poll would
    /// return the end again and again.
    pub(crate) ended: bool,
}

/// Waits for the sockets of one worker.
pub(crate) struct Poller {
    /// Watches all sockets; `None`: they are polled.
    epoll: Option<OwnedFd>,
    /// Waits since the last decision between poll and epoll, and the events they returned.
    waits: u64,
    news: u64,
    /// Number of waits with epoll until poll is tried again.
    patience: u64,
    /// Buffer for the argument of poll, always empty. Kept to avoid an allocation for each wait.
    room: Vec<PollFd<'static>>,
}

impl Poller {
    /// Starts with poll, which needs no preparation.
    pub(crate) fn new() -> Poller {
        Poller { epoll: None, waits: 0, news: 0, patience: 0, room: Vec::new() }
    }

    /// Adds a socket.
    ///
    /// # Errors
    /// The operating system refuses to watch it.
    pub(crate) fn add(&self, connection: usize, watched: &PolledSocket) -> io::Result<()> {
        match &self.epoll {
            Some(epoll) => Ok(epoll::add(epoll, &watched.socket, data(connection), watched.events())?),
            None => Ok(()),
        }
    }

    /// Changes the events of a socket.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn change(&self, connection: usize, watched: &PolledSocket) -> io::Result<()> {
        match &self.epoll {
            Some(epoll) => Ok(epoll::modify(epoll, &watched.socket, data(connection), watched.events())?),
            None => Ok(()),
        }
    }

    /// Waits at most for `timeout` and appends the connections that are ready. Returns early if
    /// interrupted by a signal.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(crate) fn wait(
        &mut self,
        sockets: &[Option<PolledSocket>],
        timeout: &Timespec,
        ready: &mut Vec<usize>,
    ) -> io::Result<()> {
        let before = ready.len();
        let outcome = match &self.epoll {
            Some(epoll) => wait_for_events(epoll, timeout, ready),
            None => self.look_at_all(sockets, timeout, ready),
        };
        match outcome {
            Ok(()) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.waits += 1;
        self.news += (ready.len() - before) as u64;
        let enough = if self.epoll.is_some() { self.patience } else { TRIAL };
        if self.waits >= enough { self.decide(sockets) } else { Ok(()) }
    }

    fn look_at_all(
        &mut self,
        sockets: &[Option<PolledSocket>],
        timeout: &Timespec,
        ready: &mut Vec<usize>,
    ) -> Result<(), Errno> {
        let mut looked_at = emptied(std::mem::take(&mut self.room));
        let open = || {
            let numbered = sockets.iter().enumerate();
            let open = numbered.filter_map(|(connection, watched)| Some((connection, watched.as_ref()?)));
            open.filter(|(_, watched)| !watched.ended)
        };
        looked_at.extend(open().map(|(_, watched)| {
            let wanted = if watched.writable { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            PollFd::new(&watched.socket, wanted)
        }));
        let mut left = poll(&mut looked_at, Some(timeout))?;
        for ((connection, _), seen) in open().zip(&looked_at) {
            if left == 0 {
                break;
            }
            if !seen.revents().is_empty() {
                ready.push(connection);
                left -= 1;
            }
        }
        self.room = emptied(looked_at);
        Ok(())
    }

    /// Decides between poll and epoll.
    fn decide(&mut self, sockets: &[Option<PolledSocket>]) -> io::Result<()> {
        let news = std::mem::take(&mut self.news);
        let waits = std::mem::take(&mut self.waits);
        if self.epoll.is_some() {
            self.epoll = None;
            return Ok(());
        }
        let count = sockets.len() as u64;
        if news * LEAST_FOR_POLL >= waits * count {
            self.patience = 0;
            return Ok(());
        }
        // A trial costs some microseconds for each socket: at first at most a twentieth of the work
        // done meanwhile, then less and less.
        self.patience = (8 * count).max(self.patience.saturating_mul(2));
        self.epoll = Some(epoll::create(CreateFlags::CLOEXEC)?);
        for (connection, watched) in sockets.iter().enumerate() {
            if let Some(watched) = watched {
                self.add(connection, watched)?;
            }
        }
        Ok(())
    }
}

impl PolledSocket {
    /// The events asked of epoll, edge-triggered: each arrival is reported once.
    fn events(&self) -> EventFlags {
        let readable = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if self.writable { readable | EventFlags::OUT } else { readable }
    }
}

fn data(connection: usize) -> EventData {
    EventData::new_u64(connection as u64)
}

fn wait_for_events(epoll: &OwnedFd, timeout: &Timespec, ready: &mut Vec<usize>) -> Result<(), Errno> {
    let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
    let (events, _) = epoll::wait(epoll, &mut events, Some(timeout))?;
    for event in events.iter() {
        let (flags, data) = (event.flags, event.data);
        let Ok(connection) = usize::try_from(data.u64()) else { continue };
        ready.push(connection);
        // Bytes that arrived together with the end of the stream are one event, but the end needs a
        // receive of its own.
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            ready.push(connection);
        }
    }
    Ok(())
}

/// Empties a list for elements of another lifetime. Collecting in place keeps its memory.
fn emptied<'b>(list: Vec<PollFd<'_>>) -> Vec<PollFd<'b>> {
    list.into_iter().map_while(|_| None).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    fn pairs(count: usize) -> (Vec<Option<PolledSocket>>, Vec<UnixStream>) {
        let pair = |_| UnixStream::pair().unwrap();
        let (ours, theirs): (Vec<_>, Vec<_>) = (0..count).map(pair).unzip();
        let watched =
            |stream| Some(PolledSocket { socket: Socket::Unix(stream), writable: false, ended: false });
        (ours.into_iter().map(watched).collect(), theirs)
    }

    fn look(poller: &mut Poller, sockets: &[Option<PolledSocket>]) -> Vec<usize> {
        let mut ready = Vec::new();
        poller.wait(sockets, &AT_ONCE, &mut ready).unwrap();
        ready
    }

    #[test]
    fn where_few_have_news_poll_is_only_tried_and_ever_more_rarely() {
        let (sockets, mut peers) = pairs(40);
        let mut poller = Poller::new();
        let mut polled = Vec::new();
        peers[0].write_all(b"x").unwrap();
        for _ in 0..2_000 {
            polled.push(poller.epoll.is_none());
            look(&mut poller, &sockets);
        }
        let changes: Vec<usize> = (1..2_000).filter(|&wait| polled[wait] != polled[wait - 1]).collect();
        let trial = usize::try_from(TRIAL).unwrap();
        let first = trial + 320;
        assert_eq!(changes, [trial, first, first + trial, first + trial + 640, first + 2 * trial + 640]);
    }

    #[test]
    fn where_many_have_news_poll_is_kept() {
        let (sockets, mut peers) = pairs(40);
        let mut poller = Poller::new();
        for peer in &mut peers[30..] {
            peer.write_all(b"x").unwrap();
        }
        for _ in 0..1_000 {
            assert_eq!(look(&mut poller, &sockets), (30..40).collect::<Vec<_>>());
            assert!(poller.epoll.is_none());
        }
    }

    #[test]
    fn no_news_is_lost_when_the_way_changes() {
        let (mut sockets, mut peers) = pairs(40);
        sockets[3] = None;
        let mut poller = Poller::new();
        for _ in 1..TRIAL {
            look(&mut poller, &sockets);
        }
        peers[7].write_all(b"x").unwrap();
        assert_eq!(look(&mut poller, &sockets), [7]);
        assert!(poller.epoll.is_some());
        assert_eq!(look(&mut poller, &sockets), [7], "it hasn't been read");
    }

    #[test]
    fn both_ways_tell_when_there_is_room_again() {
        for waits in [0, TRIAL] {
            let (mut sockets, mut peers) = pairs(40);
            let mut poller = Poller::new();
            (0..waits).for_each(|_| drop(look(&mut poller, &sockets)));
            assert_eq!(poller.epoll.is_some(), waits > 0);
            let watched = sockets[5].as_mut().unwrap();
            watched.socket.set_nonblocking(true).unwrap();
            while watched.socket.write(&[0; 4096]).is_ok() {}
            watched.writable = true;
            poller.change(5, sockets[5].as_ref().unwrap()).unwrap();
            assert_eq!(look(&mut poller, &sockets), [0; 0]);
            peers[5].set_nonblocking(true).unwrap();
            while peers[5].read(&mut [0; 4096]).is_ok() {}
            assert_eq!(look(&mut poller, &sockets), [5]);
        }
    }

    #[test]
    fn the_end_of_a_connection_is_news() {
        for waits in [0, TRIAL] {
            let (mut sockets, mut peers) = pairs(40);
            let mut poller = Poller::new();
            (0..waits).for_each(|_| drop(look(&mut poller, &sockets)));
            peers.truncate(39);
            assert!(look(&mut poller, &sockets).contains(&39));
            sockets[39].as_mut().unwrap().ended = true;
            assert_eq!(look(&mut poller, &sockets), [0; 0]);
        }
    }
}
