//! Percentiles: intervals of one run, and over rounds that shift.
//!
//! Not here: means.

use isobench_stats::{LatencyHistogram, percentile_with_interval};

use crate::generator::Generator;
use crate::{COVERAGE, holds, percent};

/// Latencies are lognormal around 10 ms; this is the standard deviation of their logarithms.
const SPREAD: f64 = 0.5;

/// Percentages, and how many standard deviations of a normal distribution they lie from its middle.
const PERCENTS: [(f64, f64); 2] = [(50.0, 0.0), (99.0, 2.326_348)];

fn record(histogram: &mut LatencyHistogram, log_ms: f64) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive nanoseconds")]
    histogram.record((1e7 * log_ms.exp()) as u64);
}

/// Rounds whose latencies shift by `shift` from round to round, in logarithms.
fn rounds(generator: &mut Generator, count: usize, size: usize, shift: f64) -> Vec<LatencyHistogram> {
    let mut round = || {
        let level = shift * generator.normal();
        let mut histogram = LatencyHistogram::new();
        for _ in 0..size {
            record(&mut histogram, level + SPREAD * generator.normal());
        }
        histogram
    };
    (0..count).map(|_| round()).collect()
}

#[test]
fn percentiles_over_rounds_hold_the_truth() {
    println!(
        "| rounds | shift of rounds | percentile | interval over rounds holds it | binomial of the merged |"
    );
    println!("|---|---|---|---|---|");
    // Few, since histograms are slow to make: a standard deviation of 1.4.
    let repetitions = 250;
    for (count, shift) in [(3, 0.0), (3, 0.05), (5, 0.05), (5, 0.2)] {
        let mut generator = Generator::new(23);
        let mut covered = [[0; 2]; PERCENTS.len()];
        for _ in 0..repetitions {
            let rounds = rounds(&mut generator, count, 500, shift);
            let mut merged = LatencyHistogram::new();
            for round in &rounds {
                merged.merge(round);
            }
            for (covered, (percent, z)) in covered.iter_mut().zip(PERCENTS) {
                let truth = 10.0 * (z * (SPREAD * SPREAD + shift * shift).sqrt()).exp();
                let ours = percentile_with_interval(&rounds, percent).expect("enough latencies");
                covered[0] += usize::from(holds(ours.low, ours.high, truth));
                let (low, high) = merged.percentile_interval(percent, 1.0).unzip();
                covered[1] += usize::from(holds(low, high, truth));
            }
        }
        for (covered, (p, _)) in covered.into_iter().zip(PERCENTS) {
            let [ours, binomial] = covered.map(|count| percent(count, repetitions));
            println!("| {count} | {} % | p{p} | {ours:.1} % | {binomial:.1} % |", shift * 100.0);
            // High percentiles of wide shifts hold less, as the docstring says.
            let least = if shift > 0.1 && p > 90.0 { 87.0 } else { COVERAGE.start() - 2.0 };
            assert!((least..=98.5).contains(&ours), "{count} rounds, shift {shift}, p{p}: {ours}");
            assert!(
                shift == 0.0 || p > 50.0 || binomial < 80.0,
                "{count} rounds, shift {shift}, p{p}: {binomial}"
            );
        }
    }
}

#[test]
fn percentiles_of_a_run_hold_the_truth() {
    println!("| correlation of latencies | factor | percentile | interval holds it |");
    println!("|---|---|---|---|");
    let repetitions = 600;
    for (phi, factor) in [(0.0, 1.0), (0.6, 0.25), (0.6, 1.0)] {
        let mut generator = Generator::new(29);
        let mut covered = [0; PERCENTS.len()];
        for _ in 0..repetitions {
            let mut histogram = LatencyHistogram::new();
            generator.ar1(2000, phi).into_iter().for_each(|value| record(&mut histogram, SPREAD * value));
            for (covered, (percent, z)) in covered.iter_mut().zip(PERCENTS) {
                let (low, high) = histogram.percentile_interval(percent, factor).unzip();
                *covered += usize::from(holds(low, high, 10.0 * (z * SPREAD).exp()));
            }
        }
        for (covered, (p, _)) in covered.into_iter().zip(PERCENTS) {
            let covered = percent(covered, repetitions);
            println!("| {phi} | {factor} | p{p} | {covered:.1} % |");
            // Percentiles far out are less correlated than the mean, so the factor makes their
            // intervals wide.
            let corrected = phi == 0.0 || factor < 1.0;
            assert!(!corrected || covered >= *COVERAGE.start(), "{phi} {factor} p{p}: {covered}");
            assert!(corrected || p > 50.0 || covered < 80.0, "{phi} {factor} p{p}: {covered}");
        }
    }
}
