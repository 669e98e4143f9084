//! `isobench report` of many results: listed, found, tagged, shown over time, and put on one page. No
//! server is needed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use isobench_result::summarise;
use serde_json::Value;

use crate::examples;
use crate::report::example;
use crate::support::scene::Scene;

/// The name of the folder of a day's result.
fn day(day: u32) -> String {
    format!("2026-01-{day:02}T10-00-00Z")
}

/// Ten saved results; the last five commit a fifth less.
fn ten() -> Scene {
    let scene = Scene::new();
    scene.write("one.json", &example("three-levels"));
    let speeds = [1.0, 1.02, 0.99, 1.01, 0.985, 0.81, 0.795, 0.805, 0.79, 0.82];
    for (speed, number) in speeds.iter().zip(1..) {
        let mut document = examples::example("three-levels");
        for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.seconds /= speed;
        }
        document.started_at = Some(format!("2026-01-{number:02}T10:00:00Z"));
        document.finished_at = Some(format!("2026-01-{number:02}T10:01:15Z"));
        summarise(&mut document);
        scene.write(&format!("isobench-results/{}/result.json", day(number)), &document.to_json());
    }
    symlink(day(10), scene.file("isobench-results/latest")).expect("a link");
    scene
}

#[test]
fn results_are_listed_with_their_tags() {
    let scene = ten();
    let whole = scene.read(&format!("isobench-results/{}/result.json", day(10)));
    let tagged = scene.run(&["report", "latest", "--tag", "nightly", "--tag", "commit=abc"]).expect(0);
    tagged.says(&["2026-01-10T10-00-00Z has the tags: nightly, commit=abc"]);
    scene.run(&["report", "nightly", "--tag", "commit=def"]).expect(0);
    scene.run(&["report", &format!("isobench-results/{}", day(9)), "--tag", "nightly"]).expect(0);
    scene.write("isobench-results/damaged/result.json", "{");
    let finished = scene.run(&["report"]).expect(0).prints(&[&day(1), &day(10)]);
    finished.says(&["left out: \"isobench-results/damaged/result.json\": this is not a readable"]);
    for json in [&["--json", "-"], &["--format", "json"]] {
        let finished = scene.run(&[&["report"][..], json].concat()).expect(0);
        let rows: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        assert_eq!(rows.as_array().map(Vec::len), Some(10));
        assert_eq!(rows[9]["tags"], serde_json::json!(["nightly", "commit=def"]));
        assert_eq!(rows[8]["tags"], serde_json::json!(["nightly"]));
        assert_eq!((&rows[0]["seconds"], &rows[0]["name"]), (&Value::from(75), &Value::from(day(1))));
        assert_eq!(rows[0]["servers"], serde_json::json!(["PostgreSQL 15.18"]));
    }
    let result = format!("isobench-results/{}/result.json", day(10));
    assert_eq!(scene.read(&result), whole, "it is never written");
    fs::rename(scene.file("isobench-results"), scene.file("elsewhere")).expect("it is moved");
    scene.run(&["report", "--folder", "elsewhere"]).expect(0).prints(&["nightly", &day(9)]);
    fs::create_dir(scene.file("empty")).expect("a folder");
    scene.run(&["report", "--folder", "empty"]).expect(0).says(&["There is no result in this folder"]);
}

