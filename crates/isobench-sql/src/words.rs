//! What the leading words of statements say: transactions, savepoints, and what later statements mean.

use std::ops::Range;

use sqlparser::tokenizer::Token;

use crate::text::{Placed, Text};

/// True if the words of a statement leave room for writing rows.
pub fn may_write(text: &Text<'_>, range: &Range<usize>) -> bool {
    let tokens = &text.tokens[range.clone()];
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

/// A word of a statement in lower case, by its place; empty if there is none.
pub fn word(tokens: &[Placed], place: usize) -> String {
    tokens.get(place).and_then(Placed::word).unwrap_or_default().to_ascii_lowercase()
}

/// The names in a statement that creates, alters or drops relations.
pub fn changed_names(text: &Text<'_>, range: &Range<usize>) -> Vec<String> {
    let tokens = &text.tokens[range.clone()];
    let into = word(tokens, 0) == "select" && tokens.iter().any(|token| token.is("into"));
    if into || matches!(word(tokens, 0).as_str(), "create" | "alter" | "drop" | "import") {
        tokens.iter().filter_map(Placed::name).collect()
    } else {
        Vec::new()
    }
}

/// True if a statement leaves its transaction prepared, to be committed or rolled back by another.
pub fn prepares_transaction(text: &Text<'_>, range: &Range<usize>) -> bool {
    let tokens = &text.tokens[range.clone()];
    word(tokens, 0) == "prepare" && word(tokens, 1) == "transaction"
}

/// True if a statement sets a savepoint.
pub fn sets_savepoint(text: &Text<'_>, range: &Range<usize>) -> bool {
    word(&text.tokens[range.clone()], 0) == "savepoint"
}

/// Commands on savepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `SAVEPOINT`
    Set,
    /// `ROLLBACK TO`.
    RollBack,
    /// `RELEASE`.
    Release,
}

/// The savepoint that a statement sets, releases, or to which it rolls back.
pub fn savepoint(text: &Text<'_>, range: &Range<usize>) -> Option<(Mark, String)> {
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
pub fn chains(text: &Text<'_>, range: &Range<usize>) -> bool {
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
pub fn changes_meaning(text: &Text<'_>, range: &Range<usize>) -> bool {
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
