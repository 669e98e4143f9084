//! The types of facts about server products, and facts that several products share. No server, no
//! behaviour.
//!
//! Not here: the products themselves (`products/`), and the use of a fact (the files of the same
//! names one folder up).

pub mod abilities;
pub mod conflict;
pub mod dialect;
pub mod durability;
pub mod level;
pub mod namespace;
pub mod object;
pub mod promises;
pub mod settings;
pub mod waiting;
