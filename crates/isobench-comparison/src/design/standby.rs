//! The part of a plan that can be measured on a hot standby: read-only scripts, on existing pgbench
//! tables, below serializable (PostgreSQL manual, "Hot Standby").

use isobench_database::InitOptions;
use isobench_isolation::Level;

use super::kept::as_made;
use super::vary::Assignment;
use super::work::Work;
use crate::failure::Failure;
use crate::tables::Tables;

/// Refuses a read-only server, for this reason.
pub fn refusal(place: &str, why: &str) -> Failure {
    Failure::setup(format!(
        "{place} is a hot standby, which can only be read, but {why}; name its primary \
         (target_session_attrs=primary finds it among several hosts), or measure a script that only reads, \
         such as select-only"
    ))
}

/// Returns the reason why a level is refused there.
pub fn no_serializable(level: Level) -> String {
    format!("a hot standby runs no transactions at {level}; repeatable read is the strongest level there")
}

impl Work {
    /// Returns the part of the plan that requires writing, if there is one.
    pub(super) fn writing(&self) -> Option<String> {
        let made = match &self.tables {
            Tables::Checked(chosen) => {
                Some(format!("workload {} makes and writes tables of its own", chosen.name()))
            }
            Tables::Own(_) => Some("--setup makes tables".to_owned()),
            Tables::Kept(_) => Some("--schema is for scripts that write".to_owned()),
            Tables::Pgbench { functions, .. } if !functions.is_empty() => {
                Some("the strategy needs a function that would have to be made".to_owned())
            }
            Tables::Pgbench { options, .. } if !as_found(options, &self.varied) => {
                Some("the options for pgbench's tables need tables that would have to be made".to_owned())
            }
            Tables::Pgbench { .. } | Tables::Found => None,
        };
        made.or_else(|| self.sources.writing())
    }
}

/// Returns whether existing tables are good enough, at any scale.
fn as_found(options: &InitOptions, varied: &Assignment) -> bool {
    as_made(options) && !varied.contains_key("scale")
}

#[cfg(test)]
mod tests {
    use isobench_database::InitOptions;
    use isobench_plan::Plan;

    use super::*;
    use crate::design::Design;
    use crate::design::resolve::Resolved;
    use crate::design::tests::options;
    use crate::failure::Outcome;

    fn adapted(line: &str, tables: &InitOptions) -> Outcome<(Design, Vec<String>)> {
        let mut resolved = Resolved::of(&options(line), None, Plan::default(), tables)?;
        let notes = resolved.only_read("db.example:5432/bench as me", || Ok(7))?;
        Ok((resolved.design, notes))
    }

    #[test]
    fn reading_is_measured_below_serializable_on_the_tables_that_are_there() {
        let (design, notes) = adapted("-w select-only", &InitOptions::default()).unwrap();
        assert_eq!(design.plan.levels(), [Level::ReadCommitted, Level::RepeatableRead]);
        assert_eq!((design.plan.scale(), design.works[0].scale, notes.len()), (7, 7, 1));
        assert!(matches!(design.works[0].tables, Tables::Found));
    }

    #[test]
    fn what_writes_is_refused_with_the_reason() {
        for (line, part) in [
            ("", "workload orders makes and writes tables of its own"),
            ("-w tpcb-like", "script \"tpcb-like\" writes (UPDATE)"),
            ("-w registers", "workload registers"),
            ("-w select-only --levels ser", "--levels: a hot standby runs no"),
            ("-w select-only --levels rc,ser", "--levels: a hot standby runs no"),
            ("-w select-only --vary scale=2", "tables that would have to be made"),
            ("-w select-only --vary foreign-keys=on", "would have to be made"),
        ] {
            let message = adapted(line, &InitOptions::default()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let fillfactor = InitOptions { fillfactor: 50, ..InitOptions::default() };
        assert!(adapted("-w select-only", &fillfactor).is_err());
    }
}
