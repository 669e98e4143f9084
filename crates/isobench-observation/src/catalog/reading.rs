//! What the server itself reads in statements, and whether isobench's own reading has all of it.
//!
//! Two readers that know different things have to agree before anything is proved: what the server's tree has and
//! isobench's own reading doesn't is a gap.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Columns, Strength};
use isobench_script::{CommandKind, Script};
use isobench_sql::{Answers, Bound, BoundRelation, FoundRows, LockStrength, Wait, read_statement};

use super::{Catalog, Inheritance, RelationId, RelationKind};
use crate::statement::{Access, Deed};
use crate::statement_places;

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
        let readings = self.readings.get_or_insert_default();
        for script in scripts {
            for command in &script.commands {
                let CommandKind::Sql(sql) = &command.kind else { continue };
                for place in statement_places(sql) {
                    let text = &sql.parameterized[place];
                    if !readings.contains_key(text) {
                        readings.insert(text.to_owned(), read_statement(text, &self.equalities, server)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// What the server reads in a statement and these accesses, in which nothing has been left out yet, don't
    /// have; `None` if they have all of it, or if the server wasn't asked about any statement.
    pub(crate) fn missed(&self, text: &str, accesses: &[Access]) -> Option<String> {
        match self.readings.as_ref()?.get(text) {
            Some(Ok(bound)) => self.calls(bound).or_else(|| self.unread(bound, accesses)),
            Some(Err(why)) => Some(why.to_string()),
            None => Some("the server wasn't asked how it reads it".to_owned()),
        }
    }

    /// What it calls that may read or write tables.
    fn calls(&self, bound: &Bound) -> Option<String> {
        let first = |called: &BTreeSet<u32>, known: &BTreeMap<u32, String>| {
            called.iter().find_map(|oid| known.get(oid).cloned())
        };
        first(&bound.functions, &self.called.functions)
            .map(|name| format!("isobench doesn't know what function {name}() reads and writes"))
            .or_else(|| {
                first(&bound.operators, &self.called.operators)
                    .map(|name| format!("operator {name} may call a function of a user"))
            })
            .or_else(|| {
                first(&bound.types, &self.called.types)
                    .map(|name| format!("type {name} calls a function of a user"))
            })
    }

    /// The relation of the catalog that a statement names.
    fn relation_of(&self, bound: &BoundRelation) -> Option<RelationId> {
        self.relations.iter().position(|known| known.oid == bound.oid)
    }

    fn unread(&self, bound: &Bound, accesses: &[Access]) -> Option<String> {
        let mut counted: Vec<(RelationId, usize)> = Vec::new();
        for relation in &bound.relations {
            let Some(id) = self.relation_of(relation) else {
                return Some("it uses a relation that isobench doesn't know".to_owned());
            };
            if let Some(why) = self.beyond(id, relation) {
                return Some(why);
            }
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
            if self.claims_rows(table, bound, accesses) {
                return Some(format!("the server finds other rows of {name} in it than isobench does"));
            }
        }
        None
    }

    /// What decides about rows of a relation besides the statement: policies, functions, what other
    /// transactions do to a catalog.
    fn beyond(&self, id: RelationId, bound: &BoundRelation) -> Option<String> {
        let found = &self.relations[id];
        let name = found.qualified();
        if found.kind == RelationKind::System {
            let changes =
                CHANGING_CATALOGS.contains(&found.name.as_str()) || found.name.starts_with("pg_stat");
            return changes.then(|| format!("{name} changes with what other transactions do"));
        }
        if bound.renamed {
            return Some(format!("the alias of {name} renames its columns"));
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
            let id = self.relation_of(relation);
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

    /// True if these accesses of a table have conditions that the server's reading hasn't, or if it finds rows
    /// that none of them does.
    fn claims_rows(&self, table: RelationId, bound: &Bound, accesses: &[Access]) -> bool {
        let finding = [Deed::Read, Deed::Update, Deed::Delete];
        let finds = |access: &&Access| {
            access.table == table && (finding.contains(&access.deed) || matches!(access.deed, Deed::Lock(_)))
        };
        let own: Vec<&Access> = accesses.iter().filter(finds).collect();
        let places: Vec<Place> =
            bound.relations.iter().filter_map(|relation| self.place(table, relation)).collect();
        // An UPDATE may change a column that its condition requires to have a value.
        let required = |access: &Access| -> BTreeSet<String> {
            access.equal.keys().chain(access.before.keys()).cloned().collect()
        };
        let fits = |access: &Access, place: &Place| {
            let required = required(access);
            required.is_subset(&place.equal)
                && (!access.certain || place.exactly && required.len() == place.equal.len())
        };
        own.iter().any(|access| !places.iter().any(|place| fits(access, place)))
            || places.iter().any(|place| {
                let covers = |access: &&&Access| {
                    required(access).is_subset(&place.equal)
                        && place.tested.iter().all(|column| mentions(access, column))
                };
                !own.iter().any(|access| covers(&access))
            })
    }

    /// Which rows are found where a statement names this table; `None` if it is another one, or if rows are only
    /// inserted there.
    fn place(&self, table: RelationId, bound: &BoundRelation) -> Option<Place> {
        let id = self.relation_of(bound)?;
        if self.root(id) != table || bound.inserts {
            return None;
        }
        let names = |numbers: &BTreeSet<i32>| -> BTreeSet<String> {
            numbers.iter().filter_map(|number| self.column_name(id, *number)).collect()
        };
        let FoundRows { equal, tested, exactly } = &bound.found;
        Some(Place { equal: names(equal), tested: names(tested), exactly: *exactly })
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

/// Which rows are found where a statement names a table, with the names of columns.
struct Place {
    equal: BTreeSet<String>,
    tested: BTreeSet<String>,
    exactly: bool,
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

#[cfg(test)]
mod tests {
    use isobench_sql::{Reading, RowLock};

    use super::super::Called;
    use super::super::relation::{Column, ColumnType, Relation, Triggers};
    use super::*;
    use crate::statement::Known;

    const TEXT: &str = "the statement";

    fn table(oid: u32, name: &str) -> Relation {
        let column = |(number, name): (i32, &&str)| Column {
            number,
            name: (*name).to_owned(),
            kind: ColumnType::Integer,
            generated: false,
            not_null: true,
            plain_case: false,
            fresh: false,
        };
        Relation {
            oid,
            schema: "public".to_owned(),
            name: name.to_owned(),
            visible: true,
            shadowed: false,
            kind: RelationKind::Table,
            temporary: false,
            inheritance: Inheritance::None,
            columns: (1..).zip(&["id", "v", "w"]).map(column).collect(),
            key: vec![0],
            unique: vec![vec![0]],
            only_key: true,
            triggers: Triggers::default(),
            rules: false,
            row_security: false,
            selectable: true,
            calls_writing: false,
            calls: false,
            checks: Vec::new(),
            uniqueness: Vec::new(),
        }
    }

    fn access(table: RelationId, deed: Deed, reads: &[&str], writes: &[&str]) -> Access {
        Access {
            table,
            deed,
            equal: BTreeMap::new(),
            before: BTreeMap::new(),
            tested: BTreeSet::from(["id".to_owned()]),
            reads: Columns::from(reads),
            writes: Columns::from(writes),
            certain: false,
            idle: BTreeSet::new(),
            in_result: true,
            deferrable: false,
        }
    }

    fn missed(bound: Bound, accesses: &[Access]) -> Option<String> {
        let catalog = Catalog {
            relations: vec![table(20, "a"), table(21, "b")],
            called: Called {
                functions: BTreeMap::from([(70, "peek".to_owned())]),
                operators: BTreeMap::from([(71, "###".to_owned())]),
                types: BTreeMap::from([(72, "amount".to_owned())]),
            },
            readings: Some(BTreeMap::from([(TEXT.to_owned(), Ok(bound))])),
            ..Catalog::default()
        };
        catalog.missed(TEXT, accesses)
    }

    fn relation(oid: u32, read: &[i32]) -> BoundRelation {
        BoundRelation { oid, read: read.iter().copied().collect(), ..BoundRelation::default() }
    }

    fn with(relations: Vec<BoundRelation>) -> Bound {
        Bound { relations, ..Bound::default() }
    }

    #[test]
    fn what_both_read_is_known() {
        let read = access(0, Deed::Read, &["v"], &[]);
        assert_eq!(missed(with(vec![relation(20, &[1, 2])]), std::slice::from_ref(&read)), None);
        assert_eq!(missed(with(vec![relation(20, &[TABLE_OID])]), std::slice::from_ref(&read)), None);
        assert_eq!(missed(with(Vec::new()), &[read]), None, "isobench may read more");
    }

    #[test]
    fn what_only_the_server_reads_is_missed() {
        let read = access(0, Deed::Read, &["v"], &[]);
        let missed_by_read = |relations| missed(with(relations), std::slice::from_ref(&read)).is_some();
        for relations in [
            vec![relation(21, &[1])],
            vec![relation(22, &[1])],
            vec![relation(20, &[3])],
            vec![relation(20, &[0])],
            vec![relation(20, &[-2])],
            vec![relation(20, &[1]), relation(20, &[1])],
            vec![BoundRelation { updates: true, ..relation(20, &[1]) }],
            vec![BoundRelation { deletes: true, ..relation(20, &[1]) }],
            vec![BoundRelation { inserts: true, ..relation(20, &[1]) }],
        ] {
            assert!(missed_by_read(relations.clone()), "{relations:?}");
        }
        let update = access(0, Deed::Update, &[], &["v"]);
        let set = |columns: &[i32]| BoundRelation {
            updates: true,
            updated: columns.iter().copied().collect(),
            ..relation(20, &[1])
        };
        assert_eq!(missed(with(vec![set(&[2])]), std::slice::from_ref(&update)), None);
        assert!(missed(with(vec![set(&[2, 3])]), &[update]).is_some());
    }

    #[test]
    fn locks_that_the_server_does_not_take_are_claimed() {
        let lock = |strength| access(0, Deed::Lock(strength), &["v"], &[]);
        let taking = |strength, wait| {
            with(vec![BoundRelation { locks: vec![RowLock { strength, wait }], ..relation(20, &[1]) }])
        };
        let claims = [lock(Strength::NoKeyUpdate)];
        assert_eq!(missed(taking(LockStrength::NoKeyUpdate, Wait::Blocks), &claims), None);
        assert_eq!(missed(taking(LockStrength::Update, Wait::Fails), &claims), None);
        for (strength, wait) in [(LockStrength::Share, Wait::Blocks), (LockStrength::Update, Wait::Skips)] {
            assert!(missed(taking(strength, wait), &claims).is_some(), "{strength:?} {wait:?}");
        }
        assert!(missed(with(vec![relation(20, &[1])]), &claims).is_some());
    }

    #[test]
    fn rows_that_the_server_finds_otherwise_are_other_rows() {
        let found = |equal: &[i32], tested: &[i32], exactly| {
            let set = |numbers: &[i32]| numbers.iter().copied().collect();
            let found = FoundRows { equal: set(equal), tested: set(tested), exactly };
            BoundRelation { found, ..relation(20, &[]) }
        };
        let by = |columns: &[&str], certain| {
            let value = || Known::Constant("1".to_owned());
            let equal = columns.iter().map(|column| ((*column).to_owned(), value())).collect();
            Access { equal, tested: BTreeSet::new(), certain, ..access(0, Deed::Read, &[], &[]) }
        };
        for (places, accesses) in [
            (vec![found(&[1], &[], true)], vec![by(&["id"], true)]),
            (vec![found(&[1, 2], &[], true)], vec![by(&["id", "v"], true)]),
            (vec![found(&[1, 2], &[], false)], vec![by(&["id"], false)]),
            (vec![found(&[1], &[], false), found(&[], &[], false)], vec![by(&["id"], false), by(&[], false)]),
        ] {
            assert_eq!(missed(with(places.clone()), &accesses), None, "{places:?}");
        }
        for (places, accesses) in [
            // Another column, or a condition that isn't there.
            (vec![found(&[2], &[], true)], vec![by(&["id"], false)]),
            (vec![found(&[], &[1], false)], vec![by(&["id"], false)]),
            (
                vec![found(&[1], &[], false), found(&[], &[], false)],
                vec![by(&["id"], false), by(&["id"], false)],
            ),
            // Something else decides, too.
            (vec![found(&[1], &[], false)], vec![by(&["id"], true)]),
            (vec![found(&[1, 2], &[], true)], vec![by(&["id"], true)]),
            // A column is tested that isobench doesn't see.
            (vec![found(&[1], &[3], false)], vec![by(&["id"], false)]),
        ] {
            assert!(missed(with(places.clone()), &accesses).is_some(), "{places:?}");
        }
    }

    #[test]
    fn calls_of_users_functions_may_do_anything() {
        let oids = |oid| BTreeSet::from([oid]);
        for bound in [
            Bound { functions: oids(70), ..Bound::default() },
            Bound { operators: oids(71), ..Bound::default() },
            Bound { types: oids(72), ..Bound::default() },
        ] {
            assert!(missed(bound, &[]).is_some());
        }
        assert_eq!(missed(Bound { functions: oids(1), ..Bound::default() }, &[]), None);
    }

    #[test]
    fn a_statement_without_the_servers_reading_is_unknown() {
        let refused = Err(Reading::Refused("no".to_owned()));
        let readings = Some(BTreeMap::from([(TEXT.to_owned(), refused)]));
        let asked = Catalog { readings, ..Catalog::default() };
        assert!(asked.missed(TEXT, &[]).is_some() && asked.missed("another one", &[]).is_some());
        assert_eq!(Catalog::default().missed(TEXT, &[]), None);
    }
}
