//! What came of the thresholds that a result must keep. They are judged in `require`.

use isobench_plan::Requirement;
use serde::{Deserialize, Serialize};

/// A threshold, and whether the result keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequirementResult {
    /// The threshold, such as "serializable.ratio.low >= 0.5".
    pub requirement: Requirement,
    /// True if every cell that it concerns keeps it, and the result is complete.
    pub met: bool,
    /// The reason why it can't be met whatever the values are; missing if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The cells that it concerns.
    #[serde(default)]
    pub cells: Vec<RequiredCell>,
}

/// A cell that a threshold concerns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RequiredCell {
    /// Its level and the factors that vary, in words.
    pub cell: String,
    /// The figure's value; null if it wasn't measured.
    pub value: Option<f64>,
    /// True if the value may be larger, because counting was ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// True if the cell keeps the threshold.
    pub met: bool,
    /// The reason why there is no value, or it can't be judged by; missing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
