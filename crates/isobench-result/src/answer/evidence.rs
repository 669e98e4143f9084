//! The evidence that the answer rests on: for each level, with each strategy, what its rounds show
//! about safety.
//!
//! Not here: cost (`price`), what follows from it (`rules`), and the sentences (`words`).

use isobench_isolation::Level;

use crate::document::{
    AnomalyCount, AnomalyFound, Cell, Document, FlagKind, TriedStep, VerdictSummary, WrongOutcome,
};
use crate::factor::{FactorId, strategies_vary, varying};
use crate::rounds::choices;
use crate::summarise::is_of;
use crate::words::distinct;

/// One level, with one strategy, among which an application may choose.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// Its rounds.
    pub cell: &'a Cell,
    /// The level, and the strategy where the document has several: `read committed with retry`.
    pub name: String,
    /// What its rounds show about safety.
    pub safety: SafetyEvidence<'a>,
}

/// What a cell's rounds show about safety, the gravest first: what the rules of the answer decide by.
/// The answer itself says less ([`crate::LevelSafety`]).
#[derive(Debug, Clone, PartialEq)]
pub enum SafetyEvidence<'a> {
    /// The server runs another level than the one asked for, or doesn't say which.
    Mislabelled,
    /// Something happened that is impossible at the level; the flag's text.
    Contradicted(&'a str),
    /// A history or an invariant shows what the level promises to exclude.
    Broken,
    /// There is no verdict, for this reason.
    Withheld(&'a str),
    /// The server acknowledged work that it hadn't done.
    LostWork,
    /// Transactions show anomalies, or conditions don't hold, that the level doesn't promise to
    /// prevent; or an interleaving that was tried ends as no serial order does.
    Unsafe,
    /// No history was recorded.
    Unchecked,
    /// No history was recorded, but nothing was found in this many interleavings that were tried.
    Tried(u64),
    /// In the histories of this many committed transactions nothing was found, but statements that
    /// could matter weren't seen.
    Unseen(u64),
    /// In the histories of this many committed transactions nothing was found, and no condition
    /// was violated.
    Safe(u64),
}

/// The candidates of a group of cells that differ in nothing but level and strategy.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The document.
    pub document: &'a Document,
    /// The candidates in the order of the table, A/A cells left out.
    pub candidates: Vec<Candidate<'a>>,
}

