//! Scripts that run alone, before they meet: the numbers with which they work, and the tables that they use.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::combinations::{moved, spread};
use super::execution::{Answer, Ending};
use super::outcome::Outcome;
use super::prediction::{Predictor, near_sql};
use super::program::{Choice, Number, Place, Programs, Transaction};
use super::sessions::{ExecutedSchedule, Schedule, Sessions};
use super::tables::Keys;
use super::targets::ComparedAlone;
use super::{TryError, Trying};
use isobench_isolation::Allocation;

/// Scripts, each of which runs alone, and what that has shown.
pub struct Alone<'s> {
    /// The sessions and the tables.
    pub sessions: Sessions<'s>,
    pub(super) programs: &'s Programs,
    allocations: Vec<Allocation>,
    pub(super) budget: Duration,
    pub(super) began: Instant,
    /// The numbers that lead to the ways of each program; the first way is the one that it usually takes.
    pub ways: Vec<Vec<Choice>>,
    /// Numbers by which rows are found, and some by which none are.
    pub keys: Keys,
    /// The first time that a unique index refused what a script did by itself or after another one.
    pub violated: Option<String>,
    /// What each program compared when it ran alone in the first state.
    pub runs: Vec<Vec<ComparedAlone>>,
    endings: Vec<Known>,
    /// The tables that each program may change, as far as it has been seen.
    writes: Vec<BTreeSet<usize>>,
    /// The tables of which each program may lock rows, as far as it has been seen.
    locks: Vec<BTreeSet<usize>>,
    /// The tables that each program touches, as far as it has been seen.
    touches: Vec<BTreeSet<usize>>,
}

/// What is known of the endings of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    /// It hasn't run.
    Nothing,
    /// It has failed, and never come to its end; why it failed first.
    Fails(String),
    /// It has come to its end.
    Ends,
}

/// How good a run alone is: whether it fails, and how many statements found nothing.
type Rank = (bool, usize);

/// It works, and finds rows.
const BEST: Rank = (false, 0);

/// The most attempts at a way with other numbers.
const MOST_ATTEMPTS: usize = 40;

/// The statements after which scripts alone keep to their share of the budget, and that share's divisor.
pub(super) const LEAST_STATEMENTS: u64 = 1000;
const SHARE_OF_BUDGET: u32 = 2;

/// The most choices with which a program fails, or finds other rows, in the first state.
const MOST_OTHERWISE: usize = 2;

impl<'s> Alone<'s> {
    /// Scripts that haven't run yet.
    pub fn new(sessions: Sessions<'s>, programs: &'s Programs, trying: &Trying<'_>, began: Instant) -> Self {
        let count = programs.programs.len();
        let none = || vec![BTreeSet::new(); count];
        Alone {
            sessions,
            programs,
            allocations: trying.allocations.to_vec(),
            budget: trying.budget,
            began,
            ways: vec![Vec::new(); count],
            keys: Keys::default(),
            violated: None,
            runs: vec![Vec::new(); count],
            endings: vec![Known::Nothing; count],
            writes: none(),
            locks: none(),
            touches: none(),
        }
    }

    /// Runs a script alone, and leaves what it did.
    pub fn run(&mut self, transaction: &Transaction) -> Result<ExecutedSchedule, TryError> {
        let transactions = [transaction.clone()];
        let executed = self.sessions.run(&transactions, &Schedule::Serial(vec![0]), 0, &[])?;
        self.note_endings(&transactions, &executed);
        Ok(executed)
    }

    pub fn undo(&mut self, executed: &ExecutedSchedule) -> Result<(), TryError> {
        let outcome = &executed.outcome;
        self.sessions.put_back(outcome.later.as_ref().unwrap_or(&outcome.delta), 0)
    }

