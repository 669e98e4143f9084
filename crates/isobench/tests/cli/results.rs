//! `isobench results` and `isobench trend`: saved results are listed, found, tagged, compared, shown
//! over time, and removed; what isn't isobench's stays. No server is needed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use crate::report::example;
use crate::support::scene::Scene;

/// The name of the folder of a day's result.
fn day(day: u32) -> String {
    format!("2026-01-{day:02}T10-00-00Z")
}

/// Ten saved results; the last five commit a fifth less.
fn ten() -> Scene {
    let scene = Scene::new();
    let text = example("three-levels");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let page = scene.file("page.html");
    scene.write("one.json", &text);
    scene.run(&["report", "one.json", "--html", "page.html"]).expect(0);
    let speeds = [1.0, 1.02, 0.99, 1.01, 0.985, 0.81, 0.795, 0.805, 0.79, 0.82];
    for (speed, number) in speeds.iter().zip(1..) {
        let mut document = document.clone();
        for cell in document["cells"].as_array_mut().expect("cells") {
            for round in cell["rounds"].as_array_mut().expect("rounds") {
                round["seconds"] = Value::from(round["seconds"].as_f64().expect("seconds") / speed);
            }
        }
        document["started_at"] = Value::from(format!("2026-01-{number:02}T10:00:00Z"));
        document["finished_at"] = Value::from(format!("2026-01-{number:02}T10:01:15Z"));
        let folder = format!("isobench-results/{}", day(number));
        scene.write(&format!("{folder}/result.json"), &document.to_string());
        fs::copy(&page, scene.file(&format!("{folder}/report.html"))).expect("the page");
    }
    symlink(day(10), scene.file("isobench-results/latest")).expect("a link");
    scene
}

/// The names of the results that are left.
fn left(scene: &Scene) -> Vec<u32> {
    (1..=10).filter(|number| scene.file(&format!("isobench-results/{}", day(*number))).exists()).collect()
}

#[test]
fn results_are_listed_with_their_tags() {
    let scene = ten();
    let whole = scene.read(&format!("isobench-results/{}/result.json", day(10)));
    scene.run(&["results", "tag", "latest", "nightly", "commit=abc"]).expect(0);
    scene.run(&["results", "tag", "nightly", "commit=def"]).expect(0);
    scene.run(&["results", "tag", "latest~1", "nightly"]).expect(0);
    scene.write("isobench-results/damaged/result.json", "{");
    let finished = scene.run(&["results"]).expect(0);
    finished.says(&["left out: \"isobench-results/damaged/result.json\": this is not a readable"]);
    let finished = scene.run(&["results", "list", "--json"]).expect(0);
    let rows: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(10));
    assert_eq!(rows[9]["tags"], serde_json::json!(["nightly", "commit=def"]));
    assert_eq!((&rows[0]["seconds"], &rows[0]["name"]), (&Value::from(75), &Value::from(day(1))));
    assert_eq!(rows[0]["servers"], serde_json::json!(["PostgreSQL 15.18"]));
    scene.run(&["results", "untag", "latest", "nightly", "commit=def"]).expect(0);
    assert!(!scene.file(&format!("isobench-results/{}/tags.json", day(10))).exists());
    assert_eq!(
        scene.read(&format!("isobench-results/{}/result.json", day(10))),
        whole,
        "it is never written"
    );
    fs::rename(scene.file("isobench-results"), scene.file("elsewhere")).expect("it is moved");
    scene.run(&["results", "--folder", "elsewhere"]).expect(0).prints(&["nightly", &day(9)]);
}

#[test]
fn two_results_are_found_by_name_tag_and_age() {
    let scene = ten();
    scene.run(&["results", "tag", "latest~9", "before"]).expect(0);
    let (first, last) = (format!("A: {}", day(1)), format!("B: {}", day(10)));
    for [a, b] in [["before", "latest"], [&day(1), &day(10)], ["latest~9", "latest~0"]] {
        scene.run(&["results", "compare", a, b]).expect(0).prints(&[&first, &last, "B ÷ A"]);
    }
    let regression = ["results", "compare", "before", "latest", "--fail-on-regression", "5%"];
    scene.run(&regression).expect(3).says(&["regression: serializable, 8 clients: B commits 18"]);
    scene
        .run(&["results", "compare", "one.json", "latest", "--format", "json"])
        .expect(0)
        .prints(&["one.json"]);
    scene.run(&["results", "tag", "latest", "before"]).expect(0);
    for (words, message) in [
        (&["compare", "before", "latest"][..], "\"before\" is a tag of 2026-01-01T10-00-00Z, 2026-01-10"),
        (
            &["compare", "befor", "latest"],
            "no result has the name or the tag \"befor\" (did you mean \"before\"?)",
        ),
        (&["compare", "latest~10", "latest"], "the folder has only 10 results"),
        (&["compare", "latest", "latest", "--format", "bencher"], "--format bencher: it is of one result"),
        (&["tag", "latest", "latest~1"], "latest and latest~N mean the newest"),
        (&["tag", "latest", "a/b"], "without blanks, quotes and slashes"),
        (&["untag", "latest~1", "x"], "has no tag \"x\"; it has none"),
        (&["list", "--folder", "nosuch"], "could not read the folder of results \"nosuch\""),
        (&["list", "--folder", "nosuch"], "isobench compare and audit make it, --folder names another one"),
        (&["prune"], "--keep"),
        (&["prune", "--older-than", "soon"], "use a time such as 30d"),
    ] {
        scene.run(&[&["results"], words].concat()).expect(1).says(&[message]);
    }
}

