//! Statements as the server itself reads them, and what of that may do anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Answers, Bound, BoundRelation, read_statements};
use isobench_script::{CommandKind, Script};

use super::{Catalog, Inheritance, RelationId, RelationKind};
use crate::text::{AskedText, Text};

/// The system's catalogs and views whose rows change with what transactions do.
const CHANGING_CATALOGS: [&str; 8] = [
    "pg_class",
    "pg_cursors",
    "pg_largeobject",
    "pg_largeobject_metadata",
    "pg_locks",
    "pg_prepared_statements",
    "pg_prepared_xacts",
    "pg_sequences",
];

/// True if the rows of one of the system's catalogs or views, by its name, change with what transactions do.
pub fn changes_with_others(name: &str) -> bool {
    CHANGING_CATALOGS.contains(&name) || name.starts_with("pg_stat")
}

impl Catalog {
    /// Asks the server how it reads the statements of scripts, unless that was asked before, and those of the functions
    /// that they reach. None is executed ([`isobench_sql`]).
    ///
    /// # Errors
    /// The session is lost.
    pub fn read_statements<'s, A: Answers>(
        &mut self,
        scripts: impl IntoIterator<Item = &'s Script>,
        server: &mut A,
    ) -> Result<(), A::Lost> {
        let mut texts: Vec<String> = Vec::new();
        for command in scripts.into_iter().flat_map(|script| &script.commands) {
            let CommandKind::Sql(sql) = &command.kind else { continue };
            let Some(tokens) = Text::scan(sql) else { continue };
            for range in tokens.statements() {
                let AskedText { text, .. } = tokens.asked(&range);
                if !self.readings.contains_key(&text) && !texts.contains(&text) {
                    texts.push(text);
                }
            }
        }
        let asked: Vec<&str> = texts.iter().map(String::as_str).collect();
        let readings = read_statements(&asked, &self.builtins, server)?;
        self.readings.extend(texts.into_iter().zip(readings));
        self.read_bodies(server)
    }

    /// A statement as the server reads it, by its text with `$1`, `$2`, …
    ///
    /// # Errors
    /// The server wasn't asked, refuses it, or reads something in it that isobench doesn't know.
    pub fn reading(&self, text: &str) -> Result<&Bound, String> {
        match self.readings.get(text) {
            Some(Ok(bound)) => Ok(bound),
            Some(Err(why)) => Err(why.to_string()),
            None => Err("the server wasn't asked how it reads it".to_owned()),
        }
    }

    /// What it calls that may read or write tables.
    pub fn calls(&self, bound: &Bound) -> Option<String> {
        let name = bound.functions.iter().find_map(|oid| self.called.functions.get(oid));
        name.map(|name| format!("isobench doesn't know what function {name}() reads and writes"))
            .or_else(|| self.calls_otherwise(bound))
    }

    /// The same but for functions.
    pub fn calls_otherwise(&self, bound: &Bound) -> Option<String> {
        let first = |called: &BTreeSet<u32>, known: &BTreeMap<u32, String>| {
            called.iter().find_map(|oid| known.get(oid).cloned())
        };
        first(&bound.operators, &self.called.operators)
            .map(|name| format!("operator {name} may call a function of a user"))
            .or_else(|| {
                first(&bound.types, &self.called.types)
                    .map(|name| format!("type {name} calls a function of a user"))
            })
    }

    /// The relation of the catalog that a statement names.
    pub fn relation_of(&self, bound: &BoundRelation) -> Option<RelationId> {
        self.with_oid(bound.oid)
    }

    fn with_oid(&self, oid: u32) -> Option<RelationId> {
        self.relations.iter().position(|known| known.oid == oid)
    }

    /// What decides about rows of a relation besides the statement: policies, functions, what other
    /// transactions do to a catalog.
    pub fn beyond(&self, id: RelationId, bound: &BoundRelation) -> Option<String> {
        let found = &self.relations[id];
        let name = found.qualified();
        if found.kind == RelationKind::System {
            return changes_with_others(&found.name)
                .then(|| format!("{name} changes with what other transactions do"));
        }
        let inherits = matches!(
            found.inheritance,
            Inheritance::Parent | Inheritance::Child { .. } | Inheritance::Several
        );
        if inherits && self.relations.iter().any(|other| other.inheritance == Inheritance::Several) {
            return Some(format!("{name} has to do with tables that inherit from several"));
        }
        let writes = bound.inserts || bound.updates || bound.deletes;
        self.members(id).find_map(|member| {
            let table = member.qualified();
            let is_table = matches!(member.kind, RelationKind::Table | RelationKind::Partitioned);
            match () {
                () if member.row_security => Some(format!("policies decide which rows of {name} it sees")),
                () if !is_table => Some(format!("{table} isn't a table")),
                () if writes && member.calls => Some(format!(
                    "a default, a condition, an index or a policy of {table} may call a function of a user"
                )),
                () => None,
            }
        })
    }

    /// The name of a column of a relation by its OID; `None` for the whole row and for unknown numbers.
    pub fn column_of(&self, oid: u32, number: i32) -> Option<String> {
        self.column_name(self.with_oid(oid)?, number)
    }

    /// The name of a column; `None` for the whole row, and for what isn't known.
    pub fn column_name(&self, id: RelationId, number: i32) -> Option<String> {
        const SYSTEM: [&str; 5] = ["ctid", "xmin", "cmin", "xmax", "cmax"];
        if number < 0 {
            let place = usize::try_from(-number - 1).ok()?;
            return SYSTEM.get(place).map(|name| (*name).to_owned());
        }
        let column = self.relations[id].columns.iter().find(|column| column.number == number)?;
        Some(column.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::Reading;

    use super::super::Called;
    use super::*;

    #[test]
    fn calls_of_users_functions_may_do_anything() {
        let catalog = Catalog {
            called: Called {
                functions: BTreeMap::from([(70, "peek".to_owned())]),
                operators: BTreeMap::from([(71, "###".to_owned())]),
                types: BTreeMap::from([(72, "amount".to_owned())]),
            },
            ..Catalog::default()
        };
        let oids = |oid| BTreeSet::from([oid]);
        for bound in [
            Bound { functions: oids(70), ..Bound::default() },
            Bound { operators: oids(71), ..Bound::default() },
            Bound { types: oids(72), ..Bound::default() },
        ] {
            assert!(catalog.calls(&bound).is_some());
        }
        assert_eq!(catalog.calls(&Bound { functions: oids(1), ..Bound::default() }), None);
    }

    #[test]
    fn a_statement_without_the_servers_reading_is_unknown() {
        let refused = Err(Reading::Refused("no".to_owned()));
        let readings =
            BTreeMap::from([("refused".to_owned(), refused), ("read".to_owned(), Ok(Bound::default()))]);
        let catalog = Catalog { readings, ..Catalog::default() };
        assert!(catalog.reading("read").is_ok());
        assert!(catalog.reading("refused").is_err() && catalog.reading("another one").is_err());
    }
}
