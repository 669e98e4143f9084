//! The drop-in beside the real pgbench: both run on the same input against one server, and all
//! visible effects must be equal: output, messages, exit status, logs, the database, and the
//! statements that the server received.
//!
//! The cases are in `cases/*.txt` (the format: `case.rs`); random scripts come from `random.rs`.
//! Differences between two runs of one program are removed by `normal.rs`. Intended differences are
//! in `exceptions.txt`, each with its reason.
//!
//! | environment variable | does |
//! |---|---|
//! | `ISOBENCH_PGBENCH` | paths to real pgbenches, each beside the programs of its server |
//! | `ISOBENCH_EVERY_CASE` | runs all cases for these versions, such as `15 18`, not just a share |
//! | `ISOBENCH_CASE` | runs the cases whose names contain this |
//! | `ISOBENCH_SHOW` | runs the real program only and prints its results: for writing cases |
//! | `ISOBENCH_RANDOM_SCRIPTS` | number of random scripts |
//! | `ISOBENCH_RANDOM_SEED` | the seed of the first one |
//! | `ISOBENCH_PGBENCH_TESTS` | paths of PostgreSQL's source trees, whose tests of pgbench are run |

mod case;
mod compare;
mod exceptions;
mod normal;
mod program;
mod random;
mod server;
mod state;
mod upstream;

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use isobench_testkit::installed::{pgbench_of, skip};

use crate::case::Case;
use crate::compare::{Verdict, compare, show};
use crate::server::Site;

/// The tables of cases.
const TABLES: &[(&str, &str)] = &[
    ("options", include_str!("cases/options.txt")),
    ("commands", include_str!("cases/commands.txt")),
    ("errors", include_str!("cases/errors.txt")),
    ("gset", include_str!("cases/gset.txt")),
    ("pipelines", include_str!("cases/pipelines.txt")),
    ("retries", include_str!("cases/retries.txt")),
    ("logs", include_str!("cases/logs.txt")),
    ("connections", include_str!("cases/connections.txt")),
    ("initialization", include_str!("cases/initialization.txt")),
];

/// The share of cases that runs for a version, and the first of them: most have nothing to do with
/// versions, but all take time.
const ONE_IN: &[(u32, usize, usize)] = &[(15, 3, 0), (16, 9, 1), (18, 9, 2)];

/// Number of concurrent cases; each is two programs.
const WORKERS: usize = 4;

#[test]
fn is_like_pgbench_15() {
    check("is_like_pgbench_15", 15);
}

#[test]
fn is_like_pgbench_16() {
    check("is_like_pgbench_16", 16);
}

#[test]
fn is_like_pgbench_18() {
    check("is_like_pgbench_18", 18);
}

/// The versions that no package has which tests could always fetch are compared if the environment
/// names them.
#[test]
fn is_like_other_pgbenches_that_are_named() {
    for version in [17, 19].into_iter().filter(|version| pgbench_of(*version).is_ok()) {
        check("is_like_other_pgbenches_that_are_named", version);
        check_random("is_like_other_pgbenches_that_are_named", version, 200);
    }
}

#[test]
fn postgresqls_own_tests_pass() {
    match upstream::trees() {
        Ok(trees) => {
            let failed: Vec<String> = trees.iter().filter_map(|tree| upstream::run(tree).err()).collect();
            assert!(failed.is_empty(), "{}", failed.join("\n"));
        }
        Err(why) => skip("postgresqls_own_tests_pass", &why),
    }
}

#[test]
fn random_scripts_are_like_pgbench_15() {
    check_random("random_scripts_are_like_pgbench_15", 15, 50);
}

#[test]
fn random_scripts_are_like_pgbench_18() {
    check_random("random_scripts_are_like_pgbench_18", 18, 200);
}

/// Compares all cases for a version, if the real program of that version is installed.
fn check(test: &str, version: u32) {
    let cases = TABLES.iter().flat_map(|(name, text)| case::read(name, text));
    let cases = cases.filter(|case| case.versions.contains(&version));
    let wanted = std::env::var("ISOBENCH_CASE").ok();
    let every = std::env::var("ISOBENCH_EVERY_CASE").unwrap_or_default();
    let is_whole = every.split_whitespace().any(|of| of == version.to_string());
    let share = ONE_IN.iter().find(|(of, ..)| *of == version && !is_whole);
    let is_wanted = |(index, case): &(usize, Case)| match (&wanted, share) {
        (Some(wanted), _) => case.name.contains(wanted),
        (None, Some((_, one_in, first))) => index % one_in == *first || case.is_of_versions(),
        (None, None) => true,
    };
    let cases: Vec<Case> = cases.enumerate().filter(is_wanted).map(|(_, case)| case).collect();
    check_cases(test, version, &cases);
}

/// Compares this many random scripts, unless the environment asks for another number.
fn check_random(test: &str, version: u32, count: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = number("ISOBENCH_RANDOM_SCRIPTS").unwrap_or(count);
    let first = number("ISOBENCH_RANDOM_SEED").unwrap_or(1);
    let cases: Vec<Case> = (first..first + count).map(|seed| random::case(seed, version)).collect();
    check_cases(test, version, &cases);
}

fn check_cases(test: &str, version: u32, cases: &[Case]) {
    let pgbench = match pgbench_of(version) {
        Ok(pgbench) if pgbench.server.is_some() => pgbench,
        Ok(pgbench) => return skip(test, &format!("no server beside {}", pgbench.program.display())),
        Err(why) => return skip(test, &why),
    };
    let site = Site::start(pgbench);
    let bad = run_all(&site, cases);
    assert!(bad.is_empty(), "{} of {} cases:\n{}", bad.len(), cases.len(), bad.join("\n"));
}

/// Runs all cases, a few at a time, and returns the differences, in the order of the cases. A case
/// that differs is run again, alone, so that only reproducible differences are reported.
fn run_all(site: &Site, cases: &[Case]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let bad = Mutex::new(Vec::new());
    let work = || {
        while let Some((index, case)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            cases.get(index).map(|case| (index, case))
        } {
            if examine(site, case).is_some() {
                bad.lock().expect("no worker has panicked").push(index);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let mut bad = bad.into_inner().expect("no worker has panicked");
    bad.sort_unstable();
    let again = |index: usize| {
        let case = &cases[index];
        let mut why = (0..AGAIN).map(|_| examine(site, case));
        let last = why.try_fold(String::new(), |_, why| why)?;
        Some(format!("{}{last}", heading(site, case)))
    };
    bad.into_iter().filter_map(again).collect()
}

/// Number of repetitions of a case that differs.
const AGAIN: usize = 2;

/// Returns a description of a case.
fn heading(site: &Site, case: &Case) -> String {
    let mut text = format!("== {} (pgbench {})\n  {}\n", case.name, site.pgbench.major, case.options);
    for (name, script) in &case.files {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  --- {name}\n{script}  ---");
    }
    text
}

/// Returns the difference in a case, if there is one.
fn examine(site: &Site, case: &Case) -> Option<String> {
    if std::env::var_os("ISOBENCH_SHOW").is_some() {
        let (text, wrong) = show(site, case);
        println!("{}{text}", heading(site, case));
        return wrong;
    }
    match compare(site, case) {
        Verdict::Equal if exceptions::exist(case) => Some("  equal, but an exception".to_owned()),
        Verdict::Equal => None,
        Verdict::NotAsSaid(why) => Some(why),
        Verdict::Different(aspects, _) if exceptions::are_known(case, &aspects) => None,
        Verdict::Different(_, report) => Some(report),
    }
}
