//! The types that describe a workload; they have no behaviour.

use isobench_script::Value;

/// A workload with its tables, scripts and invariants.
#[derive(Debug)]
pub struct Workload {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// A summary of its transactions, in a sentence.
    pub summary: &'static str,
    /// The source: a paper or a manual.
    pub source: &'static str,
    /// The names of the tables, in order of creation.
    pub tables: &'static [&'static str],
    /// SQL that drops and creates the tables; may contain `:parameter` and the lines of `pieces`.
    pub setup: &'static str,
    /// The rest of the set-up, if it is made by several sessions.
    pub load: Option<Load>,
    /// The scripts; one is drawn for each transaction.
    pub scripts: &'static [ScriptFile],
    /// The script whose committed transactions per minute are reported, if its field does that.
    pub rate_of: Option<RateOf>,
    /// The parameters, in listing order. Each is a variable of the same name in scripts and set-up.
    pub parameters: &'static [Parameter],
    /// Pairs of parameters of which the first must not be greater than the second.
    pub at_most: &'static [(&'static str, &'static str)],
    /// The same workload with remedies available to an application.
    pub variants: &'static [Variant],
    /// The conditions that hold in the tables after any serial execution of transactions.
    pub invariants: &'static [Invariant],
    /// The conditions that transactions check on what they read (`--@ holds`).
    pub assertions: &'static [Assertion],
    /// The anomalies that its history and invariants can show.
    pub proves: &'static str,
    /// The anomalies that they can't show.
    pub blind: &'static str,
}

/// Rows that several sessions insert at the same time, after the tables are created.
#[derive(Debug)]
pub struct Load {
    /// SQL that inserts the rows of the numbers from `:first` to `:last`.
    pub sql: &'static str,
    /// The parameter that is the last of the numbers, which start at 1.
    pub count: &'static str,
    /// SQL that creates keys and indexes, after all rows are inserted.
    pub keys: &'static str,
}

/// A script whose committed transactions per minute are reported.
#[derive(Debug)]
pub struct RateOf {
    /// Its name, without the workload's.
    pub script: &'static str,
    /// What the number isn't; shown wherever it is.
    pub note: &'static str,
}

/// A script of a workload.
#[derive(Debug)]
pub struct ScriptFile {
    /// The name, without the workload's.
    pub name: &'static str,
    /// The text; may hold the lines of `pieces`.
    pub text: &'static str,
    /// The weight.
    pub weight: Weight,
}

/// The weight of a script, relative to the workload's other scripts.
#[derive(Debug, Clone, Copy)]
pub enum Weight {
    /// A constant.
    Fixed(u64),
    /// The value of this parameter.
    Parameter(&'static str),
    /// 1 if this parameter is 0, else 0: the script of a switch that is off.
    Unless(&'static str),
    /// 1 if one of these parameters is above 0, else 0: the script that chooses among operations
    /// with these weights.
    Any(&'static [&'static str]),
}

/// A parameter.
#[derive(Debug)]
pub struct Parameter {
    /// The name, also of the variable in scripts and set-up.
    pub name: &'static str,
    /// The default. Its type is the parameter's type.
    pub default: Value,
    /// The least and the greatest permitted value.
    pub range: (Value, Value),
    /// The meaning, as a phrase.
    pub meaning: &'static str,
}

/// The workload with a remedy other than the isolation level.
#[derive(Debug)]
pub struct Variant {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// The difference, in a sentence.
    pub summary: &'static str,
    /// Tables that only this variant has, in order of creation.
    pub tables: &'static [&'static str],
    /// SQL that creates its functions, after the tables; it can be run repeatedly.
    pub setup: &'static str,
    /// The scripts that replace the workload's; if empty, the workload's scripts are used with the
    /// lines marked for the variant.
    pub scripts: &'static [ScriptFile],
    /// Additional invariants.
    pub invariants: &'static [Invariant],
    /// The parameters whose defaults aren't the workload's, with those that they have here.
    pub defaults: &'static [(&'static str, Value)],
}

/// A condition that must hold in the tables.
#[derive(Debug)]
pub struct Invariant {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// The condition, as a sentence.
    pub meaning: &'static str,
    /// The unit of the violations, in the plural: registers, units of stock.
    pub unit: &'static str,
    /// A query that returns one row: the number of violations (0 if the invariant holds), and an
    /// example as text or NULL. May contain `:parameter`.
    pub sql: &'static str,
}

/// A condition that a transaction checks on what it read.
#[derive(Debug)]
pub struct Assertion {
    /// The name used in the scripts.
    pub name: &'static str,
    /// The condition, as a sentence.
    pub meaning: &'static str,
}

impl Variant {
    /// A variant that consists only of the lines `--+NAME` in the workload's own files.
    pub(crate) const LINES: Variant = Variant {
        name: "",
        summary: "",
        tables: &[],
        setup: "",
        scripts: &[],
        invariants: &[],
        defaults: &[],
    };
}

impl Parameter {
    /// The type of the values: `whole number` or `number`.
    pub const fn kind(&self) -> &'static str {
        match self.default {
            Value::Int(_) => "whole number",
            _ => "number",
        }
    }

    /// An integer parameter.
    pub(crate) const fn int(
        name: &'static str,
        default: i64,
        range: (i64, i64),
        meaning: &'static str,
    ) -> Parameter {
        let range = (Value::Int(range.0), Value::Int(range.1));
        Parameter { name, default: Value::Int(default), range, meaning }
    }

    /// A floating-point parameter.
    pub(crate) const fn real(
        name: &'static str,
        default: f64,
        range: (f64, f64),
        meaning: &'static str,
    ) -> Parameter {
        let range = (Value::Double(range.0), Value::Double(range.1));
        Parameter { name, default: Value::Double(default), range, meaning }
    }
}
