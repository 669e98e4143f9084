//! An oracle: all interleavings of two transactions, against those in which one is split.

use std::sync::Arc;
use std::time::Duration;

use isobench_database::products::POSTGRESQL;
use isobench_isolation::{Allocation, Level};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_script::{Prng, Symbols, Variables, parse};
use isobench_testkit::installed::{postgresql_programs, skip};

use super::execution::Ending;
use super::outcome::{Judgement, Masks, Outcome};
use super::program::Transaction;
use super::sessions::{Schedule, Sessions};
use super::{Programs, Trying, explore};
use crate::{Opener, Options};

const SETUP: &str = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; \
    CREATE TABLE a (k int PRIMARY KEY, v int NOT NULL); INSERT INTO a VALUES (1, 1), (2, 2); \
    CREATE TABLE l (k int, v int)";

/// A random program of one or two statements that uses what it reads.
fn random_program(random: &mut Prng) -> String {
    let mut text = "\\set x 7\nBEGIN;\n".to_owned();
    for _ in 0..random.int_between(1, 3) {
        let key = random.int_between(1, 2);
        let statement = match random.int_between(0, 7) {
            0 | 1 => format!("SELECT v AS x FROM a WHERE k = {key} \\gset"),
            2 | 3 => format!("UPDATE a SET v = :x + 1 WHERE k = {key};"),
            4 => format!("UPDATE a SET v = v * 2 WHERE k = {key};"),
            5 => format!("UPDATE a SET v = (SELECT sum(v) FROM a) WHERE k = {key};"),
            6 => format!("INSERT INTO l (k, v) VALUES ({key}, :x);"),
            _ => format!("UPDATE a SET v = (SELECT count(*) FROM l) WHERE k = {key};"),
        };
        text.push_str(&statement);
        text.push('\n');
    }
    text + "COMMIT;\n"
}

/// All orders of so many steps of two transactions.
fn merges(first: usize, second: usize) -> Vec<Vec<usize>> {
    if first == 0 && second == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (number, left) in [(0, first), (1, second)] {
        if left > 0 {
            let rest = merges(first - usize::from(number == 0), second - usize::from(number == 1));
            all.extend(rest.into_iter().map(|order| [&[number], order.as_slice()].concat()));
        }
    }
    all
}

/// Trying at these levels until all is tried.
fn trying<'a>(open: &Opener, allocations: &'a [Allocation]) -> Trying<'a> {
    Trying {
        combinations: None,
        open: open.clone(),
        product: &POSTGRESQL,
        allocations,
        budget: Duration::from_mins(10),
        conditions: &[],
        options: Options::default(),
        stopped: &|| false,
    }
}

/// The gravest judgement on all interleavings of two programs.
fn gravest(sessions: &mut Sessions<'_>, pair: [usize; 2]) -> Judgement {
    let transactions = pair.map(Transaction::of);
    let mut run = |schedule: Schedule| {
        let executed = sessions.run(&transactions, &schedule, 0, &[]).expect("a run");
        sessions.put_back(&executed.outcome.delta, 0).expect("tables as before");
        executed
    };
    let orders = [vec![0, 1], vec![1, 0]];
    let serial: Vec<Outcome> =
        orders.iter().map(|order| run(Schedule::Serial(order.clone())).outcome).collect();
    let steps = |number: usize| serial[0].views[number].sent.len();
    let (masks, mut gravest) = (Masks::default(), Judgement::Serial);
    for merge in merges(steps(0), steps(1)) {
        let outcome = run(Schedule::Steps(merge)).outcome;
        if outcome.endings.iter().all(|ending| *ending == Ending::Done) {
            let orders = orders.iter().map(Vec::as_slice).zip(&serial);
            gravest = gravest.max(masks.judge(&outcome, orders));
        }
    }
    gravest
}

/// A server, and how to connect to it; `None`, and the test is skipped, without PostgreSQL.
fn server(test: &str) -> Option<(Server, ConnectOptions, Opener)> {
    let Some(bin) = postgresql_programs().filter(|bin| bin.join("initdb").is_file()) else {
        skip(test, "no PostgreSQL is installed");
        return None;
    };
    let server =
        Server::start(&ServerOptions { bin: Some(bin), ..ServerOptions::default() }, &mut |_| {}).unwrap();
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let direct = options.clone();
    Some((server, options, Arc::new(move |_| Ok(Connection::open(&direct)?))))
}

#[test]
fn four_transactions_meet_if_they_are_asked_for() {
    let Some((_server, options, open)) = server("four_transactions_meet_if_they_are_asked_for") else {
        return;
    };
    let mut connection = Connection::open(&options).unwrap();
    connection.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)").unwrap();
    connection.execute("INSERT INTO t SELECT id, 0 FROM generate_series(1, 4) AS id").unwrap();
    connection.close();
    let mut symbols = Symbols::new();
    let copy =
        |from: u8, to: u8| format!("UPDATE t SET v = (SELECT v FROM t WHERE id = {from}) WHERE id = {to};\n");
    let both = "BEGIN;\nSELECT v AS a FROM t WHERE id = 1 \\gset\nSELECT v AS b FROM t WHERE id = 3 \\gset\n\
                UPDATE t SET v = :a + 10 * :b WHERE id = 4;\nCOMMIT;\n";
    let texts = [both.to_owned(), "UPDATE t SET v = 1 WHERE id = 1;\n".to_owned(), copy(1, 2), copy(2, 3)];
    let names = ["both", "set", "second", "third"];
    let scripts: Vec<_> =
        names.iter().zip(&texts).map(|(name, text)| parse(name, text, &mut symbols).unwrap()).collect();
    let variables = Variables::new(&symbols);
    let programs = Programs::new(&scripts, symbols, variables);
    let combinations = [names.map(str::to_owned).to_vec()];
    let allocations = [Allocation::uniform(Level::ReadCommitted)];
    let trying = Trying { combinations: Some(&combinations), ..trying(&open, &allocations) };
    let found = explore(&programs, &trying).unwrap();
    assert!(found.levels[0].damage.is_some(), "{found:?}");
}

