//! All workloads on the installed PostgreSQL: tables, invariants, and scripts under the real
//! pgbench.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use isobench_database::{Database, detect};
use isobench_pgserver::Server;
use isobench_pgwire::Connection;
use isobench_script::{Annotated, Symbols, parse};
use isobench_workloads::{Chosen, check, find, make};

use crate::support::{every, postgresql, session, smaller};

/// The number of every attempt in these tests.
const ATTEMPT: u64 = 7;

fn found(conn: &mut Connection, chosen: &Chosen) -> BTreeMap<&'static str, u64> {
    let database = detect(conn).unwrap();
    check(conn, &database, chosen).unwrap().into_iter().map(|row| (row.name, row.found)).collect()
}

#[test]
fn scripts_run_under_the_real_pgbench() {
    let Some((server, bin)) = postgresql("scripts_run_under_the_real_pgbench") else { return };
    let mut conn = session(&server);
    let database = detect(&mut conn).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for chosen in every().iter().map(smaller) {
        // Variants drop the tables of the preceding workload.
        assert!(make(&mut conn, &mut [], &database, &chosen).unwrap().is_empty());
        assert!(found(&mut conn, &chosen).values().all(|found| *found == 0), "{}", chosen.name());
        for protocol in ["simple", "prepared"] {
            pgbench(&bin, &server, folder.path(), &chosen, protocol);
        }
        everything_was_written(&mut conn, &chosen);
        // The transactions ran at serializable.
        assert!(found(&mut conn, &chosen).values().all(|found| *found == 0), "{}", chosen.name());
    }
}

/// All statements work in the schema with an empty search path, and with the user's own tables of
/// the same names in the search path.
#[test]
fn every_statement_names_the_schema() {
    let Some((server, bin)) = postgresql("every_statement_names_the_schema") else { return };
    let mut conn = session(&server);
    let mut database = detect(&mut conn).unwrap();
    conn.execute("CREATE SCHEMA isobench; SET search_path = pg_catalog").unwrap();
    database.schema = Some("isobench".to_owned());
    let folder = tempfile::tempdir().unwrap();
    for chosen in every().iter().map(smaller) {
        assert!(make(&mut conn, &mut [], &database, &chosen).unwrap().is_empty());
        let names = chosen.names(&database);
        let placed = |text: &str| database.place(text, &names).into_owned();
        pgbench_with(&bin, &server, folder.path(), &chosen, "simple", &placed, "pg_catalog");
        let broken = check(&mut conn, &database, &chosen).unwrap();
        assert!(broken.iter().all(|row| row.found == 0), "{}: {broken:?}", chosen.name());
    }
    let elsewhere = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
        WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'isobench')";
    assert_eq!(conn.value(elsewhere).unwrap().as_deref(), Some("0"));
}

/// Everything that the scripts declare as written is in the tables.
fn everything_was_written(conn: &mut Connection, chosen: &Chosen) {
    for script in chosen.scripts() {
        let parsed = parse(&script.name, &script.text, &mut Symbols::new()).unwrap();
        for annotation in parsed.annotations() {
            let written = match &annotation.what {
                Annotated::Write { table, .. } => format!("{table} WHERE writer = {ATTEMPT}"),
                Annotated::Insert { table, .. } if table == "order_line" => {
                    format!("{table} WHERE ol_o_id > {}", chosen.value("customers").unwrap())
                }
                Annotated::Insert { table, .. } => format!("{table} WHERE id > 0"),
                Annotated::Append { table, .. } => format!("{table} WHERE elements <> ''"),
                _ => continue,
            };
            let count = conn.value(&format!("SELECT count(*) FROM {written}")).unwrap().unwrap();
            assert_ne!(count, "0", "{}: {}", script.name, annotation.text);
        }
    }
}

/// Runs some transactions at serializable; conflicts are retried, any other error fails the test.
fn pgbench(bin: &Path, server: &Server, folder: &Path, chosen: &Chosen, protocol: &str) {
    pgbench_with(bin, server, folder, chosen, protocol, &|text| text.to_owned(), "public");
}

