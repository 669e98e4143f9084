//! Features that `isobench run` shares with pgbench besides the summary: logs, reconnecting, errors
//! reported immediately. And its one intended difference: a run without a commit fails.

use std::fs;

use crate::compare::words;
use crate::support::document;
use crate::support::named::Database;
use crate::support::scene::Scene;

/// Conflicts of one kind, in any case.
const CONFLICTS: &str = "do $$ begin raise exception 'made up' using errcode = '40001'; end $$;\n";

const FILES: &[(&str, &str)] = &[
    ("one.sql", "select 1;\n"),
    ("conflicts.sql", CONFLICTS),
    ("fails.sql", "select 1/0;\n"),
    ("taken.sql", TAKEN),
];

/// A row that is taken in each transaction's first attempt.
const TAKEN: &str =
    "begin;\ndo $$ begin if :attempt < 2 then raise unique_violation; end if; end $$;\nend;\n";

fn prepare(test: &str) -> Option<(Database, Scene)> {
    let database = Database::new(test)?;
    let scene = Scene::new();
    for (name, text) in FILES {
        scene.write(name, text);
    }
    Some((database, scene))
}

/// The logs of a run, by name.
fn logs(scene: &Scene) -> Vec<(String, String)> {
    let entries = fs::read_dir(scene.file("")).expect("the scene's folder");
    let mut logs: Vec<(String, String)> = entries
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("log."))
        .map(|name| (name.clone(), scene.read(&name)))
        .collect();
    logs.sort();
    logs
}

#[test]
fn each_worker_writes_a_log() {
    let Some((database, scene)) = prepare("each_worker_writes_a_log") else { return };
    let options = "run -n -f one.sql -c 2 -j 2 -t 10 -l --log-prefix log";
    database.run(&scene, &words(options)).expect(0);
    let logs = logs(&scene);
    let [(first, lines), (second, others)] = &logs[..] else { panic!("{logs:?}") };
    assert_eq!(*second, format!("{first}.1"));
    for (client, lines) in [("0 ", lines), ("1 ", others)] {
        assert_eq!(lines.lines().count(), 10, "{lines}");
        assert!(
            lines.lines().all(|line| line.starts_with(client) && line.split(' ').count() == 6),
            "{lines}"
        );
    }
}

#[test]
fn an_error_that_is_named_is_retried() {
    let Some((database, scene)) = prepare("an_error_that_is_named_is_retried") else { return };
    let run = |options: &str| database.run(&scene, &words(&format!("run -n -f taken.sql -t 10 {options}")));
    run("--max-tries 3").expect(2).says(&["unique_violation"]);
    let finished = run("--max-tries 3 --retry-sqlstate 23505").expect(0);
    finished.prints(&[
        "attempts: 20 started = 10 committed + 10 retried",
        "conflicts: 0 (0.0 % of attempts)",
        "further errors that are retried: 10",
        "23505, at taken.sql:",
    ]);
}

#[test]
fn options_have_the_names_of_compare_and_of_pgbench() {
    let Some((database, scene)) = prepare("options_have_the_names_of_compare_and_of_pgbench") else { return };
    let options = "run -n -w one.sql --clients 2 --levels rc --seed 7 -T 100ms --json out.json";
    database.run(&scene, &words(options)).expect(0).prints(&["number of clients: 2"]);
    let options = "compare -f one.sql --client 2 --isolation rc --random-seed 7 -T 100ms --rounds 1 --warmup 0 --json \
        again.json";
    database.run(&scene, &words(options)).expect(0);
    for file in ["out.json", "again.json"] {
        let plan = &document::read(&scene, file)["plan"];
        assert_eq!((&plan["clients"][0], &plan["seed"], &plan["time"]), (&2.into(), &7.into(), &0.1.into()));
        assert_eq!(plan["levels"][0], "read committed");
    }
}

#[test]
fn a_sample_is_the_seeds() {
    let Some((database, scene)) = prepare("a_sample_is_the_seeds") else { return };
    let options = "run -n -f one.sql -t 50 -l --log-prefix log --sampling-rate 0.2 --random-seed 7";
    let numbers = || {
        database.run(&scene, &words(options)).expect(0);
        let (name, text) = logs(&scene).swap_remove(0);
        fs::remove_file(scene.file(&name)).expect("the log");
        text.lines().filter_map(|line| line.split(' ').nth(1).map(str::to_owned)).collect::<Vec<_>>()
    };
    let sample = numbers();
    assert!((1..50).contains(&sample.len()), "{sample:?}");
    assert_eq!(numbers(), sample);
}

#[test]
fn failures_are_logged_by_kind() {
    let Some((database, scene)) = prepare("failures_are_logged_by_kind") else { return };
    let options = "run -n -f conflicts.sql -t 3 -l --log-prefix log --failures-detailed --max-tries 2";
    database.run(&scene, &words(options)).expect(2);
    let (_, text) = logs(&scene).swap_remove(0);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().all(|line| line.contains(" serialization ") && line.ends_with(" 1")), "{text}");
}

