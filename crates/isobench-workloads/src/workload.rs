//! What a workload is: plain facts, no behaviour.

use isobench_script::Value;

/// A workload with its tables, scripts and promises.
#[derive(Debug)]
pub struct Workload {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// What its transactions do, in a sentence.
    pub summary: &'static str,
    /// Where it comes from: paper or manual.
    pub source: &'static str,
    /// The names of its tables, in the order of their creation.
    pub tables: &'static [&'static str],
    /// SQL that drops and makes the tables; may hold `:parameter` and the lines of `pieces`.
    pub setup: &'static str,
    /// Its scripts; one is drawn for each transaction.
    pub scripts: &'static [ScriptFile],
    /// What can be set, in the order of lists. Each is a variable of the same name in scripts and
    /// set-up.
    pub parameters: &'static [Parameter],
    /// Pairs of parameters of which the first may not be greater than the second.
    pub at_most: &'static [(&'static str, &'static str)],
    /// The same workload with remedies that an application has.
    pub variants: &'static [Variant],
    /// What must hold in the tables after any number of transactions, had they run one after the
    /// other.
    pub invariants: &'static [Invariant],
    /// What transactions assert of what they read (`--@ holds`).
    pub assertions: &'static [Assertion],
    /// What its history and invariants can show.
    pub proves: &'static str,
    /// What they can't.
    pub blind: &'static str,
}

/// A script of a workload.
#[derive(Debug)]
pub struct ScriptFile {
    /// The name, without the workload's.
    pub name: &'static str,
    /// The text; may hold the lines of `pieces`.
    pub text: &'static str,
    /// How often it is drawn.
    pub weight: Weight,
}

/// How often a script is drawn, beside the workload's others.
#[derive(Debug, Clone, Copy)]
pub enum Weight {
    /// Always this.
    Fixed(u64),
    /// What this parameter says.
    Parameter(&'static str),
    /// 1 if this parameter is 0, else 0: the script of a switch that is off.
    Unless(&'static str),
}

/// Something that can be set.
#[derive(Debug)]
pub struct Parameter {
    /// The name, also of the variable in scripts and set-up.
    pub name: &'static str,
    /// The value unless it is set. Its type is the parameter's.
    pub default: Value,
    /// The least and the greatest value.
    pub range: (Value, Value),
    /// What it says, as a phrase.
    pub meaning: &'static str,
}

/// The workload with another way to keep its promises than the isolation level.
#[derive(Debug)]
pub struct Variant {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// What differs, in a sentence.
    pub summary: &'static str,
    /// Tables that only this variant has, in the order of their creation.
    pub tables: &'static [&'static str],
    /// SQL that makes its functions, after the tables; running it again does no harm.
    pub setup: &'static str,
    /// Its own scripts in place of the workload's; empty: those of the workload, with the lines
    /// that are marked for the variant.
    pub scripts: &'static [ScriptFile],
    /// What must hold in them, too.
    pub invariants: &'static [Invariant],
}

/// What must hold in the tables.
#[derive(Debug)]
pub struct Invariant {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub meaning: &'static str,
    /// Asks for one row: how many things are broken (0: it holds), and an example as text or NULL.
    /// May hold `:parameter`.
    pub sql: &'static str,
}

/// What a transaction asserts of what it read.
#[derive(Debug)]
pub struct Assertion {
    /// The name in the scripts.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub meaning: &'static str,
}

impl Variant {
    /// Nothing but the lines `--+NAME` in the workload's own files.
    pub(crate) const LINES: Variant =
        Variant { name: "", summary: "", tables: &[], setup: "", scripts: &[], invariants: &[] };
}

impl Parameter {
    /// What values are: `whole number` or `number`.
    pub const fn kind(&self) -> &'static str {
        match self.default {
            Value::Int(_) => "whole number",
            _ => "number",
        }
    }

    /// A whole number.
    pub(crate) const fn int(
        name: &'static str,
        default: i64,
        range: (i64, i64),
        meaning: &'static str,
    ) -> Parameter {
        let range = (Value::Int(range.0), Value::Int(range.1));
        Parameter { name, default: Value::Int(default), range, meaning }
    }

    /// A number.
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
