//! Observes the server while it is measured, over a session and in a thread of its own.
//!
//! An [`Observer`] samples the activity and waits of the clients' sessions, and the locks they
//! hold, and reads the server's counters before and after. Anything that the server doesn't show,
//! or doesn't permit the role to see, is missing and has a note; nothing here is an error for a
//! run, and nothing waits for long.
//!
//! ```text
//! before_sessions(part)   opens a window; the sessions connected already
//!     clients connect, warm up
//!     begin(part)         a slice: samples are kept from here; the counters, the processes' CPU
//!     …
//!     end(part)           the same again
//!     clients leave
//! after_sessions(part)    waits until the server has counted everything; returns [`Observed`]
//! ```
//!
//! Several parts can take turns. Then each has windows, during which only its own sessions act, and
//! in them slices, which are measured. What is counted is added up over windows and over slices.
//!
//! ```text
//! before_sessions(a) … rest(a)    clients connect, warm up; they stay connected and idle
//! before_sessions(b) … rest(b)
//! begin(a) … rest(a)              a window with one slice
//! begin(b) … rest(b)
//! begin(b) … end(b) … rest(b)     more happens in the window than in the slice
//! begin(a) … rest(a)
//! wake(a) … after_sessions(a)     a window in which the clients leave
//! wake(b) … after_sessions(b)
//! ```
//!
//! A session of PostgreSQL tells what it has done at the end of a later transaction, or when it
//! ends, which is always in a window of its own part; unless it rests for ten seconds, and that is
//! an explanation in the comparison of counts.
//!
//! It must not know what is measured, nor how a result is written.
//!
//! | file | holds |
//! |---|---|
//! | `observed`, `compare` | the results; the server's counts beside our own |
//! | `options` | the options of an observer |
//! | `observer` | the handle of the thread |
//! | `watcher` | the thread: commands, and samples between them; whose turn it is |
//! | `part` | a measured part: sums over its windows and slices |
//! | `edge` | all readings at the edge of a window, in one answer |
//! | `session` | the connection, with a limit for everything, and a count of its own transactions |
//! | `capabilities` | the possible observations, by product, version and rights |
//! | `views`, `counters` | the counters and their views, as a table; reading them, adding up differences |
//! | `arm` | one of the queries of that |
//! | `activity`, `locks` | the queries of a sample |
//! | `scans` | the use of each table |
//! | `sampler` | taking samples when they are due |
//! | `sampling_interval` | the interval between samples, so that they cost little |
//! | `leaving` | waiting for sessions that end |
//! | `processes` | CPU and memory of the server's processes, if they run here |

mod activity;
mod arm;
mod autovacuum;
mod capabilities;
mod compare;
mod counters;
mod edge;
mod leaving;
mod locks;
mod observed;
mod observer;
mod options;
mod part;
mod processes;
mod sampler;
mod sampling_interval;
mod scans;
mod session;
mod views;
mod watcher;

pub use compare::{CountComparison, OwnCounts};
pub use counters::Counter;
pub use observed::{
    LockWait, LockedRelation, LocksSeen, Observed, PredicateLocks, Sample, ServerProcesses, SessionCounts,
    TableUse, WaitRow,
};
pub use observer::Observer;
pub use options::{ObserverOptions, OpenSession};
pub use part::Part;
pub use processes::{LocalServer, Processes};
pub use views::{COCKROACHDB_VIEWS, CounterColumn, CounterSource, CounterView, POSTGRESQL_VIEWS};
