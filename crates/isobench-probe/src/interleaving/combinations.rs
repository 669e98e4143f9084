//! Which transactions are tried against each other: combinations of scripts, the ways that their own
//! numbers take, and the numbers with which they meet there.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use isobench_script::Slot;

use super::prediction::{Decided, Predicted, Predictor, Reach, Sent};
use super::program::{Choice, Draw, Number, Program, Programs, Transaction};

/// The most tuples of ways of a combination of two scripts, and of more.
const MOST_TUPLES: usize = 36;
const MOST_TUPLES_OF_MANY: usize = 8;

/// The ways of tuples that are tried one rank earlier than the next ones.
const TUPLES_OF_A_RANK: usize = 6;

/// The most combinations of two transactions in which chosen variables are made equal, in each tuple of ways.
const MOST_EQUAL: usize = 10;

/// The most commands that are walked through to make variables equal in a tuple of ways, and in all.
const MOST_WALKED_FOR_TUPLE: u64 = 15_000;
const MOST_WALKED: u64 = 400_000;

/// The most pairs of equations, and the most equations, that are looked at in a tuple of ways.
const MOST_EQUATIONS: usize = 80;

/// The most values that are looked at to make two variables equal.
const MOST_VALUES: usize = 6;

/// Chooses which transactions meet: the ways of scripts, and what they do there.
pub struct Combiner<'a> {
    programs: &'a Programs,
    predictor: Predictor<'a>,
    ways: Vec<Vec<Choice>>,
    /// Numbers that may matter to several scripts.
    named: Vec<i64>,
    known: RefCell<BTreeMap<(usize, Choice), Rc<Known>>>,
    /// The numbers of predictions: equal ones have the same number.
    numbers: RefCell<BTreeMap<(usize, Decided, Sent), usize>>,
    reaches: RefCell<BTreeMap<(usize, usize), Rc<Reach>>>,
}

/// What a program does with a choice.
struct Known {
    predicted: Predicted,
    /// Its number: the same for equal things.
    number: usize,
}

/// Numbers with which the scripts of a combination meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The choice of each.
    pub choices: Vec<Choice>,
    /// The larger, the later it is tried.
    pub rank: usize,
    /// True for the numbers of the usual ways, and for the first ones of all others: scripts that have met
    /// with these were tried with each other.
    pub essential: bool,
}

