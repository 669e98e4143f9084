//! The time series of a cell: the median of its rounds over time, thinned to what a picture shows.
//!
//! Not here: how it is drawn (`over_time`, `predicate_locks`).

use isobench_result::document::{FaultEvent, Round, Series, ServerSide};

use super::scale::LARGEST;
use super::subject::Subject;
use super::wait_kinds;

/// The most points of a line.
const POINTS: usize = 100;

/// So many points are no picture: the shares of the waits, and the rates of the rounds, say it all.
const FEW: usize = 4;

/// The most points of the lines of other rounds, and the most of those lines.
const THIN_POINTS: usize = 50;
const OTHERS: usize = 8;

/// A part of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Its middle, in seconds from the start of the measured part.
    pub at: f64,
    /// Transactions committed per second.
    pub committed: f64,
    /// Conflicts per second.
    pub conflicts: f64,
}

/// The sessions at a time; the mean of neighbouring samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The time, in seconds from the start of the measured part.
    pub at: f64,
    /// Sessions of each hatching, in the order of [`TimeSeries::stacked`].
    pub sessions: Vec<f64>,
}

/// A cell over time.
pub struct TimeSeries<'a> {
    /// The cell.
    pub subject: &'a Subject<'a>,
    /// The round that is shown: of those with a time series the one with the median rate.
    pub round: &'a Round,
    /// Its duration in seconds.
    pub seconds: f64,
    /// Its rates; empty if there is no series.
    pub bins: Vec<Bin>,
    /// The rates of other rounds.
    pub others: Vec<Vec<Bin>>,
    /// The hatchings that are stacked, with their sessions in all samples.
    pub stacked: Vec<(usize, f64)>,
    /// The samples; empty if the server wasn't sampled.
    pub samples: Vec<Sample>,
}

impl<'a> TimeSeries<'a> {
    /// `None` if no round was followed over time.
    pub fn of(subject: &'a Subject<'a>) -> Option<TimeSeries<'a>> {
        let followed = |round: &Round| !bins(round, POINTS).is_empty() || !times(round).is_empty();
        let round = median_round(subject, followed)?;
        let others = subject.cell.rounds.iter().filter(|other| other.round != round.round);
        let others =
            others.map(|other| bins(other, THIN_POINTS)).filter(|bins| !bins.is_empty()).take(OTHERS);
        let (stacked, samples) = samples(round);
        let bins = bins(round, POINTS);
        let last =
            samples.iter().map(|sample| sample.at).chain(bins.iter().map(|bin| bin.at)).fold(0.0, f64::max);
        let seconds = if round.seconds.is_finite() { round.seconds.max(last) } else { last };
        let seconds = seconds.min(LARGEST);
        Some(TimeSeries { subject, round, seconds, bins, others: others.collect(), stacked, samples })
    }

    /// What happened to the server in that round.
    pub fn faults(&self) -> impl Iterator<Item = &'a FaultEvent> {
        self.round.faults.iter().flat_map(|round| &round.faults)
    }
}

/// Of the rounds that conclusions rest on and that have what is asked for, the one with the median
/// rate.
pub fn median_round<'a>(subject: &Subject<'a>, has: impl Fn(&Round) -> bool) -> Option<&'a Round> {
    let mut rounds = isobench_result::rounds::counted_rounds(subject.cell);
    rounds.retain(|round| has(round));
    rounds.sort_by(|one, other| one.tps.unwrap_or(0.0).total_cmp(&other.tps.unwrap_or(0.0)));
    rounds.get(rounds.len().saturating_sub(1) / 2).copied()
}

/// The rates of a round in at most `most` parts; empty without a usable series.
fn bins(round: &Round, most: usize) -> Vec<Bin> {
    let Some(series) = round.series.as_ref().filter(|series| series.bin_s.is_finite() && series.bin_s > 0.0)
    else {
        return Vec::new();
    };
    let size = series.committed.len().div_ceil(most).max(1);
    let starts = (0..series.committed.len()).step_by(size);
    let parts: Vec<Bin> = starts.filter_map(|start| part(series, start, size, round.seconds)).collect();
    if parts.len() > FEW { parts } else { Vec::new() }
}

/// One part; `None` if the end of the round cut most of it off, so that its rate says little.
fn part(series: &Series, start: usize, size: usize, seconds: f64) -> Option<Bin> {
    let from = start as f64 * series.bin_s;
    let whole = size as f64 * series.bin_s;
    let width = if seconds.is_finite() { whole.min(seconds - from) } else { whole };
    let sum =
        |counts: &[u64]| -> f64 { counts.iter().skip(start).take(size).map(|count| *count as f64).sum() };
    let bin = Bin {
        at: from + width / 2.0,
        committed: sum(&series.committed) / width,
        conflicts: sum(&series.conflicts) / width,
    };
    (width >= whole / 2.0 && bin.at.is_finite()).then_some(bin)
}

fn times(round: &Round) -> &[f64] {
    let sampled = |server: &&ServerSide| !server.waits.is_empty() && server.at_s.len() > FEW;
    round.server.as_ref().filter(sampled).map_or(&[], |server| &server.at_s)
}

/// The samples of a round, and the hatchings in them.
fn samples(round: &Round) -> (Vec<(usize, f64)>, Vec<Sample>) {
    let times = times(round);
    let rows = round.server.as_ref().map_or(&[][..], |server| &server.waits);
    let sessions = wait_kinds::sessions(rows, times.len());
    let stacked = sessions.iter().map(|(kind, all)| (*kind, all.iter().sum())).collect();
    let size = times.len().div_ceil(POINTS).max(1);
    let samples = (0..times.len()).step_by(size).map(|start| {
        let mean = |values: &[f64]| {
            let part = values.get(start..(start + size).min(values.len())).unwrap_or(&[]);
            part.iter().sum::<f64>() / part.len().max(1) as f64
        };
        Sample { at: mean(times), sessions: sessions.iter().map(|(_, all)| mean(all)).collect() }
    });
    (stacked, samples.filter(|sample| sample.at.is_finite()).collect())
}
