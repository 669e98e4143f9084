//! What certainly went wrong while a small capture was recorded, and what may have been right.

use isobench_capture::Answer as Answered;
use isobench_pgwire::Connection;
use isobench_replay::{Recorded, read};
use isobench_suspects::{Kind, Live, Screen, render};
use isobench_testkit::capture::{Tape, column, done, row};

use crate::{connect, found, server};

/// A capture of two sessions that is being written.
struct Recording(Tape);

impl Recording {
    fn begin() -> Recording {
        let mut tape = Tape::begin(false);
        tape.open(1, "");
        tape.open(2, "");
        Recording(tape)
    }

    /// A statement of a block with its answer.
    fn send(&mut self, session: u64, sql: &str, answer: Answered) {
        let status = if ["COMMIT", "ROLLBACK"].contains(&sql) { 'I' } else { 'T' };
        self.0.send(session, sql, Vec::new(), vec![answer], status);
    }

    fn command(&mut self, session: u64, sql: &str) {
        let words: Vec<&str> = sql.split(' ').collect();
        let tag = match words[0] {
            "INSERT" => "INSERT 0 1".to_owned(),
            "UPDATE" | "DELETE" => format!("{} 1", words[0]),
            other => other.to_owned(),
        };
        self.send(session, sql, done(&tag));
    }

    /// An item is read, with its stock.
    fn reads(&mut self, session: u64, item: u32, stock: i64) {
        let columns = [column("id", 9, 1, 23), column("name", 9, 2, 25), column("stock", 9, 3, 23)];
        let answer = self.0.rows(&columns, vec![row(&[&item.to_string(), "thing", &stock.to_string()])]);
        self.send(session, &format!("SELECT id, name, stock FROM item WHERE id = {item}"), answer);
    }

    fn writes(&mut self, session: u64, item: u32, stock: i64) {
        self.command(session, &format!("UPDATE item SET stock = {stock} WHERE id = {item}"));
    }

    /// A sale by itself: the stock is read, and one less is written.
    fn sale(&mut self, item: u32, stock: i64) {
        self.command(1, "BEGIN");
        self.reads(1, item, stock);
        self.writes(1, item, stock - 1);
        self.command(1, "COMMIT");
        self.0.pass(5_000_000);
    }

    /// Three sales by themselves, which show what a sale does.
    fn sales() -> Recording {
        let mut one = Recording::begin();
        for stock in [50, 40, 30] {
            one.sale(1, stock);
        }
        one
    }

    /// Two transactions in turn: "1r" is that the first session reads the stock of item 7, "1w8" that it writes 8
    /// there, "1b", "1c" and "1a" are BEGIN, COMMIT and ROLLBACK.
    fn steps(&mut self, steps: &str, stock: i64) {
        for step in steps.split(' ') {
            let (session, does) = step.split_at(1);
            let session = session.parse().expect("a session");
            match does.split_at(1) {
                ("b", _) => self.command(session, "BEGIN"),
                ("c", _) => self.command(session, "COMMIT"),
                ("a", _) => self.command(session, "ROLLBACK"),
                ("r", value) => self.reads(session, 7, value.parse().unwrap_or(stock)),
                ("w", value) => self.writes(session, 7, value.parse().expect("a number")),
                (other, _) => panic!("{other}"),
            }
        }
    }

    fn end(self) -> Recorded {
        read(&self.0.end()[..]).expect("a capture")
    }
}

fn live(connection: &mut Connection, recording: Recording) -> Vec<Live> {
    found(connection, &recording.end()).live
}

#[test]
fn a_change_that_is_overwritten_unseen_is_lost() {
    let Some(server) = server("a_change_that_is_overwritten_unseen_is_lost") else { return };
    let mut connection = connect(&server);
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 2r 1w9 1c 2w9 2c", 10);
    let answer = found(&mut connection, &one.end());
    let [lost] = &answer.live[..] else { panic!("{:#?}", answer.live) };
    assert_eq!((lost.kind, lost.table.as_str()), (Kind::LostUpdate, "item"));
    assert_eq!(lost.row, [("id".to_owned(), "7".to_owned())]);
    let stock = |value: &str| vec![("stock".to_owned(), value.to_owned())];
    assert_eq!(lost.sides.clone().map(|side| side.session), [1, 2]);
    for side in &lost.sides {
        assert_eq!((&side.read, &side.wrote), (&stock("10"), &stock("9")));
    }
    assert_eq!(lost.otherwise, stock("8"));
    let text = render(&answer, Screen { width: 80, database: None, details: false });
    let expected =
        "While this was recorded, 1 change was lost.\n  1.  item id 7: a change of stock is lost\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("it is stock 9; one after the other it would be stock 8"), "{text}");
}

