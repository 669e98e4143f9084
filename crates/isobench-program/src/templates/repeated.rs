//! Commands that a transaction executes again and again with other values, as in a loop that is written out.
//!
//! A cycle of dependencies passes through at most two operations of a transaction. So the first and the last
//! execution stand for all, if they do the same with any other rows, and if the same is executed between any two of
//! them: then they have the same locks before them.

use std::collections::{BTreeMap, BTreeSet};

use isobench_script::Statement as StatementKind;
use isobench_script::{CommandKind, Expr, Script, Slot, Sql, Store, Symbols};

use super::{Read, slots_given};

/// The commands that are executed between the first and the last time of their text in a transaction, with
/// these two.
pub(super) fn repeated(
    script: &Script,
    symbols: &Symbols,
    commands: &[Vec<Read>],
) -> BTreeMap<usize, [usize; 2]> {
    if commands.iter().flatten().any(|read| read.savepoint.is_some()) {
        return BTreeMap::new();
    }
    let arms = arms(script);
    let mut times: BTreeMap<(usize, Vec<&str>, String), Vec<usize>> = BTreeMap::new();
    let mut transaction = 0;
    for (place, statements) in commands.iter().enumerate() {
        let ends = |read: &Read| !matches!(read.kind, StatementKind::Other);
        transaction += statements.iter().filter(|read| ends(read)).count();
        if !statements.is_empty() && !statements.iter().any(ends) {
            let texts = statements.iter().map(|read| read.text.as_str()).collect();
            // What becomes of the result is the same each time.
            let store = match &script.commands[place].kind {
                CommandKind::Sql(sql) => format!("{:?}", sql.store),
                _ => String::new(),
            };
            times.entry((transaction, texts, store)).or_default().push(place);
        }
    }
    let mut found = BTreeMap::new();
    for places in times.into_values() {
        let [first, between @ .., last] = places.as_slice() else { continue };
        let windows: Vec<_> = places.windows(2).map(|pair| texts(commands, pair[0]..pair[1])).collect();
        let periodic = windows.windows(2).all(|pair| pair[0] == pair[1]);
        let accesses = |place: usize| commands[place].iter().map(|read| &read.accesses);
        let same = places.iter().all(|place| accesses(*place).eq(accesses(*first)));
        if between.is_empty()
            || !periodic
            || !same
            || !(Assigned { script, symbols, commands }).alike(&places)
        {
            continue;
        }
        let along = |place: &&usize| {
            [first, last].into_iter().all(|other| goes_along(script, &arms[*other], &arms[**place]))
        };
        found.extend(between.iter().filter(along).map(|place| (*place, [*first, *last])));
    }
    found
}

/// The texts of the commands on rows in a part of a script.
fn texts(commands: &[Vec<Read>], range: std::ops::Range<usize>) -> Vec<Vec<&str>> {
    let found = commands[range].iter().filter(|command| !command.is_empty());
    found.map(|command| command.iter().map(|read| read.text.as_str()).collect()).collect()
}

/// An arm of a conditional: the places of its `\if`, and of the command that begins the arm.
pub(super) type Arm = (usize, usize);

/// For each command, the arms of conditionals that it is in, from the outermost.
pub(super) fn arms(script: &Script) -> Vec<Vec<Arm>> {
    let mut open: Vec<Arm> = Vec::new();
    let mut all = Vec::new();
    for (place, command) in script.commands.iter().enumerate() {
        match &command.kind {
            CommandKind::If(_) => open.push((place, place)),
            CommandKind::Elif(_) | CommandKind::Else(_) => {
                if let Some((_, arm)) = open.last_mut() {
                    *arm = place;
                }
            }
            CommandKind::Endif => drop(open.pop()),
            _ => {}
        }
        all.push(open.clone());
    }
    all
}

