//! Rounds of short slices: the cells of a round take turns, so that neighbours in time share the
//! machine's weather. How much narrower intervals become, what they may take as independent, and how
//! many rounds a given time should be cut into.
//!
//! Not here: the end at a resolution.

use isobench_stats::{
    drift, drift_of_rounds, is_bimodal, paired_ratio, series_interval, start_of_rounds, transient,
};

use crate::generator::Generator;
use crate::{COVERAGE, holds, percent};

/// What the rate of a slice is made of, in logarithms, and how the time is divided.
///
/// The weather is AR(1) in continuous time around a random walk, and the same for all cells. Bursts
/// of other work take half of the machine. Everything else is of a slice, or of a cell's fresh tables
/// in a round.
#[derive(Clone, Copy)]
struct Model {
    /// Standard deviation of the weather; it is forgotten in `MEMORY` seconds.
    weather: f64,
    /// Standard deviation of a slice of a quarter of a second; of others, by the root of their length.
    noise: f64,
    /// Standard deviation of a cell's tables in a round.
    tables: f64,
    rounds: usize,
    /// Seconds of a slice.
    slice: f64,
    turns: usize,
}

const MEMORY: f64 = 2.0;
/// Standard deviation that the random walk of the weather gains in a second.
const WALK: f64 = 0.02;
/// Bursts per second, and their mean length in seconds.
const BURSTS: (f64, f64) = (0.3, 0.2);
/// Seconds for which the weather is taken as constant.
const STEP: f64 = 0.05;
/// Seconds to prepare a cell's tables and connections in a round.
const PREPARATION: f64 = 0.9;
const CELLS: usize = 3;
/// The first cell's rate is 1000.
const TRUTHS: [f64; CELLS] = [1.0, 0.4, 0.8];

/// A machine on which whole cells are known to ± 15 to 20 %, and the recommended way to divide a
/// minute.
const MODEL: Model = Model { weather: 0.15, noise: 0.06, tables: 0.02, rounds: 8, slice: 0.25, turns: 6 };

impl Model {
    /// With as many whole turns as fit into so many measured seconds, one at least.
    fn of(self, rounds: usize, slice: f64, measured: f64) -> Model {
        let turns = (measured / (rounds * CELLS) as f64 / slice).round().max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred at most")]
        Model { rounds, slice, turns: turns as usize, ..self }
    }

    /// Seconds with all preparations.
    fn elapsed(self) -> f64 {
        (self.rounds * CELLS) as f64 * (PREPARATION + self.turns as f64 * self.slice)
    }

    /// Committed transactions of each cell in each turn of each round.
    fn draw(self, generator: &mut Generator) -> Vec<Vec<[f64; CELLS]>> {
        let mut weather = Weather::new(self.weather, generator);
        let mut round = |generator: &mut Generator| {
            weather.pass(PREPARATION * CELLS as f64, generator);
            let tables = [(); CELLS].map(|()| self.tables * generator.normal());
            let mut turn = |generator: &mut Generator| {
                let mut committed = [0.0; CELLS];
                for cell in shuffled(generator) {
                    let noise = self.noise * (0.25 / self.slice).sqrt() * generator.normal();
                    let speed = (tables[cell] + noise).exp() * weather.worth(self.slice, generator);
                    committed[cell] = 1000.0 * TRUTHS[cell] * speed;
                }
                committed
            };
            (0..self.turns).map(|_| turn(generator)).collect()
        };
        (0..self.rounds).map(|_| round(generator)).collect()
    }
}

fn shuffled(generator: &mut Generator) -> [usize; CELLS] {
    let mut order = [0, 1, 2];
    for last in (1..CELLS).rev() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below three")]
        order.swap(last, (generator.uniform() * (last + 1) as f64) as usize);
    }
    order
}

struct Weather {
    deviation: f64,
    log: f64,
    walk: f64,
    /// Seconds of the present burst that are left.
    burst: f64,
}

impl Weather {
    fn new(deviation: f64, generator: &mut Generator) -> Self {
        Weather { deviation, log: deviation * generator.normal(), walk: 0.0, burst: 0.0 }
    }

    fn pass(&mut self, seconds: f64, generator: &mut Generator) {
        let kept = (-seconds / MEMORY).exp();
        self.log = kept * self.log + (1.0 - kept * kept).sqrt() * self.deviation * generator.normal();
        self.walk += WALK * seconds.sqrt() * generator.normal();
    }

