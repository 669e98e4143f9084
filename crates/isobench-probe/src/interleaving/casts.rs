//! Which transactions are tried against each other: combinations of scripts, and the random numbers
//! with which they meet.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{Choice, Draw, Part, Program};

/// The choices of numbers for the scripts of a cast, those most likely to meet first.
///
/// First all draws get the least number of their range, so that draws of equal ranges meet. Then
/// draws of one script that share a range differ from each other; then the second transaction
/// differs in one draw, in all, in reverse; then all transactions differ; then the first one differs in
/// one draw, since it may do nothing with the least number, such as to choose what is chosen already.
pub fn choices(programs: &[&Program]) -> Vec<Vec<Choice>> {
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
            all.push(with(&least(), number, Choice::from([(draw.place, 1)])));
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
    all.extend(first.iter().map(|draw| with(&least(), 0, Choice::from([(draw.place, 1)]))));
    let mut seen = BTreeSet::new();
    all.retain(|choices| {
        let shown: Vec<Choice> = choices.iter().map(without_zeros).collect();
        seen.insert(shown)
    });
    all
}

fn without_zeros(choice: &Choice) -> Choice {
    choice.iter().filter(|(_, above)| **above != 0).map(|(place, above)| (*place, *above)).collect()
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
    draws.iter().map(|draw| (draw.place, above)).collect()
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
        choice.extend(same.iter().zip(0..).map(|(draw, above)| (draw.place, above)));
    }
    choice
}

/// The same, beginning higher, so that one number is shared with those that begin at the least.
fn spread_from(draws: &[Draw], first: i64) -> Choice {
    spread(draws, false).into_iter().map(|(place, above)| (place, above + first)).collect()
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

/// The parts of a cast.
pub fn parts(combination: &[usize], choices: &[Choice]) -> Vec<Part> {
    let part = |(program, choice): (&usize, &Choice)| Part::with(*program, choice.clone());
    combination.iter().zip(choices).map(part).collect()
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

    #[test]
    fn two_transfers_meet_in_every_way() {
        let programs = transfer();
        let program = &programs.programs[0];
        let found = choices(&[program, program]);
        let numbers =
            |choice: &Choice| [(0, 0), (1, 0)].map(|place| 1 + choice.get(&place).copied().unwrap_or(0));
        let shown: Vec<[i64; 4]> = found
            .iter()
            .map(|pair| {
                let ([a, b], [c, d]) = (numbers(&pair[0]), numbers(&pair[1]));
                [a, b, c, d]
            })
            .collect();
        assert_eq!(shown[0], [1, 1, 1, 1]);
        for wanted in
            [[1, 1, 2, 1], [1, 1, 1, 2], [1, 2, 1, 2], [1, 2, 2, 3], [1, 2, 2, 1], [1, 1, 2, 2], [2, 1, 1, 1]]
        {
            assert!(shown.contains(&wanted), "{wanted:?} in {shown:?}");
        }
        assert_eq!(shown.len(), shown.iter().collect::<BTreeSet<_>>().len());
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
