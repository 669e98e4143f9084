//! The files of workloads: optional lines, repeated lines, and parameters.
//!
//! A line `--+NAME rest` stands for `rest` if the piece NAME is wanted (a variant, or a capability
//! of the product, or a parameter above 0), and is left out otherwise. So one file holds a script
//! and its variants side by side. The rest may be such a line again.
//!
//! The lines from `--*TIMES` to the next `--*` are there as often as the number or the parameter
//! TIMES says, each time with its number, from 1, in place of `:nth`: the language has no loops.

use isobench_script::{ParseError, Sql, Symbols, parse};

/// The text with the wanted pieces.
pub fn select(text: &str, wanted: &[&str]) -> String {
    let mut selected = String::with_capacity(text.len());
    for mut line in text.lines() {
        let mut is_wanted = true;
        while let Some((name, rest)) = line.strip_prefix("--+").and_then(|marked| marked.split_once(' ')) {
            is_wanted &= wanted.contains(&name);
            line = rest;
        }
        if is_wanted {
            selected.push_str(line);
            selected.push('\n');
        }
    }
    selected
}

/// The text with the lines between `--*TIMES` and `--*` as often as that number says, or `times` of
/// that parameter.
pub fn repeat(text: &str, times: impl Fn(&str) -> u64) -> String {
    let mut repeated = String::with_capacity(text.len());
    let mut block: Option<(u64, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("--*"), &mut block) {
            (Some(_), Some((count, lines))) => {
                for nth in 1..=*count {
                    repeated.push_str(&fill(lines, |name| (name == "nth").then(|| nth.to_string())));
                }
                block = None;
            }
            (Some(name), None) => {
                block = Some((name.parse().unwrap_or_else(|_| times(name)), String::new()));
            }
            (None, Some((_, lines))) => {
                lines.push_str(line);
                lines.push('\n');
            }
            (None, None) => {
                repeated.push_str(line);
                repeated.push('\n');
            }
        }
    }
    repeated
}

/// The names of the pieces in a text, in order, possibly repeated.
#[cfg(test)]
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("--+")?.split(' ').next())
}

/// The text with `:name` replaced by its value, if there is one.
pub fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(':') {
        filled.push_str(before);
        let length = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (name, tail) = after.split_at(length);
        if let Some(value) = value(name) {
            filled.push_str(&value);
        } else {
            filled.push(':');
            filled.push_str(name);
        }
        rest = tail;
    }
    filled + rest
}

/// The SQL statements of a text, which may be empty.
///
/// # Errors
/// If the text isn't a script.
pub fn statements(text: &str) -> Result<Vec<String>, ParseError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let script = parse("tables.sql", text, &mut Symbols::new())?;
    Ok(script.sql().map(Sql::as_written).collect())
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
        let both = "--+other --+locked FOR UPDATE\n";
        assert_eq!(select(both, &["locked"]) + &select(both, &["other"]), "");
        assert_eq!(select(both, &["locked", "other"]), "FOR UPDATE\n");
    }

    #[test]
    fn lines_are_repeated_with_their_number() {
        let text = "BEGIN;\n--*rows\nSELECT :nth, :nth2;\n\\set n :n\n--*\nCOMMIT;\n--*none\nx\n--*\n--*2\n:nth\n--*\n";
        let times = |name: &str| if name == "rows" { 2 } else { 0 };
        assert_eq!(
            repeat(text, times),
            "BEGIN;\nSELECT 1, :nth2;\n\\set n :n\nSELECT 2, :nth2;\n\\set n :n\nCOMMIT;\n1\n2\n"
        );
        assert_eq!(repeat("--@ read t key=1\n", times), "--@ read t key=1\n");
    }

    #[test]
    fn parameters_are_put_in() {
        let value = |name: &str| (name == "keys").then(|| "7".to_owned());
        assert_eq!(
            fill("SELECT :keys, :keys2, a[1:2], '1'::text", value),
            "SELECT 7, :keys2, a[1:2], '1'::text"
        );
        assert_eq!(fill(":keys:", value), "7:");
    }

    #[test]
    fn statements_are_told_apart() {
        let found = statements("CREATE TABLE t (v int);\n-- all\nINSERT INTO t SELECT ';:x';\n").unwrap();
        let found: Vec<&str> = found.iter().map(|statement| statement.trim_end_matches(';')).collect();
        assert_eq!(found, ["CREATE TABLE t (v int)", "INSERT INTO t SELECT ';:x'"]);
    }
}
