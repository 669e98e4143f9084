//! Results of many servers on one page, and results that don't agree with themselves.

use std::fs;

use crate::compare::words;
use crate::support::scene::Scene;

/// A folder with a result in it and one below it.
fn scene(test: &str) -> Option<Scene> {
    let s = Scene::with_database(test)?;
    fs::create_dir_all(s.file("all/other")).expect("folders");
    for (levels, file) in [("rc,ser", "all/first.json"), ("rr", "all/other/second.json")] {
        let line =
            format!("compare --levels {levels} -c 2 -t 20 --rounds 3 --warmup 0 --no-try --json {file}");
        s.run(&words(&line)).expect(0);
    }
    fs::rename(s.file("all/first.json"), s.file("all/a b.json")).expect("a name with a space");
    Some(s)
}

#[test]
fn results_of_servers_are_one_page() {
    let Some(s) = scene("results_of_servers_are_one_page") else { return };
    s.write("all/notes.json", "{}\n");
    let finished = s.run(&["matrix", "all"]).expect(0);
    assert!(finished.stderr.contains("warning: left out: ") && finished.stderr.contains("notes.json"));
    let page = s.read("all/index.html");
    for text in ["href=\"./a%20b.json\"", "href=\"./other/second.json\"", "PostgreSQL ", "serializable"] {
        assert!(page.contains(text), "{text}");
    }
    // It is made again, but nothing else is overwritten.
    s.run(&["matrix", "all"]).expect(0);
    s.write("all/index.html", "<h1>mine</h1>\n");
    let finished = s.run(&["matrix", "all"]).expect(1);
    assert!(finished.stderr.contains("isn't overwritten"), "{}", finished.stderr);
    fs::create_dir(s.file("empty")).expect("a folder");
    let finished = s.run(&["matrix", "empty"]).expect(1);
    assert!(finished.stderr.contains("\"empty\": there is no result in it"), "{}", finished.stderr);
}

#[test]
fn a_result_that_was_changed_is_noticed() {
    let Some(s) = scene("a_result_that_was_changed_is_noticed") else { return };
    s.run(&["check-result", "all/a b.json", "all/other/second.json"])
        .expect(0)
        .prints(&["agrees with itself"]);
    let text = s.read("all/a b.json");
    let changed = text.replacen("\"conflict_ratio\": ", "\"conflict_ratio\": 0.1e-9, \"was\": ", 1);
    assert_ne!(changed, text);
    s.write("changed.json", &changed);
    s.write("cut.json", &text[..text.len() / 2]);
    let finished = s.run(&["check-result", "changed.json", "cut.json", "all/other/second.json"]).expect(1);
    let finished = finished
        .prints(&["\"changed.json\": its summary isn't what follows from its rounds\n", "\"cut.json\": "]);
    assert!(finished.stderr.contains("2 results aren't to be counted on"), "{}", finished.stderr);
}
