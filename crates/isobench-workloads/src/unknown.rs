//! What is wrong with a text that chooses no workload. The messages list what there is.

use crate::workload::Parameter;

/// A text that chooses no workload. The messages list what there is.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UnknownWorkload {
    /// There is none of that name.
    #[error("there is no workload \"{name}\"; there are {}", list(crate::all().iter().map(|row| row.name)))]
    Name {
        /// What was asked for.
        name: String,
    },
    /// The workload has no such variant.
    #[error("workload {workload} has no variant \"{variant}\"; {known}")]
    Variant {
        /// The workload.
        workload: &'static str,
        /// What was asked for.
        variant: String,
        /// What there is.
        known: String,
    },
    /// The workload has no such parameter.
    #[error("workload {workload} has no parameter \"{parameter}\"; there are {known}")]
    Parameter {
        /// The workload.
        workload: &'static str,
        /// What was asked for.
        parameter: String,
        /// What there is.
        known: String,
    },
    /// A parameter isn't of the form `NAME=VALUE`.
    #[error("\"{text}\": a parameter is NAME=VALUE; workload {workload} has {known}")]
    Form {
        /// The workload.
        workload: &'static str,
        /// What was given.
        text: String,
        /// What there is.
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
        "workload {workload}: {}={value} is no {} from {} to {} ({})",
        parameter.name, parameter.kind(), parameter.range.0, parameter.range.1, parameter.meaning
    )]
    Value {
        /// The workload.
        workload: &'static str,
        /// The parameter.
        parameter: &'static Parameter,
        /// What was given.
        value: String,
    },
    /// A parameter is greater than another that limits it.
    #[error("workload {workload}: {smaller} may not be greater than {greater}")]
    Order {
        /// The workload.
        workload: &'static str,
        /// What has to be smaller or equal, with its value.
        smaller: String,
        /// What limits it, with its value.
        greater: String,
    },
    /// A built-in script of pgbench hasn't got the strategy.
    #[error("script {script} has no strategy \"{strategy}\"; {known}")]
    Strategy {
        /// The script.
        script: String,
        /// What was asked for.
        strategy: String,
        /// What there is.
        known: String,
    },
    /// All scripts have the weight 0.
    #[error("workload {workload}: at least one of the weights {weights} must be above 0")]
    NoWeight {
        /// The workload.
        workload: &'static str,
        /// The parameters that are weights.
        weights: String,
    },
}

/// Names in a sentence.
pub(crate) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
