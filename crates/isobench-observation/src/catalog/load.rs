//! Reads the catalogs. The queries work on PostgreSQL 14 to 18, and name every table and function
//! with its schema, so that no object of a user can stand in.

use std::collections::BTreeMap;

use super::relation::{
    Column, ColumnType, Events, ForeignKey, Inheritance, OnChange, Relation, RelationKind, Triggers,
};
use super::trigger::Body;
use super::{Catalog, FunctionFacts};

type Rows = Vec<Vec<Option<String>>>;

/// Version, handling of backslashes, and one row for each schema of the search path.
const SETTINGS: &str = "
SELECT pg_catalog.current_setting('server_version_num'),
       pg_catalog.current_setting('standard_conforming_strings'), s.name,
       pg_catalog.current_setting('DateStyle') LIKE 'ISO%'
FROM pg_catalog.unnest(pg_catalog.current_schemas(true)) WITH ORDINALITY AS s(name, place)
ORDER BY s.place";

/// The relations.
const RELATIONS: &str = "
WITH RECURSIVE ancestor (relid, root, depth) AS (
    SELECT inhrelid, inhparent, 1 FROM pg_catalog.pg_inherits
    UNION ALL
    SELECT a.relid, i.inhparent, a.depth + 1
    FROM ancestor a JOIN pg_catalog.pg_inherits i ON i.inhrelid = a.root
), writing (oid) AS (
    SELECT oid FROM pg_catalog.pg_proc
    WHERE provolatile = 'v' AND pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
), calls (relid) AS (
    SELECT d.adrelid FROM pg_catalog.pg_attrdef d
    JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND e.objid = d.oid
    JOIN writing w ON e.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.refobjid = w.oid
    UNION
    SELECT r.ev_class FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_depend e ON e.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND e.objid = r.oid
    JOIN writing w ON e.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND e.refobjid = w.oid
)
SELECT n.nspname, c.relname,
       CASE WHEN n.nspname IN ('pg_catalog', 'information_schema') THEN '*'
            WHEN c.relkind = 'r' AND m.amname <> 'heap' THEN '?' ELSE c.relkind END,
       c.relpersistence = 't', c.relispartition, c.relrowsecurity,
       EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
       (SELECT pg_catalog.count(*) FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid),
       EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid),
       rn.nspname, rc.relname,
       EXISTS (SELECT FROM calls WHERE calls.relid = c.oid),
       c.relkind <> 'S' AND pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       1 = (SELECT pg_catalog.count(*) FROM pg_catalog.pg_index i
            WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion))
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
LEFT JOIN LATERAL (SELECT a.root FROM ancestor a WHERE a.relid = c.oid ORDER BY a.depth DESC LIMIT 1) r ON true
LEFT JOIN pg_catalog.pg_class rc ON rc.oid = r.root
LEFT JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname <> 'pg_toast'";

/// The triggers: the bits of their events, whether the function is the system's own, whether they have a
/// condition, and the source of functions in PL/pgSQL, unless the condition calls a function of a user.
const TRIGGERS: &str = "
SELECT n.nspname, c.relname, t.tgtype::pg_catalog.int4,
       p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace, t.tgqual IS NOT NULL,
       CASE WHEN l.lanname = 'plpgsql' AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_depend d
           WHERE d.classid = 'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid = t.oid
             AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid <> t.tgfoid)
       THEN p.prosrc END
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
WHERE NOT t.tgisinternal AND t.tgenabled <> 'D'";

/// The columns of users' relations.
const COLUMNS: &str = "
SELECT n.nspname, c.relname, a.attname,
       CASE WHEN a.atttypid IN (20, 21, 23) THEN 'integer' WHEN a.atttypid = 16 THEN 'boolean'
            WHEN a.atttypid IN (25, 1043) AND l.collisdeterministic THEN 'text' WHEN a.atttypid = 2950 THEN 'uuid'
            WHEN a.atttypid = 1700 THEN 'numeric' WHEN a.atttypid = 1082 THEN 'date'
            WHEN a.atttypid = 1114 THEN 'timestamp' WHEN a.atttypid = 1184 THEN 'timestamptz'
            WHEN t.typtype = 'e' THEN 'enum'
            WHEN t.typtype IN ('c', 'd') THEN 'composite' ELSE 'scalar' END,
       a.attgenerated <> '', a.attnotnull,
       a.attcollation IN (950, 951) OR a.attcollation = 100 AND NOT EXISTS (
           SELECT FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()
           AND pg_catalog.concat(d.datctype, ' ', pg_catalog.to_jsonb(d) ->> 'daticulocale', ' ',
                                 pg_catalog.to_jsonb(d) ->> 'datlocale') ~* '(^| )(tr|az|lt)')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
ORDER BY c.oid, a.attnum";

/// The columns of the indexes that tell rows apart and change only where an UPDATE sets them, the
/// best index of a table first: the primary key, then those with the fewest columns.
const KEYS: &str = "
SELECT n.nspname, c.relname, i.indexrelid, a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL pg_catalog.generate_series(0, i.indnkeyatts - 1) AS g(place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[g.place]
WHERE i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) AS o(place)
                  JOIN pg_catalog.pg_attribute b ON b.attrelid = c.oid AND b.attnum = i.indkey[o.place]
                  WHERE NOT b.attnotnull OR b.attgenerated <> '')
ORDER BY c.oid, i.indisprimary DESC, i.indnkeyatts, i.indexrelid, g.place";

