//! `isobench advise`: levels with what was shown, changes that mend it, their prices, and the check of a
//! file of levels.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::compare::words;
use crate::support::embedded::{connect, kill_server};
use crate::support::program::{Running, isobench};
use crate::support::scene::Scene;
use crate::support::wait_for;

const SETUP: &str = "CREATE TABLE control (id int PRIMARY KEY, batch int NOT NULL);\n\
    INSERT INTO control SELECT g, 1 FROM generate_series(1, 20) g;\n\
    CREATE TABLE receipt (id bigserial PRIMARY KEY, shop int NOT NULL, batch int NOT NULL);\n\
    CREATE INDEX ON receipt (shop, batch);\n";

const CLOSE: &str =
    "\\set s random(1, 20)\nBEGIN;\nUPDATE control SET batch = batch + 1 WHERE id = :s;\nCOMMIT;\n";

const RECEIPT: &str = "\\set s random(1, 20)\nBEGIN;\nSELECT batch AS b FROM control WHERE id = :s \\gset\n\
    INSERT INTO receipt (shop, batch) VALUES (:s, :b);\nCOMMIT;\n";

const REPORT: &str = "\\set s random(1, 20)\nBEGIN;\nSELECT batch - 1 AS b FROM control WHERE id = :s \\gset\n\
    SELECT count(*) FROM receipt WHERE shop = :s AND batch = :b;\nCOMMIT;\n";

const SCRIPTS: &str = "advise -f receipt.sql@3 -f close.sql -f report.sql@3 --setup setup.sql";

fn scene(name: &str) -> Option<Scene> {
    let scene = Scene::with_server(name)?;
    for (name, text) in
        [("setup.sql", SETUP), ("close.sql", CLOSE), ("receipt.sql", RECEIPT), ("report.sql", REPORT)]
    {
        scene.write(name, text);
    }
    Some(scene)
}

#[test]
fn a_script_comes_from_standard_input() {
    let Some(s) = scene("a_script_comes_from_standard_input") else { return };
    let line = "\"$0\" advise -f - --setup setup.sql --no-measure --try 1 < close.sql";
    let mut shell = s.program(Path::new("/bin/sh"), &["-c", line, &isobench()]);
    Running::start(&mut shell).finish().expect(0).prints(&["READ COMMITTED is enough"]);
}

/// The transactions of a report: with the levels that are known of this example (Ports and Grittner 2012,
/// 2.1.2; which read to lock: Fekete et al. 2005).
#[test]
fn receipts_need_serializable_or_one_lock() {
    let Some(s) = scene("receipts_need_serializable_or_one_lock") else { return };
    let line = format!(
        "{SCRIPTS} --time 200ms --rounds 3 --json out.json --html out.html --write levels.toml --details --controls --frameworks"
    );
    let finished = s.run(&words(&line)).expect(0);
    let finished = finished.prints(&[
        "This holds if nothing else writes these tables, and if they have the rows that scripts look up by key: control, receipt.",
        "\nreceipt.sql  serializable  proved; shown unsafe at repeatable read [1]\n",
        "+SELECT batch AS b FROM control WHERE id = :s FOR ",
        "\n  Spring      @Transactional(isolation = Isolation.SERIALIZABLE)\n",
        "\nWhat it costs: committed transactions per second, relative to read committed",
        "  lock receipt.sql:3",
        "\nOne transaction at a lower level than it needs, to see how often that goes wrong here:\n",
        " dependencies between the recorded transactions all follow from what is known of their statements.",
    ]);
    let text = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["[1] What goes wrong at ", " T1 ", "; one after the other it would get "] {
        assert!(text.contains(part), "{part}: {}", finished.stdout);
    }
    let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(advice["format"], "isobench/advice");
    for transaction in advice["transactions"].as_array().expect("transactions") {
        assert_eq!(transaction["level"], "serializable", "{transaction:#}");
        assert_eq!(transaction["status"], "proved", "{transaction:#}");
        assert_eq!(
            transaction["below"]["shown"]["found"].as_array().map(Vec::len),
            Some(1),
            "{transaction:#}"
        );
    }
    let cycle = advice["transactions"][0]["below"]["cycle"].as_array().expect("a cycle");
    assert_eq!(cycle.first().map(|one| &one["first"]), cycle.last().map(|one| &one["then"]));
    let page = s.read("out.html");
    assert!(
        page.contains("class=\"arrow strong\"") && page.contains("id=\"price\""),
        "the graph, and prices"
    );
    assert_eq!(advice["changes"][0]["changes"][0]["at"], "receipt.sql:3");
    assert_eq!(advice["changes"][0]["allocation"], "report.sql=rr,*=rc");
    assert_eq!(advice["changes"][0]["refuted"], Value::Null);
    let rows = advice["measured"]["candidates"].as_array().expect("rows");
    // Read committed, the answer, a change, what passed if something did, and three of them lowered.
    let passed = usize::from(!advice["transactions"][0]["passed"].is_null());
    assert_eq!(rows.len(), 6 + passed, "{rows:#?}");
    let lowered: Vec<&str> = rows
        .iter()
        .filter(|row| row["control"] == true)
        .filter_map(|row| row["allocation"].as_str())
        .collect();
    assert_eq!(lowered.len(), 3, "{rows:#?}");
    assert!(lowered.contains(&"receipt.sql=rr,*=ser"), "{lowered:?}");
    assert!(rows.iter().all(|row| row["tps"].as_f64() > Some(0.0)), "{rows:#?}");
    let locked = rows.iter().find(|row| row["changes"].is_string()).expect("a row");
    assert_eq!(locked["anomalies"], 0, "{locked:#}");
    assert!(advice["measured"]["dependencies"].as_u64() > Some(0), "{:#}", advice["measured"]);
    assert_eq!(advice["unpredicted"], Value::Array(Vec::new()));
    let finished = s.run(&words(&format!("{SCRIPTS} --no-measure"))).expect(0);
    let finished = finished.prints(&[
        "3 transactions on control, receipt; PostgreSQL ",
        "\n  Run all 3 at SERIALIZABLE, and retry on SQLSTATE 40001.\n",
        "  [1] What goes wrong at ",
        "\n  Or change ",
        "receipt.sql:3",
        " FOR ",
        "\n  How sure  Levels are proved for these statements, if nothing else writes these tables",
        "\n  More      --details",
    ]);
    assert!(finished.stdout.lines().count() <= 45, "{}", finished.stdout);
    // The levels of the file are enough until a statement changes.
    s.run(&words(&format!("{SCRIPTS} --check levels.toml"))).expect(0).prints(&["are enough for 3 scripts"]);
    let lower = s
        .read("levels.toml")
        .replace("\"report.sql\" = \"serializable\"", "\"report.sql\" = \"repeatable read\"");
    s.write("lower.toml", &lower);
    let finished = s.run(&words(&format!("{SCRIPTS} --check lower.toml"))).expect(3);
    finished.prints(&["What goes wrong at ", " gets "]).says(&["aren't enough any more"]);
    s.assert_clean();
}

