//! The server's own statistics in a comparison, and the comparison without them where access is
//! forbidden.

use serde_json::Value;

use crate::support::document::{self, assert_invariants_held, cells, count, rounds};
use crate::support::named::Database;
use crate::support::scene::Scene;

#[test]
fn the_server_counts_what_we_count() {
    let Some(scene) = Scene::with_server("the_server_counts_what_we_count") else { return };
    for (protocol, workload) in
        [("simple", "tpcb-like"), ("prepared", "tpcb-like"), ("extended", "select-only")]
    {
        let line = format!(
            "compare --levels rc,ser -c 4 --transactions 20 --warmup 0.1 --rounds 1 -M {protocol} -w {workload} \
             --server-setting fsync=off --json out.json"
        );
        scene.run(&line.split_whitespace().collect::<Vec<_>>()).expect(0);
        let document = document::read(&scene, "out.json");
        for round in rounds(&document) {
            let comparison = round["server"]["comparison"].as_array().expect("counts");
            assert_eq!(comparison.len(), 4, "{comparison:?}");
            for count in comparison {
                assert_eq!(count["agrees"], true, "{protocol} {workload}: {comparison:?}");
            }
            let of = |what: &str| comparison.iter().find(|count| count["what"] == what).expect("a count");
            assert!(count(of("commits"), "/servers") > count(round, "/attempts/committed"));
        }
    }
}

/// A procedure rolls back for each retry, and a function that swallows an error commits.
#[test]
fn the_server_counts_what_we_count_of_strategies() {
    let Some(scene) = Scene::with_server("the_server_counts_what_we_count_of_strategies") else { return };
    let line = "compare --levels rr -c 8 --transactions 400 --warmup 0.1 --rounds 1 -w tpcb-like --strategies \
        procedure,swallow --json out.json";
    scene.run(&line.split_whitespace().collect::<Vec<_>>()).expect(0);
    let document = document::read(&scene, "out.json");
    let mut seen = Vec::new();
    for round in rounds(&document) {
        let notes = round["server"]["notes"].to_string();
        let comparison = round["server"]["comparison"].as_array().expect("counts");
        // A procedure that gives up doesn't report its number of attempts.
        assert!(comparison.len() == 4 || notes.contains("retry inside the server"), "{notes}");
        for count in comparison {
            assert_eq!(count["agrees"], true, "{comparison:?}");
        }
        let retried = count(round, "/attempts/retried");
        // Omitted if there are none.
        let swallowed = round["attempts"]["swallowed"].as_u64().unwrap_or(0);
        assert!(retried + swallowed > 0, "nothing met a conflict: {round}");
        seen.push(swallowed > 0);
    }
    assert_eq!(seen.len(), 2);
    assert!(seen.contains(&true) && seen.contains(&false), "{seen:?}");
}

#[test]
fn waits_and_locks_are_sampled() {
    let Some(scene) = Scene::with_server("waits_and_locks_are_sampled") else { return };
    // Each of 16 transactions holds the row for a while, one after the other, so there is time for
    // samples.
    scene.write("tables.sql", "drop table if exists t; create table t as select 1 as id, 0 as value;");
    scene.write(
        "hold.sql",
        "begin;\nupdate t set value = value + 1 where id = 1;\nselect pg_sleep(0.1);\nend;\n",
    );
    let line = "compare --setup tables.sql --workload hold.sql --levels rc,ser -c 8 --transactions 2 --warmup 0 \
        --rounds 1 --server-setting fsync=off --json out.json";
    scene.run(&line.split_whitespace().collect::<Vec<_>>()).expect(0);
    let document = document::read(&scene, "out.json");
    for cell in cells(&document) {
        let waits = cell["summary"]["waits"].as_array().expect("waits");
        assert!(
            waits.iter().any(|wait| wait["kind"] == "Lock"),
            "eight clients collide on one row: {waits:?}"
        );
        let server = &cell["rounds"][0]["server"];
        let samples = server["at_s"].as_array().expect("times").len();
        assert!(samples > 0);
        for row in server["waits"].as_array().expect("rows") {
            assert_eq!(row["sessions"].as_array().map(Vec::len), Some(samples), "{row}");
        }
        assert!(server["counters"].to_string().contains("pg_stat_wal"), "{server}");
    }
    assert!(
        count(&cells(&document)[1], "/summary/predicate_locks") > 0,
        "serializable takes predicate locks"
    );
}

/// All sources of the observer, by the views' names in the documentation.
const FORBIDDEN: &str = "pg_stat_activity, pg_locks, pg_stat_database, pg_stat_wal, pg_stat_bgwriter, pg_stat_slru, \
    pg_stat_user_tables, pg_stat_all_tables, pg_settings, pg_db_role_setting, pg_extension, pg_stat_database_conflicts";

#[test]
fn forbidden_views_cost_nothing_but_what_they_show() {
    let name = "forbidden_views_cost_nothing_but_what_they_show";
    let Some(scene) = Scene::with_server(name) else { return };
    let Some(database) = Database::new(name) else { return };
    let mut admin = database.connect();
    admin.execute(&format!("revoke select on {FORBIDDEN} from public")).expect("rights are taken away");
    let role = format!("nobody_{}", database.name);
    let sql = format!("create role {role} login; grant create on database {} to {role}", database.name);
    admin.execute(&sql).expect("a role");
    let line =
        "compare -w tpcb-like --levels rc,ser -c 4 --transactions 10 --warmup 0.1 --rounds 1 --json out.json";
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut command = scene.isobench(&words);
    let options = database.server_options();
    command.args(&options[..4]).args(["-U", &role, "-d", &database.name]);
    let finished = crate::support::program::Running::start(&mut command).finish().expect(0);
    assert!(finished.stdout.contains("serializable"), "{}", finished.stdout);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["complete"], true);
    assert_invariants_held(&document);
    for round in rounds(&document) {
        assert!(count(round, "/attempts/committed") > 0);
        let notes = round["server"]["notes"].as_array().expect("notes");
        assert!(
            notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("pg_stat_activity"))),
            "{notes:?}"
        );
        assert_eq!(round["server"]["waits"], Value::Array(Vec::new()));
    }
}

#[test]
fn without_an_observer_nothing_is_asked() {
    let Some(scene) = Scene::with_database("without_an_observer_nothing_is_asked") else { return };
    let line = "compare -w tpcb-like --levels rc -c 1 --transactions 5 --warmup 0 --rounds 1 --no-server-side --json \
        out.json";
    scene.run(&line.split_whitespace().collect::<Vec<_>>()).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["plan"]["no-server-side"], true);
    assert!(cells(&document)[0]["rounds"][0].get("server").is_none());
}

/// With a connection per transaction the level is the requested one, and the server's counts, which
/// include isobench's connecting, aren't compared.
#[test]
fn a_connection_for_each_transaction() {
    let Some(scene) = Scene::with_database("a_connection_for_each_transaction") else { return };
    let line = "compare -w tpcb-like --levels rc,ser -c 2 --connect --transactions 20 --warmup 0 --rounds 1 --json \
        out.json";
    scene.run(&line.split_whitespace().collect::<Vec<_>>()).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["plan"]["connect"], true);
    assert_invariants_held(&document);
    for cell in cells(&document) {
        assert_eq!(cell["level"]["effective"], cell["level"]["requested"]);
    }
    for round in rounds(&document) {
        assert_eq!(count(round, "/transactions/committed"), 40);
        assert_eq!(round["server"]["comparison"], Value::Array(Vec::new()));
        let notes = round["server"]["notes"].to_string();
        assert!(notes.contains("a connection of its own"), "{notes}");
    }
}
