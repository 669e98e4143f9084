//! Tables, columns and sequences, as the server's catalogs have them.

use std::collections::{BTreeMap, BTreeSet};

use isobench_pgwire::Connection;

use super::AHEAD;
use crate::RaceError;

/// Tables whose rows are kept, with their columns: those of partitions one by one, no temporary ones. Materialized
/// views are among them, in the order in which they were made; of partitioned tables only their ids matter.
const COLUMNS: &str = "SELECT c.oid::text, format('%I.%I', n.nspname, c.relname), c.relname, quote_ident(a.attname), \
    format_type(a.atttypid, a.atttypmod), a.attname, n.nspname || '.' || c.relname, \
    (a.attidentity <> '' OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary \
     AND i.indnatts = 1 AND i.indkey[0] = a.attnum AND a.atttypid IN ('int8'::regtype, 'int4'::regtype)) \
    OR EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = c.oid AND d.adnum = a.attnum \
     AND pg_get_expr(d.adbin, d.adrelid) LIKE '%nextval(%')), a.attnum::text, c.relkind \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' \
    WHERE (c.relkind IN ('r', 'p') OR c.relkind = 'm' AND c.relispopulated) AND c.relpersistence <> 't' \
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
    ORDER BY c.relkind = 'm', CASE WHEN c.relkind = 'm' THEN c.oid END, 2, a.attnum";

/// Foreign keys: columns that refer to columns. Columns of partitions, and of tables that inherit, refer to those of the
/// table above, where an identity may be declared.
const REFERENCES: &str = "SELECT conrelid::text, f.key::text, confrelid::text, f.target::text FROM pg_constraint, \
    unnest(conkey, confkey) AS f (key, target) WHERE contype = 'f' \
    UNION ALL SELECT i.inhrelid::text, own.attnum::text, i.inhparent::text, above.attnum::text FROM pg_inherits i \
    JOIN pg_attribute own ON own.attrelid = i.inhrelid AND own.attnum > 0 \
    JOIN pg_attribute above ON above.attrelid = i.inhparent AND above.attname = own.attname";

const SEQUENCES: &str = "SELECT format('%L::regclass', format('%I.%I', schemaname, sequencename)), \
    coalesce(last_value, start_value)::text, last_value IS NOT NULL, increment_by::text, max_value::text, \
    min_value::text FROM pg_sequences ORDER BY 1";

/// Triggers that fire although nothing is to fire.
const ALWAYS: &str = "SELECT format('%I.%I', n.nspname, c.relname), quote_ident(t.tgname) FROM pg_trigger t \
    JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE t.tgenabled IN ('A', 'R') AND NOT t.tgisinternal ORDER BY 1, 2";

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    quoted: String,
    /// The name of its type.
    pub(crate) kind: String,
    /// Its values come from a sequence, or are numbers by which rows are known, which applications such as Hibernate
    /// draw ahead; or refer to such values.
    pub(crate) is_id: bool,
    /// Its values are the user's business, not those of races.
    pub(crate) is_ignored: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its name with its schema, in quotation marks where SQL needs them.
    pub(crate) name: String,
    /// Its name alone.
    pub(crate) short: String,
    /// Its columns but generated ones.
    pub(crate) columns: Vec<Column>,
    /// It is a materialized view, which is refreshed instead of filled.
    pub(crate) is_view: bool,
}

impl Table {
    /// A table of a test: its columns with their types, and whether they are ids.
    #[cfg(test)]
    pub(crate) fn of(name: &str, columns: &[(&str, &str, bool)]) -> Self {
        let column = |(name, kind, is_id): &(&str, &str, bool)| Column {
            name: (*name).to_owned(),
            quoted: (*name).to_owned(),
            kind: (*kind).to_owned(),
            is_id: *is_id,
            is_ignored: false,
        };
        let columns = columns.iter().map(column).collect();
        Self { name: format!("public.{name}"), short: name.to_owned(), columns, is_view: false }
    }

