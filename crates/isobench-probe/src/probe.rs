//! Runs every anomaly's interleaving at every level.

use std::borrow::Cow;

use isobench_database::{Database, OwnNames};
use isobench_isolation::{EffectiveLevel, Level};
use isobench_script::lexer::statements;

use crate::anomalies::{Probe, Takes};
use crate::event::Event;
use crate::judge::{self, Cell, CellOutcome, LevelRow, Matrix, ProbedLevel, VERSION};
use crate::record::Record;
use crate::spec::{Spec, SpecError};
use crate::summarisation;
use crate::tester::{Opener, Options, RunError, Tester, WaitDetection};

/// An event of probing.
#[derive(Debug)]
pub enum Progress<'a> {
    /// An interleaving starts; the number of transactions that commit besides its own, if it needs
    /// that.
    Begin(Level, &'static Probe, Option<u64>),
    /// An event within the interleaving.
    Event(&'a Event),
    /// The interleaving has ended.
    End(Level, &'a Cell),
}

/// The reason that probing can't continue.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The level can't be set or read, because the server was lost or the run was stopped.
    #[error("{level}: {source}")]
    Level {
        /// The level.
        level: Level,
        /// The cause.
        source: RunError,
    },
    /// The server was lost, or the run was stopped.
    #[error("{level}, {known_as}: {source}")]
    Run {
        /// The level.
        level: Level,
        /// The anomaly.
        known_as: &'static str,
        /// The cause.
        source: RunError,
    },
    /// A built-in interleaving is invalid.
    #[error("{0}")]
    Spec(#[from] SpecError),
}

impl ProbeError {
    /// True if the run was stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self, ProbeError::Level { source, .. } | ProbeError::Run { source, .. }
            if matches!(source, RunError::Stopped))
    }
}

