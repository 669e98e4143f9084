//! `isobench report`: renders a saved result again, or compares two. Doesn't need a server.
//!
//! Not here: the renderings, and the definition of a regression (`isobench_report`).

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use isobench_report::{Document, Pair, Terminal, compare_results, summarise, to_csv, to_html, to_markdown};

use crate::destination::{Kind, check_file};
use crate::options::{ReportFormat, ReportOptions};
use crate::output::{self, is_stream, shown};
use isobench_comparison::{Failure, Outcome};

/// Renders one result, or compares two.
///
/// # Errors
/// Wrong options, a file that can't be read or isn't a result, output that can't be written; a
/// regression.
pub fn report(options: &ReportOptions) -> Outcome {
    refuse(options)?;
    let results: Vec<Saved> = options.files.iter().map(|path| Saved::read(path)).collect::<Outcome<_>>()?;
    match results.as_slice() {
        [a, b] => two(a, b, options),
        rest => rest.iter().try_for_each(|result| one(result, options)),
    }
}

/// Refuses options that contradict one another.
fn refuse(options: &ReportOptions) -> Outcome {
    let problem = match (options.files.len(), options) {
        (3.., _) => "at most two results can be compared; run isobench report once for each pair",
        (_, ReportOptions { legend: true, format, .. })
            if options.files.len() == 2 || !matches!(format, Some(ReportFormat::Text)) =>
        {
            "--legend explains the columns of one result as text; give one FILE, and --format text"
        }
        (1, ReportOptions { fail_on_regression: Some(_), .. }) => {
            "--fail-on-regression needs two results: isobench report OLD.json NEW.json"
        }
        (2, ReportOptions { html: Some(_), .. }) => {
            "--html: there is an HTML report of one result only; give one FILE, or use --format markdown for two"
        }
        (2, ReportOptions { files, .. }) if files.iter().all(|file| is_stream(file)) => {
            "standard input can be read only once; name a file for one of the two results"
        }
        (1, ReportOptions { html: Some(html), format: Some(_), .. }) if is_stream(html) => {
            "--html - and --format both write to standard output; name a file for the HTML, or leave out --format"
        }
        (1, ReportOptions { html: None, format: None, files, .. }) if is_stream(&files[0]) => {
            "of a result from standard input, say where the report goes: --html FILE, or --format text"
        }
        _ => return Ok(()),
    };
    Err(Failure::setup(problem))
}

/// A result read from a file.
struct Saved {
    path: PathBuf,
    document: Document,
}

impl Saved {
    fn read(path: &Path) -> Outcome<Saved> {
        let bytes = if is_stream(path) {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            fs::read(path)
        };
        let bytes =
            bytes.map_err(|error| Failure::setup(format!("could not read {}: {error}", shown(path))))?;
        let mut document = Document::from_json(&bytes)
            .map_err(|error| Failure::setup(format!("{}: {error}", shown(path))))?;
        summarise(&mut document);
        Ok(Saved { path: path.to_owned(), document })
    }
}

fn one(result: &Saved, options: &ReportOptions) -> Outcome {
    let document = &result.document;
    if let Some(format) = options.format {
        match format {
            ReportFormat::Text => {
                let terminal = Terminal { width: output::width(), legend: options.legend };
                output::print_report("", &terminal.render(document), "")
            }
            ReportFormat::Markdown => output::print(&to_markdown(document)),
            ReportFormat::Csv => output::print(&to_csv(document)),
            ReportFormat::Json => output::print(&document.to_json()),
        }?;
    }
    let page = match &options.html {
        Some(path) if is_stream(path) => return output::print(&to_html(document)),
        Some(path) => path.clone(),
        None if options.format.is_some() => return Ok(()),
        None => result.path.with_extension("html"),
    };
    if page == result.path {
        return Err(Failure::setup(format!(
            "{} would be overwritten by its report; say where that goes: --html FILE",
            shown(&page)
        )));
    }
    check_file("--html", &page, Kind::Page)?;
    output::save(&page, &to_html(document))?;
    eprintln!("the report is in {}", shown(&page));
    Ok(())
}

fn two(a: &Saved, b: &Saved, options: &ReportOptions) -> Outcome {
    let pair = compare_results(&a.document, &b.document).map_err(Failure::setup)?;
    let pair = pair.named(a.path.display().to_string(), b.path.display().to_string());
    output::print(&match options.format.unwrap_or(ReportFormat::Text) {
        ReportFormat::Text => pair.to_text(output::width()),
        ReportFormat::Markdown => pair.to_markdown(),
        ReportFormat::Csv => pair.to_csv(),
        ReportFormat::Json => pair.to_json(),
    })?;
    options.fail_on_regression.map_or(Ok(()), |limit| judge(&pair, limit))
}

/// Fails if B is worse than A.
fn judge(pair: &Pair, limit: f64) -> Outcome {
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
