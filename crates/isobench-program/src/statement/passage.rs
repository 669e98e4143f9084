//! The values that a statement takes from variables and gives to them, by the server's tree of it: where its variables stand, the
//! columns of its result, and the columns that its condition tests.

use std::collections::{BTreeMap, BTreeSet};

use isobench_script::Slot;
use isobench_sql::{
    Bound, BoundRelation, Command, Inheritance, Mentions, Output, Raised, RelationId, RelationKind, Token,
    may_write,
};

use super::Statement;
use super::operand::Operand;

/// Names of columns, each with the number of times that it is mentioned.
pub(crate) type Counted = BTreeMap<String, usize>;

/// A statement as far as values flow through it. Where the server doesn't say how it reads the statement, only its
/// words count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passage {
    /// Its verb in capitals: the leading word, if that isn't WITH.
    pub verb: String,
    /// Its words leave room for writing.
    pub writes: bool,
    /// The variables in it; true where what it writes depends on the value, and not only which rows.
    pub takes: Vec<(Slot, bool)>,
    /// The columns of its result; `None` if they aren't known.
    pub gives: Option<Vec<Given>>,
    /// The variables that its condition requires a column to be equal to.
    pub tests: Vec<(Slot, ColumnName)>,
    /// It writes the rows of a table that it finds, and its condition tests more than their key.
    pub conditional: bool,
    /// The table whose rows it updates or deletes, if it writes no other rows.
    pub target: Option<RelationId>,
    /// The table to which it only adds rows, whatever is in it.
    pub adds_to: Option<RelationId>,
    /// The names of all columns that it mentions; `None` if it may use any.
    pub uses: Option<Counted>,
    /// Those that each column of its result mentions.
    pub outputs: Vec<Counted>,
    /// Those that it mentions to set them to what follows from themselves.
    pub kept_up: Counted,
    /// Which rows its result has, and how many, doesn't depend on the values of its columns.
    pub plain: bool,
    /// The columns that it sets to a variable's value as it is.
    pub assigns: Vec<(String, Slot)>,
    /// The columns that it sets to something plus a number above 0: a variable, or the column itself.
    pub raises: Vec<(String, Option<Slot>)>,
    /// The only row that it can find: the table, and what the columns of its key must be equal to.
    pub row: Option<(RelationId, Vec<(String, Operand)>)>,
    /// The columns of the rows found that it changes; `None` if it may change any, or write other rows.
    pub sets: Option<BTreeSet<String>>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ColumnName {
    pub table: RelationId,
    pub name: String,
}

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// Its name, as it becomes part of a variable's.
    pub name: String,
    /// The column whose value it has as it is.
    pub column: Option<ColumnName>,
}

