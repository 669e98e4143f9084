//! The ways through a script, as its commands are walked through.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_robustness::{Branch, Columns, Kind, Operation, Program, Strength, Term};
use isobench_script::Statement as StatementKind;
use isobench_script::{Command, CommandKind, Expr, Script, Slot, Store, Symbols};

use super::tables::{Changing, Freed, Replaced, Versions, hidden_checks};
use super::used::Used;
use super::variables::Variables;
use super::way::Way;
use super::{MOST_BRANCHES, OTHER_TABLES, Read, Rows, Stored, line, slots_given, unknown};
use crate::statement::{Access, Deed, Operand, anything};
use isobench_sql::{Catalog, RelationId, RelationKind};

pub(super) struct Walk<'a> {
    pub(super) script: &'a Script,
    pub(super) symbols: &'a Symbols,
    pub(super) catalog: &'a Catalog,
    pub(super) commands: &'a [Vec<Read>],
    pub(super) changing: &'a Changing,
    pub(super) replaced: &'a Replaced,
    pub(super) freed: &'a Freed,
    pub(super) versions: &'a Versions,
    pub(super) variables: &'a Variables,
    pub(super) used: &'a Used,
    pub(super) rows: &'a Rows,
    /// Commands that are left out, because the same were executed before and will be once more.
    pub(super) skipped: BTreeSet<usize>,
}

/// What is known of an access, but for itself.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    /// It certainly finds a row.
    pub(super) found: bool,
    /// It may look for its row before its statement waits for another one.
    pub(super) early: bool,
}

/// True for what waits for rows that others have locked.
fn may_wait(deed: Deed) -> bool {
    !matches!(deed, Deed::Read | Deed::Refer | Deed::Vacant)
}

