//! Which levels the built-in workloads' scripts need, from their SQL.

use std::collections::BTreeSet;
use std::fmt::Write;

use isobench_database::Asked;
use isobench_database::detect;
use isobench_pgwire::Connection;
use isobench_program::{FirstLock, FirstLockKind, Templates, templates};
use isobench_robustness::{Promoted, Promoting, Promotion, Struck, allocate, promote};
use isobench_script::{Symbols, parse};
use isobench_testkit::golden::expect;
use isobench_workloads::{all, find};

use crate::support::{golden, installed, load};

/// The most reads that are changed.
const MOST_CHANGES: usize = 2;

/// A set of transactions: its name, the SQL that makes its tables, and its scripts with their names.
type Set = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Articles with a version, and notes.
const ARTICLES: &str = "CREATE TABLE IF NOT EXISTS article (id int PRIMARY KEY, version int NOT NULL, \
    views int NOT NULL); \
    CREATE TABLE IF NOT EXISTS note (id int PRIMARY KEY, views int NOT NULL)";

/// Numbers that are counted up on each board.
const TICKETS: &str = "CREATE TABLE IF NOT EXISTS ticket (id bigserial PRIMARY KEY, board int NOT NULL, \
    number int NOT NULL)";

/// Changes an article as object-relational mappers do that know a version (JPA: `@Version`).
const EDIT: (&str, &str) = (
    "edit",
    "BEGIN;\nSELECT version AS v, views AS n FROM article WHERE id = :id \\gset\n\\set next :v + 1\n\
     UPDATE article SET views = :n * 2, version = :next WHERE id = :id AND version = :v;\nEND;\n",
);

