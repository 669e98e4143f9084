//! Writes the output columns that show rows, and tells the runner where they are.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::observed::{Linked, Place, Predicate};
use isobench_script::{
    ObservedRows, ObservedSearch, ObservedStatement, Referred, RowField, RowRole, SearchOperand, SearchValue,
};

use crate::statement::{Condition, Finding, Ordered, Packing, Role, Search, Shown};
use isobench_sql::{Catalog, Relation, RelationId};

/// The observed tables, by number, and the columns that are kept of each.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub numbers: BTreeMap<RelationId, u16>,
    pub list: Vec<(RelationId, Vec<String>)>,
}

impl Tables {
    /// The number of a table, which is new if it has none.
    pub(crate) fn number(&mut self, table: RelationId) -> u16 {
        *self.numbers.entry(table).or_insert_with(|| {
            self.list.push((table, Vec::new()));
            u16::try_from(self.list.len() - 1).unwrap_or(u16::MAX)
        })
    }

    /// Keeps a column of a table.
    pub(crate) fn keep(&mut self, table: RelationId, column: &str) {
        let number = usize::from(self.number(table));
        if let Some((_, columns)) = self.list.get_mut(number)
            && !columns.iter().any(|kept| kept == column)
        {
            columns.push(column.to_owned());
        }
    }

    pub(crate) fn columns(&self, table: RelationId) -> &[String] {
        let number = self.numbers.get(&table).copied().map(usize::from);
        number.and_then(|number| self.list.get(number)).map_or(&[], |(_, columns)| columns)
    }

    fn place(&self, table: RelationId, column: &str) -> u16 {
        let place = self.columns(table).iter().position(|kept| kept == column);
        place.and_then(|place| u16::try_from(place).ok()).unwrap_or(u16::MAX)
    }
}

/// The columns that a condition on a table mentions, with their tables.
pub(crate) fn mentioned(table: RelationId, condition: &Condition, columns: &mut Vec<(RelationId, String)>) {
    match condition {
        Condition::True | Condition::Absent => {}
        Condition::Linked { table: other, pairs, condition } => {
            for (own, theirs) in pairs {
                columns.extend([(table, own.clone()), (*other, theirs.clone())]);
            }
            mentioned(*other, condition, columns);
        }
        Condition::Compare(name, ..)
        | Condition::In(name, _)
        | Condition::Among(name, _)
        | Condition::OneOf(name, ..)
        | Condition::IsNull(name)
        | Condition::Decimal(name, ..)
        | Condition::Folded { name, .. }
        | Condition::Like(name, ..) => columns.push((table, name.clone())),
        Condition::Before(order) => {
            columns.extend(order.iter().map(|column| (table, column.name.clone())));
        }
        Condition::Not(inner) | Condition::Found(inner) => mentioned(table, inner, columns),
        Condition::And(parts) | Condition::Or(parts) => {
            for part in parts {
                mentioned(table, part, columns);
            }
        }
    }
}

/// The entry of rows whose column a condition compares with, and the column.
pub(crate) fn elsewhere(condition: &Condition) -> Option<(usize, &str)> {
    match condition {
        Condition::OneOf(_, entry, other) => Some((*entry, other)),
        Condition::Not(inner) => elsewhere(inner),
        Condition::And(parts) | Condition::Or(parts) => parts.iter().find_map(elsewhere),
        _ => None,
    }
}

/// Builds the texts to insert, and the description of what they show.
pub(crate) struct Renderer<'a> {
    pub catalog: &'a Catalog,
    pub tables: &'a mut Tables,
    pub predicates: &'a mut Vec<Predicate>,
}

/// The texts to insert, each with its place; and what they show.
pub(crate) type Rendered = (Vec<(usize, String)>, ObservedStatement);

/// A value of a row: its expression without the qualifier.
struct Value {
    /// The column as SQL writes it.
    column: String,
    /// The name that takes the qualifier's place: `old`.
    instead: Option<&'static str>,
    /// True if it has no qualifier at all.
    bare: bool,
}

/// The values of a row in order, and their places.
struct Layout {
    values: Vec<Value>,
    rows: ObservedRows,
}

