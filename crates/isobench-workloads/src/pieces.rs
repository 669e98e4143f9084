//! The files of workloads: lines that are there only sometimes, and parameters.
//!
//! A line `--+NAME rest` is `rest` where the piece NAME is asked for (a variant, or something that a product has), and isn't
//! there otherwise. So one file holds a script and its variants, beside each other.

use isobench_script::{CommandKind, ParseError, Piece, Sql, Symbols, parse};

/// The text with those pieces that are asked for.
pub fn select(text: &str, wanted: &[&str]) -> String {
    let mut selected = String::with_capacity(text.len());
    for line in text.lines() {
        let line = match line.strip_prefix("--+") {
            None => Some(line),
            Some(marked) => {
                marked.split_once(' ').and_then(|(name, rest)| wanted.contains(&name).then_some(rest))
            }
        };
        if let Some(line) = line {
            selected.push_str(line);
            selected.push('\n');
        }
    }
    selected
}

/// The names of the pieces in a text, in order, possibly repeated.
#[cfg(test)]
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("--+")?.split(' ').next())
}

/// The SQL statements of a text, with values in place of `:name`.
///
/// # Errors
/// The text is no script.
pub fn statements(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<Vec<String>, ParseError> {
    let script = parse("tables.sql", text, &mut Symbols::new())?;
    let statement = |sql: &Sql| {
        let pieces = sql.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Variable { written, .. } => {
                value(written.trim_start_matches(':')).unwrap_or_else(|| written.clone())
            }
        });
        pieces.collect::<String>()
    };
    Ok(script
        .commands
        .iter()
        .filter_map(
            |command| if let CommandKind::Sql(sql) = &command.kind { Some(statement(sql)) } else { None },
        )
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_line_is_there_for_those_who_ask() {
        let text = "SELECT 1\n--+locked FOR UPDATE\n--+other x\n--@ read t key=1\n;\n";
        assert_eq!(select(text, &[]), "SELECT 1\n--@ read t key=1\n;\n");
        assert_eq!(select(text, &["locked"]), "SELECT 1\nFOR UPDATE\n--@ read t key=1\n;\n");
        assert_eq!(names(text).collect::<Vec<_>>(), ["locked", "other"]);
    }

    #[test]
    fn parameters_are_put_in() {
        let value = |name: &str| (name == "keys").then(|| "7".to_owned());
        let text = "CREATE TABLE t (v int);\nINSERT INTO t SELECT :keys, '1'::text, :other;\n";
        let statements = statements(text, value).unwrap();
        assert_eq!(statements.len(), 2);
        assert_eq!(statements[1].trim_end_matches(';'), "INSERT INTO t SELECT 7, '1'::text, :other");
    }
}
