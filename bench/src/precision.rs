//! How precisely a default comparison knows its ratios: several of them, comparisons of a level with
//! itself, and one with long cells in one piece, which tells whether turns are fair.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use isobench_result::Document;

use crate::client::{ClientError, shown};
use crate::ratio::Ratio;

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct PrecisionPlan {
    /// Default comparisons.
    pub runs: u32,
    /// Comparisons of a level with itself.
    pub same: u32,
    /// The time of the comparison with long cells; zero for none.
    pub long: Duration,
}

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    mean: f64,
    low: f64,
    high: f64,
}

impl Known {
    /// The distance of the ends from the middle, as a share of it.
    fn half_width(self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }

    fn holds(self, ratio: f64) -> bool {
        self.low <= ratio && ratio <= self.high
    }

    /// True if the difference to another one is within what the two intervals allow.
    fn agrees(self, other: Known) -> bool {
        let half = |known: Known| (known.high / known.low).ln() / 2.0;
        (self.mean / other.mean).ln().abs() <= half(self).hypot(half(other))
    }
}

/// A comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    elapsed: Duration,
    /// The share of the measured time for which clients waited for the end of their turn, on average
    /// over clients and rounds; zero without turns.
    idle: f64,
    /// The ratios, by level.
    ratios: Vec<(String, Known)>,
}

/// Runs isobench, and takes the ratios from its result.
///
/// # Errors
/// isobench can't be started, fails, or writes no complete result.
fn compare(isobench: &Path, arguments: &[&str], folder: &Path) -> Result<Compared, ClientError> {
    let result = folder.join("result.json");
    let mut command = Command::new(isobench);
    command.arg("compare").args(arguments).arg("--json").arg(&result);
    command.stdin(Stdio::null());
    let system = |source| ClientError::System { program: isobench.display().to_string(), source };
    let began = Instant::now();
    let output = command.output().map_err(system)?;
    let elapsed = began.elapsed();
    let failed = |output: String, status| ClientError::Failed { command: shown(&command), status, output };
    let text = std::fs::read(&result).map_err(system)?;
    std::fs::remove_file(&result).map_err(system)?;
    let document = Document::from_json(text).map_err(|error| failed(error.to_string(), output.status))?;
    if !document.complete {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned(), output.status));
    }
    Ok(Compared { elapsed, idle: idle(&document), ratios: ratios(&document) })
}

