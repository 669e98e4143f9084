//! The walk over a script that follows its values.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_isolation::observed::Dependence;
use isobench_observation::{HiddenRows, SeenOf};
use isobench_script::Statement as Kind;
use isobench_script::{Addend, Amount, Branch, CommandKind, Expr, Script, Slot, Sql, Store, Symbols};
use isobench_sql::{Catalog, ColumnType, RelationId, Text, chains, is_system_column};

use super::columns::{KeyValue, ReadValue, Row, taken};
use super::{Edge, Flows, Node, Source, StatementPlace, Taint};
use crate::statement::{Assigned, ColumnName, Counted, Operand, Passage, Rewritten, Statement};

/// A statement by itself.
struct Examined {
    seen: SeenOf,
    passage: Passage,
    row: Option<Row>,
    rewritten: Option<Rewritten>,
    /// See [`Node::raises`].
    raises: BTreeSet<String>,
}

/// A value that is a column's, changed by something.
struct Changed {
    of: Source,
    /// What changes it, as SQL: ` - :quantity`.
    text: String,
    /// The variable with it, if it is raised by a number, with the number of times that it had been assigned.
    raised: Option<(Slot, usize)>,
    /// The variable in it, with the number of times that it had been assigned.
    variable: Option<(Slot, usize)>,
    /// The number of times that the variable with the value had been assigned.
    time: usize,
}

/// A conditional: the variables that had been assigned before it, and in all of its arms up to here.
struct Arms {
    before: BTreeSet<Slot>,
    all: Option<BTreeSet<Slot>>,
    has_else: bool,
}

/// The walk over a script.
pub(super) struct Walk<'a> {
    flows: &'a mut Flows,
    catalog: &'a Catalog,
    symbols: &'a Symbols,
    /// The variables that meta-commands assign.
    assigned: BTreeSet<Slot>,
    values: BTreeMap<Slot, Taint>,
    /// The number of times that each variable was assigned.
    times: BTreeMap<Slot, usize>,
    /// The variables whose last value is another one's, changed by something.
    changes: BTreeMap<Slot, Changed>,
    /// For each open `\if`, what its conditions depend on.
    control: Vec<Taint>,
    /// The variables that have certainly been assigned.
    settled: BTreeSet<Slot>,
    /// The open conditionals.
    arms: Vec<Arms>,
    transaction: usize,
    in_block: bool,
    /// Statements outside of a block are one transaction up to the next synchronisation.
    in_pipeline: bool,
}

impl<'a> Walk<'a> {
    /// A walk over this script, after those that have been followed.
    pub(super) fn new(
        flows: &'a mut Flows,
        (catalog, symbols): (&'a Catalog, &'a Symbols),
        script: &Script,
    ) -> Walk<'a> {
        let assigned = script.commands.iter().filter_map(|command| match &command.kind {
            CommandKind::Set { slot, .. } | CommandKind::SetShell { slot, .. } => Some(*slot),
            _ => None,
        });
        Walk {
            transaction: flows.nodes.last().map_or(0, |last| last.transaction + 1),
            flows,
            catalog,
            symbols,
            assigned: assigned.collect(),
            values: BTreeMap::new(),
            times: BTreeMap::new(),
            changes: BTreeMap::new(),
            control: Vec::new(),
            settled: BTreeSet::new(),
            arms: Vec::new(),
            in_block: false,
            in_pipeline: false,
        }
    }
}

