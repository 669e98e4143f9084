//! Runs every anomaly's interleaving at every level.

use std::borrow::Cow;

use isobench_database::{Database, Names};
use isobench_isolation::{EffectiveLevel, Level};

use crate::anomalies::{PROBES, Probe};
use crate::event::Event;
use crate::judge::{self, Asked, Cell, LevelRow, Matrix, Outcome, VERSION};
use crate::record::Record;
use crate::spec::{Spec, SpecError};
use crate::summarisation;
use crate::tester::{Opener, Options, RunError, Tester, WhoWaits};

/// What is told meanwhile.
#[derive(Debug)]
pub enum Progress<'a> {
    /// An interleaving begins, in which so many transactions commit beside its own, if it needs
    /// that.
    Begin(Level, &'static Probe, Option<u64>),
    /// Something happens in it.
    Event(&'a Event),
    /// It has ended.
    End(Level, &'a Cell),
}

/// Why probing can't go on.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The level can't be set or read, because the server was lost, or somebody stopped it.
    #[error("{level}: {source}")]
    Level {
        /// This level.
        level: Level,
        /// What happened.
        source: RunError,
    },
    /// The server was lost, or somebody stopped it.
    #[error("{level}, {known_as}: {source}")]
    Run {
        /// At this level.
        level: Level,
        /// In this anomaly's interleaving.
        known_as: &'static str,
        /// What happened.
        source: RunError,
    },
    /// An interleaving of our own is none.
    #[error("{0}")]
    Spec(#[from] SpecError),
}

impl ProbeError {
    /// True if somebody stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, ProbeError::Level { source, .. } | ProbeError::Run { source, .. }
            if matches!(source, RunError::Stopped))
    }
}

