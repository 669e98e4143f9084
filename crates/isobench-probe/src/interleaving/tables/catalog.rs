//! The tables of a schema as the catalog describes them, and the SQL that puts single rows back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use isobench_script::literal;

use super::changes::{Row, composite};
use super::query;
use crate::interleaving::TryError;
use crate::tester::{Patience, TestSession};

/// A table that scripts may change.
#[derive(Debug, Default)]
pub struct WatchedTable {
    /// Its name.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    pub(super) oid: String,
    /// Its name with its schema, quoted.
    pub qualified: String,
    pub(super) quoted: Vec<String>,
    pub(super) generated: Vec<bool>,
    /// Whether a column gets a value by itself: a default, an identity, a generated one.
    pub by_itself: Vec<bool>,
    /// The columns by which a row is found soonest: the primary key's, or those of another index.
    pub(super) key: Vec<usize>,
    /// The columns of the primary key and of unique constraints.
    pub(super) unique: BTreeSet<usize>,
    /// Whether a column is an identity whose value is only taken if that is asked for.
    pub(super) overridden: bool,
}

/// What the catalog says of the session's schema.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    /// The tables that hold rows.
    pub(super) tables: Vec<WatchedTable>,
    /// The tables that get triggers, whose partitions get them from these.
    pub(super) triggered: Vec<String>,
}

/// The index of each column, by its table's object id and its number there.
type Numbers = BTreeMap<(String, String), usize>;

const TABLES: &str = "SELECT c.oid, c.relname, quote_ident(n.nspname) || '.' || quote_ident(c.relname), \
    c.relkind, c.relispartition FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') ORDER BY c.relname";

const COLUMNS: &str = "SELECT a.attrelid, a.attname, quote_ident(a.attname), a.attgenerated <> '', a.attnum, \
    a.atthasdef OR a.attidentity <> '', a.attidentity = 'a' \
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() \
    AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum";

const INDEXES: &str = "SELECT i.indrelid, i.indisunique, i.indkey::text FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = current_schema() AND i.indexprs IS NULL AND i.indpred IS NULL \
    ORDER BY i.indisprimary DESC, i.indisunique DESC";

impl Catalog {
    /// Reads the catalog.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub(super) fn read(control: &mut TestSession, patience: Patience<'_>) -> Result<Catalog, TryError> {
        let mut catalog = Catalog::default();
        for row in query(control, TABLES, patience)? {
            let [Some(oid), Some(name), Some(qualified), Some(kind), Some(partition)] =
                <[_; 5]>::try_from(row).map_err(|_| TryError::Answer("the list of tables"))?
            else {
                return Err(TryError::Answer("the list of tables"));
            };
            if partition == "f" {
                catalog.triggered.push(qualified.clone());
            }
            if kind == "r" {
                catalog.tables.push(WatchedTable { name, oid, qualified, ..WatchedTable::default() });
            }
        }
        let numbers = catalog.read_columns(query(control, COLUMNS, patience)?);
        catalog.read_indexes(query(control, INDEXES, patience)?, &numbers);
        Ok(catalog)
    }

    fn table(&mut self, oid: &str) -> Option<&mut WatchedTable> {
        self.tables.iter_mut().find(|table| table.oid == oid)
    }

    fn read_columns(&mut self, rows: Vec<Row>) -> Numbers {
        let mut numbers = Numbers::new();
        for row in rows {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let mut value = || values.next().unwrap_or_default();
            let (oid, name, quoted, generated, number) = (value(), value(), value(), value(), value());
            let (by_itself, overridden) = (value() == "t", value() == "t");
            let Some(table) = self.table(&oid) else { continue };
            numbers.insert((oid, number), table.columns.len());
            table.columns.push(name);
            table.quoted.push(quoted);
            table.generated.push(generated == "t");
            table.by_itself.push(by_itself);
            table.overridden |= overridden;
        }
        numbers
    }

    fn read_indexes(&mut self, rows: Vec<Row>, numbers: &Numbers) {
        for row in rows {
            let mut values = row.into_iter().map(Option::unwrap_or_default);
            let mut value = || values.next().unwrap_or_default();
            let (oid, unique, columns) = (value(), value() == "t", value());
            let Some(table) = self.table(&oid) else { continue };
            let number = |number: &str| numbers.get(&(oid.clone(), number.to_owned())).copied();
            let columns: Vec<usize> = columns.split(' ').filter_map(number).collect();
            if unique {
                table.unique.extend(&columns);
            }
            if table.key.is_empty() {
                table.key = columns;
            }
        }
    }
}

impl WatchedTable {
    /// True if two rows are the same one, before and after a change: they have the same key, as far as the
    /// table has one.
    pub fn is_same_row(&self, one: &Row, other: &Row) -> bool {
        self.key.iter().all(|column| one.get(*column) == other.get(*column))
    }

    /// Deletes all rows with these values.
    pub(super) fn delete_equal(&self, row: &Row, sql: &mut String) {
        let found: Vec<String> = std::iter::zip(&self.quoted, row)
            .map(|(name, value)| match value {
                Some(value) => format!("{name} = {}", literal(value)),
                None => format!("{name} IS NULL"),
            })
            .collect();
        let _ = write!(sql, "DELETE FROM {} WHERE {};", self.qualified, found.join(" AND "));
    }

    /// Deletes one of the rows with these values.
    pub(super) fn delete_one(&self, row: &Row, sql: &mut String) {
        let mut found: Vec<String> = Vec::new();
        for column in &self.key {
            let name = &self.quoted[*column];
            found.push(match row.get(*column).and_then(Option::as_ref) {
                Some(value) => format!("{name} = {}", literal(value)),
                None => format!("{name} IS NULL"),
            });
        }
        found.push(format!("t::text = {}", literal(&composite(row))));
        let _ = write!(
            sql,
            "DELETE FROM ONLY {0} WHERE ctid = (SELECT ctid FROM ONLY {0} t WHERE {1} LIMIT 1);",
            self.qualified,
            found.join(" AND ")
        );
    }

    /// Inserts this row.
    pub(super) fn insert(&self, row: &Row, sql: &mut String) {
        let stored = || (0..self.quoted.len()).filter(|column| !self.generated[*column]);
        let names: Vec<&str> = stored().map(|column| self.quoted[column].as_str()).collect();
        let values = stored().map(|column| match row.get(column).and_then(Option::as_ref) {
            Some(value) => literal(value),
            None => "NULL".to_owned(),
        });
        let _ = write!(
            sql,
            "INSERT INTO {} ({}){} VALUES ({});",
            self.qualified,
            names.join(", "),
            if self.overridden { " OVERRIDING SYSTEM VALUE" } else { "" },
            values.collect::<Vec<_>>().join(", ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        assert_eq!(literal("a'b"), "'a''b'");
        assert_eq!(literal("a\\b"), "E'a\\\\b'");
    }
}
