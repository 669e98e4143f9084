//! The lowest levels at which programs are safe.
//!
//! Safe allocations are closed under taking the lower level of each program, so that one of them is the
//! lowest. They aren't closed upwards: a transaction that waits for a row lock and then reads what the
//! one before it did is safe at read committed, while at repeatable read its snapshot is older than the
//! lock. So all are looked at; only for many programs it is assumed that they were closed.

use isobench_isolation::Level;

use crate::model::Program;
use crate::objection::Objection;
use crate::struck::Struck;
use crate::symbolic::Analysis;

/// The levels to choose from. PostgreSQL runs read uncommitted as read committed.
const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The most programs for which all allocations are looked at.
const MOST: usize = 10;

/// The lowest levels at which programs are safe, and why not lower ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocated {
    /// A level for each program.
    pub levels: Vec<Level>,
    /// True if no other safe allocation has a lower level for any program; false if that wasn't
    /// looked at, because there are too many programs.
    pub lowest: bool,
    /// For each program above read committed: what happens one level lower.
    pub raised: Vec<Raised>,
    /// For each program at serializable that locks: what happens at read committed, where it reads what
    /// it has waited for, so that repeatable read may be the only level that isn't safe.
    pub two_lower: Vec<Raised>,
    /// Programs for which a higher level wouldn't be safe.
    pub harmful: Vec<Harmful>,
    /// Programs that no level makes safe, because the server checks unique indexes and foreign keys by the
    /// newest data at every level. The levels are those without such schedules.
    pub unprotected: Vec<Harmful>,
}

/// Why a program needs its level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raised {
    /// The index of the program.
    pub program: usize,
    /// The next lower level.
    pub lower: Level,
    /// What happens there.
    pub objection: Objection,
}

/// A level that isn't safe, though it isn't lower.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harmful {
    /// The index of the program.
    pub program: usize,
    /// The level.
    pub level: Level,
    /// What happens there.
    pub objection: Objection,
}

/// Finds the lowest levels at which programs are safe, but for what was struck.
pub fn allocate(programs: &[Program], struck: &Struck) -> Allocated {
    let whole = Analysis::of(programs, struck);
    let (mut levels, mut lowest) = lowest_of(&whole, programs.len());
    let mut unprotected = Vec::new();
    let mut guarded = None;
    if !whole.is_safe(&levels) {
        let analysis = whole.guarded();
        (levels, lowest) = lowest_of(&analysis, programs.len());
        let of = |program: usize| {
            let objection = whole.unguarded(program, &levels)?.clone();
            Some(Harmful { program, level: levels[program], objection })
        };
        unprotected.extend((0..programs.len()).filter_map(of));
        guarded = Some(analysis);
    }
    let analysis = guarded.as_ref().unwrap_or(&whole);
    let with = |program: usize, level: Level| {
        let mut levels = levels.clone();
        levels[program] = level;
        analysis.objection(&levels).cloned()
    };
    let (mut raised, mut two_lower, mut harmful) = (Vec::new(), Vec::new(), Vec::new());
    for (program, own) in levels.iter().enumerate() {
        if *own == Level::Serializable && programs[program].locks() {
            let lower = Level::ReadCommitted;
            two_lower.extend(with(program, lower).map(|objection| Raised { program, lower, objection }));
        }
        let lower = LEVELS.into_iter().rev().find(|level| level < own);
        raised.extend(
            lower.and_then(|lower| Some(Raised { program, lower, objection: with(program, lower)? })),
        );
        let higher = LEVELS.into_iter().filter(|level| level > own);
        harmful.extend(
            higher.filter_map(|level| Some(Harmful { program, level, objection: with(program, level)? })),
        );
    }
    Allocated { levels, lowest, raised, two_lower, harmful, unprotected }
}

/// The lowest safe levels; false if others weren't looked at.
pub(crate) fn lowest_of(analysis: &Analysis, programs: usize) -> (Vec<Level>, bool) {
    if programs > MOST {
        return (by_one(analysis, programs), false);
    }
    let mut lowest = vec![Level::Serializable; programs];
    let mut places = vec![0; programs];
    loop {
        let levels: Vec<Level> = places.iter().map(|place| LEVELS[*place]).collect();
        if levels.iter().zip(&lowest).any(|(level, lowest)| level < lowest) && analysis.is_safe(&levels) {
            for (lowest, level) in lowest.iter_mut().zip(levels) {
                *lowest = (*lowest).min(level);
            }
        }
        let Some(place) = places.iter().rposition(|place| place + 1 < LEVELS.len()) else { break };
        places[place] += 1;
        places[place + 1..].fill(0);
    }
    if analysis.is_safe(&lowest) { (lowest, true) } else { (by_one(analysis, programs), false) }
}

/// Lowers one program after another as far as is safe.
fn by_one(analysis: &Analysis, programs: usize) -> Vec<Level> {
    let mut levels = vec![Level::Serializable; programs];
    for program in 0..programs {
        for level in LEVELS {
            let before = std::mem::replace(&mut levels[program], level);
            if analysis.is_safe(&levels) {
                break;
            }
            levels[program] = before;
        }
    }
    levels
}
