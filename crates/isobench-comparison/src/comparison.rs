//! A comparison: rounds of shuffled cells, until all are measured and the answer is settled, the
//! ratios are known to the requested precision, or the time limit is reached. In a round, cells that
//! are compared with each other take turns if they can; others are measured one after the other. After
//! the first round, interleavings of the scripts are tried.
//!
//! Not here: measuring cells (`block.rs`), the search for the highest rates
//! (`comparison/sweep.rs`), the display, and the place where the result is saved; the caller passes
//! the last two in.

mod fair;
mod listener;
mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use isobench_database::current_setting;
use isobench_isolation::{Allocation, EffectiveLevel, Level};
use isobench_observer::Observer;
use isobench_plan::Share;
use isobench_result::factor::FAULT;
use isobench_result::{Cell, CellLevel, Document, Observation, Round, resolution, summarise, unsettled};
use isobench_runner::{Control, Urgency};

use crate::block::{Block, BlockStep, Played, Turns};
use crate::catching_up;
use crate::cell::{CellMeasurer, MeasuredCell};
use crate::design::{CellPlan, Design, count};
use crate::environment::{client, now};
use crate::failure::{Failure, Outcome};
use crate::interleavings;
use crate::judgement::Judging;
use crate::machines::Machines;
use crate::measurement::refusal;
use crate::modes;
use crate::onlooker::{Phase, SoFar};
use crate::server_side::observer;
use crate::serving::serve;
use crate::sessions;
use crate::target::Target;
use fair::Capacity;

pub use self::listener::{Followers, Listener};

/// For each cell, the report on its last history.
pub type Judgements = Vec<Option<String>>;

/// Saves the result as measured so far, without conclusions. A round that was saved doesn't change.
pub type Save<'a> = &'a dyn Fn(&Document) -> Outcome;

/// Everything that a comparison needs besides its design.
pub struct Surroundings<'a> {
    /// The servers, in the order of the design's; at least one.
    pub targets: &'a [Target],
    /// The check of histories; `None` if none is recorded.
    pub judging: Option<&'a Judging>,
    /// The machines that measure together, of which this is the first, if there are several.
    pub machines: Option<&'a Machines>,
    /// Requests to stop.
    pub control: &'a Control,
    /// Receives warnings before the first cell, and text that scripts print with `debug()`.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Saves the result after every cell.
    pub save: Save<'a>,
    /// The command line of the comparison, for the result.
    pub command: Vec<String>,
}

/// Measures everything. Ends early, with a partial result, on request or if the server is lost.
///
/// # Errors
/// Nothing could be measured.
pub fn compare(
    design: &Design,
    around: Surroundings<'_>,
    listener: &mut dyn Listener,
) -> Outcome<(Document, Judgements)> {
    let Surroundings { targets, judging, machines, control, say, save, command } = around;
    let describe = |target: &Target| target.describe(say);
    let mut servers = targets.iter().map(describe).collect::<Outcome<Vec<_>>>()?.into_iter();
    let cells = level_check(design, targets, say)?;
    let observers: Vec<Observer> = if design.plan.watches_server() && !design.has_faults() {
        targets.iter().map(observer).collect()
    } else {
        Vec::new()
    };
    let target = &targets[0];
    let plan = design.document_plan(&target.server_settings);
    let mut document = Document::new(servers.next().unwrap_or_default(), client(target), plan);
    document.other_servers = servers.collect();
    document.workload = design.document_workload();
    document.started_at = Some(now());
    document.command = command;
    document.warnings = design.warnings();
    document.cells = cells;
    for warning in &document.warnings {
        say(&format!("warning: {warning}"));
    }
    listener.start(design);
    let measurer = CellMeasurer::new(design, targets, judging, &observers, machines, say, control);
    let mut comparison = Comparison::new(measurer, document, listener, save);
    let prepared = comparison
        .try_scripts()
        .and_then(|()| comparison.find_groups())
        .and_then(|()| if design.tries_first() { comparison.try_interleavings().map(drop) } else { Ok(()) });
    if let Err(failure) = prepared.and_then(|()| comparison.rounds()) {
        comparison.listener.close();
        return Err(failure);
    }
    comparison.sweep();
    Ok(comparison.end())
}

