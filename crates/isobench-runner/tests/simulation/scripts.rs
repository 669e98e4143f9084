//! Meta-commands and results from a script's point of view.

use isobench_runner::{AbortCause, BranchRecord, CommandPlace, Protocol, Unfinished};
use isobench_testkit::simulated::Answer;

use crate::harness::{Case, RunResult, at, millis};

/// Runs a script against a server that knows a few queries.
fn run(script: &str, protocol: Protocol) -> RunResult {
    let mut case = Case::new(script).protocol(protocol);
    case.settings.answers = vec![
        ("single", Answer::row(&[("a", Some("7")), ("b", Some("x"))])),
        ("three", Answer::column("a", &["1", "2", "3"])),
        ("none", Answer::column("a", &[])),
        ("null", Answer::row(&[("a", None)])),
        ("odd", Answer::column("?column?", &["1"])),
    ];
    case.run()
}

/// The last statement that the server received, in every protocol.
fn last(script: &str) -> String {
    let texts = Protocol::ALL.map(|protocol| {
        let ran = run(script, protocol);
        assert_eq!(ran.aborts(), [], "{protocol:?}");
        (*ran.truth.texts(0).last().expect("a statement")).to_owned()
    });
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    texts[0].clone()
}

/// The place and reason of a script's end, the same in every protocol.
fn problem(script: &str) -> (CommandPlace, AbortCause) {
    let problems = Protocol::ALL.map(|protocol| {
        let ran = run(script, protocol);
        assert_eq!(ran.ledger.attempts.errored, 1);
        ran.abort()
    });
    assert!(problems.iter().all(|problem| *problem == problems[0]), "{problems:?}");
    problems[0].clone()
}

/// A result that can't be stored, of the first query of the first command.
fn result(problem: &str, name: Option<&str>) -> (CommandPlace, AbortCause) {
    let (problem, name) = (problem.to_owned(), name.map(str::to_owned));
    (at(0, 0, 0), AbortCause::Result { query: 0, problem, name })
}

#[test]
fn gset_stores_the_one_row() {
    assert_eq!(last("SELECT single \\gset\nSELECT :a, :b;\n"), "SELECT 7, x");
    assert_eq!(last("SELECT single \\gset p_\nSELECT :p_a, :p_b;\n"), "SELECT 7, x");
    assert_eq!(run("SELECT null \\gset\nSELECT :a x;\n", Protocol::Simple).truth.texts(0)[1], "SELECT  x");
}

#[test]
fn gset_takes_the_last_statement_and_aset_all() {
    let simple = |script| run(script, Protocol::Simple).truth.texts(0).last().map(|&sql| sql.to_owned());
    assert_eq!(simple("SELECT three\\; SELECT single \\gset\nSELECT :a;\n").as_deref(), Some("SELECT 7"));
    assert_eq!(
        simple("SELECT single\\; SELECT three \\aset\nSELECT :a, :b;\n").as_deref(),
        Some("SELECT 3, x")
    );
    assert_eq!(simple("SELECT single\\; SELECT none \\aset\nSELECT :a;\n").as_deref(), Some("SELECT 7"));
}

#[test]
fn gset_wants_exactly_one_row() {
    assert_eq!(problem("SELECT none \\gset\nSELECT :a;\n"), result("expected one row, got 0", None));
    assert_eq!(problem("SELECT three \\gset\nSELECT :a;\n"), result("expected one row, got 3", None));
    assert_eq!(problem("UPDATE t SET v = 1 \\gset\n"), result("expected one row, got 0", None));
}

#[test]
fn the_query_whose_result_cant_be_stored_is_named() {
    let ran = run("SELECT single\\; SELECT none \\gset\n", Protocol::Simple);
    let problem = "expected one row, got 0".to_owned();
    assert_eq!(ran.abort(), (at(0, 0, 0), AbortCause::Result { query: 1, problem, name: None }));
}

#[test]
fn a_column_must_make_a_variable_name() {
    let odd = result("error storing into variable ?column?", Some("?column?"));
    assert_eq!(problem("SELECT odd \\gset\n"), odd);
    let prefixed = result("error storing into variable p_?column?", Some("p_?column?"));
    assert_eq!(problem("SELECT odd \\aset p_\n"), prefixed);
}

#[test]
fn conditions_choose_one_arm() {
    let script = |value: i64| {
        format!(
            "\\set n {value}\n\\if :n = 1\nSELECT 'first';\n\\elif :n = 2\nSELECT 'second';\n\
             \\elif :n = 3\n\\if true\nSELECT 'inner';\n\\else\nSELECT 'never';\n\\endif\n\\else\n\
             SELECT 'other';\n\\endif\nUPDATE t SET v = :n;\n"
        )
    };
    for (value, arm) in [(1, "first"), (2, "second"), (3, "inner"), (4, "other")] {
        let ran = run(&script(value), Protocol::Simple);
        assert_eq!(ran.truth.texts(0), [format!("SELECT '{arm}'"), format!("UPDATE t SET v = {value}")]);
    }
    let ran = run("\\if false\nSELECT 1;\n\\endif\n", Protocol::Simple);
    assert_eq!((ran.ledger.attempts.committed, ran.truth.texts(0).len()), (1, 0));
}

