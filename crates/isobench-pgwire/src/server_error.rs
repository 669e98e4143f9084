//! An error or notice of the server with all its fields, owned, and its text as displayed by libpq.

mod excerpt;

use std::fmt::{self, Write as _};

use crate::{SqlState, cut};

/// An ErrorResponse or NoticeResponse with all its fields.
///
/// `Display` is one line, severity and message, shortened if they are long. Source: PostgreSQL:
/// Protocol, Error and Notice Message Fields.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `WARNING` …, in the language of the server's messages.
    pub severity: String,
    /// The same in English; servers before PostgreSQL 9.6 and some other products omit it.
    pub severity_untranslated: Option<String>,
    /// The error code.
    pub code: SqlState,
    /// The primary message, usually one line.
    pub message: String,
    /// Details.
    pub detail: Option<String>,
    /// A suggestion.
    pub hint: Option<String>,
    /// The position in the query text, in characters from 1.
    pub position: Option<u32>,
    /// The position in `internal_query`, in characters from 1.
    pub internal_position: Option<u32>,
    /// The internally generated query that failed.
    pub internal_query: Option<String>,
    /// The call stack, innermost call first, one per line.
    pub context: Option<String>,
    /// Schema of the object concerned.
    pub schema: Option<String>,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
    /// Data type concerned.
    pub data_type: Option<String>,
    /// Constraint concerned.
    pub constraint: Option<String>,
    /// File of the server's source.
    pub file: Option<String>,
    /// Line in that file.
    pub line: Option<u32>,
    /// Function in that file.
    pub routine: Option<String>,
}

impl ServerError {
    /// An error of severity `ERROR` with a code and a message.
    pub fn new(code: SqlState, message: impl Into<String>) -> Self {
        Self { severity: "ERROR".to_owned(), code, message: message.into(), ..Self::default() }
    }

    /// Collects the fields of a message; unknown ones are ignored, as the protocol requires.
    pub fn from_fields<'a>(fields: impl IntoIterator<Item = (u8, &'a [u8])>) -> Self {
        let mut error = Self::default();
        for (letter, bytes) in fields {
            let text = String::from_utf8_lossy(bytes).into_owned();
            match letter {
                b'S' => error.severity = text,
                b'V' => error.severity_untranslated = Some(text),
                b'C' => error.code = SqlState::from_bytes(bytes),
                b'M' => error.message = text,
                b'D' => error.detail = Some(text),
                b'H' => error.hint = Some(text),
                b'P' => error.position = text.parse().ok(),
                b'p' => error.internal_position = text.parse().ok(),
                b'q' => error.internal_query = Some(text),
                b'W' => error.context = Some(text),
                b's' => error.schema = Some(text),
                b't' => error.table = Some(text),
                b'c' => error.column = Some(text),
                b'd' => error.data_type = Some(text),
                b'n' => error.constraint = Some(text),
                b'F' => error.file = Some(text),
                b'L' => error.line = text.parse().ok(),
                b'R' => error.routine = Some(text),
                _ => {}
            }
        }
        error
    }

    /// The complete text as displayed by libpq by default: severity and message, then LINE, DETAIL,
    /// HINT, QUERY and CONTEXT.
    ///
    /// LINE, the position in the query, needs the text of the query, which the server doesn't
    /// return. CONTEXT is displayed only for errors, which is libpq's default. Long parts are
    /// shortened.
    pub fn report(&self, sql: Option<&str>) -> String {
        let place = match (self.position, self.internal_position, &self.internal_query) {
            (Some(position), ..) => sql.and_then(|sql| excerpt::excerpt(sql, position)),
            (None, Some(position), Some(query)) => excerpt::excerpt(query, position),
            _ => None,
        };
        let mut text = self.to_string();
        if let Some(place) = place {
            text.push('\n');
            text.push_str(&place);
        } else if let (Some(position), None) = (self.position, sql) {
            // Writing to a String can't fail.
            let _ = write!(text, " at character {position}");
        }
        let parts = [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("QUERY", &self.internal_query),
            ("CONTEXT", if self.is_error() { &self.context } else { &None }),
        ];
        for (name, part) in parts {
            if let Some(part) = part {
                let _ = write!(text, "\n{name}:  {}", cut(part));
            }
        }
        text
    }

    /// True for an error, false for a notice or a warning.
    fn is_error(&self) -> bool {
        let severity = self.severity_untranslated.as_ref().unwrap_or(&self.severity);
        matches!(severity.as_str(), "ERROR" | "FATAL" | "PANIC")
    }

    /// True if the server ends the session with it.
    pub fn is_fatal(&self) -> bool {
        let severity = self.severity_untranslated.as_ref().unwrap_or(&self.severity);
        matches!(severity.as_str(), "FATAL" | "PANIC")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:  {}", cut(&self.severity), cut(&self.message))
    }
}

impl std::error::Error for ServerError {}