/// True if whatever is executed along with a command in the arms `own` may be executed along with one in
/// `other`, too: they are in no two arms of one conditional, and the other one's further arms require
/// nothing of variables that programs know.
fn goes_along(script: &Script, other: &[Arm], own: &[Arm]) -> bool {
    other.iter().all(|(conditional, arm)| match own.iter().find(|(same, _)| same == conditional) {
        Some((_, taken)) => taken == arm,
        None => match &script.commands[*arm].kind {
            CommandKind::If(branch) | CommandKind::Elif(branch) | CommandKind::Else(branch) => {
                branch.cond.as_ref().and_then(Expr::apart).is_none()
            }
            _ => false,
        },
    })
}

/// How a value comes to a variable, as far as programs know.
#[derive(Debug, Clone, PartialEq, Eq)]
enum How {
    /// It may be any.
    Free,
    /// By this expression.
    Expression(String),
    /// By these statements.
    Result(Vec<String>),
}

/// The assignments of a script.
struct Assigned<'s> {
    script: &'s Script,
    symbols: &'s Symbols,
    commands: &'s [Vec<Read>],
}

impl Assigned<'_> {
    /// True if the variables of a command that is executed at these places get their values in the same way
    /// each time.
    fn alike(&self, places: &[usize]) -> bool {
        let CommandKind::Sql(sql) = &self.script.commands[places[0]].kind else { return false };
        let slots = self.behind(sql.params.iter().copied().collect());
        let windows: Vec<Vec<(Slot, How)>> =
            places.windows(2).map(|pair| self.within(pair[0]..pair[1], &slots)).collect();
        let before = self.within(0..places[0], &slots);
        windows.iter().all(|window| *window == windows[0]) && before.ends_with(&windows[0])
    }

    /// Variables with those that they are known to follow from.
    fn behind(&self, mut slots: BTreeSet<Slot>) -> BTreeSet<Slot> {
        loop {
            let before = slots.len();
            for (place, command) in self.script.commands.iter().enumerate() {
                match &command.kind {
                    CommandKind::Set { slot, expr } if slots.contains(slot) => {
                        slots.extend(expr.variable().or_else(|| expr.above()));
                    }
                    CommandKind::Sql(sql) if self.gives(place).iter().any(|slot| slots.contains(slot)) => {
                        slots.extend(sql.params.iter().copied());
                    }
                    _ => {}
                }
            }
            if slots.len() == before {
                return slots;
            }
        }
    }

    /// The variables that a command's result may become.
    fn gives(&self, place: usize) -> Vec<Slot> {
        match &self.script.commands[place].kind {
            CommandKind::Sql(Sql { store: Store::Gset { prefix } | Store::Aset { prefix }, .. }) => {
                slots_given(prefix, &self.commands[place], self.symbols)
            }
            _ => Vec::new(),
        }
    }

    /// The assignments of variables in a part of the script; the same one twice in a row counts once.
    fn within(&self, range: std::ops::Range<usize>, slots: &BTreeSet<Slot>) -> Vec<(Slot, How)> {
        let mut found: Vec<(Slot, How)> = Vec::new();
        for place in range {
            match &self.script.commands[place].kind {
                CommandKind::Set { slot, expr } if slots.contains(slot) => {
                    let free =
                        expr.variable().is_none() && expr.integer().is_none() && expr.above().is_none();
                    let how = if free { How::Free } else { How::Expression(format!("{expr:?}")) };
                    found.push((*slot, how));
                }
                CommandKind::SetShell { slot, .. } if slots.contains(slot) => found.push((*slot, How::Free)),
                CommandKind::Sql(_) => {
                    let texts: Vec<String> =
                        self.commands[place].iter().map(|read| read.text.clone()).collect();
                    let given = self.gives(place).into_iter().filter(|slot| slots.contains(slot));
                    found.extend(given.map(|slot| (slot, How::Result(texts.clone()))));
                }
                _ => {}
            }
        }
        found.dedup();
        found
    }
}