/// Takes part in a comparison that rank 0 makes, until it is over. Returns the number of runs.
///
/// # Errors
/// A machine is gone, rank 0 has ended early, or the user wants to stop.
pub fn take_part(
    design: &Design,
    targets: &[Target],
    machines: &Machines,
    control: &Control,
    say: &(dyn Fn(&str) + Sync),
) -> Outcome<u64> {
    let measurer = CellMeasurer::new(design, targets, None, &[], Some(machines), say, control);
    serve(machines, control, say, &mut |open| measurer.enter_for(open))
}

/// A comparison under way.
struct Comparison<'a> {
    measurer: CellMeasurer<'a>,
    save: Save<'a>,
    cells: Vec<CellPlan>,
    /// The cells that take turns, together; those in no group are measured alone.
    groups: Vec<Vec<usize>>,
    /// For each cell, the reason why it can't be measured; `None` if it can.
    unusable: Vec<Option<String>>,
    document: Document,
    judgements: Judgements,
    listener: &'a mut dyn Listener,
    began: Instant,
    /// Duration of the longest round.
    longest: Duration,
    /// The end of the planned rounds.
    planned: Option<Instant>,
    /// The time for trying interleavings, until that is done; `None`: none are tried.
    trying: Option<Duration>,
    /// A broken promise has ended the comparison, as the plan wants.
    broken: bool,
    /// The user has been warned that the result can't be saved.
    unsaved: bool,
}

/// The decision to continue or end a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    NoFurther,
}

