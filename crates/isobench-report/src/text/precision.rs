//! The precision of the comparison, below the table: the noise of the machine, what a finer ratio
//! would need, the highest rates.
//!
//! Not here: how any of it is computed.

use isobench_result::answer::factors;
use isobench_result::document::{Cell, Document, IntervalSource, SweepResult};
use isobench_result::numbers::{counted, percent, short};
use isobench_result::summarise::finer;
use isobench_result::words::capital;

/// The paragraphs, not wrapped.
pub fn paragraphs(document: &Document) -> Vec<String> {
    let mut paragraphs: Vec<String> = document
        .cells
        .iter()
        .filter(|cell| cell.calibration)
        .filter_map(|cell| noise(document, cell))
        .collect();
    let single =
        |cell: &Cell| cell.summary.tps.source == IntervalSource::Batches && cell.summary.tps.low.is_some();
    if document.cells.iter().any(single) {
        paragraphs.push(
            "Intervals come from the time series of a single round (batch means) and leave out how much rounds \
             differ; use more rounds (--rounds)."
                .to_owned(),
        );
    }
    paragraphs.extend(resolution(document).or_else(|| finer(document).map(|finer| finer.sentence())));
    paragraphs.extend(sweeps(document));
    paragraphs
}

/// What a search for the highest rate found, a sentence each.
pub fn sweeps(document: &Document) -> Vec<String> {
    document.sweeps.iter().map(sweep).collect()
}

/// The precision in one sentence, or why there is none.
pub fn briefly(document: &Document) -> Option<String> {
    if document.cells.iter().all(|cell| cell.summary.tps.low.is_none()) {
        return Some("No intervals: they need three complete rounds.".to_owned());
    }
    let finer = || finer(document).map(|finer| finer.sentence());
    let sentence = resolution(document).or_else(finer)?;
    let bare = sentence.strip_prefix("Precision: ").or(sentence.strip_prefix("Resolution: "));
    Some(capital(bare.unwrap_or(&sentence)))
}

/// The noise that the A/A cell shows.
fn noise(document: &Document, cell: &Cell) -> Option<String> {
    let ratio = cell.summary.ratio.as_ref()?;
    let factors = factors(document, cell);
    let place = if factors.is_empty() { String::new() } else { format!(" ({factors})") };
    let level = cell.level.name();
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        return Some(format!(
            "Noise{place}: {level} was measured twice in every round, but in fewer than the three rounds needed."
        ));
    };
    let noise = ratio.noise.map_or_else(String::new, |noise| match noise {
        0.0..1.0 => format!(", so differences below {} count as noise", percent(noise)),
        _ => format!(", so differences below a factor of {} count as noise", short(noise + 1.0)),
    });
    Some(format!(
        "Noise{place}: {level} was measured twice in every round, and the two differ by a factor \
         of {} ({} to {}){noise}.",
        short(ratio.mean),
        short(low),
        short(high)
    ))
}

fn resolution(document: &Document) -> Option<String> {
    let known = document.resolution?;
    let wanted = percent(known.wanted);
    Some(match (known.reached, known.more_rounds) {
        (Some(reached), Some(0)) => {
            format!("Resolution: every ratio is known to ± {}, as wanted (± {wanted}).", percent(reached))
        }
        (Some(reached), _) if reached > 1.0 => {
            format!("Resolution: ± {wanted} was wanted, but there are too few rounds to compare rows.")
        }
        (Some(reached), Some(more)) => format!(
            "Resolution: ± {wanted} was wanted, ± {} was reached; it would probably take {}.",
            percent(reached),
            counted(u64::from(more), "more round")
        ),
        (Some(reached), None) => {
            format!("Resolution: ± {wanted} was wanted, ± {} was reached.", percent(reached))
        }
        (None, _) => format!("Resolution: ± {wanted} was wanted, but not every ratio has an interval."),
    })
}

fn sweep(found: &SweepResult) -> String {
    let level = found.name();
    let limit = format!("{} ms", short(found.limit_ms));
    let closed = format!("in a closed loop it commits {} per second", short(found.capacity));
    match (found.highest_kept, found.lowest_missed) {
        (Some(kept), missed) => {
            let missed = missed.map_or_else(
                || ", the most that was tried".to_owned(),
                |missed| format!(" (at {} it didn't)", short(missed)),
            );
            format!(
                "Highest rate: {level} with {} committed 99 % of the transactions due within {limit} at {} per \
                 second{missed}; {closed}.",
                counted(found.clients.into(), "client"),
                short(kept)
            )
        }
        (None, _) => format!(
            "Highest rate: {level} with {} committed 99 % of the transactions due within \
             {limit} at no rate that was tried; {closed}.",
            counted(found.clients.into(), "client")
        ),
    }
}
