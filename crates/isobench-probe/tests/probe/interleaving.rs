//! Scripts tried against each other on a real PostgreSQL: known answers, random programs that must not
//! be accused, and an oracle that runs all interleavings.

use std::collections::BTreeSet;
use std::time::Duration;

use isobench_database::Asked;
use isobench_database::Database;
use isobench_database::products::YUGABYTEDB;
use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, Level};
use isobench_probe::Options;
use isobench_probe::interleaving::{Found, Programs, TriedCondition, TryError, Trying, explore};
use isobench_program::templates;
use isobench_robustness::{Struck, allocate};
use isobench_script::{Prng, Script, Symbols, Variables, parse};
use isobench_sql::Catalog;

use crate::support::{TestServer, installed};

const ALL: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// A budget that is never used up.
const ENOUGH: Duration = Duration::from_mins(10);

/// Tries scripts on tables that this SQL makes.
fn tried(server: &TestServer, setup: &str, scripts: &[&str], levels: &[Level], budget: Duration) -> Found {
    tried_with(server, setup, scripts, levels, budget, &[]).expect("interleavings")
}

/// The same with conditions.
fn tried_with(
    server: &TestServer,
    setup: &str,
    scripts: &[&str],
    levels: &[Level],
    budget: Duration,
    conditions: &[TriedCondition],
) -> Result<Found, TryError> {
    let allocations: Vec<Allocation> = levels.iter().copied().map(Allocation::uniform).collect();
    tried_at(server, setup, scripts, &allocations, budget, conditions)
}

/// The same at levels for each script.
fn tried_at(
    server: &TestServer,
    setup: &str,
    scripts: &[&str],
    allocations: &[Allocation],
    budget: Duration,
    conditions: &[TriedCondition],
) -> Result<Found, TryError> {
    set_up(server, setup);
    let (scripts, symbols) = parsed(scripts);
    let variables = Variables::new(&symbols);
    let programs = Programs::new(&scripts, symbols, variables);
    let trying = Trying {
        combinations: None,
        open: server.opener(),
        product: server.database.product,
        allocations,
        budget,
        conditions,
        options: Options { waits_after: Duration::from_millis(50), ..Options::default() },
        stopped: &|| false,
    };
    explore(&programs, &trying)
}

/// Makes tables in an empty schema.
fn set_up(server: &TestServer, setup: &str) {
    let mut connection = server.open().expect("a connection");
    connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").expect("an empty schema");
    connection.execute(setup).expect("tables");
    connection.close();
}

/// Scripts called `1.sql`, `2.sql`, …
fn parsed(scripts: &[&str]) -> (Vec<Script>, Symbols) {
    let mut symbols = Symbols::new();
    let named = scripts.iter().zip(1..);
    let scripts = named
        .map(|(text, number)| parse(&format!("{number}.sql"), text, &mut symbols).expect("a script"))
        .collect();
    (scripts, symbols)
}

/// What was found at each level: `d`amage, a `w`rong answer, or nothing (`-`).
fn letters(found: &Found) -> String {
    let letter = |level: &isobench_probe::interleaving::LevelFound| match (&level.damage, &level.wrong_answer)
    {
        (Some(_), _) => 'd',
        (None, Some(_)) => 'w',
        (None, None) => '-',
    };
    found.levels.iter().map(letter).collect()
}

const ACCOUNTS: &str = "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, version int NOT NULL DEFAULT 0); \
    INSERT INTO account SELECT g, 100 FROM generate_series(1, 5) g; \
    CREATE TABLE entry (id bigserial PRIMARY KEY, account int NOT NULL, at timestamptz); \
    CREATE TABLE hold (id bigserial PRIMARY KEY, account int NOT NULL)";

