//! What a statement takes from variables and gives to them: where its variables stand, the columns of
//! its result, and the columns that its condition tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use isobench_script::Slot;
use sqlparser::ast::{
    AssignmentTarget, DataType, Expr, FromTable, GroupByExpr, Query, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, Update, UpdateTableFromKind, Value,
};
use sqlparser::tokenizer::Token;

use super::columns::{Counted, kept_up, outputs};
use super::condition::{conjuncts, equalities};
use super::walk::{Node, walk};
use super::{Examiner, ident};
use crate::catalog::{RelationId, is_system_column};

/// A statement as far as values flow through it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passage {
    /// Its leading word, in capitals.
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
    /// The table whose rows it updates or deletes.
    pub target: Option<RelationId>,
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
    /// The only row that it can find: the table, and what the columns of its key must be equal to.
    pub row: Option<(RelationId, Vec<(String, Operand)>)>,
    /// The columns of the rows found that it changes; `None` if it may change any, or write other rows.
    pub sets: Option<BTreeSet<String>>,
}

/// What a condition compares a column with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Variable(Slot),
    /// A literal, as written.
    Literal(String),
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

/// The tables of a statement, by the names by which it refers to them.
type Names = BTreeMap<String, RelationId>;

impl Examiner<'_> {
    /// True if a WITH query of the statement has the name of a table: which of both a name means depends on
    /// where it stands.
    fn shadows_tables(&self, statement: &Statement) -> bool {
        named_queries(statement).iter().any(|name| self.catalog.resolve(None, name).is_some())
    }

    /// How values flow through the statement.
    pub(crate) fn passage(&self) -> Passage {
        let tokens = &self.text.tokens[self.range.clone()];
        let first = tokens.first().and_then(|token| token.word()).unwrap_or_default().to_ascii_uppercase();
        let mut passage = Passage { verb: first, ..Passage::default() };
        passage.takes = self.takes(&passage.verb);
        passage.writes = self.may_write();
        let Ok(statement) = self.parse() else { return passage };
        if self.shadows_tables(&statement) {
            return passage;
        }
        passage.uses = self.uses(&statement);
        passage.outputs = outputs(&statement);
        match &statement {
            Statement::Query(query) => self.of_query(query, &mut passage),
            Statement::Update(update) => {
                self.of_update(update, &mut passage);
                passage.sets = passage.target.and_then(|target| self.sets(update, target));
                passage.kept_up = kept_up(update);
                passage.assigns = self.assigns(update);
            }
            Statement::Insert(insert) => {
                let names = Names::new();
                passage.gives = insert.returning.as_ref().and_then(|items| self.given(items, &names));
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
                let names = self.names(from);
                passage.target = names.values().next().copied();
                self.condition_of(delete.selection.as_ref(), &names, &mut passage);
                passage.gives = delete.returning.as_ref().and_then(|items| self.given(items, &names));
            }
            _ => {}
        }
        passage
    }

    fn of_query(&self, query: &Query, passage: &mut Passage) {
        match &*query.body {
            SetExpr::Select(select) => {
                let ungrouped = matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
                passage.plain = query.order_by.is_none() && select.distinct.is_none() && ungrouped;
                let names = self.names(&select.from);
                passage.gives = match self.star(query) {
                    Some((table, columns)) => {
                        let column = |name: &String| Some(ColumnName { table, name: name.clone() });
                        let given = |name: String| Given { column: column(&name), name };
                        Some(columns.into_iter().map(given).collect())
                    }
                    None => self.given(&select.projection, &names),
                };
                passage.row = self.row(select.selection.as_ref(), &names);
            }
            SetExpr::Query(inner) => self.of_query(inner, passage),
            SetExpr::Update(Statement::Update(update)) => {
                self.of_update(update, passage);
                "UPDATE".clone_into(&mut passage.verb);
            }
            SetExpr::Insert(_) => "INSERT".clone_into(&mut passage.verb),
            SetExpr::Delete(_) => "DELETE".clone_into(&mut passage.verb),
            SetExpr::SetOperation { left, .. } => {
                if let SetExpr::Select(select) = &**left {
                    // The first branch names the columns, of which each may have two origins.
                    let given = self.given(&select.projection, &Names::new());
                    passage.gives = given;
                }
            }
            _ => {}
        }
    }

    fn of_update(&self, update: &Update, passage: &mut Passage) {
        let mut names = self.names(std::slice::from_ref(&update.table));
        passage.target = names.values().next().copied();
        if let Some(UpdateTableFromKind::AfterSet(from)) = &update.from {
            names.extend(self.names(from));
        }
        self.condition_of(update.selection.as_ref(), &names, passage);
        passage.row = self.row(update.selection.as_ref(), &names);
        passage.gives = update.returning.as_ref().and_then(|items| self.given(items, &names));
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

    /// The tables in FROM whose names are plain, by the names by which columns refer to them.
    fn names(&self, from: &[TableWithJoins]) -> Names {
        let factors = from.iter().flat_map(|table| {
            std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
        });
        let mut names = Names::new();
        for factor in factors {
            let TableFactor::Table { name, alias, args: None, .. } = factor else { continue };
            // Its columns have other names.
            if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                continue;
            }
            let last = || name.0.last().and_then(|part| part.as_ident()).map(ident);
            let known = alias.as_ref().map(|alias| ident(&alias.name)).or_else(last);
            if let (Some(relation), Some(known)) = (self.resolved(name), known) {
                names.insert(known, self.catalog.root(relation));
            }
        }
        names
    }

    /// The names and origins of output columns; `None` if one of them has no plain name.
    fn given(&self, items: &[SelectItem], names: &Names) -> Option<Vec<Given>> {
        let mut given = Vec::new();
        for item in items {
            match item {
                SelectItem::ExprWithAlias { expr, alias } => {
                    given.push(Given { name: ident(alias), column: column(expr, names, self) });
                }
                SelectItem::UnnamedExpr(expr) => {
                    let name = output_name(expr)?;
                    given.push(Given { name, column: column(expr, names, self) });
                }
                _ => return None,
            }
        }
        Some(given)
    }

    /// What the condition of an UPDATE or DELETE tests.
    fn condition_of(&self, condition: Option<&Expr>, names: &Names, passage: &mut Passage) {
        let Some(target) = passage.target else { return };
        let mut parts = Vec::new();
        if let Some(condition) = condition {
            conjuncts(condition, &mut parts);
        }
        let relation = &self.catalog.relations[target];
        let key = relation.key_names();
        let (mut of_key, mut others) = (0_usize, false);
        for part in parts {
            let pairs = equalities(part);
            others |= pairs.is_empty();
            for (left, right) in pairs {
                let sides = [(left, right), (right, left)];
                let equal =
                    sides.into_iter().find_map(|(one, other)| Some((column(one, names, self)?, other)));
                let Some((column, value)) = equal.filter(|(column, _)| column.table == target) else {
                    others = true;
                    continue;
                };
                if key.contains(&column.name.as_str()) {
                    of_key += 1;
                } else {
                    others = true;
                }
                if let Some(slot) = self.compared(value) {
                    passage.tests.push((slot, column));
                }
            }
        }
        passage.conditional = others && of_key >= key.len();
    }

    /// The only row of the only table that a condition can find, by its key.
    fn row(&self, condition: Option<&Expr>, names: &Names) -> Option<(RelationId, Vec<(String, Operand)>)> {
        let [table] = names.values().copied().collect::<Vec<_>>()[..] else { return None };
        let mut parts = Vec::new();
        conjuncts(condition?, &mut parts);
        let equal = |name: &str| {
            parts.iter().flat_map(|part| equalities(part)).find_map(|(left, right)| {
                [(left, right), (right, left)].into_iter().find_map(|(one, other)| {
                    let found = column(one, names, self).filter(|column| column.name == name)?;
                    Some((found.name, self.operand(other)?))
                })
            })
        };
        let key = self.catalog.relations[table].key_names();
        let row: Option<Vec<(String, Operand)>> = key.into_iter().map(equal).collect();
        row.filter(|row| !row.is_empty()).map(|row| (table, row))
    }

    fn operand(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Value(value)
                if !matches!(value.value, Value::Placeholder(_))
                    && !self.text.is_partly_variable(value.span.start) =>
            {
                Some(Operand::Literal(value.to_string()))
            }
            _ => self.compared(expr).map(Operand::Variable),
        }
    }

    /// The columns that an UPDATE sets to a variable's value as it is.
    fn assigns(&self, update: &Update) -> Vec<(String, Slot)> {
        let plain = update.assignments.iter().filter_map(|assignment| {
            let AssignmentTarget::ColumnName(name) = &assignment.target else { return None };
            let [part] = name.0.as_slice() else { return None };
            Some((ident(part.as_ident()?), self.variable(&assignment.value)?))
        });
        plain.collect()
    }

    /// The variable with whose value something is compared: as it is or in quotes, casts aside.
    fn compared(&self, expr: &Expr) -> Option<Slot> {
        match expr {
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => self.compared(inner),
            Expr::Value(literal) => self.variable(expr).or_else(|| self.text.variable_in_quotes(literal)),
            _ => None,
        }
    }

    /// The variable that an expression consists of, casts aside.
    fn variable(&self, expr: &Expr) -> Option<Slot> {
        match expr {
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => self.variable(inner),
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => self.text.variable(name),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The column that an expression consists of. A name without a table is that of the only table that
/// has such a column; system columns (`xmin`) are of the only table.
fn column(expr: &Expr, names: &Names, examiner: &Examiner<'_>) -> Option<ColumnName> {
    match expr {
        Expr::Nested(inner) => column(inner, names, examiner),
        // As text a value is the same one, and so is a transaction's number as a whole number.
        Expr::Cast { expr: inner, data_type, format: None, .. } => {
            let of = column(inner, names, examiner)?;
            let same = matches!(data_type, DataType::Text) || is_system_column(&of.name);
            same.then_some(of)
        }
        Expr::Identifier(name) => {
            let name = ident(name);
            let has = |table: &&RelationId| {
                let relation = &examiner.catalog.relations[**table];
                relation.column(&name).is_some() || is_system_column(&name)
            };
            let mut found = names.values().filter(has);
            let table = *found.next()?;
            found.next().is_none().then_some(ColumnName { table, name })
        }
        Expr::CompoundIdentifier(parts) => {
            let [table, name] = parts.as_slice() else { return None };
            Some(ColumnName { table: *names.get(&ident(table))?, name: ident(name) })
        }
        _ => None,
    }
}

/// The name that the server gives to an output column without one (PostgreSQL manual, "Column
/// Labels"; the rest of its rules by trying).
pub(super) fn output_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => output_name(inner),
        Expr::Identifier(name) => Some(ident(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(ident),
        Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()).map(ident),
        Expr::Exists { .. } => Some("exists".to_owned()),
        // That of a value's type is the server's own name.
        Expr::Cast { expr, .. } => own_name(expr),
        Expr::Case { else_result, .. } => {
            Some(else_result.as_deref().and_then(own_name).unwrap_or_else(|| "case".to_owned()))
        }
        Expr::Value(_) | Expr::BinaryOp { .. } | Expr::UnaryOp { .. } => Some("?column?".to_owned()),
        _ => None,
    }
}

/// The name that an expression has by itself: that of a column or of a function. Casts and CASE keep it.
fn own_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => own_name(inner),
        Expr::Case { else_result, .. } => else_result.as_deref().and_then(own_name),
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) => output_name(expr),
        _ => None,
    }
}

/// The names of a statement's WITH queries, at any depth.
fn named_queries(statement: &Statement) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let _ = walk(statement, &mut |node| {
        if let Node::Query(query) = node {
            let all = query.with.iter().flat_map(|with| &with.cte_tables);
            names.extend(all.map(|cte| ident(&cte.alias.name)));
        }
        ControlFlow::Continue(())
    });
    names
}
