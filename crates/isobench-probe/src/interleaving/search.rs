//! The search: states, casts, choices and places to split, as far as the budget goes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::actor::{Answer, Ending};
use super::aims::{Run, aimed};
use super::casts::{choices, combinations, most, most_but_one, parts, spread};
use super::found::{ByDesign, Found, LevelFound, Order, Witness};
use super::ground::Delta;
use super::outcome::{Judgement, Masks, Outcome, orders};
use super::program::{Choice, Part, Program, Programs};
use super::stage::{Performance, Schedule, Stage};
use super::{TryError, Trying};

/// The most steps after which a transaction is split.
const MOST_STEPS: usize = 40;

/// The statements of scripts that are run even if they take longer than the budget, up to so many
/// times the budget, so that a busy machine still finds what is found soonest on a quiet one.
const LEAST_STATEMENTS: u64 = 3000;
const MOST_BUDGETS: u32 = 4;

/// The most repetitions of a script while it is looked for a change of its way, with numbers that are
/// equal or count up, and with the largest ones; and of a script that decides something and has taken the
/// same way so far.
const MOST_REPEATS: usize = 12;
const MOST_WITH_LARGEST: usize = 40;
const MOST_OF_ONE_WAY: usize = 120;

/// The values by which sequences are ahead when an order is run once more.
const AHEAD: i64 = 1000;

/// The time until the clock shows another second.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// The tables as some transactions have left them.
#[derive(Default)]
struct State {
    /// What has happened before, for people; empty: nothing.
    before: String,
    /// What has happened before.
    prefix: Vec<Part>,
    /// Casts that belong to it, in addition to those of every state.
    own: Vec<Vec<Part>>,
    /// True if it was reached with the largest numbers, so that transactions meet with these.
    largest: bool,
    /// The larger, the later it is tried.
    rank: usize,
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

/// Something to try.
struct Item {
    rank: usize,
    state: usize,
    cast: Vec<Part>,
}

/// Serial orders of a cast that have been run, in the present state.
#[derive(Default)]
struct Serial {
    outcomes: BTreeMap<Vec<usize>, Vec<Outcome>>,
    masks: Masks,
}

/// The search.
pub struct Search<'a, 's> {
    stage: Stage<'s>,
    programs: &'s Programs,
    trying: &'a Trying<'a>,
    began: Instant,
    found: Found,
    /// The state in which the tables are, and how they came there from the first one.
    present: usize,
    reached: Delta,
    /// The statements by which they came there.
    sent: Vec<String>,
    /// The tables that each program may change, as far as it has been seen.
    writes: Vec<BTreeSet<usize>>,
    /// The tables that each program touches, as far as it has been seen.
    touches: Vec<BTreeSet<usize>>,
    /// The programs that work by themselves.
    usable: Vec<usize>,
    /// What each program compared when it ran alone in the first state.
    runs: Vec<Vec<Run>>,
}

impl<'a, 's> Search<'a, 's> {
    pub fn new(stage: Stage<'s>, programs: &'s Programs, trying: &'a Trying<'a>, began: Instant) -> Self {
        let levels = trying.allocations.iter().cloned().map(LevelFound::new).collect();
        let found = Found { levels, refused: programs.refused.clone(), ..Found::default() };
        let none = || vec![BTreeSet::new(); programs.programs.len()];
        let (writes, touches) = (none(), none());
        Search {
            stage,
            programs,
            trying,
            began,
            found,
            present: 0,
            reached: Delta::default(),
            sent: Vec::new(),
            writes,
            touches,
            usable: Vec::new(),
            runs: vec![Vec::new(); programs.programs.len()],
        }
    }

