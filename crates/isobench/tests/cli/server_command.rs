//! `isobench server`: a PostgreSQL in the foreground, which leaves nothing behind.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::{embedded, skip};

#[test]
fn it_serves_until_a_signal_and_leaves_nothing() {
    let test = "it_serves_until_a_signal_and_leaves_nothing";
    let Some(scene) = Scene::with_server(test) else { return };
    for signal in [Signal::TERM, Signal::INT] {
        let running = Running::start(&mut scene.isobench(&["server", "--server-setting", "work_mem=7MB"]));
        let line = running.wait_for_stdout("psql -h ");
        if Command::new("psql").arg("--version").output().is_ok_and(|output| output.status.success()) {
            let line = format!("{line} -XAtc 'show work_mem'");
            let finished = Running::start(&mut scene.program(Path::new("/bin/sh"), &["-c", &line])).finish();
            assert_eq!(finished.expect(0).stdout, "7MB\n");
        } else {
            skip(test, "there is no psql to try the line with");
        }
        // isobench itself can use it.
        let words: Vec<&str> = line.split_whitespace().collect();
        let options = [&["run", "-t", "1", "-S"], &words[1..]].concat();
        scene.run(&options).expect(1).says(&["isobench init"]);
        scene.run(&[&["init", "-q"], &words[1..]].concat()).expect(0);
        scene.run(&options).expect(0).prints(&["actually processed: 1/1"]);
        running.signal(signal);
        running.finish().expect(0).prints(&["PostgreSQL ", "Ctrl-C stops it"]);
        scene.assert_clean();
    }
}

#[test]
fn it_says_so_when_the_server_dies() {
    let Some(scene) = Scene::with_server("it_says_so_when_the_server_dies") else { return };
    let running = Running::start(&mut scene.isobench(&["server"]));
    running.wait_for_stdout("psql -h ");
    drop(embedded::connect(&scene));
    embedded::kill_server(&scene);
    running.finish().expect(2).says(&["the server has ended"]);
    scene.assert_clean();
}

#[test]
fn over_tcp_it_prints_a_password() {
    let Some(scene) = Scene::with_server("over_tcp_it_prints_a_password") else { return };
    let options = ["server", "--server-setting", "listen_addresses=127.0.0.1"];
    let running = Running::start(&mut scene.isobench(&options));
    let line = running.wait_for_stdout("psql -h ");
    let (password, rest) = line.split_once(' ').expect("PGPASSWORD=… psql …");
    let password = password.strip_prefix("PGPASSWORD=").expect("a password");
    let words: Vec<&str> = rest.split_whitespace().collect();
    scene.write("good.sql", "select 1;\n");
    let options = [&["run", "-t", "1", "-f", "good.sql"], &words[1..]].concat();
    Running::start(scene.isobench(&options).env("PGPASSWORD", password)).finish().expect(0);
    Running::start(scene.isobench(&options).env("PGPASSWORD", "wrong")).finish().expect(1);
    running.signal(Signal::TERM);
    running.finish().expect(0);
    scene.assert_clean();
}
