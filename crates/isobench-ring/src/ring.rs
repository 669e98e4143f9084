//! The sockets of a ring, what is outstanding, and what has arrived.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::AsFd;
use std::time::Duration;

use io_uring::cqueue;

use crate::buffers::{Buffers, Lease};
use crate::queues::{Purpose, Queues, origin};

/// The most buffers of a ring. If more sockets have news at once, the kernel ends their receives,
/// which are then started again.
const MOST_BUFFERS: u16 = 1024;

/// Memory kept for what a socket sends next, bytes; more is freed when it has been sent.
const KEPT: usize = 4096;

/// Something that has arrived at a socket.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// Bytes, at least one.
    Bytes(&'a [u8]),
    /// The peer's end: nothing more arrives.
    End,
    /// A receive or a send has failed: the connection is lost.
    Failed(io::Error),
}

/// What is left of a socket that has been taken out.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Bytes that have been received and not been read.
    pub received: Vec<u8>,
    /// True if not all of what was to be sent has been sent.
    pub unsent: bool,
}

/// Many sockets' receives and sends through one `io_uring`. The kernel lets only the thread that
/// made it use it; other threads' calls fail (`EEXIST`).
///
/// Dropping it cancels what is outstanding, and waits until that has ended. The sockets stay open,
/// and bytes that had arrived and weren't read are lost. Dropped on another thread, it leaks its
/// memory.
pub struct Ring {
    slots: Vec<Slot>,
    arrivals: VecDeque<(u32, Arrived)>,
    /// What [`Ring::next`] returned last.
    current: Option<Arrived>,
    /// Slots whose receive has ended although their sockets are open.
    to_receive: Vec<u32>,
    /// Slots of which a part is to be sent.
    to_send: Vec<u32>,
    /// The number of times that the kernel has taken all requests.
    turn: u64,
    buffers: Buffers,
    queues: Queues,
}

#[derive(Debug)]
enum Arrived {
    Bytes(Lease),
    End,
    Failed(i32),
}

/// The state of a socket.
#[derive(Debug, Default)]
struct Slot {
    /// A socket is in it.
    used: bool,
    /// A receive is outstanding.
    receiving: bool,
    sending: Sending,
    /// Bytes sent last. They mustn't be touched while the kernel may read them.
    output: Vec<u8>,
    /// To be sent after `output`.
    queued: Vec<u8>,
}

/// The progress of a slot's send.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Nothing is being sent.
    #[default]
    Nothing,
    /// All of `output` is sent at once in the turn with this number. If its completion hasn't said
    /// otherwise by the end of the turn, it has been sent.
    AtOnce(u64),
    /// This many bytes of `output` have been sent; the rest is to be sent with the next wait.
    Partly(usize),
    /// The rest after this many bytes is being sent, until its completion.
    Waiting(usize),
}

impl Ring {
    /// A ring with this many slots, all free.
    ///
    /// # Errors
    /// The kernel refuses: `io_uring` is forbidden (`EPERM`), missing (`ENOSYS`), or older than
    /// Linux 6.1 (`EINVAL`); or there isn't enough memory.
    pub fn new(slots: usize) -> io::Result<Ring> {
        let count = u32::try_from(slots.max(1)).map_err(|_| io::ErrorKind::InvalidInput)?;
        let buffers = count.min(u32::from(MOST_BUFFERS)).next_power_of_two().max(16);
        let buffers = u16::try_from(buffers).unwrap_or(MOST_BUFFERS);
        let queues = Queues::new(count, buffers)?;
        let buffers = Buffers::new(&queues.ring, buffers)?;
        Ok(Ring {
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            arrivals: VecDeque::new(),
            current: None,
            to_receive: Vec::new(),
            to_send: Vec::new(),
            turn: 0,
            buffers,
            queues,
        })
    }

    /// Puts a socket into a free slot and starts to receive from it with the next wait.
    ///
    /// # Errors
    /// The kernel refuses.
    ///
    /// # Panics
    /// If the slot isn't free or doesn't exist.
    pub fn add(&mut self, slot: usize, socket: &impl AsFd) -> io::Result<()> {
        assert!(!self.slots[slot].used, "slot {slot} is in use");
        let number = number(slot);
        self.queues.set_file(number, Some(socket.as_fd()))?;
        self.slots[slot].used = true;
        self.to_receive.push(number);
        Ok(())
    }

