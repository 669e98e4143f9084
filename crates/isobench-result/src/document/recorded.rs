//! The file in which the history of a round was recorded.
//!
//! Not here: what it proves (`verdict`).

use serde::{Deserialize, Serialize};

/// The recording of a round's transactions (`--history`), by which its file is found again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RecordedHistory {
    /// The name of the file, without its folder.
    pub file: String,
    /// What the recording's clock showed when the measured part began, in seconds. What is before is
    /// the warm-up's. Where cells take turns the clock stands still between the slices.
    pub measured_from_s: f64,
}
