//! `isobench report`: saved results, one or two. No server is needed.
//!
//! The results are the examples of the crate that renders them.

use std::fs;

use isobench_result::summarise;
use serde_json::Value;

use crate::examples;
use crate::support::program::Running;
use crate::support::scene::Scene;

/// An example result.
pub fn example(name: &str) -> String {
    examples::example(name).to_json()
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
    let mut document = examples::example("three-levels");
    for round in &mut document.cells[2].rounds {
        let lost = round.attempts.committed / 5;
        round.transactions.committed -= lost;
        round.transactions.total -= lost;
        round.attempts.committed -= lost;
        round.attempts.started -= lost;
    }
    summarise(&mut document);
    scene.write("slower.json", &document.to_json());
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
        ("text", " serializable "),
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
        let mut program = scene.isobench(&["report", "broken-promise.json", "--details"]);
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
    let finished = scene.run(&["report", "three-levels.json", "--details"]).expect(0);
    finished.prints(&["--legend explains the columns."]);
    assert!(!scene.file("three-levels.html").exists());
    let finished = scene.run(&["report", "three-levels.json", "--format", "text"]).expect(0);
    assert!(finished.stdout.lines().count() <= 40, "{}", finished.stdout);
    let refused = ["report", "three-levels.json", "checked.json", "--details"];
    scene.run(&refused).expect(1).says(&["--details is of one result as text"]);
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
        ("csv", &["workload,scale,clients", ",serializable,0.8"]),
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
            &[
                "regression: serializable, 8 clients: B commits 2",
                "regression: serializable ÷ read committed, 8 clients: the ratio is 2",
                "error: regressions from",
            ],
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
fn two_results_and_a_series_become_pages() {
    let scene = scene(&["three-levels"]);
    with_slower(&scene);
    let [one, two] = ["three-levels.json", "slower.json"];
    let finished = scene.run(&["report", one, two, "--html", "pair.html"]).expect(0);
    assert_eq!(finished.stdout, "");
    finished.says(&["the report is in \"pair.html\""]);
    assert!(scene.read("pair.html").contains("Two results side by side"));
    let options = ["report", one, two, one, "--html", "-"];
    let page = scene
        .run(&options)
        .expect(0)
        .prints(&["<!DOCTYPE html>", "tps: committed transactions per second, by time"])
        .stdout;
    // A page may be written anew, and a comparison, but neither over the other.
    scene.run(&["report", one, two, one, "--html", "pair.html"]).expect(0);
    assert!(scene.read("pair.html") == page);
    let options = ["report", one, two, one, "--json", "all.json", "--csv", "all.csv", "--format", "text"];
    scene.run(&options).expect(0).prints(&["\nserializable, 8 clients\n"]);
    assert!(scene.read("all.json").contains("\"format\": \"isobench/trend\""));
    assert_eq!(scene.read("all.csv").lines().count(), 10);
    scene.run(&options).expect(0);
    scene.run(&["report", one, "--csv", "all.csv"]).expect(1).says(&["\"all.csv\" exists and isn't a table"]);
    let finished = scene.run(&["report", one, "--csv", "-"]).expect(0).prints(&["product,server_version"]);
    assert_eq!(finished.stderr, "");
    assert!(!scene.file("three-levels.html").exists() && !scene.file("-").exists());
}

#[test]
fn thresholds_decide_the_status() {
    let scene = scene(&["three-levels", "checked", "broken-promise", "interrupted"]);
    for (name, requirement, status, text) in [
        ("three-levels", "serializable.ratio.low >= 0.3", 0, "met      serializable.ratio.low >= 0.3: 0."),
        ("three-levels", "ser.ratio >= 0.9", 4, "NOT MET  serializable.ratio >= 0.9: serializable 0."),
        ("three-levels", "anomalies == 0", 4, "wasn't measured: no history was recorded"),
        ("checked", "ser.anomalies == 0", 0, "met      serializable.anomalies == 0: 0"),
        ("checked", "anomalies == 0", 4, "read committed"),
        ("interrupted", "tps > 0", 4, "the result is incomplete: interrupted"),
    ] {
        let file = format!("{name}.json");
        let options = ["report", &file, "--format", "text", "--require", requirement];
        let finished = scene.run(&options).expect(status).prints(&["\nRequirements:\n", text]);
        assert_eq!(finished.stderr.contains("isn't met; see above"), status == 4, "{requirement}");
        // Elsewhere they don't disturb what is read by programs.
        let options = ["report", &file, "--format", "json", "--require", requirement];
        let finished = scene.run(&options).expect(status).says(&[text]);
        let document: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        assert_eq!(document["requirements"][0]["met"], status == 0, "{requirement}");
    }
    // Those that a result was measured with are shown again, and decide nothing any more.
    let options = ["report", "checked.json", "--json", "judged.json", "--require", "tps > 1e9"];
    scene.run(&options).expect(4);
    let judged =
        scene.read("judged.json").replacen("\"plan\": {", "\"plan\": {\"require\": [\"tps > 1e9\"],", 1);
    scene.write("judged.json", &judged);
    scene
        .run(&["report", "judged.json", "--format", "text"])
        .expect(0)
        .prints(&["NOT MET  tps > 1000000000: "]);
    let options = ["report", "checked.json", "--require", "tps > 1e9", "--require", "wasted < 0"];
    scene.run(&options).expect(4).says(&["the report is in", "error: 2 requirements aren't met"]);
}

#[test]
fn the_newest_result_is_found_by_folder_and_link() {
    let scene = scene(&["three-levels"]);
    let text = example("three-levels");
    scene.write("isobench-results/one/result.json", &text);
    scene.write("isobench-results/two/result.json", &text);
    scene.write("empty/x", "");
    std::os::unix::fs::symlink("two", scene.file("isobench-results/latest")).expect("a link");
    for (arguments, page) in [
        (&["report", "latest"][..], "isobench-results/two/report.html"),
        (&["report", "isobench-results"], "isobench-results/two/report.html"),
        (&["report", "isobench-results/latest"], "isobench-results/two/report.html"),
        (&["report", "isobench-results/one/"], "isobench-results/one/report.html"),
    ] {
        scene.run(arguments).expect(0).says(&[&format!("the report is in \"{page}\"")]);
        fs::remove_file(scene.file(page)).expect("the page");
    }
    let pair = ["report", "isobench-results/one", "isobench-results/two", "--fail-on-regression", "0"];
    scene.run(&pair).expect(0).prints(&["A: isobench-results/one/result.json, "]);
    scene.run(&["report", "empty"]).expect(1).says(&["\"empty\": the folder has no result.json"]);
    fs::remove_file(scene.file("isobench-results/latest")).expect("the link");
    scene.write("isobench-results/latest", "isobench's newest result: one\n");
    scene.run(&["report", "isobench-results"]).expect(0).says(&["isobench-results/one/report.html"]);
    fs::remove_dir_all(scene.file("isobench-results/one")).expect("the folder");
    let gone = ["report", "isobench-results/latest"];
    scene.run(&gone).expect(1).says(&["leads to a folder that has no result.json any more"]);
}

#[test]
fn a_link_that_another_user_planted_is_not_followed() {
    use std::os::unix::fs::{lchown, symlink};

    let scene = scene(&["three-levels"]);
    scene.write("theirs/result.json", &example("three-levels"));
    symlink("theirs", scene.file("planted")).expect("a link");
    if lchown(scene.file("planted"), Some(65534), None).is_err() {
        // Only root can make a link of another user's.
        return;
    }
    // The scene's folder is one that others can write to.
    for arguments in [
        &["report", "planted"][..],
        &["report", "three-levels.json", "--html", "planted/report.html"],
        &["compare", "--results", "planted"],
        &["compare", "--json", "planted/x.json"],
        &["run", "--json", "planted/x.json"],
    ] {
        scene.run(arguments).expect(1).says(&["\"planted\" is a link of another user"]);
    }
    assert_eq!(fs::read_dir(scene.file("theirs")).expect("the folder").count(), 1);
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
        (&["report", "."], "\".\": the folder has no result.json"),
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
            "can't be compared: A has measurement version 4 and B has 99",
        ),
        (&["report", "three-levels.json", "a", "c"], "\"a\": there is no such file"),
        (&["report", "three-levels.json", "--html", "-", "--json", "-"], "--html - and --json -: only one"),
        (&["report", "three-levels.json", "--json", "check.json"], "isn't a result of isobench, so it isn't"),
        (&["report", "three-levels.json", "--csv", "three-levels.json"], "isn't a table of isobench"),
        (&["report", "three-levels.json", "--require", "tsp > 1"], "did you mean \"tps\"?"),
        (
            &["report", "three-levels.json", "--require", "ru.tps > 1"],
            "has no such cell; its levels are read",
        ),
        (
            &["report", "three-levels.json", "three-levels.json", "--require", "tps > 1"],
            "--require is about one result",
        ),
        (&["report", "three-levels.json", "--fail-on-regression", "5%"], "report OLD NEW"),
        (&["report", "a", "b", "--fail-on-regression", "100%"], "use a percentage"),
        (&["report", "three-levels.json", "--format", "pdf"], "text, markdown, csv, json"),
        (
            &["report", "three-levels.json", "--html", "-", "--format", "csv"],
            "--format writes to standard output, and so does",
        ),
        (&["report", "three-levels.json", "--html", "no/such/folder"], "could not write \"no/such/folder\""),
        (&["report", "page.html"], "would be overwritten by its report"),
        (&["report", "-"], "say where the report goes"),
        (&["report", "-", "-"], "standard input can be read only once"),
        (&["report"], "could not read the folder of results \"isobench-results\""),
    ] {
        let finished = scene.run(arguments).expect(1).says(&[message]);
        assert_eq!(finished.stdout, "", "{arguments:?}");
    }
}