    /// Takes a socket out: cancels what is outstanding and waits until that has ended. The socket
    /// stays open; bytes that haven't been received are still in it. A free slot stays free.
    ///
    /// # Errors
    /// The kernel refuses; the socket mustn't be used any more.
    pub fn remove(&mut self, slot: usize) -> io::Result<Removed> {
        if !self.slots[slot].used {
            return Ok(Removed::default());
        }
        self.give_back();
        if self.is_handed_over(slot) {
            self.hand_over(0, None)?;
        }
        let number = number(slot);
        let unsent = self.is_unsent(slot);
        self.forget(number);
        if self.is_outstanding(slot) {
            self.queues.cancel(number)?;
        }
        while self.is_outstanding(slot) {
            self.hand_over(1, None)?;
            // The end of what was cancelled must not start anything new.
            self.forget(number);
        }
        self.queues.set_file(number, None)?;
        let mut received = Vec::new();
        for (at, arrived) in mem::take(&mut self.arrivals) {
            match arrived {
                arrived if at != number => self.arrivals.push_back((at, arrived)),
                Arrived::Bytes(lease) => {
                    received.extend_from_slice(self.buffers.bytes(&lease));
                    self.buffers.give(lease);
                }
                Arrived::End | Arrived::Failed(_) => {}
            }
        }
        self.slots[slot] = Slot::default();
        Ok(Removed { received, unsent })
    }

    /// Queues bytes to be sent, in the order of the calls. They leave with the next wait at the
    /// latest. A failure is an arrival.
    ///
    /// # Errors
    /// The kernel refuses requests.
    ///
    /// # Panics
    /// If the slot is free.
    #[inline]
    pub fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        if self.is_handed_over(slot) {
            self.hand_over(0, None)?;
        }
        let state = &mut self.slots[slot];
        assert!(state.used, "slot {slot} has no socket");
        if matches!(state.sending, Sending::Partly(_) | Sending::Waiting(_)) {
            state.queued.extend_from_slice(bytes);
            return Ok(());
        }
        if state.output.capacity() > KEPT {
            state.output = Vec::new();
        }
        state.output.clear();
        state.output.extend_from_slice(bytes);
        state.sending = Sending::AtOnce(self.turn);
        self.queues.send_at_once(number(slot), &self.slots[slot].output)
    }

    /// Hands over what is queued, without waiting.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn flush(&mut self) -> io::Result<()> {
        self.hand_over(0, None)
    }

    /// Hands over what is queued, and waits until something arrives, at most for `timeout` (`None`:
    /// without a limit). May return early. What has arrived is returned by [`Ring::next`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.give_back();
        self.buffers.publish();
        while let Some(slot) = self.to_receive.pop() {
            self.queues.receive(slot)?;
            self.slots[slot as usize].receiving = true;
        }
        while let Some(slot) = self.to_send.pop() {
            let state = &mut self.slots[slot as usize];
            if let Sending::Partly(sent) = state.sending {
                state.sending = Sending::Waiting(sent);
                self.queues.send(slot, &state.output[sent..])?;
            }
        }
        let want = usize::from(self.arrivals.is_empty());
        self.hand_over(want, timeout)
    }

    /// The slot of the next arrival, which [`Ring::arrival`] returns then.
    #[expect(clippy::should_implement_trait, reason = "the arrival is borrowed from the ring")]
    #[inline]
    pub fn next(&mut self) -> Option<usize> {
        self.give_back();
        let (slot, arrived) = self.arrivals.pop_front()?;
        self.current = Some(arrived);
        Some(slot as usize)
    }

    /// The arrival at the slot that [`Ring::next`] returned last; `None` after a wait or a removal.
    #[inline]
    pub fn arrival(&self) -> Option<Arrival<'_>> {
        Some(match self.current.as_ref()? {
            Arrived::Bytes(lease) => Arrival::Bytes(self.buffers.bytes(lease)),
            Arrived::End => Arrival::End,
            Arrived::Failed(code) => Arrival::Failed(io::Error::from_raw_os_error(*code)),
        })
    }

    /// True if something has arrived already, so that a wait would return at once.
    pub fn has_news(&mut self) -> bool {
        !self.arrivals.is_empty() || self.queues.has_news()
    }

    /// Hands all requests over, waits for at least `want` completions, and looks at all there are.
    fn hand_over(&mut self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        self.queues.enter(want, timeout)?;
        self.reap();
        while !self.queues.is_taken() {
            self.queues.enter(0, None)?;
            self.reap();
        }
        self.turn += 1;
        Ok(())
    }

    /// Looks at the completions.
    fn reap(&mut self) {
        let Ring { slots, arrivals, to_receive, to_send, buffers, queues, .. } = self;
        for entry in queues.ring.completion() {
            let (slot, purpose) = origin(&entry);
            let result = entry.result();
            if purpose == Purpose::Receive {
                let state = &mut slots[slot];
                if let Some(arrived) = received(buffers, &entry) {
                    arrivals.push_back((number(slot), arrived));
                }
                if !cqueue::more(entry.flags()) {
                    state.receiving = false;
                    queues.outstanding -= 1;
                    if result > 0 || result == -libc::ENOBUFS {
                        to_receive.push(number(slot));
                    }
                }
                continue;
            }
            queues.outstanding -= usize::from(purpose != Purpose::SendAtOnce);
            if purpose == Purpose::Cancel {
                continue;
            }
            match slots[slot].after_send(result) {
                Ok(true) => to_send.push(number(slot)),
                Ok(false) => {}
                Err(code) => arrivals.push_back((number(slot), Arrived::Failed(code))),
            }
        }
    }

    /// Gives the buffer of the current arrival back.
    #[inline]
    fn give_back(&mut self) {
        if let Some(Arrived::Bytes(lease)) = self.current.take() {
            self.buffers.give(lease);
        }
    }

    /// True if the slot has sent in this turn, so that its output mustn't be touched yet.
    #[inline]
    fn is_handed_over(&self, slot: usize) -> bool {
        self.slots[slot].sending == Sending::AtOnce(self.turn)
    }

    fn is_unsent(&self, slot: usize) -> bool {
        matches!(self.slots[slot].sending, Sending::Partly(_) | Sending::Waiting(_))
    }

    /// True while the kernel may still use something of the slot's.
    fn is_outstanding(&self, slot: usize) -> bool {
        let state = &self.slots[slot];
        state.receiving || matches!(state.sending, Sending::Waiting(_))
    }

    /// Starts nothing more for a slot.
    fn forget(&mut self, slot: u32) {
        self.to_receive.retain(|&waiting| waiting != slot);
        self.to_send.retain(|&waiting| waiting != slot);
        self.slots[slot as usize].queued = Vec::new();
    }

    /// Cancels everything, and waits until nothing is outstanding.
    fn quiesce(&mut self) -> io::Result<()> {
        self.hand_over(0, None)?;
        if self.queues.outstanding > 0 {
            self.queues.cancel_all()?;
        }
        while self.queues.outstanding > 0 {
            self.hand_over(1, None)?;
        }
        Buffers::withdraw(&self.queues.ring)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.quiesce().is_err() {
            // The kernel may still use what it was given.
            self.buffers.leak();
            mem::forget(mem::take(&mut self.slots));
        }
    }
}

