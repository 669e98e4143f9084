//! Connection URIs: `postgresql://user:password@host:port,host2/dbname?option=value`.
//!
//! Source: PostgreSQL: libpq, Connection URIs.

use super::ConfigError;
use super::error::ELIDED;
use super::keywords::is_secret;
use super::values::Values;

/// The two schemes.
const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// True if a text is intended as a connection URI.
pub(super) fn is_uri(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Parses a connection URI.
pub(super) fn parse(uri: &str) -> Result<Values, ConfigError> {
    let mut values = Values::default();
    let rest = SCHEMES.iter().find_map(|scheme| uri.strip_prefix(scheme)).unwrap_or(uri);
    let rest = user(rest, &mut values)?;
    let rest = hosts(uri, rest, &mut values)?;
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    if let Some(dbname) = path.strip_prefix('/') {
        set(&mut values, "dbname", dbname)?;
    }
    if let Some(query) = query {
        parameters(query, &mut values)?;
    }
    Ok(values)
}

/// The option of a URI that contains a part of what most likely is the password, with an unencoded
/// `@` or `/`.
pub(super) fn misplaced(uri: &str) -> Option<&'static str> {
    let rest = SCHEMES.iter().find_map(|scheme| uri.strip_prefix(scheme))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let hosts = authority.split_once('@').map_or("", |(_, hosts)| hosts);
    // The name of a socket in the abstract namespace starts with an `@`.
    let hosts = hosts.strip_prefix('@').unwrap_or(hosts).split('?').next().unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    if hosts.contains('@') {
        Some("host")
    } else {
        (authority.contains(':') && path.contains('@')).then_some("database")
    }
}

/// Reads `user:password@`, if there is one before the first `/`.
fn user<'a>(rest: &'a str, values: &mut Values) -> Result<&'a str, ConfigError> {
    let authority = rest.split('/').next().unwrap_or_default();
    // Up to the first `@`, which must be percent-encoded in passwords.
    let Some((user, _)) = authority.split_once('@') else {
        return Ok(rest);
    };
    let after = &rest[user.len() + 1..];
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    set(values, "user", name)?;
    set(values, "password", password)?;
    Ok(after)
}

/// Reads the list of hosts and ports; returns the rest, which is empty or starts with `/` or `?`.
fn hosts<'a>(uri: &str, mut rest: &'a str, values: &mut Values) -> Result<&'a str, ConfigError> {
    let mut names = String::new();
    let mut ports = String::new();
    loop {
        let (name, after) = host(uri, rest)?;
        names.push_str(name);
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            let end = after.find(['/', '?', ',']).unwrap_or(after.len());
            ports.push_str(&after[..end]);
            rest = &after[end..];
        }
        let Some(after) = rest.strip_prefix(',') else {
            break;
        };
        names.push(',');
        ports.push(',');
        rest = after;
    }
    set(values, "host", &names)?;
    set(values, "port", &ports)?;
    Ok(rest)
}

/// Reads one host, in brackets if it is an IPv6 address.
fn host<'a>(uri: &str, rest: &'a str) -> Result<(&'a str, &'a str), ConfigError> {
    let syntax = |message: String| Err(ConfigError::Syntax(message));
    // There may be a password before or after.
    let quoted = if uri.contains(['@', '?']) { ELIDED } else { uri };
    let Some(inside) = rest.strip_prefix('[') else {
        let end = rest.find([':', '/', '?', ',']).unwrap_or(rest.len());
        return Ok(rest.split_at(end));
    };
    let Some((address, after)) = inside.split_once(']') else {
        return syntax(format!(
            "end of string reached when looking for matching \"]\" in IPv6 host address in URI: \"{quoted}\""
        ));
    };
    if address.is_empty() {
        return syntax(format!("IPv6 host address may not be empty in URI: \"{quoted}\""));
    }
    match after.chars().next() {
        None | Some(':' | '/' | '?' | ',') => Ok((address, after)),
        Some(c) => {
            let position = uri.len() - after.len() + 1;
            syntax(format!(
                "unexpected character \"{c}\" at position {position} in URI (expected \":\" or \"/\"): \"{quoted}\""
            ))
        }
    }
}

/// Reads `name=value&…`.
fn parameters(query: &str, values: &mut Values) -> Result<(), ConfigError> {
    let mut rest = query;
    while !rest.is_empty() {
        let (pair, after) = rest.split_once('&').unwrap_or((rest, ""));
        rest = after;
        let Some((name, value)) = pair.split_once('=') else {
            let pair = if values.have_secret() { ELIDED } else { pair };
            let message = format!("missing key/value separator \"=\" in URI query parameter: \"{pair}\"");
            return Err(ConfigError::Syntax(message));
        };
        if value.contains('=') {
            let name = if values.have_secret() { ELIDED } else { name };
            let message = format!("extra key/value separator \"=\" in URI query parameter: \"{name}\"");
            return Err(ConfigError::Syntax(message));
        }
        let hide = values.have_secret();
        let name = decode(name, hide)?;
        let value = decode(value, hide || is_secret(&name))?;
        // JDBC's name of the option.
        let (name, value) = match (name.as_str(), value.as_str()) {
            ("ssl", "true") => ("sslmode".to_owned(), "require".to_owned()),
            _ => (name, value),
        };
        values.set(&name, value).map_err(|error| match error {
            ConfigError::UnknownOption(_) if hide => ConfigError::UnknownUriParameter(ELIDED.to_owned()),
            ConfigError::UnknownOption(name) => ConfigError::UnknownUriParameter(name),
            error => error,
        })?;
    }
    Ok(())
}

/// Sets an option from a part of the URI, unless that part is empty.
fn set(values: &mut Values, name: &str, encoded: &str) -> Result<(), ConfigError> {
    if encoded.is_empty() {
        return Ok(());
    }
    // The text after the colon, or before an `@`, may be a password that isn't properly encoded.
    let hide = is_secret(name) || name == "port" || encoded.contains('@');
    values.set(name, decode(encoded, hide)?)
}

/// Resolves percent-encoding. Errors quote the text, unless `hide` is true.
fn decode(encoded: &str, hide: bool) -> Result<String, ConfigError> {
    let quoted = if hide { ELIDED } else { encoded };
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        match (digit(), digit()) {
            (Some(0), Some(0)) => {
                let message = format!("forbidden value %00 in percent-encoded value: \"{quoted}\"");
                return Err(ConfigError::Syntax(message));
            }
            // Two hexadecimal digits fit in a byte.
            (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low)),
            _ => {
                return Err(ConfigError::Syntax(format!("invalid percent-encoded token: \"{quoted}\"")));
            }
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| ConfigError::Syntax(format!("the percent-encoded value is not UTF-8: \"{quoted}\"")))
}
