//! `isobench report`: saved results, one or two. No server is needed.
//!
//! The results are the examples of the crate that renders them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::program::Running;
use crate::support::scene::Scene;

/// An example result.
fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isobench-report/tests/golden");
    fs::read_to_string(folder.join(name).with_extension("json")).expect("an example")
}

/// A scene with examples as files.
fn scene(names: &[&str]) -> Scene {
    let scene = Scene::new();
    for name in names {
        scene.write(&format!("{name}.json"), &example(name));
    }
    scene
}

/// Adds a copy of a result in which serializable commits 20 % less.
fn with_slower(scene: &Scene) {
    let mut document: Value = serde_json::from_str(&example("three-levels")).expect("JSON");
    for round in document["cells"][2]["rounds"].as_array_mut().expect("rounds") {
        for count in ["/transactions/committed", "/attempts/committed"] {
            let count = round.pointer_mut(count).expect("a count");
            *count = Value::from(count.as_u64().expect("a number") * 8 / 10);
        }
    }
    scene.write("slower.json", &document.to_string());
}

#[test]
fn one_result_becomes_a_page_beside_it() {
    let scene = scene(&["three-levels"]);
    let finished = scene.run(&["report", "three-levels.json"]).expect(0);
    assert_eq!(finished.stdout, "");
    finished.says(&["the report is in \"three-levels.html\""]);
    let page = scene.read("three-levels.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("repeatable read"));
    let finished = scene.run(&["report", "three-levels.json", "--html", "-"]).expect(0);
    assert!(finished.stdout == page, "the same page on standard output");
    let options = ["report", "three-levels.json", "--html", "other.htm", "--format", "csv"];
    let finished = scene.run(&options).expect(0).says(&["\"other.htm\""]);
    assert_eq!(finished.stdout.lines().count(), 10);
    assert!(scene.read("other.htm") == page);
}

#[test]
fn one_result_in_every_format() {
    let scene = scene(&["three-levels", "broken-promise", "interrupted"]);
    for (format, text) in [
        ("text", "\nserializable "),
        ("markdown", "\n| serializable "),
        ("csv", ",serializable,"),
        ("json", "\"format\": \"isobench/result\""),
    ] {
        let finished =
            scene.run(&["report", "three-levels.json", "--format", format]).expect(0).prints(&[text]);
        assert_eq!(finished.stderr, "", "{format}");
        assert!(!scene.file("three-levels.html").exists());
    }
    // The result was judged when it was measured: rendering doesn't repeat that.
    scene.run(&["report", "broken-promise.json", "--format", "text"]).expect(0).prints(&["PROMISE BROKEN"]);
    scene.run(&["report", "interrupted.json", "--format", "markdown"]).expect(0).prints(&["INCOMPLETE"]);
}

#[test]
fn a_report_has_emphasis_only_where_it_is_wanted() {
    let scene = scene(&["broken-promise"]);
    let printed = |variables: &[(&str, &str)]| {
        let mut program = scene.isobench(&["report", "broken-promise.json", "--format", "text"]);
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            program.env_remove(name);
        }
        program.envs(variables.iter().copied());
        Running::start(&mut program).finish().expect(0).stdout
    };
    let plain = printed(&[]);
    assert!(!plain.contains('\x1b') && plain.contains("\nPROMISE BROKEN"), "a pipe: {plain}");
    let forced = printed(&[("CLICOLOR_FORCE", "1")]);
    assert!(forced.contains("\x1b[1m\x1b[31mPROMISE BROKEN\x1b[0m"), "{forced}");
    assert_eq!(anstream::adapter::strip_str(&forced).to_string(), plain);
    for off in [&[("CLICOLOR_FORCE", "0")][..], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]] {
        assert_eq!(printed(off), plain, "{off:?}");
    }
}

#[test]
fn the_legend_is_printed_on_demand() {
    let scene = scene(&["three-levels", "checked"]);
    let legend = "transactions whose COMMIT was acknowledged";
    let finished = scene.run(&["report", "three-levels.json", "--format", "text"]).expect(0);
    finished.prints(&["--legend explains the columns."]);
    let finished = scene.run(&["report", "three-levels.json", "--format", "text", "--legend"]).expect(0);
    let finished = finished.prints(&[legend]);
    assert!(!finished.stdout.contains("--legend"), "{}", finished.stdout);
    for words in [
        &["three-levels.json", "--legend"][..],
        &["three-levels.json", "--format", "csv", "--legend"],
        &["three-levels.json", "checked.json", "--legend"],
    ] {
        scene
            .run(&[&["report"], words].concat())
            .expect(1)
            .says(&["--legend explains the columns of one result"]);
    }
}

