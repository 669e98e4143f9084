//! The server under test and the machine that measured it.
//!
//! Not here: how either is found out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The server under test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Server {
    /// The product, for example `PostgreSQL`, from the server's `version()`.
    pub product: String,
    /// The product's version, for example "15.18".
    pub version: String,
    /// Settings that differ from the product's defaults, and those that decide what a commit costs.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// True if isobench started this server for the measurement.
    #[serde(default)]
    pub embedded: bool,
    /// The place of the server, or of its programs, in words and without secrets.
    #[serde(default)]
    pub description: String,
    /// The host of the sessions, as name and port, where several were named; missing if one was
    /// named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// True if it is a hot standby, which only follows another server; missing otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hot_standby: bool,
    /// The server's whole answer to `SELECT version()`.
    #[serde(default)]
    pub version_text: String,
    /// Extensions of the database, with their versions.
    #[serde(default)]
    pub extensions: BTreeMap<String, String>,
    /// Settings that are attached to the role or the database, as "role NAME: setting = value".
    #[serde(default)]
    pub role_settings: Vec<String>,
    /// Tables and indexes of the workload with their sizes, after the first measurement.
    #[serde(default)]
    pub relations: Vec<RelationSize>,
    /// The parts of this that couldn't be read, and why.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Server {
    /// Product and version.
    pub fn name(&self) -> String {
        let product = if self.product.is_empty() { "an unknown server" } else { &self.product };
        let standby = if self.hot_standby { ", a hot standby" } else { "" };
        format!("{}{standby}", format!("{product} {}", self.version).trim_end())
    }
}

/// A table or an index of the workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RelationSize {
    /// Its name.
    pub name: String,
    /// "table" or "index".
    pub kind: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Rows, as the server estimates them; null for an index.
    pub rows: Option<u64>,
}

/// The machine and the program that measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Client {
    /// The version of isobench.
    pub version: String,
    /// The model name of the processor.
    pub cpu: String,
    /// The number of processors that the client could use.
    pub cores: u32,
    /// The operating system and its version.
    #[serde(default)]
    pub os: String,
    /// Memory of the machine in bytes; 0 if unknown.
    #[serde(default)]
    pub memory_bytes: u64,
    /// True if the server runs on the same machine, and so shares its processors.
    #[serde(default)]
    pub same_machine: bool,
}