/// Runs everything. What was found until an error stands in the matrix, which then isn't complete.
///
/// # Errors
/// The server is lost, or `stopped` says so. An interleaving that can't be run is a cell, not an
/// error.
pub fn probe(
    open: &Opener,
    database: &Database,
    levels: &[Level],
    options: Options,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Progress<'_>),
) -> (Matrix, Result<(), ProbeError>) {
    let mut matrix = Matrix {
        probe_version: VERSION,
        product: database.product.name.to_owned(),
        version: database.version.clone(),
        levels: Vec::new(),
        complete: false,
        incomplete_reason: None,
    };
    let interleavings = match interleavings(database) {
        Ok(interleavings) => interleavings,
        Err(error) => return (matrix, Err(error.into())),
    };
    let mut tester = Tester {
        open: Opener::clone(open),
        product: database.product,
        level: None,
        options,
        who_waits: WhoWaits::View,
        stopped,
    };
    for &level in levels {
        tester.level = Some(level);
        let (row, outcome) = probe_level(&mut tester, &interleavings, level, tell);
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
    tell: &mut dyn FnMut(Progress<'_>),
) -> (Option<LevelRow>, Result<(), ProbeError>) {
    let (effective, transactions) = match ask(tester, level) {
        Ok(answers) => answers,
        Err(RunError::Connection { source, .. }) if !source.is_connection_lost() => {
            return (Some(judge::refused(level, &source.to_string())), Ok(()));
        }
        Err(source) => return (None, Err(ProbeError::Level { level, source })),
    };
    let asked = Asked { product: tester.product, level, effective };
    let planned = || {
        let wanted = |probe: &Probe| !probe.repeats || level == Level::Serializable;
        interleavings.iter().filter(move |interleaving| wanted(interleaving.probe))
    };
    let mut cells = Vec::new();
    let mut outcome = Ok(());
    for interleaving in planned() {
        let probe = interleaving.probe;
        let after = probe.repeats.then_some(transactions);
        tell(Progress::Begin(level, probe, after));
        match run(tester, level, interleaving, transactions, tell) {
            Ok(outcome) => {
                let cell = judge::cell(probe, &asked, outcome, after);
                tell(Progress::End(level, &cell));
                cells.push((probe, cell));
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    (Some(judge::row(&asked, planned().count(), cells)), outcome)
}

/// The effective level, and how many transactions summarisation takes.
fn ask(tester: &Tester<'_>, level: Level) -> Result<(EffectiveLevel, u64), RunError> {
    let product = tester.product;
    let (answers, connection) = tester.with_session("questions", move |connection| {
        connection.execute(&product.set_level(level))?;
        let effective = product.read_effective(connection)?;
        Ok((effective, summarisation::enough(connection)))
    })?;
    connection.close();
    Ok(answers)
}

/// Runs one interleaving and judges it. If a step took too long that waits for nobody by the
/// product's view, that view isn't believed any more, and the interleaving is run again by time: a
/// proxy may hide who waits.
fn run(
    tester: &mut Tester<'_>,
    level: Level,
    interleaving: &Interleaving,
    transactions: u64,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome, ProbeError> {
    let ran = run_once(tester, level, interleaving, transactions, tell)?;
    if !ran.took_too_long || tester.who_waits == WhoWaits::Time {
        return Ok(ran.outcome);
    }
    tester.who_waits = WhoWaits::Time;
    Ok(run_once(tester, level, interleaving, transactions, tell)?.outcome)
}

/// An anomaly and its interleaving, in the words of a server.
struct Interleaving {
    probe: &'static Probe,
    spec: Spec,
}

/// All interleavings; where tables lie in a schema of our own, their SQL names it.
fn interleavings(database: &Database) -> Result<Vec<Interleaving>, SpecError> {
    let interleaving = |probe: &'static Probe| {
        let spec = Spec::parse(probe.file, probe.spec)?;
        let names = Names::made_by(spec.setup.iter().map(String::as_str));
        let spec = spec.with_sql(|sql| database.place(sql, &names).into_owned());
        Ok(Interleaving { probe, spec })
    };
    PROBES.iter().map(interleaving).collect()
}

/// What one run of an interleaving says.
struct Ran {
    outcome: Outcome,
    /// A step was cancelled.
    took_too_long: bool,
}

/// Runs one interleaving and judges it.
fn run_once(
    tester: &Tester<'_>,
    level: Level,
    interleaving: &Interleaving,
    transactions: u64,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Ran, ProbeError> {
    let Interleaving { probe, spec: text } = interleaving;
    let spec = if probe.repeats { repeated(text, transactions) } else { Cow::Borrowed(text) };
    let mut record = Record::default();
    let ran = tester.run(&spec, &mut |event| {
        record.take(&event);
        // The many transactions are one step of the interleaving, and are shown as they stand
        // there.
        let event = if probe.repeats { with_written_sql(event, text) } else { event };
        tell(Progress::Event(&event));
    });
    let outcome = match ran {
        Ok(()) if record.steps.iter().any(|step| step.lost) => {
            let why = "the server closed a session".to_owned();
            Err(RunError::Send { step: probe.name.to_owned(), why })
        }
        Ok(()) => Ok(judge::outcome(tester.product, probe, &record)),
        Err(error @ (RunError::Setup(_) | RunError::SessionSetup { .. })) => {
            // What follows in further lines are details.
            Ok(Outcome::NotApplicable(error.to_string().lines().next().unwrap_or_default().to_owned()))
        }
        Err(error @ (RunError::Timeout { .. } | RunError::MutuallyBlocking)) => {
            Ok(Outcome::Undecided(error.to_string().replace('\n', "; ")))
        }
        Err(error) => Err(error),
    };
    let took_too_long = record.steps.iter().any(|step| step.cancelled);
    let failed = |source| ProbeError::Run { level, known_as: probe.known_as, source };
    Ok(Ran { outcome: outcome.map_err(failed)?, took_too_long })
}

/// The same with step `many` so many times in a row, as one query: each time a transaction of its
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

/// The step that is repeated.
const MANY: &str = "many";

fn with_written_sql(event: Event, written: &Spec) -> Event {
    match event {
        Event::Step { name, .. } if name == MANY => {
            let sql = written.find(&name).map(|id| written.step(id).sql.clone()).unwrap_or_default();
            Event::Step { name, sql: format!("{sql} -- repeated") }
        }
        other => other,
    }
}
