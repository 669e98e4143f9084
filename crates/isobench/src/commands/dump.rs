//! A dump of a database by `pg_dump`, for tables of isobench's own.
//!
//! Not here: how a dump becomes tables (`isobench_comparison`), and what else a capture needs (`scripts`).

use std::process::{Command, Stdio};

use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::{ConnectOptions, Connection, Given, holds_secret, process_environment};

use crate::output::say;

/// What `pg_dump` is asked for.
const ARGUMENTS: [&str; 5] =
    ["--no-owner", "--no-privileges", "--no-comments", "--inserts", "--rows-per-insert=500"];

/// The same for the schema alone.
const OF_SCHEMA: [&str; 7] = [
    "--schema-only",
    "--no-owner",
    "--no-privileges",
    "--no-comments",
    "--no-tablespaces",
    "--no-publications",
    "--no-subscriptions",
];

/// The settings of its session. What is executed of the dump has backslashes as the SQL standard has them.
const SETTINGS: &str = "-c default_transaction_read_only=on -c standard_conforming_strings=on";

/// Dumps the database of `--copy-from`, which has no more megabytes than the limit; `remedy` begins with the option
/// for that.
///
/// # Errors
/// The connection string is wrong or has a password, the database is too large, or `pg_dump` fails.
pub fn dump(conninfo: &str, limit: u64, remedy: &str) -> Outcome<String> {
    refuse_secret(conninfo)?;
    let given = Given { dbname: Some(conninfo.to_owned()), ..Given::default() };
    let server = ConnectOptions::resolve(&given, &process_environment).map_err(|error| wrong(&error))?;
    let mut connection = Connection::open(&server).map_err(|error| wrong(&error))?;
    let size = connection.value("SELECT pg_database_size(current_database()) / 1000000");
    connection.close();
    let size: u64 = size.map_err(|error| wrong(&error))?.and_then(|size| size.parse().ok()).unwrap_or(0);
    if size > limit {
        return Err(wrong(&format!("the database has {size} MB, more than {remedy}")));
    }
    say(&format!("copying {} by pg_dump ({size} MB)", server.describe()));
    pg_dump(conninfo, &ARGUMENTS)
}

/// Dumps the schema of the database of `--copy-from`, without rows.
///
/// # Errors
/// The connection string has a password, or `pg_dump` fails.
pub fn dump_schema(conninfo: &str) -> Outcome<String> {
    refuse_secret(conninfo)?;
    say("copying the schema by pg_dump");
    pg_dump(conninfo, &OF_SCHEMA)
}

/// `pg_dump` gets the connection string as an argument.
fn refuse_secret(conninfo: &str) -> Outcome {
    if holds_secret(conninfo) {
        return Err(wrong(
            &"other users of this machine can read the password among the arguments of pg_dump; leave it out, and use \
              PGPASSWORD, the password file (~/.pgpass) or a service file",
        ));
    }
    Ok(())
}

fn wrong(error: &dyn std::fmt::Display) -> Failure {
    Failure::setup(format!("--copy-from: {error}"))
}

fn pg_dump(conninfo: &str, arguments: &[&str]) -> Outcome<String> {
    let session = std::env::var("PGOPTIONS").unwrap_or_default();
    let output = Command::new("pg_dump")
        .args(arguments)
        .arg(format!("--dbname={conninfo}"))
        .env("PGOPTIONS", format!("{session} {SETTINGS}"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| wrong(&format!("could not run pg_dump: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(wrong(&format!("pg_dump failed: {}", said.trim())));
    }
    String::from_utf8(output.stdout).map_err(|error| wrong(&error))
}
