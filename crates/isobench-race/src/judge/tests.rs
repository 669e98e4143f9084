//! Each verdict, on outcomes that were made up: item 1 has 5 pieces, and each order takes one.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::ground::Change;
use crate::masks::tests::{Shop, orders as new_orders, shop, stock};

/// What a schedule came to: answers with their exit status, changes.
type Made = (Vec<(i32, &'static str)>, Vec<Change>);

/// A performer that knows what comes of each schedule, by its name.
struct Script {
    shop: Shop,
    made: fn(&str, i64) -> Made,
    settled: u32,
    /// The times that something comes late.
    restless: u32,
}

fn outcome(schedule: &Schedule, (answers, changes): Made) -> Outcome {
    let answer = |(exit, output): &(i32, &str)| Answer {
        exit: *exit,
        output: (*output).to_owned(),
        errors: String::new(),
    };
    let commands = schedule.commands();
    Outcome {
        schedule: schedule.clone(),
        steps: vec![step(0, None)],
        answers: commands.iter().zip(&answers).map(|(command, one)| (*command, answer(one))).collect(),
        changes,
        violated: Vec::new(),
        troubles: Vec::new(),
        pauses: BTreeMap::new(),
        took: Duration::ZERO,
        late: None,
    }
}

fn step(command: usize, error: Option<&str>) -> Step {
    Step {
        command,
        session: 1,
        sql: "UPDATE item SET stock = 4".to_owned(),
        tag: String::new(),
        columns: Vec::new(),
        row: None,
        error: error.map(str::to_owned),
        waited: false,
        ends: false,
        by_process: true,
    }
}

impl Performer for Script {
    fn run(&mut self, schedule: &Schedule, ahead: i64) -> Result<Outcome, RaceError> {
        Ok(outcome(schedule, (self.made)(&schedule.to_string(), ahead)))
    }

    fn run_first(&mut self, schedule: &Schedule) -> Result<Outcome, RaceError> {
        let late = (self.settled < self.restless).then_some(Duration::from_millis(40));
        Ok(Outcome { late, ..self.run(schedule, 0)? })
    }

    fn contents(&self) -> &dyn Contents {
        &self.shop
    }

    fn settle_longer(&mut self, _: Duration) -> bool {
        self.settled += 1;
        self.settled < 3
    }

    fn learn(&mut self, _: &Outcome) {}

    fn fewest(&self, _: usize) -> usize {
        1
    }

    fn settling(&self) -> Settling {
        Settling::default()
    }

    fn settle_as(&mut self, _: Settling) {}

    fn next_second(&mut self, _: &Outcome) {}
}

/// Two orders of item 1, one after the other; the ids of orders follow a sequence.
fn two_orders(schedule: &str, ahead: i64) -> Made {
    let order = |number: i64| format!("{} 1 x NULL", number + ahead);
    match schedule {
        "A" | "B" => (vec![(0, "left 4")], vec![stock("4"), new_orders(&[&order(1)])]),
        _ => {
            let answers = match schedule {
                "A,B" => vec![(0, "left 4"), (0, "left 3")],
                _ => vec![(0, "left 3"), (0, "left 4")],
            };
            (answers, vec![stock("3"), new_orders(&[&order(1), &order(2)])])
        }
    }
}

const TEXTS: [&str; 2] = ["order", "order"];

fn judged(made: Made, change: impl Fn(&mut Outcome)) -> (Verdict, String) {
    let mut script = Script { shop: shop(), made: two_orders, settled: 0, restless: 0 };
    let mut judge = Judge::new(&TEXTS.map(str::to_owned), &mut script, None).expect("serial orders");
    let mut outcome = outcome(&Schedule::split(0, 1, &[1]), made);
    change(&mut outcome);
    judge.judge(&outcome, &mut script).expect("a verdict")
}

fn verdict(answers: [(i32, &'static str); 2], changes: Vec<Change>) -> Verdict {
    judged((answers.to_vec(), changes), |_| {}).0
}

const BOTH: [&str; 2] = ["7 1 x NULL", "9 1 x NULL"];

/// An update in a transaction, or outside of one, and a statement after it that only reads.
#[test]
fn an_answer_that_was_read_after_the_commit_is_explained() {
    let at = |command: usize, sql: &str| Step {
        sql: sql.to_owned(),
        ends: sql == "COMMIT",
        ..step(command, None)
    };
    let (change, read) = ("UPDATE item SET stock = 4", "SELECT stock FROM item");
    let made = || (vec![(0, "left 3"), (0, "left 3")], two_orders("A,B", 0).1);
    for (steps, is_late) in [
        (vec![at(0, change), at(0, "COMMIT"), at(1, change), at(1, "COMMIT"), at(0, read)], true),
        (vec![at(0, change), at(1, change), at(0, read)], true),
        (vec![at(0, change), at(0, "COMMIT"), at(1, read), at(0, read), at(1, change)], false),
        (vec![at(0, read), at(1, change), at(0, change)], false),
        (vec![at(0, change), at(1, change), at(0, read), at(0, "COMMIT")], false),
    ] {
        let (verdict, why) = judged(made(), |outcome| outcome.steps.clone_from(&steps));
        assert_eq!(verdict, Verdict::WrongAnswer);
        assert_eq!(why.contains("A read again after its COMMIT"), is_late, "{why}, {steps:?}");
    }
}

#[test]
fn as_after_an_order_is_serial_whatever_the_ids_are() {
    let changes = vec![stock("3"), new_orders(&BOTH)];
    assert_eq!(verdict([(0, "left 4"), (0, "left 3")], changes.clone()), Verdict::Serial);
    assert_eq!(verdict([(0, "left 3"), (0, "left 4")], changes), Verdict::Serial);
}

#[test]
fn a_lost_update_is_a_wrong_state() {
    let changes = vec![stock("4"), new_orders(&BOTH)];
    assert_eq!(verdict([(0, "left 4"), (0, "left 4")], changes.clone()), Verdict::WrongState);
    // An answer that no order gives is no sign that the application refused.
    assert_eq!(verdict([(0, "left 4"), (0, "left 9")], changes), Verdict::WrongState);
}

#[test]
fn an_answer_that_no_order_gives_is_wrong() {
    let changes = vec![stock("3"), new_orders(&BOTH)];
    let (verdict, why) = judged((vec![(0, "left 4"), (0, "left 4")], changes), |_| {});
    assert_eq!((verdict, why.as_str()), (Verdict::WrongAnswer, "the tables are as after A;B"));
}

#[test]
fn a_failure_as_if_the_command_had_not_been_is_an_error() {
    let changes = vec![stock("4"), new_orders(&["7 1 x NULL"])];
    let made = (vec![(0, "left 4"), (1, "")], changes.clone());
    let (verdict, why) = judged(made, |outcome| {
        outcome.steps.push(step(1, Some("40001 could not serialize")));
        outcome.steps.push(step(1, Some("25P02 current transaction is aborted")));
    });
    assert_eq!((verdict, why.as_str()), (Verdict::Error, "B gets exit 1 (40001)"));
    let made = (vec![(0, "left 4"), (0, "\n[HTTP 500 ]")], changes);
    assert_eq!(judged(made, |_| {}).0, Verdict::Error);
}

#[test]
fn a_refusal_by_the_application_is_declined() {
    let changes = vec![stock("4"), new_orders(&["7 1 x NULL"])];
    let made = (vec![(0, "left 4"), (0, "\n[HTTP 409 ]")], changes.clone());
    assert_eq!(judged(made, |_| {}).0, Verdict::Declined);
    // By another page with status 200, after the server refused a statement.
    let made = (vec![(0, "left 4"), (0, "sorry")], changes);
    let refused = |outcome: &mut Outcome| outcome.steps.push(step(1, Some("40001 could not serialize")));
    assert_eq!(judged(made, refused).0, Verdict::Declined);
}

#[test]
fn a_reader_that_ends_by_rollback_has_not_given_up() {
    let end = |sql: &str| Step { sql: sql.to_owned(), ends: true, ..step(1, None) };
    let read = Step { sql: "SELECT stock FROM item".to_owned(), ..step(1, None) };
    let changes = vec![stock("4"), new_orders(&["7 1 x NULL"])];
    let made = || (vec![(0, "left 4"), (0, "odd")], changes.clone());
    let reads = judged(made(), |outcome| outcome.steps.extend([read.clone(), end("ROLLBACK")])).0;
    assert_eq!(reads, Verdict::WrongState);
    let wrote = judged(made(), |outcome| outcome.steps.extend([step(1, None), end("ROLLBACK;")])).0;
    assert_eq!(wrote, Verdict::Declined);
}

#[test]
fn a_writer_that_refrains_and_says_so_is_declined() {
    let say = |sql: &str| Step { sql: sql.to_owned(), tag: "SELECT 1".to_owned(), ..step(0, None) };
    // B is A here: in serial orders it is A whose steps are known to write.
    let changes = vec![stock("4"), new_orders(&["7 1 x NULL"])];
    let made = || (vec![(0, "another one runs"), (0, "left 4")], changes.clone());
    let refrains = |sql: &str| judged(made(), |outcome| outcome.steps = vec![say(sql), step(1, None)]).0;
    assert_eq!(refrains("SELECT pg_try_advisory_lock(7)"), Verdict::Declined);
    assert_eq!(
        refrains("UPDATE item SET stock = 1 WHERE stock = 7"),
        Verdict::WrongState,
        "it may think it did"
    );
    let usual = (vec![(0, "left 3"), (0, "left 4")], changes.clone());
    let odd = judged(usual, |outcome| outcome.steps = vec![say("SELECT 7 FROM item"), step(1, None)]).0;
    assert_eq!(odd, Verdict::WrongState, "it says that it did");
}

#[test]
fn a_failure_in_other_words_where_the_tables_are_right_is_no_race() {
    fn once(schedule: &str, ahead: i64) -> Made {
        let (mut answers, _) = two_orders("A", ahead);
        if schedule.len() > 1 {
            answers.push((0, "taken\n[HTTP 422 ]"));
        }
        // A refusal leaves an entry of its own.
        (answers, vec![stock("4"), new_orders(&["1 1 x NULL", "2 1 x NULL"][..schedule.len().min(2)])])
    }
    let mut script = Script { shop: shop(), made: once, settled: 0, restless: 0 };
    let mut judge = Judge::new(&TEXTS.map(str::to_owned), &mut script, None).expect("serial orders");
    let mut verdict = |answer: &'static str| {
        let made = (vec![(0, "left 4"), (0, answer)], once("A,B", 0).1);
        let outcome = outcome(&Schedule::split(0, 1, &[1]), made);
        judge.judge(&outcome, &mut script).expect("a verdict").0
    };
    assert_eq!(verdict("it exists\n[HTTP 409 ]"), Verdict::Declined);
    assert_eq!(verdict("oh\n[HTTP 500 ]"), Verdict::Error);
    assert_eq!(verdict("fine\n[HTTP 200 ]"), Verdict::WrongAnswer);
}

#[test]
fn commands_that_fail_alone_are_named() {
    fn fails(schedule: &str, ahead: i64) -> Made {
        let (mut answers, changes) = two_orders(schedule, ahead);
        answers[0] = (0, "no such route\n[HTTP 500 ]");
        (answers, changes)
    }
    let mut script = Script { shop: shop(), made: fails, settled: 0, restless: 0 };
    let judge = Judge::new(&TEXTS.map(str::to_owned), &mut script, None).expect("serial orders");
    let failing: Vec<String> = judge
        .failing()
        .into_iter()
        .map(|(command, answer)| format!("{command} {}", words_of(answer)))
        .collect();
    assert_eq!(failing[0], "0 HTTP 500: no such route");
}

#[test]
fn a_failure_that_leaves_rows_is_partial() {
    let changes = vec![stock("4"), new_orders(&BOTH)];
    let made = (vec![(0, "left 4"), (1, "")], changes);
    let (verdict, why) = judged(made, |_| {});
    // The stock is as after one order, and there are two: one table is wrong either way.
    assert_eq!((verdict, why.as_str()), (Verdict::WrongState, "B gets exit 1"));
    let changes = vec![stock("4"), new_orders(&["7 1 x NULL", "8 2 x NULL"])];
    let (verdict, why) = judged((vec![(0, "left 4"), (1, "")], changes), |_| {});
    assert_eq!((verdict, why.as_str()), (Verdict::Partial, "B gets exit 1, but rows of it stay in orders"));
}

#[test]
fn a_violated_condition_is_a_wrong_state() {
    let changes = vec![stock("3"), new_orders(&BOTH)];
    let made = (vec![(0, "left 4"), (0, "left 3")], changes);
    let (verdict, why) = judged(made, |outcome| outcome.violated = vec!["total".to_owned()]);
    assert_eq!((verdict, why.as_str()), (Verdict::WrongState, "total doesn't hold"));
}

#[test]
fn statements_that_did_not_mix_say_nothing() {
    let changes = vec![stock("3"), new_orders(&BOTH)];
    let made = || (vec![(0, "left 4"), (0, "left 3")], changes.clone());
    let with = |trouble| judged(made(), |outcome| outcome.troubles = vec![trouble]).0;
    assert_eq!(with(Trouble::Stuck(1)), Verdict::NotInterleaved);
    assert_eq!(with(Trouble::Blocked(1)), Verdict::Serial, "locks are the server's");
    assert_eq!(with(Trouble::TimedOut), Verdict::Infeasible);
}

#[test]
fn an_order_that_differs_from_itself_is_refused_with_the_column() {
    fn unstable(schedule: &str, ahead: i64) -> Made {
        let left = if ahead > 0 { "4" } else { "3" };
        (two_orders(schedule, ahead).0, vec![stock(left)])
    }
    let mut script = Script { shop: shop(), made: unstable, settled: 0, restless: 0 };
    let error = Judge::new(&TEXTS.map(str::to_owned), &mut script, None).err().expect("refused");
    assert_eq!(error, RaceError::Unstable { order: "A;B".to_owned(), what: "item.stock".to_owned() });
    assert_eq!(script.settled, 3, "it waits longer first");
}

#[test]
fn an_order_that_ends_differently_each_time_is_refused() {
    fn restless(schedule: &str, ahead: i64) -> Made {
        let (mut answers, changes) = two_orders(schedule, ahead);
        answers[0].0 = i32::from(ahead > 0);
        (answers, changes)
    }
    let mut script = Script { shop: shop(), made: restless, settled: 0, restless: 0 };
    let error = Judge::new(&TEXTS.map(str::to_owned), &mut script, None).err().expect("refused").to_string();
    assert!(error.contains("A exit 0, B exit 0, then A exit 1, B exit 0"), "{error}");
}

#[test]
fn at_another_level_each_order_runs_once_with_what_is_known() {
    let mut script = Script { shop: shop(), made: two_orders, settled: 0, restless: 0 };
    let texts = TEXTS.map(str::to_owned);
    let learnt = Judge::new(&texts, &mut script, None).expect("serial orders").learnt();
    script.made = |schedule, ahead| {
        assert_eq!(ahead, 0, "no order runs again");
        two_orders(schedule, ahead)
    };
    let mut judge = Judge::new(&texts, &mut script, Some(&learnt)).expect("serial orders");
    let made = (vec![(0, "left 4"), (0, "left 3")], vec![stock("3"), new_orders(&BOTH)]);
    let outcome = outcome(&Schedule::split(0, 1, &[1]), made);
    assert_eq!(judge.judge(&outcome, &mut script).expect("a verdict").0, Verdict::Serial, "other ids");
}

#[test]
fn work_after_the_answer_is_waited_for_until_none_comes_late() {
    let mut script = Script { shop: shop(), made: two_orders, settled: 0, restless: 2 };
    Judge::new(&TEXTS.map(str::to_owned), &mut script, None).expect("serial orders");
    assert_eq!(script.settled, 2);
}

#[test]
fn commands_that_send_nothing_are_refused() {
    struct Silent(Shop);
    impl Performer for Silent {
        fn run(&mut self, schedule: &Schedule, _: i64) -> Result<Outcome, RaceError> {
            let mut outcome = outcome(schedule, (vec![(0, "x"), (0, "x")], Vec::new()));
            outcome.steps.clear();
            Ok(outcome)
        }
        fn run_first(&mut self, schedule: &Schedule) -> Result<Outcome, RaceError> {
            self.run(schedule, 0)
        }
        fn contents(&self) -> &dyn Contents {
            &self.0
        }
        fn settle_longer(&mut self, _: Duration) -> bool {
            false
        }
        fn learn(&mut self, _: &Outcome) {}
        fn fewest(&self, _: usize) -> usize {
            0
        }
        fn settling(&self) -> Settling {
            Settling::default()
        }
        fn settle_as(&mut self, _: Settling) {}
        fn next_second(&mut self, _: &Outcome) {}
    }
    let error = Judge::new(&TEXTS.map(str::to_owned), &mut Silent(shop()), None).err().expect("refused");
    assert!(error.is_untried() && error.to_string().contains("(each exit 0: x)"), "{error}");
}