#[test]
fn results_are_found_by_name_tag_and_age() {
    let scene = ten();
    scene.run(&["report", "latest~9", "--tag", "before"]).expect(0);
    let (first, last) = (format!("A: {}", day(1)), format!("B: {}", day(10)));
    for [a, b] in [["before", "latest"], [&day(1), &day(10)], ["latest~9", "latest~0"]] {
        scene.run(&["report", a, b]).expect(0).prints(&[&first, &last, "B ÷ A"]);
    }
    scene.run(&["report", "before"]).expect(0).says(&["2026-01-01T10-00-00Z/report.html"]);
    let regression = ["report", "before", "latest", "--fail-on-regression", "5%"];
    scene.run(&regression).expect(3).says(&["regression: serializable, 8 clients: B commits 18"]);
    scene.run(&["report", "one.json", "latest", "--format", "json"]).expect(0).prints(&["one.json"]);
    scene.run(&["report", "latest", "--tag", "before"]).expect(0);
    for (words, message) in [
        (&["before", "latest"][..], "\"before\" is a tag of 2026-01-01T10-00-00Z, 2026-01-10"),
        (&["befor", "latest"], "no result has the name or the tag \"befor\" (did you mean \"before\"?)"),
        (&["latest~10", "latest"], "the folder has only 10 results"),
        (&["latest", "latest", "--format", "bencher"], "--format bencher: it is of one result"),
        (&["latest", "--tag", "latest~1"], "latest and latest~N mean the newest"),
        (&["latest", "--tag", "a/b"], "without blanks, quotes and slashes"),
        (&["--tag", "x"], "name one RESULT"),
        (&["latest", "before", "--tag", "x"], "name one RESULT"),
        (&["latest", "--tag", "x", "--html", "x.html"], "--tag writes no report"),
        (&["one.json", "--tag", "x"], "is no result.json in a folder of its own"),
        (&["--folder", "nosuch"], "could not read the folder of results \"nosuch\""),
        (&["x", "--folder", "nosuch"], "isobench compare and audit make it, --folder names another one"),
        (&["--details"], "name one RESULT, such as latest"),
        (&["--html", "x.html"], "name one, such as latest"),
        (&["--json", "list.json"], "the list is text, or JSON (--json -)"),
        (&["latest", "--by", "time"], "--by orders a series"),
    ] {
        scene.run(&[&["report"], words].concat()).expect(1).says(&[message]);
    }
    for (command, now) in [
        ("results", "isobench report lists saved results"),
        ("trend", "isobench report --metric METRIC"),
        ("matrix", "isobench report --servers FOLDER"),
        ("check-result", "isobench report RESULT checks"),
    ] {
        scene.run(&[command, "latest"]).expect(1).says(&["unrecognized subcommand", now]);
    }
}

#[test]
fn root_changes_nothing_where_others_can_write() {
    let scene = ten();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let first = format!("isobench-results/{}", day(1));
    fs::set_permissions(scene.file(&first), Permissions::from_mode(0o777)).expect("chmod");
    scene.run(&["report", "latest~9", "--tag", "x"]).expect(1).says(&["root changes nothing in a folder"]);
    assert!(!scene.file(&format!("{first}/tags.json")).exists());
}

#[test]
fn the_series_of_ten_results_shows_the_step() {
    let scene = ten();
    let change = "── change: 161 → 129 (−19.7 %), p = 0.01";
    let finished = scene.run(&["report", "--metric", "serializable.tps"]).expect(0);
    finished.prints(&["serializable.tps: committed transactions per second, by time", change, "●"]);
    scene.run(&["report", "--metric", "ser.ratio"]).expect(0).prints(&["No change was found."]);
    for number in 1..=9 {
        let tag = format!("commit={}", if number < 6 { "old" } else { "new" });
        scene.run(&["report", &day(number), "--tag", &tag]).expect(0);
    }
    let finished = scene.run(&["report", "--metric", "ser.tps", "--by", "tag:commit"]).expect(0);
    finished.prints(&["Between old and new: 161 → 128", "2026-01-10T10-00-00Z: it has no tag commit=VALUE"]);
    let files = ["--html", "trend.html", "--json", "trend.json", "--csv", "trend.csv"];
    for _ in 0..2 {
        let finished = scene.run(&[&["report", "--metric", "tps"][..], &files].concat()).expect(0);
        finished.says(&["the report is in \"trend.html\""]);
    }
    assert!(scene.read("trend.json").contains("isobench/trend") && scene.read("trend.html").contains("<svg"));
    assert_eq!(scene.read("trend.csv").lines().count(), 31);
    let two = ["report", "one.json", "latest", "--metric", "tps"];
    scene.run(&two).expect(0).prints(&["No change can be found in 2 results"]);
    // Three and more are a series by themselves.
    let three = ["report", "latest~2", "latest~1", "latest"];
    scene.run(&three).expect(0).prints(&["tps: committed transactions per second, by time", &day(9)]);
    for (words, message) in [
        (&["--metric", "tsp"][..], "did you mean \"tps\"?"),
        (&["--metric", "tps", "--by", "version"], "use time, tag:KEY"),
        (&["nosuch", "--metric", "tps"], "no result has the name or the tag \"nosuch\""),
        (&["--metric", "tps", "--csv", "one.json"], "isn't a table of isobench"),
        (&["--metric", "tps", "--csv", "-", "--format", "text"], "--format writes to standard output"),
        (&["--metric", "tps", "--require", "tps > 1"], "--require is about one result"),
        (&["latest", "--metric", "tps", "--tag", "x"], "and no --metric"),
    ] {
        scene.run(&[&["report"], words].concat()).expect(1).says(&[message]);
    }
}

