//! What the result document says of this program, its machine and the time.

use std::fs;

use isobench_report::Client;

use crate::plan::count;
use crate::target::Target;

/// The present time in UTC, as result documents have it (RFC 3339, to the second).
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// The words of this program's command line, without passwords.
pub fn command() -> Vec<String> {
    std::env::args_os().map(|word| without_password(&word.to_string_lossy())).collect()
}

/// A connection string may have a password: `postgresql://user:password@host` or `host=… password=…`.
fn without_password(word: &str) -> String {
    let mut shown = word.to_owned();
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((authority, place)) = rest.split_once('@')
        && let Some((user, _)) = authority.split_once(':')
    {
        shown = format!("{scheme}://{user}:***@{place}");
    }
    let Some(begin) = shown.find("password=").map(|at| at + "password=".len()) else { return shown };
    let value = &shown[begin..];
    let end = match value.strip_prefix('\'') {
        Some(quoted) => quoted.find('\'').map_or(value.len(), |end| end + 2),
        None => value.find([' ', '&', '?']).unwrap_or(value.len()),
    };
    format!("{}***{}", &shown[..begin], &value[end..])
}

/// What the result document says of this program and its machine, measuring this server.
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

/// Memory of this machine; 0 if the system doesn't tell.
fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap_or_default();
    total.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kilobytes| kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn passwords_are_left_out() {
        for (word, shown) in [
            ("compare", "compare"),
            ("postgresql://me:secret@db.example.org/app", "postgresql://me:***@db.example.org/app"),
            ("postgresql://me@db.example.org/app", "postgresql://me@db.example.org/app"),
            (
                "postgresql://db/app?user=me&password=secret&x=1",
                "postgresql://db/app?user=me&password=***&x=1",
            ),
            ("host=db password=secret user=me", "host=db password=*** user=me"),
            ("host=db password='a b' user=me", "host=db password=*** user=me"),
            ("password=", "password=***"),
        ] {
            assert_eq!(without_password(word), shown);
        }
    }
}