/// A condition that is true at the first attempt only, and one inside it.
#[test]
fn the_outcomes_of_conditions_are_counted() {
    let script = "\\if :client_id = 0\n\\set client_id 7\n\\elif :client_id = 7\n\\if false\n\\endif\n\\endif\n\
        SELECT 1;\n";
    let branches = |ran: &RunResult| -> Vec<(usize, [u64; 4])> {
        let counts =
            |one: &BranchRecord| (one.command, [one.evaluated, one.held, one.since_held, one.since_failed]);
        ran.outcome.scripts[0].branches.iter().map(counts).collect()
    };
    let ran = Case::new(script).transactions(10).run();
    assert_eq!(branches(&ran), [(0, [10, 1, 9, 0]), (2, [9, 9, 0, 9]), (3, [9, 0, 9, 0])]);
    // Turns are one after the other.
    let mut stage = Case::new(script).stage();
    let ran = stage.run_in_turns(3, millis(20));
    let [(_, [evaluated, held, since, _]), ..] = branches(&ran)[..] else { panic!("{:?}", branches(&ran)) };
    assert_eq!((held, since), (1, evaluated - 1));
    assert!(evaluated > 3);
}

#[test]
fn a_sleep_takes_its_time() {
    for (script, time) in [
        ("\\sleep 3 ms\n", millis(3)),
        ("\\sleep 2500 us\n", std::time::Duration::from_micros(2500)),
        ("\\sleep 2\n", millis(2000)),
        ("\\set n 4\n\\sleep :n ms\n", millis(4)),
        ("\\sleep 1 ms\nSELECT 1;\n\\sleep 1 ms\n", millis(3)),
    ] {
        let ran = run(script, Protocol::Simple);
        assert_eq!(ran.outcome.elapsed, time, "{script}");
        assert_eq!(ran.ledger.attempts.committed, 1);
    }
    let ran = run("\\sleep :n ms\n", Protocol::Simple);
    assert_eq!(
        ran.abort(),
        (at(0, 0, 0), AbortCause::Execution("sleep: undefined variable \"n\"".to_owned()))
    );
}

#[test]
fn debug_reports_its_place() {
    let ran = run("\\set x debug(41 + 1)\n", Protocol::Simple);
    assert_eq!(ran.debugs(), ["debug(script=0,command=1): int 42"]);
}

#[test]
fn an_expression_that_fails_ends_the_client() {
    for (script, command, why) in [
        ("\\set x :nope + 1\n", 0, "undefined variable \"nope\""),
        ("SELECT 1;\n\\set x 1 / 0\n", 1, "division by zero"),
        ("\\if 1 / 0\n\\endif\n", 0, "division by zero"),
    ] {
        let (place, AbortCause::Evaluation(error)) = problem(script) else { panic!("{script}") };
        assert_eq!((place, error.to_string()), (at(0, 0, command), why.to_owned()));
    }
    let name = |command| format!("{command}: invalid variable name: \"a-b\"");
    assert_eq!(problem("\\set a-b 1\n"), (at(0, 0, 0), AbortCause::Assignment(name("set"))));
    assert_eq!(problem("\\setshell a-b echo 1\n"), (at(0, 0, 0), AbortCause::Execution(name("setshell"))));
}

#[test]
fn programs_are_run() {
    assert_eq!(last("\\set n 20\n\\setshell x echo :n\nSELECT :x;\n"), "SELECT 20");
    assert_eq!(last("\\shell true\nSELECT 1;\n"), "SELECT 1");
    for (script, problem) in [
        ("\\shell false\n", "false: could not launch shell command"),
        ("\\setshell x echo word\n", "echo: shell command must return an integer (not \"word\n\")"),
        ("\\setshell x echo :nope\n", "echo: undefined variable \":nope\""),
    ] {
        let ran = run(script, Protocol::Simple);
        assert_eq!(ran.abort(), (at(0, 0, 0), AbortCause::Execution(problem.to_owned())));
    }
}

#[test]
fn a_block_must_be_closed() {
    let ran = run("BEGIN;\nSELECT 1;\n", Protocol::Simple);
    assert_eq!(ran.abort(), (at(0, 0, 2), AbortCause::Unfinished(Unfinished::Block)));
    assert_eq!(ran.ledger.attempts.errored, 1);
}

#[test]
fn an_unset_variable_stays_as_written_or_is_null() {
    let text = |protocol| run("SELECT :nope;\n", protocol).truth.texts(0)[0].to_owned();
    assert_eq!(text(Protocol::Simple), "SELECT :nope");
    assert_eq!(text(Protocol::Extended), "SELECT NULL");
    assert_eq!(text(Protocol::Prepared), "SELECT NULL");
}

#[test]
fn clients_know_their_number() {
    let ran = Case::new("SELECT :client_id;\n").clients(3).run();
    let texts: Vec<&str> = (0..3).map(|client| ran.truth.texts(client)[0]).collect();
    assert_eq!(texts, ["SELECT 0", "SELECT 1", "SELECT 2"]);
}
