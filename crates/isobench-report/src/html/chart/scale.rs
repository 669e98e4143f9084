//! Scales: from values to places in a picture, and the ticks that are worth a label.
//!
//! Whatever goes in, what comes out is finite: a picture is never worth a panic. Not here: how axes
//! are drawn (`frame`).

use isobench_result::numbers::count;

/// Values beyond are drawn at this place: no measurement is that large, and a damaged document may
/// be.
pub const LARGEST: f64 = 1e15;

/// Positive values below are drawn at this place.
const SMALLEST: f64 = 1e-6;

/// From here on labels of ticks are powers of ten.
const LONG: f64 = 1e7;

/// Percentages that deserve a tick, where the sample reaches them.
const PERCENTAGES: [(f64, &str); 6] = [
    (50.0, "50 %"),
    (90.0, "90 %"),
    (99.0, "99 %"),
    (99.9, "99.9 %"),
    (99.99, "99.99 %"),
    (99.999, "99.999 %"),
];

/// The spacing of values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    Linear,
    Logarithmic,
    /// Logarithm of the reciprocal of what lies beyond a percentage: 90, 99 and 99.9 % are equally
    /// far apart.
    Percentiles,
}

impl Spacing {
    fn apply(self, value: f64) -> f64 {
        match self {
            Spacing::Linear => value,
            Spacing::Logarithmic => value.max(SMALLEST).log10(),
            Spacing::Percentiles => -(1.0 - value.clamp(0.0, 99.9999) / 100.0).log10(),
        }
    }
}

/// A value that is worth a line and a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its value.
    pub value: f64,
    /// Its text.
    pub label: String,
}

/// A map from a range of values to a range of places, for example from 0..2000 tps to 40..590
/// units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    shape: Spacing,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// Keeps the values that can be drawn.
fn usable(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().filter(|value| value.is_finite()).map(|value| value.clamp(-LARGEST, LARGEST))
}

fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    usable(values).fold(0.0, f64::max)
}

impl Scale {
    /// Linear from zero to a round number at or above the largest value.
    pub fn from_zero(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Scale {
        let most = largest(values);
        let high = if most > 0.0 { round_up(most.max(SMALLEST)) } else { 1.0 };
        Scale { shape: Spacing::Linear, low: 0.0, high, from, to }
    }

    /// Linear from zero to exactly this value.
    pub fn up_to(high: f64, from: f64, to: f64) -> Scale {
        let high = if high.is_finite() && high > 0.0 { high.clamp(SMALLEST, LARGEST) } else { 1.0 };
        Scale { shape: Spacing::Linear, low: 0.0, high, from, to }
    }

    /// Logarithmic around the positive ones of the values, by `margin` (a factor above 1) wider
    /// than they are.
    pub fn log(values: impl IntoIterator<Item = f64>, margin: f64, from: f64, to: f64) -> Scale {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in usable(values).filter(|value| *value > 0.0) {
            low = low.min(value.max(SMALLEST));
            high = high.max(value.max(SMALLEST));
        }
        if high == 0.0 {
            (low, high) = (1.0, 10.0);
        }
        Scale { shape: Spacing::Logarithmic, low: low / margin, high: high * margin, from, to }
    }

    /// From the median's side to the highest percentage that anything reaches, at least 90.
    pub fn percentiles(most: f64, from: f64, to: f64) -> Scale {
        let high = if most.is_finite() { most.clamp(90.0, 99.9999) } else { 90.0 };
        Scale { shape: Spacing::Percentiles, low: 0.0, high, from, to }
    }

    /// True if the scale has a place for a value.
    pub fn holds(&self, value: f64) -> bool {
        let value = self.shape.apply(value.clamp(-LARGEST, LARGEST));
        let (low, high) = (self.shape.apply(self.low), self.shape.apply(self.high));
        let rounding = 1e-9 * (high - low).abs();
        (low - rounding..=high + rounding).contains(&value)
    }

    /// The place of a value that the scale holds. A value that it doesn't hold, which only a
    /// damaged document has, is put at the nearest end.
    pub fn at(&self, value: f64) -> f64 {
        #[cfg(test)]
        assert!(!value.is_finite() || self.holds(value), "{value} lies outside of {self:?}");
        self.nearest(value)
    }

    /// The place of a value; of the nearest end, if it lies outside. Whoever draws what is outside
    /// has to show that it goes on.
    pub fn nearest(&self, value: f64) -> f64 {
        let (low, high) = (self.shape.apply(self.low), self.shape.apply(self.high));
        let share = ((self.shape.apply(value.clamp(-LARGEST, LARGEST)) - low) / (high - low)).clamp(0.0, 1.0);
        if share.is_finite() { self.from + share * (self.to - self.from) } else { self.from }
    }

    /// 1 if places rise with values, −1 if they fall, as upwards on a page.
    pub fn direction(&self) -> f64 {
        (self.to - self.from).signum()
    }

    /// The highest value of the scale.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Round values within the scale, rising, at most `most` (of percentages: those that the scale
    /// reaches).
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        match self.shape {
            Spacing::Percentiles => PERCENTAGES
                .iter()
                .filter(|(value, _)| *value <= self.high)
                .map(|(value, label)| Tick { value: *value, label: (*label).to_owned() })
                .collect(),
            Spacing::Linear => linear(self.low, self.high, most),
            Spacing::Logarithmic if self.high / self.low < 4.0 => linear(self.low, self.high, most),
            Spacing::Logarithmic => logarithmic(self.low, self.high, most),
        }
    }
}

