//! Whether a text may be a script at all, to say so in place of a server's syntax error.

/// The words with which statements of PostgreSQL and its relatives begin (PostgreSQL manual, "SQL Commands").
const BEGINNINGS: &[&str] = &[
    "abort",
    "alter",
    "analyse",
    "analyze",
    "begin",
    "call",
    "checkpoint",
    "close",
    "cluster",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "declare",
    "delete",
    "discard",
    "do",
    "drop",
    "end",
    "execute",
    "explain",
    "export",
    "fetch",
    "grant",
    "import",
    "insert",
    "listen",
    "load",
    "lock",
    "merge",
    "move",
    "notify",
    "prepare",
    "reassign",
    "refresh",
    "reindex",
    "release",
    "replace",
    "reset",
    "revoke",
    "rollback",
    "savepoint",
    "security",
    "select",
    "set",
    "show",
    "start",
    "table",
    "truncate",
    "unlisten",
    "update",
    "upsert",
    "vacuum",
    "values",
    "wait",
    "with",
    "backup",
    "restore",
    "split",
];

/// The marks with which lines of scripts begin: meta-commands, comments, queries in parentheses, variables.
const MARKS: [&str; 6] = ["\\", "--", "/*", "(", ":", ";"];

/// True unless a text has lines, and none of them begins like a statement, a comment or a meta-command.
///
/// ```
/// use isobench_script::resembles_script;
///
/// assert!(resembles_script("SELECT 1"));
/// assert!(!resembles_script("# Notes\nHow to select rows."));
/// ```
pub fn resembles_script(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_none() || lines.any(begins_like_one)
}

fn begins_like_one(line: &str) -> bool {
    let word = line.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    let after = &line[word.len()..];
    let is_apart = !after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    MARKS.iter().any(|mark| line.starts_with(mark))
        || is_apart && BEGINNINGS.iter().any(|beginning| word.eq_ignore_ascii_case(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins;

    #[test]
    fn every_script_resembles_one() {
        let texts = [
            "",
            "\n \n",
            "-- nothing",
            "/* a hint */ SELECT 1",
            "(SELECT 1)",
            "end",
            ":statement",
            "\n\n  select*from t",
            "BEGIN;",
            "\\sleep 1 s",
            "x\nVALUES(1)",
        ];
        for text in texts.into_iter().chain(builtins().iter().map(|builtin| builtin.text)) {
            assert!(resembles_script(text), "{text}");
        }
    }

    #[test]
    fn other_texts_do_not() {
        for text in [
            "# Selecting",
            "{\"select\": 1}",
            "import_table: x",
            "hello\n**world**",
            "[levels]\nx = 1",
            "Starting\nselects",
        ] {
            assert!(!resembles_script(text), "{text}");
        }
    }
}