impl Renderer<'_> {
    pub(crate) fn render(&mut self, finding: &Finding, statement: u32) -> Rendered {
        let mut insertions: Vec<(usize, String)> = finding.additions.clone();
        let mut fresh: BTreeMap<usize, String> = BTreeMap::new();
        let (mut appended, mut inner) = (0_u16, 0_usize);
        let mut rows = Vec::with_capacity(finding.shown.len());
        for shown in &finding.shown {
            let layout = self.layout(shown);
            let names = inner_columns(shown, &layout, &mut inner, &mut fresh);
            rows.push(outer_columns(shown, layout, names, &mut appended, &mut fresh));
        }
        insertions.extend(fresh);
        insertions.sort_by_key(|(at, _)| *at);
        let searches = finding
            .searches()
            .map(|(place, table, search)| self.search(finding, (place, table), search))
            .collect();
        let numbers = |tables: &BTreeSet<RelationId>| {
            tables.iter().filter_map(|table| self.tables.numbers.get(table).copied()).collect()
        };
        let unseen = numbers(&finding.unseen);
        let limit = finding.limit.clone();
        (insertions, ObservedStatement { statement, appended, rows, searches, limit, unseen })
    }

    fn layout(&mut self, shown: &Shown) -> Layout {
        let relation = &self.catalog.relations[shown.table];
        let mut values: Vec<Value> = Vec::new();
        let plain = |column: String| Value { column, instead: None, bare: false };
        if shown.role == Role::Merged {
            values.push(Value { column: "merge_action()".to_owned(), instead: None, bare: true });
        }
        let first_key = values.len();
        values.extend(relation.key_names().iter().map(|name| plain(quoted(name))));
        if relation.has_children() {
            values.push(plain("tableoid".to_owned()));
        }
        let version = values.len();
        if shown.transaction {
            let column = "pg_catalog.pg_current_xact_id()::pg_catalog.xid".to_owned();
            values.push(Value { column, instead: None, bare: true });
        } else {
            values.push(plain("xmin".to_owned()));
        }
        let replaced = shown.old.map(|old| {
            values.push(Value { column: "xmin".to_owned(), instead: Some(old), bare: false });
            values.len() - 1
        });
        let conflict = (shown.role == Role::Upserted).then(|| {
            values.push(plain("xmax".to_owned()));
            values.len() - 1
        });
        let first_column = values.len();
        let columns = self.tables.columns(shown.table);
        values.extend(columns.iter().map(|name| plain(quoted(name))));
        let role = match shown.role {
            Role::Read => RowRole::Read,
            Role::Inserted => RowRole::Inserted,
            Role::Updated => RowRole::Updated,
            Role::Deleted => RowRole::Deleted,
            Role::Upserted => RowRole::Upserted(field(conflict.unwrap_or_default())),
            Role::Merged => RowRole::Merged(0),
        };
        let rows = ObservedRows {
            table: self.tables.number(shown.table),
            role,
            packed: None,
            key: (first_key..version).map(field).collect(),
            version: field(version),
            replaced: replaced.map(field),
            columns: (first_column..values.len()).map(field).collect(),
        };
        Layout { values, rows }
    }

    fn search(
        &mut self,
        finding: &Finding,
        (rows, table): (Option<usize>, RelationId),
        search: &Search,
    ) -> ObservedSearch {
        let mut operands = Vec::new();
        let mut list = None;
        let mut predicate = self.predicate(table, &search.condition, &mut operands, &mut list);
        if let Some(list) = list {
            let (name, value) = match list {
                Condition::Among(name, array) => (name, SearchValue::Elements(Box::new(array.clone()))),
                Condition::OneOf(name, entry, other) => {
                    let column = finding.shown.get(*entry).map(|shown| self.tables.place(shown.table, other));
                    (name, SearchValue::Shown { entry: *entry, column: column.unwrap_or(u16::MAX) })
                }
                _ => unreachable!("a list"),
            };
            place_list(&mut predicate, field(operands.len()));
            let column = self.tables.place(table, name);
            operands.push(SearchOperand { value, table: self.tables.number(table), column });
        }
        let number = self.predicates.iter().position(|known| *known == predicate).unwrap_or_else(|| {
            self.predicates.push(predicate);
            self.predicates.len() - 1
        });
        let (key, when) = (search.key.clone(), search.when);
        let referred = search.referred.as_ref().map(|(entry, name, each)| {
            let column = finding.shown.get(*entry).map(|shown| self.tables.place(shown.table, name));
            Referred { entry: *entry, column: column.unwrap_or(u16::MAX), each: *each }
        });
        ObservedSearch {
            table: self.tables.number(table),
            rows,
            when,
            predicate: field(number),
            key,
            operands,
            referred,
        }
    }

    /// Several conditions as predicates.
    fn all<'c>(
        &self,
        table: RelationId,
        conditions: &'c [Condition],
        operands: &mut Vec<SearchOperand>,
        list: &mut Option<&'c Condition>,
    ) -> Vec<Predicate> {
        conditions.iter().map(|one| self.predicate(table, one, operands, list)).collect()
    }

    /// The condition without the place of its list of operands, which come last.
    fn predicate<'c>(
        &self,
        table: RelationId,
        condition: &'c Condition,
        operands: &mut Vec<SearchOperand>,
        list: &mut Option<&'c Condition>,
    ) -> Predicate {
        let number = self.tables.numbers.get(&table).copied().unwrap_or(u16::MAX);
        let mut operand = |column: u16, value: &SearchValue| {
            operands.push(SearchOperand { value: value.clone(), table: number, column });
            field(operands.len() - 1)
        };
        match condition {
            Condition::True => Predicate::True,
            Condition::Linked { table: other, pairs, condition } => {
                let place = |(own, theirs): &(String, String)| {
                    (self.tables.place(table, own), self.tables.place(*other, theirs))
                };
                Predicate::Linked(Box::new(Linked {
                    table: self.tables.numbers.get(other).copied().unwrap_or(u16::MAX),
                    pairs: pairs.iter().map(place).collect(),
                    predicate: self.predicate(*other, condition, operands, list),
                }))
            }
            Condition::Absent => Predicate::Absent,
            Condition::Found(inner) => {
                Predicate::Found(Box::new(self.predicate(table, inner, operands, list)))
            }
            Condition::Folded { name, case, value, both, pattern } => {
                let column = self.tables.place(table, name);
                let operand = operand(column, value);
                Predicate::Folded { column, case: *case, operand, both: *both, pattern: *pattern }
            }
            Condition::Compare(name, comparison, value) => {
                let column = self.tables.place(table, name);
                Predicate::Compare { column, comparison: *comparison, operand: operand(column, value) }
            }
            Condition::In(name, values) => {
                let column = self.tables.place(table, name);
                let operands = values.iter().map(|value| operand(column, value)).collect();
                Predicate::In { column, operands }
            }
            Condition::IsNull(name) => Predicate::IsNull(self.tables.place(table, name)),
            Condition::Among(name, _) | Condition::OneOf(name, ..) => {
                *list = Some(condition);
                Predicate::Among { column: self.tables.place(table, name), first: 0 }
            }
            Condition::Decimal(name, comparison, value) => {
                let column = self.tables.place(table, name);
                Predicate::Decimal { column, comparison: *comparison, operand: operand(column, value) }
            }
            Condition::Like(name, pattern, escape) => {
                let column = self.tables.place(table, name);
                Predicate::Like { column, operand: operand(column, pattern), escape: *escape }
            }
            Condition::Before(order) => {
                let place = |ordered: &Ordered| {
                    let column = self.tables.place(table, &ordered.name);
                    let Ordered { descending, nulls_first, decimal, .. } = *ordered;
                    let operand = operand(column, &SearchValue::Last);
                    Place { column, operand, descending, nulls_first, decimal }
                };
                Predicate::Before(order.iter().map(place).collect())
            }
            Condition::Not(inner) => Predicate::Not(Box::new(self.predicate(table, inner, operands, list))),
            Condition::And(parts) => Predicate::And(self.all(table, parts, operands, list)),
            Condition::Or(parts) => Predicate::Or(self.all(table, parts, operands, list)),
        }
    }
}

