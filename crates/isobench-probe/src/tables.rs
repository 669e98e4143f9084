//! Kinds of tables: the same statements that make a table make one of another kind.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A kind of table that transactions share. Temporary ones aren't shared, so that no anomaly can show there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tables {
    /// As the statement says.
    #[default]
    Ordinary,
    /// Not in the write-ahead log.
    Unlogged,
    /// In two partitions by the hash of the first column.
    Partitioned,
}

/// All kinds and their names.
const NAMES: [(&str, Tables); 3] =
    [("ordinary", Tables::Ordinary), ("unlogged", Tables::Unlogged), ("partitioned", Tables::Partitioned)];

/// What begins a statement that makes a table.
const CREATE: &str = "CREATE TABLE ";

impl Tables {
    /// A statement of a set-up that makes a table of this kind instead; others are unchanged.
    pub(crate) fn make(self, sql: &str) -> String {
        let unchanged = || sql.to_owned();
        let Some(rest) = sql.trim().strip_prefix(CREATE) else { return unchanged() };
        match self {
            Tables::Ordinary => unchanged(),
            Tables::Unlogged => format!("CREATE UNLOGGED TABLE {rest}"),
            Tables::Partitioned => {
                let named = rest.split_once('(').zip(rest.rfind(')'));
                let Some(((name, columns), end)) = named else { return unchanged() };
                let (name, key) = (name.trim(), columns.split_whitespace().next().unwrap_or_default());
                let part = |number: u8| {
                    format!(
                        "; CREATE TABLE {name}_{number} PARTITION OF {name} FOR VALUES WITH (MODULUS 2, REMAINDER \
                         {number})"
                    )
                };
                format!("{CREATE}{} PARTITION BY HASH ({key}){}{};", &rest[..=end], part(0), part(1))
            }
        }
    }
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for Tables {
    type Err = String;

    fn from_str(text: &str) -> Result<Tables, String> {
        let known = NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        known
            .ok_or_else(|| "use ordinary, unlogged or partitioned; temporary tables aren't shared".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anomalies::COLLECTIONS;
    use crate::spec::Spec;

    #[test]
    fn tables_of_each_kind_are_made() {
        let sql = " CREATE TABLE items (id int PRIMARY KEY, val int); ";
        assert_eq!(Tables::Ordinary.make(sql), sql);
        assert_eq!(Tables::Unlogged.make(sql), "CREATE UNLOGGED TABLE items (id int PRIMARY KEY, val int);");
        assert_eq!(
            Tables::Partitioned.make(sql),
            "CREATE TABLE items (id int PRIMARY KEY, val int) PARTITION BY HASH (id); CREATE TABLE items_0 PARTITION \
             OF items FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE items_1 PARTITION OF items FOR VALUES \
             WITH (MODULUS 2, REMAINDER 1);"
        );
        let other = "INSERT INTO items VALUES (1, 10);";
        assert_eq!(Tables::Partitioned.make(other), other);
    }

    #[test]
    fn every_probe_has_tables_of_each_kind() {
        for probe in COLLECTIONS.iter().flat_map(|(_, tests)| tests.probes()) {
            let spec = Spec::parse(probe.file, probe.spec).unwrap();
            for kind in [Tables::Unlogged, Tables::Partitioned] {
                assert!(spec.setup.iter().any(|sql| kind.make(sql) != *sql), "{} {kind}", probe.file);
            }
        }
    }

    #[test]
    fn names_are_read() {
        for (name, kind) in NAMES {
            assert_eq!((name.parse(), kind.to_string()), (Ok(kind), name.to_owned()));
        }
        assert!("temporary".parse::<Tables>().unwrap_err().contains("aren't shared"));
    }
}
