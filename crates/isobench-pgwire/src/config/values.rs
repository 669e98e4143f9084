//! The options of a connection by keyword, as texts, while they are put together.

use std::collections::BTreeMap;

use super::{ConfigError, keywords};

/// Options by keyword. A keyword with an empty text is given, and selects the default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// Sets an option, replacing any previous value.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) -> Result<(), ConfigError> {
        let value = value.into();
        if name == "requiressl" {
            // The name of sslmode before PostgreSQL 7.4, still accepted by libpq.
            let mode = if value == "1" { "require" } else { "prefer" };
            return self.set("sslmode", mode);
        }
        let keyword = keywords::find(name).ok_or_else(|| ConfigError::UnknownOption(name.to_owned()))?;
        self.0.insert(keyword.name, value);
        Ok(())
    }

    /// Sets an option if it isn't set yet.
    pub(super) fn set_default(&mut self, name: &str, value: impl Into<String>) -> Result<(), ConfigError> {
        if self.0.contains_key(name) { Ok(()) } else { self.set(name, value) }
    }

    /// Copies all options of `other`, including empty ones.
    pub(super) fn override_by(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The option as given.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The option, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    /// The option as an owned text, unless it is empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// The option as an integer; surrounding blanks are permitted.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i32>, ConfigError> {
        self.get(name).map(|value| integer(name, value)).transpose()
    }

    /// The choice selected by the option, or the default; any other value is libpq's error.
    pub(super) fn choice<T: Copy + Default>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let Some(value) = self.get(name) else {
            return Ok(T::default());
        };
        let found = choices.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice);
        found.ok_or_else(|| ConfigError::InvalidValue(format!("invalid {name} value: \"{value}\"")))
    }

    /// All given options, in the order of their names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

/// Reads an integer as libpq does.
pub(super) fn integer(name: &str, value: &str) -> Result<i32, ConfigError> {
    value.trim_ascii().parse().map_err(|_| {
        ConfigError::InvalidValue(format!(
            "invalid integer value \"{value}\" for connection option \"{name}\""
        ))
    })
}
