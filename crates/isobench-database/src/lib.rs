//! The server under test: its product, its tables, their starting state and their invariants.
//!
//! Everything here is administrative work over one blocking connection, before or after what is measured; nothing
//! knows about clients, retries of measured transactions, or time. What differs between products stands as
//! data in `products/`.
//!
//! ```
//! use isobench_database::Database;
//! use isobench_isolation::Level;
//!
//! let database = Database::from_version_text("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)");
//! assert_eq!(database.product.name, "CockroachDB");
//! assert_eq!(database.version, "v20.1.5");
//! assert_eq!(
//!     database.product.set_level(Level::ReadCommitted),
//!     "SET default_transaction_isolation = 'read committed'"
//! );
//! ```

pub mod abilities;
pub mod conflict;
pub mod dialect;
pub mod environment;
mod error;
mod init;
pub mod invariants;
pub mod level;
mod load;
pub mod namespace;
pub mod object;
mod options;
mod pooling;
pub mod product;
pub mod products;
mod progress;
pub mod promises;
mod reset;
mod schema;
pub mod settings;
mod standby;
mod steps;
pub mod tables;
mod target;
pub mod waiting;

pub use abilities::{Abilities, Ability};
pub use conflict::Conflict;
pub use environment::{Environment, RelationSize, environment, relation_sizes};
pub use error::Error;
pub use init::{execute, init, query, scale_of};
pub use invariants::{Baseline, Checked, Expectation, Writes, baseline, check};
pub use level::EffectiveLevelQuery;
pub use namespace::{Connector, Namespace};
pub use object::Relations;
pub use options::{Habits, InitOptions, PartitionMethod};
pub use pooling::{Pooling, pooling, require_sessions};
pub use product::{Database, Product, detect};
pub use progress::{Progress, Timings};
pub use promises::Promises;
pub use reset::{ResetNote, can_put_back, put_back, reset, tidy};
pub use schema::Names;
pub use settings::{Settings, settings};
pub use standby::is_standby;
pub use steps::{Step, Steps, StepsError};
pub use waiting::WaitView;