impl<'a> Evidence<'a> {
    /// The evidence of a group.
    pub fn of(document: &'a Document, group: &[&'a Cell]) -> Evidence<'a> {
        let candidates = group.iter().filter(|cell| !cell.calibration).map(|cell| Candidate {
            cell,
            name: name(document, cell),
            safety: SafetyEvidence::of(cell),
        });
        Evidence { document, candidates: candidates.collect() }
    }

    /// True if the scripts are proved to be safe together at a candidate's level.
    pub fn proves(&self, candidate: &Candidate<'_>) -> bool {
        let level = candidate.cell.level.asked().and_then(|asked| asked.level());
        let observations = self.document.observations.iter();
        observations
            .filter(|observation| is_of(observation, candidate.cell))
            .any(|observation| level.is_some_and(|level| observation.proved.contains(&level)))
    }

    /// The candidates without damage that can be recommended, and which committed anything.
    ///
    /// Where statements weren't seen, that nothing was found says little, unless all scripts were tried
    /// against each other; but if something went wrong at another level, that tells levels apart, and
    /// where it didn't is safe as far as seen. The
    /// same holds for conditions without any history. A level weaker than one that lets damage through
    /// lets it through as well, even if it didn't happen to, unless that is shown to come from an old
    /// snapshot ([`Candidate::reads_before_it_locks`]).
    pub fn eligible(&self) -> Vec<&Candidate<'a>> {
        let told_apart = self.has_damage();
        let eligible = |candidate: &&Candidate<'_>| match candidate.safety {
            SafetyEvidence::Safe(_) => true,
            SafetyEvidence::Unseen(_) | SafetyEvidence::Tried(_) => {
                told_apart || candidate.tried_in_all_combinations()
            }
            SafetyEvidence::Unchecked => self.by_conditions() && candidate.held(),
            _ => false,
        };
        let eligible = self.candidates.iter().filter(eligible);
        eligible.filter(|candidate| candidate.rate() > 0.0 && self.worse(candidate).is_none()).collect()
    }

    /// A stronger level with the same strategy at which something went wrong that may as well go wrong
    /// here.
    pub fn worse(&self, than: &Candidate<'_>) -> Option<&Candidate<'a>> {
        self.unsafe_above(than).find(|candidate| !candidate.reads_before_it_locks(than))
    }

    /// A stronger level with the same strategy that goes wrong where this one doesn't, because its
    /// snapshots are older than its locks.
    pub fn too_early(&self, than: &Candidate<'_>) -> Option<&Candidate<'a>> {
        self.unsafe_above(than).find(|candidate| candidate.reads_before_it_locks(than))
    }

    /// The stronger levels with the same strategy at which something went wrong.
    fn unsafe_above(&self, than: &Candidate<'_>) -> impl Iterator<Item = &Candidate<'a>> {
        self.with(|safety| *safety == SafetyEvidence::Unsafe).filter(|candidate| {
            candidate.cell.strategy() == than.cell.strategy()
                && candidate.cell.level.is_stronger_than(&than.cell.level)
        })
    }

    /// True if something went wrong at a level that doesn't promise to prevent it.
    pub fn has_damage(&self) -> bool {
        self.candidates.iter().any(|candidate| candidate.safety == SafetyEvidence::Unsafe)
    }

    /// True if nothing but conditions on the tables was checked, and one of them tells the levels
    /// apart.
    pub fn by_conditions(&self) -> bool {
        let judged = |candidate: &Candidate<'_>| candidate.verdict().is_some();
        !self.candidates.iter().any(judged) && self.has_damage()
    }

    /// True if a condition on the tables tells the levels apart.
    pub fn has_violations(&self) -> bool {
        self.candidates.iter().any(|candidate| is_violated(candidate.cell))
    }

    /// The candidates with this safety.
    pub fn with(&self, is: fn(&SafetyEvidence<'_>) -> bool) -> impl Iterator<Item = &Candidate<'a>> {
        self.candidates.iter().filter(move |candidate| is(&candidate.safety))
    }

    /// Values that are carried from one transaction to another, a clause each.
    pub fn carried(&self) -> Vec<&'a str> {
        let verdicts = self.candidates.iter().filter_map(Candidate::verdict);
        distinct(verdicts.flat_map(|verdict| &verdict.carried).map(String::as_str))
    }

    /// What could matter and wasn't seen at any level, a clause each.
    pub fn unseen(&self) -> Vec<&'a str> {
        distinct(self.candidates.iter().flat_map(Candidate::unseen))
    }
}

impl<'a> Candidate<'a> {
    /// Committed transactions per second; 0 if nothing was measured.
    pub fn rate(&self) -> f64 {
        self.cell.summary.tps.mean.unwrap_or(0.0)
    }

    /// The evidence of its histories.
    pub fn verdict(&self) -> Option<&'a VerdictSummary> {
        self.cell.summary.verdict.as_ref()
    }

    /// What could matter and wasn't seen, a clause each.
    pub fn unseen(&self) -> Vec<&'a str> {
        self.verdict().into_iter().flat_map(|verdict| &verdict.unseen).map(String::as_str).collect()
    }

    /// True if all its scripts were tried against each other, and no outcome was wrong.
    pub fn tried_in_all_combinations(&self) -> bool {
        let tried = self.cell.tried.as_ref();
        tried.is_some_and(|tried| tried.all_combinations() && tried.found.is_empty())
    }

    /// True if each two of its scripts were tried against each other, and those of these outcomes, and
    /// nothing was wrong.
    fn tried_in(&self, outcomes: &[WrongOutcome]) -> bool {
        let tried = self.cell.tried.as_ref();
        tried.is_some_and(|tried| {
            let of_outcome =
                |combination: &[&str]| outcomes.iter().any(|outcome| outcome.scripts == combination);
            let matters = |combination: &[&str]| combination.len() < 3 || of_outcome(combination);
            tried.found.is_empty() && tried.all_of(&matters)
        })
    }

    /// True if what went wrong here is shown not to go wrong at a weaker level, read committed. Whoever
    /// waits for a lock and then reads sees there what was committed in the meantime, since each
    /// statement has a snapshot of its own; at repeatable read the snapshot is that of the statement
    /// that waited (PostgreSQL's manual, "Data Consistency Checks at the Application Level").
    ///
    /// Each two scripts were tried against each other at the weaker level, and so were those that go wrong
    /// here, so these interleavings are among those; in each of them a transaction waits, and all
    /// anomalies of the histories are those of the same scripts.
    pub fn reads_before_it_locks(&self, weaker: &Candidate<'_>) -> bool {
        let outcomes = self.cell.wrong_outcomes();
        let level = |candidate: &Candidate<'_>, script: &str| {
            candidate.cell.level.asked().map(|asked| asked.of(script).level)
        };
        let is_raised = |script: &String| {
            level(weaker, script).is_some_and(|level| level <= Level::ReadCommitted)
                && level(self, script).is_some_and(|level| level > Level::ReadCommitted)
        };
        let waits = |outcome: &WrongOutcome| outcome.steps.iter().any(TriedStep::waits);
        let is_shown = |outcome: &WrongOutcome| {
            !outcome.no_level_prevents && waits(outcome) && outcome.scripts.iter().any(is_raised)
        };
        let is_of_these = |kind: &&AnomalyCount| {
            let scripts = self.example(kind).map(AnomalyFound::scripts).unwrap_or_default();
            let tried = |script: &&str| outcomes.iter().any(|one| one.scripts.iter().any(|it| it == script));
            !scripts.is_empty() && scripts.iter().all(tried)
        };
        weaker.tried_in(outcomes)
            && !outcomes.is_empty()
            && outcomes.iter().all(is_shown)
            && self.kinds().iter().all(is_of_these)
    }

    /// True if there are conditions on the tables, and all held after every round.
    pub fn held(&self) -> bool {
        self.cell.summary.invariants_held == Some(true)
    }

    /// The kinds of anomalies that the data show, the gravest first.
    pub fn kinds(&self) -> Vec<&'a AnomalyCount> {
        let kinds = self.verdict().into_iter().flat_map(|verdict| &verdict.kinds);
        kinds.filter(|kind| kind.order == isobench_isolation::Order::Data.name()).collect()
    }

    /// An example of what was lost because values are carried from one transaction to another.
    pub fn lost_between(&self) -> Option<&'a AnomalyFound> {
        let verdicts = self.cell.rounds.iter().filter_map(|round| round.verdict.as_ref());
        verdicts.filter_map(|verdict| verdict.lost_between.as_ref()).find(|found| found.count > 0)
    }

    /// An example of a kind, one whose statements are known if there is any.
    pub fn example(&self, kind: &AnomalyCount) -> Option<&'a AnomalyFound> {
        let verdicts = self.cell.rounds.iter().filter_map(|round| round.verdict.as_ref());
        let found = verdicts.flat_map(|verdict| &verdict.anomalies);
        let mut same = found.filter(|found| {
            (&found.name, &found.known_as, &found.order) == (&kind.name, &kind.known_as, &kind.order)
        });
        same.clone().find(|found| found.place().is_some()).or_else(|| same.next())
    }
}

