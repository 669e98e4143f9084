//! `isobench report`: renders a saved result again, compares two, or shows a series. Doesn't need a
//! server.
//!
//! Not here: the renderings, and the definition of a regression (`isobench_result`); the files that
//! they are written to (`rendered`).

mod tables;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use isobench_report::Extent;
use isobench_result::{
    Document, Pair, compare_results, compare_series, concerns, judge, requirement_lines, summarise,
};

use self::tables::Tables;
use super::compare::requirements;
use super::rendered::{Otherwise, deliver, one_stream_of};
use crate::destination::Kind;
use crate::latest;
use crate::options::{RenderingOptions, ReportFormat, ReportOptions};
use crate::output::{extent, is_stream, shown};
use crate::saved;
use isobench_comparison::{Failure, Outcome};

/// Renders one result, compares two, or shows a series.
///
/// # Errors
/// Wrong options, a file that can't be read or isn't a result, output that can't be written; a
/// regression; a threshold that isn't kept.
pub fn report(options: &ReportOptions) -> Outcome {
    let paths = match options.files.as_slice() {
        [] => vec![latest::newest()?],
        files => files.to_vec(),
    };
    refuse(options, &paths)?;
    let results: Vec<Saved> = paths.iter().map(|path| Saved::read(path, options)).collect::<Outcome<_>>()?;
    match results.as_slice() {
        [one] => {
            let kinds = (Kind::Result, Kind::Lines);
            let tables = options.tables.as_deref();
            let tables = tables.map(|folder| Tables::new(folder, &options.transactions, &one.document));
            let tables = tables.transpose()?;
            let rendering = (&options.rendering, extent(options.legend, options.details));
            deliver(&one.document, rendering, kinds, || one.otherwise(options))?;
            tables.map_or(Ok(()), Tables::write)?;
            // Those that the result was measured with decided the status then.
            let own = if options.require.is_empty() { &[][..] } else { &one.document.requirements };
            if options.rendering.format != Some(ReportFormat::Text) {
                eprint!("{}", requirement_lines(own));
            }
            requirements(own)
        }
        [a, b] => {
            let named = [a, b].map(|result| (result.name(), &result.document));
            side_by_side(named, &options.rendering, options.fail_on_regression)
        }
        several => {
            let named: Vec<(String, &Document)> =
                several.iter().map(|result| (result.name(), &result.document)).collect();
            let trend = compare_series(&named).map_err(Failure::setup)?;
            deliver(
                &trend,
                (&options.rendering, Extent::default()),
                (Kind::Comparison, Kind::TrendLines),
                || Ok(Otherwise::Text),
            )
        }
    }
}

/// Compares the second of two results, each with its name, with the first.
///
/// # Errors
/// Their numbers don't mean the same; output that can't be written; a regression by more than `limit`.
pub fn side_by_side(
    [a, b]: [(String, &Document); 2],
    rendering: &RenderingOptions,
    limit: Option<f64>,
) -> Outcome {
    let pair = compare_results(a.1, b.1).map_err(Failure::setup)?.named(a.0, b.0);
    deliver(&pair, (rendering, Extent::default()), (Kind::Comparison, Kind::PairLines), || {
        Ok(Otherwise::Text)
    })?;
    limit.map_or(Ok(()), |limit| judge_pair(&pair, limit))
}

/// Refuses options that contradict one another.
fn refuse(options: &ReportOptions, paths: &[PathBuf]) -> Outcome {
    let format = options.rendering.format;
    let writes = one_stream_of(&options.rendering)? || options.tables.is_some();
    let from_stdin = paths.iter().filter(|path| is_stream(path)).count();
    let problem = match options {
        ReportOptions { legend: true, .. } if paths.len() != 1 || format != Some(ReportFormat::Text) => {
            "--legend explains the columns of one result as text; give one FILE, and --format text"
        }
        ReportOptions { details: true, .. }
            if paths.len() != 1 || format.is_some_and(|format| format != ReportFormat::Text) =>
        {
            "--details is of one result as text; give one FILE, and no other --format"
        }
        _ if from_stdin > 1 => "standard input can be read only once; name files for the other results",
        ReportOptions { fail_on_regression: Some(_), .. } if paths.len() != 2 => {
            "--fail-on-regression needs two results: isobench report OLD.json NEW.json"
        }
        ReportOptions { tables: Some(_), .. } if paths.len() != 1 => {
            "--tables is of one result; run isobench report once for each, with a folder of its own"
        }
        ReportOptions { require, .. } if paths.len() != 1 && !require.is_empty() => {
            "--require is about one result; run isobench report once for each"
        }
        _ if format.is_none() && paths.len() == 1 && from_stdin == 1 && !writes && !options.details => {
            "of a result from standard input, say where the report goes: --html FILE, or --format text"
        }
        _ => return Ok(()),
    };
    Err(Failure::setup(problem))
}

/// A result read from a file.
struct Saved {
    /// The file, or the folder with the result.
    given: PathBuf,
    path: PathBuf,
    document: Document,
}

/// The file of a result that is named as `isobench results` names it, unless there is a file or folder of
/// that name.
fn named(given: &Path) -> Outcome<PathBuf> {
    let folder = Path::new(latest::FOLDER);
    let word = given.to_str().filter(|word| !word.contains('/') && folder.is_dir() && !given.exists());
    let Some(word) = word else { return Ok(given.to_owned()) };
    Ok(saved::Saved::in_folder(folder)?.find(word)?.path.clone())
}

impl Saved {
    fn read(given: &Path, options: &ReportOptions) -> Outcome<Saved> {
        let path = if is_stream(given) { given.to_owned() } else { latest::result_in(&named(given)?)? };
        let mut document = if is_stream(&path) {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| Failure::setup(format!("could not read standard input: {error}")))?;
            saved::parse(&path, &bytes)?
        } else {
            saved::read(&path)?
        };
        summarise(&mut document);
        let unmatched = options.require.iter().find(|requirement| !concerns(&document, requirement));
        if let Some(requirement) = unmatched {
            return Err(Failure::setup(format!(
                "--require \"{requirement}\": {} has no such cell; its levels are {}",
                shown(&path),
                levels(&document)
            )));
        }
        let required = if options.require.is_empty() { document.plan.required() } else { &options.require };
        document.requirements = judge(&document, required);
        Ok(Saved { given: given.to_owned(), path, document })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// What is written where neither a file nor a format is named.
    fn otherwise(&self, options: &ReportOptions) -> Outcome<Otherwise> {
        if options.tables.is_some() {
            return Ok(Otherwise::Nothing);
        }
        if options.details {
            return Ok(Otherwise::Text);
        }
        let page = if self.given == self.path {
            self.path.with_extension("html")
        } else {
            self.path.with_file_name("report.html")
        };
        if page == self.path {
            return Err(overwritten(&page));
        }
        Ok(Otherwise::Page(page))
    }
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

fn overwritten(page: &Path) -> Failure {
    Failure::setup(format!(
        "{} would be overwritten by its report; say where that goes: --html FILE",
        shown(page)
    ))
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