impl Walk<'_> {
    pub(super) fn script(mut self, number: usize, script: &Script) {
        for (place, command) in script.commands.iter().enumerate() {
            match &command.kind {
                CommandKind::Set { slot, expr } => {
                    let variables = expr.variables();
                    self.note_older(&variables);
                    let uses = variables.iter().map(|variable| (*variable, self.columns_in(*variable)));
                    let uses: Vec<_> = uses.collect();
                    self.flows.values.assigned.push((*slot, uses));
                    if self.may_fail(expr) {
                        // It decides whether the rest of the script runs.
                        self.taint(&variables);
                    }
                    let changed = self.changed(expr);
                    let taint = computed(self.sources(&variables));
                    self.assign(*slot, taint);
                    self.note_change(*slot, changed);
                }
                CommandKind::Shell { args } => {
                    self.taint(&shell_variables(args));
                }
                CommandKind::SetShell { slot, args } => {
                    let taint = computed(self.taint(&shell_variables(args)));
                    self.assign(*slot, taint);
                }
                CommandKind::If(branch) => {
                    self.note_older(&condition(branch));
                    self.arms.push(Arms { before: self.settled.clone(), all: None, has_else: false });
                    let taint = branch.cond.as_ref().map(|cond| self.taint(&cond.variables()));
                    self.control.push(taint.unwrap_or_default());
                }
                CommandKind::Elif(branch) => {
                    self.next_arm(false);
                    self.note_older(&condition(branch));
                    let taint = branch.cond.as_ref().map(|cond| self.taint(&cond.variables()));
                    if let Some(open) = self.control.last_mut() {
                        open.extend(taint.unwrap_or_default());
                    }
                }
                CommandKind::Else(_) => self.next_arm(true),
                CommandKind::Endif => {
                    self.control.pop();
                    self.end_arms();
                }
                CommandKind::StartPipeline | CommandKind::SyncPipeline | CommandKind::EndPipeline => {
                    self.in_pipeline = !matches!(command.kind, CommandKind::EndPipeline);
                    self.transaction += usize::from(!self.in_block);
                }
                CommandKind::Sql(sql) => {
                    let at = StatementPlace { file: script.name.clone(), line: command.line };
                    self.sql((number, place), &at, sql);
                }
                CommandKind::Sleep { duration, .. } => {
                    // What isn't a number ends the script.
                    if let isobench_script::Operand::Variable(slot) = duration {
                        self.note_use(*slot);
                    }
                }
            }
        }
    }

    /// True if an expression may fail, as far as it isn't about numbers that have no room in a bigint: only the sum
    /// of integers never does.
    fn may_fail(&self, expr: &Expr) -> bool {
        if expr.integer().is_some() {
            return false;
        }
        let is_number = |source: &Source| {
            let plain = self.flows.nodes[source.node].passage.plain;
            let column = source.column.as_ref().filter(|_| plain);
            let number = |column: &ColumnName| {
                let relation = &self.catalog.relations[column.table];
                relation.column(&column.name).is_some_and(|at| {
                    let column = &relation.columns[at];
                    column.not_null && column.kind == ColumnType::Integer
                })
            };
            source.computed || column.is_some_and(number)
        };
        let sum = expr.variable().is_some() || expr.change().is_some();
        !sum || !self.sources(&expr.variables()).iter().all(is_number)
    }

    /// Notes those of variables that are used and may be older than this run of the script.
    fn note_older(&mut self, slots: &[Slot]) {
        let place = self.flows.nodes.len();
        let older = slots.iter().filter(|slot| !self.settled.contains(*slot));
        self.flows.older.extend(older.map(|slot| (*slot, place)));
    }

    /// An arm of a conditional ends, and the next one begins.
    fn next_arm(&mut self, is_else: bool) {
        let Some(arms) = self.arms.last_mut() else { return };
        let settled = std::mem::replace(&mut self.settled, arms.before.clone());
        arms.all = Some(match arms.all.take() {
            Some(all) => &all & &settled,
            None => settled,
        });
        arms.has_else |= is_else;
    }

    /// The last arm of a conditional ends.
    fn end_arms(&mut self) {
        self.next_arm(false);
        let Some(Arms { before, all, has_else }) = self.arms.pop() else { return };
        self.settled = if has_else { all.unwrap_or(before) } else { before };
    }

    /// What variables depend on that are used.
    fn taint(&mut self, slots: &[Slot]) -> Taint {
        for slot in slots {
            self.note_use(*slot);
        }
        self.sources(slots)
    }

    /// Notes a use of a variable.
    fn note_use(&mut self, slot: Slot) {
        let columns = self.columns_in(slot);
        self.flows.values.note_use(slot, columns);
    }

    /// The columns of which a variable has a value, or one computed from it.
    fn columns_in(&mut self, slot: Slot) -> Vec<ReadValue> {
        if !self.values.contains_key(&slot) {
            self.flows.values.inherited.insert(slot);
        }
        let sources = self.values.get(&slot).into_iter().flatten();
        sources.filter_map(|source| Some((source.node, source.column.as_ref()?.name.clone()))).collect()
    }

    /// The variable that an expression changes by something, if it has a column's value as it is.
    fn changed(&self, expr: &Expr) -> Option<Changed> {
        let (of, addend) = expr.change().filter(|_| self.control.is_empty())?;
        let (by, variable) = match addend.of {
            Amount::Integer(number) => (number.to_string(), None),
            Amount::Variable(by) => (format!(":{}", self.symbols.name(by)), Some((by, self.time(by)))),
        };
        let sign = if addend.minus { '-' } else { '+' };
        let raises = matches!(addend, Addend { minus: false, of: Amount::Integer(1..) });
        let raised = raises.then(|| (of, self.time(of)));
        Some(Changed {
            raised,
            of: self.value_of(of)?.clone(),
            text: format!(" {sign} {by}"),
            variable,
            time: 0,
        })
    }

    fn note_change(&mut self, slot: Slot, changed: Option<Changed>) {
        match changed {
            Some(changed) => self.changes.insert(slot, Changed { time: self.time(slot), ..changed }),
            None => self.changes.remove(&slot),
        };
    }

    fn time(&self, slot: Slot) -> usize {
        self.times.get(&slot).copied().unwrap_or_default()
    }

    /// The column whose value a variable has as it is.
    fn value_of(&self, slot: Slot) -> Option<&Source> {
        let sources = self.values.get(&slot).filter(|sources| sources.len() == 1)?;
        sources.first().filter(|source| source.column.is_some() && !source.computed)
    }

    /// The columns that an UPDATE raises: by themselves, or from a value that it requires them to have.
    fn raises(&self, passage: &Passage) -> BTreeSet<String> {
        let required = |column: &str, slot: Slot| {
            passage.tests.iter().any(|(tested, of)| *tested == slot && of.name == column)
        };
        let by_itself =
            passage.raises.iter().filter(|(column, from)| from.is_none_or(|slot| required(column, slot)));
        // A variable that was raised before.
        let before = |slot: &Slot| {
            let changed = self.changes.get(slot).filter(|changed| changed.time == self.time(*slot))?;
            changed.raised.filter(|(from, time)| self.time(*from) == *time).map(|(from, _)| from)
        };
        let by_variable = passage
            .assigns
            .iter()
            .filter(|(column, slot)| before(slot).is_some_and(|from| required(column, from)));
        let columns = by_itself.map(|(column, _)| column).chain(by_variable.map(|(column, _)| column));
        let rises = |column: &&String| {
            is_system_column(column)
                || self.is_integer(passage, column) && !self.is_set_by_triggers(passage, column)
        };
        columns.filter(rises).cloned().collect()
    }

    /// True if adding a number to a column's values gives another one, always: to infinity and large numbers of
    /// floating point it doesn't.
    fn is_integer(&self, passage: &Passage, column: &str) -> bool {
        let Some(table) = passage.target else { return false };
        let relation = &self.catalog.relations[table];
        relation.column(column).is_some_and(|at| relation.columns[at].kind == ColumnType::Integer)
    }

    /// True if triggers may give a column another value than the UPDATE.
    fn is_set_by_triggers(&self, passage: &Passage, column: &str) -> bool {
        passage.target.is_some_and(|table| self.catalog.triggers(table).on_update.contains(column))
    }

    /// How an UPDATE of a row could be written that was read before.
    fn rewritten(&self, statement: &Statement<'_>, row: Option<&Row>) -> Option<Rewritten> {
        let row = row?;
        let (assignments, place) = statement.assignments()?;
        let is_own = |source: &Source, column: &str| {
            let origin = &self.flows.nodes[source.node];
            let same = source.column.as_ref().is_some_and(|read| read.name == column);
            same && !origin.writes && origin.row.as_ref() == Some(row)
        };
        let assigned = assignments.into_iter().map(|assignment| {
            let own = |slot: Slot| self.value_of(slot).filter(|source| is_own(source, &assignment.column));
            let change = |slot: Slot| {
                let changed = self.changes.get(&slot).filter(|changed| changed.time == self.time(slot))?;
                let unchanged = changed.variable.is_none_or(|(by, time)| self.time(by) == time);
                (unchanged && is_own(&changed.of, &assignment.column)).then(|| changed.text.clone())
            };
            let returned = |slot: Slot| {
                own(slot).is_some_and(|source| self.flows.nodes[source.node].transaction == self.transaction)
            };
            let assigned = match assignment.whole() {
                Some(slot) if returned(slot) => Assigned::LeftOut,
                whole => {
                    let relative = assignment.added.iter().find_map(|(slot, at)| {
                        let after = own(*slot).filter(|_| whole.is_none()).map(|_| String::new());
                        Some(Assigned::Relative(*at, after.or_else(|| change(*slot))?))
                    });
                    relative.unwrap_or(Assigned::Kept)
                }
            };
            (assignment, assigned)
        });
        statement.with_assignments(&assigned.collect::<Vec<_>>(), &place)
    }

    /// What variables depend on.
    fn sources(&self, slots: &[Slot]) -> Taint {
        slots.iter().filter_map(|slot| self.values.get(slot)).flatten().cloned().collect()
    }

    /// What decided that the present command is executed.
    fn decided_by(&self) -> Taint {
        self.control.iter().flatten().cloned().collect()
    }

    fn assign(&mut self, slot: Slot, mut taint: Taint) {
        *self.times.entry(slot).or_default() += 1;
        self.settled.insert(slot);
        if self.control.is_empty() {
            self.values.insert(slot, taint);
        } else {
            taint.extend(self.decided_by());
            self.values.entry(slot).or_default().extend(taint);
        }
    }

    fn sql(&mut self, (script, command): (usize, usize), at: &StatementPlace, sql: &Sql) {
        let text = Text::scan(sql);
        let ranges = text.as_ref().map(Text::statements).unwrap_or_default();
        let split = ranges.len() == sql.statements.len();
        if !self.in_block && !self.in_pipeline {
            self.transaction += 1;
        }
        for (place, kind) in sql.statements.iter().enumerate() {
            let examined = match &text {
                Some(text) if split => self.examine(text, ranges[place].clone()),
                _ => not_understood(sql),
            };
            let mut after = 0;
            match kind {
                Kind::Begin if !self.in_block => {
                    self.transaction += usize::from(!self.in_pipeline);
                    self.in_block = true;
                }
                Kind::Commit | Kind::Rollback => {
                    self.in_block =
                        text.as_ref().filter(|_| split).is_some_and(|text| chains(text, &ranges[place]));
                    // What follows is another transaction; this statement still counts for the one it ends.
                    after = usize::from(self.in_block || self.in_pipeline);
                }
                _ => {}
            }
            let node = self.node(examined, (script, command, place), at, sql);
            self.transaction += after;
            for (slot, _) in &node.passage.takes {
                self.note_use(*slot);
            }
            self.note_returned(&node);
            self.flow_into(node);
            if sql.computes_elsewhere() {
                self.flow_from_all_reads();
            }
            let last = place + 1 == sql.statements.len();
            match &sql.store {
                Store::Gset { prefix } if last => self.give(prefix, true),
                Store::Aset { prefix } => self.give(prefix, false),
                _ => {}
            }
        }
    }

    /// A statement of the present transaction.
    fn node(
        &self,
        examined: Examined,
        (script, command, place): (usize, usize, usize),
        at: &StatementPlace,
        sql: &Sql,
    ) -> Node {
        let Examined { seen, mut passage, row, rewritten, raises } = examined;
        // Cascades and triggers change what the statement doesn't name.
        passage.sets = passage.sets.filter(|_| !seen.writes_anything && seen.unseen.is_empty());
        let alone = sql.statements.len() == 1;
        let mut shown = Counted::new();
        for column in passage.gives.iter().flatten().filter_map(|given| given.column.as_ref()) {
            *shown.entry(column.name.clone()).or_default() += 1;
        }
        Node {
            script,
            command,
            place: u32::try_from(place).unwrap_or(u32::MAX),
            at: at.clone(),
            transaction: self.transaction,
            writes: passage.writes || seen.writes(),
            reads: self.reads(&seen),
            written: self.written(&seen),
            adds_to: passage.adds_to.and_then(|table| self.rows_of(table)),
            keys: keys(&seen, self.catalog),
            taken: if alone { taken(sql, &passage, self.symbols) } else { Vec::new() },
            shown,
            stored: alone && sql.store != Store::None,
            sure: self.control.is_empty(),
            rewritten,
            raises,
            row,
            passage,
        }
    }

    fn examine(&self, text: &Text<'_>, range: Range<usize>) -> Examined {
        let statement = Statement::new(self.catalog, text, range.clone());
        let passage = statement.passage();
        let row = self.row(&passage);
        Examined {
            raises: self.raises(&passage),
            rewritten: self.rewritten(&statement, row.as_ref()),
            row,
            passage,
            seen: SeenOf::statement(self.catalog, text, range),
        }
    }

    /// The tables that a statement reads; `None` if it may read any.
    fn reads(&self, seen: &SeenOf) -> Option<BTreeSet<String>> {
        let shown = seen.shown.iter().map(|(table, _)| self.rows_of(*table));
        let dark = seen.dark.iter().map(|dark| match dark.hides() {
            HiddenRows::ReadsOf(table) => self.rows_in(table),
            HiddenRows::Reads => None,
            HiddenRows::All => self.rows_in(dark.table()?),
        });
        shown.chain(dark).collect()
    }

    /// The tables that a statement writes; `None` if it may write any.
    fn written(&self, seen: &SeenOf) -> Option<BTreeSet<String>> {
        if seen.writes_anything {
            return None;
        }
        let shown = seen.shown.iter().filter(|(_, writes)| *writes).map(|(table, _)| *table);
        let named = shown.chain(seen.unseen.iter().copied()).map(|table| self.rows_of(table));
        let dark = seen.dark.iter().filter_map(|dark| dark.table().map(|table| self.rows_in(table)));
        named.chain(dark).collect()
    }

    fn rows_of(&self, table: RelationId) -> Option<String> {
        self.rows_in(&self.catalog.relations[table].qualified())
    }

    /// The table where the rows of a relation are, by its name; `None` if they may be any table's.
    fn rows_in(&self, name: &str) -> Option<String> {
        self.flows.rows_of.get(name).cloned()
    }

    /// The row that a statement finds by its key.
    fn row(&self, passage: &Passage) -> Option<Row> {
        let (table, key) = passage.row.as_ref()?;
        let value = |(place, (name, operand)): (usize, &(String, Operand))| {
            Some(match operand {
                Operand::Constant(text) => KeyValue::Constant(text.clone()),
                Operand::Computed(..) => return None,
                Operand::Variable(slot) => {
                    let column = ColumnName { table: *table, name: name.clone() };
                    let assigned = || KeyValue::Variable(*slot, self.time(*slot));
                    self.key_read(*slot, &column, place).unwrap_or_else(assigned)
                }
            })
        };
        let key: Option<Vec<KeyValue>> = key.iter().enumerate().map(value).collect();
        Some((*table, key?))
    }

    /// The value of a variable that has the key of a row as a statement found it, by just that key.
    fn key_read(&self, slot: Slot, column: &ColumnName, place: usize) -> Option<KeyValue> {
        let sources = self.values.get(&slot).filter(|sources| sources.len() == 1)?;
        let source =
            sources.first().filter(|source| !source.computed && source.column.as_ref() == Some(column))?;
        let (table, key) = self.flows.nodes[source.node].row.as_ref()?;
        key.get(place).filter(|_| *table == column.table).cloned()
    }

    /// Notes the values that a statement writes back where its transaction read them.
    fn note_returned(&mut self, node: &Node) {
        let passage = &node.passage;
        let to = self.flows.nodes.len();
        for (column, slot) in &passage.assigns {
            if self.is_set_by_triggers(passage, column) {
                continue;
            }
            let Some(sources) = self.values.get(slot).filter(|sources| sources.len() == 1) else { continue };
            let Some(Source { node: from, column: Some(read), computed: false }) = sources.first() else {
                continue;
            };
            let origin = &self.flows.nodes[*from];
            let here = node.row.is_some() && node.row == origin.row;
            if here && origin.transaction == node.transaction && read.name == *column {
                self.flows.values.returned.entry((*from, column.clone())).or_default().push(to);
            }
        }
    }

    /// Adds a statement, and the flows into it if it writes.
    fn flow_into(&mut self, node: Node) {
        let passage = &node.passage;
        let to = self.flows.nodes.len();
        if node.writes {
            // Of which statement's row a column is as it was.
            let tests = passage.tests.iter().filter(|(_, column)| {
                let same = self.catalog.equal_is_same(column.table, &column.name);
                passage.conditional && node.row.is_some() && same
            });
            let tested: Vec<(usize, ColumnName)> = tests
                .flat_map(|(slot, column)| {
                    let as_read = self.values.get(slot).filter(|sources| sources.len() == 1);
                    let same = |source: &&Source| {
                        source.column.as_ref() == Some(column)
                            && !source.computed
                            && self.flows.nodes[source.node].row == node.row
                    };
                    as_read.into_iter().flatten().filter(same).map(|source| (source.node, column.clone()))
                })
                .collect();
            let edge = |source: &Source, how: Dependence, address: bool| {
                let from = &self.flows.nodes[source.node];
                // What a transaction wrote itself is known to it; a key doesn't change.
                let key = source.column.as_ref().is_some_and(|column| self.is_key(column));
                let own = from.writes && from.transaction == node.transaction;
                let of_row = tested.iter().filter(|(read, _)| *read == source.node);
                Edge {
                    from: source.node,
                    to,
                    how,
                    column: source.column.clone(),
                    tested: of_row.map(|(_, column)| (column.clone(), self.rows_of(column.table))).collect(),
                    ages: !own && !key && !address,
                }
            };
            // A variable that a column has to equal only says which row is meant.
            let addresses = |slot: &Slot| passage.tests.iter().any(|(tested, _)| tested == slot);
            let taken = passage.takes.iter().flat_map(|(slot, value)| {
                let how = if *value { Dependence::Value } else { Dependence::Decision };
                let address = !value && addresses(slot);
                self.values.get(slot).into_iter().flatten().map(move |source| (source, how, address))
            });
            let decided = self.control.iter().flatten().map(|source| {
                // Who overwrites a row because of what it read in it has made the one from the other.
                let table = source.column.as_ref().map(|column| column.table);
                let same = table.is_some() && table == passage.target;
                (source, if same { Dependence::Value } else { Dependence::Decision }, false)
            });
            let used = passage.takes.iter().filter(|(slot, value)| *value || !addresses(slot));
            let used: Vec<Slot> = used.map(|(slot, _)| *slot).collect();
            let edges: Vec<Edge> =
                taken.chain(decided).map(|(source, how, address)| edge(source, how, address)).collect();
            self.flows.edges.extend(edges);
            self.note_older(&used);
        }
        self.flows.nodes.push(node);
    }

    /// Adds flows into the last statement, if it writes, from all that its transaction read before.
    fn flow_from_all_reads(&mut self) {
        let Some((node, before)) = self.flows.nodes.split_last().filter(|(node, _)| node.writes) else {
            return;
        };
        let of_transaction = before.iter().enumerate().filter(|(_, other)| {
            other.transaction == node.transaction
                && other.reads.as_ref().is_none_or(|reads| !reads.is_empty())
        });
        let edge = |(from, _)| Edge {
            from,
            to: before.len(),
            how: Dependence::Value,
            column: None,
            tested: BTreeMap::new(),
            ages: true,
        };
        self.flows.edges.extend(of_transaction.map(edge));
    }

    fn is_key(&self, column: &ColumnName) -> bool {
        self.catalog.relations[column.table].key_names().contains(&column.name.as_str())
    }

    /// The result of the last statement goes into variables.
    fn give(&mut self, prefix: &str, always: bool) {
        let Some(node) = self.flows.nodes.len().checked_sub(1) else { return };
        let passage = &self.flows.nodes[node].passage;
        let taken: Vec<Slot> = passage.takes.iter().map(|(slot, _)| *slot).collect();
        let through = self.sources(&taken);
        let given: Vec<(Slot, Option<ColumnName>)> = match &passage.gives {
            Some(given) => given
                .iter()
                .filter_map(|one| {
                    let slot = self.symbols.lookup(&format!("{prefix}{}", one.name))?;
                    Some((slot, one.column.clone()))
                })
                .collect(),
            // Any variable that nothing else assigns may be a column of it.
            None => self
                .symbols
                .names()
                .filter(|name| name.starts_with(prefix))
                .filter_map(|name| self.symbols.lookup(name))
                .filter(|slot| !self.assigned.contains(slot))
                .map(|slot| (slot, None))
                .collect(),
        };
        for (slot, column) in given {
            if let Some(column) = &column {
                self.flows.values.given.entry(slot).or_default().push((node, column.name.clone()));
            }
            let is_key = column.as_ref().is_some_and(|column| self.is_key(column));
            self.flows.handed.entry(slot).or_default().push((node, is_key));
            let mut taint = through.clone();
            taint.insert(Source { node, column, computed: false });
            if always {
                self.assign(slot, taint);
            } else {
                // Without a row the variable stays as it was.
                taint.extend(self.decided_by());
                self.values.entry(slot).or_default().extend(taint);
            }
        }
    }
}

