//! The operating system's user, who determines the default role and the home folder of the user's
//! files.

use std::path::PathBuf;

use super::{ConfigError, Env};

/// The name and home folder of the effective user, from the system's list of accounts.
fn entry() -> Option<(String, PathBuf)> {
    let uid = rustix::process::geteuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        let home = fields.nth(2)?;
        (id.parse() == Ok(uid)).then(|| (name.to_owned(), PathBuf::from(home)))
    })
}

/// The name of the operating system's user. For accounts that aren't in the system's list, it is
/// taken from `LOGNAME` or `USER`.
///
/// # Errors
/// If the name can't be determined.
pub fn name(env: Env<'_>) -> Result<String, ConfigError> {
    entry()
        .map(|(name, _)| name)
        .or_else(|| env("LOGNAME").or_else(|| env("USER")).filter(|name| !name.is_empty()))
        .ok_or_else(|| ConfigError::NoUser(rustix::process::geteuid().as_raw()))
}

/// The user's home folder.
pub(super) fn home(env: Env<'_>) -> Option<PathBuf> {
    match env("HOME") {
        Some(home) if !home.is_empty() => Some(PathBuf::from(home)),
        _ => entry().map(|(_, home)| home),
    }
}
