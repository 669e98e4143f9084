//! Connection strings of keywords and values: `host=db port=5433 application_name='my app'`.
//!
//! Source: PostgreSQL: libpq, Keyword/Value Connection Strings.

use super::ConfigError;
use super::error::ELIDED;
use super::values::Values;

/// Parses a connection string of keywords and values.
pub(super) fn parse(text: &str) -> Result<Values, ConfigError> {
    let mut values = Values::default();
    let mut rest = text.trim_start_matches(is_blank);
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || is_blank(c)).unwrap_or(rest.len());
        let (keyword, after) = rest.split_at(end);
        let Some(after) = after.trim_start_matches(is_blank).strip_prefix('=') else {
            let keyword = if values.have_secret() { ELIDED } else { keyword };
            let message = format!("missing \"=\" after \"{keyword}\" in connection info string");
            return Err(ConfigError::Syntax(message));
        };
        let (value, after) = value(after.trim_start_matches(is_blank))?;
        let hide = values.have_secret();
        values.set(keyword, value).map_err(|error| match error {
            ConfigError::UnknownOption(_) if hide => ConfigError::UnknownOption(ELIDED.to_owned()),
            error => error,
        })?;
        rest = after.trim_start_matches(is_blank);
    }
    Ok(values)
}

/// A value, quoted or not, and the rest of the text. A backslash escapes the next character.
fn value(text: &str) -> Result<(String, &str), ConfigError> {
    let quoted = text.strip_prefix('\'');
    let mut value = String::new();
    let mut chars = quoted.unwrap_or(text).chars();
    loop {
        let before = chars.as_str();
        match chars.next() {
            Some('\'') if quoted.is_some() => return Ok((value, chars.as_str())),
            Some(c) if quoted.is_none() && is_blank(c) => return Ok((value, before)),
            Some('\\') => value.extend(chars.next()),
            Some(c) => value.push(c),
            None if quoted.is_some() => {
                let message = "unterminated quoted string in connection info string";
                return Err(ConfigError::Syntax(message.to_owned()));
            }
            None => return Ok((value, "")),
        }
    }
}

/// The characters of C's `isspace`.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}
