//! The ways through a script, as its commands are walked through.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_robustness::{Branch, Operation, Program, StatementId, Strength, Term};
use isobench_script::Statement as StatementKind;
use isobench_script::{Command, CommandKind, Expr, Script, Slot, Sql, Store, Symbols};
use isobench_sql::{Catalog, RelationId};

use super::held::{Sets, writes_table};
use super::tables::{Changing, Freed, Replaced, Versions, hidden_checks};
use super::used::Used;
use super::variables::Variables;
use super::way::Way;
use super::{MOST_BRANCHES, OTHER_TABLES, Read, Rows, Stored, slots_given, unknown};
use crate::statement::{Access, Deed, Operand, anything};

pub(super) struct Walk<'a> {
    pub(super) script: &'a Script,
    pub(super) symbols: &'a Symbols,
    pub(super) catalog: &'a Catalog,
    pub(super) commands: &'a [Vec<Read>],
    pub(super) changing: &'a Changing,
    pub(super) replaced: &'a Replaced,
    pub(super) freed: &'a Freed,
    pub(super) versions: &'a Versions,
    pub(super) sets: &'a Sets,
    pub(super) variables: &'a Variables,
    pub(super) used: &'a Used,
    pub(super) rows: &'a Rows,
    /// Commands that are left out, because the same were executed before and will be once more.
    pub(super) skipped: BTreeSet<usize>,
}

/// Facts on an access beyond the access itself.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    /// It certainly finds a row.
    pub(super) found: bool,
    /// It may look for its row before its statement waits for another one.
    pub(super) early: bool,
}

/// True for what waits for rows that others have locked.
fn may_wait(deed: Deed) -> bool {
    !matches!(deed, Deed::Read | Deed::Pick(_) | Deed::Refer | Deed::Vacant)
}

