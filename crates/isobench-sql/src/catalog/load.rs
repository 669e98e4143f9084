//! Reads the catalogs.

use std::collections::{BTreeMap, BTreeSet};

use crate::BUILTINS;

use super::hidden::Hidden;
use super::queries::{
    CALLED, CALLS, CHECKS, COLUMNS, FOREIGN_KEYS, FUNCTIONS, HIDDEN, JIT, KEYS, OPERATORS, RELATIONS,
    ROUTINES, SETTINGS, STANDING_IN, SYSTEM_FUNCTIONS, TRIGGERS, UNIQUENESS,
};
use super::relation::{
    Check, Column, ColumnType, Events, ForeignKey, Inheritance, OnChange, Relation, RelationKind, Run,
    Triggers, Uniqueness,
};
use super::trigger::RowBody;
use super::{Catalog, FunctionFacts, RelationId};
use crate::names::name_in_sql;

type Rows = Vec<Vec<Option<String>>>;

impl Catalog {
    /// Reads the catalogs by a function that sends a query and returns the rows as texts. The session
    /// should be as those of the scripts: the same database, user and `search_path`.
    ///
    /// # Errors
    /// The function's.
    pub fn load<E>(query: &mut dyn FnMut(&str) -> Result<Rows, E>) -> Result<Catalog, E> {
        let compiles = query(JIT)?.first().is_some_and(|row| text(row, 0) == "on");
        if compiles {
            query("SELECT pg_catalog.set_config('jit', 'off', false)")?;
        }
        let catalog = Self::read(query);
        if compiles {
            query("SELECT pg_catalog.set_config('jit', 'on', false)")?;
        }
        catalog
    }

    fn read<E>(query: &mut dyn FnMut(&str) -> Result<Rows, E>) -> Result<Catalog, E> {
        let mut catalog = Catalog::default();
        let mut iso = false;
        for row in query(SETTINGS)? {
            catalog.version = text(&row, 0).parse().unwrap_or(0);
            catalog.standard_strings = text(&row, 1) == "on";
            catalog.search_path.push(text(&row, 2));
            iso = truth(&row, 3);
        }
        catalog.relations = query(RELATIONS)?.iter().map(|row| relation(row)).collect();
        catalog.relations.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        catalog.relations.iter().for_each(|relation| catalog.hidden.note(relation));
        for id in 0..catalog.relations.len() {
            let found = catalog.resolve(None, &catalog.relations[id].name);
            catalog.relations[id].visible = found == Some(id);
            catalog.relations[id].shadowed = found.is_some_and(|found| found != id);
        }
        let mut sequences = Vec::new();
        for row in query(COLUMNS)? {
            if let Some(id) = catalog.resolve(Some(&text(&row, 0)), &text(&row, 1)) {
                let kind = column_type(&text(&row, 3), iso);
                let (generated, not_null) = (truth(&row, 4), truth(&row, 5));
                let name = text(&row, 2);
                // Of a sequence it isn't known yet where it stands.
                let (sequence, plain_case) = (oid(&row, 6), truth(&row, 7));
                let fresh = sequence == 0 && !text(&row, 6).is_empty();
                let number = i32::try_from(number(&row, 8)).unwrap_or(0);
                let (exact, clock) = (truth(&row, 9), truth(&row, 10));
                let column =
                    Column { number, name, kind, generated, not_null, plain_case, fresh, exact, clock };
                if sequence != 0 {
                    sequences.push((id, catalog.relations[id].columns.len(), sequence));
                }
                catalog.relations[id].columns.push(column);
            }
        }
        add_keys(&mut catalog, &query(KEYS)?);
        note_fresh(&mut catalog, &sequences, query);
        catalog.foreign_keys = foreign_keys(&query(FOREIGN_KEYS)?);
        add_functions(&mut catalog, query)?;
        catalog.add_routines(&query(ROUTINES)?);
        add_rules_of_rows(&mut catalog, query)?;
        add_hidden(&mut catalog.hidden, &query(HIDDEN)?);
        for row in query(STANDING_IN)? {
            catalog.hidden.always.push(text(&row, 1));
            catalog.standing_in.get_or_insert(text(&row, 0));
        }
        for row in query(TRIGGERS)? {
            add_trigger(&mut catalog, &row);
        }
        Ok(catalog)
    }
}

