//! What is said of transactions that can wait for each other.

use isobench_robustness::{Deadlock, Kind, Operation, Program, Waiting, deadlocks};

/// A sentence for each two transactions that can wait for each other, the same statements once.
pub(crate) fn sentences(programs: &[Program]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for one in deadlocks(programs) {
        let sentence = sentence(programs, &one);
        if !all.contains(&sentence) {
            all.push(sentence);
        }
    }
    all
}

fn sentence(programs: &[Program], deadlock: &Deadlock) -> String {
    let Deadlock { one, other } = deadlock;
    let does = |waiting: &Waiting| {
        let ((holds, table), (waits, then)) = (&waiting.holds, &waiting.waits);
        format!("{holds} locks a row of {table}, and {waits} one of {then}")
    };
    if one != other {
        return format!(
            "{}; {} locks the same rows the other way round ({}): lock them in the same order",
            does(one),
            other.holds.0,
            other.waits.0
        );
    }
    let weak = operation(programs, one).and_then(Operation::strength).is_some_and(|own| !own.conflicts(own));
    let remedy = if weak {
        "two transactions may both have the first lock when they want the second one: take the stronger one at once"
    } else if one.holds.1 == one.waits.1 {
        "two transactions may do that in opposite orders: lock the row with the lower key first"
    } else {
        "two transactions may do that with each other's rows: lock what they have in common first"
    };
    format!("{}; {remedy}", does(one))
}

/// The operation that took the lock.
fn operation<'p>(programs: &'p [Program], waiting: &Waiting) -> Option<&'p Operation> {
    let all = programs[waiting.program].branches.iter().flat_map(|branch| &branch.operations);
    let own = |one: &&Operation| (&one.at, &one.table) == (&waiting.holds.0, &waiting.holds.1);
    all.filter(own).find(|one| !matches!(one.kind, Kind::Read | Kind::Search))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_robustness::{Branch, Strength};

    #[test]
    fn each_kind_has_its_remedy() {
        let update = |table: &str, key: &str, at: &str| {
            Operation::update(table, [("id", key)], [], ["n"]).in_statement(at)
        };
        let of = |scripts: &[&[Operation]]| {
            let program =
                |operations: &&[Operation]| Program::new("p", vec![Branch::new("b", operations.to_vec())]);
            sentences(&scripts.iter().map(program).collect::<Vec<_>>())
        };
        let share = Operation::lock(Strength::Share, "account", [("id", ":a")], ["n"]).in_statement("p:1");
        let transfer = [update("account", ":a", "p:1"), update("account", ":b", "p:2")];
        let pay = [update("account", ":a", "p:1"), update("bill", ":b", "p:2")];
        let close = [update("bill", ":b", "q:1"), update("account", ":a", "q:2")];
        assert_eq!(
            [of(&[&transfer]), of(&[&[share, transfer[0].clone().in_statement("p:2")]]), of(&[&pay, &close])],
            [
                vec![
                    "p:1 locks a row of account, and p:2 one of account; two transactions may do that in \
                     opposite orders: lock the row with the lower key first"
                        .to_owned()
                ],
                vec![
                    "p:1 locks a row of account, and p:2 one of account; two transactions may both have the first \
                     lock when they want the second one: take the stronger one at once"
                        .to_owned()
                ],
                vec![
                    "p:1 locks a row of account, and p:2 one of bill; q:1 locks the same rows the other way round \
                     (q:2): lock them in the same order"
                        .to_owned()
                ],
            ]
        );
        assert_eq!(of(&[&pay]), [""; 0]);
    }
}
