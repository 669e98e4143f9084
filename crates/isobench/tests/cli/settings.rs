//! Settings of servers and sessions as factors: where they are set, and what the result says of them.

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::standby::until;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::compare::words;
use crate::support::document::{self, cells};
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;

const SHORT: &str =
    "--levels rc -w registers --clients 2 --transactions 5 --warmup 0 --rounds 2 --json out.json";

fn of_cells(document: &Value, pointer: &str) -> Vec<Value> {
    cells(document).iter().map(|cell| cell.pointer(pointer).cloned().unwrap_or(Value::Null)).collect()
}

#[test]
fn settings_of_servers_and_sessions_are_varied_together() {
    let test = "settings_of_servers_and_sessions_are_varied_together";
    let Some(scene) = Scene::with_server(test) else { return };
    let line = format!(
        "compare {SHORT} --details --vary setting:shared_buffers=32MB,65536kB --vary setting:synchronous_commit=off,on"
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
        SHORT.replace("-w registers", "-f show.sql --setup setup.sql")
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

/// What stands in the file that ALTER SYSTEM writes.
const ALTERED: &str = "SELECT coalesce(string_agg(name || '=' || setting, ' ' ORDER BY name), '') FROM \
    pg_file_settings WHERE sourcefile LIKE '%auto.conf'";

#[test]
fn settings_of_a_named_server_are_altered_and_put_back() {
    let test = "settings_of_a_named_server_are_altered_and_put_back";
    let Some(scene) = Scene::with_server(test) else { return };
    // A server of its own: others would notice.
    let server = Server::start(&ServerOptions::default(), &mut |_| {}).expect("a server");
    let (folder, port) = (server.socket_dir().display().to_string(), server.port());
    let host = Host::unix(server.socket_dir(), port);
    let options = ConnectOptions::new(host, server.user(), server.database());
    let mut session = Connection::open(&options).expect("a session");
    session.execute("ALTER SYSTEM SET wal_writer_delay = '150ms'").expect("a setting of the user's");
    let mut altered = || session.value(ALTERED).expect("an answer").unwrap_or_default();
    let before = altered();
    let line = format!(
        "compare -b select-only --scale 1 --levels rc --clients 2 --rounds 2 --time 0.3 --warmup 0 --json out.json \
         --vary setting:wal_writer_delay=20ms,400ms --vary setting:log_autovacuum_min_duration=-1,60000 -h {folder} \
         -p {port} -U postgres -d postgres"
    );
    let finished = scene.run(&words(&line)).expect(1);
    assert!(finished.stderr.contains("permit it by --alter-system"), "{}", finished.stderr);
    assert_eq!(altered(), before);
    let finished = scene.run(&words(&format!("{line} --alter-system"))).expect(0);
    for part in [
        "ALTER SYSTEM SET \"wal_writer_delay\" = '150ms'",
        "ALTER SYSTEM RESET \"log_autovacuum_min_duration\"",
    ] {
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    }
    let document = document::read(&scene, "out.json");
    let delays = of_cells(&document, "/settings/wal_writer_delay");
    assert_eq!(delays, ["20ms", "20ms", "400ms", "400ms"].map(Value::from));
    assert_eq!(altered(), before, "all is as it was");
    // Also after a value that the server refuses.
    let refused = line.replace("20ms,400ms", "20ms,never");
    let finished = scene.run(&words(&format!("{refused} --alter-system"))).expect(2);
    assert!(finished.stderr.contains("\"never\""), "{}", finished.stderr);
    assert_eq!(altered(), before);
    // And after Ctrl-C.
    let long = line.replace("--time 0.3", "--time 60");
    let running = Running::start(&mut scene.isobench(&words(&format!("{long} --alter-system"))));
    until("a setting is altered", || if altered() == before { Err(before.clone()) } else { Ok(()) });
    running.signal(Signal::INT);
    running.finish();
    assert_eq!(altered(), before);
    let finished =
        scene.run(&words(&format!("compare --alter-system -h {folder} -p {port} -U postgres"))).expect(1);
    assert!(finished.stderr.contains("no setting is varied that needs it"), "{}", finished.stderr);
    // On a server that fails over they couldn't be put back.
    let fault = "--alter-system --fault command@0.1 --fault-command true";
    let finished = scene.run(&words(&format!("{line} {fault}"))).expect(1);
    assert!(finished.stderr.contains("couldn't be put back there"), "{}", finished.stderr);
    assert_eq!(altered(), before);
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