/// The same with modified scripts and a search path.
fn pgbench_with(
    bin: &Path,
    server: &Server,
    folder: &Path,
    chosen: &Chosen,
    protocol: &str,
    changed: &dyn Fn(&str) -> String,
    search_path: &str,
) {
    let mut command = Command::new(bin.join("pgbench"));
    command.arg("-h").arg(server.socket_dir());
    command.args(["-p", &server.port().to_string(), "-U", server.user()]);
    command.args([
        "-n",
        "-M",
        protocol,
        "-c",
        "4",
        // pgbench prepares statements while everything else in the thread waits, and a DEFERRABLE
        // transaction waits for the others.
        "-j",
        "4",
        "-t",
        "10",
        "--max-tries",
        "10000",
        "--random-seed",
        "1",
        "-D",
        &format!("attempt_id={ATTEMPT}"),
        "-D",
        "attempt=1",
        "-D",
        "transaction=1",
    ]);
    for (index, script) in chosen.scripts().iter().enumerate() {
        let path = folder.join(format!("{index}.sql"));
        std::fs::write(&path, changed(&script.text)).unwrap();
        command.arg("-f").arg(format!("{}@{}", path.display(), script.weight));
    }
    for (name, value) in chosen.variables() {
        command.args(["-D", &format!("{name}={value}")]);
    }
    let settings = format!("-c default_transaction_isolation=serializable -c search_path={search_path}");
    command.arg(server.database()).env("PGOPTIONS", settings);
    let output = command.output().unwrap();
    let (said, printed) =
        (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout).into_owned());
    assert!(output.status.success(), "{} {protocol}: {said}", chosen.name());
    assert!(printed.contains("actually processed: 40/40"), "{} {protocol}: {printed}{said}", chosen.name());
}

/// Two clients, `a` and `b`, at an isolation level, their interleaved statements, and the
/// violations that the invariants find afterwards.
struct Violation {
    workload: &'static str,
    level: &'static str,
    steps: &'static [(char, &'static str)],
    found: &'static [(&'static str, u64)],
}

