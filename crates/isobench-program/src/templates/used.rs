//! Variables whose values are used outside of the transaction that read them.
//!
//! A transaction that reads, and then is refused or rolled back, is as none: unless somebody uses what it read. That
//! may be a later transaction of the script, its next run, or another script, since variables belong to the client
//! (pgbench manual, "Variables"); or a program outside.

use std::collections::{BTreeMap, BTreeSet};

use isobench_script::Statement as StatementKind;
use isobench_script::{Argument, Branch, CommandKind, Expr, Script, Slot, Store, Symbols};

use super::repeated::{Arm, arms};
use super::{Read, slots_given};

/// Such variables.
#[derive(Debug, Default)]
pub(super) struct Used(BTreeSet<Slot>);

impl Used {
    /// Those of scripts whose statements have been read.
    pub(super) fn of(scripts: &[Script], symbols: &Symbols, read: &[Vec<Vec<Read>>]) -> Used {
        let mut used = BTreeSet::new();
        let mut follows: BTreeMap<Slot, BTreeSet<Slot>> = BTreeMap::new();
        for (script, commands) in scripts.iter().zip(read) {
            let events = Events::of(script, symbols, commands);
            used.extend(events.escaping());
            for (slot, sources) in &events.sources {
                follows.entry(*slot).or_default().extend(sources);
            }
        }
        // A value that is computed from others carries them.
        loop {
            let behind: BTreeSet<Slot> =
                used.iter().filter_map(|slot| follows.get(slot)).flatten().copied().collect();
            if behind.is_subset(&used) {
                return Used(used);
            }
            used.extend(behind);
        }
    }

    /// True if one of these is used outside of the transaction that gives it.
    pub(super) fn any_of(&self, slots: &BTreeSet<Slot>) -> bool {
        !self.0.is_disjoint(slots)
    }
}

/// Where a script uses and assigns variables. Places are those of its commands.
#[derive(Default)]
struct Events {
    arms: Vec<Vec<Arm>>,
    /// The transaction of each command, before and after it.
    transactions: Vec<(usize, usize)>,
    uses: Vec<(Slot, usize)>,
    /// Assignments by `\set`, or by `\gset`, which always gives a value.
    sets: Vec<(Slot, usize)>,
    gives: Vec<(Slot, usize)>,
    /// Those of `\aset`, which may give none.
    may_give: Vec<(Slot, usize)>,
    /// Variables that leave the client, or that decide on other transactions.
    outside: BTreeSet<Slot>,
    /// The variables on which an assigned one depends.
    sources: Vec<(Slot, Vec<Slot>)>,
}

impl Events {
    fn of(script: &Script, symbols: &Symbols, commands: &[Vec<Read>]) -> Events {
        let mut events =
            Events { arms: arms(script), transactions: transactions(script, commands), ..Events::default() };
        // The variables in the conditions of the open conditionals, with the places of their `\if`.
        let mut open: Vec<(usize, Vec<Slot>)> = Vec::new();
        for (place, command) in script.commands.iter().enumerate() {
            let within = |open: &[(usize, Vec<Slot>)]| -> Vec<Slot> {
                open.iter().flat_map(|(_, slots)| slots.iter().copied()).collect()
            };
            match &command.kind {
                CommandKind::Set { slot, expr } => {
                    let variables = expr.variables();
                    events.uses.extend(variables.iter().map(|slot| (*slot, place)));
                    events.sets.push((*slot, place));
                    events.sources.push((*slot, variables.into_iter().chain(within(&open)).collect()));
                }
                CommandKind::If(branch) | CommandKind::Elif(branch) => {
                    let slots = condition(branch);
                    events.uses.extend(slots.iter().map(|slot| (*slot, place)));
                    match (&command.kind, open.last_mut()) {
                        (CommandKind::Elif(_), Some((_, known))) => known.extend(slots),
                        _ => open.push((place, slots)),
                    }
                }
                CommandKind::Endif => drop(open.pop()),
                CommandKind::Shell { args } => events.outside.extend(variables(args).chain(within(&open))),
                CommandKind::SetShell { slot, args } => {
                    events.outside.extend(variables(args).chain(within(&open)));
                    events.sets.push((*slot, place));
                }
                CommandKind::Sql(sql) => {
                    events.uses.extend(sql.params.iter().map(|slot| (*slot, place)));
                    let given = match &sql.store {
                        Store::Gset { prefix } | Store::Aset { prefix } => {
                            slots_given(prefix, &commands[place], symbols)
                        }
                        Store::None => Vec::new(),
                    };
                    let certain = matches!(sql.store, Store::Gset { .. });
                    for slot in given {
                        let all = if certain { &mut events.gives } else { &mut events.may_give };
                        all.push((slot, place));
                        events.sources.push((slot, within(&open)));
                    }
                    // A value that decides whether another transaction does something is used there.
                    for (at, slots) in &open {
                        if events.transactions[*at].1 != events.transactions[place].0 {
                            events.outside.extend(slots);
                        }
                    }
                }
                _ => {}
            }
        }
        events
    }

