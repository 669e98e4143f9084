//! How a workload's transactions are observed: by rows that its statements show, or by the lines
//! `--@` of its scripts.
//!
//! Not here: which columns a statement is sent with (`isobench_observation`), and the check of the
//! history (`judgement.rs`).

mod unseen;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use isobench_database::Asked;
use isobench_database::wal::{WalError, WalOptions, WalPlugin, WalReader, WalWrite, WalWriteKind, key_text};
use isobench_isolation::Level;
use isobench_isolation::observed::{
    CommittedChange, CommittedTransaction, CommittedWrite, CommittedWrites, KeyForm, ObservedDescription,
    ObservedTable,
};
use isobench_observation::{Dark, Forms, Observed, SeenStatement, observe_except};
use isobench_plan::Observe;
use isobench_program::{Flows, StatementPlace, proved_levels};
use isobench_result as report;
use isobench_runner::{Job, Pacing, Protocol, Restart, RunSpec, RunWorkload};
use isobench_script::{Annotation, Mix, Script};
use isobench_sql::Catalog;

use crate::failure::{Failure, Outcome};
use crate::plans::{AsWritten, Values, compare_plans};
use crate::site::Site;

/// The most memory that a recording of rows takes before the rest goes to a temporary file, bytes.
const MOST_KEPT: usize = 256 << 20;

/// The query for the snapshot of the transaction that it is executed in: see
/// [`Job::asking_snapshot`]. At lower levels each statement has one of its own. It reads no table, and
/// gives the transaction no number.
const SNAPSHOT_QUESTION: &str = "SELECT pg_catalog.pg_current_xact_id_if_assigned(), \
    pg_catalog.pg_current_snapshot(), \
    pg_catalog.current_setting('transaction_isolation') IN ('repeatable read', 'serializable')";

/// The relations that hold rows, by their numbers.
const RELATIONS: &str = "SELECT pg_catalog.string_agg(c.oid::pg_catalog.text, ',' ORDER BY c.oid) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'm', 'f') AND c.relpersistence <> 't' AND n.nspname !~ '^pg_'";

/// Makes sure that the log of writes can be read there, if it is to be, before anything is made on the
/// server. Returns what to say of it where the server is the user's.
///
/// # Errors
/// It can't be read.
pub fn require_log(site: &Site, observe_by: Observe) -> Outcome<Option<String>> {
    if !observe_by.reads_log() || site.is_embedded() {
        return Ok(None);
    }
    let failed = |error| not_readable(observe_by, &error);
    WalReader::try_out(site.controller(), &site.database).map_err(failed)?;
    Ok(Some(format!(
        "{}: while a cell is measured there is a temporary replication slot on the server (isobench_wal_…, plugin \
         test_decoding); until it is removed, the server keeps its write-ahead log, and dead rows of its catalogs",
        option(observe_by)
    )))
}

fn option(observe_by: Observe) -> &'static str {
    match observe_by {
        Observe::Snapshot => "--observe snapshot",
        Observe::Rows | Observe::Wal | Observe::Annotations => "--observe wal",
    }
}

fn not_readable(observe_by: Observe, error: &WalError) -> Failure {
    Failure::setup(format!(
        "{}: {error}; or use --observe rows, which doesn't read the log",
        option(observe_by)
    ))
}

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
    /// The flow of values through the scripts.
    flows: Flows,
    /// The levels at which the scripts are proved to be safe together.
    pub proved: Vec<Level>,
    /// The statements that are sent differently, in both forms.
    pub forms: Vec<Forms>,
    /// The statements that could be, and are sent as written.
    pub as_written: AsWritten,
    /// The tables that each of `statements` scans as a whole.
    scans: Vec<Vec<String>>,
    /// The number of tables of which rows are shown. Others follow them in the description if
    /// transactions are asked for their snapshots.
    shown: usize,
    /// The tables of the description, by schema and name: their numbers.
    places: BTreeMap<(String, String), u16>,
}

