//! A hot standby: reading is measured there, writing is refused before the measurement; and the
//! selection of the host that answers.

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::installed::postgresql_programs;
use isobench_testkit::standby::{Standby, until};

use crate::compare::words;
use crate::support::document::{self, cells, count, rounds};
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::skip;

/// A primary with pgbench's tables at scale 2, and its standby, which has to end first; `None`
/// after printing the reason if there are none.
fn servers(test: &str, scene: &Scene, settings: &[&str]) -> Option<(Server, Standby)> {
    let Some(bin) = postgresql_programs().filter(|bin| bin.join("pg_basebackup").is_file()) else {
        skip(test, "no installed PostgreSQL with pg_basebackup");
        return None;
    };
    let options = ServerOptions { bin: Some(bin.clone()), ..ServerOptions::default() };
    let primary = Server::start(&options, &mut |_| {}).expect("a server");
    let folder = primary.socket_dir().to_string_lossy().into_owned();
    scene.run(&["init", "-s", "2", "-q", "-h", &folder, "-U", "postgres", "-d", "postgres"]).expect(0);
    let standby = Standby::start(&bin, primary.socket_dir(), primary.port(), settings);
    standby.catch_up();
    Some((primary, standby))
}

/// Runs the program on the standby to its end.
fn on(standby: &Standby, scene: &Scene, command: &str) -> Finished {
    start(standby, scene, command).finish()
}

/// Starts the program on the standby, listed after a host that doesn't exist.
fn start(standby: &Standby, scene: &Scene, command: &str) -> Running {
    let folder = standby.folder().display().to_string();
    let hosts = format!("/nonexistent,{folder}");
    let named = ["-h", &hosts, "-p", "1,5432", "-U", "postgres", "-d", "postgres"];
    Running::start(&mut scene.isobench(&[&words(command)[..], &named].concat()))
}

#[test]
fn a_standby_is_read_and_refuses_writes() {
    let scene = Scene::new();
    let test = "a_standby_is_read_and_refuses_writes";
    let Some((_primary, standby)) = servers(test, &scene, &[]) else { return };
    is_read_and_named(&scene, &standby);
    refuses_writes(&scene, &standby);
}

fn is_read_and_named(scene: &Scene, standby: &Standby) {
    let host = standby.host().describe();
    let short = "compare -w select-only --details --clients 2 --transactions 10 --warmup 0 --rounds 1 --json out.json";
    let finished = on(standby, scene, short).expect(0);
    let finished = finished.says(&[
        &format!("connected to {host}, and so are all sessions to come; named were /nonexistent:1,"),
        "note: left out: a hot standby runs no transactions at serializable",
        &format!("reading the tables that are there on {host}/postgres as postgres, a hot standby"),
    ]);
    finished.prints(&[&format!(", a hot standby at {host}\n")]);
    let document = document::read(scene, "out.json");
    assert_eq!(document["server"]["hot_standby"], true);
    assert_eq!(document["server"]["host"], host.as_str());
    assert_eq!(document["plan"]["scale"], 2);
    let levels: Vec<_> = cells(&document).iter().map(|cell| cell["level"]["effective"].clone()).collect();
    assert_eq!(levels, ["read committed", "repeatable read"]);
    let finished = on(standby, scene, "run -b select-only -c 2 -t 5").expect(0);
    let finished = finished.says(&["a hot standby; nothing is vacuumed"]);
    finished.prints(&["scaling factor: 2\n", "actually processed: 10/10\n"]);
}

fn refuses_writes(scene: &Scene, standby: &Standby) {
    scene.write("mine.sql", "select bid from pgbench_branches where bid = 1 for update;\n");
    for (command, why) in [
        ("compare", "workload orders makes and writes tables of its own"),
        ("compare -w tpcb-like", "script \"tpcb-like\" writes (UPDATE)"),
        ("compare -w mine.sql", "script \"mine.sql\" writes (UPDATE)"),
        ("compare -w registers", "workload registers makes and writes tables of its own"),
        ("audit", "makes and writes tables of its own"),
        ("probe", "probing takes transactions that write"),
        ("init", "tables can't be made there"),
        ("run", "script \"tpcb-like\" writes (UPDATE)"),
    ] {
        let finished = on(standby, scene, command).expect(1);
        finished.says(&[
            "is a hot standby, which can only be read, but ",
            why,
            "target_session_attrs=primary",
        ]);
    }
    let finished = on(standby, scene, "compare -w select-only --levels rc,ser").expect(1);
    finished.says(&["--levels: a hot standby runs no transactions at serializable"]);
    let finished = on(standby, scene, "run -b select-only --isolation ser").expect(1);
    finished.says(&["--isolation: a hot standby runs no transactions at serializable"]);
}

#[test]
fn a_recovery_conflict_is_no_serialization_failure() {
    let (test, scene) = ("a_recovery_conflict_is_no_serialization_failure", Scene::new());
    let at_once = ["max_standby_streaming_delay=0"];
    let Some((primary, standby)) = servers(test, &scene, &at_once) else { return };
    scene.write("long.sql", "begin;\nselect count(*) from pgbench_tellers;\nselect pg_sleep(600);\nend;\n");
    let command = "run -f long.sql -c 1 -t 1 --isolation rr --json out.json";
    let running = start(&standby, &scene, command);
    let mut watcher = standby.connect();
    until("the client sleeps", || {
        match watcher.value("select count(*) from pg_stat_activity where wait_event = 'PgSleep'") {
            Ok(Some(count)) if count == "1" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let host = Host::unix(primary.socket_dir(), primary.port());
    let options = ConnectOptions::new(host, primary.user(), primary.database());
    let mut session = Connection::open(&options).expect("a session on the primary");
    session.execute("delete from pgbench_tellers").expect("rows that the client sees are deleted");
    session.execute("vacuum pgbench_tellers").expect("and removed");
    running.finish().expect(2).prints(&["40001 recovery conflict"]);
    let document = document::read(&scene, "out.json");
    let round = rounds(&document).next().expect("a round");
    assert_eq!(round["conflicts"][0]["reason"], "recovery conflict");
    assert_eq!(count(round, "/attempts/given_up"), 1);
}
