//! `isobench check`: the verdict on a recorded history from any source.
//!
//! Not here: opening and parsing files (`check/input.rs`), and several machines (`check/together.rs`).

mod input;
mod together;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isobench_isolation::check::{
    self, CheckedRecording, Report, check as check_history, check_recording, graph, render,
};
use isobench_isolation::history::elle::Unwritable;
use isobench_isolation::{Finding, History, history};
use isobench_result::Verdict;
use serde::Serialize;

use crate::options::{CheckOptions, Conversion};
use crate::output::{self, is_stream, shown};
use input::{Input, Opened, failure};
use isobench_comparison::{Failure, Outcome};

/// Checks each file, and prints the reports.
///
/// # Errors
/// Wrong options, a file that can't be read or isn't a history, output that can't be written, a
/// broken promise, a verdict that is withheld.
pub fn check(options: &CheckOptions) -> Outcome {
    let aloud = refuse(options)?;
    if options.machines.any() || options.machines.rank.is_some() {
        return together::check(options, aloud);
    }
    let mut all = Results::default();
    for path in &options.files {
        let input = Input::open(path, options)?;
        all.add(path, carry_out(input, options)?, options, aloud)?;
    }
    all.end(options)
}

/// What was found of all histories.
#[derive(Default)]
struct Results {
    histories: Vec<FileResult>,
    graphs: String,
    broken: Vec<String>,
    withheld: Vec<String>,
    /// Why a report couldn't be printed.
    unprinted: Option<Failure>,
}

impl Results {
    /// Shows a history that was checked.
    fn add(&mut self, path: &Path, checked: Checked, options: &CheckOptions, aloud: bool) -> Outcome {
        let Results { histories, graphs, broken, withheld, unprinted } = self;
        if let Some(problem) = &checked.problem {
            eprintln!("warning: {}: {problem}", shown(path));
        }
        if aloud {
            let heading =
                if options.files.len() > 1 { heading(path, histories.is_empty()) } else { String::new() };
            let printed = output::print(&(heading + &render(&checked.report)));
            // The other files are still checked, and what was asked for is written.
            *unprinted = unprinted.take().or(printed.err());
        }
        for finding in &checked.report.findings {
            *graphs += &graph::dot(&checked.witnesses, finding);
            if let Some(folder) = &options.svg {
                draw(folder, path, &checked.witnesses, finding)?;
            }
        }
        if checked.report.verdict.kept == Some(false) {
            broken.push(contradiction(&shown(path), &checked.report));
        }
        if let Some(doubt) = checked.report.verdict.withheld.first() {
            withheld.push(format!("{}: {doubt}", shown(path)));
        }
        histories.push(checked.into_result(path));
        Ok(())
    }

    /// Writes the files that were asked for.
    fn end(self, options: &CheckOptions) -> Outcome {
        let Results { histories, graphs, broken, withheld, unprinted } = self;
        if let Some(path) = &options.json {
            let document = Document { format: "isobench/check", format_version: 1, histories };
            let text = serde_json::to_string_pretty(&document)
                .map_err(|error| Failure::Output(error.to_string()))?;
            deliver(path, &(text + "\n"))?;
        }
        if let Some(path) = &options.dot {
            deliver(path, &graphs)?;
        }
        if !broken.is_empty() {
            return Err(Failure::Broken(broken.join("; ")));
        }
        if let Some(failure) = unprinted {
            return Err(failure);
        }
        withheld.first().map_or(Ok(()), |doubt| Err(Failure::withheld(doubt)))
    }
}

/// A clause about a broken promise.
fn contradiction(file: &str, report: &Report) -> String {
    match report.verdict.promised {
        Some(promised) => format!("{file} contradicts what was promised: {promised}"),
        None => format!("{file} contradicts what its transactions' own levels promise"),
    }
}

/// Refuses options that exclude each other. Returns whether reports are printed: nothing else goes
/// to standard output.
fn refuse(options: &CheckOptions) -> Outcome<bool> {
    let convert = options.convert.as_ref().map(|conversion| &conversion.path);
    let outputs = [options.json.as_ref(), options.dot.as_ref(), convert];
    let to_stdout = outputs.into_iter().flatten().filter(|path| is_stream(path)).count();
    if to_stdout > 1 {
        return Err(Failure::setup("only one of --json, --dot and --convert can write to standard output"));
    }
    if options.files.iter().filter(|path| is_stream(path)).count() > 1 {
        return Err(Failure::setup("standard input can be read only once"));
    }
    if options.convert.is_some() && options.files.len() > 1 {
        return Err(Failure::setup("--convert takes one history"));
    }
    if let Some(promised) = options.promised
        && promised.order > options.order
    {
        return Err(Failure::setup(format!(
            "--order {} doesn't look at what \"{promised}\" promises",
            options.order.name().replace(' ', "-")
        )));
    }
    Ok(to_stdout == 0)
}

