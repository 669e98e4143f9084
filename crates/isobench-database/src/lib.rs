//! The server under test: its product, its tables, their starting state and their invariants.
//!
//! Everything here is administrative work over one blocking connection, before or after the
//! measurement. Nothing knows about clients, retries of measured transactions, or time. The
//! differences between products are data in `products/`, in terms of `facts/`, which know neither
//! product nor server. [`wal`] reads committed writes from PostgreSQL's log, also while clients are at
//! work.
//!
//! ```
//! use isobench_database::Database;
//! use isobench_isolation::Level;
//!
//! let database = Database::from_version_text("CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)");
//! assert_eq!(database.product.name, "CockroachDB");
//! assert_eq!(database.version, "v20.1.5");
//! assert_eq!(
//!     database.product.set_level(Level::ReadCommitted).as_deref(),
//!     Some("SET default_transaction_isolation = 'read committed'")
//! );
//! ```

mod abilities;
mod altered;
mod asked;
mod conflict;
mod copy_target;
mod database;
mod environment;
mod error;
mod execute;
pub mod facts;
mod fill;
mod init;
mod invariants;
mod level;
mod namespace;
mod object;
mod options;
mod ownership;
mod pooling;
pub mod product;
pub mod products;
mod progress;
mod promises;
mod quoting;
mod reset;
mod schema;
mod settings;
mod standby;
mod steps;
mod table;
pub mod tables;
pub mod wal;

pub use altered::AlteredSettings;
pub use asked::Asked;
pub use conflict::Conflict;
pub use database::{Database, detect};
pub use environment::{Environment, RelationSize, environment, relation_sizes, tables};
pub use error::Error;
pub use execute::{execute, query};
pub use facts::abilities::{Abilities, Ability};
pub use facts::durability::{Outage, SynchronousCommit};
pub use facts::level::EffectiveLevelQuery;
pub use facts::waiting::WaitView;
pub use init::{init, scale_of};
pub use invariants::{Baseline, Expectation, InvariantResult, Writes, baseline, check};
pub use namespace::{Connector, Namespace};
pub use object::Relations;
pub use options::{InitOptions, InitVariant, PartitionMethod};
pub use ownership::{mark, require_ours};
pub use pooling::{Pooling, pooling, require_sessions};
pub use product::Product;
pub use progress::{InitProgress, Timings};
pub use reset::{ResetNote, can_put_back, checkpoint, put_back, reset, tidy};
pub use schema::OwnNames;
pub use settings::{
    ServerSettings, SessionSetting, SettingScope, current_setting, setting_names, setting_scope, settings,
    try_setting,
};
pub use standby::is_standby;
pub use steps::{InitStep, Steps, StepsError};
pub use table::Table;
