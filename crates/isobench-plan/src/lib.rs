//! The plan of a comparison as text: one struct that is the command line's options, the keys of a
//! plan file and the member `plan` of a result.
//!
//! So a result shows its plan as it was written, and repeats it. Not here: what a plan means
//! together with a server, its scripts and its tables (`isobench-comparison`).
//!
//! | module | concept |
//! |---|---|
//! | `plan` | the struct, its defaults, and how a command line is laid over a file |
//! | `values` | parameters that vary, settings, shares: values with a form of their own |
//! | `file` | plan files: read in one of two sizes, written |
//! | `published` | the plans that come with isobench |
//! | `experiment` | the published experiment that a plan repeats |
//!
//! ```
//! use isobench_plan::Plan;
//!
//! let file = Plan { rounds: Some(7), scale: Some(3), ..Plan::default() };
//! let options = Plan { rounds: Some(2), ..Plan::default() };
//! let plan = options.or(file).or(Plan::defaults());
//! assert_eq!((plan.rounds, plan.scale, plan.clients().len()), (Some(2), Some(3), 1));
//! ```

mod experiment;
mod file;
mod plan;
mod published;
mod values;

pub use experiment::{Experiment, Metric, PublishedFigure, PublishedRow, Selector, Shape};
pub use file::{PlanError, Size, keys, read, write};
pub use plan::Plan;
pub use published::{PUBLISHED, Published, published};
pub use values::{Setting, Share, Vary, WrongValue};

/// The parameter under which the embedded server's version varies.
pub const SERVER_VERSION: &str = "server-version";
