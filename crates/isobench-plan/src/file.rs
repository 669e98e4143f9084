//! Plan files: TOML with the names of the options as keys, in a quick and a full size.

use std::path::Path;

use clap::Args as _;
use isobench_suggest::did_you_mean;
use toml::de::{DeTable, DeValue};

use crate::{PUBLISHED, Plan, published};

/// The size of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Size {
    /// The first part of the file; about a minute for published experiments.
    #[default]
    Quick,
    /// With the changes of the part `[full]`: the published size and time.
    Full,
}

impl Size {
    /// The name of its option.
    pub const fn name(self) -> &'static str {
        match self {
            Size::Quick => "quick",
            Size::Full => "full",
        }
    }
}

/// A plan can't be read; the message names file, line and key as far as known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

/// Reads the plan of this name, or in this file, in a size. File names in a plan file are relative
/// to its folder.
///
/// # Errors
/// An unknown plan or key, a value of the wrong type, or a missing size; the message names file and
/// key.
pub fn read(name: &Path, size: Size) -> Result<Plan, PlanError> {
    let shown = name.display().to_string();
    let (plan, named) = match name.to_str().and_then(published) {
        Some(published) => (parse(published.text, published.name)?, Some(published.name)),
        None if !name.exists() && name.extension().is_none() => {
            let names: Vec<&str> = PUBLISHED.iter().map(|plan| plan.name).collect();
            return Err(PlanError(format!(
                "--plan: \"{shown}\"{} is neither a plan of isobench's own ({}) nor a file; see isobench plans",
                did_you_mean(&shown, names.iter().copied()),
                names.join(", ")
            )));
        }
        None => {
            let text = isobench_trust::read_to_string(name)
                .map_err(|error| PlanError(format!("could not read plan \"{shown}\": {error}")))?;
            (relative(parse(&text, &shown)?, name), None)
        }
    };
    sized(plan, named, size, &shown)
}

fn parse(text: &str, shown: &str) -> Result<Plan, PlanError> {
    let mut unknown = Vec::new();
    // Results ignore unknown members, since a later version may have written them; in a plan they
    // are spelling mistakes.
    let plan: Plan = toml::Deserializer::parse(text)
        .and_then(|file| serde_ignored::deserialize(file, |key| unknown.push(key.to_string())))
        .map_err(|error| PlanError(format!("plan \"{shown}\": {error}")))?;
    if let Some(key) = unknown.first() {
        let key = key.replace(".?", "");
        let known =
            if key.contains('.') { String::new() } else { format!("the keys are {}; ", keys().join(", ")) };
        let meant = did_you_mean(&key, keys().iter().map(String::as_str));
        let line = line_of(text, &key).map_or_else(String::new, |line| format!(", line {line}"));
        return Err(PlanError(format!(
            "plan \"{shown}\"{line}: unknown key {key}{meant}; {known}isobench plans e3-pato shows an experiment with \
            its keys"
        )));
    }
    let nested = plan.full.as_ref().is_some_and(|full| full.full.is_some() || full.experiment.is_some());
    if nested {
        return Err(PlanError(format!(
            "plan \"{shown}\": [full] says what differs in the full size; it can't have [full] or [experiment] itself"
        )));
    }
    Ok(plan)
}

/// The line of a key. In `path`, dots separate names of tables and indexes of arrays.
fn line_of(text: &str, path: &str) -> Option<usize> {
    let (tables, name) = path.rsplit_once('.').unwrap_or(("", path));
    let root = DeTable::parse(text).ok()?.into_inner();
    let mut value = DeValue::Table(root);
    for part in tables.split('.').filter(|part| !part.is_empty()) {
        value = match value {
            DeValue::Table(mut table) => table.remove(part)?.into_inner(),
            DeValue::Array(array) => array.into_iter().nth(part.parse().ok()?)?.into_inner(),
            _ => return None,
        };
    }
    let (key, _) = value.as_table()?.get_key_value(name)?;
    Some(text.get(..key.span().start)?.matches('\n').count() + 1)
}

/// The keys of a plan file: the names of the options, and the keys without an option.
pub fn keys() -> Vec<String> {
    let options = Plan::augment_args(clap::Command::new("plan"));
    let names = options.get_arguments().filter_map(clap::Arg::get_long);
    // A plan of somebody's runs no programs.
    let names = names.filter(|name| *name != "fault-command");
    names.chain(["server-settings", "full", "experiment"]).map(str::to_owned).collect()
}

