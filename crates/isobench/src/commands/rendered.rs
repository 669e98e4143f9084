//! What is made of saved results, one or several: every format, to standard output or a file.
//!
//! Not here: which results, and what the formats look like (`isobench_report`).

use std::path::PathBuf;

use clap::ValueEnum as _;
use isobench_comparison::{Failure, Outcome};
use isobench_report::{
    Extent, Layouts as _, to_bencher, to_csv, to_github_action_benchmark, to_html, to_markdown,
};
use isobench_result::{Document, Pair, Trend, requirement_lines};

use crate::destination::{Kind, check_file, one_stream};
use crate::options::{RenderingOptions, ReportFormat};
use crate::output::{self, is_stream, shown};

/// Something that can be rendered in every format.
pub trait Rendered {
    /// Prints it for a terminal.
    fn print(&self, extent: Extent) -> Outcome;
    fn markdown(&self) -> String;
    fn csv(&self) -> String;
    fn json(&self) -> String;
    fn html(&self) -> String;

    /// It in a format of one result.
    fn tracked(&self, format: ReportFormat) -> Outcome<String> {
        Err(Failure::setup(format!("--format {}: it is of one result", named(format))))
    }
}

fn named(format: ReportFormat) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Rendered for Document {
    fn print(&self, extent: Extent) -> Outcome {
        output::print_report(
            "",
            &output::terminal(extent).render(self),
            &requirement_lines(&self.requirements),
            false,
        )
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

    fn tracked(&self, format: ReportFormat) -> Outcome<String> {
        if !self.complete {
            let why = "the result is incomplete, and services that keep results have no mark for that";
            return Err(Failure::setup(format!("--format {}: {why}", named(format))));
        }
        Ok(match format {
            ReportFormat::Bencher => to_bencher(self),
            _ => to_github_action_benchmark(self, format == ReportFormat::GithubActionBenchmark),
        })
    }
}

/// The renderings of what compares several results.
macro_rules! rendered_by_methods {
    ($($kind:ty),+) => {$(
        impl Rendered for $kind {
            fn print(&self, _: Extent) -> Outcome {
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

/// What is written where neither a file nor a format is named.
pub enum Otherwise {
    /// Text, to standard output.
    Text,
    /// A page, to this file.
    Page(PathBuf),
    /// Nothing, since something else is written.
    Nothing,
}

/// Checks that at most one text goes to standard output. Returns whether a file is named.
///
/// # Errors
/// Several texts would.
pub fn one_stream_of(options: &RenderingOptions) -> Outcome<bool> {
    let named = [("--html", &options.html), ("--json", &options.json), ("--csv", &options.csv)];
    let takes_stdout = one_stream(&named)?;
    if takes_stdout && options.format.is_some() {
        return Err(Failure::setup(
            "--format writes to standard output, and so does an option that is given -; name a file for that, or \
             leave out --format",
        ));
    }
    Ok(named.iter().any(|(_, path)| path.is_some()))
}

/// Prints in the format asked for, and writes the files that are named; without either what
/// `otherwise` says. `kinds` are those of the JSON and of the CSV.
///
/// # Errors
/// A format that isn't of this; output that can't be written.
pub fn deliver(
    what: &dyn Rendered,
    (options, extent): (&RenderingOptions, Extent),
    (json, csv): (Kind, Kind),
    otherwise: impl FnOnce() -> Outcome<Otherwise>,
) -> Outcome {
    let files = [
        ("--html", &options.html, Kind::Page),
        ("--json", &options.json, json),
        ("--csv", &options.csv, csv),
    ];
    let is_named = options.format.is_some() || files.iter().any(|(_, path, _)| path.is_some());
    let (page, otherwise) = match (is_named, otherwise) {
        (true, _) => (None, None),
        (false, otherwise) => match otherwise()? {
            Otherwise::Text => (None, Some(ReportFormat::Text)),
            Otherwise::Page(page) => (Some(page), None),
            Otherwise::Nothing => (None, None),
        },
    };
    let all = files.into_iter().filter_map(|(option, path, kind)| Some((option, path.as_deref()?, kind)));
    let all: Vec<_> = all.chain(page.as_deref().map(|page| ("--html", page, Kind::Page))).collect();
    for (option, path, kind) in &all {
        check_file(option, path, *kind)?;
    }
    let format = options.format.or(otherwise);
    let printed = match format {
        None => Ok(()),
        Some(ReportFormat::Text) => what.print(extent),
        Some(ReportFormat::Markdown) => output::print(&what.markdown()),
        Some(ReportFormat::Csv) => output::print(&what.csv()),
        Some(ReportFormat::Json) => output::print(&what.json()),
        Some(tracked) => output::print(&what.tracked(tracked)?),
    };
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
    printed
}
