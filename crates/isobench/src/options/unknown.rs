//! The option that was probably meant by one that doesn't exist.
//!
//! Not here: the likeness of names (`isobench_suggest`), and the message, which is clap's.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};
use isobench_suggest::nearest;

use super::Options;

/// Options of other programs, and those of the same meaning here.
const ELSEWHERE: [(&str, &str); 13] = [
    ("duration", "time"),
    ("seconds", "time"),
    ("threads", "jobs"),
    ("workers", "jobs"),
    ("connections", "clients"),
    ("concurrency", "clients"),
    ("iterations", "rounds"),
    ("runs", "rounds"),
    ("retries", "max-tries"),
    ("script", "file"),
    ("user", "username"),
    ("database", "dbname"),
    ("output", "results"),
];

/// Replaces clap's suggestion in an error about an unknown option, which may be far-fetched.
/// `words` is the command line, with the program's name.
pub fn suggest(error: &mut clap::Error, words: impl IntoIterator<Item = String>) {
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(given) = given.strip_prefix("--") else { return };
    match meant(given, &known(words)) {
        Some(name) => error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{name}"))),
        None => error.remove(ContextKind::SuggestedArg),
    };
}

fn meant(given: &str, known: &[String]) -> Option<String> {
    let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == given).map(|(_, here)| *here);
    let here = elsewhere.filter(|here| known.iter().any(|name| name == here));
    here.or_else(|| nearest(given, known.iter().map(String::as_str))).map(str::to_owned)
}

/// The long names of the options of the command that a command line begins with.
fn known(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let program = Options::command();
    let word = words.into_iter().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    let begun = |command: &&Command| command.get_name().starts_with(&word) && !word.is_empty();
    let command = program.find_subcommand(&word).or_else(|| program.get_subcommands().find(begun));
    let names = |option: &Arg| {
        let aliases = option.get_visible_aliases().unwrap_or_default();
        option.get_long().into_iter().chain(aliases).map(str::to_owned).collect::<Vec<_>>()
    };
    command.unwrap_or(&program).get_arguments().flat_map(names).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_another_program_or_a_slip_finds_ours() {
        let known = |command: &str| known(["isobench", command].map(str::to_owned));
        for (command, given, expected) in [
            ("compare", "duration", Some("time")),
            ("run", "duration", Some("time")),
            ("compare", "connections", Some("clients")),
            ("compare", "retry-sqlstates", Some("retry-sqlstate")),
            ("comp", "worklod", Some("workload")),
            ("run", "max-try", Some("max-tries")),
            ("compare", "colour", None),
        ] {
            assert_eq!(meant(given, &known(command)).as_deref(), expected, "{command} --{given}");
        }
    }
}
