//! The five-character error codes, and names for those that affect isobench.

use std::fmt;

/// A SQLSTATE: five characters that identify an error independently of the server's language.
///
/// Source: PostgreSQL: Error Codes.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SqlState(pub [u8; 5]);

/// Declares the named codes as associated constants.
macro_rules! codes {
    ($($name:ident $code:literal $doc:literal)*) => {
        impl SqlState {
            $(#[doc = concat!("`", $code, "`: ", $doc)] pub const $name: Self = Self::of($code);)*
        }
    };
}

codes! {
    SUCCESSFUL_COMPLETION "00000" "no error."
    CONNECTION_FAILURE "08006" "the connection was lost; CockroachDB and proxies report it, too."
    PROTOCOL_VIOLATION "08P01" "the server could not understand a message."
    FEATURE_NOT_SUPPORTED "0A000" "the product lacks it."
    INVALID_TRANSACTION_STATE "25000" "not possible in this state of the transaction."
    ACTIVE_SQL_TRANSACTION "25001" "not possible inside a transaction block."
    READ_ONLY_SQL_TRANSACTION "25006" "a write in a read-only transaction."
    NO_ACTIVE_SQL_TRANSACTION "25P01" "not possible outside a transaction block."
    IN_FAILED_SQL_TRANSACTION "25P02" "an earlier error aborted the block; a consequence, never a cause."
    INVALID_AUTHORIZATION "28000" "the role or the way it connects is not permitted."
    INVALID_PASSWORD "28P01" "password authentication failed."
    INVALID_CATALOG_NAME "3D000" "the database doesn't exist."
    INVALID_SCHEMA_NAME "3F000" "the schema doesn't exist."
    TRANSACTION_ROLLBACK "40000" "the transaction was rolled back, cause unnamed."
    SERIALIZATION_FAILURE "40001" "a conflict with another transaction: retry."
    STATEMENT_COMPLETION_UNKNOWN "40003" "the result of the commit is unknown: never retry blindly."
    DEADLOCK_DETECTED "40P01" "the victim of a deadlock: retry."
    SYNTAX_ERROR "42601" "the statement can't be parsed."
    INSUFFICIENT_PRIVILEGE "42501" "a right is missing."
    UNDEFINED_COLUMN "42703" "the column doesn't exist."
    UNDEFINED_FUNCTION "42883" "the function doesn't exist."
    UNDEFINED_TABLE "42P01" "the table doesn't exist."
    UNDEFINED_PARAMETER "42P02" "the parameter doesn't exist."
    DUPLICATE_DATABASE "42P04" "the database exists already."
    DUPLICATE_SCHEMA "42P06" "the schema exists already."
    DUPLICATE_TABLE "42P07" "the table exists already."
    UNDEFINED_OBJECT "42704" "the object doesn't exist."
    NOT_NULL_VIOLATION "23502" "NULL in a column that forbids it."
    FOREIGN_KEY_VIOLATION "23503" "a foreign key is violated."
    UNIQUE_VIOLATION "23505" "a unique key is violated."
    CHECK_VIOLATION "23514" "a check constraint is violated."
    INSUFFICIENT_RESOURCES "53000" "the server ran out of something."
    DISK_FULL "53100" "the server's disk is full."
    OUT_OF_MEMORY "53200" "the server's memory is full."
    TOO_MANY_CONNECTIONS "53300" "no connection slot is free."
    CONFIGURATION_LIMIT_EXCEEDED "53400" "a setting allows no more of it."
    LOCK_NOT_AVAILABLE "55P03" "lock_timeout or NOWAIT."
    QUERY_CANCELED "57014" "cancel request or statement_timeout."
    ADMIN_SHUTDOWN "57P01" "the session was terminated by the administrator."
    CRASH_SHUTDOWN "57P02" "another session crashed, all were terminated."
    CANNOT_CONNECT_NOW "57P03" "the server is starting up or shutting down."
    UNDEFINED_FILE "58P01" "the server has no such file."
    IO_ERROR "58030" "the server's operating system reported an error."
    CANT_CHANGE_RUNTIME_PARAM "55P02" "the setting can't be changed now."
    INVALID_PARAMETER_VALUE "22023" "a value outside of what is allowed."
    INTERNAL_ERROR "XX000" "an inconsistency in the server."
}

impl SqlState {
    /// A placeholder for a code that the server omitted or that is invalid.
    pub const MISSING: Self = Self(*b"?????");

    const fn of(code: &str) -> Self {
        match code.as_bytes().first_chunk::<5>() {
            Some(&code) => Self(code),
            None => Self::MISSING,
        }
    }

    /// The code in `bytes`, or [`SqlState::MISSING`] if these aren't five ASCII letters and digits.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match <[u8; 5]>::try_from(bytes) {
            Ok(code) if code.iter().all(u8::is_ascii_alphanumeric) => Self(code),
            _ => Self::MISSING,
        }
    }

    /// The code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("?????")
    }

    /// The first two characters, which identify the class of the error.
    pub fn class(&self) -> &str {
        self.as_str().get(..2).unwrap_or("??")
    }
}

impl Default for SqlState {
    fn default() -> Self {
        Self::MISSING
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlState({})", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_class() {
        assert_eq!(SqlState::DEADLOCK_DETECTED.to_string(), "40P01");
        assert_eq!(SqlState::DEADLOCK_DETECTED.class(), "40");
        assert_eq!(format!("{:?}", SqlState::DISK_FULL), "SqlState(53100)");
    }

    #[test]
    fn bytes_that_are_no_code_are_missing() {
        for bytes in [&b"4000"[..], b"400011", b"40 01", b"\xff\xff\xff\xff\xff", b""] {
            assert_eq!(SqlState::from_bytes(bytes), SqlState::MISSING, "{bytes:?}");
        }
        assert_eq!(SqlState::from_bytes(b"40001"), SqlState::SERIALIZATION_FAILURE);
        assert_eq!(SqlState([0xff; 5]).as_str(), "?????");
    }
}
