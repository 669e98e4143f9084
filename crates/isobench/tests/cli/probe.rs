//! `isobench probe`: the matrix, specifications of the user's, and what can go wrong with them.

use isobench_testkit::h2::H2;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::skip;

const TWO: &str = "\
setup { CREATE TABLE t (v int); INSERT INTO t VALUES (1); }
teardown { DROP TABLE t; }
session s1
setup { BEGIN; }
step w1 { UPDATE t SET v = 2; }
step c1 { COMMIT; }
session s2
step w2 { UPDATE t SET v = 3; }
step r2 { SELECT v FROM t; }
permutation w1 w2 c1 r2
";

const PRINTED: &str = "\
Parsed test spec with 2 sessions

starting permutation: w1 w2 c1 r2
step w1: UPDATE t SET v = 2;
step w2: UPDATE t SET v = 3; <waiting ...>
step c1: COMMIT;
step w2: <... completed>
step r2: SELECT v FROM t;
v
-
3
(1 row)

";

#[test]
fn the_embedded_server_is_probed_at_every_level() {
    let Some(scene) = Scene::with_server("the_embedded_server_is_probed_at_every_level") else { return };
    let finished = scene.run(&["probe", "--json", "probe.json"]);
    // Serializable lets write skew through once old transactions are summarised: seen on 15 and 18.
    let finished = finished.expect(3).prints(&[
        "G0, dirty write",
        "permitted: T1 and T2 both read 10, and both wrote",
        "read committed asked, runs read committed: ",
        "repeatable read asked, runs snapshot isolation: write skew, read-only anomaly, write skew on a predicate permitted",
        "serializable asked, runs serializable only for a while: write skew after summarisation permitted, once ",
        "(WEAKER than promised)",
    ]);
    finished.says(&["an embedded PostgreSQL", "transactions commit meanwhile", "permits 1 anomaly"]);
    let document: Value = serde_json::from_str(&scene.read("probe.json")).expect("a document");
    assert_eq!(document["product"], "PostgreSQL");
    assert_eq!(document["complete"], true);
    let cells = document["levels"][2]["cells"].as_array().expect("cells");
    let cell = |name: &str| cells.iter().find(|cell| cell["name"] == name).expect("the cell");
    assert_eq!(cell("P4")["outcome"], "prevented");
    assert_eq!(cell("P4")["how"], "40001 at step w2, after it had waited");
    assert_eq!(cell("G2-item")["outcome"], "permitted");
    assert_eq!(cell("G2-item")["standing"], "as_promised");
    scene.assert_clean();
}

#[test]
fn a_named_server_is_left_as_it_was() {
    let Some(database) = Database::new("a_named_server_is_left_as_it_was") else { return };
    let scene = Scene::new();
    let before = database.inventory();
    let finished = database.run(&scene, &["probe", "--levels", "rr", "--verbose"]).expect(0);
    finished.prints(&[
        "== repeatable read: G0, dirty write\nParsed test spec with 3 sessions\n",
        "ERROR:  could not serialize access due to concurrent update",
        "repeatable read asked, runs snapshot isolation",
    ]);
    assert_eq!(database.inventory(), before);
}

#[test]
fn a_specification_prints_what_the_isolation_tester_prints() {
    let Some(database) = Database::new("a_specification_prints_what_the_isolation_tester_prints") else {
        return;
    };
    let scene = Scene::new();
    scene.write("two.spec", TWO);
    let finished = database.run(&scene, &["probe", "--spec", "two.spec"]).expect(0);
    assert_eq!(finished.stdout, PRINTED);
    let finished =
        database.run(&scene, &["probe", "--spec", "two.spec", "two.spec", "--levels=rc,rr"]).expect(0);
    let output = finished.stdout;
    assert_eq!(output.matches("Parsed test spec").count(), 4, "{output}");
    assert_eq!(
        output.matches("ERROR:  could not serialize access due to concurrent update").count(),
        2,
        "{output}"
    );
}

/// Whoever waits there is seen in the product's own view.
#[test]
fn a_specification_runs_on_another_product() {
    let scene = Scene::new();
    let h2 = match H2::start(&scene.folder().join("files")) {
        Ok(h2) => h2,
        Err(why) => return skip("a_specification_runs_on_another_product", &why),
    };
    scene.write("two.spec", TWO);
    let port = h2.port.to_string();
    let named = ["-h", "127.0.0.1", "-p", &port, "-U", "sa", "-d", "test"];
    let mut command = scene.isobench(&[&["probe", "--spec", "two.spec"], &named[..]].concat());
    command.env("PGPASSWORD", "sa");
    let finished = Running::start(&mut command).finish().expect(0);
    assert_eq!(finished.stdout, PRINTED);
}

#[test]
fn wrong_specifications_are_refused_before_anything_is_started() {
    let scene = Scene::new();
    scene.write("unknown.spec", "session a step x { SELECT 1; }\npermutation x y\n");
    scene.write("open.spec", "session a step x { SELECT 1;\n");
    let run = |arguments: &[&str]| scene.run(&[&["probe"], arguments].concat()).expect(1);
    run(&["--spec", "unknown.spec"]).says(&["--spec: unknown.spec:2:15: there is no step \"y\""]);
    run(&["--spec", "open.spec"]).says(&["open.spec:1:18: this SQL block has no end"]);
    run(&["--spec", "none.spec"]).says(&["could not read \"none.spec\""]);
    run(&["--levels", "snapshot"]).says(&["unknown isolation level \"snapshot\""]);
    run(&["--step-timeout", "0"]).says(&["use 0.01 to 86400"]);
    run(&["--spec", "unknown.spec", "--json", "x.json"]).says(&["cannot be used with"]);
    scene.assert_clean();
}

#[test]
fn a_specification_that_cant_go_on_is_incomplete() {
    let Some(database) = Database::new("a_specification_that_cant_go_on_is_incomplete") else { return };
    let scene = Scene::new();
    scene.write("setup.spec", "setup { SELECT nosuch; } session a step x { SELECT 1; }");
    scene.write("slow.spec", "session a step x { SELECT pg_sleep(1000); }");
    scene.write(
        "lost.spec",
        "session a step x { SELECT pg_terminate_backend(pg_backend_pid()); } step y { SELECT 1; }",
    );
    let run = |file: &str| database.run(&scene, &["probe", "--step-timeout=0.2", "--spec", file]);
    run("setup.spec").expect(2).says(&["setup.spec: setup failed: ERROR:  column \"nosuch\" does not exist"]);
    run("slow.spec").expect(0).prints(&["canceling step x after 0.2 seconds", "ERROR:  canceling statement"]);
    run("lost.spec").expect(2).says(&["lost.spec: failed to send query for step y"]);
}

#[test]
fn an_interrupted_probe_leaves_nothing_behind() {
    let Some(database) = Database::new("an_interrupted_probe_leaves_nothing_behind") else { return };
    let scene = Scene::new();
    scene.write("slow.spec", "session a step one { SELECT 1; } step slow { SELECT pg_sleep(1000); }");
    let before = database.inventory();
    let running = Running::start(&mut database.isobench(&scene, &["probe", "--spec", "slow.spec"]));
    running.wait_for_stdout("step one");
    running.signal(Signal::INT);
    running.finish().expect(2).says(&["slow.spec: interrupted"]);
    assert_eq!(database.inventory(), before);
}
