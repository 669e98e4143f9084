//! The scripts that the clients ran, in full.
//!
//! Not here: their names and parameters as the plan has them (`isobench_plan`).

use serde::{Deserialize, Serialize};

/// The scripts of all cells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Workload {
    /// The scripts of every workload, with their weights and texts; those of the first strategy,
    /// if the plan has several.
    pub scripts: Vec<PlannedScript>,
    /// The strategies, if the plan varies or chooses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<PlannedStrategy>,
}

/// One script of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedScript {
    /// The name of the built-in script, or the name of its file.
    pub name: String,
    /// Its weight: the frequency of its choice, relative to the other scripts.
    pub weight: u32,
    /// The workload that it belongs to, as its cells name it; empty if the plan has only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workload: String,
    /// Present if the script's committed transactions per minute are reported: what that number isn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<String>,
    /// The script's text, so that the run can be repeated.
    #[serde(default)]
    pub text: String,
}

impl PlannedStrategy {
    /// Adds the scripts that another workload has with the strategy of this name.
    pub fn add(&mut self, of_another: PlannedStrategy) {
        self.scripts.extend(of_another.scripts);
        self.round_trips_least = self.round_trips_least.min(of_another.round_trips_least);
        self.round_trips_most = self.round_trips_most.max(of_another.round_trips_most);
    }
}

/// A way in which the application copes with conflicts, as a factor of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PlannedStrategy {
    /// Its name.
    pub name: String,
    /// The behaviour of the application, in a sentence.
    pub summary: String,
    /// The scripts, with their weights and texts.
    pub scripts: Vec<PlannedScript>,
    /// Messages to the server that wait for an answer in one attempt without a conflict, preparing
    /// statements excluded: the fewest of any script and path through it.
    pub round_trips_least: u32,
    /// The most of any script and path through it.
    pub round_trips_most: u32,
}
