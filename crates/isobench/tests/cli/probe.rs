//! `isobench probe`: the matrix, the user's specifications, and their errors.

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
    // Serializable permits write skew once old transactions are summarized, a known limitation.
    let finished = finished.expect(0).prints(&[
        "G0, dirty write",
        "permitted: T1 and T2 both read 10, and both wrote",
        "read committed requested, runs read committed: ",
        "repeatable read requested, runs snapshot isolation: write skew, read-only anomaly, write skew on a \
         predicate permitted",
        "serializable requested, runs serializable only for a while: write skew after summarisation permitted after ",
        "(weaker than promised: a known limitation)",
        "KNOWN LIMITATION of PostgreSQL (seen in 10.4 to 18.6, 19rc1): serializable promises serializable, but \
         write skew ",
        "\n-- psql 1\nCREATE TABLE probe_items ",
    ]);
    finished.says(&[
        "an embedded PostgreSQL",
        "transactions commit in between",
        "with --strict this is exit status 3",
    ]);
    let document: Value = serde_json::from_str(&scene.read("probe.json")).expect("a document");
    assert_eq!(document["product"], "PostgreSQL");
    assert_eq!(document["complete"], true);
    let cells = document["levels"][2]["cells"].as_array().expect("cells");
    let cell = |name: &str| cells.iter().find(|cell| cell["name"] == name).expect("the cell");
    assert_eq!(cell("P4")["outcome"], "prevented");
    assert_eq!(cell("P4")["how"], "40001 at step w2, after it had waited");
    assert_eq!(cell("G2-item")["outcome"], "permitted");
    assert_eq!(cell("G2-item")["standing"], "as_promised");
    let summarised = &document["levels"][3]["cells"][15];
    assert_eq!(summarised["standing"], "known_limitation");
    assert_eq!(summarised["known_limitation"]["product"], "PostgreSQL");
    assert_eq!(summarised["known_limitation"]["seen_in"][1], "19rc1");
    scene.assert_clean();
}

