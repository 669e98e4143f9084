//! A workload with its variant and parameters, as chosen by the text
//! `NAME[+VARIANT][:PARAMETER=VALUE,…]`.

use std::collections::BTreeMap;

use isobench_database::{Database, OwnNames};
use isobench_script::{ParseError, Value};

use crate::pieces::{fill, repeat, select, statements};
use crate::unknown::{UnknownWorkload, list};
use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// A workload with its variant and parameters.
#[derive(Debug, Clone)]
pub struct Chosen {
    workload: &'static Workload,
    variant: Option<&'static Variant>,
    /// The values that were given, in the order of the workload's parameters.
    given: Vec<Option<Value>>,
}

/// The statements that create a workload's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stages {
    /// Statements to be executed first, in order.
    pub before: Vec<String>,
    /// Statements of one session each, in order; the sessions need not wait for each other.
    pub loads: Vec<Vec<String>>,
    /// Statements to be executed last, in order.
    pub after: Vec<String>,
}

/// The most sessions that load tables. More hardly help: they extend the same files.
const MOST_SESSIONS: usize = 8;

/// A runnable script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The name, `WORKLOAD/SCRIPT`, or the workload's name if it has only one script.
    pub name: String,
    /// The text in the pgbench language.
    pub text: String,
    /// The weight relative to the other scripts; at least 1.
    pub weight: u64,
}

/// Finds a workload: `registers`, `write-skew+for-update`, `bank:accounts=10,scans=5`.
///
/// # Errors
/// If the workload, variant or parameter doesn't exist, or a value is out of range.
pub fn find(spec: &str) -> Result<Chosen, UnknownWorkload> {
    let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
    let (name, variant) = match name.split_once('+') {
        Some((name, variant)) => (name, Some(variant)),
        None => (name, None),
    };
    let workload = crate::all().iter().copied().find(|workload| workload.name == name);
    let workload = workload.ok_or_else(|| UnknownWorkload::Name { name: name.to_owned() })?;
    let variant = variant.map(|variant| find_variant(workload, variant)).transpose()?;
    let given = read_values(workload, parameters)?;
    let chosen = Chosen { workload, variant, given };
    chosen.consistent()?;
    Ok(chosen)
}

/// True if a text uses the variable.
fn uses(text: &str, variable: &str) -> bool {
    fill(text, |name| (name == variable).then(String::new)) != text
}

fn find_variant(workload: &'static Workload, name: &str) -> Result<&'static Variant, UnknownWorkload> {
    let found = workload.variants.iter().find(|variant| variant.name == name);
    found.ok_or_else(|| UnknownWorkload::Variant {
        workload: workload.name,
        variant: name.to_owned(),
        known: match workload.variants {
            [] => "it has none".to_owned(),
            variants => format!("there are {}", list(variants.iter().map(|variant| variant.name))),
        },
    })
}

fn read_values(workload: &'static Workload, text: &str) -> Result<Vec<Option<Value>>, UnknownWorkload> {
    let known = || list(workload.parameters.iter().map(|parameter| parameter.name));
    let mut values: Vec<Option<Value>> = vec![None; workload.parameters.len()];
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let Some((name, value)) = part.split_once('=') else {
            let text = part.to_owned();
            return Err(UnknownWorkload::Form { workload: workload.name, text, known: known() });
        };
        let Some(index) = workload.parameters.iter().position(|parameter| parameter.name == name) else {
            let parameter = name.to_owned();
            return Err(UnknownWorkload::Parameter { workload: workload.name, parameter, known: known() });
        };
        let parameter = &workload.parameters[index];
        if values[index].is_some() {
            return Err(UnknownWorkload::Twice { workload: workload.name, parameter: parameter.name });
        }
        values[index] = Some(read_value(workload, parameter, value)?);
    }
    Ok(values)
}

fn read_value(
    workload: &Workload,
    parameter: &'static Parameter,
    text: &str,
) -> Result<Value, UnknownWorkload> {
    let (least, most) = parameter.range;
    let whole = matches!(parameter.default, Value::Int(_));
    let value = if whole { text.parse().ok().map(Value::Int) } else { text.parse().ok().map(Value::Double) };
    let within = value.filter(|value| {
        let number = |value: Value| value.as_double().unwrap_or(f64::NAN);
        (number(least)..=number(most)).contains(&number(*value))
    });
    within.ok_or_else(|| UnknownWorkload::Value {
        workload: workload.name,
        parameter,
        value: text.to_owned(),
    })
}