impl<'a> Comparison<'a> {
    /// Starts a comparison, whose document has the plan's cells, without rounds.
    fn new(
        measurer: CellMeasurer<'a>,
        document: Document,
        listener: &'a mut dyn Listener,
        save: Save<'a>,
    ) -> Comparison<'a> {
        let cells = measurer.design.cells();
        let tried = cells.iter().any(|cell| measurer.tries(cell.work));
        let trying = measurer.design.trying.filter(|_| tried);
        listener.set_trying(trying.unwrap_or_default());
        Comparison {
            trying,
            judgements: vec![None; cells.len()],
            unusable: vec![None; cells.len()],
            began: Instant::now(),
            longest: Duration::ZERO,
            planned: None,
            broken: false,
            unsaved: false,
            measurer,
            save,
            groups: Vec::new(),
            cells,
            document,
            listener,
        }
    }

    /// Tries each distinct script of the cells once. A cell whose script fails is skipped; the
    /// others are measured.
    ///
    /// # Errors
    /// The server is gone, or no cell is left.
    fn try_scripts(&mut self) -> Outcome {
        let design = self.measurer.design;
        let alike = |cell: &CellPlan| {
            let work = &design.works[cell.work];
            let mut varied = design.varied(cell);
            // A larger scale doesn't change whether a script works, nor does what happens later.
            varied.remove("scale");
            varied.remove(FAULT);
            (cell.server, cell.session, work.sources.name(), work.strategy.clone(), varied)
        };
        let mut tried = Vec::new();
        for index in 0..self.cells.len() {
            let cell = self.cells[index];
            let problem = match tried.iter().position(|one| *one == alike(&cell)) {
                Some(first) => self.unusable[first].clone(),
                None if self.interrupted() => return Ok(()),
                None => self.measurer.try_scripts(&cell)?,
            };
            tried.push(alike(&cell));
            self.unusable[index] = problem;
        }
        // If no cell is left, one reason is enough.
        self.require_cells()?;
        (0..self.cells.len()).for_each(|index| self.report_unusable(index));
        Ok(())
    }

    /// Tries the scripts of each work against each other, at each level that is compared, unless that
    /// was done.
    ///
    /// # Errors
    /// The tables can't be made, and nothing was measured.
    fn try_interleavings(&mut self) -> Outcome<Goes> {
        let design = self.measurer.design;
        let Some(budget) = self.trying else { return Ok(Goes::On) };
        let place = |cell: &CellPlan| (cell.server, cell.work);
        let places: BTreeSet<(usize, usize)> = self.cells.iter().map(place).collect();
        let share = budget / u32::try_from(places.len()).unwrap_or(1).max(1);
        self.listener.trying();
        for (server, work) in places {
            if self.interrupted() {
                return Ok(Goes::NoFurther);
            }
            let numbers: Vec<usize> = (0..self.cells.len())
                .filter(|number| place(&self.cells[*number]) == (server, work))
                .collect();
            let usable = numbers.iter().filter(|number| self.unusable[**number].is_none());
            let mut allocations: Vec<Allocation> =
                usable.map(|number| design.allocation(&self.cells[*number])).collect();
            allocations.sort_unstable();
            allocations.dedup();
            if allocations.is_empty() {
                continue;
            }
            let listener = &mut self.listener;
            let mut say = |text: &str| listener.say(text);
            let found = match self.measurer.try_interleavings(server, work, &allocations, share, &mut say) {
                Ok(found) => found,
                Err(failure) if !self.has_measured() => return Err(failure),
                // What was measured stays.
                Err(failure) if self.measurer.answers(&self.cells[numbers[0]]) => {
                    Some(Err(failure.to_string()))
                }
                Err(failure) => {
                    if !self.interrupted() {
                        self.document.incomplete_reason = Some(failure.to_string());
                    }
                    return Ok(Goes::NoFurther);
                }
            };
            let Some(found) = found else { continue };
            for number in numbers {
                let allocation = design.allocation(&self.cells[number]);
                self.document.cells[number].tried = match &found {
                    Ok(found) => {
                        let of_level = found.levels.iter().find(|one| one.allocation == allocation);
                        of_level.map(|one| interleavings::tried(found, one))
                    }
                    Err(reason) => Some(interleavings::untried(reason.clone())),
                };
            }
        }
        if self.interrupted() {
            return Ok(Goes::NoFurther);
        }
        self.trying = None;
        self.listener.set_trying(Duration::ZERO);
        if self.has_measured() {
            self.save_result();
        }
        Ok(Goes::On)
    }

    /// Says of cells that the comparison ended before their scripts were tried against each other, if it
    /// did.
    fn note_untried(&mut self) {
        if self.trying.is_none() {
            return;
        }
        for (index, cell) in self.cells.iter().enumerate() {
            let due = self.unusable[index].is_none() && self.measurer.tries(cell.work);
            let tried = &mut self.document.cells[index].tried;
            if due && tried.is_none() {
                *tried = Some(interleavings::untried("the comparison ended before".to_owned()));
            }
        }
    }

    /// Notes what was seen of a cell's statements, unless that is known.
    fn note_observation(&mut self, observation: Option<Observation>) {
        let known = &mut self.document.observations;
        known.extend(observation.filter(|observation| !known.contains(observation)));
    }

    /// Skips a cell from now on, and reports why.
    ///
    /// # Errors
    /// No cell is left, and nothing was measured.
    fn leave_out(&mut self, index: usize, problem: String) -> Outcome {
        self.unusable[index] = Some(problem);
        self.require_cells()?;
        self.report_unusable(index);
        Ok(())
    }

    /// # Errors
    /// No cell can be measured, and none was.
    fn require_cells(&self) -> Outcome {
        if self.has_measured() || self.unusable.iter().any(Option::is_none) {
            return Ok(());
        }
        Err(Failure::setup(self.why_unusable(0).unwrap_or_default()))
    }

    /// Returns whether there is a round of any cell.
    fn has_measured(&self) -> bool {
        self.document.cells.iter().any(|cell| !cell.rounds.is_empty())
    }

    /// Returns the reason why a cell can't be measured, as a sentence; `None` if it can.
    fn why_unusable(&self, index: usize) -> Option<String> {
        let problem = self.unusable[index].as_ref()?;
        Some(format!("{} can't be measured: {problem}", self.cells[index].name(self.measurer.design)))
    }

    /// Reports that a cell can't be measured, if it can't.
    fn report_unusable(&mut self, index: usize) {
        if let Some(reason) = self.why_unusable(index) {
            self.warn(&reason);
            self.document.incomplete_reason.get_or_insert(reason);
        }
    }

    /// Measures every cell in every round, and tries interleavings after the first one unless that was
    /// done before ([`Design::tries_first`]). Ends early, with a partial result, on request or if the
    /// server is lost.
    ///
    /// # Errors
    /// Nothing at all could be measured.
    fn rounds(&mut self) -> Outcome {
        let mut number = 1;
        while self.another(number) {
            let began = Instant::now();
            if self.round(number)? == Goes::NoFurther {
                break;
            }
            self.longest = self.longest.max(began.elapsed());
            if self.try_interleavings()? == Goes::NoFurther {
                break;
            }
            number += 1;
        }
        Ok(())
    }

    /// Returns whether a round of this number is due.
    fn another(&mut self, number: u32) -> bool {
        let design = self.measurer.design;
        let in_time = design.time_limit.is_none_or(|limit| self.began.elapsed() + self.longest <= limit);
        if number <= design.plan.rounds() {
            if number > 1 && !in_time {
                self.document.incomplete_reason = Some(format!(
                    "the time limit was reached after {} of {} rounds",
                    number - 1,
                    design.plan.rounds()
                ));
            }
            return number == 1 || in_time;
        }
        let Some(Share(wanted)) = design.plan.resolve else { return in_time && self.settles(number) };
        let known = resolution(&self.document, wanted);
        self.document.resolution = Some(known);
        let enough = known.more_rounds == Some(0);
        if !enough && in_time {
            self.listener.set_rounds(number.saturating_add(known.more_rounds.unwrap_or(1).max(1) - 1));
        }
        !enough && in_time
    }

    /// Returns whether a round of this number is due because those before it don't settle which level to
    /// use. Says so the first time.
    fn settles(&mut self, number: u32) -> bool {
        let Some(settling) = self.measurer.design.settling else { return false };
        let planned = *self.planned.get_or_insert_with(Instant::now);
        let complete = !self.broken && self.document.incomplete_reason.is_none();
        let allowed = settling.allows(planned.elapsed(), self.began.elapsed(), self.longest);
        if !complete || !allowed || !unsettled(&self.document) {
            return false;
        }
        if number == self.measurer.design.plan.rounds().saturating_add(1) {
            self.listener.say(&format!(
                "note: these rounds don't settle which level costs less, so more follow, for at most {} s (--settle 0: \
                 none)",
                settling.extra.as_secs_f64()
            ));
        }
        self.listener.set_rounds(number);
        true
    }

    /// Finds the cells that take turns, and says why others don't.
    ///
    /// # Errors
    /// The server refuses to make room for their tables, or is gone.
    fn find_groups(&mut self) -> Outcome {
        let design = self.measurer.design;
        let usable = |group: &Vec<usize>| {
            group.iter().copied().filter(|index| self.unusable[*index].is_none()).collect::<Vec<_>>()
        };
        let groups: Vec<Vec<usize>> = fair::alike(design).iter().map(usable).collect();
        let several = groups.into_iter().filter(|group| group.len() > 1).collect::<Vec<_>>();
        // How long counted transactions take isn't known.
        if design.slice.is_zero() || design.time().is_none() || several.is_empty() || self.interrupted() {
            return Ok(());
        }
        let capacity: Vec<Capacity> = std::iter::once(&self.document.server)
            .chain(&self.document.other_servers)
            .map(|server| Capacity::of(&server.settings))
            .collect();
        let general = fair::obstacle(design, self.measurer.targets);
        let mut reasons: Vec<String> = Vec::new();
        for group in several {
            let cells: Vec<CellPlan> = group.iter().map(|index| self.cells[*index]).collect();
            let sizes: Vec<u64> = cells.iter().map(|cell| self.measurer.size(cell)).collect();
            let why = general.clone().or_else(|| fair::crowded(&cells, &sizes, &capacity));
            let why = match why {
                None if self.measurer.make_rooms_for(&cells)? => None,
                None => Some("there is no place for the tables of more than one".to_owned()),
                why => why,
            };
            match why {
                None => self.groups.push(group),
                Some(why) if reasons.contains(&why) => {}
                Some(why) => reasons.push(why),
            }
        }
        if !self.groups.is_empty() && !self.measurer.targets.iter().all(Target::is_embedded) {
            self.listener.say(
                "cells take turns, so each has a schema of its own: isobench_1 and so on, but for names that are \
                 taken; made for this run and removed like isobench",
            );
        }
        for why in reasons {
            self.warn(&format!(
                "cells that could take turns are measured one after the other, each in one piece: {why}"
            ));
        }
        Ok(())
    }

    /// The cells that a round measures together, in shuffled order.
    fn blocks(&self, number: u32) -> Vec<Vec<usize>> {
        let in_turns: Vec<usize> = self.groups.iter().flatten().copied().collect();
        let alone = (0..self.cells.len()).filter(|index| !in_turns.contains(index));
        let mut blocks: Vec<Vec<usize>> = alone.map(|index| vec![index]).chain(self.groups.clone()).collect();
        blocks.sort();
        let order = self.measurer.design.shuffled(number, blocks.len());
        order.into_iter().map(|block| blocks[block].clone()).collect()
    }

    fn round(&mut self, number: u32) -> Outcome<Goes> {
        let mut place = 0;
        for block in self.blocks(number) {
            let usable: Vec<usize> =
                block.iter().copied().filter(|index| self.unusable[*index].is_none()).collect();
            if self.interrupted() {
                return Ok(Goes::NoFurther);
            }
            let in_turns = block.len() > 1;
            if !usable.is_empty() && self.measure_block(&usable, in_turns, place, number)? == Goes::NoFurther
            {
                return Ok(Goes::NoFurther);
            }
            place += block.len();
        }
        Ok(Goes::On)
    }

    /// Takes what a cell's measurement gave.
    fn take(
        &mut self,
        index: usize,
        place: usize,
        number: u32,
        measured: Outcome<MeasuredCell>,
    ) -> Outcome<Goes> {
        let cell = self.cells[index];
        match measured {
            Ok(mut measured) => {
                self.judgements[index] = measured.judgement.take();
                let (tps, conflicts) = (measured.round.tps, measured.round.ledger().conflict_ratio());
                let lost = measured.lost;
                self.note_observation(measured.observation.take());
                let reason = self.add(index, place, measured);
                self.listener.finished(self.measurer.design, &cell, number, tps, conflicts);
                if let Some(reason) = reason.filter(|_| self.measurer.control.urgency() == Urgency::None) {
                    if lost || !self.measurer.answers(&cell) {
                        self.document.incomplete_reason = Some(reason);
                        return Ok(Goes::NoFurther);
                    }
                    self.leave_out(index, reason)?;
                }
            }
            Err(failure) if self.measurer.answers(&cell) && !self.has_lost_machine() => {
                self.leave_out(index, failure.to_string())?;
                return Ok(Goes::On);
            }
            // Without a single result there is only the error to report.
            Err(failure) if !self.has_measured() => {
                return Err(with_log(failure, self.measurer.target(&cell)));
            }
            Err(failure) => {
                if !self.interrupted() || self.has_lost_machine() {
                    self.document.incomplete_reason = Some(failure.to_string());
                }
                return Ok(Goes::NoFurther);
            }
        }
        self.save_result();
        Ok(Goes::On)
    }

    /// Returns whether machines can't measure together any longer.
    fn has_lost_machine(&self) -> bool {
        self.measurer.machines.is_some_and(|machines| machines.lost().is_some())
    }

    /// Measures cells, in turns or one in one piece, and takes what that gave.
    fn measure_block(&mut self, group: &[usize], in_turns: bool, place: usize, number: u32) -> Outcome<Goes> {
        let design = self.measurer.design;
        let cells: Vec<CellPlan> = group.iter().map(|index| self.cells[*index]).collect();
        let mut draws = 0;
        let orders = fair::orders(cells.len(), |places| {
            draws += 1;
            design.shuffled(number.wrapping_mul(2).wrapping_add(draws), places)
        });
        let turns = Turns { time: design.time().unwrap_or_default(), slice: design.slice, orders: &orders };
        let Played { measured, in_one_piece } = self.play(&cells, number, Some(turns).filter(|_| in_turns));
        if let Some(why) = in_one_piece {
            self.warn(&why);
        }
        for (index, measured) in group.iter().zip(&measured) {
            if let Some(Ok(measured)) = measured {
                self.note_broken(*index, number, measured);
            }
        }
        for (cell, (index, measured)) in group.iter().zip(measured).enumerate() {
            let Some(measured) = measured else { continue };
            let turn = orders[0].iter().position(|first| *first == cell).unwrap_or_default();
            if self.take(*index, place + turn, number, measured)? == Goes::NoFurther {
                return Ok(Goes::NoFurther);
            }
        }
        Ok(if self.interrupted() { Goes::NoFurther } else { Goes::On })
    }

    /// Measures a cell in one piece.
    fn measure(&mut self, cell: &CellPlan, number: u32) -> Outcome<MeasuredCell> {
        let Played { measured, .. } = self.play(&[*cell], number, None);
        let nothing = || Err(Failure::setup("nothing was measured"));
        measured.into_iter().flatten().next().unwrap_or_else(nothing)
    }

    /// Measures cells and shows their progress.
    fn play(&mut self, cells: &[CellPlan], number: u32, turns: Option<Turns<'_>>) -> Played {
        let (design, observers) = (self.measurer.design, self.measurer.observers);
        let (listener, mut all) = (&mut *self.listener, vec![SoFar::default(); cells.len()]);
        let in_turns = turns.is_some();
        let block = Block { cells, number, latencies: listener.shows_latencies(), turns };
        self.measurer.measure_block(&block, &mut |step| match step {
            BlockStep::Preparing(place) => listener.preparing(design, &cells[place], number),
            BlockStep::Prepared(ready) => listener.prepared(ready.took, ready.again),
            BlockStep::Working(place, so_far) if in_turns && so_far.phase == Phase::WarmUp => {
                listener.running(design, &cells[place], number, so_far, &[]);
            }
            BlockStep::Working(place, so_far) => {
                all[place] = *so_far;
                let observer = observers.get(cells[place].server).filter(|_| listener.shows_waits());
                let waits = observer.map(crate::server_side::waits_now).unwrap_or_default();
                if in_turns {
                    listener.in_turns(design, cells, number, &all, &waits);
                } else {
                    listener.running(design, &cells[place], number, so_far, &waits);
                }
            }
        })
    }

    /// Notes that a broken promise has ended the comparison.
    fn note_broken(&mut self, index: usize, number: u32, measured: &MeasuredCell) {
        let Some(what) = &measured.broken else { return };
        self.broken = true;
        let name = self.cells[index].name(self.measurer.design);
        self.warn(&format!("--stop-on-broken ended the comparison in round {number}, at {name}: {what}"));
    }

    /// Returns whether nothing more is to be measured, and records it if that is because the user has
    /// asked to stop.
    fn interrupted(&mut self) -> bool {
        let interrupted = self.measurer.control.urgency() > Urgency::None;
        if interrupted && !self.broken {
            self.document.incomplete_reason.get_or_insert_with(|| "interrupted".to_owned());
        }
        interrupted
    }

    /// Adds a round to its cell, shows it, and returns the reason to end the comparison, if there
    /// is one.
    fn add(&mut self, index: usize, place: usize, measured: MeasuredCell) -> Option<String> {
        let MeasuredCell { mut round, effective, notes, .. } = measured;
        for note in notes {
            self.warn(&note);
        }
        self.warn_of_withheld(index, &round);
        round.order = Some(count(place + 1));
        let reason = (!round.complete).then(|| {
            round.errors.first().cloned().unwrap_or_else(|| "clients ended before their time".to_owned())
        });
        self.add_relations(index);
        let entry = &mut self.document.cells[index];
        let known = (!entry.rounds.is_empty()).then(|| entry.level.effective.clone());
        entry.level.effective = sessions::agree(&known.into_iter().chain([effective]).collect::<Vec<_>>());
        entry.rounds.push(round);
        reason
    }

    /// Adds the sizes of the tables of a cell's workload, which are there after its first
    /// measurement.
    fn add_relations(&mut self, index: usize) {
        let workload = &self.document.cells[index].workload;
        let measured = |cell: &Cell| cell.workload == *workload && !cell.rounds.is_empty();
        if self.document.cells.iter().any(measured) {
            return;
        }
        for relation in self.measurer.relations(&self.cells[index]) {
            let known = &mut self.document.server.relations;
            if known.iter().all(|one| one.name != relation.name) {
                known.push(relation);
            }
        }
    }

    /// Reports once that a cell's verdict is withheld.
    fn warn_of_withheld(&self, index: usize, round: &Round) {
        let withheld = |round: &Round| round.verdict.as_ref()?.withheld.first().cloned();
        let known = self.document.cells[index].rounds.iter().any(|round| withheld(round).is_some());
        if let Some(withheld) = withheld(round).filter(|_| !known) {
            let name = self.cells[index].name(self.measurer.design);
            self.listener.say(&format!("warning: {name}: the verdict is withheld: {}", withheld.reason));
        }
    }

    /// Reports a note that concerns more than one round, once.
    fn warn(&mut self, note: &str) {
        if !self.document.warnings.iter().any(|known| known == note) {
            self.listener.say(&format!("note: {note}"));
            self.document.warnings.push(note.to_owned());
        }
    }

    /// Saves the result after every cell, so that a later failure can't lose it.
    fn save_result(&mut self) {
        if let Err(failure) = (self.save)(&self.document)
            && !std::mem::replace(&mut self.unsaved, true)
        {
            self.listener.say(&format!("warning: {failure}"));
        }
    }

    /// Returns the result and the reports on the histories.
    fn end(mut self) -> (Document, Judgements) {
        self.interrupted();
        self.note_untried();
        let mut cells = self.cells.iter().zip(&self.document.cells);
        if let Some((cell, _)) = cells.find(|(_, entry)| nothing_finished(entry)) {
            let name = cell.name(self.measurer.design);
            self.document.incomplete_reason.get_or_insert_with(|| {
                format!("no transaction was finished in time at {name}; give it more (--time)")
            });
        }
        self.document.complete = self.document.incomplete_reason.is_none();
        self.document.finished_at = Some(now());
        summarise(&mut self.document);
        // Saved before the clean-up of the server, which may fail.
        self.save_result();
        self.listener.close();
        (self.document, self.judgements)
    }
}