/// Scripts, and what is found at read committed, repeatable read and serializable.
const CASES: [(&str, &[&str], &str); 17] = [
    (
        "a lost update",
        &["\\set a random(1, 5)\nBEGIN;\nSELECT balance AS b FROM account WHERE id = :a \\gset\n\
               UPDATE account SET balance = :b + 1 WHERE id = :a;\nCOMMIT;\n"],
        "d--",
    ),
    (
        "an atomic update, with an entry whose id and time no order determines",
        &["\\set a random(1, 5)\nBEGIN;\nSELECT balance FROM account WHERE id = :a;\n\
               UPDATE account SET balance = balance + 1 WHERE id = :a;\nINSERT INTO entry (account, at) VALUES (:a, now());\nCOMMIT;\n"],
        "---",
    ),
    (
        "a version that is tested, so that the transaction declines",
        &[
            "\\set a random(1, 5)\nBEGIN;\nSELECT balance AS b, version AS v FROM account WHERE id = :a \\gset\n\
               UPDATE account SET balance = :b + 1, version = :v + 1 WHERE id = :a AND version = :v;\nCOMMIT;\n",
        ],
        "---",
    ),
    (
        "write skew",
        &[
            "BEGIN;\nSELECT sum(balance) AS s FROM account WHERE id < 3 \\gset\n\\if :s >= 200\n\
                 UPDATE account SET balance = balance - 200 WHERE id = 1;\n\\endif\nCOMMIT;\n",
            "BEGIN;\nSELECT sum(balance) AS s FROM account WHERE id < 3 \\gset\n\\if :s >= 200\n\
                 UPDATE account SET balance = balance - 200 WHERE id = 2;\n\\endif\nCOMMIT;\n",
        ],
        "dd-",
    ),
    (
        "two kinds that each count the other one",
        &[
            "\\set a random(1, 5)\nBEGIN;\nSELECT count(*) AS n FROM entry WHERE account = :a \\gset\n\\if :n < 3\n\
                 INSERT INTO hold (account) VALUES (:a);\n\\endif\nCOMMIT;\n",
            "\\set a random(1, 5)\nBEGIN;\nSELECT count(*) AS n FROM hold WHERE account = :a \\gset\n\\if :n < 3\n\
                 INSERT INTO entry (account) VALUES (:a);\n\\endif\nCOMMIT;\n",
        ],
        "dd-",
    ),
    (
        "a limit that is reached late",
        &[
            "\\set a random(1, 5)\nBEGIN;\nSELECT count(*) AS n FROM entry WHERE account = :a \\gset\n\\if :n < 30\n\
                 INSERT INTO entry (account) VALUES (:a);\n\\endif\nCOMMIT;\n",
        ],
        "dd-",
    ),
    (
        "a sum that is enough for one, taken from different rows",
        &["\\set taken random(1, 60)\n\\set from random(1, 2)\nBEGIN;\n\
                 SELECT sum(balance) AS s FROM account WHERE id < 3 \\gset\n\\if :s >= :taken\n\
                 UPDATE account SET balance = balance - :taken WHERE id = :from;\n\\endif\nCOMMIT;\n"],
        "dd-",
    ),
    (
        "the version that the server keeps, as text, so that the transaction declines",
        &["\\set a random(1, 5)\nBEGIN;\nSELECT balance AS b, xmin AS v FROM account WHERE id = :a \\gset\n\
                 UPDATE account SET balance = :b + 1 WHERE id = :a AND xmin::text = ':v';\nCOMMIT;\n"],
        "---",
    ),
    (
        "a report of two statements during a transfer",
        &[
            "BEGIN;\nSELECT balance FROM account WHERE id = 1;\nSELECT balance FROM account WHERE id = 2;\nCOMMIT;\n",
            "BEGIN;\nUPDATE account SET balance = balance - 1 WHERE id = 1;\n\
                 UPDATE account SET balance = balance + 1 WHERE id = 2;\nCOMMIT;\n",
        ],
        "w--",
    ),
    (
        "two statements outside of a block",
        &[
            "SELECT balance AS b FROM account WHERE id = 1 \\gset\nUPDATE account SET balance = :b + 1 WHERE id = 1;\n",
        ],
        "ddd",
    ),
    (
        "jobs that are taken by SKIP LOCKED",
        &[
            "BEGIN;\nSELECT id AS i FROM account WHERE version = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED \\gset\n\
               UPDATE account SET version = 1 WHERE id = :i;\nCOMMIT;\n",
        ],
        "---",
    ),
    (
        "transfers in any order of accounts, some of which end in a deadlock",
        &["\\set a random(1, 5)\n\\set b random(1, 5)\nBEGIN;\n\\if :a <> :b\n\
               UPDATE account SET balance = balance - 1 WHERE id = :a;\n\
               UPDATE account SET balance = balance + 1 WHERE id = :b;\n\\endif\nCOMMIT;\n"],
        "---",
    ),
    (
        "what depends on the session or the transaction's number",
        &["\\set a random(1, 5)\nBEGIN;\nSELECT pg_backend_pid(), txid_current();\n\
               UPDATE account SET version = pg_backend_pid() WHERE id = :a;\nCOMMIT;\n"],
        "---",
    ),
    (
        "an update of a row that is gone",
        &[
            "BEGIN;\nSELECT count(*) AS n FROM account WHERE id = 1 \\gset\n\\if :n = 1\n\
                 UPDATE account SET balance = balance + 1 WHERE id = 1;\n\\else\n\
                 INSERT INTO account VALUES (1, 1);\n\\endif\nCOMMIT;\n",
            "DELETE FROM account WHERE id = 1;\n",
        ],
        "w--",
    ),
    (
        "at most ten entries, which takes nine before",
        &["BEGIN;\nSELECT count(*) AS n FROM entry \\gset\n\\if :n < 10\n\
               INSERT INTO entry (account) VALUES (1);\n\\endif\nCOMMIT;\n"],
        "dd-",
    ),
    (
        "an insert of what isn't there",
        &["INSERT INTO entry (account) SELECT 7 WHERE NOT EXISTS (SELECT 1 FROM entry WHERE account = 7);\n"],
        "dd-",
    ),
    (
        "a charge on an overdraft, which takes many withdrawals before",
        &[
            "\\set x random(1, 50)\nBEGIN;\nSELECT balance AS s FROM account WHERE id = 1 \\gset\n\
                 SELECT balance AS c FROM account WHERE id = 2 \\gset\n\\if :s + :c < :x\n\\set x :x + 1\n\\endif\n\
                 UPDATE account SET balance = balance - :x WHERE id = 2;\nCOMMIT;\n",
            "\\set x random(1, 50)\nUPDATE account SET balance = balance + :x WHERE id = 1;\n",
            "BEGIN;\nSELECT balance FROM account WHERE id = 1;\nSELECT balance FROM account WHERE id = 2;\nCOMMIT;\n",
        ],
        "dw-",
    ),
];

