//! What a statement does with rows, for the question which levels transactions need: the tables that it
//! reads, locks and writes, by which key, and in which columns.
//!
//! The server's own tree of the statement says what the statement names ([`isobench_sql`]). The catalog adds what
//! follows from that: foreign keys, unique indexes, triggers and generated columns.
//!
//! Unlike what is shown of rows, this has to be complete rather than exact: a condition that isn't
//! understood finds any row, and a column that may be meant is used.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Columns, Strength};
use isobench_sql::{
    Bound, BoundRelation, Catalog, LockStrength, RelationId, RelationKind, Triggers, Value, Wait,
    is_system_column,
};

use super::Statement;
use super::operand::Operand;

/// What a statement does with the rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Access {
    pub table: RelationId,
    pub deed: Deed,
    /// Columns with the values that all of the rows have, or that are inserted.
    pub equal: BTreeMap<String, Operand>,
    /// Columns that an UPDATE changes, with the values that its condition requires before.
    pub before: BTreeMap<String, Operand>,
    /// The values that an UPDATE gives to columns, as far as they depend on no row.
    pub sets: BTreeMap<String, Operand>,
    /// The columns that its condition tests otherwise.
    pub tested: BTreeSet<String>,
    /// The columns whose values it depends on.
    pub reads: Columns,
    /// The columns that it changes.
    pub writes: Columns,
    /// It is certainly executed, for each row that has these values: nothing else decides which rows it
    /// finds.
    pub certain: bool,
    /// The statement lists the rows that it inserts, so that it inserts them certainly.
    pub listed: bool,
    /// `ON CONFLICT DO UPDATE … WHERE`: a row that is there may stay as it is.
    pub may_keep: bool,
    /// Columns that only become variables that nothing uses: they count only where the transaction writes
    /// nothing.
    pub idle: BTreeSet<String>,
    /// Each row of the result of an ungrouped query has a row of it.
    pub in_result: bool,
    /// It may be as late as at COMMIT: a deferrable constraint.
    pub deferrable: bool,
    /// It only orders rows that the statement locks then.
    pub orders: bool,
    /// The check of a unique index for a value that a sequence or a random UUID gives: nobody else has it, unless
    /// rows get such values otherwise, too.
    pub fresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Read,
    Lock(Strength),
    /// `SKIP LOCKED`: it locks rows that no other transaction has locked, whichever these are.
    Pick(Strength),
    /// The check of a foreign key, which fails if there is no row.
    Refer,
    /// The check that no row has these values: of a unique index, or of a foreign key whose row goes.
    Vacant,
    /// What the action of a foreign key does to rows that refer to one that goes.
    Cascade,
    Update,
    Insert,
    /// `ON CONFLICT DO NOTHING`.
    InsertOrRead,
    /// `ON CONFLICT DO UPDATE`.
    InsertOrUpdate,
    Delete,
}

impl Deed {
    /// True if it may change rows, rather than read, lock or check them.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::Lock(_) | Self::Pick(_) | Self::Refer | Self::Vacant)
    }

    /// True if it may add a row.
    pub(crate) fn inserts(self) -> bool {
        matches!(self, Self::Insert | Self::InsertOrRead | Self::InsertOrUpdate)
    }
}

/// Why a statement's accesses aren't known.
pub(super) type Unknown = String;

impl Statement<'_> {
    /// What the statement does with rows, reads first.
    ///
    /// # Errors
    /// It isn't known: it may read and write anything of its tables, or of all if it has none.
    pub(crate) fn accesses(&self) -> Result<Vec<Access>, Unknown> {
        self.accesses_with(OfTriggers::Unknown)
    }

    /// The same without what triggers of the tables that it writes may do, whatever that is.
    pub(crate) fn accesses_but_for_triggers(&self) -> Result<Vec<Access>, Unknown> {
        self.accesses_with(OfTriggers::Ignored)
    }

    fn accesses_with(&self, triggers: OfTriggers) -> Result<Vec<Access>, Unknown> {
        let bound = self.understood()?;
        if let Some(why) = self.catalog.calls(bound) {
            return Err(why);
        }
        let mut found =
            Accesses { statement: Some(self), catalog: self.catalog, triggers, found: Vec::new() };
        for relation in &bound.relations {
            found.relation(relation)?;
        }
        let mut accesses = found.found;
        accesses.sort_by_key(|access| access.deed != Deed::Read);
        Ok(accesses)
    }

    /// The server's reading of it.
    ///
    /// # Errors
    /// There is none, or it may mean something else with values.
    pub(super) fn understood(&self) -> Result<&Bound, Unknown> {
        if let Some(name) = &self.catalog.standing_in {
            return Err(format!("{name} may stand in for the server's own"));
        }
        // Such strings end elsewhere for the server.
        if !self.catalog.standard_strings && self.text.written(&self.range).contains('\\') {
            return Err("backslashes are part of its strings".to_owned());
        }
        if self.text.has_minus_before_variable(&self.range) {
            return Err(
                "a minus directly before a variable begins a comment if the value is negative".to_owned()
            );
        }
        self.bound.clone()
    }
}