/// Sets of which the levels are known. Auction: Vandevoort et al., PVLDB 14(11), 2021. The link node: the
/// transactions of a payment daemon whose maintainers audited 340 of them by hand (lnd, pull request
/// 10998). The mutex: two jobs that must not run at once. TPC-B with its reader: all orders give the same.
const SETS: [Set; 19] = [
    (
        "tpc-b and select-only",
        "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int NOT NULL); \
         CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int NOT NULL); \
         CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int NOT NULL); \
         CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp)",
        &[
            (
                "tpcb-like",
                "BEGIN;\nUPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
                 SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
                 UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
                 UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
                 INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
                 VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\nEND;\n",
            ),
            ("select-only", "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"),
        ],
    ),
    (
        "auction",
        "CREATE TABLE buyer (id int PRIMARY KEY, calls int NOT NULL); \
         CREATE TABLE bids (buyer int PRIMARY KEY REFERENCES buyer, bid int NOT NULL); \
         CREATE TABLE log (id bigserial PRIMARY KEY, buyer int REFERENCES buyer, bid int)",
        &[
            (
                "find-bids",
                "BEGIN;\nUPDATE buyer SET calls = calls + 1 WHERE id = :b;\nSELECT bid FROM bids WHERE bid >= :t;\nCOMMIT;\n",
            ),
            (
                "place-bid",
                "BEGIN;\nUPDATE buyer SET calls = calls + 1 WHERE id = :b;\nSELECT bid FROM bids WHERE buyer = :b \\gset\n\
                 \\if :bid < :v\nUPDATE bids SET bid = :v WHERE buyer = :b;\n\\endif\n\
                 INSERT INTO log (buyer, bid) VALUES (:b, :v);\nCOMMIT;\n",
            ),
        ],
    ),
    (
        "auction whose bids are found by another key than the buyer's",
        "CREATE TABLE IF NOT EXISTS offer (id int PRIMARY KEY, bid int NOT NULL)",
        &[
            (
                "find-bids",
                "BEGIN;\nUPDATE buyer SET calls = calls + 1 WHERE id = :b;\nSELECT bid FROM offer WHERE bid >= :t;\nCOMMIT;\n",
            ),
            (
                "place-bid",
                "BEGIN;\nUPDATE buyer SET calls = calls + 1 WHERE id = :b;\nSELECT bid FROM offer WHERE id = :o \\gset\n\
                 \\if :bid < :v\nUPDATE offer SET bid = :v WHERE id = :o;\n\\endif\n\
                 INSERT INTO log (buyer, bid) VALUES (:b, :v);\nCOMMIT;\n",
            ),
        ],
    ),
    (
        "link-node",
        "CREATE TABLE link_node (peer int PRIMARY KEY); \
         CREATE TABLE channel (id bigserial PRIMARY KEY, peer int NOT NULL, opened bool NOT NULL)",
        &[
            (
                "sync",
                "BEGIN;\nSELECT peer AS known FROM link_node WHERE peer = :p \\aset\n\\if :known is null\n\
                 INSERT INTO link_node VALUES (:p);\n\\endif\n\
                 INSERT INTO channel (peer, opened) VALUES (:p, true);\nCOMMIT;\n",
            ),
            (
                "mark-closed",
                "BEGIN;\nSELECT count(*) AS open FROM channel WHERE peer = :p AND opened \\gset\n\\if :open = 0\n\
                 DELETE FROM link_node WHERE peer = :p;\n\\endif\nCOMMIT;\n",
            ),
            (
                "view",
                "BEGIN;\nSELECT peer FROM link_node WHERE peer = :p;\nSELECT id FROM channel WHERE peer = :p;\nCOMMIT;\n",
            ),
        ],
    ),
    (
        "mutex",
        "CREATE TABLE mutex (id int PRIMARY KEY); INSERT INTO mutex VALUES (1); \
         CREATE TABLE job (id bigserial PRIMARY KEY)",
        &[(
            "job",
            "BEGIN;\nSELECT id FROM mutex WHERE id = 1 FOR UPDATE;\nSELECT count(*) AS n FROM job \\gset\n\
             \\if :n = 0\nINSERT INTO job DEFAULT VALUES;\n\\endif\nCOMMIT;\n",
        )],
    ),
    (
        "advisory lock: before the numbers are read",
        TICKETS,
        &[(
            "add",
            "BEGIN;\nSELECT pg_advisory_xact_lock(7, :board);\n\
             SELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
             INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
        )],
    ),
    (
        "advisory lock: of a hash, by two scripts",
        TICKETS,
        &[
            (
                "add",
                "BEGIN;\nSELECT pg_advisory_xact_lock(hashtext('board ' || :board));\n\
                 SELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
                 INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
            ),
            (
                "renumber",
                "BEGIN;\nSELECT pg_advisory_xact_lock(hashtext('board ' || :b)) AS locked;\n\
                 SELECT count(*) AS n FROM ticket WHERE board = :b \\gset\n\
                 INSERT INTO ticket (board, number) VALUES (:b, :n);\nCOMMIT;\n",
            ),
        ],
    ),
    // None of these keeps the same script out.
    (
        "advisory lock: shared, or not to the end, or another one, or too late",
        TICKETS,
        &[
            (
                "shared",
                "BEGIN;\nSELECT pg_advisory_xact_lock_shared(:board);\n\
                 SELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
                 INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
            ),
            (
                "given-back",
                "BEGIN;\nSELECT pg_advisory_lock(:board);\n\
                 SELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
                 INSERT INTO ticket (board, number) VALUES (:board, :next);\n\
                 SELECT pg_advisory_unlock(:board);\nCOMMIT;\n",
            ),
            (
                "another",
                "BEGIN;\nSELECT pg_advisory_xact_lock(:client);\n\
                 SELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
                 INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
            ),
            (
                "too-late",
                "BEGIN;\nSELECT max(number) + 1 AS next FROM ticket WHERE board = :board \\gset\n\
                 SELECT pg_advisory_xact_lock(:board);\n\
                 INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
            ),
        ],
    ),
    (
        "advisory lock: in the statement that reads",
        TICKETS,
        &[(
            "add",
            "BEGIN;\n\
             SELECT max(number) + 1 AS next, pg_advisory_xact_lock(:board) FROM ticket WHERE board = :board \\gset\n\
             INSERT INTO ticket (board, number) VALUES (:board, :next);\nCOMMIT;\n",
        )],
    ),
    (
        "optimistic lock: a version that every UPDATE raises",
        ARTICLES,
        &[EDIT, ("count", "UPDATE article SET views = views + 1, version = version + 1 WHERE id = :id;\n")],
    ),
    // What is tested again is as it was read, but nothing else is.
    (
        "optimistic lock: a version that not every UPDATE raises",
        ARTICLES,
        &[EDIT, ("count", "UPDATE article SET views = views + 1 WHERE id = :id;\n")],
    ),
    (
        "optimistic lock: a value that comes again",
        ARTICLES,
        &[(
            "flip",
            "BEGIN;\nSELECT views AS n, version AS v FROM article WHERE id = :id \\gset\n\
             UPDATE article SET views = :n * 2, version = 1 - :v WHERE id = :id AND version = :v;\nEND;\n",
        )],
    ),
    (
        "optimistic lock: nothing but the value that is tested",
        ARTICLES,
        &[(
            "take",
            "BEGIN;\nSELECT views AS n FROM article WHERE id = :id \\gset\n\
             UPDATE article SET views = :n * 2 WHERE id = :id AND views = :n;\nEND;\n",
        )],
    ),
    (
        "optimistic lock: what was refused is noted",
        ARTICLES,
        &[(
            "edit",
            "BEGIN;\nSELECT views AS n, version AS v FROM article WHERE id = :id \\gset\n\
             UPDATE article SET views = :n * 2, version = :v + 1 WHERE id = :id AND version = :v;\n\
             UPDATE note SET views = :n WHERE id = :id;\nEND;\n",
        )],
    ),
    (
        "check-then-insert",
        "CREATE TABLE person (id bigserial PRIMARY KEY, email text NOT NULL)",
        &[(
            "sign-up",
            "BEGIN;\nSELECT 1 AS one FROM person WHERE email = 'new' || :n LIMIT 1 \\aset\n\\if :one is null\n\
             INSERT INTO person (email) VALUES ('new' || :n);\n\\endif\nCOMMIT;\n",
        )],
    ),
    (
        "a lock that is too weak",
        "CREATE TABLE conto (id int PRIMARY KEY, closed boolean NOT NULL); \
         CREATE TABLE line (id bigserial PRIMARY KEY, conto int NOT NULL); \
         CREATE TABLE final (conto int PRIMARY KEY, total bigint NOT NULL)",
        &[
            (
                "post",
                "BEGIN;\nSELECT closed AS shut FROM conto WHERE id = :c FOR KEY SHARE \\gset\n\\if not :shut\n\
                 INSERT INTO line (conto) VALUES (:c);\n\\endif\nEND;\n",
            ),
            (
                "close",
                "BEGIN;\nUPDATE conto SET closed = true WHERE id = :c;\n\
                 INSERT INTO final SELECT :c, count(*) FROM line WHERE conto = :c;\nEND;\n",
            ),
        ],
    ),
    (
        "the version that the server keeps",
        "CREATE TABLE stored (id int PRIMARY KEY, quantity int NOT NULL, price int NOT NULL)",
        &[
            (
                "take",
                "BEGIN;\nSELECT quantity AS q, xmin AS v FROM stored WHERE id = :id \\gset\n\
                 UPDATE stored SET quantity = :q - 1 WHERE id = :id AND xmin::text = ':v';\nEND;\n",
            ),
            // Who reads it sees changes of any column.
            (
                "follow",
                "BEGIN;\nSELECT xmin AS v FROM stored WHERE id = :id \\gset\n\
                 UPDATE stored SET price = length(':v') WHERE id = :other;\nEND;\n",
            ),
        ],
    ),
    (
        "a unique index of some rows",
        "CREATE TABLE member (id bigserial PRIMARY KEY, person int NOT NULL, active boolean NOT NULL); \
         CREATE UNIQUE INDEX ON member (person) WHERE active",
        &[
            (
                "join",
                "INSERT INTO member (person, active) VALUES (:p, true) ON CONFLICT (person) WHERE active DO NOTHING;\n",
            ),
            ("leave", "UPDATE member SET active = false WHERE person = :p AND active;\n"),
        ],
    ),
    (
        "a trigger that sets the time",
        "CREATE TABLE page (id int PRIMARY KEY, views int NOT NULL, at timestamptz NOT NULL DEFAULT now()); \
         CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN NEW.at = now(); RETURN NEW; END'; \
         CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON page FOR EACH ROW EXECUTE FUNCTION touch()",
        &[
            (
                "view",
                "BEGIN;\nSELECT views AS v FROM page WHERE id = :id \\gset\nUPDATE page SET views = :v + 1 WHERE id = :id;\nEND;\n",
            ),
            ("write", "INSERT INTO page (id, views) VALUES (:id, 0);\n"),
            // What the trigger changes is read here.
            ("latest", "SELECT id FROM page WHERE at > :since;\n"),
        ],
    ),
];