#[test]
fn known_answers() {
    let Some(server) = installed("known_answers") else { return };
    for (name, scripts, wanted) in CASES {
        for (level, letter) in ALL.into_iter().zip(wanted.chars()) {
            // What is unsafe is found however long it takes.
            let budget = if letter == '-' { Duration::from_millis(500) } else { ENOUGH };
            let found = tried(&server, ACCOUNTS, scripts, &[level], budget);
            let shown = format!("{:#?}", found.levels[0].gravest());
            assert_eq!(letters(&found), letter.to_string(), "{name}, {level}: {shown}");
        }
    }
}

/// The same without what only PostgreSQL shows: changes are seen by reading the tables, and who waits by
/// the time without an answer.
#[test]
fn known_answers_of_products_without_triggers() {
    let Some(server) = installed("known_answers_of_products_without_triggers") else { return };
    let as_product =
        TestServer { database: Database { product: &YUGABYTEDB, ..server.database.clone() }, ..server };
    for (name, scripts, wanted) in [&CASES[0], &CASES[2], &CASES[3]] {
        let found = tried(&as_product, ACCOUNTS, scripts, &ALL, Duration::from_secs(5));
        assert_eq!(letters(&found), *wanted, "{name}: {found:#?}");
    }
}

/// Receipts (Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation", SIGMOD
/// Record 33, 2004): the report at repeatable read among serializable writers sees it; if it is
/// serializable and read only, it doesn't.
#[test]
fn a_report_at_a_lower_level_than_its_writers_gets_a_wrong_answer() {
    let test = "a_report_at_a_lower_level_than_its_writers_gets_a_wrong_answer";
    let Some(server) = installed(test) else { return };
    let setup = "CREATE TABLE control (id int PRIMARY KEY, batch int NOT NULL); INSERT INTO control VALUES (1, 1); \
        CREATE TABLE receipt (id bigserial PRIMARY KEY, batch int NOT NULL, amount int NOT NULL); \
        CREATE INDEX ON receipt (batch); INSERT INTO receipt (batch, amount) VALUES (0, 10)";
    let scripts = [
        "BEGIN;\nSELECT batch AS b FROM control WHERE id = 1 \\gset\n\
            INSERT INTO receipt (batch, amount) VALUES (:b, 5);\nCOMMIT;\n",
        "BEGIN;\nUPDATE control SET batch = batch + 1 WHERE id = 1;\nCOMMIT;\n",
        "BEGIN;\nSELECT batch AS b FROM control WHERE id = 1 \\gset\n\
            SELECT sum(amount) FROM receipt WHERE batch = :b - 1;\nCOMMIT;\n",
    ];
    let allocations = ["3=rr,*=ser", "3=ser ro,*=ser", "3=rc ro,*=ser"].map(|text| text.parse().unwrap());
    let found = tried_at(&server, setup, &scripts, &allocations, Duration::from_secs(20), &[])
        .expect("interleavings");
    assert_eq!(letters(&found), "w-w", "{found:#?}");
    let writes = ["3=rr,1=ser ro,*=ser".parse().unwrap()];
    let error = tried_at(&server, setup, &scripts, &writes, ENOUGH, &[]).expect_err("a refusal");
    let said =
        "1.sql: line 3: 25006: cannot execute INSERT in a read-only transaction (at serializable, read only)";
    assert_eq!(error.to_string(), said);
}

/// A time is seen only in the order that ends with it, and a number of a sequence only in what follows.
#[test]
fn times_that_one_order_leaves_accuse_nobody() {
    let Some(server) = installed("times_that_one_order_leaves_accuse_nobody") else { return };
    let setup = "CREATE TABLE page (id bigserial PRIMARY KEY, slug int NOT NULL, gone timestamp); \
        INSERT INTO page (slug, gone) VALUES (1, now()), (2, NULL)";
    let scripts = [
        "INSERT INTO page (slug) SELECT 3 WHERE NOT EXISTS (SELECT 1 FROM page WHERE slug = 3 AND gone IS NULL);\n",
        "\\set p random(1, 2)\nUPDATE page SET gone = now() WHERE id = :p AND gone IS NULL;\n",
        "\\set p random(1, 2)\nBEGIN;\nSELECT count(*) AS n FROM page WHERE id = :p AND gone IS NULL \\gset\n\
            \\if :n = 0\nUPDATE page SET gone = NULL WHERE id = :p;\n\\endif\nCOMMIT;\n",
    ];
    let found = tried(&server, setup, &scripts, &[Level::Serializable], Duration::from_secs(20));
    assert_eq!(letters(&found), "-", "{found:#?}");
}

