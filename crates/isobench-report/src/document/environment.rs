//! The server under test and the machine that measured it.
//!
//! Not here: how either is found out.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The server under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Server {
    /// The product, for example `PostgreSQL`, told from the server's `version()`.
    pub product: String,
    /// The product's version, for example "15.18".
    pub version: String,
    /// Settings that differ from the product's defaults, and those that decide what a commit costs.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// True if isobench started this server for the measurement.
    #[serde(default)]
    pub embedded: bool,
    /// Where the server was, or where its programs came from, in words and without secrets.
    #[serde(default)]
    pub description: String,
}

/// The machine and the program that measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Client {
    /// The version of isobench.
    pub version: String,
    /// The model name of the processor.
    pub cpu: String,
    /// How many processors the client could use.
    pub cores: u32,
    /// The operating system and its version.
    #[serde(default)]
    pub os: String,
}
