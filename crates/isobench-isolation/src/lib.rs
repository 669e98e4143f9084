//! Isolation levels, and what a history proves about them: dependencies, anomalies, verdicts.
//!
//! This crate is pure: it doesn't depend on server products, SQL dialects or protocols. The crate
//! that knows a product translates its spelling of levels, and the recording of histories is left
//! to the runner.
//!
//! | file | holds |
//! |---|---|
//! | `level` | the levels of SQL: requested and effective |
//! | `model`, `anomaly` | the models that can be promised, and the anomalies that contradict them: two tables |
//! | `promise` | what a server promises to each level, alone and next to others |
//! | `history`, `history/…` | the reads and writes of transactions; file formats |
//! | `observed`, `observed/…` | logs of what a server's answers showed, and the histories they prove |
//! | `check`, `check/…` | the check, from a history to a verdict, on one machine or several |
//!
//! ```
//! use isobench_isolation::{EffectiveLevel, Level};
//!
//! let asked: Level = "rr".parse().unwrap();
//! assert_eq!(asked, Level::RepeatableRead);
//! assert!(EffectiveLevel::from_setting("serializable").differs_from(asked));
//! ```

mod allocation;
pub mod anomaly;
pub mod check;
pub mod history;
mod level;
pub mod model;
pub mod observed;
mod promise;

pub use allocation::{Allocation, AllocationError};
pub use anomaly::{Anomaly, AnomalyFacts};
pub use check::{Finding, Report, Verdict, Witness};
pub use history::History;
pub use level::{EffectiveLevel, Level, UnknownLevel};
pub use model::{Guarantee, Model, Order};
pub use promise::{LevelPromises, Mixing};
