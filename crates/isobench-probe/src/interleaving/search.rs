//! The search: states, combinations, choices and places to split, as far as the budget goes.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::alone::Alone;
use super::combinations::{Combiner, Meeting, combinations, most_but_one, with_choices};
use super::execution::Ending;
use super::found::{ByDesign, Found, LevelFound, Order, Witness};
use super::outcome::{Judgement, Masks, Outcome, orders};
use super::program::{Programs, Transaction};
use super::sessions::{ExecutedSchedule, Schedule, Sessions};
use super::states::State;
use super::tables::Delta;
use super::targets::combinations_with_targets;
use super::{TryError, Trying};

/// The most steps after which a transaction is split.
const MOST_STEPS: usize = 40;

/// The statements of scripts that are run even if they take longer than the budget, so that a busy machine
/// still finds what is found soonest on a quiet one.
const LEAST_STATEMENTS: u64 = 3000;

/// The longest time for these statements: so many times the budget, or this time if it is longer.
const MOST_BUDGETS: u32 = 4;
pub(super) const LONGEST_LEAST: Duration = Duration::from_secs(5);

/// The ranks by which numbers of unusual ways come later in states that aren't the first one.
const LESS_ESSENTIAL: usize = 3;

/// The levels above the weakest one get as much of its time as this part of it.
const SHARE_OF_OTHERS: u32 = 2;

/// The values by which sequences are ahead when an order is run once more.
const AHEAD: i64 = 1000;

/// The time until the clock shows another second.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

/// The longest time for the least statements.
fn longest(budget: Duration) -> Duration {
    LONGEST_LEAST.max(MOST_BUDGETS * budget)
}

/// Something to try.
struct Item {
    /// Without it, its scripts don't count as tried with each other.
    essential: bool,
    rank: usize,
    state: usize,
    transactions: Vec<Transaction>,
}

/// Serial orders of a combination of transactions that have been run, in the present state.
#[derive(Default)]
struct Serial {
    outcomes: BTreeMap<Vec<usize>, Vec<Outcome>>,
    masks: Masks,
}

/// The search.
pub struct Search<'a, 's> {
    alone: Alone<'s>,
    programs: &'s Programs,
    trying: &'a Trying<'a>,
    began: Instant,
    found: Found,
    /// The state in which the tables are, and how they came there from the first one.
    present: usize,
    reached: Delta,
    /// The statements by which they came there.
    sent: Vec<String>,
}

impl<'a, 's> Search<'a, 's> {
    pub fn new(
        sessions: Sessions<'s>,
        programs: &'s Programs,
        trying: &'a Trying<'a>,
        began: Instant,
    ) -> Self {
        let levels = trying.allocations.iter().cloned().map(LevelFound::new).collect();
        let found = Found { levels, refused: programs.refused.clone(), ..Found::default() };
        let alone = Alone::new(sessions, programs, trying, began);
        let (present, reached, sent) = (0, Delta::default(), Vec::new());
        Search { alone, programs, trying, began, found, present, reached, sent }
    }

    /// Tries until everything has been tried, every level has been shown to be unsafe, or the budget
    /// is used up.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn run(mut self) -> Result<Found, TryError> {
        let states = self.alone.states()?;
        let mut items = self.items(&states);
        items.sort_by_key(|item| item.rank);
        // What the weakest level permits is tried at the others at once, and the rest of it as far as they
        // have their share of the time, else afterwards: few outcomes are wrong only at a stronger level.
        let levels: Vec<usize> = (0..self.found.levels.len()).collect();
        let weakest = levels.iter().copied().min_by_key(|number| self.strength(*number));
        self.found.weakest = weakest.unwrap_or(0);
        let others: Vec<usize> = levels.iter().copied().filter(|number| Some(*number) != weakest).collect();
        let mut postponed = Vec::new();
        // That of the weakest level, and that of the others.
        let mut times = (Duration::ZERO, Duration::ZERO);
        let mut tried = 0;
        for (number, item) in items.iter().enumerate() {
            if self.is_over(&levels) {
                break;
            }
            self.go_to(&states, item.state)?;
            let Some(mut serial) = self.learned(&item.transactions)? else {
                tried += 1;
                continue;
            };
            let state = &states[item.state];
            let open = self.found.levels.iter().filter(|level| level.gravest().is_none()).count();
            match weakest {
                // With several levels of which nothing is known, the weakest one goes ahead.
                Some(weakest) if open > 1 => {
                    let began = Instant::now();
                    let wrong = self.splits(state, &item.transactions, weakest, &mut serial)?;
                    let between = Instant::now();
                    times.0 += between - began;
                    if wrong || times.1 * SHARE_OF_OTHERS < times.0 {
                        self.at(&others, state, &item.transactions, &mut serial)?;
                        times.1 += between.elapsed();
                    } else {
                        postponed.push(number);
                    }
                }
                _ => self.at(&levels, state, &item.transactions, &mut serial)?,
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
            if let Some(mut serial) = self.learned(&item.transactions)? {
                self.at(&others, &states[item.state], &item.transactions, &mut serial)?;
            }
            left = rest;
        }
        let left: Vec<&Item> = left.iter().map(|number| &items[*number]).chain(&items[tried..]).collect();
        self.found.complete = left.is_empty();
        self.found.untried_above = self.untried(left);
        self.found.elapsed = self.began.elapsed();
        self.go_to(&states, 0)?;
        self.found.refused.extend(self.alone.failing());
        self.found.violated = self.alone.violated.take();
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
        let first = items.into_iter().filter(|item| item.essential);
        let names: BTreeSet<String> = first.map(|item| self.names(&item.transactions)).collect();
        names.into_iter().collect()
    }

