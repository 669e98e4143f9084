//! Which rows of each statement can be tracked: the list that `isobench observe` prints.
//!
//! Not here: what of it stands in the report of a comparison (`text/seen`, `html/seen`).

use std::fmt::Write as _;

use super::layout::wrap;
use isobench_result::document::{Observation, ObservedRows, ObservedStatement, Tracked};
use isobench_result::numbers::{count, counted, percent};
use isobench_result::seen::{place, plain};

/// The width of the labels before what is said of a statement, with the blanks around them.
const LABEL: usize = 12;

/// Lists the statements of a workload for a terminal of `width` columns: the tables of each, whether
/// it reads or writes their rows, how the order of versions is known, and what isn't seen. With
/// `sent`, the text of each statement's command, also what is sent, letter by letter.
pub fn statements(observation: &Observation, sent: Option<&[String]>, width: usize) -> String {
    let mut text = String::new();
    let sent = sent.unwrap_or_default().iter().map(|sent| Some(sent.as_str())).chain(std::iter::repeat(None));
    let all: Vec<_> = observation.statements.iter().zip(sent).collect();
    // Statements joined by \; are sent in one message.
    let together = |one: &(&ObservedStatement, Option<&str>), next: &(&ObservedStatement, Option<&str>)| {
        one.1.is_some() && one.1 == next.1 && place(one.0) == place(next.0)
    };
    for command in all.chunk_by(together) {
        let differently = command.iter().any(|(statement, _)| statement.sent_differently);
        let sent = command.last().and_then(|(_, sent)| *sent);
        let of_each = command.iter().flat_map(|(statement, _)| lines(statement, width));
        for line in of_each.chain(as_sent(sent, differently)) {
            // Writing to a String can't fail.
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text.push('\n');
    for line in wrap(&share(observation), width, 0) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The share of the statements that get further columns, and of those on rows that are tracked wholly.
fn share(observation: &Observation) -> String {
    let Tracked { wholly, on_condition, on_rows } = observation.tracked();
    let share = |number: usize| percent(number as f64 / on_rows as f64);
    let further = match on_condition {
        0 => String::new(),
        more => format!(
            ", and {} more ({} in all) whenever their OFFSET is 0",
            count(more as u64),
            share(wholly + more)
        ),
    };
    let tracked = match on_rows {
        0 => "none touches rows".to_owned(),
        of => format!(
            "{} of the {} on rows ({}) can be tracked wholly{further}",
            count(wholly as u64),
            count(of as u64),
            share(wholly)
        ),
    };
    format!(
        "{}: adds columns to {} of {} to see which rows they touch; {tracked}.",
        observation.workload,
        count(observation.sent_differently() as u64),
        counted(observation.statements.len() as u64, "statement")
    )
}

fn lines(statement: &ObservedStatement, width: usize) -> Vec<String> {
    let mut lines = wrap(&format!("{}: {}", place(statement), statement.text), width, 4);
    let mut add = |label: &str, said: &str| {
        lines.extend(wrap(&format!("{:LABEL$}{said}", format!("  {label}")), width, LABEL));
    };
    for rows in &statement.tables {
        add(&rows.access, &of_rows(rows));
    }
    for sentence in &statement.dark {
        add("untracked", plain(sentence));
    }
    if statement.tables.is_empty() && statement.dark.is_empty() {
        add("-", "no rows");
    }
    lines
}

/// The table and its key, and how much is known of the rows.
fn of_rows(rows: &ObservedRows) -> String {
    let mut text = format!("{}, key {}", rows.table, rows.key);
    match rows.order.as_str() {
        "" | "-" => {}
        "row lock" => text.push_str("; versions in the order of the row's locks"),
        // Writing to a String can't fail.
        order => drop(write!(text, "; versions in the order that {order} show")),
    }
    if rows.searched {
        text.push_str("; also rows that it doesn't find");
    }
    text
}

/// A command as it is sent.
fn as_sent(sent: Option<&str>, differently: bool) -> Vec<String> {
    match sent {
        None => Vec::new(),
        Some(_) if !differently => vec!["  sent      as written".to_owned()],
        Some(text) => {
            let lines = text.trim_end().lines().map(|line| format!("    {line}"));
            std::iter::once("  sent".to_owned()).chain(lines).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_listed_within_the_width() {
        let rows = ObservedRows {
            table: "shop.stock".to_owned(),
            key: "(warehouse, item)".to_owned(),
            access: "writes".to_owned(),
            order: "row lock".to_owned(),
            searched: true,
        };
        let statement = |line: u32, text: &str| ObservedStatement {
            script: "a.sql".to_owned(),
            line,
            text: text.to_owned(),
            ..ObservedStatement::default()
        };
        let observation = Observation {
            workload: "a.sql".to_owned(),
            statements: vec![
                statement(1, "BEGIN"),
                ObservedStatement {
                    sent_differently: true,
                    tables: vec![rows],
                    dark: vec!["not observed: nothing".to_owned()],
                    ..statement(2, "UPDATE stock SET n = n - 1 WHERE warehouse = :w AND item = :i")
                },
            ],
            ..Observation::default()
        };
        let sent = ["BEGIN;".to_owned(), "UPDATE stock\n  SET n = n - 1 RETURNING xmin".to_owned()];
        let text = statements(&observation, Some(&sent), 50);
        assert_eq!(
            text,
            "a.sql:1: BEGIN\n  \
               -         no rows\n  \
               sent      as written\n\
             a.sql:2: UPDATE stock SET n = n - 1 WHERE\n    \
                 warehouse = :w AND item = :i\n  \
               writes    shop.stock, key (warehouse, item);\n            \
                         versions in the order of the row's\n            \
                         locks; also rows that it doesn't find\n  \
               untracked nothing\n  \
               sent\n    \
                 UPDATE stock\n      \
                   SET n = n - 1 RETURNING xmin\n\
             \n\
             a.sql: adds columns to 1 of 2 statements to see\n\
             which rows they touch; 0 of the 1 on rows (0.0 %)\n\
             can be tracked wholly.\n"
        );
        assert!(!statements(&observation, None, 80).contains("sent\n"));
    }

    #[test]
    fn statements_of_one_command_are_sent_together() {
        let statement = |line: u32, sent_differently: bool| ObservedStatement {
            script: "a.sql".to_owned(),
            line,
            sent_differently,
            text: "SELECT".to_owned(),
            ..ObservedStatement::default()
        };
        let four = vec![statement(1, true), statement(1, false), statement(2, false), statement(2, false)];
        let observation = Observation { statements: four, ..Observation::default() };
        let sent = ["SELECT x; SELECT;", "SELECT x; SELECT;", "SELECT;", "SELECT ;"].map(str::to_owned);
        let text = statements(&observation, Some(&sent), 80);
        assert_eq!((text.matches("SELECT x; SELECT;").count(), text.matches("as written").count()), (1, 2));
    }

    #[test]
    fn what_depends_on_a_value_is_counted_apart() {
        let dark = |wholly_if: Option<&str>| ObservedStatement {
            dark: vec!["rows of t that it missed, because of OFFSET, unless it is 0".to_owned()],
            wholly_if: wholly_if.map(str::to_owned),
            ..ObservedStatement::default()
        };
        let of = |statements: Vec<ObservedStatement>| {
            let observation = Observation { statements, ..Observation::default() };
            share(&observation)
        };
        let text = of(vec![dark(None), dark(Some("its OFFSET is 0")), dark(None), dark(None)]);
        let expected = "0 of the 4 on rows (0.0 %) can be tracked wholly, and 1 more (25.0 % in all) whenever \
            their OFFSET is 0.";
        assert!(text.ends_with(expected), "{text}");
        assert!(of(vec![dark(None)]).ends_with("can be tracked wholly."));
    }
}
