//! Why a level isn't enough: what happens at it.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_result::Tried;
use isobench_result::words::enumerated;
use isobench_robustness::{How, Objection, Program};
use serde::Serialize;

use crate::shown::{Executed, Shown};

/// What happens at a level.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    /// The level.
    pub level: Level,
    /// The levels of all scripts that meet, unless all have [`Reason::level`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, Level>,
    /// The schedule that theory names, a step on each line.
    pub theory: Vec<String>,
    /// The cycle of dependencies that it closes, from the transaction that is split back to it.
    pub cycle: Vec<Dependency>,
    /// What came of executing it; null if it wasn't executed.
    pub shown: Option<Tried>,
    /// Why it wasn't executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untried: Option<String>,
    /// What the measurement showed, if trying didn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
}

/// A transaction depends on another one, which would have to come first in a serial order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The script of the transaction that would have to come first.
    pub first: String,
    /// The script of the one that would have to come later.
    pub then: String,
    /// `rw`: the later one overwrites what the first one read; `wr`: it reads what the first one wrote;
    /// `ww`: it overwrites that; null: any of them.
    pub how: Option<&'static str>,
    /// The statements of both, such as `pay.sql:7`; empty if they may be any.
    pub at: [String; 2],
}

impl Reason {
    /// What was shown, without a schedule that theory names.
    pub fn tried(level: Level, tried: Tried) -> Reason {
        Reason { shown: Some(tried), ..Reason::at(level) }
    }

    /// Nothing known at this level.
    pub(crate) fn at(level: Level) -> Reason {
        Reason {
            level,
            levels: BTreeMap::new(),
            theory: Vec::new(),
            cycle: Vec::new(),
            shown: None,
            untried: None,
            measured: None,
        }
    }

    /// The level in words, or the levels with the scripts that have them.
    pub(crate) fn at_levels(&self) -> String {
        let mut scripts: BTreeMap<Level, Vec<&str>> = BTreeMap::new();
        for (script, level) in &self.levels {
            scripts.entry(*level).or_default().push(script);
        }
        let texts: Vec<String> =
            scripts.iter().map(|(level, scripts)| format!("{level} ({})", scripts.join(", "))).collect();
        if texts.is_empty() { self.level.to_string() } else { enumerated(&texts) }
    }
}

/// The levels of scripts; none if all are the same.
pub(crate) fn mixed<'s>(levels: impl Iterator<Item = (&'s str, Level)>) -> BTreeMap<String, Level> {
    let levels: BTreeMap<String, Level> = levels.map(|(script, level)| (script.to_owned(), level)).collect();
    let same = levels.values().collect::<BTreeSet<_>>().len() < 2;
    if same { BTreeMap::new() } else { levels }
}

/// The schedule that theory names, a step on each line.
pub(crate) fn steps(programs: &[Program], objection: &Objection) -> Vec<String> {
    objection.steps(programs).to_string().lines().map(str::to_owned).collect()
}

/// The reason that follows from a schedule and what came of it.
pub fn reason(programs: &[Program], shown: &Shown) -> Reason {
    let (tried, untried) = match &shown.executed {
        Executed::Shown(tried) => (Some((**tried).clone()), None),
        Executed::Untried(why) => (None, Some(why.clone())),
        Executed::Unshown(_) => (None, None),
    };
    let dependency = |one: isobench_robustness::Dependency| Dependency {
        first: programs[one.first].name.clone(),
        then: programs[one.then].name.clone(),
        how: one.how.map(How::short),
        at: one.at.map(|at| at.to_string()),
    };
    let meeting: BTreeSet<usize> = shown.combinations().into_iter().flatten().collect();
    let of_meeting =
        meeting.into_iter().map(|program| (programs[program].name.as_str(), shown.levels[program]));
    Reason {
        level: shown.level(),
        levels: mixed(of_meeting),
        theory: steps(programs, &shown.objection),
        cycle: shown.objection.cycle(programs).into_iter().map(dependency).collect(),
        shown: tried,
        untried,
        measured: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_differ_are_said_with_their_scripts() {
        let at = |levels: &[(&'static str, Level)]| {
            let levels = mixed(levels.iter().copied());
            Reason { levels, ..Reason::at(Level::Serializable) }.at_levels()
        };
        assert_eq!(at(&[("a.sql", Level::Serializable), ("b.sql", Level::Serializable)]), "serializable");
        assert_eq!(
            at(&[
                ("a.sql", Level::Serializable),
                ("b.sql", Level::ReadCommitted),
                ("c.sql", Level::ReadCommitted)
            ]),
            "read committed (b.sql, c.sql) and serializable (a.sql)"
        );
    }
}
