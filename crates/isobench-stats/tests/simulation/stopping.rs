//! Rounds that end at a resolution, looked at one after another: the confidence of the interval at
//! the end, and the rounds it takes, beside other rules.
//!
//! With normal logarithms the end depends on their scatter alone, which is independent of their
//! mean. So instead of counting how often an interval holds the truth, the probability that it does
//! is averaged, given the scatter: a thousand repetitions are as good as a hundred thousand. Not
//! here: a fixed number of rounds.

use isobench_stats::{is_resolved, paired_ratio, resolving_ratio, settling_ratio};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::generator::Generator;
use crate::{holds, percent};

/// The standard deviation of the logarithms.
const SCATTER: f64 = 0.03;

/// Multiples of the resolution by which rounds scatter, and repetitions: of many rounds fewer do.
const CASES: [(f64, usize); 5] = [(0.5, 2000), (1.0, 2000), (2.0, 1500), (3.0, 500), (5.0, 100)];

/// A rule: half the width of the interval if the rounds with these logarithms are the last, for a
/// half width that is wanted.
type Rule<'a> = &'a dyn Fn(&[f64], f64) -> Option<f64>;

fn deviation(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let squares = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
    (squares / (logs.len() - 1) as f64).sqrt()
}

fn pairs(logs: &[f64]) -> Vec<(f64, f64)> {
    logs.iter().map(|log| (log.exp(), 1.0)).collect()
}

/// The quantile of Student's t after each number of rounds, for a family.
fn quantiles(family: f64) -> Vec<f64> {
    let of = |rounds: usize| {
        let distribution = StudentsT::new(0.0, 1.0, rounds.max(2) as f64 - 1.0).expect("degrees of freedom");
        distribution.inverse_cdf(1.0 - 0.025 / family)
    };
    (0..1000).map(of).collect()
}

/// The probability that a mean of so many normal logarithms lies this near its truth.
fn held(half: f64, rounds: usize) -> f64 {
    let beyond = Normal::standard().sf(half * (rounds as f64).sqrt() / SCATTER);
    100.0 * (1.0 - 2.0 * beyond)
}

/// Confidence in percent, and rounds on average.
fn stopping(multiple: f64, repetitions: usize, rule: Rule<'_>) -> (f64, f64) {
    let mut generator = Generator::new(5);
    let (mut confidence, mut rounds) = (0.0, 0);
    for _ in 0..repetitions {
        let mut logs = vec![SCATTER * generator.normal()];
        let half = loop {
            logs.push(SCATTER * generator.normal());
            if let Some(half) = rule(&logs, SCATTER / multiple) {
                break half;
            }
        };
        rounds += logs.len();
        confidence += held(half, logs.len()) / repetitions as f64;
    }
    (confidence, rounds as f64 / repetitions as f64)
}

/// The rule of `--resolve`, for a family.
fn ours(logs: &[f64], wanted: f64, family: usize) -> Option<f64> {
    let pairs = pairs(logs);
    let ratio = is_resolved(&pairs, wanted.exp() - 1.0, family).then(|| resolving_ratio(&pairs, family));
    ratio.flatten().and_then(|ratio| ratio.half_width())
}

/// Student's interval as soon as it is narrow, from six rounds on, so many times in a row.
fn narrow(logs: &[f64], wanted: f64, quantiles: &[f64], in_a_row: usize) -> Option<f64> {
    let half = |n: usize| quantiles[n] * deviation(&logs[..n]) / (n as f64).sqrt();
    let n = logs.len();
    (n >= 6 && (n + 1 - in_a_row..=n).all(|n| half(n) <= wanted)).then(|| half(n))
}

/// Two stages (Stein 1945): the first `first` rounds say how many there will be, and only they say
/// how much rounds scatter.
fn stein(logs: &[f64], wanted: f64, quantiles: &[f64], first: usize) -> Option<f64> {
    let n = logs.len();
    let half = || quantiles[first] * deviation(&logs[..first]) / (n as f64).sqrt();
    (n >= first).then(half).filter(|half| *half <= wanted)
}

