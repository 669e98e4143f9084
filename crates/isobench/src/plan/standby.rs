//! What of a plan can be measured on a hot standby: scripts that only read, on pgbench's tables as
//! they are there, below serializable (PostgreSQL manual, "Hot Standby").

use isobench_database::InitOptions;
use isobench_isolation::Level;

use super::values::wrong;
use super::{By, Plan, Work};
use crate::failure::{Failure, Outcome};
use crate::tables::Tables;

/// Why a server that can only be read is refused.
pub fn refusal(place: &str, why: &str) -> Failure {
    Failure::setup(format!(
        "{place} is a hot standby, which can only be read, but {why}; name its primary (target_session_attrs=primary finds it \
         among several hosts), or measure a script that only reads, such as select-only"
    ))
}

/// Why a level is refused there.
pub fn no_serializable(level: Level) -> String {
    format!("a hot standby runs no transactions at {level}; repeatable read is the strongest level there")
}

impl Plan {
    /// Adapts the plan to a hot standby. `scale` says what the scale of the tables is that are
    /// there. Returns what gives way, in words.
    ///
    /// # Errors
    /// Something writes, needs tables that would have to be made, or is measured at serializable
    /// only.
    pub fn only_read(&mut self, place: &str, scale: impl FnOnce() -> Outcome<u32>) -> Outcome<Vec<String>> {
        for work in &self.works {
            if let Some(why) = work.writing()? {
                return Err(refusal(place, &why));
            }
        }
        let mut notes = Vec::new();
        if self.levels.contains(&Level::Serializable) {
            let why = no_serializable(Level::Serializable);
            if self.levels_by == By::User || self.levels == [Level::Serializable] {
                return Err(wrong("levels", why));
            }
            self.levels.retain(|level| *level != Level::Serializable);
            notes.push(format!("left out: {why}"));
        }
        if self.sources.has_builtin() {
            self.scale = scale()?;
        }
        for work in &mut self.works {
            work.tables = Tables::Found;
            work.scale = self.scale;
        }
        Ok(notes)
    }
}

impl Work {
    /// What can't be done without writing, if there is something.
    fn writing(&self) -> Outcome<Option<String>> {
        let made = match &self.tables {
            Tables::Checked(chosen) => {
                Some(format!("workload {} makes and writes tables of its own", chosen.name()))
            }
            Tables::Own(_) => Some("--setup makes tables".to_owned()),
            Tables::Pgbench { functions, .. } if !functions.is_empty() => {
                Some("the strategy needs a function that would have to be made".to_owned())
            }
            Tables::Pgbench { options, .. } if !as_found(options, &self.varied) => {
                Some("the options for pgbench's tables need tables that would have to be made".to_owned())
            }
            Tables::Pgbench { .. } | Tables::Found => None,
        };
        if made.is_some() { Ok(made) } else { self.sources.writing() }
    }
}

/// Whether tables that are there can serve, at whatever scale they have.
fn as_found(options: &InitOptions, varied: &super::vary::Assignment) -> bool {
    let plain = InitOptions { scale: options.scale, quiet: options.quiet, ..InitOptions::default() };
    *options == plain && !varied.contains_key("scale")
}

#[cfg(test)]
mod tests {
    use isobench_database::InitOptions;

    use super::*;
    use crate::plan::values::words;
    use crate::plan_text::PlanOptions;

    fn adapted(options: &PlanOptions, tables: &InitOptions) -> Outcome<(Plan, Vec<String>)> {
        let mut plan = Plan::resolve(options, None, &PlanOptions::default(), tables)?;
        let notes = plan.only_read("db.example:5432/bench as me", || Ok(7))?;
        Ok((plan, notes))
    }

    fn select_only() -> PlanOptions {
        PlanOptions { workload: Some(words("select-only")), ..PlanOptions::default() }
    }

    #[test]
    fn reading_is_measured_below_serializable_on_the_tables_that_are_there() {
        let (plan, notes) = adapted(&select_only(), &InitOptions::default()).unwrap();
        assert_eq!(plan.levels, [Level::ReadCommitted, Level::RepeatableRead]);
        assert_eq!((plan.scale, plan.works[0].scale, notes.len()), (7, 7, 1));
        assert!(matches!(plan.works[0].tables, Tables::Found));
    }

    #[test]
    fn what_writes_is_refused_with_the_reason() {
        let table = [
            (PlanOptions::default(), "script \"tpcb-like\" writes (UPDATE)"),
            (
                PlanOptions { workload: Some(words("registers")), ..PlanOptions::default() },
                "workload registers",
            ),
            (PlanOptions { levels: Some(words("ser")), ..select_only() }, "--levels: a hot standby runs no"),
            (
                PlanOptions { levels: Some(words("rc,ser")), ..select_only() },
                "--levels: a hot standby runs no",
            ),
            (
                PlanOptions { vary: Some(words("scale=2")), ..select_only() },
                "tables that would have to be made",
            ),
            (PlanOptions { vary: Some(words("foreign-keys=on")), ..select_only() }, "would have to be made"),
        ];
        for (options, part) in table {
            let message = adapted(&options, &InitOptions::default()).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
        let fillfactor = InitOptions { fillfactor: 50, ..InitOptions::default() };
        assert!(adapted(&select_only(), &fillfactor).is_err());
    }
}
