//! The retry policy as a value: whether a conflict is followed by a retry, and after what delay.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use isobench_script::Prng;

/// The number of attempts of a transaction, and the pause between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// The most attempts of one transaction, including the first; `None` is unlimited (pgbench:
    /// `--max-tries`, 0 = unlimited).
    pub max_tries: Option<NonZeroU32>,
    /// The delay before each retry.
    pub backoff: Backoff,
    /// The point at which each retry starts.
    pub restart: Restart,
}

/// The point at which a retry starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// At the script's first command, after ROLLBACK.
    #[default]
    Transaction,
    /// After the script's command `SAVEPOINT name`, in the same transaction block, after `ROLLBACK
    /// TO SAVEPOINT name`, as CockroachDB's retry protocol requires (there the name is
    /// `cockroach_restart`).
    ///
    /// At the first command instead if the conflict came before SAVEPOINT was answered or after
    /// `RELEASE name` was, or if the server refuses `ROLLBACK TO`.
    ///
    /// Only the block's first savepoint is used, and only if it isn't set in a pipeline and no
    /// command before it has lines `--@`, because work before it isn't undone. RELEASE may be the
    /// real commit, so an attempt whose connection is lost after it is ambiguous. A server that
    /// keeps the transaction's snapshot, as PostgreSQL does from repeatable read up, meets the same
    /// conflict again.
    Savepoint,
}

impl RetryPolicy {
    /// One attempt: every conflict makes the transaction fail (pgbench's default).
    pub const NEVER: RetryPolicy = RetryPolicy {
        max_tries: Some(NonZeroU32::MIN),
        backoff: Backoff::None,
        restart: Restart::Transaction,
    };

    /// Unlimited attempts without delay.
    pub const UNLIMITED: RetryPolicy = RetryPolicy { max_tries: None, ..RetryPolicy::NEVER };

    /// True if a transaction that has made `tries` attempts may make another one.
    pub fn allows_another(&self, tries: u32) -> bool {
        self.max_tries.is_none_or(|most| tries < most.get())
    }
}

/// The delay between an attempt that ended in a conflict and the next one.
///
/// Written as `none`, `fixed:5ms` or `exponential:base=1ms,factor=2,max=100ms,jitter=full`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Backoff {
    /// No delay: the retry starts immediately.
    None,
    /// Always the same delay.
    Fixed(Duration),
    /// `base`·`factor`^(retries so far), at most `max`.
    Exponential {
        /// Delay before the first retry.
        base: Duration,
        /// Growth per further retry, at least 1.
        factor: f64,
        /// The longest delay.
        max: Duration,
        /// The random part of the delay.
        jitter: Jitter,
    },
}

/// Randomness of an exponential backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jitter {
    /// Uniform between zero and the computed delay ("full jitter").
    Full,
    /// The computed delay itself.
    None,
}

impl Backoff {
    /// The delay before the next attempt of a transaction that has been retried `retries` times.
    pub fn delay(&self, retries: u32, rng: &mut Prng) -> Duration {
        match *self {
            Backoff::None => Duration::ZERO,
            Backoff::Fixed(delay) => delay,
            Backoff::Exponential { base, factor, max, jitter } => {
                let exponent = i32::try_from(retries).unwrap_or(i32::MAX);
                let grown = base.as_secs_f64() * factor.powi(exponent);
                let capped = grown.min(max.as_secs_f64());
                let share = match jitter {
                    Jitter::Full => rng.double(),
                    Jitter::None => 1.0,
                };
                Duration::from_secs_f64(capped * share)
            }
        }
    }
}

impl fmt::Display for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Backoff::None => "none".to_owned(),
            Backoff::Fixed(delay) => format!("fixed:{}", humantime::format_duration(delay)).replace(' ', ""),
            Backoff::Exponential { base, factor, max, jitter } => {
                let base = humantime::format_duration(base).to_string().replace(' ', "");
                let max = humantime::format_duration(max).to_string().replace(' ', "");
                let jitter = match jitter {
                    Jitter::Full => "full",
                    Jitter::None => "none",
                };
                format!("exponential:base={base},factor={factor},max={max},jitter={jitter}")
            }
        };
        f.pad(&text)
    }
}

/// The text isn't a backoff policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid backoff \"{text}\": {why}; use none, fixed:DELAY or \
     exponential:base=DELAY,factor=NUMBER,max=DELAY,jitter=full|none \
     (a DELAY is a number with its unit, such as 500us, 5ms or 1s)"
)]
pub struct BackoffError {
    text: String,
    why: String,
}

impl Backoff {
    /// Reads lists of policies, each list with commas between them, as the command line and plan
    /// files have them. A part such as `max=9ms` belongs to the policy before it: a policy's name
    /// has no `=`.
    ///
    /// # Errors
    /// [`BackoffError`] for the first text that isn't a policy.
    pub fn list(lists: &[String]) -> Result<Vec<Backoff>, BackoffError> {
        let mut texts: Vec<String> = Vec::new();
        for part in lists.iter().flat_map(|list| list.split(',')) {
            let name = part.split(':').next().unwrap_or_default();
            match texts.last_mut() {
                Some(last) if name.contains('=') => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => texts.push(part.to_owned()),
            }
        }
        texts.iter().map(|text| text.parse()).collect()
    }
}

