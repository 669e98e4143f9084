//! Steadiness: how often steady series are called unsteady, and how often unsteady ones are found.
//!
//! Not here: the mean of a series.

use isobench_stats::{drift, is_bimodal, is_warm, transient};

use crate::generator::Generator;
use crate::{most_false_alarms, percent};

const REPETITIONS: usize = 600;

/// Counts per bin: mean, swing of the rate, correlation of neighbouring rates.
const COUNTS: [(f64, f64, f64); 4] =
    [(10.0, 0.0, 0.0), (30.0, 0.1, 0.3), (100.0, 0.1, 0.6), (30.0, 0.2, 0.6)];

#[test]
fn steady_series_are_rarely_called_unsteady() {
    println!("| counts per bin | swing | correlation | bins | cold | drifting | two levels |");
    println!("|---|---|---|---|---|---|---|");
    let most = most_false_alarms(REPETITIONS);
    for (mean, swing, phi) in COUNTS {
        for n in [20, 40, 100, 300] {
            let mut generator = Generator::new(17);
            let (mut cold, mut drifting, mut two) = (0, 0, 0);
            for _ in 0..REPETITIONS {
                let bins = generator.counts(n, mean, swing, phi);
                cold += usize::from(!is_warm(&bins, n));
                drifting += usize::from(drift(&bins).is_some_and(|drift| drift.significant));
                two += usize::from(is_bimodal(&bins) == Some(true));
            }
            let [cold, drifting, two] = [cold, drifting, two].map(|count| percent(count, REPETITIONS));
            println!("| {mean} | {swing} | {phi} | {n} | {cold:.1} % | {drifting:.1} % | {two:.1} % |");
            // Few bins that swing widely for a while look like a change; the docstring says how
            // often.
            let most_cold = if phi > 0.3 && n < 100 { 11.0 } else { most };
            let case = format!("{mean} {swing} {phi} {n}: {cold} {drifting} {two}");
            assert!(cold <= most_cold && drifting <= most + 1.0 && two <= most, "{case}");
        }
    }
}

#[test]
fn unsteady_series_are_found() {
    println!(
        "| counts per bin | swing | correlation | bins | slow third found | drift of 20 % | half speed at times |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (mean, swing, phi) in COUNTS {
        for n in [40, 100, 300] {
            let mut generator = Generator::new(19);
            let (mut third, mut drifting, mut two) = (0, 0, 0);
            for _ in 0..REPETITIONS {
                let bins = generator.counts(n, mean, swing, phi);
                let shaped = |level: &dyn Fn(usize) -> f64| -> Vec<f64> {
                    bins.iter().enumerate().map(|(index, bin)| (bin * level(index)).round()).collect()
                };
                let slow = shaped(&|index| if index < n / 3 { 0.5 } else { 1.0 });
                let cut = transient(&slow);
                third +=
                    usize::from(!is_warm(&slow, n) && cut.is_none_or(|cut| cut.abs_diff(n / 3) <= n / 6));
                let falling = shaped(&|index| 1.0 - 0.2 * index as f64 / n as f64);
                drifting += usize::from(drift(&falling).is_some_and(|drift| drift.significant));
                let halves = shaped(&|index| if index % 40 < 25 { 1.0 } else { 0.5 });
                two += usize::from(is_bimodal(&halves) == Some(true));
            }
            let [third, drifting, two] = [third, drifting, two].map(|count| percent(count, REPETITIONS));
            println!("| {mean} | {swing} | {phi} | {n} | {third:.0} % | {drifting:.0} % | {two:.0} % |");
            let quiet = swing <= 0.1;
            let case = format!("{mean} {swing} {phi} {n}: {third} {drifting} {two}");
            assert!(third >= if quiet { 85.0 } else { 60.0 }, "{case}");
            if n == 300 {
                assert!(drifting >= 20.0 && two >= if quiet { 80.0 } else { 50.0 }, "{case}");
            }
        }
    }
}