impl Walk<'_> {
    /// The script's program; `None` if there are too many ways. Adds to [`Templates::stands_for`].
    pub(super) fn program(
        &self,
        stands_for: &mut BTreeMap<StatementId, BTreeSet<StatementId>>,
    ) -> Option<Program> {
        let ways = self.through(0..self.commands.len(), vec![Way::default()])?;
        let mut branches: Vec<Branch> = Vec::new();
        for mut way in ways {
            way.end(true, self.used);
            for [read, change] in way.moved {
                stands_for.entry(read).or_default().insert(change);
            }
            for branch in way.ended {
                let same = |known: &Branch| {
                    known.operations == branch.operations
                        && known.distinct == branch.distinct
                        && known.ascending == branch.ascending
                        && known.ranges == branch.ranges
                };
                if !branch.operations.is_empty() && !branches.iter().any(same) {
                    branches.push(branch);
                }
            }
        }
        // Names are unique, although a script may have several transactions.
        let mut names = BTreeMap::new();
        for branch in &mut branches {
            let times: &mut usize = names.entry(branch.name.clone()).or_default();
            *times += 1;
            if *times > 1 && branch.name.is_empty() {
                branch.name = format!("transaction {times}");
            } else if *times > 1 {
                let times = format!(" ({times})");
                branch.name.push_str(&times);
            }
        }
        (branches.len() <= MOST_BRANCHES).then(|| Program::new(&self.script.name, branches))
    }

    /// What its statements do on any way that no level guards.
    pub(super) fn unguarded(&self) -> Vec<Operation> {
        let mut found: Vec<Operation> = Vec::new();
        for read in self.commands.iter().flatten() {
            let hidden = hidden_checks(read, self.catalog);
            let accesses = read.accesses.iter().flatten().chain(read.code.iter().flatten()).chain(&hidden);
            let ways =
                accesses.flat_map(|access| self.access(Way::default(), access, How::default(), &read.at));
            let newest = ways.flat_map(|way| way.operations).filter(|one| one.newest);
            for operation in newest.chain(read.unguarded.operations(&read.at, 1)) {
                if !found.contains(&operation) {
                    found.push(operation);
                }
            }
        }
        found
    }

    /// The ways through a range of commands.
    fn through(&self, range: Range<usize>, mut ways: Vec<Way>) -> Option<Vec<Way>> {
        let mut at = range.start;
        while at < range.end {
            let command = &self.script.commands[at];
            match &command.kind {
                CommandKind::If(first) => {
                    ways = self.conditional(at, first.end, ways)?;
                    at = first.end;
                }
                CommandKind::Set { slot, expr } => {
                    for way in &mut ways {
                        self.set(way, *slot, expr);
                    }
                }
                CommandKind::SetShell { slot, .. } => {
                    for way in &mut ways {
                        way.assign(*slot, self.symbols);
                    }
                }
                CommandKind::StartPipeline => ways.iter_mut().for_each(|way| way.in_pipeline = true),
                CommandKind::SyncPipeline | CommandKind::EndPipeline => {
                    for way in &mut ways {
                        way.in_pipeline &= matches!(command.kind, CommandKind::SyncPipeline);
                        if !way.in_block {
                            way.end(true, self.used);
                        }
                    }
                }
                CommandKind::Sql(sql) if self.skipped.contains(&at) => {
                    if let Store::Gset { prefix } | Store::Aset { prefix } = &sql.store {
                        for read in &self.commands[at] {
                            for way in &mut ways {
                                self.forget(way, prefix, read);
                            }
                        }
                    }
                }
                CommandKind::Sql(sql) => ways = self.sql(at, sql, ways)?,
                _ => {}
            }
            at += 1;
        }
        Some(ways)
    }

    /// `\set` on a way.
    fn set(&self, way: &mut Way, slot: Slot, expr: &Expr) {
        match (expr.variable(), expr.integer()) {
            // Of a text it is the number in it.
            (Some(other), _) if self.variables.is_integer(other) => {
                let term = way.value(other, self.symbols);
                way.values.insert(slot, term);
            }
            (None, Some(number)) => {
                way.values.insert(slot, Term::Constant(number.to_string()));
            }
            _ => {
                let integers =
                    |other: &Slot| self.variables.is_integer(*other) && self.variables.is_integer(slot);
                let above = expr.above().filter(integers).map(|other| way.value(other, self.symbols));
                way.assign(slot, self.symbols);
                let Term::Variable(own) = way.value(slot, self.symbols) else { return };
                if let Some(range) = expr.range().filter(|_| self.variables.is_integer(slot)) {
                    way.ranges.insert(own.clone(), range);
                }
                if let Some(Term::Variable(lower)) = above {
                    way.lower.insert(own, lower);
                }
            }
        }
    }

    /// The ways through the statements of a command; `None` if there are too many.
    fn sql(&self, at: usize, sql: &Sql, mut ways: Vec<Way>) -> Option<Vec<Way>> {
        for (place, read) in self.commands[at].iter().enumerate() {
            ways = self.statement(read, ways, self.goes_on(at, place))?;
            let last = place + 1 == self.commands[at].len();
            let prefix = match &sql.store {
                Store::Gset { prefix } if last => Some(prefix),
                Store::Aset { prefix } => Some(prefix),
                _ => None,
            };
            if let Some(prefix) = prefix {
                let found = matches!(sql.store, Store::Gset { .. });
                for way in &mut ways {
                    self.stored(way, prefix, read, found);
                }
            } else if read.returns_rows() {
                for way in &mut ways {
                    way.shows = true;
                }
            }
            if ways.iter().map(|way| way.ended.len() + 1).sum::<usize>() > 4 * MOST_BRANCHES {
                return None;
            }
        }
        // Outside of a block the statements of a command are one transaction.
        for way in ways.iter_mut().filter(|way| !way.in_block && !way.in_pipeline) {
            way.end(true, self.used);
        }
        Some(ways)
    }

    /// The ways through the arms of a conditional from its `\if` to its `\endif`.
    fn conditional(&self, first: usize, end: usize, ways: Vec<Way>) -> Option<Vec<Way>> {
        let matters = (first..end).any(|at| {
            let of_pipeline = matches!(
                self.script.commands[at].kind,
                CommandKind::StartPipeline | CommandKind::SyncPipeline | CommandKind::EndPipeline
            );
            of_pipeline || !self.commands[at].is_empty() && !self.skipped.contains(&at)
        });
        if !matters {
            return Some(self.only_assigned(first..end, ways));
        }
        let (mut all, mut arm, mut otherwise) = (Vec::new(), first, true);
        while arm < end {
            let (CommandKind::If(branch) | CommandKind::Elif(branch) | CommandKind::Else(branch)) =
                &self.script.commands[arm].kind
            else {
                break;
            };
            otherwise &= branch.cond.is_some();
            let mut taken = ways.clone();
            let line = self.script.commands[arm].line;
            for way in &mut taken {
                way.name.push(format!("\\{} of line {line}", self.script.commands[arm].kind.name()));
            }
            // What is so if this arm is taken.
            let apart = branch.cond.as_ref().and_then(Expr::apart);
            if let Some((one, other)) = apart {
                for way in &mut taken {
                    let other = way.value(other, self.symbols);
                    let one = way.value(one, self.symbols);
                    way.differ(one, other);
                }
            }
            all.extend(self.through(arm + 1..branch.next, taken)?);
            arm = branch.next;
        }
        if otherwise {
            let line = self.script.commands[first].line;
            let mut none = ways;
            for way in &mut none {
                way.name.push(format!("without the \\if of line {line}"));
            }
            all.extend(none);
        }
        // Ways that have done the same and know the same are one.
        let mut kept: Vec<Way> = Vec::new();
        for way in all {
            if !kept.iter().any(|known| known.is_like(&way)) {
                kept.push(way);
            }
        }
        (kept.len() <= 4 * MOST_BRANCHES).then_some(kept)
    }

    /// The ways through commands of which nothing matters but what they assign.
    fn only_assigned(&self, commands: Range<usize>, mut ways: Vec<Way>) -> Vec<Way> {
        let assigned = commands.flat_map(|at| match &self.script.commands[at].kind {
            CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => vec![*slot],
            CommandKind::Sql(sql) => match &sql.store {
                Store::Gset { prefix } | Store::Aset { prefix } => {
                    slots_given(prefix, &self.commands[at], self.symbols)
                }
                Store::None => Vec::new(),
            },
            _ => Vec::new(),
        });
        for slot in assigned.collect::<BTreeSet<Slot>>() {
            for way in &mut ways {
                way.assign(slot, self.symbols);
            }
        }
        ways
    }

    /// Gives all variables that a statement's result may become values that aren't known.
    fn forget(&self, way: &mut Way, prefix: &str, read: &Read) {
        for slot in slots_given(prefix, std::slice::from_ref(read), self.symbols) {
            way.assign(slot, self.symbols);
            way.given.insert(slot);
        }
    }

    /// Assigns what a statement returns to variables; `found` if it certainly returns something.
    fn stored(&self, way: &mut Way, prefix: &str, read: &Read, found: bool) {
        let Some(columns) = &read.gives else {
            self.forget(way, prefix, read);
            return;
        };
        let slot = |stored: &Stored| self.symbols.lookup(&format!("{prefix}{}", stored.name));
        let all: Vec<(Slot, &Stored)> =
            columns.iter().filter_map(|stored| Some((slot(stored)?, stored))).collect();
        // What they are equal to is of before.
        let mut term = |known: &Operand| way.term(known, self.symbols);
        let terms: Vec<Option<Term>> = all.iter().map(|(_, one)| one.known.as_ref().map(&mut term)).collect();
        way.given.extend(all.iter().map(|(slot, _)| *slot));
        for ((slot, stored), term) in all.into_iter().zip(terms) {
            match (term, &stored.column) {
                (Some(term), _) if found => {
                    way.values.insert(slot, term);
                }
                (None, Some(column)) if found => {
                    way.assign(slot, self.symbols);
                    let value = way.value(slot, self.symbols);
                    let table = self.catalog.relations[column.table].qualified();
                    way.note_read(value, &table, &column.name, &read.at);
                }
                _ => way.assign(slot, self.symbols),
            }
        }
        if found {
            self.note_picked(way, prefix, read);
        }
    }

    /// Notes the key of the row that a statement has picked, if that is in its result.
    fn note_picked(&self, way: &mut Way, prefix: &str, read: &Read) {
        let picks = |access: &&Access| matches!(access.deed, Deed::Pick(_));
        let Some(access) = read.accesses.iter().flatten().find(picks) else { return };
        let relation = &self.catalog.relations[access.table];
        let given = |name: &String| {
            let of = |one: &&Stored| {
                one.column.as_ref().is_some_and(|own| own.table == access.table && own.name == *name)
            };
            let stored = read.gives.iter().flatten().find(of)?;
            self.symbols.lookup(&format!("{prefix}{}", stored.name))
        };
        let slots = |key: &Vec<usize>| {
            let names = key.iter().map(|place| &relation.columns[*place].name);
            names.map(|name| Some((name.clone(), given(name)?))).collect::<Option<Vec<_>>>()
        };
        let Some(slots) = relation.keys().find_map(slots).filter(|_| !relation.has_children()) else {
            return;
        };
        let key = slots.into_iter().map(|(name, slot)| (name, way.value(slot, self.symbols))).collect();
        way.note_picked(&read.at, &relation.qualified(), key);
    }

    /// True if something happens after a statement that a failure before it would prevent.
    fn goes_on(&self, at: usize, place: usize) -> bool {
        let later = self.commands[at + 1..].iter().flatten();
        let shell = |command: &Command| matches!(command.kind, CommandKind::Shell { .. });
        self.commands[at][place + 1..].iter().chain(later).any(Read::touches)
            || self.script.commands[at + 1..].iter().any(shell)
    }

    /// The ways after a statement; `None` if there are too many. `goes_on`: see [`Walk::goes_on`].
    fn statement(&self, read: &Read, ways: Vec<Way>, goes_on: bool) -> Option<Vec<Way>> {
        let mut ways = ways;
        match read.kind {
            StatementKind::Begin => {
                for way in &mut ways {
                    way.in_block = true;
                }
            }
            StatementKind::Commit | StatementKind::Rollback => {
                let kept = read.kind == StatementKind::Commit;
                for way in &mut ways {
                    // What it read decided whether the script got as far as this.
                    way.tells |= !kept && goes_on;
                    way.end(kept, self.used);
                    way.in_block = read.chains;
                }
            }
            _ => return self.on_rows(read, ways),
        }
        Some(ways)
    }

    /// The ways after a statement that neither begins nor ends a transaction.
    fn on_rows(&self, read: &Read, ways: Vec<Way>) -> Option<Vec<Way>> {
        let mut ways = ways;
        if let Some((mark, name)) = &read.savepoint {
            for way in &mut ways {
                way.mark(*mark, name);
            }
        }
        let accesses = self.accesses_of(read);
        if read.is_unknown() {
            for way in &mut ways {
                let statement = way.statement;
                way.operations.extend(unknown(OTHER_TABLES, &read.at, statement));
            }
        }
        for way in &mut ways {
            way.tells |= read.tells();
            for lock in &read.locks {
                way.lock(lock, self.symbols, &read.at);
            }
            for table in &read.table_locks {
                way.lock_table(&self.catalog.relations[*table].qualified(), Strength::Update, &read.at);
            }
        }
        self.lock_written(read, &accesses, &mut ways);
        if let (Err(_), Some(code)) = (&read.accesses, &read.code) {
            // Each of its statements may come before each other one, and has a snapshot of its own.
            ways = self.all(read, code, ways)?;
            for way in &mut ways {
                way.statement += 2;
            }
        }
        ways = self.all(read, &accesses, ways)?;
        for way in &mut ways {
            way.operations.extend(read.unguarded.operations(&read.at, way.statement + 1));
            way.statement += 2;
        }
        Some(ways)
    }

    /// The accesses of a statement, from its text or from the code that it reaches.
    fn accesses_of(&self, read: &Read) -> Vec<Access> {
        let checks = || hidden_checks(read, self.catalog);
        match (&read.accesses, &read.code) {
            (Ok(accesses), _) => self.sets.without_order(accesses.clone(), self.catalog),
            (Err(_), Some(code)) => code.iter().cloned().chain(checks()).collect(),
            (Err(_), None) => {
                let all = |table: &RelationId| [Deed::Read, Deed::Update].map(|deed| anything(*table, deed));
                read.tables.iter().flat_map(all).chain(checks()).collect()
            }
        }
    }

    /// The ways after these accesses of a statement; `None` if there are too many.
    fn all(&self, read: &Read, accesses: &[Access], mut ways: Vec<Way>) -> Option<Vec<Way>> {
        let waits = accesses.iter().filter(|access| may_wait(access.deed)).count();
        for access in accesses {
            // Where it waits more than once, a row may be looked for before it waits for another one.
            let known = read.accesses.is_ok() && self.rows.found.contains(&read.at);
            let finds = known && may_wait(access.deed);
            let how = How { found: read.finds && access.in_result || finds, early: waits > 1 };
            ways = ways.into_iter().flat_map(|way| self.access(way, access, how, &read.at)).collect();
            if ways.len() > 4 * MOST_BRANCHES {
                return None;
            }
        }
        Some(ways)
    }

    /// Takes the locks of tables that a statement writes, if a script locks these as a whole.
    fn lock_written(&self, read: &Read, accesses: &[Access], ways: &mut [Way]) {
        let written: BTreeSet<RelationId> =
            accesses.iter().filter(|access| writes_table(access)).map(|access| access.table).collect();
        for table in written.intersection(&self.sets.locked).filter(|_| read.accesses.is_ok()) {
            let table = self.catalog.relations[*table].qualified();
            // It conflicts with LOCK, not with other writers, and comes before the statement's snapshot.
            for way in ways.iter_mut() {
                way.lock_table(&table, Strength::KeyShare, &read.at);
                way.statement += 2;
            }
        }
    }
}
