//! PostgreSQL's own tests of pgbench, with the drop-in in its place.
//!
//! They are run from a source tree of PostgreSQL, by Perl, on the programs of the server of the same
//! version. Not here: comparisons with the real pgbench (`compare.rs`).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use isobench_testkit::folder;
use isobench_testkit::installed::pgbench_of;
use isobench_testkit::user::as_ordinary_user;

/// The fewest tests that a source tree has.
const FEWEST: u32 = 600;

/// The source trees that the environment variable `ISOBENCH_PGBENCH_TESTS` names, in a list like
/// `PATH`.
///
/// # Errors
/// It names none, or Perl has no module for these tests.
pub fn trees() -> Result<Vec<PathBuf>, String> {
    let named = std::env::var_os("ISOBENCH_PGBENCH_TESTS")
        .ok_or("ISOBENCH_PGBENCH_TESTS names no source tree of PostgreSQL")?;
    let perl = Command::new("prove").arg("--version").output();
    let modules = Command::new("perl").args(["-MIPC::Run", "-MTest::More", "-e", "1"]).output();
    if !perl.is_ok_and(|told| told.status.success()) || !modules.is_ok_and(|told| told.status.success()) {
        return Err("there is no prove, or Perl has no IPC::Run (Debian: libipc-run-perl)".to_owned());
    }
    Ok(std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect())
}

/// Runs a tree's tests of pgbench.
///
/// # Errors
/// A test fails, few are run, or there are no programs of the tree's version; the text says which.
pub fn run(tree: &Path) -> Result<(), String> {
    let major = version_of(tree)?;
    let programs = pgbench_of(major)?.server.ok_or_else(|| format!("no server beside pgbench {major}"))?;
    let folder = folder::short();
    let [bin, work] = ["bin", "work"].map(|name| folder.path().join(name));
    for (path, mode) in [(folder.path(), 0o755), (&bin, 0o755), (&work, 0o1777)] {
        fs::create_dir_all(path).expect("a folder");
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    }
    for entry in fs::read_dir(&programs).expect("the programs").flatten() {
        symlink(entry.path(), bin.join(entry.file_name())).expect("a link");
    }
    let (pgbench, isobench) = (bin.join("pgbench"), folder.path().join("isobench"));
    fs::remove_file(&pgbench).expect("the real one's link");
    // The build folder may be inaccessible to other users.
    fs::copy(crate::program::isobench(), &isobench).expect("a copy");
    let wrapper = format!("#!/bin/bash\nexec -a pgbench '{}' --compat {major} \"$@\"\n", isobench.display());
    fs::write(&pgbench, wrapper).expect("a script");
    fs::set_permissions(&pgbench, Permissions::from_mode(0o755)).expect("chmod");

    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("prove");
    command.args(["--verbose", "--norc", "--recurse", "--ext", "pl"]);
    command.arg(tree.join("src/bin/pgbench/t")).current_dir(&work);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
        command.env_remove(name);
    }
    command
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("PERL5LIB", tree.join("src/test/perl"))
        .env("HOME", &work)
        .env("TMPDIR", &work)
        // Before 16 the first, since then the others.
        .env("TESTDIR", &work)
        .env("TESTDATADIR", work.join("data"))
        .env("TESTLOGDIR", work.join("log"))
        // It would set up authentication on Windows.
        .env("PG_REGRESS", "true");
    // A server refuses to be started by root.
    as_ordinary_user(&mut command);
    let output = command.output().map_err(|error| format!("prove: {error}"))?;
    let told = String::from_utf8_lossy(&output.stdout);
    let count = told.lines().find_map(|line| line.split_once(" Tests=")?.1.split(',').next()?.parse().ok());
    if output.status.success() && told.ends_with("Result: PASS\n") && count.unwrap_or(0) >= FEWEST {
        return Ok(());
    }
    let kept = |line: &&str| !line.starts_with("ok ");
    let lines: Vec<&str> = told.lines().filter(kept).collect();
    Err(format!(
        "the tests of {} (version {major}):\n{}\n{}",
        tree.display(),
        lines.join("\n"),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// The major version of a source tree.
fn version_of(tree: &Path) -> Result<u32, String> {
    let configure = tree.join("configure");
    let text = fs::read_to_string(&configure).map_err(|error| format!("{}: {error}", configure.display()))?;
    let version = text.lines().find_map(|line| line.strip_prefix("PACKAGE_VERSION='"));
    let digits = version.and_then(|version| version.split(|c: char| !c.is_ascii_digit()).next());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("{} names no version", configure.display()))
}
