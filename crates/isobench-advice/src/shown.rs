//! What came of executing the schedules that theory names.

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_result::Tried;
use isobench_robustness::Objection;

/// What came of executing a schedule with all parameters that were chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Executed {
    /// A wrong outcome, which no serial order gives.
    Shown(Box<Tried>),
    /// None, in so many interleavings.
    Unshown(u64),
    /// It couldn't be executed.
    Untried(String),
}

/// Why a program needs its level.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The index of the program.
    pub program: usize,
    /// The levels of all programs with which that happens: of this one the next lower level, or a
    /// higher one.
    pub levels: Vec<Level>,
    /// The schedule that theory names.
    pub objection: Objection,
    /// What came of it.
    pub executed: Executed,
}

impl Shown {
    /// The level of the program.
    pub fn level(&self) -> Level {
        self.levels[self.program]
    }

    /// Who meets, as in [`crate::Execute::combinations`].
    pub fn combinations(&self) -> Vec<Vec<usize>> {
        combinations(&self.objection)
    }
}

/// Who meets.
pub(crate) fn combinations(objection: &Objection) -> Vec<Vec<usize>> {
    let own = scripts(objection);
    let programs: BTreeSet<usize> = own.iter().copied().collect();
    let mut combinations = vec![own];
    for one in &programs {
        for other in &programs {
            let pair = vec![*one, *other];
            if !combinations.contains(&pair) {
                combinations.push(pair);
            }
        }
    }
    combinations
}

/// The programs of an objection's transactions, the one that is split first.
fn scripts(objection: &Objection) -> Vec<usize> {
    let mut scripts = vec![objection.read.role.program, objection.overwrites.role.program];
    scripts.extend(objection.between.iter().map(|role| role.program));
    if !objection.alone {
        scripts.push(objection.by.role.program);
    }
    scripts
}
