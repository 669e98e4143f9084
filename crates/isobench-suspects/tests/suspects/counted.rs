//! Limits that were certainly exceeded while a small capture was recorded, and what may have been right.

use isobench_capture::Answer as Answered;
use isobench_pgwire::Connection;
use isobench_replay::read;
use isobench_suspects::{Kind, Live, Screen, render};
use isobench_testkit::capture::{Tape, column, done, row};

use crate::{connect, found, server};

/// A capture of three sessions that is being written.
struct Recording(Tape);

impl Recording {
    fn begin() -> Recording {
        let mut tape = Tape::begin(false);
        (1..=3).for_each(|session| tape.open(session, ""));
        Recording(tape)
    }

    fn send(&mut self, session: u64, sql: &str, answer: Answered) {
        let status = if ["COMMIT", "ROLLBACK"].contains(&sql) { 'I' } else { 'T' };
        self.0.send(session, sql, Vec::new(), vec![answer], status);
    }

    fn command(&mut self, session: u64, sql: &str) {
        let first = sql.split(' ').next().unwrap_or_default();
        let tag = match first {
            "INSERT" => "INSERT 0 1".to_owned(),
            "UPDATE" | "DELETE" => format!("{first} 1"),
            other => other.to_owned(),
        };
        self.send(session, sql, done(&tag));
    }

    /// Begins, and counts the lines of an item.
    fn counts(&mut self, session: u64, item: u32, lines: u32) {
        self.command(session, "BEGIN");
        let answer = self.0.rows(&[column("count", 0, 0, 20)], vec![row(&[&lines.to_string()])]);
        self.send(session, &format!("SELECT count(*) FROM line WHERE item = {item}"), answer);
    }

    fn inserts(&mut self, session: u64, item: u32) {
        self.command(session, &format!("INSERT INTO line (item, amount) VALUES ({item}, 1)"));
    }

    /// Items that are filled up to three lines, and then refused.
    fn filled(items: u32, refused: u32) -> Recording {
        let mut one = Recording::begin();
        for item in 101..101 + items {
            for lines in 0..3 {
                one.counts(1, item, lines);
                one.inserts(1, item);
                one.command(1, "COMMIT");
                one.0.pass(5_000_000);
            }
            for number in 0..refused {
                one.counts(1, item, 3);
                one.command(1, if number % 2 == 0 { "ROLLBACK" } else { "COMMIT" });
                one.0.pass(5_000_000);
            }
        }
        one
    }

    /// Two requests that count the lines of item 7 before the other one inserts.
    fn both(&mut self, lines: u32) {
        self.counts(1, 7, lines);
        self.counts(2, 7, lines);
        self.inserts(1, 7);
        self.command(1, "COMMIT");
        self.inserts(2, 7);
        self.command(2, "COMMIT");
    }

    /// The doctors on call of a shift.
    fn looks(&mut self, session: u64, shift: u32, doctors: &[u32]) {
        self.command(session, "BEGIN");
        let rows = doctors.iter().map(|id| row(&[&id.to_string(), &shift.to_string()])).collect();
        let answer = self.0.rows(&[column("id", 7, 1, 23), column("shift", 7, 2, 23)], rows);
        self.send(
            session,
            &format!("SELECT id, shift FROM doctor WHERE shift = {shift} AND on_call"),
            answer,
        );
    }

    fn leaves(&mut self, session: u64, doctor: u32) {
        self.command(session, &format!("UPDATE doctor SET on_call = false WHERE id = {doctor}"));
        self.command(session, "COMMIT");
    }

    /// Shifts whose last doctor is refused so often.
    fn shifts(refused: u32) -> Recording {
        let mut one = Recording::begin();
        for shift in 11..15 {
            one.looks(1, shift, &[10 * shift, 10 * shift + 1]);
            one.leaves(1, 10 * shift);
            one.0.pass(5_000_000);
            for _ in 0..refused {
                one.looks(1, shift, &[10 * shift + 1]);
                one.command(1, "COMMIT");
                one.0.pass(5_000_000);
            }
        }
        one
    }
}

