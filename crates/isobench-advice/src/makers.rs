//! Ways to change scripts and tables so that lower levels do: a row for each kind, in the order in which they are
//! tried.
//!
//! | maker | changes |
//! |---|---|
//! | `one_transaction` | a script, so that what it reads and writes is one transaction; the others go on from there |
//! | `rewrite` | an UPDATE, so that it depends on fewer values that were read before, or requires them |
//! | `unique_index` | a table, so that the second of two inserts fails |
//! | `exclusion` | a table, so that the second of two inserts of overlapping ranges fails |
//! | `foreign_key` | a table, so that a row stays as long as others refer to it |
//! | `promote` | reads, so that they lock their rows or write them back |
//! | `lock_reads` | reads that lock their rows, for where theory proves nothing with that |
//! | `lock_first` | a transaction, which locks a row before anything else, or writes it back; or all rows of a set before they are counted |
//! | `lock_within` | a subquery, which locks its rows |
//! | `on_conflict` | an INSERT after a search, which does nothing where the row is there by then |
//! | `advisory` | transactions, which take an advisory lock before anything else |
//! | `lock_table` | transactions, which lock a table before anything else |

mod advisory;
pub(crate) mod exclusion;
mod foreign_key;
mod lock_first;
mod lock_reads;
mod lock_table;
mod lock_within;
pub(crate) mod on_conflict;
pub(crate) mod one_transaction;
mod promote;
mod rewrite;
pub(crate) mod unique_index;

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_program::Templates;
use isobench_robustness::{Program, Struck, allocate, subsets};

use crate::change_set::{ChangeSet, Changed};
use crate::deadlocks::sentences;
use crate::decision::{Decision, Question};
use crate::patch::ScriptText;
use crate::shown::Shown;
use one_transaction::Joined;

/// The most statements that are changed at once.
const MOST_CHANGES: usize = 3;

/// The most sets of changes that a maker reads again to see which levels do then.
const MOST_READ: usize = 32;

/// The most sets that theory proves before those that only trying can show.
const MOST_PROVED_FIRST: usize = 4;

/// Makes sets of changes of one kind.
type Maker = fn(&Ground<'_>, &mut ReadAgain<'_>) -> Vec<Made>;

/// All kinds, in the order in which their sets are tried.
const MAKERS: [Maker; 14] = [
    rewrite::make,
    rewrite::make_tested,
    unique_index::make,
    exclusion::make,
    foreign_key::make,
    promote::make,
    lock_reads::make,
    lock_first::make,
    lock_first::make_sets,
    lock_first::make_parents,
    lock_within::make,
    advisory::make,
    on_conflict::make,
    lock_table::make,
];

/// Makes templates of changed scripts; `None` if they can't be read.
pub(crate) type ReadAgain<'r> = dyn FnMut(&[ScriptText]) -> Option<Templates> + 'r;

/// What sets of changes are made from.
pub(crate) struct Ground<'g> {
    pub(crate) question: &'g Question<'g>,
    pub(crate) decision: &'g Decision,
    /// The scripts as they are.
    pub(crate) before: &'g [ScriptText],
    /// The levels that sets of earlier makers prove.
    known: Vec<Vec<Level>>,
}

/// A set of changes.
pub(crate) struct Made {
    pub(crate) set: ChangeSet,
    /// Another set, for where the server doesn't take this one.
    pub(crate) otherwise: Option<ChangeSet>,
    /// The levels that are proved with it; `None` if it has to be tried.
    levels: Option<Vec<Level>>,
}

impl Made {
    /// A set with which these levels are proved.
    fn proved(set: ChangeSet, levels: Vec<Level>) -> Made {
        Made { set, otherwise: None, levels: Some(levels) }
    }

    /// A set of which theory proves nothing, so that all rests on trying it.
    pub(crate) fn to_try(set: ChangeSet) -> Made {
        Made { set: ChangeSet { unproved: Some(0), ..set }, otherwise: None, levels: None }
    }
}

/// The sets of changes in the order in which they are tried. Where a script carries values from one transaction to
/// another, they are one transaction first.
pub(crate) fn all(
    question: &Question<'_>,
    decision: &Decision,
    before: &[ScriptText],
    read_again: &mut ReadAgain<'_>,
) -> Vec<Made> {
    let mut made = of_kinds(question, decision, before, read_again);
    if let Some(joined) = one_transaction::joined(question.templates, decision, before) {
        made.extend(of_joined(question, joined, before, read_again));
    }
    in_order(made)
}

/// Some of those that theory proves, then those that only trying can show.
fn in_order(made: Vec<Made>) -> Vec<Made> {
    let (mut proved, tried): (Vec<Made>, Vec<Made>) = made.into_iter().partition(|one| one.levels.is_some());
    // Those with few changes first: of the others only what they gain is of interest.
    proved.sort_by_key(|one| (one.set.changes.len(), one.set.rank()));
    // The best one is among them however many changes it has.
    let best = (0..proved.len()).min_by_key(|place| proved[*place].set.rank());
    if let Some(place) = best.filter(|place| *place >= MOST_PROVED_FIRST) {
        let best = proved.remove(place);
        proved.insert(MOST_PROVED_FIRST - 1, best);
    }
    let rest = proved.split_off(proved.len().min(MOST_PROVED_FIRST));
    proved.into_iter().chain(tried).chain(rest).collect()
}

