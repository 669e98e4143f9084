//! Percentiles over rounds that shift, beside the textbook's interval.
//!
//! Not here: means.

use isobench_stats::{LatencyHistogram, RoundLatencies};
use statrs::distribution::{Binomial, DiscreteCDF};

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

/// The textbook's interval, of latencies that are taken as independent: order statistics, whose
/// ranks come from the binomial distribution (Hahn and Meeker, "Statistical intervals", 1991,
/// section 5.2).
fn order_statistics(histogram: &LatencyHistogram, percent: f64) -> Option<(f64, f64)> {
    let trials = histogram.len();
    let below = Binomial::new(percent / 100.0, trials).expect("a share and a count");
    let (low, high) = (below.inverse_cdf(0.025), below.inverse_cdf(0.975) + 1);
    let at = |rank: u64| histogram.percentile(100.0 * rank as f64 / trials as f64);
    at(low).zip(at(high))
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
            let latencies = RoundLatencies::new(rounds.iter().collect());
            for (covered, (percent, z)) in covered.iter_mut().zip(PERCENTS) {
                let truth = 10.0 * (z * (SPREAD * SPREAD + shift * shift).sqrt()).exp();
                let ours = latencies.percentile(percent).expect("enough latencies");
                covered[0] += usize::from(holds(ours.low, ours.high, truth));
                let (low, high) = order_statistics(latencies.merged(), percent).unzip();
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