impl Walk<'_> {
    /// The script's program; `None` if there are too many ways. Adds to [`Templates::stands_for`].
    pub(super) fn program(&self, stands_for: &mut BTreeMap<String, BTreeSet<String>>) -> Option<Program> {
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
            let accesses = read.accesses.iter().flatten().chain(&hidden);
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
    pub(super) fn through(&self, range: Range<usize>, mut ways: Vec<Way>) -> Option<Vec<Way>> {
        let mut at = range.start;
        while at < range.end {
            let command = &self.script.commands[at];
            match &command.kind {
                CommandKind::If(first) => {
                    ways = self.conditional(at, first.end, ways)?;
                    at = first.end;
                }
                CommandKind::Set { slot, expr } => {
                    let alias = expr.variable();
                    let constant = expr.integer();
                    for way in &mut ways {
                        match (alias, &constant) {
                            // Of a text it is the number in it.
                            (Some(other), _) if self.variables.is_integer(other) => {
                                let term = way.value(other, self.symbols);
                                way.values.insert(*slot, term);
                            }
                            (None, Some(number)) => {
                                way.values.insert(*slot, Term::Constant(number.to_string()));
                            }
                            _ => {
                                let integers = |other: &Slot| {
                                    self.variables.is_integer(*other) && self.variables.is_integer(*slot)
                                };
                                let above = expr.above().filter(integers);
                                let above = above.map(|other| way.value(other, self.symbols));
                                way.assign(*slot, self.symbols);
                                let own = way.value(*slot, self.symbols);
                                if let (Some(Term::Variable(lower)), Term::Variable(own)) = (above, own) {
                                    way.lower.insert(own, lower);
                                }
                            }
                        }
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
                CommandKind::Sql(sql) => {
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
                }
                _ => {}
            }
            at += 1;
        }
        Some(ways)
    }

    /// The ways through the arms of a conditional from its `\if` to its `\endif`.
    pub(super) fn conditional(&self, first: usize, end: usize, ways: Vec<Way>) -> Option<Vec<Way>> {
        let matters = (first..end).any(|at| {
            let of_pipeline = matches!(
                self.script.commands[at].kind,
                CommandKind::StartPipeline | CommandKind::SyncPipeline | CommandKind::EndPipeline
            );
            of_pipeline || !self.commands[at].is_empty() && !self.skipped.contains(&at)
        });
        if !matters {
            let assigned: BTreeSet<Slot> = (first..end)
                .flat_map(|at| match &self.script.commands[at].kind {
                    CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => vec![*slot],
                    CommandKind::Sql(sql) => match &sql.store {
                        Store::Gset { prefix } | Store::Aset { prefix } => {
                            slots_given(prefix, &self.commands[at], self.symbols)
                        }
                        Store::None => Vec::new(),
                    },
                    _ => Vec::new(),
                })
                .collect();
            let mut ways = ways;
            for way in &mut ways {
                for slot in &assigned {
                    way.assign(*slot, self.symbols);
                }
            }
            return Some(ways);
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

    /// Gives all variables that a statement's result may become values that aren't known.
    pub(super) fn forget(&self, way: &mut Way, prefix: &str, read: &Read) {
        for slot in slots_given(prefix, std::slice::from_ref(read), self.symbols) {
            way.assign(slot, self.symbols);
            way.given.insert(slot);
        }
    }

    /// Assigns what a statement returns to variables; `found` if it certainly returns something.
    pub(super) fn stored(&self, way: &mut Way, prefix: &str, read: &Read, found: bool) {
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
    }

    /// True if something happens after a statement that a failure before it would prevent.
    fn goes_on(&self, at: usize, place: usize) -> bool {
        let later = self.commands[at + 1..].iter().flatten();
        let shell = |command: &Command| matches!(command.kind, CommandKind::Shell { .. });
        self.commands[at][place + 1..].iter().chain(later).any(Read::touches)
            || self.script.commands[at + 1..].iter().any(shell)
    }

    /// The ways after a statement; `None` if there are too many. `goes_on`: see [`Walk::goes_on`].
    pub(super) fn statement(&self, read: &Read, ways: Vec<Way>, goes_on: bool) -> Option<Vec<Way>> {
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
            _ => {
                if let Some((mark, name)) = &read.savepoint {
                    for way in &mut ways {
                        way.mark(*mark, name);
                    }
                }
                let accesses = if let Ok(accesses) = &read.accesses {
                    accesses.clone()
                } else {
                    for way in &mut ways {
                        let statement = way.statement;
                        way.operations.extend(unknown(OTHER_TABLES, &read.at, statement));
                    }
                    let all =
                        |table: &RelationId| [Deed::Read, Deed::Update].map(|deed| anything(*table, deed));
                    let checks = hidden_checks(read, self.catalog);
                    read.tables.iter().flat_map(all).chain(checks).collect()
                };
                for way in &mut ways {
                    way.tells |= read.tells();
                    for lock in &read.locks {
                        way.lock(lock, self.symbols, &read.at);
                    }
                }
                let waits = accesses.iter().filter(|access| may_wait(access.deed)).count();
                for access in &accesses {
                    // Where it waits more than once, a row may be looked for before it waits for another one.
                    let finds = may_wait(access.deed) && self.rows.found.contains(&read.at);
                    let how = How { found: read.finds && access.in_result || finds, early: waits > 1 };
                    ways = ways.into_iter().flat_map(|way| self.access(way, access, how, &read.at)).collect();
                    if ways.len() > 4 * MOST_BRANCHES {
                        return None;
                    }
                }
                for way in &mut ways {
                    way.operations.extend(read.unguarded.operations(&read.at, way.statement + 1));
                    way.statement += 2;
                }
            }
        }
        Some(ways)
    }

    /// The ways that an access can take.
    #[expect(clippy::too_many_lines, reason = "a table: each kind of access with its operations")]
    pub(super) fn access(&self, way: Way, access: &Access, how: How, at: &str) -> Vec<Way> {
        let mut way = way;
        // Only plain reads have any, which are one operation.
        way.idle.push((way.operations.len(), access.idle.clone()));
        let relation = &self.catalog.relations[access.table];
        let terms: BTreeMap<&str, Term> = access
            .equal
            .iter()
            .map(|(column, known)| (column.as_str(), way.term(known, self.symbols)))
            .collect();
        // The key, or another unique index, all of whose columns are known.
        let names = |key: &Vec<usize>| -> Vec<&str> {
            key.iter().map(|place| relation.columns[*place].name.as_str()).collect()
        };
        let mut keys = relation.keys().map(names);
        let whole = |key: &Vec<&str>| !key.is_empty() && key.iter().all(|name| terms.contains_key(name));
        let key_names = keys.find(whole).filter(|_| !relation.has_children()).unwrap_or_default();
        let one_row = !key_names.is_empty();
        let key: Vec<(String, Term)> =
            key_names.iter().map(|name| ((*name).to_owned(), terms[name].clone())).collect();
        let rest: Vec<(String, Term)> = terms
            .iter()
            .filter(|(column, _)| !key_names.contains(column))
            .map(|(column, term)| ((*column).to_owned(), term.clone()))
            .collect();
        let tested = access.tested.iter().map(|column| (column.clone(), Term::Unknown));
        let conditions: BTreeSet<String> = access.equal.keys().chain(&access.tested).cloned().collect();
        let changes_key = match &access.writes {
            Columns::All => true,
            Columns::These(set) => {
                let referred = self.catalog.foreign_keys.iter().filter(|key| {
                    self.catalog.ends(key).is_some_and(|(referenced, _)| referenced == access.table)
                });
                let referred = referred.flat_map(|key| &key.referenced_columns).map(String::as_str);
                let unique = relation.keys().flat_map(names);
                referred.chain(unique).any(|column| set.contains(column))
            }
        };
        let (statement, later) = (way.statement, way.statement + 1);
        let guarded = conditions.iter().any(|column| !key_names.contains(&column.as_str()));
        let may_be_absent = !how.found
            && (guarded
                || !access.certain
                || self.changing.0.contains(&access.table)
                || self.rows.absent.contains(at));
        let operation = |kind: Kind,
                         key: &[(String, Term)],
                         known: Vec<(String, Term)>,
                         reads: Columns,
                         writes: Columns| Operation {
            kind,
            table: relation.qualified(),
            key: key.to_vec(),
            known,
            reads,
            writes,
            changes_key,
            statement,
            at: at.to_owned(),
            newest: false,
            certain: access.certain,
            found: !may_be_absent,
        };
        let single =
            |kind: Kind| operation(kind, &key, rest.clone(), access.reads.clone(), access.writes.clone());
        let searched = |reads: Columns| {
            let known =
                terms.iter().map(|(column, term)| ((*column).to_owned(), term.clone())).chain(tested.clone());
            operation(Kind::Search, &[], known.collect(), reads, Columns::NONE)
        };
        let absent = || {
            let reads = Columns::These(conditions.clone());
            // Who waits for a row finds that it isn't there any more after the other reads.
            let read = operation(Kind::Read, &key, Vec::new(), reads, Columns::NONE);
            Operation { statement: later, certain: false, ..read }
        };
        let known = || terms.iter().map(|(column, term)| ((*column).to_owned(), term.clone())).collect();
        let kind = match access.deed {
            Deed::Read if one_row => {
                let certain = access.certain && !guarded;
                return vec![way.with([Operation { known: Vec::new(), certain, ..single(Kind::Read) }])];
            }
            Deed::Read => return vec![way.with([searched(access.reads.clone())])],
            Deed::Refer => {
                let newest = relation.kind == RelationKind::Partitioned;
                let lock = Kind::Lock(Strength::KeyShare);
                if one_row && access.certain && !access.deferrable {
                    return vec![way.with([Operation { newest, ..single(lock) }])];
                }
                // It may not be executed: then it keeps nobody out.
                let any = operation(lock, &[], known(), access.reads.clone(), Columns::NONE);
                return vec![way.checked(Operation { newest, statement: later, ..any }, access.deferrable)];
            }
            Deed::Vacant => {
                let vacant = operation(Kind::Vacant, &[], known(), access.reads.clone(), Columns::NONE);
                let vacant = Operation { newest: true, statement: later, ..vacant };
                if !self.freed.has(access.table, &access.reads) {
                    way.vacant.push((way.operations.len(), vacant));
                    return vec![way];
                }
                return vec![way.checked(vacant, access.deferrable)];
            }
            Deed::Cascade => {
                let search = operation(Kind::Search, &[], Vec::new(), Columns::All, Columns::NONE);
                let update = operation(Kind::Update, &[], Vec::new(), Columns::All, Columns::All);
                return vec![way.with([search, update].map(|one| Operation { statement: later, ..one }))];
            }
            Deed::Lock(strength) => Kind::Lock(strength),
            Deed::Update => Kind::Update,
            Deed::Delete => Kind::Delete,
            Deed::Insert => {
                // A query may find no row for it, so that nobody waits for the key.
                let inserts = way.clone().with([single(Kind::Insert)]);
                return if access.listed || !one_row {
                    vec![inserts]
                } else {
                    vec![inserts, way.nothing(at)]
                };
            }
            Deed::InsertOrRead | Deed::InsertOrUpdate => {
                let insert = Operation { reads: Columns::NONE, writes: Columns::All, ..single(Kind::Insert) };
                // Another unique index may have prevented it, because of another row.
                let other = match (access.deed, one_row && relation.only_key) {
                    (Deed::InsertOrRead, true) => absent(),
                    (Deed::InsertOrRead, false) => {
                        let search = operation(Kind::Search, &[], Vec::new(), Columns::All, Columns::NONE);
                        Operation { statement: later, certain: false, ..search }
                    }
                    // The row that is there has the key, and other values.
                    (_, true) => Operation { known: Vec::new(), ..single(Kind::Update) },
                    (_, false) => Operation { key: Vec::new(), known: Vec::new(), ..single(Kind::Update) },
                };
                if key.is_empty() && !access.listed {
                    // It may be several rows, of which some are new.
                    return vec![way.with([other, insert])];
                }
                // DO UPDATE WHERE: then the row is locked, and read as it is, which serializable doesn't watch.
                let kept = access.may_keep.then(|| {
                    let lock = Kind::Lock(Strength::NoKeyUpdate);
                    let kept = Operation { known: Vec::new(), newest: true, certain: false, ..single(lock) };
                    let mut way = way.clone();
                    way.name.push(format!("row of line {} is there and stays", line(at)));
                    way.with([Operation { reads: Columns::All, writes: Columns::NONE, ..kept }])
                });
                let nothing = (!access.listed && one_row).then(|| way.clone().nothing(at));
                let mut inserted = way.clone();
                inserted.name.push(format!("row of line {} is new", line(at)));
                way.name.push(format!("row of line {} is there", line(at)));
                if how.early && access.deed == Deed::InsertOrRead {
                    way = way.with([Operation { statement, ..other.clone() }]);
                }
                return [inserted.with([insert]), way.with([other])]
                    .into_iter()
                    .chain(kept)
                    .chain(nothing)
                    .collect();
            }
        };
        if !one_row {
            let found = operation(kind, &[], rest.clone(), access.reads.clone(), access.writes.clone());
            let reads = match &access.reads {
                Columns::All => Columns::All,
                Columns::These(_) => Columns::These(conditions.clone()),
            };
            return vec![way.with([searched(reads), found])];
        }
        if !may_be_absent {
            return vec![way.with([single(kind)])];
        }
        let required = access.equal.iter().chain(&access.before);
        let required: Vec<(String, Term)> = required
            .map(|(column, known)| (column.clone(), way.term(known, self.symbols)))
            .filter(|(column, _)| !key_names.contains(&column.as_str()))
            .filter(|(column, _)| self.catalog.equal_is_same(access.table, column))
            .collect();
        let (mut found, missed) = (single(kind), absent());
        let mut without = way.clone();
        without.name.push(format!("row of line {} isn't there", line(at)));
        let tested = way.tested_again(&found, required);
        if !tested.is_empty() {
            without.refused = true;
            let versions = self.versions.0.get(&access.table);
            let of_version = |(column, statement): (&String, &usize)| {
                versions.is_some_and(|all| all.contains(column)).then_some(*statement)
            };
            let versioned = tested.iter().filter_map(of_version).min();
            way.read_then(&mut found, &tested, versioned);
        }
        if how.early || self.replaced.0.contains(&access.table) {
            // It may have waited for a row that is gone, when another one has the key.
            without = without.with([Operation { statement, ..missed.clone() }]);
        }
        vec![way.with([found]), without.with([missed])]
    }
}
