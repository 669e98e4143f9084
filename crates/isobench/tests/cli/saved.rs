//! The files of a comparison's result and report.

use std::fs;
use std::path::PathBuf;

use crate::support::document;
use crate::support::scene::Scene;

const QUICK: [&str; 11] =
    ["compare", "-w", "tpcb-like", "--levels", "rc", "--transactions", "5", "--warmup", "0", "--rounds", "1"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    QUICK.into_iter().chain(more.iter().copied()).collect()
}

fn files(scene: &Scene) -> Vec<PathBuf> {
    let entries = fs::read_dir(scene.file("")).expect("the folder").flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn a_result_has_a_folder_of_its_own() {
    let Some(scene) = Scene::with_database("a_result_has_a_folder_of_its_own") else { return };
    let finished = scene.run(&with(&[])).expect(0);
    let line = finished
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("Report: "))
        .expect("a line that says where");
    assert!(line.starts_with("isobench-results/") && line.ends_with("/report.html"), "{line}");
    let page = scene.read(line);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("read committed"));
    let document = document::read(&scene, &line.replace("report.html", "result.json"));
    assert_eq!(document["complete"], true);
    assert_eq!(document["command"][1], "compare");
    // Sizes and extensions of the measured database.
    assert!(document["server"]["relations"].to_string().contains("pgbench_accounts"));
    assert!(document["server"]["extensions"]["plpgsql"].is_string());
}

#[test]
fn named_files_are_all_that_is_written() {
    let Some(scene) = Scene::with_database("named_files_are_all_that_is_written") else { return };
    scene.run(&with(&["--html", "page.html"])).expect(0).prints(&["Report: page.html"]);
    assert_eq!(files(&scene), [scene.file("page.html")]);
    scene.run(&with(&["--results", "here/there"])).expect(0).prints(&["Report: here/there/report.html"]);
    assert!(scene.file("here/there/result.json").is_file());
    fs::remove_dir_all(scene.file("here")).expect("a folder");
    let finished = scene.run(&with(&["--no-save"])).expect(0);
    assert!(!finished.stdout.contains("Report:"), "{}", finished.stdout);
    assert_eq!(files(&scene), [scene.file("page.html")]);
}

#[test]
fn where_nothing_can_be_written_the_table_is_still_shown() {
    let Some(scene) = Scene::with_database("where_nothing_can_be_written_the_table_is_still_shown") else {
        return;
    };
    // A file in place of the folder.
    scene.write("isobench-results", "");
    let finished = scene.run(&with(&[])).expect(0).prints(&["read committed"]);
    finished.says(&["warning: could not make the folder", "--no-save does without"]);
    scene.write("blocked", "");
    scene.run(&with(&["--results", "blocked/x"])).expect(1).says(&["--results: could not make the folder"]);
}

#[test]
fn the_newest_result_has_a_link() {
    let Some(scene) = Scene::with_database("the_newest_result_has_a_link") else { return };
    scene.run(&with(&["--results", "isobench-results/first"])).expect(0);
    let leads_to = || fs::read_link(scene.file("isobench-results/latest")).expect("a link");
    assert_eq!(leads_to(), PathBuf::from("first"));
    scene.run(&with(&["--require", "tps > 1e12"])).expect(4).prints(&["NOT MET  tps > 1000000000000: "]);
    let newest = leads_to();
    assert_ne!(newest, PathBuf::from("first"));
    let result = document::read(&scene, "isobench-results/latest/result.json");
    assert_eq!(result["requirements"][0]["met"], false);
    assert_eq!(result["plan"]["require"][0], "tps > 1000000000000");
    let page = format!("isobench-results/{}/report.html", newest.display());
    scene.run(&["report", "latest"]).expect(0).says(&[&page]);
    let there = fs::read_dir(scene.file("isobench-results")).expect("the folder").count();
    assert_eq!(there, 3, "two results and the link");
    // A folder elsewhere has no link, and a link of the user's is left alone.
    scene.run(&with(&["--results", "elsewhere/x"])).expect(0);
    assert_eq!((leads_to(), scene.file("elsewhere/latest").exists()), (newest, false));
}

