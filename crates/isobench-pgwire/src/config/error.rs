//! What can be wrong with connection options, in libpq's words.

use std::path::PathBuf;

/// What messages quote instead of a piece of a connection string that may be a piece of its
/// password.
pub(super) const ELIDED: &str = "…";

/// Connection options that can't be used, in libpq's words; but no piece of a password is quoted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A keyword that libpq doesn't know either.
    #[error("invalid connection option \"{0}\"")]
    UnknownOption(String),
    /// A query parameter of a URI that libpq doesn't know either.
    #[error("invalid URI query parameter: \"{0}\"")]
    UnknownUriParameter(String),
    /// A connection string that can't be parsed; the text says where.
    #[error("{0}")]
    Syntax(String),
    /// A value outside of what is allowed; the text names option and value.
    #[error("{0}")]
    InvalidValue(String),
    /// Something libpq can do and isobench can't.
    #[error("isobench does not support \"{value}\" for connection option \"{option}\"")]
    NotSupported {
        /// The keyword.
        option: &'static str,
        /// Its value.
        value: String,
    },
    /// A part of a URI is out of place, most likely because a character of the password isn't
    /// encoded.
    #[error(
        "the URI's {0} can't be right; write @, / and other special characters of a password percent-encoded (@ as %40, / as %2F)"
    )]
    NotEncoded(&'static str),
    /// The value of another option has a password in it, which would be shown and sent as that
    /// option.
    #[error(
        "the value of connection option \"{0}\" has a password in it; give the password as an option of its own (an empty value is written '')"
    )]
    PasswordInside(&'static str),
    /// The service isn't in any service file.
    #[error("definition of service \"{0}\" not found")]
    NoService(String),
    /// The service file that was asked for doesn't exist.
    #[error("service file \"{}\" not found", .0.display())]
    NoServiceFile(PathBuf),
    /// The name of the operating system's user, which is the default role, is not known.
    #[error("could not look up local user ID {0}: no such user; name a user with -U or PGUSER")]
    NoUser(u32),
}
