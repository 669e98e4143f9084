//! Unique indexes that are missing.

use std::collections::{BTreeMap, BTreeSet};

use isobench_program::PartialKey;
use isobench_robustness::{Kind, Operation, Place, Program, StatementId, Term};
use isobench_sql::{is_plain, name_in_sql};

use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed, Edit};

/// Indexes with which the second of two inserts fails, so that read committed may do: each on the columns by which
/// the row is looked for, and on all that the insert knows, for when the script means to insert several rows that
/// agree in the former.
pub(super) fn make(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let templates = ground.templates();
    let programs = &templates.programs;
    let mut all: Vec<Made> = Vec::new();
    for reason in &ground.decision.reasons {
        let (read, overwrites) = (reason.objection.read, reason.objection.overwrites);
        let Some(index) = UniqueIndex::of(programs, read, overwrites) else { continue };
        let set = |index: &UniqueIndex<'_>| {
            let sql = index.sql()?;
            let at = index.insert.clone();
            let change = Changed { at, table: index.table.to_owned(), to: Edit::Index(sql) };
            Some(ChangeSet::index(templates, ground.before, index.name(), change, &ground.lowest()))
        };
        let Some(own) = set(&index) else { continue };
        if !all.iter().any(|known| known.set.setup == own.setup) {
            let otherwise = index.wider(programs, overwrites).as_ref().and_then(set);
            all.push(Made { otherwise, ..Made::to_try(own) });
        }
    }
    all.extend(partial(ground));
    all
}

/// Those of the words of a statement: where it looks for rows of a table, and scripts with it change that table.
fn partial(ground: &Ground<'_>) -> Vec<Made> {
    let (templates, meeting) = (ground.templates(), ground.meeting());
    let programs = meeting.iter().flat_map(|script| &templates.programs[*script].branches);
    let operations = programs.flat_map(|branch| &branch.operations);
    let changed: BTreeSet<&str> = operations
        .filter(|one| matches!(one.kind, Kind::Insert | Kind::Update))
        .map(|one| one.table.as_str())
        .collect();
    let of_meeting = templates.statements.iter().filter(|one| meeting.contains(&one.script));
    let mut keys: BTreeMap<&PartialKey, &StatementId> = BTreeMap::new();
    for statement in of_meeting {
        for key in &statement.partial_keys {
            if changed.contains(key.table.as_str()) && is_plain(&key.table) {
                keys.entry(key).or_insert(&statement.at);
            }
        }
    }
    let made = keys.into_iter().map(|(key, at)| {
        let columns: Vec<String> = key.columns.iter().map(|column| name_in_sql(column)).collect();
        let columns = columns.join(", ");
        let table = name_in_sql(&key.table);
        let with = |word: &str| {
            key.condition.as_ref().map(|condition| format!(" {word} {condition}")).unwrap_or_default()
        };
        let to = format!("CREATE UNIQUE INDEX ON {table} ({columns}){}", with("WHERE"));
        let name = format!("unique index on {} ({columns}){}", key.table, with("where"));
        let change = Changed { at: at.clone(), table: key.table.clone(), to: Edit::Index(to) };
        Made::to_try(ChangeSet::index(templates, ground.before, name, change, &ground.lowest()))
    });
    made.collect()
}

/// A unique index that makes the second of two inserts fail.
pub(crate) struct UniqueIndex<'p> {
    pub(crate) table: &'p str,
    columns: Vec<&'p str>,
    /// The statement that looks for the row.
    read: &'p StatementId,
    /// The one that inserts it.
    pub(crate) insert: &'p StatementId,
}