/// Other ways to write TPC-C: the starts of lines, and what stands there instead. Stock that is read before
/// it is written (as in CockroachDB's TPC-C, pull request 113834); and deliveries of orders by their numbers
/// rather than of the oldest one, of which every new order changes the answer, as far as can be known.
const SPELLINGS: [(&str, &[(&str, &str)]); 2] = [
    (
        "stock is read first",
        &[(
            "UPDATE stock SET",
            "SELECT s_quantity AS q, s_dist_01 AS info FROM stock WHERE s_w_id = :supply AND s_i_id = :i \\gset\n\
             UPDATE stock SET s_quantity = :q - :quantity, s_ytd = s_ytd + :quantity WHERE s_w_id = :supply AND \
             s_i_id = :i RETURNING s_data",
        )],
    ),
    (
        "orders are delivered by their numbers",
        &[(
            "SELECT (CAST(no_w_id AS bigint)",
            "SELECT no_o_id AS number FROM new_order WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = :wanted",
        )],
    ),
];

#[test]
fn workloads_need_levels() {
    let Some((_server, mut connection)) = installed("workloads_need_levels") else { return };
    let database = detect(&mut connection).unwrap();
    let mut text = String::new();
    for workload in all() {
        let chosen = find(workload.name).unwrap();
        for statement in chosen.setup(&database).unwrap() {
            connection.execute(&statement).unwrap();
        }
        let scripts = scripts_of(workload.name);
        writeln!(text, "===== {}\n{}", workload.name, levels_of(&mut connection, &scripts)).unwrap();
    }
    for (name, in_place) in SPELLINGS {
        let mut scripts = scripts_of("tpcc");
        for (_, text) in &mut scripts {
            for (start, instead) in in_place {
                let line = |line: &str| {
                    if line.starts_with(start) { (*instead).to_owned() } else { line.to_owned() }
                };
                *text = text.lines().map(|one| line(one) + "\n").collect();
            }
        }
        writeln!(text, "===== tpcc, {name}\n{}", levels_of(&mut connection, &scripts)).unwrap();
    }
    for (name, setup, scripts) in SETS {
        connection.execute(setup).unwrap();
        let scripts: Vec<(String, String)> =
            scripts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        writeln!(text, "===== {name}\n{}", levels_of(&mut connection, &scripts)).unwrap();
    }
    expect(golden("templates.txt"), &text);
}

