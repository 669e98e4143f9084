//! What a join missed.
//!
//! A join that only adds to each row of one table the rows of others has found all rows of that table
//! which match: a left join does, and an inner join along a foreign key. The rows that a left join adds
//! are all those that match the rows shown.
//!
//! Otherwise a row is missed because it isn't there or doesn't match, or because there is no row in the
//! other tables for it ([`Condition::Linked`]).
//!
//! If every condition that joins two tables requires columns to be equal that must both equal one
//! constant, the join is the product of what is found in each table. An inner join that has a row has
//! found all rows of each.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use isobench_isolation::observed::Comparison;
use isobench_script::{SearchValue, SearchWhen};
use sqlparser::ast::{BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, TableWithJoins};

use super::condition::{Table, take_key};
use super::from::{Item, Items, Source};
use super::walk::{Node, conjuncts, walk};
use super::{Condition, Examiner, Search, ident};
use isobench_sql::{ColumnType, Inheritance, Relation, RelationId, RelationKind};

/// A column: the table's place in FROM, and its name.
type Column = (usize, String);

/// Where a part of a condition belongs.
#[derive(Debug, Clone, Copy)]
enum Belongs {
    /// To the table at this place in FROM.
    Table(usize),
    /// To the tables at these places, of which it requires columns to be equal.
    Join(usize, usize),
}

/// The conditions of a join, by where they belong.
#[derive(Default, Clone)]
struct Conditions {
    /// For each table, those on its own columns.
    own: Vec<Vec<Condition>>,
    /// Pairs of columns that must be equal.
    equal: Vec<(Column, Column)>,
    /// For each table, true if a row of the result has one of it.
    inner: Vec<bool>,
}

/// The most tables of a join whose pairs of rows are followed: the search of each names all others.
const MOST_JOINED: usize = 24;

impl Conditions {
    /// Notes that a row of the result has one of this table, and so of those that it is joined to before.
    fn require(&mut self, item: usize) {
        self.inner[item] = true;
        let earlier: Vec<usize> = self
            .equal
            .iter()
            .filter_map(|(one, other)| match (one.0 == item, other.0 == item) {
                (true, false) => Some(other.0),
                (false, true) => Some(one.0),
                _ => None,
            })
            .filter(|other| *other < item && !self.inner[*other])
            .collect();
        for other in earlier {
            self.require(other);
        }
    }
}

/// True if a condition is never true of a row of NULLs.
fn is_strict(condition: &Condition) -> bool {
    match condition {
        Condition::Compare(..)
        | Condition::In(..)
        | Condition::Among(..)
        | Condition::Decimal(..)
        | Condition::Folded { .. }
        | Condition::Like(..) => true,
        Condition::Not(inner) => match &**inner {
            Condition::IsNull(_) => true,
            Condition::Not(_) | Condition::And(_) | Condition::Or(_) | Condition::True => false,
            other => is_strict(other),
        },
        Condition::And(parts) => parts.iter().any(is_strict),
        Condition::Or(parts) => !parts.is_empty() && parts.iter().all(is_strict),
        Condition::True
        | Condition::Found(_)
        | Condition::Linked { .. }
        | Condition::Absent
        | Condition::IsNull(_)
        | Condition::OneOf(..)
        | Condition::Before(_) => false,
    }
}