#[test]
fn what_is_not_known_lowers_no_level() {
    let Some(s) = scene("what_is_not_known_lowers_no_level") else { return };
    s.write(
        "trigger.sql",
        "CREATE TABLE line (id bigserial PRIMARY KEY, purchase int, amount int);\n\
         CREATE TABLE purchase (id int PRIMARY KEY, total int NOT NULL);\nINSERT INTO purchase VALUES (1, 0);\n\
         CREATE FUNCTION add() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN \
         SELECT sum(amount) AS s INTO r FROM line WHERE purchase = NEW.purchase; \
         UPDATE purchase SET total = r.s WHERE id = NEW.purchase; RETURN NULL; END $$;\n\
         CREATE TRIGGER add AFTER INSERT ON line FOR EACH ROW EXECUTE FUNCTION add();\n",
    );
    s.write("buy.sql", "BEGIN;\nINSERT INTO line (purchase, amount) VALUES (1, 5);\nCOMMIT;\n");
    let finished = s
        .run(&words("advise -f buy.sql --setup trigger.sql --no-measure --details --json out.json"))
        .expect(0);
    finished.prints(&[
        "\nbuy.sql      serializable  proved; shown unsafe at read committed [1]; repeatable read passed ",
        "what line 2 may do",
        "buy.sql:2: isobench doesn't know what triggers of line do: INSERT INTO line",
    ]);
    let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(advice["transactions"][0]["status"], "proved");
    assert_eq!(advice["transactions"][0]["level"], "serializable");
    assert_eq!(advice["transactions"][0]["passed"]["level"], "repeatable read");
    // No level protects what one transaction passes on to the next.
    s.write(
        "apart.sql",
        "SELECT batch AS b FROM control WHERE id = 1 \\gset\nUPDATE control SET batch = :b + 1 WHERE id = 1;\n",
    );
    let finished = s.run(&words("advise -f apart.sql --setup setup.sql --no-measure --details")).expect(0);
    finished.prints(&[
        "apart.sql:2 writes what another transaction, of line 1, read before: no level protects that",
    ]);
    s.assert_clean();
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_tried() {
    let Some(s) = scene("what_cannot_be_done_is_refused_before_anything_is_tried") else { return };
    s.write("mine.toml", "x = 1\n");
    s.write("other.toml", "version = 2\n[levels]\n\"gone.sql\" = \"serializable\"\n");
    s.write("database.sql", "CREATE TABLE t (id int PRIMARY KEY);\nCREATE DATABASE shop;\n");
    let finished = s.run(&words("advise -f close.sql --setup database.sql")).expect(1);
    finished.says(&["--setup: database.sql:2 says \"database\", which concerns the whole server"]);
    for (name, text, said) in [
        (
            "schema.sql",
            "UPDATE shop.control SET batch = 1;\n",
            "schema.sql:1: ERROR:  relation \"shop.control\"",
        ),
        (
            "sequence.sql",
            "BEGIN;\nSELECT nextval('public.none');\nEND;\n",
            "sequence.sql:2: ERROR:  relation",
        ),
        (
            "lock.sql",
            "BEGIN;\nLOCK TABLE public.none;\nEND;\n",
            "lock.sql:2: ERROR:  relation \"public.none\"",
        ),
        (
            "branch.sql",
            "\\if 0\nSELECT * FROM batches;\n\\endif\nSELECT 1;\n",
            "branch.sql:2: ERROR:  relation",
        ),
    ] {
        s.write(name, text);
        for command in ["advise --no-measure --details", "probe", "compare --no-save"] {
            let finished = s.run(&words(&format!("{command} -f {name} --setup setup.sql"))).expect(1);
            finished.says(&[said, "Make it in the file of --setup"]);
        }
    }
    s.write("level.sql", "BEGIN ISOLATION LEVEL SERIALIZABLE;\nSELECT 1;\nCOMMIT;\n");
    for (line, said) in [
        ("--write mine.toml", "exists and isn't a file of levels of isobench, so it isn't overwritten"),
        ("--check mine.toml", "--check: mine.toml: "),
        ("--check other.toml", "it has a level for gone.sql, but there is no such script"),
        ("--check none.toml", "--check: none.toml: No such file"),
        ("-f level.sql", "level.sql:1: "),
        ("-f none.sql", "could not open file \"none.sql\""),
    ] {
        s.run(&words(&format!("{SCRIPTS} {line}"))).expect(1).says(&[said]);
    }
    assert_eq!(s.read("mine.toml"), "x = 1\n");
    s.assert_clean();
}

/// A dump as `pg_dump` writes it: an empty search path, roles of another server, an extension, rows after COPY.
const DUMP: &str = "\\restrict a1B2\n\nSELECT pg_catalog.set_config('search_path', '', false);\n\
    CREATE EXTENSION IF NOT EXISTS citext WITH SCHEMA public;\nCREATE ROLE auditor;\n\
    CREATE TABLE public.product (id integer NOT NULL, name public.citext, public boolean, stock integer);\n\
    ALTER TABLE public.product OWNER TO shop;\nGRANT SELECT ON TABLE public.product TO \"some one\";\n\
    COPY public.product (id, name, public, stock) FROM stdin;\n1\tone; two's\tt\t100\n2\t\\N\tf\t100\n\\.\n\n\
    ALTER TABLE ONLY public.product ADD CONSTRAINT product_pkey PRIMARY KEY (id);\n\\unrestrict a1B2\n";

#[test]
fn a_dump_makes_the_tables_on_an_embedded_server() {
    let Some(s) = Scene::with_server("a_dump_makes_the_tables_on_an_embedded_server") else { return };
    s.write("dump.sql", DUMP);
    s.write(
        "sell.sql",
        "BEGIN;\nSELECT stock FROM public.product WHERE id = 1 \\gset\n\
         UPDATE product SET stock = :stock - 1 WHERE id = 1;\nCOMMIT;\n",
    );
    let finished = s.run(&words("advise -f sell.sql --setup dump.sql --no-measure --details")).expect(0);
    finished.prints(&["\nsell.sql     repeatable read  proved; shown unsafe at read committed [1]"]);
    let finished = s.run(&words("probe -f sell.sql --setup dump.sql --try 1 --replay none.spec")).expect(2);
    finished.says(&["a spec can't hold the rows that follow the COPY at dump.sql:9"]);
    let compare = "compare -f sell.sql --setup dump.sql --time 200ms --rounds 2 --try 1 --no-save";
    s.run(&words(compare)).expect(0).prints(&["sell.sql:2 → sell.sql:3"]);
    s.assert_clean();
}

/// Numbers come from a sequence before the commit, so that a reader of all beyond the last one passes some
/// by: of that theory knows nothing.
#[test]
fn what_no_level_prevents_is_said_first() {
    let Some(s) = Scene::with_server("what_no_level_prevents_is_said_first") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE outbox (id bigserial PRIMARY KEY, sent boolean NOT NULL DEFAULT false);\n\
         CREATE TABLE reader (id int PRIMARY KEY, last bigint NOT NULL);\nINSERT INTO reader VALUES (1, 0);\n",
    );
    s.write("publish.sql", "BEGIN;\nINSERT INTO outbox DEFAULT VALUES;\nSELECT 1;\nCOMMIT;\n");
    s.write(
        "poll.sql",
        "BEGIN;\nSELECT last AS l FROM reader WHERE id = 1 FOR UPDATE \\gset\n\
         SELECT coalesce(max(id), :l) AS m FROM outbox WHERE id > :l \\gset\n\
         UPDATE outbox SET sent = true WHERE id > :l AND id <= :m;\n\
         UPDATE reader SET last = :m WHERE id = 1;\nCOMMIT;\n",
    );
    let condition =
        "sent: SELECT count(*) = 0 FROM outbox WHERE NOT sent AND id <= (SELECT last FROM reader)";
    let mut line = words(
        "advise -f publish.sql -f poll.sql --setup setup.sql --no-measure --try 60 --details --json out.json",
    );
    line.extend(["--invariant", condition]);
    let expected = [
        "\nNo level is enough: this goes wrong at serializable, too [1].\n",
        "This breaks condition \"sent\".",
    ];
    s.run(&line).expect(0).prints(&expected);
    let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(advice["transactions"][1]["status"], "unsafe", "{advice:#}");
    for (wrong, why) in [
        ("no query", "syntax error"),
        ("SELECT", "the query returned 0 columns"),
        ("SELECT false", "doesn't hold before anything is measured"),
    ] {
        s.run(&["advise", "-f", "publish.sql", "--setup", "setup.sql", "--invariant", wrong])
            .expect(1)
            .says(&["--invariant", why]);
    }
}

