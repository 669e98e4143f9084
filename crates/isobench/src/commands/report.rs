//! `isobench report`: lists saved results, shows one again, compares two, or shows a series. Doesn't need
//! a server.
//!
//! Not here: the renderings, and the definition of a regression (`isobench_result`); the files that
//! they are written to (`rendered`); how results are found (`saved.rs`).

mod list;
mod servers;
mod tables;

use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_report::Extent;
use isobench_result::{
    Axis, Document, Pair, TrendResult, compare_results, concerns, contradictions, judge, requirement_lines,
    summarise, trend,
};

use self::tables::Tables;
use super::compare::requirements;
use super::rendered::{Otherwise, deliver, one_stream_of};
use crate::destination::Kind;
use crate::options::{ReportFormat, ReportOptions};
use crate::output::{extent, is_stream, say, shown};
use crate::saved::{Saved, SavedResult, choose};

/// The figure of a series for which none is named.
const USUAL_METRIC: &str = "tps";

/// What is made of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    List,
    Tagged,
    Servers,
    One,
    Pair,
    Series,
}

/// Lists the saved results, shows one, compares two, or shows a series.
///
/// # Errors
/// Wrong options, a file that can't be read or isn't a result, output that can't be written; a
/// regression; a threshold that isn't kept; a result that doesn't agree with itself.
pub fn report(options: &ReportOptions) -> Outcome {
    let form = form(options);
    refuse(options, form)?;
    match form {
        Form::List => list::list(&Saved::in_folder(&options.folder)?, &options.rendering),
        Form::Tagged => list::tag(options),
        Form::Servers => servers::servers(options),
        Form::One | Form::Pair | Form::Series => rendered(options, form),
    }
}

fn form(options: &ReportOptions) -> Form {
    match options {
        ReportOptions { servers: Some(_), .. } => Form::Servers,
        ReportOptions { metric: Some(_), .. } => Form::Series,
        ReportOptions { tag, .. } if !tag.is_empty() => Form::Tagged,
        ReportOptions { results, .. } => match results.len() {
            0 => Form::List,
            1 => Form::One,
            2 => Form::Pair,
            _ => Form::Series,
        },
    }
}

/// Refuses options that contradict one another.
fn refuse(options: &ReportOptions, form: Form) -> Outcome {
    let format = options.rendering.format;
    let is_text = format.is_none_or(|format| format == ReportFormat::Text);
    let writes = one_stream_of(&options.rendering)? || options.tables.is_some();
    let from_stdin = options.results.iter().filter(|path| is_stream(path)).count();
    let renders = [Form::One, Form::Pair, Form::Series].contains(&form);
    let problem = match options {
        _ if from_stdin > 1 => "standard input can be read only once; name files for the other results",
        ReportOptions { legend: true, .. } if form != Form::One || format != Some(ReportFormat::Text) => {
            "--legend explains the columns of one result as text; name one RESULT, and --format text"
        }
        ReportOptions { details: true, .. } if form != Form::One || !is_text => {
            "--details is of one result as text; name one RESULT, such as latest, and no other --format"
        }
        ReportOptions { fail_on_regression: Some(_), .. } if form != Form::Pair => {
            "--fail-on-regression needs two results: isobench report OLD NEW"
        }
        ReportOptions { tables: Some(_), .. } if form != Form::One => {
            "--tables is of one result; run isobench report once for each, with a folder of its own"
        }
        ReportOptions { require, .. } if form != Form::One && !require.is_empty() => {
            "--require is about one result; run isobench report once for each"
        }
        ReportOptions { by: Some(_), .. } if form != Form::Series => {
            "--by orders a series; give --metric, or three results"
        }
        ReportOptions { tag, .. }
            if !tag.is_empty() && (form != Form::Tagged || options.results.len() != 1) =>
        {
            "--tag is of one result; name one RESULT, such as latest, and no --metric"
        }
        _ if form == Form::Tagged && (writes || format.is_some()) => {
            "--tag writes no report; leave out the other options"
        }
        _ if form == Form::Servers && (options.rendering.json.is_some() || format.is_some()) => {
            "--servers makes a page; of the other options it takes --html"
        }
        _ if !renders && options.rendering.csv.is_some() => "--csv is of results; name one, such as latest",
        _ if form == Form::List && options.rendering.html.is_some() => {
            "--html is of results; name one, such as latest"
        }
        _ if format.is_none() && form == Form::One && from_stdin == 1 && !writes && !options.details => {
            "of a result from standard input, say where the report goes: --html FILE, or --format text"
        }
        _ => return Ok(()),
    };
    Err(Failure::setup(problem))
}

/// Renders one result, two or a series, and says at the end whether a result contradicts itself.
fn rendered(options: &ReportOptions, form: Form) -> Outcome {
    let mut results = match options.results.as_slice() {
        [] => Saved::in_folder(&options.folder)?.results,
        words => choose(&options.folder, words)?,
    };
    let mut doubtful = 0;
    for result in &results {
        let found = contradictions(&result.document);
        for why in &found {
            say(&format!("warning: {}: {why}", result.name));
        }
        doubtful += usize::from(!found.is_empty());
    }
    match (form, results.as_mut_slice()) {
        (Form::One, [one]) => one_result(options, one),
        (Form::Pair, [a, b]) => side_by_side(options, [a, b]),
        _ => series(options, &results),
    }?;
    match doubtful {
        0 => Ok(()),
        1 => Err(Failure::setup("one result isn't to be counted on; see above")),
        some => Err(Failure::setup(format!("{some} results aren't to be counted on; see above"))),
    }
}

