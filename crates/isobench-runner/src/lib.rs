//! Drives the load: clients, retries, pacing, accounting.
//!
//! A [`Job`] is a workload with its settings; a [`Fleet`] is its clients with their sessions;
//! [`Fleet::run`] returns a [`RunOutcome`], in which every attempt is in exactly one bucket. The
//! runner knows neither server products nor SQL dialects: the caller passes in how a session is set
//! up and which errors are conflicts.
//!
//! | file | holds |
//! |---|---|
//! | `spec`, `retry`, `rules` | the settings of a run, as values |
//! | `event`, `observer` | reports while the run goes on |
//! | `program`, `annotated`, `seen` | scripts encoded for sending; the meaning of their results |
//! | `job` | everything that the workers share |
//! | `clients` | the clients and the random streams, split from the seed |
//! | `client` | the state machine of one simulated user, without I/O |
//! | `worker` | the event loop over the clients of one thread |
//! | `fleet` | threads, connecting, adding up |
//! | `transport`, `sockets`, `poller` | the network as a trait, and for real |
//! | `event_loop` | the choice between poll, epoll and `io_uring` |
//! | `time`, `timers`, `schedule` | clock, timers, due times |
//! | `recorder` | counters of one worker |
//! | `series` | counts over time |
//! | `load` | how busy a worker was |
//! | `recording`, `recording/file` | reads and writes of transactions, for the isolation checker |
//! | `control` | stopping a run |
//! | `progress` | watching it |
//! | `transaction_log` | pgbench's logs of transactions |
//! | `wording` | events in pgbench's words |
//! | `simulation` | a run on another transport and clock |

mod annotated;
mod client;
mod clients;
mod control;
mod event;
mod event_loop;
mod fleet;
mod job;
mod load;
mod observer;
mod poller;
mod program;
mod progress;
mod recorder;
mod recording;
mod retry;
mod rules;
mod schedule;
mod seen;
mod series;
mod simulation;
mod sockets;
mod spec;
mod time;
mod timers;
mod transaction_log;
mod transport;
mod wire;
pub mod wording;
mod worker;

pub use client::RETRIED_INSIDE;
pub use control::{Control, Urgency};
pub use event::{
    AbortCause, ClientEvent, ClientStep, CommandPlace, Detail, EventHandler, FailedStatement, Unfinished,
};
pub use event_loop::{ChosenLoop, EventLoop, NoRing};
pub use fleet::{
    AccountingError, CommonStart, ConnectClient, Fleet, NoThreads, OpenError, RunOutcome, Watch,
};
pub use job::{BeforeReading, Job, Reconnect};
pub use load::WorkerLoad;
pub use observer::{EndedTransaction, TransactionEnd, TransactionObserver};
pub use program::{Classify, ErrorClass, RunWorkload, commit_points};
pub use progress::RunProgress;
pub use recorder::{
    AssertionRecord, AttemptEnd, BranchRecord, CommandRecord, ConflictCount, EndedAttempt, ScriptRecord,
};
pub use recording::{Adoption, AdoptionError, Recording, RecordingError, RecordingHead, Storage};
pub use retry::{Backoff, BackoffError, Jitter, Restart, RetryPolicy};
pub use rules::Rules;
pub use series::{Bin, Series};
pub use simulation::Simulation;
pub use spec::{ClientShare, OnError, OnLost, Pacing, Protocol, RunSpec, StopCondition};
pub use time::{Clock, Nanos, SystemClock, ThreadTime};
pub use transaction_log::{LogError, LogSettings, LoggedRun, StartError};
pub use transport::{Connect, Received, Transport};
pub use wire::WireError;
