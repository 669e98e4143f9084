//! What the server itself reads in statements, and whether isobench's own reading has all of it.
//!
//! Two readers that know different things have to agree before anything is proved: what the server's tree has and
//! isobench's own reading doesn't is a gap.

use std::collections::BTreeSet;

use isobench_robustness::{Columns, Strength};
use isobench_script::{CommandKind, Script};
use isobench_sql::{Answers, Bound, BoundRelation, Gap, LockStrength, Reading, Wait, read_statement};

use super::{Catalog, RelationId, RelationKind};
use crate::statement::{Access, Deed};
use crate::statement_places;

/// The system column of the table of a row, which never changes.
const TABLE_OID: i32 = -6;

impl Catalog {
    /// Asks the server how it reads the statements of scripts, unless that was asked before. None is executed
    /// ([`isobench_sql`]).
    ///
    /// # Errors
    /// The session is lost.
    pub fn read_statements<'s, A: Answers>(
        &mut self,
        scripts: impl IntoIterator<Item = &'s Script>,
        server: &mut A,
    ) -> Result<(), A::Lost> {
        for script in scripts {
            for command in &script.commands {
                let CommandKind::Sql(sql) = &command.kind else { continue };
                for place in statement_places(sql) {
                    let text = &sql.parameterized[place];
                    if !self.readings.contains_key(text)
                        && let Some(read) = read(text, server)?
                    {
                        self.readings.insert(text.to_owned(), read);
                    }
                }
            }
        }
        Ok(())
    }

    /// What the server reads in a statement and these accesses, in which nothing has been left out yet, don't
    /// have; `None` if they have all of it, or if the server didn't analyse the statement.
    pub(crate) fn missed(&self, text: &str, accesses: &[Access]) -> Option<String> {
        match self.readings.get(text)? {
            Ok(bound) => self.calls(bound).or_else(|| self.unread(bound, accesses)),
            Err(gap) => Some(gap.to_string()),
        }
    }

    /// What it calls that may read or write tables.
    fn calls(&self, bound: &Bound) -> Option<String> {
        let meets = |called: &BTreeSet<u32>, known: &BTreeSet<u32>| !called.is_disjoint(known);
        (meets(&bound.functions, &self.called.functions)
            || meets(&bound.operators, &self.called.operators)
            || meets(&bound.types, &self.called.types))
        .then(|| "it calls a function that may read and write anything".to_owned())
    }

    fn unread(&self, bound: &Bound, accesses: &[Access]) -> Option<String> {
        let mut counted: Vec<(RelationId, usize)> = Vec::new();
        for relation in &bound.relations {
            let Some(id) = self.relations.iter().position(|known| known.oid == relation.oid) else {
                return Some("it uses a relation that isobench doesn't know".to_owned());
            };
            if self.relations[id].kind == RelationKind::System {
                continue;
            }
            let table = self.root(id);
            let of_table: Vec<&Access> = accesses.iter().filter(|access| access.table == table).collect();
            if let Some(part) = self.unread_of(id, relation, &of_table) {
                let name = self.relations[id].qualified();
                return Some(format!("the server reads more in it than isobench does: {part} of {name}"));
            }
            match counted.iter_mut().find(|(known, _)| *known == table) {
                Some((_, count)) => *count += 1,
                None => counted.push((table, 1)),
            }
        }
        for (table, count) in counted {
            let name = self.relations[table].qualified();
            if accesses.iter().filter(|access| access.table == table).count() < count {
                return Some(format!("the server reads {name} more often in it than isobench does"));
            }
            if self.claims_locks(table, bound, accesses) {
                return Some(format!(
                    "the server locks fewer rows of {name} in it than isobench reads in it"
                ));
            }
        }
        None
    }

    /// The part of what is done with a relation that these accesses of its table don't have.
    fn unread_of(&self, id: RelationId, bound: &BoundRelation, accesses: &[&Access]) -> Option<String> {
        let has = |deeds: &[Deed]| accesses.iter().any(|access| deeds.contains(&access.deed));
        let inserting = [Deed::Insert, Deed::InsertOrRead, Deed::InsertOrUpdate];
        let updating = [Deed::Update, Deed::InsertOrUpdate];
        if accesses.is_empty() {
            return Some("all".to_owned());
        }
        for (does, known, word) in [
            (bound.inserts, has(&inserting), "an INSERT"),
            (bound.updates, has(&updating), "an UPDATE"),
            (bound.deletes, has(&[Deed::Delete]), "a DELETE"),
        ] {
            if does && !known {
                return Some(word.to_owned());
            }
        }
        let written = |deeds: &[Deed], column: &str| {
            let writing = accesses.iter().filter(|access| deeds.contains(&access.deed));
            writing.map(|access| &access.writes).any(|writes| includes(writes, column))
        };
        let read = |column: &str| accesses.iter().any(|access| mentions(access, column));
        for (numbers, known) in [
            // An INSERT writes the whole row, and looks for the row that it must not meet.
            (&(&bound.read - &bound.arbiter), &read as &dyn Fn(&str) -> bool),
            (&bound.updated, &|column: &str| written(&updating, column)),
        ] {
            for number in numbers.iter().filter(|number| **number != TABLE_OID) {
                let name = self.column_name(id, *number);
                let everything = || accesses.iter().any(|access| access.reads == Columns::All);
                if !name.as_deref().map_or_else(everything, known) {
                    return Some(format!("column {}", name.unwrap_or_else(|| "*".to_owned())));
                }
            }
        }
        None
    }

    /// True if the server doesn't take all row locks that these accesses have of a table, or passes by locked
    /// rows.
    fn claims_locks(&self, table: RelationId, bound: &Bound, accesses: &[Access]) -> bool {
        let claimed: Vec<Strength> = accesses
            .iter()
            .filter(|access| access.table == table)
            .filter_map(|access| if let Deed::Lock(strength) = access.deed { Some(strength) } else { None })
            .collect();
        let of_table = |relation: &&BoundRelation| {
            let id = self.relations.iter().position(|known| known.oid == relation.oid);
            id.is_some_and(|id| self.root(id) == table)
        };
        let takes = |relation: &BoundRelation| {
            let locks = relation.locks.iter().filter(|lock| lock.wait != Wait::Skips);
            locks.map(|lock| strength(lock.strength)).max()
        };
        let mut taken: Vec<Strength> = bound.relations.iter().filter(of_table).filter_map(takes).collect();
        claimed.into_iter().any(|claimed| {
            let Some(place) = taken.iter().position(|taken| *taken >= claimed) else { return true };
            taken.swap_remove(place);
            false
        })
    }

    /// The name of a column; `None` for the whole row, and for what isn't known.
    fn column_name(&self, id: RelationId, number: i32) -> Option<String> {
        const SYSTEM: [&str; 5] = ["ctid", "xmin", "cmin", "xmax", "cmax"];
        if number < 0 {
            let place = usize::try_from(-number - 1).ok()?;
            return SYSTEM.get(place).map(|name| (*name).to_owned());
        }
        let column = self.relations[id].columns.iter().find(|column| column.number == number)?;
        Some(column.name.clone())
    }
}

fn read<A: Answers>(text: &str, server: &mut A) -> Result<Option<Result<Bound, Gap>>, A::Lost> {
    Ok(match read_statement(text, server)? {
        Ok(bound) => Some(Ok(bound)),
        Err(Reading::Gap(gap)) => Some(Err(gap)),
        // No query, or one whose parameters have no types: isobench's own reading is all there is.
        Err(Reading::Refused(_)) => None,
    })
}

fn strength(of: LockStrength) -> Strength {
    match of {
        LockStrength::KeyShare => Strength::KeyShare,
        LockStrength::Share => Strength::Share,
        LockStrength::NoKeyUpdate => Strength::NoKeyUpdate,
        LockStrength::Update => Strength::Update,
    }
}

fn includes(columns: &Columns, column: &str) -> bool {
    match columns {
        Columns::These(these) => these.contains(column),
        Columns::All => true,
    }
}

/// True if an access depends on a column in some way.
fn mentions(access: &Access, column: &str) -> bool {
    access.equal.contains_key(column)
        || access.before.contains_key(column)
        || access.tested.contains(column)
        || access.idle.contains(column)
        || includes(&access.reads, column)
        || includes(&access.writes, column)
}
