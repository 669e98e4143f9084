//! Foreign keys that are missing, where a script looks for a row by its key before it inserts one that names it, and a
//! script deletes such rows.

use std::collections::BTreeMap;

use isobench_robustness::{Kind, Operation, Program, Term};
use isobench_sql::{is_plain, name_in_sql};

use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed, Edit};

/// A column that names rows of another table by their key.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ForeignKey<'p> {
    table: &'p str,
    column: &'p str,
    referenced: &'p str,
    key: &'p str,
}

/// Keys with which an insert waits for a deletion and fails, or the other way round: both are tried at read committed.
pub(super) fn make(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let (templates, meeting) = (ground.templates(), ground.meeting());
    let mut keys = BTreeMap::new();
    for program in meeting.iter().map(|script| &templates.programs[*script]) {
        for (key, insert) in missing(program) {
            if is_deleted(&templates.programs, key.referenced)
                && [key.table, key.referenced].map(is_plain) == [true; 2]
            {
                keys.entry(key).or_insert(&insert.at);
            }
        }
    }
    let made = keys.into_iter().map(|(key, at)| {
        let [table, column, referenced, of] =
            [key.table, key.column, key.referenced, key.key].map(name_in_sql);
        let to = format!("ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {referenced} ({of})");
        let name = format!("foreign key of {} ({}) on {}", key.table, key.column, key.referenced);
        let change = Changed { at: at.clone(), table: key.table.to_owned(), to: Edit::Index(to) };
        Made::to_try(ChangeSet::index(templates, ground.before, name, change, &ground.lowest()))
    });
    made.collect()
}

/// The columns of rows that a program inserts by which it has found a row of another table, with the inserts, unless there
/// is a foreign key.
fn missing(program: &Program) -> Vec<(ForeignKey<'_>, &Operation)> {
    let mut found = Vec::new();
    for branch in &program.branches {
        for (place, insert) in branch.operations.iter().enumerate() {
            let reads =
                branch.operations[..place].iter().filter(|one| is_read(one) && one.table != insert.table);
            for read in reads.filter(|_| insert.kind == Kind::Insert) {
                let [(key, value @ Term::Variable(_))] = read.key.as_slice() else { continue };
                let refers = |one: &Operation| {
                    one.at == insert.at && one.table == read.table && matches!(one.kind, Kind::Lock(_))
                };
                let mut known = insert.key.iter().chain(&insert.known);
                let column = known.find(|(_, other)| other == value).map(|(column, _)| column);
                if let Some(column) = column.filter(|_| !branch.operations.iter().any(refers)) {
                    let of = ForeignKey { table: &insert.table, column, referenced: &read.table, key };
                    found.push((of, insert));
                }
            }
        }
    }
    found
}

fn is_read(one: &Operation) -> bool {
    matches!(one.kind, Kind::Read | Kind::Lock(_))
}

/// True if a program deletes rows of a table.
fn is_deleted(programs: &[Program], table: &str) -> bool {
    let branches = programs.iter().flat_map(|program| &program.branches);
    branches.flat_map(|branch| &branch.operations).any(|one| one.kind == Kind::Delete && one.table == table)
}

#[cfg(test)]
mod tests {
    use isobench_robustness::{Branch, Strength};

    use super::*;

    #[test]
    fn a_row_that_is_found_and_named_by_another_may_need_a_foreign_key() {
        let read = || Operation::read("post", [("id", ":p")], ["id"]).in_statement("s.sql:2");
        let insert =
            |value| Operation::insert("comment", []).knowing([("post", value)]).in_statement("s.sql:3");
        let of = |operations: Vec<Operation>| {
            let program = Program::new("s.sql", vec![Branch::new("", operations)]);
            missing(&program).into_iter().map(|(key, _)| format!("{key:?}")).collect::<Vec<_>>()
        };
        let key = ForeignKey { table: "comment", column: "post", referenced: "post", key: "id" };
        assert_eq!(of(vec![read(), insert(":p")]), [format!("{key:?}")]);
        assert_eq!(of(vec![read(), insert(":q")]), [""; 0]);
        assert_eq!(of(vec![insert(":p"), read()]), [""; 0]);
        let check =
            Operation::lock(Strength::KeyShare, "post", [("id", ":p")], ["id"]).in_statement("s.sql:3");
        assert_eq!(of(vec![read(), check, insert(":p")]), [""; 0], "there is one");
        let delete = Operation::delete("post", [("id", ":p")]);
        let programs = |operations| [Program::new("d.sql", vec![Branch::new("", operations)])];
        assert!(is_deleted(&programs(vec![delete]), "post"));
        assert!(!is_deleted(&programs(vec![read()]), "post"));
    }
}