impl Examiner<'_> {
    /// The searches of a join, for each item. `None` if what it missed doesn't follow. `locks`: its rows
    /// may be others by the time they are locked.
    pub(super) fn join_searches(
        &self,
        from: &[TableWithJoins],
        condition: Option<&Expr>,
        items: &Items,
        locks: bool,
    ) -> Option<Vec<Vec<Search>>> {
        let conditions = self.conditions(from, condition, items)?;
        let settled = !locks || self.stay_joined(items, &conditions);
        let tree = if settled { self.tree(items, conditions.clone()) } else { None };
        tree.or_else(|| {
            let linked = if locks { None } else { self.linked(items, conditions.clone()) };
            linked.or_else(|| {
                let searches = self.searches_of(items, conditions)?;
                Some(searches.into_iter().map(|search| vec![search]).collect())
            })
        })
    }

    /// True if rows that are joined stay so: no script changes the columns by which they are.
    fn stay_joined(&self, items: &Items, conditions: &Conditions) -> bool {
        let changes = |(item, name): &Column| match items.list[*item].source {
            Source::Table { relation, .. } => {
                let table = self.catalog.root(relation);
                self.surroundings.removed.concerns(table, std::slice::from_ref(name), self.catalog)
            }
            _ => true,
        };
        !conditions.equal.iter().any(|(one, other)| changes(one) || changes(other))
    }

    /// Sorts the conditions of a join.
    fn conditions(
        &self,
        from: &[TableWithJoins],
        condition: Option<&Expr>,
        items: &Items,
    ) -> Option<Conditions> {
        let [table] = from else { return None };
        if items.natural || table.joins.len() + 1 != items.list.len() {
            return None;
        }
        let mut conditions = Conditions { own: vec![Vec::new(); items.list.len()], ..Conditions::default() };
        conditions.inner.push(true);
        let mut using = BTreeSet::new();
        for (place, join) in (1..).zip(&table.joins) {
            let (constraint, is_inner) = match &join.join_operator {
                JoinOperator::Join(on) | JoinOperator::Inner(on) => (on, true),
                JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (on, false),
                _ => return None,
            };
            conditions.inner.push(is_inner);
            self.join_condition((constraint, place, is_inner), items, &mut using, &mut conditions)?;
        }
        let mut parts = Vec::new();
        if let Some(condition) = condition {
            conjuncts(condition, &mut parts);
        }
        for part in parts {
            // A condition of WHERE on the missing side of a join takes its rows away.
            match self.sort_part(part, items, &using, &mut conditions)? {
                Belongs::Table(item) if conditions.inner[item] => {}
                // What isn't true of NULL asks for a row.
                Belongs::Table(item) if conditions.own[item].last().is_some_and(is_strict) => {
                    conditions.require(item);
                }
                Belongs::Join(one, other) if conditions.inner[one] && conditions.inner[other] => {}
                _ => return None,
            }
        }
        // An inner join needs a row of the tables that it is joined to.
        for place in 0..items.list.len() {
            if conditions.inner[place] {
                conditions.require(place);
            }
        }
        Some(conditions)
    }

    /// Adds the condition of the join with this number; `None` if it says more than which rows belong together.
    fn join_condition(
        &self,
        (constraint, place, is_inner): (&JoinConstraint, usize, bool),
        items: &Items,
        using: &mut BTreeSet<String>,
        conditions: &mut Conditions,
    ) -> Option<()> {
        match constraint {
            JoinConstraint::On(on) => {
                let mut parts = Vec::new();
                conjuncts(on, &mut parts);
                for part in parts {
                    // A condition of ON that doesn't concern a left join's own table only leaves
                    // that one away.
                    match self.sort_part(part, items, using, conditions)? {
                        Belongs::Table(item) if is_inner && conditions.inner.get(item) == Some(&true) => {}
                        Belongs::Table(item) if item == place => {}
                        Belongs::Join(one, other)
                            if is_inner
                                && [one, other]
                                    .iter()
                                    .all(|item| conditions.inner.get(*item) == Some(&true)) => {}
                        Belongs::Join(one, other) if one.max(other) == place => {}
                        _ => return None,
                    }
                }
            }
            JoinConstraint::Using(names) => {
                for name in names {
                    let [part] = name.0.as_slice() else { return None };
                    let name = ident(part.as_ident()?);
                    let has = |item: &usize| {
                        self.relation_of(&items.list[*item]).is_some_and(|it| it.column(&name).is_some())
                    };
                    let left = (0..place).find(has)?;
                    conditions.equal.push(((left, name.clone()), (place, name.clone())));
                    using.insert(name);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The searches of a join that adds rows to each row of one table. `None` if it isn't such a join.
    fn tree(&self, items: &Items, mut conditions: Conditions) -> Option<Vec<Vec<Search>>> {
        // By their own conditions alone it is known which rows of the tables joined are looked up.
        let written = conditions.own.clone();
        self.pass_constants(items, &mut conditions)?;
        let root = (0..items.list.len())
            .filter(|root| conditions.inner[*root])
            .find_map(|root| self.lossless(items, &conditions, &written, root).map(|needed| (root, needed)));
        let (root, needed) = root?;
        let mut searches = vec![Vec::new(); items.list.len()];
        let mut own = conditions.own[root].clone();
        own.extend(needed.into_iter().map(|column| Condition::Not(Box::new(Condition::IsNull(column)))));
        searches[root].push(Self::search_by(self.relation_of(&items.list[root])?, own)?);
        self.added(items, &conditions, &written, &mut searches)?;
        Some(searches)
    }

    /// The searches of an inner join that may lose rows of each of its tables, and of the tables that
    /// left joins add. `None` if it isn't known which pairs of rows it joins.
    fn linked(&self, items: &Items, mut conditions: Conditions) -> Option<Vec<Vec<Search>>> {
        if items.list.len() > MOST_JOINED {
            return None;
        }
        let written = conditions.own.clone();
        self.pass_constants(items, &mut conditions)?;
        let mut searches = vec![Vec::new(); items.list.len()];
        let inner: Vec<usize> = (0..items.list.len()).filter(|place| conditions.inner[*place]).collect();
        for &place in &inner {
            let mut joined = vec![place];
            let own = self.linked_from(items, &conditions, place, &mut joined)?;
            // Without a condition that joins them, a row of one has all of the other.
            if joined.len() < inner.len() {
                return None;
            }
            let relation = self.relation_of(&items.list[place])?;
            searches[place].push(Self::search_by(relation, own)?);
            searches[place].extend(self.joined_to_shown(items, &conditions, place, relation));
        }
        self.added(items, &conditions, &written, &mut searches)?;
        Some(searches)
    }

    /// The search of a table for the rows that are joined to those shown of the only table that it is
    /// joined to.
    fn joined_to_shown(
        &self,
        items: &Items,
        conditions: &Conditions,
        place: usize,
        relation: &Relation,
    ) -> Option<Search> {
        let mut pairs = conditions.equal.iter().filter_map(|(one, other)| {
            let (mine, theirs) = match (one.0 == place, other.0 == place) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => return None,
            };
            conditions.inner[theirs.0].then_some((mine, theirs))
        });
        let (mine, theirs) = pairs.next()?;
        if pairs.next().is_some() || !self.same_kind(items, mine, theirs) {
            return None;
        }
        let mut own = conditions.own[place].clone();
        own.push(Condition::OneOf(mine.1.clone(), theirs.0, theirs.1.clone()));
        Self::search_by(relation, own)
    }

    /// The conditions on a table of an inner join, with those on the tables that are joined to it and
    /// aren't among `joined`.
    fn linked_from(
        &self,
        items: &Items,
        conditions: &Conditions,
        from: usize,
        joined: &mut Vec<usize>,
    ) -> Option<Vec<Condition>> {
        let mut own = conditions.own[from].clone();
        let before = joined.clone();
        let pairs_with = |other: usize| -> Vec<(&Column, &Column)> {
            let pair = |(one, two): &'_ (Column, Column)| (one.0, two.0);
            let pairs = conditions.equal.iter().filter(|pairs| {
                let places = pair(pairs);
                places == (from, other) || places == (other, from)
            });
            pairs.map(|(one, two)| if one.0 == from { (one, two) } else { (two, one) }).collect()
        };
        for other in (0..items.list.len()).filter(|other| conditions.inner[*other] && *other != from) {
            let pairs = pairs_with(other);
            if pairs.is_empty() || before.contains(&other) {
                continue;
            }
            // More than one way to a table is no tree.
            if joined.contains(&other) {
                return None;
            }
            joined.push(other);
            if !pairs.iter().all(|(mine, theirs)| self.same_kind(items, mine, theirs)) {
                return None;
            }
            let inner = self.linked_from(items, conditions, other, joined)?;
            if inner.iter().any(|condition| condition.lists() > 0) {
                return None;
            }
            let Source::Table { relation, .. } = items.list[other].source else { return None };
            own.push(Condition::Linked {
                table: self.catalog.root(relation),
                pairs: pairs.iter().map(|(mine, theirs)| (mine.1.clone(), theirs.1.clone())).collect(),
                condition: Box::new(all_of(inner)),
            });
        }
        Some(own)
    }

    /// Adds the searches of the tables whose rows left joins add to those shown of others.
    fn added(
        &self,
        items: &Items,
        conditions: &Conditions,
        written: &[Vec<Condition>],
        searches: &mut [Vec<Search>],
    ) -> Option<()> {
        for place in (0..items.list.len()).filter(|place| !conditions.inner[*place]) {
            let mut own = written[place].clone();
            let mut added = None;
            for (one, other) in &conditions.equal {
                let (mine, theirs) = match (one.0 == place, other.0 == place) {
                    (true, false) => (one, other),
                    (false, true) => (other, one),
                    _ => continue,
                };
                // It is a condition of a later join.
                if theirs.0 > place {
                    continue;
                }
                if !self.same_kind(items, mine, theirs) {
                    return None;
                }
                let fixed =
                    constant(&conditions.own[theirs.0], &theirs.1).filter(|_| conditions.inner[theirs.0]);
                match (fixed, &added) {
                    (_, None) => added = Some(Condition::OneOf(mine.1.clone(), theirs.0, theirs.1.clone())),
                    (Some(value), _) => {
                        own.push(Condition::Compare(mine.1.clone(), Comparison::Equal, value));
                    }
                    // Two columns of one row belong together.
                    (None, Some(_)) => return None,
                }
            }
            own.push(added?);
            searches[place].push(Self::search_by(self.relation_of(&items.list[place])?, own)?);
        }
        Some(())
    }

    /// Checks that an inner join finds one row of each other table for each row of the root: each is
    /// looked up along a foreign key. Returns the columns of the root that mustn't be NULL.
    fn lossless(
        &self,
        items: &Items,
        conditions: &Conditions,
        written: &[Vec<Condition>],
        root: usize,
    ) -> Option<Vec<String>> {
        let mut joined = vec![root];
        let mut needed = Vec::new();
        let mut used = vec![false; conditions.equal.len()];
        let inner: Vec<usize> = (0..items.list.len()).filter(|place| conditions.inner[*place]).collect();
        while joined.len() < inner.len() {
            let mut ways = joined.iter().flat_map(|from| {
                let open = inner.iter().filter(|place| !joined.contains(place));
                open.filter_map(|to| Some((*to, self.reference(items, conditions, written, (*from, *to))?)))
            });
            let (to, (columns, pairs)) = ways.next()?;
            for (from, column) in columns {
                let relation = self.relation_of(&items.list[from])?;
                let nullable = !relation.columns[relation.column(&column)?].not_null;
                if nullable && from != root {
                    return None;
                }
                needed.extend(Some(column).filter(|_| nullable));
            }
            for pair in pairs {
                used[pair] = true;
            }
            joined.push(to);
        }
        // Any other condition that joins two of them may take rows away.
        for (place, pair) in conditions.equal.iter().enumerate() {
            let both = conditions.inner[pair.0.0] && conditions.inner[pair.1.0];
            let again = || {
                let same =
                    |other: &(Column, Column)| other == pair || (&other.1, &other.0) == (&pair.0, &pair.1);
                conditions.equal.iter().zip(&used).any(|(other, used)| *used && same(other))
            };
            if both && !used[place] && !again() {
                return None;
            }
        }
        needed.dedup();
        Some(needed)
    }

    /// The foreign key by which every row of one item has one row of another, that fulfils all of its
    /// conditions: its columns, and the places of the conditions that it stands for.
    fn reference(
        &self,
        items: &Items,
        conditions: &Conditions,
        written: &[Vec<Condition>],
        (from, to): (usize, usize),
    ) -> Option<(Vec<Column>, Vec<usize>)> {
        let (own, other) = (self.relation_of(&items.list[from])?, self.relation_of(&items.list[to])?);
        let plain = |relation: &Relation| {
            relation.kind == RelationKind::Table && relation.inheritance == Inheritance::None
        };
        if !plain(own) || !plain(other) {
            return None;
        }
        let of = |relation: &Relation, name: &(String, String)| {
            (&relation.schema, &relation.name) == (&name.0, &name.1)
        };
        let keys = self.catalog.foreign_keys.iter();
        keys.filter(|key| key.valid && of(own, &key.table) && of(other, &key.referenced)).find_map(|key| {
            let table = self.catalog.resolve(Some(&other.schema), &other.name)?;
            let late = key.deferrable
                && self.surroundings.removed.concerns(table, &key.referenced_columns, self.catalog);
            if late {
                return None;
            }
            let mut pairs = Vec::new();
            for (column, referenced) in key.columns.iter().zip(&key.referenced_columns) {
                let (column, referenced) = ((from, column.clone()), (to, referenced.clone()));
                let is_pair = |(one, two): &(Column, Column)| {
                    (one, two) == (&column, &referenced) || (one, two) == (&referenced, &column)
                };
                pairs.push(conditions.equal.iter().position(is_pair)?);
            }
            // What is asked of the row must follow from what is asked of the row that refers to it.
            let follows = |condition: &Condition| match condition {
                Condition::Compare(name, Comparison::Equal, value) => {
                    let column = key.referenced_columns.iter().position(|column| column == name);
                    let column = column.map(|place| &key.columns[place]);
                    column
                        .is_some_and(|column| constant(&conditions.own[from], column).as_ref() == Some(value))
                }
                _ => false,
            };
            let columns = key.columns.iter().map(|column| (from, column.clone())).collect();
            written[to].iter().all(follows).then_some((columns, pairs))
        })
    }

    /// A search of a table by conditions.
    pub(super) fn search_by(relation: &Relation, mut own: Vec<Condition>) -> Option<Search> {
        if own.iter().map(Condition::lists).sum::<usize>() > 1 {
            return None;
        }
        let key = if relation.has_children() { None } else { take_key(relation, &mut own) };
        Some(Search { key, condition: all_of(own), referred: None, when: SearchWhen::Always })
    }

    /// Passes constants from columns to those that must be equal to them. Returns which pairs are equal
    /// to one; `None` if two constants differ.
    fn pass_constants(&self, items: &Items, conditions: &mut Conditions) -> Option<Vec<bool>> {
        let mut settled = vec![false; conditions.equal.len()];
        loop {
            let mut more = false;
            for (place, (one, other)) in conditions.equal.iter().enumerate() {
                if settled[place] {
                    continue;
                }
                for (from, to) in [(one, other), (other, one)] {
                    // From a side that may be missing nothing passes.
                    let passes = conditions.inner[from.0];
                    if let Some(value) = constant(&conditions.own[from.0], &from.1).filter(|_| passes)
                        && self.same_kind(items, from, to)
                    {
                        let there = constant(&conditions.own[to.0], &to.1);
                        if there.is_none() {
                            let equal = Condition::Compare(to.1.clone(), Comparison::Equal, value);
                            conditions.own[to.0].push(equal);
                        } else if there != Some(value) {
                            return None;
                        }
                        (settled[place], more) = (true, true);
                        break;
                    }
                }
            }
            if !more {
                return Some(settled);
            }
        }
    }

    /// The searches of a join by constants alone.
    fn searches_of(&self, items: &Items, mut conditions: Conditions) -> Option<Vec<Search>> {
        if self.pass_constants(items, &mut conditions)?.contains(&false) {
            return None;
        }
        let inner = &conditions.inner;
        let all_left = inner.iter().skip(1).all(|inner| !inner);
        let mut searches = Vec::new();
        for (place, (item, own)) in items.list.iter().zip(conditions.own).enumerate() {
            let when = if place == 0 && all_left { SearchWhen::Always } else { SearchWhen::Found(0) };
            searches.push(Search { when, ..Self::search_by(self.relation_of(item)?, own)? });
        }
        Some(searches)
    }

    /// Adds a part of a condition where it belongs; `None` if it can't be evaluated.
    fn sort_part(
        &self,
        part: &Expr,
        items: &Items,
        using: &BTreeSet<String>,
        conditions: &mut Conditions,
    ) -> Option<Belongs> {
        if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part
            && let (Some(one), Some(other)) = (self.column_of(left, items), self.column_of(right, items))
            && one.0 != other.0
        {
            let places = Belongs::Join(one.0, other.0);
            conditions.equal.push((one, other));
            return Some(places);
        }
        for (place, item) in items.list.iter().enumerate() {
            let relation = self.relation_of(item)?;
            let table = Table { examiner: self, relation, item };
            if let Some(condition) = table.condition(part) {
                // Without a table, a column must be one of this table alone.
                let alone = |name: &str| {
                    let others = items.list.iter().enumerate().filter(|(other, _)| *other != place);
                    using.contains(name)
                        || !others.into_iter().any(|(_, item)| {
                            self.relation_of(item).is_none_or(|other| other.column(name).is_some())
                        })
                };
                if unqualified(part).iter().all(|name| alone(name)) {
                    if condition != Condition::True {
                        conditions.own[place].push(condition);
                    }
                    return Some(Belongs::Table(place));
                }
                return None;
            }
        }
        None
    }

    /// The table of an item, if it is one of which all rows are meant.
    fn relation_of(&self, item: &Item) -> Option<&Relation> {
        let relation: RelationId = match item.source {
            Source::Table { relation, part: false } => relation,
            _ => return None,
        };
        Some(&self.catalog.relations[self.catalog.root(relation)])
    }

    /// The column that an expression with a table's name denotes.
    fn column_of(&self, expr: &Expr, items: &Items) -> Option<Column> {
        match expr {
            Expr::Nested(inner) => self.column_of(inner, items),
            Expr::CompoundIdentifier(parts) => {
                let (schema, table, name): (Option<&Ident>, &Ident, &Ident) = match parts.as_slice() {
                    [table, name] => (None, table, name),
                    [schema, table, name] => (Some(schema), table, name),
                    _ => return None,
                };
                let place = items.list.iter().position(|item| item.name == ident(table))?;
                // With an alias, the server would refuse a schema.
                let own = self.relation_of(&items.list[place])?;
                if schema.is_some_and(|schema| ident(schema) != own.schema) {
                    return None;
                }
                let name = ident(name);
                self.relation_of(&items.list[place])?.column(&name)?;
                Some((place, name))
            }
            Expr::Identifier(name) => {
                let name = ident(name);
                let has = |place: &usize| {
                    self.relation_of(&items.list[*place])
                        .is_some_and(|relation| relation.column(&name).is_some())
                };
                let mut places = (0..items.list.len()).filter(has);
                let place = places.next()?;
                places.next().is_none().then_some((place, name))
            }
            _ => None,
        }
    }

    /// True if two columns have values of one comparable kind.
    fn same_kind(&self, items: &Items, one: &Column, other: &Column) -> bool {
        let kind = |column: &Column| {
            let relation = self.relation_of(&items.list[column.0])?;
            Some(relation.columns[relation.column(&column.1)?].kind)
        };
        match (kind(one), kind(other)) {
            (Some(one), Some(other)) => {
                one == other && !matches!(one, ColumnType::Boolean | ColumnType::Enum) && one.form().is_some()
            }
            _ => false,
        }
    }
}

/// All of these conditions.
pub(super) fn all_of(mut conditions: Vec<Condition>) -> Condition {
    match conditions.len() {
        0 => Condition::True,
        1 => conditions.remove(0),
        _ => Condition::And(conditions),
    }
}

/// The value that a column must have.
fn constant(conditions: &[Condition], name: &str) -> Option<SearchValue> {
    conditions.iter().find_map(|condition| match condition {
        Condition::Compare(column, Comparison::Equal, value) if column == name => Some(value.clone()),
        _ => None,
    })
}

/// The columns in an expression that stand without a table.
fn unqualified(expr: &Expr) -> Vec<String> {
    let mut names = Vec::new();
    let _ = walk(expr, &mut |node| {
        if let Node::Expr(Expr::Identifier(name)) = node {
            names.push(ident(name));
        }
        ControlFlow::Continue(())
    });
    names
}