/// The next of 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|round| *round >= value).unwrap_or(value)
}

fn linear(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let room = most.max(2) as f64;
    let least = (high - low) / room;
    if !least.is_finite() || least <= 0.0 {
        return Vec::new();
    }
    let power = 10_f64.powf(least.log10().floor());
    let fits = |step: &f64| (high / step).floor() - (low / step).ceil() + 1.0 <= room;
    let step = [1.0, 2.0, 5.0, 10.0, 20.0].into_iter().map(|factor| factor * power).find(fits);
    let Some(step) = step else { return Vec::new() };
    let decimals = decimals(step);
    let first = (low / step).ceil();
    (0..most.max(2))
        .map(|index| (first + index as f64) * step)
        .filter(|value| *value >= low && *value <= high * (1.0 + 1e-9))
        .map(|value| Tick { value: value.min(high), label: label(value, decimals) })
        .collect()
}

fn logarithmic(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let (first, last) = (exponent(low).floor(), exponent(high).ceil());
    let choices: [(&[f64], usize); 6] =
        [(&[1.0, 2.0, 5.0], 1), (&[1.0, 3.0], 1), (&[1.0], 1), (&[1.0], 2), (&[1.0], 3), (&[1.0], 6)];
    for (factors, stride) in choices {
        let mut values = Vec::new();
        let mut power = first;
        while power <= last {
            values.extend(factors.iter().map(|factor| factor * 10_f64.powf(power)));
            power += stride as f64;
        }
        values.retain(|value| *value >= low && *value <= high);
        if values.len() <= most {
            let tick = |value: f64| Tick { value, label: label(value, decimals(value)) };
            return values.into_iter().map(tick).collect();
        }
    }
    Vec::new()
}

fn exponent(value: f64) -> f64 {
    value.clamp(SMALLEST / 10.0, LARGEST * 10.0).log10()
}

/// Decimal places that a round step needs.
fn decimals(step: f64) -> usize {
    (0..9)
        .find(|places| {
            let scaled = step * 10_f64.powi(*places);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.abs()
        })
        .and_then(|places| usize::try_from(places).ok())
        .unwrap_or(9)
}

