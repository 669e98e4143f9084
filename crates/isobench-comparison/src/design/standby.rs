//! The part of a plan that can be measured on a hot standby: read-only scripts, on existing pgbench
//! tables, below serializable (PostgreSQL manual, "Hot Standby").

use isobench_database::InitOptions;
use isobench_isolation::Level;

use super::values::wrong;
use super::{Design, Work};
use crate::failure::{Failure, Outcome};
use crate::tables::Tables;
use crate::workload::Sources;

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

impl Design {
    /// Adapts the plan to a hot standby. `scale` returns the scale of the existing tables. Returns
    /// a description of what was dropped.
    ///
    /// # Errors
    /// Part of the plan writes, needs new tables, or is measured at serializable only.
    pub fn only_read(&mut self, place: &str, scale: impl FnOnce() -> Outcome<u32>) -> Outcome<Vec<String>> {
        if self.schema().is_some() {
            return Err(refusal(place, "--schema is for scripts that write"));
        }
        if self.has_faults() {
            return Err(refusal(place, "with --fault every transaction leaves a row"));
        }
        for work in &self.works {
            if let Some(why) = work.writing() {
                return Err(refusal(place, &why));
            }
        }
        if !self.conditions.is_empty() {
            return Err(wrong(
                "invariant",
                format!(
                    "{place} is a hot standby, on which nothing is written, so no run can break it; leave it out"
                ),
            ));
        }
        let mut notes = Vec::new();
        if self.plan.levels().contains(&Level::Serializable) {
            let why = no_serializable(Level::Serializable);
            if self.typed.levels.is_some() || self.plan.levels() == [Level::Serializable] {
                return Err(wrong("levels", why));
            }
            if let Some(levels) = &mut self.plan.levels {
                levels.retain(|level| *level != Level::Serializable);
            }
            notes.push(format!("left out: {why}"));
        }
        if self.workloads.iter().any(Sources::has_builtin) {
            self.plan.scale = Some(scale()?);
        }
        for work in &mut self.works {
            work.tables = Tables::Found;
            work.scale = self.plan.scale();
        }
        Ok(notes)
    }
}

impl Work {
    /// Returns the part of the plan that requires writing, if there is one.
    fn writing(&self) -> Option<String> {
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
fn as_found(options: &InitOptions, varied: &super::vary::Assignment) -> bool {
    as_made(options) && !varied.contains_key("scale")
}

/// Returns whether the options ask for nothing but a scale.
pub(super) fn as_made(options: &InitOptions) -> bool {
    let plain = InitOptions { scale: options.scale, quiet: options.quiet, ..InitOptions::default() };
    *options == plain
}

#[cfg(test)]
mod tests {
    use isobench_database::InitOptions;
    use isobench_plan::Plan;

    use super::*;
    use crate::design::tests::options;

    fn adapted(line: &str, tables: &InitOptions) -> Outcome<(Design, Vec<String>)> {
        let mut design = Design::resolve(&options(line), None, Plan::default(), tables)?;
        let notes = design.only_read("db.example:5432/bench as me", || Ok(7))?;
        Ok((design, notes))
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