    /// The scripts that meet, with the rank that their number gives them as a size.
    fn combinations(&self) -> Vec<(Vec<usize>, usize)> {
        if let Some(given) = self.trying.combinations {
            let all = self.alone.all();
            let number = |name: &String| all.iter().copied().find(|one| self.programs.name(*one) == name);
            let numbers = |names: &Vec<String>| names.iter().map(number).collect::<Option<Vec<usize>>>();
            // Those that have shown no conflict so far come later, as do larger ones otherwise.
            let size = |numbers: &Vec<usize>| if self.alone.may_go_wrong(numbers) { 2 } else { 3 };
            let all = given.iter().filter_map(numbers);
            return all.map(|numbers| (numbers.clone(), size(&numbers))).collect();
        }
        let mut all = Vec::new();
        for size in [2, 3] {
            let of_size = combinations(&self.alone.all(), size).into_iter();
            all.extend(of_size.filter(|one| self.alone.may_go_wrong(one)).map(|one| (one, size)));
        }
        all
    }

    /// True if the budget is used up, or each of these levels is shown to be unsafe.
    fn is_over(&self, levels: &[usize]) -> bool {
        let mut levels = levels.iter().map(|number| &self.found.levels[*number]);
        let budget = self.trying.budget;
        let limit = if self.alone.sessions.statements < LEAST_STATEMENTS { longest(budget) } else { budget };
        let given = self.trying.combinations.is_some();
        levels.all(|level| level.damage.is_some() || given && level.wrong_answer.is_some())
            || self.began.elapsed() >= limit
    }

    /// Tries transactions at each of these levels that isn't known to be unsafe.
    fn at(
        &mut self,
        levels: &[usize],
        state: &State,
        transactions: &[Transaction],
        serial: &mut Serial,
    ) -> Result<(), TryError> {
        for number in levels {
            if self.found.levels[*number].damage.is_none() {
                self.splits(state, transactions, *number, serial)?;
            }
        }
        Ok(())
    }

    fn names(&self, transactions: &[Transaction]) -> String {
        let names: Vec<&str> =
            transactions.iter().map(|transaction| self.programs.name(transaction.program)).collect();
        names.join(" × ")
    }

    /// Everything to try, in any order.
    fn items(&self, states: &[State]) -> Vec<Item> {
        let mut items = Vec::new();
        let (starts, ways) = (&self.alone.sessions.starts, self.alone.ways.clone());
        let rows: Vec<i64> = self.alone.keys.all().collect();
        let combiner = Combiner::new(self.programs, starts, ways, &rows);
        let combinations = self.combinations();
        let wanted = |transactions: &&Vec<Transaction>| {
            let programs: Vec<usize> = transactions.iter().map(|transaction| transaction.program).collect();
            self.trying.combinations.is_none() || combinations.iter().any(|(one, _)| *one == programs)
        };
        let meetings: Vec<Vec<Meeting>> =
            combinations.iter().map(|(combination, _)| combiner.meetings(combination)).collect();
        for (at, state) in states.iter().enumerate() {
            for transactions in state.own.iter().filter(wanted) {
                items.push(Item {
                    essential: false,
                    rank: state.rank,
                    state: at,
                    transactions: transactions.clone(),
                });
            }
            for ((combination, size), meetings) in combinations.iter().zip(&meetings) {
                let mut add = |essential: bool, rank: usize, transactions: Vec<Transaction>| {
                    // What matters in the first state matters first.
                    let later = usize::from(at > 0 && !essential) * LESS_ESSENTIAL;
                    let essential = essential && at == 0;
                    items.push(Item {
                        essential,
                        rank: state.rank + size - 2 + rank + later,
                        state: at,
                        transactions,
                    });
                };
                if at == 0 {
                    let rank = usize::from(self.trying.combinations.is_none());
                    for transactions in combinations_with_targets(combination, &self.alone.runs) {
                        add(true, rank, transactions);
                    }
                }
                if state.largest {
                    let programs: Vec<_> =
                        combination.iter().map(|program| &self.programs.programs[*program]).collect();
                    for (number, choices) in most_but_one(&programs).iter().enumerate() {
                        add(true, number.div_ceil(3), with_choices(combination, choices));
                    }
                } else {
                    for Meeting { choices, rank, essential } in meetings {
                        add(*essential, *rank, with_choices(combination, choices));
                    }
                }
            }
        }
        items
    }