/// A confidence sequence, valid however the end is chosen: means that a mixture of t likelihood
/// ratios, with standard normal effects, hasn't made 20 times less likely (Lai 1976; Wang and Ramdas
/// 2023).
fn sequence(logs: &[f64], wanted: f64) -> Option<f64> {
    let n = logs.len() as f64;
    let excess = 1.0 + n;
    let most = (20.0 * excess.sqrt()).powf(2.0 / n);
    let squared = (n - 1.0) * (most - 1.0) / (1.0 - most / excess);
    let half = squared.sqrt() * deviation(logs) / n.sqrt();
    (most < excess && half <= wanted).then_some(half)
}

#[test]
fn stopping_at_a_resolution_keeps_the_confidence() {
    println!(
        "| scatter ÷ resolution | rounds if the scatter were known | as soon as narrow | narrow twice | \
         two stages | confidence sequence | `is_resolved` |"
    );
    println!("|---|---|---|---|---|---|---|");
    let quantiles = quantiles(1.0);
    let rules: [Rule<'_>; 5] = [
        &|logs, wanted| narrow(logs, wanted, &quantiles, 1),
        &|logs, wanted| narrow(logs, wanted, &quantiles, 2),
        &|logs, wanted| stein(logs, wanted, &quantiles, 6),
        &sequence,
        &|logs, wanted| ours(logs, wanted, 1),
    ];
    let mut worst = [100.0_f64; 5];
    for (multiple, repetitions) in CASES {
        let found = rules.map(|rule| stopping(multiple, repetitions, rule));
        let shown = found.map(|(confidence, rounds)| format!("{confidence:.1} %, {rounds:.1}"));
        println!("| {multiple} | {:.1} | {} |", (1.96 * multiple).powi(2), shown.join(" | "));
        for (worst, (confidence, _)) in worst.iter_mut().zip(found) {
            *worst = worst.min(confidence);
        }
        let [_, _, two_stages, sequence, ours] = found.map(|(_, rounds)| rounds);
        assert!(multiple < 1.0 || ours < sequence.min(two_stages) || multiple < 2.0, "{multiple}");
    }
    // A standard deviation of 0.1 to 0.2 is the simulation's.
    assert!(worst[4] >= 94.8 && worst[0] < 93.5, "{worst:?}");
}

#[test]
fn a_time_limit_keeps_the_confidence_too() {
    println!("| family | scatter ÷ resolution | whole family at the end | with the worst time limit |");
    println!("|---|---|---|---|");
    for family in [1, 2, 9, 50] {
        for (multiple, repetitions) in [(1.0, 400), (2.0, 400), (3.0, 200)] {
            let mut generator = Generator::new(29);
            // The confidence if no round follows the one with this number.
            let mut limited = [0.0; 120];
            for _ in 0..repetitions {
                let (mut logs, mut confidence, mut ended) = (vec![SCATTER * generator.normal()], 0.0, false);
                for sum in &mut limited[2..] {
                    if !ended {
                        logs.push(SCATTER * generator.normal());
                        let ratio = resolving_ratio(&pairs(&logs), family).expect("positive pairs");
                        confidence = held(ratio.half_width().expect("two rounds or more"), logs.len());
                        ended = is_resolved(&pairs(&logs), (SCATTER / multiple).exp() - 1.0, family);
                    }
                    *sum += confidence / f64::from(repetitions);
                }
            }
            // All together, at the worst.
            let whole = |confidence: f64| 100.0 - family as f64 * (100.0 - confidence);
            // Before the first look there is nothing to simulate.
            let worst = limited[6..].iter().copied().fold(100.0, f64::min);
            let (end, worst) = (whole(limited[119]), whole(worst));
            println!("| {family} | {multiple} | {end:.1} % | {worst:.1} % |");
            assert!(worst >= 94.5, "{family} {multiple}: {worst}");
        }
    }
}

/// Repetitions of `worst_case`, and families. What the manual quotes takes half a minute in a release
/// build; a build for tests is slower, and larger families scatter too much for fewer repetitions.
const WORST_CASES: (usize, &[f64]) =
    if cfg!(debug_assertions) { (2000, &[1.0, 2.0]) } else { (60_000, &[1.0, 2.0, 9.0, 50.0, 200.0]) };

