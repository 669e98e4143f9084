//! Predicts what a script's own numbers decide: which of its ways it takes, and what it sends there, as far as that
//! doesn't depend on the server; and the numbers that lead to each way.
//!
//! A script is walked through without a server, each time with other answers of the server
//! assumed. What is the same with all of them is decided by the script's numbers alone. Ways
//! are looked for by numbers: each draw alone over its range, then random ones and those that the script
//! names, so that nothing has to be known of the expressions.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use isobench_script::{
    Command, CommandKind, EvalContext, EvalError, Expr, Piece, Prng, Slot, Sql, Store, Symbols, Value,
    Variable, Variables,
};

use super::program::{CLIENT, Choice, Number, Place, Program, Programs, number_of};
use super::walk::{Numbers, Taken, Walk};

/// The most ways of a script that are distinguished.
const MOST_WAYS: usize = 8;

/// The most ways of which those are chosen.
const MOST_FOUND: usize = 64;

/// The most numbers of a draw that are looked at one by one, and the random choices of all draws.
const MOST_NUMBERS: i64 = 1000;
const LEAST_NUMBERS: i64 = 4;
const LEAST_CHOICES: usize = 150;
const MOST_CHOICES: usize = 3000;

/// The most commands that are walked through to find the ways of a script, and to find out which values
/// each of its variables can have in a way: well below a second for both.
const MOST_WALKED_FOR_WAYS: u64 = 150_000;
const MOST_WALKED_TO_REACH: u64 = 25_000;

/// The most integers of a script that are used as answers of the server.
const MOST_INTEGERS: usize = 6;

/// The number of clients that are thought of.
pub const CLIENTS: i64 = 64;

/// The outcomes of the conditions of a script: each command with what its condition was.
pub type Decided = BTreeSet<(usize, bool)>;

/// What is sent with the answers of each assumption: the commands, with their variables.
pub type Sent = Vec<Vec<(usize, String)>>;

/// What a script does with some numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predicted {
    /// The outcomes of its conditions, both ones where the server decides.
    pub decided: Decided,
    /// What it sends with the answers of each assumption: the commands, with their variables.
    pub sent: Sent,
    /// What it draws: range and number.
    pub drawn: BTreeMap<Place, [i64; 3]>,
    /// The variables in its SQL whose first value is an integer and the same with all assumptions.
    pub values: BTreeMap<Slot, i64>,
}

/// Scripts, and the numbers from which they count.
pub struct Predictor<'a> {
    programs: &'a Programs,
    starts: Vec<Option<i64>>,
    /// The integers in the expressions of each.
    integers: Vec<Vec<i64>>,
    /// The variables into which each command of each may put what the server answers.
    stored: Vec<BTreeMap<usize, Vec<Slot>>>,
    /// The commands walked through so far: the measure of work, the same on each machine.
    walked: Cell<u64>,
}

/// The answers that the server is assumed to give.
#[derive(Debug, Clone, Copy)]
enum Assumed {
    /// Always this number.
    Always(i64),
    /// Another one for each variable; with a number that tells assumptions apart.
    Mixed(usize),
}

/// Expressions are evaluated with the numbers that a function chooses.
struct Choosing<'c> {
    choose: &'c mut dyn FnMut(Place, i64, i64) -> i64,
    drawn: BTreeMap<Place, [i64; 3]>,
}

impl Numbers for Choosing<'_> {
    fn value(&mut self, at: usize, expr: &Expr, ctx: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        expr.eval_choosing(ctx, &mut |number, least, most| {
            let place = (at, number);
            let chosen = (self.choose)(place, least, most).clamp(least, most);
            self.drawn.insert(place, [least, most, chosen]);
            chosen
        })
    }
}