/// See [`Compared::idle`].
fn idle(document: &Document) -> f64 {
    let rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
    let shares: Vec<f64> = rounds.map(|round| round.turns.map_or(0.0, |turns| turns.idle_share)).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// The ratios to the first cell that have an interval.
fn ratios(document: &Document) -> Vec<(String, Known)> {
    let cells = document.cells.iter().skip(1).filter_map(|cell| {
        let ratio = cell.summary.ratio.as_ref()?;
        Some((cell.level.name(), Known { mean: ratio.mean, low: ratio.low?, high: ratio.high? }))
    });
    cells.collect()
}

/// The lines about a comparison.
fn lines(kind: &str, compared: &Compared) -> String {
    let line = |(level, known): &(String, Known)| {
        let Known { mean, low, high } = known;
        let (seconds, idle) = (compared.elapsed.as_secs_f64(), compared.idle * 1e2);
        let half = known.half_width() * 1e2;
        format!(
            "{kind:8} {seconds:6.1} s  {level:16} {mean:.3} ({low:.3} to {high:.3}), ± {half:.1} %, idle {idle:.2} %\n"
        )
    };
    compared.ratios.iter().map(line).collect()
}

/// The number of ratios that satisfy a condition.
fn share(ratios: &[&(String, Known)], which: impl Fn(&(String, Known)) -> bool) -> String {
    format!("{} of {}", ratios.iter().filter(|ratio| which(ratio)).count(), ratios.len())
}

/// Runs everything, with further options; `tell` receives lines, also of what is over.
///
/// # Errors
/// A comparison fails.
pub fn run(
    plan: PrecisionPlan,
    isobench: &Path,
    further: &[String],
    folder: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<(), ClientError> {
    let mut compared = |kind: &str, own: &[&str], count: u32| {
        let mut all = Vec::new();
        for seed in 1..=count {
            let seed = seed.to_string();
            let further = further.iter().map(String::as_str);
            let arguments: Vec<&str> = own.iter().copied().chain(["--seed", &seed]).chain(further).collect();
            let one = compare(isobench, &arguments, folder)?;
            tell(&lines(kind, &one));
            all.push(one);
        }
        Ok::<Vec<Compared>, ClientError>(all)
    };
    let defaults = compared("default", &[], plan.runs)?;
    let same = compared("same", &["--levels", "rc", "--calibrate"], plan.same)?;
    let time = format!("{:.0}ms", plan.long.as_secs_f64() * 1e3 / LONG_CELLS);
    let long = ["--slice", "0", "--rounds", "8", "--time", &time];
    let long = compared("long", &long, u32::from(plan.long > Duration::ZERO))?;
    tell(&summary(&defaults, &same, &long));
    Ok(())
}

/// The cells of the comparison with long ones: eight rounds of three levels.
const LONG_CELLS: f64 = 24.0;

/// The ratios of several comparisons.
fn known(all: &[Compared]) -> Vec<&(String, Known)> {
    all.iter().flat_map(|one| &one.ratios).collect()
}

/// What follows from all comparisons.
fn summary(defaults: &[Compared], same: &[Compared], long: &[Compared]) -> String {
    let percent = |ratios: &[&(String, Known)]| {
        let halves = Ratio::of(ratios.iter().map(|(_, known)| (known.half_width() * 1e2, 1.0)));
        halves.map_or_else(|| "none".to_owned(), |halves| format!("± {halves} %"))
    };
    let seconds = Ratio::of(defaults.iter().map(|one| (one.elapsed.as_secs_f64(), 1.0)));
    let seconds = seconds.map_or_else(|| "none".to_owned(), |seconds| format!("{seconds} s"));
    let agrees = |(level, own): &(String, Known)| {
        known(long).iter().any(|(other, long)| other == level && own.agrees(*long))
    };
    let rows = [
        ("half-widths of default comparisons", percent(&known(defaults))),
        ("their times", seconds),
        ("half-widths of a level with itself", percent(&known(same))),
        ("of these, false alarms", share(&known(same), |(_, known)| !known.holds(1.0))),
        ("default ratios that agree with the long cells'", share(&known(defaults), agrees)),
    ];
    rows.map(|(what, value)| format!("{what:48} {value}\n")).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(mean: f64, low: f64, high: f64) -> Known {
        Known { mean, low, high }
    }

    #[test]
    fn intervals_are_compared_by_their_logarithms() {
        assert!((ratio(1.0, 0.5, 2.0).half_width() - 1.0).abs() < 1e-12);
        assert!(ratio(0.5, 0.4, 0.6).agrees(ratio(0.55, 0.5, 0.6)));
        assert!(!ratio(0.5, 0.49, 0.51).agrees(ratio(0.55, 0.54, 0.56)));
        assert!(ratio(0.99, 0.97, 1.01).holds(1.0) && !ratio(0.98, 0.97, 0.99).holds(1.0));
    }

    #[test]
    fn the_summary_counts() {
        let one = |level: &str, known: Known| Compared {
            elapsed: Duration::from_secs(50),
            idle: 0.0,
            ratios: vec![(level.to_owned(), known)],
        };
        let defaults = [one("a", ratio(0.5, 0.49, 0.51)), one("a", ratio(0.6, 0.59, 0.61))];
        let same = [one("b", ratio(1.0, 0.9, 1.1)), one("b", ratio(1.1, 1.05, 1.15))];
        let text = summary(&defaults, &same, &[one("a", ratio(0.5, 0.49, 0.51))]);
        assert!(text.contains("50.00 (50.00..50.00) s"), "{text}");
        assert!(text.contains("false alarms") && text.matches(" 1 of 2").count() == 2, "{text}");
    }
}
