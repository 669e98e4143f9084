//! Options of `isobench report`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

/// Options of `isobench report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Results, as --json writes them: one to render it again, two to compare the second with the
    /// first; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the report on one result to this file; - is standard output [default: FILE with .html
    /// instead of .json]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print in this format to standard output [default with two results: text]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// With --format text: explain the columns of the table
    #[arg(long)]
    pub legend: bool,
    /// Of two results: exit with status 3 if the second commits less per second than the first by
    /// more than this share, and by more than noise, breaks a promise that the first keeps, or
    /// lacks something that the first has
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_on_regression: Option<f64>,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables and sentences for a terminal
    Text,
    /// GitHub-flavoured Markdown, for a comment on a pull request
    Markdown,
    /// A line for each round (of two results, for each cell)
    Csv,
    /// The result with its summaries computed anew (of two results, their comparison)
    Json,
}

/// Parses "5%" (or "5") as 0.05.
fn share(text: &str) -> Result<f64, String> {
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
