//! Scripts that run alone, before they meet: the numbers with which they work, the tables that they use,
//! and the states of the tables from which one soon takes another way.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::actor::{Answer, Ending};
use super::aims::Run;
use super::casts::{combinations, most, moved, spread};
use super::foresight::Foresight;
use super::ground::{Delta, Keys};
use super::outcome::Outcome;
use super::program::{Choice, Number, Part, Place, Program, Programs};
use super::stage::{Performance, Schedule, Stage};
use super::{TryError, Trying};
use isobench_isolation::Allocation;

/// The most repetitions of a script while it is looked for a change of its way, with numbers that are
/// equal or count up, and with the largest ones; and of a script that decides something and has taken the
/// same way so far.
const MOST_REPEATS: usize = 12;
const MOST_WITH_LARGEST: usize = 40;
const MOST_OF_ONE_WAY: usize = 120;

/// The tables as some transactions have left them.
#[derive(Default)]
pub struct State {
    /// What has happened before, for people; empty: nothing.
    pub before: String,
    /// What has happened before.
    pub prefix: Vec<Part>,
    /// Casts that belong to it, in addition to those of every state.
    pub own: Vec<Vec<Part>>,
    /// True if it was reached with the largest numbers, so that transactions meet with these.
    pub largest: bool,
    /// The larger, the later it is tried.
    pub rank: usize,
}

/// The numbers with which a script is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// The same ones each time.
    Equal,
    /// Those of the draw with this number in its script count up.
    Counting(usize),
    /// The largest of each range.
    Largest,
}

/// Scripts on a stage, each alone.
pub struct Rehearsal<'s> {
    /// The sessions and the tables.
    pub stage: Stage<'s>,
    programs: &'s Programs,
    allocations: Vec<Allocation>,
    budget: Duration,
    began: Instant,
    /// The numbers that lead to the ways of each program; the first way is the one that it usually takes.
    pub ways: Vec<Vec<Choice>>,
    /// Numbers by which rows are found, and some by which none are.
    pub keys: Keys,
    /// The first time that a unique index refused what a script did by itself or after another one.
    pub violated: Option<String>,
    /// What each program compared when it ran alone in the first state.
    pub runs: Vec<Vec<Run>>,
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

/// The most choices with which a program fails, or finds other rows, in the first state.
const MOST_OTHERWISE: usize = 2;

impl<'s> Rehearsal<'s> {
    /// Brings scripts on a stage.
    pub fn new(stage: Stage<'s>, programs: &'s Programs, trying: &Trying<'_>, began: Instant) -> Self {
        let count = programs.programs.len();
        let none = || vec![BTreeSet::new(); count];
        Rehearsal {
            stage,
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
    pub fn alone(&mut self, part: &Part) -> Result<Performance, TryError> {
        let cast = [part.clone()];
        let performance = self.stage.perform(&cast, &Schedule::Serial(vec![0]), 0, &[])?;
        self.note_endings(&cast, &performance);
        Ok(performance)
    }

    pub fn undo(&mut self, performance: &Performance) -> Result<(), TryError> {
        let outcome = &performance.outcome;
        self.stage.put_back(outcome.later.as_ref().unwrap_or(&outcome.delta), 0)
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

    /// The states worth trying: the first one, those after each script and after all, and those from
    /// which a script soon takes another way.
    pub fn states(&mut self) -> Result<Vec<State>, TryError> {
        self.try_alone()?;
        let usable = self.all();
        let mut states = vec![State::default()];
        for program in &usable {
            states.extend(self.grown(&[*program], MOST_REPEATS)?);
        }
        // What a script decides may depend on what another one has done, or on more runs.
        for pair in self.alternating(&states) {
            if !self.may_grow() {
                break;
            }
            states.extend(self.grown(&pair, MOST_REPEATS)?);
        }
        for program in self.of_one_way(&states) {
            if !self.may_grow() {
                break;
            }
            states.extend(self.grown(&[program], MOST_OF_ONE_WAY)?);
        }
        for program in &usable {
            let before = format!("after {}", self.programs.name(*program));
            for way in &self.ways[*program] {
                let prefix = vec![Part::with(*program, way.clone())];
                states.push(State { before: before.clone(), prefix, rank: 2, ..State::default() });
            }
        }
        if usable.len() > 1 {
            let before = "after each script once".to_owned();
            let prefix = usable.iter().map(|program| self.first(*program)).collect();
            states.push(State { before, prefix, rank: 1, ..State::default() });
        }
        Ok(states)
    }

    /// Finds out which ways each program has, with which numbers it works, and which tables it uses.
    fn try_alone(&mut self) -> Result<(), TryError> {
        self.keys = self.stage.keys()?;
        for program in 0..self.programs.programs.len() {
            self.start(program)?;
            let ways = Foresight::new(self.programs, &self.stage.starts).ways(program);
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
                let [touched, changed, locked] = self.stage.uses(&Part::with(program, choice))?;
                self.locks[program].extend(locked);
                self.touches[program].extend(touched);
                self.writes[program].extend(changed);
            }
        }
        let (delta, _) = self.stage.changes()?;
        self.stage.put_back(&delta, 0)
    }

    /// Runs a way alone, and takes it back. Returns how good it is (fewer is better: whether it fails, and
    /// how many statements found nothing), and what happened.
    fn attempt(&mut self, program: usize, choice: &Choice) -> Result<(Rank, Performance), TryError> {
        let performance = self.alone(&Part::with(program, choice.clone()))?;
        self.undo(&performance)?;
        self.require_no_mistake(program, 0, &performance)?;
        let (_, found, works) = way(&performance);
        Ok(((!works, found.iter().filter(|found| !**found).count()), performance))
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
            self.stage.starts[program] = start;
            let (rank, _) = self.attempt(program, &Choice::new())?;
            if best.is_none_or(|(best, _)| rank < best) {
                best = Some((rank, start));
            }
            if rank == BEST {
                break;
            }
        }
        self.stage.starts[program] = best.and_then(|(_, start)| start);
        Ok(())
    }

    /// A way with other numbers, if those with which it is taken don't work or find nothing: first one
    /// number for all draws, then each draw by itself.
    fn settled(&mut self, program: usize, way: Choice) -> Result<Choice, TryError> {
        let (mut rank, _) = self.attempt(program, &way)?;
        if rank == BEST {
            return Ok(way);
        }
        let foresight = Foresight::new(self.programs, &self.stage.starts);
        let foreseen = foresight.of(program, &way);
        let numbers: Vec<i64> = self.keys.all().collect();
        let free: Vec<(Place, [i64; 3])> = foreseen
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
            if foresight.of(program, &choice).decided != foreseen.decided {
                continue;
            }
            let (other, _) = self.attempt(program, &choice)?;
            left -= 1;
            if other < rank {
                (rank, best) = (other, choice);
            }
            if rank == BEST || left == 0 {
                break;
            }
        }
        Ok(best)
    }