impl<'a> Combiner<'a> {
    /// Combines these programs, which count from these numbers and have these ways. `named` are numbers
    /// that may matter, as those by which rows are found.
    pub fn new(
        programs: &'a Programs,
        starts: &[Option<i64>],
        ways: Vec<Vec<Choice>>,
        rows: &[i64],
    ) -> Combiner<'a> {
        let predictor = Predictor::new(programs, starts);
        let named: BTreeSet<i64> = predictor.named(&ways).into_iter().chain(rows.iter().copied()).collect();
        let (known, numbers, reaches) = (RefCell::default(), RefCell::default(), RefCell::default());
        Combiner { programs, predictor, ways, named: named.into_iter().collect(), known, numbers, reaches }
    }

    /// The numbers with which these scripts meet: for each tuple of their ways those that are most likely to
    /// meet first, and no two with which they do the same.
    pub fn meetings(&self, combination: &[usize]) -> Vec<Meeting> {
        let mut seen = BTreeSet::new();
        let mut meetings = Vec::new();
        for (tuple, ways) in self.tuples(combination).iter().enumerate() {
            let bases: Vec<&Choice> =
                combination.iter().zip(ways).map(|(program, way)| &self.ways[*program][*way]).collect();
            let stays = |choices: &Vec<Choice>| {
                // The first ways may be left: their numbers are those of all scripts.
                let same = |((program, choice), base): ((&usize, &Choice), &&Choice)| {
                    self.of(*program, choice).predicted.decided == self.of(*program, base).predicted.decided
                };
                tuple == 0 || combination.iter().zip(choices).zip(&bases).all(same)
            };
            let programs: Vec<&Program> =
                combination.iter().map(|program| &self.programs.programs[*program]).collect();
            let mut number = 0;
            let mut found: Vec<Vec<Choice>> = Vec::new();
            let mut take = |choices: Vec<Choice>, found: &mut Vec<Vec<Choice>>| {
                let Some(choices) = self.predictor.with_clients(combination, &choices) else { return };
                let done: Vec<usize> = combination
                    .iter()
                    .zip(&choices)
                    .map(|(one, choice)| self.of(*one, choice).number)
                    .collect();
                if !seen.insert(done) {
                    return;
                }
                found.push(choices.clone());
                let later = usize::from(tuple > 0) + tuple / TUPLES_OF_A_RANK;
                let essential = tuple == 0 || number == 0;
                meetings.push(Meeting { choices, rank: usize::div_ceil(number, 3) + later, essential });
                number += 1;
            };
            for pattern in patterns(&programs) {
                let choices =
                    bases.iter().zip(pattern).map(|(base, pattern)| moved(base, &pattern)).collect();
                if stays(&choices) {
                    take(choices, &mut found);
                }
            }
            if combination.len() == 2 {
                for choices in self.equalities([combination[0], combination[1]], [ways[0], ways[1]], &found) {
                    take(choices, &mut found);
                }
            }
        }
        meetings
    }

    /// The tuples of ways: all first ones, then equal ones, then others; without ways in which nothing
    /// is sent.
    fn tuples(&self, combination: &[usize]) -> Vec<Vec<usize>> {
        let ways = |program: &usize| -> Vec<usize> {
            let sends = |way: &usize| {
                let known = self.of(*program, &self.ways[*program][*way]);
                known.predicted.sent.iter().any(|sent| !sent.is_empty())
            };
            (0..self.ways[*program].len()).filter(sends).collect()
        };
        let mut tuples = vec![Vec::new()];
        for program in combination {
            let ways = ways(program);
            let longer = |tuple: &Vec<usize>| {
                ways.iter().map(|way| [tuple.as_slice(), &[*way]].concat()).collect::<Vec<_>>()
            };
            tuples = tuples.iter().flat_map(longer).collect();
        }
        let rank = |tuple: &Vec<usize>| {
            let first = tuple.iter().all(|way| *way == 0);
            let same = tuple.windows(2).all(|pair| pair[0] == pair[1]);
            (!first, !same, tuple.iter().sum::<usize>())
        };
        tuples.sort_by_key(rank);
        tuples.truncate(if combination.len() > 2 { MOST_TUPLES_OF_MANY } else { MOST_TUPLES });
        tuples
    }

    fn of(&self, program: usize, choice: &Choice) -> Rc<Known> {
        let key = (program, choice.clone());
        if let Some(known) = self.known.borrow().get(&key) {
            return Rc::clone(known);
        }
        let predicted = self.predictor.of(program, choice);
        let mut numbers = self.numbers.borrow_mut();
        let next = numbers.len();
        let number =
            *numbers.entry((program, predicted.decided.clone(), predicted.sent.clone())).or_insert(next);
        let known = Rc::new(Known { predicted, number });
        self.known.borrow_mut().insert(key, Rc::clone(&known));
        known
    }

    fn reach(&self, program: usize, way: usize) -> Rc<Reach> {
        if let Some(reach) = self.reaches.borrow().get(&(program, way)) {
            return Rc::clone(reach);
        }
        let reach = Rc::new(self.predictor.reach(program, &self.ways[program][way], &self.named));
        self.reaches.borrow_mut().insert((program, way), Rc::clone(&reach));
        reach
    }

    /// Choices in which one variable of the first transaction equals one of the second, or two do, as
    /// in A to B and B to A, where none of these has that.
    fn equalities(&self, pair: [usize; 2], ways: [usize; 2], found: &[Vec<Choice>]) -> Vec<Vec<Choice>> {
        if self.predictor.walked() > MOST_WALKED {
            return Vec::new();
        }
        let reaches = [0, 1].map(|one| self.reach(pair[one], ways[one]));
        let end = self.predictor.walked() + MOST_WALKED_FOR_TUPLE;
        let varied = |one: usize| -> Vec<Slot> {
            reaches[one].iter().filter(|(_, values)| values.len() > 1).map(|(slot, _)| *slot).collect()
        };
        let (ours, theirs) = (varied(0), varied(1));
        let ordered = |slots: &[Slot]| -> Vec<[Slot; 2]> {
            let pairs = slots.iter().flat_map(|one| slots.iter().map(move |other| [*one, *other]));
            pairs.filter(|[one, other]| one != other).collect()
        };
        let mut wanted: Vec<Vec<(Slot, Slot)>> = Vec::new();
        let crosswise = ordered(&ours).into_iter().filter(|[a, b]| a < b);
        for [a, b] in crosswise {
            wanted.extend(ordered(&theirs).into_iter().map(|[c, d]| vec![(a, c), (b, d)]));
        }
        // A to B and B to A of one script first.
        wanted.sort_by_key(|pairs| !(pairs[0].0 == pairs[1].1 && pairs[0].1 == pairs[1].0));
        wanted.truncate(MOST_EQUATIONS);
        let single = ours.iter().flat_map(|a| theirs.iter().map(|c| vec![(*a, *c)])).take(MOST_EQUATIONS);
        let mut all: Vec<Vec<Choice>> = found.to_vec();
        for equal in wanted.into_iter().chain(single) {
            if all.len() >= found.len() + MOST_EQUAL || self.predictor.walked() > end {
                break;
            }
            let met = |choices: &Vec<Choice>| self.meets(pair, choices, &equal);
            if !all.iter().any(met)
                && let Some(choices) = self.solved(pair, ways, &reaches, &equal)
            {
                all.push(choices);
            }
        }
        all.split_off(found.len())
    }

    /// True if these variables are equal with these choices, and those of different equations differ.
    fn meets(&self, pair: [usize; 2], choices: &[Choice], equal: &[(Slot, Slot)]) -> bool {
        let known = [0, 1].map(|one| self.of(pair[one], &choices[one]));
        let values = [0, 1].map(|one| &known[one].predicted.values);
        let met: Option<Vec<i64>> = equal
            .iter()
            .map(|(ours, theirs)| {
                let (ours, theirs) = (values[0].get(ours)?, values[1].get(theirs)?);
                (ours == theirs).then_some(*ours)
            })
            .collect();
        met.is_some_and(|met| met.iter().collect::<BTreeSet<_>>().len() == equal.len())
    }

    /// Choices with which these variables are equal.
    fn solved(
        &self,
        pair: [usize; 2],
        ways: [usize; 2],
        reaches: &[Rc<Reach>; 2],
        equal: &[(Slot, Slot)],
    ) -> Option<Vec<Choice>> {
        let mut options = vec![[0, 1].map(|one| self.ways[pair[one]][ways[one]].clone())];
        for (ours, theirs) in equal {
            let (ours, theirs) = (reaches[0].get(ours)?, reaches[1].get(theirs)?);
            let common: Vec<_> = ours
                .iter()
                .filter_map(|(value, ways)| Some((ways, theirs.get(value)?)))
                .take(MOST_VALUES)
                .collect();
            let with = |base: &Choice, change: &Option<(super::program::Place, i64)>| {
                let mut choice = base.clone();
                if let Some((place, number)) = change {
                    choice.insert(*place, Number::Is(*number));
                }
                choice
            };
            let mut longer = Vec::new();
            for [one, other] in &options {
                for (ours, theirs) in &common {
                    for (ours, theirs) in ours.iter().flat_map(|ours| theirs.iter().map(move |it| (ours, it)))
                    {
                        longer.push([with(one, ours), with(other, theirs)]);
                    }
                }
            }
            options = longer;
        }
        let stays = |choices: &[Choice; 2]| {
            let decided = |one: usize, choice: &Choice| self.of(pair[one], choice).predicted.decided.clone();
            [0, 1]
                .iter()
                .all(|one| decided(*one, &choices[*one]) == decided(*one, &self.ways[pair[*one]][ways[*one]]))
        };
        options.into_iter().find(|choices| stays(choices) && self.meets(pair, choices, equal)).map(Vec::from)
    }
}