#[test]
fn a_known_limitation_is_a_broken_promise_only_if_that_is_wanted() {
    let Some(scene) = Scene::with_server("a_known_limitation_is_a_broken_promise_only_if_that_is_wanted")
    else {
        return;
    };
    let finished = scene.run(&["probe", "--levels=ser", "--strict"]).expect(3);
    finished.says(&["PostgreSQL permits 1 anomaly that its manual excludes, as is known of it"]);
    scene.run(&["probe", "--levels=rr", "--strict"]).expect(0);
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
        "repeatable read requested, runs snapshot isolation",
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

/// The product's own view shows the waiting session.
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

/// H2 says repeatable read, and its manual doesn't exclude write skew there: nothing is broken.
#[test]
fn a_certificate_measures_another_product_by_its_own_manual() {
    let scene = Scene::new();
    let h2 = match H2::start(&scene.folder().join("files")) {
        Ok(h2) => h2,
        Err(why) => return skip("a_certificate_measures_another_product_by_its_own_manual", &why),
    };
    let port = h2.port.to_string();
    let line = "probe --certificate page.html --levels rr -h 127.0.0.1 -U sa -d test -p";
    let mut command = scene.isobench(&[&line.split(' ').collect::<Vec<_>>()[..], &[&port]].concat());
    command.env("PGPASSWORD", "sa");
    Running::start(&mut command).finish().expect(0);
    let page = scene.read("page.html");
    for part in [
        ": the server says repeatable read; its manual promises read committed.</p>",
        "<b>permitted</b>: T1 and T2 both read 10 and 20, and each wrote one of them.",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    assert!(!page.contains(">BROKEN</td>"), "{page}");
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

/// Makes the statement that creates the second table wait for ever.
const NO_SECOND_TABLE: &str = "
    create sequence public.tables_made;
    create function public.wait_for_ever() returns event_trigger language plpgsql as $$ begin
        if nextval('public.tables_made') > 1 then perform pg_sleep(1e6); end if;
    end $$;
    create event trigger no_second_table on ddl_command_start when tag in ('CREATE TABLE')
        execute function public.wait_for_ever()";

/// Every signal that ends a program ends a probe, which reports its partial results.
#[test]
fn a_probe_that_is_asked_to_end_reports_what_it_has() {
    let Some(database) = Database::new("a_probe_that_is_asked_to_end_reports_what_it_has") else { return };
    let scene = Scene::new();
    // The tables of the second interleaving are never created, so the probe can't end by itself.
    let mut session = database.connect();
    session.execute(NO_SECOND_TABLE).expect("an event trigger");
    let before = database.inventory();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        session.execute("alter sequence public.tables_made restart").expect("a sequence");
        let arguments = ["probe", "--verbose", "--levels=rc,rr", "--json", "probe.json"];
        let running = Running::start(&mut database.isobench(&scene, &arguments));
        running.wait_for_stdout("== read committed: G1a, aborted read");
        running.signal(signal);
        let finished = running.finish().expect(2);
        let finished =
            finished.prints(&["  G0, dirty write", "read committed requested: ", "(ended early: "]);
        finished.says(&["the probe is incomplete: ", ": interrupted"]);
        let document: Value = serde_json::from_str(&scene.read("probe.json")).expect("a document");
        assert_eq!(document["complete"], false);
        let reason = document["incomplete_reason"].as_str().expect("a reason");
        assert!(reason.ends_with(": interrupted"), "{reason}");
        assert_eq!(database.inventory(), before);
    }
}

/// A setup that waits for a lock of another session is ended, too.
#[test]
fn a_specification_that_waits_in_its_setup_is_ended() {
    let Some(database) = Database::new("a_specification_that_waits_in_its_setup_is_ended") else { return };
    let scene = Scene::new();
    scene.write("slow.spec", "setup { SELECT pg_sleep(1000); } session a step one { SELECT 1; }");
    let running = Running::start(&mut database.isobench(&scene, &["probe", "--spec", "slow.spec"]));
    running.wait_for_stdout("starting permutation");
    running.signal(Signal::TERM);
    running.finish().expect(2).says(&["slow.spec: interrupted"]);
}

/// The schema in which a specification runs, and the access that the roles it creates have to it.
#[test]
fn a_specification_runs_in_public_or_in_the_schema_with_its_roles() {
    const ROLES: &str = "\
setup { CREATE ROLE isobench_probe_reader; CREATE TABLE t (v int); INSERT INTO t VALUES (1);
        GRANT SELECT ON t TO isobench_probe_reader; }
teardown { DROP TABLE t; DROP ROLE isobench_probe_reader; }
session s
step where { SELECT current_schema() AS place; }
step role { SET ROLE isobench_probe_reader; }
step read { SELECT v FROM t; }
step again { RESET ROLE; }
permutation where role read again
";
    let test = "a_specification_runs_in_public_or_in_the_schema_with_its_roles";
    let (Some(database), Some(scene)) = (Database::new(test), Scene::with_server(test)) else { return };
    scene.write("roles.spec", ROLES);
    let rows = |place: &str| {
        let line = "-".repeat(place.len());
        let width = place.len();
        format!(
            "AS place;\n{:width$}\n{line}\n{place}\n(1 row)\n\nstep role: SET ROLE isobench_probe_reader;\n\
             step read: SELECT v FROM t;\nv\n-\n1\n(1 row)\n\nstep again: RESET ROLE;\n",
            "place"
        )
    };
    scene.run(&["probe", "--spec", "roles.spec"]).expect(0).prints(&[&rows("public")]);
    database.run(&scene, &["probe", "--spec", "roles.spec"]).expect(0).prints(&[&rows("isobench")]);
}

/// They come first, as in the expected files of PostgreSQL's own specifications.
#[test]
fn unused_steps_are_named() {
    let Some(database) = Database::new("unused_steps_are_named") else { return };
    let scene = Scene::new();
    scene.write(
        "unused.spec",
        "session a step y { SELECT 1; } step x { SELECT 2; } step z { SELECT 3; } permutation z",
    );
    let finished = database.run(&scene, &["probe", "--spec", "unused.spec"]).expect(0);
    finished.says(&["unused step name: x\nunused step name: y\n"]);
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

#[test]
fn a_long_fork_between_a_server_and_its_standby() {
    let test = "a_long_fork_between_a_server_and_its_standby";
    let Some(scene) = Scene::with_server(test) else { return };
    let finished = scene.run(&["probe", "--standby", "--levels", "rc,rr", "--json", "out.json"]).expect(0);
    scene.assert_clean();
    let document: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
    for row in document["levels"].as_array().expect("levels") {
        let cells = row["cells"].as_array().expect("cells");
        let cell = cells.iter().find(|cell| cell["known_as"] == "long fork with a standby").expect("a cell");
        assert_eq!((&cell["outcome"], &cell["standing"]), (&"permitted".into(), &"open".into()), "{cell}");
        // It isn't held against the level of the server alone.
        assert_ne!(row["not_contradicted"][0], "consistent view", "{row}");
    }
    assert!(finished.stdout.contains("on the standby T3 saw T2's write and not T1's"), "{}", finished.stdout);
    let line = ["probe", "--standby", "-h", "db.example"];
    scene.run(&line).expect(1).says(&["--standby", "embedded PostgreSQL only"]);
}

#[test]
fn tpccs_isolation_tests_are_run_at_every_level() {
    let Some(scene) = Scene::with_database("tpccs_isolation_tests_are_run_at_every_level") else { return };
    let finished = scene.run(&["probe", "--tests", "tpcc", "--json", "tests.json"]).expect(0);
    finished.prints(&[
        "what TPC-C's isolation tests (clause 3.4.2) find at each level",
        "TPC-C 7, two prices of an item",
        "permitted: New-Order read 100 for an item, and then 110",
    ]);
    let document: Value = serde_json::from_str(&scene.read("tests.json")).expect("JSON");
    assert_eq!(document["tests"], "tpcc");
    let failed = |level: &Value| -> Vec<String> {
        let cells = level["cells"].as_array().expect("cells");
        assert_eq!(cells.len(), 9);
        assert!(
            cells.iter().all(|cell| ["permitted", "prevented"].contains(&cell["outcome"].as_str().unwrap()))
        );
        let failed = cells.iter().filter(|cell| cell["outcome"] == "permitted");
        failed.map(|cell| cell["name"].as_str().expect("a name").to_owned()).collect()
    };
    let levels = document["levels"].as_array().expect("levels");
    let expected = [&["TPC-C 7", "TPC-C 8", "TPC-C 9"][..], &["TPC-C 7", "TPC-C 8", "TPC-C 9"], &[], &[]];
    for (level, expected) in levels.iter().zip(expected) {
        assert_eq!(failed(level), expected, "{}", level["requested"]);
    }
}

#[test]
fn a_certificate_has_every_server_with_its_tables_and_each_step() {
    let test = "a_certificate_has_every_server_with_its_tables_and_each_step";
    let Some(scene) = Scene::with_database(test) else { return };
    let line = "probe --certificate page.html --levels rc,rr --tables ordinary,unlogged,partitioned";
    scene.run(&line.split(' ').collect::<Vec<_>>()).expect(0).says(&["3 servers with their tables probed"]);
    let page = scene.read("page.html");
    for part in [
        ", unlogged tables</div>",
        ", partitioned tables</div>",
        "<h2>repeatable read</h2>",
        "<b>permitted</b>: T1 and T2 both read 10 and 20, and each wrote one of them.",
        "starting permutation: r1 r2 w1 w2 c1 c2\nstep r1: SELECT val FROM",
        "<b>prevented</b>: 40001 at step w2, after it had waited.",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    // Tables of all kinds give the same, but for steps that name partitions.
    assert!(!page.contains("not applicable") && !page.contains("undecided"), "{page}");
    // Specifications are compared with the files of expected output.
    scene.write("specs/two.spec", TWO);
    scene.write("specs/other.spec", TWO);
    scene.write("specs/unknown.spec", TWO);
    // In the date style of PostgreSQL's tests, with what the tester says of steps that are never used.
    let dated = TWO
        .replace("SELECT v FROM t", "SELECT DATE '2008-12-22' AS v")
        .replace("permutation", "step r3 { }\npermutation");
    scene.write("specs/dated.spec", &dated);
    let printed = PRINTED.replace("SELECT v FROM t", "SELECT DATE '2008-12-22' AS v");
    let printed = printed.replace("v\n-\n3\n", "         v\n----------\n12-22-2008\n");
    scene.write("expected/dated.out", &format!("unused step name: r3\n{printed}"));
    scene.write("expected/two_1.out", PRINTED);
    scene.write("expected/other.out", "something else");
    let line = "probe --certificate page.html --levels rr --spec specs/two.spec specs/other.spec specs/unknown.spec \
        specs/dated.spec";
    scene.run(&line.split(' ').collect::<Vec<_>>()).expect(0);
    let page = scene.read("page.html");
    for part in [
        "<td>two</td><td>as expected</td>",
        "<td>other</td><td class=\"bad\">differs</td>",
        "<td>unknown</td><td>run</td>",
        "<td>dated</td><td>as expected</td>",
        "<b>differs</b>: other, PostgreSQL",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    // A file that isn't isobench's is left alone.
    for name in ["own.html", "own.md"] {
        scene.write(name, "mine");
        scene.run(&["probe", "--certificate", name]).expect(1).says(&["--certificate"]);
        assert_eq!(scene.read(name), "mine");
    }
}

/// The suffix decides; the same run is written again over its own file.
#[test]
fn a_certificate_in_markdown_fits_into_an_issue() {
    let Some(scene) = Scene::with_database("a_certificate_in_markdown_fits_into_an_issue") else { return };
    let line = "probe --certificate page.md --tables ordinary,partitioned";
    let run = || scene.run(&line.split(' ').collect::<Vec<_>>()).expect(0);
    run();
    let text = scene.read("page.md");
    for part in [
        "## repeatable read\n",
        "| anomaly | ",
        "| race | ",
        "| index method | ",
        "<br>",
        "| double booking, write skew on a predicate | permitted |\n",
        "| double booking, write skew on a predicate | – |\n",
        "<summary><b>permitted</b>: two bookings of the venue overlap. every server at read uncommitted, read \
         committed, repeatable read</summary>\n",
        "| hash, write skew through hash | – |\n",
        "| gist, write skew through gist | limitation |\n",
        "- **prevented**: 40001 at step ",
        "step r1: SELECT count(*) FROM",
        "## Known limitations\n",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains("n/a |") && !text.contains("| ? |") && !text.contains("**BROKEN** |"), "{text}");
    // The most letters of an issue on GitHub.
    assert!(text.chars().count() < 65_536, "{}", text.chars().count());
    run();
    // No table of isobench's is left.
    let left = scene.read("page.md");
    assert!(left.starts_with("<!-- isobench: certificate -->"), "{left}");
}

#[test]
fn tables_of_one_kind_are_probed_and_wrong_kinds_refused() {
    let Some(scene) = Scene::with_database("tables_of_one_kind_are_probed_and_wrong_kinds_refused") else {
        return;
    };
    let line = "probe --levels rr --tables partitioned --table-access-method heap";
    scene
        .run(&line.split(' ').collect::<Vec<_>>())
        .expect(0)
        .prints(&[", partitioned tables: which anomalies"]);
    for (options, part) in [
        ("--tables ordinary,unlogged", "need --certificate"),
        ("--tables temporary", "temporary tables aren't shared"),
        ("--tests tpcc --standby", "read on no standby"),
        ("--certificate page.html --allocation *=ser", "--allocation: needs scripts to try"),
        ("--versions 17", "--certificate"),
        ("--spec two.spec --tables unlogged", "--tables: specifications (--spec) make their own tables"),
        ("--tests races --standby", "read on no standby"),
        ("--tests tpcd", "use anomalies, races, indexes or tpcc"),
        ("--table-access-method nosuch", "the server has no such method; it has heap"),
    ] {
        let line = format!("probe {options}");
        scene.run(&line.split(' ').collect::<Vec<_>>()).expect(1).says(&[part]);
    }
}