impl<'a> Predictor<'a> {
    /// Predicts scripts that count from these numbers.
    pub fn new(programs: &'a Programs, starts: &[Option<i64>]) -> Predictor<'a> {
        let integers = programs.programs.iter().map(integers).collect();
        let stored = programs.programs.iter().map(|program| stored(program, &programs.symbols)).collect();
        Predictor { programs, starts: starts.to_vec(), integers, stored, walked: Cell::new(0) }
    }

    /// The number of commands that were walked through so far.
    pub fn walked(&self) -> u64 {
        self.walked.get()
    }

    /// What a program does with a choice.
    pub fn of(&self, program: usize, choice: &Choice) -> Predicted {
        let start = self.starts.get(program).copied().flatten();
        self.with(program, &mut |place, least, most| number_of(choice, place, start, least, most))
    }

    /// The same with numbers that a function chooses. It is called with the same place and range
    /// repeatedly, and has to choose the same number.
    fn with(&self, program: usize, choose: &mut dyn FnMut(Place, i64, i64) -> i64) -> Predicted {
        let mut predicted = Predicted::default();
        let mut assumptions = assumptions(&self.programs.programs[program]).into_iter();
        let Some(first) = assumptions.next() else { return predicted };
        predicted.values = self.walk(program, first, choose, &mut predicted);
        for assumed in assumptions {
            let values = self.walk(program, assumed, choose, &mut predicted);
            let other = |slot: &Slot, value: &i64| values.get(slot).is_some_and(|other| other != value);
            predicted.values.retain(|slot, value| !other(slot, value));
        }
        predicted
    }

    /// Walks through a program with assumed answers, adds what it does, and returns the values in its SQL.
    fn walk(
        &self,
        program: usize,
        assumed: Assumed,
        choose: &mut dyn FnMut(Place, i64, i64) -> i64,
        predicted: &mut Predicted,
    ) -> BTreeMap<Slot, i64> {
        let Programs { programs, symbols, .. } = self.programs;
        let (integers, stored) = (&self.integers[program], &self.stored[program]);
        let program = &programs[program];
        let client = if program.uses_client(symbols) { choose(CLIENT, 0, CLIENTS - 1) } else { 0 };
        let mut variables = self.programs.variables_of(client.clamp(0, CLIENTS - 1));
        let slots: Vec<Slot> = symbols.names().filter_map(|name| symbols.lookup(name)).collect();
        let answer = |variables: &mut Variables, slot: Slot| {
            variables.set(slot, Value::Int(assumed.answer(slot, integers)));
        };
        for slot in &slots {
            if !variables.is_set(*slot) {
                answer(&mut variables, *slot);
            }
        }
        let mut walk = Walk::new(program, symbols, variables);
        let mut choosing = Choosing { choose, drawn: BTreeMap::new() };
        let (mut sent, mut values) = (Vec::new(), BTreeMap::new());
        // A mistake ends it, as it would a run.
        while let Ok(taken) = walk.step(&mut choosing) {
            self.walked.set(self.walked.get() + 1);
            match taken {
                Taken::Branch { at, held: Some(held), .. } => {
                    predicted.decided.insert((at, held));
                }
                Taken::Sql(at) => {
                    let CommandKind::Sql(sql) = &program.script.commands[at].kind else { continue };
                    sent.push((at, values_in(sql, &walk, &mut values)));
                    for slot in stored.get(&at).into_iter().flatten() {
                        answer(&mut walk.variables, *slot);
                    }
                }
                Taken::End => break,
                Taken::Branch { .. } | Taken::Set { .. } | Taken::Other => {}
            }
        }
        predicted.drawn.append(&mut choosing.drawn);
        predicted.sent.push(sent);
        values
    }

    /// The ways of a program that its numbers decide, each as the numbers that it takes to come there,
    /// apart from which the first ones do. The first way is that of the first numbers.
    pub fn ways(&self, program: usize) -> Vec<Choice> {
        let first = self.of(program, &Choice::new());
        let mut found = vec![(first.decided, Choice::new())];
        let script = &self.programs.programs[program];
        let conditions: BTreeSet<usize> = script.conditions().collect();
        if !conditions.is_empty() && (!script.draws.is_empty() || script.uses_client(&self.programs.symbols))
        {
            self.look_for_ways(program, &conditions, &mut found);
        }
        chosen(found)
    }

    fn look_for_ways(
        &self,
        program: usize,
        conditions: &BTreeSet<usize>,
        found: &mut Vec<(Decided, Choice)>,
    ) {
        let all_reached = |found: &[(Decided, Choice)]| {
            let reached: BTreeSet<_> = found.iter().flat_map(|(decided, _)| decided).collect();
            conditions.iter().all(|at| [false, true].iter().all(|held| reached.contains(&(*at, *held))))
        };
        let integers = &self.integers[program];
        let end = self.walked() + MOST_WALKED_FOR_WAYS;
        // Each draw alone, from each way that is known.
        let mut next = 0;
        while let Some((_, base)) = found.get(next).cloned() {
            next += 1;
            if all_reached(found) || next > MOST_WAYS || self.walked() > end {
                break;
            }
            let before = self.walked();
            let drawn = self.of(program, &base).drawn;
            // All draws of all ways get the same share of the work.
            let draws = u64::try_from(drawn.len() * MOST_WAYS).unwrap_or(u64::MAX);
            let share = MOST_WALKED_FOR_WAYS / 2 / (self.walked() - before).max(1) / draws.max(1);
            let count = MOST_NUMBERS.min(i64::try_from(share).unwrap_or(MOST_NUMBERS)).max(LEAST_NUMBERS);
            for (place, [least, most, _]) in drawn {
                for number in numbers(least, most, count, integers) {
                    let mut choice = base.clone();
                    choice.insert(place, Number::Is(number));
                    self.note_way(program, choice, found);
                }
            }
        }
        let mut random = Prng::seed(1);
        for tried in 0..MOST_CHOICES {
            if tried >= LEAST_CHOICES && all_reached(found) || self.walked() > end {
                break;
            }
            let mut choice = Choice::new();
            let predicted = self.with(program, &mut |place, least, most| {
                let number = choice.entry(place).or_insert_with(|| {
                    let named: Vec<i64> = near(integers, least, most);
                    let at = random.int_between(0, i64::try_from(named.len()).unwrap_or(0) * 2);
                    let named = usize::try_from(at).ok().and_then(|at| named.get(at).copied());
                    Number::Is(named.unwrap_or_else(|| random.int_between(least, most)))
                });
                number.of(None, least, most)
            });
            if !found.iter().any(|(decided, _)| *decided == predicted.decided) {
                self.note_way(program, choice, found);
            }
        }
    }

    /// Notes a way that isn't known, with as few numbers as it takes.
    fn note_way(&self, program: usize, mut choice: Choice, found: &mut Vec<(Decided, Choice)>) {
        let decided = self.of(program, &choice).decided;
        if found.len() >= MOST_FOUND || found.iter().any(|(known, _)| *known == decided) {
            return;
        }
        for place in choice.keys().copied().collect::<Vec<_>>() {
            let number = choice.remove(&place);
            if let Some(number) = number.filter(|_| self.of(program, &choice).decided != decided) {
                choice.insert(place, number);
            }
        }
        found.push((decided, choice));
    }

    /// The numbers of clients with which these transactions take the ways of their choices, each another
    /// one, for those that ask for it. `None` if there are none.
    pub fn with_clients(&self, combination: &[usize], choices: &[Choice]) -> Option<Vec<Choice>> {
        let asks = |program: usize| self.programs.programs[program].uses_client(&self.programs.symbols);
        if !combination.iter().any(|program| asks(*program)) {
            return Some(choices.to_vec());
        }
        let mut used = BTreeSet::new();
        let mut all = Vec::new();
        for (program, choice) in combination.iter().zip(choices) {
            let decided = self.of(*program, choice).decided;
            let of = |client: i64| {
                let mut choice = choice.clone();
                choice.insert(CLIENT, Number::Is(client));
                choice
            };
            let fits =
                |client: &i64| !used.contains(client) && self.of(*program, &of(*client)).decided == decided;
            let client = (0..CLIENTS).find(fits)?;
            used.insert(client);
            all.push(of(client));
        }
        Some(all)
    }

    /// For each variable in the SQL of a way, the values that it has with one number or another, with
    /// that number. `more` are numbers that are looked at in addition to the least ones.
    pub fn reach(&self, program: usize, way: &Choice, more: &[i64]) -> Reach {
        let start = self.starts.get(program).copied().flatten();
        let end = self.walked() + MOST_WALKED_TO_REACH;
        let first = self.of(program, way);
        let mut reach = Reach::new();
        let mut note = |predicted: &Predicted, changed: Option<(Place, i64)>| {
            for (slot, value) in &predicted.values {
                let ways = reach.entry(*slot).or_default().entry(*value).or_default();
                if ways.len() < 2 {
                    ways.push(changed);
                }
            }
        };
        note(&first, None);
        for (place, [least, most, _]) in &first.drawn {
            let from = start.filter(|start| (least..=most).contains(&start)).unwrap_or(*least);
            let near = (from..=*most).take(REACHED);
            let named = more.iter().copied().filter(|number| (*least..=*most).contains(number));
            for number in near.chain(named).collect::<BTreeSet<i64>>() {
                if self.walked() > end {
                    return reach;
                }
                let mut choice = way.clone();
                choice.insert(*place, Number::Is(number));
                let predicted = self.of(program, &choice);
                if predicted.decided == first.decided {
                    note(&predicted, Some((*place, number)));
                }
            }
        }
        reach
    }

    /// The integers that scripts name, and the ends of the ranges that they draw from in these ways.
    pub fn named(&self, ways: &[Vec<Choice>]) -> Vec<i64> {
        let mut named: BTreeSet<i64> = self.integers.iter().flatten().copied().collect();
        for (program, ways) in ways.iter().enumerate() {
            for [least, most, _] in ways.iter().flat_map(|way| self.of(program, way).drawn.into_values()) {
                named.extend([least, least.saturating_add(1), most.saturating_sub(1), most]);
            }
        }
        named.into_iter().collect()
    }
}

/// The most integers in a script's SQL that are tried as numbers of a draw, each with its neighbours.
const MOST_IN_SQL: usize = 4;

/// The integers in a program's SQL and their neighbours, within a range: what a condition such as `:x < 900`
/// tells apart.
pub fn near_sql(program: &Program, least: i64, most: i64) -> Vec<i64> {
    let mut found = BTreeSet::new();
    for sql in program.script.sql() {
        let text = sql.as_written();
        let words = text.split(|letter: char| !(letter.is_alphanumeric() || "_.$:".contains(letter)));
        found.extend(words.filter_map(|word| word.parse::<i64>().ok()));
    }
    let few: Vec<i64> = found.into_iter().filter(|number| (least..=most).contains(number)).collect();
    let at_ends = few.iter().rev().take(MOST_IN_SQL).copied().collect::<Vec<_>>();
    if at_ends.is_empty() { Vec::new() } else { near(&at_ends, least, most) }
}

/// The numbers of a draw, from the first one, with which values are looked for that meet.
const REACHED: usize = 40;

/// The values of variables, each with the number of a draw that leads to it; `None` is the way as it is.
pub type Reach = BTreeMap<Slot, BTreeMap<i64, Vec<Option<(Place, i64)>>>>;

impl Assumed {
    fn answer(self, slot: Slot, integers: &[i64]) -> i64 {
        match self {
            Assumed::Always(number) => number,
            Assumed::Mixed(assumed) => {
                let all: Vec<i64> = ANSWERS.iter().chain(integers).copied().collect();
                all[(slot.index() * 7 + assumed * 5) % all.len()]
            }
        }
    }
}

/// What the server may answer to anything.
const ANSWERS: [i64; 4] = [0, 1, 1_000_000_000, -1_000_000_000];

/// The assumed answers with which a program is walked through; one if the server decides nothing.
fn assumptions(program: &Program) -> Vec<Assumed> {
    let asks = program.script.sql().any(|sql| sql.store != Store::None);
    if !asks {
        return vec![Assumed::Always(0)];
    }
    let named = integers(program);
    let always = ANSWERS.iter().chain(named.iter().take(MOST_INTEGERS)).copied().map(Assumed::Always);
    always.chain([Assumed::Mixed(1), Assumed::Mixed(2)]).collect()
}

/// The integers in a program's expressions.
fn integers(program: &Program) -> Vec<i64> {
    let all = program.script.commands.iter().flat_map(|command| match &command.kind {
        CommandKind::Set { expr, .. } => expr.integers(),
        CommandKind::If(arm) | CommandKind::Elif(arm) => {
            arm.cond.as_ref().map(Expr::integers).unwrap_or_default()
        }
        _ => Vec::new(),
    });
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Integers and their neighbours, within a range.
fn near(integers: &[i64], least: i64, most: i64) -> Vec<i64> {
    let all =
        integers.iter().flat_map(|number| [number.saturating_sub(1), *number, number.saturating_add(1)]);
    let all = all.chain([least, most]).filter(|number| (least..=most).contains(number));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

/// All numbers of a range; if there are more than `count`, those near integers of the script, and some at
/// equal distances.
fn numbers(least: i64, most: i64, count: i64, integers: &[i64]) -> Vec<i64> {
    let width = most.saturating_sub(least);
    if width < count {
        return (least..=most).collect();
    }
    let apart = (0..count).map(|number| least.saturating_add(width / count * number));
    near(integers, least, most).into_iter().chain(apart).collect()
}

/// The first way; then those with outcomes of conditions that no way before has; then others.
fn chosen(mut found: Vec<(Decided, Choice)>) -> Vec<Choice> {
    let (decided, first) = found.remove(0);
    let (mut reached, mut ways) = (decided, vec![first]);
    while !found.is_empty() && ways.len() < MOST_WAYS {
        let more = |(decided, _): &(Decided, Choice)| decided.difference(&reached).count();
        let best = (0..found.len()).max_by_key(|at| (more(&found[*at]), std::cmp::Reverse(*at)));
        let (decided, way) = found.remove(best.unwrap_or(0));
        reached.extend(decided);
        ways.push(way);
    }
    ways
}

/// The values of the variables in SQL, as one text; adds the integers among them that are the first of
/// their variable.
fn values_in(sql: &Sql, walk: &Walk<'_>, values: &mut BTreeMap<Slot, i64>) -> String {
    let mut text = Vec::new();
    for piece in &sql.pieces {
        let Piece::Variable { slot, .. } = piece else { continue };
        walk.variables.write_text(*slot, &mut text);
        text.push(b',');
        if let Variable::Value(Value::Int(number)) = walk.variables.get(*slot) {
            values.entry(*slot).or_insert(*number);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The variables into which the results of each command may go.
fn stored(program: &Program, symbols: &Symbols) -> BTreeMap<usize, Vec<Slot>> {
    let commands = program.script.commands.iter().enumerate();
    let of = |(at, command): (usize, &Command)| {
        let CommandKind::Sql(sql) = &command.kind else { return None };
        let into = symbols.names().filter(|name| stores(sql, name));
        Some((at, into.filter_map(|name| symbols.lookup(name)).collect()))
    };
    commands.filter_map(of).collect()
}

/// True if the result of SQL may go into the variable of this name: the name, without the prefix, is one
/// of a selected column.
fn stores(sql: &Sql, name: &str) -> bool {
    let (Store::Gset { prefix } | Store::Aset { prefix }) = &sql.store else { return false };
    let Some(column) = name.strip_prefix(prefix.as_str()) else { return false };
    let text = sql.as_written().to_ascii_lowercase();
    let words: Vec<&str> = text
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'))
        .filter(|word| !word.is_empty())
        .collect();
    let column = column.to_ascii_lowercase();
    let mut selected = false;
    words.iter().enumerate().any(|(at, word)| {
        match *word {
            "select" | "returning" => selected = true,
            "from" | "where" | "set" => selected = false,
            _ => {}
        }
        *word == column && (selected || at > 0 && words[at - 1] == "as")
    })
}

#[cfg(test)]
mod tests {
    use super::super::program::tests::programs;
    use super::*;

    /// The commands that are sent in each way.
    fn sent(text: &str) -> BTreeSet<Vec<usize>> {
        let programs = programs(text);
        let predictor = Predictor::new(&programs, &[None]);
        let ways = predictor.ways(0);
        let of = |way: &Choice| -> BTreeSet<usize> {
            predictor.of(0, way).sent.iter().flatten().map(|(at, _)| *at).collect()
        };
        ways.iter().map(|way| of(way).into_iter().collect()).collect()
    }

    fn two_ways(condition: &str) {
        let text = format!("{condition}\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\n");
        assert_eq!(sent(&text).len(), 2, "{text}");
    }

    #[test]
    fn each_branch_is_found() {
        two_ways("\\set x random(1, 100)\n\\if :x <= 80");
        two_ways("\\set x random(1, 1000)\n\\if :x > 990");
        two_ways("\\set x random(1, 1000000)\n\\if :x = 777777");
        two_ways("\\set x random_zipfian(1, 100000, 1.2)\n\\if :x > 99990");
        two_ways("\\set x random(1, 100000)\n\\set y hash(:x) % 100\n\\if :y = 7");
        two_ways("\\set x random(1, 10)\n\\set y random(1, 10)\n\\if :x = 3 and :y = 8");
        two_ways("\\set x random(1, 10)\n\\set y random(1, 10)\n\\set z :x * 10 + :y\n\\if :z = 37");
        two_ways("\\if random(1, 100) > 97");
        two_ways("\\if :client_id % 2 = 1");
    }

    #[test]
    fn nested_branches_are_found() {
        let text = "\\set x random(1, 50)\n\\set y random(1, 50)\n\\if :x > 45\nSELECT 1;\n\\if :y = 7\nSELECT 2;\n\
                    \\elif :y = 9\nSELECT 3;\n\\endif\n\\else\nSELECT 4;\n\\endif\n";
        assert_eq!(sent(text).len(), 4, "{:?}", sent(text));
    }

    #[test]
    fn what_the_server_decides_is_no_way_of_its_own() {
        let text = "\\set x random(1, 9)\nSELECT count(*) AS n FROM t WHERE id = :x \\gset\n\\if :n >= 2\n\
                    UPDATE t SET v = 1;\n\\endif\n";
        assert_eq!(sent(text).len(), 1);
        let mixed = text.replace(":n >= 2", ":n >= 2 and :x = 7");
        assert_eq!(sent(&mixed).len(), 2, "unless the number has to be another one, too");
    }

    #[test]
    fn few_numbers_are_fixed() {
        let programs =
            programs("\\set x random(1, 100)\n\\set id random(1, 9)\n\\if :x = 80\nSELECT :id;\n\\endif\n");
        let ways = Predictor::new(&programs, &[None]).ways(0);
        assert_eq!(ways, [Choice::new(), Choice::from([((0, 0), Number::Is(80))])]);
    }

    #[test]
    fn numbers_that_sql_compares_with_are_found() {
        let programs = programs(
            "\\set x random(1, 1000)\nSELECT v1 FROM t2 WHERE id = :x AND :x < 900 AND w > 1.5 AND v <> 5000;\n",
        );
        assert_eq!(near_sql(&programs.programs[0], 1, 1000), [1, 899, 900, 901, 1000]);
        assert_eq!(near_sql(&programs.programs[0], 1, 10), [0; 0]);
    }

    #[test]
    fn clients_that_take_a_way_differ() {
        let programs = programs("\\if :client_id % 2 = 1\nSELECT 1;\n\\endif\n");
        let predictor = Predictor::new(&programs, &[None]);
        let odd = predictor.ways(0)[1].clone();
        let both = predictor.with_clients(&[0, 0], &[odd.clone(), odd]).unwrap();
        let clients: Vec<Number> = both.iter().map(|choice| choice[&CLIENT]).collect();
        assert_eq!(clients, [Number::Is(1), Number::Is(3)]);
    }
}