/// An ORM that saves all columns writes back what another transaction has changed (go-gorm/gorm, issue 969);
/// what is read in another transaction, no level protects.
#[test]
fn updates_are_rewritten() {
    let Some(s) = Scene::with_server("updates_are_rewritten") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE profile (id int PRIMARY KEY, city int NOT NULL, visits int NOT NULL);\n\
         INSERT INTO profile SELECT g, 0, 0 FROM generate_series(1, 20) g;\n",
    );
    let id = "\\set id random(1, 10)\n";
    let read = "SELECT city AS c, visits AS v FROM profile WHERE id = :id \\gset\n";
    let save = |what: &str, block: bool| {
        let (begin, end) = if block { ("BEGIN;\n", "COMMIT;\n") } else { ("", "") };
        format!("{id}{begin}{read}UPDATE profile SET {what} WHERE id = :id;\n{end}")
    };
    s.write("move.sql", &save("city = 7, visits = :v", true));
    s.write("visit.sql", &save("city = :c, visits = :v + 1", true));
    s.write("count.sql", &save("visits = :v + 1", false));
    let advise = |scripts: &str| {
        s.run(&words(&format!("advise {scripts} --setup setup.sql --no-measure --details --try 20")))
            .expect(0)
    };
    advise("-f move.sql -f visit.sql").prints(&[
        "  rewrite move.sql:4 + rewrite visit.sql:4 (SET city = 7, SET visits = visits + 1): read committed\n",
        "\n+UPDATE profile SET city = 7 WHERE id = :id;\n",
        "\n+UPDATE profile SET visits = visits + 1 WHERE id = :id;\n",
    ]);
    advise("-f count.sql").prints(&[
        "count.sql:3 writes what another transaction, of line 2, read before",
        "  rewrite count.sql:3 (SET visits = visits + 1): read committed",
    ]);
}

