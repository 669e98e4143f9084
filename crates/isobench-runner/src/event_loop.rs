//! The ways in which a worker waits for its connections, and the choice between them.

use std::fmt;
use std::io;

use isobench_ring::Ring;

/// With fewer clients per worker, `io_uring` costs as much as epoll.
const LEAST_CLIENTS: usize = 4;

/// The way in which workers receive and send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventLoop {
    /// `epoll`, and a system call for each receive and each send.
    Epoll,
    /// One `io_uring` per worker: all receives and sends of a turn in one system call.
    IoUring,
}

impl fmt::Display for EventLoop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            EventLoop::Epoll => "epoll",
            EventLoop::IoUring => "io_uring",
        })
    }
}

/// The event loop of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenLoop {
    /// The one that is used.
    pub event_loop: EventLoop,
    /// Why it isn't `io_uring`, if that wasn't the user's wish.
    pub reason: Option<String>,
}

/// What the choice depends on besides the kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// Clients of the worker with the most.
    pub(crate) clients: usize,
    /// A connection is encrypted.
    pub(crate) encrypted: bool,
    /// Each transaction has a connection of its own.
    pub(crate) connect_each: bool,
    /// Lost connections are replaced.
    pub(crate) reconnects: bool,
}

/// `io_uring` was asked for, and can't be used.
#[derive(Debug, thiserror::Error)]
#[error("io_uring can't be used: {0}; the event loop \"auto\" takes epoll then")]
pub struct NoRing(String);

/// Chooses the event loop: the `wanted` one (`None`: the one that costs less).
///
/// # Errors
/// `io_uring` is wanted and can't be used.
pub(crate) fn choose(wanted: Option<EventLoop>, facts: Circumstances) -> Result<ChosenLoop, NoRing> {
    let obstacle = || {
        if facts.encrypted {
            return Some("connections are encrypted".to_owned());
        }
        // A trial, as large as the real one.
        Ring::new(facts.clients).err().map(|error| refusal(&error))
    };
    let reason = match wanted {
        Some(EventLoop::Epoll) => return Ok(ChosenLoop { event_loop: EventLoop::Epoll, reason: None }),
        Some(EventLoop::IoUring) => match obstacle() {
            Some(why) => return Err(NoRing(why)),
            None => None,
        },
        None if facts.connect_each => Some("each transaction has a connection of its own".to_owned()),
        None if facts.reconnects => Some("lost connections are replaced".to_owned()),
        None if facts.clients < LEAST_CLIENTS => {
            Some(format!("a worker has fewer than {LEAST_CLIENTS} clients"))
        }
        None => obstacle(),
    };
    let event_loop = if reason.is_none() { EventLoop::IoUring } else { EventLoop::Epoll };
    Ok(ChosenLoop { event_loop, reason })
}

/// The kernel's reason not to make a ring, as far as it can be told.
fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("the system forbids io_uring ({error})"),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => {
            format!("the kernel is older than Linux 6.1 ({error})")
        }
        _ => format!("the system refuses io_uring ({error})"),
    }
}