/// Says where the list of operands starts.
fn place_list(predicate: &mut Predicate, place: u16) {
    match predicate {
        Predicate::Among { first, .. } => *first = place,
        Predicate::Not(inner) => place_list(inner, place),
        Predicate::And(parts) | Predicate::Or(parts) => {
            for part in parts {
                place_list(part, place);
            }
        }
        _ => {}
    }
}

/// The expression of each value in the statement's own list, after its lists further inside were
/// extended.
fn inner_columns(
    shown: &Shown,
    layout: &Layout,
    inner: &mut usize,
    fresh: &mut BTreeMap<usize, String>,
) -> Vec<String> {
    let Some((own, inside)) = shown.levels.split_last() else { return Vec::new() };
    let direct = |qualifier: &str| -> Vec<String> {
        let expression = |value: &Value| match (value.bare, value.instead) {
            (true, _) => value.column.clone(),
            (false, Some(instead)) => format!("{instead}.{}", value.column),
            (false, None) => format!("{qualifier}.{}", value.column),
        };
        layout.values.iter().map(expression).collect()
    };
    let mut expressions = match inside.first().or(Some(own)) {
        Some(first) => direct(&first.qualifier),
        None => Vec::new(),
    };
    for (place, level) in inside.iter().enumerate() {
        let outer = inside.get(place + 1).unwrap_or(own);
        let mut passed = Vec::with_capacity(expressions.len());
        for expression in &expressions {
            *inner += 1;
            add(fresh, level.at, level.before, &format!("{expression} AS isobench_r{inner}"));
            passed.push(format!("{}.isobench_r{inner}", outer.qualifier));
        }
        expressions = passed;
    }
    expressions
}

