//! The values that options and plan files give, checked one by one; an error names its option.
//!
//! Not here: what the options mean together (`plan.rs`).

use std::fmt::Display;
use std::time::Duration;

use isobench_runner::{Pacing, Protocol};

use crate::failure::{Failure, Outcome};

/// Splits a list of retry policies at those commas that don't separate the parameters of one.
pub fn policies(list: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for part in list.split(',') {
        match policies.last_mut() {
            Some(last) if last.starts_with("exponential") && part.contains('=') && !part.contains(':') => {
                last.push(',');
                last.push_str(part);
            }
            _ => policies.push(part.to_owned()),
        }
    }
    policies
}

pub fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

pub fn parse_all<T, E: Display>(
    option: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, E>,
) -> Outcome<Vec<T>> {
    if texts.is_empty() {
        return Err(Failure::setup(format!("--{option}: the list is empty")));
    }
    let parse = |text: &String| parse(text).map_err(|error| wrong(option, error));
    texts.iter().map(parse).collect()
}

pub fn wrong(option: &str, problem: impl Display) -> Failure {
    Failure::setup(format!("--{option}: {problem}"))
}

pub fn distinct<T: PartialEq>(option: &str, values: &[T]) -> Outcome {
    let repeated = values.iter().enumerate().any(|(index, value)| values[..index].contains(value));
    if repeated { Err(wrong(option, "the same value twice")) } else { Ok(()) }
}

pub fn at_least_one<T: PartialEq + Default>(option: &str, value: T) -> Outcome<T> {
    if value == T::default() { Err(wrong(option, "must be at least 1")) } else { Ok(value) }
}

/// The longest time that any option takes, in seconds: over eleven days.
const LONGEST: f64 = 1e6;

/// A time in seconds.
///
/// # Errors
/// Not a number from `least` to 1,000,000.
pub fn seconds(option: &str, value: f64, least: f64) -> Outcome<Duration> {
    if (least..=LONGEST).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(wrong(option, format!("{value} is no number of seconds from {least} to {LONGEST}")))
}

/// The longest warm-up, three steps if it isn't given.
pub fn longest_warmup(warmup: Duration, given: Option<f64>) -> Outcome<Duration> {
    let Some(given) = given else { return Ok(warmup * 3) };
    let longest = seconds("max-warmup", given, 0.0)?;
    if longest < warmup {
        let (longest, warmup) = (longest.as_secs_f64(), warmup.as_secs_f64());
        return Err(wrong("max-warmup", format!("{longest} s is less than --warmup ({warmup} s)")));
    }
    Ok(longest)
}

/// A share: "2%" or "2 %" or 0.02.
///
/// # Errors
/// Not a number above 0 and up to 1.
pub fn share(option: &str, text: &str) -> Outcome<f64> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>().map(|number| number / unit) {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(wrong(option, format!("\"{text}\" is no percentage above 0 and up to 100, such as 2%"))),
    }
}

/// A time in milliseconds.
///
/// # Errors
/// Not a number above 0 and up to 1,000,000,000.
pub fn milliseconds(option: &str, value: f64) -> Outcome<Duration> {
    if value > 0.0 && value <= LONGEST * 1e3 {
        return Ok(Duration::from_secs_f64(value / 1e3));
    }
    Err(wrong(option, format!("{value} is no number of milliseconds above 0")))
}

/// Pacing from the options that concern it.
///
/// # Errors
/// Both are given, or one is out of range.
pub fn pacing(rate: Option<f64>, think_time: Option<f64>) -> Outcome<Pacing> {
    match (rate, think_time) {
        (Some(_), Some(_)) => Err(Failure::setup("--rate and --think-time exclude each other")),
        (Some(rate), None) if rate > 0.0 && rate.is_finite() => Ok(Pacing::Rate(rate)),
        (Some(rate), None) => {
            Err(wrong("rate", format!("{rate} is no number of transactions per second above 0")))
        }
        (None, Some(pause)) => Ok(Pacing::ThinkTime(milliseconds("think-time", pause)?)),
        (None, None) => Ok(Pacing::Unpaced),
    }
}

/// A protocol by its name.
///
/// # Errors
/// There is none.
pub fn protocol(name: &str) -> Outcome<Protocol> {
    Protocol::ALL.into_iter().find(|protocol| protocol.name() == name).ok_or_else(|| {
        wrong("protocol", format!("invalid query mode: \"{name}\"; use simple, extended or prepared"))
    })
}
