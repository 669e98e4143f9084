//! `isobench compare`: one workload at several isolation levels, in interleaved rounds, ending in one table.

use std::num::NonZeroUsize;

use isobench_report::{Cell, CellLevel, Document, render, summarise, to_csv};
use isobench_runner::{Control, Urgency};

use crate::cell::{Bench, Measured, refusal};
use crate::display::Display;
use crate::environment::{client, now};
use crate::failure::{Failure, Outcome};
use crate::judgement::Judging;
use crate::options::CompareOptions;
use crate::output;
use crate::plan::{CellPlan, Plan, cell_entry, count};
use crate::target::Target;

/// Carries out the comparison and prints its table.
///
/// # Errors
/// Wrong options, no server, an incomplete measurement, a broken invariant. What was measured is reported before.
pub fn compare(options: &CompareOptions) -> Outcome {
    carry_out(options)?.finish(options, "")
}

/// A comparison that was carried out.
pub struct Comparison {
    /// The result.
    pub document: Document,
    /// For each cell, the report of its last history.
    pub judgements: Judgements,
    /// Whether everything was tidied up.
    closed: Outcome,
}

/// Carries out the comparison.
///
/// # Errors
/// Nothing could be measured.
pub fn carry_out(options: &CompareOptions) -> Outcome<Comparison> {
    let plan = Plan::resolve(&options.plan, options.plan_file.as_deref(), &options.defaults)?;
    let judging = judging(options, &plan)?;
    let (mut target, control) = Target::find(
        &options.connection,
        None,
        &options.embedded,
        plan.clients.iter().copied().max().unwrap_or(1),
    )?;
    target.claim_namespace()?;
    let outcome = measure_all(options, &plan, judging.as_ref(), &target, &control);
    let closed = target.close(options.keep);
    let (document, judgements) = outcome?;
    Ok(Comparison { document, judgements, closed })
}

/// For each cell, the report of its last history.
pub type Judgements = Vec<Option<String>>;

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

/// Measures every cell in every round. Ends early, with what there is, if that is asked for or the server is lost.
fn measure_all(
    options: &CompareOptions,
    plan: &Plan,
    judging: Option<&Judging>,
    target: &Target,
    control: &Control,
) -> Outcome<(Document, Judgements)> {
    let cells = plan.cells();
    let mut judgements: Judgements = vec![None; cells.len()];
    let tables = plan.tables(options.tables.at_scale(plan.scale));
    let bench = Bench { plan, target, tables: &tables, judging, control };
    let mut document = Document::new(target.describe()?, client(), plan.document(&target.server_settings));
    document.started_at = Some(now());
    document.warnings = plan.sources.warnings()?;
    document.cells = level_check(plan, target, &cells)?;
    for warning in &document.warnings {
        eprintln!("warning: {warning}");
    }
    let mut display = Display::new(plan);
    'rounds: for round in 1..=plan.rounds {
        for (place, index) in plan.order(round).into_iter().enumerate() {
            if control.urgency() > Urgency::None {
                document.incomplete_reason = Some("interrupted".to_owned());
                break 'rounds;
            }
            let cell = &cells[index];
            let measured = bench.measure(cell, round, &mut |elapsed, progress| {
                display.running(plan, cell, round, elapsed, &progress);
            });
            match measured {
                Ok(mut measured) => {
                    judgements[index] = measured.judgement.take();
                    let (tps, conflicts) = (measured.round.tps, measured.round.ledger().conflict_ratio());
                    let reason = add(&mut document, index, place, measured, &display);
                    display.finished(plan, cell, round, tps, conflicts);
                    if reason.is_some() && control.urgency() == Urgency::None {
                        document.incomplete_reason = reason;
                        break 'rounds;
                    }
                }
                // Without a single result there is nothing to report but the error.
                Err(failure) if document.cells.iter().all(|cell| cell.rounds.is_empty()) => {
                    display.close();
                    return Err(with_log(failure, target));
                }
                Err(failure) => {
                    document.incomplete_reason = Some(failure.to_string());
                    break 'rounds;
                }
            }
            save(&mut document, options, &display);
        }
    }
    if control.urgency() > Urgency::None && document.incomplete_reason.is_none() {
        document.incomplete_reason = Some("interrupted".to_owned());
    }
    document.complete = document.incomplete_reason.is_none();
    display.close();
    Ok((document, judgements))
}

/// Adds a round to its cell, shows it, and returns why the comparison can't go on, if it can't.
fn add(
    document: &mut Document,
    index: usize,
    place: usize,
    measured: Measured,
    display: &Display,
) -> Option<String> {
    let Measured { mut round, effective, notes, .. } = measured;
    for note in notes {
        if !document.warnings.contains(&note) {
            display.say(&format!("note: {note}"));
            document.warnings.push(note);
        }
    }
    round.order = Some(count(place + 1));
    let reason = (!round.complete).then(|| {
        round.errors.first().cloned().unwrap_or_else(|| "clients ended before their time".to_owned())
    });
    let entry = &mut document.cells[index];
    if entry.rounds.is_empty() {
        entry.level.effective = effective;
    }
    entry.rounds.push(round);
    reason
}

/// Asks the server for every level once, before anything is measured.
fn level_check(plan: &Plan, target: &Target, cells: &[CellPlan]) -> Outcome<Vec<Cell>> {
    let mut connection = target.open().map_err(Failure::setup)?;
    let product = target.database.product;
    let mut entries = Vec::new();
    for cell in cells {
        connection.execute(&product.set_level(cell.level)).map_err(Failure::setup)?;
        let effective = product.read_effective(&mut connection).map_err(Failure::setup)?;
        if effective.differs_from(cell.level) {
            if plan.strict_levels {
                return Err(Failure::setup(refusal(cell, &effective)));
            }
            eprintln!("warning: {} was asked for, but the server runs {effective}", cell.level);
        }
        let level = CellLevel::new(Some(cell.level), effective);
        entries.push(cell_entry(&plan.sources, plan.scale, &plan.spec(cell), level));
    }
    connection.close();
    Ok(entries)
}

/// Saves what there is after every cell, so that nothing that happens later can lose it.
fn save(document: &mut Document, options: &CompareOptions, display: &Display) {
    if let Some(path) = &options.json {
        summarise(document);
        if let Err(failure) = output::save(path, &document.to_json()) {
            display.say(&format!("warning: {failure}"));
        }
    }
}

impl Comparison {
    /// Prints the table, and what comes before it, and writes the files.
    ///
    /// # Errors
    /// Something can't be written or tidied up, the comparison is incomplete, or a promise is broken.
    pub fn finish(self, options: &CompareOptions, before: &str) -> Outcome {
        let Comparison { mut document, closed, .. } = self;
        summarise(&mut document);
        let width = terminal_size::terminal_size().map_or(120, |(width, _)| usize::from(width.0));
        let printed = output::print(&format!("{before}{}", render(&document, width)));
        if let Some(path) = &options.json {
            output::save(path, &document.to_json())?;
        }
        if let Some(path) = &options.csv {
            output::save(path, &to_csv(&document))?;
        }
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
    Ok(())
}

fn with_log(failure: Failure, target: &Target) -> Failure {
    match (failure, target.log_tail()) {
        (Failure::Setup(text), Some(log)) if !log.is_empty() && text.contains("connection") => {
            Failure::Setup(format!("{text}\nthe embedded server's log ends with:\n{log}"))
        }
        (failure, _) => failure,
    }
}