/// Interleavings that are possible in no serial execution. The statements are copies of the
/// scripts'.
#[rustfmt::skip]
const VIOLATIONS: [Violation; 15] = [
    Violation {
        workload: "registers",
        level: "read committed",
        steps: &[
            ('a', "SELECT val FROM registers WHERE id = 3"),
            ('b', "SELECT val FROM registers WHERE id = 3"),
            ('a', "UPDATE registers SET version = version + 1, val = 1 WHERE id = 3"),
            ('a', "COMMIT"),
            ('b', "UPDATE registers SET version = version + 1, val = 1 WHERE id = 3"),
            ('b', "COMMIT"),
        ],
        found: &[("increments-counted", 1)],
    },
    Violation {
        workload: "bank",
        level: "read committed",
        steps: &[
            ('a', "SELECT balance FROM accounts WHERE id IN (1, 2)"),
            ('b', "SELECT balance FROM accounts WHERE id IN (2, 3)"),
            ('a', "UPDATE accounts SET balance = 930 WHERE id = 1"),
            ('a', "UPDATE accounts SET balance = 1070 WHERE id = 2"),
            ('a', "COMMIT"),
            ('b', "UPDATE accounts SET balance = 1005 WHERE id = 2"),
            ('b', "UPDATE accounts SET balance = 995 WHERE id = 3"),
            ('b', "COMMIT"),
        ],
        found: &[("total-unchanged", 70)],
    },
    Violation {
        workload: "write-skew",
        level: "repeatable read",
        steps: &[
            ('a', "SELECT sum(on_call) FROM doctors WHERE id BETWEEN 3 AND 4"),
            ('b', "SELECT sum(on_call) FROM doctors WHERE id BETWEEN 3 AND 4"),
            ('a', "UPDATE doctors SET on_call = 0 WHERE id = 3"),
            ('b', "UPDATE doctors SET on_call = 0 WHERE id = 4"),
            ('a', "COMMIT"),
            ('b', "COMMIT"),
        ],
        found: &[("shifts-covered", 1)],
    },
    // A doctor who comes back doesn't undo the violation.
    Violation {
        workload: "write-skew",
        level: "repeatable read",
        steps: &[
            ('a', "UPDATE doctors SET on_call = 0 WHERE id = 3"),
            ('b', "UPDATE doctors SET on_call = 0 WHERE id = 4"),
            ('a', "COMMIT"),
            ('b', "COMMIT"),
            ('a', "UPDATE doctors SET on_call = 1, alarms = alarms + 1 WHERE id = 3"),
            ('a', "COMMIT"),
        ],
        found: &[("shifts-covered", 1)],
    },
    Violation {
        workload: "mytab",
        level: "repeatable read",
        steps: &[
            ('a', "SELECT count(*) FROM mytab WHERE class = 11"),
            ('b', "SELECT count(*) FROM mytab WHERE class = 10"),
            ('a', "INSERT INTO mytab (class, id, val) VALUES (10, 1, 0)"),
            ('b', "INSERT INTO mytab (class, id, val) VALUES (11, 2, 0)"),
            ('a', "COMMIT"),
            ('b', "COMMIT"),
            ('a', "INSERT INTO mytab (class, id, val) SELECT 10, 3, count(*) FROM mytab WHERE class = 11"),
            ('a', "COMMIT"),
        ],
        found: &[("each-pair-in-order", 1)],
    },
    // Two orders of a product whose price is 24.
    Violation {
        workload: "orders",
        level: "read committed",
        steps: &[
            ('a', "SELECT price, stock FROM products WHERE id = 2"),
            ('a', "SELECT revenue FROM shops WHERE id = 1"),
            ('b', "SELECT price, stock FROM products WHERE id = 2"),
            ('b', "SELECT revenue FROM shops WHERE id = 1"),
            ('a', "UPDATE products SET stock = 999999998, sold = sold + 2 WHERE id = 2"),
            ('a', "UPDATE shops SET revenue = 48 WHERE id = 1"),
            ('a', "COMMIT"),
            ('b', "UPDATE products SET stock = 999999999, sold = sold + 1 WHERE id = 2"),
            ('b', "UPDATE shops SET revenue = 24 WHERE id = 1"),
            ('b', "COMMIT"),
        ],
        found: &[("revenue-agrees", 48), ("stock-agrees", 2)],
    },
    // Two products of the same shop.
    Violation {
        workload: "orders",
        level: "read committed",
        steps: &[
            ('a', "SELECT revenue FROM shops WHERE id = 1"),
            ('b', "SELECT revenue FROM shops WHERE id = 1"),
            ('a', "UPDATE products SET stock = 999999999, sold = sold + 1 WHERE id = 1"),
            ('a', "UPDATE shops SET revenue = 17 WHERE id = 1"),
            ('a', "COMMIT"),
            ('b', "UPDATE products SET stock = 999999999, sold = sold + 1 WHERE id = 2"),
            ('b', "UPDATE shops SET revenue = 24 WHERE id = 1"),
            ('b', "COMMIT"),
        ],
        found: &[("revenue-agrees", 17), ("stock-agrees", 0)],
    },
    Violation {
        workload: "smallbank:customers=10,hotspot=5",
        level: "read committed",
        steps: &[
            ('a', "SELECT balance FROM saving WHERE customer = 1"),
            ('a', "SELECT balance FROM checking WHERE customer = 1"),
            ('b', "UPDATE checking SET balance = balance + 33, inflow = inflow + 33 WHERE customer = 1"),
            ('b', "COMMIT"),
            ('a', "UPDATE saving SET balance = 0 WHERE customer = 1"),
            ('a', "UPDATE checking SET balance = 0 WHERE customer = 1"),
            ('a', "UPDATE checking SET balance = balance + 2000 WHERE customer = 2"),
            ('a', "COMMIT"),
        ],
        found: &[("money-conserved", 33), ("savings-not-negative", 0)],
    },
    Violation {
        workload: "smallbank:customers=10,hotspot=5,opening=100",
        level: "read committed",
        steps: &[
            ('a', "SELECT balance FROM saving WHERE customer = 1"),
            ('b', "SELECT balance FROM saving WHERE customer = 1"),
            ('a', "UPDATE saving SET balance = balance - 60, inflow = inflow - 60 WHERE customer = 1"),
            ('a', "COMMIT"),
            ('b', "UPDATE saving SET balance = balance - 70, inflow = inflow - 70 WHERE customer = 1"),
            ('b', "COMMIT"),
        ],
        found: &[("money-conserved", 0), ("savings-not-negative", 1)],
    },
    Violation {
        workload: "receipts+filed",
        level: "repeatable read",
        steps: &[
            ('a', "SELECT batch FROM control WHERE id = 1"),
            ('b', "UPDATE control SET batch = batch + 1, version = version + 1 WHERE id = 1"),
            ('b', "COMMIT"),
            ('b', "SELECT batch - 1 FROM control WHERE id = 1"),
            ('b', "INSERT INTO reports (id, batch, seen) SELECT 1, 1000001, count(*) FROM receipts \
                   WHERE batch = 1000001"),
            ('b', "COMMIT"),
            ('a', "INSERT INTO receipts (batch, id, amount) VALUES (1000001, 2, 5)"),
            ('a', "COMMIT"),
        ],
        found: &[("reports-final", 1)],
    },
    // Half of a sale.
    Violation {
        workload: "reporting:departments=2,items=4",
        level: "read committed",
        steps: &[
            ('a', "UPDATE items SET revenue = revenue + 70, version = version + 1 WHERE id = 3"),
            ('a', "COMMIT"),
        ],
        found: &[("totals-agree", 70)],
    },
    Violation {
        workload: "ycsb+f:records=10",
        level: "read committed",
        steps: &[
            ('a', "SELECT val FROM usertable WHERE number = 3"),
            ('b', "SELECT val FROM usertable WHERE number = 3"),
            ('a', "UPDATE usertable SET val = 1, modified = modified + 1 WHERE number = 3"),
            ('a', "COMMIT"),
            ('b', "UPDATE usertable SET val = 1, modified = modified + 1 WHERE number = 3"),
            ('b', "COMMIT"),
        ],
        found: &[("modifications-counted", 1), ("records-present", 0)],
    },
    // The first insertion was acknowledged, since the client built on it, and then lost.
    Violation {
        workload: "ycsb+d:records=10",
        level: "read committed",
        steps: &[
            ('a', "INSERT INTO usertable (id, version, number, previous) VALUES (1, 1, 11, 10)"),
            ('a', "DELETE FROM usertable WHERE number = 11"),
            ('a', "INSERT INTO usertable (id, version, number, previous) VALUES (2, 1, 12, 11)"),
            ('a', "COMMIT"),
        ],
        found: &[("modifications-counted", 0), ("records-present", 1)],
    },
    Violation {
        workload: "ycsb-t:records=2",
        level: "read committed",
        steps: &[
            ('a', "SELECT min(balance) FROM economy"),
            ('b', "SELECT min(balance) FROM economy"),
            ('a', "UPDATE economy SET balance = 0, open = 0 WHERE id = (SELECT min(id) FROM economy)"),
            ('a', "UPDATE pots SET amount = 1000 WHERE id = 1"),
            ('a', "COMMIT"),
            ('b', "UPDATE economy SET balance = 999 WHERE id = (SELECT min(id) FROM economy)"),
            ('b', "UPDATE economy SET balance = 1001 WHERE id = (SELECT max(id) FROM economy)"),
            ('b', "COMMIT"),
        ],
        found: &[("economy-closed", 1000)],
    },
    // Two Deliveries of the same order, the second of which deletes nothing.
    Violation {
        workload: "tpcc:customers=30,items=100",
        level: "read committed",
        steps: &[
            ('a', "SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 ORDER BY no_o_id LIMIT 1"),
            ('b', "SELECT no_o_id FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 ORDER BY no_o_id LIMIT 1"),
            ('a', "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = 22"),
            ('a', "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 4 AND o_id = 22"),
            ('a', "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = 1 AND ol_d_id = 4 AND \
                ol_o_id = 22"),
            ('a', "UPDATE customer SET c_balance = c_balance + (SELECT sum(ol_amount) FROM order_line WHERE ol_d_id = \
                   4 AND ol_o_id = 22), c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 4 AND c_id = \
                   (SELECT o_c_id FROM orders WHERE o_d_id = 4 AND o_id = 22)"),
            ('a', "COMMIT"),
            ('b', "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 4 AND no_o_id = 22"),
            ('b', "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 4 AND o_id = 22"),
            ('b', "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = 1 AND ol_d_id = 4 AND \
                ol_o_id = 22"),
            ('b', "UPDATE customer SET c_balance = c_balance + (SELECT sum(ol_amount) FROM order_line WHERE ol_d_id = \
                   4 AND ol_o_id = 22), c_delivery_cnt = c_delivery_cnt + 1 WHERE c_d_id = 4 AND c_id = \
                   (SELECT o_c_id FROM orders WHERE o_d_id = 4 AND o_id = 22)"),
            ('b', "COMMIT"),
        ],
        found: &[
            ("1-warehouse-ytd", 0),
            ("2-next-order", 0),
            ("3-new-orders-dense", 0),
            ("4-lines-of-districts", 0),
            ("5-carriers", 0),
            ("6-lines-of-orders", 0),
            ("7-delivery-dates", 0),
            ("8-warehouse-payments", 0),
            ("9-district-payments", 0),
            ("10-balances", 1),
            ("11-undelivered", 1),
            ("12-balances-and-payments", 1),
        ],
    },
];