#[test]
fn a_change_that_may_have_been_seen_is_not_accused() {
    let Some(server) = server("a_change_that_may_have_been_seen_is_not_accused") else { return };
    let mut connection = connect(&server);
    for (steps, why) in [
        ("1b 2b 1r 1w9 1c 2r9 2w8 2c", "it was read afterwards"),
        ("1b 2b 1r 2r 1w9 1c 2r9 2w8 2c", "it was read again"),
        ("1b 2b 1r 2r 1w9 1a 2w9 2c", "it was rolled back"),
        ("1b 2b 1r 2r 1w9 1c 2w9 2a", "the second one was rolled back"),
        ("1b 2b 1r 2r 1w10 1c 2w9 2c", "nothing was changed"),
        ("1b 2b 1r 1w9 2r 1c 2w12 2c", "the second one doesn't write one less"),
        ("1b 1r 1w9 1c 2b 2r9 2w8 2c", "one after the other"),
    ] {
        let mut one = Recording::sales();
        one.steps(steps, 10);
        assert_eq!(live(&mut connection, one), [], "{why}");
    }
    // The answer to the read came after the other COMMIT was sent, with another value than that one had read.
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 1w9", 10);
    let at = one.0.at;
    one.steps("2r11", 10);
    one.0.at = at + 20;
    one.steps("1c", 10);
    one.0.pass(1000);
    one.steps("2w10 2c", 10);
    assert_eq!(live(&mut connection, one), [], "it may have been read afterwards");
}

#[test]
fn values_that_are_not_made_of_what_was_read_accuse_nobody() {
    let Some(server) = server("values_that_are_not_made_of_what_was_read_accuse_nobody") else { return };
    let mut connection = connect(&server);
    // One number, whatever was read.
    let mut one = Recording::begin();
    for stock in [50, 40, 30] {
        one.steps("1b 1r 1w9 1c", stock);
        one.0.pass(5_000_000);
    }
    one.steps("1b 2b 1r 2r 1w9 1c 2w9 2c", 10);
    assert_eq!(live(&mut connection, one), []);
    // Too few sales to say what one does.
    let mut one = Recording::begin();
    one.steps("1b 2b 1r 2r 1w9 1c 2w9 2c", 10);
    assert_eq!(live(&mut connection, one), []);
    // Somebody else wrote the old value again.
    let mut one = Recording::sales();
    one.0.open(3, "");
    one.steps("1b 2b 1r 2r 1w9 1c", 10);
    one.steps("3b 3w10 3c 2w9 2c", 10);
    assert_eq!(live(&mut connection, one), []);
    // An UPDATE that found nothing, since it compares what was read.
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 2r 1w9 1c", 10);
    one.send(2, "UPDATE item SET stock = 9 WHERE id = 7", done("UPDATE 0"));
    one.steps("2c", 10);
    assert_eq!(live(&mut connection, one), []);
    // The schema changed meanwhile.
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 2r 1w9 1c 2w9 2c", 10);
    one.0.send(1, "CREATE TEMP TABLE item (id int)", Vec::new(), vec![done("CREATE TABLE")], 'I');
    assert_eq!(live(&mut connection, one), []);
    // A COMMIT without an answer.
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 2r 1w9 1c 2w9", 10);
    one.0.send(2, "COMMIT", Vec::new(), Vec::new(), 'I');
    assert_eq!(live(&mut connection, one), []);
}

/// Each statement commits by itself, as in many frameworks.
#[test]
fn reads_and_writes_of_transactions_of_their_own_are_those_of_a_request() {
    let test = "reads_and_writes_of_transactions_of_their_own_are_those_of_a_request";
    let Some(server) = server(test) else { return };
    let mut connection = connect(&server);
    let alone = |one: &mut Recording, session: u64, value: Option<i64>, stock: i64| {
        let columns = [column("id", 9, 1, 23), column("stock", 9, 3, 23)];
        let answer = one.0.rows(&columns, vec![row(&["7", &stock.to_string()])]);
        let read = ("SELECT id, stock FROM item WHERE id = 7".to_owned(), answer);
        let write = |value| (format!("UPDATE item SET stock = {value} WHERE id = 7"), done("UPDATE 1"));
        let (sql, answer) = value.map_or(read, write);
        one.0.send(session, &sql, Vec::new(), vec![answer], 'I');
    };
    // The second UPDATE is sent before the answer to the first one comes: one of them has waited.
    for at_once in [false, true] {
        let mut one = Recording::begin();
        for stock in [50, 40, 30] {
            alone(&mut one, 1, None, stock);
            alone(&mut one, 1, Some(stock - 1), stock);
            one.0.pass(5_000_000);
        }
        alone(&mut one, 1, None, 10);
        alone(&mut one, 2, None, 10);
        alone(&mut one, 1, Some(9), 10);
        one.0.at -= if at_once { 80 } else { 0 };
        alone(&mut one, 2, Some(9), 10);
        let found = live(&mut connection, one);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].otherwise, [("stock".to_owned(), "8".to_owned())]);
    }
}

/// `SET stock = stock - 1` loses nothing, whatever was read before.
#[test]
fn relative_changes_are_not_accused() {
    let Some(server) = server("relative_changes_are_not_accused") else { return };
    let mut connection = connect(&server);
    let relative = |one: &mut Recording, session: u64| {
        one.command(session, "UPDATE item SET stock = stock - 1 WHERE id = 7");
    };
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 2r", 10);
    relative(&mut one, 1);
    one.steps("1c", 10);
    relative(&mut one, 2);
    one.steps("2c", 10);
    assert_eq!(live(&mut connection, one), [], "both");
    let mut one = Recording::sales();
    one.steps("1b 2b 1r 2r 1w9 1c", 10);
    relative(&mut one, 2);
    one.steps("2c", 10);
    assert_eq!(live(&mut connection, one), [], "the second one");
}