#[test]
fn numbers_are_those_of_rows_if_the_least_find_none() {
    let Some(server) = installed("numbers_are_those_of_rows_if_the_least_find_none") else { return };
    let setup = "CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL); \
        INSERT INTO item VALUES (700, 5), (701, 5)";
    let sell = "\\set i random(1, 100000)\nBEGIN;\nSELECT stock AS s FROM item WHERE id = :i \\gset\n\
        UPDATE item SET stock = :s - 1 WHERE id = :i;\nCOMMIT;\n";
    let found = tried(&server, setup, &[sell], &ALL, ENOUGH);
    assert_eq!(letters(&found), "d--", "{found:#?}");
}

#[test]
fn a_condition_that_no_order_breaks_is_named() {
    let Some(server) = installed("a_condition_that_no_order_breaks_is_named") else { return };
    let setup = "CREATE TABLE note (id bigserial PRIMARY KEY, seen bool NOT NULL DEFAULT false); \
        CREATE TABLE reader (last bigint NOT NULL); INSERT INTO reader VALUES (0)";
    let scripts = [
        "BEGIN;\nINSERT INTO note DEFAULT VALUES;\nSELECT 1;\nCOMMIT;\n",
        "BEGIN;\nSELECT last AS l FROM reader FOR UPDATE \\gset\n\
            SELECT coalesce(max(id), :l) AS m FROM note WHERE id > :l \\gset\n\
            UPDATE note SET seen = true WHERE id > :l AND id <= :m;\nUPDATE reader SET last = :m;\nCOMMIT;\n",
    ];
    let condition = |name: &str, sql: &str| TriedCondition { name: name.to_owned(), sql: sql.to_owned() };
    let conditions = [
        condition(
            "no-gap",
            "SELECT count(*) = 0 FROM note WHERE NOT seen AND id <= (SELECT last FROM reader)",
        ),
        condition("none-at-all", "SELECT count(*) = 0 FROM note"),
    ];
    let found = tried_with(&server, setup, &scripts, &ALL, ENOUGH, &conditions).expect("interleavings");
    assert_eq!(letters(&found), "ddd", "{found:#?}");
    for level in &found.levels {
        assert_eq!(
            level.damage.as_ref().map(|witness| witness.broken.as_slice()),
            Some(&["no-gap".to_owned()][..])
        );
    }
}

#[test]
fn a_mistake_in_a_script_is_an_error_with_its_line() {
    let Some(server) = installed("a_mistake_in_a_script_is_an_error_with_its_line") else { return };
    let script = "BEGIN;\nSELECT nothing FROM account;\nCOMMIT;\n";
    let error = tried_with(&server, ACCOUNTS, &[script], &ALL, ENOUGH, &[]).expect_err("an error");
    assert_eq!(
        error.to_string(),
        "1.sql: line 2: 42703: column \"nothing\" does not exist (at read committed)"
    );
}

#[test]
fn tables_and_sequences_are_put_back() {
    let Some(server) = installed("tables_and_sequences_are_put_back") else { return };
    let setup = format!(
        "{ACCOUNTS}; CREATE TABLE \"odd Name\" (\"a b\" text, c bytea, d numeric[], g int GENERATED ALWAYS AS (1 + 1) \
         STORED); INSERT INTO \"odd Name\" VALUES (E'it''s \\\\ \"x\", (y)', '\\x00ff', '{{1,NULL}}'), ('', NULL, NULL), \
         (NULL, '', '{{}}'); \
         CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (p int REFERENCES parent ON DELETE CASCADE); \
         INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1), (1), (2)"
    );
    let scripts = [
        "BEGIN;\nUPDATE \"odd Name\" SET c = 'x' WHERE \"a b\" IS NOT NULL;\nDELETE FROM \"odd Name\" WHERE d IS NULL;\nEND;\n",
        "BEGIN;\nDELETE FROM parent WHERE id = 1;\nINSERT INTO entry (account) VALUES (1), (2);\nEND;\n",
    ];
    let state = |server: &TestServer| {
        let mut connection = server.open().expect("a connection");
        let rows = connection
            .query(
                "SELECT 'o', t::text FROM \"odd Name\" t UNION ALL SELECT 'p', t::text FROM parent t UNION ALL \
                 SELECT 'c', t::text FROM child t UNION ALL SELECT 'e', t::text FROM entry t UNION ALL \
                 SELECT 's', last_value::text || is_called FROM entry_id_seq ORDER BY 1, 2",
            )
            .expect("rows");
        connection.close();
        rows.rows
    };
    let found = tried(&server, &setup, &scripts, &ALL, Duration::from_secs(1));
    let after = state(&server);
    assert!(found.trials() > 0);
    // The tables as the setup makes them.
    tried(&server, &setup, &[], &ALL, ENOUGH);
    assert_eq!(after, state(&server));
}