fn live(connection: &mut Connection, recording: Recording) -> Vec<Live> {
    found(connection, &read(&recording.0.end()[..]).expect("a capture")).live
}

#[test]
fn a_limit_that_two_counted_up_to_is_exceeded() {
    let Some(server) = server("a_limit_that_two_counted_up_to_is_exceeded") else { return };
    let mut connection = connect(&server);
    let mut one = Recording::filled(3, 1);
    one.both(2);
    let answer = found(&mut connection, &read(&one.0.end()[..]).expect("a capture"));
    let [over] = &answer.live[..] else { panic!("{:#?}", answer.live) };
    assert_eq!((over.kind, over.table.as_str()), (Kind::WriteSkew, "line"));
    assert_eq!(over.row, [("item".to_owned(), "7".to_owned())]);
    assert_eq!(over.sides.clone().map(|side| side.session), [1, 2]);
    assert_eq!(over.otherwise, [("rows".to_owned(), "3".to_owned())]);
    let text = render(&answer, Screen { width: 80, database: None, details: false });
    let expected =
        "While this was recorded, 1 limit was probably exceeded.\n  1.  line item 7: one row too many\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("found 2 rows (line"), "{text}");
    assert!(text.contains("after one of them the other one finds 3"), "{text}");
}

#[test]
fn a_count_without_a_limit_accuses_nobody() {
    let Some(server) = server("a_count_without_a_limit_accuses_nobody") else { return };
    let mut connection = connect(&server);
    let mut check = |why: &str, one: Recording| assert_eq!(live(&mut connection, one), [], "{why}");
    let mut one = Recording::filled(3, 1);
    one.both(1);
    check("three are allowed", one);
    let mut one = Recording::filled(2, 4);
    one.both(2);
    check("too few other items were refused", one);
    let mut one = Recording::filled(3, 0);
    one.both(2);
    check("none was refused", one);
    let mut one = Recording::filled(3, 1);
    one.counts(1, 200, 3);
    one.inserts(1, 200);
    one.command(1, "COMMIT");
    one.0.pass(5_000_000);
    one.both(2);
    check("another item has four", one);
    // All are refused at the end, whatever their count.
    let mut one = Recording::filled(3, 0);
    one.both(2);
    one.0.pass(5_000_000);
    for item in 101..104 {
        one.counts(1, item, 3);
        one.command(1, "COMMIT");
        one.0.pass(5_000_000);
    }
    check("a deadline has passed", one);
    // Half of the requests are refused for another reason, so that three refusals say nothing.
    let mut one = Recording::filled(3, 1);
    for item in 300..303 {
        one.counts(1, item, 2);
        one.command(1, "COMMIT");
        one.0.pass(5_000_000);
    }
    one.both(2);
    check("it may be an accident", one);
}

#[test]
fn requests_that_do_not_exceed_a_limit_together_are_not_accused() {
    let Some(server) = server("requests_that_do_not_exceed_a_limit_together_are_not_accused") else { return };
    let mut connection = connect(&server);
    let mut check = |why: &str, does: &dyn Fn(&mut Recording)| {
        let mut one = Recording::filled(3, 1);
        does(&mut one);
        assert_eq!(live(&mut connection, one), [], "{why}");
    };
    check("another item", &|one| {
        one.counts(1, 7, 2);
        one.counts(2, 8, 2);
        one.inserts(1, 7);
        one.command(1, "COMMIT");
        one.inserts(2, 8);
        one.command(2, "COMMIT");
    });
    check("the lines may be of other requests of the connections", &|one| {
        for session in [1, 2] {
            one.counts(session, 7, 2);
            one.command(session, "COMMIT");
            one.command(session, "BEGIN");
        }
        for session in [1, 2] {
            one.inserts(session, 7);
            one.command(session, "COMMIT");
        }
    });
    check("one was rolled back", &|one| {
        one.counts(1, 7, 2);
        one.counts(2, 7, 2);
        one.inserts(1, 7);
        one.command(1, "ROLLBACK");
        one.inserts(2, 7);
        one.command(2, "COMMIT");
    });
    check("a line was removed, and then counted", &|one| {
        one.counts(1, 7, 2);
        one.inserts(1, 7);
        one.command(1, "COMMIT");
        one.command(3, "BEGIN");
        one.command(3, "DELETE FROM line WHERE item = 7 AND amount = 9");
        one.command(3, "COMMIT");
        one.counts(2, 7, 2);
        one.inserts(2, 7);
        one.command(2, "COMMIT");
    });
    check("a line may have been removed meanwhile", &|one| {
        one.counts(1, 7, 2);
        one.counts(2, 7, 2);
        one.inserts(1, 7);
        one.command(1, "COMMIT");
        one.command(3, "BEGIN");
        one.command(3, "DELETE FROM line WHERE amount = 9");
        one.command(3, "COMMIT");
        one.inserts(2, 7);
        one.command(2, "COMMIT");
    });
    check("the second one counts again, and takes its line back", &|one| {
        one.both(2);
        one.command(2, "DELETE FROM line WHERE item = 7 AND id = 99");
        one.command(2, "COMMIT");
    });
    check("the count came after the other COMMIT was sent", &|one| {
        one.counts(1, 7, 2);
        one.inserts(1, 7);
        let at = one.0.at;
        one.counts(2, 7, 2);
        one.0.at = at + 60;
        one.command(1, "COMMIT");
        one.0.pass(1000);
        one.inserts(2, 7);
        one.command(2, "COMMIT");
    });
}

#[test]
fn the_last_doctors_of_a_shift_leave_together() {
    let Some(server) = server("the_last_doctors_of_a_shift_leave_together") else { return };
    let mut connection = connect(&server);
    let both = |one: &mut Recording, doctors: [u32; 2]| {
        one.looks(1, 7, &[70, 71]);
        one.looks(2, 7, &[70, 71]);
        one.leaves(1, doctors[0]);
        one.leaves(2, doctors[1]);
    };
    let mut one = Recording::shifts(4);
    both(&mut one, [70, 71]);
    let found = live(&mut connection, one);
    let [few] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((few.kind, few.table.as_str()), (Kind::WriteSkew, "doctor"));
    let pair = |column: &str, value: &str| (column.to_owned(), value.to_owned());
    assert_eq!(few.row, [pair("on_call", "t"), pair("shift", "7")]);
    assert_eq!(few.sides[1].wrote, [pair("id", "71"), pair("on_call", "f")]);
    // The same doctor twice, too few refusals, and three that are on call.
    let mut one = Recording::shifts(4);
    both(&mut one, [70, 70]);
    assert_eq!(live(&mut connection, one), [], "one doctor");
    let mut one = Recording::shifts(1);
    both(&mut one, [70, 71]);
    assert_eq!(live(&mut connection, one), [], "who isn't on call can't leave either");
    let mut one = Recording::shifts(4);
    one.looks(1, 7, &[70, 71, 72]);
    one.looks(2, 7, &[70, 71, 72]);
    one.leaves(1, 70);
    one.leaves(2, 71);
    assert_eq!(live(&mut connection, one), [], "one is left");
    // Somebody comes back meanwhile.
    let mut one = Recording::shifts(4);
    one.looks(1, 7, &[70, 71]);
    one.looks(2, 7, &[70, 71]);
    one.leaves(1, 70);
    one.command(3, "BEGIN");
    one.command(3, "UPDATE doctor SET on_call = true WHERE id = 70");
    one.command(3, "COMMIT");
    one.leaves(2, 71);
    assert_eq!(live(&mut connection, one), [], "somebody comes back");
}