/// A row can be locked first if its key is known then, and if that isn't what happens anyway.
#[test]
fn rows_are_locked_first_whose_keys_are_known() {
    let Some((_server, mut connection)) = installed("rows_are_locked_first_whose_keys_are_known") else {
        return;
    };
    connection
        .execute(
            "CREATE TABLE day (id int PRIMARY KEY, \"left\" int NOT NULL); \
             CREATE TABLE booking (id bigserial PRIMARY KEY, day int NOT NULL REFERENCES day, n int); \
             CREATE TABLE spread (id int PRIMARY KEY, n int); \
             CREATE TABLE spread0 () INHERITS (spread); \
             CREATE FUNCTION empty() RETURNS void LANGUAGE plpgsql AS 'BEGIN DELETE FROM day; END'",
        )
        .unwrap();
    let catalog = load(&mut connection);
    let mut of_kind = |text: &str, kind: FirstLockKind| {
        let mut symbols = Symbols::new();
        let script = parse("s", text, &mut symbols).unwrap();
        let mut catalog = catalog.clone();
        catalog.read_statements([&script], &mut Asked(&mut connection)).unwrap();
        let found = templates(&[script], &symbols, &catalog, &BTreeSet::new()).first_locks;
        let alone = |lock: &FirstLock| if lock.alone.is_some() { " alone" } else { "" };
        let found = found.iter().filter(|lock| lock.kind == kind);
        found.map(|lock| format!("{}{}: {}", lock.line, alone(lock), lock.text)).collect::<Vec<_>>()
    };
    let day = "SELECT 1 FROM day WHERE id = :d";
    let count = "SELECT count(*) FROM booking WHERE day = :d;\n";
    let add =
        "INSERT INTO booking (day) SELECT :d WHERE (SELECT count(*) FROM booking WHERE day = :d) < 3;\n";
    let number = "SELECT pg_advisory_xact_lock(hashtext('booking.day'), :d)";
    assert_eq!(of_kind(add, FirstLockKind::Advisory), [format!("1 alone: {number}")]);
    assert_eq!(of_kind(add, FirstLockKind::Lock), [format!("1 alone: {day} FOR NO KEY UPDATE")]);
    let reads = "BEGIN;\n\\set d random(1, 9)\nSELECT count(*) FROM day WHERE id = :d;\nEND;\n";
    let back = "UPDATE day SET \"left\" = \"left\" WHERE id = :d";
    assert_eq!(of_kind(reads, FirstLockKind::WriteBack), [format!("3: {back}")]);
    assert_eq!(of_kind(&reads.replace("count(*)", "1"), FirstLockKind::Advisory), [""; 0], "a key is a row");
    let missing = "SELECT pg_advisory_xact_lock(hashtext('day.id'), :d)";
    let delete = "DELETE FROM day WHERE id = :d;\n";
    assert!(of_kind(delete, FirstLockKind::Advisory).contains(&format!("1 alone: {missing}")));
    let parent = [format!("1 alone: {day} FOR NO KEY UPDATE")];
    assert_eq!(of_kind("UPDATE booking SET n = 1 WHERE day = :d;\n", FirstLockKind::Lock), parent);
    let whole = "LOCK TABLE booking IN SHARE ROW EXCLUSIVE MODE";
    assert_eq!(of_kind(add, FirstLockKind::Table), [format!("1 alone: {whole}")]);
    assert_eq!(of_kind(reads, FirstLockKind::Table), [""; 0], "it only reads");
    let children = "UPDATE spread SET n = 1;\n";
    assert_eq!(of_kind(children, FirstLockKind::Table), [""; 0], "rows of others aren't locked");
    let mut of = |text: &str| of_kind(text, FirstLockKind::Lock);
    let update = "UPDATE day SET \"left\" = 1 WHERE id = :d;\n";
    let read = "SELECT \"left\" FROM day WHERE id = :d;\n";
    let insert = "INSERT INTO booking (day) VALUES (:d);\n";
    let writer = [format!("2: {day} FOR NO KEY UPDATE")];
    assert_eq!(of(&format!("BEGIN;\n{count}{update}END;\n")), writer);
    assert_eq!(of(&format!("BEGIN;\n{count}{read}END;\n")), [format!("2: {day} FOR SHARE")]);
    assert_eq!(of(&format!("BEGIN;\n{count}{read}{update}END;\n")), writer, "the stronger one");
    assert_eq!(of(&format!("BEGIN;\n{count}{insert}END;\n")), writer, "by the foreign key");
    assert_eq!(of(&format!("BEGIN;\n{update}{count}END;\n")), [""; 0], "it is the first one already");
    assert_eq!(
        of(
            "BEGIN;\nUPDATE day SET \"left\" = (SELECT count(*) FROM booking WHERE day = :d) WHERE id = :d;\nEND;\n"
        ),
        writer,
        "what it counts is older than its lock"
    );
    let unknown = format!("BEGIN;\n{count}{read}SELECT empty();\nEND;\n");
    assert_eq!(of(&unknown), writer, "it may be written");
    let two = format!("{update}BEGIN;\n{count}{update}END;\nBEGIN;\n{count}END;\n");
    assert_eq!(of(&two), [format!("3: {day} FOR NO KEY UPDATE")], "in its own transaction");
    let constant = "BEGIN;\nSELECT 1;\nUPDATE day SET \"left\" = 1 WHERE id = 7;\nEND;\n";
    assert_eq!(of(constant), ["2: SELECT 1 FROM day WHERE id = 7 FOR NO KEY UPDATE"]);
    let set = format!("BEGIN;\n\\set d :d + 1\n{count}{update}END;\n");
    assert_eq!(of(&set), [format!("3: {day} FOR NO KEY UPDATE")], "behind what gives it a value");
    let other = "SELECT count(*) FROM booking WHERE n = :d;\n";
    for unknown in [
        format!("BEGIN;\nSELECT day AS d FROM booking WHERE n = :n \\gset\n{update}END;\n"),
        format!("BEGIN; {count}{update}END;\n"),
        format!("BEGIN;\n{other}UPDATE day SET \"left\" = 1 WHERE id > :d;\nEND;\n"),
        format!("BEGIN;\n{other}UPDATE spread SET n = 1 WHERE id = :d;\nEND;\n"),
        format!("{count}{update}"),
    ] {
        assert_eq!(of(&unknown), [""; 0], "{unknown}");
    }
}