/// A random program over a table with a key, one without, and one whose rows have a version.
fn random_program(random: &mut Prng) -> String {
    let mut text = "\\set k random(1, 2)\n\\set x 0\n\\set c 0\n\\set w 0\nBEGIN;\n".to_owned();
    let count = random.int_between(1, 4);
    let mut conditional = false;
    for _ in 0..count {
        let key = ["1", "2", ":k"][usize::try_from(random.int_between(0, 2)).expect("small")];
        let statement = match random.int_between(0, 18) {
            0 => format!("SELECT v AS x FROM a WHERE k = {key} \\aset"),
            1 => format!("SELECT count(*) AS c FROM l WHERE k = {key} \\gset"),
            2 => "SELECT coalesce(max(v), 0) AS x FROM l \\gset".to_owned(),
            3 => format!("UPDATE a SET v = v + 1 WHERE k = {key};"),
            4 => format!("UPDATE a SET v = :x + 1 WHERE k = {key};"),
            5 => format!("UPDATE a SET v = :c WHERE k = {key};"),
            6 => format!("INSERT INTO l (k, v) VALUES ({key}, :x);"),
            7 => format!("DELETE FROM l WHERE k = {key};"),
            8 => format!("UPDATE l SET v = v + 1 WHERE k = {key};"),
            9 => "SELECT sum(v) FROM a;".to_owned(),
            10 => format!("SELECT v AS x FROM a WHERE k = {key} FOR UPDATE \\aset"),
            11 => "UPDATE a SET v = (SELECT count(*) FROM l) WHERE k = 1;".to_owned(),
            12 => format!("INSERT INTO a VALUES ({key} + 2, 0) ON CONFLICT (k) DO UPDATE SET v = a.v + 10;"),
            13 | 14 => format!("SELECT w, v AS x FROM o WHERE k = {key} \\gset"),
            15 | 16 => format!("UPDATE o SET v = :x + 1, w = :w + 1 WHERE k = {key} AND w = :w;"),
            17 => format!("UPDATE o SET v = v + 1, w = w + 1 WHERE k = {key};"),
            _ => format!("DELETE FROM a WHERE k = {key} AND v > 1;"),
        };
        if !conditional && random.int_between(0, 4) == 0 {
            text.push_str("\\if :c = 0\n");
            conditional = true;
        }
        text.push_str(&statement);
        text.push('\n');
    }
    text.push_str(if conditional { "\\endif\nCOMMIT;\n" } else { "COMMIT;\n" });
    text
}

const KEYED: &str = "CREATE TABLE a (k int PRIMARY KEY, v int NOT NULL); INSERT INTO a VALUES (1, 0), (2, 0); \
    CREATE TABLE o (k int PRIMARY KEY, w int NOT NULL, v int NOT NULL); INSERT INTO o VALUES (1, 0, 0), (2, 0, 0); \
    CREATE TABLE l (id bigserial, k int, v int); INSERT INTO l (k, v) VALUES (1, 5)";

/// The number of random programs: few in every run, many at night.
fn programs(few: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    (number("ISOBENCH_PROGRAMS").unwrap_or(few), number("ISOBENCH_PROGRAMS_SEED").unwrap_or(1))
}

#[test]
fn serializable_is_never_accused() {
    let Some(server) = installed("serializable_is_never_accused") else { return };
    let (count, seed) = programs(20);
    let mut trials = 0;
    for number in (0..count).step_by(2) {
        let mut random = Prng::seed(seed + number);
        let texts = [random_program(&mut random), random_program(&mut random)];
        let scripts = [texts[0].as_str(), &texts[1]];
        let found = tried(&server, KEYED, &scripts, &[Level::Serializable], Duration::from_millis(500));
        let level = &found.levels[0];
        let (seed, shown) = (seed + number, level.gravest());
        assert!(shown.is_none(), "seed {seed}: {}\n{}\n{shown:#?}", texts[0], texts[1]);
        trials += level.trials;
    }
    eprintln!("{count} programs, {trials} interleavings at serializable");
    assert!(trials > 0);
}

/// The levels that are proved to be enough for scripts, from their SQL. `None` if values are passed on from one
/// transaction to the next, which no level protects.
fn proved(server: &TestServer, setup: &str, scripts: &[&str]) -> Option<Allocation> {
    set_up(server, setup);
    let (parsed, symbols) = parsed(scripts);
    let mut connection = server.open().expect("a connection");
    let mut catalog =
        Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).expect("a catalog");
    catalog.read_statements(&parsed, &mut Asked(&mut connection)).expect("a session");
    connection.close();
    let found = templates(&parsed, &symbols, &catalog, &BTreeSet::new());
    if !found.carried.is_empty() {
        return None;
    }
    let levels = allocate(&found.programs, &Struck::new()).levels;
    let named = found.programs.iter().zip(levels);
    let scripts = named.map(|(program, level)| (program.name.clone(), Mode::of(level))).collect();
    Some(Allocation { rest: Mode::of(Level::Serializable), scripts })
}