/// The numbers of a way, further above where the pattern says so.
pub fn moved(base: &Choice, pattern: &Choice) -> Choice {
    let mut choice = base.clone();
    for (place, number) in pattern {
        let further = if let Number::Above(further) = number { *further } else { 0 };
        let entry = choice.entry(*place).or_insert(Number::Above(0));
        *entry = entry.plus(further);
    }
    choice.retain(|_, number| *number != Number::Above(0));
    choice
}

/// How far the numbers of scripts that meet are above the first ones, those most likely to meet first.
///
/// First all draws get the first number of their range, so that draws of equal ranges meet. Then
/// draws of one script that share a range differ from each other; then the second transaction
/// differs in one draw, in all, in reverse; then all transactions differ; then the first one differs in
/// one draw, since it may do nothing with the first number, such as to choose what is chosen already.
fn patterns(programs: &[&Program]) -> Vec<Vec<Choice>> {
    let least = || vec![Choice::new(); programs.len()];
    let spread: Vec<Choice> = programs.iter().map(|program| spread(&program.draws, false)).collect();
    let mut all = vec![least()];
    let with = |base: &[Choice], number: usize, choice: Choice| {
        let mut choices = base.to_vec();
        choices[number] = choice;
        choices
    };
    for number in (1..programs.len()).rev() {
        for draw in &programs[number].draws {
            all.push(with(&least(), number, Choice::from([(draw.place, Number::Above(1))])));
        }
    }
    all.push(spread.clone());
    for (number, program) in programs.iter().enumerate().skip(1) {
        all.push(with(&spread, number, spread_from(&program.draws, 1)));
        all.push(with(&spread, number, self::spread(&program.draws, true)));
        all.push(with(&least(), number, apart(&program.draws, 1)));
    }
    let number = |number: usize| i64::try_from(number).unwrap_or(0);
    all.push(programs.iter().enumerate().map(|(at, program)| apart(&program.draws, number(at))).collect());
    let first = programs.first().map_or(&[][..], |program| &program.draws);
    all.extend(first.iter().map(|draw| with(&least(), 0, Choice::from([(draw.place, Number::Above(1))]))));
    let mut seen = BTreeSet::new();
    all.retain(|choices| {
        let shown: Vec<Choice> = choices.iter().map(without_zeros).collect();
        seen.insert(shown)
    });
    all
}

