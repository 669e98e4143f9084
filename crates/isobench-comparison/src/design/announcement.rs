//! The announcement before a plan touches tables of the user's.
//!
//! Not here: the question whether to go on (`isobench`), and what is refused there (`kept.rs`).

use super::Design;
use crate::tables::Tables;

/// The most statements that are listed.
const MOST_LISTED: usize = 20;

impl Design {
    /// What is about to happen to the user's tables at `place`, in some lines.
    pub fn announcement(&self, place: &str) -> String {
        let schema = self.schema().unwrap_or_default();
        let mut writing: Vec<String> = Vec::new();
        for statement in self.works.iter().flat_map(|work| work.sources.writing_statements()) {
            if !writing.contains(&statement) {
                writing.push(statement);
            }
        }
        let more = writing.len().saturating_sub(MOST_LISTED);
        writing.truncate(MOST_LISTED);
        if more > 0 {
            writing.push(format!("… and {more} more"));
        }
        if writing.is_empty() {
            writing.push("nothing, as far as the scripts' own statements show".to_owned());
        }
        let measurements = self.cells().len().saturating_mul(self.plan.rounds() as usize);
        let reset = self.works.iter().find_map(|work| match &work.tables {
            Tables::Kept(Some(reset)) => Some(reset.describe()),
            _ => None,
        });
        let reset = reset.map_or_else(
            || "none: each measurement starts with what the one before it left".to_owned(),
            |file| format!("{file}, before each measurement, not after the last one"),
        );
        format!(
            "this changes data of yours\n  \
             server  {place}\n  \
             schema  {schema}\n  \
             writes  {}\n          \
             (what functions and triggers write isn't listed)\n  \
             reset   {reset}\n  \
             Up to {} clients run the scripts, in {measurements} measurements or more, and commit what they do. The \
             data stay as they leave them. isobench itself makes, changes and drops nothing there.",
            writing.join("\n          "),
            self.most_clients(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use isobench_database::InitOptions;
    use isobench_plan::Plan;

    use crate::design::phases::Choice;
    use crate::design::resolve::Resolved;
    use crate::design::tests::options;
    use crate::failure::Outcome;

    const SCRIPT: &str = "BEGIN;\nSELECT v FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :v + 1\n  WHERE id = \
        1;\nEND;\n";

    fn resolved(folder: &Path, line: &str) -> Outcome<Resolved> {
        fs::write(folder.join("own.sql"), SCRIPT).unwrap();
        fs::write(folder.join("back.sql"), "UPDATE t SET v = 0;\n").unwrap();
        let line = line.replace("FOLDER", &folder.display().to_string());
        Resolved::of(&options(&line), None, Plan::default(), &InitOptions::default())
    }

    #[test]
    fn what_happens_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let line = "--levels rc,ser --rounds 3 -w FOLDER/own.sql --schema app --keep-data";
        let resolved = resolved(folder.path(), line).unwrap();
        let design = resolved.design();
        let text = design.announcement("db.example:5432/shop as me");
        for part in [
            "server  db.example:5432/shop as me\n",
            "schema  app\n",
            "own.sql:3: UPDATE t SET v = :v + 1 WHERE id = 1\n",
            "reset   none: each measurement starts with what the one before it left\n",
            "Up to 8 clients run the scripts, in 6 measurements or more",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("SELECT"), "{text}");
        assert!(
            design.warnings().iter().any(|warning| warning.contains("--reset")),
            "{:?}",
            design.warnings()
        );
        let resolved =
            super::tests::resolved(folder.path(), &format!("{line} --reset FOLDER/back.sql")).unwrap();
        let design = resolved.design();
        let text = design.announcement("x");
        assert!(text.contains("back.sql (1 statement), before each measurement"), "{text}");
        assert_eq!(design.warnings(), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (line, part) in [
            (
                "-w FOLDER/own.sql --schema app",
                "--schema: the scripts change what is in schema \"app\" for good",
            ),
            ("-w FOLDER/own.sql --keep-data", "--keep-data: is about tables of your own"),
            ("-w FOLDER/own.sql --reset FOLDER/back.sql", "--reset: is about tables of your own"),
            ("-w FOLDER/own.sql --schema= --keep-data", "--schema: the name is empty"),
            ("--schema app --keep-data", "workload orders writes tables of its own names"),
            ("-w registers --schema app --keep-data", "workload registers"),
            ("-w FOLDER/own.sql -w select-only --schema app --keep-data", "writes tables of its own names"),
            ("-w FOLDER/own.sql --setup FOLDER/back.sql --schema app --keep-data", "--setup: makes tables"),
            ("-w FOLDER/own.sql --schema app --keep-data --reset FOLDER/none.sql", "--reset: could not read"),
            (
                "-w FOLDER/own.sql --schema app --keep-data --vary fillfactor=50,100",
                "\"fillfactor\" isn't a parameter",
            ),
        ] {
            let message = resolved(folder.path(), line).map(|_| ()).unwrap_err().to_string();
            assert!(message.contains(part), "{line}: {message}");
        }
    }

    #[test]
    fn standbys_and_embedded_servers_have_no_tables_of_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let resolved = || resolved(folder.path(), "-w FOLDER/own.sql --schema app --keep-data").unwrap();
        let message = resolved().only_read("a.example", || Ok(1)).unwrap_err().to_string();
        assert!(message.contains("hot standby") && message.contains("--schema"), "{message}");
        let (named, embedded) = (Choice { named: true, ..Choice::default() }, Choice::default());
        let message = resolved().on(embedded).map(|_| ()).unwrap_err().to_string();
        assert!(message.starts_with("--schema: ") && message.contains("-h"), "{message}");
        assert_eq!(resolved().on(named).unwrap().1, Vec::<String>::new());
    }
}