#[test]
fn two_results_in_every_format() {
    let scene = scene(&["three-levels"]);
    with_slower(&scene);
    for (format, texts) in [
        (
            "text",
            &["A: three-levels.json, PostgreSQL", "B: slower.json, ", "\nserializable ", "0.80 × (−20 %)"][..],
        ),
        ("markdown", &["| serializable<br>8 clients  ", "0.80 × (−20 %)"]),
        ("csv", &["workload,scale,clients", ",serializable,0.7"]),
        ("json", &["\"format\": \"isobench/pair\"", "\"name\": \"slower.json\""]),
    ] {
        let options = ["report", "three-levels.json", "slower.json", "--format", format];
        let finished = scene.run(&options).expect(0).prints(texts);
        assert_eq!(finished.stderr, "", "{format}");
    }
    scene
        .run(&["report", "three-levels.json", "slower.json"])
        .expect(0)
        .prints(&["B ÷ A", "weren't interleaved"]);
}

#[test]
fn a_regression_fails_the_job() {
    let scene = scene(&["three-levels", "single-round", "checked", "broken-promise"]);
    with_slower(&scene);
    for (a, b, limit, status, texts) in [
        ("three-levels", "three-levels", "0", 0, &[][..]),
        (
            "three-levels",
            "slower",
            "5%",
            3,
            &["regression: serializable, 8 clients: B commits 2", "error: one regression"],
        ),
        ("three-levels", "slower", "25%", 0, &[]),
        ("slower", "three-levels", "5", 0, &[]),
        ("checked", "broken-promise", "5%", 3, &["regression: serializable, 8 clients: B breaks a promise"]),
        ("single-round", "single-round", "5%", 1, &["no cell has two complete rounds in both results"]),
        ("three-levels", "single-round", "5%", 1, &["--rounds 3 or more"]),
    ] {
        let (a, b) = (format!("{a}.json"), format!("{b}.json"));
        let options = ["report", &a, &b, "--fail-on-regression", limit];
        scene.run(&options).expect(status).prints(&["B ÷ A"]).says(texts);
    }
}

#[test]
fn what_is_no_result_is_an_error_that_says_why() {
    let scene = scene(&["three-levels", "single-run"]);
    let mut other: Value = serde_json::from_str(&example("three-levels")).expect("JSON");
    other["measurement_version"] = Value::from(99);
    scene.write("other.json", &other.to_string());
    scene.write("check.json", "{\"format\": \"isobench/check\", \"histories\": []}");
    scene.write("prose.json", "hello, world");
    scene.write("empty.json", "");
    let whole = example("three-levels");
    let newer = whole.replacen("\"format_version\": 1", "\"format_version\": 99", 1);
    scene.write("newer.json", &newer);
    let end = whole.rfind("\"order\"").expect("the last round");
    scene.write("truncated.json", &whole[..end]);
    scene.write("page.html", &example("three-levels"));
    for (arguments, message) in [
        (&["report", "missing.json"][..], "could not read \"missing.json\": No such file"),
        (&["report", "."], "could not read \".\""),
        (
            &["report", "check.json"],
            "\"check.json\": this is not an isobench result: \"format\" is \"isobench/check\"",
        ),
        (&["report", "prose.json"], "\"prose.json\": this is not a readable isobench result: expected value"),
        (&["report", "empty.json"], "EOF"),
        (&["report", "truncated.json"], "use the file as isobench wrote it, or measure again"),
        (
            &["report", "three-levels.json", "newer.json"],
            "\"newer.json\": this result has format version 99, but",
        ),
        (
            &["report", "three-levels.json", "other.json"],
            "can't be compared: A has measurement version 2 and B has 99",
        ),
        (&["report", "a", "b", "c"], "at most two results can be compared"),
        (
            &["report", "three-levels.json", "single-run.json", "--html", "x"],
            "give one FILE, or use --format markdown",
        ),
        (&["report", "three-levels.json", "--fail-on-regression", "5%"], "report OLD.json NEW.json"),
        (&["report", "a", "b", "--fail-on-regression", "100%"], "use a percentage"),
        (&["report", "three-levels.json", "--format", "pdf"], "text, markdown, csv, json"),
        (&["report", "three-levels.json", "--html", "-", "--format", "csv"], "both write to standard output"),
        (&["report", "three-levels.json", "--html", "no/such/folder"], "could not write \"no/such/folder\""),
        (&["report", "page.html"], "would be overwritten by its report"),
        (&["report", "-"], "say where the report goes"),
        (&["report", "-", "-"], "standard input can be read only once"),
        (&["report"], "<FILE>"),
    ] {
        let finished = scene.run(arguments).expect(1).says(&[message]);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
