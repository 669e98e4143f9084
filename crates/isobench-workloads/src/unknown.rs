//! Errors in a text that selects a workload. The messages list the alternatives.

use isobench_suggest::did_you_mean;

use crate::workload::Parameter;

/// An error in a text that selects a workload. The message lists the alternatives.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UnknownWorkload {
    /// There is no workload of this name.
    #[error("there is no workload \"{name}\"{}; there are {}", did_you_mean(name, names()), list(names()))]
    Name {
        /// The name given.
        name: String,
    },
    /// The workload has no such variant.
    #[error("workload {workload} has no variant \"{variant}\"{}; {known}", meant(variant, known))]
    Variant {
        /// The workload.
        workload: &'static str,
        /// The variant given.
        variant: String,
        /// The alternatives.
        known: String,
    },
    /// The workload has no such parameter.
    #[error(
        "workload {workload} has no parameter \"{parameter}\"{}; there are {known}",
        meant(parameter, known)
    )]
    Parameter {
        /// The workload.
        workload: &'static str,
        /// The parameter given.
        parameter: String,
        /// The alternatives.
        known: String,
    },
    /// A parameter isn't of the form `NAME=VALUE`.
    #[error("\"{text}\": a parameter is NAME=VALUE; workload {workload} has {known}")]
    Form {
        /// The workload.
        workload: &'static str,
        /// The text given.
        text: String,
        /// The alternatives.
        known: String,
    },
    /// A parameter is given twice.
    #[error("workload {workload}: parameter {parameter} is given twice")]
    Twice {
        /// The workload.
        workload: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// A parameter's value is out of range or of the wrong type.
    #[error(
        "workload {workload}: {}={value} isn't a {} from {} to {} ({})",
        parameter.name, parameter.kind(), parameter.range.0, parameter.range.1, parameter.meaning
    )]
    Value {
        /// The workload.
        workload: &'static str,
        /// The parameter.
        parameter: &'static Parameter,
        /// The value given.
        value: String,
    },
    /// A parameter is greater than the one that limits it.
    #[error("workload {workload}: {smaller} must not be greater than {greater}")]
    Order {
        /// The workload.
        workload: &'static str,
        /// The parameter that must be smaller or equal, with its value.
        smaller: String,
        /// The limiting parameter, with its value.
        greater: String,
    },
    /// A built-in script of pgbench doesn't have the strategy.
    #[error("script {script} has no strategy \"{strategy}\"{}; {known}", meant(strategy, known))]
    Strategy {
        /// The script.
        script: String,
        /// The strategy given.
        strategy: String,
        /// The alternatives.
        known: String,
    },
    /// All scripts have weight 0.
    #[error("workload {workload}: at least one of the weights {weights} must be above 0")]
    NoWeight {
        /// The workload.
        workload: &'static str,
        /// The parameters that are weights.
        weights: String,
    },
}

/// The names of all workloads.
fn names() -> impl Iterator<Item = &'static str> {
    crate::all().iter().map(|row| row.name)
}

/// The question whether one of the names in a sentence was meant.
fn meant(given: &str, known: &str) -> String {
    let names = known.strip_prefix(THERE_ARE).unwrap_or(known);
    did_you_mean(given, names.split(", ").filter(|name| !name.contains(' ')))
}

/// The beginning of a sentence that lists names.
const THERE_ARE: &str = "there are ";

/// Names as a list in a sentence.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