/// Transfers between accounts in an order that their parameters decide.
#[test]
fn transactions_that_can_wait_for_each_other_are_named() {
    let Some(s) = Scene::with_server("transactions_that_can_wait_for_each_other_are_named") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);\n\
         INSERT INTO account SELECT g, 0 FROM generate_series(1, 4) g;\n",
    );
    s.write(
        "transfer.sql",
        "\\set a random(1, 4)\n\\set b 1 + :a % 4\nBEGIN;\n\
         UPDATE account SET balance = balance - 1 WHERE id = :a;\n\
         UPDATE account SET balance = balance + 1 WHERE id = :b;\nCOMMIT;\n",
    );
    let line =
        "advise -f transfer.sql --setup setup.sql --try 500ms --time 1s --rounds 2 --json out.json --details";
    s.run(&words(line)).expect(0).prints(&[
        "\ntransfer.sql  read committed  proved\n",
        "(SQLSTATE 40P01):\n  transfer.sql:4 locks a row of account, and transfer.sql:5 one of account;",
        "lock the row with the lower key first.",
        "\nIn the measurement: ",
    ]);
    let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    let rows = advice["measured"]["candidates"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["deadlocks"].as_u64() > Some(0)), "{rows:#?}");
}

/// A check by the application whether a name is taken, as ORMs validate uniqueness.
#[test]
fn a_unique_index_is_tried() {
    let Some(s) = Scene::with_server("a_unique_index_is_tried") else { return };
    let setup = "CREATE TABLE person (id bigserial PRIMARY KEY, email text NOT NULL);\n\
        CREATE INDEX ON person (email);\n\
        INSERT INTO person (email) SELECT 'u' || g FROM generate_series(1, 20) g;\n";
    s.write("setup.sql", setup);
    s.write("twice.sql", &format!("{setup}INSERT INTO person (email) VALUES ('u1');\n"));
    let script = "\\set k random(1, 30)\n\\set one 0\nBEGIN;\n\
        SELECT 1 AS one FROM person WHERE email = 'new' || :k LIMIT 1 \\aset\n\\if :one = 0\n\
        INSERT INTO person (email) VALUES ('new' || :k);\n\\endif\nCOMMIT;\n";
    s.write("sign_up.sql", script);
    let advise = |setup: &str| {
        s.run(&words(&format!("advise -f sign_up.sql --setup {setup} --no-measure --details --try 20")))
            .expect(0)
    };
    advise("setup.sql").prints(&[
        "\nsign_up.sql  serializable  proved; shown unsafe at repeatable read [1]\n",
        "  unique index on person (email): read committed; not proved, nothing wrong shown in ",
        "\nCREATE UNIQUE INDEX ON person (email);\n",
    ]);
    // A name that has to be quoted.
    s.write("quoted.sql", &setup.replace("email", "\"user\""));
    s.write("sign_up.sql", &script.replace("email", "\"user\""));
    advise("quoted.sql").prints(&["\nCREATE UNIQUE INDEX ON person (\"user\");\n"]);
    s.write("sign_up.sql", script);
    // Its rows don't permit one.
    let twice = advise("twice.sql").prints(&["but not tried:", "a unique index on (email) makes the second"]);
    assert!(!twice.stdout.contains("CREATE UNIQUE INDEX"), "{}", twice.stdout);
}

