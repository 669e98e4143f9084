//! The answer as it is saved, for readers that don't read sentences.
//!
//! Not here: how it is found (`crate::answer`).

use serde::{Deserialize, Serialize};

/// The answer to the question of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct GivenAnswer {
    /// The names of the levels that are recommended, in every combination of the other factors;
    /// empty if none is. More than one if the run can't tell which of them costs less.
    pub recommended: Vec<String>,
    /// The name of the rule that decided; of several combinations, that of the first.
    pub rule: String,
    /// The answer in words.
    pub headline: String,
    /// What is known of each row's safety, in the order of the table, A/A cells left out.
    pub levels: Vec<LevelAnswer>,
    /// The answer to each combination of the other factors, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub combinations: Vec<CombinationAnswer>,
}

/// The answer to one combination of the factors other than level and strategy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CombinationAnswer {
    /// The combination in words: "8 clients".
    pub combination: String,
    /// The names of the levels that are recommended.
    pub recommended: Vec<String>,
    /// The strategies that are recommended, one for each of the levels; missing unless they vary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strategies: Vec<String>,
    /// The name of the rule that decided.
    pub rule: String,
    /// The answer in words.
    pub headline: String,
}

/// What is known of the safety of a level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LevelAnswer {
    /// The name of the level asked for.
    pub level: String,
    /// The strategy; missing unless strategies vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The combination of the other factors in words; missing if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combination: Option<String>,
    /// Whether anything went wrong.
    pub safety: LevelSafety,
    /// Why, in a sentence.
    pub reason: String,
    /// The statements of an example of an anomaly: "reserve.sql:4 → reserve.sql:6"; null if
    /// there is none, or rows weren't observed.
    pub place: Option<String>,
    /// The example, step by step; empty if there is none.
    pub witness: Vec<String>,
}

/// Whether a level was safe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LevelSafety {
    /// Nothing went wrong, and every statement that could matter was seen.
    Safe,
    /// Something went wrong: an anomaly, a condition on the tables that didn't hold, work lost, a
    /// promise broken, or a value carried from one transaction to another.
    Unsafe,
    /// It isn't known: not everything was seen, or the row isn't what it is called.
    #[default]
    Unjudged,
}
