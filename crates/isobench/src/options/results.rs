//! Options of `isobench results`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};

use super::RenderingOptions;
use super::report::share;
use crate::latest;
use crate::saved::tags::tag;

/// Options of `isobench results`.
#[derive(Debug, Args)]
#[command(infer_subcommands = true, disable_help_subcommand = true)]
pub struct ResultsOptions {
    /// The command.
    #[command(subcommand)]
    pub command: Option<ResultsCommand>,
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", global = true, default_value = latest::FOLDER)]
    pub folder: PathBuf,
    /// Print help
    #[arg(short = '?', action = ArgAction::Help, hide = true)]
    help_as_in_pgbench: Option<bool>,
}

/// What is done with the results.
#[derive(Debug, Subcommand)]
pub enum ResultsCommand {
    /// List them, the oldest first [default]
    List(ListOptions),
    /// Give a result tags: words, or KEY=VALUE
    Tag(TagOptions),
    /// Take tags away from a result
    Untag(TagOptions),
    /// Compare the second of two results with the first, as isobench report does
    Compare(CompareResultsOptions),
    /// Show what old results could be removed, or with --yes remove them
    Prune(PruneOptions),
}

/// Options of `isobench results list`.
#[derive(Debug, Default, Args)]
pub struct ListOptions {
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `isobench results tag` and `untag`.
#[derive(Debug, Args)]
pub struct TagOptions {
    /// The result: its name, a tag that only it has, latest, or latest~N
    // The place is said because completing changes the argument, which puts it behind the other one.
    #[arg(value_name = "RESULT", index = 1)]
    pub result: String,
    /// The tags, such as nightly or commit=4f2a; a key has one value
    #[arg(value_name = "TAG", index = 2, required = true, value_parser = tag)]
    pub tags: Vec<String>,
}

/// Options of `isobench results compare`.
#[derive(Debug, Args)]
pub struct CompareResultsOptions {
    /// The result to compare with: its name, a tag that only it has, latest, latest~N, or a path
    #[arg(value_name = "A")]
    pub a: String,
    /// The result that is compared
    #[arg(value_name = "B")]
    pub b: String,
    /// What is written, and where.
    #[command(flatten)]
    pub rendering: RenderingOptions,
    /// Exit with status 3 if B commits less per second than A by more than this share and more than
    /// noise, or breaks a promise that A keeps; as for isobench report
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_on_regression: Option<f64>,
}

/// Options of `isobench results prune`.
#[derive(Debug, Args)]
pub struct PruneOptions {
    /// Keep this many of the newest results; the newest one stays in any case
    #[arg(long, value_name = "NUMBER", required_unless_present = "older_than")]
    pub keep: Option<usize>,
    /// Keep results that were measured less than this time ago, such as 30d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub older_than: Option<Duration>,
    /// Remove what is listed; without this nothing is
    #[arg(long)]
    pub yes: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; use a time such as 30d or 12h"))
}
