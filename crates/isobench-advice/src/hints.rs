//! Other ways to write the SQL than a lock: an atomic update, a unique index.
//!
//! They are for people: whether the new value is a sum, and whether a row may be there twice, the SQL
//! doesn't say.

use std::collections::BTreeSet;

use isobench_program::Templates;
use isobench_robustness::{Columns, Kind, Operation, Place, Program, StatementId, Strength, Struck, decide};

use crate::makers::unique_index::{UniqueIndex, operation};
use crate::makers::{exclusion, on_conflict};
use crate::shown::{Executed, Shown};

/// The hints that follow from what happens at lower levels, each once. Not among them: statements that
/// are `changed`, by their names. A unique index is one only if there is no other good change: of several rows that a
/// limit permits it would forbid the second one.
pub(crate) fn hints(
    templates: &Templates,
    reasons: &[Shown],
    changed: &BTreeSet<&StatementId>,
    has_good_change: bool,
) -> Vec<String> {
    let programs = &templates.programs;
    let mut hints: Vec<String> = Vec::new();
    for reason in reasons {
        let (read, overwrites) = (reason.objection.read, reason.objection.overwrites);
        let index = UniqueIndex::of(programs, read, overwrites);
        let hint = match index {
            Some(index) => (!has_good_change && !changed.contains(index.insert)).then(|| index.hint()),
            None => atomic(templates, read, overwrites, changed),
        };
        if let Some(hint) = hint.filter(|hint| !hints.contains(hint)) {
            hints.push(hint);
        }
    }
    hints.extend(on_conflict::hints(templates));
    if !reasons.is_empty() {
        hints.extend(exclusion::hints(templates, changed));
    }
    hints
}

/// A sentence for each lock of a row in a transaction that goes wrong at a higher level, where its snapshot may be older
/// than the lock: if the row is written back instead, the second transaction fails (PostgreSQL manual, 13.4.2).
pub(crate) fn written_back(templates: &Templates, harmful: &[Shown]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for shown in harmful.iter().filter(|shown| matches!(shown.executed, Executed::Shown(_))) {
        for statement in templates.statements.iter().filter(|one| one.script == shown.program) {
            let writes = statement.fixes.iter().filter_map(|(table, fix)| Some((table, fix.write.as_ref()?)));
            for (table, write) in writes {
                let Some(column) = written_column(write) else { continue };
                let programs = with_write(&templates.programs, &statement.at, table, column);
                let changes = programs != templates.programs;
                if changes && decide(&programs, &shown.levels, &Struck::new()).is_none() {
                    let (at, level) = (&statement.at, shown.level());
                    found.push(format!(
                        "At {level} the lock of {at} doesn't count. With {write} in its place that level is safe, too"
                    ));
                }
            }
        }
    }
    found
}

/// The column that a statement writes back: `UPDATE journal SET name = name …`.
fn written_column(write: &str) -> Option<&str> {
    let (_, rest) = write.split_once(" SET ")?;
    rest.split_once(" = ").map(|(column, _)| column.trim_matches('"'))
}

/// The programs with a lock of rows of a table as an UPDATE of a column.
fn with_write(programs: &[Program], at: &StatementId, table: &str, column: &str) -> Vec<Program> {
    let mut programs = programs.to_vec();
    let branches = programs.iter_mut().flat_map(|program| &mut program.branches);
    let locks = |one: &&mut Operation| {
        let strong = matches!(one.kind, Kind::Lock(strength) if strength > Strength::Share);
        strong && one.at == *at && one.table == *table
    };
    for lock in branches.flat_map(|branch| &mut branch.operations).filter(locks) {
        (lock.kind, lock.writes) = (Kind::Update, Columns::from([column]));
    }
    programs
}