/// Returns the plan with the changes of its size.
fn sized(plan: Plan, named: Option<&str>, size: Size, shown: &str) -> Result<Plan, PlanError> {
    let Plan { full, .. } = &plan;
    let mut plan = match (size, full) {
        (Size::Quick, _) => plan,
        (Size::Full, Some(full)) => Plan::clone(full).or(plan),
        (Size::Full, None) => {
            return Err(PlanError(format!(
                "--full: plan \"{shown}\" has no part [full]; leave the option out"
            )));
        }
    };
    plan.full = None;
    if let Some(experiment) = &mut plan.experiment {
        size.name().clone_into(&mut experiment.size);
        if let Some(name) = named {
            name.clone_into(&mut experiment.name);
        } else if experiment.name.is_empty() {
            shown.clone_into(&mut experiment.name);
        }
    }
    Ok(plan)
}

fn relative(mut plan: Plan, path: &Path) -> Plan {
    let folder = path.parent().unwrap_or(Path::new(""));
    plan.setup = plan.setup.map(|setup| folder.join(setup));
    plan.reset = plan.reset.map(|reset| folder.join(reset));
    for workload in plan.workload.iter_mut().chain(plan.file.iter_mut()).flatten() {
        let file = folder.join(workload.rsplit_once('@').map_or(workload.as_str(), |(name, _)| name));
        if file.is_file() || folder.join(&*workload).is_file() {
            *workload = folder.join(&*workload).display().to_string();
        }
    }
    plan
}

/// Writes a plan in the format of [`read`].
pub fn write(plan: &Plan) -> String {
    // TOML's integers are signed.
    let plan = Plan { seed: plan.seed.filter(|seed| i64::try_from(*seed).is_ok()), ..plan.clone() };
    toml::to_string(&plan).unwrap_or_else(|error| format!("# It can't be written: {error}\n"))
}
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn the_full_size_changes_what_it_names() {
        let (_folder, path) =
            written("scale = 2\ntime = 1\nclients = [4]\n[full]\nscale = 100\ntransactions = 7\n");
        let quick = read(&path, Size::Quick).unwrap();
        assert_eq!((quick.scale, quick.time, quick.transactions), (Some(2), Some(1.0), None));
        let full = read(&path, Size::Full).unwrap();
        assert_eq!((full.scale, full.time, full.transactions), (Some(100), None, Some(7)));
        assert_eq!(full.clients, Some(vec![4]));
        assert_eq!(full.full, None);
    }

    #[test]
    fn what_a_plan_lacks_is_told() {
        let (_folder, path) = written("scale = 2\n");
        let message = read(&path, Size::Full).unwrap_err().to_string();
        assert!(message.starts_with("--full: ") && message.contains("[full]"), "{message}");
        let message = read(Path::new("e9-unknown"), Size::Quick).unwrap_err().to_string();
        assert!(message.contains("e3-pato") && message.contains("isobench plans"), "{message}");
        let (_folder, path) = written(
            "scale = 2\n[[experiment.shapes]]\nsays = \"x\"\nmetric = \"tps\"\nof = {}\nmots = 1.0\n",
        );
        let message = read(&path, Size::Quick).unwrap_err().to_string();
        assert!(message.contains("line 6: unknown key experiment.shapes.0.mots"), "{message}");
        let (_folder, path) = written("[full]\nscale = 1\n[full.full]\nscale = 2\n");
        let message = read(&path, Size::Quick).unwrap_err().to_string();
        assert!(message.contains("[full]"), "{message}");
    }

    #[test]
    fn published_plans_can_be_read_in_both_sizes() {
        for plan in &PUBLISHED {
            for size in [Size::Quick, Size::Full] {
                let read = read(Path::new(plan.name), size).unwrap();
                let experiment = read.experiment.unwrap();
                assert_eq!((experiment.name.as_str(), experiment.size.as_str()), (plan.name, size.name()));
                assert!(!experiment.title.is_empty() && !experiment.source.is_empty(), "{}", plan.name);
                assert!(!experiment.needs_quick.is_empty() && !experiment.needs_full.is_empty());
                assert!(!experiment.missed.is_empty() && !experiment.shapes.is_empty(), "{}", plan.name);
            }
        }
    }
}