fn label(value: f64, decimals: usize) -> String {
    if value >= LONG {
        return format!("{value:.1e}").replace(".0e", "e");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates; ticks aren't negative"
    )]
    let whole = || count(value.round() as u64);
    if decimals == 0 { whole() } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(scale: &Scale, most: usize) -> Vec<String> {
        scale.ticks(most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(&Scale::from_zero([1980.0], 0.0, 1.0), 6), ["0", "500", "1,000", "1,500", "2,000"]);
        assert_eq!(labels(&Scale::from_zero([0.7], 0.0, 1.0), 5), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(&Scale::log([0.5, 80.0], 1.0, 0.0, 1.0), 5), ["1", "3", "10", "30"]);
        assert_eq!(
            labels(&Scale::log([0.9, 1.1], 1.0, 0.0, 1.0), 5),
            ["0.90", "0.95", "1.00", "1.05", "1.10"]
        );
        assert_eq!(labels(&Scale::percentiles(99.95, 0.0, 1.0), 9), ["50 %", "90 %", "99 %", "99.9 %"]);
        assert_eq!(labels(&Scale::from_zero([3e7], 0.0, 1.0), 4), ["0", "1e7", "2e7", "3e7"]);
    }

    #[test]
    fn nothing_to_show_has_a_scale_too() {
        for values in [vec![], vec![0.0], vec![f64::NAN], vec![f64::INFINITY], vec![-3.0]] {
            let scale = Scale::from_zero(values, 0.0, 100.0);
            assert_eq!((scale.at(0.0), scale.at(scale.high())), (0.0, 100.0));
        }
    }

    #[test]
    fn percentages_are_equally_far_apart() {
        let scale = Scale::percentiles(99.99, 0.0, 400.0);
        for (percent, place) in [(0.0, 0.0), (90.0, 100.0), (99.0, 200.0), (99.9, 300.0), (100.0, 400.0)] {
            assert!((scale.nearest(percent) - place).abs() < 1e-6, "{percent}");
        }
    }

    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>(),
            0.0..1e6_f64,
            0.9..1.1_f64,
            Just(0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(1e-300),
            Just(u64::MAX as f64)
        ]
    }

    proptest! {
        #[test]
        fn no_axis_ends_before_its_data(values in prop::collection::vec(any_number(), 0..8), margin in 1.0..2.0_f64) {
            let positive = || values.iter().copied().filter(|value| value.is_finite() && *value > 0.0);
            let scales = [
                Scale::from_zero(values.clone(), 10.0, 90.0),
                Scale::log(values.clone(), margin, 90.0, 10.0),
                Scale::up_to(positive().fold(0.0, f64::max), 10.0, 90.0),
            ];
            for scale in scales {
                let (most, least) = (positive().fold(0.0, f64::max), positive().fold(f64::INFINITY, f64::min));
                let within = |value: f64| value.clamp(SMALLEST, LARGEST);
                prop_assert!(most == 0.0 || within(most) <= scale.high * (1.0 + 1e-12), "{values:?} {scale:?}");
                prop_assert!(most == 0.0 || within(least) >= scale.low * (1.0 - 1e-12), "{values:?} {scale:?}");
                prop_assert!(positive().all(|value| scale.holds(value)), "{values:?} {scale:?}");
            }
        }

        #[test]
        fn ticks_lie_within_and_places_are_finite(
            values in prop::collection::vec(any_number(), 0..5), other in any_number(), most in 0_usize..12,
        ) {
            let scales = [
                Scale::from_zero(values.clone(), 10.0, 90.0),
                Scale::up_to(other, 10.0, 90.0),
                Scale::log(values.clone(), 1.1, 90.0, 10.0),
                Scale::log(values.clone(), 1.0, 90.0, 10.0),
                Scale::percentiles(other, 10.0, 90.0),
            ];
            for scale in scales {
                let ticks = scale.ticks(most);
                prop_assert!(ticks.is_sorted_by(|one, next| one.value < next.value), "{ticks:?}");
                prop_assert!(ticks.len() <= most.max(PERCENTAGES.len()));
                for tick in &ticks {
                    prop_assert!(tick.value >= scale.low && tick.value <= scale.high, "{tick:?} {scale:?}");
                    prop_assert!(tick.label.chars().count() <= 12, "{tick:?}");
                }
                for value in values.iter().copied().chain([other]).chain(ticks.iter().map(|tick| tick.value)) {
                    let place = scale.nearest(value);
                    prop_assert!((10.0..=90.0).contains(&place), "{value} lies at {place} on {scale:?}");
                }
            }
        }
    }
}