    /// Brings the tables into a state.
    fn go_to(&mut self, states: &[State], state: usize) -> Result<(), TryError> {
        if self.present == state {
            return Ok(());
        }
        let reached = std::mem::take(&mut self.reached);
        self.alone.sessions.start_again(&reached)?;
        self.sent.clear();
        for transaction in &states[state].prefix {
            let executed = self.alone.run(transaction)?;
            self.reached = self.reached.then(&executed.outcome.delta);
            self.sent.extend(executed.steps.into_iter().map(|step| step.sql).filter(|sql| sql != "COMMIT"));
        }
        self.present = state;
        self.alone.sessions.note_sequences()
    }

    /// Learns what an order of transactions doesn't determine, in the present state: what differs in the
    /// same order, with sequences moved on. `None` if it takes different ways.
    fn learned(&mut self, transactions: &[Transaction]) -> Result<Option<Serial>, TryError> {
        let mut serial = Serial::default();
        let all: Vec<usize> = (0..transactions.len()).collect();
        // A second time if values that are masked may matter later: what follows shows it.
        loop {
            let followed = serial.masks.matter_later(&self.alone.sessions.tables.all);
            if !self.twice(transactions, &all, &mut serial)? {
                self.found.undetermined += 1;
                return Ok(None);
            }
            if followed == serial.masks.matter_later(&self.alone.sessions.tables.all) {
                self.note_masked(&serial.masks);
                return Ok(Some(serial));
            }
        }
    }

    /// Runs an order twice, notes both outcomes, and learns what the order doesn't determine. Returns false if it takes
    /// different ways.
    fn twice(
        &mut self,
        transactions: &[Transaction],
        order: &[usize],
        serial: &mut Serial,
    ) -> Result<bool, TryError> {
        let once = self.serially(transactions, order, 0, &serial.masks)?;
        sleep(Duration::from_millis(1));
        let again = self.serially(transactions, order, AHEAD, &serial.masks)?;
        let same = serial.masks.learn(&once, &again);
        if same {
            serial.outcomes.insert(order.to_vec(), vec![once, again]);
        }
        Ok(same)
    }

    fn note_masked(&mut self, masks: &Masks) {
        for (table, column) in &masks.columns {
            let table = &self.alone.sessions.tables.all[*table];
            let Some(column) = table.columns.get(*column) else { continue };
            self.found.masked.insert(format!("{}.{column}", table.name));
        }
    }

    /// The transactions that follow, to show what masked values are good for: each script once.
    fn later(&self, masks: &Masks) -> Vec<Transaction> {
        if !masks.matter_later(&self.alone.sessions.tables.all) {
            return Vec::new();
        }
        self.alone.all().into_iter().map(|program| self.alone.first(program)).collect()
    }

    /// Runs transactions in an order. With sequences moved on, it is in the sessions of another level, so
    /// that what depends on the session differs, too.
    fn serially(
        &mut self,
        transactions: &[Transaction],
        order: &[usize],
        ahead: i64,
        masks: &Masks,
    ) -> Result<Outcome, TryError> {
        let mut allocation = 0;
        if ahead > 0 {
            self.alone.sessions.put_back(&Delta::default(), ahead)?;
            allocation = self.trying.allocations.len() - 1;
        }
        let later = self.later(masks);
        let executed =
            self.alone.sessions.run(transactions, &Schedule::Serial(order.to_vec()), allocation, &later)?;
        self.alone.note_endings(transactions, &executed);
        self.alone.undo(&executed)?;
        self.alone.note_violation(&executed.outcome);
        Ok(executed.outcome)
    }