    /// Choices of the first way with which a program fails, or finds other rows, in the first state: it may
    /// work, or find them, after another one.
    fn otherwise(&mut self, program: usize) -> Result<Vec<Choice>, TryError> {
        let Some(base) = self.ways[program].first().cloned() else { return Ok(Vec::new()) };
        let (_, performance) = self.attempt(program, &base)?;
        let usual = way(&performance);
        let foresight = Foresight::new(self.programs, &self.stage.starts);
        let foreseen = foresight.of(program, &base);
        let mut others: Vec<((Vec<usize>, Vec<bool>, bool), Choice)> = Vec::new();
        let few: Vec<i64> = self.keys.few().collect();
        for (place, [least, most, _]) in &foreseen.drawn {
            for number in few.iter().copied().filter(|number| (least..=most).contains(&number)) {
                let mut choice = base.clone();
                choice.insert(*place, Number::Is(number));
                if foresight.of(program, &choice).decided != foreseen.decided {
                    continue;
                }
                let (_, performance) = self.attempt(program, &choice)?;
                let other = way(&performance);
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
        let part = Part::with(program, way.clone());
        let alone = self.alone(&part)?;
        self.undo(&alone)?;
        self.note_run(&part, &alone);
        if alone.outcome.endings[0] != Ending::Done {
            self.note_violation(&alone.outcome);
        }
        // A level changes nothing for a script that runs alone, but READ ONLY does.
        let name = self.programs.name(program);
        let read_only = |allocation: &usize| self.allocations[*allocation].of(name).read_only;
        let allocations: Vec<usize> = (1..self.allocations.len()).filter(read_only).collect();
        for allocation in allocations {
            let part = [part.clone()];
            let alone = self.stage.perform(&part, &Schedule::Serial(vec![0]), allocation, &[])?;
            self.undo(&alone)?;
            self.require_no_mistake(program, allocation, &alone)?;
        }
        Ok(())
    }

    /// Notes whether programs came to their end.
    pub fn note_endings(&mut self, cast: &[Part], performance: &Performance) {
        for (part, ending) in cast.iter().zip(&performance.outcome.endings) {
            match (ending, &mut self.endings[part.program]) {
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
    pub fn first(&self, program: usize) -> Part {
        Part::with(program, self.ways[program].first().cloned().unwrap_or_default())
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
        alone: &Performance,
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
    fn note_run(&mut self, part: &Part, alone: &Performance) {
        let run = (part.choice.clone(), alone.outcome.views[0].compared.clone());
        let runs = &mut self.runs[part.program];
        if !runs.contains(&run) {
            runs.push(run);
        }
    }

    /// True if there is time left to look for states.
    fn may_grow(&self) -> bool {
        self.began.elapsed() < self.budget / 4
    }

    /// The programs that decide something and have taken one way in what led to these states.
    fn of_one_way(&self, states: &[State]) -> Vec<usize> {
        let varies = |program: usize| {
            let grown = states.iter().filter(|state| !state.prefix.is_empty());
            grown.flat_map(|state| &state.own).flatten().any(|part| part.program == program)
        };
        let decides = |program: &usize| self.programs.programs[*program].decides();
        self.all().into_iter().filter(|program| decides(program) && !varies(*program)).collect()
    }

    /// The pairs of different programs that conflict and of which one has taken only one way.
    fn alternating(&self, states: &[State]) -> Vec<Vec<usize>> {
        let open = self.of_one_way(states);
        let pairs = combinations(&self.all(), 2).into_iter().filter(|pair| pair[0] < pair[1]);
        let wanted = |pair: &Vec<usize>| {
            let conflict = self.may_go_wrong(pair) || self.may_go_wrong(&[pair[1], pair[0]]);
            conflict && pair.iter().any(|program| open.contains(program))
        };
        pairs.filter(wanted).collect()
    }

    /// Repeats scripts in turn until one of them takes another way, with equal numbers, with numbers that
    /// count up and, if it is one script that decides anything, with the largest ones, and returns the
    /// states in which two more runs are just one too many.
    fn grown(&mut self, in_turn: &[usize], most_repeats: usize) -> Result<Vec<State>, TryError> {
        let mut found = Vec::new();
        let scripts: Vec<&Program> =
            in_turn.iter().map(|program| &self.programs.programs[*program]).collect();
        let draws = scripts.iter().map(|script| script.draws.len()).max().unwrap_or(0);
        let mut growths = vec![Growth::Equal];
        growths.extend((0..draws).map(Growth::Counting));
        let mut ways = 1;
        if let [script] = scripts[..] {
            ways = self.ways[in_turn[0]].len();
            if !script.draws.is_empty() && script.decides() {
                growths.push(Growth::Largest);
            }
        }
        let growths: Vec<(usize, Growth)> =
            (0..ways).flat_map(|way| growths.iter().map(move |growth| (way, *growth))).collect();
        for (way_number, growth) in growths {
            if !self.may_grow() {
                break;
            }
            let bases: Vec<Choice> = in_turn
                .iter()
                .map(|program| self.ways[*program].get(way_number).cloned().unwrap_or_default())
                .collect();
            let largest = growth == Growth::Largest;
            // The run of this number, with the script whose turn it is.
            let part = |run: usize| {
                let (script, turn) = (run % scripts.len(), run / scripts.len());
                let above = i64::try_from(turn).unwrap_or(i64::MAX);
                let (draws, base) = (&scripts[script].draws, &bases[script]);
                let mut change = match growth {
                    Growth::Equal => Choice::new(),
                    Growth::Counting(draw) => {
                        let draw = draws.get(draw).map(|draw| (draw.place, Number::Above(above)));
                        draw.into_iter().collect()
                    }
                    Growth::Largest => most(scripts[script]),
                };
                // The numbers that lead to a way stay.
                change.retain(|place, _| way_number == 0 || !base.contains_key(place));
                Part::with(in_turn[script], moved(base, &change))
            };
            let repeats = if largest { MOST_WITH_LARGEST } else { most_repeats };
            let (mut first, mut done) = (Vec::new(), Delta::default());
            for run in 0..repeats * scripts.len() {
                let performance = self.alone(&part(run))?;
                if run == 0 {
                    self.note_run(&part(run), &performance);
                }
                done = done.then(&performance.outcome.delta);
                if !self.may_grow() {
                    break;
                }
                let way = way(&performance);
                match first.get(run % scripts.len()) {
                    None => first.push(way),
                    Some(first) if *first == way => {}
                    Some(_) => {
                        // Of the run before this one and this one, the first is the last that may.
                        let (before, this) = (part(run - 1), part(run));
                        let own = match scripts.len() {
                            1 => vec![vec![before.clone(), before.clone()], vec![before, this]],
                            _ => vec![vec![before.clone(), this.clone()], vec![this, before]],
                        };
                        let state = |runs: usize, own: Vec<Vec<Part>>| State {
                            before: self.after(in_turn, runs),
                            prefix: (0..runs).map(part).collect(),
                            own,
                            largest,
                            rank: usize::from(!largest),
                        };
                        found.push(state(run - 1, own));
                        // Here it takes the other way, unless one of the others prevents it.
                        if largest {
                            found.push(state(run, Vec::new()));
                        }
                        break;
                    }
                }
            }
            self.stage.put_back(&done, 0)?;
        }
        Ok(found)
    }

    /// What has happened after so many runs of these scripts in turn, for people.
    fn after(&self, in_turn: &[usize], runs: usize) -> String {
        let names: Vec<&str> =
            in_turn.iter().take(runs).map(|program| self.programs.name(*program)).collect();
        let often = match runs {
            0 => return String::new(),
            runs if runs == names.len() => "once",
            _ => "several times",
        };
        format!("after {} {often}", names.join(" and "))
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
fn way(performance: &Performance) -> (Vec<usize>, Vec<bool>, bool) {
    let view = &performance.outcome.views[0];
    let found = |answer: &(usize, Answer)| match &answer.1 {
        Answer::Tag(tag) => !tag.ends_with(" 0"),
        Answer::Rows { table, .. } => !table.rows.is_empty(),
    };
    (
        view.branches.clone(),
        view.answers.iter().map(found).collect(),
        performance.outcome.endings[0] == Ending::Done,
    )
}