#[test]
fn old_results_are_removed_and_nothing_else() {
    let scene = ten();
    scene.run(&["results", "tag", "latest~9", "keep-me"]).expect(0);
    let at = |number: u32, name: &str| format!("isobench-results/{}/{name}", day(number));
    scene.write(&at(2, "notes.txt"), "mine");
    symlink("/etc/passwd", scene.file(&at(3, "rounds.csv"))).expect("a link");
    scene.write(&at(4, "report.html"), "<title>my thesis</title>");
    fs::remove_file(scene.file(&at(5, "report.html"))).expect("it was there");
    fs::create_dir(scene.file(&at(6, "more"))).expect("a folder");
    scene.write("isobench-results/mine/result.txt", "mine");
    scene.write("target/result.json", &scene.read("one.json"));
    fs::copy(scene.file("page.html"), scene.file("target/report.html")).expect("the page");
    symlink("../target", scene.file("isobench-results/link")).expect("a link");
    scene.write("isobench-results/other/result.json", "{\"format\": \"mine\"}");

    let finished = scene.run(&["results", "prune", "--keep", "2"]).expect(0);
    finished.prints(&[
        "would remove 2026-01-07T10-00-00Z: report.html, result.json",
        "2 results would be removed",
    ]);
    assert_eq!(left(&scene), (1..=10).collect::<Vec<_>>(), "nothing is removed without being asked");
    let finished = scene.run(&["results", "prune", "--keep", "2", "--yes"]).expect(0);
    let finished =
        finished.prints(&["removed 2026-01-07T10-00-00Z\nremoved 2026-01-08T10-00-00Z\n2 results removed"]);
    finished.says(&[
        "left alone: 2026-01-02T10-00-00Z: \"notes.txt\" in it isn't a file that isobench writes",
        "left alone: 2026-01-03T10-00-00Z: \"rounds.csv\" in it isn't",
        "left alone: 2026-01-04T10-00-00Z: \"report.html\" in it isn't",
        "left alone: 2026-01-05T10-00-00Z: it has no report.html, so it may still be measured",
        "left alone: 2026-01-06T10-00-00Z: \"more\" in it isn't",
        "left alone: \"isobench-results/other/result.json\": this is not an isobench result",
        "left alone: link: it is no folder",
        "left alone: mine: it is no folder",
    ]);
    assert_eq!(left(&scene), [1, 2, 3, 4, 5, 6, 9, 10], "tagged and doubtful ones stay");
    assert!(
        scene.file("target/result.json").exists() && scene.file("isobench-results/mine/result.txt").exists()
    );
    // Nothing is as old as the first, which is tagged, and the newest always stays.
    scene.run(&["results", "untag", "keep-me", "keep-me"]).expect(0);
    scene
        .run(&["results", "prune", "--older-than", "900000d", "--yes"])
        .expect(0)
        .prints(&["0 results removed"]);
    scene.run(&["results", "prune", "--older-than", "1s", "--keep", "0", "--yes"]).expect(0);
    assert_eq!(left(&scene), [2, 3, 4, 5, 6, 10]);
}

#[test]
fn root_changes_nothing_where_others_can_write() {
    let scene = ten();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let open = |name: &str, mode: u32| {
        fs::set_permissions(scene.file(name), Permissions::from_mode(mode)).expect("chmod");
    };
    open("isobench-results", 0o777);
    let prune = ["results", "prune", "--keep", "1", "--yes"];
    scene.run(&prune).expect(1).says(&["root changes nothing in a folder that other users can write to"]);
    open("isobench-results", 0o755);
    let first = format!("isobench-results/{}", day(1));
    open(&first, 0o777);
    scene.run(&["results", "tag", "latest~9", "x"]).expect(1).says(&["root changes nothing"]);
    scene.run(&prune).expect(0).says(&["left alone: 2026-01-01T10-00-00Z: root changes nothing"]);
    assert_eq!(left(&scene), [1, 10]);
}

#[test]
fn the_trend_of_ten_results_shows_the_step() {
    let scene = ten();
    let change = "── change: 161 → 129 (−19.7 %), p = 0.01";
    let finished = scene.run(&["trend", "serializable.tps"]).expect(0);
    finished.prints(&["serializable.tps: committed transactions per second, by time", change, "●"]);
    scene.run(&["trend", "ser.ratio"]).expect(0).prints(&["No change was found."]);
    for number in 1..=9 {
        let tag = format!("commit={}", if number < 6 { "old" } else { "new" });
        scene.run(&["results", "tag", &day(number), &tag]).expect(0);
    }
    let finished = scene.run(&["trend", "ser.tps", "--by", "tag:commit"]).expect(0);
    finished.prints(&["Between old and new: 161 → 128", "2026-01-10T10-00-00Z: it has no tag commit=VALUE"]);
    let files = ["--html", "trend.html", "--json", "trend.json", "--csv", "trend.csv"];
    for _ in 0..2 {
        scene
            .run(&[&["trend", "tps"][..], &files].concat())
            .expect(0)
            .says(&["the report is in \"trend.html\""]);
    }
    assert!(
        scene.read("trend.json").contains("isobench/metric-trend")
            && scene.read("trend.html").contains("<svg")
    );
    assert_eq!(scene.read("trend.csv").lines().count(), 31);
    scene
        .run(&["trend", "tps", "one.json", "latest"])
        .expect(0)
        .prints(&["No change can be found in 2 results"]);
    for (words, message) in [
        (&["tsp"][..], "did you mean \"tps\"?"),
        (&["tps", "--by", "version"], "use time, tag:KEY"),
        (&["tps", "nosuch"], "no result has the name or the tag \"nosuch\""),
        (&["tps", "--csv", "one.json"], "isn't a table of isobench"),
        (&["tps", "--csv", "-", "--format", "text"], "--format writes to standard output"),
    ] {
        scene.run(&[&["trend"], words].concat()).expect(1).says(&[message]);
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