fn without_zeros(choice: &Choice) -> Choice {
    let above = choice.iter().filter(|(_, above)| **above != Number::Above(0));
    above.map(|(place, above)| (*place, *above)).collect()
}

/// The largest number of each range.
pub fn most(program: &Program) -> Choice {
    apart(&program.draws, i64::MAX)
}

/// The largest numbers for all of these, and then for all but one draw of one of them, which is the
/// least: two take from different accounts what only one can have.
pub fn most_but_one(programs: &[&Program]) -> Vec<Vec<Choice>> {
    let all: Vec<Choice> = programs.iter().map(|program| most(program)).collect();
    let mut found = vec![all.clone()];
    for (at, program) in programs.iter().enumerate().skip(1) {
        for draw in &program.draws {
            let mut choices = all.clone();
            choices[at].remove(&draw.place);
            found.push(choices);
        }
    }
    found
}

/// All draws this far above the least.
fn apart(draws: &[Draw], above: i64) -> Choice {
    draws.iter().map(|draw| (draw.place, Number::Above(above))).collect()
}

/// Draws of one range that differ from each other.
pub fn spread(draws: &[Draw], reversed: bool) -> Choice {
    let mut ranges: BTreeMap<&str, Vec<&Draw>> = BTreeMap::new();
    for draw in draws {
        ranges.entry(&draw.range).or_default().push(draw);
    }
    let mut choice = Choice::new();
    for mut same in ranges.into_values() {
        if reversed {
            same.reverse();
        }
        choice.extend(same.iter().zip(0..).map(|(draw, above)| (draw.place, Number::Above(above))));
    }
    choice
}

