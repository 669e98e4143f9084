//! Checks of the values of options and plan files, one by one; an error names its option.
//!
//! Not here: the meaning of options together (`design.rs`).

use std::fmt::Display;
use std::time::Duration;

use isobench_runner::{EventLoop, Pacing, Protocol};

use crate::failure::{Failure, Outcome};

/// # Errors
/// A list has no value.
pub fn not_empty<T>(option: &str, values: &[T]) -> Outcome {
    if values.is_empty() { Err(wrong(option, "the list is empty")) } else { Ok(()) }
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

/// Upper limit of times given as options, in seconds: over eleven days.
const LONGEST: f64 = 1e6;

/// A time in seconds.
///
/// # Errors
/// Not a number from `least` to 1,000,000.
pub fn seconds(option: &str, value: f64, least: f64) -> Outcome<Duration> {
    if (least..=LONGEST).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(wrong(option, format!("{value} isn't a number of seconds from {least} to {LONGEST}")))
}

/// The longest warm-up, by default three steps.
pub fn longest_warmup(warmup: Duration, given: Option<f64>) -> Outcome<Duration> {
    let Some(given) = given else { return Ok(warmup * 3) };
    let longest = seconds("max-warmup", given, 0.0)?;
    if longest < warmup {
        let (longest, warmup) = (longest.as_secs_f64(), warmup.as_secs_f64());
        return Err(wrong("max-warmup", format!("{longest} s is less than --warmup ({warmup} s)")));
    }
    Ok(longest)
}

/// A time in milliseconds.
///
/// # Errors
/// Not a number above 0 and up to 1,000,000,000.
pub fn milliseconds(option: &str, value: f64) -> Outcome<Duration> {
    if value > 0.0 && value <= LONGEST * 1e3 {
        return Ok(Duration::from_secs_f64(value / 1e3));
    }
    Err(wrong(option, format!("{value} isn't a number of milliseconds above 0")))
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
            Err(wrong("rate", format!("{rate} isn't a number of transactions per second above 0")))
        }
        (None, Some(pause)) => Ok(Pacing::ThinkTime(milliseconds("think-time", pause)?)),
        (None, None) => Ok(Pacing::Unpaced),
    }
}

/// The runner's event loop; `None`: the one that costs less.
pub fn event_loop(wanted: isobench_plan::EventLoop) -> Option<EventLoop> {
    match wanted {
        isobench_plan::EventLoop::Auto => None,
        isobench_plan::EventLoop::Epoll => Some(EventLoop::Epoll),
        isobench_plan::EventLoop::IoUring => Some(EventLoop::IoUring),
    }
}

/// A protocol by its name.
///
/// # Errors
/// Unknown name.
pub fn protocol(name: &str) -> Outcome<Protocol> {
    Protocol::ALL.into_iter().find(|protocol| protocol.name() == name).ok_or_else(|| {
        wrong("protocol", format!("invalid query mode: \"{name}\"; use simple, extended or prepared"))
    })
}
