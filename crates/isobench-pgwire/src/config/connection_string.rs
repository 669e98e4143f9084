//! Connection strings of either kind: keywords and values, or a URI.

use super::values::Values;
use super::{ConfigError, conninfo, uri};

/// True if libpq takes a database name for a connection string: a URI, or anything with a `=`.
pub fn is_connection_string(dbname: &str) -> bool {
    uri::is_uri(dbname) || dbname.contains('=')
}

/// Parses a connection string of either kind into keywords and values, sorted by keyword, without
/// adding defaults.
///
/// # Errors
///
/// The errors of libpq, in its words.
pub fn parse_connection_string(text: &str) -> Result<Vec<(&'static str, String)>, ConfigError> {
    let values = parse(text)?;
    Ok(values.iter().map(|(name, value)| (name, value.to_owned())).collect())
}

/// Parses a connection string of either kind.
pub(super) fn parse(text: &str) -> Result<Values, ConfigError> {
    if uri::is_uri(text) { uri::parse(text) } else { conninfo::parse(text) }
}
