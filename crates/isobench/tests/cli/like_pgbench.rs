//! `isobench run` beside the real pgbench: the same lines up to numbers, and the same state of the
//! database for a seed.

use std::path::Path;
use std::thread;

use isobench_testkit::installed::RealPgbench;

use crate::compare::words;
use crate::support::named::Database;
use crate::support::pgbench;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;

/// Options whose output is compared.
const OPTIONS: &[&str] = &[
    "-t 20",
    "-t 20 -c 2 -j 2",
    "-T 1 -c 2",
    "-t 20 -S",
    "-t 20 -N -M prepared",
    "-t 20 -M extended -n",
    "-t 20 -r",
    "-t 20 -r --max-tries=3",
    "-t 20 -b tpcb-like@3 -b select-only@1",
    "-t 20 -b tpcb-like@3 -b select-only@1 -r --max-tries=2",
    "-t 20 -b tpcb-like -b simple-update@0 --failures-detailed",
    "-t 20 --failures-detailed",
    "-t 20 --failures-detailed --max-tries=5",
    "-t 20 --max-tries=0 -L 1000",
    "-T 1 --max-tries=0",
    "-t 20 -L 500",
    "-t 20 -R 200",
    "-t 20 -R 200 -L 500",
    "-t 20 -b tpcb-like -b se@2 -R 200 -L 500 --failures-detailed",
    "-T 2 -P 1",
    "-T 2 -P 1 -R 50",
    "-T 2 -P 1 -R 50 -L 500 --max-tries=2",
    "-t 20 -f own.sql",
    "-t 20 -f own.sql@2 -f other.sql@3 -r",
    "-t 3 -v",
    "-t 3 -D x=5 -f uses-x.sql",
    "-t 5 -b tpcb-like -b simple-update@0 -b se -R 2000 -L 100 --failures-detailed --max-tries=2 -r",
    "-t 20 -S -R 20000000 -L 0.001",
];

/// The same for runs that end with status 2.
const FAILING: &[&str] = &[
    "-t 5 -c 2 -f fails.sql",
    "-t 5 -f fails.sql --max-tries=2 --failures-detailed -r -L 100 -R 100",
    "-t 5 -f own.sql@0 -f fails.sql@1",
];

const FILES: &[(&str, &str)] = &[
    ("own.sql", "\\set x random(1, 10)\nselect :x;\n"),
    ("other.sql", "begin;\nselect 1\n  as one;\n\\if true\nselect 2; -- two\n\\endif\nend;\n"),
    ("fails.sql", "select 1/0;\n"),
    ("uses-x.sql", "select :x;\n"),
];

/// A database with pgbench's tables.
fn prepare(test: &str) -> Option<(RealPgbench, Database, Scene)> {
    let (pgbench, database) = (pgbench::find(test)?, Database::new(test)?);
    let scene = Scene::new();
    theirs(&scene, &pgbench.program, &database, "-i -q").expect(0);
    for (name, text) in FILES {
        scene.write(name, text);
    }
    Some((pgbench, database, scene))
}

fn theirs(scene: &Scene, pgbench: &Path, database: &Database, options: &str) -> Finished {
    let mut command = scene.program(pgbench, &words(options));
    Running::start(command.args(database.server_options()).arg(&database.name)).finish()
}

/// A line with every number replaced by N, and its blanks collapsed.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut number = false;
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        // A point inside a number belongs to it.
        number = c.is_ascii_digit() || (number && c == '.');
        if !number {
            shape.push(c);
        } else if !shape.ends_with('N') {
            shape.push('N');
        }
    }
    shape
}

/// The column in which a command starts in the report for each command.
fn column(line: &str) -> Option<usize> {
    let is_command = line.starts_with("   ") && line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    is_command.then(|| line.find(|c: char| c.is_ascii_alphabetic() || c == '\\')).flatten()
}

/// The version whose layout `run` has.
const LAYOUT: u32 = 18;

/// Returns whether pgbench 18 changed the layout for runs with these options: the columns of
/// commands, and the lines of several scripts. The other layouts are compared with the strict
/// drop-in's.
fn depends_on_layout(options: &str) -> bool {
    let words = words(options);
    let scripts = words.iter().filter(|word| ["-b", "-f"].contains(word)).count();
    scripts > 1 || words.contains(&"-r")
}

