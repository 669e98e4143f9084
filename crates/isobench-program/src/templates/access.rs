//! The operations of an access to rows, and the ways that it can take.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Columns, Kind, Operation, StatementId, Strength, Term};
use isobench_sql::{Relation, RelationKind};

use super::walk::{How, Walk};
use super::way::{HeldRows, Way};
use crate::statement::{Access, Deed};

/// An access on a way, with the values that it has there.
struct OnWay<'w> {
    walk: &'w Walk<'w>,
    access: &'w Access,
    relation: &'w Relation,
    how: How,
    /// Its statement.
    at: &'w StatementId,
    /// The number of its statement on the way.
    statement: usize,
    /// The values of columns that are known.
    terms: BTreeMap<&'w str, Term>,
    /// The columns of the key, or of another unique index, if all of their values are known.
    key_names: Vec<&'w str>,
    /// Their values.
    key: Vec<(String, Term)>,
    /// The columns that its condition names.
    conditions: BTreeSet<String>,
    /// It may change a column of a unique index, or one to which a foreign key refers.
    changes_key: bool,
    /// Its condition has other columns than the key's.
    guarded: bool,
    /// It may find no row.
    may_be_absent: bool,
    /// The lock that its transaction has of all rows that it can find.
    held: Option<Strength>,
}

impl Walk<'_> {
    /// The ways that an access can take. `at` is its statement.
    pub(super) fn access(&self, way: Way, access: &Access, how: How, at: &StatementId) -> Vec<Way> {
        let mut way = way;
        // Only plain reads have any, which are one operation.
        way.idle.push((way.operations.len(), access.idle.clone()));
        let here = OnWay::new(self, &mut way, access, how, at);
        match access.deed {
            Deed::Refer => vec![here.refer(way)],
            Deed::Vacant => vec![here.vacant(way)],
            Deed::Cascade => {
                let search = here.operation(Kind::Search, &[], Vec::new(), Columns::All, Columns::NONE);
                let update = here.operation(Kind::Update, &[], Vec::new(), Columns::All, Columns::All);
                let later = here.statement + 1;
                vec![way.with([search, update].map(|one| Operation { statement: later, ..one }))]
            }
            Deed::Insert => {
                // A query may find no row for it, so that no transaction waits for the key.
                let inserts = way.clone().with([here.single(Kind::Insert)]);
                let certain = access.listed || !here.one_row();
                if certain { vec![inserts] } else { vec![inserts, way.nothing(at)] }
            }
            Deed::InsertOrRead | Deed::InsertOrUpdate => here.insert_or_find(way),
            Deed::Lock(strength) => here.find_and(Kind::Lock(strength), way),
            // Without a row the script ends.
            Deed::Pick(strength) if how.found => vec![way.with([here.picked(strength)])],
            Deed::Read | Deed::Pick(_) => vec![way.with([here.read()])],
            Deed::Update => here.find_and(Kind::Update, way),
            Deed::Delete => here.find_and(Kind::Delete, way),
        }
    }
}