    fn list(&self) -> String {
        let quoted: Vec<&str> = self.columns.iter().map(|column| column.quoted.as_str()).collect();
        quoted.join(", ")
    }

    pub(super) fn select(&self) -> String {
        format!("SELECT {} FROM ONLY {}", self.list(), self.name)
    }

    pub(super) fn select_placed(&self) -> String {
        format!("SELECT ctid, {} FROM ONLY {}", self.list(), self.name)
    }

    pub(super) fn copy(&self) -> String {
        format!("COPY {} ({}) FROM STDIN", self.name, self.list())
    }

    pub(super) fn hash(&self, number: usize) -> String {
        format!(
            "SELECT {number} AS number, count(*) || ' ' || coalesce(sum(hashtextextended(isobench_row::text, 0)), 0) \
             FROM ONLY {} AS isobench_row",
            self.name
        )
    }
}

impl Table {
    /// A query for the number of rows, and for that of versions whose transaction isn't older than one.
    pub(super) fn newer(&self, number: usize, transaction: u32) -> String {
        format!(
            "SELECT {number} AS number, count(*), count(*) FILTER (WHERE age(isobench_row.xmin) <= \
             (SELECT age('{transaction}'::xid))) FROM ONLY {} AS isobench_row",
            self.name
        )
    }
}

/// A sequence as it was at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sequence {
    /// Its name as an expression.
    name: String,
    last: i64,
    was_used: bool,
    step: i64,
    range: (i64, i64),
}

impl Sequence {
    /// An expression that sets it, so that its next values are `ahead` of the first ones.
    pub(super) fn set(&self, ahead: i64) -> String {
        let moved = self.last.saturating_add(ahead.saturating_mul(self.step.signum()));
        let (last, used) = match ahead {
            0 => (self.last, self.was_used),
            _ if (self.range.0..=self.range.1).contains(&moved) => (moved, self.was_used),
            _ => (self.last, self.was_used),
        };
        format!("setval({}, {last}, {used})", self.name)
    }
}

type Cells = Vec<Option<String>>;

fn cell(row: &Cells, at: usize) -> String {
    row.get(at).cloned().flatten().unwrap_or_default()
}

/// The tables but those to ignore.
pub(super) fn tables(session: &mut Connection, ignored: &[String]) -> Result<Vec<Table>, RaceError> {
    let rows = session.query(COLUMNS)?.rows;
    let mut ids: BTreeMap<(String, String), bool> =
        rows.iter().map(|row| ((cell(row, 0), cell(row, 8)), cell(row, 7) == "t")).collect();
    follow_references(&mut ids, &session.query(REFERENCES)?.rows);
    let mut unknown: Vec<&String> = ignored.iter().collect();
    let mut tables: Vec<Table> = Vec::new();
    // A row of a partitioned table is one of its partitions'.
    for row in rows.iter().filter(|row| cell(row, 9) != "p") {
        let (name, short, full, column) = (cell(row, 1), cell(row, 2), cell(row, 6), cell(row, 5));
        let is_ignored = |known: &[String]| ignored.iter().any(|one| known.contains(one));
        let whole = [short.clone(), full.clone(), name.clone()];
        let own = whole.clone().map(|table| format!("{table}.{column}"));
        unknown.retain(|one| !(whole.contains(one) || own.contains(one)));
        if is_ignored(&whole) {
            continue;
        }
        let column = Column {
            name: column,
            quoted: cell(row, 3),
            kind: cell(row, 4),
            is_id: ids.get(&(cell(row, 0), cell(row, 8))) == Some(&true),
            is_ignored: is_ignored(&own),
        };
        match tables.last_mut() {
            Some(table) if table.name == name => table.columns.push(column),
            _ => tables.push(Table { name, short, columns: vec![column], is_view: cell(row, 9) == "m" }),
        }
    }
    match unknown.first() {
        Some(unknown) => Err(RaceError::Unknown((*unknown).clone())),
        None => Ok(tables),
    }
}

