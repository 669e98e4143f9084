//! The files for gates of continuous integration: tests of `JUnit`, findings in SARIF.

use serde_json::Value;

use crate::compare::words;
use crate::support::scene::Scene;

const SETUP: &str = "CREATE TABLE stock (id int PRIMARY KEY, left_over int NOT NULL);\n\
    INSERT INTO stock SELECT g, 100 FROM generate_series(1, 5) g;\n\
    CREATE FUNCTION hidden() RETURNS int LANGUAGE plpgsql AS 'DECLARE n int; BEGIN EXECUTE ''SELECT count(*) FROM \
    stock'' INTO n; RETURN n; END';\n";

/// Loses updates where the level doesn't prevent it. Its name and comment have to be escaped.
const SELL: &str = "\\set id random(1, 5)\nBEGIN;\nSELECT left_over AS n FROM stock WHERE id = :id \\gset\n\
    UPDATE stock SET left_over = :n - 1 WHERE id = :id AND '<&\">' <> '';\nCOMMIT;\n";

fn scene(test: &str) -> Option<Scene> {
    let scene = Scene::with_database(test)?;
    for (name, text) in
        [("setup.sql", SETUP), ("a b.sql", SELL), ("hidden.sql", "BEGIN;\nSELECT hidden();\nCOMMIT;\n")]
    {
        scene.write(name, text);
    }
    Some(scene)
}

/// The members that objects may have, by where they are (SARIF 2.1.0, section 3): those that are required, and
/// the others that isobench writes.
const SHAPE: [(&str, &[&str], &[&str]); 11] = [
    ("", &["$schema", "version", "runs"], &[]),
    ("runs", &["tool", "invocations", "results"], &[]),
    ("tool", &["driver"], &[]),
    ("driver", &["name", "version", "rules"], &[]),
    ("rules", &["id", "shortDescription"], &[]),
    ("invocations", &["executionSuccessful"], &["toolExecutionNotifications"]),
    ("toolExecutionNotifications", &["level", "message"], &[]),
    ("results", &["ruleId", "ruleIndex", "level", "message", "locations"], &["relatedLocations"]),
    ("physicalLocation", &["artifactLocation", "region"], &[]),
    ("logicalLocations", &["fullyQualifiedName"], &[]),
    ("locations", &[], &["physicalLocation", "logicalLocations"]),
];

/// Fails unless a value has the shape that SARIF gives it.
fn assert_shape(value: &Value, at: &str) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| assert_shape(one, at)),
        Value::Object(members) => {
            if let Some((_, required, others)) = SHAPE.iter().find(|(name, ..)| *name == at) {
                for name in *required {
                    assert!(members.contains_key(*name), "{at} has no {name}: {value:#}");
                }
                for name in members.keys() {
                    let known = required.contains(&name.as_str()) || others.contains(&name.as_str());
                    assert!(known, "{at} can't have {name}: {value:#}");
                }
            }
            members.iter().for_each(|(name, below)| assert_shape(below, name));
        }
        Value::String(level) if at == "level" => {
            assert!(["error", "warning", "note"].contains(&level.as_str()), "{level}");
        }
        _ => {}
    }
}

/// The results of a file of findings.
pub fn findings(scene: &Scene, file: &str) -> Vec<Value> {
    let log: Value = serde_json::from_str(&scene.read(file)).expect("JSON");
    assert_shape(&log, "");
    assert_eq!(log["version"], "2.1.0");
    log["runs"][0]["results"].as_array().expect("results").clone()
}

fn place(result: &Value) -> (String, u64) {
    let place = &result["locations"][0]["physicalLocation"];
    let file = place["artifactLocation"]["uri"].as_str().expect("a file").to_owned();
    (file, place["region"]["startLine"].as_u64().expect("a line"))
}

#[test]
fn what_probe_shows_fails_a_test_at_the_line_of_the_script() {
    let Some(s) = scene("what_probe_shows_fails_a_test_at_the_line_of_the_script") else { return };
    let probe = |script: &str, more: &str| {
        let mut line = vec!["probe", "-f", script, "--setup", "setup.sql"];
        line.extend(["--junit", "probe.xml", "--sarif", "probe.sarif"]);
        line.extend(words(more));
        s.run(&line)
    };
    probe("a b.sql", "--levels rc,rr --try 100s").expect(3);
    let results = findings(&s, "probe.sarif");
    assert_eq!(results.len(), 1, "{results:#?}");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"wrong-state".into(), &"error".into()));
    assert_eq!(place(&results[0]), ("a%20b.sql".to_owned(), 3));
    let xml = s.read("probe.xml");
    for expected in [
        "<testsuite name=\"isobench probe\" tests=\"2\" failures=\"1\" skipped=\"0\" errors=\"0\">",
        "name=\"read committed: a b.sql\"",
        "<failure message=\"a b.sql within a b.sql: left_over 99, not 98\" type=\"wrong-state\">",
        "interleavings, which proves nothing</system-out>",
    ] {
        assert!(xml.contains(expected), "{expected} is missing in\n{xml}");
    }
    // The same files again; what couldn't be tried isn't passed.
    s.write("truncate.sql", "TRUNCATE stock;\n");
    probe("truncate.sql", "--levels ser").expect(0);
    let results = findings(&s, "probe.sarif");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"undecided".into(), &"note".into()));
    assert_eq!(place(&results[0]), ("truncate.sql".to_owned(), 1));
    assert!(s.read("probe.xml").contains("tests=\"1\" failures=\"0\" skipped=\"1\""));
}

