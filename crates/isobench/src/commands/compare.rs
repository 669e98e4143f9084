//! `isobench compare`: one workload at several isolation levels, in interleaved rounds, ending in
//! one table and a report.
//!
//! Not here: the measurement (`isobench_comparison`), the files of the result (`compare/files.rs`),
//! and the user's consent to changes of data (`compare/consent.rs`).

mod consent;
mod files;
mod outline;
mod saving;

use std::path::PathBuf;

use isobench_comparison::{
    Design, Failure, Followers, Judgements, Judging, Listener, Machines, Outcome, Resolved, Surroundings,
    Target, compare as measure, now, require_log, take_part as part,
};
use isobench_database::Database;
use isobench_report::Extent;
use isobench_report::gate::of_document;
use isobench_result::{Document, RequirementResult, judge, requirement_lines, summarise};
use isobench_runner::Control;

use self::files::Files;
use self::outline::outline;
use crate::commands::scripts;
use crate::destination::check_folder;
use crate::display::Display;
use crate::gates;
use crate::interrupt;
use crate::machines;
use crate::monitor::{self, Monitor};
use crate::options::{CompareOptions, GateOptions, command};
use crate::output::{self, say};
use crate::servers::{self, Stage, Wanted, names_server};

/// Carries out the comparison and prints its table.
///
/// # Errors
/// Wrong options, no server, an incomplete measurement, a broken invariant. The measured part is
/// reported first.
pub fn compare(options: &CompareOptions) -> Outcome {
    carry_out(options)?.map_or(Ok(()), |results| results.finish(""))
}

/// The results of a completed comparison.
pub struct Results {
    /// The result.
    pub document: Document,
    /// For each cell, the report on its last history.
    pub judgements: Judgements,
    /// Its files.
    files: Files,
    /// The files for services.
    gates: GateOptions,
    /// The servers to clean up once the result is saved.
    targets: Vec<Target>,
    /// Keeps the tables on the server.
    keep: bool,
    /// The folder of the histories, if they are kept.
    history: Option<PathBuf>,
    /// How much the report has.
    extent: Extent,
    /// Open until the command ends.
    _monitor: Monitor,
}

/// Carries out the comparison. Of several machines that measure together, the first has the
/// results.
///
/// # Errors
/// Nothing could be measured.
pub fn carry_out(options: &CompareOptions) -> Outcome<Option<Results>> {
    let plan = machines::heard(&options.machines, resolve(options))?;
    let machines = meet(options, plan.design())?;
    if let Some(machines) = machines.as_ref().filter(|machines| machines.rank() > 0) {
        monitor::leave_to_rank_0(&options.monitor);
        return take_part(options, plan, machines).map(|()| None);
    }
    let outcome = lead(options, plan, machines.as_ref());
    if let Some(machines) = machines {
        machines.end(outcome.as_ref().err().map(Failure::to_string).as_deref());
    }
    outcome.map(Some)
}

/// The plan of the options, and of its file.
///
/// # Errors
/// They don't go together, or a file can't be read.
fn resolve(options: &CompareOptions) -> Outcome<Resolved> {
    let read = |name| isobench_plan::read(name, options.size()).map_err(Failure::setup);
    let mut given = options.plan.clone();
    let of_capture = match options.capture.capture {
        Some(_) if options.machines.any() => {
            return Err(Failure::setup(
                "--peers: make the scripts of a capture first (isobench scripts), and name the same ones by --plan on \
                 all machines",
            ));
        }
        Some(_) => scripts::plan_of(&options.capture, given.setup.take().as_deref(), &options.embedded)?,
        None => scripts::plan_of(&options.capture, None, &options.embedded)?,
    };
    let plan_file = options.plan_file.as_deref().or(of_capture.as_deref());
    let file = plan_file.map(read).transpose()?;
    scripts::say_claim(options.plan_file.as_deref());
    let defaults = options.defaults.clone();
    if options.no_verdict {
        given.tries.get_or_insert(0.0);
    }
    let plan = Resolved::of(&given, file, defaults, &options.tables.at_scale(1))?;
    let design = plan.design();
    check_consent(options, design)?;
    design.unmatched_requirement().map_or(Ok(()), |why| Err(Failure::Setup(why)))?;
    Ok(plan)
}

