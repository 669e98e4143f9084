//! The server's settings that a reader of a result must know: some always, others if they differ
//! from the default.

use std::collections::BTreeMap;

use isobench_pgwire::{Connection, cut};

use crate::database::Database;
use crate::error::Error;
use crate::facts::settings::SettingsSource;
use crate::quoting::literal;

/// The settings found, and the reason if some are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// Name → value with its unit, as `SHOW` prints it.
    pub values: BTreeMap<String, String>,
    /// A sentence for the user, if something is missing.
    pub note: Option<String>,
}

/// Settings that affect speed or conflicts; included even at their defaults.
const ALWAYS: &str = "'autovacuum', 'commit_delay', 'data_checksums', 'deadlock_timeout', \
    'default_transaction_isolation', 'fsync', 'full_page_writes', 'log_lock_waits', 'max_connections', \
    'max_pred_locks_per_page', 'max_pred_locks_per_relation', 'max_pred_locks_per_transaction', \
    'max_wal_size', 'shared_buffers', 'synchronous_commit', 'wal_level', 'wal_sync_method', \
    'yb_enable_read_committed_isolation', 'yb_max_query_layer_retries'";

/// Settings that are never included, as `LIKE` patterns: places, names, languages and log
/// destinations, and those that might contain a secret. What is logged is included, because it
/// costs time.
pub(crate) const NEVER: &str = "'%\\_file', '%\\_directory', '%\\_directories', '%\\_command', \
    '%conninfo%', '%password%', '%passphrase%', 'lc\\_%', 'log\\_line\\_prefix', \
    'log\\_filename', 'log\\_file\\_mode', 'log\\_destination', 'log\\_rotation%', \
    'log\\_truncate%', 'ssl\\_%', 'krb%', 'listen\\_addresses', 'port', 'cluster\\_name', \
    '%timezone%', 'datestyle', 'default\\_text\\_search\\_config', 'application\\_name', \
    'client\\_encoding', 'server\\_encoding', 'search\\_path', 'extra\\_float\\_digits', \
    'is\\_superuser', 'session\\_authorization', 'event\\_source', 'data\\_%\\_mode', \
    'unix\\_socket\\_%', 'bonjour%', 'syslog%', 'primary\\_slot\\_name', 'in\\_hot\\_standby', \
    'server\\_version%', 'external\\_pid\\_file', 'transaction\\_%', \
    'dynamic\\_library\\_path', '%role%'";

/// Where a setting can be set (PostgreSQL manual, view `pg_settings`, column `context`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingScope {
    /// In each session.
    Session,
    /// For the whole server, whose configuration can be read again while it runs.
    Configuration,
    /// For the whole server: at its start, or when a session starts.
    Server,
    /// Nowhere.
    Fixed,
}

/// A setting of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSetting {
    /// Its name.
    pub name: String,
    /// The value to set.
    pub value: String,
    /// The value as the server then shows it.
    pub shown: String,
}

impl SessionSetting {
    /// Sets it in a session.
    ///
    /// # Errors
    /// The server refuses, is gone, or shows another value than before.
    pub(crate) fn apply(&self, conn: &mut Connection) -> Result<(), Error> {
        let shown = try_setting(conn, &self.name, &self.value)?;
        if shown == self.shown {
            return Ok(());
        }
        Err(Error::Setting { name: self.name.clone(), wanted: self.shown.clone(), shown })
    }
}

/// Sets a setting of a session, and returns the value that the server shows then.
///
/// # Errors
/// The server refuses, or is gone.
pub fn try_setting(conn: &mut Connection, name: &str, value: &str) -> Result<String, Error> {
    let query = format!("SELECT pg_catalog.set_config({}, {}, false)", literal(name), literal(value));
    value_of(conn, &query)
}

/// The value of a setting, as the server shows it.
///
/// # Errors
/// There is no such setting, or the server is gone.
pub fn current_setting(conn: &mut Connection, name: &str) -> Result<String, Error> {
    value_of(conn, &format!("SELECT pg_catalog.current_setting({})", literal(name)))
}

fn value_of(conn: &mut Connection, query: &str) -> Result<String, Error> {
    let value = conn.value(query).map_err(|error| Error::of(error, query))?;
    Ok(cut(&value.unwrap_or_default()).into_owned())
}

/// Where a setting can be set; `None` if the server doesn't know it.
///
/// # Errors
/// The server has no such list, or is gone.
pub fn setting_scope(conn: &mut Connection, name: &str) -> Result<Option<SettingScope>, Error> {
    let query = format!("SELECT context FROM pg_catalog.pg_settings WHERE lower(name) = {}", literal(name));
    let context = conn.value(&query).map_err(|error| Error::of(error, &query))?;
    Ok(context.map(|context| match context.as_str() {
        "user" | "superuser" => SettingScope::Session,
        "internal" => SettingScope::Fixed,
        "sighup" => SettingScope::Configuration,
        _ => SettingScope::Server,
    }))
}

/// The names of all settings.
///
/// # Errors
/// The server has no such list, or is gone.
pub fn setting_names(conn: &mut Connection) -> Result<Vec<String>, Error> {
    let query = "SELECT name FROM pg_catalog.pg_settings";
    let rows = conn.query(query).map_err(|error| Error::of(error, query))?.rows;
    Ok(rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
}

/// Reads the settings of the server.
///
/// # Errors
/// The connection is lost. A refusal of the server becomes the note.
pub fn settings(conn: &mut Connection, db: &Database) -> Result<ServerSettings, Error> {
    match db.product.settings {
        SettingsSource::PgSettings => from_query(conn, &pg_settings_query()),
        SettingsSource::Query(query) => from_query(conn, query),
        SettingsSource::Commands(commands) => from_commands(conn, commands),
        SettingsSource::None => Ok(ServerSettings {
            note: Some(format!(
                "isobench doesn't know how to read the settings of this product ({})",
                db.product.name
            )),
            ..ServerSettings::default()
        }),
    }
}

fn pg_settings_query() -> String {
    format!(
        "select name, current_setting(name) from pg_catalog.pg_settings where name in ({ALWAYS}) or \
         (source not in ('default', 'override', 'client', 'session') and setting is distinct from boot_val \
         and context <> 'internal' and not lower(name) like any (array[{NEVER}])) order by name"
    )
}

fn from_query(conn: &mut Connection, query: &str) -> Result<ServerSettings, Error> {
    let rows = match conn.query(query) {
        Ok(rows) => rows.rows,
        Err(error) if error.is_connection_lost() => return Err(Error::of(error, query)),
        Err(error) => {
            return Ok(ServerSettings {
                note: Some(format!("the settings can't be read: {error}")),
                ..ServerSettings::default()
            });
        }
    };
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??, cut(&cells.next().flatten().unwrap_or_default()).into_owned()))
    };
    Ok(ServerSettings { values: rows.into_iter().filter_map(pair).collect(), note: None })
}

fn from_commands(conn: &mut Connection, commands: &[(&str, &str)]) -> Result<ServerSettings, Error> {
    let mut settings = ServerSettings::default();
    for (name, command) in commands {
        match conn.value(command) {
            Ok(value) => {
                settings.values.insert((*name).to_owned(), cut(&value.unwrap_or_default()).into_owned());
            }
            Err(error) if error.is_connection_lost() => return Err(Error::of(error, command)),
            // The setting doesn't exist in this version, or isn't visible to this role.
            Err(error) => {
                settings.note.get_or_insert_with(|| format!("{name} can't be read: {error}"));
            }
        }
    }
    Ok(settings)
}