impl FromStr for Backoff {
    type Err = BackoffError;

    fn from_str(text: &str) -> Result<Self, BackoffError> {
        parse(text.trim()).map_err(|why| BackoffError { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Backoff, String> {
    match text.split_once(':') {
        None if text == "none" => Ok(Backoff::None),
        None if text == "exponential" => parse_exponential(""),
        Some(("fixed", delay)) => Ok(Backoff::Fixed(parse_delay(delay)?)),
        Some(("exponential", parameters)) => parse_exponential(parameters),
        _ => Err("unknown policy".to_owned()),
    }
}

fn parse_exponential(parameters: &str) -> Result<Backoff, String> {
    let (mut base, mut factor, mut max, mut jitter) =
        (Duration::from_millis(1), 2.0, Duration::from_secs(1), Jitter::Full);
    for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("base", value)) => base = parse_delay(value)?,
            Some(("max", value)) => max = parse_delay(value)?,
            Some(("factor", value)) => {
                factor = value
                    .parse::<f64>()
                    .ok()
                    .filter(|factor| factor.is_finite() && *factor >= 1.0)
                    .ok_or_else(|| format!("factor \"{value}\" is no number from 1 up"))?;
            }
            Some(("jitter", "full")) => jitter = Jitter::Full,
            Some(("jitter", "none")) => jitter = Jitter::None,
            _ => return Err(format!("unknown parameter \"{parameter}\"")),
        }
    }
    if base > max {
        return Err("base is greater than max".to_owned());
    }
    Ok(Backoff::Exponential { base, factor, max, jitter })
}

/// The longest delay accepted. A longer one is most likely a wrong unit.
const LONGEST_DELAY: Duration = Duration::from_hours(1);

fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = humantime::parse_duration(text).map_err(|why| format!("\"{text}\" is no delay ({why})"))?;
    if delay > LONGEST_DELAY {
        return Err(format!("\"{text}\" is longer than an hour"));
    }
    Ok(delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_and_written_alike() {
        for text in ["none", "fixed:5ms", "exponential:base=1ms,factor=2,max=100ms,jitter=full"] {
            assert_eq!(text.parse::<Backoff>().unwrap().to_string(), text);
        }
        let defaults: Backoff = "exponential".parse().unwrap();
        assert_eq!(defaults.to_string(), "exponential:base=1ms,factor=2,max=1s,jitter=full");
    }

    #[test]
    fn a_list_is_split_between_policies_only() {
        let texts = |lists: &[&str]| -> Vec<String> {
            let lists: Vec<String> = lists.iter().map(|&list| list.to_owned()).collect();
            Backoff::list(&lists).unwrap().iter().map(Backoff::to_string).collect()
        };
        assert_eq!(texts(&["none,fixed:5ms"]), ["none", "fixed:5ms"]);
        assert_eq!(texts(&["none", "fixed:1s"]), ["none", "fixed:1s"]);
        let found = texts(&["exponential:base=1ms,factor=2,none,exponential,fixed:1s"]);
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], "exponential:base=1ms,factor=2,max=1s,jitter=full");
        assert_eq!(texts(&["exponential:base=1ms,exponential:base=2ms,max=9ms"]).len(), 2);
        assert!(Backoff::list(&["none,max=9ms".to_owned()]).is_err());
    }

    #[test]
    fn a_bad_policy_says_what_is_wrong() {
        for (text, why) in [
            ("often", "unknown policy"),
            ("fixed:5", "\"5\" is no delay"),
            ("fixed:2h", "longer than an hour"),
            ("exponential:base=1ms,growth=2", "unknown parameter \"growth=2\""),
            ("exponential:factor=0.5", "from 1 up"),
            ("exponential:base=2s,max=1s", "base is greater than max"),
        ] {
            let message = text.parse::<Backoff>().unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
            assert!(message.contains("fixed:DELAY"), "{message}");
        }
    }

    #[test]
    fn exponential_delays_grow_to_their_maximum() {
        let mut rng = Prng::seed(1);
        let steady: Backoff = "exponential:base=1ms,factor=2,max=5ms,jitter=none".parse().unwrap();
        let delays: Vec<u128> = (0..5).map(|retries| steady.delay(retries, &mut rng).as_millis()).collect();
        assert_eq!(delays, [1, 2, 4, 5, 5]);
        assert_eq!(steady.delay(u32::MAX, &mut rng), Duration::from_millis(5));
        let jittered: Backoff = "exponential:base=1ms,factor=2,max=5ms,jitter=full".parse().unwrap();
        assert!((0..1000).all(|retries| jittered.delay(retries, &mut rng) <= Duration::from_millis(5)));
    }

    #[test]
    fn tries_are_counted_with_the_first() {
        let thrice = RetryPolicy { max_tries: NonZeroU32::new(3), ..RetryPolicy::NEVER };
        assert!(thrice.allows_another(2));
        assert!(!thrice.allows_another(3));
        assert!(!RetryPolicy::NEVER.allows_another(1));
        assert!(RetryPolicy::UNLIMITED.allows_another(u32::MAX));
    }
}