    /// The next seconds, in seconds of the machine at its usual speed.
    fn worth(&mut self, seconds: f64, generator: &mut Generator) -> f64 {
        let mut worth = 0.0;
        let mut left = seconds;
        while left > 1e-9 {
            let step = left.min(STEP);
            if generator.uniform() < 1.0 - (-BURSTS.0 * step).exp() {
                self.burst += -BURSTS.1 * (1.0 - generator.uniform()).ln();
            }
            // Half of the machine, as long as a burst lasts.
            let taken = 0.5 * self.burst.min(step);
            self.burst = (self.burst - step).max(0.0);
            worth += (self.log + self.walk).exp() * (step - taken);
            self.pass(step, generator);
            left -= step;
        }
        worth
    }
}

/// A way from the turns of rounds to the interval of a ratio.
#[derive(Clone, Copy)]
enum Method {
    /// Ratios of the rounds' sums, Student's t over the rounds.
    Sums,
    /// Means of the turns' logarithms in each round, Student's t over the rounds.
    Turns,
    /// Student's t over all turns, as if there were no rounds.
    Pooled,
    /// Percentiles of 200 means of as many rounds, drawn from these with replacement.
    Bootstrap,
}

const METHODS: [Method; 4] = [Method::Sums, Method::Turns, Method::Pooled, Method::Bootstrap];

/// The ends of the interval of a cell's ratio to the first cell.
fn interval(
    method: Method,
    rounds: &[Vec<[f64; CELLS]>],
    cell: usize,
    family: usize,
    generator: &mut Generator,
) -> (f64, f64) {
    let sums = |round: &Vec<[f64; CELLS]>| {
        let of = |cell: usize| round.iter().map(|turn| turn[cell]).sum::<f64>();
        (of(cell), of(0))
    };
    let turns = |round: &Vec<[f64; CELLS]>| {
        let logs = round.iter().map(|turn| (turn[cell] / turn[0]).ln()).sum::<f64>();
        ((logs / round.len() as f64).exp(), 1.0)
    };
    let pairs: Vec<(f64, f64)> = match method {
        Method::Sums | Method::Bootstrap => rounds.iter().map(sums).collect(),
        Method::Turns => rounds.iter().map(turns).collect(),
        Method::Pooled => rounds.iter().flatten().map(|turn| (turn[cell], turn[0])).collect(),
    };
    if matches!(method, Method::Bootstrap) {
        return bootstrap(&pairs, generator);
    }
    let ratio = paired_ratio(&pairs, family).expect("positive pairs");
    ratio.low.zip(ratio.high).expect("two rounds or more")
}

fn bootstrap(pairs: &[(f64, f64)], generator: &mut Generator) -> (f64, f64) {
    let logs: Vec<f64> = pairs.iter().map(|(of, to)| (of / to).ln()).collect();
    let mut mean = || {
        let drawn = logs.iter().map(|_| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
            let at = (generator.uniform() * logs.len() as f64) as usize;
            logs[at]
        });
        drawn.sum::<f64>() / logs.len() as f64
    };
    let mut means: Vec<f64> = (0..200).map(|_| mean()).collect();
    means.sort_by(f64::total_cmp);
    (means[4].exp(), means[195].exp())
}

/// How often a method's intervals hold their ratios, in percent, and the median of their half width,
/// in percent. Both ratios count by themselves, or, as a family, only together.
fn judged<const N: usize>(
    model: Model,
    methods: [Method; N],
    family: usize,
    repetitions: usize,
) -> [(f64, f64); N] {
    let mut generator = Generator::new(41);
    let mut resampling = Generator::new(43);
    let (mut covered, mut widths) = ([0; N], [const { Vec::new() }; N]);
    for _ in 0..repetitions {
        let rounds = model.draw(&mut generator);
        for (index, method) in methods.into_iter().enumerate() {
            let ends = [1, 2].map(|cell| interval(method, &rounds, cell, family, &mut resampling));
            let held = [1, 2].map(|cell| holds(Some(ends[cell - 1].0), Some(ends[cell - 1].1), TRUTHS[cell]));
            let held = held.into_iter().filter(|held| *held).count();
            covered[index] += if family == 1 { held } else { held / 2 * 2 };
            widths[index].extend(ends.map(|(low, high)| (high / low).sqrt() - 1.0));
        }
    }
    let mut widths = widths.into_iter();
    covered.map(|covered| {
        let mut widths: Vec<f64> = widths.next().expect("one for each method");
        widths.sort_by(f64::total_cmp);
        (percent(covered, 2 * repetitions), 100.0 * widths[widths.len() / 2])
    })
}