/// At the levels that are proved for random programs, and for those of which the answers are known, nothing
/// may be shown.
#[test]
fn what_is_proved_is_never_shown_to_be_unsafe() {
    let Some(server) = installed("what_is_proved_is_never_shown_to_be_unsafe") else { return };
    let (count, seed) = programs(12);
    let (mut trials, mut below) = (0, 0);
    let mut check = |setup: &str, scripts: &[&str], budget: Duration, name: &str| {
        let Some(allocation) = proved(&server, setup, scripts) else { return };
        let found = tried_at(&server, setup, scripts, std::slice::from_ref(&allocation), budget, &[])
            .expect("interleavings");
        let level = &found.levels[0];
        let shown = level.gravest().filter(|witness| !witness.no_level_prevents);
        assert!(shown.is_none(), "{name}, {allocation}\n{}\n{shown:#?}", scripts.join("\n"));
        trials += level.trials;
        below += usize::from(allocation.scripts.iter().any(|(_, mode)| mode.level < Level::Serializable));
    };
    for (name, scripts, _) in CASES {
        check(ACCOUNTS, scripts, Duration::from_millis(500), name);
    }
    for number in 0..count {
        let mut random = Prng::seed(seed + number);
        let texts: Vec<String> = (0..random.int_between(2, 4)).map(|_| random_program(&mut random)).collect();
        let scripts: Vec<&str> = texts.iter().map(String::as_str).collect();
        check(KEYED, &scripts, Duration::from_millis(500), &format!("seed {}", seed + number));
    }
    eprintln!("{count} sets, {below} with a level below serializable, {trials} interleavings");
    assert!(trials > 0 && below > 0);
}

/// Jobs of a key, at most one of which may run, taken by SKIP LOCKED.
const JOBS: &str = "CREATE TABLE job (id int PRIMARY KEY, key int NOT NULL, doing boolean NOT NULL, taken int); \
    INSERT INTO job SELECT g, (g - 1) / 3, false, 0 FROM generate_series(1, 9) g; \
    CREATE FUNCTION take() RETURNS int LANGUAGE sql AS 'UPDATE job SET doing = true WHERE id = (SELECT id FROM job WHERE \
    NOT doing ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id'; \
    CREATE FUNCTION try_to_take(wanted int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN \
    PERFORM 1 FROM job WHERE id = wanted FOR UPDATE NOWAIT; \
    UPDATE job SET taken = taken + 1 WHERE id = wanted; RETURN 1; \
    EXCEPTION WHEN lock_not_available THEN RETURN 0; END $$";

/// Passing by rows that are locked is asked for, forgetting what is true of other rows isn't.
#[test]
fn only_what_is_asked_for_is_no_accusation() {
    let Some(server) = installed("only_what_is_asked_for_is_no_accusation") else { return };
    let first = "SELECT id AS i FROM job WHERE NOT doing ORDER BY id LIMIT 1";
    let queue = format!(
        "BEGIN;\n{first} FOR UPDATE SKIP LOCKED \\gset\nUPDATE job SET doing = true WHERE id = :i;\nCOMMIT;\n"
    );
    let peek = format!("BEGIN;\n{first} FOR UPDATE SKIP LOCKED;\nCOMMIT;\n");
    let key_share = "BEGIN;\nSELECT id FROM job WHERE id = 1 FOR KEY SHARE;\nCOMMIT;\n";
    let one_of_a_key = "UPDATE job SET doing = true WHERE id = (SELECT j.id FROM job j WHERE NOT j.doing AND NOT EXISTS \
        (SELECT 1 FROM job o WHERE o.key = j.key AND o.doing) ORDER BY j.id LIMIT 1 FOR UPDATE OF j SKIP\n LOCKED);\n";
    let try_lock = "BEGIN;\nSELECT pg_try_advisory_xact_lock(7)::int AS got \\gset\n\\if :got\n\
        UPDATE job SET taken = taken + 1 WHERE id = 1;\n\\endif\nCOMMIT;\n";
    let half = "BEGIN;\nSELECT sum(taken) AS s FROM job \\gset\nSELECT pg_try_advisory_xact_lock(:s::int)::int AS got \\gset\n\
        UPDATE job SET taken = :s + 1 WHERE id = 1;\nCOMMIT;\n";
    let cases: [(&str, &[&str], &str); 8] = [
        ("a queue", &[&queue], "---"),
        ("a queue in a function", &["SELECT take();\n"], "---"),
        ("who only looks, beside others", &[&peek, &queue], "---"),
        ("a weak lock that stops nobody who changes no key", &[key_share, &queue], "---"),
        ("one job of a key", &[one_of_a_key], "dd-"),
        ("NOWAIT, and a function that catches the error", &["SELECT try_to_take(1);\n"], "---"),
        ("a lock that is tried", &[try_lock], "---"),
        ("a lock that is tried, and the update is done without it", &[half], "d--"),
    ];
    for (name, scripts, wanted) in cases {
        for (level, letter) in ALL.into_iter().zip(wanted.chars()) {
            let budget = if letter == '-' { Duration::from_secs(1) } else { ENOUGH };
            let found = tried(&server, JOBS, scripts, &[level], budget);
            let shown = format!("{:#?}", found.levels[0].gravest());
            assert_eq!(letters(&found), letter.to_string(), "{name}, {level}: {shown}");
            assert!(found.trials() > 0, "{name}, {level}");
        }
    }
    let found = tried(&server, JOBS, &[&peek, &queue], &[Level::ReadCommitted], Duration::from_secs(1));
    assert_eq!(found.by_design.first().map(|found| found.how), Some("SKIP LOCKED"));
}

