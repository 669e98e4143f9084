//! A wrong outcome as a specification in the isolation tester's language, which `isobench probe --spec`
//! replays.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use isobench_isolation::Allocation;

use super::found::Witness;

/// The name of the session that shows the tables at the end.
const AFTER: &str = "after";

impl Witness {
    /// The specification, after these statements that make the tables. Where an allocation has different
    /// levels, each session sets its own; else they are left to `--levels`.
    ///
    /// # Errors
    /// A statement contains a brace, which the language can't express; the statement.
    pub fn to_spec(&self, setup: &[&str], allocation: &Allocation) -> Result<String, String> {
        let mut text = String::new();
        let all = setup.iter().copied().chain(self.prefix_sql.iter().map(String::as_str));
        for sql in all {
            // Writing to a String can't fail.
            let _ = writeln!(text, "setup {{ {} }}", block(sql)?);
        }
        let mut order = Vec::new();
        for (transaction, script) in self.scripts.iter().enumerate() {
            let _ = writeln!(text, "\nsession t{}", transaction + 1);
            if allocation.level().is_none() {
                let modes = allocation.of(script).sql();
                let _ = writeln!(text, "setup {{ SET SESSION CHARACTERISTICS AS TRANSACTION {modes}; }}");
            }
            let mut number = 0;
            let mut seen = Waiting::default();
            for (place, step) in self.steps.iter().enumerate() {
                // A step that waited is in the list twice.
                if step.transaction != transaction || seen.is_repeated(&step.sql, step.waits()) {
                    continue;
                }
                number += 1;
                let name = format!("t{}s{number}", transaction + 1);
                let begin = if step.enclosed { "BEGIN; " } else { "" };
                let _ = writeln!(text, "step {name} {{ {begin}{} }}", block(&step.sql)?);
                order.push((place, name));
            }
        }
        order.sort();
        let names: Vec<String> = order.into_iter().map(|(_, name)| name).collect();
        let tables: BTreeSet<&str> =
            self.outcome.changes.iter().filter_map(|change| change.split(' ').nth(1)).collect();
        let _ = writeln!(text, "\nsession {AFTER}");
        let mut shown = Vec::new();
        for (number, table) in tables.iter().enumerate() {
            let name = format!("{AFTER}{}", number + 1);
            let quoted = table.replace('"', "\"\"");
            let _ = writeln!(text, "step {name} {{ SELECT * FROM \"{quoted}\" ORDER BY 1; }}");
            shown.push(name);
        }
        if shown.is_empty() {
            let _ = writeln!(text, "step {AFTER}1 {{ SELECT 1; }}");
            shown.push(format!("{AFTER}1"));
        }
        let _ =
            writeln!(text, "\npermutation {}", names.into_iter().chain(shown).collect::<Vec<_>>().join(" "));
        Ok(text)
    }
}

/// The statement that a transaction waits with.
#[derive(Default)]
struct Waiting(Option<String>);

impl Waiting {
    /// True if this is the end of a statement that waited.
    fn is_repeated(&mut self, sql: &str, waits: bool) -> bool {
        if waits {
            self.0 = Some(sql.to_owned());
            return false;
        }
        self.0.take_if(|waiting| waiting == sql).is_some()
    }
}

fn block(sql: &str) -> Result<String, String> {
    if sql.contains(['{', '}']) {
        return Err(sql.to_owned());
    }
    let sql = sql.trim();
    Ok(if sql.ends_with(';') { sql.to_owned() } else { format!("{sql};") })
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Level;

    use super::*;
    use crate::Spec;
    use crate::interleaving::{Order, Step, StepResult};

    fn rc() -> Allocation {
        Allocation::uniform(Level::ReadCommitted)
    }

    fn witness(sql: &str) -> Witness {
        let step = |transaction: usize, sql: &str, result: StepResult| Step {
            transaction,
            sql: sql.to_owned(),
            line: None,
            enclosed: sql == "UPDATE t SET v = 2",
            result,
        };
        let tag = || StepResult::Tag("OK".to_owned());
        Witness {
            damage: true,
            scripts: vec!["a.sql".to_owned(), "b.sql".to_owned()],
            before: String::new(),
            prefix_sql: vec!["UPDATE t SET v = 1".to_owned()],
            no_level_prevents: false,
            steps: vec![
                step(0, "BEGIN;", tag()),
                step(0, sql, tag()),
                step(1, "UPDATE t SET v = 2", StepResult::Waits),
                step(0, "COMMIT;", tag()),
                step(1, "UPDATE t SET v = 2", tag()),
                step(1, "COMMIT", tag()),
            ],
            outcome: Order {
                transactions: vec![0, 1],
                changes: vec!["+ t (2)".to_owned()],
                tables: Vec::new(),
                answers: Vec::new(),
                rows: Vec::new(),
            },
            broken: Vec::new(),
            orders: Vec::new(),
        }
    }

    #[test]
    fn a_witness_is_a_specification() {
        let text = witness("UPDATE t SET v = 3;").to_spec(&["CREATE TABLE t (v int);"], &rc()).unwrap();
        let expected = "setup { CREATE TABLE t (v int); }\nsetup { UPDATE t SET v = 1; }\n\nsession t1\n\
            step t1s1 { BEGIN; }\nstep t1s2 { UPDATE t SET v = 3; }\nstep t1s3 { COMMIT; }\n\nsession t2\n\
            step t2s1 { BEGIN; UPDATE t SET v = 2; }\nstep t2s2 { COMMIT; }\n\nsession after\n\
            step after1 { SELECT * FROM \"t\" ORDER BY 1; }\n\npermutation t1s1 t1s2 t2s1 t1s3 t2s2 after1\n";
        assert_eq!(text, expected);
        Spec::parse("witness.spec", &text).unwrap();
    }

    #[test]
    fn sessions_of_different_levels_set_them() {
        let mixed: Allocation = "a=ser ro deferrable,*=rc".parse().unwrap();
        let text = witness("SELECT 1").to_spec(&[], &mixed).unwrap();
        let first = "session t1\nsetup { SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE, \
            READ ONLY, DEFERRABLE; }\nstep t1s1";
        assert!(text.contains(first), "{text}");
        assert!(text.contains("ISOLATION LEVEL READ COMMITTED; }\nstep t2s1"), "{text}");
        Spec::parse("witness.spec", &text).unwrap();
    }

    #[test]
    fn a_brace_cannot_be_expressed() {
        assert_eq!(
            witness("UPDATE t SET v = '{}';").to_spec(&[], &rc()),
            Err("UPDATE t SET v = '{}';".to_owned())
        );
    }
}