#[test]
fn invariants_see_what_no_serial_execution_does() {
    let Some((server, _)) = postgresql("invariants_see_what_no_serial_execution_does") else { return };
    let mut conn = session(&server);
    let database = detect(&mut conn).unwrap();
    for violation in &VIOLATIONS {
        let chosen = find(violation.workload).unwrap();
        make(&mut conn, &mut [], &database, &chosen).unwrap();
        // All invariants of the workload are checked, and no other one is violated.
        let expected: BTreeMap<&str, u64> = violation.found.iter().copied().collect();
        let names = |counts: &BTreeMap<&str, u64>| counts.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&found(&mut conn, &chosen)), names(&expected));
        perform(&server, violation);
        assert_eq!(found(&mut conn, &chosen), expected, "{}", violation.workload);
        for row in check(&mut conn, &database, &chosen).unwrap() {
            assert_eq!(row.example.is_some(), row.found > 0, "{row:?}");
        }
    }
    let covered: Vec<&str> =
        VIOLATIONS.iter().flat_map(|violation| violation.found).map(|row| row.0).collect();
    for chosen in every() {
        for invariant in chosen.invariants() {
            assert!(covered.contains(&invariant.name), "nobody has broken {}", invariant.name);
        }
    }
}

fn perform(server: &Server, violation: &Violation) {
    let mut sessions = BTreeMap::from([('a', session(server)), ('b', session(server))]);
    let mut inside = BTreeMap::new();
    for (client, sql) in violation.steps {
        let session = sessions.get_mut(client).unwrap();
        if !inside.get(client).copied().unwrap_or(false) {
            session.execute(&format!("BEGIN ISOLATION LEVEL {}", violation.level)).unwrap();
        }
        session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        inside.insert(*client, *sql != "COMMIT");
    }
}