/// The least confidence of a whole family, in percent, over scatters and time limits.
fn worst_case(family: f64) -> f64 {
    const MOST: usize = 600;
    const REPETITIONS: usize = WORST_CASES.0;
    let normal = Normal::standard();
    let z = normal.inverse_cdf(1.0 - 0.025 / family);
    let critical: Vec<f64> = quantiles(family)
        .into_iter()
        .enumerate()
        .map(|(n, t)| if n < 6 { t } else { t * (1.0 + 2.0 / n as f64) })
        .collect();
    // Looked up, since the normal distribution is asked half a billion times.
    let table: Vec<f64> = (0..8000).map(|at| 2.0 * normal.sf(f64::from(at) / 1000.0)).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let missed = |half: f64| table.get((half * 1000.0).round() as usize).copied().unwrap_or(0.0);
    let mut worst: f64 = 0.0;
    for step in 0..26 {
        // The rounds it would take if the scatter were known.
        let wanted = z / 1.25_f64.powi(step).sqrt();
        let mut generator = Generator::new(5);
        let mut limited = vec![0.0; MOST + 1];
        for _ in 0..REPETITIONS {
            let (mut squares, mut miss, mut ended) = (generator.normal().powi(2), 0.0, false);
            for (n, sum) in limited.iter_mut().enumerate().skip(3) {
                if !ended {
                    squares += generator.normal().powi(2);
                    let half = critical[n] * (squares / (n - 1) as f64).sqrt();
                    miss = missed(half);
                    ended = n >= 6 && half / (n as f64).sqrt() <= wanted;
                }
                *sum += miss;
            }
        }
        // Before the first look the interval is Student's, which needs no simulation.
        worst = limited[6..].iter().copied().fold(worst, f64::max);
    }
    100.0 * (1.0 - family * worst / REPETITIONS as f64)
}

#[test]
fn the_worst_case_keeps_the_confidence() {
    println!("| family | worst case of all scatters and time limits |");
    println!("|---|---|");
    for family in WORST_CASES.1.iter().copied() {
        let worst = worst_case(family);
        println!("| {family} | {worst:.2} % |");
        assert!(worst >= 94.8, "{family}: {worst}");
    }
}

/// What rounds scatter like.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Normal,
    /// Student's t with four degrees of freedom.
    HeavyTails,
    /// AR(1): neighbours correlate by 0.2.
    Correlated,
    /// 3 % of the scatter per round; the truth is the mean over the rounds measured.
    Drift,
}

impl Kind {
    /// The next logarithm, of standard deviation 1, and how far the truth has moved.
    fn next(self, generator: &mut Generator, rounds: usize, before: f64) -> (f64, f64) {
        match self {
            Kind::Normal => (generator.normal(), 0.0),
            Kind::HeavyTails => {
                let squares: f64 = (0..4).map(|_| generator.normal().powi(2)).sum();
                (generator.normal() / (squares / 4.0).sqrt() / 2.0_f64.sqrt(), 0.0)
            }
            Kind::Correlated if rounds == 0 => (generator.normal(), 0.0),
            Kind::Correlated => (0.2 * before + 0.96_f64.sqrt() * generator.normal(), 0.0),
            Kind::Drift => (generator.normal(), 0.03 * rounds as f64),
        }
    }
}

#[test]
fn other_scatter_costs_a_little() {
    println!("| rounds | scatter ÷ resolution | at the end | rounds | 15 rounds, t |");
    println!("|---|---|---|---|---|");
    let repetitions = 2000;
    for kind in [Kind::Normal, Kind::HeavyTails, Kind::Correlated, Kind::Drift] {
        for multiple in [1.0, 2.0] {
            let mut generator = Generator::new(31);
            let (mut covered, mut planned, mut rounds) = (0, 0, 0);
            for _ in 0..repetitions {
                let (mut logs, mut truth, mut before) = (Vec::new(), 0.0, 0.0);
                let (mut ended, mut fixed) = (false, false);
                while !(ended && fixed) {
                    let (value, moved) = kind.next(&mut generator, logs.len(), before);
                    before = value;
                    logs.push(SCATTER * (value + moved));
                    truth += SCATTER * moved;
                    let mean = truth / logs.len() as f64;
                    if !ended && ours(&logs, SCATTER / multiple, 1).is_some() {
                        ended = true;
                        rounds += logs.len();
                        let ratio = resolving_ratio(&pairs(&logs), 1).expect("positive pairs");
                        covered += usize::from(holds(ratio.low, ratio.high, mean.exp()));
                    }
                    if logs.len() == 15 {
                        fixed = true;
                        let ratio = paired_ratio(&pairs(&logs), 1).expect("positive pairs");
                        planned += usize::from(holds(ratio.low, ratio.high, mean.exp()));
                    }
                }
            }
            let (covered, planned) = (percent(covered, repetitions), percent(planned, repetitions));
            let rounds = rounds as f64 / f64::from(2000);
            println!("| {kind:?} | {multiple} | {covered:.1} % | {rounds:.1} | {planned:.1} % |");
            let least = if matches!(kind, Kind::Correlated) { 88.0 } else { 94.0 };
            assert!(covered >= least && covered > planned - 1.5, "{kind:?} {multiple}: {covered} {planned}");
        }
    }
}

