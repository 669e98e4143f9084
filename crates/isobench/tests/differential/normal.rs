//! Normalizes a program's output by removing the differences between two runs of the same program:
//! times, process ids, names of databases; and, if a case says so, counts and the order of lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::case::Case;
use crate::program::Left;

/// The client's and the server's major version.
static SERVER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^(pgbench \((\d+)), server (\d+)\)$").expect("a pattern"));

/// Patterns and their replacements.
const RULES: &[(&str, &str)] = &[
    // The version's minor number, and suffixes of a distribution or isobench.
    (r"(?m)^pgbench \((PostgreSQL\) )?(\d+)[^,\n]*(, server \d+)?[^\n]*$", "pgbench ($1$2$3)"),
    // Minor releases of one version differ in the long name.
    (r"-c/--clients must", "-c/--client must"),
    // Latencies, rates, times.
    (r"(\d+|-nan|nan|NaN)\.?\d* ms\b", "T ms"),
    (r"tps = \d+\.\d+", "tps = T"),
    (r"avg \d+\.\d+ \(max \d+\.\d+\)", "avg T (max T)"),
    (r"\d+\.\d\d s\b", "T s"),
    (r"tuples \(\d+%\)", "tuples (P%)"),
    // Numbers of processes, transactions and objects.
    (r"\b(Process|process|transaction|relation|database|PID|OID) \d+", "$1 N"),
    (r"(tuple) \(\d+,\d+\)", "$1 (N,N)"),
    // The reason that the server finds depends on the time.
    (r"Reason code: .*", "Reason code"),
    // If the client didn't wait, the server may have noticed it or not.
    (
        r"(?m)^(LOG:  could not send data to client: Broken pipe|FATAL:  connection to client lost)\n(STATEMENT: .*\n)?",
        "",
    ),
    // The query has the same meaning, but another wording.
    (r"LOG:  statement: select .*pg_partitioned_table.*", "LOG:  statement: select how many partitions"),
    // The number of progress lines and their figures depend on the time.
    (r"(?m)^progress: .*$", "$0 progress"),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| RULES.iter().map(|(pattern, with)| (regex(pattern), *with)).collect());

static RECEIVING: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^pgbench: client \d+ receiving\n"));
static COLUMN: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^ +\d+\.\d\d\d\b"));
static PROGRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^(progress: .*) progress\n?"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r"\d+(\.\d+)?|-?NaN|-?nan"));
static BLANKS_AND_NUMBER: LazyLock<Regex> = LazyLock::new(|| regex(r" *\d+(\.\d+)?"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// Returns the aspects of a run that must be equal, by name.
pub fn aspects(left: &Left, case: &Case) -> BTreeMap<String, String> {
    let pid = format!(".{}", left.pid);
    let own = |text: &str| text.replace(&left.database, "DATABASE").replace(&format!("{pid}\""), ".PID\"");
    let mut aspects = BTreeMap::from([
        ("status".to_owned(), format!("{:?}", left.status)),
        ("stdout".to_owned(), words(&own(&left.stdout), case)),
        ("stderr".to_owned(), in_order(&received(&words(&own(&left.stderr), case)), case)),
        ("state".to_owned(), left.state.clone()),
        ("statements".to_owned(), statements(left, case)),
    ]);
    for (name, text) in &left.files {
        let name = name.replace(&pid, ".PID");
        aspects.insert(format!("file {name}"), transaction_log(text, case));
    }
    if case.any_statements || case.any_numbers || may_lose_statements(left, case) {
        aspects.remove("statements");
    }
    if case.any_numbers {
        aspects.remove("state");
    }
    aspects
}

/// Returns whether a client ended with an open pipeline: the server receives the queued statements
/// together with the end of the session, and executes only some of them.
fn may_lose_statements(left: &Left, case: &Case) -> bool {
    let pipelines = case.files.iter().any(|(_, text)| text.contains("\\startpipeline"));
    pipelines && left.stderr.contains(" aborted") && !left.stderr.contains("ERROR:")
}

/// Standard output or error without times.
fn words(text: &str, case: &Case) -> String {
    // The width of the column of latencies is preserved.
    let width = |found: &Captures| format!("{:>1$}", "T", found[0].len());
    let mut text = COLUMN.replace_all(text, width).into_owned();
    for (pattern, with) in COMPILED.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    // The server is named if its minor number is another one, such as that of a release candidate.
    text = SERVER
        .replace_all(&text, |found: &Captures| {
            if found[2] == found[3] { format!("{})", &found[1]) } else { found[0].to_owned() }
        })
        .into_owned();
    if case.any_numbers {
        let width = |found: &Captures| {
            if found[0].starts_with("  ") {
                format!("{:>1$}", "N", found[0].len())
            } else {
                NUMBER.replace(&found[0], "N").into_owned()
            }
        };
        text = BLANKS_AND_NUMBER.replace_all(&text, width).into_owned();
    }
    one_progress_line(&text)
}

/// Every kind of progress line once, without its numbers.
fn one_progress_line(text: &str) -> String {
    let mut kinds: Vec<String> = Vec::new();
    let rest = PROGRESS.replace_all(text, |found: &Captures| {
        let kind = NUMBER.replace_all(&found[1], "N").into_owned();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        String::new()
    });
    kinds.sort();
    let mut all = rest.into_owned();
    for kind in kinds {
        // Writing to a string can't fail.
        let _ = writeln!(all, "{kind}");
    }
    all
}

/// The lines of the text, sorted if their order is random, without duplicates if their number is
/// random.
fn in_order(text: &str, case: &Case) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if case.any_order || case.any_numbers {
        lines.sort_unstable();
    }
    if case.any_numbers {
        lines.dedup();
    }
    lines.join("\n")
}

/// Merges the debug messages on received results, since their number and places depend on the time.
fn received(text: &str) -> String {
    let rest = RECEIVING.replace_all(text, "");
    if rest.len() == text.len() { text.to_owned() } else { format!("{rest}pgbench: client N receiving\n") }
}

/// A transaction log without times: of single transactions, or of intervals, which are merged.
fn transaction_log(text: &str, case: &Case) -> String {
    if case.options.contains("--aggregate-interval") {
        return intervals(text, case);
    }
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(' ').collect();
            // Latency; seconds and microseconds of the end; schedule lag.
            for index in [2, 4, 5].into_iter().chain(case.options.contains("-R").then_some(6)) {
                if let Some(field) = fields.get_mut(index).filter(|field| field.parse::<i64>().is_ok()) {
                    *field = "T";
                }
            }
            fields.join(" ")
        })
        .collect();
    if case.any_numbers {
        lines = lines.iter().map(|line| NUMBER.replace_all(line, "N").into_owned()).collect();
    }
    in_order(&lines.join("\n"), case)
}