/// A history that was checked.
struct Checked {
    format: history::Format,
    report: Report,
    /// The history to which the report's witnesses belong.
    witnesses: History,
    /// The reason why the file is incomplete, if it is.
    problem: Option<String>,
    took: Duration,
}

/// What is asked of a history.
fn asked(options: &CheckOptions) -> check::Options {
    check::Options {
        promised: options.promised,
        levels: Some(options.server.promises),
        order: options.order,
        vouched: options.complete,
        ..check::Options::default()
    }
}

fn carry_out(input: Input, options: &CheckOptions) -> Outcome<Checked> {
    let ask = asked(options);
    let Input { name, format, opened, problem } = input;
    if let (Opened::Whole(history), Some(conversion)) = (&opened, &options.convert) {
        convert(history, conversion)?;
    }
    let began = Instant::now();
    let (witnesses, report, problem) = match opened {
        Opened::Recording(recording) => {
            let checked = check_recording(recording, options.partial, &ask);
            let CheckedRecording { report, witnesses, problem } =
                checked.map_err(|error| failure(&name, &error, options))?;
            (witnesses, report, problem.map(|problem| problem.to_string()))
        }
        Opened::Whole(history) => {
            let report = check_history(&history, &ask);
            (history, report, problem)
        }
    };
    Ok(Checked { format, report, witnesses, problem, took: began.elapsed() })
}

fn heading(path: &Path, first: bool) -> String {
    let name = shown(path);
    let gap = if first { "" } else { "\n" };
    format!("{gap}{name}\n{}\n", "═".repeat(name.chars().count()))
}

/// Writes the drawing of an example into a folder.
fn draw(folder: &Path, path: &Path, witnesses: &History, finding: &Finding) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::Output(format!("--svg: could not make the folder \"{}\": {error}", folder.display()))
    })?;
    let stem = path.file_stem().filter(|_| !is_stream(path)).unwrap_or("history".as_ref()).to_string_lossy();
    let name = finding.anomaly.facts().name.to_lowercase();
    let name = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let file = folder.join(format!("{stem}-{}.svg", name.trim_end_matches('-')));
    output::save(&file, &graph::svg(witnesses, finding))
}

/// Writes a text to a file, or to standard output.
fn deliver(path: &Path, text: &str) -> Outcome {
    if is_stream(path) { output::print(text) } else { output::save(path, text) }
}

/// Writes a history in another format.
fn convert(history: &History, Conversion { format, path }: &Conversion) -> Outcome {
    let failure = |error| match error {
        Unwritable::Io(error) if is_stream(path) => output::unwritten(error),
        Unwritable::Io(error) => Failure::Output(format!("could not write {}: {error}", shown(path))),
        error @ (Unwritable::Inexpressible { .. } | Unwritable::Initial) => {
            Failure::setup(format!("--convert: {error}"))
        }
    };
    // A dry run first, so that no half-written history is left.
    format.write(history, io::sink()).map_err(failure)?;
    if is_stream(path) {
        let stdout = output::stdout().map_err(|error| failure(error.into()))?;
        return format.write(history, BufWriter::new(stdout)).map_err(failure);
    }
    let file = File::create(path).map_err(|error| failure(error.into()))?;
    format.write(history, BufWriter::with_capacity(1 << 20, file)).map_err(failure)
}

/// The document that `--json` writes.
#[derive(Serialize)]
struct Document {
    format: &'static str,
    format_version: u32,
    histories: Vec<FileResult>,
}

/// The result of one file.
#[derive(Serialize)]
struct FileResult {
    file: PathBuf,
    history_format: &'static str,
    dropped: u64,
    verdict: Verdict,
}

impl Checked {
    fn into_result(self, path: &Path) -> FileResult {
        let mut verdict = Verdict::new(&self.witnesses, &self.report, self.took);
        verdict.blind.extend(self.problem);
        FileResult {
            file: path.to_owned(),
            history_format: self.format.name(),
            dropped: self.witnesses.dropped(),
            verdict,
        }
    }
}
