//! Resets the TPC-B-like tables to their starting state, between the cells of a comparison.
//!
//! This includes the physical state: no dead rows, no bloat, fresh indexes, fresh statistics, rows
//! frozen and visible to all, and no dirty page whose writing would fall into the next cell. So a
//! reset is an initialisation from scratch (drop, create, COPY FREEZE, vacuum, keys), and before
//! clients work there is a checkpoint, one for the tables of all cells that take turns. Alternatives,
//! measured on PostgreSQL 15 as ratios of time to that one (below 1 is faster), after 2,000
//! transactions of `tpcb-like`; medians of 5 at scale 1 and 10, one measurement at scale 100, on a
//! shared machine: differences below a quarter aren't significant.
//!
//! | way | scale 1 | 10 | 100 |
//! |---|---|---|---|
//! | drop, create, COPY FREEZE, vacuum, keys | 1 | 1 | 1 |
//! | the same, rows made by the server | 1.33 | 1.50 | 1.60 |
//! | TRUNCATE, COPY FREEZE, the indexes kept | 1.46 | 1.58 | |
//! | TRUNCATE, accounts' index dropped, COPY FREEZE, index | 1.17 | 0.98 | 1.29 |
//! | TRUNCATE, accounts' index dropped, rows made by the server, index | 1.08 | 1.49 | |
//! | TRUNCATE, accounts' index dropped, rows from a pristine copy of the table, index | 1.48 | 1.61 | |
//! | changed rows put back, VACUUM FULL | 1.01 | 1.22 | 1.38 |
//! | changed rows put back, VACUUM (the bloat stays: not the same state) | 0.53 | 0.36 | |
//!
//! On PostgreSQL none that restores the same state gains enough to be worth a second way of
//! creating tables. Dropping also undoes changes that a user's script made to the tables
//! themselves.
//!
//! On other products a load takes minutes, in batches that are repeated after conflicts, and no
//! bloat can be observed. There the tables are loaded once, and then [`put_back`] before each
//! further cell; whether, and after which load, is a fact of the product
//! (`Dialect::put_back_after`).

use std::time::{Duration, Instant};

use isobench_pgwire::{Connection, SqlState};

use crate::database::Database;
use crate::error::Error;
use crate::execute::execute;
use crate::init::{run_actions, run_steps};
use crate::options::InitOptions;
use crate::progress::InitProgress;
use crate::steps::InitStep;
use crate::tables::{self, ForeignKeys};

/// The duration of a reset, and notes for readers of the result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResetNote {
    /// From the first command to the last answer.
    pub took: Duration,
    /// Sentences, for example that the statistics couldn't be refreshed; usually none.
    pub notes: Vec<String>,
}

/// Recreates the tables as `opts` says, with keys even if `opts.steps` omits them, vacuumed and
/// analyzed as far as the product supports that. [`checkpoint`] writes them.
///
/// # Errors
/// The server refuses a command other than the statistics, or the connection is lost.
pub fn reset(conn: &mut Connection, db: &Database, opts: &InitOptions) -> Result<ResetNote, Error> {
    let started = Instant::now();
    let mut notes = Vec::new();
    run_steps(conn, db, opts, &opts.complete_steps(), &mut |_: InitProgress| {})?;
    if let Err(error) = run_actions(conn, db, &tables::analyze(db), &mut |_| {}) {
        tolerate(error, "the statistics could not be refreshed", &mut notes)?;
    }
    Ok(ResetNote { took: started.elapsed(), notes })
}

/// True if tables created as `made`, which took this long, can be put back into the state that
/// `wanted` describes instead of being recreated. They may differ in their foreign keys.
pub fn can_put_back(db: &Database, made: &InitOptions, took: Duration, wanted: &InitOptions) -> bool {
    let alike = InitOptions { foreign_keys: made.foreign_keys, ..wanted.clone() };
    db.product.dialect.put_back_after.is_some_and(|limit| took >= limit) && *made == alike
}

/// Puts the rows of tables created as `made` back into the starting state that `wanted` describes:
/// see [`can_put_back`]. Only the built-in scripts may have changed them. Statistics stay those of
/// the load. [`checkpoint`] writes them.
///
/// # Errors
/// The server refuses a command, or the connection is lost.
pub fn put_back(
    conn: &mut Connection,
    db: &Database,
    made: &InitOptions,
    wanted: &InitOptions,
) -> Result<ResetNote, Error> {
    let started = Instant::now();
    let has = |options: &InitOptions| options.effective_steps().contains(InitStep::ForeignKeys);
    let keys = match (has(made), has(wanted)) {
        (true, false) => ForeignKeys::Drop,
        (false, true) => ForeignKeys::Add,
        _ => ForeignKeys::Keep,
    };
    run_actions(conn, db, &tables::put_back(db, wanted.scale, keys), &mut |_| {})?;
    Ok(ResetNote { took: started.elapsed(), notes: Vec::new() })
}

/// Vacuums and analyzes the tables of any workload as far as the product supports that, so that
/// neither happens during a measurement. Refusals of the server become sentences in `notes`.
/// [`checkpoint`] writes the tables.
///
/// # Errors
/// The connection is lost.
pub fn tidy(
    conn: &mut Connection,
    db: &Database,
    tables: &[&str],
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let dialect = &db.product.dialect;
    if let Some(command) = dialect.vacuum.or(dialect.analyze) {
        for table in tables {
            if let Err(error) = execute(conn, db, &format!("{command} {}", db.placed(table))) {
                tolerate(error, &format!("{command} {table} failed"), notes)?;
            }
        }
    }
    Ok(())
}

/// Writes all dirty pages, if product and role permit it, so that their writing doesn't fall into a
/// measurement. Returns sentences for readers of the result, if it isn't permitted.
///
/// # Errors
/// The connection is lost.
pub fn checkpoint(conn: &mut Connection, db: &Database) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    if db.product.dialect.checkpoint
        && let Err(error) = execute(conn, db, "checkpoint")
    {
        let what = if error.code() == Some(SqlState::INSUFFICIENT_PRIVILEGE) {
            "no right to run CHECKPOINT (it takes a superuser, or since version 15 a member of pg_checkpoint), so \
             that one may fall into a measurement"
        } else {
            "CHECKPOINT failed"
        };
        tolerate(error, what, &mut notes)?;
    }
    Ok(notes)
}

/// Turns a refusal of the server into a note; anything else stays an error.
fn tolerate(error: Error, what: &str, notes: &mut Vec<String>) -> Result<(), Error> {
    match error {
        Error::Query { source, .. } if !source.is_fatal() => {
            notes.push(format!("{what}: {}", source.message));
            Ok(())
        }
        other => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_loads_are_not_repeated_where_rows_can_be_put_back() {
        let options = |scale, foreign_keys| InitOptions { scale, foreign_keys, ..InitOptions::default() };
        let can = |version: &str, seconds, wanted: &InitOptions| {
            let db = Database::from_version_text(version);
            can_put_back(&db, &options(1, false), Duration::from_secs(seconds), wanted)
        };
        for (version, seconds, expected) in [
            ("CockroachDB OSS v20.1.5 (x)", 0, true),
            ("PostgreSQL 15.12-YB-2.25.1.0-b381 on x", 0, true),
            ("PostgreSQL 15.18 on x", 1000, false),
            ("CrateDB 5.8.1 (built …)", 19, false),
            ("CrateDB 5.8.1 (built …)", 20, true),
        ] {
            assert_eq!(can(version, seconds, &options(1, true)), expected, "{version}");
            assert!(!can(version, seconds, &options(2, false)), "{version}: other tables");
        }
    }
}
