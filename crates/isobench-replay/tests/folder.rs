//! Captures made by hand, and the scripts of them.

use std::collections::BTreeMap;

use isobench_capture::{Answer, Datum};
use isobench_isolation::Level;
use isobench_replay::{End, Folder, Options, Recorded, Scope, Tables, Templates, Unmade, read};
use isobench_testkit::capture::{BASKETS, SHOP, Tape, baskets, column, done, failed, row, shop, value};

fn recorded(capture: &[u8]) -> Recorded {
    read(capture).expect("a capture")
}

fn folder(capture: &[u8], scope: Scope, coverage: f64) -> (BTreeMap<String, String>, String) {
    let options = Options { scope, coverage, ..Options::default() };
    let folder = Folder::of(&recorded(capture), options, &Tables::Setup(SHOP.to_owned())).expect("a folder");
    (folder.files.into_iter().collect(), folder.summary.join("\n"))
}

fn scripts(capture: &[u8]) -> (BTreeMap<String, String>, String) {
    folder(capture, Scope::Transaction, 96.0)
}

#[test]
fn a_whole_row_that_was_read_is_saved_with_the_operation_in_place_of_the_result() {
    let (files, summary) = scripts(&shop(40));
    assert!(summary.contains("2 templates are 100.0 % of 80 transactions."), "{summary}");
    let name = "insert-orders-line-update-stock-offer.sql";
    let script = &files[name];
    let lines: Vec<&str> = script.lines().collect();
    assert_eq!(lines[0], "--@ recorded 40 times; at the server's default level 40 times");
    assert_eq!(lines[1], "\\set i_row random(1, 40)");
    assert!(lines[2].contains("FROM isobench_inputs_1 WHERE i_row = :i_row \\gset"), "{script}");
    assert!(
        lines[2].contains("'10000' || nextval('isobench_keys_1')")
            || lines[2].contains("nextval('isobench_keys_1') AS k_number"),
        "{script}"
    );
    assert_eq!(lines[3], "BEGIN;");
    assert!(
        lines[4].ends_with("FROM \"offer\" WHERE \"offer\".\"id\" = :i_id LIMIT 21 \\gset r1_"),
        "{script}"
    );
    assert!(
        lines[5].contains("VALUES (:k_number, :i_customer_id, now()::timestamptz) RETURNING"),
        "{script}"
    );
    assert!(lines[5].ends_with("\\gset r2_"), "{script}");
    assert!(
        lines[6]
            .starts_with("INSERT INTO \"line\" (\"order_id\", \"stock_id\") VALUES (:r2_id, :i_stock_id)"),
        "{script}"
    );
    // The sum with the amount that is sent afterwards, which is an input.
    assert_eq!(
        lines[10],
        "UPDATE \"offer\" SET \"name\" = :r1_name, \"num_orders\" = :r1_num_orders::bigint + 1, \"total\" = \
         :r1_total::numeric + :i_value::numeric, \"ends\" = nullif(:r1_ends, '')::timestamptz WHERE \"offer\".\"id\" = \
         :i_id;"
    );
    assert_eq!(lines.last(), Some(&"COMMIT;"));
    let readme = &files["README.md"];
    assert!(
        readme.contains("| 7 | `offer.num_orders` | num_orders of statement 1 + 1 | 8 of 8 |"),
        "{readme}"
    );
    let setup = &files["setup.sql"];
    assert!(setup.starts_with("--@ recorded: ") && setup.contains("\nCREATE TABLE offer"), "{setup}");
    assert!(setup.contains("CREATE SEQUENCE isobench_keys_1 START 100060;"), "{setup}");
    assert!(
        setup.contains("CREATE TABLE isobench_inputs_1 (i_row integer PRIMARY KEY, i_id bigint"),
        "{setup}"
    );
    assert!(files["workload.toml"].contains("\"select-stock.sql@40\""), "{}", files["workload.toml"]);
    // Lists of one to three values are one template; its script has the most frequent length.
    assert!(files["select-stock.sql"].contains("WHERE id IN ("), "{}", files["select-stock.sql"]);
}

