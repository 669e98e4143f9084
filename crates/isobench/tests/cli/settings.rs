//! Settings of servers and sessions as factors: where they are set, and what the result says of them.

use serde_json::{Value, json};

use crate::compare::words;
use crate::support::document::{self, cells};
use crate::support::named::Database;
use crate::support::scene::Scene;

const SHORT: &str =
    "--levels rc -w tpcb-like --clients 2 --transactions 5 --warmup 0 --rounds 2 --json out.json";

fn of_cells(document: &Value, pointer: &str) -> Vec<Value> {
    cells(document).iter().map(|cell| cell.pointer(pointer).cloned().unwrap_or(Value::Null)).collect()
}

#[test]
fn settings_of_servers_and_sessions_are_varied_together() {
    let test = "settings_of_servers_and_sessions_are_varied_together";
    let Some(scene) = Scene::with_server(test) else { return };
    let line = format!(
        "compare {SHORT} --vary setting:shared_buffers=32MB,65536kB --vary setting:synchronous_commit=off,on"
    );
    let finished = scene.run(&words(&line)).expect(0);
    scene.assert_clean();
    let document = document::read(&scene, "out.json");
    let settings =
        |buffers: &str, commit: &str| json!({"shared_buffers": buffers, "synchronous_commit": commit});
    assert_eq!(
        of_cells(&document, "/settings"),
        [settings("32MB", "off"), settings("32MB", "on"), settings("64MB", "off"), settings("64MB", "on")]
    );
    assert_eq!(cells(&document)[2]["varied"]["setting:shared_buffers"], "65536kB", "as it was written");
    let servers = of_cells(&document, "/server");
    assert_eq!(servers, [Value::Null, Value::Null, json!(1), json!(1)]);
    assert_eq!(document["server"]["settings"]["shared_buffers"], "32MB");
    assert_eq!(document["other_servers"][0]["settings"]["shared_buffers"], "64MB");
    // Everything is compared with the first of both.
    let to = of_cells(&document, "/summary/setting_ratio/to");
    assert_eq!(to, ["32MB, off"; 4].map(Value::from));
    for text in ["first setting", "shared_buffers", "synchronous_commit", "65536kB"] {
        assert!(finished.stdout.contains(text), "{text}: {}", finished.stdout);
    }
    assert!(finished.stderr.contains("shared_buffers 65536kB, synchronous_commit on"), "{}", finished.stderr);
}

#[test]
fn sessions_of_a_named_server_are_set_and_the_server_is_not() {
    let test = "sessions_of_a_named_server_are_set_and_the_server_is_not";
    let Some(database) = Database::new(test) else { return };
    let scene = Scene::new();
    scene.write("show.sql", "SELECT name FROM shown WHERE name = current_setting('work_mem');\n");
    scene.write("setup.sql", "DROP TABLE IF EXISTS shown; CREATE TABLE shown AS SELECT '3MB' AS name;\n");
    let before = database.inventory();
    let line = format!(
        "compare {} --vary setting:work_mem=2MB,3MB",
        SHORT.replace("-w tpcb-like", "-f show.sql --setup setup.sql")
    );
    database.run(&scene, &words(&line)).expect(0);
    let document = document::read(&scene, "out.json");
    assert_eq!(of_cells(&document, "/settings/work_mem"), ["2MB", "3MB"].map(Value::from));
    for (line, part) in [
        ("setting:shared_buffers=1MB,2MB", "a named server is left as it is"),
        ("setting:block_size=4096", "can't be changed"),
        ("setting:work_men=1MB", "has no setting \"work_men\" (did you mean \"work_mem\"?)"),
        ("setting:work_mem=lots", "invalid value for parameter \"work_mem\""),
        ("setting:work_mem=1MB,1024kB", "1MB and 1024kB are the same to the server, 1MB"),
        ("setting:search_path=public", "it would lead to other tables"),
    ] {
        let line = format!("compare {SHORT} --vary {line}");
        database.run(&scene, &words(&line)).expect(1).says(&["--vary: ", part]);
    }
    assert_eq!(database.inventory(), before);
}

#[test]
fn a_setting_is_set_in_one_way() {
    let Some(scene) = Scene::with_server("a_setting_is_set_in_one_way") else { return };
    let line = format!("compare {SHORT} --vary setting:work_mem=1MB,2MB --server-setting work_mem=8MB");
    scene
        .run(&words(&line))
        .expect(1)
        .says(&["--vary: setting:work_mem: all servers have work_mem=8MB already"]);
    let line = format!("compare {SHORT} --vary setting:shared_buffers=32MB,lots");
    scene.run(&words(&line)).expect(1).says(&["shared_buffers"]);
    scene.assert_clean();
}
