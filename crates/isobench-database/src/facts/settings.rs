//! The source of a product's settings.
//!
//! Not here: reading them (`settings.rs`).

/// The source of a product's settings.
#[derive(Debug, Clone, Copy)]
pub enum SettingsSource {
    /// `pg_settings`, which includes the defaults.
    PgSettings,
    /// One command for each setting: its name, and the command whose first value it is. Unknown
    /// ones are left out.
    Commands(&'static [(&'static str, &'static str)]),
    /// A query for names and values.
    Query(&'static str),
    /// None.
    None,
}