/// An index that would refuse what the same transactions do one after another is no fix.
#[test]
fn an_index_that_changes_what_an_application_does_is_not_proposed() {
    let Some(s) = Scene::with_server("an_index_that_changes_what_an_application_does_is_not_proposed") else {
        return;
    };
    s.write(
        "setup.sql",
        "CREATE TABLE course (id int PRIMARY KEY, places int NOT NULL);\n\
         CREATE TABLE booking (id bigserial PRIMARY KEY, course int NOT NULL, guest int NOT NULL);\n\
         CREATE TABLE invoice (id bigserial PRIMARY KEY, tenant int NOT NULL, number int NOT NULL);\n\
         INSERT INTO course SELECT g, 2 FROM generate_series(1, 20) g;\n\
         INSERT INTO invoice (tenant, number) SELECT g, n FROM generate_series(1, 20) g, generate_series(1, 2) n;\n",
    );
    s.write(
        "book.sql",
        "\\set c random(1, 20)\n\\set guest random(1, 1000)\nBEGIN;\n\
         SELECT places AS places FROM course WHERE id = :c \\gset\n\
         SELECT count(*) AS taken FROM booking WHERE course = :c \\gset\n\
         \\if :taken < :places\nINSERT INTO booking (course, guest) VALUES (:c, :guest);\n\\endif\nCOMMIT;\n",
    );
    s.write(
        "bill.sql",
        "\\set t random(1, 20)\nBEGIN;\n\
         SELECT max(number) + 1 AS next FROM invoice WHERE tenant = :t \\gset\n\
         INSERT INTO invoice (tenant, number) VALUES (:t, :next);\nCOMMIT;\n",
    );
    let advise = |script: &str| {
        s.run(&words(&format!("advise -f {script} --setup setup.sql --no-measure --details --try 20")))
            .expect(0)
    };
    // Several guests book a course. Its row is the lock.
    let book = advise("book.sql").prints(&[
        "\nbook.sql     serializable  proved; shown unsafe at repeatable read [1]\n",
        "  lock book.sql:4 (FOR NO KEY UPDATE): read committed\n",
        "\n+SELECT places AS places FROM course WHERE id = :c FOR NO KEY UPDATE \\gset\n",
    ]);
    assert!(!book.stdout.contains("unique index"), "{}", book.stdout);
    // A tenant has several invoices, each with its number.
    advise("bill.sql").prints(&[
        "  unique index on invoice (tenant, number): read committed; not proved, nothing wrong shown in ",
        "\nCREATE UNIQUE INDEX ON invoice (tenant, number);\n",
    ]);
}

