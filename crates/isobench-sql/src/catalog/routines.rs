//! The functions of users that statements call or fire, as far as their bodies can be read.
//!
//! The server reads each statement of a body as one of a function with the same parameters, to which the variables of
//! PL/pgSQL are added. A name that is both a column and a variable is the column there; PL/pgSQL refuses it, or takes the
//! variable, so that it reads no more.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::tokenizer::Token;

use super::body::Body;
use super::{Catalog, RelationId, Run};
use crate::names::name_in_sql;
use crate::server::{Function, read_functions};
use crate::text::{Placed, placed};
use crate::{Answers, Bound, BoundRelation, Reading};

/// The functions of users whose bodies may be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routines {
    /// By OID.
    known: BTreeMap<u32, Routine>,
    /// The statements in their bodies as the server reads them, or why they can't be read.
    bodies: BTreeMap<Run, Result<Vec<Bound>, String>>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Routine {
    name: String,
    plpgsql: bool,
    source: String,
    /// The names, types and modes of its parameters.
    arguments: Vec<(String, String, String)>,
    search_path: Option<String>,
    /// The type that it returns; `None` if it may be any.
    returns: Option<String>,
}

/// The variables that each function in PL/pgSQL has.
const OF_ALL: [(&str, &str); 1] = [("found", "pg_catalog.bool")];

/// Those that one of a trigger has besides.
const OF_TRIGGERS: [(&str, &str); 10] = [
    ("tg_argv", "pg_catalog.text[]"),
    ("tg_level", "pg_catalog.text"),
    ("tg_name", "pg_catalog.name"),
    ("tg_nargs", "pg_catalog.int4"),
    ("tg_op", "pg_catalog.text"),
    ("tg_relid", "pg_catalog.oid"),
    ("tg_relname", "pg_catalog.name"),
    ("tg_table_name", "pg_catalog.name"),
    ("tg_table_schema", "pg_catalog.name"),
    ("tg_when", "pg_catalog.text"),
];

impl Routine {
    /// Its parameters and variables as parameters in SQL, and its statements; `row` is the type of a trigger's rows.
    fn parts(&self, row: Option<&str>) -> Option<(String, Vec<String>)> {
        let body = if self.plpgsql { Body::of_plpgsql(&self.source) } else { Body::of_sql(&self.source) }?;
        let owned = |(name, of_type): &(&str, &str)| ((*name).to_owned(), (*of_type).to_owned());
        let (given, others): (Vec<_>, Vec<_>) =
            self.arguments.iter().partition(|(_, _, mode)| ["i", "b", "v"].contains(&mode.as_str()));
        let mut all: Vec<(String, String)> =
            given.into_iter().map(|(name, of_type, _)| (name.clone(), of_type.clone())).collect();
        let mut more: Vec<(String, String)> = Vec::new();
        if self.plpgsql {
            more.extend(others.into_iter().map(|(name, of_type, _)| (name.clone(), of_type.clone())));
            more.extend(OF_ALL.iter().map(owned));
            if let Some(row) = row {
                more.extend(["new", "old"].map(|name| (name.to_owned(), row.to_owned())));
                more.extend(OF_TRIGGERS.iter().map(owned));
            }
            more.extend(body.variables);
        }
        for (name, of_type) in more.into_iter().filter(|(name, _)| !name.is_empty()) {
            match all.iter().find(|(known, _)| *known == name) {
                // In an inner block it may be another variable.
                Some((_, known)) if *known != of_type => return None,
                Some(_) => {}
                None => all.push((name, of_type)),
            }
        }
        let mut statements: Vec<String> =
            body.statements.iter().map(|text| unqualified(text, &self.name, &all)).collect();
        // Values become those of variables, of parameters and of the result.
        let names = all.iter().filter(|(name, _)| !name.is_empty()).map(|(name, _)| name_in_sql(name));
        statements.push(format!("SELECT {}", names.collect::<Vec<_>>().join(", ")));
        statements.extend(self.returns.iter().map(|of_type| format!("SELECT NULL::{of_type}")));
        let parameter = |(name, of_type): &(String, String)| match name.as_str() {
            "" => of_type.clone(),
            name => format!("{} {of_type}", name_in_sql(name)),
        };
        Some((all.iter().map(parameter).collect::<Vec<_>>().join(", "), statements))
    }
}