#[test]
fn all_ratios_of_a_comparison_hold_at_the_end() {
    // Three cells against the same first one, so that their ratios correlate; the end is when all
    // are known.
    let repetitions = 1000;
    for multiple in [1.0, 2.0] {
        let mut generator = Generator::new(37);
        let (mut covered, mut rounds) = (0, 0);
        for _ in 0..repetitions {
            let mut ratios = [const { Vec::new() }; 3];
            let resolution = (SCATTER / multiple).exp() - 1.0;
            while !ratios.iter().all(|pairs: &Vec<(f64, f64)>| is_resolved(pairs, resolution, 3)) {
                let [first, others @ ..] =
                    [(); 4].map(|()| (SCATTER / 2.0_f64.sqrt() * generator.normal()).exp());
                for (pairs, other) in ratios.iter_mut().zip(others) {
                    pairs.push((other, first));
                }
            }
            rounds += ratios[0].len();
            let hold = ratios.iter().all(|pairs| {
                resolving_ratio(pairs, 3).is_some_and(|ratio| holds(ratio.low, ratio.high, 1.0))
            });
            covered += usize::from(hold);
        }
        let covered = percent(covered, repetitions);
        println!(
            "three ratios, {multiple}: all hold in {covered:.1} %, {:.1} rounds",
            f64::from(u32::try_from(rounds).expect("few")) / 1000.0
        );
        assert!(covered >= 94.0, "{multiple}: {covered}");
    }
}

/// Rounds that go on until two levels are told apart, or shown to be alike within 5 %: how often that
/// is wrong, of equal ones and of those that differ by 10 %. A difference of 5 % at most by its estimate,
/// and of 10 % at most by all of its interval, counts as alike.
#[test]
fn what_is_settled_is_settled_rightly() {
    const REPETITIONS: u32 = 2000;
    let alike = 1.05_f64.ln();
    println!("| planned | most | scatter | equal, told apart | 10 % apart, called alike |");
    println!("|---|---|---|---|---|");
    for (planned, most) in [(3, 20), (8, 13), (8, 25)] {
        for scatter in [0.03, 0.1, 0.3] {
            let wrong = [1.0_f64, 0.9].map(|truth| {
                let mut generator = Generator::new(41);
                let wrong = (0..REPETITIONS).filter(|_| {
                    let logs: Vec<f64> =
                        (0..most).map(|_| truth.ln() + scatter * generator.normal()).collect();
                    (planned..=most)
                        .find_map(|rounds| {
                            let ratio = settling_ratio(&pairs(&logs[..rounds]), planned, 2)?;
                            let (low, high) = ratio.low.zip(ratio.high)?;
                            let little = low > 0.895 && high < 1.105 && (ratio.mean - 1.0).abs() < 0.055;
                            let same = low.ln() > -alike && high.ln() < alike || little;
                            (same || ratio.significant).then_some(same == (truth < 1.0))
                        })
                        .unwrap_or(false)
                });
                100.0 * wrong.count() as f64 / f64::from(REPETITIONS)
            });
            println!("| {planned} | {most} | {scatter} | {:.1} % | {:.1} % |", wrong[0], wrong[1]);
            // A standard deviation of 0.5 is the simulation's.
            assert!(wrong.iter().all(|share| *share < 6.0), "{planned} {most} {scatter}: {wrong:?}");
        }
    }
}