/// An advisory lock is a lock, and a snapshot that is older than it sees what was there before.
#[test]
fn what_an_advisory_lock_protects_is_proved() {
    let Some(s) = Scene::with_server("what_an_advisory_lock_protects_is_proved") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE ticket (id bigserial PRIMARY KEY, board int NOT NULL, number int NOT NULL);\n\
         INSERT INTO ticket (board, number) SELECT g, 1 FROM generate_series(1, 10) g;\n",
    );
    s.write(
        "add.sql",
        "\\set board random(1, 10)\nBEGIN;\nSELECT pg_advisory_xact_lock(7, :board);\n\
         SELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
         INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
    );
    s.run(&words("advise -f add.sql --setup setup.sql --no-measure --details --try 20")).expect(0).prints(&[
        "\nadd.sql      read committed  proved; raising it to repeatable read would be unsafe [1]\n",
    ]);
    let compared =
        s.run(&words("compare -f add.sql --setup setup.sql --levels rc,rr --time 1s --rounds 3 --try 20"));
    let compared = compared.expect(0).prints(&[
        "Use READ COMMITTED.\n",
        "No anomaly found in ",
        "Repeatable read is worse than read committed here: after it has waited for a lock, a transaction",
    ]);
    assert!(!compared.stdout.contains("nothing shows"), "{}", compared.stdout);
}

/// Two doctors of a shift, of whom one has to be on call.
#[test]
fn counted_rows_are_locked_and_tried() {
    let Some(s) = Scene::with_server("counted_rows_are_locked_and_tried") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE doctor (shift int, name int, on_call boolean NOT NULL, PRIMARY KEY (shift, name));\n\
         INSERT INTO doctor SELECT s, n, true FROM generate_series(1, 20) s, generate_series(1, 2) n;\n",
    );
    s.write(
        "leave.sql",
        "\\set s random(1, 10)\n\\set n random(1, 2)\nBEGIN;\n\
         SELECT count(*) AS c FROM doctor WHERE shift = :s AND on_call \\gset\n\\if :c > 1\n\
         UPDATE doctor SET on_call = false WHERE shift = :s AND name = :n;\n\\endif\nCOMMIT;\n",
    );
    s.run(&words("advise -f leave.sql --setup setup.sql --no-measure --details --try 20")).expect(0).prints(&[
        "\nleave.sql    serializable  proved; shown unsafe at repeatable read [1]",
        "  lock leave.sql:4 (FOR NO KEY UPDATE): read committed; not proved, nothing wrong shown in ",
        "\n+SELECT 1 FROM doctor WHERE shift = :s ORDER BY doctor.shift, doctor.name FOR NO KEY UPDATE;\n",
    ]);
}

/// The others are measured without it.
#[test]
fn a_script_that_fails_is_left_out_of_the_prices_by_name() {
    let Some(s) = Scene::with_server("a_script_that_fails_is_left_out_of_the_prices_by_name") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE acc (id int PRIMARY KEY, bal int NOT NULL);\nINSERT INTO acc SELECT g, 100 FROM generate_series(1, 9) g;\n",
    );
    s.write(
        "add.sql",
        "BEGIN;\nSELECT bal AS b FROM acc WHERE id = 1 \\gset\nUPDATE acc SET bal = :b + 1 WHERE id = 1;\nCOMMIT;\n",
    );
    // Its data are used up after the first time.
    s.write("once.sql", "INSERT INTO acc VALUES (1000, 1);\n");
    s.write("zero.sql", "SELECT 1 / 0;\n");
    let line = "advise -f add.sql -f once.sql -f zero.sql --setup setup.sql --try 2 --rounds 2 --time 0.3 --json out.json";
    s.run(&words(line)).expect(0).prints(&[
        "all serializable",
        "Measured without zero.sql: it failed each time: line 1: 22012: division by zero",
        "Measured without once.sql: ERROR: duplicate key value violates unique constraint",
    ]);
    let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    let left_out = advice["measured"]["left_out"].as_array().expect("scripts");
    assert_eq!(left_out.iter().map(|one| &one["script"]).collect::<Vec<_>>(), ["zero.sql", "once.sql"]);
    assert_eq!(advice["measured"]["candidates"].as_array().map(Vec::len), Some(4), "{advice:#}");
}

/// What was found before is reported, and no file of levels is written.
#[test]
fn an_interrupted_search_reports_what_it_has() {
    let Some(s) = scene("an_interrupted_search_reports_what_it_has") else { return };
    let line = format!("{SCRIPTS} --try 10m --no-measure --details --json out.json --write levels.toml");
    let running = Running::start(&mut s.isobench(&words(&line)));
    running.wait_for_stderr("trying");
    running.signal(Signal::INT);
    running.finish().expect(2).says(&["interrupted"]).prints(&[
        "This holds if nothing else writes these tables, and if they have the rows that scripts look up by key: control, receipt.",
        "receipt.sql  serializable",
    ]);
    let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    assert_eq!(advice["transactions"].as_array().map(Vec::len), Some(3));
    assert!(!s.file("levels.toml").exists());
}