/// Adds functions, operators and types, as far as they matter where they are called.
fn add_functions<E>(catalog: &mut Catalog, query: &mut dyn FnMut(&str) -> Result<Rows, E>) -> Result<(), E> {
    for row in query(FUNCTIONS)? {
        let facts = FunctionFacts {
            aggregate: truth(&row, 1),
            set: truth(&row, 2),
            writes: truth(&row, 3),
            reads: truth(&row, 4),
            plain: truth(&row, 5),
        };
        catalog.functions.insert(text(&row, 0), facts);
    }
    for row in query(OPERATORS)? {
        if truth(&row, 1) {
            catalog.writing_operators.insert(text(&row, 0));
        }
        catalog.operators.insert(text(&row, 0));
    }
    for row in query(SYSTEM_FUNCTIONS)? {
        if truth(&row, 2) {
            catalog.called.functions.insert(oid(&row, 0), text(&row, 1));
            catalog.hidden.looking.insert(text(&row, 1));
        }
    }
    for row in query(BUILTINS)? {
        let (oid, builtins) = (oid(&row, 1), &mut catalog.builtins);
        match text(&row, 0).as_str() {
            "=" => {
                builtins.equalities.insert(oid);
            }
            "()" => drop(builtins.immutable.insert(oid, text(&row, 2))),
            _ => drop(builtins.types.insert(oid, text(&row, 2))),
        }
    }
    for row in query(CALLED)? {
        let oids = match text(&row, 0).as_str() {
            "f" => &mut catalog.called.functions,
            "o" => &mut catalog.called.operators,
            _ => &mut catalog.called.types,
        };
        oids.insert(oid(&row, 1), text(&row, 2));
    }
    Ok(())
}

fn text(row: &[Option<String>], place: usize) -> String {
    row.get(place).cloned().flatten().unwrap_or_default()
}

fn truth(row: &[Option<String>], place: usize) -> bool {
    text(row, place) == "t"
}

fn number(row: &[Option<String>], place: usize) -> i64 {
    text(row, place).parse().unwrap_or(0)
}

fn oid(row: &[Option<String>], place: usize) -> u32 {
    u32::try_from(number(row, place)).unwrap_or(0)
}

fn relation(row: &[Option<String>]) -> Relation {
    let kind = match text(row, 2).as_str() {
        "r" => RelationKind::Table,
        "p" => RelationKind::Partitioned,
        "v" => RelationKind::View,
        "m" => RelationKind::Materialized,
        "f" => RelationKind::Foreign,
        "*" => RelationKind::System,
        "?" => RelationKind::Stored,
        _ => RelationKind::Other,
    };
    let root = (text(row, 9), text(row, 10));
    let inheritance = match (truth(row, 4), number(row, 7), truth(row, 8)) {
        (true, ..) => Inheritance::Partition { root },
        (false, 0, has_children) if has_children && kind != RelationKind::Partitioned => Inheritance::Parent,
        (false, 0, _) => Inheritance::None,
        (false, 1, _) => Inheritance::Child { root },
        _ => Inheritance::Several,
    };
    Relation {
        oid: oid(row, 14),
        schema: text(row, 0),
        name: text(row, 1),
        visible: false,
        shadowed: false,
        kind,
        temporary: truth(row, 3),
        inheritance,
        columns: Vec::new(),
        key: Vec::new(),
        unique: Vec::new(),
        triggers: Triggers::default(),
        rules: truth(row, 6),
        row_security: truth(row, 5),
        selectable: truth(row, 12),
        only_key: truth(row, 13),
        calls_writing: truth(row, 11),
        calls: false,
        checks: Vec::new(),
        uniqueness: Vec::new(),
    }
}

