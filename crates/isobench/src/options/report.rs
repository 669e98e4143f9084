//! Options of `isobench report`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use isobench_plan::Requirement;
use isobench_result::figure::requirement;
use isobench_result::{Axis, Wanted};

use crate::latest;
use crate::saved::tags::tag;

/// Options of `isobench report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// The results [default: list those in --folder]
    ///
    /// One is shown again; the second of two is compared with the first; more are a series. Each is
    /// the path of a file or folder, or of --folder: latest, latest~N (the Nth before it), a name, or
    /// a tag that only one has. - is standard input.
    #[arg(id = "saved", value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = latest::FOLDER)]
    pub folder: PathBuf,
    /// Show this figure over the results, and where it changed; without RESULTs over all in --folder
    /// [default for three and more results: tps]
    ///
    /// [LEVEL.]METRIC[.low|.high] as for --require, such as tps or serializable.ratio.
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<Wanted>,
    /// Order a series by time, tag:KEY (tags KEY=VALUE), server-version or setting:NAME [default: time]
    #[arg(long, value_name = "AXIS")]
    pub by: Option<Axis>,
    /// Give the result this tag: a word, or KEY=VALUE, where a key has one value (repeatable)
    #[arg(long, value_name = "TAG", value_parser = tag)]
    pub tag: Vec<String>,
    /// Make a page of many servers, of the results in this folder and below it (*.json)
    ///
    /// The page is FOLDER/index.html, unless --html names another. A result that doesn't agree with
    /// itself is left out; then the status is 1.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["saved", "folder", "metric", "tag"])]
    pub servers: Option<PathBuf>,
    /// What is written, and where.
    #[command(flatten)]
    pub rendering: RenderingOptions,
    /// Write tables for other programs into this folder: rounds.csv, series.csv and, with
    /// --transactions, transactions.csv
    #[arg(long, value_name = "FOLDER")]
    pub tables: Option<PathBuf>,
    /// With --tables: also a row for every recorded transaction, from this recording, or those in
    /// this folder, of compare's --history (repeatable)
    #[arg(long, value_name = "FILE|FOLDER", requires = "tables")]
    pub transactions: Vec<PathBuf>,
    /// Print all details of one result as text, not only what fits on a screen
    #[arg(long)]
    pub details: bool,
    /// With --format text: all details, and what the columns of the table mean
    #[arg(long)]
    pub legend: bool,
    /// Exit with 4 unless this holds, such as 'anomalies == 0' (repeatable)
    ///
    /// [LEVEL.]METRIC[.low|.high] OP NUMBER, such as 'serializable.ratio.low >= 0.5'; without a level
    /// for every row.
    #[arg(long, value_name = "EXPRESSION", value_parser = requirement)]
    pub require: Vec<Requirement>,
    /// Of two results: exit with 3 if the second is slower than the first by more than this share
    ///
    /// And by more than noise: in transactions per second, or relative to the first level. Also if it
    /// breaks a promise that the first keeps, or lacks something that the first has.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_on_regression: Option<f64>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// What is written of one result or several, and where.
#[derive(Debug, Args)]
pub struct RenderingOptions {
    /// Write the report to this file as HTML; - is standard output [default of one result: report.html
    /// in its folder, for FILE.json FILE.html]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the result with recomputed summaries, the comparison or the series to this file as JSON;
    /// - is standard output, also for the list
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a line for each round (of two results for each cell, of a series for each result) to this
    /// file as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print in this format to standard output [default, unless a file is named or one result shown:
    /// text]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables and sentences for a terminal
    Text,
    /// GitHub-flavoured Markdown, for a comment on a pull request
    Markdown,
    /// A line for each round, cell or result, as --csv
    Csv,
    /// The same as --json
    Json,
    /// Of one result, Bencher Metric Format: all figures that --require knows, as JSON
    Bencher,
    /// Of one result, for github-action-benchmark's tool customBiggerIsBetter: the figures of which more
    /// is better, as JSON
    GithubActionBenchmark,
    /// The same for customSmallerIsBetter: the figures of which less is better
    GithubActionBenchmarkSmaller,
}

/// Parses "5%" (or "5") as 0.05.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    number
        .filter(|percent| (0.0..100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "use a percentage from 0 to less than 100, for example 5%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_percentages() {
        for (text, expected) in [("5%", 0.05), ("5", 0.05), ("2.5 %", 0.025), ("0", 0.0)] {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in ["", "%", "five", "100%", "-1", "nan", "inf"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