#[test]
fn the_summary_has_pgbenchs_lines() {
    let Some((pgbench, database, scene)) = prepare("the_summary_has_pgbenchs_lines") else { return };
    let mut differences = Vec::new();
    let succeeding = OPTIONS.iter().map(|options| (options, 0));
    let failing = FAILING.iter().map(|options| (options, 2));
    for (options, status) in succeeding.chain(failing) {
        if pgbench.major < LAYOUT && (status != 0 || depends_on_layout(options)) {
            continue;
        }
        // The choice of scripts in a mix must not be random.
        let options = &format!("{options} --random-seed=42");
        // Side by side: some options take seconds.
        let (theirs, ours) = thread::scope(|scope| {
            let theirs = scope.spawn(|| theirs(&scene, &pgbench.program, &database, options));
            let ours = database.run(&scene, &[&["run"], &words(options)[..]].concat());
            (theirs.join().expect("no panic").expect(status), ours.expect(status))
        });
        let different = difference(&theirs, &ours);
        if !different.is_empty() {
            differences.push(format!("{options}\n{different}"));
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// The first line of the summary and the first shape on standard error that differ.
fn difference(theirs: &Finished, ours: &Finished) -> String {
    let mut told = Vec::new();
    let mut our_lines = ours.stdout.lines();
    // pgbench's first line is its version.
    for theirs in theirs.stdout.lines().skip(1) {
        let ours = our_lines.next().unwrap_or_default();
        if (shape(ours), column(ours)) != (shape(theirs), column(theirs)) {
            told.push(format!("  pgbench:  {theirs}\n  isobench: {ours}"));
            break;
        }
    }
    if told.is_empty() && !our_lines.next().is_some_and(|line| line.starts_with("isolation level: ")) {
        told.push("  isobench has another line in front of its own part".to_owned());
    }
    let (theirs, ours) = (said(&theirs.stderr), said(&ours.stderr));
    if theirs != ours {
        told.push(format!("  pgbench says:  {theirs:?}\n  isobench says: {ours:?}"));
    }
    told.join("\n")
}

/// Distinct shapes of the lines on progress and vacuum: the number of progress lines depends on the
/// time.
fn said(stderr: &str) -> Vec<String> {
    let relevant = |line: &&str| line.starts_with("progress: ") || line.starts_with("starting vacuum");
    let mut lines: Vec<String> = stderr.lines().filter(relevant).map(shape).collect();
    lines.dedup();
    lines
}

/// The complete state that a run changes, except for the time stamps.
const STATE: &str = "select concat_ws(' ',
    (select md5(string_agg(t::text, ' ' order by bid)) from pgbench_branches t),
    (select md5(string_agg(t::text, ' ' order by tid)) from pgbench_tellers t),
    (select md5(string_agg(t::text, ' ' order by aid)) from pgbench_accounts t where abalance <> 0),
    (select count(*) || ' ' || md5(string_agg(concat_ws(' ', tid, bid, aid, delta), ',' order by ctid)) from \
    pgbench_history))";

/// Options of runs that leave the same state for the same seed.
const SEEDED: &[&str] = &[
    "-c 1 -t 50",
    "-c 1 -t 50 -M extended",
    "-c 1 -t 50 -M prepared",
    "-c 1 -t 50 -b tpcb-like@2 -b simple-update@1 -b select-only",
    "-c 1 -t 50 -N",
    "-c 1 -t 20 -f zipfian.sql",
];

#[test]
fn a_seed_leads_to_pgbenchs_state() {
    let Some((pgbench, database, scene)) = prepare("a_seed_leads_to_pgbenchs_state") else { return };
    scene.write(
        "zipfian.sql",
        "\\set aid random_zipfian(1, 100000 * :scale, 1.5)\n\
         \\set tid random_exponential(1, 10, 2.5)\n\
         \\set delta random_gaussian(-5000, 5000, 3) + permute(:aid, 100) + hash(:tid) % 7\n\
         begin;\n\
         update pgbench_accounts set abalance = abalance + :delta where aid = :aid;\n\
         insert into pgbench_history (tid, bid, aid, delta, mtime) values (:tid, 1, :aid, :delta, now());\n\
         end;\n",
    );
    let clean = "update pgbench_accounts set abalance = 0 where abalance <> 0; update pgbench_tellers set tbalance = 0;
        update pgbench_branches set bbalance = 0; truncate pgbench_history";
    for options in SEEDED {
        let options = format!("{options} --random-seed=42");
        database.connect().execute(clean).expect("clean tables");
        theirs(&scene, &pgbench.program, &database, &options).expect(0);
        let theirs = database.value(STATE);
        assert!(!theirs.starts_with("0 "), "{theirs}");
        database.connect().execute(clean).expect("clean tables");
        database.run(&scene, &[&["run"], &words(&options)[..]].concat()).expect(0);
        assert_eq!(database.value(STATE), theirs, "{options}");
    }
}
