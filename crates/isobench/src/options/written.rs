//! The command line, normalized for the result document.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, CommandFactory};
use isobench_pgwire::shown;

use super::Options;

/// Returns the words of this program's command line, reconstructed from the parsed options, without
/// passwords: the commands, then the options by their long names in the order given. Empty if the
/// arguments don't parse.
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
            (
                vec!["compare", "-hdb", "--standby-server", "host=b password=hunter2"],
                "compare --host db --standby-server host=b password=***",
            ),
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
