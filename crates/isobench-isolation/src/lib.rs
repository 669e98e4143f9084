//! Isolation levels: what was asked for, what the server says it runs, and how the two compare.
//!
//! Pure: knows no server product, no SQL dialect and no protocol. A server's own spelling of a level is
//! translated by the crate that knows the product.
//!
//! ```
//! use isobench_isolation::{EffectiveLevel, Level};
//!
//! let asked: Level = "rr".parse().unwrap();
//! assert_eq!(asked, Level::RepeatableRead);
//! assert!(EffectiveLevel::from_setting("serializable").differs_from(asked));
//! ```

mod level;

pub use level::{EffectiveLevel, Level, UnknownLevel};