/// What is taken of triggers that aren't known to touch their row only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfTriggers {
    /// They make a statement unknown.
    Unknown,
    /// They are as if they weren't there.
    Ignored,
    /// They may change any column of the row; what else they do is known otherwise.
    Row,
}

/// The accesses of a statement, as they are found.
pub(super) struct Accesses<'e> {
    /// The statement whose values are known.
    pub(super) statement: Option<&'e Statement<'e>>,
    pub(super) catalog: &'e Catalog,
    pub(super) triggers: OfTriggers,
    pub(super) found: Vec<Access>,
}

impl Accesses<'_> {
    /// What is done with a relation where the statement names it.
    pub(super) fn relation(&mut self, bound: &BoundRelation) -> Result<(), Unknown> {
        let Some(id) = self.catalog.relation_of(bound) else {
            return Err("it uses a relation that isobench doesn't know".to_owned());
        };
        if let Some(why) = self.catalog.beyond(id, bound) {
            return Err(why);
        }
        if self.catalog.relations[id].kind == RelationKind::System {
            return Ok(());
        }
        match bound {
            _ if bound.merges => self.merge(id, bound),
            _ if bound.inserts => self.insert(id, bound),
            _ if bound.updates => self.update(id, bound),
            _ if bound.deletes => self.delete(id, bound),
            _ => {
                self.find(id, bound);
                Ok(())
            }
        }
    }

    fn operand(&self, id: RelationId, column: i32, value: &Value) -> Option<Operand> {
        self.statement?.operand(id, column, value)
    }

    /// The rows that are found in a table, as a plain read.
    fn rows(&self, id: RelationId, bound: &BoundRelation) -> Access {
        let found = &bound.found;
        let mut tested = self.names(id, &found.tested);
        if bound.merges {
            // Conditions of its actions may leave a row as it is.
            tested.extend(self.names(id, &bound.read));
        }
        let mut equal = BTreeMap::new();
        let table = self.catalog.root(id);
        // The row that is meant may lie in another partition, or in a table that inherits.
        let relation = &self.catalog.relations[id];
        let has_parts = relation.has_children() || relation.kind == RelationKind::Partitioned;
        let everywhere = id == table && !(bound.only && has_parts);
        let mut certain = found.exactly && everywhere;
        for (number, value) in &found.equal {
            match (self.catalog.column_name(id, *number), self.operand(id, *number, value)) {
                (Some(name), Some(value)) => drop(equal.insert(name, value)),
                (name, _) => {
                    tested.extend(name);
                    certain = false;
                }
            }
        }
        let reads = self.columns(id, &bound.read);
        Access { equal, tested, reads, certain, in_result: bound.in_result, ..of(table, Deed::Read) }
    }

    /// The rows that a query finds, locked or not.
    fn find(&mut self, id: RelationId, bound: &BoundRelation) {
        let access = self.rows(id, bound);
        let waits = bound.locks.iter().all(|lock| lock.wait != Wait::Skips);
        let strongest = bound.locks.iter().map(|lock| strength(lock.strength)).max();
        match strongest {
            Some(strength) if !waits => self.pick(id, bound, strength, access),
            Some(strength) => {
                self.read_before(id, bound, &access);
                if strength == Strength::KeyShare {
                    // It shows the snapshot's version of a row of which another transaction has changed
                    // only columns that aren't keys.
                    self.found.push(Access { certain: false, in_result: false, ..access.clone() });
                }
                self.found.push(Access { deed: Deed::Lock(strength), ..access });
            }
            None => self.found.push(access),
        }
    }

    /// The rows of a query that passes over locked ones. It never waits, and tests its condition again on the newest
    /// versions, and may pass over any row, so that their order doesn't count.
    fn pick(&mut self, id: RelationId, bound: &BoundRelation, strength: Strength, access: Access) {
        let alone = bound.own && bound.in_result && bound.found.alone && strength > Strength::KeyShare;
        if !alone {
            self.found.push(access);
            return;
        }
        let joined = self.columns(id, &bound.found.joined);
        if !joined.is_empty() {
            let read = Access { reads: joined, certain: false, in_result: false, ..access.clone() };
            self.found.push(read);
        }
        self.found.push(Access { deed: Deed::Pick(strength), ..access });
    }

    /// Adds the columns by which rows are found that are then locked or changed, as the snapshot has them.
    ///
    /// At read committed PostgreSQL tests the conditions again for a row that was waited for (`EvalPlanQual`),
    /// but with the same rows of other tables, and in the order that there was.
    fn read_before(&mut self, id: RelationId, bound: &BoundRelation, access: &Access) {
        let mut columns = bound.found.joined.clone();
        if !(bound.found.alone && self.is_one_row(access)) {
            columns.extend(&bound.found.ordered);
        }
        let reads = match self.columns(id, &columns) {
            Columns::All => access.reads.clone(),
            Columns::These(names) => {
                Columns::These(names.into_iter().filter(|name| !access.equal.contains_key(name)).collect())
            }
        };
        if !reads.is_empty() {
            let orders = bound.found.joined.is_empty();
            let read = Access {
                deed: Deed::Read,
                reads,
                certain: false,
                in_result: false,
                orders,
                ..access.clone()
            };
            self.found.push(read);
        }
    }

    /// True if the values that are known are those of all columns of a unique key.
    fn is_one_row(&self, access: &Access) -> bool {
        let relation = &self.catalog.relations[access.table];
        let known = |place: &usize| access.equal.contains_key(&relation.columns[*place].name);
        !relation.has_children() && relation.keys().any(|key| !key.is_empty() && key.iter().all(known))
    }

    fn update(&mut self, id: RelationId, bound: &BoundRelation) -> Result<(), Unknown> {
        let mut access = Access { deed: Deed::Update, ..self.rows(id, bound) };
        let triggers = self.catalog.triggers(access.table);
        self.require_plain(access.table, triggers.may(|event| event.update))?;
        let set = self.changed(id, &bound.updated, &triggers);
        self.read_before(id, bound, &access);
        let mut values = self.values(id, &bound.set);
        values.retain(|column, _| !triggers.on_update.contains(column));
        self.parents((id, access.table), &values, Some(&set), false);
        self.children(access.table, &access.equal, Some(&set))?;
        let stays = access.equal.iter().filter(|(column, _)| !set.contains(*column));
        let after: BTreeMap<String, Operand> =
            stays.chain(&values).map(|(column, value)| (column.clone(), value.clone())).collect();
        self.unique(access.table, &after, Some(&set));
        let reads = self.read_by_code(&triggers, read_by_triggers(&triggers, access.reads));
        access.reads = self.read_by_checks(access.table, &set, reads);
        access.writes = Columns::These(set.clone());
        access.sets = values;
        access.in_result = false;
        // What is true of the row before isn't afterwards.
        let changes = |column: &&String| set.contains(*column) || is_system_column(column);
        let changed: Vec<String> = access.equal.keys().filter(changes).cloned().collect();
        for column in changed {
            if let Some(value) = access.equal.remove(&column) {
                access.before.insert(column.clone(), value);
            }
            access.tested.insert(column);
        }
        self.found.push(access);
        Ok(())
    }

    /// The columns that change where a statement sets these: those of triggers and generated ones, too.
    fn changed(&self, id: RelationId, updated: &BTreeSet<i32>, triggers: &Triggers) -> BTreeSet<String> {
        let mut set = self.names(id, updated);
        set.extend(triggers.on_update.iter().cloned());
        let any = self.triggers == OfTriggers::Row && triggers.may(|event| event.update);
        let members = self.catalog.members(id).flat_map(|member| &member.columns);
        set.extend(members.filter(|column| any || column.generated).map(|column| column.name.clone()));
        set
    }

    fn delete(&mut self, id: RelationId, bound: &BoundRelation) -> Result<(), Unknown> {
        let access = Access { deed: Deed::Delete, writes: Columns::All, ..self.rows(id, bound) };
        let triggers = self.catalog.triggers(access.table);
        self.require_plain(access.table, triggers.may(|event| event.delete))?;
        self.read_before(id, bound, &access);
        self.children(access.table, &access.equal, None)?;
        let reads = self.read_by_code(&triggers, access.reads.clone());
        self.found.push(Access { in_result: false, reads, ..access });
        Ok(())
    }

    /// These columns of a row that is changed, and those that the code of triggers may read of it.
    fn read_by_code(&self, triggers: &Triggers, reads: Columns) -> Columns {
        let fires = triggers.may(|event| event.insert || event.update || event.delete);
        if self.triggers == OfTriggers::Row && fires { Columns::All } else { reads }
    }

    /// MERGE finds rows as its snapshot has them, and changes, deletes or inserts some.
    fn merge(&mut self, id: RelationId, bound: &BoundRelation) -> Result<(), Unknown> {
        if bound.inserts {
            // It inserts what it hasn't found.
            self.found.push(Access { in_result: false, certain: false, ..self.rows(id, bound) });
            self.insert(id, &BoundRelation { updates: false, ..bound.clone() })?;
        }
        if bound.updates {
            self.update(id, bound)?;
        }
        if bound.deletes {
            self.delete(id, bound)?;
        }
        if !(bound.inserts || bound.updates || bound.deletes) {
            // It finds rows, and does nothing with them.
            self.found.push(self.rows(id, bound));
        }
        Ok(())
    }

    fn insert(&mut self, id: RelationId, bound: &BoundRelation) -> Result<(), Unknown> {
        let table = self.catalog.root(id);
        let triggers = self.catalog.triggers(table);
        self.require_plain(table, triggers.may(|event| event.insert))?;
        let deed = match (bound.updates, bound.skips_conflicts) {
            (true, _) => Deed::InsertOrUpdate,
            (false, true) => Deed::InsertOrRead,
            (false, false) => Deed::Insert,
        };
        let (mut writes, mut reads) = (Columns::All, Columns::NONE);
        if deed == Deed::InsertOrUpdate {
            self.require_plain(table, triggers.may(|event| event.update))?;
            let set = self.changed(id, &bound.updated, &triggers);
            // Which rows an index has may depend on any column.
            reads = if bound.arbiter_is_partial {
                Columns::All
            } else {
                let read = read_by_triggers(&triggers, self.columns(id, &bound.read));
                self.read_by_checks(table, &set, self.read_by_code(&triggers, read))
            };
            self.parents((id, table), &BTreeMap::new(), Some(&set), false);
            self.children(table, &BTreeMap::new(), Some(&set))?;
            self.unique(table, &BTreeMap::new(), Some(&set));
            writes = Columns::These(set);
        }
        let given = self.names(id, &bound.inserted);
        let certain = bound.top && bound.lists_rows && deed == Deed::Insert;
        // Each row that may be new or not doubles the ways.
        let most = if deed == Deed::Insert { MOST_INSERTED } else { MOST_UPSERTED };
        let many = bound.rows.len() > most;
        let any = [BTreeMap::new()];
        let listed = bound.top && bound.lists_rows && !many;
        let certain = certain && !many;
        for row in if many { &any[..] } else { &bound.rows } {
            let mut equal = self.values(id, row);
            equal.retain(|column, _| !triggers.on_insert.contains(column));
            self.parents((id, table), &equal, None, certain);
            self.unique_of_new(table, &equal, &given);
            let access = Access { writes: writes.clone(), reads: reads.clone(), equal, ..of(table, deed) };
            self.found.push(Access { certain, listed, may_keep: bound.may_keep, ..access });
        }
        Ok(())
    }

    /// The names of columns; those that have none aren't among them.
    fn names(&self, id: RelationId, numbers: &BTreeSet<i32>) -> BTreeSet<String> {
        numbers.iter().filter_map(|number| self.catalog.column_name(id, *number)).collect()
    }

    /// Columns by their numbers: all, if one isn't known or is the whole row.
    fn columns(&self, id: RelationId, numbers: &BTreeSet<i32>) -> Columns {
        // An UPDATE may move a row from one partition to another, and otherwise never to another table.
        let moves = self.catalog.relations[self.catalog.root(id)].kind == RelationKind::Partitioned;
        let names = numbers.iter().filter(|number| moves || **number != TABLE_OID);
        let names: Option<BTreeSet<String>> =
            names.map(|number| self.catalog.column_name(id, *number)).collect();
        names.map_or(Columns::All, Columns::These)
    }

    /// Those of the values of columns that are known.
    fn values(&self, id: RelationId, values: &BTreeMap<i32, Value>) -> BTreeMap<String, Operand> {
        let known = |(number, value): (&i32, &Value)| {
            Some((self.catalog.column_name(id, *number)?, self.operand(id, *number, value)?))
        };
        values.iter().filter_map(known).collect()
    }
}

