//! Service files: named sets of connection options.
//!
//! Source: PostgreSQL: libpq, The Connection Service File.

use std::path::{Path, PathBuf};

use super::values::Values;
use super::{ConfigError, Env, account};

/// The folders in which packages keep the system-wide file. libpq has one of them compiled in.
const SYSTEM_FOLDERS: [&str; 3] = ["/etc/postgresql-common", "/etc/sysconfig/pgsql", "/etc"];

/// Adds the options of the requested service, if any, except those that are already set.
pub(super) fn apply(values: &mut Values, env: Env<'_>) -> Result<(), ConfigError> {
    let Some(service) = values.given("service").map(str::to_owned).or_else(|| env("PGSERVICE")) else {
        return Ok(());
    };
    let named = values.text("servicefile").or_else(|| env("PGSERVICEFILE"));
    if let Some(path) = named.filter(|path| !path.is_empty()).map(PathBuf::from) {
        let text = read(&path).ok_or_else(|| ConfigError::NoServiceFile(path.clone()))?;
        if apply_group(&text, &path, &service, values)? {
            return Ok(());
        }
    } else if let Some(path) = account::home(env).map(|home| home.join(".pg_service.conf"))
        && let Some(text) = read(&path)
        && apply_group(&text, &path, &service, values)?
    {
        return Ok(());
    }
    let system = env("PGSYSCONFDIR").filter(|folder| !folder.is_empty());
    let folders: Vec<&str> = system.as_deref().map_or(SYSTEM_FOLDERS.to_vec(), |folder| vec![folder]);
    for path in folders.iter().map(|folder| Path::new(folder).join("pg_service.conf")) {
        if let Some(text) = read(&path)
            && apply_group(&text, &path, &service, values)?
        {
            return Ok(());
        }
    }
    Err(ConfigError::NoService(service))
}

fn read(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds the options of one group of a file. Returns true if the group exists.
fn apply_group(text: &str, path: &Path, service: &str, values: &mut Values) -> Result<bool, ConfigError> {
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(group) = line.strip_prefix('[') {
            if inside {
                return Ok(true);
            }
            inside = group.split_once(']').is_some_and(|(name, _)| name == service);
            continue;
        }
        if !inside {
            continue;
        }
        let place = format!("service file \"{}\", line {}", path.display(), index + 1);
        if line.starts_with("ldap") {
            return Err(ConfigError::Syntax(format!("LDAP is not supported by isobench: {place}")));
        }
        let syntax = || ConfigError::Syntax(format!("syntax error in {place}"));
        let (name, value) = line.split_once('=').ok_or_else(syntax)?;
        if name == "service" || name == "servicefile" {
            let message = format!("nested {name} specifications not supported in {place}");
            return Err(ConfigError::Syntax(message));
        }
        values.set_default(name, value).map_err(|_| syntax())?;
    }
    Ok(inside)
}
