//! False conflicts at serializable, diagnosed in the example of the manual's page on own workloads:
//! as it is, and with the few rows that the page warns of.
//!
//! Not here: the rules of the diagnosis, one by one (crate `isobench-report`).

use crate::compare::words;
use crate::support::document;
use crate::support::scene::Scene;

/// The page's first blocks of SQL: the script and its tables.
fn example() -> [String; 2] {
    let page = include_str!("../../../../docs/guide/own-workloads.md");
    let mut blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split_once("```"));
    [blocks.next(), blocks.next()].map(|block| block.expect("the page has both").0.to_owned())
}

/// How often a run is repeated until it has been looked at.
const TRIALS: usize = 5;

/// Compares the levels and returns the text and the document.
fn compared(scene: &Scene, [script, tables]: [&str; 2]) -> (String, serde_json::Value) {
    scene.write("transfer.sql", script);
    scene.write("tables.sql", tables);
    let line = "compare --workload transfer.sql --setup tables.sql --levels rr,ser -c 8 --rounds 1 --time 1 --slice 0 \
        --warmup 0.1 --json out.json";
    let text = scene.run(&words(line)).expect(0).stdout;
    // However wide the terminal is.
    (text.split_whitespace().collect::<Vec<_>>().join(" "), document::read(scene, "out.json"))
}

#[test]
fn a_small_table_that_is_scanned_is_diagnosed() {
    let Some(scene) = Scene::with_database("a_small_table_that_is_scanned_is_diagnosed") else { return };
    let [script, tables] = example();
    let few = [script.replace("1000", "100").replace("999", "99"), tables.replace("1000", "100")];
    assert!(few[0].contains("random(1, 99)") && few[1].contains("generate_series(1, 100)"), "{few:?}");
    // On a busy machine no look at the locks may fall into a short run, or the table be scanned only later.
    let seen = |(text, document): &(String, serde_json::Value)| {
        let first = document.pointer("/cells/1/rounds/0/server/predicate_locks/relations/0/name");
        text.contains("may be false") && first.is_some_and(|name| name == "account")
    };
    let trials = || (0..TRIALS).map(|_| compared(&scene, [&few[0], &few[1]]));
    let (text, document) = trials().find(seen).expect("a diagnosis in one of the trials");
    assert!(text.contains("may be false: table account (100 rows) is scanned as a whole"), "{text}");
    assert!(text.contains("Most of the conflicts at serializable ("), "{text}");
    let server = &document::cells(&document)[1]["rounds"][0]["server"];
    let locked = &server["predicate_locks"]["relations"][0];
    assert_eq!((locked["name"].as_str(), locked["rows"].as_u64()), (Some("account"), Some(100)), "{locked}");
    assert!(document::count(locked, "/relation/most") > 0, "{locked}");
    let table = &server["tables"][0];
    assert!(document::count(table, "/seq_scans") > document::count(table, "/index_scans"), "{table}");
}

#[test]
fn the_manuals_own_example_isnt_scanned() {
    let Some(scene) = Scene::with_database("the_manuals_own_example_isnt_scanned") else { return };
    let [script, tables] = example();
    let (text, document) = compared(&scene, [&script, &tables]);
    assert!(!text.contains("is scanned as a whole"), "{text}");
    for cell in document::cells(&document) {
        let table = &cell["rounds"][0]["server"]["tables"][0];
        assert_eq!(
            (table["table"].as_str(), table["seq_scans"].as_u64()),
            (Some("account"), Some(0)),
            "{table}"
        );
        assert!(document::count(table, "/index_scans") > 0, "{table}");
    }
}
