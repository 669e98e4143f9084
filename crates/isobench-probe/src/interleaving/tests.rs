//! An oracle: all interleavings of two transactions, against those in which one is split.

use std::sync::Arc;
use std::time::Duration;

use isobench_database::products::POSTGRESQL;
use isobench_isolation::{Allocation, Level};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_script::{Prng, Symbols, Variables, parse};
use isobench_testkit::installed::{postgresql_programs, skip};

use super::actor::Ending;
use super::outcome::{Judgement, Masks, Outcome};
use super::program::{Choice, Part};
use super::stage::{Schedule, Stage};
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
fn gravest(stage: &mut Stage<'_>, pair: [usize; 2]) -> Judgement {
    let cast = pair.map(|program| Part { program, choice: Choice::new() });
    let mut perform = |schedule: Schedule| {
        let performance = stage.perform(&cast, &schedule, 0, &[]).expect("a run");
        stage.put_back(&performance.outcome.delta, 0).expect("tables as before");
        performance
    };
    let orders = [vec![0, 1], vec![1, 0]];
    let serial: Vec<Outcome> =
        orders.iter().map(|order| perform(Schedule::Serial(order.clone())).outcome).collect();
    let steps = |number: usize| serial[0].views[number].sent.len();
    let (masks, mut gravest) = (Masks::default(), Judgement::Serial);
    for merge in merges(steps(0), steps(1)) {
        let outcome = perform(Schedule::Steps(merge)).outcome;
        if outcome.endings.iter().all(|ending| *ending == Ending::Done) {
            let orders = orders.iter().map(Vec::as_slice).zip(&serial);
            gravest = gravest.max(masks.judge(&outcome, orders));
        }
    }
    gravest
}

#[test]
fn what_all_interleavings_show_is_found_by_splitting_one() {
    let Some(bin) = postgresql_programs().filter(|bin| bin.join("initdb").is_file()) else {
        return skip("what_all_interleavings_show_is_found_by_splitting_one", "no PostgreSQL is installed");
    };
    let server =
        Server::start(&ServerOptions { bin: Some(bin), ..ServerOptions::default() }, &mut |_| {}).unwrap();
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let direct = options.clone();
    let open: Opener = Arc::new(move |_| Ok(Connection::open(&direct)?));
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
            let mut stage = Stage::open(&programs, &trying).unwrap();
            let expected = [[0, 0], [0, 1], [1, 1]].map(|pair| gravest(&mut stage, pair)).into_iter().max();
            drop(stage);
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