#[test]
fn a_key_of_another_row_is_no_new_one_and_what_is_used_up_is_put_back() {
    let options = Options { scope: Scope::Transaction, coverage: 96.0, ..Options::default() };
    let mut folder = Folder::of(&recorded(&baskets(8)), options, &Tables::Setup(BASKETS.to_owned())).unwrap();
    let script = folder.files[0].1.clone();
    // customer_id rises like a new key, but is that of a customer.
    assert!(script.contains("VALUES (:r1_id, :i_owner_id) RETURNING"), "{script}");
    assert!(script.contains("random(1, 8)"), "{script}");
    let expected = &folder.expected.scripts[0];
    assert!(expected.writes);
    assert_eq!(expected.instances[0].found, [Some(true); 3]);
    let begin: Vec<usize> = expected.instances.iter().map(|one| one.transactions[0]).collect();
    // Every second basket stays as it is.
    let back: Vec<String> =
        folder.past.back_to(std::slice::from_ref(&begin)).into_iter().map(str::to_owned).collect();
    assert_eq!(
        back[..2],
        [
            "UPDATE \"basket\" SET \"status\" = 'open' WHERE \"id\" = '27'",
            "DELETE FROM \"purchase\" WHERE \"id\" = '7'"
        ]
    );
    assert_eq!(back.len(), 8);
    folder.put_back(&back, &[vec![0, 2, 4, 6]]);
    assert!(folder.files[0].1.contains("random(1, 4)"), "{}", folder.files[0].1);
    let setup = &folder.files.iter().find(|(name, _)| name == "setup.sql").unwrap().1;
    assert!(setup.contains("\"id\" = '27';\nDELETE FROM"), "{setup}");
    assert!(setup.contains("INSERT INTO isobench_inputs_1 VALUES\n  (1, '1'),\n  (2, '3'),"), "{setup}");
    let name = folder.expected.scripts[0].name.clone();
    folder.leave_out(&name);
    let plan = &folder.files.iter().find(|(name, _)| name == "workload.toml").unwrap().1;
    assert!(!plan.contains(&name), "{plan}");
}

/// A counter at which three transactions of each level work, which sends a parameter as drivers do.
fn counter(tape: &mut Tape, session: u64, begin: &str, before: i64, step: i64) {
    tape.simple(session, begin, "BEGIN");
    let columns = [column("id", 7, 1, 20), column("balance", 7, 2, 20)];
    let answer = tape.rows(&columns, vec![row(&["4711", &before.to_string()])]);
    let step_sent = value(&step.to_string());
    tape.send(
        session,
        "SELECT id, balance FROM account WHERE id = $1",
        vec![value("4711")],
        vec![answer],
        'T',
    );
    let after = value(&(before - step).to_string());
    let update = "UPDATE account SET balance = $1 WHERE id = $2";
    tape.send(session, update, vec![after, value("4711")], vec![done("UPDATE 1")], 'T');
    let log = "INSERT INTO log (account_id, amount) VALUES ($1, $2)";
    tape.send(session, log, vec![value("4711"), step_sent], vec![done("INSERT 0 1")], 'T');
    tape.simple(session, "COMMIT", "COMMIT");
}

#[test]
fn what_is_read_less_a_parameter_is_a_rule() {
    let mut tape = Tape::begin(false);
    for number in 0..10 {
        counter(&mut tape, 1, "BEGIN", 1_000 - number, 7 + number * number);
    }
    let (files, _) = scripts(&tape.end());
    let script = &files["update-account-insert-log.sql"];
    assert!(
        script.contains("SET balance = :r1_balance::bigint - :i_amount::bigint WHERE id = :r1_id;"),
        "{script}"
    );
    // The only account is a constant, which was read.
    assert!(script.contains("FROM account WHERE id = '4711' \\gset r1_"), "{script}");
    assert!(script.contains("VALUES (:r1_id, :i_amount);"), "{script}");
}