/// Branches that a script's own numbers decide, numbers that meet crosswise, and scripts that fail in the
/// first state.
const REACHED: [(&str, &str, &[&str], &str); 15] = [
    (
        "a lost update in a branch that few take",
        "",
        &[
            "\\set x random(1, 1000)\n\\set a random(1, 5)\n\\if :x <= 990\nSELECT balance FROM account WHERE id = :a;\n\\else\n\
           BEGIN;\nSELECT balance AS b FROM account WHERE id = :a \\gset\nUPDATE account SET balance = :b + 1 WHERE id = :a;\n\
           COMMIT;\n\\endif\n",
        ],
        "d--",
    ),
    (
        "a branch of a derived number, in a branch",
        "",
        &[
            "\\set x random_zipfian(1, 100, 1.3)\n\\set y random(1, 20)\n\\set a random(1, 5)\n\\if :x % 10 = 7\n\
           \\if hash(:y) % 5 = 0\nBEGIN;\nSELECT balance AS b FROM account WHERE id = :a \\gset\n\
           UPDATE account SET balance = :b + 1 WHERE id = :a;\nCOMMIT;\n\\endif\n\\endif\n",
        ],
        "d--",
    ),
    (
        "a branch of some clients",
        "",
        &["\\if :client_id % 3 = 2\nBEGIN;\nSELECT balance AS b FROM account WHERE id = 1 \\gset\n\
           UPDATE account SET balance = :b + 1 WHERE id = 1;\nCOMMIT;\n\\endif\n"],
        "d--",
    ),
    (
        "each moves a part below the other",
        "CREATE TABLE part (id int PRIMARY KEY, above int); INSERT INTO part SELECT g, 0 FROM generate_series(0, 9) g",
        &[
            "\\set f random(1, 9)\n\\set t random(0, 9)\nBEGIN;\nSELECT above AS u FROM part WHERE id = :t \\gset\n\
           \\if :u <> :f\nUPDATE part SET above = :t WHERE id = :f;\n\\endif\nCOMMIT;\n",
        ],
        "dd-",
    ),
    (
        "a number that is taken, and freed within",
        "CREATE TABLE cfg (id int PRIMARY KEY, v int NOT NULL); INSERT INTO cfg VALUES (1, 0); \
         CREATE TABLE seat (id int PRIMARY KEY, who int NOT NULL); INSERT INTO seat VALUES (1, 1), (2, 1)",
        &[
            "\\set s random(1, 2)\nBEGIN;\nSELECT v FROM cfg WHERE id = 1 \\gset\nINSERT INTO seat VALUES (:s, :v);\nCOMMIT;\n",
            "\\set s random(1, 3)\nBEGIN;\nUPDATE cfg SET v = v + 1 WHERE id = 1;\nDELETE FROM seat WHERE id = :s;\nCOMMIT;\n",
        ],
        "dd-",
    ),
    (
        "the same, where others are free",
        "CREATE TABLE cfg (id int PRIMARY KEY, v int NOT NULL); INSERT INTO cfg VALUES (1, 0); \
         CREATE TABLE seat (id int PRIMARY KEY, who int NOT NULL); INSERT INTO seat VALUES (2, 1), (3, 1)",
        &[
            "\\set s random(1, 4)\nBEGIN;\nSELECT v FROM cfg WHERE id = 1 \\gset\nINSERT INTO seat VALUES (:s, :v);\nCOMMIT;\n",
            "\\set s random(2, 3)\nBEGIN;\nUPDATE cfg SET v = v + 1 WHERE id = 1;\nDELETE FROM seat WHERE id = :s;\nCOMMIT;\n",
        ],
        "dd-",
    ),
    (
        "a parent that is made within",
        "CREATE TABLE cfg (id int PRIMARY KEY, v int NOT NULL); INSERT INTO cfg VALUES (1, 0); \
         CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (parent int NOT NULL REFERENCES parent, v int NOT NULL)",
        &[
            "\\set p random(1, 3)\nBEGIN;\nSELECT v FROM cfg WHERE id = 1 \\gset\nINSERT INTO child VALUES (:p, :v);\nCOMMIT;\n",
            "\\set p random(1, 3)\nBEGIN;\nUPDATE cfg SET v = v + 1 WHERE id = 1;\n\
             INSERT INTO parent VALUES (:p) ON CONFLICT DO NOTHING;\nCOMMIT;\n",
        ],
        "d--",
    ),
    (
        "a parent that is made within, of a table with partitions",
        "CREATE TABLE cfg (id int PRIMARY KEY, v int NOT NULL); INSERT INTO cfg VALUES (1, 0); \
         CREATE TABLE parent (id int PRIMARY KEY) PARTITION BY LIST (id); CREATE TABLE all_parents PARTITION OF parent DEFAULT; CREATE TABLE child (parent int NOT NULL REFERENCES parent, v int NOT NULL)",
        &[
            "\\set p random(1, 3)\nBEGIN;\nSELECT v FROM cfg WHERE id = 1 \\gset\nINSERT INTO child VALUES (:p, :v);\nCOMMIT;\n",
            "\\set p random(1, 3)\nBEGIN;\nUPDATE cfg SET v = v + 1 WHERE id = 1;\n\
             INSERT INTO parent VALUES (:p) ON CONFLICT DO NOTHING;\nCOMMIT;\n",
        ],
        "ddd",
    ),
    (
        "who writes, too, and shows two states",
        "",
        &[
            "\\set a random(1, 5)\nBEGIN;\nSELECT balance FROM account WHERE id = :a;\n\
             SELECT balance + 0 AS again FROM account WHERE id = :a;\nINSERT INTO hold (account) VALUES (:a);\nCOMMIT;\n",
            "\\set a random(1, 5)\nUPDATE account SET balance = balance + 1 WHERE id = :a;\n",
        ],
        "w--",
    ),
    (
        "who writes, and puts two states into variables that nothing uses",
        "",
        &[
            "\\set a random(1, 5)\nBEGIN;\nSELECT balance AS b FROM account WHERE id = :a \\gset\n\
             SELECT balance + 0 AS c FROM account WHERE id = :a \\gset\nINSERT INTO hold (account) VALUES (:a);\nCOMMIT;\n",
            "\\set a random(1, 5)\nUPDATE account SET balance = balance + 1 WHERE id = :a;\n",
        ],
        "---",
    ),
    (
        "who shows a row before it counts it up",
        "",
        &["\\set a random(1, 5)\nBEGIN;\nSELECT id, balance FROM account WHERE id = :a;\n\
           UPDATE account SET balance = balance + 1 WHERE id = :a;\nINSERT INTO hold (account) VALUES (:a);\nCOMMIT;\n"],
        "---",
    ),
    (
        "a lost update that others are notified of",
        "",
        &[
            "\\set a random(1, 5)\nBEGIN;\nLISTEN changed;\nSELECT balance AS b FROM account WHERE id = :a \\gset\n\
           UPDATE account SET balance = :b + 1 WHERE id = :a;\nNOTIFY changed;\nUNLISTEN changed;\nCOMMIT;\n",
        ],
        "d--",
    ),
    (
        "an UPDATE that waits, and copies what its snapshot had",
        "",
        &[
            "BEGIN;\nUPDATE account SET balance = 7 WHERE id = 1;\nUPDATE account SET balance = 7 WHERE id = 2;\nCOMMIT;\n",
            "UPDATE account a SET balance = a.balance * 1000 + b.balance FROM account b WHERE a.id = 1 AND b.id = 2;\n",
        ],
        "d--",
    ),
    (
        "a locking read that waits, and shows what its snapshot had",
        "",
        &[
            "BEGIN;\nUPDATE account SET balance = 7 WHERE id = 1;\nUPDATE account SET balance = 7 WHERE id = 2;\nCOMMIT;\n",
            "SELECT a.balance, b.balance FROM account a, account b WHERE a.id = 1 AND b.id = 2 FOR UPDATE OF a;\n",
        ],
        "w--",
    ),
    (
        "nothing is wrong with a script that fails with some numbers",
        "CREATE TABLE seat (id int PRIMARY KEY); INSERT INTO seat VALUES (1), (2)",
        &[
            "\\set s random(1, 3)\nINSERT INTO seat VALUES (:s);\n",
            "\\set s random(1, 3)\nDELETE FROM seat WHERE id = :s;\n",
        ],
        "---",
    ),
];