/// Extends the statement's own list; returns where its result shows the rows.
fn outer_columns(
    shown: &Shown,
    layout: Layout,
    expressions: Vec<String>,
    appended: &mut u16,
    fresh: &mut BTreeMap<usize, String>,
) -> ObservedRows {
    let mut rows = layout.rows;
    let Some(own) = shown.levels.last() else { return rows };
    if shown.packed == Packing::Plain {
        let first = *appended;
        for expression in expressions {
            *appended += 1;
            add(fresh, own.at, own.before, &format!("{expression} AS isobench_{appended}"));
            if let Some((at, before)) = shown.alongside {
                add(fresh, at, before, "NULL");
            }
        }
        shift(&mut rows, first);
        return rows;
    }
    let record = format!("pg_catalog.array_agg(ROW({}))", expressions.join(", "));
    let version = expressions.get(usize::from(rows.version)).cloned().unwrap_or_default();
    rows.packed = Some(*appended);
    *appended += 1;
    let text = match shown.packed {
        Packing::Subquery => format!("(SELECT {record} FROM {}) AS isobench_{appended}", own.qualifier),
        _ if shown.nullable => {
            format!("{record} FILTER (WHERE {version} IS NOT NULL) AS isobench_{appended}")
        }
        _ => format!("{record} AS isobench_{appended}"),
    };
    add(fresh, own.at, own.before, &text);
    rows
}

fn add(fresh: &mut BTreeMap<usize, String>, at: usize, before: &str, text: &str) {
    let place = fresh.entry(at).or_default();
    place.push_str(if place.is_empty() { before } else { ", " });
    place.push_str(text);
}

/// Counts the places from a first appended column on.
fn shift(rows: &mut ObservedRows, first: RowField) {
    for place in rows.key.iter_mut().chain(&mut rows.columns).chain(&mut rows.replaced) {
        *place += first;
    }
    rows.version += first;
    if let RowRole::Upserted(place) | RowRole::Merged(place) = &mut rows.role {
        *place += first;
    }
}

fn field(place: usize) -> RowField {
    RowField::try_from(place).unwrap_or(RowField::MAX)
}

/// A name as SQL writes it: in quotes, so that it may be a keyword or have capitals.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The columns of a key, for people: `(w_id, d_id)`.
pub(crate) fn key_text(relation: &Relation) -> String {
    let mut names = relation.key_names();
    if relation.has_children() {
        names.push("tableoid");
    }
    format!("({})", names.join(", "))
}
