//! Receives from and sends to many stream sockets through one `io_uring`.
//!
//! A [`Ring`] belongs to one thread. Each socket occupies a slot. What arrives is written by the
//! kernel into buffers that the ring provides (multishot receive), and read by the caller as slices;
//! what is sent is copied into memory of the ring, and leaves with the next wait, all in one system
//! call.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::os::unix::net::UnixStream;
//! use isobench_ring::{Arrival, Ring};
//!
//! let Ok(mut ring) = Ring::new(1) else { return Ok(()) };   // forbidden here, or an old kernel
//! let (ours, mut theirs) = UnixStream::pair()?;
//! ring.add(0, &ours)?;
//! ring.send(0, b"question")?;
//! ring.wait(Some(std::time::Duration::ZERO))?;
//! theirs.read_exact(&mut [0; 8])?;
//! theirs.write_all(b"answer")?;
//! ring.wait(None)?;
//! assert_eq!(ring.next(), Some(0));
//! assert!(matches!(ring.arrival(), Some(Arrival::Bytes(b"answer"))));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `ring` | the sockets, what is outstanding, and what has arrived |
//! | `queues` | the queues shared with the kernel, and the proof that what it is told stays true |
//! | `buffers` | the buffers provided to the kernel, and the proof of their ownership |
//! | `closed` | whether standard output was closed; here because all unsafe code is |
//!
//! Not here: the meaning of the bytes, and encryption.

mod buffers;
mod closed;
mod queues;
mod ring;

pub use closed::stdout_was_closed;
pub use ring::{Arrival, Removed, Ring};