/// Returns whether the end of the measured time cut off every attempt of a cell, so that it has no
/// result.
fn nothing_finished(cell: &Cell) -> bool {
    let attempts = cell.rounds.iter().map(|round| round.attempts);
    let (started, cut_off) =
        attempts.fold((0, 0), |sum, attempts| (sum.0 + attempts.started, sum.1 + attempts.cut_off));
    started > 0 && started == cut_off
}

/// Asks the server for every level once, before anything is measured. Returns the plan's cells,
/// without rounds; `say` receives warnings.
///
/// # Errors
/// The server is gone, or a level is refused.
fn level_check(design: &Design, targets: &[Target], say: &(dyn Fn(&str) + Sync)) -> Outcome<Vec<Cell>> {
    if design.plan.waits_for_lsn() {
        targets.iter().try_for_each(|target| catching_up::require(&target.database))?;
    }
    let open = |target: &Target| target.open().map_err(Failure::setup);
    let mut connections = targets.iter().map(open).collect::<Outcome<Vec<_>>>()?;
    let mut warned = BTreeSet::new();
    let mut check = |server: usize, asked: Level, by: &str, effective: &EffectiveLevel| {
        if !effective.differs_from(asked) {
            return Ok(());
        }
        if design.plan.is_strict() {
            return Err(Failure::setup(refusal(asked, effective)));
        }
        let warning = format!("warning: {asked} was asked for{by}, but the server runs {effective}");
        if warned.insert((server, warning.clone())) {
            say(&warning);
        }
        Ok(())
    };
    let mut entries = Vec::new();
    for cell in &design.cells() {
        let product = targets[cell.server].database.product;
        let connection = &mut connections[cell.server];
        product.apply_level(connection, cell.level).map_err(Failure::setup)?;
        let effective = product.read_effective(connection).map_err(Failure::setup)?;
        check(cell.server, cell.level, "", &effective)?;
        let mut settings = BTreeMap::new();
        for name in design.servers[cell.server].settings.keys() {
            let shown = current_setting(connection, name).map_err(Failure::setup)?;
            settings.insert(name.clone(), shown);
        }
        settings.extend(design.altered[cell.session].clone());
        let of_sessions = &design.sessions[cell.session];
        settings.extend(of_sessions.iter().map(|setting| (setting.name.clone(), setting.shown.clone())));
        let level = match design.mixed(cell) {
            None => CellLevel::new(Some(cell.level), effective),
            Some(allocation) => {
                let mix = design.works[cell.work].sources.mix();
                let scripts = modes::read_back(connection, product, mix, allocation)?;
                for script in &scripts {
                    let by = format!(" by {}", script.script);
                    check(cell.server, script.requested, &by, &script.effective)?;
                }
                CellLevel::mixed(allocation.clone(), scripts)
            }
        };
        entries.push(design.entry(cell, level, settings));
    }
    for connection in connections {
        connection.close();
    }
    Ok(entries)
}

fn with_log(failure: Failure, target: &Target) -> Failure {
    match (failure, target.log_tail()) {
        (Failure::Setup(text), Some(log)) if !log.is_empty() && text.contains("connection") => {
            Failure::Setup(format!("{text}\nthe embedded server's log ends with:\n{log}"))
        }
        (failure, _) => failure,
    }
}
