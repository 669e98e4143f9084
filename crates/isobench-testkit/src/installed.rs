//! What is installed here beyond a Rust toolchain, and how a test says that it can't do without.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Says why a test does nothing, past the test runner, which would keep the words of a passing test to itself.
pub fn skip(test: &str, why: &str) {
    // If nobody reads standard error, nobody wants to know.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// The folder with the programs of the installed PostgreSQL, as `pg_config --bindir` tells it.
pub fn postgresql_programs() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// The real pgbench and its major version, 15 to 18: beside the installed server's programs, else in the search path.
///
/// # Errors
/// Says why there is none.
pub fn pgbench() -> Result<(PathBuf, u32), String> {
    let program = postgresql_programs()
        .map(|folder| folder.join("pgbench"))
        .filter(|program| program.is_file())
        .unwrap_or_else(|| PathBuf::from("pgbench"));
    let output = Command::new(&program)
        .arg("--version")
        .output()
        .map_err(|error| format!("there is no pgbench to compare with ({error})"))?;
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = answer.split_once(") ").map_or("", |(_, version)| version);
    let major =
        version.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major @ 15..=18) => Ok((program, major)),
        _ => Err(format!("{} is not of version 15 to 18", answer.trim())),
    }
}