/// A reader of one customer meets a delivery, which takes the oldest order, whoever's that is.
#[test]
fn numbers_are_chosen_by_what_another_script_finds() {
    let Some((_server, options, open)) = server("numbers_are_chosen_by_what_another_script_finds") else {
        return;
    };
    let mut connection = Connection::open(&options).unwrap();
    connection
        .execute("CREATE TABLE orders (id int PRIMARY KEY, c_id int NOT NULL, sent int NOT NULL)")
        .unwrap();
    connection.execute("CREATE TABLE customer (c_id int PRIMARY KEY, owes int NOT NULL)").unwrap();
    connection.execute("INSERT INTO customer SELECT id, 0 FROM generate_series(1, 200) AS id").unwrap();
    connection
        .execute("INSERT INTO orders SELECT id, (id * 77) % 200 + 1, 0 FROM generate_series(1, 200) AS id")
        .unwrap();
    connection.close();
    let mut symbols = Symbols::new();
    let deliver = "BEGIN;\nSELECT id, c_id AS c FROM orders WHERE sent = 0 ORDER BY id LIMIT 1 \\gset\n\
                   UPDATE orders SET sent = 1 WHERE id = :id;\n\
                   UPDATE customer SET owes = owes + 1 WHERE c_id = :c;\nCOMMIT;\n";
    let status = "\\set c (random(0, 255) | random(1, 200)) % 200 + 1\nBEGIN;\n\
                  SELECT owes FROM customer WHERE c_id = :c;\n\
                  SELECT count(*) FROM orders WHERE c_id = :c AND sent = 1;\nCOMMIT;\n";
    let names = ["deliver", "status"];
    let texts = [deliver, status];
    let scripts: Vec<_> =
        names.iter().zip(texts).map(|(name, text)| parse(name, text, &mut symbols).unwrap()).collect();
    let variables = Variables::new(&symbols);
    let programs = Programs::new(&scripts, symbols, variables);
    let combinations = [vec!["status".to_owned(), "deliver".to_owned()]];
    let allocations = [Allocation::uniform(Level::ReadCommitted)];
    let trying = Trying { combinations: Some(&combinations), ..trying(&open, &allocations) };
    let found = explore(&programs, &trying).unwrap();
    let witness = found.levels[0].gravest().expect("half a delivery");
    assert!(witness.steps.iter().any(|step| step.sql.contains("c_id = 78")), "{witness:?}");
}

#[test]
fn what_all_interleavings_show_is_found_by_splitting_one() {
    let Some((_server, options, open)) = server("what_all_interleavings_show_is_found_by_splitting_one")
    else {
        return;
    };
    let number = std::env::var("ISOBENCH_PROGRAMS").ok().and_then(|text| text.parse().ok());
    let (mut damaged, mut compared) = (0, 0);
    for seed in 0..number.unwrap_or(12) / 2 {
        let mut random = Prng::seed(seed);
        let mut symbols = Symbols::new();
        let texts = [random_program(&mut random), random_program(&mut random)];
        let scripts = texts.each_ref().map(|text| parse("random.sql", text, &mut symbols).unwrap());
        let variables = Variables::new(&symbols);
        let programs = Programs::new(&scripts, symbols, variables);
        for level in [Level::ReadCommitted, Level::RepeatableRead] {
            let allocations = [Allocation::uniform(level)];
            let empty = || {
                let mut connection = Connection::open(&options).unwrap();
                connection.execute(SETUP).unwrap();
                connection.close();
            };
            empty();
            let trying = trying(&open, &allocations);
            let mut sessions = Sessions::open(&programs, &trying).unwrap();
            let expected =
                [[0, 0], [0, 1], [1, 1]].map(|pair| gravest(&mut sessions, pair)).into_iter().max();
            drop(sessions);
            compared += 1;
            let expected = expected.unwrap_or(Judgement::Serial);
            if expected == Judgement::Serial {
                continue;
            }
            damaged += 1;
            empty();
            let found = explore(&programs, &trying).unwrap();
            let found = &found.levels[0];
            let enough =
                found.damage.is_some() || expected == Judgement::WrongAnswer && found.wrong_answer.is_some();
            assert!(enough, "seed {seed}, {level}: {expected:?}\n{}\n{}", texts[0], texts[1]);
        }
    }
    eprintln!("{damaged} of {compared} pairs of programs are wrong in some interleaving");
    assert!(damaged > 0);
}

#[test]
fn merges_are_all_orders() {
    assert_eq!(merges(2, 2).len(), 6);
    assert_eq!(merges(3, 4).len(), 35);
    assert_eq!(merges(1, 1), [[0, 1], [1, 0]]);
}