/// COPY into another table says nothing against it, COPY is no doubt.
#[test]
fn a_change_is_lost_while_rows_are_copied() {
    let Some(server) = server("a_change_is_lost_while_rows_are_copied") else { return };
    let mut connection = connect(&server);
    let copied = |sql: &str| {
        let mut one = Recording::sales();
        one.0.open(3, "");
        one.steps("1b 2b 1r 2r 1w9 1c", 10);
        one.0.send(3, sql, Vec::new(), vec![done("COPY 5")], 'I');
        one.steps("2w9 2c", 10);
        one
    };
    assert_eq!(live(&mut connection, copied("COPY line (item, amount) FROM STDIN")).len(), 1);
    assert_eq!(live(&mut connection, copied("DO 'BEGIN UPDATE item SET stock = 10; END'")), []);
}

#[test]
fn amounts_and_whole_rows_are_understood() {
    let Some(server) = server("amounts_and_whole_rows_are_understood") else { return };
    let mut connection = connect(&server);
    let order = |one: &mut Recording, session: u64, stock: i64, amount: i64| {
        one.command(session, &format!("INSERT INTO line (item, amount) VALUES (7, {amount})"));
        one.command(
            session,
            &format!("UPDATE item SET name = 'thing', stock = {} WHERE id = 7", stock - amount),
        );
        one.command(session, "COMMIT");
    };
    let mut one = Recording::begin();
    for (stock, amount) in [(50, 3), (40, 5), (30, 2)] {
        one.steps("1b 1r", stock);
        order(&mut one, 1, stock, amount);
        one.0.pass(5_000_000);
    }
    one.steps("1b 2b 1r 2r", 20);
    order(&mut one, 1, 20, 4);
    order(&mut one, 2, 20, 1);
    let found = live(&mut connection, one);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].sides[0].wrote, [("stock".to_owned(), "16".to_owned())]);
    assert_eq!(found[0].otherwise, [("stock".to_owned(), "15".to_owned())]);
}

/// Two guests of one name, if the application refuses a name that is there.
#[test]
fn a_row_that_two_looked_for_is_there_twice() {
    let Some(server) = server("a_row_that_two_looked_for_is_there_twice") else { return };
    let mut connection = connect(&server);
    let columns = [column("id", 8, 1, 23)];
    let looks = |one: &mut Recording, session: u64, name: &str, there: bool| {
        one.command(session, "BEGIN");
        let rows = if there { vec![row(&["1"])] } else { Vec::new() };
        let answer = one.0.rows(&columns, rows);
        one.send(session, &format!("SELECT id FROM guest WHERE name = '{name}'"), answer);
    };
    let inserts = |one: &mut Recording, session: u64, name: &str| {
        one.command(session, &format!("INSERT INTO guest (name) VALUES ('{name}')"));
        one.command(session, "COMMIT");
    };
    let both = |one: &mut Recording| {
        looks(one, 1, "ann", false);
        looks(one, 2, "ann", false);
        inserts(one, 1, "ann");
        inserts(one, 2, "ann");
    };
    let mut one = Recording::begin();
    both(&mut one);
    assert_eq!(live(&mut connection, one), [], "nothing says that a name that is there is refused");
    let mut one = Recording::begin();
    looks(&mut one, 1, "bob", true);
    one.command(1, "COMMIT");
    one.0.pass(5_000_000);
    both(&mut one);
    let found = live(&mut connection, one);
    let [twice] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(
        (twice.kind, twice.row.as_slice()),
        (Kind::Duplicate, &[("name".to_owned(), "ann".to_owned())][..])
    );
    // Who finds such a name rolls back: once may be by accident.
    for (names, accused) in [(1, 0), (3, 1)] {
        let mut one = Recording::begin();
        for name in 0..names {
            looks(&mut one, 1, &format!("bob {name}"), true);
            one.command(1, "ROLLBACK");
            one.0.pass(5_000_000);
        }
        both(&mut one);
        assert_eq!(live(&mut connection, one).len(), accused, "{names}");
    }
    // One after the other, and code that inserts a name that is there.
    let mut one = Recording::begin();
    looks(&mut one, 1, "bob", true);
    one.command(1, "COMMIT");
    one.0.pass(5_000_000);
    looks(&mut one, 1, "ann", false);
    inserts(&mut one, 1, "ann");
    looks(&mut one, 2, "ann", false);
    inserts(&mut one, 2, "ann");
    assert_eq!(live(&mut connection, one), []);
    let mut one = Recording::begin();
    looks(&mut one, 1, "bob", true);
    inserts(&mut one, 1, "bob");
    one.0.pass(5_000_000);
    both(&mut one);
    assert_eq!(live(&mut connection, one), []);
}
