//! A folder of scripts that was made of a capture before: it is used by the capture's name alone, so it may
//! hold nothing but what `isobench scripts` writes.
//!
//! Whoever has a capture from somebody else may have its folder from there, too.

use std::path::Path;

use isobench_comparison::{Failure, Outcome};
use isobench_plan::{Plan, Size};
use isobench_script::{is_recorded, split_weight};
use isobench_trust::{read_to_string, require_own};

/// Refuses a folder that others may have written, or in which something is no recorded SQL.
///
/// # Errors
/// It is such a folder; the message names what is wrong.
pub fn require_as_made(folder: &Path, plan: &Path) -> Outcome {
    let shown = folder.display();
    let refused = |why: &str| {
        Failure::setup(format!(
            "\"{shown}\": {why}: look at the files, and use them by --plan {}, or move the folder away",
            plan.display()
        ))
    };
    require_own(folder).map_err(|error| refused(&error.to_string()))?;
    let read = isobench_plan::read(plan, Size::Quick).map_err(Failure::setup)?;
    if let Some(key) = other_key(&read, isobench_plan::read(plan, Size::Full).is_ok()) {
        return Err(refused(&format!("its plan has the key {key}, which isobench scripts doesn't write")));
    }
    let scripts =
        read.file.iter().flatten().map(|file| split_weight(file).map_or(file.as_str(), |(name, _)| name));
    let setup = read.setup.iter().map(std::path::PathBuf::as_path);
    for file in scripts.map(Path::new).chain(setup) {
        let text = read_to_string(file).map_err(|error| {
            Failure::setup(format!("could not open file \"{}\": {error}", file.display()))
        })?;
        if !is_recorded(&text) {
            let why = format!("{} doesn't begin with the line --@ recorded", file.display());
            return Err(refused(&why));
        }
    }
    Ok(())
}

/// A key of a plan by which other SQL, or a program, would be run.
fn other_key(plan: &Plan, full: bool) -> Option<&'static str> {
    let keys = [
        ("workload", plan.workload.is_some()),
        ("read-script", plan.read_script.is_some()),
        ("reset", plan.reset.is_some()),
        ("invariant", plan.invariant.is_some()),
        ("fault-command", plan.fault_command.is_some()),
        ("server-settings", plan.server_settings.is_some()),
        ("vary", plan.vary.is_some()),
        ("full", full),
    ];
    keys.into_iter().find(|(_, given)| *given).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn refusal(plan: &str, script: &str, setup: &str) -> Option<String> {
        let scene = tempfile::tempdir().expect("a folder");
        let path = scene.path().join("workload.toml");
        for (name, text) in [("workload.toml", plan), ("a.sql", script), ("setup.sql", setup)] {
            fs::write(scene.path().join(name), text).expect("a file");
        }
        require_as_made(scene.path(), &path).err().map(|error| error.to_string())
    }

    #[test]
    fn only_what_isobench_writes_is_used_by_the_name_of_a_capture() {
        const PLAN: &str = "file = [\"a.sql@4\"]\nsetup = \"setup.sql\"\n";
        const MARKED: &str = "--@ recorded\nSELECT 1;";
        assert_eq!(refusal(PLAN, MARKED, MARKED), None);
        assert_eq!(refusal(&format!("{PLAN}clients = [4]\n"), MARKED, MARKED), None);
        let other = "file = [\"a.sql@4\", \"/etc/hostname\"]\n";
        for (plan, script, setup, why) in [
            (PLAN, "\\shell id\n", MARKED, "a.sql doesn't begin with"),
            (PLAN, MARKED, "SELECT 1;", "setup.sql doesn't begin with"),
            (other, MARKED, MARKED, "/etc/hostname doesn't begin with"),
            ("workload = [\"a.sql\"]\n", MARKED, MARKED, "key workload"),
            ("file = [\"a.sql\"]\n[full]\nfile = [\"b.sql\"]\n", MARKED, MARKED, "key full"),
            ("file = [\"a.sql\"]\nreset = \"a.sql\"\n", MARKED, MARKED, "key reset"),
        ] {
            let refused = refusal(plan, script, setup).expect("refused");
            assert!(refused.contains(why) && refused.contains("--plan"), "{why}: {refused}");
        }
    }
}
