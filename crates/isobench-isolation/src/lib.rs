//! Isolation levels, and what a history proves about them: dependencies, anomalies, verdicts.
//!
//! Pure: knows no server product, no SQL dialect and no protocol. A server's own spelling of a
//! level is translated by the crate that knows the product; who recorded a history is not this
//! crate's business.
//!
//! | file | holds |
//! |---|---|
//! | `level` | the levels of SQL: asked for, and in effect |
//! | `model`, `anomaly` | what can be promised, and what contradicts it: two tables |
//! | `history`, `history/…` | what transactions read and wrote; its formats |
//! | `check`, `check/…` | from a history to a verdict |
//! | `windows` | the same window by window, when memory is scarce |
//!
//! ```
//! use isobench_isolation::{EffectiveLevel, Level};
//!
//! let asked: Level = "rr".parse().unwrap();
//! assert_eq!(asked, Level::RepeatableRead);
//! assert!(EffectiveLevel::from_setting("serializable").differs_from(asked));
//! ```

pub mod anomaly;
pub mod check;
pub mod history;
mod level;
pub mod model;
pub mod windows;

pub use anomaly::{Anomaly, AnomalyFacts};
pub use check::{Finding, Report, Verdict, Witness};
pub use history::History;
pub use level::{EffectiveLevel, Level, UnknownLevel};
pub use model::{Guarantee, Model, Order};