    /// Tries until everything has been tried, every level has been shown to be unsafe, or the budget
    /// is used up.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn run(mut self) -> Result<Found, TryError> {
        let states = self.states()?;
        let mut items = self.items(&states);
        items.sort_by_key(|item| item.rank);
        // What the weakest level permits is tried at the others at once, the rest of it afterwards: few
        // outcomes are wrong only at a stronger level.
        let levels: Vec<usize> = (0..self.found.levels.len()).collect();
        let weakest = levels.iter().copied().min_by_key(|number| self.strength(*number));
        self.found.weakest = weakest.unwrap_or(0);
        let others: Vec<usize> = levels.iter().copied().filter(|number| Some(*number) != weakest).collect();
        let mut postponed = Vec::new();
        let mut tried = 0;
        for (number, item) in items.iter().enumerate() {
            if self.is_over(&levels) {
                break;
            }
            self.go_to(&states, item.state)?;
            let Some(mut serial) = self.learned(&item.cast)? else {
                tried += 1;
                continue;
            };
            let state = &states[item.state];
            let open = self.found.levels.iter().filter(|level| level.gravest().is_none()).count();
            match weakest {
                // With several levels of which nothing is known, the weakest one goes ahead.
                Some(weakest) if open > 1 => {
                    if self.splits(state, &item.cast, weakest, &mut serial)? {
                        self.at(&others, state, &item.cast, &mut serial)?;
                    } else {
                        postponed.push(number);
                    }
                }
                _ => self.at(&levels, state, &item.cast, &mut serial)?,
            }
            tried += 1;
        }
        self.found.untried = self.untried(&items[tried..]);
        let mut left = postponed.as_slice();
        while let Some((number, rest)) = left.split_first() {
            if self.is_over(&others) {
                break;
            }
            let item = &items[*number];
            self.go_to(&states, item.state)?;
            if let Some(mut serial) = self.learned(&item.cast)? {
                self.at(&others, &states[item.state], &item.cast, &mut serial)?;
            }
            left = rest;
        }
        let left: Vec<&Item> = left.iter().map(|number| &items[*number]).chain(&items[tried..]).collect();
        self.found.complete = left.is_empty();
        self.found.untried_above = self.untried(left);
        self.found.elapsed = self.began.elapsed();
        self.go_to(&states, 0)?;
        Ok(self.found)
    }

    /// How strong the levels of the scripts are, all together.
    fn strength(&self, number: usize) -> usize {
        let allocation = &self.found.levels[number].allocation;
        let level = |program| allocation.of(self.programs.name(program)).level as usize;
        (0..self.programs.programs.len()).map(level).sum()
    }

