//! Plan files: the user's own, and the published experiments that come with isobench.
//!
//! Not here: what the keys mean (`plan.rs`); the experiments themselves, which are files in the
//! folder `plans`.

use std::fs;
use std::path::Path;

use super::PlanOptions;
use crate::failure::{Failure, Outcome};

/// A plan that comes with isobench.
#[derive(Debug)]
pub struct Published {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! published {
    ($($name:literal),+) => {
        [$(Published { name: $name, text: include_str!(concat!("../../../../plans/", $name, ".toml")) }),+]
    };
}

/// The plans that come with isobench, in the order of lists.
pub static PUBLISHED: [Published; 7] =
    published!["e1-dbist", "e2-pachot", "e3-pato", "e4-digoal", "e5-heikki", "smallbank", "sibench"];

/// Which size of a plan is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Size {
    /// What the file says first; of the published experiments about a minute.
    #[default]
    Quick,
    /// With what the file's part `[full]` says instead: the published size and time.
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

/// The plan of a published experiment, by its name.
pub fn published(name: &str) -> Option<&'static Published> {
    PUBLISHED.iter().find(|plan| plan.name == name)
}

/// Reads the plan of this name, or in this file, in a size. Names of files in a file are relative
/// to its own folder.
///
/// # Errors
/// There is no such plan, an unknown key, a value of the wrong type, or no such size; the message
/// names file and key.
pub fn read(name: &Path, size: Size) -> Outcome<PlanOptions> {
    let shown = name.display();
    let builtin = name.to_str().and_then(published);
    let (plan, named) = match builtin {
        Some(published) => (parse(published.text, published.name)?, Some(published.name)),
        None if !name.exists() && name.extension().is_none() => {
            let names: Vec<&str> = PUBLISHED.iter().map(|plan| plan.name).collect();
            return Err(Failure::setup(format!(
                "--plan: \"{shown}\" is neither a plan of isobench's own ({}) nor a file; see isobench plans",
                names.join(", ")
            )));
        }
        None => {
            let text = fs::read_to_string(name)
                .map_err(|error| Failure::setup(format!("could not read plan \"{shown}\": {error}")))?;
            (relative(parse(&text, &shown.to_string())?, name), None)
        }
    };
    sized(plan, named, size, &shown.to_string())
}

fn parse(text: &str, shown: &str) -> Outcome<PlanOptions> {
    let wrong = |error: toml::de::Error| Failure::setup(format!("plan \"{shown}\": {error}"));
    let mut unknown = Vec::new();
    // Results ignore what they don't know of an experiment, since a later version may have written
    // it; a plan is somebody's own.
    let read = toml::Deserializer::parse(text)
        .and_then(|file| serde_ignored::deserialize(file, |key| unknown.push(key.to_string())));
    let plan: PlanOptions = read.map_err(wrong)?;
    if let Some(key) = unknown.first() {
        return Err(Failure::setup(format!(
            "plan \"{shown}\": unknown key {}; isobench plans e3-pato shows an experiment with its keys",
            key.replace(".?", "")
        )));
    }
    let nested = plan.full.as_ref().is_some_and(|full| full.full.is_some() || full.experiment.is_some());
    if nested {
        return Err(Failure::setup(format!(
            "plan \"{shown}\": [full] says what differs in the full size; it can't have [full] or [experiment] itself"
        )));
    }
    Ok(plan)
}

/// The plan with what its size changes.
fn sized(plan: PlanOptions, named: Option<&str>, size: Size, shown: &str) -> Outcome<PlanOptions> {
    let PlanOptions { full, .. } = &plan;
    let mut plan = match (size, full) {
        (Size::Quick, _) => plan,
        (Size::Full, Some(full)) => {
            let mut full = PlanOptions::clone(full);
            if full.transactions.is_some() || full.time.is_some() {
                // One limit takes the other's place.
                full = full.or(PlanOptions { time: None, transactions: None, ..plan });
                full
            } else {
                full.or(plan)
            }
        }
        (Size::Full, None) => {
            return Err(Failure::setup(format!(
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

fn relative(mut plan: PlanOptions, path: &Path) -> PlanOptions {
    let folder = path.parent().unwrap_or(Path::new(""));
    plan.setup = plan.setup.map(|setup| folder.join(setup));
    for workload in plan.workload.iter_mut().flatten() {
        let file = folder.join(workload.rsplit_once('@').map_or(workload.as_str(), |(name, _)| name));
        if file.is_file() {
            *workload = folder.join(&*workload).display().to_string();
        }
    }
    plan
}

#[cfg(test)]
mod tests {
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
        let message = read(Path::new("e9-nobody"), Size::Quick).unwrap_err().to_string();
        assert!(message.contains("e3-pato") && message.contains("isobench plans"), "{message}");
        let (_folder, path) = written(
            "scale = 2\n[[experiment.shapes]]\nsays = \"x\"\nmetric = \"tps\"\nof = {}\nmots = 1.0\n",
        );
        let message = read(&path, Size::Quick).unwrap_err().to_string();
        assert!(message.contains("unknown key experiment.shapes.0.mots"), "{message}");
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
