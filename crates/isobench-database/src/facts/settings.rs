//! Where a product's settings can be read.
//!
//! Not here: reading them (`settings.rs`).

/// Where a product's settings can be read.
#[derive(Debug, Clone, Copy)]
pub enum SettingsSource {
    /// `pg_settings`, with the defaults to compare with.
    PgSettings,
    /// One command for each setting: name, command whose first value is its value. An unknown one
    /// is left out.
    Commands(&'static [(&'static str, &'static str)]),
    /// A query for names and values.
    Query(&'static str),
    /// Nowhere.
    None,
}
