//! Drives the load: clients, retries, pacing, accounting.
//!
//! A [`Job`] is a workload with its settings; a [`Fleet`] is its clients with their sessions;
//! [`Fleet::run`] makes an [`RunOutcome`] of them, in which every attempt lies in exactly one
//! bucket. The runner knows neither server products nor SQL dialects: how a session is set up, and
//! which errors are conflicts, are handed in.
//!
//! | file | holds |
//! |---|---|
//! | `spec`, `retry`, `rules` | what a run is asked to do, as values |
//! | `event`, `observer` | what is told while it goes on |
//! | `program`, `observed` | scripts made ready to send; what is to be seen of their results |
//! | `job` | what all workers share |
//! | `client` | the state machine of one simulated user, without I/O |
//! | `worker` | the event loop over the clients of one thread |
//! | `fleet` | threads, connecting, adding up |
//! | `transport`, `sockets`, `poller` | the network as a trait, and for real; waiting for it |
//! | `time`, `timers`, `schedule` | clock, timers, due times |
//! | `recorder` | counters of one worker |
//! | `series` | counts over time |
//! | `load` | how busy a worker was |
//! | `recording`, `recording/store` | what transactions read and wrote, for the isolation checker |
//! | `control` | stopping a run and watching it |
//! | `simulation` | running a crew on another transport and clock |

mod client;
mod clients;
mod control;
mod event;
mod fleet;
mod job;
mod load;
mod observed;
mod observer;
mod poller;
mod program;
mod recorder;
mod recording;
mod retry;
mod rules;
mod schedule;
mod series;
mod simulation;
mod sockets;
mod spec;
mod time;
mod timers;
mod transport;
mod worker;

pub use client::RETRIED_INSIDE;
pub use control::{Control, Progress, Urgency};
pub use event::{Cause, ClientStep, CommandPlace, Detail, Event, FailedStatement, Report, Unfinished};
pub use fleet::{AccountingError, ConnectClient, Fleet, NoThreads, OpenError, RunOutcome, Watch};
pub use job::{Job, Reconnect};
pub use load::WorkerLoad;
pub use observer::{EndedTransaction, TransactionEnd, TransactionObserver};
pub use program::{Classify, ErrorClass, Workload, commit_points};
pub use recorder::{AssertionRecord, CommandRecord, ConflictCount, ScriptRecord};
pub use recording::{Recording, RecordingError, Storage};
pub use retry::{Backoff, BackoffError, Jitter, Restart, RetryPolicy};
pub use rules::Rules;
pub use series::{Bin, Series};
pub use simulation::Simulation;
pub use spec::{OnError, Pacing, Protocol, RunSpec, Stop};
pub use time::{Clock, Nanos, SystemClock, ThreadTime};
pub use transport::{Received, Transport};
