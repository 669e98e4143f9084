//! What the result document says of this program, its machine and the time.

use std::ffi::OsString;
use std::fs;

use clap::parser::ValueSource;
use clap::{Arg, CommandFactory};
use isobench_pgwire::shown;
use isobench_report::Client;

use crate::options::Options;
use crate::plan::count;
use crate::target::Target;

/// The present time in UTC, as result documents have it (RFC 3339, to the second).
pub fn now() -> String {
    humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string()
}

/// The words of this program's command line, written anew from the options as they were understood, without passwords: the
/// commands, then the options by their long names in the order given. Empty if there is no such command line.
pub fn command() -> Vec<String> {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default().to_string_lossy().into_owned();
    written(std::iter::once("isobench".into()).chain(words))
        .map_or_else(Vec::new, |words| std::iter::once(program).chain(words).collect())
}

/// The words after the program's name.
fn written(words: impl IntoIterator<Item = OsString>) -> Option<Vec<String>> {
    let mut command = Options::command();
    let mut matches = command.try_get_matches_from_mut(words).ok()?;
    let mut written = Vec::new();
    while let Some((name, below)) = matches.remove_subcommand() {
        command = command.find_subcommand(&name)?.clone();
        written.push(name);
        matches = below;
    }
    let given =
        |argument: &&Arg| matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut options: Vec<(usize, Vec<String>)> = Vec::new();
    for argument in command.get_arguments().filter(given) {
        let id = argument.get_id().as_str();
        let name = argument
            .get_long()
            .map(|long| format!("--{long}"))
            .or_else(|| argument.get_short().map(|short| format!("-{short}")));
        let mut indices = matches.indices_of(id).into_iter().flatten();
        let takes_values = argument.get_num_args().is_none_or(|number| number.takes_values());
        if !(argument.get_action().takes_values() && takes_values) {
            options.extend(indices.map(|index| (index, name.iter().cloned().collect())));
            continue;
        }
        for values in matches.get_raw_occurrences(id).into_iter().flatten() {
            let values: Vec<_> = values.map(|value| shown(&value.to_string_lossy()).into_owned()).collect();
            // Each value has an index.
            let index = indices.by_ref().take(values.len()).min().unwrap_or(usize::MAX);
            let values = match argument.get_value_delimiter() {
                Some(delimiter) => vec![values.join(&delimiter.to_string())],
                None => values,
            };
            options.push((index, name.iter().cloned().chain(values).collect()));
        }
    }
    options.sort_by_key(|(index, _)| *index);
    written.extend(options.into_iter().flat_map(|(_, words)| words));
    Some(written)
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
    use super::written;

    fn command(line: &[&str]) -> String {
        let words = std::iter::once("isobench").chain(line.iter().copied());
        written(words.map(Into::into)).expect("a command line").join(" ")
    }

    #[test]
    fn the_command_line_is_written_from_what_was_understood() {
        for (line, expected) in [
            (vec!["compare"], "compare"),
            (vec!["comp", "--level", "rc,ser", "-q"], ""),
            (
                vec!["compare", "-hdb", "--levels=rc,ser", "--clients", "1"],
                "compare --host db --levels rc,ser --clients 1",
            ),
            (
                vec!["run", "-nCc8", "-D", "a=1", "-Db=2", "mydb"],
                "run --no-vacuum --connect --client 8 --define a=1 --define b=2 mydb",
            ),
            (vec!["compare", "--strict-levels", "--seed", "1"], "compare --strict-levels --seed 1"),
            (vec!["run", "-d", "password=hunter2", "-n"], "run --dbname password=*** --no-vacuum"),
            (
                vec!["run", "-ndpostgres://me:hunter2@db/x"],
                "run --no-vacuum --dbname dbname=x host=db password=*** user=me",
            ),
            (vec!["run", "sslpassword=a password = 'hunter2'"], "run password=*** sslpassword=***"),
            (vec!["init", "--dbname=password=hun\\ ter2"], "init --dbname password=***"),
        ] {
            if expected.is_empty() {
                let words = std::iter::once("isobench").chain(line.iter().copied());
                assert_eq!(written(words.map(Into::into)), None, "{line:?}");
            } else {
                assert_eq!(command(&line), expected, "{line:?}");
            }
        }
    }
}
