//! All ordered pairs of pieces of command lines: which of two errors is reported, and which options
//! contradict each other.

use std::fmt::Write as _;

use isobench_testkit::installed::{pgbenches, skip};

use crate::outcome::Line;

/// Pieces that are correct or wrong by themselves, or only in combination.
const PIECES: [&str; 48] = [
    "-i",
    "-c 0",
    "-c 2",
    "-j x",
    "-t 5",
    "-T 6",
    "-l",
    "-S",
    "-n",
    "-q",
    "-v",
    "-C",
    "-r",
    "-s 2",
    "-d x",
    "--debug",
    "-b list",
    "-b s",
    "-b se@0",
    "-f bad.sql",
    "-f many.sql",
    "-f nofile",
    "-M prepared",
    "-M foo",
    "-D a",
    "-D a=1",
    "-I x",
    "-I dt",
    "-F 5",
    "-P 1",
    "-L 5",
    "-R 9",
    "--sampling-rate=0.5",
    "--aggregate-interval=5",
    "--aggregate-interval=7",
    "--log-prefix=x",
    "--progress-timestamp",
    "--max-tries=0",
    "--random-seed=5",
    "--random-seed=foo",
    "--show-script=se",
    "--partition-method=hash",
    "--partitions=3",
    "--exit-on-abort",
    "--help",
    "-x",
    "a b",
    "--c",
];

#[test]
fn pairs_are_pgbench_s() {
    let found = pgbenches();
    if found.is_empty() {
        return skip("pairs_are_pgbench_s", "there is no pgbench to compare with");
    }
    let mut different = String::new();
    let pairs = PIECES.iter().flat_map(|first| PIECES.iter().map(move |second| format!("{first} {second}")));
    for (index, pair) in pairs.filter(|pair| !pair.starts_with("--help")).enumerate() {
        // The versions take turns, each with every piece in either place.
        let pgbench = &found[(index + index / PIECES.len()) % found.len()];
        let line = Line::new(&pair);
        let (ours, theirs) = (line.ours(pgbench.major), line.theirs(pgbench));
        if ours != theirs {
            writeln!(different, "$ {pair} ({})\ntheirs: {theirs}ours:   {ours}", pgbench.major)
                .expect("writes");
        }
    }
    assert!(different.is_empty(), "{different}");
}