/// Runs all interleavings. After an error, the matrix has the results so far and is marked as
/// incomplete.
///
/// # Errors
/// If the server is lost, or `stopped` returns true. An interleaving that can't be run is a cell,
/// not an error.
pub fn probe(
    open: &Opener,
    database: &Database,
    levels: &[Level],
    options: Options,
    stopped: &dyn Fn() -> bool,
    emit: &mut dyn FnMut(Progress<'_>),
) -> (Matrix, Result<(), ProbeError>) {
    let mut matrix = Matrix {
        probe_version: VERSION,
        product: database.product.name.to_owned(),
        version: database.version.clone(),
        tests: options.tests,
        tables: options.tables,
        levels: Vec::new(),
        complete: false,
        incomplete_reason: None,
    };
    let interleavings = match interleavings(database, options) {
        Ok(interleavings) => interleavings,
        Err(error) => return (matrix, Err(error.into())),
    };
    let mut tester = Tester {
        open: Opener::clone(open),
        product: database.product,
        level: None,
        options,
        wait_detection: WaitDetection::View,
        stopped,
    };
    for &level in levels {
        tester.level = Some(level);
        let (row, outcome) = probe_level(&mut tester, &interleavings, level, emit);
        matrix.levels.extend(row);
        if let Err(error) = outcome {
            matrix.incomplete_reason = Some(error.to_string());
            return (matrix, Err(error));
        }
    }
    matrix.complete = true;
    (matrix, Ok(()))
}

fn probe_level(
    tester: &mut Tester<'_>,
    interleavings: &[Interleaving],
    level: Level,
    emit: &mut dyn FnMut(Progress<'_>),
) -> (Option<LevelRow>, Result<(), ProbeError>) {
    let (effective, transactions) = match ask(tester, level) {
        Ok(Answers::Runs(effective, transactions)) => (effective, transactions),
        Ok(Answers::Refuses(why)) => return (Some(judge::refused(level, &why)), Ok(())),
        Err(source) => return (None, Err(ProbeError::Level { level, source })),
    };
    let probed = ProbedLevel { product: tester.product, level, effective };
    let standby = tester.options.standby;
    let planned = || {
        let wanted = |probe: &Probe| match probe.takes {
            Takes::Nothing => true,
            Takes::Transactions => level == Level::Serializable,
            Takes::Standby => standby && level < Level::Serializable,
        };
        interleavings.iter().filter(move |interleaving| wanted(interleaving.probe))
    };
    let mut cells = Vec::new();
    let mut outcome = Ok(());
    for interleaving in planned() {
        let probe = interleaving.probe;
        let after = (probe.takes == Takes::Transactions).then_some(transactions);
        emit(Progress::Begin(level, probe, after));
        match run(tester, level, interleaving, transactions, emit) {
            Ok(outcome) => {
                let cell = judge::cell(probe, &probed, outcome, after);
                emit(Progress::End(level, &cell));
                cells.push((probe, cell));
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    (Some(judge::row(&probed, planned().count(), cells)), outcome)
}

/// What the server answers to a session that wants a level.
enum Answers {
    /// The effective level, and the number of transactions for summarisation.
    Runs(EffectiveLevel, u64),
    /// It has no such level; its reason.
    Refuses(String),
}

/// Asks for a level in a session of its own.
///
/// # Errors
/// The session can't be opened or is lost. The server refused no level then.
fn ask(tester: &Tester<'_>, level: Level) -> Result<Answers, RunError> {
    let product = tester.product;
    let (answers, connection) = tester.with_session("questions", move |connection| {
        let applied = product.apply_level(connection, level).map_err(isobench_database::Error::from);
        match applied.and_then(|()| product.read_effective(connection)) {
            Ok(effective) => Ok(Answers::Runs(effective, summarisation::required(connection))),
            Err(error) if error.is_connection_lost() => Err(error),
            Err(error) => Ok(Answers::Refuses(error.to_string())),
        }
    })?;
    connection.close();
    Ok(answers)
}

/// Runs an interleaving and determines its outcome. If a step took too long although the product's
/// view doesn't show it waiting, the view isn't trusted any more, for example because a proxy hides
/// the sessions, and the interleaving is run again with detection by time.
fn run(
    tester: &mut Tester<'_>,
    level: Level,
    interleaving: &Interleaving,
    transactions: u64,
    emit: &mut dyn FnMut(Progress<'_>),
) -> Result<CellOutcome, ProbeError> {
    if interleaving.probe.takes == Takes::Standby {
        // What waits for a standby waits for no session, so the view doesn't show it.
        let usual = std::mem::replace(&mut tester.wait_detection, WaitDetection::Time);
        let ran = run_once(tester, level, interleaving, transactions, emit);
        tester.wait_detection = usual;
        return Ok(ran?.outcome);
    }
    let ran = run_once(tester, level, interleaving, transactions, emit)?;
    if !ran.took_too_long || tester.wait_detection == WaitDetection::Time {
        return Ok(ran.outcome);
    }
    tester.wait_detection = WaitDetection::Time;
    Ok(run_once(tester, level, interleaving, transactions, emit)?.outcome)
}

/// An anomaly and its interleaving, in the SQL of a server.
struct Interleaving {
    probe: &'static Probe,
    spec: Spec,
}

/// The interleavings, with tables of the wanted kind, qualified if they are in isobench's own schema.
fn interleavings(database: &Database, options: Options) -> Result<Vec<Interleaving>, SpecError> {
    let interleaving = |probe: &'static Probe| {
        let mut spec = Spec::parse(probe.file, probe.spec)?;
        for sql in &mut spec.setup {
            *sql = options.tables.make(sql);
        }
        let names = OwnNames::made_by(spec.setup.iter().map(String::as_str));
        let spec = spec.with_sql(|sql| database.place(sql, &names).into_owned());
        Ok(Interleaving { probe, spec })
    };
    options.tests.probes().iter().map(interleaving).collect()
}

/// The result of running an interleaving once.
struct InterleavingRun {
    outcome: CellOutcome,
    /// A step was cancelled.
    took_too_long: bool,
}

/// Runs an interleaving once and determines its outcome.
fn run_once(
    tester: &Tester<'_>,
    level: Level,
    interleaving: &Interleaving,
    transactions: u64,
    emit: &mut dyn FnMut(Progress<'_>),
) -> Result<InterleavingRun, ProbeError> {
    let Interleaving { probe, spec: text } = interleaving;
    let spec =
        if probe.takes == Takes::Transactions { repeated(text, transactions) } else { Cow::Borrowed(text) };
    let mut record = Record::default();
    let ran = tester.run(&spec, &mut |event| {
        record.take(&event);
        // The many transactions are one step of the interleaving, and are shown in their written
        // form.
        let event = if probe.takes == Takes::Transactions { with_written_sql(event, text) } else { event };
        emit(Progress::Event(&event));
    });
    let outcome = match ran {
        Ok(()) if record.steps.iter().any(|step| step.lost) => {
            let why = "the server closed a session".to_owned();
            Err(RunError::Send { step: probe.name.to_owned(), why })
        }
        Ok(()) => Ok(match unanswered(&spec, &record) {
            Some(why) => CellOutcome::Undecided(why),
            None => judge::outcome(tester.product, probe, &record),
        }),
        Err(error @ (RunError::Setup(_) | RunError::SessionSetup { .. })) => {
            // The following lines are details.
            Ok(CellOutcome::NotApplicable(error.to_string().lines().next().unwrap_or_default().to_owned()))
        }
        Err(error @ (RunError::Timeout { .. } | RunError::MutuallyBlocking)) => {
            Ok(CellOutcome::Undecided(error.to_string().replace('\n', "; ")))
        }
        Err(error) => Err(error),
    };
    let took_too_long = record.steps.iter().any(|step| step.cancelled);
    let failed = |source| ProbeError::Run { level, known_as: probe.known_as, source };
    Ok(InterleavingRun { outcome: outcome.map_err(failed)?, took_too_long })
}

/// The same with the step `many` repeated in one query; each repetition is a transaction of its
/// own.
fn repeated(spec: &Spec, times: u64) -> Cow<'_, Spec> {
    let mut spec = spec.clone();
    let times = usize::try_from(times.min(summarisation::MOST)).unwrap_or(0);
    for step in spec.sessions.iter_mut().flat_map(|session| &mut session.steps) {
        if step.name == MANY {
            step.sql = step.sql.repeat(times);
        }
    }
    Cow::Owned(spec)
}

/// A step of which the server has answered fewer statements than it was sent. It may have left out the
/// COMMIT, so the run decides nothing.
fn unanswered(spec: &Spec, record: &Record) -> Option<String> {
    record.steps.iter().filter(|step| step.succeeded()).find_map(|step| {
        let sent = statements(&spec.step(spec.find(&step.name)?).sql).len();
        let answered = step.tables.len() + step.tags.len();
        (answered < sent)
            .then(|| format!("the server answered {answered} of {sent} statements at step {}", step.name))
    })
}

/// The name of the step that is repeated.
pub(crate) const MANY: &str = "many";

fn with_written_sql(event: Event, written: &Spec) -> Event {
    match event {
        Event::Step { name, .. } if name == MANY => {
            let sql = written.find(&name).map(|id| written.step(id).sql.clone()).unwrap_or_default();
            Event::Step { name, sql: format!("{sql} -- repeated") }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_without_an_answer_is_noticed() {
        let spec = Spec::parse("x.spec", "session a step w { UPDATE t SET v = ';'; COMMIT; }").unwrap();
        let answered = |tags: &[&str]| {
            let mut record = Record::default();
            let (name, sql) = ("w".to_owned(), String::new());
            record.take(&Event::Step { name, sql });
            for tag in tags {
                record.take(&Event::Command((*tag).to_owned()));
            }
            unanswered(&spec, &record)
        };
        assert_eq!(answered(&["UPDATE 1", "COMMIT"]), None);
        let why = "the server answered 1 of 2 statements at step w";
        assert_eq!(answered(&["COMMIT"]).as_deref(), Some(why));
    }
}