/// Adds what writing a row depends on: conditions, other rows, and functions.
fn add_rules_of_rows<E>(
    catalog: &mut Catalog,
    query: &mut dyn FnMut(&str) -> Result<Rows, E>,
) -> Result<(), E> {
    let names = |row: &[Option<String>], place: usize| -> BTreeSet<String> {
        serde_json::from_str(&text(row, place)).unwrap_or_default()
    };
    for row in query(CHECKS)? {
        if let Some(id) = catalog.resolve(Some(&text(&row, 0)), &text(&row, 1)) {
            let check = Check { columns: names(&row, 3), valid: truth(&row, 2) };
            catalog.relations[id].checks.push(check);
        }
    }
    for row in query(UNIQUENESS)? {
        if let Some(id) = catalog.resolve(Some(&text(&row, 0)), &text(&row, 1)) {
            let (columns, partial, deferrable) = (names(&row, 4), truth(&row, 2), truth(&row, 3));
            catalog.relations[id].uniqueness.push(Uniqueness { columns, partial, deferrable });
        }
    }
    for row in query(CALLS)? {
        match (row.first().and_then(Option::as_ref), row.get(1).and_then(Option::as_ref)) {
            (Some(schema), Some(name)) => {
                if let Some(id) = catalog.resolve(Some(schema), name) {
                    catalog.relations[id].calls = true;
                }
            }
            _ => drop(catalog.called.types.insert(oid(&row, 1), text(&row, 2))),
        }
    }
    Ok(())
}

/// Adds the texts of code that isn't analysed.
fn add_hidden(hidden: &mut Hidden, rows: &Rows) {
    for row in rows {
        let (name, code) = (text(row, 1), text(row, 2));
        match text(row, 0).as_str() {
            "n" => hidden.named.entry(name.to_lowercase()).or_default().push(code),
            "o" => hidden.operators.entry(name).or_default().push(code),
            "a" => hidden.always.push(code),
            _ => drop(hidden.unreadable.insert(name.to_lowercase())),
        }
    }
}

/// Notes what a trigger does. The bits of `tgtype` are: 1 row, 2 before, 4 INSERT, 8 DELETE, 16 UPDATE.
fn add_trigger(catalog: &mut Catalog, row: &[Option<String>]) {
    let Some(id) = catalog.resolve(Some(&text(row, 0)), &text(row, 1)) else { return };
    let bits = number(row, 2);
    let events = Events { insert: bits & 4 != 0, update: bits & 16 != 0, delete: bits & 8 != 0 };
    let (own, has_condition) = (truth(row, 3), truth(row, 4));
    let body = row.get(5).and_then(Option::as_deref).and_then(|source| RowBody::of(source, catalog));
    // What isn't a column may be a function of the row.
    let relation = &catalog.relations[id];
    let body = body.filter(|body| {
        body.assigned.iter().chain(&body.reads).all(|column| relation.column(column).is_some())
    });
    let triggers = &mut catalog.relations[id].triggers;
    if body.is_none() && !own {
        triggers.unknown.add(events);
        // Its condition may call functions, and a constraint may wait for COMMIT.
        triggers.opaque |= truth(row, 8) || row.get(5).is_none_or(Option::is_none);
        triggers.runs.insert(Run { function: oid(row, 6), table: oid(row, 7) });
    }
    if let Some(body) = &body {
        triggers.reads.extend(body.reads.iter().cloned());
        triggers.reads_row |= body.reads_row || has_condition;
    }
    // Others change nothing of the row.
    if bits & 3 != 3 {
        return;
    }
    let writes_all = body.as_ref().is_some_and(RowBody::writes_all);
    let deletes_all = body.as_ref().is_some_and(RowBody::deletes_all);
    triggers.before_row.add(Events {
        insert: events.insert && !writes_all,
        update: events.update && !writes_all,
        delete: events.delete && !deletes_all,
    });
    let Some(body) = body else { return };
    if events.insert {
        triggers.on_insert.extend(body.assigned.iter().cloned());
    }
    if events.update {
        triggers.on_update.extend(body.assigned.iter().cloned());
    }
}

/// `iso`: dates and times are printed in ISO 8601.
fn column_type(name: &str, iso: bool) -> ColumnType {
    match name {
        "integer" => ColumnType::Integer,
        "boolean" => ColumnType::Boolean,
        "text" => ColumnType::Text,
        "enum" => ColumnType::Enum,
        "uuid" => ColumnType::Uuid,
        "numeric" => ColumnType::Decimal,
        "date" if iso => ColumnType::Date,
        "timestamp" if iso => ColumnType::Timestamp,
        "timestamptz" if iso => ColumnType::Instant,
        "composite" => ColumnType::Composite,
        _ => ColumnType::Scalar,
    }
}