/// The unique index that a statement may miss has the constants of its condition, and the columns that tell rows apart.
#[test]
fn unique_indexes_follow_from_the_words_of_a_condition() {
    let Some((_server, mut connection)) = installed("unique_indexes_follow_from_the_words_of_a_condition")
    else {
        return;
    };
    connection
        .execute("CREATE TABLE task (id int PRIMARY KEY, key int, state text, doing boolean, at int)")
        .unwrap();
    let catalog = load(&mut connection);
    let mut of = |text: &str| {
        let mut symbols = Symbols::new();
        let scripts = [parse("s", &format!("{text};\n"), &mut symbols).unwrap()];
        let mut catalog = catalog.clone();
        catalog.read_statements(&scripts, &mut Asked(&mut connection)).unwrap();
        let found = templates(&scripts, &symbols, &catalog, &BTreeSet::new());
        let keys = found.statements.iter().flat_map(|statement| &statement.partial_keys);
        let keys = keys.map(|key| {
            let columns: Vec<&str> = key.columns.iter().map(String::as_str).collect();
            format!("{}: {}", columns.join(", "), key.condition.as_deref().unwrap_or("all"))
        });
        keys.collect::<Vec<_>>().join("; ")
    };
    let mut count = |condition: &str| of(&format!("SELECT count(*) FROM task t WHERE {condition}"));
    assert_eq!(count("key = :k AND state <> 'done'"), "key: state <> 'done'");
    assert_eq!(count("t.key = :k AND t.state IN ('new', 'it''s')"), "key: state IN ('new', 'it''s')");
    assert_eq!(
        count("key = :k AND state NOT IN ('done') AND NOT doing"),
        "key: NOT doing AND state NOT IN ('done')"
    );
    assert_eq!(count("state = 'new' AND at > :a"), "state: state = 'new'", "one with this constant");
    assert_eq!(count("doing"), "doing: doing");
    for none in
        ["state <> 'done'", "state IN ('new', :s)", "id = :k AND doing", "key = :k OR doing", "key = :k"]
    {
        assert_eq!(count(none), "", "{none}");
    }
    assert_eq!(of("SELECT id FROM task WHERE state = 'new' ORDER BY at LIMIT 1"), "", "the first of some");
    assert_eq!(of("UPDATE task SET doing = false WHERE doing AND id <> :k RETURNING id"), "doing: doing");
    assert_eq!(of("UPDATE task SET doing = false WHERE doing OR id = :k"), "");
    let merge = |on: &str, then: &str| {
        format!("MERGE INTO task t USING (SELECT :k::int AS k) v ON {on} WHEN {then} VALUES (v.k, v.k)")
    };
    let inserts = "NOT MATCHED THEN INSERT (id, key)";
    assert_eq!(of(&merge("t.key = v.k AND t.at = 1", inserts)), "at, key: all");
    assert_eq!(of(&merge("(v.k = t.key)", inserts)), "key: all");
    for none in ["t.id = v.k", "t.key > v.k", "t.key = v.k OR t.at = 1", "v.k = 1"] {
        assert_eq!(of(&merge(none, inserts)), "", "{none}");
    }
}