    /// Tries transactions at one level, split after each of its steps. Returns whether an outcome wasn't that of
    /// an order, which is all that is looked for once the level is known to be unsafe.
    fn splits(
        &mut self,
        state: &State,
        transactions: &[Transaction],
        number: usize,
        serial: &mut Serial,
    ) -> Result<bool, TryError> {
        let mut wrong = false;
        for after in 1..=MOST_STEPS {
            if (self.trying.stopped)() {
                return Err(TryError::Stopped);
            }
            let executed = self.split(transactions, after, number, &serial.masks)?;
            if executed.over || self.began.elapsed() > longest(self.trying.budget) {
                break;
            }
            let tried = &mut self.found.levels[number];
            tried.trials += 1;
            if tried.failure.is_none() {
                tried.failure = executed.outcome.endings.iter().find_map(Ending::failure).map(str::to_owned);
            }
            if executed.inconclusive {
                tried.inconclusive += 1;
                continue;
            }
            let failed = executed.outcome.endings.iter().any(|ending| *ending != Ending::Done);
            tried.with_failures += u64::from(failed);
            let judgement = self.judge(transactions, &executed, serial)?;
            if judgement == Judgement::Serial {
                continue;
            }
            wrong = true;
            if self.found.levels[number].damage.is_some() {
                break;
            }
            if let Some(how) = executed.by_design
                && self.is_asked_for(transactions, after, number, &executed, serial)?
            {
                let allocation = self.found.levels[number].allocation.clone();
                self.found.note_by_design(ByDesign { allocation, how, scripts: self.names(transactions) });
                continue;
            }
            let known = &self.found.levels[number];
            // Answers to single statements outside of a block are of different moments, as asked for.
            let asked =
                judgement == Judgement::WrongAnswer && (executed.between || known.wrong_answer.is_some());
            if asked {
                continue;
            }
            let Some(judgement) = self.confirmed(transactions, after, number, serial)? else { continue };
            let witness = self.witness(state, transactions, judgement, &executed, serial);
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
        transactions: &[Transaction],
        after: usize,
        allocation: usize,
        masks: &Masks,
    ) -> Result<ExecutedSchedule, TryError> {
        let later = self.later(masks);
        let executed = self.alone.sessions.run(transactions, &Schedule::Split(after), allocation, &later)?;
        self.alone.note_endings(transactions, &executed);
        self.alone.undo(&executed)?;
        Ok(executed)
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
        transactions: &[Transaction],
        executed: &ExecutedSchedule,
        serial: &mut Serial,
    ) -> Result<Judgement, TryError> {
        let outcome = &executed.outcome;
        let mut worst = Judgement::Damage;
        for order in Self::candidates(outcome) {
            self.run_order(transactions, &order, serial)?;
            let ran = &serial.outcomes[&order];
            let judgement = serial.masks.judge(outcome, ran.iter().map(|ran| (order.as_slice(), ran)));
            if judgement == Judgement::Serial {
                return self.judge_shown(transactions, outcome, &order, serial);
            }
            worst = worst.min(judgement);
        }
        Ok(worst)
    }

    /// Runs an order, if that hasn't been done.
    fn run_order(
        &mut self,
        transactions: &[Transaction],
        order: &[usize],
        serial: &mut Serial,
    ) -> Result<(), TryError> {
        if !serial.outcomes.contains_key(order) {
            let ran = self.serially(transactions, order, 0, &serial.masks)?;
            serial.outcomes.insert(order.to_vec(), vec![ran]);
        }
        Ok(())
    }

    /// Judges what the clients of transactions that wrote were shown, of an outcome that this order gives
    /// otherwise: it may be older than what was written, but some order has to give all of it.
    fn judge_shown(
        &mut self,
        transactions: &[Transaction],
        outcome: &Outcome,
        order: &[usize],
        serial: &mut Serial,
    ) -> Result<Judgement, TryError> {
        for number in order.iter().filter(|number| outcome.views[**number].wrote) {
            let mut fits = false;
            for other in Self::candidates(outcome).into_iter().filter(|other| other.contains(number)) {
                let view = &outcome.views[*number];
                if view.shown.is_empty() {
                    fits = true;
                    break;
                }
                self.run_order(transactions, &other, serial)?;
                let same = |ran: &Outcome| serial.masks.shows_the_same(*number, view, &ran.views[*number]);
                if serial.outcomes[&other].iter().any(same) {
                    fits = true;
                    break;
                }
            }
            if !fits {
                return Ok(Judgement::WrongAnswer);
            }
        }
        Ok(Judgement::Serial)
    }

    /// True if an outcome that no order gives is one that was asked for: transactions that run after the
    /// first one, while another session holds its locks, lead to it, or it can't be seen whether they do.
    fn is_asked_for(
        &mut self,
        transactions: &[Transaction],
        after: usize,
        allocation: usize,
        executed: &ExecutedSchedule,
        serial: &Serial,
    ) -> Result<bool, TryError> {
        if self.alone.sessions.asks_during_a_wait(&executed.steps) {
            return Ok(true);
        }
        let later = self.later(&serial.masks);
        for order in Self::candidates(&executed.outcome) {
            let behind =
                self.alone.sessions.run_behind_locks(transactions, &order, after, allocation, &later)?;
            let Some(behind) = behind else { return Ok(true) };
            self.alone.undo(&behind)?;
            let judgement = serial.masks.judge(&executed.outcome, [(order.as_slice(), &behind.outcome)]);
            if judgement == Judgement::Serial {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs everything once more before anything is called wrong: what isn't determined is learned
    /// anew, and the same interleaving has to be wrong again. Returns the milder of the judgements.
    fn confirmed(
        &mut self,
        transactions: &[Transaction],
        after: usize,
        number: usize,
        serial: &mut Serial,
    ) -> Result<Option<Judgement>, TryError> {
        let mut worst = Judgement::Damage;
        for ahead in [3 * AHEAD, 7 * AHEAD] {
            if self.alone.sessions.tables.asks_for_time || self.programs.ask_for_time() {
                sleep(NEXT_SECOND);
            }
            let followed = serial.masks.matter_later(&self.alone.sessions.tables.all);
            let known: Vec<Vec<usize>> = serial.outcomes.keys().cloned().collect();
            for order in known {
                let ran = self.serially(transactions, &order, ahead, &serial.masks)?;
                let before = &serial.outcomes[&order][0];
                if !serial.masks.learn(before, &ran) {
                    self.found.undetermined += 1;
                    return Ok(None);
                }
                serial.outcomes.entry(order).or_default().push(ran);
            }
            let follows = serial.masks.matter_later(&self.alone.sessions.tables.all);
            if followed != follows && !self.follow(transactions, serial)? {
                self.found.undetermined += 1;
                return Ok(None);
            }
            let executed = self.split(transactions, after, number, &serial.masks)?;
            if executed.over || executed.inconclusive {
                return Ok(None);
            }
            let judgement = self.judge(transactions, &executed, serial)?;
            if judgement == Judgement::Serial {
                return Ok(None);
            }
            worst = worst.min(judgement);
        }
        self.note_masked(&serial.masks);
        Ok(Some(worst))
    }

    /// Runs the known orders twice, with the transactions that follow since values are masked that may matter later.
    /// Returns false if an order takes different ways.
    fn follow(&mut self, transactions: &[Transaction], serial: &mut Serial) -> Result<bool, TryError> {
        let known: Vec<Vec<usize>> = serial.outcomes.keys().cloned().collect();
        for order in known {
            if !self.twice(transactions, &order, serial)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn witness(
        &self,
        state: &State,
        transactions: &[Transaction],
        judgement: Judgement,
        executed: &ExecutedSchedule,
        serial: &Serial,
    ) -> Witness {
        let tables = &self.alone.sessions.tables.all;
        let mut orders = Vec::new();
        for order in Self::candidates(&executed.outcome) {
            if let Some(outcome) = serial.outcomes.get(&order).and_then(|outcomes| outcomes.first()) {
                orders.push(Order::new(&order, outcome, tables));
            }
        }
        let numbers: Vec<usize> = (0..transactions.len()).collect();
        let serially = serial.outcomes.values().flatten();
        let broken = serial.masks.broken(&executed.outcome, serially);
        Witness {
            damage: judgement == Judgement::Damage,
            scripts: transactions
                .iter()
                .map(|transaction| self.programs.name(transaction.program).to_owned())
                .collect(),
            before: state.before.clone(),
            prefix_sql: self.sent.clone(),
            no_level_prevents: executed.between,
            steps: executed.steps.clone(),
            outcome: Order::new(&numbers, &executed.outcome, tables),
            broken: broken.iter().map(|number| self.trying.conditions[*number].name.clone()).collect(),
            orders,
        }
    }
}
