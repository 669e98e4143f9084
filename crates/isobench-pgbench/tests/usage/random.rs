//! Random command lines: none makes us panic, and all have the same outcome as with the real
//! pgbench.

use std::fmt::Write as _;

use isobench_script::Prng;
use isobench_testkit::installed::{pgbenches, skip};

use crate::outcome::Line;

/// Words, and starts of words that the next piece completes; `_` is a blank within a word.
const PIECES: [&str; 64] = [
    "-c ",
    "-c",
    "-j ",
    "-t ",
    "-T ",
    "-P ",
    "-s ",
    "-F ",
    "-i ",
    "-l ",
    "-S ",
    "-n",
    "-v ",
    "-r",
    "-C",
    "-q ",
    "-L ",
    "-R ",
    "-D ",
    "-M ",
    "-b ",
    "-f ",
    "-I ",
    "-N ",
    "-d ",
    "-- ",
    "- ",
    "--",
    "-",
    "=",
    "@",
    "0 ",
    "1 ",
    "5",
    "12 ",
    "-1 ",
    "1e1 ",
    "x ",
    "é ",
    "_ ",
    " ",
    "se",
    "tpcb",
    "list ",
    "ok.sql ",
    "nofile ",
    "simple ",
    "hash ",
    "a=b ",
    "dtg ",
    "--max-tries",
    "--log-prefix=",
    "--sampling-rate=.5 ",
    "--aggregate-interval=",
    "--random-seed=",
    "--show-script ",
    "--partition",
    "--partition-method=",
    "--pro",
    "--time ",
    "--exit-on-abort ",
    "--compat",
    "--client",
    "--define ",
];

fn line(rng: &mut Prng) -> Line {
    let length = rng.int_between(1, 9);
    let mut piece = || {
        let last = i64::try_from(PIECES.len()).expect("few") - 1;
        PIECES[usize::try_from(rng.int_between(0, last)).expect("an index")]
    };
    let text: String = (0..length).map(|_| piece()).collect();
    let words = text.split_terminator(' ').map(|word| word.replace('_', " ")).collect();
    Line { env: Vec::new(), words }
}

#[test]
fn no_line_makes_us_panic() {
    let mut rng = Prng::seed(1);
    let mut good = 0;
    for round in 0..20_000 {
        good += usize::from(line(&mut rng).request(15 + round % 5).1.is_ok());
    }
    assert!((100..19_900).contains(&good), "{good} good lines");
}

#[test]
fn random_lines_are_pgbench_s() {
    let found = pgbenches();
    if found.is_empty() {
        return skip("random_lines_are_pgbench_s", "there is no pgbench to compare with");
    }
    let mut rng = Prng::seed(2);
    let mut different = String::new();
    // Without our own option, and without multi-byte characters, of which pgbench names the first
    // byte.
    let kept = |line: &Line| !line.words.iter().any(|word| word.contains("--compat") || word.contains('é'));
    let lines = std::iter::repeat_with(|| line(&mut rng)).filter(kept).take(1200);
    for (index, line) in lines.enumerate() {
        let pgbench = &found[index % found.len()];
        let (ours, theirs) = (line.ours(pgbench.major), line.theirs(pgbench));
        if ours != theirs {
            writeln!(different, "{:?} ({})\ntheirs: {theirs}ours:   {ours}", line.words, pgbench.major)
                .expect("writes");
        }
    }
    assert!(different.is_empty(), "{different}");
}