/// The most rows of an INSERT that are told apart; more are any rows.
const MOST_INSERTED: usize = 30;

/// The same with ON CONFLICT.
const MOST_UPSERTED: usize = 3;

/// The system column of the table of a row.
const TABLE_OID: i32 = -6;

fn strength(of: LockStrength) -> Strength {
    match of {
        LockStrength::KeyShare => Strength::KeyShare,
        LockStrength::Share => Strength::Share,
        LockStrength::NoKeyUpdate => Strength::NoKeyUpdate,
        LockStrength::Update => Strength::Update,
    }
}

/// These columns, and those that triggers read of a row that is updated.
fn read_by_triggers(triggers: &Triggers, reads: Columns) -> Columns {
    match reads {
        Columns::These(mut names) if !triggers.reads_row => {
            names.extend(triggers.reads.iter().cloned());
            Columns::These(names)
        }
        _ => Columns::All,
    }
}

/// Anything that may be done with a table.
pub(crate) fn anything(table: RelationId, deed: Deed) -> Access {
    let writes = if deed == Deed::Read { Columns::NONE } else { Columns::All };
    Access { reads: Columns::All, writes, ..of(table, deed) }
}

/// Something that is done with a table, perhaps, of which nothing else is known.
pub(super) fn of(table: RelationId, deed: Deed) -> Access {
    Access {
        table,
        deed,
        equal: BTreeMap::new(),
        before: BTreeMap::new(),
        sets: BTreeMap::new(),
        tested: BTreeSet::new(),
        reads: Columns::NONE,
        writes: Columns::NONE,
        certain: false,
        listed: false,
        may_keep: false,
        idle: BTreeSet::new(),
        in_result: false,
        deferrable: false,
        orders: false,
        fresh: false,
    }
}