fn shown<const N: usize>(found: [(f64, f64); N]) -> String {
    found.map(|(covered, half)| format!("{covered:.1} % ± {half:.1} %")).join(" | ")
}

#[test]
fn rounds_of_slices_hold_the_ratio() {
    println!("| rounds | slice, s | turns | seconds in all | sums | turns | all turns, t | bootstrap |");
    println!("|---|---|---|---|---|---|---|---|");
    for rounds in [5, 8, 10, 12] {
        for slice in [0.1, 0.25, 0.5, 36.0 / (rounds * CELLS) as f64] {
            let model = MODEL.of(rounds, slice, 36.0);
            let found = judged(model, METHODS, 1, 500);
            let (turns, elapsed) = (model.turns, model.elapsed());
            println!("| {rounds} | {slice} | {turns} | {elapsed:.0} | {} |", shown(found));
            let [sums, means, _, bootstrap] = found.map(|(covered, _)| covered);
            let holds = |covered: f64| (92.0..=98.0).contains(&covered);
            assert!(holds(sums) && holds(means) && bootstrap < sums, "{rounds} {slice}: {found:?}");
        }
    }
}

#[test]
fn the_recommended_rounds_hold_the_ratio() {
    // Small enough a standard deviation, 0.4, for the bounds of every method.
    for tables in [0.02, 0.05] {
        let [(covered, half)] = judged(Model { tables, ..MODEL }, [Method::Sums], 1, 2000);
        println!("8 rounds, 6 turns of 0.25 s, tables {tables}: {covered:.1} % ± {half:.1} %");
        assert!(COVERAGE.contains(&covered), "{covered}");
    }
}

#[test]
fn eight_rounds_are_about_best_in_the_same_minute() {
    println!("| seconds in all | tables differ by | 5 rounds | 6 | 8 | 10 | 12 |");
    println!("|---|---|---|---|---|---|---|");
    for elapsed in [45.0, 58.0] {
        for tables in [0.0, 0.02, 0.05] {
            let found = [5, 6, 8, 10, 12].map(|rounds| {
                let measured = elapsed - PREPARATION * (rounds * CELLS) as f64;
                let model = Model { tables, ..MODEL }.of(rounds, 0.25, measured);
                let [found] = judged(model, [Method::Sums], 2, 500);
                found
            });
            println!("| {elapsed:.0} | {:.0} % | {} |", 100.0 * tables, shown(found));
            let best = found.iter().map(|(_, half)| *half).fold(f64::INFINITY, f64::min);
            assert!(found[2].1 <= 1.15 * best, "{elapsed} {tables}: {found:?}");
        }
    }
}

#[test]
fn what_ignores_the_rounds_holds_less_as_soon_as_tables_differ() {
    println!("| tables differ by | turns in a round | sums | all turns, t |");
    println!("|---|---|---|---|");
    for (turns, slice) in [(6, 0.25), (15, 0.1)] {
        for tables in [0.0, 0.01, 0.02, 0.05] {
            let model = Model { tables, slice, turns, ..MODEL };
            let found = judged(model, [Method::Sums, Method::Pooled], 1, 500);
            println!("| {:.0} % | {turns} | {} |", 100.0 * tables, shown(found));
            let [sums, pooled] = found.map(|(covered, _)| covered);
            assert!(sums >= 92.0 && (tables < 0.05 || pooled < 91.0), "{tables}: {sums} {pooled}");
        }
    }
}

/// The rates of one cell in equal bins of its measured time in a round: `turns` slices, in one piece
/// or between those of the other cells, cut into so many bins each.
fn series(turns: usize, bins: usize, in_turns: bool, generator: &mut Generator) -> Vec<f64> {
    let mut weather = Weather::new(MODEL.weather, generator);
    let seconds = MODEL.slice / bins as f64;
    let mut rates = Vec::new();
    for _ in 0..turns {
        for cell in shuffled(generator) {
            if cell != 0 {
                if in_turns {
                    weather.worth(MODEL.slice, generator);
                }
                continue;
            }
            let noise = (MODEL.noise * generator.normal()).exp();
            for _ in 0..bins {
                // A long run has no mean if the weather walks away.
                weather.walk = 0.0;
                let expected = 2000.0 * noise * weather.worth(seconds, generator);
                rates.push(generator.poisson(expected) / seconds);
            }
        }
    }
    rates
}

