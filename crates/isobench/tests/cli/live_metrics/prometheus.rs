//! A real Prometheus, which scrapes as the example says.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use isobench_testkit::ports::free_addresses;
use serde_json::Value;

use crate::support::scene::Scene;
use crate::support::{skip, wait_for};

/// A running Prometheus.
pub struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts one that scrapes this address; `None` after saying why that is impossible.
    pub fn start(test: &str, scene: &Scene, target: &str) -> Option<Prometheus> {
        const EXAMPLE: &str = include_str!("../../../../../examples/monitoring/prometheus.yml");
        if Command::new("prometheus").arg("--version").output().is_err() {
            skip(test, "Prometheus isn't installed");
            return None;
        }
        assert!(EXAMPLE.contains("targets: [\"127.0.0.1:9464\"]"));
        scene.write("prometheus.yml", &EXAMPLE.replace("127.0.0.1:9464", target).replace("2s", "200ms"));
        let address = free_addresses(1).remove(0);
        let log = File::create(scene.file("prometheus.log")).expect("a log");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", scene.file("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", scene.file("prometheus").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Prometheus starts");
        let mut prometheus = Prometheus { child, address };
        wait_for("Prometheus", || {
            let ended = prometheus.child.try_wait().expect("a child");
            assert!(ended.is_none(), "it has ended:\n{}", scene.read("prometheus.log"));
            get(&prometheus.address, "/-/ready").filter(|answer| answer.contains(" 200 "))
        });
        Some(prometheus)
    }

    /// The value of a query with one result; 0 without one.
    pub fn ask(&self, query: &str) -> f64 {
        let value = self.answers(query);
        let text = value.pointer("/data/result/0/value/1").and_then(Value::as_str);
        text.map_or(0.0, |text| text.parse().expect("a number"))
    }

    /// The answer to a query, which Prometheus has to understand.
    pub fn answers(&self, query: &str) -> Value {
        let encoded = query.bytes().fold(String::new(), |mut text, byte| {
            write!(text, "%{byte:02X}").expect("writes");
            text
        });
        let answer = get(&self.address, &format!("/api/v1/query?query={encoded}")).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let value: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(value["status"], "success", "{query}: {value}");
        value
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an HTTP server answers; `None` if nobody does.
pub fn get(address: &str, path: &str) -> Option<String> {
    let mut socket = TcpStream::connect(address).ok()?;
    // Of version 1.0, so that the answer comes in one piece.
    write!(socket, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer)
}