/// Tables that take long to make aren't made for every schedule.
#[test]
fn tables_are_made_for_a_limited_time() {
    let Some(s) = scene("tables_are_made_for_a_limited_time") else { return };
    s.write("slow.sql", &format!("SELECT pg_sleep(0.6);\n{SETUP}"));
    let line = SCRIPTS.replace("setup.sql", "slow.sql") + " --try 0.1 --no-measure --details --json out.json";
    let mut command = s.isobench(&words(&line));
    // The least limit is 1 s then.
    let finished = Running::start(command.env("ISOBENCH_PATIENCE", "0.1")).finish().expect(0);
    // As soon as it is spent: after one of them on a slow machine.
    assert!((1..=2).contains(&finished.stderr.matches("\ntrying ").count()), "{}", finished.stderr);
    let found = s.read("out.json");
    assert!(
        found.contains("making the tables for other schedules took") && found.contains("of at most 1 s"),
        "{found}"
    );
    finished.prints(&["making the tables for other schedules took"]);
}

/// Options, what to wait for, and whether anything was measured by then.
type Phase<'p> = (&'p str, &'p dyn Fn(&Scene, &Running), bool);

/// Whenever the server is lost, what was found is reported, the status is the same, and nothing is told of
/// what wasn't measured.
#[test]
fn a_lost_server_leaves_what_was_found() {
    let tries = |s: &Scene, running: &Running| {
        running.wait_for_stderr("trying");
        connect(s);
    };
    let measures = |s: &Scene, _: &Running| {
        let mut server = connect(s);
        let clients = "select count(*) > 8 from pg_stat_activity where backend_type = 'client backend'";
        wait_for("clients", || {
            server.value(clients).is_ok_and(|many| many.as_deref() == Some("t")).then_some(())
        });
    };
    let has_measured = |_: &Scene, running: &Running| running.wait_for_stderr("round 1/");
    let phases: [Phase<'_>; 3] = [
        ("--try 10m --no-measure --details", &tries, false),
        ("--try 20 --time 60s --rounds 3", &measures, false),
        ("--try 20 --time 200ms --rounds 500", &has_measured, true),
    ];
    for (options, wait, measured) in phases {
        let Some(s) = scene("a_lost_server_leaves_what_was_found") else { return };
        let line = format!("{SCRIPTS} {options} --json out.json --write levels.toml");
        let running = Running::start(&mut s.isobench(&words(&line)));
        wait(&s, &running);
        kill_server(&s);
        running.finish().expect(2).prints(&["INCOMPLETE: ", "receipt.sql  serializable"]);
        let advice: Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
        assert!(advice["incomplete"].is_string(), "{options}: {advice:#}");
        let rows = advice["measured"]["candidates"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(rows.is_empty(), !measured, "{options}: {rows:#?}");
        assert!(rows.iter().all(|row| row["tps"].is_number() || row["anomalies"] != 0), "{rows:#?}");
        assert!(s.file("levels.toml").exists() || !measured, "{options}");
    }
}

/// Two workers that take the first job of a queue take the same one.
#[test]
fn a_queue_is_taken_past_locked_rows() {
    let Some(s) = Scene::with_server("a_queue_is_taken_past_locked_rows") else { return };
    s.write(
        "setup.sql",
        "CREATE TABLE job (id int PRIMARY KEY, state text NOT NULL, worker int);\n\
         INSERT INTO job SELECT g, 'new', NULL FROM generate_series(1, 20) g;\n",
    );
    s.write(
        "take.sql",
        "\\set w random(1, 100)\nBEGIN;\nSELECT id AS job FROM job WHERE state = 'new' ORDER BY id LIMIT 1 \\gset\n\
         UPDATE job SET state = 'taken', worker = :w WHERE id = :job;\nCOMMIT;\n",
    );
    s.run(&words("advise -f take.sql --setup setup.sql --no-measure --details --try 20")).expect(0).prints(&[
        "\ntake.sql     serializable  proved; shown unsafe at read committed [1]",
        "lock take.sql:3 (FOR UPDATE SKIP LOCKED): read committed; not proved, nothing wrong shown in ",
        "\n+SELECT id AS job FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED \\gset\n",
    ]);
}

/// Static statements of triggers are read; of one that executes a text nothing is known, and the lock before it is tried.
#[test]
fn triggers_are_read_or_tried() {
    let Some(s) = scene("triggers_are_read_or_tried") else { return };
    let setup = |function: &str, when: &str| {
        format!(
            "DROP TABLE IF EXISTS doc, kept;\nDROP FUNCTION IF EXISTS changed;\n\
             CREATE TABLE doc (id int PRIMARY KEY, body int NOT NULL, at timestamptz);\n\
             CREATE TABLE kept (id bigserial PRIMARY KEY, body int NOT NULL);\n\
             CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {function} RETURN NEW; END $$;\n\
             CREATE TRIGGER changed {when} UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION changed();\n\
             INSERT INTO doc SELECT g, 0 FROM generate_series(1, 5) g;\n"
        )
    };
    s.write("time.sql", &setup("NEW.at = now();", "BEFORE"));
    s.write("copy.sql", &setup("INSERT INTO kept (body) VALUES (NEW.body);", "AFTER"));
    let executed = "EXECUTE 'INSERT INTO kept (body) VALUES ($1)' USING NEW.body;";
    s.write("executed.sql", &setup(executed, "AFTER"));
    s.write(
        "edit.sql",
        "\\set i random(1, 5)\nBEGIN;\nSELECT body AS b FROM doc WHERE id = :i \\gset\n\
         UPDATE doc SET body = :b + 1 WHERE id = :i;\nCOMMIT;\n",
    );
    let advise = |setup: &str| {
        s.run(&words(&format!("advise -f edit.sql --setup {setup} --no-measure --details --try 20")))
    };
    advise("time.sql").expect(0).prints(&[
        "\nedit.sql     repeatable read  proved; shown unsafe at read committed [1]\n",
        "lock edit.sql:3 (FOR NO KEY UPDATE): read committed\n",
    ]);
    let tried = "lock edit.sql:3 (FOR NO KEY UPDATE): read committed; not proved, nothing wrong shown in ";
    advise("copy.sql").expect(0).prints(&[
        "if they have the rows that scripts look up by key: doc, kept.",
        "\nedit.sql     serializable  proved; shown unsafe at read committed [1]",
        tried,
    ]);
    advise("executed.sql").expect(0).prints(&[
        "what line 4 may do",
        tried,
        "isobench doesn't know what triggers of doc do",
    ]);
}

/// The day is closed with its sum: whoever books locks it first, and whoever closes it.
#[test]
fn what_is_counted_is_locked_by_its_parent() {
    let Some(s) = scene("what_is_counted_is_locked_by_its_parent") else { return };
    let tables = "DROP TABLE IF EXISTS booking, day;\n\
        CREATE TABLE day (id int PRIMARY KEY, closed boolean NOT NULL, total int);\n\
        CREATE TABLE booking (id bigserial PRIMARY KEY, day int NOT NULL REFERENCES day, amount int NOT NULL);\n\
        INSERT INTO day SELECT g, false, 0 FROM generate_series(1, 5) g;\n";
    s.write("days.sql", tables);
    s.write(
        "book.sql",
        "\\set d random(1, 5)\nBEGIN;\nSELECT count(*) AS open FROM day WHERE id = :d AND NOT closed \\gset\n\
         \\if :open = 1\nINSERT INTO booking (day, amount) VALUES (:d, 7);\n\\endif\nCOMMIT;\n",
    );
    s.write(
        "close.sql",
        "\\set d random(1, 5)\nBEGIN;\nSELECT coalesce(sum(amount), 0) AS sum FROM booking WHERE day = :d \\gset\n\
         UPDATE day SET closed = true, total = :sum WHERE id = :d AND NOT closed;\nCOMMIT;\n",
    );
    let advise = |scripts: &str, setup: &str| {
        s.run(&words(&format!("advise {scripts} --setup {setup} --no-measure --details --try 20"))).expect(0)
    };
    advise("-f book.sql -f close.sql", "days.sql").prints(&[
        "\nbook.sql     serializable  proved; shown unsafe at repeatable read [1]\n",
        "  lock before book.sql:3 + lock before close.sql:3 (SELECT 1 FROM day WHERE id = :d FOR NO KEY UPDATE",
        ": read committed\n",
        "\n BEGIN;\n+SELECT 1 FROM day WHERE id = :d FOR NO KEY UPDATE;\n SELECT coalesce(",
    ]);
    // What a trigger reads isn't known, so that the lock is tried.
    let summed = "CREATE OR REPLACE FUNCTION summed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n\
        UPDATE day SET total = (SELECT sum(amount) FROM booking WHERE day = NEW.day) WHERE id = NEW.day;\n\
        RETURN NULL; END $$;\n\
        CREATE TRIGGER summed AFTER INSERT ON booking FOR EACH ROW EXECUTE FUNCTION summed();\n";
    s.write("summed.sql", &format!("{tables}{summed}"));
    s.write(
        "add.sql",
        "\\set d random(1, 5)\nBEGIN;\nINSERT INTO booking (day, amount) VALUES (:d, 7);\nCOMMIT;\n",
    );
    advise("-f add.sql", "summed.sql").prints(&[
        "\nadd.sql      serializable  proved; shown unsafe at read committed [1]; repeatable read passed ",
        "  lock before add.sql:3 (SELECT 1 FROM day WHERE id = :d FOR NO KEY UPDATE): read committed; not proved, nothing",
    ]);
}