/// Returns what the catalogs say of the tables and functions that scripts use, and how the server reads their
/// statements; `None` if rows of this server don't show their writers.
///
/// # Errors
/// The server refuses or is gone.
pub fn catalog<'s>(site: &Site, scripts: impl IntoIterator<Item = &'s Script>) -> Outcome<Option<Catalog>> {
    let database = &site.database;
    if database.product.abilities.shows_writers.missing(database).is_some() {
        return Ok(None);
    }
    let mut connection = site.open().map_err(Failure::setup)?;
    let mut query = |sql: &str| connection.query(sql).map(|rows| rows.rows);
    let mut catalog = Catalog::load(&mut query).map_err(Failure::setup)?;
    catalog.read_statements(scripts, &mut Asked(&mut connection)).map_err(Failure::setup)?;
    connection.close();
    Ok(Some(catalog))
}

/// Asks the server how it reads statements of further scripts.
///
/// # Errors
/// The server is gone.
pub fn read_statements<'s>(
    site: &Site,
    scripts: impl IntoIterator<Item = &'s Script>,
    catalog: &mut Catalog,
) -> Outcome {
    let mut connection = site.open().map_err(Failure::setup)?;
    catalog.read_statements(scripts, &mut Asked(&mut connection)).map_err(Failure::setup)?;
    connection.close();
    Ok(())
}

/// What decides which rows statements show.
#[derive(Clone, Copy)]
pub struct SeenBy<'a> {
    /// What the server's catalogs say.
    pub catalog: &'a Catalog,
    /// The statements that are sent as written.
    pub as_written: &'a AsWritten,
    /// Where the tables lie.
    pub site: &'a Site,
}

impl SeenBy<'_> {
    /// Changes statements so that they show rows.
    fn observe(&self, mix: &mut Mix) -> Observed {
        let reason = |text: &str| -> Option<Dark> { self.as_written.reason(self.site, text) };
        observe_except(mix.scripts_mut(), self.catalog, &reason)
    }
}

/// Decides how the transactions of a workload are recorded. Its statements are changed if they are
/// to show rows.
///
/// Rows are observed unless the plan says otherwise, the run is paced, or retries start at a
/// savepoint, which undoes a part of a transaction. If an annotated statement shows no rows, such as
/// a call of a function, only annotations tell what it does, and the two can't be mixed. Statements
/// that `as_written` names aren't changed.
pub fn recorded(
    workload: &mut RunWorkload,
    spec: &RunSpec,
    observe_by: Observe,
    seen_by: Option<SeenBy<'_>>,
) -> Recorded {
    let annotated = workload.mix.is_annotated();
    let by_annotations = if annotated { Recorded::Annotations } else { Recorded::Nothing };
    let eligible = observe_by.shows_rows()
        && spec.pacing == Pacing::Unpaced
        && spec.retry.restart == Restart::Transaction;
    let (Some(seen_by), true) = (seen_by, eligible) else { return by_annotations };
    let flows = flows(workload, seen_by.catalog);
    let mut mix = workload.mix.clone();
    let observed = seen_by.observe(&mut mix);
    let seen = observed.statements.iter().any(|statement| !statement.tables.is_empty());
    let by_snapshots = observe_by == Observe::Snapshot;
    if !(seen || by_snapshots && !observed.statements.is_empty()) || annotates_the_dark(&mix) {
        return by_annotations;
    }
    let as_written: Vec<Script> = scripts(&workload.mix).cloned().collect();
    // Those of isobench's own workloads have no texts that are more than a value.
    let sends_parameters = annotated || spec.protocol != Protocol::Simple;
    let proved = proved_levels(&as_written, &workload.symbols, seen_by.catalog, sends_parameters);
    workload.mix = mix;
    let shown = observed.tables.len();
    let mut tables = observed.tables;
    let mut may_read = Vec::new();
    if by_snapshots {
        add_unshown(&mut tables, seen_by.catalog);
        may_read = unseen::may_read(scripts(&workload.mix), &observed.statements, &tables, seen_by.catalog);
    }
    let place = |(table, number): (&ObservedTable, u16)| {
        let (schema, name) = seen_by.catalog.place_of(&table.name)?;
        Some(((schema.to_owned(), name.to_owned()), number))
    };
    let places = tables.iter().zip(0..).filter_map(place).collect();
    let description = ObservedDescription {
        tables,
        predicates: observed.predicates,
        fresh: true,
        usage: flows.usage(scripts(&workload.mix)),
        may_read,
        ..ObservedDescription::default()
    };
    let scans = |seen: &SeenStatement| seen_by.as_written.scans(seen_by.site, &seen.text);
    Recorded::Rows(Box::new(SeenWorkload {
        description,
        scans: observed.statements.iter().map(scans).collect(),
        statements: observed.statements,
        proved,
        flows,
        forms: observed.forms,
        as_written: seen_by.as_written.clone(),
        shown,
        places,
    }))
}

