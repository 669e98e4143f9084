//! What the result document says of this program, its machine and the time.

use std::fs;

use isobench_report::Client;

use crate::plan::count;

/// The present time in UTC, as result documents have it (RFC 3339, to the second).
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// What the result document says of this program and its machine.
pub fn client() -> Client {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Client {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cpu: model.trim_start_matches([' ', '\t', ':']).to_owned(),
        cores: count(cores),
        os: std::env::consts::OS.to_owned(),
        ..Client::default()
    }
}
