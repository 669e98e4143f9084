//! What is found in small captures, with the catalog of a real server.

mod counted;
mod live;

use isobench_database::Asked;
use isobench_isolation::Level;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_replay::{Recorded, read};
use isobench_sql::Catalog;
use isobench_suspects::{Answer, History, Kind, Screen, Scripts, judge, render};
use isobench_testkit::capture::{Tape, column, done, row};
use isobench_testkit::installed::{postgresql_programs, skip};

const TABLES: &str = "DROP SCHEMA public CASCADE; CREATE SCHEMA public;
    CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, stock int NOT NULL, version int NOT NULL);
    CREATE TABLE orders (id serial PRIMARY KEY, item int NOT NULL REFERENCES item, at timestamptz);
    CREATE TABLE member (name text PRIMARY KEY, city text);
    CREATE TABLE guest (id serial PRIMARY KEY, name text NOT NULL);
    CREATE TABLE doctor (id int PRIMARY KEY, shift int NOT NULL, on_call bool NOT NULL);
    CREATE TABLE thing (id int PRIMARY KEY);
    CREATE TABLE line (id serial PRIMARY KEY, item int NOT NULL REFERENCES thing, amount int NOT NULL);
    CREATE TABLE job (id serial PRIMARY KEY, state text NOT NULL)";

/// A server, or `None` after reporting why the test is skipped.
fn server(test: &str) -> Option<Server> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = ServerOptions { bin: Some(bin), ..ServerOptions::default() };
    Some(Server::start(&options, &mut |_| {}).expect("the installed server starts"))
}

fn connect(server: &Server) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, server.user(), server.database())).expect("a session")
}

/// How often each transaction is recorded.
const TIMES: usize = 8;

/// A capture of transactions, each several times with other numbers for `{i}` and one of three for `{k}`, of blocks or of
/// statements alone.
fn capture(transactions: &[&[&str]]) -> Recorded {
    let mut tape = Tape::begin(false);
    for number in 0..TIMES {
        for statements in transactions {
            for sql in *statements {
                let sql = sql.replace("{i}", &(100 + 7 * number).to_string());
                let sql = sql.replace("{k}", &(10 + number % 3).to_string());
                let first = sql.split(' ').next().unwrap_or_default();
                let alone = statements.len() == 1;
                let none = sql.contains("/* none */");
                let answer = match first {
                    "SELECT" if none => tape.rows(&[column("id", 9, 1, 23)], Vec::new()),
                    "SELECT" => tape.rows(
                        &[column("id", 9, 1, 23), column("version", 9, 4, 23)],
                        vec![row(&[&(100 + 7 * number).to_string(), &(40 + number).to_string()])],
                    ),
                    "INSERT" => done("INSERT 0 1"),
                    "UPDATE" | "DELETE" => done(&format!("{first} 1")),
                    "START" => done("BEGIN"),
                    other => done(other),
                };
                let sql = sql.replace("{v}", &(40 + number).to_string());
                let status = if alone || first == "COMMIT" { 'I' } else { 'T' };
                tape.send(1, &sql, Vec::new(), vec![answer], status);
            }
            tape.pass(5_000_000);
        }
    }
    read(&tape.end()[..]).expect("a capture")
}

/// What is found of a capture.
fn found(connection: &mut Connection, recorded: &Recorded) -> Answer {
    for statement in TABLES.split(';') {
        connection.execute(statement).expect("tables");
    }
    let history = History::of(recorded, Level::ReadCommitted);
    let mut catalog =
        Catalog::load(&mut |sql| connection.query(sql).map(|rows| rows.rows)).expect("the catalog");
    let scripts = Scripts::of(&history.templates, &catalog);
    catalog.read_statements(scripts.all(), &mut Asked(connection)).expect("readings");
    let programs = scripts.programs(&catalog);
    let judged = judge(&history.templates, &programs, None, &|| false);
    let carried = history.carried(&programs[0]);
    let live = history.live(&programs[0], &|| false);
    Answer::of(&history.templates, live, &judged, &carried, None)
}