impl Statement<'_> {
    /// How values flow through the statement.
    pub(crate) fn passage(&self) -> Passage {
        let tokens = &self.text.tokens[self.range.clone()];
        let first = tokens.first().and_then(|token| token.word()).unwrap_or_default().to_ascii_uppercase();
        let writes = may_write(self.text, &self.range);
        let Ok(bound) = &self.bound else {
            return Passage { takes: self.takes(&first), verb: first, writes, ..Passage::default() };
        };
        let verb = match (first.as_str(), bound.command) {
            ("WITH", Command::Update) => "UPDATE".to_owned(),
            ("WITH", Command::Insert) => "INSERT".to_owned(),
            ("WITH", Command::Delete) => "DELETE".to_owned(),
            _ => first.clone(),
        };
        let mut passage = Passage {
            // What a WITH query writes may depend on any variable.
            takes: self.takes(&first),
            verb,
            writes,
            gives: Some(bound.outputs.iter().map(|output| self.given(bound, output)).collect()),
            uses: self.uses(bound, writes),
            outputs: bound.outputs.iter().map(|output| self.known(&output.mentions)).collect(),
            plain: bound.shape.any_values,
            ..Passage::default()
        };
        passage.row = self.row(bound);
        passage.adds_to = self.adds_to(bound).filter(|_| passage.uses.is_some());
        let mut written = bound.relations.iter().filter(|relation| is_written(relation));
        let (target, others) = (written.next(), written.next());
        // A WITH query may write rows otherwise.
        if let (Some(target), None, Command::Update | Command::Delete) = (target, others, bound.command)
            && target.own
        {
            self.of_target(bound.command, target, &mut passage);
        }
        passage
    }

    /// What it does with the table whose rows it updates or deletes, if it writes no other rows.
    fn of_target(&self, command: Command, target: &BoundRelation, passage: &mut Passage) {
        let Some(id) = self.catalog.relation_of(target) else { return };
        let root = self.catalog.root(id);
        let name = |number: &i32| self.catalog.column_name(id, *number);
        passage.target = Some(root);
        let equal: Vec<(String, Option<Slot>)> = target
            .found
            .equal
            .iter()
            .filter_map(|(number, value)| Some((name(number)?, self.variable_of(value))))
            .collect();
        let key = self.catalog.relations[root].key_names();
        let has_key = key.iter().all(|part| equal.iter().any(|(column, _)| column == part));
        let found = &target.found;
        let others = equal.iter().any(|(column, _)| !key.contains(&column.as_str()))
            || !found.tested.is_empty()
            || found.alone && !found.exactly;
        passage.conditional = others && has_key;
        let texts = target.found.as_text.iter();
        let texts = texts.filter_map(|(number, value)| Some((name(number)?, self.variable_of(value))));
        let tested = |(name, slot): (String, Option<Slot>)| Some((slot?, ColumnName { table: root, name }));
        passage.tests = equal.into_iter().chain(texts).filter_map(tested).collect();
        if command == Command::Update {
            let assigned =
                target.set.iter().filter_map(|(number, value)| Some((number, self.variable_of(value)?)));
            passage.assigns = assigned.filter_map(|(number, slot)| Some((name(number)?, slot))).collect();
            passage.kept_up =
                target.kept_up.iter().filter_map(|(number, times)| Some((name(number)?, *times))).collect();
            let raised = |(number, raised): (&i32, &Raised)| match raised {
                Raised::Itself => Some((name(number)?, None)),
                Raised::Parameter(parameter) => Some((name(number)?, Some(self.variable(*parameter)?))),
            };
            // A row's version has the number of the transaction that wrote it.
            let version = ("xmin".to_owned(), None);
            passage.raises = target.raised.iter().filter_map(raised).chain([version]).collect();
            passage.sets = self.sets(root, id, target);
        }
    }

    /// The variables with their places: after SET or VALUES, or in what finds rows.
    fn takes(&self, verb: &str) -> Vec<(Slot, bool)> {
        let mut found = Vec::new();
        // UPDATE … SET values [FROM …] [WHERE …]; what DELETE and SELECT find depends on the variable.
        let mut writes = !matches!(verb, "UPDATE" | "DELETE");
        let mut depth = 0_usize;
        for place in self.range.clone() {
            let token = &self.text.tokens[place];
            match &token.token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ if verb == "UPDATE" && depth == 0 => {
                    if token.is("set") {
                        writes = true;
                    } else if token.is("from") || token.is("where") || token.is("returning") {
                        writes = false;
                    }
                }
                _ => {}
            }
            found.extend(self.text.variables_in(place).into_iter().map(|slot| (slot, writes)));
        }
        found
    }

    /// A column of the result. What an INSERT returns is the value that it gave itself.
    fn given(&self, bound: &Bound, output: &Output) -> Given {
        let column =
            output.column.filter(|_| bound.command != Command::Insert).and_then(|(place, number)| {
                let id = self.catalog.relation_of(bound.relations.get(place)?)?;
                Some(ColumnName { table: self.catalog.root(id), name: self.catalog.column_name(id, number)? })
            });
        Given { name: output.name.clone(), column }
    }

    /// The only row of the only relation of a query or an UPDATE that its condition can find, by its key.
    fn row(&self, bound: &Bound) -> Option<(RelationId, Vec<(String, Operand)>)> {
        let mut own = bound.relations.iter().filter(|relation| relation.own);
        let (only, None) = (own.next()?, own.next()) else { return None };
        if !only.found.alone || !matches!(bound.command, Command::Query | Command::Update) {
            return None;
        }
        let id = self.catalog.relation_of(only)?;
        let root = self.catalog.root(id);
        let equal = |name: &str| {
            only.found.equal.iter().find_map(|(number, value)| {
                let column = self.catalog.column_name(id, *number).filter(|column| column == name)?;
                Some((column, self.operand(id, *number, value)?))
            })
        };
        let key = self.catalog.relations[root].key_names();
        let row: Option<Vec<(String, Operand)>> = key.into_iter().map(equal).collect();
        row.filter(|row| !row.is_empty()).map(|row| (root, row))
    }

    /// The names of mentioned columns, as far as they are columns of tables.
    fn known(&self, mentions: &Mentions) -> Counted {
        let mut known = Counted::new();
        for ((oid, number), times) in mentions {
            if let Some(name) = self.catalog.column_of(*oid, *number) {
                *known.entry(name).or_default() += times;
            }
        }
        known
    }

    /// The names of all columns that a statement mentions; `None` if it may use any: of a whole row, of a view's
    /// query, a policy, a trigger, or a user's function.
    fn uses(&self, bound: &Bound, writes: bool) -> Option<Counted> {
        if self.catalog.calls(bound).is_some() {
            return None;
        }
        for relation in &bound.relations {
            let relation_id = self.catalog.relation_of(relation)?;
            let known = &self.catalog.relations[relation_id];
            let is_table = matches!(known.kind, RelationKind::Table | RelationKind::Partitioned);
            let read_by_triggers = known.triggers.reads_row || !known.triggers.reads.is_empty();
            // Which rows an index has may depend on any column.
            if !is_table || known.row_security || relation.arbiter_is_partial || writes && read_by_triggers {
                return None;
            }
        }
        let is_column =
            |(oid, number): &(u32, i32)| *number > 0 && self.catalog.column_of(*oid, *number).is_some();
        bound.mentions.keys().all(is_column).then(|| self.known(&bound.mentions))
    }

    /// The table of an INSERT that only adds rows to it, whatever is in it.
    fn adds_to(&self, bound: &Bound) -> Option<RelationId> {
        let root =
            |relation: &BoundRelation| self.catalog.relation_of(relation).map(|id| self.catalog.root(id));
        let target = bound.relations.iter().find(|relation| relation.own && relation.inserts)?;
        let adds = bound.command == Command::Insert && !target.updates && !target.skips_conflicts;
        let table = root(target).filter(|_| adds)?;
        let plain =
            !self.catalog.relations[table].rules && !self.catalog.triggers(table).may(|event| event.insert);
        let times = bound.relations.iter().filter(|relation| root(relation) == Some(table)).count();
        (plain && times == 1).then_some(table)
    }

    /// The columns that an UPDATE of a table changes: those that it assigns, those of triggers, and those that are
    /// generated.
    fn sets(&self, root: RelationId, id: RelationId, target: &BoundRelation) -> Option<BTreeSet<String>> {
        let relation = &self.catalog.relations[root];
        let plain = relation.kind == RelationKind::Table
            && matches!(relation.inheritance, Inheritance::None)
            && !(relation.triggers.may(|event| event.update) || relation.rules);
        if !plain {
            return None;
        }
        let assigned = target.updated.iter().map(|number| self.catalog.column_name(id, *number));
        let mut set = assigned.collect::<Option<BTreeSet<String>>>()?;
        set.extend(relation.triggers.on_update.iter().cloned());
        set.extend(
            relation.columns.iter().filter(|column| column.generated).map(|column| column.name.clone()),
        );
        Some(set)
    }
}

/// True if a statement writes rows of a relation where it names it.
fn is_written(relation: &BoundRelation) -> bool {
    relation.inserts || relation.updates || relation.deletes || relation.merges
}
