//! How a workload's transactions are observed: by rows that its statements show, or by the lines
//! `--@` of its scripts.
//!
//! Not here: which columns a statement is sent with (`isobench_observation`), and the check of the
//! history (`judgement.rs`).

use isobench_isolation::observed::ObservedDescription;
use isobench_observation::{Catalog, SeenStatement, observe};
use isobench_plan::Observe;
use isobench_report as report;
use isobench_runner::{Job, Pacing, Restart, RunSpec, RunWorkload};
use isobench_script::{Annotation, CommandKind, Mix};

use crate::failure::{Failure, Outcome};
use crate::target::Target;

/// The most memory that a recording of rows takes before the rest goes to a temporary file, bytes.
const MOST_KEPT: usize = 256 << 20;

/// How the transactions of a job are recorded.
pub enum Recorded {
    /// By the rows that statements show.
    Rows(Box<SeenWorkload>),
    /// By the lines `--@`.
    Annotations,
    /// Not at all: nothing would be seen.
    Nothing,
}

/// What is seen of a workload whose statements show rows.
pub struct SeenWorkload {
    /// What the rows refer to, without a horizon yet.
    description: ObservedDescription,
    /// What is seen of each statement.
    statements: Vec<SeenStatement>,
}

/// Returns what the catalogs say of the tables and functions that scripts use; `None` if rows of
/// this server don't show their writers.
///
/// # Errors
/// The server refuses or is gone.
pub fn catalog(target: &Target) -> Outcome<Option<Catalog>> {
    let database = &target.database;
    if database.product.abilities.shows_writers.missing(database).is_some() {
        return Ok(None);
    }
    let mut connection = target.open().map_err(Failure::setup)?;
    let mut query = |sql: &str| connection.query(sql).map(|rows| rows.rows);
    let catalog = Catalog::load(&mut query).map_err(Failure::setup)?;
    connection.close();
    Ok(Some(catalog))
}

/// Decides how the transactions of a workload are recorded. Its statements are changed if they are
/// to show rows.
///
/// Rows are observed unless the plan says otherwise, the run is paced, or retries start at a
/// savepoint, which undoes a part of a transaction. If an annotated statement shows no rows, such as
/// a call of a function, only annotations tell what it does, and the two can't be mixed.
pub fn recorded(
    workload: &mut RunWorkload,
    spec: &RunSpec,
    observe_by: Observe,
    catalog: Option<&Catalog>,
) -> Recorded {
    let annotated = is_annotated(&workload.mix);
    let by_annotations = if annotated { Recorded::Annotations } else { Recorded::Nothing };
    let eligible = observe_by == Observe::Rows
        && spec.pacing == Pacing::Unpaced
        && spec.retry.restart == Restart::Transaction;
    let (Some(catalog), true) = (catalog, eligible) else { return by_annotations };
    let mut mix = workload.mix.clone();
    let observed = observe(mix.scripts_mut(), catalog);
    let seen = observed.statements.iter().any(|statement| !statement.tables.is_empty());
    if !seen || annotates_the_dark(&mix) {
        return by_annotations;
    }
    workload.mix = mix;
    let description = ObservedDescription {
        tables: observed.tables,
        predicates: observed.predicates,
        ..ObservedDescription::default()
    };
    Recorded::Rows(Box::new(SeenWorkload { description, statements: observed.statements }))
}

/// True if a script describes reads or writes in lines `--@`.
pub fn is_annotated(mix: &Mix) -> bool {
    let mut lines = mix.scripts().iter().flat_map(|weighted| weighted.script.annotations());
    lines.any(|line| line.what.is_recorded())
}

/// True if a command with such lines shows no rows.
fn annotates_the_dark(mix: &Mix) -> bool {
    let commands = mix.scripts().iter().flat_map(|weighted| &weighted.script.commands);
    let rows = |line: &Annotation| line.what.is_recorded() && line.what.table().is_some();
    commands
        .filter_map(|command| match &command.kind {
            CommandKind::Sql(sql) => Some(sql),
            _ => None,
        })
        .any(|sql| {
            sql.annotations.iter().any(rows) && sql.observed.iter().all(|statement| statement.rows.is_empty())
        })
}

impl SeenWorkload {
    /// Returns a job that records the rows that its statements show. No transaction of the job may
    /// have started.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn job(&self, job: Job, target: &Target) -> Outcome<Job> {
        let description = ObservedDescription { horizon: horizon(target)?, ..self.description.clone() };
        Ok(job.observing(description, MOST_KEPT))
    }

    /// What is seen of each statement, for the result.
    pub fn report(&self) -> Vec<report::ObservedStatement> {
        self.statements.iter().map(statement).collect()
    }
}

/// What is seen of a statement, for the result.
pub fn statement(seen: &SeenStatement) -> report::ObservedStatement {
    let rows = |table: &isobench_observation::SeenTable| report::ObservedRows {
        table: table.table.clone(),
        key: table.key.clone(),
        access: table.access.to_string(),
        order: table.order.to_string(),
        searched: table.searched,
    };
    report::ObservedStatement {
        script: seen.file.clone(),
        line: seen.line,
        text: seen.text.clone(),
        sent_differently: seen.rewritten,
        tables: seen.tables.iter().map(rows).collect(),
        dark: seen.dark.iter().map(ToString::to_string).collect(),
    }
}

/// The number of the next transaction on the server, as far as rows store it (PostgreSQL manual,
/// "Transactions and Identifiers": the lower 32 bits).
fn horizon(target: &Target) -> Outcome<u32> {
    const NEXT: &str = "SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())";
    let mut connection = target.open().map_err(Failure::setup)?;
    let next = connection.value(NEXT).map_err(Failure::setup)?;
    connection.close();
    let next = next.and_then(|next| next.parse::<u64>().ok());
    let next = next.ok_or_else(|| {
        Failure::setup(
            "the server doesn't tell the number of its next transaction; use --observe annotations",
        )
    })?;
    Ok(u32::try_from(next & u64::from(u32::MAX)).unwrap_or(0))
}