/// A column that is read and written back as another value, which the application takes from wherever.
fn changed(type_oid: u32, values: impl Iterator<Item = (String, String)>) -> String {
    let mut tape = Tape::begin(false);
    for (before, after) in values {
        tape.simple(1, "BEGIN", "BEGIN");
        let columns = [column("id", 7, 1, 20), column("v", 7, 2, type_oid)];
        let answer = tape.rows(&columns, vec![row(&["1", &before])]);
        tape.send(1, "SELECT id, v FROM t WHERE id = $1", vec![value("1")], vec![answer], 'T');
        let parameters = vec![value(&after), value("1")];
        tape.send(1, "UPDATE t SET v = $1 WHERE id = $2", parameters, vec![done("UPDATE 1")], 'T');
        tape.simple(1, "COMMIT", "COMMIT");
    }
    let (files, _) = scripts(&tape.end());
    files["update-t.sql"].clone()
}

#[test]
fn a_value_that_was_changed_in_an_unknown_way_is_marked() {
    let marked = |script: &str| script.contains("--@ computed\nUPDATE t");
    let interest =
        (1..20).map(|number: i64| (number * 100).to_string()).zip((1..20).map(|n: i64| (n * n).to_string()));
    assert!(marked(&changed(20, interest)));
    let tags = |number: usize| format!("{{\"tags\": [\"new\", \"{}\"]}}", "x".repeat(number));
    assert!(marked(&changed(3802, (1..20).map(|number| (tags(number), tags(number * 2))))));
    // A name is typed in, not computed; nor are times and references.
    let name = |number: u32| format!("{:x}", number.wrapping_mul(2_654_435_761));
    assert!(!marked(&changed(25, (1..20).map(|number| (name(number), name(number + 50))))));
    let time = |number: u32| format!("2026-11-26 10:{number:02}:00");
    assert!(!marked(&changed(1114, (1..20).map(|number| (time(number), time(number + 30))))));
}

/// As `TypeORM` names what it reads, and as Vendure allocates stock: by the quantity of a line of the order.
#[test]
fn a_sum_of_what_was_read_is_found_behind_other_names() {
    let mut tape = Tape::begin(false);
    for number in 0_i64..20 {
        tape.simple(1, "BEGIN", "BEGIN");
        let columns = [column("Line_quantity", 8, 2, 23)];
        let (quantity, before) = (number * number % 7 + 1, number * 100);
        let answer = tape.rows(&columns, vec![row(&[&quantity.to_string()])]);
        let line = "SELECT \"Line\".\"quantity\" AS \"Line_quantity\" FROM \"line\" \"Line\" WHERE \"Line\".\"id\" = $1";
        tape.send(1, line, vec![value(&number.to_string())], vec![answer], 'T');
        let columns = [column("S_id", 7, 1, 20), column("S_allocated", 7, 2, 20)];
        let answer = tape.rows(&columns, vec![row(&["1", &before.to_string()])]);
        let stock = "SELECT \"S\".\"id\" AS \"S_id\", \"S\".\"allocated\" AS \"S_allocated\" FROM \"stock\" \"S\" \
                     WHERE \"S\".\"id\" = $1";
        tape.send(1, stock, vec![value("1")], vec![answer], 'T');
        let parameters = vec![value(&(before + quantity).to_string()), value("1")];
        tape.send(
            1,
            "UPDATE \"stock\" SET \"allocated\" = $1 WHERE \"id\" = $2",
            parameters,
            vec![done("UPDATE 1")],
            'T',
        );
        tape.simple(1, "COMMIT", "COMMIT");
    }
    let (files, summary) = scripts(&tape.end());
    let script = &files["update-stock.sql"];
    assert!(
        script.contains("\"allocated\" = :r2_S_allocated::bigint + :r1_Line_quantity::bigint"),
        "{script}"
    );
    assert!(summary.contains("reads, computes and writes back: stock.allocated."), "{summary}");
}

