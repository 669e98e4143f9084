//! The list of the saved results, and their tags.
//!
//! Not here: how results are found, and the file of the tags (`saved.rs`); the table (`isobench_report`).

use std::time::Duration;

use isobench_comparison::{Failure, Outcome};
use isobench_report::overview;
use isobench_result::ResultRow;

use crate::latest::RESULT;
use crate::options::{RenderingOptions, ReportFormat, ReportOptions};
use crate::output::{self, is_stream, say, shown};
use crate::saved::{Saved, SavedResult, choose, tags};

/// Prints the list, as text or JSON.
///
/// # Errors
/// Another format is wanted, or a file for it; the output can't be written.
pub fn list(saved: &Saved, options: &RenderingOptions) -> Outcome {
    let is_json = match (&options.json, options.format) {
        (None, None | Some(ReportFormat::Text)) => false,
        (None, Some(ReportFormat::Json)) => true,
        (Some(path), None) if is_stream(path) => true,
        _ => {
            return Err(Failure::setup(
                "the list is text, or JSON (--json -); for other formats name a result",
            ));
        }
    };
    let row =
        |result: &SavedResult| ResultRow::of(&result.name, &result.tags, result.seconds(), &result.document);
    let rows: Vec<ResultRow> = saved.results.iter().map(row).collect();
    if is_json {
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

/// Gives a result tags.
///
/// # Errors
/// The result isn't there, or has no folder of its own; the tags can't be written.
pub fn tag(options: &ReportOptions) -> Outcome {
    for result in choose(&options.folder, &options.results)? {
        if !result.path.ends_with(RESULT) {
            let name = shown(&result.path);
            return Err(Failure::setup(format!("--tag: {name} is no {RESULT} in a folder of its own")));
        }
        let tags = tags::with(&tags::read(&result.path)?, &options.tag);
        tags::write(&result.path, &tags)?;
        say(&format!("{} has the tags: {}", result.name, tags.join(", ")));
    }
    Ok(())
}