/// An example of which a number was changed.
fn changed(name: &str) -> String {
    let text = example(name);
    let changed = text.replacen("\"conflict_ratio\": ", "\"conflict_ratio\": 0.1e-9, \"was\": ", 1);
    assert_ne!(changed, text);
    changed
}

#[test]
fn a_result_that_was_changed_is_noticed() {
    let scene = Scene::new();
    scene.write("good.json", &example("three-levels"));
    scene.write("changed.json", &changed("three-levels"));
    let why = "warning: changed.json: its summary isn't what follows from its rounds\n";
    for (words, status) in
        [(&["good.json"][..], 0), (&["changed.json"], 1), (&["good.json", "changed.json"], 1)]
    {
        let finished = scene.run(&[&["report"], words, &["--format", "text"]].concat()).expect(status);
        let finished = finished.prints(&["serializable"]);
        let said = finished.stderr.contains(why) && finished.stderr.contains("isn't to be counted on");
        assert_eq!(said, status == 1, "{words:?}: {}", finished.stderr);
    }
}

#[test]
fn results_of_servers_are_one_page() {
    let scene = Scene::new();
    scene.write("all/a b.json", &example("three-levels"));
    scene.write("all/other/result.json", &example("checked"));
    scene.write("all/other/tags.json", "{}");
    let finished = scene.run(&["report", "--servers", "all"]).expect(0);
    assert_eq!(finished.stderr, "the page is in \"all/index.html\"\n");
    let page = scene.read("all/index.html");
    for text in ["href=\"./a%20b.json\"", "href=\"./other/result.json\"", "PostgreSQL ", "serializable"] {
        assert!(page.contains(text), "{text}");
    }
    // It is made again, and what can't be counted on is left out.
    scene.write("all/changed.json", &changed("checked"));
    scene.write("all/cut.json", &example("checked")[..2000]);
    scene.write("all/notes.json", "{}\n");
    let finished = scene.run(&["report", "--servers", "all"]).expect(1);
    for text in [
        "left out: changed.json: its summary isn't what follows from its rounds",
        "left out: \"all/cut.json\": ",
        "left out: \"all/notes.json\": ",
        "the page doesn't have all files of the folder",
    ] {
        assert!(finished.stderr.contains(text), "{text}: {}", finished.stderr);
    }
    let page = scene.read("all/index.html");
    assert!(page.contains("changed.json: its summary") && !page.contains("href=\"./changed.json\""));
    scene.run(&["report", "--servers", "all", "--html", "-"]).expect(1).prints(&["<!DOCTYPE html>"]);
    scene.write("all/index.html", "<h1>mine</h1>\n");
    scene.run(&["report", "--servers", "all"]).expect(1).says(&["isn't overwritten"]);
    fs::create_dir(scene.file("empty")).expect("a folder");
    for (words, message) in [
        (&["--servers", "empty"][..], "\"empty\": there is no result in it"),
        (&["--servers", "empty", "x.json"], "cannot be used with"),
        (&["--servers", "empty", "--folder", "all"], "cannot be used with"),
        (&["--servers", "empty", "--format", "text"], "of the other options it takes --html"),
    ] {
        scene.run(&[&["report"], words].concat()).expect(1).says(&[message]);
    }
}

#[test]
fn services_get_one_complete_result() {
    let scene = Scene::new();
    scene.write("one.json", &example("three-levels"));
    scene.write("part.json", &example("interrupted"));
    let rendered = |format: &str| -> Value {
        let finished = scene.run(&["report", "one.json", "--format", format]).expect(0);
        serde_json::from_str(&finished.stdout).expect("JSON")
    };
    let bencher = rendered("bencher");
    assert!(bencher["tpcb-like, serializable, 8 clients"]["tps"]["lower_value"].is_number(), "{bencher}");
    for (format, figure) in
        [("github-action-benchmark", "tps"), ("github-action-benchmark-smaller", "violations")]
    {
        let name = format!("tpcb-like, read committed, 8 clients: {figure}");
        assert_eq!(rendered(format)[0]["name"], Value::from(name));
    }
    for format in ["bencher", "github-action-benchmark"] {
        scene.run(&["report", "part.json", "--format", format]).expect(1).says(&["the result is incomplete"]);
        let two = ["report", "one.json", "one.json", "--format", format];
        scene.run(&two).expect(1).says(&["it is of one result"]);
    }
}
