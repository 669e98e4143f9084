//! pgbench's built-in scripts with each strategy, as a table.
//!
//! Every strategy writes what the built-in script writes: the same delta to the same rows, and one
//! row of history for each committed transaction. So the same invariants hold
//! (`isobench-database`). `strategy` lists what each strategy needs from the server. pgbench's
//! tables, and the scripts without a strategy, are elsewhere (`isobench-database`,
//! `isobench-script`).

use isobench_script::builtins;

use crate::strategy::UNCHANGED;
use crate::unknown::{UnknownWorkload, list};

/// A built-in script with a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgbenchStrategy {
    /// The text in the pgbench language.
    pub script: &'static str,
    /// SQL that creates its functions, one statement each, to be run after the tables are created.
    /// It can be run repeatedly.
    pub setup: &'static [&'static str],
}

/// A row of the table.
struct Row {
    builtin: &'static str,
    strategy: &'static str,
    script: &'static str,
    setup: &'static [&'static str],
}

/// A row without functions.
const fn row(builtin: &'static str, strategy: &'static str, script: &'static str) -> Row {
    Row { builtin, strategy, script, setup: &[] }
}

const TPCB: &str = "tpcb-like";
const SIMPLE: &str = "simple-update";

/// In the order of [`strategies`](crate::strategies). `select-only` writes nothing, so it has no
/// conflicts; `simple-update` updates its contended row, the account, first anyway, so it can't be
/// reordered.
static TABLE: [Row; 13] = [
    Row {
        setup: &[include_str!("pgbench/tpcb/procedure_setup.sql")],
        ..row(TPCB, "procedure", include_str!("pgbench/tpcb/procedure.sql"))
    },
    Row {
        setup: &[include_str!("pgbench/tpcb/swallow_setup.sql")],
        ..row(TPCB, "swallow", include_str!("pgbench/tpcb/swallow.sql"))
    },
    row(TPCB, "single-statement", include_str!("pgbench/tpcb/single_statement.sql")),
    row(TPCB, "savepoint", include_str!("pgbench/tpcb/savepoint.sql")),
    row(TPCB, "for-update", include_str!("pgbench/tpcb/for_update.sql")),
    row(TPCB, "advisory-lock", include_str!("pgbench/tpcb/advisory_lock.sql")),
    row(TPCB, "reorder", include_str!("pgbench/tpcb/reorder.sql")),
    Row {
        setup: &[include_str!("pgbench/simple/procedure_setup.sql")],
        ..row(SIMPLE, "procedure", include_str!("pgbench/simple/procedure.sql"))
    },
    Row {
        setup: &[include_str!("pgbench/simple/swallow_setup.sql")],
        ..row(SIMPLE, "swallow", include_str!("pgbench/simple/swallow.sql"))
    },
    row(SIMPLE, "single-statement", include_str!("pgbench/simple/single_statement.sql")),
    row(SIMPLE, "savepoint", include_str!("pgbench/simple/savepoint.sql")),
    row(SIMPLE, "for-update", include_str!("pgbench/simple/for_update.sql")),
    row(SIMPLE, "advisory-lock", include_str!("pgbench/simple/advisory_lock.sql")),
];

/// The strategies of a built-in script, by its full name; `retry` is the unchanged script. Empty if
/// there is no such script.
pub fn pgbench_strategies(builtin: &str) -> Vec<&'static str> {
    let itself = builtins().iter().filter(|script| script.name == builtin).map(|_| UNCHANGED);
    itself.chain(TABLE.iter().filter(|row| row.builtin == builtin).map(|row| row.strategy)).collect()
}

/// A built-in script, by its full name, with a strategy.
///
/// # Errors
/// If the script doesn't exist, or doesn't have the strategy.
pub fn pgbench_strategy(builtin: &str, strategy: &str) -> Result<PgbenchStrategy, UnknownWorkload> {
    let found = TABLE.iter().find(|row| row.builtin == builtin && row.strategy == strategy);
    if let Some(row) = found {
        return Ok(PgbenchStrategy { script: row.script, setup: row.setup });
    }
    let script = builtins().iter().find(|script| script.name == builtin);
    match script {
        Some(script) if strategy == UNCHANGED => Ok(PgbenchStrategy { script: script.text, setup: &[] }),
        _ => Err(UnknownWorkload::Strategy {
            script: builtin.to_owned(),
            strategy: strategy.to_owned(),
            known: match pgbench_strategies(builtin) {
                known if known.is_empty() => {
                    format!("strategies are there for {}", list(builtins().iter().map(|script| script.name)))
                }
                known => format!("there are {}", list(known.into_iter())),
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_in_the_table_exists() {
        for row in &TABLE {
            assert!(crate::strategy(row.strategy).is_some(), "{}", row.strategy);
            assert_eq!(pgbench_strategy(row.builtin, row.strategy).unwrap().script, row.script);
        }
        let names: Vec<&str> = crate::strategies().iter().map(|strategy| strategy.name).collect();
        assert_eq!(pgbench_strategies("tpcb-like"), names, "the busiest script has them all, in their order");
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let error = |builtin, strategy| pgbench_strategy(builtin, strategy).unwrap_err().to_string();
        assert_eq!(
            error("simple-update", "reorder"),
            "script simple-update has no strategy \"reorder\"; there are retry, procedure, swallow, \
             single-statement, savepoint, \
             for-update, advisory-lock"
        );
        assert!(error("select-only", "swallow").ends_with("has no strategy \"swallow\"; there are retry"));
        assert!(
            error("mine.sql", "swallow").ends_with("are there for tpcb-like, simple-update, select-only")
        );
    }
}