/// The most columns with sequences of which the greatest value is looked at.
const MOST_SEQUENCES: usize = 1000;

/// Notes the columns whose sequences are at their greatest value, or above: those that have an index to find it, and may
/// be read. `sequences` are tables, columns and the OIDs of their sequences.
fn note_fresh<E>(
    catalog: &mut Catalog,
    sequences: &[(RelationId, usize, u32)],
    query: &mut dyn FnMut(&str) -> Result<Rows, E>,
) {
    let readable = |(id, column, _): &&(RelationId, usize, u32)| {
        let relation = &catalog.relations[*id];
        let indexed = relation.keys().any(|key| key.first() == Some(column));
        relation.selectable && !relation.row_security && indexed
    };
    let readable: Vec<_> = sequences.iter().filter(readable).take(MOST_SEQUENCES).copied().collect();
    let of = |(number, (id, column, sequence)): (usize, &(RelationId, usize, u32))| {
        let relation = &catalog.relations[*id];
        let (schema, table) = (name_in_sql(&relation.schema), name_in_sql(&relation.name));
        let column = name_in_sql(&relation.columns[*column].name);
        format!(
            "SELECT {number}, coalesce(pg_catalog.max({column}) <= CASE WHEN \
             pg_catalog.has_sequence_privilege({sequence}::oid, 'USAGE, SELECT') \
             THEN pg_catalog.pg_sequence_last_value({sequence}::oid) END, pg_catalog.max({column}) IS NULL) \
             FROM {schema}.{table}"
        )
    };
    let queries: Vec<String> = readable.iter().enumerate().map(of).collect();
    if queries.is_empty() {
        return;
    }
    // What can't be read is not known to be fresh.
    let Ok(rows) = query(&queries.join(" UNION ALL ")) else { return };
    for row in rows.iter().filter(|row| truth(row, 1)) {
        if let Some((id, column, _)) =
            usize::try_from(number(row, 0)).ok().and_then(|place| readable.get(place))
        {
            catalog.relations[*id].columns[*column].fresh = true;
        }
    }
}

/// The first index of each table is the best.
fn add_keys(catalog: &mut Catalog, rows: &Rows) {
    let mut indexes: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for row in rows {
        let Some(id) = catalog.resolve(Some(&text(row, 0)), &text(row, 1)) else { continue };
        let relation = &mut catalog.relations[id];
        let place = *indexes.entry((id, text(row, 2))).or_insert_with(|| {
            relation.unique.push(Vec::new());
            relation.unique.len() - 1
        });
        let column = relation.column(&text(row, 3));
        relation.unique[place].extend(column);
    }
    for relation in &mut catalog.relations {
        relation.key = relation.unique.first().cloned().unwrap_or_default();
    }
}

fn foreign_keys(rows: &Rows) -> Vec<ForeignKey> {
    let mut keys: Vec<(String, ForeignKey)> = Vec::new();
    for row in rows {
        let number = text(row, 0);
        if keys.last().is_none_or(|(last, _)| *last != number) {
            let key = ForeignKey {
                table: (text(row, 1), text(row, 2)),
                columns: Vec::new(),
                referenced: (text(row, 4), text(row, 5)),
                referenced_columns: Vec::new(),
                on_delete: on_change(&text(row, 7)),
                on_update: on_change(&text(row, 8)),
                deferrable: truth(row, 9),
                valid: truth(row, 10),
            };
            keys.push((number, key));
        }
        if let Some((_, key)) = keys.last_mut() {
            key.columns.push(text(row, 3));
            key.referenced_columns.push(text(row, 6));
        }
    }
    keys.into_iter().map(|(_, key)| key).collect()
}

fn on_change(letter: &str) -> OnChange {
    match letter {
        "c" => OnChange::Cascade,
        "n" => OnChange::Set,
        "d" => OnChange::SetDefault,
        _ => OnChange::Nothing,
    }
}
