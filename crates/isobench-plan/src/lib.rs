//! The plan of a comparison as text: one struct that is the command line's options, the keys of a
//! plan file and the member `plan` of a result.
//!
//! A result thereby contains its own plan, which can be repeated. Not here: the plan combined with
//! a server, scripts and tables (`isobench-comparison`).
//!
//! | module | concept |
//! |---|---|
//! | `plan` | the struct, its defaults, and the precedence of command line and file |
//! | `time` | times with and without a unit |
//! | `retried` | the errors that are retried although they are no conflicts |
//! | `values` | parameters that vary, settings, shares: values with their own syntax |
//! | `fault`, `background` | what happens to the server, its standbys, and what goes on beside the clients |
//! | `file` | plan files: read in one of two sizes, written |
//! | `published` | the plans that come with isobench |
//! | `experiment` | the published experiment that a plan repeats |
//! | `require` | the figures of a result by name, and thresholds that it must keep: how they are written |
//!
//! ```
//! use isobench_plan::Plan;
//!
//! let file = Plan { rounds: Some(7), scale: Some(3), ..Plan::default() };
//! let options = Plan { rounds: Some(2), ..Plan::default() };
//! let plan = options.or(file).or(Plan::defaults());
//! assert_eq!((plan.rounds, plan.scale, plan.clients().len()), (Some(2), Some(3), 1));
//! ```

mod background;
mod event_loop;
mod experiment;
mod fault;
mod file;
mod observe;
mod plan;
mod published;
mod require;
mod retried;
mod time;
mod values;

pub use background::Background;
pub use event_loop::EventLoop;
pub use experiment::{Experiment, MIXED, PublishedFigure, PublishedRow, Selector, Shape};
pub use fault::{Fault, FaultFactor, FaultKind, StandbyMode};
pub use file::{PlanError, Size, keys, read, write};
pub use observe::Observe;
pub use plan::{DEFAULT_STRATEGY, Plan};
pub use published::{PUBLISHED, Published, published};
pub use require::{CellFigure, Comparison, End, Requirement};
pub use retried::RetriedState;
pub use time::{milliseconds, seconds};
pub use values::{Setting, Share, Vary, WrongValue};
