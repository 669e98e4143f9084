//! Splits SQL texts into statements, and classifies each by its first word.

/// The kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Release,
    Insert,
    Update,
    Select,
    Show,
    Set,
    CopyIn,
    CopyOut,
    /// A command without an effect here, answered with this tag.
    Utility(&'static str),
    /// An empty text.
    Empty,
    /// Anything else: a syntax error.
    Unknown,
}

/// Kinds by the first word.
const WORDS: [(&str, Kind); 24] = [
    ("BEGIN", Kind::Begin),
    ("START", Kind::Begin),
    ("COMMIT", Kind::Commit),
    ("END", Kind::Commit),
    ("ROLLBACK", Kind::Rollback),
    ("ABORT", Kind::Rollback),
    ("SAVEPOINT", Kind::Savepoint),
    ("RELEASE", Kind::Release),
    ("INSERT", Kind::Insert),
    ("UPDATE", Kind::Update),
    ("DELETE", Kind::Update),
    ("SELECT", Kind::Select),
    ("SHOW", Kind::Show),
    ("SET", Kind::Set),
    ("COPY", Kind::CopyIn),
    ("CREATE", Kind::Utility("CREATE")),
    ("ALTER", Kind::Utility("ALTER")),
    ("DROP", Kind::Utility("DROP")),
    ("COMMENT", Kind::Utility("COMMENT")),
    ("TRUNCATE", Kind::Utility("TRUNCATE TABLE")),
    ("VACUUM", Kind::Utility("VACUUM")),
    ("ANALYZE", Kind::Utility("ANALYZE")),
    ("CHECKPOINT", Kind::Utility("CHECKPOINT")),
    ("RESET", Kind::Utility("RESET")),
];

impl Kind {
    /// The kind of one statement.
    pub(super) fn of(sql: &str) -> Kind {
        let word = sql.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        if sql.is_empty() {
            return Kind::Empty;
        }
        let kind = WORDS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word))
            .map_or(Kind::Unknown, |row| row.1);
        match kind {
            Kind::Rollback if sql.to_ascii_uppercase().contains(" TO ") => Kind::RollbackTo,
            Kind::CopyIn if sql.to_ascii_uppercase().contains("STDOUT") => Kind::CopyOut,
            other => other,
        }
    }

    /// True if the statement ends a block that an error has aborted.
    pub(super) fn leaves_failed_block(self) -> bool {
        matches!(self, Kind::Commit | Kind::Rollback | Kind::RollbackTo)
    }

    /// True if it has columns.
    pub(super) fn has_columns(self) -> bool {
        matches!(self, Kind::Select | Kind::Show)
    }
}

/// The savepoint named at the end of a statement.
pub(super) fn savepoint(sql: &str) -> String {
    sql.split_ascii_whitespace().last().unwrap_or_default().to_ascii_lowercase()
}

/// The statements of a text, split at semicolons outside quotes. A text without any has one empty
/// statement.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut quoted = false;
    let parts = text.split(|letter| {
        quoted ^= letter == '\'';
        letter == ';' && !quoted
    });
    let mut statements: Vec<String> =
        parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
    if statements.is_empty() {
        statements.push(String::new());
    }
    statements
}

/// The text with values in place of `$1`, `$2` …, so that it reads as in the simple protocol.
pub(super) fn with_values(sql: &str, values: &[Option<String>]) -> String {
    let mut parts = sql.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        let value = number.parse().ok().and_then(|number: usize| values.get(number.checked_sub(1)?));
        if let Some(value) = value {
            text.push_str(value.as_deref().unwrap_or("NULL"));
        } else {
            text.push('$');
            text.push_str(number);
        }
        text.push_str(rest);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_from_the_first_word() {
        for (sql, kind) in [
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", Kind::Begin),
            ("end", Kind::Commit),
            ("SAVEPOINT s", Kind::Savepoint),
            ("rollback to savepoint s", Kind::RollbackTo),
            ("ROLLBACK", Kind::Rollback),
            ("insert into t values (1)", Kind::Insert),
            ("COPY t FROM STDIN", Kind::CopyIn),
            ("COPY t TO STDOUT", Kind::CopyOut),
            ("BROKEN", Kind::Unknown),
            ("", Kind::Empty),
        ] {
            assert_eq!(Kind::of(sql), kind, "{sql}");
        }
    }

    #[test]
    fn statements_are_split_outside_of_quotes() {
        assert_eq!(split("BEGIN; SELECT ';' ; END;"), ["BEGIN", "SELECT ';'", "END"]);
        assert_eq!(split(" ; "), [""]);
    }

    #[test]
    fn values_take_their_places() {
        let values = [Some("7".to_owned()), None];
        assert_eq!(with_values("SELECT $1, $2, $3, $1", &values), "SELECT 7, NULL, $3, 7");
    }
}
