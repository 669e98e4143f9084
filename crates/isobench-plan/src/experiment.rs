//! A published experiment that a plan repeats: its figures, the results that should come out again,
//! and its shortcomings.
//!
//! Plain data, the same in plan files (TOML) and results. Not here: what figures there
//! are, and the comparison with those measured (`isobench-result`).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use isobench_isolation::Level;
use serde::{Deserialize, Serialize};

use crate::WrongValue;

/// A published experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case")]
pub struct Experiment {
    /// The name of the plan, such as "e3-pato".
    pub name: String,
    /// Its question, in a line.
    pub title: String,
    /// The authors, the place and the date of publication.
    pub source: String,
    /// The product and version that it was measured on.
    pub product: String,
    /// The size of the plan that was run: "quick" or "full".
    pub size: String,
    /// The needs of the quick size: time, disk, memory, in a sentence.
    pub needs_quick: String,
    /// The needs of the published size.
    pub needs_full: String,
    /// The published figures, a row for each cell.
    pub published: Vec<PublishedRow>,
    /// The shapes that should come out again, whatever the machine.
    pub shapes: Vec<Shape>,
    /// The shortcomings of the original, a sentence each.
    pub missed: Vec<String>,
}

/// One row of the published table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case")]
pub struct PublishedRow {
    /// Our cell beside which it is shown.
    pub cell: Selector,
    /// The figures, in the order of the published table.
    pub figures: Vec<PublishedFigure>,
}

/// One published figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case")]
pub struct PublishedFigure {
    /// The source's name for it, such as "tps" or "latency avg ms".
    pub name: String,
    /// The figure as published: "94,528" or "500,000 / 2,000,000".
    pub value: String,
    /// The name of our figure of the same kind; null if there is none.
    pub metric: Option<String>,
}

/// A selection of cells: those that match every given value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "kebab-case")]
pub struct Selector {
    /// The isolation level, by its full name; "mixed" for all cells with a level for each script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The number of clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Values of parameters that the plan varies.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, String>,
}

/// What a selector calls the cells with a level for each script. Their scripts' levels select among
/// them: `mixed+pay=serializable`.
pub const MIXED: &str = "mixed";

/// A level, and what else the cells have: `serializable+for-update+clients=64`.
impl FromStr for Selector {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Selector, WrongValue> {
        let mut parts = text.split('+').map(str::trim);
        let level = match parts.next().unwrap_or_default() {
            MIXED => MIXED,
            level => level.parse::<Level>().map_err(|error| WrongValue(error.to_string()))?.name(),
        };
        let mut selector = Selector { level: Some(level.to_owned()), ..Selector::default() };
        for part in parts {
            match part.split_once('=') {
                _ if part.is_empty() => return Err(WrongValue(format!("\"{text}\" names nothing after +"))),
                None => selector.strategy = Some(part.to_owned()),
                Some(("clients", number)) => {
                    let number =
                        number.parse().map_err(|_| WrongValue::new(part, "isn't a number of clients"))?;
                    selector.clients = Some(number);
                }
                Some((name, value)) => {
                    selector.varied.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        Ok(selector)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = self.clients.map(|clients| format!("clients={clients}"));
        let named = [self.level.clone(), self.strategy.clone(), clients].into_iter().flatten();
        let varied = self.varied.iter().map(|(name, value)| format!("{name}={value}"));
        f.write_str(&named.chain(varied).collect::<Vec<_>>().join("+"))
    }
}

/// A result that should come out again: a metric of a cell, or its ratio to that of another cell,
/// within a tolerance.
///
/// The tolerance is an interval around the published figure, wide enough for another machine and
/// version, and narrow enough to exclude a different conclusion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct Shape {
    /// The statement, in a sentence without the numbers.
    pub says: String,
    /// The name of the figure.
    pub metric: String,
    /// The cell.
    pub of: Selector,
    /// The cell whose metric is the divisor; null: the metric itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Selector>,
    /// The published figure; null if the source has no number for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Lower limit of the tolerance; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Upper limit of the tolerance; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// The reasons why a product's figure lies outside, by the product's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub differs: BTreeMap<String, String>,
}