#[test]
fn a_rule_that_fails_on_what_is_held_out_makes_an_input() {
    let mut tape = Tape::begin(false);
    for number in 0..20_i64 {
        // Each fifth one is held out.
        let wrong = if number % 5 == 4 { 3 } else { 0 };
        tape.simple(1, "BEGIN", "BEGIN");
        let answer = tape.rows(&[column("n", 7, 1, 23)], vec![row(&[&(number * 11 % 7).to_string()])]);
        tape.send(1, "SELECT n FROM t WHERE id = 1", Vec::new(), vec![answer], 'T');
        let update = format!("UPDATE t SET n = {} WHERE id = 1", number * 11 % 7 + 2 + wrong);
        tape.simple(1, &update, "UPDATE 1");
        tape.simple(1, "COMMIT", "COMMIT");
    }
    let (files, _) = scripts(&tape.end());
    assert!(files["update-t.sql"].contains("SET n = :i_n WHERE id = 1;"), "{}", files["update-t.sql"]);
    assert!(
        files["README.md"].contains("input; read and computed held too seldom"),
        "{}",
        files["README.md"]
    );
}

#[test]
fn levels_are_followed_through_a_session() {
    let mut tape = Tape::begin(false);
    tape.open(1, "-c default_transaction_isolation=repeatable\\ read");
    let one = |tape: &mut Tape, begin: &str| counter(tape, 1, begin, 5, 1);
    one(&mut tape, "BEGIN");
    one(&mut tape, "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ WRITE");
    tape.send(
        1,
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        Vec::new(),
        vec![done("SET")],
        'I',
    );
    one(&mut tape, "BEGIN");
    let both = "BEGIN; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    tape.send(1, both, Vec::new(), vec![done("BEGIN"), done("SET")], 'T');
    one(&mut tape, "/* begun */ BEGIN");
    tape.send(
        1,
        "SELECT set_config('default_transaction_isolation', 'serializable', false)",
        Vec::new(),
        vec![done("SELECT 1")],
        'I',
    );
    one(&mut tape, "BEGIN READ ONLY DEFERRABLE");
    let recorded = recorded(&tape.end());
    let levels: Vec<Option<Level>> = recorded.transactions.iter().map(|one| one.level).collect();
    let (rc, rr, ser) = (Level::ReadCommitted, Level::RepeatableRead, Level::Serializable);
    assert_eq!(levels, [rr, ser, rc, rr, ser].map(Some));
    let last = &recorded.transactions[4];
    assert!(last.read_only && last.deferrable && last.end == End::Committed);
}

/// A transaction that fails at its UPDATE.
fn conflict(tape: &mut Tape, session: u64) {
    tape.simple(session, "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN");
    let columns = [column("id", 7, 1, 20), column("balance", 7, 2, 20)];
    let answer = tape.rows(&columns, vec![row(&["4711", "9"])]);
    tape.send(
        session,
        "SELECT id, balance FROM account WHERE id = $1",
        vec![value("4711")],
        vec![answer],
        'T',
    );
    let update = "UPDATE account SET balance = $1 WHERE id = $2";
    tape.send(session, update, vec![value("8"), value("4711")], vec![failed("40001")], 'E');
    tape.send(session, "ROLLBACK", Vec::new(), vec![done("ROLLBACK")], 'I');
}

#[test]
fn what_an_application_does_about_conflicts_is_counted() {
    let mut tape = Tape::begin(false);
    let serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE";
    conflict(&mut tape, 1);
    counter(&mut tape, 1, serializable, 9, 1);
    conflict(&mut tape, 1);
    tape.send(1, "SELECT 1 FROM account", Vec::new(), vec![Answer::default()], 'I');
    tape.send(1, "SELECT x FROM nowhere", Vec::new(), vec![failed("42P01")], 'I');
    let (_, summary) = scripts(&tape.end());
    assert!(
        summary.contains(
            "At serializable the application met conflicts in 2 of 3 transactions; it retried 1, and gave up 1."
        ),
        "{summary}"
    );
    assert!(summary.contains("Left out: 1 transaction that failed with SQLSTATE 42P01."), "{summary}");
}

