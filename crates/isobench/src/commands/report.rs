//! `isobench report`: renders a saved result again, compares two, or shows a series. Doesn't need a
//! server.
//!
//! Not here: the renderings, and the definition of a regression (`isobench_report`).

mod tables;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use isobench_report::{
    Document, Pair, Terminal, Trend, compare_results, compare_series, concerns, judge, requirement_lines,
    summarise, to_csv, to_html, to_markdown,
};

use self::tables::Tables;
use super::compare::requirements;
use crate::destination::{Kind, check_file, one_stream};
use crate::latest;
use crate::options::{ReportFormat, ReportOptions};
use crate::output::{self, is_stream, shown};
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
            let tables = options.parquet.as_deref();
            let tables = tables.map(|folder| Tables::new(folder, &options.transactions, &one.document));
            let tables = tables.transpose()?;
            deliver(&one.document, options, kinds, || one.default_page(options))?;
            tables.map_or(Ok(()), Tables::write)?;
            // Those that the result was measured with decided the status then.
            let own = if options.require.is_empty() { &[][..] } else { &one.document.requirements };
            if options.format != Some(ReportFormat::Text) {
                eprint!("{}", requirement_lines(own));
            }
            requirements(own)
        }
        [a, b] => {
            let pair = compare_results(&a.document, &b.document).map_err(Failure::setup)?;
            let pair = pair.named(a.name(), b.name());
            deliver(&pair, options, (Kind::Comparison, Kind::PairLines), || Ok(None))?;
            options.fail_on_regression.map_or(Ok(()), |limit| judge_pair(&pair, limit))
        }
        several => {
            let named: Vec<(String, &Document)> =
                several.iter().map(|result| (result.name(), &result.document)).collect();
            let trend = compare_series(&named).map_err(Failure::setup)?;
            deliver(&trend, options, (Kind::Comparison, Kind::TrendLines), || Ok(None))
        }
    }
}

/// Refuses options that contradict one another.
fn refuse(options: &ReportOptions, paths: &[PathBuf]) -> Outcome {
    let named = [("--html", &options.html), ("--json", &options.json), ("--csv", &options.csv)];
    let takes_stdout = one_stream(&named)?;
    let writes = options.parquet.is_some() || named.iter().any(|(_, path)| path.is_some());
    let from_stdin = paths.iter().filter(|path| is_stream(path)).count();
    let problem = match options {
        ReportOptions { legend: true, format, .. }
            if paths.len() != 1 || !matches!(format, Some(ReportFormat::Text)) =>
        {
            "--legend explains the columns of one result as text; give one FILE, and --format text"
        }
        _ if from_stdin > 1 => "standard input can be read only once; name files for the other results",
        ReportOptions { fail_on_regression: Some(_), .. } if paths.len() != 2 => {
            "--fail-on-regression needs two results: isobench report OLD.json NEW.json"
        }
        ReportOptions { parquet: Some(_), .. } if paths.len() != 1 => {
            "--parquet is of one result; run isobench report once for each, with a folder of its own"
        }
        ReportOptions { require, .. } if paths.len() != 1 && !require.is_empty() => {
            "--require is about one result; run isobench report once for each"
        }
        ReportOptions { format: Some(_), .. } if takes_stdout => {
            "--format writes to standard output, and so does an option that is given -; name a file for that, or \
             leave out --format"
        }
        ReportOptions { format: None, .. } if paths.len() == 1 && from_stdin == 1 && !writes => {
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

impl Saved {
    fn read(given: &Path, options: &ReportOptions) -> Outcome<Saved> {
        let path = if is_stream(given) { given.to_owned() } else { latest::result_in(given)? };
        let bytes = if is_stream(&path) {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(&path)
        };
        let bytes =
            bytes.map_err(|error| Failure::setup(format!("could not read {}: {error}", shown(&path))))?;
        let mut document = Document::from_json(&bytes)
            .map_err(|error| Failure::setup(format!("{}: {error}", shown(&path))))?;
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

    /// The page that is written where no output is named.
    fn default_page(&self, options: &ReportOptions) -> Outcome<Option<PathBuf>> {
        if options.format.is_some() {
            return Ok(None);
        }
        let page = if self.given == self.path {
            self.path.with_extension("html")
        } else {
            self.path.with_file_name("report.html")
        };
        if page == self.path {
            return Err(overwritten(&page));
        }
        Ok(Some(page))
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

/// Something that can be rendered in every format.
trait Rendered {
    /// Prints it for a terminal.
    fn print(&self, options: &ReportOptions) -> Outcome;
    fn markdown(&self) -> String;
    fn csv(&self) -> String;
    fn json(&self) -> String;
    fn html(&self) -> String;
}

impl Rendered for Document {
    fn print(&self, options: &ReportOptions) -> Outcome {
        let terminal = Terminal { width: output::width(), legend: options.legend };
        output::print_report("", &terminal.render(self), &requirement_lines(&self.requirements), false)
    }

    fn markdown(&self) -> String {
        to_markdown(self)
    }

    fn csv(&self) -> String {
        to_csv(self)
    }

    fn json(&self) -> String {
        self.to_json()
    }

    fn html(&self) -> String {
        to_html(self)
    }
}

/// The renderings of what compares several results.
macro_rules! rendered_by_methods {
    ($($kind:ty),+) => {$(
        impl Rendered for $kind {
            fn print(&self, _: &ReportOptions) -> Outcome {
                output::print(&self.to_text(output::width()))
            }

            fn markdown(&self) -> String {
                self.to_markdown()
            }

            fn csv(&self) -> String {
                self.to_csv()
            }

            fn json(&self) -> String {
                self.to_json()
            }

            fn html(&self) -> String {
                self.to_html()
            }
        }
    )+};
}

rendered_by_methods!(Pair, Trend);

/// Prints in the format asked for, and writes the files that are named; without either the default
/// page, or if there is none text. `kinds` are those of the JSON and of the CSV.
fn deliver(
    what: &dyn Rendered,
    options: &ReportOptions,
    (json, csv): (Kind, Kind),
    default_page: impl FnOnce() -> Outcome<Option<PathBuf>>,
) -> Outcome {
    let files = [
        ("--html", &options.html, Kind::Page),
        ("--json", &options.json, json),
        ("--csv", &options.csv, csv),
    ];
    let any = options.parquet.is_some() || files.iter().any(|(_, path, _)| path.is_some());
    let page = if any { None } else { default_page()? };
    let all = files.into_iter().filter_map(|(option, path, kind)| Some((option, path.as_deref()?, kind)));
    let all: Vec<_> = all.chain(page.as_deref().map(|page| ("--html", page, Kind::Page))).collect();
    for (option, path, kind) in &all {
        check_file(option, path, *kind)?;
    }
    let format = options.format.or_else(|| (all.is_empty() && !any).then_some(ReportFormat::Text));
    match format {
        None => {}
        Some(ReportFormat::Text) => what.print(options)?,
        Some(ReportFormat::Markdown) => output::print(&what.markdown())?,
        Some(ReportFormat::Csv) => output::print(&what.csv())?,
        Some(ReportFormat::Json) => output::print(&what.json())?,
    }
    for (option, path, _) in all {
        let text = match option {
            "--json" => what.json(),
            "--csv" => what.csv(),
            _ => what.html(),
        };
        output::save(path, &text)?;
        if option == "--html" && !is_stream(path) {
            eprintln!("the report is in {}", shown(path));
        }
    }
    Ok(())
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