/// What is found, in short: the kinds with their tables and needed levels, and the states.
fn short(answer: &Answer) -> String {
    let suspects = answer.suspects.iter().map(|one| {
        let columns: Vec<&str> = one.columns.iter().map(String::as_str).collect();
        format!(
            "{:?} {} [{}] {}",
            one.kind,
            one.title,
            columns.join(","),
            one.needed.as_deref().unwrap_or("none")
        )
    });
    let between = answer.between.iter().map(|one| format!("between: {}", one.title));
    let states = ["excluded", "undecided", "not-analysed"]
        .into_iter()
        .filter(|state| answer.count(state) > 0)
        .map(|state| format!("{} {state}", answer.count(state)));
    suspects.chain(between).chain(states).collect::<Vec<_>>().join("; ")
}

const CASES: [(&str, &[&[&str]], &str); 24] = [
    (
        "lost update",
        &[&[
            "BEGIN",
            "SELECT stock FROM item WHERE id = {i}",
            "UPDATE item SET stock = {i} WHERE id = {i}",
            "COMMIT",
        ]],
        "LostUpdate update item after reading it [stock] repeatable read",
    ),
    (
        "the same with a lock",
        &[&[
            "BEGIN",
            "SELECT stock FROM item WHERE id = {i} FOR UPDATE",
            "UPDATE item SET stock = {i} WHERE id = {i}",
            "COMMIT",
        ]],
        "1 excluded",
    ),
    ("atomic increment", &[&["UPDATE item SET stock = stock - 1 WHERE id = {i}"]], "1 excluded"),
    (
        "a lock and a change without one",
        &[
            &[
                "BEGIN",
                "SELECT stock FROM item WHERE id = {i} FOR UPDATE",
                "UPDATE item SET stock = {i} WHERE id = {i}",
                "COMMIT",
            ],
            &["UPDATE item SET name = 'x' WHERE id = {i}"],
        ],
        "2 excluded",
    ),
    (
        "check, then insert, without a unique index",
        &[&[
            "BEGIN",
            "SELECT id FROM guest WHERE name = 'g{i}' /* none */",
            "INSERT INTO guest (name) VALUES ('g{i}')",
            "COMMIT",
        ]],
        "Duplicate insert guest after looking for it [] serializable",
    ),
    (
        "check, then insert, with one",
        &[&[
            "BEGIN",
            "SELECT city FROM member WHERE name = 'm{i}' /* none */",
            "INSERT INTO member (name) VALUES ('m{i}')",
            "COMMIT",
        ]],
        "1 undecided",
    ),
    (
        "write skew at repeatable read",
        &[&[
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "SELECT count(*) FROM doctor WHERE shift = 1{i} AND on_call",
            "UPDATE doctor SET on_call = false WHERE id = {i}",
            "COMMIT",
        ]],
        "WriteSkew update doctor after reading other rows of it [on_call] serializable",
    ),
    (
        "the same at serializable",
        &[&[
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "SELECT count(*) FROM doctor WHERE shift = 1{i} AND on_call",
            "UPDATE doctor SET on_call = false WHERE id = {i}",
            "COMMIT",
        ]],
        "1 excluded",
    ),
    (
        "read in one transaction, written in the next",
        &[&["SELECT stock FROM item WHERE id = {i}"]],
        "1 excluded",
    ),
    (
        "a version that is compared",
        &[&[
            "BEGIN",
            "SELECT id, name, version FROM item WHERE id = {i}",
            "UPDATE item SET name = 'n', version = 1{i} WHERE id = {i} AND version = {v}",
            "COMMIT",
        ]],
        "1 undecided",
    ),
    (
        "a queue",
        &[&[
            "BEGIN",
            "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
            "UPDATE job SET state = 'done' WHERE id = {i}",
            "COMMIT",
        ]],
        "1 undecided",
    ),
    (
        "two reads",
        &[
            &[
                "BEGIN",
                "SELECT stock FROM item WHERE id = {i}",
                "SELECT name FROM item WHERE id = {i}",
                "COMMIT",
            ],
            &["UPDATE item SET stock = {i}, name = 'x' WHERE id = {i}"],
        ],
        "StaleRead read item twice [stock] repeatable read",
    ),
    (
        "what isn't analysed may write anything",
        &[&["UPDATE item SET stock = stock - 1 WHERE id = {i}"], &["DO 'BEGIN NULL; END'"]],
        "1 undecided; 1 not-analysed",
    ),
    (
        "COPY inserts rows",
        &[
            &["UPDATE item SET stock = stock - 1 WHERE id = {i}"],
            &["BEGIN", "COPY line (item, amount) FROM STDIN", "COPY guest FROM STDIN", "COMMIT"],
            &["COPY (SELECT id FROM line WHERE item = {i}) TO STDOUT"],
        ],
        "3 excluded",
    ),
    (
        "rows that are looked for, and come by COPY",
        &[
            &[
                "BEGIN",
                "SELECT id FROM line WHERE item = {i} /* none */",
                "INSERT INTO line (item, amount) VALUES ({i}, 1)",
                "COMMIT",
            ],
            &["COPY line (item, amount) FROM STDIN"],
        ],
        "Duplicate insert line after looking for it [] serializable; 1 undecided",
    ),
    (
        "an advisory lock of one number",
        &[&[
            "BEGIN",
            "SELECT pg_advisory_xact_lock(42)",
            "SELECT id FROM guest WHERE name = 'g{i}' /* none */",
            "INSERT INTO guest (name) VALUES ('g{i}')",
            "COMMIT",
        ]],
        "1 undecided",
    ),
    (
        "an advisory lock of what is looked for",
        &[&[
            "BEGIN",
            "SELECT pg_advisory_xact_lock(hashtext('guest {k}'))",
            "SELECT id FROM guest WHERE name = 'g{k}' /* none */",
            "INSERT INTO guest (name) VALUES ('g{k}')",
            "COMMIT",
        ]],
        "1 undecided",
    ),
    (
        "an advisory lock of something else",
        &[&[
            "BEGIN",
            "SELECT pg_advisory_xact_lock(hashtext('guest {i}'))",
            "SELECT id FROM guest WHERE name = 'g{k}' /* none */",
            "INSERT INTO guest (name) VALUES ('g{k}')",
            "COMMIT",
        ]],
        "Duplicate insert guest after looking for it [] serializable",
    ),
    (
        "rows inserted before others are removed",
        &[&[
            "BEGIN",
            "INSERT INTO line (item, amount) VALUES ({i}, {k})",
            "DELETE FROM line WHERE amount < 5",
            "COMMIT",
        ]],
        "WriteSkew insert line before reading other rows of it [] serializable",
    ),
    (
        "a check before an insert that a unique index refuses, and an upsert",
        &[
            &[
                "BEGIN",
                "SELECT city FROM member WHERE name = 'm{i}' /* none */",
                "INSERT INTO member (name) VALUES ('m{i}')",
                "COMMIT",
            ],
            &[
                "INSERT INTO member (name, city) VALUES ('m{i}', 'x') ON CONFLICT (name) DO UPDATE SET city = 'y'",
            ],
        ],
        "2 undecided",
    ),
    (
        "a row that is inserted once, and counted",
        &[&[
            "BEGIN",
            "INSERT INTO member (name) VALUES ('m{i}') ON CONFLICT (name) DO NOTHING",
            "UPDATE item SET stock = stock + 1 WHERE id = {k}",
            "COMMIT",
        ]],
        "1 undecided",
    ),
    (
        "a statement that the server refuses",
        &[&["UPDATE nothing SET stock = stock - 1 WHERE id = {i}"]],
        "1 not-analysed",
    ),
    (
        "other tables",
        &[
            &[
                "BEGIN",
                "SELECT city FROM member WHERE name = 'm{i}'",
                "INSERT INTO guest (name) VALUES ('m{i}')",
                "COMMIT",
            ],
            &["UPDATE item SET stock = stock - 1 WHERE id = {i}"],
        ],
        "2 excluded",
    ),
    (
        "several statements of one kind",
        &[&[
            "BEGIN",
            "SELECT stock FROM item WHERE id IN ({i}, 1{i})",
            "INSERT INTO orders (item) VALUES ({i})",
            "INSERT INTO orders (item) VALUES (1{i})",
            "COMMIT",
        ]],
        "1 excluded",
    ),
];

