//! The real pgbench, where there is one.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::skip;

/// The program of version 15 or newer; `None` after saying why the test is skipped.
pub fn find(test: &str) -> Option<PathBuf> {
    let bindir = Command::new("pg_config").arg("--bindir").output().ok();
    let program = bindir
        .map(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("pgbench"))
        .filter(|program| program.is_file())
        .unwrap_or_else(|| PathBuf::from("pgbench"));
    let Ok(output) = Command::new(&program).arg("--version").output() else {
        skip(test, "there is no pgbench to compare with");
        return None;
    };
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = answer.split_once(") ").map_or("", |(_, version)| version);
    let major =
        version.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| (15..=18).contains(&major)) {
        return Some(program);
    }
    skip(test, &format!("{} is not of version 15 to 18", answer.trim()));
    None
}