/// Meets the other machines that measure together with this one, if there are any.
///
/// # Errors
/// One is missing or has another plan, or no server is named.
fn meet(options: &CompareOptions, design: &Design) -> Outcome<Option<Machines>> {
    if options.machines.any() && !design.server_factors.endpoints.is_empty() {
        return Err(Failure::setup(
            "--vary: endpoint: machines that measure together (--peers) reach the server directly; leave out one",
        ));
    }
    let (no_verdict, standby) = (options.no_verdict, options.standby_server.is_some());
    let (plan, scripts) = (design.document_plan(&[]), design.document_workload());
    let clients = design.plan.clients().iter().copied().min().unwrap_or(1) + design.plan.readers();
    let named = names_server(&options.connection);
    machines::meet(&options.machines, named, clients as usize, &(plan, scripts, no_verdict, standby))
}

/// Takes part in the comparison that rank 0 makes.
///
/// # Errors
/// The server can't be reached, or the comparison ends early.
fn take_part(options: &CompareOptions, plan: Resolved, machines: &Machines) -> Outcome {
    let Stage { design, targets, control } = servers::stage(plan, &wanted(options), &|_| {}, &|_| {})?;
    let name = machines.name(0);
    say(&format!("rank {} of {} works for {name}", machines.rank(), machines.number()));
    let runs = part(&design, &targets, machines, &control, &say)?;
    say(&format!("{name} has the result; this machine had a share of {runs} runs"));
    close(targets, true)
}

/// The servers of the options.
fn wanted(options: &CompareOptions) -> Wanted<'_> {
    Wanted {
        connection: &options.connection,
        embedded: &options.embedded,
        standby: options.standby_server.as_deref(),
        alters: options.alter_system,
    }
}

/// Carries out the comparison, as the first of these machines if there are several.
///
/// # Errors
/// Nothing could be measured.
fn lead(options: &CompareOptions, plan: Resolved, machines: Option<&Machines>) -> Outcome<Results> {
    let files = Files::new(options, &now())?;
    gates::check(&options.gates)?;
    let monitor = Monitor::open(&options.monitor)?;
    let named = names_server(&options.connection);
    if let Some(folder) = options.history.as_deref().filter(|_| !options.no_verdict) {
        check_folder(folder).map_err(|error| {
            Failure::setup(format!("--history: could not make the folder \"{}\": {error}", folder.display()))
        })?;
    }
    if options.alter_system && !named {
        return Err(Failure::setup(
            "--alter-system: an embedded server is started with the settings that --vary names; leave the option out",
        ));
    }
    let note = |text: &str| eprintln!("note: {text}");
    let place = servers::place(&options.connection)?;
    let before = |design: &Design| say(&outline(design, &place));
    let Stage { design, mut targets, control } = servers::stage(plan, &wanted(options), &note, &before)?;
    for target in &targets {
        let readable = require_log(&target.site(), design.plan.observe());
        if let Some(text) = interrupt::blame(&control, readable)? {
            note(&text);
        }
    }
    if design
        .workloads
        .iter()
        .any(|sources| sources.checked().is_some_and(|chosen| chosen.workload().name == "tpcc"))
    {
        note("TPC-C's own isolation tests (clause 3.4.2) run by: isobench probe --tests tpcc");
    }
    let judging = judging(options, &design, &targets[0].database)?;
    interrupt::blame(&control, prepare(&design, &mut targets, options.yes, &control))?;
    let around = Surroundings {
        targets: &targets,
        judging: judging.as_ref(),
        machines,
        control: &control,
        say: &say,
        save: &|document| files.save_result(document),
        command: command(),
    };
    let (mut display, mut follower) = (Display::new(options.live), monitor.follower(&targets));
    let mut followers: Vec<&mut dyn Listener> = vec![&mut display];
    followers.extend(follower.as_mut().map(|follower| follower as &mut dyn Listener));
    let outcome = measure(&design, around, &mut Followers(followers));
    drop(display);
    match interrupt::blame(&control, outcome) {
        Ok((document, judgements)) => {
            let extent = output::extent(options.legend, options.details);
            let (keep, history) = (options.keep, options.history.clone());
            let gates = options.gates.clone();
            Ok(Results {
                document,
                judgements,
                files,
                gates,
                targets,
                keep,
                history,
                extent,
                _monitor: monitor,
            })
        }
        Err(failure) => {
            // The reason for the failure matters more than objects left on the server, which the
            // next run removes.
            let _ = close(targets, options.keep);
            Err(failure)
        }
    }
}