    /// Notes the first refusal by a unique index.
    pub fn note_violation(&mut self, outcome: &Outcome) {
        let mut endings = outcome.views.iter().zip(&outcome.endings);
        if self.violated.is_none()
            && let Some((_, ending)) = endings.find(|(view, _)| view.violates_key())
        {
            self.violated = ending.failure().map(str::to_owned);
        }
    }

    /// Finds out which ways each program has, with which numbers it works, and which tables it uses.
    pub fn try_alone(&mut self) -> Result<(), TryError> {
        self.keys = self.sessions.keys()?;
        for program in 0..self.programs.programs.len() {
            self.start(program)?;
            let ways = Predictor::new(self.programs, &self.sessions.starts).ways(program);
            let mut settled = Vec::new();
            for way in ways {
                let way = self.settled(program, way)?;
                self.require_no_mistakes(program, &way)?;
                settled.push(way);
            }
            self.ways[program] = settled;
        }
        for program in 0..self.programs.programs.len() {
            let others = self.otherwise(program)?;
            self.ways[program].extend(others);
        }
        // Twice, since a script may take another way when the others have run, or with other numbers.
        for program in (0..self.programs.programs.len()).chain(0..self.programs.programs.len()) {
            let apart = spread(&self.programs.programs[program].draws, false);
            let ways = self.ways[program].clone();
            for choice in ways.iter().cloned().chain([moved(&ways[0], &apart)]) {
                let [touched, changed, locked] = self.sessions.uses(&Transaction::with(program, choice))?;
                self.locks[program].extend(locked);
                self.touches[program].extend(touched);
                self.writes[program].extend(changed);
            }
        }
        let (delta, _) = self.sessions.changes()?;
        self.sessions.put_back(&delta, 0)
    }

    /// True if scripts have run alone for longer than their share of the budget.
    fn is_used_up(&self) -> bool {
        self.sessions.statements >= LEAST_STATEMENTS && self.began.elapsed() > self.budget / SHARE_OF_BUDGET
    }

    /// Runs a way alone, and takes it back. Returns how good it is (fewer is better: whether it fails, and
    /// how many statements found nothing), and what happened.
    fn attempt(&mut self, program: usize, choice: &Choice) -> Result<(Rank, ExecutedSchedule), TryError> {
        let executed = self.run(&Transaction::with(program, choice.clone()))?;
        self.undo(&executed)?;
        self.require_no_mistake(program, 0, &executed)?;
        let (_, found, works) = way(&executed);
        Ok(((!works, found.iter().filter(|found| !**found).count()), executed))
    }

    /// Looks for the number from which a program's draws count: the least with which it works and finds
    /// the most rows, first the least of each range, then those of rows, then those of none.
    fn start(&mut self, program: usize) -> Result<(), TryError> {
        let numbers: Vec<i64> = self.keys.all().collect();
        let mut candidates: Vec<Option<i64>> = vec![None];
        if !self.programs.programs[program].draws.is_empty() {
            candidates.extend(numbers.into_iter().map(Some));
        }
        let mut best: Option<(Rank, Option<i64>)> = None;
        for start in candidates {
            self.sessions.starts[program] = start;
            let (rank, _) = self.attempt(program, &Choice::new())?;
            if best.is_none_or(|(best, _)| rank < best) {
                best = Some((rank, start));
            }
            if rank == BEST || self.is_used_up() {
                break;
            }
        }
        self.sessions.starts[program] = best.and_then(|(_, start)| start);
        Ok(())
    }