    /// The variables that are used where their value may be another transaction's, or that leave the client.
    fn escaping(&self) -> BTreeSet<Slot> {
        let free = self.uses.iter().filter(|(slot, place)| !self.is_own(*slot, *place));
        free.map(|(slot, _)| *slot).chain(self.outside.iter().copied()).collect()
    }

    /// True if the value of a variable at a place certainly comes from the same transaction, or from `\set`.
    fn is_own(&self, slot: Slot, place: usize) -> bool {
        let before = |(own, at): &&(Slot, usize)| *own == slot && *at < place;
        let certain = |at: usize| self.arms[at].iter().all(|arm| self.arms[place].contains(arm));
        let given_here = self
            .gives
            .iter()
            .chain(&self.sets)
            .filter(before)
            .any(|(_, at)| certain(*at) && self.transactions[*at].1 == self.transactions[place].0);
        let last_given = self.gives.iter().chain(&self.may_give).filter(before).map(|(_, at)| *at).max();
        let last_set = self.sets.iter().filter(before).map(|(_, at)| *at).filter(|at| certain(*at)).max();
        given_here || last_set.is_some_and(|set| last_given.is_none_or(|given| given < set))
    }
}

/// For each command the number of the transaction in which its first statement is, and of the one after it. Each arm of
/// a conditional begins in that before it. Outside of blocks each statement has its own.
fn transactions(script: &Script, commands: &[Vec<Read>]) -> Vec<(usize, usize)> {
    let mut numbers = Numbers { next: 1, now: 0, in_block: false };
    let mut open: Vec<Conditional> = Vec::new();
    let mut found = Vec::new();
    for (place, command) in script.commands.iter().enumerate() {
        let mut first = None;
        match &command.kind {
            CommandKind::If(_) => open.push(Conditional { before: numbers, has_else: false, in_block: true }),
            CommandKind::Elif(_) | CommandKind::Else(_) => {
                if let Some(conditional) = open.last_mut() {
                    conditional.in_block &= numbers.in_block;
                    conditional.has_else |= matches!(command.kind, CommandKind::Else(_));
                    numbers = Numbers { next: numbers.next, ..conditional.before };
                }
            }
            CommandKind::Endif => {
                if let Some(Conditional { before, has_else, in_block }) = open.pop()
                    && numbers.next > before.next
                {
                    // An arm ended a transaction, and another one may not have.
                    numbers.in_block &= in_block && (has_else || before.in_block);
                    numbers.end();
                }
            }
            CommandKind::Sql(_) => {
                for read in &commands[place] {
                    let in_block = numbers.in_block;
                    match read.kind {
                        StatementKind::Begin => numbers = Numbers { in_block: true, ..numbers },
                        StatementKind::Commit | StatementKind::Rollback => {
                            first.get_or_insert(numbers.now);
                            numbers.in_block = false;
                        }
                        _ => {}
                    }
                    if !in_block || !numbers.in_block {
                        numbers.end();
                    }
                    first.get_or_insert(numbers.now);
                }
            }
            _ => {}
        }
        found.push((first.unwrap_or(numbers.now), numbers.now));
    }
    found
}

/// Where a walk over commands is.
#[derive(Clone, Copy)]
struct Numbers {
    next: usize,
    now: usize,
    in_block: bool,
}

impl Numbers {
    /// The present transaction ends, and another one begins.
    fn end(&mut self) {
        (self.now, self.next) = (self.next, self.next + 1);
    }
}

/// A conditional whose arms are walked through.
struct Conditional {
    before: Numbers,
    has_else: bool,
    /// All arms up to here end within a block.
    in_block: bool,
}

fn condition(branch: &Branch) -> Vec<Slot> {
    branch.cond.as_ref().map(Expr::variables).unwrap_or_default()
}

fn variables(arguments: &[Argument]) -> impl Iterator<Item = Slot> + '_ {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Variable(slot) => Some(*slot),
        Argument::Literal(_) => None,
    })
}
