//! The options of all commands that have a word in their names or their help, for `isobench help WORD`.
//!
//! Not here: the pages of the manual (`help.rs`), the names of other programs (`options/unknown.rs`).

use clap::{Arg, Command};

use crate::options::elsewhere;

/// An option, and the commands that have it.
struct Found {
    /// Its names and its value, such as `-c, --clients <NUM>`.
    shown: String,
    help: String,
    /// True if a name of it has the word, not only its help.
    named: bool,
    commands: Vec<String>,
}

/// A line for each option that has the word, those whose names have it first: its names, what it does, and the
/// commands. A name that other programs have finds the option of the same meaning.
pub(super) fn options_with(program: &Command, word: &str) -> Vec<String> {
    let word = word.trim_start_matches('-').to_lowercase();
    let mut found: Vec<Found> = Vec::new();
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        collect(command, command.get_name(), &word, &mut found);
    }
    found.sort_by_key(|one| !one.named);
    let line = |one: Found| {
        let Found { shown, help, commands, .. } = one;
        let end = if help.is_empty() { String::new() } else { format!(": {help}") };
        format!("{shown} ({}){end}", commands.join(", "))
    };
    found.into_iter().map(line).collect()
}

/// Adds the options of a command, and of those below it.
fn collect(command: &Command, name: &str, word: &str, found: &mut Vec<Found>) {
    for option in command.get_arguments().filter(|option| !option.is_positional()) {
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let named =
            names(option).iter().any(|own| own.contains(word) || elsewhere(word) == Some(own.as_str()));
        if !named && !help.to_lowercase().contains(word) {
            continue;
        }
        let shown = shown(option);
        match found.iter_mut().find(|known| known.shown == shown && known.help == help) {
            Some(known) => known.commands.push(name.to_owned()),
            None => found.push(Found { shown, help, named, commands: vec![name.to_owned()] }),
        }
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(below, &format!("{name} {}", below.get_name()), word, found);
    }
}

/// The long name and its aliases.
fn names(option: &Arg) -> Vec<String> {
    let aliases = option.get_visible_aliases().unwrap_or_default();
    option.get_long().into_iter().chain(aliases).map(str::to_owned).collect()
}

fn shown(option: &Arg) -> String {
    let short = option.get_short().map(|short| format!("-{short}"));
    let long = option.get_long().map(|long| format!("--{long}"));
    let names = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let takes_value = option.get_action().takes_values();
    let value = option.get_value_names().filter(|_| takes_value).and_then(|names| names.first());
    value.map_or(names.clone(), |value| format!("{names} <{value}>"))
}