impl<'w> OnWay<'w> {
    fn new(
        walk: &'w Walk<'w>,
        way: &mut Way,
        access: &'w Access,
        how: How,
        at: &'w StatementId,
    ) -> OnWay<'w> {
        let relation = &walk.catalog.relations[access.table];
        let terms: BTreeMap<&str, Term> = access
            .equal
            .iter()
            .map(|(column, known)| (column.as_str(), way.term(known, walk.symbols)))
            .collect();
        let names = |key: &Vec<usize>| -> Vec<&'w str> {
            key.iter().map(|place| relation.columns[*place].name.as_str()).collect()
        };
        let whole = |key: &Vec<&str>| !key.is_empty() && key.iter().all(|name| terms.contains_key(name));
        let known = relation.keys().map(names).find(whole);
        let key_names = known.filter(|_| !relation.has_children()).unwrap_or_default();
        let key: Vec<(String, Term)> =
            key_names.iter().map(|name| ((*name).to_owned(), terms[name].clone())).collect();
        let conditions: BTreeSet<String> = access.equal.keys().chain(&access.tested).cloned().collect();
        let changes_key = match &access.writes {
            Columns::All => true,
            Columns::These(set) => {
                let referred = walk.catalog.foreign_keys.iter().filter(|key| {
                    walk.catalog.ends(key).is_some_and(|(referenced, _)| referenced == access.table)
                });
                let referred = referred.flat_map(|key| &key.referenced_columns).map(String::as_str);
                let unique = relation.keys().flat_map(names);
                referred.chain(unique).any(|column| set.contains(column))
            }
        };
        let guarded = conditions.iter().any(|column| !key_names.contains(&column.as_str()));
        let is_there = !guarded && access.certain && way.has_locked(&relation.qualified(), &key);
        let may_be_absent = !how.found
            && !is_there
            && (guarded
                || !access.certain
                || walk.changing.0.contains(&access.table)
                || walk.rows.absent.contains(at));
        if let Some(lock) = walk.sets.lock_of(access, walk.catalog).filter(|_| key_names.is_empty()) {
            let values = terms.iter().map(|(column, term)| ((*column).to_owned(), term.clone())).collect();
            way.held.push(HeldRows { table: access.table, values, lock });
        }
        let covers = |rows: &&HeldRows| {
            let same = |(column, term): &(String, Term)| {
                *term != Term::Unknown && terms.get(column.as_str()) == Some(term)
            };
            rows.table == access.table && rows.values.iter().all(same)
        };
        let held = way.held.iter().filter(covers).map(|rows| rows.lock).max();
        let statement = way.statement;
        OnWay {
            walk,
            access,
            relation,
            how,
            at,
            statement,
            terms,
            key_names,
            key,
            conditions,
            changes_key,
            guarded,
            may_be_absent,
            held,
        }
    }

    /// True if it can find one row only.
    fn one_row(&self) -> bool {
        !self.key_names.is_empty()
    }

    fn operation(
        &self,
        kind: Kind,
        key: &[(String, Term)],
        known: Vec<(String, Term)>,
        reads: Columns,
        writes: Columns,
    ) -> Operation {
        Operation {
            kind,
            table: self.relation.qualified(),
            key: key.to_vec(),
            known,
            reads,
            writes,
            changes_key: self.changes_key,
            statement: self.statement,
            at: self.at.clone(),
            newest: false,
            certain: self.access.certain,
            found: !self.may_be_absent,
            held: None,
            waits: true,
        }
    }

    /// All columns whose values are known.
    fn known(&self) -> Vec<(String, Term)> {
        self.terms.iter().map(|(column, term)| ((*column).to_owned(), term.clone())).collect()
    }

    /// Those that aren't the key's.
    fn rest(&self) -> Vec<(String, Term)> {
        self.known().into_iter().filter(|(column, _)| !self.key_names.contains(&column.as_str())).collect()
    }

    /// Its operation on one row, by the key.
    fn single(&self, kind: Kind) -> Operation {
        let (reads, writes) = (self.access.reads.clone(), self.access.writes.clone());
        self.operation(kind, &self.key, self.rest(), reads, writes)
    }

    /// A search for all rows that meet its condition.
    fn search(&self, reads: Columns) -> Operation {
        let tested = self.access.tested.iter().map(|column| (column.clone(), Term::Unknown));
        let known = self.known().into_iter().chain(tested);
        let search = self.operation(Kind::Search, &[], known.collect(), reads, Columns::NONE);
        Operation { held: self.held, ..search }
    }

    /// The read of a row that isn't there, or doesn't meet the condition.
    fn absent(&self) -> Operation {
        let reads = Columns::These(self.conditions.clone());
        // A transaction that waits for a row finds that it isn't there any more after the other reads.
        let read = self.operation(Kind::Read, &self.key, Vec::new(), reads, Columns::NONE);
        Operation { statement: self.statement + 1, certain: false, ..read }
    }

    fn read(&self) -> Operation {
        if !self.one_row() {
            return self.search(self.access.reads.clone());
        }
        let certain = self.access.certain && !self.guarded;
        Operation { known: Vec::new(), certain, ..self.single(Kind::Read) }
    }

    /// The lock of a row that no other transaction has locked. Which one that is doesn't count.
    fn picked(&self, strength: Strength) -> Operation {
        let lock = self.operation(
            Kind::Lock(strength),
            &self.key,
            self.rest(),
            self.access.reads.clone(),
            Columns::NONE,
        );
        Operation { certain: false, waits: false, ..lock }
    }

    /// The lock of a foreign key.
    fn refer(&self, way: Way) -> Way {
        let newest = self.relation.kind == RelationKind::Partitioned;
        let lock = Kind::Lock(Strength::KeyShare);
        if self.one_row() && self.access.certain && !self.access.deferrable {
            return way.with([Operation { newest, ..self.single(lock) }]);
        }
        // It may not be executed: then it keeps no transaction out.
        let any = self.operation(lock, &[], self.known(), self.access.reads.clone(), Columns::NONE);
        way.checked(Operation { newest, statement: self.statement + 1, ..any }, self.access.deferrable)
    }

    /// The check that no row has its values.
    fn vacant(&self, mut way: Way) -> Way {
        let reads = self.access.reads.clone();
        let vacant = self.operation(Kind::Vacant, &[], self.known(), reads, Columns::NONE);
        let vacant = Operation { newest: true, statement: self.statement + 1, ..vacant };
        if self.walk.freed.has(self.access.table, &self.access.reads) {
            return way.checked(vacant, self.access.deferrable);
        }
        way.vacant.push((way.operations.len(), vacant));
        way
    }

    /// INSERT … ON CONFLICT: the row is new, or it is there.
    fn insert_or_find(&self, way: Way) -> Vec<Way> {
        let (mut way, access, one_row) = (way, self.access, self.one_row());
        let insert = Operation { reads: Columns::NONE, writes: Columns::All, ..self.single(Kind::Insert) };
        // Another unique index may have prevented it, because of another row.
        let other = match (access.deed, one_row && self.relation.only_key) {
            (Deed::InsertOrRead, true) => self.absent(),
            (Deed::InsertOrRead, false) => {
                let search = self.operation(Kind::Search, &[], Vec::new(), Columns::All, Columns::NONE);
                Operation { statement: self.statement + 1, certain: false, ..search }
            }
            // The row that is there has the key, and other values.
            (_, true) => Operation { known: Vec::new(), ..self.single(Kind::Update) },
            (_, false) => Operation { key: Vec::new(), known: Vec::new(), ..self.single(Kind::Update) },
        };
        if self.key.is_empty() && !access.listed {
            // It may be several rows, of which some are new.
            return vec![way.with([other, insert])];
        }
        // DO UPDATE WHERE: then the row is locked, and read as it is, which serializable doesn't watch.
        let kept = access.may_keep.then(|| {
            let lock = Kind::Lock(Strength::NoKeyUpdate);
            let kept = Operation { known: Vec::new(), newest: true, certain: false, ..self.single(lock) };
            let mut way = way.clone();
            way.name.push(format!("row of line {} is there and stays", self.at.line));
            way.with([Operation { reads: Columns::All, writes: Columns::NONE, ..kept }])
        });
        let nothing = (!access.listed && one_row).then(|| way.clone().nothing(self.at));
        let mut inserted = way.clone();
        inserted.name.push(format!("row of line {} is new", self.at.line));
        way.name.push(format!("row of line {} is there", self.at.line));
        if self.how.early && access.deed == Deed::InsertOrRead {
            way = way.with([Operation { statement: self.statement, ..other.clone() }]);
        }
        [inserted.with([insert]), way.with([other])].into_iter().chain(kept).chain(nothing).collect()
    }

    /// It finds rows and locks or changes them, or it finds none.
    fn find_and(&self, kind: Kind, way: Way) -> Vec<Way> {
        let (mut way, access) = (way, self.access);
        if !self.one_row() {
            let (reads, writes) = (access.reads.clone(), access.writes.clone());
            let found = self.operation(kind, &[], self.rest(), reads, writes);
            let reads = match &access.reads {
                Columns::All => Columns::All,
                Columns::These(_) => Columns::These(self.conditions.clone()),
            };
            return vec![way.with([self.search(reads), found])];
        }
        if !self.may_be_absent {
            return vec![way.with([self.single(kind)])];
        }
        let required = access.equal.iter().chain(&access.before);
        let required: Vec<(String, Term)> = required
            .map(|(column, known)| (column.clone(), way.term(known, self.walk.symbols)))
            .filter(|(column, _)| !self.key_names.contains(&column.as_str()))
            .filter(|(column, _)| self.walk.catalog.equal_is_same(access.table, column))
            .collect();
        let (mut found, missed) = (self.single(kind), self.absent());
        let mut without = way.clone();
        without.name.push(format!("row of line {} isn't there", self.at.line));
        let tested = way.tested_again(&found, required);
        if !tested.is_empty() {
            without.refused = true;
            let versions = self.walk.versions.0.get(&access.table);
            let of_version = |(column, statement): (&String, &usize)| {
                versions.is_some_and(|all| all.contains(column)).then_some(*statement)
            };
            let versioned = tested.iter().filter_map(of_version).min();
            way.read_then(&mut found, &tested, versioned);
        }
        if self.how.early || self.walk.replaced.0.contains(&access.table) {
            // It may have waited for a row that is gone, when another one has the key.
            without = without.with([Operation { statement: self.statement, ..missed.clone() }]);
        }
        vec![way.with([found]), without.with([missed])]
    }
}
