//! How the reads and writes of transactions are observed.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the reads and writes of transactions are observed, for the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Observe {
    /// Statements are sent with output columns that show keys and writers of rows; on products other
    /// than PostgreSQL, and in paced runs, by the lines `--@` of the scripts
    #[default]
    Rows,
    /// By the lines `--@` of the scripts; every statement is sent as written
    Annotations,
}