/// The number of fields of an interval, and the sum of the transactions if that isn't random.
fn intervals(text: &str, case: &Case) -> String {
    let fields: Vec<usize> = text.lines().map(|line| line.split(' ').count()).collect();
    let fields = fields.iter().max();
    if case.any_numbers {
        return format!("{fields:?} fields");
    }
    let counts = text.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
    format!("{fields:?} fields, {} transactions", counts.sum::<u64>())
}

/// The server's log of the sessions in this database, without process ids.
fn statements(left: &Left, case: &Case) -> String {
    let prefix = format!("{}|", left.database);
    let mut sessions: Vec<(&str, String)> = Vec::new();
    let mut current: Option<usize> = None;
    for line in left.log.lines() {
        if line.starts_with('\t') {
            if let Some(index) = current {
                sessions[index].1.push_str(line);
                sessions[index].1.push('\n');
            }
            continue;
        }
        current = None;
        let Some(rest) = line.strip_prefix(&prefix) else { continue };
        let Some((application, rest)) = rest.split_once('|') else { continue };
        let Some((pid, message)) = rest.split_once('|') else { continue };
        if pid == left.own_session {
            continue;
        }
        let index = sessions.iter().position(|(known, _)| *known == pid).unwrap_or_else(|| {
            sessions.push((pid, format!("session of {application}\n")));
            sessions.len() - 1
        });
        sessions[index].1.push_str(message);
        sessions[index].1.push('\n');
        current = Some(index);
    }
    let mut texts: Vec<String> = sessions.into_iter().map(|(_, text)| text).collect();
    if case.any_order {
        texts.sort();
    }
    let mut text = texts.concat().replace(&left.database, "DATABASE");
    for (pattern, with) in COMPILED.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    text
}

#[test]
fn times_are_taken_out_and_counts_stay() {
    let normal = |text: &str| words(text, &Case::default());
    assert_eq!(
        normal("pgbench (15.18 (Debian 15.18-0+deb12u1), server 18.4)\n"),
        "pgbench (15, server 18)\n"
    );
    assert_eq!(normal("pgbench (19rc1, server 19.0)\n"), "pgbench (19)\n");
    assert_eq!(
        normal("latency average = 0.584 ms\ntps = 17.328767 (x)"),
        "latency average = T ms\ntps = T (x)"
    );
    assert_eq!(
        normal("         0.010           3  select 1.500;"),
        "             T           3  select 1.500;"
    );
    let progress = "progress: 1.0 s, 7.0 tps\nx\nprogress: 2.0 s, 9.1 tps\n";
    assert_eq!(normal(progress), "x\nprogress: N s, N tps\n");
    let counts = Case { any_numbers: true, ..Case::default() };
    assert_eq!(words("processed: 12/12 (1.5%)", &counts), "processed: N/N (N%)");
}

#[test]
fn statements_are_those_of_the_program() {
    let left = Left {
        status: Some(0),
        stdout: String::new(),
        stderr: String::new(),
        files: BTreeMap::new(),
        state: String::new(),
        log: "db_1|pgbench|7|LOG:  statement: select 1\n\t+ 1\ndb_1|own|8|LOG:  x\ndb_2|pgbench|9|LOG:  y\n"
            .to_owned(),
        database: "db_1".to_owned(),
        own_session: "8".to_owned(),
        pid: 1,
    };
    let expected = "session of pgbench\nLOG:  statement: select 1\n\t+ 1\n";
    assert_eq!(statements(&left, &Case::default()), expected);
}
