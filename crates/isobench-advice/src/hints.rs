//! Other ways to write the SQL than a lock: an atomic update, a unique index.
//!
//! They are for people: whether the new value is a sum, and whether a row may be there twice, the SQL
//! doesn't say.

use std::collections::BTreeSet;

use isobench_observation::{Templates, is_plain, name_in_sql};
use isobench_robustness::{Columns, Kind, Operation, Place, Program, Term};

use crate::decision::Shown;

/// A unique index that makes the second of two inserts fail.
pub(crate) struct UniqueIndex<'p> {
    pub(crate) table: &'p str,
    columns: Vec<&'p str>,
    /// The statement that looks for the row.
    read: &'p str,
    /// The one that inserts it.
    pub(crate) insert: &'p str,
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

    fn hint(&self) -> String {
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
            let columns: Vec<String> = self.columns.iter().map(|column| name_in_sql(column)).collect();
            format!("CREATE UNIQUE INDEX ON {} ({})", name_in_sql(self.table), columns.join(", "))
        })
    }
}

fn operation(programs: &[Program], place: Place) -> &Operation {
    &programs[place.role.program].branches[place.role.branch].operations[place.operation]
}

/// The hints that follow from what happens at lower levels, each once. Not among them: statements that
/// are `changed`, by their names.
pub(crate) fn hints(templates: &Templates, reasons: &[Shown], changed: &BTreeSet<&str>) -> Vec<String> {
    let programs = &templates.programs;
    let mut hints: Vec<String> = Vec::new();
    for reason in reasons {
        let (read, overwrites) = (reason.objection.read, reason.objection.overwrites);
        let index = UniqueIndex::of(programs, read, overwrites);
        let hint = match index {
            Some(index) => (!changed.contains(index.insert)).then(|| index.hint()),
            None => atomic(templates, read, overwrites, changed),
        };
        if let Some(hint) = hint.filter(|hint| !hints.contains(hint)) {
            hints.push(hint);
        }
    }
    hints
}

/// What may be done about a value that another transaction of the same program overwrites.
fn atomic(templates: &Templates, read: Place, overwrites: Place, changed: &BTreeSet<&str>) -> Option<String> {
    let programs = &templates.programs;
    if read.role.program != overwrites.role.program {
        return None;
    }
    let reads = operation(programs, read);
    let branch = |place: Place| &programs[place.role.program].branches[place.role.branch];
    let own = &branch(read).operations[read.operation..];
    let update = own.iter().find(|operation| {
        operation.kind == Kind::Update && operation.table == reads.table && operation.key == reads.key
    })?;
    let both = common(&reads.reads, &update.writes);
    let atomic = both.iter().any(|column| common(&update.reads, &Columns::from([*column])).is_empty());
    if !atomic || reads.key.is_empty() || changed.contains(update.at.as_str()) {
        return None;
    }
    let statement = templates.statements.iter().find(|statement| statement.at == update.at);
    let is_constant = |column: &&str| statement.is_some_and(|one| one.constants.contains(*column));
    let (constant, computed): (Vec<&str>, Vec<&str>) = both.into_iter().partition(is_constant);
    let (at, read) = (&update.at, &reads.at);
    Some(if computed.is_empty() {
        format!(
            "{at} sets {} to a constant after {read} has read it: if its WHERE has the condition, too, it finds no row \
             where another transaction was first, and the number of its rows tells that",
            constant.join(", ")
        )
    } else {
        let columns = computed.join(", ");
        format!(
            "{at} sets {columns} to what follows from {read}: if that adds something, SET {columns} = {columns} + … in \
             one statement does the same"
        )
    })
}

/// The columns that a read requires to have certain values.
fn equal_columns(read: &Operation) -> Vec<&str> {
    let known = read.key.iter().chain(&read.known);
    known.filter(|(_, term)| *term != Term::Unknown).map(|(column, _)| column.as_str()).collect()
}

/// The columns that both have; none where all columns are meant.
fn common<'c>(one: &'c Columns, other: &Columns) -> Vec<&'c str> {
    match (one, other) {
        (Columns::These(one), Columns::These(other)) => {
            one.iter().filter(|column| other.contains(*column)).map(String::as_str).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Level;
    use isobench_observation::TemplateStatement;
    use isobench_robustness::{Branch, Struck, decide};

    use super::*;
    use crate::decision::Executed;

    /// The hints for a script whose last operation sets these columns to constants.
    fn of(operations: Vec<Operation>, constants: &[&str]) -> Vec<String> {
        let statement = TemplateStatement {
            line: 3,
            at: operations.last().expect("an operation").at.clone(),
            constants: constants.iter().map(|column| (*column).to_owned()).collect(),
            ..TemplateStatement::default()
        };
        let templates = Templates {
            statements: vec![statement],
            programs: vec![Program::new("p", vec![Branch::new("", operations)])],
            ..Templates::default()
        };
        let level = Level::ReadCommitted;
        let objection = decide(&templates.programs, &[level], &Struck::new()).expect("an objection");
        let executed = Executed::Untried(String::new());
        let shown = Shown { program: 0, levels: vec![level], objection, executed };
        hints(&templates, &[shown], &BTreeSet::new())
    }

    #[test]
    fn a_value_that_is_written_back_may_be_an_atomic_update() {
        let read = || Operation::read("stock", [("id", ":i")], ["id", "count"]).in_statement("s.sql:2");
        let set = |reads: &[&str]| {
            Operation::update("stock", [("id", ":i")], Columns::from(reads), ["count"])
                .in_statement("s.sql:3")
        };
        assert_eq!(
            of(vec![read(), set(&["id"])], &["name"]),
            [
                "s.sql:3 sets count to what follows from s.sql:2: if that adds something, SET count = count + … in one \
              statement does the same"
            ]
        );
        // It is one already.
        assert_eq!(of(vec![read(), set(&["id", "count"])], &[]), [""; 0]);
        // A constant adds nothing.
        assert_eq!(
            of(vec![read(), set(&["id"])], &["count"]),
            [
                "s.sql:3 sets count to a constant after s.sql:2 has read it: if its WHERE has the condition, too, it finds \
              no row where another transaction was first, and the number of its rows tells that"
            ]
        );
    }

    #[test]
    fn indexes_are_made_only_on_tables_that_isobench_made() {
        let sql = |table: &str, column: &str| {
            UniqueIndex { table, columns: vec![column], read: "s.sql:2", insert: "s.sql:3" }.sql()
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

    #[test]
    fn what_is_looked_for_and_inserted_may_be_unique() {
        let search = Operation::search("person", [("email", ":e")], ["email"]).in_statement("s.sql:2");
        let insert = Operation::insert("person", []).knowing([("email", ":e")]).in_statement("s.sql:3");
        assert_eq!(
            of(vec![search, insert], &[]),
            [
                "s.sql:2 looks for a row of person that s.sql:3 inserts: a unique index on (email) makes the second \
              insert fail, at any level"
            ]
        );
    }
}