/// A text in which parameters are named without their function, if it names nothing else so: the function that the server
/// is asked about has another name.
fn unqualified(text: &str, function: &str, parameters: &[(String, String)]) -> String {
    let Some(tokens) = placed(text) else { return text.to_owned() };
    let is_point = |at: usize| tokens.get(at).is_some_and(|token| token.token.token == Token::Period);
    let name = |at: usize| tokens.get(at).and_then(Placed::name);
    let places: Vec<usize> = (0..tokens.len()).filter(|at| name(*at).as_deref() == Some(function)).collect();
    let is_parameter = |at: &usize| {
        let field = name(at + 2);
        let after_point = at.checked_sub(1).is_some_and(is_point);
        !after_point && is_point(at + 1) && parameters.iter().any(|(known, _)| field.as_ref() == Some(known))
    };
    if !places.iter().all(is_parameter) {
        return text.to_owned();
    }
    let (mut found, mut from) = (String::new(), 0);
    for at in places {
        found.push_str(&text[from..tokens[at].range.start]);
        from = tokens[at + 2].range.start;
    }
    found.push_str(&text[from..]);
    found
}

impl Catalog {
    /// Adds the functions whose bodies may be read.
    pub(super) fn add_routines(&mut self, rows: &[Vec<Option<String>>]) {
        let text = |row: &[Option<String>], place: usize| row.get(place).cloned().flatten();
        for row in rows {
            let (Some(oid), Some(source)) = (text(row, 0).and_then(|oid| oid.parse().ok()), text(row, 3))
            else {
                continue;
            };
            // Without the type of a parameter it may be any.
            let arguments = serde_json::from_str(&text(row, 4).unwrap_or_default());
            let Ok(arguments) = arguments else { continue };
            let routine = Routine {
                name: text(row, 1).unwrap_or_default(),
                plpgsql: text(row, 2).as_deref() == Some("plpgsql"),
                source,
                arguments,
                search_path: text(row, 5),
                returns: text(row, 6),
            };
            // In such strings a backslash is another character. A lock that is given back may be one that the
            // transaction took elsewhere.
            let plain = self.standard_strings || !routine.source.contains('\\');
            if plain && !routine.source.to_lowercase().contains("advisory_unlock") {
                self.routines.known.insert(oid, routine);
            }
        }
    }

    /// The functions of users that a statement calls, and those of triggers that it may fire.
    pub fn runs(&self, bound: &Bound) -> BTreeSet<Run> {
        let called = bound.functions.iter().filter(|oid| self.called.functions.contains_key(oid));
        let mut found: BTreeSet<Run> = called.map(|function| Run { function: *function, table: 0 }).collect();
        let writes = |one: &&BoundRelation| one.inserts || one.updates || one.deletes || one.merges;
        for table in bound.relations.iter().filter(writes).filter_map(|one| self.relation_of(one)) {
            found.extend(self.changed_with(table).into_iter().flat_map(|table| self.triggers(table).runs));
        }
        found
    }

    /// A table, and those whose rows change with its rows.
    pub fn changed_with(&self, table: RelationId) -> BTreeSet<RelationId> {
        let root = self.root(table);
        let names = [root, table].into_iter().flat_map(|id| &self.relations[id].columns);
        let names: BTreeSet<String> = names.map(|column| column.name.clone()).collect();
        let mut tables = self.cascades(table, None);
        tables.extend(self.cascades(table, Some(&names)));
        tables.insert(root);
        tables
    }

