//! Settings of a whole server that are changed for a while, and put back (PostgreSQL manual, "ALTER SYSTEM").

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use isobench_pgwire::{ConnectOptions, Connection};

use crate::error::Error;
use crate::quoting::{identifier, literal};

/// The pause between two looks whether it has.
const PAUSE: Duration = Duration::from_millis(10);

/// What was changed on a server, and what was there before. It is put back on drop, too.
#[derive(Debug)]
pub struct AlteredSettings {
    options: ConnectOptions,
    /// What stood in `postgresql.auto.conf`, by name; `None`: nothing.
    before: BTreeMap<String, Option<String>>,
    /// What stands there now.
    now: BTreeMap<String, String>,
}

impl AlteredSettings {
    /// Nothing is changed yet on the server to which these options lead.
    pub fn new(options: ConnectOptions) -> AlteredSettings {
        AlteredSettings { options, before: BTreeMap::new(), now: BTreeMap::new() }
    }

    /// Sets these, and waits until new sessions have them. What is set already is left alone.
    ///
    /// # Errors
    /// The server refuses a value, or to say what was there before, or is gone.
    pub fn set(&mut self, settings: &BTreeMap<String, String>) -> Result<(), Error> {
        let due = |(name, value): &(&String, &String)| self.now.get(*name) != Some(value);
        let due: Vec<(String, String)> =
            settings.iter().filter(due).map(|(name, value)| (name.clone(), value.clone())).collect();
        if due.is_empty() {
            return Ok(());
        }
        let mut connection = Connection::open(&self.options)?;
        for (name, value) in due {
            if !self.before.contains_key(&name) {
                let before = in_file(&mut connection, &name)?;
                self.before.insert(name.clone(), before);
            }
            let query = format!("ALTER SYSTEM SET {} = {}", identifier(&name), literal(&value));
            if let Err(error) = connection.execute(&query) {
                // Refused, so that there is nothing to put back, unless the answer was lost.
                if !self.now.contains_key(&name) && !error.is_connection_lost() {
                    self.before.remove(&name);
                }
                return Err(Error::of(error, &query));
            }
            self.now.insert(name, value);
        }
        self.reload(connection)
    }

    /// Puts everything back as it was.
    ///
    /// # Errors
    /// The server refuses or is gone; the message says what to do by hand.
    pub fn restore(&mut self) -> Result<(), Error> {
        if self.before.is_empty() {
            return Ok(());
        }
        let mut connection = Connection::open(&self.options)?;
        while let Some((name, before)) = self.before.first_key_value() {
            let query = undo(name, before.as_deref());
            connection.execute(&query).map_err(|error| Error::of(error, &query))?;
            let name = name.clone();
            self.before.remove(&name);
            self.now.remove(&name);
        }
        self.reload(connection)
    }

    /// The statements that put everything back, for a person.
    pub fn by_hand(&self) -> Vec<String> {
        self.before.iter().map(|(name, before)| undo(name, before.as_deref())).collect()
    }

    /// Lets the server read its configuration, and waits until new sessions have it.
    fn reload(&self, mut connection: Connection) -> Result<(), Error> {
        const LOADED: &str = "SELECT pg_catalog.pg_conf_load_time()";
        let ask = |connection: &mut Connection, query: &str| {
            connection.value(query).map_err(|error| Error::of(error, query))
        };
        let before = ask(&mut connection, LOADED)?;
        ask(&mut connection, "SELECT pg_catalog.pg_reload_conf()")?;
        connection.close();
        let began = Instant::now();
        loop {
            let mut connection = Connection::open(&self.options)?;
            let loaded = ask(&mut connection, LOADED)?;
            connection.close();
            if loaded != before {
                return Ok(());
            }
            if began.elapsed() > LIMITS.reload {
                return Err(Error::NotReloaded { seconds: LIMITS.reload.as_secs() });
            }
            sleep(PAUSE);
        }
    }
}

impl Drop for AlteredSettings {
    fn drop(&mut self) {
        // An error can't be reported any more.
        let _ = self.restore();
    }
}

/// What `postgresql.auto.conf` has for a setting. The server keeps it last, and tells it to superusers.
fn in_file(connection: &mut Connection, name: &str) -> Result<Option<String>, Error> {
    let query = format!(
        "SELECT setting FROM pg_catalog.pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf' \
         AND lower(name) = lower({}) ORDER BY seqno DESC LIMIT 1",
        literal(name)
    );
    connection.value(&query).map_err(|error| Error::of(error, &query))
}

fn undo(name: &str, before: Option<&str>) -> String {
    match before {
        Some(value) => format!("ALTER SYSTEM SET {} = {}", identifier(name), literal(value)),
        None => format!("ALTER SYSTEM RESET {}", identifier(name)),
    }
}