/// Adds the tables of which no statement shows rows, so that the log's writes of them are known.
fn add_unshown(tables: &mut Vec<ObservedTable>, catalog: &Catalog) {
    let table = |name| ObservedTable { name, key: KeyForm::Numbered, columns: Vec::new(), closed: false };
    for name in catalog.stored() {
        if tables.len() < usize::from(u16::MAX) && !tables.iter().any(|table| table.name == name) {
            tables.push(table(name));
        }
    }
}

/// The flow of values through a workload's scripts, which must be as written.
fn flows(workload: &RunWorkload, catalog: &Catalog) -> Flows {
    Flows::of(scripts(&workload.mix), &workload.symbols, catalog)
}

fn scripts(mix: &Mix) -> impl Iterator<Item = &Script> {
    mix.scripts().iter().map(|weighted| &weighted.script)
}

/// True if a command with such lines shows no rows.
fn annotates_the_dark(mix: &Mix) -> bool {
    let rows = |line: &Annotation| line.what.is_recorded() && line.what.table().is_some();
    mix.scripts().iter().flat_map(|weighted| weighted.script.sql()).any(|sql| {
        sql.annotations.iter().any(rows) && sql.observed.iter().all(|statement| statement.rows.is_empty())
    })
}

impl Recorded {
    /// Starts to read the write-ahead log, if that is wanted and rows are recorded. No transaction
    /// of the run may have started, and the tables must be there. `longest` is a time after which
    /// the run surely has ended, if there is one.
    ///
    /// # Errors
    /// The server refuses.
    pub(crate) fn second_source(
        &self,
        observe_by: Observe,
        site: &Site,
        longest: Option<Duration>,
    ) -> Outcome<Option<SecondSource>> {
        match self {
            Recorded::Rows(seen) if observe_by.reads_log() => {
                SecondSource::start(seen, observe_by, site, longest).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The server's write-ahead log, read in addition to the rows that statements show.
pub struct SecondSource {
    reader: WalReader,
    /// The numbers of the tables, by schema and name.
    tables: BTreeMap<(String, String), u16>,
    /// The number of those of which rows are shown.
    shown: usize,
    /// The relations that hold rows, at the start.
    relations: String,
    /// A session for looking at them again.
    site: Site,
}

impl SecondSource {
    fn start(
        seen: &SeenWorkload,
        observe_by: Observe,
        site: &Site,
        longest: Option<Duration>,
    ) -> Outcome<SecondSource> {
        let plugin = if site.is_embedded() { WalPlugin::Pgoutput } else { WalPlugin::TestDecoding };
        let tables = seen.places.clone();
        let options =
            WalOptions { idle: longest, ..WalOptions::new(tables.keys().cloned().collect(), plugin) };
        let reader = WalReader::start(site.controller(), &site.database, &options);
        Ok(SecondSource {
            reader: reader.map_err(|error| not_readable(observe_by, &error))?,
            tables,
            shown: seen.shown,
            relations: relations(site)?,
            site: site.clone(),
        })
    }

    /// Returns the committed writes so far, and ends.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn read(mut self) -> Outcome<CommittedWrites> {
        let failed = |error| Failure::setup(format!("--observe: {error}"));
        let read = self.reader.tables().iter();
        let mut covered: BTreeSet<u16> = read.filter_map(|name| self.tables.get(name).copied()).collect();
        let mut transactions = Vec::new();
        let tables = &self.tables;
        self.reader
            .read(&mut |transaction| {
                let writes = transaction.writes.iter();
                let writes: Vec<CommittedWrite> =
                    writes.flat_map(|write| committed_writes(write, tables, &mut covered)).collect();
                if !writes.is_empty() {
                    transactions.push(CommittedTransaction { transaction: transaction.xid, writes });
                }
            })
            .map_err(failed)?;
        self.reader.stop().map_err(failed)?;
        if relations(&self.site)? != self.relations {
            // Those that were made in the run aren't in the log, and anything may have read them.
            covered.retain(|table| usize::from(*table) < self.shown);
        }
        Ok(CommittedWrites { tables: covered.into_iter().collect(), transactions })
    }
}

/// The relations that hold rows, by their numbers.
fn relations(site: &Site) -> Outcome<String> {
    let mut connection = site.open().map_err(Failure::setup)?;
    let relations = connection.value(RELATIONS).map_err(Failure::setup)?;
    connection.close();
    Ok(relations.unwrap_or_default())
}

/// The rows that a write of the log changed. An update of the key deletes one row and inserts
/// another. After TRUNCATE not all writes of the table are known.
fn committed_writes(
    write: &WalWrite,
    tables: &BTreeMap<(String, String), u16>,
    covered: &mut BTreeSet<u16>,
) -> Vec<CommittedWrite> {
    let relation = (write.relation.schema.clone(), write.relation.table.clone());
    let Some(&table) = tables.get(&relation) else { return Vec::new() };
    let text = |key: &[Option<String>]| {
        let columns: Vec<&str> = key.iter().map(|column| column.as_deref().unwrap_or_default()).collect();
        key_text(&columns)
    };
    let changed = |key: &[Option<String>], what| CommittedWrite { table, key: text(key), what };
    match (write.kind, &write.old_key) {
        (WalWriteKind::Truncate, _) => {
            covered.remove(&table);
            Vec::new()
        }
        (WalWriteKind::Update, Some(old)) => {
            vec![changed(old, CommittedChange::Deleted), changed(&write.key, CommittedChange::Inserted)]
        }
        (WalWriteKind::Update, None) => vec![changed(&write.key, CommittedChange::Updated)],
        (WalWriteKind::Insert, _) => vec![changed(&write.key, CommittedChange::Inserted)],
        (WalWriteKind::Delete, _) => vec![changed(&write.key, CommittedChange::Deleted)],
    }
}

impl SeenWorkload {
    /// Returns a job that records the rows that its statements show. No transaction of the job may
    /// have started.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn job(&self, job: Job, site: &Site) -> Outcome<Job> {
        let description = ObservedDescription { horizon: horizon(site)?, ..self.description.clone() };
        Ok(job.observing(description, MOST_KEPT))
    }

    /// The same job whose transactions are asked for their snapshots, if they may read anything unseen.
    pub fn asking(&self, job: Job) -> Job {
        if self.description.may_read.is_empty() { job } else { job.asking_snapshot(SNAPSHOT_QUESTION) }
    }

    /// What is seen of each statement, for the result.
    pub fn report(&self) -> Vec<report::ObservedStatement> {
        let mut statements = statements(&self.statements, &self.flows);
        for (statement, scans) in statements.iter_mut().zip(&self.scans) {
            statement.scans.clone_from(scans);
        }
        statements
    }

    /// The values that are carried from one transaction to another, for the result.
    pub fn carried(&self) -> Vec<report::CarriedValue> {
        carried(&self.flows)
    }
}

/// Decides how the transactions of a workload on a site are recorded, as [`recorded`] does.
/// `known` has the statements that are sent as written; without it, plans are compared.
///
/// # Errors
/// The server is gone.
pub fn recorded_at(
    site: &Site,
    workload: &mut RunWorkload,
    spec: &RunSpec,
    observe_by: Observe,
    known: Option<AsWritten>,
) -> Outcome<Recorded> {
    let catalog = if observe_by.shows_rows() { catalog(site, scripts(&workload.mix))? } else { None };
    let Some(catalog) = catalog else { return Ok(recorded(workload, spec, observe_by, None)) };
    let as_written = &known.map_or_else(|| as_written(workload, site, &catalog), Ok)?;
    let seen_by = SeenBy { catalog: &catalog, as_written, site };
    Ok(recorded(workload, spec, observe_by, Some(seen_by)))
}

/// Returns the statements of a workload whose scripts aren't tried before that are sent as written:
/// their plans are compared for any values of variables.
///
/// # Errors
/// The server is gone.
fn as_written(workload: &RunWorkload, site: &Site, catalog: &Catalog) -> Outcome<AsWritten> {
    let mut found = AsWritten::none();
    let seen_by = SeenBy { catalog, as_written: &AsWritten::none(), site };
    let forms = seen_by.observe(&mut workload.mix.clone()).forms;
    compare_plans(site, workload, &forms, &Values::default(), &mut found)?;
    Ok(found)
}

/// What a comparison would see of a workload's statements.
#[derive(Debug)]
pub struct Preview {
    /// What is seen of each statement.
    pub observation: report::Observation,
    /// For each statement, the text of its command as it would be sent, with the names of variables.
    pub sent: Vec<String>,
    /// How a comparison would record its transactions: "rows", "annotations" or "nothing".
    pub recorded: &'static str,
}

/// Returns what a comparison would see of the statements of a workload of this name, with this
/// strategy. Its tables must be there; nothing is executed, so the plans are those for any values of
/// variables.
///
/// # Errors
/// The server is gone.
pub fn preview(
    name: String,
    strategy: Option<String>,
    mut workload: RunWorkload,
    site: &Site,
    catalog: &Catalog,
) -> Outcome<Preview> {
    let flows = flows(&workload, catalog);
    let as_written = as_written(&workload, site, catalog)?;
    let seen_by = SeenBy { catalog, as_written: &as_written, site };
    let mut mix = workload.mix.clone();
    let observed = seen_by.observe(&mut mix);
    let by = recorded(&mut workload, &RunSpec::default(), Observe::Rows, Some(seen_by));
    Ok(Preview {
        observation: report::Observation {
            workload: name,
            strategy,
            statements: statements(&observed.statements, &flows),
            prevented: None,
            carried: carried(&flows),
            proved: Vec::new(),
        },
        sent: sent(&mix),
        recorded: match by {
            Recorded::Rows(_) => "rows",
            Recorded::Annotations => "annotations",
            Recorded::Nothing => "nothing",
        },
    })
}

/// The text of each statement's command, with the names of variables.
fn sent(mix: &Mix) -> Vec<String> {
    let statements = mix.scripts().iter().flat_map(|weighted| weighted.script.sql());
    statements.flat_map(|sql| std::iter::repeat_n(sql.as_written(), sql.statements.len())).collect()
}

fn carried(flows: &Flows) -> Vec<report::CarriedValue> {
    let place = |at: &StatementPlace| format!("{}:{}", at.file, at.line);
    let values = flows.carried();
    values
        .iter()
        .map(|one| report::CarriedValue { read: place(&one.read), written: place(&one.written) })
        .collect()
}

fn statements(seen: &[SeenStatement], flows: &Flows) -> Vec<report::ObservedStatement> {
    let one = |(number, seen): (usize, &SeenStatement)| {
        let always = flows.matters(number, &seen.dark_anyway());
        let sometimes = flows.matters(number, &seen.dark_if_unsearched());
        report::ObservedStatement {
            matters_if_unsearched: sometimes.filter(|_| always.is_none()),
            matters: always,
            ..statement(seen)
        }
    };
    seen.iter().enumerate().map(one).collect()
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
        wholly_if: seen.wholly_if().map(str::to_owned),
        matters: None,
        matters_if_unsearched: None,
        scans: Vec::new(),
    }
}

/// The lowest number of a transaction on the server that hasn't ended, or of the next one, as far as
/// rows store it (PostgreSQL manual, "Transactions and Identifiers": the lower 32 bits).
fn horizon(site: &Site) -> Outcome<u32> {
    const NEXT: &str = "SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())";
    let mut connection = site.open().map_err(Failure::setup)?;
    let next = connection.value(NEXT).map_err(Failure::setup)?;
    connection.close();
    let next = next.and_then(|next| next.parse::<u64>().ok());
    let next = next.ok_or_else(|| {
        Failure::setup(
            "the server doesn't show the number of its next transaction; use --observe annotations",
        )
    })?;
    Ok(u32::try_from(next & u64::from(u32::MAX)).unwrap_or(0))
}
