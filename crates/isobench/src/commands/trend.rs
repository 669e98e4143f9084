//! `isobench trend`: one figure over many saved results, with its change points.
//!
//! Not here: series and statistics (`isobench_result`), how results are found (`saved.rs`).

use std::path::Path;

use isobench_comparison::Outcome;
use isobench_report::Extent;
use isobench_result::{TrendResult, metric_trend};

use super::rendered::{Otherwise, deliver, one_stream_of};
use crate::destination::Kind;
use crate::options::TrendOptions;
use crate::saved::{Saved, SavedResult};

/// Shows the trend.
///
/// # Errors
/// A result that can't be read or isn't there; output that can't be written.
pub fn trend(options: &TrendOptions) -> Outcome {
    one_stream_of(&options.rendering)?;
    let results = results(&options.folder, &options.named)?;
    let results: Vec<TrendResult> = results
        .iter()
        .map(|result| TrendResult { name: &result.name, tags: &result.tags, document: &result.document })
        .collect();
    let trend = metric_trend(&results, &options.metric, &options.by);
    deliver(
        &trend,
        (&options.rendering, Extent::default()),
        (Kind::Comparison, Kind::MetricTrendLines),
        || Ok(Otherwise::Text),
    )
}

/// The results that are named, or all in the folder.
fn results(folder: &Path, words: &[String]) -> Outcome<Vec<SavedResult>> {
    let is_path = |word: &String| word.contains('/') || Path::new(word).is_file();
    // Of paths alone, no folder is needed.
    let saved = if !words.is_empty() && words.iter().all(is_path) {
        Saved::default()
    } else {
        Saved::in_folder(folder)?
    };
    for why in &saved.unreadable {
        eprintln!("warning: left out: {why}");
    }
    if words.is_empty() {
        return Ok(saved.results);
    }
    words.iter().map(|word| saved.find_or_read(word)).collect()
}
