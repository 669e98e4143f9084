//! Mistakes that no level prevents, in words, with what is done about each.

use isobench_program::{Beyond, Order, Templates};

/// A sentence on each mistake, without its full stop.
pub(crate) fn warnings(templates: &Templates) -> Vec<String> {
    templates.beyond.iter().map(sentence).collect()
}

fn sentence(of: &Beyond) -> String {
    match of {
        Beyond::Watermark { read, table, column, order } => {
            let (values, smaller) = match order {
                Order::Sequence => ("numbers of a sequence", "a smaller number"),
                Order::Clock => ("times of a clock", "an earlier time"),
            };
            format!(
                "{read} may miss rows of {table}, at every level: {column} has {values}, and a row with {smaller} can \
                 commit later. Store pg_current_xact_id() in each row, and read only rows for which it is below \
                 pg_snapshot_xmin(pg_current_snapshot())"
            )
        }
        Beyond::Lease { claim, table, column, write } => format!(
            "{write} may write after another transaction took over the claim of {claim} ({table}.{column}), at every \
             level: nothing tests the claim again. Raise a number with each claim, and require it in every later WHERE"
        ),
        Beyond::Counter { line, variable, write } => format!(
            "{write} may write a number that another client writes, too, at every level: each client counts :{variable} \
             for itself (line {line}). Read it from the table in the same transaction, or take it from a sequence"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_is_said_with_its_remedy() {
        let watermark = |order| Beyond::Watermark {
            read: "poll.sql:3".into(),
            table: "outbox".to_owned(),
            column: "at".to_owned(),
            order,
        };
        let beyond = vec![
            watermark(Order::Sequence),
            watermark(Order::Clock),
            Beyond::Lease {
                claim: "work.sql:2".into(),
                table: "job".to_owned(),
                column: "locked_at".to_owned(),
                write: "work.sql:4".into(),
            },
            Beyond::Counter { line: 1, variable: "n".to_owned(), write: "add.sql:2".into() },
        ];
        let said = warnings(&Templates { beyond, ..Templates::default() });
        let expected = [
            ["poll.sql:3 may miss rows of outbox", "numbers of a sequence", "pg_snapshot_xmin"],
            ["poll.sql:3 may miss rows of outbox", "an earlier time", "pg_snapshot_xmin"],
            ["work.sql:4 may write after", "work.sql:2 (job.locked_at)", "Raise a number with each claim"],
            ["add.sql:2 may write a number", ":n for itself (line 1)", "from a sequence"],
        ];
        assert_eq!(said.len(), expected.len());
        for (sentence, parts) in said.iter().zip(expected) {
            assert!(parts.iter().all(|part| sentence.contains(part)), "{sentence}");
        }
    }
}
