//! The scan on the installed PostgreSQL: its intended plans, and the predicate locks that it takes.

use isobench_database::detect;
use isobench_pgwire::Connection;
use isobench_workloads::{Chosen, find, make};

use crate::support::{postgresql, session};

/// The workload's query, with the parameters filled in.
fn query(chosen: &Chosen) -> String {
    let text = chosen.scripts().remove(0).text;
    let sql = text.lines().find(|line| line.starts_with("SELECT")).unwrap().trim_end_matches(';');
    sql.replace(":rows", &chosen.value("rows").unwrap().to_string())
}

fn plan(conn: &mut Connection, sql: &str) -> String {
    let rows = conn.query(&format!("EXPLAIN {sql}")).unwrap().rows;
    rows.into_iter().filter_map(|row| row[0].clone()).collect::<Vec<_>>().join("\n")
}

/// A scan by index fetches each row from the table, even if the query reads all rows, and uses no
/// parallel workers.
#[test]
fn plans_are_those_that_the_name_says() {
    let Some((server, _)) = postgresql("plans_are_those_that_the_name_says") else { return };
    let mut conn = session(&server);
    let database = detect(&mut conn).unwrap();
    for (spec, node) in [
        ("scan:rows=1,table_rows=1000", "Index Scan using scanned_pkey"),
        ("scan:rows=1000,table_rows=1000", "Index Scan using scanned_pkey"),
        ("scan:rows=1000,table_rows=300000", "Index Scan using scanned_pkey"),
        ("scan:rows=300000,table_rows=300000", "Index Scan using scanned_pkey"),
        ("scan:rows=1000,index=0", "Seq Scan on scanned"),
        ("scan:rows=300000,table_rows=300000,index=0", "Seq Scan on scanned"),
    ] {
        let chosen = find(spec).unwrap();
        assert!(make(&mut conn, &mut [], &database, &chosen).unwrap().is_empty());
        let sql = query(&chosen);
        let plan = plan(&mut conn, &sql);
        assert!(plan.contains(node), "{spec}: {plan}");
        assert!(!["Bitmap", "Gather", "Sort"].iter().any(|other| plan.contains(other)), "{spec}: {plan}");
        let read = conn.value(&sql).unwrap().unwrap();
        assert_eq!(read, chosen.value("rows").unwrap().to_string(), "{spec}");
    }
}

/// A prepared statement keeps using the index when PostgreSQL switches to a generic plan.
#[test]
fn the_plan_stays_when_it_becomes_generic() {
    let Some((server, _)) = postgresql("the_plan_stays_when_it_becomes_generic") else { return };
    let mut conn = session(&server);
    let database = detect(&mut conn).unwrap();
    let chosen = find("scan:rows=100000").unwrap();
    make(&mut conn, &mut [], &database, &chosen).unwrap();
    let sql = query(&chosen).replace("100000", "$1");
    conn.execute(&format!("PREPARE scan (bigint) AS {sql}; SET plan_cache_mode = force_generic_plan"))
        .unwrap();
    let plan = plan(&mut conn, "EXECUTE scan(100000)");
    assert!(plan.contains("Index Scan using scanned_pkey") && plan.contains("$1"), "{plan}");
}

/// A query in a transaction that isn't declared read-only takes predicate locks even without
/// writers: on rows, or on what PostgreSQL's default settings promote them to. At repeatable read
/// there are none.
#[test]
fn serializable_takes_predicate_locks() {
    let Some((server, _)) = postgresql("serializable_takes_predicate_locks") else { return };
    let (mut conn, mut other) = (session(&server), session(&server));
    let database = detect(&mut conn).unwrap();
    for (spec, level, kinds) in [
        // Two rows of a page take two locks; more rows take one on the page; many pages take one on
        // the relation.
        ("scan:rows=2", "serializable", "tuple"),
        ("scan:rows=1000", "serializable", "page"),
        ("scan:rows=50000", "serializable", "relation"),
        ("scan:rows=50000", "repeatable read", ""),
        ("scan:rows=1000,index=0", "serializable", "relation"),
        ("scan:rows=1000,index=0", "repeatable read", ""),
    ] {
        let chosen = find(spec).unwrap();
        make(&mut conn, &mut [], &database, &chosen).unwrap();
        conn.execute(&format!("BEGIN ISOLATION LEVEL {level}")).unwrap();
        conn.execute(&query(&chosen)).unwrap();
        let held = "SELECT coalesce(string_agg(DISTINCT locktype, ','), '') FROM pg_locks \
                    WHERE mode = 'SIReadLock' AND relation = 'scanned'::regclass";
        assert_eq!(other.value(held).unwrap().unwrap(), kinds, "{spec} at {level}");
        conn.execute("COMMIT").unwrap();
    }
}