#[test]
fn trying_reaches_branches_numbers_and_failures() {
    let Some(server) = installed("trying_reaches_branches_numbers_and_failures") else { return };
    for (name, setup, scripts, wanted) in REACHED {
        let setup = if setup.is_empty() { ACCOUNTS } else { setup };
        for (level, letter) in ALL.into_iter().zip(wanted.chars()) {
            let budget = if letter == '-' { Duration::from_millis(700) } else { Duration::from_secs(20) };
            let found = tried(&server, setup, scripts, &[level], budget);
            let shown = format!("{:#?}", found.levels[0].gravest());
            assert_eq!(letters(&found), letter.to_string(), "{name}, {level}: {shown}");
            assert!(found.trials() > 0 && found.refused.is_empty(), "{name}: {found:#?}");
        }
    }
}

/// A script that never works is named.
#[test]
fn a_script_that_fails_each_time_is_named() {
    let Some(server) = installed("a_script_that_fails_each_time_is_named") else { return };
    let scripts = ["SELECT 1 / 0;\n", "UPDATE account SET balance = balance + 1 WHERE id = 1;\n"];
    let found = tried(&server, ACCOUNTS, &scripts, &[Level::ReadCommitted], Duration::from_secs(1));
    let why = "it failed each time: line 1: 22012: division by zero";
    assert_eq!(found.refused, [("1.sql".to_owned(), why.to_owned())]);
}
