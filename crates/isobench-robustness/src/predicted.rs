//! The dependencies that transactions of programs may have on each other, by statements: what recorded
//! ones have to be instances of, or the programs aren't what was executed.

use std::collections::BTreeSet;

use crate::StatementId;
use crate::compiled::{Compiled, CompiledOperation};
use crate::conflict::may_meet;
use crate::model::Program;
use crate::objection::How;
use crate::struck::Struck;

/// The dependencies between statements of programs that are possible.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Predicted(BTreeSet<(StatementId, StatementId, How)>);

impl Predicted {
    /// Those of transactions of these programs, two of the same one included.
    pub fn of(programs: &[Program]) -> Predicted {
        let compiled = Compiled::of(programs, &Struck::new());
        let named: Vec<(&StatementId, &CompiledOperation)> = compiled
            .branches
            .iter()
            .flat_map(|branch| {
                let operations = &programs[branch.program].branches[branch.branch].operations;
                operations.iter().map(|operation| &operation.at).zip(&branch.operations)
            })
            .collect();
        let mut found = Predicted::default();
        for (first, one) in &named {
            for (then, other) in &named {
                let hows = hows(one, other);
                if !hows.is_empty() && may_meet(&compiled, one, other) {
                    let of = |how| ((*first).to_owned(), (*then).to_owned(), how);
                    found.0.extend(hows.into_iter().map(of));
                }
            }
        }
        found
    }

    /// True if a transaction may depend so on another one that comes first, by these statements
    /// ([`crate::Operation::at`]).
    pub fn has(&self, first: &StatementId, then: &StatementId, how: How) -> bool {
        self.0.contains(&(first.clone(), then.clone(), how))
    }
}

/// How an operation may depend on one that comes first, if both concern the same row. Of two that write
/// the row, each version counts as read by the next one, whatever columns they write: a row is written as
/// a whole.
fn hows(first: &CompiledOperation, then: &CompiledOperation) -> Vec<How> {
    let written = first.is_on_table_of(then) && first.has_writes() && then.has_writes();
    let all = [
        (How::WriteWrite, written),
        (How::WriteRead, written || then.reads_from(first)),
        (How::ReadWrite, written || first.reads_from(then)),
    ];
    all.into_iter().filter(|(_, is)| *is).map(|(how, _)| how).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Branch, Operation};

    fn programs() -> [Program; 2] {
        let pay = vec![
            Operation::read("account", [("id", ":a")], ["balance"]).in_statement("pay.sql:1"),
            Operation::update("account", [("id", ":a")], [], ["balance"]).in_statement("pay.sql:2"),
        ];
        let name = vec![
            Operation::update("account", [("id", "7")], [], ["name"]).in_statement("name.sql:1"),
            Operation::read("account", [("id", "8")], ["name"]).in_statement("name.sql:2"),
        ];
        [
            Program::new("pay", vec![Branch::new("pay", pay)]),
            Program::new("name", vec![Branch::new("name", name)]),
        ]
    }

    #[test]
    fn dependencies_are_by_columns_and_values_but_writes_by_rows() {
        let predicted = Predicted::of(&programs());
        assert!(predicted.has(&"pay.sql:1".into(), &"pay.sql:2".into(), How::ReadWrite));
        assert!(predicted.has(&"pay.sql:2".into(), &"pay.sql:1".into(), How::WriteRead));
        assert!(
            !predicted.has(&"pay.sql:1".into(), &"pay.sql:2".into(), How::WriteRead),
            "the read writes nothing"
        );
        assert!(
            predicted.has(&"pay.sql:2".into(), &"name.sql:1".into(), How::WriteWrite),
            "other columns of one row"
        );
        assert!(!predicted.has(&"pay.sql:1".into(), &"name.sql:1".into(), How::ReadWrite), "other columns");
        assert!(!predicted.has(&"name.sql:1".into(), &"name.sql:2".into(), How::WriteRead), "other rows");
        assert!(
            predicted.has(&"name.sql:1".into(), &"name.sql:1".into(), How::WriteWrite),
            "two transactions of a program"
        );
        assert!(
            !predicted.has(&"other.sql:1".into(), &"pay.sql:2".into(), How::ReadWrite),
            "no such statement"
        );
    }
}