/// Of a join with rows of one table locked those of the others can be locked, too.
#[test]
fn locks_of_a_join_are_added_to() {
    let Some((_server, mut connection)) = installed("locks_of_a_join_are_added_to") else { return };
    connection
        .execute(
            "CREATE TABLE customer (id int PRIMARY KEY, credit int); \
             CREATE TABLE invoice (id int PRIMARY KEY, customer int, due int)",
        )
        .unwrap();
    let mut catalog = load(&mut connection);
    let mut of = |locks: &str| {
        let mut symbols = Symbols::new();
        let join =
            "SELECT c.credit, i.due FROM invoice i JOIN customer c ON c.id = i.customer WHERE i.id = :i";
        let scripts = [parse("s", &format!("{join}{locks};\n"), &mut symbols).unwrap()];
        catalog.read_statements(&scripts, &mut Asked(&mut connection)).unwrap();
        let found = templates(&scripts, &symbols, &catalog, &BTreeSet::new());
        let fixes = found.statements[0].fixes.iter();
        let fixes = fixes.filter_map(|(table, fix)| Some(format!("{table}{}", fix.lock.as_ref()?)));
        fixes.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(of(""), "customer OF c, invoice OF i");
    assert_eq!(of(" FOR UPDATE OF i"), "customer OF c");
    assert_eq!(of(" FOR SHARE OF c"), "invoice OF i");
    for whole in [" FOR UPDATE", " FOR UPDATE OF i SKIP LOCKED", " FOR UPDATE OF i FOR SHARE OF c"] {
        assert_eq!(of(whole), "", "{whole}");
    }
}

/// A workload's scripts, with their names.
fn scripts_of(workload: &str) -> Vec<(String, String)> {
    find(workload).unwrap().scripts().into_iter().map(|script| (script.name, script.text)).collect()
}

/// The levels that scripts need.
fn levels_of(connection: &mut Connection, scripts: &[(String, String)]) -> String {
    let mut symbols = Symbols::new();
    let parsed: Vec<_> =
        scripts.iter().map(|(name, text)| parse(name, text, &mut symbols).unwrap()).collect();
    let mut catalog = load(connection);
    catalog.read_statements(&parsed, &mut Asked(connection)).unwrap();
    // As for isobench's own workloads.
    catalog.sends_parameters = true;
    let found = templates(&parsed, &symbols, &catalog, &BTreeSet::new());
    described(&found)
}

fn described(found: &Templates) -> String {
    let programs = &found.programs;
    let mut text = String::new();
    for statement in found.statements.iter().filter(|statement| statement.unknown.is_some()) {
        let why = statement.unknown.as_deref().unwrap_or_default();
        writeln!(text, "unknown: {} {why}: {}", statement.at, statement.text).unwrap();
    }
    if let Some((statement, others)) = found.stands_for.first_key_value() {
        let others: Vec<String> = others.iter().map(ToString::to_string).collect();
        let (all, others) = (found.stands_for.len(), others.join(", "));
        writeln!(text, "counting at others: {all}, first {statement} at {others}").unwrap();
    }
    let allocated = allocate(programs, &Struck::new());
    let levels = |levels: &[isobench_isolation::Level]| {
        let each = programs.iter().zip(levels).map(|(program, level)| format!("{}: {level}", program.name));
        each.collect::<Vec<_>>().join(", ")
    };
    let branches: Vec<usize> = programs.iter().map(|program| program.branches.len()).collect();
    writeln!(text, "branches {branches:?}\n{}", levels(&allocated.levels)).unwrap();
    for raised in &allocated.raised {
        write!(text, "at {}:\n{}", raised.lower, raised.objection.steps(programs)).unwrap();
    }
    let promoting =
        Promoting { most: MOST_CHANGES, struck: &Struck::new(), may: &|_| true, stopped: &|| false };
    for Promoted { promotions, levels: with, .. } in promote(programs, &promoting) {
        let change = |promotion: &Promotion| format!("{:?} {}", promotion.change, promotion.at);
        let changes: Vec<String> = promotions.iter().map(change).collect();
        writeln!(text, "{} -> {}", changes.join(" + "), levels(&with)).unwrap();
    }
    text
}