#[test]
fn transactions_of_a_request_are_one_script_if_asked() {
    let mut tape = Tape::begin(false);
    for number in 0..6_u32 {
        tape.comment = Some(format!("traceparent='00-{number:032x}-00f067aa0ba902b7-01'"));
        let answer = tape.rows(&[column("n", 7, 1, 23)], vec![row(&[&number.to_string()])]);
        tape.send(1, "SELECT n FROM t WHERE id = 1", Vec::new(), vec![answer], 'I');
        let update = format!("UPDATE t SET n = {} WHERE id = 1", number + 1);
        tape.send(2, &update, Vec::new(), vec![done("UPDATE 1")], 'I');
    }
    let capture = tape.end();
    let (files, _) = folder(&capture, Scope::Request, 96.0);
    let script = &files["update-t.sql"];
    assert!(
        script.ends_with(
            "SELECT n FROM t WHERE id = 1 \\gset r1_\nCOMMIT;\nBEGIN;\nUPDATE t SET n = :r1_n::bigint + 1 WHERE id \
             = 1;\nCOMMIT;\n"
        ),
        "{script}"
    );
    let (files, _) = scripts(&capture);
    assert!(
        files["update-t.sql"].ends_with("BEGIN;\nUPDATE t SET n = :i_n WHERE id = 1;\nCOMMIT;\n"),
        "{}",
        files["update-t.sql"]
    );
}

#[test]
fn loops_are_unrolled_at_the_most_frequent_count() {
    let mut tape = Tape::begin(false);
    for number in 0..7 {
        tape.simple(1, "BEGIN", "BEGIN");
        for pass in 0..if number == 3 { 5 } else { 2 } {
            tape.simple(1, &format!("DELETE FROM t WHERE id = {}", number * 10 + pass), "DELETE 1");
        }
        tape.simple(1, "COMMIT", "COMMIT");
    }
    let (files, summary) = scripts(&tape.end());
    assert!(summary.contains("1 template is 100.0 % of 7 transactions."), "{summary}");
    assert_eq!(files["delete-t.sql"].matches("DELETE").count(), 2);
    assert!(files["setup.sql"].contains("  (6, '60', '61');"), "{}", files["setup.sql"]);
}

#[test]
fn savepoints_stay_and_nulls_are_null() {
    let mut tape = Tape::begin(false);
    for number in 0..6 {
        let text = if number % 2 == 0 { "NULL".to_owned() } else { format!("'it''s {number}:x'") };
        tape.simple(1, "BEGIN", "BEGIN");
        tape.simple(1, &format!("SAVEPOINT \"s{number}_x1\""), "SAVEPOINT");
        tape.simple(1, &format!("UPDATE t SET note = {text} WHERE id = 1"), "UPDATE 1");
        tape.simple(1, &format!("RELEASE SAVEPOINT \"s{number}_x1\""), "RELEASE");
        tape.simple(1, "COMMIT", "COMMIT");
    }
    let (files, _) = scripts(&tape.end());
    assert!(
        files["update-t.sql"].ends_with(
            "BEGIN;\nSAVEPOINT s1;\nUPDATE t SET note = nullif(:i_note, '') WHERE id = 1;\nRELEASE SAVEPOINT \
             s1;\nCOMMIT;\n"
        ),
        "{}",
        files["update-t.sql"]
    );
    assert!(files["setup.sql"].contains("(1, NULL),\n  (2, 'it''s 1:x'),"), "{}", files["setup.sql"]);
}

#[test]
fn hashes_and_a_missing_end_are_said() {
    let mut tape = Tape::begin(true);
    for number in 0..6 {
        let hash = Datum::Hash { hash: format!("{number:016x}"), bytes: 9 };
        tape.send(1, "DELETE FROM t WHERE name = $1", vec![Some(hash)], vec![done("DELETE 1")], 'I');
    }
    let mut capture = tape.into_bytes();
    capture.extend(b"{\"statement\":{\"sess");
    let (files, summary) = scripts(&capture);
    assert!(summary.contains("The capture is redacted") && summary.contains("breaks off"), "{summary}");
    assert!(files["setup.sql"].contains("(1, '0000000000000000')"), "{}", files["setup.sql"]);
}