impl<'p> UniqueIndex<'p> {
    /// The index that is missing where a read is overwritten by an insert of the same program.
    pub(crate) fn of(programs: &'p [Program], read: Place, overwrites: Place) -> Option<UniqueIndex<'p>> {
        let (reads, writes) = (operation(programs, read), operation(programs, overwrites));
        let looks_for = writes.kind == Kind::Insert && matches!(reads.kind, Kind::Read | Kind::Search);
        let columns = equal_columns(reads);
        let same = read.role.program == overwrites.role.program && reads.table == writes.table;
        // ON CONFLICT says itself what becomes of the second one: another branch doesn't insert it.
        let says_itself = programs[overwrites.role.program].branches.iter().any(|branch| {
            let mut own = branch.operations.iter().filter(|operation| operation.at == writes.at).peekable();
            own.peek().is_some() && own.all(|operation| operation.kind != Kind::Insert)
        });
        // Rows that it looks for by other conditions, too, may agree in these columns.
        let by_these = reads.known.iter().all(|(_, term)| *term != Term::Unknown);
        (same && looks_for && by_these && !says_itself && !columns.is_empty()).then_some(UniqueIndex {
            table: &reads.table,
            columns,
            read: &reads.at,
            insert: &writes.at,
        })
    }

    /// The same index on all columns whose values the insert knows; `None` if these are no more.
    pub(crate) fn wider(&self, programs: &'p [Program], overwrites: Place) -> Option<UniqueIndex<'p>> {
        let mut columns = self.columns.clone();
        for column in equal_columns(operation(programs, overwrites)) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        (columns.len() > self.columns.len()).then_some(UniqueIndex { columns, ..*self })
    }

    pub(crate) fn hint(&self) -> String {
        let Self { table, read, insert, .. } = self;
        format!(
            "{read} looks for a row of {table} that {insert} inserts: a unique index on ({}) makes the second insert \
             fail, at any level",
            self.columns.join(", ")
        )
    }

    /// A short name.
    pub(crate) fn name(&self) -> String {
        format!("unique index on {} ({})", self.table, self.columns.join(", "))
    }

    /// The statement that makes it; `None` if the table is in another schema than those that isobench
    /// makes, or may be: it is never executed on a table of the user's.
    pub(crate) fn sql(&self) -> Option<String> {
        is_plain(self.table).then(|| {
            format!("CREATE UNIQUE INDEX ON {} ({})", name_in_sql(self.table), self.columns_in_sql())
        })
    }

    /// The columns as SQL.
    pub(crate) fn columns_in_sql(&self) -> String {
        self.columns.iter().map(|column| name_in_sql(column)).collect::<Vec<_>>().join(", ")
    }
}

/// The operation in a place.
pub(crate) fn operation(programs: &[Program], place: Place) -> &Operation {
    &programs[place.role.program].branches[place.role.branch].operations[place.operation]
}

/// The columns that a read requires to have certain values.
fn equal_columns(read: &Operation) -> Vec<&str> {
    let known = read.key.iter().chain(&read.known);
    known.filter(|(_, term)| *term != Term::Unknown).map(|(column, _)| column.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Level;
    use isobench_robustness::{Branch, Struck, decide};

    use super::*;

    #[test]
    fn indexes_are_made_only_on_tables_that_isobench_made() {
        let sql = |table: &str, column: &str| {
            let [read, insert] = [2, 3].map(|line| StatementId::new("s.sql", line));
            UniqueIndex { table, columns: vec![column], read: &read, insert: &insert }.sql()
        };
        assert_eq!(sql("person", "email").as_deref(), Some("CREATE UNIQUE INDEX ON person (email)"));
        assert_eq!(sql("order", "User").as_deref(), Some("CREATE UNIQUE INDEX ON \"order\" (\"User\")"));
        assert_eq!([sql("shop.person", "email"), sql("Person", "email")], [None, None]);
    }

    #[test]
    fn what_is_looked_for_otherwise_or_may_be_there_has_no_index() {
        let search = || Operation::search("stay", [("room", ":r")], ["room"]).in_statement("s.sql:2");
        let insert = || Operation::insert("stay", []).knowing([("room", ":r")]).in_statement("s.sql:3");
        let objection = |programs: &[Program]| {
            decide(programs, &[Level::ReadCommitted], &Struck::new()).expect("an objection")
        };
        let index = |branches: Vec<Vec<Operation>>| {
            let branches = branches.into_iter().map(|operations| Branch::new("", operations)).collect();
            let programs = [Program::new("p", branches)];
            let objection = objection(&programs);
            UniqueIndex::of(&programs, objection.read, objection.overwrites).map(|index| index.name())
        };
        assert_eq!(index(vec![vec![search(), insert()]]).as_deref(), Some("unique index on stay (room)"));
        // `AND begins < :e`: rows of a room may differ in that.
        let between = search().knowing([("room", ":r"), ("begins", "?")]);
        assert_eq!(index(vec![vec![between, insert()]]), None);
        // `ON CONFLICT DO NOTHING` of the insert.
        let there = Operation::read("stay", [("id", ":i")], ["id"]).in_statement("s.sql:3");
        assert_eq!(index(vec![vec![search(), insert()], vec![search(), there]]), None);
    }

    #[test]
    fn an_index_may_have_all_columns_that_the_insert_knows() {
        let search = Operation::search("invoice", [("tenant", ":t")], ["number"]).in_statement("s.sql:2");
        let insert = |known: [(&str, &str); 2]| {
            Operation::insert("invoice", []).knowing(known).in_statement("s.sql:3")
        };
        let wider = |known| {
            let programs = [Program::new("p", vec![Branch::new("", vec![search.clone(), insert(known)])])];
            let objection = decide(&programs, &[Level::ReadCommitted], &Struck::new()).expect("an objection");
            let index = UniqueIndex::of(&programs, objection.read, objection.overwrites).expect("an index");
            index.wider(&programs, objection.overwrites).map(|index| index.name())
        };
        let both = Some("unique index on invoice (tenant, number)");
        assert_eq!(wider([("tenant", ":t"), ("number", ":n")]).as_deref(), both);
        assert_eq!(wider([("tenant", ":t"), ("number", "?")]), None);
    }
}
