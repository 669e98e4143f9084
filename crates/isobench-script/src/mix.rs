//! A weighted set of scripts, from which clients choose the next one to execute.

use std::fmt;

use crate::random::Prng;
use crate::script::Script;

/// The maximum number of scripts in a run.
const MAX_SCRIPTS: usize = 128;
/// The largest weight of one script.
const MAX_WEIGHT: i64 = i32::MAX as i64;

/// A script and its weight.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// The script.
    pub script: Script,
    /// The weight relative to the sum of all weights; a script of weight 0 is never chosen.
    pub weight: u64,
}

/// The scripts of a run.
#[derive(Clone, Debug)]
pub struct Mix {
    scripts: Vec<Weighted>,
    total: i64,
}

impl Mix {
    /// Combines scripts.
    ///
    /// # Errors
    /// If there are no scripts, more than 128, or the sum of the weights is 0 or exceeds 64 bits.
    pub fn new(scripts: Vec<Weighted>) -> Result<Self, MixError> {
        if scripts.is_empty() {
            return Err(MixError::NoScript);
        }
        if scripts.len() > MAX_SCRIPTS {
            return Err(MixError::TooMany);
        }
        let total = scripts
            .iter()
            .try_fold(0_i64, |sum, weighted| {
                i64::try_from(weighted.weight).ok().and_then(|weight| sum.checked_add(weight))
            })
            .ok_or(MixError::TooHeavy)?;
        if total == 0 {
            return Err(MixError::NoWeight);
        }
        Ok(Self { scripts, total })
    }

    /// Chooses the index of the next script. As in pgbench, a single script is chosen without
    /// drawing a number.
    pub fn choose(&self, rng: &mut Prng) -> usize {
        if self.scripts.len() == 1 {
            return 0;
        }
        let mut rest = rng.int_between(0, self.total - 1).cast_unsigned();
        for (index, weighted) in self.scripts.iter().enumerate() {
            if rest < weighted.weight {
                return index;
            }
            rest -= weighted.weight;
        }
        self.scripts.len() - 1
    }

    /// The scripts in the order given.
    pub fn scripts(&self) -> &[Weighted] {
        &self.scripts
    }

    /// True if a script describes reads or writes in lines `--@`.
    pub fn is_annotated(&self) -> bool {
        let mut lines = self.scripts.iter().flat_map(|weighted| weighted.script.annotations());
        lines.any(|line| line.what.is_recorded())
    }

    /// The scripts, to be edited.
    pub fn scripts_mut(&mut self) -> impl Iterator<Item = &mut Script> {
        self.scripts.iter_mut().map(|weighted| &mut weighted.script)
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        self.total.cast_unsigned()
    }
}

/// A set of scripts that can't be run together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MixError {
    /// There are no scripts.
    NoScript,
    /// There are more than 128 scripts.
    TooMany,
    /// All weights are 0.
    NoWeight,
    /// The sum of the weights is outside 64 bits.
    TooHeavy,
}

impl fmt::Display for MixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScript => f.write_str("no script to run"),
            Self::TooMany => write!(f, "at most {MAX_SCRIPTS} SQL scripts are allowed"),
            Self::NoWeight => f.write_str("total script weight must not be zero"),
            Self::TooHeavy => f.write_str("total script weight is too large"),
        }
    }
}

impl std::error::Error for MixError {}

/// Splits `name@weight`, the argument of `-f` and `-b`, at its last `@`. The default weight is 1.
///
/// # Errors
/// If the text after the `@` isn't an integer from 0 to 2147483647.
pub fn split_weight(arg: &str) -> Result<(&str, u64), WeightError> {
    let Some((name, weight)) = arg.rsplit_once('@') else {
        return Ok((arg, 1));
    };
    let number = weight.trim_start_matches(crate::number::is_space);
    let invalid = || WeightError::Invalid { text: weight.to_owned() };
    let number: i64 = number.parse().map_err(|_| invalid())?;
    if !(0..=MAX_WEIGHT).contains(&number) {
        return Err(WeightError::OutOfRange { weight: number });
    }
    Ok((name, number.cast_unsigned()))
}

/// An invalid weight.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WeightError {
    /// It isn't an integer.
    Invalid {
        /// The text after the `@`.
        text: String,
    },
    /// It is negative or too large.
    OutOfRange {
        /// The number.
        weight: i64,
    },
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { text } => write!(f, "invalid weight specification: @{text}"),
            Self::OutOfRange { weight } => {
                write!(f, "weight specification out of range (0 .. {MAX_WEIGHT}): {weight}")
            }
        }
    }
}

impl std::error::Error for WeightError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighted(weight: u64) -> Weighted {
        Weighted { script: Script { name: "x".to_owned(), commands: Vec::new() }, weight }
    }

    #[test]
    fn weights_are_split_as_pgbench_does() {
        for (arg, expected) in [
            ("x.sql", ("x.sql", 1)),
            ("x.sql@0", ("x.sql", 0)),
            ("x.sql@ 2", ("x.sql", 2)),
            ("x.sql@+2", ("x.sql", 2)),
            ("x@b.sql@2147483647", ("x@b.sql", 2_147_483_647)),
            ("@2", ("", 2)),
        ] {
            assert_eq!(split_weight(arg), Ok(expected), "{arg}");
        }
        for (arg, message) in [
            ("x@", "invalid weight specification: @"),
            ("x@2 ", "invalid weight specification: @2 "),
            ("x@1.5", "invalid weight specification: @1.5"),
            ("x@9223372036854775808", "invalid weight specification: @9223372036854775808"),
            ("x@-1", "weight specification out of range (0 .. 2147483647): -1"),
            ("x@2147483648", "weight specification out of range (0 .. 2147483647): 2147483648"),
        ] {
            assert_eq!(
                split_weight(arg).map_err(|error| error.to_string()),
                Err(message.to_owned()),
                "{arg}"
            );
        }
    }

    #[test]
    fn choices_follow_the_weights() {
        let mix = Mix::new(vec![weighted(1), weighted(0), weighted(3)]).unwrap();
        let mut rng = Prng::seed(1);
        let mut counts = [0_u32; 3];
        for _ in 0..4000 {
            counts[mix.choose(&mut rng)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((800..1200).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn one_script_draws_nothing() {
        let mix = Mix::new(vec![weighted(5)]).unwrap();
        let mut rng = Prng::seed(1);
        assert_eq!(mix.choose(&mut rng), 0);
        assert_eq!(rng, Prng::seed(1));
    }

    #[test]
    fn bad_mixes_are_refused() {
        assert_eq!(Mix::new(Vec::new()).unwrap_err(), MixError::NoScript);
        assert_eq!(Mix::new(vec![weighted(0)]).unwrap_err(), MixError::NoWeight);
        assert_eq!(Mix::new(vec![weighted(u64::MAX)]).unwrap_err(), MixError::TooHeavy);
        assert_eq!(Mix::new(vec![weighted(1); 129]).unwrap_err(), MixError::TooMany);
    }
}