#[test]
fn levels_that_are_not_enough_fail_the_test_of_their_script() {
    let Some(s) = scene("levels_that_are_not_enough_fail_the_test_of_their_script") else { return };
    let check = |scripts: &[&str], levels: &str, status: i32| {
        s.write("levels.toml", &format!("version = 2\n\n[levels]\n{levels}"));
        let mut line = vec!["advise", "--setup", "setup.sql", "--check", "levels.toml"];
        line.extend(["--junit", "advise.xml", "--sarif", "advise.sarif"]);
        line.extend(scripts.iter().flat_map(|script| ["-f", script]));
        s.run(&line).expect(status);
        (s.read("advise.xml"), findings(&s, "advise.sarif"))
    };
    let (xml, results) = check(&["a b.sql"], "\"a b.sql\" = \"repeatable read\"\n", 0);
    assert!(xml.contains("failures=\"0\"") && xml.contains("proved for these scripts"), "{xml}");
    assert!(results.is_empty(), "{results:#?}");
    let both = "\"a b.sql\" = \"read committed\"\n\"read.sql\" = \"read committed\"\n";
    s.write("read.sql", "SELECT left_over FROM stock WHERE id = 1;\n");
    let (xml, results) = check(&["a b.sql", "read.sql"], both, 3);
    assert!(xml.contains("tests=\"2\" failures=\"1\" skipped=\"1\""), "{xml}");
    assert!(xml.contains("name=\"a b.sql at read committed\"") && xml.contains("By theory:"), "{xml}");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"wrong-state".into(), &"error".into()));
    assert_eq!(results[1]["ruleId"], "undecided");
    // Theory alone is no proof that something goes wrong.
    let (xml, results) = check(&["hidden.sql"], "\"hidden.sql\" = \"read committed\"\n", 3);
    assert!(xml.contains("type=\"not-enough\""), "{xml}");
    assert_eq!((&results[0]["ruleId"], &results[0]["level"]), (&"not-enough".into(), &"warning".into()));
    assert_eq!(place(&results[0]), ("hidden.sql".to_owned(), 2));
    let carried = "SELECT left_over AS n FROM stock WHERE id = 1 \\gset\nUPDATE stock SET left_over = :n - 1 WHERE \
        id = 1;\n";
    s.write("carried.sql", carried);
    let (_, results) = check(&["carried.sql"], "\"carried.sql\" = \"serializable\"\n", 3);
    assert_eq!(results[0]["ruleId"], "between-transactions");
    assert_eq!(place(&results[0]), ("carried.sql".to_owned(), 2));
}

#[test]
fn requirements_and_promises_are_tests_of_a_comparison() {
    let Some(s) = scene("requirements_and_promises_are_tests_of_a_comparison") else { return };
    let line = "compare --levels rc,ser --clients 2 --transactions 5 --warmup 0 --rounds 1 --try 0 --no-save --setup \
        setup.sql --junit compare.xml --sarif compare.sarif --require rc.tps>0 --require tps>1e9 -f";
    s.run(&[&words(line)[..], &["a b.sql"]].concat()).expect(4);
    let xml = s.read("compare.xml");
    for expected in [
        "<testsuite name=\"isobench compare\" tests=\"6\" failures=\"2\"",
        "name=\"the comparison is complete\"",
        "name=\"serializable: keeps what is promised\"",
        "name=\"tps &gt; 1000000000: serializable\"",
        "type=\"requirement\"",
        "no broken promise in 1 checked rounds, which proves nothing",
    ] {
        assert!(xml.contains(expected), "{expected} is missing in\n{xml}");
    }
    let results = findings(&s, "compare.sarif");
    let rules: Vec<&Value> = results.iter().map(|result| &result["ruleId"]).collect();
    assert_eq!(rules, ["requirement", "requirement"]);
    assert_eq!(place(&results[0]), ("a%20b.sql".to_owned(), 1));
}

#[test]
fn files_of_others_are_left_alone_and_options_are_used() {
    let s = Scene::new();
    for (name, text) in [("setup.sql", SETUP), ("sell.sql", SELL), ("mine.xml", "<testsuite name=\"mine\"/>")]
    {
        s.write(name, text);
    }
    let file = "isn't a file of tests of isobench, so it isn't overwritten";
    for (line, said) in [
        ("probe -f sell.sql --setup setup.sql --junit mine.xml", file),
        ("probe -f sell.sql --setup setup.sql --sarif mine.xml", "isn't a file of findings of isobench"),
        ("probe -f sell.sql --setup setup.sql --junit x --sarif x", "name the same file; name two"),
        ("probe -f sell.sql --setup setup.sql --sarif -", "--sarif: standard output has the answer"),
        ("probe --junit x.xml", "--junit: needs scripts to try"),
        ("probe --spec a.spec --sarif x.sarif", "--sarif: needs scripts to try"),
        ("compare --junit mine.xml", file),
        ("race --junit mine.xml -d x --on-this-database x -- true", file),
        ("race x.capture --setup setup.sql --junit mine.xml", file),
    ] {
        let finished = s.run(&words(line)).expect(1);
        assert!(finished.stderr.contains(said), "{line}: {}", finished.stderr);
    }
    let advise = s.run(&words("advise -f sell.sql --setup setup.sql --junit x.xml")).expect(1);
    assert!(advise.stderr.contains("--check <FILE.toml>"), "{}", advise.stderr);
    assert_eq!(s.read("mine.xml"), "<testsuite name=\"mine\"/>");
}
