//! The result document's facts about this program, its machine and the time.
//!
//! Not here: the command line (`options/written.rs`).

use std::fs;
use std::time::Duration;

use isobench_result::Client;

use crate::design::count;
use crate::target::Target;

/// Returns the present time in UTC, in the format of result documents (RFC 3339, to the second).
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// Returns the result document's description of this program and its machine, for this server.
pub fn client(target: &Target) -> Client {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Client {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cpu: model.trim_start_matches([' ', '\t', ':']).to_owned(),
        cores: count(cores),
        os: std::env::consts::OS.to_owned(),
        memory_bytes: memory_bytes(),
        same_machine: target.local().is_some(),
    }
}

/// Returns the number of the first attempt where rows stay, and may have numbers from earlier runs.
/// No run makes an attempt each microsecond, so the number of microseconds since the start of 2025
/// is above all of them.
pub fn first_attempt() -> u64 {
    const THAT_DAY: Duration = Duration::from_hours(482_136);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().saturating_sub(THAT_DAY);
    u64::try_from(since.as_micros()).unwrap_or(0)
}

/// Memory of this machine in bytes; 0 if unknown.
fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or_default();
    total.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kilobytes| kilobytes.saturating_mul(1024))
}
