//! Finds programs installed beyond a Rust toolchain, and reports tests that are skipped without
//! them.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reports why a test is skipped. Writes to standard error directly, because the test runner
/// captures the output of passing tests.
pub fn skip(test: &str, why: &str) {
    // If standard error can't be written, the message isn't needed.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// The program under test: the one in the environment variable `ISOBENCH_PROGRAM`, such as a packaged one, or
/// the one built with the tests.
///
/// # Panics
/// If the variable names no file by an absolute path: tests run in folders of their own.
pub fn program_under_test(built: &str) -> String {
    let Some(named) = std::env::var_os("ISOBENCH_PROGRAM") else { return built.to_owned() };
    let named = named.into_string().expect("ISOBENCH_PROGRAM: a path in UTF-8");
    let path = Path::new(&named);
    assert!(path.is_absolute() && path.is_file(), "ISOBENCH_PROGRAM: {named} is no file by an absolute path");
    named
}

/// The folder with the programs of the installed PostgreSQL, according to `pg_config --bindir`.
pub fn postgresql_programs() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

/// A real pgbench for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealPgbench {
    /// The program.
    pub program: PathBuf,
    /// Its major version, 15 to 19.
    pub major: u32,
    /// The folder with the server's programs of the same installation, if it exists.
    pub server: Option<PathBuf>,
}

impl RealPgbench {
    /// Determines the version of a program.
    ///
    /// # Errors
    /// If it can't be run, or isn't a pgbench of version 15 to 19.
    pub fn ask(program: &Path) -> Result<RealPgbench, String> {
        let output = Command::new(program).arg("--version").output().map_err(|error| {
            format!("there is no pgbench to compare with ({}: {error})", program.display())
        })?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let major = major(&answer)
            .filter(|major| (15..=19).contains(major))
            .ok_or_else(|| format!("{} is not pgbench 15 to 19 ({})", program.display(), answer.trim()))?;
        let folder = program.parent().filter(|folder| folder.join("postgres").is_file());
        let server = folder.filter(|folder| folder.join("initdb").is_file()).map(Path::to_path_buf);
        Ok(RealPgbench { program: program.to_path_buf(), major, server })
    }
}

/// The number after "pgbench (PostgreSQL) ".
fn major(answer: &str) -> Option<u32> {
    let version = answer.strip_prefix("pgbench (PostgreSQL) ")?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// All real pgbenches that can be found, one for each major version, the oldest first: those in the
/// environment variable `ISOBENCH_PGBENCH` (a list of paths like `PATH`), then the one next to the
/// installed server's programs or in the search path.
///
/// # Panics
/// If the variable contains anything but pgbenches, because setting it means that tests must not be
/// skipped.
pub fn pgbenches() -> Vec<RealPgbench> {
    let named = std::env::var_os("ISOBENCH_PGBENCH");
    let mut found = all_named(named.as_deref().unwrap_or_default());
    found.extend(installed());
    found.sort_by_key(|pgbench| pgbench.major);
    found.dedup_by_key(|pgbench| pgbench.major);
    found
}

fn all_named(list: &OsStr) -> Vec<RealPgbench> {
    let named = std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
    named
        .map(|path| RealPgbench::ask(&path).unwrap_or_else(|why| panic!("ISOBENCH_PGBENCH: {why}")))
        .collect()
}

fn installed() -> Result<RealPgbench, String> {
    let beside = postgresql_programs().map(|folder| folder.join("pgbench"));
    RealPgbench::ask(&beside.filter(|program| program.is_file()).unwrap_or_else(|| PathBuf::from("pgbench")))
}

/// The real pgbench of a major version.
///
/// # Errors
/// If there is none.
pub fn pgbench_of(major: u32) -> Result<RealPgbench, String> {
    let found = pgbenches().into_iter().find(|pgbench| pgbench.major == major);
    found
        .ok_or_else(|| format!("there is no pgbench {major} to compare with (ISOBENCH_PGBENCH can name one)"))
}

/// The installed pgbench and its major version, 15 to 18: next to the installed server's programs,
/// or in the search path.
///
/// # Errors
/// The reason that there is none.
pub fn pgbench() -> Result<(PathBuf, u32), String> {
    let found = installed()?;
    match found.major {
        15..=18 => Ok((found.program, found.major)),
        major => Err(format!("the installed pgbench is of version {major}, not of 15 to 18")),
    }
}

/// PostgreSQL's own isolation tester: the one in the environment variable
/// `ISOBENCH_ISOLATIONTESTER`, or the one among the files for building extensions, according to
/// `pg_config --pgxs`.
///
/// # Errors
/// The reason that there is none.
pub fn isolation_tester() -> Result<PathBuf, String> {
    let named = std::env::var_os("ISOBENCH_ISOLATIONTESTER").map(PathBuf::from);
    let installed = || {
        let output = Command::new("pg_config").arg("--pgxs").output().ok()?;
        let makefile = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        Some(makefile.parent()?.parent()?.join("test/isolation/isolationtester"))
    };
    named.or_else(installed).filter(|program| program.is_file()).ok_or_else(|| {
        "there is no isolationtester to compare with (Debian: postgresql-client; ISOBENCH_ISOLATIONTESTER can name one)"
            .to_owned()
    })
}

/// A Python with a module: the one in the environment variable `ISOBENCH_PYTHON`, or `python3`.
///
/// # Errors
/// The reason that there is none.
pub fn python_with(module: &str) -> Result<PathBuf, String> {
    let python = std::env::var_os("ISOBENCH_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let told = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if told.is_ok_and(|told| told.status.success()) {
        return Ok(python);
    }
    Err(format!("{} has no module {module} (ISOBENCH_PYTHON can name one that has)", python.display()))
}

/// A browser and its driver, both of the same version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Browser {
    /// Chromium or a derivative.
    pub chromium: PathBuf,
    /// `ChromeDriver`.
    pub driver: PathBuf,
}

/// The installed Chromium: in the search path, or in the environment variable `ISOBENCH_CHROMIUM`.
///
/// # Errors
/// The missing program.
pub fn chromium() -> Result<Browser, String> {
    let named = std::env::var_os("ISOBENCH_CHROMIUM").map(PathBuf::from);
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let chromium = named
        .filter(|program| program.is_file())
        .or_else(|| names.into_iter().find_map(in_search_path))
        .ok_or("there is no Chromium (Debian: chromium; ISOBENCH_CHROMIUM can name one)")?;
    let driver =
        in_search_path("chromedriver").ok_or("there is no chromedriver (Debian: chromium-driver)")?;
    Ok(Browser { chromium, driver })
}

fn in_search_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major("pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major("pgbench (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(major("psql (PostgreSQL) 18.4\n"), None);
    }

    #[test]
    fn a_missing_program_and_another_one_are_told_apart() {
        let missing = RealPgbench::ask(Path::new("/nowhere/pgbench")).expect_err("nothing is there");
        assert!(missing.starts_with("there is no pgbench"), "{missing}");
        let other = RealPgbench::ask(Path::new("/bin/echo")).expect_err("echo is no pgbench");
        assert!(other.contains("is not pgbench 15 to 19"), "{other}");
    }

    #[test]
    fn an_empty_list_names_nothing() {
        assert_eq!(all_named(OsStr::new("")), []);
    }
}
