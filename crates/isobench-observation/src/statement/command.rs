//! Statements that aren't queries, by their leading words: what they may write.

use sqlparser::tokenizer::Token;

use super::{Examiner, Finding};
use crate::dark::Dark;
use crate::tokens::{Placed, Text};

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

    /// True if the words of a statement that isn't understood leave room for writing.
    pub(super) fn may_write(&self) -> bool {
        let tokens = &self.text.tokens[self.range.clone()];
        let locks = |place: usize| {
            let before = |steps: usize| place.checked_sub(steps).and_then(|place| tokens.get(place));
            before(1).is_some_and(|token| token.is("for") || token.is("key"))
        };
        tokens.iter().enumerate().any(|(place, token)| {
            token.is("insert")
                || token.is("delete")
                || token.is("merge")
                || token.is("into")
                || token.is("update") && !locks(place)
        })
    }
}

pub(super) fn word(tokens: &[Placed], place: usize) -> String {
    tokens.get(place).and_then(Placed::word).unwrap_or_default().to_ascii_lowercase()
}

/// The names in a statement that creates, alters or drops relations.
pub(crate) fn changed_names(text: &Text<'_>, range: &std::ops::Range<usize>) -> Vec<String> {
    let tokens = &text.tokens[range.clone()];
    let into = word(tokens, 0) == "select" && tokens.iter().any(|token| token.is("into"));
    if into || matches!(word(tokens, 0).as_str(), "create" | "alter" | "drop" | "import") {
        tokens.iter().filter_map(Placed::name).collect()
    } else {
        Vec::new()
    }
}

/// True if a statement leaves its transaction prepared, to be committed or rolled back by another.
pub(crate) fn prepares_transaction(text: &Text<'_>, range: &std::ops::Range<usize>) -> bool {
    let tokens = &text.tokens[range.clone()];
    word(tokens, 0) == "prepare" && word(tokens, 1) == "transaction"
}

/// True if a statement sets a savepoint.
pub(crate) fn sets_savepoint(text: &Text<'_>, range: &std::ops::Range<usize>) -> bool {
    word(&text.tokens[range.clone()], 0) == "savepoint"
}

/// What a statement does with a savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `SAVEPOINT`.
    Set,
    /// `ROLLBACK TO`.
    RollBack,
    /// `RELEASE`.
    Release,
}

/// The savepoint that a statement sets, releases, or to which it rolls back.
pub(crate) fn savepoint(text: &Text<'_>, range: &std::ops::Range<usize>) -> Option<(Mark, String)> {
    let tokens = &text.tokens[range.clone()];
    let mark = match word(tokens, 0).as_str() {
        "savepoint" => Mark::Set,
        "release" => Mark::Release,
        "rollback" | "abort" if tokens.iter().any(|token| token.is("to")) => Mark::RollBack,
        _ => return None,
    };
    Some((mark, tokens.iter().rev().find_map(Placed::name).unwrap_or_default()))
}

/// True if a statement ends a transaction and begins another one: `COMMIT AND CHAIN`.
pub(crate) fn chains(text: &Text<'_>, range: &std::ops::Range<usize>) -> bool {
    let tokens = &text.tokens[range.clone()];
    let chain = tokens.iter().position(|token| token.is("chain"));
    chain.is_some_and(|place| place > 0 && !tokens[place - 1].is("no"))
}

/// The beginnings of the names of settings that change neither what names and values mean, nor rows, nor levels.
const HARMLESS_SETTINGS: [&str; 24] = [
    "application_name",
    "autovacuum",
    "backend_flush_after",
    "client_connection_check_interval",
    "client_min_messages",
    "commit_",
    "cpu_",
    "deadlock_timeout",
    "effective_",
    "enable_",
    "from_collapse_limit",
    "geqo",
    "hash_mem_multiplier",
    "idle_",
    "jit",
    "join_collapse_limit",
    "lock_timeout",
    "log_",
    "maintenance_",
    "max_parallel_",
    "plan_cache_mode",
    "statement_timeout",
    "synchronous_commit",
    "work_mem",
];

/// Further ones, whose names begin alike.
const MORE_HARMLESS_SETTINGS: [&str; 7] = [
    "min_parallel_",
    "parallel_",
    "random_page_cost",
    "seq_page_cost",
    "temp_",
    "track_",
    "transaction_timeout",
];

/// True if SET changes nothing but how the server works. The level of a transaction is asked of the server before it
/// counts.
fn is_harmless(tokens: &[Placed]) -> bool {
    let mut place = 1;
    while matches!(word(tokens, place).as_str(), "session" | "local") {
        place += 1;
    }
    let name = word(tokens, place);
    if tokens.get(place + 1).is_some_and(|next| next.token.token == Token::Period) {
        // A setting of an extension or of the application: a policy or a trigger may read it.
        return false;
    }
    let levels = ["transaction", "characteristics", "transaction_isolation", "default_transaction_isolation"];
    // Deferrable constraints count at COMMIT, too.
    let defers = name == "constraints" && tokens.iter().any(|token| token.is("deferred"));
    defers
        || levels.contains(&name.as_str())
        || HARMLESS_SETTINGS.iter().chain(&MORE_HARMLESS_SETTINGS).any(|start| name.starts_with(start))
}

/// True if a statement may change which tables and functions names mean, or how SQL is read, in later
/// statements.
pub(crate) fn changes_meaning(text: &Text<'_>, range: &std::ops::Range<usize>) -> bool {
    const OBJECTS: [&str; 14] = [
        "function",
        "procedure",
        "routine",
        "operator",
        "cast",
        "trigger",
        "rule",
        "policy",
        "domain",
        "type",
        "aggregate",
        "schema",
        "extension",
        "database",
    ];
    let tokens = &text.tokens[range.clone()];
    let has = |words: &[&str]| {
        tokens.iter().filter_map(Placed::name).any(|name| words.contains(&name.to_ascii_lowercase().as_str()))
    };
    match word(tokens, 0).as_str() {
        "set" | "reset" => !is_harmless(tokens),
        "discard" => has(&["all", "temp", "temporary"]),
        "create" | "alter" | "drop" | "import" => has(&OBJECTS),
        _ => has(&["set_config"]),
    }
}