/// Each waits 50 µs longer than what passes here: the recorder is told of a statement 100 µs after the one
/// before, whose answer took 50.
#[test]
fn pauses_within_transactions_are_kept_if_asked_for() {
    let mut tape = Tape::begin(false);
    for (before_update, before_end) in [(9_000, 0), (350, 950), (150, 30)] {
        tape.simple(1, "BEGIN", "BEGIN");
        tape.pass(5_000);
        tape.send(1, "SELECT id FROM offer WHERE id = 1", Vec::new(), vec![Answer::default()], 'T');
        tape.pass(before_update);
        tape.send(1, "UPDATE offer SET total = 1 WHERE id = 1", Vec::new(), vec![done("UPDATE 1")], 'T');
        tape.pass(before_end);
        tape.simple(1, "COMMIT", "COMMIT");
        tape.pass(70_000);
    }
    let capture = tape.end();
    let made = |pauses: bool| {
        let options = Options { pauses, ..Options::default() };
        let folder =
            Folder::of(&recorded(&capture), options, &Tables::Setup(SHOP.to_owned())).expect("a folder");
        folder.files[0].1.clone()
    };
    let script = made(true);
    let lines: Vec<&str> = script.lines().collect();
    // The median before the UPDATE; that before the end is too short to be kept. What is before the first
    // statement isn't within the transaction: its snapshot and its locks come later.
    assert_eq!(lines[2], "SELECT id FROM offer WHERE id = 1;", "{script}");
    assert_eq!(lines[3], "\\sleep 400 us", "{script}");
    assert_eq!(lines[5..], ["UPDATE offer SET total = 1 WHERE id = 1;", "COMMIT;"], "{script}");
    assert!(!made(false).contains("sleep"));
}

#[test]
fn what_cannot_become_scripts_is_refused() {
    let made = |capture: &[u8], tables: &Tables| {
        Folder::of(
            &recorded(capture),
            Options { scope: Scope::Transaction, coverage: 96.0, ..Options::default() },
            tables,
        )
    };
    let empty = made(&Tape::begin(false).end(), &Tables::Captured).unwrap_err();
    assert!(matches!(empty, Unmade::Empty), "{empty}");
    let error = made(&shop(3), &Tables::Captured).unwrap_err().to_string();
    assert!(
        error.contains("--copy-from") && error.contains("--setup") && error.contains("migrations"),
        "{error}"
    );
    let mut tape = Tape::begin(false);
    tape.send(1, "SELECT ':b' FROM t", Vec::new(), vec![Answer::default()], 'I');
    let error = made(&tape.end(), &Tables::Setup(String::new())).unwrap_err().to_string();
    assert!(error.contains("select-t: its SQL has a colon before a word"), "{error}");
}

#[test]
fn recorded_migrations_are_the_tables() {
    let mut tape = Tape::begin(false);
    tape.simple(1, "CREATE TABLE public.t (id int PRIMARY KEY)", "CREATE TABLE");
    tape.simple(1, "COMMIT", "COMMIT");
    tape.send(1, "SELECT id FROM t", Vec::new(), vec![Answer::default()], 'I');
    let options = Options { scope: Scope::Transaction, coverage: 96.0, ..Options::default() };
    let folder = Folder::of(&recorded(&tape.end()), options, &Tables::Captured).expect("a folder");
    let setup = &folder.files.iter().find(|(name, _)| name == "setup.sql").expect("a setup").1;
    assert!(setup.contains("\nCREATE TABLE t (id int PRIMARY KEY);\n"), "{setup}");
}