#[test]
fn an_ordinary_user_can_make_the_tables() {
    let Some((server, _)) = postgresql("an_ordinary_user_can_make_the_tables") else { return };
    let mut conn = session(&server);
    conn.execute("CREATE ROLE somebody; CREATE SCHEMA own AUTHORIZATION somebody").unwrap();
    conn.execute("SET search_path = own; SET ROLE somebody").unwrap();
    let database: Database = detect(&mut conn).unwrap();
    let chosen = find("write-skew+materialized-conflict").unwrap();
    let notes = make(&mut conn, &mut [], &database, &chosen).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert!(found(&mut conn, &chosen).values().all(|found| *found == 0));
}

/// For each consistency condition of TPC-C a change that breaks it, with the numbers of all that it
/// breaks.
const BROKEN: [(&str, &[u32]); 12] = [
    ("UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1", &[1, 9]),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 1 AND d_id = 1", &[2]),
    ("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 25", &[3, 5, 11]),
    ("DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 5", &[4, 6]),
    ("UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 22", &[5, 7]),
    ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 1", &[4, 6]),
    (
        "UPDATE order_line SET ol_delivery_d = NULL \
         WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 5",
        &[7],
    ),
    ("UPDATE history SET h_amount = 11 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 1", &[8, 9, 10]),
    ("UPDATE history SET h_d_id = 2 WHERE h_c_w_id = 1 AND h_c_d_id = 1 AND h_c_id = 1", &[9]),
    (
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 \
         WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        &[10],
    ),
    ("UPDATE customer SET c_delivery_cnt = 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1", &[11]),
    (
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
        &[12],
    ),
];

