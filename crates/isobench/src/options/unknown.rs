//! The option or command that was probably meant by one that doesn't exist.
//!
//! Not here: the likeness of names (`isobench_suggest`), and the message, which is clap's.

use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};
use isobench_suggest::nearest;

use super::Options;

/// Options of other programs, and those of the same meaning here.
const ELSEWHERE: [(&str, &str); 16] = [
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
    ("events", "transactions"),
    ("table-size", "scale"),
    ("report-interval", "progress"),
];

/// Commands that there were, and what does the same.
const FORMER: [(&str, &str); 4] = [
    (
        "results",
        "isobench report lists saved results, report A B compares two, report RESULT --tag TAG gives a tag",
    ),
    ("trend", "a figure over saved results is shown by: isobench report --metric METRIC"),
    ("matrix", "the page of many servers is made by: isobench report --servers FOLDER"),
    ("check-result", "isobench report RESULT checks that a result agrees with itself"),
];

/// Replaces clap's suggestion in an error about an unknown option, which may be far-fetched.
/// `words` is the command line, with the program's name.
pub fn suggest(error: &mut clap::Error, words: impl IntoIterator<Item = String>) {
    let words: Vec<String> = words.into_iter().collect();
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(tip) = former(given).or_else(|| for_file(given))
    {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        return;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    if let Some(tip) = tip(error.kind(), given, &words) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        return;
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(given) = given.strip_prefix("--") else { return };
    match meant(given, &known(words)) {
        Some(name) => error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{name}"))),
        None => error.remove(ContextKind::SuggestedArg),
    };
}

/// What does now what a former command did.
fn former(given: &str) -> Option<String> {
    FORMER.iter().find(|(name, _)| *name == given).map(|(_, now)| (*now).to_owned())
}

/// The commands for a file that stands where a command is expected.
fn for_file(given: &str) -> Option<String> {
    let path = Path::new(given);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("sql") => {}
        Some("toml") => return Some(format!("a plan is measured by: isobench compare --plan {given}")),
        Some("json") => return Some(format!("a result is shown by: isobench report {given}")),
        _ if path.is_file() => {}
        _ => return None,
    }
    Some(format!("a script is named by -f: isobench compare -f {given}, or isobench run -f {given}"))
}

/// What pgbench's users mean by an option that pgbench has, and by `-h` alone.
fn tip(kind: ErrorKind, given: &str, words: &[String]) -> Option<String> {
    let command = words.get(1).map_or("", String::as_str);
    let host = kind == ErrorKind::InvalidValue && words.last().is_some_and(|word| word == "-h");
    if host && given.starts_with("--host") {
        return Some("-h names the server's host, as for psql; --help prints help".to_owned());
    }
    if kind != ErrorKind::UnknownArgument {
        return None;
    }
    if is_script(given) {
        return Some(of_scripts(command, words));
    }
    if given == "-i" && command == "run" {
        return Some("isobench init makes the tables, such as isobench init -s 10".to_owned());
    }
    let short = given.len() == 2 && given.starts_with('-');
    (short && command == given).then(|| format!("did you mean isobench run {}?", words[1..].join(" ")))
}

fn is_script(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql"))
}

/// How the scripts of a command line are named that stand there without an option.
fn of_scripts(command: &str, words: &[String]) -> String {
    let alone = words.windows(2).filter(|pair| !pair[0].starts_with('-') && is_script(&pair[1]));
    let named: Vec<String> = alone.map(|pair| format!("-f {}", pair[1])).collect();
    format!("scripts are named by -f: isobench {command} {}", named.join(" "))
}

/// The option of the same meaning as one of another program, by their long names.
pub fn elsewhere(given: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(name, _)| *name == given).map(|(_, here)| *here)
}

fn meant(given: &str, known: &[String]) -> Option<String> {
    let here = elsewhere(given).filter(|here| known.iter().any(|name| name == here));
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
    fn options_of_pgbench_lead_to_commands() {
        let tip = |kind, given: &str, line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            tip(kind, given, &words).unwrap_or_default()
        };
        let unknown = ErrorKind::UnknownArgument;
        assert!(tip(unknown, "-i", "isobench run -i -s 1").contains("isobench init"));
        assert_eq!(tip(unknown, "-c", "isobench -c 8 -T 10"), "did you mean isobench run -c 8 -T 10?");
        assert_eq!(tip(unknown, "-i", "isobench compare -i"), "");
        assert!(tip(ErrorKind::InvalidValue, "--host <HOSTNAME>", "isobench compare -h").contains("--help"));
        assert_eq!(tip(ErrorKind::InvalidValue, "--port <PORT>", "isobench compare -p x"), "");
    }

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