    /// The statements of a function as the server reads them.
    ///
    /// # Errors
    /// It can't be read.
    pub fn body(&self, run: Run) -> Result<&[Bound], String> {
        match self.routines.bodies.get(&run) {
            Some(Ok(statements)) => Ok(statements),
            Some(Err(why)) => Err(why.clone()),
            None => {
                let name = self.called.functions.get(&run.function).map_or("of a trigger", String::as_str);
                Err(format!("isobench doesn't know what function {name}() reads and writes"))
            }
        }
    }

    /// Asks the server how it reads the bodies of all functions that statements reach, which aren't executed.
    ///
    /// # Errors
    /// The session is lost.
    pub(super) fn read_bodies<A: Answers>(&mut self, server: &mut A) -> Result<(), A::Lost> {
        let is_open = |catalog: &Catalog, run: &Run| {
            catalog.routines.known.contains_key(&run.function) && !catalog.routines.bodies.contains_key(run)
        };
        let mut open: BTreeSet<Run> =
            self.readings.values().flatten().flat_map(|bound| self.runs(bound)).collect();
        open.retain(|run| is_open(self, run));
        while !open.is_empty() {
            let read = self.read_some(&open, server)?;
            open = read.values().flatten().flatten().flat_map(|bound| self.runs(bound)).collect();
            self.routines.bodies.extend(read);
            open.retain(|run| is_open(self, run));
        }
        Ok(())
    }

    /// Reads the bodies of these functions.
    #[expect(clippy::type_complexity, reason = "the statements, or why they can't be read")]
    fn read_some<A: Answers>(
        &self,
        runs: &BTreeSet<Run>,
        server: &mut A,
    ) -> Result<BTreeMap<Run, Result<Vec<Bound>, String>>, A::Lost> {
        let parts: Vec<(Run, &Routine, Option<(String, Vec<String>)>)> = runs
            .iter()
            .map(|run| {
                let routine = &self.routines.known[&run.function];
                let row = self.relations.iter().find(|known| run.table != 0 && known.oid == run.table);
                let row = row.map(|row| format!("{}.{}", name_in_sql(&row.schema), name_in_sql(&row.name)));
                (*run, routine, routine.parts(row.as_deref()))
            })
            .collect();
        let mut functions = Vec::new();
        for (_, routine, parts) in &parts {
            for (parameters, statement) in
                parts.iter().flat_map(|(parameters, all)| all.iter().map(move |one| (parameters, one)))
            {
                let search_path = routine.search_path.as_deref();
                functions.push(Function { parameters: parameters.clone(), statement, search_path });
            }
        }
        let mut readings = read_functions(functions, &self.builtins, server)?.into_iter();
        let found = parts.iter().map(|(run, routine, parts)| {
            let unread =
                |why: &str| format!("isobench doesn't know what function {}() does: {why}", routine.name);
            let Some((_, statements)) = parts else {
                return (*run, Err(unread("its body has more than static statements")));
            };
            // All of its readings are taken, also those after a refusal.
            let own: Vec<Result<Bound, Reading>> = readings.by_ref().take(statements.len()).collect();
            let read: Result<Vec<Bound>, Reading> = own.into_iter().collect();
            (*run, read.map_err(|why| unread(&why.to_string())))
        });
        Ok(found.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_named_without_their_function() {
        let parameters = [("key".to_owned(), "integer".to_owned())];
        let of = |text: &str| unqualified(text, "f", &parameters);
        assert_eq!(
            of("SELECT v FROM t WHERE t.key = f.key AND F.key > 0"),
            "SELECT v FROM t WHERE t.key = key AND key > 0"
        );
        for text in ["SELECT f.key FROM t f", "SELECT f.v FROM s.f", "SELECT f(f.key)", "SELECT 'f.key'"] {
            assert_eq!(of(text), text);
        }
    }
}