/// The same, beginning higher, so that one number is shared with those that begin at the least.
fn spread_from(draws: &[Draw], first: i64) -> Choice {
    spread(draws, false).into_iter().map(|(place, above)| (place, above.plus(first))).collect()
}

/// The combinations of so many of these scripts, in order; a script may be in one repeatedly.
pub fn combinations(programs: &[usize], size: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..size {
        let longer = |combination: &Vec<usize>| {
            programs.iter().map(|program| [combination.as_slice(), &[*program]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The transactions of a combination of scripts, with these choices.
pub fn with_choices(combination: &[usize], choices: &[Choice]) -> Vec<Transaction> {
    let transaction = |(program, choice): (&usize, &Choice)| Transaction::with(*program, choice.clone());
    combination.iter().zip(choices).map(transaction).collect()
}

#[cfg(test)]
mod tests {
    use isobench_script::{Symbols, Variables, parse};

    use super::*;
    use crate::interleaving::Programs;

    fn transfer() -> Programs {
        let mut symbols = Symbols::new();
        let text = "\\set a random(1, 9)\n\\set b random(1, 9)\nSELECT :a, :b;\n";
        let script = parse("transfer.sql", text, &mut symbols).unwrap();
        let variables = Variables::new(&symbols);
        Programs::new([&script], symbols, variables)
    }

    /// The values of variables with which two scripts, or one twice, meet: of T1, then of T2.
    fn met(texts: &[&str], names: &[&str]) -> BTreeSet<Vec<i64>> {
        let mut symbols = Symbols::new();
        let scripts: Vec<_> = texts.iter().map(|text| parse("a.sql", text, &mut symbols).unwrap()).collect();
        let variables = Variables::new(&symbols);
        let programs = Programs::new(&scripts, symbols, variables);
        let starts = vec![None; texts.len()];
        let predictor = Predictor::new(&programs, &starts);
        let ways = (0..texts.len()).map(|program| predictor.ways(program)).collect();
        let combiner = Combiner::new(&programs, &starts, ways, &[]);
        let combination = [0, texts.len() - 1];
        let of = |meeting: &Meeting| -> Vec<i64> {
            let mut all = Vec::new();
            for (program, choice) in combination.iter().zip(&meeting.choices) {
                let values = combiner.of(*program, choice).predicted.values.clone();
                let slots = names.iter().filter_map(|name| combiner.programs.symbols.lookup(name));
                all.extend(slots.filter_map(|slot| values.get(&slot).copied()));
            }
            all
        };
        combiner.meetings(&combination).iter().map(of).collect()
    }

    #[test]
    fn two_transfers_meet_in_every_way() {
        let text = "\\set a random(1, 9)\n\\set b random(1, 9)\nSELECT :a, :b;\n";
        let shown = met(&[text], &["a", "b"]);
        for wanted in [
            [1, 1, 1, 1],
            [1, 1, 2, 1],
            [1, 1, 1, 2],
            [1, 2, 1, 2],
            [1, 2, 2, 3],
            [1, 2, 2, 1],
            [1, 1, 2, 2],
            [2, 1, 1, 1],
        ] {
            assert!(shown.contains(&wanted[..]), "{wanted:?} in {shown:?}");
        }
    }

    /// True if T1's first variable is T2's second one, and the other way round.
    fn crosswise(shown: &BTreeSet<Vec<i64>>) -> bool {
        shown.iter().any(|all| all[0] == all[3] && all[1] == all[2] && all[0] != all[1])
    }

    #[test]
    fn numbers_of_different_ranges_meet_crosswise() {
        for (one, other) in [
            ("random(1, 9)", "random(0, 9)"),
            ("random(1, 9)", "random(7, 20)"),
            ("random(1, 50) * 2", "random(1, 100)"),
            ("10 + random(1, 9)", "20 - random(1, 9)"),
            ("random(1, 100000)", "random(50000, 200000)"),
            ("random_zipfian(1, 40, 1.1)", "random(3, 1000)"),
        ] {
            let text = format!("\\set a {one}\n\\set b {other}\nSELECT :a, :b;\n");
            let shown = met(&[&text], &["a", "b"]);
            assert!(crosswise(&shown), "{text}{shown:?}");
        }
        let third = "\\set w random(1, 5)\n\\set a :w * 10 + random(1, 9)\n\\set b :w * 10 + random(0, 9)\n\
                     \\set amount random(1, 9)\nSELECT :a, :b, :amount;\n";
        assert!(crosswise(&met(&[third], &["a", "b"])));
    }

    #[test]
    fn numbers_of_different_scripts_meet_crosswise() {
        let one = "\\set a random(1, 9)\n\\set b random(5, 9)\nSELECT :a, :b;\n";
        let other = "\\set c random(3, 8)\n\\set d random(0, 12)\nSELECT :c, :d;\n";
        let shown = met(&[one, other], &["a", "b", "c", "d"]);
        assert!(
            shown.iter().any(|all| all[0] == all[2] && all[1] == all[3] && all[0] != all[1]),
            "{shown:?}"
        );
        assert!(crosswise(&shown), "{shown:?}");
    }

    #[test]
    fn both_take_each_way_and_meet_there() {
        let text = "\\set x random(1, 100)\n\\set id random(1, 5)\n\\if :x <= 80\nSELECT :id, 1;\n\\else\n\
                    SELECT :id, :x;\n\\endif\n";
        let shown = met(&[text], &["id", "x"]);
        assert!(shown.iter().any(|all| all.len() == 4 && all[0] == all[2]), "{shown:?}");
        assert!(shown.iter().any(|all| all.len() == 3 && all[0] == all[1]), "{shown:?}");
    }

    /// Scripts with many draws and branches, as the workload `registers`, took minutes before this bound.
    #[test]
    fn the_work_of_a_script_with_many_branches_is_bounded() {
        use std::fmt::Write as _;
        let mut text = String::new();
        for number in 0..24 {
            let _ = writeln!(text, "\\set k{number} random(1, 100000)\n\\set d{number} random(1, 9)");
            let _ = writeln!(text, "\\if :d{number} > 5\nSELECT :k{number};\n\\else");
            let _ = writeln!(text, "UPDATE t SET v = :d{number} WHERE id = :k{number};\n\\endif");
        }
        let mut symbols = Symbols::new();
        let script = parse("many.sql", &text, &mut symbols).unwrap();
        let variables = Variables::new(&symbols);
        let programs = Programs::new([&script], symbols, variables);
        let predictor = Predictor::new(&programs, &[None]);
        let ways = predictor.ways(0);
        assert!(ways.len() > 2, "{}", ways.len());
        let combiner = Combiner::new(&programs, &[None], vec![ways], &[]);
        assert!(!combiner.meetings(&[0, 0]).is_empty());
        let walked = (predictor.walked(), combiner.predictor.walked());
        assert!(walked.0 < 1_000_000 && walked.1 < 4_000_000, "{walked:?}");
    }

    #[test]
    fn one_number_of_the_largest_is_the_least() {
        let programs = transfer();
        let program = &programs.programs[0];
        let shown: Vec<Vec<usize>> = most_but_one(&[program, program])
            .iter()
            .map(|all| all.iter().map(Choice::len).collect())
            .collect();
        let draws = program.draws.len();
        let mut expected = vec![vec![draws, draws]];
        expected.extend((0..draws).map(|_| vec![draws, draws - 1]));
        assert_eq!(shown, expected);
    }

    #[test]
    fn combinations_include_a_script_with_itself() {
        assert_eq!(combinations(&[0, 1], 2), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(combinations(&[0, 1, 2], 3).len(), 27);
    }
}
