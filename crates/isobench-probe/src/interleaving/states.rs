//! The states of the tables from which scripts are tried: those from which one soon takes another way.

use super::TryError;
use super::alone::{Alone, LEAST_STATEMENTS, way};
use super::combinations::{combinations, most, moved};
use super::program::{Choice, Number, Program, Transaction};
use super::search::LONGEST_LEAST;
use super::tables::Delta;

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
    pub prefix: Vec<Transaction>,
    /// Combinations that belong to it, in addition to those of every state.
    pub own: Vec<Vec<Transaction>>,
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

impl Growth {
    /// The numbers of a script whose turn it is for the time of this number.
    fn choice(self, script: &Program, turn: usize) -> Choice {
        match self {
            Growth::Equal => Choice::new(),
            Growth::Counting(draw) => {
                let above = i64::try_from(turn).unwrap_or(i64::MAX);
                let draw = script.draws.get(draw).map(|draw| (draw.place, Number::Above(above)));
                draw.into_iter().collect()
            }
            Growth::Largest => most(script),
        }
    }
}

impl Alone<'_> {
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
                let prefix = vec![Transaction::with(*program, way.clone())];
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

    /// True if there is time left to look for states; for the first statements there is more of it.
    fn may_grow(&self) -> bool {
        let time = if self.sessions.statements < LEAST_STATEMENTS {
            LONGEST_LEAST.max(self.budget)
        } else {
            self.budget
        };
        self.began.elapsed() < time / 4
    }

    /// The programs that decide something and have taken one way in what led to these states.
    fn of_one_way(&self, states: &[State]) -> Vec<usize> {
        let varies = |program: usize| {
            let grown = states.iter().filter(|state| !state.prefix.is_empty());
            grown.flat_map(|state| &state.own).flatten().any(|transaction| transaction.program == program)
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
        for (way_number, growth) in self.growths(in_turn) {
            if !self.may_grow() {
                break;
            }
            let bases: Vec<Choice> = in_turn
                .iter()
                .map(|program| self.ways[*program].get(way_number).cloned().unwrap_or_default())
                .collect();
            let largest = growth == Growth::Largest;
            // The run of this number, with the script whose turn it is.
            let transaction = |run: usize| {
                let (script, turn) = (run % scripts.len(), run / scripts.len());
                let mut change = growth.choice(scripts[script], turn);
                // The numbers that lead to a way stay.
                change.retain(|place, _| way_number == 0 || !bases[script].contains_key(place));
                Transaction::with(in_turn[script], moved(&bases[script], &change))
            };
            let repeats = if largest { MOST_WITH_LARGEST } else { most_repeats };
            let (mut first, mut done) = (Vec::new(), Delta::default());
            for run in 0..repeats * scripts.len() {
                let executed = self.run(&transaction(run))?;
                if run == 0 {
                    self.note_run(&transaction(run), &executed);
                }
                done = done.then(&executed.outcome.delta);
                if !self.may_grow() {
                    break;
                }
                let way = way(&executed);
                match first.get(run % scripts.len()) {
                    None => first.push(way),
                    Some(first) if *first == way => {}
                    Some(_) => {
                        // Of the run before this one and this one, the first is the last that may.
                        let (before, this) = (transaction(run - 1), transaction(run));
                        let own = match scripts.len() {
                            1 => vec![vec![before.clone(), before.clone()], vec![before, this]],
                            _ => vec![vec![before.clone(), this.clone()], vec![this, before]],
                        };
                        let state = |runs: usize, own: Vec<Vec<Transaction>>| State {
                            before: self.after(in_turn, runs),
                            prefix: (0..runs).map(transaction).collect(),
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
            self.sessions.put_back(&done, 0)?;
        }
        Ok(found)
    }

    /// The ways in which scripts are repeated in turn, each with the numbers that grow.
    fn growths(&self, in_turn: &[usize]) -> Vec<(usize, Growth)> {
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
        (0..ways).flat_map(|way| growths.iter().map(move |growth| (way, *growth))).collect()
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
}