/// Shows a result again.
fn one_result(options: &ReportOptions, result: &mut SavedResult) -> Outcome {
    judged(result, options)?;
    let document = &result.document;
    let tables = options.tables.as_deref();
    let tables = tables.map(|folder| Tables::new(folder, &options.transactions, document)).transpose()?;
    let rendering = (&options.rendering, extent(options.legend, options.details));
    deliver(document, rendering, (Kind::Result, Kind::Lines), || otherwise(options, &result.path))?;
    tables.map_or(Ok(()), Tables::write)?;
    // Those that the result was measured with decided the status then.
    let own = if options.require.is_empty() { &[][..] } else { &document.requirements };
    if options.rendering.format != Some(ReportFormat::Text) {
        eprint!("{}", requirement_lines(own));
    }
    requirements(own)
}

/// Judges a result by the thresholds of the command line, or else by its own.
fn judged(result: &mut SavedResult, options: &ReportOptions) -> Outcome {
    let document = &mut result.document;
    summarise(document);
    if let Some(requirement) = options.require.iter().find(|requirement| !concerns(document, requirement)) {
        return Err(Failure::setup(format!(
            "--require \"{requirement}\": {} has no such cell; its levels are {}",
            shown(&result.path),
            levels(document)
        )));
    }
    let required = if options.require.is_empty() { document.plan.required() } else { &options.require };
    document.requirements = judge(document, required);
    Ok(())
}

/// What is written of one result where neither a file nor a format is named.
fn otherwise(options: &ReportOptions, path: &Path) -> Outcome<Otherwise> {
    if options.tables.is_some() {
        return Ok(Otherwise::Nothing);
    }
    if options.details {
        return Ok(Otherwise::Text);
    }
    let is_named = options.results.first().is_some_and(|given| given == path);
    let page: PathBuf =
        if is_named { path.with_extension("html") } else { path.with_file_name("report.html") };
    if page == path {
        return Err(Failure::setup(format!(
            "{} would be overwritten by its report; say where that goes: --html FILE",
            shown(&page)
        )));
    }
    Ok(Otherwise::Page(page))
}

/// Compares the second of two results with the first.
fn side_by_side(options: &ReportOptions, [a, b]: [&SavedResult; 2]) -> Outcome {
    let pair = compare_results(&a.document, &b.document).map_err(Failure::setup)?;
    let pair = pair.named(a.name.as_str(), b.name.as_str());
    let rendering = (&options.rendering, Extent::default());
    deliver(&pair, rendering, (Kind::Comparison, Kind::PairLines), || Ok(Otherwise::Text))?;
    options.fail_on_regression.map_or(Ok(()), |limit| judge_pair(&pair, limit))
}

/// Shows a figure over results, with its change points.
fn series(options: &ReportOptions, results: &[SavedResult]) -> Outcome {
    let results: Vec<TrendResult> = results
        .iter()
        .map(|result| TrendResult { name: &result.name, tags: &result.tags, document: &result.document })
        .collect();
    let usual = || USUAL_METRIC.parse().map_err(Failure::setup);
    let metric = options.metric.clone().map_or_else(usual, Ok)?;
    let trend = trend(&results, &metric, options.by.as_ref().unwrap_or(&Axis::Time));
    let rendering = (&options.rendering, Extent::default());
    deliver(&trend, rendering, (Kind::Comparison, Kind::TrendLines), || Ok(Otherwise::Text))
}

/// The levels of a result, with their strategies, where it names any.
fn levels(document: &Document) -> String {
    let mut names: Vec<String> = document
        .cells
        .iter()
        .map(|cell| match &cell.strategy {
            Some(strategy) => format!("{}+{strategy}", cell.level.name()),
            None => cell.level.name(),
        })
        .collect();
    names.dedup();
    names.join(", ")
}

/// Fails if B is worse than A.
fn judge_pair(pair: &Pair, limit: f64) -> Outcome {
    let regressions = pair.regressions(limit);
    for regression in &regressions {
        eprintln!("regression: {}: {}", regression.cell, regression.reason);
    }
    if !regressions.is_empty() {
        let cells = if regressions.len() == 1 { "one regression" } else { "regressions" };
        return Err(Failure::Broken(format!("{cells} from {} to {}; see above", pair.a.name, pair.b.name)));
    }
    let undecidable = pair.undecidable();
    if undecidable.len() == pair.cells.len() {
        return Err(Failure::setup(
            "--fail-on-regression: nothing can be said of any difference, because no cell has two complete rounds \
             in both results; measure with --rounds 3 or more",
        ));
    }
    for cell in undecidable {
        eprintln!(
            "warning: {cell}: fewer than two complete rounds in a result, so no difference can be a regression"
        );
    }
    Ok(())
}