impl Slot {
    /// Continues after a send that has ended with this result. True if there is more to send.
    ///
    /// # Errors
    /// The system's error: the connection is lost.
    fn after_send(&mut self, result: i32) -> Result<bool, i32> {
        let before = if let Sending::Waiting(sent) = self.sending { sent } else { 0 };
        let sent = match usize::try_from(result) {
            Ok(count) => before + count,
            Err(_) if result == -libc::EAGAIN || result == -libc::EINTR => before,
            Err(_) => {
                self.sending = Sending::Nothing;
                self.queued = Vec::new();
                return Err(-result);
            }
        };
        if sent < self.output.len() {
            self.sending = Sending::Partly(sent);
            return Ok(true);
        }
        self.output = mem::take(&mut self.queued);
        self.sending = if self.output.is_empty() { Sending::Nothing } else { Sending::Partly(0) };
        Ok(!self.output.is_empty())
    }
}

/// The arrival that a completion of a receive is.
#[inline]
fn received(buffers: &Buffers, entry: &cqueue::Entry) -> Option<Arrived> {
    match (usize::try_from(entry.result()), cqueue::buffer_select(entry.flags())) {
        (Ok(0) | Err(_), Some(_)) => unreachable!("a buffer is used only for bytes"),
        (Ok(0), None) => Some(Arrived::End),
        (Ok(count), Some(id)) => Some(Arrived::Bytes(buffers.lease(id, count))),
        (Ok(_), None) => unreachable!("bytes are in a buffer"),
        // Out of buffers, or cancelled: not an event of the connection.
        (Err(_), None) if matches!(-entry.result(), libc::ENOBUFS | libc::ECANCELED | libc::EINTR) => None,
        (Err(_), None) => Some(Arrived::Failed(-entry.result())),
    }
}

/// The number of a slot in requests.
fn number(slot: usize) -> u32 {
    u32::try_from(slot).expect("the number of slots has been checked")
}