    /// A way with other numbers, if those with which it is taken don't work or find nothing: first one
    /// number for all draws, then each draw by itself.
    fn settled(&mut self, program: usize, way: Choice) -> Result<Choice, TryError> {
        let (mut rank, _) = self.attempt(program, &way)?;
        if rank == BEST {
            return Ok(way);
        }
        let predictor = Predictor::new(self.programs, &self.sessions.starts);
        let predicted = predictor.of(program, &way);
        let numbers: Vec<i64> = self.keys.all().collect();
        let free: Vec<(Place, [i64; 3])> = predicted
            .drawn
            .iter()
            .filter(|(place, _)| !way.contains_key(*place))
            .map(|(place, range)| (*place, *range))
            .collect();
        let within = |number: i64, [least, most, _]: [i64; 3]| (least..=most).contains(&number);
        let mut left = MOST_ATTEMPTS;
        let mut best = way.clone();
        let all_at_once: Vec<Vec<(Place, i64)>> = numbers
            .iter()
            .map(|number| {
                let places = free.iter().filter(|(_, range)| within(*number, *range));
                places.map(|(place, _)| (*place, *number)).collect()
            })
            .collect();
        let one_by_one = free.iter().flat_map(|(place, range)| {
            let fitting = numbers.iter().filter(|number| within(**number, *range));
            fitting.map(|number| vec![(*place, *number)])
        });
        for changes in all_at_once.into_iter().chain(one_by_one).filter(|changes| !changes.is_empty()) {
            let mut choice = best.clone();
            choice.extend(changes.into_iter().map(|(place, number)| (place, Number::Is(number))));
            if predictor.of(program, &choice).decided != predicted.decided {
                continue;
            }
            let (other, _) = self.attempt(program, &choice)?;
            left -= 1;
            if other < rank {
                (rank, best) = (other, choice);
            }
            if rank == BEST || left == 0 || self.is_used_up() {
                break;
            }
        }
        Ok(best)
    }

    /// Choices of the first way with which a program fails, or finds other rows, in the first state: it may
    /// work, or find them, after another one.
    fn otherwise(&mut self, program: usize) -> Result<Vec<Choice>, TryError> {
        let Some(base) = self.ways[program].first().cloned() else { return Ok(Vec::new()) };
        let (_, executed) = self.attempt(program, &base)?;
        let usual = way(&executed);
        let predictor = Predictor::new(self.programs, &self.sessions.starts);
        let predicted = predictor.of(program, &base);
        let mut others: Vec<(TakenWay, Choice)> = Vec::new();
        let few: Vec<i64> = self.keys.few().collect();
        for (place, [least, most, _]) in &predicted.drawn {
            let in_sql = near_sql(&self.programs.programs[program], *least, *most);
            let numbers: BTreeSet<i64> = few.iter().copied().chain(in_sql).collect();
            for number in numbers.into_iter().filter(|number| (least..=most).contains(&number)) {
                if self.is_used_up() {
                    break;
                }
                let mut choice = base.clone();
                choice.insert(*place, Number::Is(number));
                if predictor.of(program, &choice).decided != predicted.decided {
                    continue;
                }
                let (_, executed) = self.attempt(program, &choice)?;
                let other = way(&executed);
                if other != usual && !others.iter().any(|(known, _)| *known == other) {
                    others.push((other, choice));
                }
            }
        }
        // Those that fail first.
        others.sort_by_key(|((_, _, works), _)| *works);
        Ok(others.into_iter().map(|(_, choice)| choice).take(MOST_OTHERWISE).collect())
    }

    /// Checks the run of a way alone in each allocation, and notes what it compares.
    fn require_no_mistakes(&mut self, program: usize, way: &Choice) -> Result<(), TryError> {
        let transaction = Transaction::with(program, way.clone());
        let alone = self.run(&transaction)?;
        self.undo(&alone)?;
        self.note_run(&transaction, &alone);
        if alone.outcome.endings[0] != Ending::Done {
            self.note_violation(&alone.outcome);
        }
        // A level changes nothing for a script that runs alone, but READ ONLY does.
        let name = self.programs.name(program);
        let read_only = |allocation: &usize| self.allocations[*allocation].of(name).read_only;
        let allocations: Vec<usize> = (1..self.allocations.len()).filter(read_only).collect();
        for allocation in allocations {
            let transaction = [transaction.clone()];
            let alone = self.sessions.run(&transaction, &Schedule::Serial(vec![0]), allocation, &[])?;
            self.undo(&alone)?;
            self.require_no_mistake(program, allocation, &alone)?;
        }
        Ok(())
    }

