//! The queues shared with the kernel: requests in, completions out.
//!
//! Safety rests on what the requests name:
//!
//! - a socket, by its index in the kernel's table of files, which holds a reference of its own, so
//!   that a descriptor that is closed meanwhile, or used again, makes no difference;
//! - for a receive, the group of provided buffers (`buffers.rs`);
//! - for a send, an address of bytes in a `Vec` of the slot (`ring.rs`). A send [at
//!   once](Queues::send_at_once) has ended when the kernel has taken the request from the queue,
//!   because of `MSG_DONTWAIT`; until then the bytes aren't touched. One that [may
//!   wait](Queues::send) has ended when its completion has been seen; until then they aren't either.
//!   They are freed only after that.
//!
//! After `fork` a child has neither the queues' mappings (`dontfork`) nor, after `exec`, the
//! descriptor (it is opened with `O_CLOEXEC`); the buffers are private memory, of which it has a
//! copy.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::buffers::GROUP;

/// The most requests before they are handed over without waiting, so that the first ones aren't
/// delayed by all others.
const MOST_REQUESTS: u32 = 256;

/// The most sockets for which the completions have room for everything at once. Beyond, the kernel
/// keeps those for which there is none.
const MOST_SOCKETS: u32 = 16384;

/// The purpose of a request, in the upper half of the number that comes back with its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Receive,
    SendAtOnce,
    Send,
    Cancel,
}

/// The two queues and the table of files.
pub(crate) struct Queues {
    pub(crate) ring: IoUring,
    /// Requests whose last completion hasn't been seen, without sends at once.
    pub(crate) outstanding: usize,
}

impl Queues {
    /// Sets the queues up for this many sockets and buffers.
    ///
    /// # Errors
    /// The kernel refuses, or is too old (Linux 6.1).
    pub(crate) fn new(sockets: u32, buffers: u16) -> io::Result<Queues> {
        let requests = sockets.next_power_of_two().clamp(8, MOST_REQUESTS);
        // Between two looks every buffer may be filled, every receive may end, and every send may
        // fail.
        let completions = u32::from(buffers) + 2 * sockets.min(MOST_SOCKETS) + 16;
        let ring = IoUring::builder()
            .dontfork()
            // The completions wait for this thread, instead of interrupting it.
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(completions.next_power_of_two())
            .build(requests)?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        ring.submitter().register_files_sparse(sockets)?;
        Ok(Queues { ring, outstanding: 0 })
    }

    /// Puts a socket in the table, or takes it out.
    pub(crate) fn set_file(&mut self, slot: u32, socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let descriptor = socket.map_or(-1, |socket| socket.as_raw_fd());
        self.ring.submitter().register_files_update(slot, &[descriptor]).map(drop)
    }

    /// Receives from a slot's socket, again and again.
    pub(crate) fn receive(&mut self, slot: u32) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(slot), GROUP).build();
        self.outstanding += 1;
        self.push(&entry.user_data(user_data(slot, Purpose::Receive)))
    }

    /// Sends bytes to a slot's socket when the kernel takes the request. A completion comes only if
    /// not all bytes could be sent: with their number, or an error (`EAGAIN`: none).
    ///
    /// The caller must leave the bytes where they are, and unchanged, until [`Queues::is_taken`].
    #[inline]
    pub(crate) fn send_at_once(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        // MSG_WAITALL makes a part of the bytes a failure, which is completed in any case.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fixed(slot), bytes.as_ptr(), length(bytes)).flags(flags).build();
        let entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
        self.push(&entry.user_data(user_data(slot, Purpose::SendAtOnce)))
    }

    /// Sends bytes to a slot's socket, waiting until it takes all of them or fails.
    ///
    /// The caller must leave the bytes where they are, and unchanged, until the completion.
    pub(crate) fn send(&mut self, slot: u32, bytes: &[u8]) -> io::Result<()> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fixed(slot), bytes.as_ptr(), length(bytes)).flags(flags).build();
        self.outstanding += 1;
        self.push(&entry.user_data(user_data(slot, Purpose::Send)))
    }

    /// True if the kernel has taken all requests, and all completions so far have been seen.
    pub(crate) fn is_taken(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.is_empty() && !queue.cq_overflow()
    }

    /// Cancels everything outstanding of a slot.
    pub(crate) fn cancel(&mut self, slot: u32) -> io::Result<()> {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::fd(Fixed(slot)).all()).build();
        self.outstanding += 1;
        self.push(&entry.user_data(user_data(slot, Purpose::Cancel)))
    }

    /// Cancels everything outstanding.
    pub(crate) fn cancel_all(&mut self) -> io::Result<()> {
        let entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        self.outstanding += 1;
        self.push(&entry.user_data(user_data(0, Purpose::Cancel)))
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            let mut queue = self.ring.submission();
            #[expect(unsafe_code, reason = "the kernel is told addresses")]
            // SAFETY: what each request names stays valid until its completion, for the reasons
            // given at the top of this file.
            let pushed = unsafe { queue.push(entry) };
            drop(queue);
            if pushed.is_ok() {
                return Ok(());
            }
            self.enter(0, None)?;
        }
    }

    /// Hands the requests over, and waits for at least `want` completions, at most for `timeout`
    /// (`None`: without a limit). May return early.
    pub(crate) fn enter(&mut self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        let submitter = self.ring.submitter();
        let outcome = match timeout {
            Some(timeout) if want > 0 => {
                let timeout = Timespec::new().sec(timeout.as_secs()).nsec(timeout.subsec_nanos());
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&timeout))
            }
            _ => submitter.submit_and_wait(want),
        };
        match outcome {
            Ok(_) => Ok(()),
            // EBUSY: too many completions wait to be seen first.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// True if completions wait, or the kernel has work that makes some.
    pub(crate) fn has_news(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().taskrun()
    }
}

/// The length for a request. What is beyond is left to the next one.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len().min(1 << 30)).unwrap_or_default()
}

fn user_data(slot: u32, purpose: Purpose) -> u64 {
    u64::from(slot) | (purpose as u64) << 32
}

/// The slot and the purpose of the request that a completion is of.
#[inline]
pub(crate) fn origin(entry: &cqueue::Entry) -> (usize, Purpose) {
    let number = entry.user_data();
    let purpose = match number >> 32 {
        0 => Purpose::Receive,
        1 => Purpose::SendAtOnce,
        2 => Purpose::Send,
        _ => Purpose::Cancel,
    };
    (usize::try_from(number & u64::from(u32::MAX)).unwrap_or(usize::MAX), purpose)
}