#[test]
fn a_series_with_pauses_is_worth_more_than_one_piece() {
    println!("| slices | bins of each | | interval holds the mean | cold | drifting | two levels |");
    println!("|---|---|---|---|---|---|---|");
    let repetitions = 500;
    for (turns, bins) in [(6, 8), (10, 5), (20, 5), (40, 1), (40, 5)] {
        let [whole, pauses] = [false, true].map(|in_turns| {
            let mut generator = Generator::new(47);
            let long = series(60_000, 1, in_turns, &mut generator);
            let truth = long.iter().sum::<f64>() / long.len() as f64;
            let mut found = [0; 4];
            for _ in 0..repetitions {
                let rates = series(turns, bins, in_turns, &mut generator);
                let estimate = series_interval(&rates).expect("finite rates").estimate;
                found[0] += usize::from(holds(estimate.low, estimate.high, truth));
                found[1] += usize::from(transient(&rates) != Some(0));
                found[2] += usize::from(drift(&rates).is_some_and(|drift| drift.significant));
                found[3] += usize::from(is_bimodal(&rates) == Some(true));
            }
            let found = found.map(|count| percent(count, repetitions));
            let name = if in_turns { "in turns" } else { "in one piece" };
            let shown = found.map(|share| format!("{share:.1} %")).join(" | ");
            println!("| {turns} | {bins} | {name} | {shown} |");
            found
        });
        let case = format!("{turns} {bins}: {whole:?} {pauses:?}");
        assert!(pauses[0] >= whole[0] + 5.0, "{case}");
        assert!((1..4).all(|at| pauses[at] <= whole[at] + 7.0), "{case}");
    }
}

#[test]
fn short_rounds_tell_together_what_was_unsteady() {
    println!(
        "| rounds | slices | false: start, drift, two levels | found: first slice at 70 %, drift of 20 %, two speeds |"
    );
    println!("|---|---|---|---|");
    let repetitions = 500;
    for (rounds, turns) in [(5, 10), (8, 6), (8, 10), (12, 6)] {
        let mut generator = Generator::new(53);
        let (mut alarms, mut found) = ([0; 3], [0; 3]);
        for _ in 0..repetitions {
            let steady: Vec<Vec<f64>> = (0..rounds).map(|_| series(turns, 1, true, &mut generator)).collect();
            let shaped = |level: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
                let shape = |(index, rate): (usize, &f64)| rate * level(index);
                steady.iter().map(|round| round.iter().enumerate().map(shape).collect()).collect()
            };
            let judge = |rounds: &[Vec<f64>]| {
                let significant =
                    |change: Option<isobench_stats::Drift>| change.is_some_and(|it| it.significant);
                let pooled: Vec<f64> = rounds.concat();
                [
                    significant(start_of_rounds(rounds)),
                    significant(drift_of_rounds(rounds)),
                    is_bimodal(&pooled) == Some(true),
                ]
            };
            let cold = judge(&shaped(&|index| if index == 0 { 0.7 } else { 1.0 }))[0];
            let falling = judge(&shaped(&|index| 1.0 - 0.2 * index as f64 / turns as f64))[1];
            let two = judge(&shaped(&|index| if index < turns / 2 { 0.5 } else { 1.0 }))[2];
            for (sum, case) in alarms.iter_mut().zip(judge(&steady)) {
                *sum += usize::from(case);
            }
            for (sum, case) in found.iter_mut().zip([cold, falling, two]) {
                *sum += usize::from(case);
            }
        }
        let (alarms, found) =
            (alarms.map(|count| percent(count, repetitions)), found.map(|count| percent(count, repetitions)));
        let list = |shares: [f64; 3]| shares.map(|share| format!("{share:.1} %")).join(", ");
        println!("| {rounds} | {turns} | {} | {} |", list(alarms), list(found));
        assert!(alarms.iter().all(|share| *share <= 3.0), "{rounds} {turns}: {alarms:?}");
        assert!(found[0] >= 60.0 && found[2] >= 60.0, "{rounds} {turns}: {found:?}");
    }
}
