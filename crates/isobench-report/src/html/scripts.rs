//! The scripts' commands by their places: the SQL at a line, and the lines that touch a table.
//!
//! Not here: the scripts in full (`method`).

use isobench_result::document::{Cell, Conflict, Document, PlannedScript};

/// The most letters of a statement that are shown.
const LONGEST: usize = 400;

/// The kinds of the lines `--@` that say which table the next command reads or writes.
const TOUCHING: [&str; 6] = ["read", "write", "insert", "append", "read-list", "read-group"];

/// A command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The script's name and the line: "orders.sql:12"; empty if it isn't known.
    pub name: String,
    /// The statement in one line, cut if it is very long.
    pub sql: String,
}

/// The scripts of a cell: those of its strategy, if it has its own.
fn scripts_of<'a>(document: &'a Document, cell: &Cell) -> &'a [PlannedScript] {
    let workload = &document.workload;
    let own = workload.strategies.iter().find(|strategy| strategy.name == cell.strategy());
    own.map(|strategy| strategy.scripts.as_slice())
        .filter(|scripts| !scripts.is_empty())
        .unwrap_or(&workload.scripts)
}

/// The command at which attempts ended in a conflict.
pub fn place_of(document: &Document, cell: &Cell, conflict: &Conflict) -> Place {
    let scripts = scripts_of(document, cell);
    let named = |script: &&PlannedScript| Some(&script.name) == conflict.script.as_ref();
    // A built-in script has two names: the plan's, and pgbench's.
    let script = scripts.iter().find(named).or(scripts.first().filter(|_| scripts.len() == 1));
    let name = script.map(|script| &script.name).or(conflict.script.as_ref());
    let place = name.zip(conflict.line).map(|(name, line)| format!("{name}:{line}"));
    let first = one_line(&conflict.command);
    let whole = script.zip(conflict.line).and_then(|(script, line)| statement(&script.text, line));
    // A text that was changed since is not what ran.
    let sql = whole.filter(|whole| whole.starts_with(first.trim_end_matches(';'))).unwrap_or(first);
    Place { name: place.unwrap_or_default(), sql: cut(&sql) }
}

/// The statement that begins at a line, from 1, without line breaks; `None` if there is no such
/// line.
fn statement(text: &str, line: u32) -> Option<String> {
    let from = usize::try_from(line).ok()?.checked_sub(1)?;
    let mut lines = text.lines().skip(from);
    let mut whole = lines.next()?.trim().to_owned();
    for next in lines.map(str::trim) {
        let sent = |word: &str| word.starts_with("\\gset") || word.starts_with("\\aset");
        if whole.ends_with(';')
            || whole.split_whitespace().any(sent)
            || next.starts_with('\\')
            || next.starts_with("--@")
        {
            break;
        }
        if !next.is_empty() && !next.starts_with("--") {
            whole = format!("{whole} {next}");
        }
    }
    Some(one_line(&whole))
}

/// The commands that read or write a table that a witness names, as the scripts of a cell describe
/// them.
pub fn touching(document: &Document, cell: &Cell, witness: &[String]) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for script in scripts_of(document, cell) {
        let described = script.text.lines().zip(1_u32..);
        for (line, number) in described.filter(|(line, _)| line.trim_start().starts_with("--@")) {
            let words: Vec<&str> = line.trim_start().trim_start_matches("--@").split_whitespace().collect();
            let [kind, table, ..] = words[..] else { continue };
            let named = |step: &String| {
                step.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
                    .any(|word| word == table)
            };
            if !TOUCHING.contains(&kind) || !witness.iter().any(named) {
                continue;
            }
            // Several such lines may stand before a command.
            let described_at = script.text.lines().zip(1_u32..).skip(number as usize);
            let command = described_at
                .filter(|(line, _)| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
                .map(|(_, at)| at)
                .next();
            let Some((at, sql)) = command.and_then(|at| Some((at, statement(&script.text, at)?))) else {
                continue;
            };
            let place = Place { name: format!("{}:{at}", script.name), sql: cut(&sql) };
            if !found.contains(&place) {
                found.push(place);
            }
        }
    }
    found
}

/// A command may have several lines.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_result::document::{CellLevel, Client, Plan, Server};

    const TEXT: &str = "\
\\set a 1
BEGIN;
--@ read t key=$1 version=$2
SELECT id, version
  -- of the row
  FROM t WHERE id = :a
\\gset
--@ write t key=:a version=$1
--@ write u key=:a version=$2
UPDATE both SET x = 1;
END;
";

    fn document() -> (Document, Cell) {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.workload.scripts = vec![PlannedScript {
            name: "mine.sql".to_owned(),
            weight: 1,
            text: TEXT.to_owned(),
            ..PlannedScript::default()
        }];
        let level = CellLevel::new(None, isobench_isolation::EffectiveLevel::Unknown);
        (document, Cell::new("mine.sql", level))
    }

    #[test]
    fn a_statement_ends_where_its_command_does() {
        for (line, sql) in [
            (2, Some("BEGIN;")),
            (4, Some("SELECT id, version FROM t WHERE id = :a")),
            (10, Some("UPDATE both SET x = 1;")),
            (12, None),
            (0, None),
        ] {
            assert_eq!(statement(TEXT, line).as_deref(), sql, "{line}");
        }
    }

    #[test]
    fn a_conflict_is_shown_with_its_line_and_sql() {
        let (document, cell) = document();
        let conflict = |command: &str, script: &str, line: Option<u32>| Conflict {
            sqlstate: "40001".to_owned(),
            command: command.to_owned(),
            script: Some(script.to_owned()),
            line,
            reason: String::new(),
            object: None,
            count: 1,
        };
        let of = |conflict: &Conflict| {
            let place = place_of(&document, &cell, conflict);
            (place.name, place.sql)
        };
        let at = |name: &str, sql: &str| (name.to_owned(), sql.to_owned());
        let whole = "SELECT id, version FROM t WHERE id = :a";
        assert_eq!(of(&conflict("SELECT id, version", "mine.sql", Some(4))), at("mine.sql:4", whole));
        assert_eq!(of(&conflict("DELETE", "mine.sql", Some(4))), at("mine.sql:4", "DELETE"));
        assert_eq!(of(&conflict("8: END;", "mine.sql", None)), at("", "8: END;"));
        let built_in = conflict("END;", "<builtin: it>", Some(11));
        assert_eq!(of(&built_in), at("mine.sql:11", "END;"));
    }

    #[test]
    fn the_commands_that_touch_a_table_are_found() {
        let (document, cell) = document();
        let names = |step: &str| -> Vec<String> {
            touching(&document, &cell, &[step.to_owned()]).into_iter().map(|place| place.name).collect()
        };
        assert_eq!(names("T1 read version 5 of t 7, and T2 wrote version 6"), ["mine.sql:4", "mine.sql:10"]);
        assert_eq!(names("T1 wrote u 3"), ["mine.sql:10"]);
        assert_eq!(names("T1 ended before T2 began"), [""; 0]);
    }
}