/// Cleans up all targets, even if some of them fail.
fn close(targets: Vec<Target>, keep: bool) -> Outcome {
    let closed: Vec<Outcome> = targets.into_iter().map(|target| target.close(keep)).collect();
    closed.into_iter().collect()
}

/// # Errors
/// An option for a schema of the user's is given without one, or one for isobench's own with it.
fn check_consent(options: &CompareOptions, design: &Design) -> Outcome {
    match design.schema() {
        None if options.yes => Err(Failure::setup(
            "--yes: agrees to changes of your own data (--schema), which nothing here makes; leave it out",
        )),
        Some(_) if options.keep => Err(Failure::setup(
            "--keep: leaves schema isobench behind, which isn't made with --schema; leave it out",
        )),
        _ => Ok(()),
    }
}

/// Creates a schema on each server; on a hot standby nothing is created. In a schema of the user's
/// nothing is created either, and nothing done before the user has agreed.
fn prepare(design: &Design, targets: &mut [Target], agreed: bool, control: &Control) -> Outcome {
    if let Some(standby) = targets.first().filter(|target| target.standby) {
        eprintln!(
            "reading the tables that are there on {}, a hot standby; nothing is made or vacuumed",
            standby.place()
        );
        return Ok(());
    }
    if let Some(schema) = design.schema() {
        let ask = |target: &Target| {
            consent::require(&design.announcement(&target.place()), schema, agreed, control)
        };
        return targets.iter().try_for_each(ask);
    }
    targets.iter_mut().try_for_each(|target| target.claim_namespace(&say))
}

/// Returns the settings for checking histories, if the scripts produce any.
fn judging(options: &CompareOptions, design: &Design, database: &Database) -> Outcome<Option<Judging>> {
    let observed = design.is_recorded(database) && !options.no_verdict;
    let stop_on_broken = design.plan.stops_on_broken();
    if stop_on_broken && options.no_verdict {
        return Err(Failure::setup(
            "--stop-on-broken: with --no-verdict no history is checked; leave out one of them",
        ));
    }
    if !observed && (options.history.is_some() || stop_on_broken) {
        let option = if stop_on_broken { "--stop-on-broken" } else { "--history" };
        let names: Vec<String> =
            design.workloads.iter().map(|sources| format!("workload {}", sources.name())).collect();
        return Err(Failure::setup(format!(
            "{option}: {}: nothing shows what the scripts read and write, so there is no history to check or to write; \
            leave out --observe annotations, a rate or think time on PostgreSQL, use a checked workload (isobench \
            workloads), or annotate the scripts with lines --@",
            names.join(", ")
        )));
    }
    Ok(observed.then(|| Judging { folder: options.history.clone(), stop_on_broken, between: false }))
}

impl Results {
    /// True if all details are printed.
    pub const fn in_full(&self) -> bool {
        self.extent.is_full()
    }