#[test]
fn each_condition_of_tpcc_is_caught_when_broken() {
    let Some((server, _)) = postgresql("each_condition_of_tpcc_is_caught_when_broken") else { return };
    let mut conn = session(&server);
    let database = detect(&mut conn).unwrap();
    let chosen = find("tpcc:warehouses=2,customers=30,items=100").unwrap();
    make(&mut conn, &mut [], &database, &chosen).unwrap();
    let number = |name: &str| name.split('-').next().unwrap().parse::<u32>().unwrap();
    let broken = |conn: &mut Connection| {
        let all = check(conn, &database, &chosen).unwrap();
        let mut broken: Vec<u32> =
            all.iter().filter(|row| row.found > 0).map(|row| number(row.name)).collect();
        broken.sort_unstable();
        broken
    };
    assert!(broken(&mut conn).is_empty(), "after the load");
    for (condition, (sql, expected)) in (1..).zip(BROKEN) {
        assert!(expected.contains(&condition));
        conn.execute(&format!("BEGIN; {sql}")).unwrap();
        assert_eq!(broken(&mut conn), expected, "{sql}");
        conn.execute("ROLLBACK").unwrap();
    }
}

/// The load of several sessions has the rows of one session's, but for the time of day.
#[test]
fn several_sessions_load_what_one_does() {
    let Some((server, _)) = postgresql("several_sessions_load_what_one_does") else { return };
    let mut conn = session(&server);
    let database = detect(&mut conn).unwrap();
    let chosen = find("tpcc:warehouses=5,customers=30,items=100").unwrap();
    assert!(chosen.sessions() >= 1 && find("bank").unwrap().sessions() == 1);
    let stages = chosen.stages(&database, 3).unwrap();
    assert_eq!(stages.loads.len(), 3);
    assert_eq!(chosen.stages(&database, 9).unwrap().loads.len(), 5, "no more than warehouses");
    let contents = |conn: &mut Connection| {
        let tables = chosen.tables().into_iter().map(|table| {
            let rows = "regexp_replace(CAST(t AS text), '[-0-9]+ [0-9:.]+', 'then')";
            let sql = format!(
                "SELECT count(*) || md5(string_agg(row, ';' ORDER BY row)) FROM (SELECT {rows} AS row \
                FROM {table} t) r"
            );
            (table, conn.value(&sql).unwrap())
        });
        tables.collect::<Vec<_>>()
    };
    make(&mut conn, &mut [], &database, &chosen).unwrap();
    let by_one = contents(&mut conn);
    make(&mut conn, &mut [session(&server), session(&server)], &database, &chosen).unwrap();
    assert_eq!(contents(&mut conn), by_one);
}