#[test]
fn a_log_that_cannot_be_kept_is_an_error() {
    let Some((database, scene)) = prepare("a_log_that_cannot_be_kept_is_an_error") else { return };
    let finished = database.run(&scene, &words("run -n -f one.sql -t 1 -l --log-prefix no/folder")).expect(1);
    assert_eq!(finished.says(&["could not open logfile \"no/folder."]).stdout, "");
}

#[test]
fn options_of_logs_are_checked() {
    let scene = Scene::new();
    let cases = [
        ("--sampling-rate 0.5", "--log"),
        ("--aggregate-interval 1", "--log"),
        ("--log-prefix x", "--log"),
        ("-l --sampling-rate 0.5 --aggregate-interval 1", "cannot be used with"),
        ("-l --sampling-rate 0", "--sampling-rate: 0 isn't a number above 0 and up to 1"),
        ("-l --sampling-rate 1.5", "--sampling-rate: 1.5 isn't a number above 0 and up to 1"),
        ("-l --aggregate-interval 0", "0 is not in 1.."),
        ("-T 1 -l --aggregate-interval 2", "--aggregate-interval: must not be longer than the duration (-T)"),
        ("--progress-timestamp", "--progress"),
        ("--exit-on-abort --continue-on-error", "cannot be used with"),
        ("--show-script nothing", "no builtin script found for name \"nothing\""),
    ];
    for (options, text) in cases {
        scene.run(&[&["run"], &words(options)[..]].concat()).expect(1).says(&[text]);
    }
}

#[test]
fn each_transaction_can_have_a_connection_at_its_level() {
    let Some((database, scene)) = prepare("each_transaction_can_have_a_connection_at_its_level") else {
        return;
    };
    database.connect().execute("create table seen (pid int, level text)").expect("a table");
    scene.write(
        "seen.sql",
        "insert into seen values (pg_backend_pid(), current_setting('transaction_isolation'));\n",
    );
    let options = "run -n -f seen.sql -c 2 -t 5 -C --isolation serializable";
    database.run(&scene, &words(options)).expect(0).prints(&[
        "average connection time = ",
        "(including reconnection times)",
        "isolation level: serializable\n",
    ]);
    let seen = database.value("select concat_ws(' ', count(distinct pid), min(level), max(level)) from seen");
    assert_eq!(seen, "10 serializable serializable");
}

#[test]
fn nothing_committed_is_no_success() {
    let Some((database, scene)) = prepare("nothing_committed_is_no_success") else { return };
    let said = |options: &str, code: i32| database.run(&scene, &words(options)).expect(code).stderr;
    let failed = "No transaction committed: 3 failed; ";
    assert!(said("run -n -f conflicts.sql -t 3 --max-tries 2", 2).contains(failed));
    assert!(said("run -n -f fails.sql -t 3 --continue-on-error", 2).contains(failed));
    let cut_off = "No transaction committed: 0 failed, 2 were cut off by the end of the run; ";
    assert!(said("run -n -f conflicts.sql -c 2 -T 2 --max-tries 0", 2).contains(cut_off));
    // One commit is enough; the failures are noted.
    let noted = said("run -n -f one.sql -f conflicts.sql -t 20 --random-seed 1", 0);
    assert!(
        noted.starts_with("note: 7 transactions were given up after one try") && noted.lines().count() == 1
    );
}

#[test]
fn errors_and_steps_are_told_as_they_are_met() {
    let Some((database, scene)) = prepare("errors_and_steps_are_told_as_they_are_met") else { return };
    let told = database.run(&scene, &words("run -n -f conflicts.sql -t 1 --max-tries 2 --verbose-errors"));
    told.expect(2).says(&[
        "client 0 got an error in command 0 (SQL) of script 0; ERROR:  made up",
        "client 0 repeats the transaction after the error (try 1/2)",
        "client 0 ends the failed transaction (try 2/2)",
    ]);
    let told = database.run(&scene, &words("run -n -f fails.sql -t 1 --continue-on-error --verbose-errors"));
    let times = told.expect(2).stderr.matches("division by zero").count();
    assert_eq!(times, 1, "an error is told once");
    let told = database.run(&scene, &words("run -n -f one.sql -t 1 --debug"));
    told.expect(0).says(&["client 0 executing script \"one.sql\"", "client 0 sending select 1;"]);
}

#[test]
fn an_abort_can_end_the_run() {
    let Some((database, scene)) = prepare("an_abort_can_end_the_run") else { return };
    // Without the option, the clients that draw the other script would continue for a minute.
    let options = "run -n -f fails.sql -f one.sql -c 4 -T 60 --exit-on-abort";
    database.run(&scene, &words(options)).expect(2).says(&["division by zero", "Run was aborted"]);
}

#[test]
fn a_script_is_shown() {
    let shown = Scene::new().run(&words("run --show-script simple")).expect(0);
    assert!(
        shown.stderr.starts_with("-- simple-update: <builtin: simple update>\n\\set aid "),
        "{}",
        shown.stderr
    );
}
