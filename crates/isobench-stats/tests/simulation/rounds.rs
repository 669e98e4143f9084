//! Rounds: coverage of means; coverage and false alarms of ratios under drift of the machine, with
//! noise.
//!
//! Not here: one run, and rounds that end at a resolution.

use isobench_stats::{independent_ratio, mean_interval, noise_of, paired_ratio};

use crate::generator::Generator;
use crate::{COVERAGE, holds, most_false_alarms, percent};

const REPETITIONS: usize = 3000;

/// Rounds of three cells on a machine that wanders by 10 % from round to round; each cell scatters
/// by 2 % itself.
fn wandering(generator: &mut Generator, rounds: usize) -> Vec<[f64; 3]> {
    let mut drift = 0.0;
    let cell = |generator: &mut Generator, drift: f64| 1000.0 * (drift + 0.02 * generator.normal()).exp();
    (0..rounds)
        .map(|_| {
            drift += 0.1 * generator.normal();
            [cell(generator, drift), cell(generator, drift), cell(generator, drift)]
        })
        .collect()
}

#[test]
fn means_of_rounds_hold_the_truth() {
    for rounds in [2, 3, 5, 10] {
        let mut generator = Generator::new(42);
        let covered = (0..REPETITIONS).filter(|_| {
            let samples: Vec<f64> = (0..rounds).map(|_| 400.0 + 25.0 * generator.normal()).collect();
            let mean = mean_interval(&samples).expect("finite samples");
            holds(mean.low, mean.high, 400.0)
        });
        let covered = percent(covered.count(), REPETITIONS);
        assert!(COVERAGE.contains(&covered), "{rounds} rounds: {covered}");
    }
}

#[test]
fn ratios_of_rounds_hold_the_truth_and_equal_cells_rarely_differ() {
    println!(
        "| rounds | interval holds the ratio | false alarms under A/A | false alarms beyond the noise |"
    );
    println!("|---|---|---|---|");
    for rounds in [2, 3, 5, 10] {
        let mut generator = Generator::new(3);
        let (mut covered, mut alarms, mut beyond) = (0, 0, 0);
        for _ in 0..REPETITIONS {
            let cells = wandering(&mut generator, rounds);
            let ratio = |of: usize, factor: f64| {
                let pairs: Vec<(f64, f64)> = cells.iter().map(|cell| (cell[of] * factor, cell[0])).collect();
                paired_ratio(&pairs, 1).expect("positive pairs")
            };
            let slower = ratio(1, 0.8);
            covered += usize::from(holds(slower.low, slower.high, 0.8));
            let equal = ratio(1, 1.0);
            alarms += usize::from(equal.significant);
            let noise = noise_of(&ratio(2, 1.0)).expect("an interval");
            beyond += usize::from(equal.beyond(noise));
        }
        let [covered, alarms, beyond] = [covered, alarms, beyond].map(|count| percent(count, REPETITIONS));
        println!("| {rounds} | {covered:.1} % | {alarms:.1} % | {beyond:.1} % |");
        assert!(COVERAGE.contains(&covered), "{rounds} rounds: {covered}");
        assert!(
            alarms <= most_false_alarms(REPETITIONS) && beyond <= 5.0,
            "{rounds} rounds: {alarms} {beyond}"
        );
    }
}

#[test]
fn of_many_equal_cells_a_family_rarely_calls_any_different() {
    let mut generator = Generator::new(11);
    let (mut alone, mut together) = (0, 0);
    let repetitions = 1000;
    for _ in 0..repetitions {
        // Nine cells against the same first one, in five rounds.
        let cells: Vec<Vec<f64>> =
            (0..5).map(|_| (0..10).map(|_| (0.02 * generator.normal()).exp()).collect()).collect();
        let any = |family: usize| {
            (1..10).any(|of| {
                let pairs: Vec<(f64, f64)> = cells.iter().map(|round| (round[of], round[0])).collect();
                paired_ratio(&pairs, family).is_some_and(|ratio| ratio.significant)
            })
        };
        alone += usize::from(any(1));
        together += usize::from(any(9));
    }
    let (alone, together) = (percent(alone, repetitions), percent(together, repetitions));
    println!("nine equal cells against one: any significant {alone:.1} %, as a family {together:.1} %");
    assert!(together <= most_false_alarms(repetitions) && alone > 15.0, "{together} {alone}");
}

#[test]
fn independent_results_hold_the_truth() {
    println!("| rounds of A | of B | scatter of A | of B | interval holds the ratio | false alarms |");
    println!("|---|---|---|---|---|---|");
    for (of, to) in [(2, 2), (3, 3), (3, 10), (5, 5), (10, 5)] {
        let mut generator = Generator::new(13);
        let (mut covered, mut alarms) = (0, 0);
        for _ in 0..REPETITIONS {
            let mut side = |count: usize, scatter: f64, mean: f64| -> Vec<f64> {
                (0..count).map(|_| mean * (scatter * generator.normal()).exp()).collect()
            };
            let (equal, reference) = (side(of, 0.05, 1000.0), side(to, 0.03, 1000.0));
            let slower: Vec<f64> = equal.iter().map(|value| value * 0.8).collect();
            alarms +=
                usize::from(independent_ratio(&equal, &reference, 1).is_some_and(|ratio| ratio.significant));
            let ratio = independent_ratio(&slower, &reference, 1).expect("positive numbers");
            covered += usize::from(holds(ratio.low, ratio.high, 0.8));
        }
        let (covered, alarms) = (percent(covered, REPETITIONS), percent(alarms, REPETITIONS));
        println!("| {of} | {to} | 5 % | 3 % | {covered:.1} % | {alarms:.1} % |");
        // With two on a side the single degree of freedom is too careful; three that scatter more
        // than the many on the other side are Welch's worst case.
        let least = if to > 2 * of { 91.5 } else { *COVERAGE.start() };
        assert!(covered >= least && (covered <= 97.0 || of == 2), "{of} {to}: {covered}");
        assert!(alarms <= 100.0 - least + 0.5, "{of} {to}: {alarms}");
    }
}