    /// The combinations of scripts in these, as far as they are in the first state.
    fn untried<'i>(&self, items: impl IntoIterator<Item = &'i Item>) -> Vec<String> {
        let first = items.into_iter().filter(|item| item.state == 0);
        let names: BTreeSet<String> = first.map(|item| self.names(&item.cast)).collect();
        names.into_iter().collect()
    }

    /// The scripts that meet, with the rank that their number gives them as a size.
    fn combinations(&self) -> Vec<(Vec<usize>, usize)> {
        if let Some(given) = self.trying.combinations {
            let number =
                |name: &String| self.usable.iter().copied().find(|one| self.programs.name(*one) == name);
            let numbers = |names: &Vec<String>| names.iter().map(number).collect::<Option<Vec<usize>>>();
            // Those that have shown no conflict so far come later, as do larger ones otherwise.
            let size = |numbers: &Vec<usize>| if self.may_go_wrong(numbers) { 2 } else { 3 };
            let all = given.iter().filter_map(numbers);
            return all.map(|numbers| (numbers.clone(), size(&numbers))).collect();
        }
        let mut all = Vec::new();
        for size in [2, 3] {
            let of_size = combinations(&self.usable, size).into_iter();
            all.extend(of_size.filter(|one| self.may_go_wrong(one)).map(|one| (one, size)));
        }
        all
    }

    /// True if the budget is used up, or each of these levels is shown to be unsafe.
    fn is_over(&self, levels: &[usize]) -> bool {
        let mut levels = levels.iter().map(|number| &self.found.levels[*number]);
        let budgets = if self.stage.statements < LEAST_STATEMENTS { MOST_BUDGETS } else { 1 };
        let given = self.trying.combinations.is_some();
        levels.all(|level| level.damage.is_some() || given && level.wrong_answer.is_some())
            || self.began.elapsed() >= budgets * self.trying.budget
    }

    /// Tries a cast at each of these levels that isn't known to be unsafe.
    fn at(
        &mut self,
        levels: &[usize],
        state: &State,
        cast: &[Part],
        serial: &mut Serial,
    ) -> Result<(), TryError> {
        for number in levels {
            if self.found.levels[*number].damage.is_none() {
                self.splits(state, cast, *number, serial)?;
            }
        }
        Ok(())
    }

    fn names(&self, cast: &[Part]) -> String {
        let names: Vec<&str> = cast.iter().map(|part| self.programs.name(part.program)).collect();
        names.join(" × ")
    }

    /// Runs a script alone, and leaves what it did.
    fn alone(&mut self, part: &Part) -> Result<Performance, TryError> {
        let cast = [part.clone()];
        self.stage.perform(&cast, &Schedule::Serial(vec![0]), 0, &[])
    }

    /// The states worth trying: the first one, those after each script and after all, and those from
    /// which a script soon takes another way.
    fn states(&mut self) -> Result<Vec<State>, TryError> {
        self.usable = self.working()?;
        let usable = self.usable.clone();
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
            states.push(State { before, prefix: vec![Part::of(*program)], rank: 2, ..State::default() });
        }
        if usable.len() > 1 {
            let before = "after each script once".to_owned();
            let prefix = usable.iter().copied().map(Part::of).collect();
            states.push(State { before, prefix, rank: 1, ..State::default() });
        }
        Ok(states)
    }

    /// The programs that work by themselves; the others are refused.
    fn working(&mut self) -> Result<Vec<usize>, TryError> {
        let mut working = Vec::new();
        for program in 0..self.programs.programs.len() {
            match self.start(program)? {
                Some(why) => {
                    let name = self.programs.name(program).to_owned();
                    self.found.refused.push((name, format!("it fails by itself: {why}")));
                }
                None => working.push(program),
            }
        }
        // Twice, since a script may take another way when the others have run, or with other numbers.
        for program in working.iter().chain(&working) {
            let draws = &self.programs.programs[*program].draws;
            for choice in [Choice::new(), spread(draws, false)] {
                let [touched, changed] = self.stage.uses(&Part::with(*program, choice))?;
                self.touches[*program].extend(touched);
                self.writes[*program].extend(changed);
            }
        }
        let (delta, _) = self.stage.changes()?;
        self.stage.put_back(&delta, 0)?;
        Ok(working)
    }

    /// Looks for the number from which a program's draws count: the least with which it works and finds
    /// the most rows, first the least of each range, then those of rows. Returns why it fails if it does
    /// with all of them.
    fn start(&mut self, program: usize) -> Result<Option<String>, TryError> {
        // Fewer is better: whether it fails, and how many statements found nothing.
        let mut best: Option<(bool, usize)> = None;
        let (mut chosen, mut why_first) = (None, None);
        let mut candidates = VecDeque::from([None]);
        while let Some(start) = candidates.pop_front() {
            self.stage.starts[program] = start;
            let performance = self.alone(&Part::of(program))?;
            self.undo(&performance)?;
            let (_, found, works) = way(&performance);
            let rank = (!works, found.iter().filter(|found| !**found).count());
            self.require_no_mistake(program, 0, &performance)?;
            if best.is_none() && rank != (false, 0) && !self.programs.programs[program].draws.is_empty() {
                candidates.extend(self.stage.numbers()?.into_iter().map(Some));
            }
            if let (None, Ending::Failed(why)) = (&best, &performance.outcome.endings[0]) {
                why_first = Some(why.clone());
            }
            if best.is_none_or(|best| rank < best) {
                (best, chosen) = (Some(rank), start);
            }
            if rank == (false, 0) {
                break;
            }
        }
        self.stage.starts[program] = chosen;
        let first = Part::of(program);
        let alone = self.alone(&first)?;
        self.undo(&alone)?;
        self.note_run(&first, &alone);
        // A level changes nothing for a script that runs alone, but READ ONLY does.
        let name = self.programs.name(program);
        let allocations = self.trying.allocations.iter().enumerate().skip(1);
        for (allocation, _) in allocations.filter(|(_, allocation)| allocation.of(name).read_only) {
            let part = [Part::of(program)];
            let alone = self.stage.perform(&part, &Schedule::Serial(vec![0]), allocation, &[])?;
            self.undo(&alone)?;
            self.require_no_mistake(program, allocation, &alone)?;
        }
        let fails = best.is_some_and(|(fails, _)| fails);
        if fails {
            self.note_violation(&alone.outcome);
        }
        Ok(why_first.filter(|_| fails))
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
                let mode = self.trying.allocations[allocation].of(&script);
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
        self.began.elapsed() < self.trying.budget / 4
    }

    /// The programs that decide something and have taken one way in what led to these states.
    fn of_one_way(&self, states: &[State]) -> Vec<usize> {
        let varies = |program: usize| {
            let grown = states.iter().filter(|state| !state.prefix.is_empty());
            grown.flat_map(|state| &state.own).flatten().any(|part| part.program == program)
        };
        let decides = |program: &usize| self.programs.programs[*program].decides();
        self.usable.iter().copied().filter(|program| decides(program) && !varies(*program)).collect()
    }

    /// The pairs of different programs that conflict and of which one has taken only one way.
    fn alternating(&self, states: &[State]) -> Vec<Vec<usize>> {
        let open = self.of_one_way(states);
        let pairs = combinations(&self.usable, 2).into_iter().filter(|pair| pair[0] < pair[1]);
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
        if let [script] = scripts[..]
            && !script.draws.is_empty()
            && script.decides()
        {
            growths.push(Growth::Largest);
        }
        for growth in growths {
            let largest = growth == Growth::Largest;
            // The run of this number, with the script whose turn it is.
            let part = |run: usize| {
                let (script, turn) = (run % scripts.len(), run / scripts.len());
                let above = i64::try_from(turn).unwrap_or(i64::MAX);
                let draws = &scripts[script].draws;
                let choice = match growth {
                    Growth::Equal => Choice::new(),
                    Growth::Counting(draw) => {
                        draws.get(draw).map(|draw| (draw.place, above)).into_iter().collect()
                    }
                    Growth::Largest => most(scripts[script]),
                };
                Part::with(in_turn[script], choice)
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

    /// Everything to try, in any order.
    fn items(&self, states: &[State]) -> Vec<Item> {
        let mut items = Vec::new();
        let combinations = self.combinations();
        let wanted = |cast: &&Vec<Part>| {
            let programs: Vec<usize> = cast.iter().map(|part| part.program).collect();
            self.trying.combinations.is_none() || combinations.iter().any(|(one, _)| *one == programs)
        };
        for (at, state) in states.iter().enumerate() {
            for cast in state.own.iter().filter(wanted) {
                items.push(Item { rank: state.rank, state: at, cast: cast.clone() });
            }
            for (combination, size) in &combinations {
                let programs: Vec<_> =
                    combination.iter().map(|program| &self.programs.programs[*program]).collect();
                let choices = if state.largest { most_but_one(&programs) } else { choices(&programs) };
                if at == 0 {
                    let aimed = aimed(combination, &self.runs);
                    let rank = state.rank + size - if self.trying.combinations.is_some() { 2 } else { 1 };
                    let item = |cast| Item { rank, state: at, cast };
                    items.extend(aimed.into_iter().map(item));
                }
                for (number, choices) in choices.iter().enumerate() {
                    let rank = state.rank + size - 2 + number.div_ceil(3);
                    items.push(Item { rank, state: at, cast: parts(combination, choices) });
                }
            }
        }
        items
    }

    /// False if no split of the first transaction by the others can end otherwise than in some order: the
    /// next one has to change a table that the first one touches, and each has to conflict with the one
    /// before it, the last one also with the first.
    fn may_go_wrong(&self, combination: &[usize]) -> bool {
        let changes = |one: usize, other: usize| !self.writes[one].is_disjoint(&self.touches[other]);
        let conflict = |one: usize, other: usize| changes(one, other) || changes(other, one);
        let (first, last) = (combination[0], combination[combination.len() - 1]);
        changes(combination[1], first)
            && combination[1..].windows(2).all(|pair| conflict(pair[0], pair[1]))
            && conflict(last, first)
    }

    /// Brings the tables into a state.
    fn go_to(&mut self, states: &[State], state: usize) -> Result<(), TryError> {
        if self.present == state {
            return Ok(());
        }
        let reached = std::mem::take(&mut self.reached);
        self.stage.start_again(&reached)?;
        self.sent.clear();
        for part in &states[state].prefix {
            let performance = self.alone(part)?;
            self.reached = self.reached.then(&performance.outcome.delta);
            self.sent
                .extend(performance.steps.into_iter().map(|step| step.sql).filter(|sql| sql != "COMMIT"));
        }
        self.present = state;
        self.stage.note_sequences()
    }

    /// Learns what an order of a cast doesn't determine, in the present state: what differs in the
    /// same order, with sequences moved on. `None` if it takes different ways.
    fn learned(&mut self, cast: &[Part]) -> Result<Option<Serial>, TryError> {
        let mut serial = Serial::default();
        let all: Vec<usize> = (0..cast.len()).collect();
        // A second time if values that are masked may matter later: what follows shows it.
        loop {
            let followed = serial.masks.matter_later(&self.stage.ground.tables);
            let once = self.serially(cast, &all, 0, &serial.masks)?;
            sleep(Duration::from_millis(1));
            let again = self.serially(cast, &all, AHEAD, &serial.masks)?;
            if !serial.masks.learn(&once, &again) {
                self.found.undetermined += 1;
                return Ok(None);
            }
            if followed == serial.masks.matter_later(&self.stage.ground.tables) {
                serial.outcomes.insert(all, vec![once, again]);
                self.note_masked(&serial.masks);
                return Ok(Some(serial));
            }
        }
    }

    fn note_masked(&mut self, masks: &Masks) {
        for (table, column) in &masks.columns {
            let table = &self.stage.ground.tables[*table];
            let Some(column) = table.columns.get(*column) else { continue };
            self.found.masked.insert(format!("{}.{column}", table.name));
        }
    }

    /// The transactions that follow, to show what masked values are good for: each script once.
    fn later(&self, masks: &Masks) -> Vec<Part> {
        if !masks.matter_later(&self.stage.ground.tables) {
            return Vec::new();
        }
        self.usable.iter().copied().map(Part::of).collect()
    }

    /// Runs a cast in an order. With sequences moved on, it is in the sessions of another level, so
    /// that what depends on the session differs, too.
    fn serially(
        &mut self,
        cast: &[Part],
        order: &[usize],
        ahead: i64,
        masks: &Masks,
    ) -> Result<Outcome, TryError> {
        let mut allocation = 0;
        if ahead > 0 {
            self.stage.put_back(&Delta::default(), ahead)?;
            allocation = self.trying.allocations.len() - 1;
        }
        let later = self.later(masks);
        let performance = self.stage.perform(cast, &Schedule::Serial(order.to_vec()), allocation, &later)?;
        self.undo(&performance)?;
        self.note_violation(&performance.outcome);
        Ok(performance.outcome)
    }

    /// Notes the first refusal by a unique index.
    fn note_violation(&mut self, outcome: &Outcome) {
        let mut endings = outcome.views.iter().zip(&outcome.endings);
        if self.found.violated.is_none()
            && let Some((_, ending)) = endings.find(|(view, _)| view.violates_key())
        {
            self.found.violated = ending.failure().map(str::to_owned);
        }
    }

    fn undo(&mut self, performance: &Performance) -> Result<(), TryError> {
        let outcome = &performance.outcome;
        self.stage.put_back(outcome.later.as_ref().unwrap_or(&outcome.delta), 0)
    }

    /// Tries a cast at one level, split after each of its steps. Returns whether an outcome wasn't that of
    /// an order, which is all that is looked for once the level is known to be unsafe.
    fn splits(
        &mut self,
        state: &State,
        cast: &[Part],
        number: usize,
        serial: &mut Serial,
    ) -> Result<bool, TryError> {
        let mut wrong = false;
        for after in 1..=MOST_STEPS {
            if (self.trying.stopped)() {
                return Err(TryError::Stopped);
            }
            let performance = self.split(cast, after, number, &serial.masks)?;
            if performance.over || self.began.elapsed() > MOST_BUDGETS * self.trying.budget {
                break;
            }
            let tried = &mut self.found.levels[number];
            tried.trials += 1;
            if tried.failure.is_none() {
                tried.failure =
                    performance.outcome.endings.iter().find_map(Ending::failure).map(str::to_owned);
            }
            if performance.inconclusive {
                tried.inconclusive += 1;
                continue;
            }
            let failed = performance.outcome.endings.iter().any(|ending| *ending != Ending::Done);
            tried.with_failures += u64::from(failed);
            let judgement = self.judge(cast, &performance, serial)?;
            if judgement == Judgement::Serial {
                continue;
            }
            wrong = true;
            if self.found.levels[number].damage.is_some() {
                break;
            }
            if let Some(how) = performance.by_design {
                let allocation = self.found.levels[number].allocation.clone();
                self.found.note_by_design(ByDesign { allocation, how, scripts: self.names(cast) });
                continue;
            }
            let known = &self.found.levels[number];
            // Answers to single statements outside of a block are of different moments, as asked for.
            let asked =
                judgement == Judgement::WrongAnswer && (performance.between || known.wrong_answer.is_some());
            if asked {
                continue;
            }
            let Some(judgement) = self.confirmed(cast, after, number, serial)? else { continue };
            let witness = self.witness(state, cast, judgement, &performance, serial);
            let level = &mut self.found.levels[number];
            match judgement {
                Judgement::Damage => {
                    level.damage = Some(witness);
                    break;
                }
                Judgement::WrongAnswer if level.wrong_answer.is_none() => level.wrong_answer = Some(witness),
                _ => {}
            }
        }
        Ok(wrong)
    }

    fn split(
        &mut self,
        cast: &[Part],
        after: usize,
        allocation: usize,
        masks: &Masks,
    ) -> Result<Performance, TryError> {
        let later = self.later(masks);
        let performance = self.stage.perform(cast, &Schedule::Split(after), allocation, &later)?;
        self.undo(&performance)?;
        Ok(performance)
    }

    /// The orders that may explain an outcome: all of the transactions that committed, with or without
    /// those that declined.
    fn candidates(outcome: &Outcome) -> Vec<Vec<usize>> {
        let (committed, declined) = (outcome.committed(), outcome.declined());
        let mut all = Vec::new();
        for left_out in 0..1_usize << declined.len() {
            let kept = declined.iter().enumerate().filter(|(bit, _)| left_out & (1 << bit) == 0);
            let mut numbers: Vec<usize> =
                committed.iter().copied().chain(kept.map(|(_, number)| *number)).collect();
            numbers.sort_unstable();
            all.extend(orders(&numbers));
        }
        all
    }

    fn judge(
        &mut self,
        cast: &[Part],
        performance: &Performance,
        serial: &mut Serial,
    ) -> Result<Judgement, TryError> {
        let outcome = &performance.outcome;
        let mut worst = Judgement::Damage;
        for order in Self::candidates(outcome) {
            if !serial.outcomes.contains_key(&order) {
                let ran = self.serially(cast, &order, 0, &serial.masks)?;
                serial.outcomes.insert(order.clone(), vec![ran]);
            }
            let ran = &serial.outcomes[&order];
            let judgement = serial.masks.judge(outcome, ran.iter().map(|ran| (order.as_slice(), ran)));
            if judgement == Judgement::Serial {
                return Ok(judgement);
            }
            worst = worst.min(judgement);
        }
        Ok(worst)
    }

    /// Runs everything once more before anything is called wrong: what isn't determined is learned
    /// anew, and the same interleaving has to be wrong again. Returns the milder of the judgements.
    fn confirmed(
        &mut self,
        cast: &[Part],
        after: usize,
        number: usize,
        serial: &mut Serial,
    ) -> Result<Option<Judgement>, TryError> {
        let mut worst = Judgement::Damage;
        for ahead in [3 * AHEAD, 7 * AHEAD] {
            if self.stage.ground.asks_for_time || self.programs.ask_for_time() {
                sleep(NEXT_SECOND);
            }
            let known: Vec<Vec<usize>> = serial.outcomes.keys().cloned().collect();
            for order in known {
                let ran = self.serially(cast, &order, ahead, &serial.masks)?;
                let before = &serial.outcomes[&order][0];
                if !serial.masks.learn(before, &ran) {
                    self.found.undetermined += 1;
                    return Ok(None);
                }
                serial.outcomes.entry(order).or_default().push(ran);
            }
            let performance = self.split(cast, after, number, &serial.masks)?;
            if performance.over || performance.inconclusive {
                return Ok(None);
            }
            let judgement = self.judge(cast, &performance, serial)?;
            if judgement == Judgement::Serial {
                return Ok(None);
            }
            worst = worst.min(judgement);
        }
        self.note_masked(&serial.masks);
        Ok(Some(worst))
    }

    fn witness(
        &self,
        state: &State,
        cast: &[Part],
        judgement: Judgement,
        performance: &Performance,
        serial: &Serial,
    ) -> Witness {
        let tables = &self.stage.ground.tables;
        let mut orders = Vec::new();
        for order in Self::candidates(&performance.outcome) {
            if let Some(outcome) = serial.outcomes.get(&order).and_then(|outcomes| outcomes.first()) {
                orders.push(Order::new(&order, outcome, tables));
            }
        }
        let numbers: Vec<usize> = (0..cast.len()).collect();
        let serially = serial.outcomes.values().flatten();
        let broken = serial.masks.broken(&performance.outcome, serially);
        Witness {
            damage: judgement == Judgement::Damage,
            scripts: cast.iter().map(|part| self.programs.name(part.program).to_owned()).collect(),
            before: state.before.clone(),
            prefix_sql: self.sent.clone(),
            no_level_prevents: performance.between,
            steps: performance.steps.clone(),
            outcome: Order::new(&numbers, &performance.outcome, tables),
            broken: broken.iter().map(|number| self.trying.conditions[*number].name.clone()).collect(),
            orders,
        }
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