#[cfg(test)]
mod tests {
    use isobench_script::{CommandKind, Symbols, parse};
    use isobench_sql::{Bound, Column, ColumnType, FoundRows, Inheritance, Relation, RowLock, Text};

    use super::super::operand::{INT2, INT4, INT8};
    use super::*;

    /// A table `t (id, v, w)` of integers, whose key is id.
    fn table() -> Relation {
        let column = |(number, name): (i32, &&str)| Column {
            number,
            name: (*name).to_owned(),
            kind: ColumnType::Integer,
            generated: false,
            not_null: true,
            plain_case: false,
            exact: true,
            fresh: false,
            clock: false,
        };
        Relation {
            oid: 20,
            schema: "public".to_owned(),
            name: "t".to_owned(),
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

    /// What a statement does of which the server reads this; it has the variables a and b.
    fn read(relations: Vec<BoundRelation>) -> Result<Vec<Access>, Unknown> {
        let script = parse("s.sql", "SELECT :a, :b;\n", &mut Symbols::new()).expect("a script");
        let CommandKind::Sql(sql) = &script.commands[0].kind else { panic!("no SQL") };
        let text = Text::scan(sql).expect("tokens");
        let range = text.statements().remove(0);
        let reading = (text.asked(&range).text, Ok(Bound { relations, ..Bound::default() }));
        let catalog = Catalog {
            relations: vec![table()],
            standard_strings: true,
            readings: BTreeMap::from([reading]),
            ..Catalog::default()
        };
        Statement::new(&catalog, &text, range).accesses()
    }

    fn set(numbers: &[i32]) -> BTreeSet<i32> {
        numbers.iter().copied().collect()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Table t by its key, which is `:a`.
    fn by_key() -> BoundRelation {
        let equal = BTreeMap::from([(1, Value::Parameter(1))]);
        let found = FoundRows { equal, alone: true, exactly: true, ..FoundRows::default() };
        BoundRelation {
            oid: 20,
            read: set(&[1, 2]),
            top: true,
            in_result: true,
            found,
            ..BoundRelation::default()
        }
    }

    fn only(relation: BoundRelation) -> Access {
        let mut all = read(vec![relation]).expect("what it does");
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn a_row_is_read_by_its_key() {
        let read = only(by_key());
        assert_eq!((read.deed, read.certain), (Deed::Read, true));
        assert_eq!(read.equal.keys().collect::<Vec<_>>(), ["id"]);
        assert_eq!(read.reads, Columns::These(names(&["id", "v"])));
        let whole = only(BoundRelation { read: set(&[0]), ..by_key() });
        assert_eq!(whole.reads, Columns::All);
    }

    #[test]
    fn a_value_that_no_text_stands_for_is_only_tested() {
        let mut relation = by_key();
        let value = Value::Constant { of_type: 1700, bytes: vec![0; 8] };
        relation.found.equal.insert(2, value);
        let read = only(relation);
        assert_eq!((read.tested, read.certain), (names(&["v"]), false));
    }

    #[test]
    fn integers_are_the_same_in_all_types() {
        let with = |of_type, number: i64| {
            let mut relation = by_key();
            let value = Value::Constant { of_type, bytes: number.to_le_bytes().to_vec() };
            relation.found.equal.insert(1, value);
            only(relation).equal.remove("id")
        };
        for number in [0, 5, -1, 32_767, -32_768] {
            for of_type in [INT2, INT4, INT8] {
                assert_eq!(with(of_type, number), Some(Operand::Constant(number.to_string())));
            }
        }
        // A server with another order of bytes.
        assert_eq!(with(INT4, 5_i64.swap_bytes()), None);
    }

    #[test]
    fn a_lock_that_passes_by_locked_rows_locks_nothing() {
        let with = |wait| {
            let lock = RowLock { strength: LockStrength::NoKeyUpdate, wait };
            only(BoundRelation { locks: vec![lock], ..by_key() }).deed
        };
        assert_eq!(with(Wait::Blocks), Deed::Lock(Strength::NoKeyUpdate));
        assert_eq!(with(Wait::Fails), Deed::Lock(Strength::NoKeyUpdate));
        assert_eq!(with(Wait::Skips), Deed::Read);
        let lock = RowLock { strength: LockStrength::Update, wait: Wait::Skips };
        let own = only(BoundRelation { own: true, locks: vec![lock], ..by_key() });
        assert_eq!((own.deed, own.deed.writes()), (Deed::Pick(Strength::Update), false));
    }

    #[test]
    fn columns_that_choose_a_row_before_it_is_locked_are_read_as_the_snapshot_has_them() {
        let lock = RowLock { strength: LockStrength::Update, wait: Wait::Blocks };
        let found = FoundRows { joined: set(&[2]), ordered: set(&[3]), ..FoundRows::default() };
        let relation = BoundRelation { locks: vec![lock], found, ..by_key() };
        let all = read(vec![relation]).expect("what it does");
        let deeds: Vec<Deed> = all.iter().map(|access| access.deed).collect();
        assert_eq!(deeds, [Deed::Read, Deed::Lock(Strength::Update)]);
        assert_eq!(all[0].reads, Columns::These(names(&["v", "w"])));
    }

    #[test]
    fn a_condition_on_a_column_that_is_set_holds_before() {
        let mut relation = by_key();
        relation.found.equal.insert(2, Value::Parameter(2));
        let update = only(BoundRelation { updates: true, updated: set(&[2]), ..relation });
        assert_eq!((update.deed, update.certain), (Deed::Update, true));
        assert_eq!(update.equal.keys().collect::<Vec<_>>(), ["id"]);
        assert_eq!(update.before.keys().collect::<Vec<_>>(), ["v"]);
        assert_eq!(update.writes, Columns::These(names(&["v"])));
    }

    #[test]
    fn a_merge_that_inserts_reads_first() {
        let row = BTreeMap::from([(1, Value::Parameter(1))]);
        let merge = BoundRelation { merges: true, inserts: true, updates: true, rows: vec![row], ..by_key() };
        let deeds: Vec<Deed> = read(vec![merge]).expect("what it does").iter().map(|one| one.deed).collect();
        assert_eq!(deeds, [Deed::Read, Deed::Insert, Deed::Update]);
    }

    #[test]
    fn a_merge_that_does_nothing_reads() {
        let merge = BoundRelation { merges: true, ..by_key() };
        assert_eq!(only(merge).deed, Deed::Read);
    }

    #[test]
    fn a_relation_that_the_catalog_does_not_have_may_be_anything() {
        assert!(read(vec![BoundRelation { oid: 21, ..by_key() }]).is_err());
    }
}
