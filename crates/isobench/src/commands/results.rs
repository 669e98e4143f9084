//! `isobench results`: the results that are saved in a folder, listed, tagged, compared, removed.
//!
//! Not here: how they are found (`saved.rs`), the comparison (`report.rs`).

mod prune;

use std::time::Duration;

use isobench_comparison::{Failure, Outcome};
use isobench_report::overview;
use isobench_result::ResultRow;

use super::rendered::one_stream_of;
use super::report::side_by_side;
use crate::options::{CompareResultsOptions, ListOptions, ResultsCommand, ResultsOptions, TagOptions};
use crate::output::{self, say};
use crate::saved::{Saved, SavedResult, tags};

/// Carries out a command on the results of a folder.
///
/// # Errors
/// A folder or a result that can't be read; a name or a tag that means none; a regression; a file that
/// can't be written or removed.
pub fn results(options: &ResultsOptions) -> Outcome {
    let folder = &options.folder;
    match &options.command {
        None => list(&Saved::in_folder(folder)?, &ListOptions::default()),
        Some(ResultsCommand::List(options)) => list(&Saved::in_folder(folder)?, options),
        Some(ResultsCommand::Tag(options)) => tag(&Saved::in_folder(folder)?, options),
        Some(ResultsCommand::Untag(options)) => untag(&Saved::in_folder(folder)?, options),
        Some(ResultsCommand::Compare(options)) => compare(&Saved::in_folder(folder)?, options),
        Some(ResultsCommand::Prune(options)) => prune::prune(folder, options),
    }
}

fn list(saved: &Saved, options: &ListOptions) -> Outcome {
    for why in &saved.unreadable {
        say(&format!("warning: left out: {why}"));
    }
    let row =
        |result: &SavedResult| ResultRow::of(&result.name, &result.tags, result.seconds(), &result.document);
    let rows: Vec<ResultRow> = saved.results.iter().map(row).collect();
    if options.json {
        // Plain data can always be written.
        return output::print(&(serde_json::to_string_pretty(&rows).unwrap_or_default() + "\n"));
    }
    if rows.is_empty() {
        say("There is no result in this folder; isobench compare makes one.");
        return Ok(());
    }
    let took = |seconds| humantime::format_duration(Duration::from_secs(seconds)).to_string();
    output::print(&overview(&rows, output::width(), took))
}

fn tag(saved: &Saved, options: &TagOptions) -> Outcome {
    let result = saved.find(&options.result)?;
    tags::write(&result.path, &tags::with(&result.tags, &options.tags))
}

fn untag(saved: &Saved, options: &TagOptions) -> Outcome {
    let result = saved.find(&options.result)?;
    if let Some(missing) = options.tags.iter().find(|tag| !result.tags.contains(tag)) {
        let has = if result.tags.is_empty() { "none".to_owned() } else { result.tags.join(", ") };
        let why = format!("{} has no tag \"{missing}\"; it has {has}", result.name);
        return Err(Failure::setup(why));
    }
    let rest: Vec<String> = result.tags.iter().filter(|tag| !options.tags.contains(tag)).cloned().collect();
    tags::write(&result.path, &rest)
}

fn compare(saved: &Saved, options: &CompareResultsOptions) -> Outcome {
    one_stream_of(&options.rendering)?;
    let (a, b) = (saved.find_or_read(&options.a)?, saved.find_or_read(&options.b)?);
    let named = [(a.name, &a.document), (b.name, &b.document)];
    side_by_side(named, &options.rendering, options.fail_on_regression)
}
