//! Live metrics: scraped by a real Prometheus.

mod prometheus;

use std::net::TcpListener;

use isobench_metrics::{METRICS, Metric};
use isobench_testkit::ports::free_addresses;
use rustix::process::Signal;
use serde_json::Value;

use self::prometheus::{Prometheus, get};
use crate::compare::words;
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;
use crate::support::wait_for;

/// The address of the endpoint that a running command has opened.
fn endpoint(running: &Running) -> String {
    let start = "metrics of this run are at http://";
    let line = running.wait_for_line_of_stderr(start);
    let (_, rest) = line.split_once(start).expect("the address");
    rest.split('/').next().expect("an address").to_owned()
}

#[test]
fn prometheus_watches_a_comparison() {
    let name = "prometheus_watches_a_comparison";
    let Some(scene) = Scene::with_server(name) else { return };
    let options = "compare -w registers --levels rc,ser --clients 4 --warmup 0.5 --time 600 --slice 0 --rate 200 \
                   --latency-limit 1 --metrics 127.0.0.1:0 --no-save";
    let running = Running::start(&mut scene.isobench(&words(options)));
    let address = endpoint(&running);
    let Some(prometheus) = Prometheus::start(name, &scene, &address) else {
        running.signal(Signal::INT);
        running.finish();
        return;
    };
    let seen = |query: &str| wait_for(query, || Some(prometheus.ask(query)).filter(|found| *found > 0.0));
    // Prometheus has parsed what it was given.
    seen("up{job=\"isobench\"}");
    for sample in METRICS.iter().flat_map(Metric::samples) {
        seen(&format!("count({sample}{{isobench_phase=\"measurement\"}})"));
    }
    let labels = "isobench_level=\"read committed\",isobench_workload=\"registers\",db_system_name=\"postgresql\",\
                  db_namespace=\"postgres\"";
    seen(&format!("sum(isobench_attempts_total{{{labels},isobench_outcome=\"committed\"}})"));
    seen("sum(db_client_operation_duration_seconds_bucket{le=\"+Inf\"})");
    // The warm-up is over, and its counts stay.
    seen("sum(isobench_transactions_total{isobench_phase=\"warmup\"})");
    let clients = prometheus.ask("sum(isobench_clients{isobench_phase=\"measurement\"})");
    assert!((clients - 4.0).abs() < 0.1, "{clients}");
    let rising = "sum(isobench_transactions_total{isobench_outcome=\"committed\"})";
    let before = seen(rising);
    wait_for("more commits", || Some(()).filter(|()| prometheus.ask(rising) > before));
    for query in dashboard() {
        prometheus.answers(&query);
    }
    seen(&dashboard()[2]);
    running.signal(Signal::INT);
    running.finish().expect(2).says(&["interrupted"]);
    assert!(TcpListener::bind(&address).is_ok(), "the endpoint is closed");
}

/// The queries of the dashboard, with its variables filled in.
fn dashboard() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/monitoring/grafana-dashboard.json");
    let text = std::fs::read_to_string(path).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let query = |target: &Value| target["expr"].as_str().expect("a query").to_owned();
    targets.map(query).map(|query| query.replace("$phase", ".*").replace("$__rate_interval", "1m")).collect()
}

#[test]
fn rank_0_has_the_metrics_of_all_machines() {
    let Some(database) = Database::new("rank_0_has_the_metrics_of_all_machines") else { return };
    let scene = Scene::new();
    let addresses = free_addresses(2).join(",");
    let options =
        "compare -w registers --levels rc,ser --clients 4 --rounds 1 --transactions 40 --warmup 0.1";
    let machine = |rank: &str| {
        let mut command = database.isobench(&scene, &words(options));
        Running::start(command.args(["--peers", &addresses, "--rank", rank, "--metrics", "127.0.0.1:0"]))
    };
    let (zero, one) = (machine("0"), machine("1"));
    zero.finish().expect(0).says(&["metrics of this run are at http://127.0.0.1:"]);
    let one = one.finish().expect(0).says(&["--metrics: rank 0 has the metrics of all machines"]);
    assert!(!one.stderr.contains("metrics of this run"), "{}", one.stderr);
}

#[test]
fn what_cannot_be_opened_is_refused_before_anything_is_measured() {
    let scene = Scene::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    for command in ["compare", "audit", "run"] {
        for (option, why) in [
            (format!("--metrics {address}"), format!("--metrics: could not listen on {address}: ")),
            ("--metrics 9464".to_owned(), "such as 127.0.0.1:9464".to_owned()),
        ] {
            let finished = scene.run(&words(&format!("{command} {option}"))).expect(1).says(&[&why]);
            assert!(!finished.stderr.contains("no server is named"), "{}", finished.stderr);
        }
    }
}

#[test]
fn the_endpoint_answers_before_the_first_cell_and_only_with_metrics() {
    let Some(scene) = Scene::with_server("the_endpoint_answers_before_the_first_cell_and_only_with_metrics")
    else {
        return;
    };
    let options = "run -w bank -c 2 -T 600 --metrics 127.0.0.1:0";
    let running = Running::start(&mut scene.isobench(&words(options)));
    let address = endpoint(&running);
    let answer = get(&address, "/metrics").expect("an answer");
    assert!(answer.contains("# EOF\n"), "{answer}");
    assert!(get(&address, "/").expect("an answer").starts_with("HTTP/1.1 404"));
    let committed = "isobench_cell=\"default, 2 clients\",isobench_level=\"default\",isobench_workload=\"bank\",\
                     isobench_phase=\"measurement\",isobench_outcome=\"committed\"}";
    wait_for("commits", || get(&address, "/metrics").filter(|text| text.contains(committed)));
    running.signal(Signal::INT);
    running.finish().expect(2);
}