#[test]
fn suspects_are_found_and_nothing_else() {
    let Some(server) = server("suspects_are_found_and_nothing_else") else { return };
    let mut connection = connect(&server);
    let mut wrong = Vec::new();
    for (name, transactions, expected) in CASES {
        let answer = found(&mut connection, &capture(transactions));
        let text = short(&answer);
        if text != expected {
            let screen = Screen { width: 80, database: None, details: true };
            wrong.push(format!("{name}: {text}\n{}", render(&answer, screen)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_read_in_one_transaction_and_written_in_the_next_is_a_suspect() {
    let name = "what_is_read_in_one_transaction_and_written_in_the_next_is_a_suspect";
    let Some(server) = server(name) else { return };
    let mut connection = connect(&server);
    let mut recorded = |statements: [&str; 2], pause: u64| {
        let mut tape = Tape::begin(false);
        for number in 0..TIMES {
            for sql in statements {
                let sql = sql.replace("{i}", &number.to_string());
                let answer = if sql.starts_with("SELECT") {
                    let rows = vec![row(&[&number.to_string(), "5"])];
                    tape.rows(&[column("id", 9, 1, 23), column("stock", 9, 3, 23)], rows)
                } else {
                    done("UPDATE 1")
                };
                tape.send(1, &sql, Vec::new(), vec![answer], 'I');
                tape.pass(pause);
            }
            tape.pass(2_000_000);
        }
        let recorded = read(&tape.end()[..]).expect("a capture");
        found(&mut connection, &recorded)
    };
    let read = "SELECT id, stock FROM item WHERE id = {i}";
    let answer = recorded([read, "UPDATE item SET stock = 4 WHERE id = {i}"], 10);
    let [one] = answer.between.as_slice() else { panic!("{answer:?}") };
    assert_eq!(
        (one.kind, one.count, one.title.as_str()),
        (Kind::LostUpdate, 8, "update item after reading it")
    );
    assert!(
        recorded([read, "UPDATE item SET stock = 4 WHERE id = {i}"], 3_000_000).between.is_empty(),
        "a long pause"
    );
    for harmless in [
        "UPDATE item SET stock = stock - 1 WHERE id = {i}",
        "UPDATE item SET name = 'x' WHERE id = {i}",
        "UPDATE item SET stock = 4 WHERE id = {i} AND stock = 5",
        "UPDATE item SET stock = 4 WHERE id = 9{i}",
    ] {
        assert!(recorded([read, harmless], 10).between.is_empty(), "{harmless}");
    }
    // A pool gives a connection to one request after another: now and then of the same row.
    let mut tape = Tape::begin(false);
    for number in 0..TIMES {
        let rows = vec![row(&[&number.to_string(), "5"])];
        let answer = tape.rows(&[column("id", 9, 1, 23), column("stock", 9, 3, 23)], rows);
        tape.send(1, &read.replace("{i}", &number.to_string()), Vec::new(), vec![answer], 'I');
        let written = if number == 3 { 3 } else { number + 20 };
        let update = format!("UPDATE item SET stock = 4 WHERE id = {written}");
        tape.send(1, &update, Vec::new(), vec![done("UPDATE 1")], 'I');
    }
    let pooled = isobench_replay::read(&tape.end()[..]).expect("a capture");
    assert!(found(&mut connection, &pooled).between.is_empty(), "one row of eight is an accident");
}