#[test]
fn a_result_goes_to_standard_output_and_the_table_to_standard_error() {
    let test = "a_result_goes_to_standard_output_and_the_table_to_standard_error";
    let Some(scene) = Scene::with_database(test) else { return };
    let finished = scene.run(&with(&["--json", "-", "--require", "tps > 0"])).expect(0);
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).expect("nothing but JSON");
    assert_eq!((&document["complete"], &document["requirements"][0]["met"]), (&true.into(), &true.into()));
    finished.says(&["  read committed ", "met      tps > 0: "]);
    let finished = scene.run(&with(&["--csv", "-", "--no-save"])).expect(0).says(&["  read committed "]);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("product,"), "{}", finished.stdout);
    scene.run(&["init"]).expect(0);
    let run =
        ["run", "-t", "5", "--json", "-", "--csv", "run.csv", "--require", "tps > 0", "--require", "p50 < 0"];
    let finished = scene.run(&run).expect(4);
    let document: serde_json::Value = serde_json::from_str(&finished.stdout).expect("nothing but JSON");
    assert_eq!(document["requirements"][1]["met"], false);
    finished.says(&[
        "number of transactions actually processed: 5/5",
        "NOT MET  latency_p50_ms < 0: ",
        "isn't met; see above",
    ]);
    assert_eq!(scene.read("run.csv").lines().count(), 2);
    assert_eq!(files(&scene), [scene.file("run.csv")], "no file is called -");
}

/// Before anything is started, and therefore before the measurement.
#[test]
fn what_cannot_be_written_is_noticed_at_once() {
    let scene = Scene::new();
    scene.write("blocked", "");
    scene.write("theirs.html", "<!DOCTYPE html><title>my thesis</title>");
    scene.write("folder/report.html", "<!DOCTYPE html><title>my thesis</title>");
    scene.write("theirs.json", "{}");
    scene.write("isobench-results/latest", "my notes");
    let cases: [(&[&str], &str); 22] = [
        (&["compare", "--json", "blocked/x.json"], "--json: could not write \"blocked/x.json\""),
        (&["compare", "--json", "nosuch/x.json"], "--json: could not write \"nosuch/x.json\""),
        (&["compare", "--html", "folder"], "--html: \"folder\" is a folder"),
        (&["compare", "--csv", "nosuch/x.csv"], "--csv: could not write"),
        (&["compare", "--results", "blocked/x"], "--results: could not make the folder"),
        (
            &["compare", "--results", "folder"],
            "--results: \"folder/report.html\" exists and isn't a report of isobench",
        ),
        (
            &["compare", "--html", "theirs.html"],
            "--html: \"theirs.html\" exists and isn't a report of isobench",
        ),
        (
            &["compare", "--json", "theirs.json"],
            "--json: \"theirs.json\" exists and isn't a result of isobench",
        ),
        (&["audit", "--history", "blocked/h"], "--history: could not make the folder"),
        (&["run", "--json", "nosuch/x.json"], "--json: could not write"),
        (&["run", "-w", "registers", "--history", "theirs.json"], "--history: \"theirs.json\" exists"),
        (&["run", "--json", "theirs.html"], "isn't overwritten"),
        (&["run", "--csv", "theirs.html"], "isn't a table of isobench"),
        (&["run", "-w", "registers", "--history", "-"], "--history: a history can't be written to"),
        (&["run", "--json", "-", "--csv", "-"], "--json - and --csv -: only one of them"),
        (&["compare", "--csv", "-", "--html", "-"], "--html - and --csv -: only one of them"),
        (&["compare", "--results", "-"], "--results: could not make the folder \"-\""),
        (&["compare", "--results", "isobench-results/x"], "\"isobench-results/latest\" exists and isn't"),
        (&["compare", "--results", "isobench-results/latest"], "is where the newest result is found"),
        (&["compare", "--require", "tsp > 1"], "unknown metric \"tsp\""),
        (&["compare", "--require", "ru.tps > 1"], "read uncommitted isn't measured"),
        (&["run", "--isolation", "rc", "--require", "ser.tps > 1"], "serializable isn't measured"),
    ];
    let before = files(&scene);
    for (arguments, text) in cases {
        let finished = scene.run(arguments).expect(1).says(&[text]);
        assert!(!finished.stderr.contains("no server is named"), "{arguments:?} started a server");
        assert_eq!(files(&scene), before, "{arguments:?}");
    }
    assert!(scene.read("folder/report.html").contains("my thesis"));
}

/// Not even an empty folder.
#[test]
fn a_comparison_that_measures_nothing_leaves_nothing() {
    let scene = Scene::new();
    let arguments = ["compare", "-h", "/nonexistent", "--results", "here"];
    scene.run(&arguments).expect(1);
    scene.run(&arguments[..3]).expect(1);
    assert_eq!(files(&scene), [] as [PathBuf; 0]);
}