/// What may be done about a value that another transaction of the same program overwrites.
fn atomic(
    templates: &Templates,
    read: Place,
    overwrites: Place,
    changed: &BTreeSet<&StatementId>,
) -> Option<String> {
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
    if !atomic || reads.key.is_empty() || changed.contains(&update.at) {
        return None;
    }
    let statement = templates.statements.iter().find(|statement| statement.at == update.at);
    let is_constant = |column: &&str| statement.is_some_and(|one| one.constants.contains(*column));
    let is_computed = |column: &&str| statement.is_some_and(|one| one.computed.contains(*column));
    let (constant, others): (Vec<&str>, Vec<&str>) = both.into_iter().partition(is_constant);
    let computed: Vec<&str> = others.iter().copied().filter(is_computed).collect();
    let (at, read) = (&update.at, &reads.at);
    // Of two that add to a column, too, the second one would add nothing.
    let adds = !common(&update.reads, &update.writes).is_empty();
    if computed.is_empty() && (adds || !others.is_empty()) {
        return None;
    }
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
    use std::collections::BTreeMap;

    use isobench_program::{Fix, TemplateStatement};
    use isobench_robustness::Branch;

    use super::*;
    use crate::shown::Executed;

    /// The hints for a script whose last operation sets these columns to constants, and others to sums.
    fn of(operations: Vec<Operation>, constants: &[&str]) -> Vec<String> {
        of_columns(operations, constants, &["count"])
    }

    fn of_columns(operations: Vec<Operation>, constants: &[&str], computed: &[&str]) -> Vec<String> {
        of_all(operations, constants, computed, false)
    }

    fn of_all(
        operations: Vec<Operation>,
        constants: &[&str],
        computed: &[&str],
        has_good_change: bool,
    ) -> Vec<String> {
        let statement = TemplateStatement {
            line: 3,
            at: operations.last().expect("an operation").at.clone(),
            constants: constants.iter().map(|column| (*column).to_owned()).collect(),
            computed: computed.iter().map(|column| (*column).to_owned()).collect(),
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
        assert_eq!(hints(&templates, &[], &BTreeSet::new(), false), [""; 0]);
        hints(&templates, &[shown], &BTreeSet::new(), has_good_change)
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
        // It follows from nothing that was read, or is a text.
        assert_eq!(of_columns(vec![read(), set(&["id"])], &["name"], &[]), [""; 0]);
        // It is one already.
        assert_eq!(of(vec![read(), set(&["id", "count"])], &[]), [""; 0]);
        // One that adds to another column isn't to find no row.
        let adds = Operation::update("stock", [("id", ":i")], Columns::from(["id", "n"]), ["count", "n"]);
        assert_eq!(of(vec![read(), adds.in_statement("s.sql:3")], &["count"]), [""; 0]);
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
    fn what_is_looked_for_and_inserted_may_be_unique() {
        let search = Operation::search("person", [("email", ":e")], ["email"]).in_statement("s.sql:2");
        let insert = Operation::insert("person", []).knowing([("email", ":e")]).in_statement("s.sql:3");
        assert_eq!(of_all(vec![search.clone(), insert.clone()], &[], &[], true), [""; 0]);
        assert_eq!(
            of(vec![search, insert], &[]),
            [
                "s.sql:2 looks for a row of person that s.sql:3 inserts: a unique index on (email) makes the second \
              insert fail, at any level"
            ]
        );
    }

    #[test]
    fn a_row_that_is_locked_may_be_written_back_at_a_higher_level() {
        let lock = Operation::lock(Strength::Update, "journal", [("id", ":j")], ["id"]).in_statement("p:1");
        let count = Operation::search("entry", [("journal", ":j")], ["number"]).in_statement("p:2");
        let insert = Operation::insert("entry", []).knowing([("journal", ":j")]).in_statement("p:3");
        let write = "UPDATE journal SET name = name WHERE id = :j RETURNING id".to_owned();
        let fix = Fix { write: Some(write), ..Fix::default() };
        let locks = TemplateStatement {
            at: "p:1".into(),
            fixes: BTreeMap::from([("journal".to_owned(), fix)]),
            ..TemplateStatement::default()
        };
        let said = |operations: Vec<Operation>| {
            let programs = vec![Program::new("p", vec![Branch::new("", operations)])];
            let templates = Templates { statements: vec![locks.clone()], programs, ..Templates::default() };
            let levels = vec![Level::RepeatableRead];
            let objection = decide(&templates.programs, &levels, &Struck::new()).expect("an objection");
            let shown = |executed| Shown {
                program: 0,
                levels: levels.clone(),
                objection: objection.clone(),
                executed,
            };
            assert_eq!(written_back(&templates, &[shown(Executed::Unshown(9))]), [""; 0]);
            written_back(&templates, &[shown(Executed::Shown(Box::default()))])
        };
        assert_eq!(
            said(vec![lock.clone(), count.clone(), insert.clone()]),
            [
                "At repeatable read the lock of p:1 doesn't count. With UPDATE journal SET name = name WHERE id = :j \
                 RETURNING id in its place that level is safe, too"
            ]
        );
        // It isn't the row of what is counted.
        let any = |one: Operation| one.knowing([("journal", "?")]);
        assert_eq!(said(vec![lock, any(count), any(insert)]), [""; 0]);
    }
}
