//! The levels that are proved, those below which something was shown, and changes of scripts.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use isobench_observation::Templates;
use isobench_result::Tried;
use isobench_robustness::{
    Allocated, Change, Objection, Promoted, Promoting, Promotion, Struck, allocate, decide, promote,
};

/// The most reads that are changed at once.
const MOST_CHANGES: usize = 3;

/// The most schedules that are executed, so that the answer comes in minutes.
pub const MOST_EXECUTED: usize = 24;

/// What is asked.
pub struct Question<'a> {
    /// The programs of the scripts.
    pub templates: &'a Templates,
    /// What was struck before.
    pub struck: Struck,
    /// The most schedules that are executed.
    pub most: usize,
}

/// A schedule that is to be executed: the programs that meet, the first of which is split, each at its
/// level.
pub struct Execute<'a> {
    /// The scripts' numbers: the one that is split, and those within, in order. First those that theory
    /// names, then all pairs of them: a single statement can't be split, but what it does to another one
    /// before it commits shows the same.
    pub casts: Vec<Vec<usize>>,
    /// A level for each program.
    pub levels: &'a [Level],
}

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
    /// The next lower level.
    pub lower: Level,
    /// The schedule that theory names.
    pub objection: Objection,
    /// What came of it.
    pub executed: Executed,
}

impl Shown {
    /// Who meets, as in [`Execute::casts`].
    pub fn casts(&self) -> Vec<Vec<usize>> {
        casts(&self.objection)
    }
}

/// A schedule that theory names, and that wasn't shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Possible {
    /// The schedule.
    pub objection: Objection,
    /// The interleavings that were executed.
    pub interleavings: u64,
}

/// What was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The lowest levels that are proved to be safe, as far as all statements are known.
    pub proved: Allocated,
    /// The lowest levels without the schedules that could not be shown.
    pub levels: Vec<Level>,
    /// For each program above read committed, what happens one level lower.
    pub reasons: Vec<Shown>,
    /// The schedules that could not be shown.
    pub possible: Vec<Possible>,
    /// What was struck.
    pub struck: Struck,
    /// Programs for which a higher level wouldn't be safe, with what happens there.
    pub harmful: Vec<Shown>,
}

impl Question<'_> {
    /// Decides the levels, and executes what speaks against lower ones.
    ///
    /// # Errors
    /// Those of `execute`.
    pub fn decide<E>(
        &self,
        mut execute: impl FnMut(&Execute<'_>) -> Result<Executed, E>,
    ) -> Result<Decision, E> {
        let programs = &self.templates.programs;
        let proved = allocate(programs, &Struck::new());
        let mut struck = self.struck.clone();
        let mut possible: Vec<Possible> = Vec::new();
        // A schedule that was shown stands against levels again when these are decided anew, and whoever
        // meets at some levels shows all that they can do to each other.
        let mut known: BTreeMap<(Vec<Vec<usize>>, Vec<Level>), Executed> = BTreeMap::new();
        loop {
            let allocated = allocate(programs, &struck);
            let (mut reasons, mut harmful) = (Vec::new(), Vec::new());
            let before = struck.len();
            let raised = allocated.raised.iter().map(|one| (one.program, one.lower, &one.objection, false));
            let higher = allocated.harmful.iter().map(|one| (one.program, one.level, &one.objection, true));
            for (program, level, objection, is_harmful) in raised.chain(higher) {
                let strike = objection.strike(programs);
                if struck.contains(&strike) {
                    continue;
                }
                let mut levels = allocated.levels.clone();
                levels[program] = level;
                let casts = casts(objection);
                let meeting: BTreeSet<usize> = casts.iter().flatten().copied().collect();
                let key = (casts, meeting.iter().map(|program| levels[*program]).collect());
                let executed = match known.get(&key) {
                    Some(executed) => executed.clone(),
                    None if self.most == 0 => {
                        Executed::Untried("so many scripts are tried with themselves only".to_owned())
                    }
                    None if known.len() >= self.most => {
                        Executed::Untried(format!("{} schedules were tried before", self.most))
                    }
                    None => {
                        let executed = execute(&Execute { casts: key.0.clone(), levels: &levels })?;
                        known.entry(key).or_insert(executed).clone()
                    }
                };
                if let Executed::Unshown(interleavings) = executed {
                    struck.insert(strike);
                    possible.push(Possible { objection: objection.clone(), interleavings });
                    continue;
                }
                let shown = Shown { program, lower: level, objection: objection.clone(), executed };
                if is_harmful { harmful.push(shown) } else { reasons.push(shown) }
            }
            if struck.len() == before {
                let levels = allocated.levels;
                return Ok(Decision { proved, levels, reasons, possible, struck, harmful });
            }
        }
    }

    /// What happens at these levels, if it isn't only what was struck: a schedule that was shown, or
    /// couldn't be executed. `None` if they are enough.
    ///
    /// # Errors
    /// Those of `execute`.
    pub fn broken<E>(
        &self,
        levels: &[Level],
        mut execute: impl FnMut(&Execute<'_>) -> Result<Executed, E>,
    ) -> Result<Option<Shown>, E> {
        let programs = &self.templates.programs;
        let mut struck = self.struck.clone();
        for _ in 0..self.most {
            let Some(objection) = decide(programs, levels, &struck) else { return Ok(None) };
            let executed = execute(&Execute { casts: casts(&objection), levels })?;
            if let Executed::Unshown(_) = executed {
                struck.insert(objection.strike(programs));
                continue;
            }
            let program = objection.read.role.program;
            return Ok(Some(Shown { program, lower: levels[program], objection, executed }));
        }
        let Some(objection) = decide(programs, levels, &struck) else { return Ok(None) };
        let program = objection.read.role.program;
        let executed = Executed::Untried(format!("{} schedules were tried before", self.most));
        Ok(Some(Shown { program, lower: levels[program], objection, executed }))
    }

    /// Changes of few reads with which lower levels do, the fewest first.
    pub fn changes(&self, struck: &Struck) -> Vec<Promoted> {
        let may = |promotion: &Promotion| {
            let statement = self.templates.statements.iter().find(|statement| statement.at == promotion.at);
            let fix = statement.and_then(|statement| statement.fixes.get(&promotion.table));
            fix.is_some_and(|fix| match promotion.change {
                Change::Lock(_) => fix.lock.is_some(),
                Change::Write => fix.write.is_some(),
            })
        };
        promote(&self.templates.programs, &Promoting { most: MOST_CHANGES, struck, may: &may })
    }
}

/// Who meets.
fn casts(objection: &Objection) -> Vec<Vec<usize>> {
    let own = scripts(objection);
    let programs: BTreeSet<usize> = own.iter().copied().collect();
    let mut casts = vec![own];
    for one in &programs {
        for other in &programs {
            let pair = vec![*one, *other];
            if !casts.contains(&pair) {
                casts.push(pair);
            }
        }
    }
    casts
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
