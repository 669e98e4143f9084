//! Changes of scripts and tables, each tried.

use std::collections::{BTreeSet, VecDeque};

use isobench_program::Templates;

use crate::change_set::{ChangeSet, NOT_MADE};
use crate::decision::{Decision, Question};
use crate::makers::{self, Made};
use crate::patch::ScriptText;
use crate::shown::{Executed, Shown};

/// The most sets of changes that are tried, without those that the rows or the server refuse.
const MOST_TRIED: usize = 8;

/// Why scripts and tables can't be changed so.
pub enum NotChanged {
    /// The server doesn't take a statement, or the rows that are there don't permit an index.
    Mistake,
    /// A transaction fails with it that runs after another one, or alone; why.
    Refused(String),
}

/// What came of trying a set of changes.
pub struct TriedSet {
    /// What came of it.
    pub executed: Executed,
    /// A sentence if interleavings ended in a deadlock.
    pub deadlock: Option<String>,
}

/// What the search for changes needs of a server.
pub trait Tries {
    /// An error that ends the search.
    type Error;

    /// Tries combinations of the scripts with these changes at the levels of the set: those of `combinations`, as in
    /// [`crate::Execute::combinations`], or all.
    ///
    /// # Errors
    /// The search can't go on.
    fn execute(
        &mut self,
        set: &ChangeSet,
        combinations: Option<&[Vec<usize>]>,
    ) -> Result<Result<TriedSet, NotChanged>, Self::Error>;

    /// The templates of changed scripts; `None` if they can't be read.
    fn read_again(&mut self, scripts: &[ScriptText]) -> Option<Templates>;
}

impl Question<'_> {
    /// The sets of changes with which lower levels do, each tried against what was shown without it.
    ///
    /// # Errors
    /// Those of `server`.
    pub fn changes<T: Tries>(
        &self,
        decision: &Decision,
        before: &[ScriptText],
        server: &mut T,
    ) -> Result<Vec<ChangeSet>, T::Error> {
        let made = makers::all(self, decision, before, &mut |scripts| server.read_again(scripts));
        let mut sets: VecDeque<Made> = made.into();
        let was_shown = |reason: &&Shown| matches!(reason.executed, Executed::Shown(_));
        let shown: BTreeSet<Vec<usize>> =
            decision.reasons.iter().filter(was_shown).flat_map(Shown::combinations).collect();
        let shown: Vec<Vec<usize>> = shown.into_iter().collect();
        let mut all: Vec<ChangeSet> = Vec::new();
        while let Some(Made { mut set, otherwise, .. }) = sets.pop_front() {
            if all.iter().filter(|one| one.refused.is_none()).count() == MOST_TRIED {
                break;
            }
            if all.iter().any(|known| (&known.scripts, &known.setup) == (&set.scripts, &set.setup)) {
                continue;
            }
            // First those that meet in what was shown.
            let tried = match shown.as_slice() {
                [] => Ok(TriedSet { executed: Executed::Unshown(0), deadlock: None }),
                shown => server.execute(&set, Some(shown))?,
            };
            // Where theory proves nothing, all scripts are tried.
            let only_tried = set.unproved.is_some();
            let carries = !self.templates.carried.is_empty();
            let with_all = only_tried || decision.refuted.is_some() || shown.is_empty() || carries;
            let tried = match tried {
                Ok(TriedSet { executed: Executed::Unshown(before), deadlock }) if with_all => {
                    server.execute(&set, None)?.map(|all| TriedSet {
                        executed: match all.executed {
                            Executed::Unshown(more) => Executed::Unshown(before + more),
                            other => other,
                        },
                        deadlock: deadlock.or(all.deadlock),
                    })
                }
                tried => tried,
            };
            let executed = tried.map(|TriedSet { executed, deadlock }| {
                set.deadlocks.extend(deadlock);
                executed
            });
            match executed {
                Err(not_changed) => {
                    if let Some(set) = otherwise {
                        sets.push_front(Made::to_try(set));
                    }
                    match not_changed {
                        NotChanged::Mistake if set.setup.is_some() => set.refused = Some(NOT_MADE.to_owned()),
                        NotChanged::Mistake => continue,
                        NotChanged::Refused(why) => set.refused = Some(why),
                    }
                }
                Ok(Executed::Shown(tried)) => set.refuted = Some(*tried),
                Ok(Executed::Untried(_)) if only_tried => continue,
                Ok(Executed::Unshown(count)) if only_tried || decision.refuted.is_some() => {
                    set.unproved = Some(count);
                }
                Ok(Executed::Untried(_) | Executed::Unshown(_)) => {}
            }
            all.push(set);
        }
        Ok(all)
    }
}
