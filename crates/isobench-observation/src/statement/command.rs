//! Statements that aren't queries, by their leading words: what they may write.

use sqlparser::tokenizer::Token;

use super::{Examiner, Finding};
use crate::dark::Dark;

/// Commands that neither read nor write rows.
const HARMLESS: [&str; 24] = [
    "abort",
    "analyze",
    "begin",
    "checkpoint",
    "close",
    "comment",
    "commit",
    "deallocate",
    "discard",
    "end",
    "explain",
    "listen",
    "lock",
    "notify",
    "prepare",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "set",
    "show",
    "start",
    "unlisten",
    "vacuum",
];

/// Commands that read rows of unknown tables.
const READERS: [&str; 3] = ["declare", "fetch", "move"];

impl Examiner<'_> {
    /// Examines a statement that isn't a query; `None` if it is one.
    pub(super) fn command(&mut self) -> Option<Finding> {
        let tokens = &self.text.tokens[self.range.clone()];
        let first = tokens.first()?;
        if matches!(first.token.token, Token::LParen) {
            return None;
        }
        let word = first.word().unwrap_or_default().to_ascii_lowercase();
        let has = |keyword: &str| tokens.iter().any(|token| token.is(keyword));
        let mut found = Finding::default();
        match word.as_str() {
            "select" | "insert" | "update" | "delete" | "merge" | "with" | "values" | "table" => return None,
            "rollback" | "abort" if has("to") => found.dark.push(Dark::RollbackTo),
            "explain" if has("analyze") || has("analyse") => {
                found.writes_anything = true;
                found.dark.push(Dark::Command { word: "EXPLAIN ANALYZE".to_owned() });
            }
            "copy" if has("to") && !has("insert") && !has("update") && !has("delete") => {
                found.dark.push(Dark::Reads { word: "COPY".to_owned() });
            }
            _ if READERS.contains(&word.as_str()) => {
                found.dark.push(Dark::Reads { word: word.to_ascii_uppercase() });
            }
            _ if HARMLESS.contains(&word.as_str()) => {}
            _ => {
                found.writes_anything = true;
                let word =
                    if word.is_empty() { "the statement".to_owned() } else { word.to_ascii_uppercase() };
                found.dark.push(Dark::Command { word });
            }
        }
        // What a command calls: `DECLARE c CURSOR FOR SELECT f()`.
        self.calls();
        let calls = std::mem::take(&mut self.found);
        if word != "explain" && word != "prepare" {
            found.dark.extend(calls.dark);
            found.writes_anything |= calls.writes_anything;
        }
        Some(found)
    }
}