/// The foreign keys, a row for each column.
const FOREIGN_KEYS: &str = "
SELECT f.oid, fn.nspname, fc.relname, fa.attname, rn.nspname, rc.relname, ra.attname,
       f.confdeltype, f.confupdtype, f.condeferrable,
       f.convalidated AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t
                                      WHERE t.tgconstraint = f.oid AND t.tgenabled NOT IN ('O', 'A'))
FROM pg_catalog.pg_constraint f
JOIN pg_catalog.pg_class fc ON fc.oid = f.conrelid
JOIN pg_catalog.pg_namespace fn ON fn.oid = fc.relnamespace
JOIN pg_catalog.pg_class rc ON rc.oid = f.confrelid
JOIN pg_catalog.pg_namespace rn ON rn.oid = rc.relnamespace
CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(f.conkey), pg_catalog.unnest(f.confkey)) AS k(own, other)
JOIN pg_catalog.pg_attribute fa ON fa.attrelid = f.conrelid AND fa.attnum = k.own
JOIN pg_catalog.pg_attribute ra ON ra.attrelid = f.confrelid AND ra.attnum = k.other
WHERE f.contype = 'f'
ORDER BY f.oid, k.own";

/// The functions by name: aggregate, set, writes, reads, plain. Functions of the extensions listed here
/// compute values: they neither write nor read tables.
const FUNCTIONS: &str = "
WITH pure (oid) AS (
    SELECT d.objid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e'
      AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
      AND e.extname IN ('btree_gin', 'btree_gist', 'citext', 'cube', 'earthdistance', 'fuzzystrmatch', 'hstore',
                        'intarray', 'isn', 'ltree', 'pg_trgm', 'pgcrypto', 'unaccent', 'uuid-ossp')
), functions (name, kind, set, system, volatile) AS (
    SELECT p.proname, p.prokind, p.proretset,
           n.nspname IN ('pg_catalog', 'information_schema') OR EXISTS (SELECT FROM pure WHERE pure.oid = p.oid),
           p.provolatile = 'v' OR EXISTS (
               SELECT FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc s
                 ON s.oid IN (a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggmfinalfn)
               WHERE a.aggfnoid::pg_catalog.oid = p.oid AND s.provolatile = 'v')
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
)
SELECT name, pg_catalog.bool_or(kind = 'a'), pg_catalog.bool_or(set),
       pg_catalog.bool_or(volatile AND NOT system), pg_catalog.bool_or(NOT system),
       pg_catalog.bool_or(kind NOT IN ('a', 'w'))
FROM functions WHERE NOT system OR kind = 'a' OR set GROUP BY name";

/// The operators of users whose functions are volatile.
const OPERATORS: &str = "
SELECT DISTINCT o.oprname FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.provolatile = 'v' AND n.nspname <> 'pg_catalog'";

impl Catalog {
    /// Reads the catalogs by a function that sends a query and returns the rows as texts. The session
    /// should be as those of the scripts: the same database, user and `search_path`.
    ///
    /// # Errors
    /// The function's.
    pub fn load<E>(query: &mut dyn FnMut(&str) -> Result<Rows, E>) -> Result<Catalog, E> {
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
        for id in 0..catalog.relations.len() {
            let found = catalog.resolve(None, &catalog.relations[id].name);
            catalog.relations[id].visible = found == Some(id);
            catalog.relations[id].shadowed = found.is_some_and(|found| found != id);
        }
        for row in query(COLUMNS)? {
            if let Some(id) = catalog.resolve(Some(&text(&row, 0)), &text(&row, 1)) {
                let kind = column_type(&text(&row, 3), iso);
                let (generated, not_null) = (truth(&row, 4), truth(&row, 5));
                let name = text(&row, 2);
                let plain_case = truth(&row, 6);
                catalog.relations[id].columns.push(Column { name, kind, generated, not_null, plain_case });
            }
        }
        add_keys(&mut catalog, &query(KEYS)?);
        catalog.foreign_keys = foreign_keys(&query(FOREIGN_KEYS)?);
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
        catalog.writing_operators = query(OPERATORS)?.iter().map(|row| text(row, 0)).collect();
        for row in query(TRIGGERS)? {
            add_trigger(&mut catalog, &row);
        }
        Ok(catalog)
    }
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
    }
}

/// Notes what a trigger does. The bits of `tgtype` are: 1 row, 2 before, 4 INSERT, 8 DELETE, 16 UPDATE.
fn add_trigger(catalog: &mut Catalog, row: &[Option<String>]) {
    let Some(id) = catalog.resolve(Some(&text(row, 0)), &text(row, 1)) else { return };
    let bits = number(row, 2);
    let events = Events { insert: bits & 4 != 0, update: bits & 16 != 0, delete: bits & 8 != 0 };
    let (own, has_condition) = (truth(row, 3), truth(row, 4));
    let body = row.get(5).and_then(Option::as_deref).and_then(|source| Body::of(source, catalog));
    // What isn't a column may be a function of the row.
    let relation = &catalog.relations[id];
    let body = body.filter(|body| {
        body.assigned.iter().chain(&body.reads).all(|column| relation.column(column).is_some())
    });
    let triggers = &mut catalog.relations[id].triggers;
    if body.is_none() && !own {
        triggers.unknown.add(events);
    }
    if bits & 3 != 3 {
        return;
    }
    let writes_all = body.as_ref().is_some_and(Body::writes_all);
    let deletes_all = body.as_ref().is_some_and(Body::deletes_all);
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
    triggers.reads.extend(body.reads);
    triggers.reads_row |= body.reads_row || has_condition;
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
        "n" | "d" => OnChange::Set,
        _ => OnChange::Nothing,
    }
}