    /// Notes whether programs came to their end.
    pub fn note_endings(&mut self, transactions: &[Transaction], executed: &ExecutedSchedule) {
        for (transaction, ending) in transactions.iter().zip(&executed.outcome.endings) {
            match (ending, &mut self.endings[transaction.program]) {
                (Ending::Done, known) => *known = Known::Ends,
                (Ending::Failed(why), known @ Known::Nothing) => *known = Known::Fails(why.clone()),
                _ => {}
            }
        }
    }

    /// The programs that have failed each time, with the first reason.
    pub fn failing(&self) -> Vec<(String, String)> {
        let all = self.endings.iter().enumerate();
        let failing = all.filter_map(|(program, known)| match known {
            Known::Fails(why) => Some((program, why)),
            Known::Nothing | Known::Ends => None,
        });
        failing
            .map(|(program, why)| {
                (self.programs.name(program).to_owned(), format!("it failed each time: {why}"))
            })
            .collect()
    }

    /// The transaction of a program with the numbers that it usually takes.
    pub fn first(&self, program: usize) -> Transaction {
        Transaction::with(program, self.ways[program].first().cloned().unwrap_or_default())
    }

    /// All programs.
    pub fn all(&self) -> Vec<usize> {
        (0..self.programs.programs.len()).collect()
    }

    /// Checks a run of a script alone, in this allocation.
    ///
    /// # Errors
    /// The server doesn't accept a statement as it is written.
    fn require_no_mistake(
        &self,
        program: usize,
        allocation: usize,
        alone: &ExecutedSchedule,
    ) -> Result<(), TryError> {
        match &alone.outcome.endings[0] {
            Ending::Failed(why) if alone.outcome.views[0].is_mistaken() => {
                let script = self.programs.name(program).to_owned();
                let mode = self.allocations[allocation].of(&script);
                Err(TryError::Script { script, why: format!("{why} (at {mode})") })
            }
            _ => Ok(()),
        }
    }

    /// Notes what a script compared in the first state.
    pub fn note_run(&mut self, transaction: &Transaction, alone: &ExecutedSchedule) {
        let run = (transaction.choice.clone(), alone.outcome.views[0].compared.clone());
        let runs = &mut self.runs[transaction.program];
        if !runs.contains(&run) {
            runs.push(run);
        }
    }

    /// False if no split of the first transaction by the others can end otherwise than in some order: the
    /// next one has to change a table that the first one touches, or to lock rows of one that the first one
    /// changes, since it then waits with an older snapshot; and each has to conflict with the one
    /// before it, the last one also with the first.
    pub fn may_go_wrong(&self, combination: &[usize]) -> bool {
        let changes = |one: usize, other: usize| !self.writes[one].is_disjoint(&self.touches[other]);
        let conflict = |one: usize, other: usize| changes(one, other) || changes(other, one);
        let (first, last) = (combination[0], combination[combination.len() - 1]);
        let waits = !self.locks[combination[1]].is_disjoint(&self.writes[first]);
        (waits || changes(combination[1], first))
            && combination[1..].windows(2).all(|pair| conflict(pair[0], pair[1]))
            && conflict(last, first)
    }
}

/// The way that a script took: its conditions, whether each statement found rows, and whether it came to
/// its end.
pub type TakenWay = (Vec<usize>, Vec<bool>, bool);

/// The way that a script took in a run alone.
pub fn way(executed: &ExecutedSchedule) -> TakenWay {
    let view = &executed.outcome.views[0];
    let found = |answer: &(usize, Answer)| match &answer.1 {
        Answer::Tag(tag) => !tag.ends_with(" 0"),
        Answer::Rows { table, .. } => !table.rows.is_empty(),
    };
    (
        view.branches.clone(),
        view.answers.iter().map(found).collect(),
        executed.outcome.endings[0] == Ending::Done,
    )
}
