//! The role that runs copied and recorded SQL on a server of isobench's own: nobody who starts isobench has
//! written that SQL, and a superuser's SQL runs programs and reads files.
//!
//! The role owns what the SQL makes, so that functions, triggers and expressions of indexes run with its
//! rights whoever calls them. Superusers' sessions of isobench's own find nothing but the catalogs by name.

use isobench_pgwire::{ConnectOptions, Connection, Error};

/// The name of the role.
pub const CONFINED: &str = "isobench_recorded";

/// Makes the role. It may make schemas and what is in them. Row security hides no rows from it, as the
/// recorded application's settings of a session aren't part of the scripts.
const ROLE: [&str; 3] = [
    "CREATE ROLE isobench_recorded LOGIN BYPASSRLS",
    "GRANT CREATE, TEMPORARY ON DATABASE postgres TO isobench_recorded",
    "ALTER SCHEMA public OWNER TO isobench_recorded",
];

/// Lets the role set what trying needs, and what plans may vary within sessions: nothing in it reaches
/// files or programs (PostgreSQL 15 manual, "GRANT": ON PARAMETER).
const PARAMETERS: &str = "GRANT SET ON PARAMETER session_replication_role, deadlock_timeout, commit_delay, \
    track_functions, track_io_timing, log_lock_waits, wal_compression TO isobench_recorded";

/// The first version with rights on parameters, as the server has it in `server_version_num`.
const WITH_PARAMETERS: u32 = 150_000;

/// Makes the role on a fresh server, over a superuser's session.
///
/// # Errors
/// The server refuses or is gone.
pub fn make_role(connection: &mut Connection) -> Result<(), Error> {
    for sql in ROLE {
        connection.execute(sql)?;
    }
    let version = connection.value("SELECT pg_catalog.current_setting('server_version_num')")?;
    if version
        .and_then(|version| version.parse::<u32>().ok())
        .is_some_and(|version| version >= WITH_PARAMETERS)
    {
        connection.execute(PARAMETERS)?;
    }
    Ok(())
}

/// The same way to a server as this role.
#[must_use]
pub fn as_role(options: &ConnectOptions) -> ConnectOptions {
    ConnectOptions { user: CONFINED.to_owned(), password: None, ..options.clone() }
}

/// The same way to a server, for a superuser's session that finds nothing of what others have made there
/// unless it is named with its schema.
#[must_use]
pub fn in_catalogs(options: &ConnectOptions) -> ConnectOptions {
    ConnectOptions { options: Some("-csearch_path=pg_catalog".to_owned()), ..options.clone() }
}