/// A capture of a transaction with a savepoint, in which this statement failed, and one of two words.
fn attacked(sql: &str) -> Vec<u8> {
    let mut tape = Tape::begin(false);
    for _ in 0..4 {
        tape.simple(1, "BEGIN", "BEGIN");
        tape.simple(1, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 1");
        tape.simple(1, "SAVEPOINT a", "SAVEPOINT");
        tape.send(1, sql, Vec::new(), vec![failed("42601")], 'E');
        tape.send(1, "ROLLBACK TO SAVEPOINT a", Vec::new(), vec![done("ROLLBACK")], 'T');
        tape.send(1, "COMMIT", Vec::new(), vec![done("COMMIT")], 'I');
        tape.send(1, "SELECT v FROM t", Vec::new(), vec![Answer::default()], 'I');
    }
    tape.end()
}

#[test]
fn recorded_sql_never_becomes_a_meta_command() {
    for sql in [
        "SELECT 1 \\shell eval \"id > /tmp/x\"\n",
        "SELECT 1\n\\shell id\n",
        "SELECT 1 -- x\r\n\\setshell x id",
        "SELECT 'a\\' \\! id '",
        "SELECT $a$ $b$ \\shell id $a$ \\shell id",
        "SELECT E'\\'' \\shell id",
        "SELECT 1 \\gset x",
        "SELECT \u{2028}\\shell id",
    ] {
        let (files, summary) = scripts(&attacked(sql));
        assert!(
            summary.contains("Left out: update-t: its SQL has a backslash outside of quotation marks"),
            "{sql:?}: {summary}"
        );
        assert!(summary.contains("(4 transactions)."), "{summary}");
        for (name, text) in files.iter().filter(|(name, _)| name.as_str() != "README.md") {
            assert!(!text.contains("shell") && !text.contains("\\!"), "{name}: {text}");
        }
    }
    // Within quotation marks a backslash is a part of the value.
    let (files, _) = scripts(&attacked("SELECT 1 WHERE x('\n\\shell id\n') = 'a\\'"));
    assert!(files["update-t.sql"].contains("x('\n\\shell id\n')"), "{}", files["update-t.sql"]);
}

#[test]
fn setup_has_no_command_of_psql() {
    for tables in [
        Tables::Setup("CREATE TABLE t (v int);\n\\! id\n".to_owned()),
        Tables::Setup("CREATE TABLE t (v int);\nSELECT 'a".to_owned()),
        Tables::Dump("CREATE TABLE public.t (v int);\nSELECT 1 \\g |id\n".to_owned()),
    ] {
        let error = Folder::of(&recorded(&shop(3)), Options::default(), &tables).unwrap_err();
        assert!(error.to_string().contains("more than SQL"), "{error}");
    }
    let unended = Tables::Setup("CREATE TABLE t (v int)".to_owned());
    let folder = Folder::of(&recorded(&shop(3)), Options::default(), &unended).expect("a folder");
    let setup = &folder.files.iter().find(|(name, _)| name == "setup.sql").expect("a setup").1;
    assert!(setup.contains("CREATE TABLE t (v int)\n;\n"), "{setup}");
}

#[test]
fn the_most_frequent_templates_cover_what_is_asked() {
    let capture = shop(20);
    let (files, summary) = folder(&capture, Scope::Transaction, 40.0);
    assert!(summary.contains("1 template is 50.0 % of 40 transactions."), "{summary}");
    assert!(summary.contains("Left out as rare: 1 template (50.0 %)"), "{summary}");
    assert_eq!(
        files.keys().filter(|name| name.strip_suffix(".sql").is_some()).count(),
        2,
        "{:?}",
        files.keys()
    );
    let recorded = recorded(&capture);
    let templates = Templates::of(&recorded, Scope::Transaction, 100.0);
    assert_eq!((templates.covered(), templates.total), (40, 40));
    let parts: u64 = recorded.left_out.values().sum();
    let work: usize = recorded.transactions.iter().map(|one| one.statements.len()).sum();
    // The rest are BEGIN and COMMIT.
    assert_eq!(recorded.statements, parts + work as u64 + 2 * 20);
}