/// What refers to an id is one.
fn follow_references(ids: &mut BTreeMap<(String, String), bool>, references: &[Cells]) {
    loop {
        let mut more = false;
        for row in references {
            let (own, other) = ((cell(row, 0), cell(row, 1)), (cell(row, 2), cell(row, 3)));
            if ids.get(&other) == Some(&true) && ids.get(&own) == Some(&false) {
                ids.insert(own, true);
                more = true;
            }
        }
        if !more {
            return;
        }
    }
}

pub(super) fn sequences(session: &mut Connection) -> Result<Vec<Sequence>, RaceError> {
    let rows = session.query(SEQUENCES)?.rows;
    let number = |row: &Cells, at: usize| cell(row, at).parse().unwrap_or(1);
    let sequence = |row: &Cells| Sequence {
        name: cell(row, 0),
        last: number(row, 1),
        was_used: cell(row, 2) == "t",
        step: number(row, 3),
        range: (number(row, 5), number(row, 4).saturating_sub(AHEAD)),
    };
    Ok(rows.iter().map(sequence).collect())
}

/// The names of functions that aren't PostgreSQL's own.
pub(super) fn functions(session: &mut Connection) -> Result<BTreeSet<String>, RaceError> {
    let found = session.query(
        "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace NOT IN ('pg_catalog'::regnamespace, \
         'information_schema'::regnamespace)",
    )?;
    Ok(found.rows.iter().map(|row| cell(row, 0)).collect())
}

/// The size of the tables.
pub(super) fn megabytes(session: &mut Connection, tables: &[Table]) -> Result<u64, RaceError> {
    let literals: Vec<String> =
        tables.iter().map(|table| format!("'{}'", table.name.replace('\'', "''"))).collect();
    let sql = format!(
        "SELECT coalesce(sum(pg_table_size(name::regclass)), 0)::bigint / 1000000 FROM unnest(ARRAY[{}]::text[]) AS name",
        literals.join(", ")
    );
    Ok(session.value(&sql)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// Makes sure that no trigger fires when rows are put back.
pub(super) fn require_silence(session: &mut Connection, tables: &[Table]) -> Result<(), RaceError> {
    for row in session.query(ALWAYS)?.rows {
        let (table, trigger) = (cell(&row, 0), cell(&row, 1));
        if tables.iter().any(|known| known.name == table) {
            return Err(RaceError::Trigger { table, trigger });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_stay_within_their_range() {
        let sequence =
            Sequence { name: "'s'::regclass".to_owned(), last: 5, was_used: true, step: 1, range: (1, 2000) };
        assert_eq!(sequence.set(0), "setval('s'::regclass, 5, true)");
        assert_eq!(sequence.set(AHEAD), "setval('s'::regclass, 1005, true)");
        let unused = Sequence { last: 1, was_used: false, ..sequence.clone() };
        assert_eq!(unused.set(AHEAD), "setval('s'::regclass, 1001, false)", "its ids are as far ahead");
        let down = Sequence { step: -1, range: (-5000, 10), ..sequence.clone() };
        assert_eq!(down.set(AHEAD), "setval('s'::regclass, -995, true)");
        let full = Sequence { range: (1, 10), ..sequence };
        assert_eq!(full.set(AHEAD), "setval('s'::regclass, 5, true)");
    }

    #[test]
    fn what_refers_to_an_id_is_one() {
        let key = |table: &str, column: &str| (table.to_owned(), column.to_owned());
        let mut ids = BTreeMap::from([(key("1", "1"), true), (key("2", "2"), false), (key("3", "1"), false)]);
        let reference = |words: [&str; 4]| words.map(|word| Some(word.to_owned())).to_vec();
        follow_references(&mut ids, &[reference(["3", "1", "2", "2"]), reference(["2", "2", "1", "1"])]);
        assert!(ids.values().all(|is_id| *is_id));
    }
}
