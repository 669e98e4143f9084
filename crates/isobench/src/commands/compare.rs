//! `isobench compare`: one workload at several isolation levels, in interleaved rounds, ending in one table and a report.
//!
//! Not here: the course of the measurement (`compare/course.rs`), and how a cell is measured (`cell.rs`).

mod course;
mod files;
mod sweep;

use std::num::NonZeroUsize;

use isobench_observer::Observer;
use isobench_report::{Document, render, summarise};
use isobench_runner::Control;

use self::course::{Course, level_check};
use self::files::Files;
use crate::cell::Bench;
use crate::environment::now;
use crate::failure::{Failure, Outcome};
use crate::judgement::Judging;
use crate::observation::observer;
use crate::options::CompareOptions;
use crate::output;
use crate::plan::{self, Plan};
use crate::target::{Target, names_server};

/// Carries out the comparison and prints its table.
///
/// # Errors
/// Wrong options, no server, an incomplete measurement, a broken invariant. What was measured is reported before.
pub fn compare(options: &CompareOptions) -> Outcome {
    carry_out(options)?.finish("")
}

/// A comparison that was carried out.
pub struct Comparison {
    /// The result.
    pub document: Document,
    /// For each cell, the report of its last history.
    pub judgements: Judgements,
    /// Where it is written.
    files: Files,
    /// Whether everything was tidied up.
    closed: Outcome,
}

/// For each cell, the report of its last history.
pub type Judgements = Vec<Option<String>>;

/// Carries out the comparison.
///
/// # Errors
/// Nothing could be measured.
pub fn carry_out(options: &CompareOptions) -> Outcome<Comparison> {
    let file = options.plan_file.as_deref().map(|name| plan::read(name, options.size())).transpose()?;
    let mut plan = Plan::resolve(&options.plan, file, &options.defaults, &options.tables.at_scale(1))?;
    let judging = judging(options, &plan)?;
    let files = Files::new(options, &now())?;
    for note in plan.choose_server(names_server(&options.connection), options.embedded.chooses())? {
        eprintln!("note: {note}");
    }
    let (mut targets, control) = Target::find_all(
        &options.connection,
        &options.embedded.with(&plan.server_settings),
        &plan.versions,
        plan.clients.iter().copied().max().unwrap_or(1),
    )?;
    for note in plan.fit(&targets[0].database)? {
        eprintln!("note: {note}");
    }
    for target in &mut targets {
        target.claim_namespace()?;
    }
    let outcome = measure(options, &plan, judging.as_ref(), &targets, &files, &control);
    // All are closed, whatever becomes of the others.
    let closed = targets.into_iter().map(|target| target.close(options.keep)).collect::<Vec<Outcome>>();
    let (document, judgements) = outcome?;
    Ok(Comparison { document, judgements, files, closed: closed.into_iter().collect() })
}

/// How histories are checked, if the scripts make any.
fn judging(options: &CompareOptions, plan: &Plan) -> Outcome<Option<Judging>> {
    let observed = plan.sources.is_observed()? && !options.no_verdict;
    if !observed && (options.history.is_some() || options.window.is_some()) {
        return Err(Failure::setup(format!(
            "workload {}: its scripts don't say what they read and write, so there is no history to check or to write; \
             use a checked workload (isobench workloads), or annotate the scripts with lines --@",
            plan.sources.name()
        )));
    }
    Ok(observed
        .then(|| Judging { folder: options.history.clone(), window: options.window.map(NonZeroUsize::get) }))
}

/// Measures everything. Ends early, with what there is, if that is asked for or the server is lost.
fn measure(
    options: &CompareOptions,
    plan: &Plan,
    judging: Option<&Judging>,
    targets: &[Target],
    files: &Files,
    control: &Control,
) -> Outcome<(Document, Judgements)> {
    let servers = targets.iter().map(Target::describe).collect::<Outcome<Vec<_>>>()?;
    let cells = level_check(plan, targets)?;
    let observers: Vec<Observer> =
        if options.no_observe { Vec::new() } else { targets.iter().map(observer).collect() };
    let bench = Bench { plan, targets, judging, observers: &observers, control };
    let mut course = Course::begin(bench, servers, cells, files, options.live)?;
    course.rounds()?;
    course.sweep();
    Ok(course.end())
}

impl Comparison {
    /// Prints the table, and what comes before it, and writes the files.
    ///
    /// # Errors
    /// Something can't be written or tidied up, the comparison is incomplete, or a promise is broken.
    pub fn finish(self, before: &str) -> Outcome {
        let Comparison { mut document, files, closed, .. } = self;
        summarise(&mut document);
        let width = terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0));
        let saved = files.save_all(&document);
        let told = saved.as_ref().map_or_else(|_| String::new(), |written| files::told(written));
        let printed = output::print(&format!("{before}{}{told}", render(&document, width)));
        saved?;
        printed?;
        closed?;
        verdict(&document)
    }
}

/// The exit status that the finished comparison deserves.
fn verdict(document: &Document) -> Outcome {
    if let Some(reason) = &document.incomplete_reason {
        return Err(Failure::Incomplete(format!("the comparison is incomplete: {reason}")));
    }
    if document.has_broken_promise() {
        return Err(Failure::Broken("a level did not give what it promises; see above".to_owned()));
    }
    if document.has_violations() {
        return Err(Failure::Broken("an invariant does not hold; see the table".to_owned()));
    }
    document.withheld().map_or(Ok(()), |reason| Err(Failure::withheld(reason)))
}
