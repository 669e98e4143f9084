//! Passwords, which never appear in messages.

use std::fmt;

/// A password; `Debug` hides it and there is no `Display`.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The password itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(password: String) -> Self {
        Self(password)
    }
}

impl From<&str> for Secret {
    fn from(password: &str) -> Self {
        Self(password.to_owned())
    }
}