/// The sets for scripts of which each is one transaction.
fn of_joined(
    question: &Question<'_>,
    mut joined: Joined,
    before: &[ScriptText],
    read_again: &mut ReadAgain<'_>,
) -> Vec<Made> {
    let Some(templates) = read_again(&joined.scripts).filter(|templates| templates.carried.is_empty()) else {
        return Vec::new();
    };
    joined.note_statements(&templates);
    let question = Question { templates: &templates, stopped: question.stopped };
    let decision = question.by_theory_alone();
    let levels = decision.levels.clone();
    let own = (decision.unprotected.is_empty()).then(|| {
        let set = ChangeSet::new(&templates, before, joined.scripts.clone(), Vec::new(), &levels);
        Made::proved(set, levels)
    });
    let further = of_kinds(&question, &decision, &joined.scripts, read_again);
    let after = |set: ChangeSet| set.after(&joined, before);
    let all = own.into_iter().chain(further);
    all.map(|one| Made { set: after(one.set), otherwise: one.otherwise.map(after), ..one }).collect()
}

/// The sets of changes of all kinds.
fn of_kinds(
    question: &Question<'_>,
    decision: &Decision,
    before: &[ScriptText],
    read_again: &mut ReadAgain<'_>,
) -> Vec<Made> {
    let mut ground = Ground { question, decision, before, known: Vec::new() };
    let mut all = Vec::new();
    for make in MAKERS {
        if (question.stopped)() {
            break;
        }
        let made = make(&ground, read_again);
        ground.known.extend(made.iter().filter_map(|one| one.levels.clone()));
        all.extend(made);
    }
    all
}

impl<'g> Ground<'g> {
    fn templates(&self) -> &'g Templates {
        self.question.templates
    }

    /// Read committed for all programs.
    fn lowest(&self) -> Vec<Level> {
        vec![Level::ReadCommitted; self.templates().programs.len()]
    }

    /// The scripts that meet where a level is too low.
    fn meeting(&self) -> BTreeSet<usize> {
        self.decision.reasons.iter().flat_map(Shown::combinations).flatten().collect()
    }

    /// True if an earlier set proves that read committed is enough for all programs.
    fn has_lowest(&self) -> bool {
        self.known.contains(&self.lowest())
    }

    /// True if isobench can't analyse a statement of a script, or if that runs functions, in which no lock can stand.
    fn has_unknown(&self, script: usize) -> bool {
        let mut own = self.templates().statements.iter().filter(|one| one.script == script);
        own.any(|one| one.unknown.is_some() || one.runs_code)
    }

    /// Sets of few changes with which lower levels do than those of earlier makers, or no value is carried from
    /// one transaction to another any more; with none of them one is. Those of which no smaller set does as well,
    /// the fewest first.
    /// `change` makes scripts with a set of them.
    fn fewest<T>(
        &self,
        all: &[&T],
        read_again: &mut ReadAgain<'_>,
        change: impl Fn(&[&T]) -> Option<(Vec<ScriptText>, Vec<Changed>)>,
    ) -> Vec<Made> {
        let (templates, decision) = (self.templates(), self.decision);
        let mut found: Vec<(ChangeSet, Vec<Level>)> = Vec::new();
        let sizes = 1..=all.len().min(MOST_CHANGES);
        for set in sizes.flat_map(|size| subsets(all.len(), size)).take(MOST_READ) {
            if (self.question.stopped)() {
                break;
            }
            let set: Vec<&T> = set.into_iter().map(|place| all[place]).collect();
            let Some((scripts, changes)) = change(&set) else { continue };
            let Some(again) = read_again(&scripts) else { continue };
            let allocated = allocate(&again.programs, &Struck::new());
            if !allocated.unprotected.is_empty() || !again.carried.is_empty() {
                continue;
            }
            let levels = allocated.levels;
            let no_higher = levels.iter().zip(&decision.levels).all(|(level, than)| level <= than);
            let better = levels != decision.levels || !templates.carried.is_empty();
            let mut others = self.known.iter().chain(found.iter().map(|(_, levels)| levels));
            if no_higher && better && others.all(|than| is_lower_somewhere(&levels, than)) {
                let set = ChangeSet::new(templates, self.before, scripts, changes, &levels);
                found.push((ChangeSet { deadlocks: added(templates, &again.programs), ..set }, levels));
            }
        }
        found.into_iter().map(|(set, levels)| Made::proved(set, levels)).collect()
    }
}

/// The sentences on transactions that wait for each other only with a change.
fn added(before: &Templates, after: &[Program]) -> Vec<String> {
    // Lines may be others.
    let without_lines = |sentence: &String| -> String {
        sentence.chars().filter(|letter| !letter.is_ascii_digit()).collect()
    };
    let known: BTreeSet<String> = sentences(&before.programs).iter().map(without_lines).collect();
    sentences(after).into_iter().filter(|sentence| !known.contains(&without_lines(sentence))).collect()
}

/// True if a level is lower than in the other list.
fn is_lower_somewhere(levels: &[Level], than: &[Level]) -> bool {
    levels.iter().zip(than).any(|(level, than)| level < than)
}