/// What a value depends on that is computed from others.
fn computed(taint: Taint) -> Taint {
    taint.into_iter().map(|source| Source { computed: true, ..source }).collect()
}

fn condition(branch: &Branch) -> Vec<Slot> {
    branch.cond.as_ref().map(Expr::variables).unwrap_or_default()
}

fn shell_variables(args: &[isobench_script::Argument]) -> Vec<Slot> {
    let variable = |argument: &isobench_script::Argument| match argument {
        isobench_script::Argument::Variable(slot) => Some(*slot),
        isobench_script::Argument::Literal(_) => None,
    };
    args.iter().filter_map(variable).collect()
}

/// What is assumed of a command that can't be split into statements.
fn not_understood(sql: &Sql) -> Examined {
    let seen = SeenOf::nothing();
    let takes = sql.params.iter().map(|slot| (*slot, true)).collect();
    let passage = Passage { verb: "STATEMENT".to_owned(), takes, writes: true, ..Passage::default() };
    Examined { seen, passage, row: None, rewritten: None, raises: BTreeSet::new() }
}

/// The names of the keys of the tables whose rows a statement shows.
fn keys(seen: &SeenOf, catalog: &Catalog) -> BTreeSet<String> {
    let tables = seen.shown.iter().map(|(table, _)| &catalog.relations[*table]);
    tables.flat_map(|relation| relation.key_names().into_iter().map(str::to_owned)).collect()
}
