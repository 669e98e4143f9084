//! The null server with the real pgbench: every protocol, script and way of connecting must
//! succeed.

use std::process::{Command, Output};
use std::time::Duration;

use isobench_bench::case;
use isobench_bench::client;
use isobench_bench::connections;
use isobench_bench::contender::{Address, Contender, Pair, find_pgbench};
use isobench_bench::null_server::NullServer;
use isobench_bench::servers::null_address;

/// Runs pgbench with its own null server; `None`, after printing the reason, if pgbench isn't
/// installed.
fn pgbench(test: &str, tcp: bool, options: &[&str]) -> Option<Output> {
    let Some(program) = find_pgbench() else {
        println!("skipped: {test}: pgbench is not installed");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let port = server.port().to_string();
    let host = if tcp { "127.0.0.1".as_ref() } else { folder.path().as_os_str() };
    let output = Command::new(program)
        .arg("-h")
        .arg(host)
        .args(["-p", &port, "-U", "x"])
        .args(options)
        .arg("y") // not -d, which is --debug in version 15
        .env_remove("PGOPTIONS")
        .output()
        .unwrap();
    server.stop().unwrap();
    Some(output)
}

/// Runs options in each protocol; all `expected` transactions must be processed, and none may fail.
fn all_protocols(test: &str, options: &str, expected: u32) {
    for protocol in ["simple", "extended", "prepared"] {
        for tcp in [false, true] {
            let options: Vec<_> = options.split(' ').chain(["-M", protocol]).collect();
            let Some(output) = pgbench(test, tcp, &options) else { return };
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{options:?}: {err}");
            let line = format!("number of transactions actually processed: {expected}/{expected}");
            assert!(out.contains(&line), "{options:?}: {out}\n{err}");
            assert!(out.contains("number of failed transactions: 0"), "{options:?}: {out}");
            let unexpected = err.lines().find(|line| !line.starts_with("starting vacuum") && *line != "end.");
            assert_eq!(unexpected, None, "{options:?}");
        }
    }
}

#[test]
fn select_only() {
    all_protocols("select_only", "-S -n -c 8 -t 50", 400);
}

#[test]
fn tpcb_like_with_all_preliminaries() {
    all_protocols("tpcb_like_with_all_preliminaries", "-c 4 -j 2 -t 25", 100);
}

#[test]
fn full_vacuum_and_simple_update() {
    all_protocols("full_vacuum_and_simple_update", "-v -N -c 2 -t 10", 20);
}

#[test]
fn a_connection_per_transaction() {
    all_protocols("a_connection_per_transaction", "-C -c 4 -t 10", 40);
}

#[test]
fn retries_and_reports() {
    all_protocols("retries_and_reports", "-n -r --max-tries=3 -c 2 -t 10", 20);
}

#[test]
fn scripts_with_pipelines_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sql");
    let text = "\\startpipeline\nBEGIN;\nSELECT abalance FROM pgbench_accounts WHERE aid = 1;\nEND;\n\\endpipeline\n\
        SELECT abalance FROM pgbench_accounts WHERE aid = 1 \\gset\n\\set sum :abalance + 1\n";
    std::fs::write(&script, text).unwrap();
    for protocol in ["extended", "prepared"] {
        let options = ["-n", "-f", script.to_str().unwrap(), "-M", protocol, "-c", "3", "-t", "20"];
        let Some(output) = pgbench("scripts_with_pipelines_and_results", false, &options) else { return };
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{protocol}: {err}");
        assert!(out.contains("actually processed: 60/60"), "{protocol}: {out}");
    }
}

#[test]
fn several_statements_in_one_query() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sql");
    std::fs::write(&script, "BEGIN \\; SELECT abalance FROM t \\; UPDATE t SET a = ';' \\; END;\n").unwrap();
    let options = ["-n", "-f", script.to_str().unwrap(), "-c", "2", "-t", "20"];
    let Some(output) = pgbench("several_statements_in_one_query", false, &options) else { return };
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("actually processed: 40/40"));
}

#[test]
fn an_error_of_the_server_reaches_pgbench() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sql");
    std::fs::write(&script, "FROBNICATE;\n").unwrap();
    for protocol in ["simple", "extended", "prepared"] {
        let options = ["-n", "-f", script.to_str().unwrap(), "-M", protocol, "-t", "1"];
        let Some(output) = pgbench("an_error_of_the_server_reaches_pgbench", false, &options) else { return };
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("does not know this command"), "{err}");
    }
}

/// The comparison must start pgbench as users do: one send per statement, and no output except its
/// summary. (A wrong option once put it into debug mode, where it costs three times as much.)
#[test]
fn the_comparison_runs_pgbench_quietly() {
    let Some(program) = find_pgbench() else {
        println!("skipped: the_comparison_runs_pgbench_quietly: pgbench is not installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let host = folder.path().to_str().unwrap().to_string();
    let address = Address { host, port: server.port(), user: "x".into(), database: "y".into(), scale: 1 };
    for case in case::select(&["unix/8".to_string()], false).unwrap() {
        let second = Duration::from_secs(1);
        let mut command = Contender::Pgbench(program.clone()).command(case, &address, second);
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", client::shown(&command));
        assert!(output.status.success(), "{}", client::shown(&command));
    }
}

#[test]
fn connections_cost_memory() {
    let Some(program) = find_pgbench() else {
        println!("skipped: connections_cost_memory: pgbench is not installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let address = null_address(folder.path().to_string_lossy().into_owned(), server.port());
    let pgbench = Contender::Pgbench(program);
    let pair = Pair { isobench: &pgbench, pgbench: &pgbench };
    // pgbench counts connecting, which takes a busy machine seconds for hundreds.
    let table = connections::table(pair, &address, 50, 1, Duration::from_secs(2)).unwrap();
    server.stop().unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..2], ["50", "connections"], "{table}");
    assert_eq!([lines[1][0], lines[2][0]], ["isobench", "pgbench"], "{table}");
    let memory: f64 = lines[2][1].parse().unwrap();
    assert!(memory > 1.0, "pgbench keeps a buffer of 16 KiB for each: {table}");
}
