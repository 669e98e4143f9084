//! Reports of findings that were made up.

use isobench_race::{CommandReport, Count};

use super::*;

fn step(number: usize, sql: &str, matters: bool) -> StepReport {
    StepReport {
        number,
        command: ["A", "B"][number].to_owned(),
        session: u64::try_from(number).expect("few"),
        sql: sql.to_owned(),
        tag: String::new(),
        columns: vec!["stock".to_owned()],
        row: sql.starts_with("SELECT").then(|| vec![Some("5".to_owned())]),
        error: None,
        waited: false,
        matters,
        ends: sql == "COMMIT",
    }
}

fn answer(command: &str, status: &str) -> AnswerReport {
    AnswerReport {
        command: command.to_owned(),
        status: status.to_owned(),
        output: "{\"left\": 4}".to_owned(),
        errors: String::new(),
        usual: true,
        serial: Vec::new(),
    }
}

fn finding(verdict: Verdict, why: &str, steps: Vec<StepReport>) -> Finding {
    Finding {
        verdict,
        why: why.to_owned(),
        schedule: "A1,B".to_owned(),
        first: 1,
        times: 3,
        repeated: true,
        steps,
        answers: vec![answer("A", "HTTP 200"), answer("B", "HTTP 200")],
        nearest: "A;B".to_owned(),
        differences: vec![Difference {
            table: "item".to_owned(),
            row: "id 1".to_owned(),
            column: "stock".to_owned(),
            here: "4".to_owned(),
            serial: "3".to_owned(),
        }],
    }
}

fn level(name: &str, verdict: Verdict, findings: Vec<Finding>) -> LevelReport {
    LevelReport {
        level: name.to_owned(),
        own: name == "read committed",
        planned: 3,
        tried: 3,
        verdicts: vec![Count { verdict, schedules: 3 }],
        findings,
        ..LevelReport::default()
    }
}

fn report(levels: Vec<LevelReport>) -> Report {
    let command = |name: &str| CommandReport {
        name: name.to_owned(),
        command: "curl -X POST localhost/order".to_owned(),
        statements: 4,
    };
    Report {
        server: "15.18 (Debian)".to_owned(),
        commands: vec![command("A"), command("B")],
        levels,
        ..Report::default()
    }
}

fn rendered(report: &Report, width: usize) -> String {
    render(&Subject { report, database: "shop", problem: None }, width)
}

fn lost_update() -> Vec<StepReport> {
    let read = "SELECT stock FROM item WHERE id = 1";
    let write = "UPDATE item SET stock = 4 WHERE id = 1";
    let all = [(0, read), (1, read), (1, write), (1, "COMMIT"), (0, write), (0, "COMMIT")];
    all.into_iter().map(|(number, sql)| step(number, sql, sql != "COMMIT")).collect()
}

#[test]
fn the_answer_comes_first_and_the_schedule_in_two_columns() {
    let levels = vec![
        level("read committed", Verdict::WrongState, vec![finding(Verdict::WrongState, "", lost_update())]),
        level(
            "serializable",
            Verdict::Error,
            vec![finding(Verdict::Error, "B gets HTTP 500 (40001)", Vec::new())],
        ),
    ];
    let text = rendered(&report(levels), 100);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "2 commands, 4 and 4 statements; 6 schedules in 0.0 s; shop on PostgreSQL 15.18");
    assert_eq!(lines[2], "  This command, run twice at once, RACES at read committed.");
    for expected in [
        "At serializable no race in 3 schedules, but B gets HTTP 500 (40001) in 3 of them",
        "   1 SELECT stock FROM item WHERE id = 1 → 5\n",
        "item.stock (id 1) is 4; after A;B it is 3",
        "  x  read committed   wrong state 3 (the application's own)",
        "  !  serializable     error 3",
        "--schedule A1,B --levels rc",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    assert!(!text.to_lowercase().contains("safe"), "schedules prove nothing");
}

#[test]
fn a_report_fits_on_a_screen_of_any_width() {
    let mut steps = lost_update();
    steps.splice(2..2, (0..60).map(|number| step(1, &format!("SELECT a{number} FROM log"), number % 3 == 0)));
    let one = level("read committed", Verdict::WrongState, vec![finding(Verdict::WrongState, "", steps)]);
    for width in [20, 80, 100, 300] {
        let text = rendered(&report(vec![one.clone()]), width);
        let widest = text.lines().map(unicode_width::UnicodeWidthStr::width).max().unwrap_or_default();
        assert!(text.lines().count() <= LINES, "{}\n{text}", text.lines().count());
        assert!(widest <= width.clamp(WIDTHS.0, WIDTHS.1), "{widest}\n{text}");
        assert!(text.contains("more line") && text.contains("item.stock (id 1) is 4"), "{text}");
    }
}

#[test]
fn statements_elsewhere_are_counted() {
    let mut steps = lost_update();
    steps.splice(2..2, (0..9).map(|number| step(1, &format!("SELECT a{number} FROM log"), false)));
    let one = level("read committed", Verdict::WrongState, vec![finding(Verdict::WrongState, "", steps)]);
    let text = rendered(&report(vec![one]), 100);
    assert!(text.contains("· 9 more") && !text.contains("FROM log"), "{text}");
    assert_eq!(text.matches("COMMIT").count(), 2, "ends of transactions that matter\n{text}");
}

#[test]
fn levels_about_which_nothing_is_known_are_marked() {
    let stuck = level("read committed", Verdict::NotInterleaved, Vec::new());
    let text = rendered(&report(vec![stuck]), 100);
    assert!(text.contains("nothing is known") && text.contains("  ?  read committed"), "{text}");
    let mut none = level("read committed", Verdict::Serial, Vec::new());
    (none.planned, none.tried, none.verdicts) = (0, 0, Vec::new());
    assert!(rendered(&report(vec![none.clone()]), 100).contains("there is no schedule to try"));
    let silent = LevelReport { silent: true, ..none };
    let text = rendered(&report(vec![silent]), 100);
    assert!(text.contains("nothing is known: a command sends no statement"), "{text}");
    assert!(text.contains("  ?  read committed"), "{text}");
    let mut some = level("read committed", Verdict::Serial, Vec::new());
    some.planned = 9;
    some.switches =
        vec![Switches { switches: 1, planned: 2, tried: 2 }, Switches { switches: 2, planned: 7, tried: 1 }];
    let text = rendered(&report(vec![some.clone()]), 100);
    assert!(text.contains("no race in 3 schedules of 9"), "{text}");
    assert!(text.contains("; 2 of 2 with one switch, 1 of 7 with two tried"), "{text}");
    let commands = ["a".to_owned(), "b".to_owned()];
    let partly = line(&report(vec![some, level("serializable", Verdict::Serial, Vec::new())]), &commands);
    assert_eq!(partly, "No race in 6 schedules of 12 at read committed and serializable: a | b\n");
}

#[test]
fn what_did_not_come_again_is_reported_as_such() {
    let once = Finding { repeated: false, ..finding(Verdict::WrongState, "", lost_update()) };
    let text = rendered(&report(vec![level("read committed", Verdict::WrongState, vec![once])]), 200);
    assert!(!text.contains("RACE") && text.contains("schedule A1,B ended with wrong state once"), "{text}");
    assert!(text.contains("  ?  read committed"), "{text}");
}