    /// Adds what the histories show to a report on one screen.
    pub const fn show_histories(&mut self) {
        if !self.in_full() {
            self.extent = Extent::Audit;
        }
    }

    /// Returns a sentence on the folder of the histories, if they are kept.
    pub fn where_histories_are(&self) -> Option<String> {
        let folder = self.history.as_ref()?.display();
        let rounds = self.document.cells.iter().map(|cell| cell.rounds.len()).sum::<usize>();
        let unwritten = self.unwritten_histories();
        Some(if unwritten == 0 {
            format!("the histories are in {folder}; isobench check reads them")
        } else {
            format!(
                "{} of {rounds} histories are in {folder}, where isobench check reads them; the others couldn't be \
                 written",
                rounds - unwritten
            )
        })
    }

    /// The number of judged rounds whose histories were to be kept, and aren't.
    fn unwritten_histories(&self) -> usize {
        let rounds = self.document.cells.iter().flat_map(|cell| &cell.rounds);
        let unwritten = rounds.filter(|round| round.verdict.is_some() && round.history.is_none());
        if self.history.is_some() { unwritten.count() } else { 0 }
    }

    /// Prints the report, followed by a text, and writes the files.
    ///
    /// # Errors
    /// Output can't be written, a server can't be cleaned up, the comparison is incomplete, or a
    /// promise is broken.
    pub fn finish(self, histories: &str) -> Outcome {
        let unwritten = self.unwritten_histories();
        let Results { mut document, files, gates, targets, keep, extent, .. } = self;
        summarise(&mut document);
        document.requirements = judge(&document, document.plan.required());
        let saved = files.save_all(&document);
        let gated = gates::write(&gates, "compare", of_document(&document));
        let told = saved.as_ref().map_or_else(|_| String::new(), |written| files::told(written));
        let report = output::terminal(extent).render(&document);
        let after = format!("{histories}{}{told}", requirement_lines(&document.requirements));
        let printed = output::print_report("", &report, &after, files.takes_stdout);
        // After the result is saved, because the server may not answer.
        let closed = close(targets, keep);
        saved?;
        gated?;
        printed?;
        let verdict = verdict(&document, unwritten);
        if let (Err(Failure::Incomplete(_)), Err(left)) = (&verdict, &closed) {
            // Probably for the same reason; the result decides the status.
            eprintln!("isobench: warning: {left}");
            return verdict;
        }
        closed.and(verdict)
    }
}

/// Fails if a threshold isn't kept.
///
/// # Errors
/// One isn't; the message says how many.
pub fn requirements(results: &[RequirementResult]) -> Outcome {
    match results.iter().filter(|result| !result.met).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::Unmet(format!("the requirement \"{}\" isn't met; see above", one.requirement))),
        several => Err(Failure::Unmet(format!("{} requirements aren't met; see above", several.len()))),
    }
}

/// Returns the failure, if any, that decides the exit status of a finished comparison, in which so
/// many histories couldn't be written.
fn verdict(document: &Document, unwritten: usize) -> Outcome {
    if let Some(reason) = &document.incomplete_reason {
        return Err(Failure::Incomplete(format!("the comparison is incomplete: {reason}")));
    }
    if document.has_broken_promise() {
        return Err(Failure::Broken("a level did not give what it promises; see above".to_owned()));
    }
    if document.has_lost_promised() {
        return Err(Failure::Broken(
            "commits are lost that the settings promise to keep; see above".to_owned(),
        ));
    }
    if document.has_violations() {
        return Err(Failure::Broken("an invariant does not hold; see the table".to_owned()));
    }
    if unwritten > 0 {
        return Err(Failure::Incomplete(format!(
            "--history: {unwritten} of the histories couldn't be written; see above"
        )));
    }
    requirements(&document.requirements)?;
    document.withheld().map_or(Ok(()), |reason| Err(Failure::withheld(reason)))
}
