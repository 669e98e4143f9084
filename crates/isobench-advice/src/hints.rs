//! Other ways to write the SQL than a lock: an atomic update, a unique index.
//!
//! They are for people: whether the new value is a sum, and whether a row may be there twice, the SQL
//! doesn't say.

use std::collections::BTreeSet;

use isobench_program::Templates;
use isobench_robustness::{Columns, Kind, Place, StatementId};

use crate::makers::unique_index::{UniqueIndex, operation};
use crate::makers::{exclusion, on_conflict};
use crate::shown::Shown;

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
    if computed.is_empty() && !others.is_empty() {
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
    use isobench_program::TemplateStatement;
    use isobench_robustness::{Branch, Operation, Program, Struck, decide};

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
}
