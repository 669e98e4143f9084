//! The coverage of the interval of one run's mean: how often it holds the mean of a very long run.
//!
//! Not here: rounds.

use isobench_stats::series_interval;

use crate::generator::Generator;
use crate::{COVERAGE, holds, percent};

const MEAN: f64 = 30.0;
const REPETITIONS: usize = 1500;

/// The bins of a run.
#[derive(Clone, Copy)]
enum Kind {
    /// AR(1) with a standard deviation of a sixth of the mean.
    Ar1,
    /// Poisson counts, 30 a bin, whose rate swings by a fifth as AR(1).
    Counts,
}

impl Kind {
    fn draw(self, generator: &mut Generator, n: usize, phi: f64) -> Vec<f64> {
        match self {
            Kind::Ar1 => generator.ar1(n, phi).into_iter().map(|value| MEAN + 5.0 * value).collect(),
            Kind::Counts => generator.counts(n, MEAN, 0.2, phi),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Ar1 => "AR(1)",
            Kind::Counts => "counts",
        }
    }
}

/// Coverage of our interval, of the naive one that takes bins as independent, and the mean
/// effective sample size.
fn coverage(kind: Kind, n: usize, phi: f64) -> (f64, f64, f64) {
    let mut generator = Generator::new(7);
    let (mut covered, mut naive, mut effective) = (0, 0, 0.0);
    for _ in 0..REPETITIONS {
        let bins = kind.draw(&mut generator, n, phi);
        let series = series_interval(&bins).expect("finite bins");
        let estimate = series.estimate;
        covered += usize::from(holds(estimate.low, estimate.high, MEAN));
        let squares = bins.iter().map(|bin| (bin - estimate.mean).powi(2)).sum::<f64>();
        let half = 1.97 * (squares / (n - 1) as f64 / n as f64).sqrt();
        naive += usize::from((estimate.mean - MEAN).abs() <= half);
        effective += series.ess / REPETITIONS as f64;
    }
    (percent(covered, REPETITIONS), percent(naive, REPETITIONS), effective)
}

#[test]
fn the_interval_of_a_run_holds_its_mean() {
    println!(
        "| bins | correlation of neighbours | number | interval holds the mean | naive interval | effective |"
    );
    println!("|---|---|---|---|---|---|");
    for kind in [Kind::Ar1, Kind::Counts] {
        for (n, phi) in
            [(40, 0.0), (40, 0.3), (100, 0.6), (400, 0.0), (400, 0.3), (400, 0.6), (400, 0.9), (1200, 0.9)]
        {
            let (ours, naive, effective) = coverage(kind, n, phi);
            println!("| {} | {phi} | {n} | {ours:.1} % | {naive:.1} % | {effective:.0} |", kind.name());
            assert!(COVERAGE.contains(&ours), "{} {phi} {n}: {ours}", kind.name());
            if matches!(kind, Kind::Ar1) && n >= 400 {
                let truth = n as f64 * (1.0 - phi) / (1.0 + phi);
                assert!((0.75..=1.1).contains(&(effective / truth)), "{effective} for {truth}");
            }
        }
    }
}

#[test]
fn a_run_shorter_than_ten_times_its_memory_is_overrated() {
    // What the docstring warns of, so that the warning stays true: 100 bins, of which 19 are alike.
    let (ours, naive, _) = coverage(Kind::Ar1, 100, 0.9);
    println!("100 bins with 0.9: {ours:.1} %, naive {naive:.1} %");
    assert!((89.0..=94.0).contains(&ours) && naive < 50.0, "{ours} {naive}");
}
