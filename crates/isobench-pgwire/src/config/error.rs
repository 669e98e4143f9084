//! Errors in connection options, in libpq's words.

use std::path::PathBuf;

/// The replacement in messages for a part of a connection string that may be a part of its
/// password.
pub(super) const ELIDED: &str = "…";

/// Connection options that can't be used, in libpq's words, but without parts of passwords.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A keyword unknown to libpq.
    #[error("invalid connection option \"{0}\"")]
    UnknownOption(String),
    /// A query parameter of a URI unknown to libpq.
    #[error("invalid URI query parameter: \"{0}\"")]
    UnknownUriParameter(String),
    /// A connection string that can't be parsed; the text has the position.
    #[error("{0}")]
    Syntax(String),
    /// A value outside the permitted ones; the text has option and value.
    #[error("{0}")]
    InvalidValue(String),
    /// A feature of libpq that isobench doesn't support.
    #[error("isobench does not support \"{value}\" for connection option \"{option}\"")]
    NotSupported {
        /// The keyword.
        option: &'static str,
        /// Its value.
        value: String,
    },
    /// A part of a URI is invalid, most likely because a character of the password isn't encoded.
    #[error(
        "the URI's {0} can't be right; write @, / and other special characters of a password \
         percent-encoded (@ as %40, / as %2F)"
    )]
    NotEncoded(&'static str),
    /// The value of another option contains a password, which would be shown and sent as part of
    /// that option.
    #[error(
        "the value of connection option \"{0}\" has a password in it; give the password as an \
         option of its own (an empty value is written '')"
    )]
    PasswordInside(&'static str),
    /// The service isn't defined in any service file.
    #[error("definition of service \"{0}\" not found")]
    NoService(String),
    /// The specified service file doesn't exist.
    #[error("service file \"{}\" not found", .0.display())]
    NoServiceFile(PathBuf),
    /// The name of the operating system's user, which is the default role, can't be determined.
    #[error("could not look up local user ID {0}: no such user; name a user with -U or PGUSER")]
    NoUser(u32),
}