impl<'a> SafetyEvidence<'a> {
    /// What a cell shows.
    pub fn of(cell: &'a Cell) -> SafetyEvidence<'a> {
        let summary = &cell.summary;
        let verdict = summary.verdict.as_ref();
        let contradicted = summary.flags.iter().find(|flag| flag.kind == FlagKind::LevelContradicted);
        if cell.level.differs() {
            return SafetyEvidence::Mislabelled;
        }
        if let Some(flag) = contradicted {
            return SafetyEvidence::Contradicted(&flag.text);
        }
        if summary.invariants_held == Some(false) || verdict.is_some_and(|it| it.kept == Some(false)) {
            return SafetyEvidence::Broken;
        }
        if let Some(reason) = verdict.and_then(|verdict| verdict.withheld.first()) {
            return SafetyEvidence::Withheld(reason);
        }
        if cell.swallowed() > 0 {
            return SafetyEvidence::LostWork;
        }
        let anomalies = verdict.is_some_and(|verdict| verdict.anomalies > 0);
        if is_violated(cell) || anomalies || !cell.wrong_outcomes().is_empty() {
            return SafetyEvidence::Unsafe;
        }
        match verdict {
            None => match cell.tried.as_ref().map_or(0, |tried| tried.interleavings) {
                0 => SafetyEvidence::Unchecked,
                tried => SafetyEvidence::Tried(tried),
            },
            Some(verdict) if verdict.unseen.is_empty() => SafetyEvidence::Safe(verdict.committed),
            Some(verdict) => SafetyEvidence::Unseen(verdict.committed),
        }
    }
}

/// True if a condition on the tables didn't hold after a round, whether the level promises it or not.
fn is_violated(cell: &Cell) -> bool {
    let mut conditions = cell.rounds.iter().flat_map(|round| &round.invariants);
    cell.summary.violations > 0 || conditions.any(|condition| condition.held == Some(false))
}

/// The level of a cell, and its strategy where the document has several.
pub fn name(document: &Document, cell: &Cell) -> String {
    let level = cell.level.said();
    if strategies_vary(document) { format!("{level} with {}", cell.strategy()) } else { level }
}

/// The evidence of each combination in which anything was measured.
pub fn measured(document: &Document) -> Vec<Evidence<'_>> {
    let groups = choices(document).into_iter().map(|group| Evidence::of(document, &group));
    let measured = |group: &Evidence<'_>| {
        group.candidates.iter().any(|candidate| candidate.cell.summary.tps.mean.is_some())
    };
    groups.filter(measured).collect()
}

/// The factors of a cell that vary in the document, besides those among which the answer chooses: 8
/// clients, backoff none.
pub fn factors(document: &Document, cell: &Cell) -> String {
    let varying = varying(document);
    let said =
        varying.iter().filter(|factor| factor.id() != FactorId::Strategy).map(|factor| factor.said(cell));
    said.collect::<Vec<_>>().join(", ")
}
