//! Watches the server while it is measured, over a session and in a thread of its own.
//!
//! An [`Observer`] samples what the clients' sessions do and wait for, and which locks they hold,
//! and reads the server's counters before and after. What the server doesn't show, or doesn't let
//! the role see, is missing and has a note; nothing here is ever an error for a run, and nothing
//! waits for long.
//!
//! ```text
//! before_sessions()   the counters for the comparison; who is connected already
//!     clients connect, warm up
//!     begin()         samples count from here; the counters, the processes' CPU
//!     …
//!     end()           the same once more
//!     clients leave
//! after_sessions()    waits until the server has counted everything; returns what was [`Observed`]
//! ```
//!
//! It must not know what is measured, nor how a result is written.
//!
//! | file | holds |
//! |---|---|
//! | `observed`, `compare` | what comes out; the server's counts beside our own |
//! | `options` | how to observe |
//! | `observer` | the handle of the thread |
//! | `watch` | the thread: commands, and samples between them |
//! | `session` | the connection, with a limit for everything, and a count of its own transactions |
//! | `server` | what can be seen of a server, by product, version and rights |
//! | `views`, `counters` | which counters are read from where, as a table; reading and subtracting them |
//! | `activity`, `locks` | what a sample asks |
//! | `sampler` | taking samples when they are due |
//! | `leaving` | waiting for sessions that end |
//! | `pace` | how often samples are taken, so that they cost little |
//! | `processes` | CPU and memory of the server's processes, if they run here |

mod activity;
mod compare;
mod counters;
mod leaving;
mod locks;
mod observed;
mod observer;
mod options;
mod pace;
mod processes;
mod sampler;
mod server;
mod session;
mod views;
mod watch;

pub use compare::{CountComparison, OwnCounts};
pub use counters::Counter;
pub use observed::{LockWait, Observed, PredicateLocks, Sample, ServerProcesses, Sessions, WaitRow};
pub use observer::Observer;
pub use options::{Connect, ObserverOptions};
pub use processes::{LocalServer, Processes};
pub use views::{COCKROACHDB_VIEWS, Column, POSTGRESQL_VIEWS, Source, View};