impl Chosen {
    /// The workload.
    pub fn workload(&self) -> &'static Workload {
        self.workload
    }

    /// The variant, if one was chosen.
    pub fn variant(&self) -> Option<&'static Variant> {
        self.variant
    }

    /// The same workload with this variant in place of its own, and with these parameters changed.
    ///
    /// # Errors
    /// If the variant or a parameter doesn't exist, or a value is out of range.
    pub fn varied(
        &self,
        variant: Option<&str>,
        parameters: &BTreeMap<String, String>,
    ) -> Result<Chosen, UnknownWorkload> {
        let variant = variant.map(|name| find_variant(self.workload, name)).transpose()?;
        let text: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let varied = read_values(self.workload, &text.join(","))?;
        let given = varied.into_iter().zip(&self.given).map(|(varied, own)| varied.or(*own)).collect();
        let chosen = Chosen { workload: self.workload, variant: variant.or(self.variant), given };
        chosen.consistent()?;
        Ok(chosen)
    }

    /// The text that selects this workload, with the parameters that differ from their defaults.
    pub fn name(&self) -> String {
        let variant = self.variant.map(|variant| format!("+{}", variant.name)).unwrap_or_default();
        let parameters = self.workload.parameters.iter().zip(&self.given);
        let given = parameters.filter_map(|(parameter, given)| Some((parameter, (*given)?)));
        let set: Vec<String> = given
            .filter(|(parameter, value)| *value != self.default_of(parameter))
            .map(|(parameter, value)| format!("{}={value}", parameter.name))
            .collect();
        let separator = if set.is_empty() { "" } else { ":" };
        format!("{}{variant}{separator}{}", self.workload.name, set.join(","))
    }

    /// The variables that the scripts need, with their values: the parameters. The caller sets
    /// `attempt_id`.
    pub fn variables(&self) -> Vec<(String, Value)> {
        let parameters = self.workload.parameters.iter().zip(&self.given);
        let value = |(parameter, given): (&Parameter, &Option<Value>)| {
            (parameter.name.to_owned(), given.unwrap_or_else(|| self.default_of(parameter)))
        };
        parameters.map(value).collect()
    }

    /// The scripts whose weight isn't 0.
    pub fn scripts(&self) -> Vec<Script> {
        let wanted = self.pieces();
        let scripts = self.script_files();
        let name = |script: &str| match scripts {
            [_] => self.workload.name.to_owned(),
            _ => format!("{}/{script}", self.workload.name),
        };
        let script = |file: &ScriptFile| Script {
            name: name(file.name),
            text: repeat(&select(file.text, &wanted), |name| self.number(name)),
            weight: self.weight(file.weight),
        };
        scripts.iter().map(script).filter(|script| script.weight > 0).collect()
    }

    /// The statements that drop and create the tables, in the product's SQL, for one session.
    ///
    /// # Errors
    /// If the workload's file isn't valid SQL, which is a defect of isobench.
    pub fn setup(&self, database: &Database) -> Result<Vec<String>, ParseError> {
        statements(&self.setup_text(database))
    }

    /// The same statements for several sessions, of which only the parts of the load are executed at
    /// the same time.
    ///
    /// # Errors
    /// As [`Chosen::setup`].
    pub fn stages(&self, database: &Database, sessions: usize) -> Result<Stages, ParseError> {
        let loads = self.loads(sessions).iter().map(|load| statements(load)).collect::<Result<_, _>>()?;
        let before = statements(&self.tables_text(database))?;
        Ok(Stages { before, loads, after: statements(&self.keys_text())? })
    }

    /// The number of sessions that create the tables soonest, at least 1: one without a load, and
    /// never more than this machine has processors.
    pub fn sessions(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_SESSIONS);
        self.loads(cores).len().max(1)
    }

    /// The names of the tables, sequences and functions that the set-up creates.
    pub fn names(&self, database: &Database) -> OwnNames {
        OwnNames::made_by([self.setup_text(database).as_str()])
    }

    /// The files of a custom workload equal to this one, with their names: `tables.sql`, and each
    /// script, which starts by setting its parameters.
    pub fn files(&self, database: &Database) -> Vec<(String, String)> {
        let mut files = vec![("tables.sql".to_owned(), self.setup_text(database))];
        let names =
            self.script_files().iter().filter(|file| self.weight(file.weight) > 0).map(|file| file.name);
        for (name, script) in names.zip(self.scripts()) {
            let used = self.workload.parameters.iter().filter(|parameter| uses(&script.text, parameter.name));
            let sets = used.map(|parameter| {
                let value = self.value(parameter.name).unwrap_or(parameter.default);
                format!("\\set {} {value}\n", parameter.name)
            });
            files.push((format!("{name}.sql"), sets.collect::<String>() + &script.text));
        }
        files
    }

    fn setup_text(&self, database: &Database) -> String {
        [self.tables_text(database), self.loads(1).concat(), self.keys_text()].concat()
    }

    /// The SQL of the load in at most so many parts of about the same size.
    fn loads(&self, most: usize) -> Vec<String> {
        let Some(load) = &self.workload.load else { return Vec::new() };
        let count = self.number(load.count);
        let parts = count.min(most as u64).max(1);
        let part = |part: u64| {
            let (first, last) = (count * part / parts + 1, count * (part + 1) / parts);
            let text = fill(load.sql, |name| match name {
                "first" => Some(first.to_string()),
                "last" => Some(last.to_string()),
                _ => None,
            });
            self.filled(&text)
        };
        (0..parts).map(part).collect()
    }

    fn keys_text(&self) -> String {
        let keys = self.workload.load.as_ref().map_or("", |load| load.keys);
        let functions = self.variant.map_or("", |variant| variant.setup);
        self.filled(&[keys, functions].concat())
    }

    fn tables_text(&self, database: &Database) -> String {
        let mut wanted = self.pieces();
        if database.product.dialect.fillfactor {
            wanted.push("fillfactor");
        }
        self.filled(&repeat(&select(self.workload.setup, &wanted), |name| self.number(name)))
    }

    /// The pieces of files that are wanted: those of the variant, and of parameters above 0.
    fn pieces(&self) -> Vec<&'static str> {
        let parameters = self.workload.parameters.iter().map(|parameter| parameter.name);
        let above = parameters.filter(|name| {
            self.value(name).and_then(|value| value.as_double().ok()).is_some_and(|value| value > 0.0)
        });
        self.variant.iter().map(|variant| variant.name).chain(above).collect()
    }

    /// The scripts' files: the variant's own, or the workload's.
    fn script_files(&self) -> &'static [ScriptFile] {
        match self.variant {
            Some(Variant { scripts, .. }) if !scripts.is_empty() => scripts,
            _ => self.workload.scripts,
        }
    }

    fn filled(&self, text: &str) -> String {
        fill(text, |name| self.value(name).map(|value| value.to_string()))
    }

    /// The tables, in order of creation.
    pub fn tables(&self) -> Vec<&'static str> {
        let extra = self.variant.map_or(&[][..], |variant| variant.tables);
        self.workload.tables.iter().chain(extra).copied().collect()
    }

    /// The invariants.
    pub fn invariants(&self) -> Vec<&'static Invariant> {
        let extra = self.variant.map_or(&[][..], |variant| variant.invariants);
        self.workload.invariants.iter().chain(extra).collect()
    }

    /// The SQL of an invariant, with the parameters filled in.
    pub fn question(&self, invariant: &Invariant) -> String {
        self.filled(invariant.sql)
    }

    /// True if the scripts declare what they read and write, so that their history can be checked.
    pub fn is_checked(&self) -> bool {
        self.script_files().iter().any(|script| script.text.contains("--@ "))
    }

    /// A parameter's value.
    pub fn value(&self, name: &str) -> Option<Value> {
        let index = self.workload.parameters.iter().position(|parameter| parameter.name == name)?;
        let given = self.given.get(index).copied()?;
        Some(given.unwrap_or_else(|| self.default_of(&self.workload.parameters[index])))
    }

    /// A parameter's value if none is given: the variant's, or the workload's.
    fn default_of(&self, parameter: &Parameter) -> Value {
        let defaults = self.variant.map_or(&[][..], |variant| variant.defaults);
        let own = defaults.iter().find(|(name, _)| *name == parameter.name);
        own.map_or(parameter.default, |(_, value)| *value)
    }

    fn weight(&self, weight: Weight) -> u64 {
        match weight {
            Weight::Fixed(weight) => weight,
            Weight::Parameter(name) => self.number(name),
            Weight::Unless(name) => u64::from(self.number(name) == 0),
            Weight::Any(names) => u64::from(names.iter().any(|name| self.number(name) > 0)),
        }
    }

    /// The value of an integer parameter.
    fn number(&self, name: &str) -> u64 {
        let value = self.value(name).and_then(|value| value.as_int().ok());
        value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
    }

    /// Checks conditions on several parameters.
    fn consistent(&self) -> Result<(), UnknownWorkload> {
        let number = |name| self.value(name).and_then(|value| value.as_double().ok()).unwrap_or(0.0);
        let shown = |name| format!("{name}={}", self.value(name).unwrap_or(Value::Null));
        for &(smaller, greater) in self.workload.at_most {
            if number(smaller) > number(greater) {
                return Err(UnknownWorkload::Order {
                    workload: self.workload.name,
                    smaller: shown(smaller),
                    greater: shown(greater),
                });
            }
        }
        if self.script_files().iter().all(|script| self.weight(script.weight) == 0) {
            let weights = self.script_files().iter().flat_map(|script| match &script.weight {
                Weight::Parameter(name) => std::slice::from_ref(name),
                Weight::Any(names) => *names,
                Weight::Fixed(_) | Weight::Unless(_) => &[],
            });
            let weights = weights.copied();
            return Err(UnknownWorkload::NoWeight { workload: self.workload.name, weights: list(weights) });
        }
        Ok(())
    }
}
