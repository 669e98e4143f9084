//! `isobench help`, `completions` and `man`: what isobench says of itself.
//!
//! Not here: the options and their help (`options.rs`), the manual (`docs`).

mod search;

use std::fmt::Write as _;
use std::fs;
use std::io;

use clap::Command;
use clap_complete::env::Shells;
use isobench_comparison::{Failure, Outcome};
use isobench_suggest::did_you_mean;

use crate::options::{COMPLETE, CompletionsOptions, HelpOptions, ManOptions, Shell, program};
use crate::output;

/// The date of the manual pages, that of the version.
const DATE: &str = "2026-11-23";

/// What clap's script for bash lacks: words with the characters at which bash takes words apart.
const BASH_WORDS: &str = include_str!("words.bash");

/// A page of the manual.
struct Page {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! pages {
    ($($name:literal in $folder:literal: $about:literal),+ $(,)?) => {
        [$(Page {
            name: $name,
            about: $about,
            text: include_str!(concat!("../../docs/", $folder, "/", $name, ".md")),
        }),+]
    };
}

/// The pages that are printed without a network.
const PAGES: [Page; 13] = pages! {
    "levels" in "concept": "the isolation levels, and what servers run under their names",
    "anomalies" in "concept": "what can go wrong, with the level that excludes it",
    "races" in "concept": "the races of applications, with the level and the change that end each",
    "verdict" in "concept": "what a recorded history proves, and when nothing is said",
    "observation" in "concept": "how reads and writes are seen",
    "strategies" in "concept": "ways in which applications cope with conflicts",
    "what-is-measured" in "concept": "every number: what is counted, from when to when",
    "statistics" in "concept": "intervals, noise, and when there is a difference",
    "comparing-fairly" in "concept": "how cells take turns",
    "limits" in "concept": "what the numbers don't say",
    "glossary" in "reference": "the words",
    "safety" in "reference": "what isobench does to a server, and never does",
    "exit-status" in "reference": "the exit statuses",
};

/// Prints the help of a command, a page of the manual, the options and pages that have a word, or what there
/// is.
///
/// # Errors
/// Nothing has the word, or the output can't be written.
pub fn help(options: &HelpOptions) -> Outcome {
    let mut program = program();
    if options.topic.is_empty() {
        return output::print(&overview(&mut program));
    }
    let topic = &options.topic.join(" ");
    let below = |command: Option<Command>, name: &String| command?.find_subcommand(name).cloned();
    if let Some(command) = options.topic.iter().fold(Some(program.clone()), below) {
        let help = command.bin_name(format!("isobench {topic}")).render_long_help();
        return output::print(&help.to_string());
    }
    if let Some(page) = PAGES.iter().find(|page| page.name == topic) {
        return output::print(&plain(page.text));
    }
    let found = found(&program, topic);
    if !found.is_empty() {
        return output::print(&found);
    }
    let commands = program.get_subcommands().map(Command::get_name);
    let known: Vec<&str> = PAGES.iter().map(|page| page.name).chain(commands).collect();
    let meant = did_you_mean(topic, known.iter().copied());
    Err(Failure::setup(format!("there is no help on \"{topic}\"{meant}; isobench help lists what there is")))
}

/// The most lines about a word.
const MOST_LINES: usize = 20;

/// The pages and options that have a word, each on a line; empty if there are none.
fn found(program: &Command, word: &str) -> String {
    let has_it = |page: &&Page| format!("{} {}", page.name, page.about).contains(&word.to_lowercase());
    let pages =
        PAGES.iter().filter(has_it).map(|page| format!("isobench help {}: {}", page.name, page.about));
    let mut lines: Vec<String> = pages.chain(search::options_with(program, word)).collect();
    let more = lines.len().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.truncate(MOST_LINES - 1);
        lines.push(format!("{} more: isobench help lists the commands, --help-all their options", more + 1));
    }
    let width = output::width();
    lines.iter().map(|line| cut(line, width) + "\n").collect()
}

/// A line that isn't wider than the terminal.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).collect::<String>().trim_end().to_owned() + "…"
}

fn overview(program: &mut Command) -> String {
    let mut text = program.render_help().to_string();
    text.push_str("\nThe manual's pages, printed by isobench help NAME:\n");
    for page in &PAGES {
        // Writing to a String can't fail.
        let _ = writeln!(text, "  {:<17} {}", page.name, page.about);
    }
    text
}

/// A page without the addresses of its links.
fn plain(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, link)) = rest.split_once("](") {
        let Some((shown, (_, after))) = before.rsplit_once('[').zip(link.split_once(')')) else {
            text.push_str(before);
            text.push_str("](");
            rest = link;
            continue;
        };
        text.push_str(shown.0);
        text.push_str(shown.1);
        rest = after;
    }
    text + rest
}

/// Prints what a shell is to read so that it completes isobench's words.
///
/// # Errors
/// The output can't be written.
pub fn completions(options: &CompletionsOptions) -> Outcome {
    let shells = Shells::builtins();
    let shell = shells.completer(options.shell.name()).ok_or_else(|| Failure::setup("no such shell"))?;
    let mut script = Vec::new();
    shell
        .write_registration(COMPLETE, "isobench", "isobench", "isobench", &mut script)
        .map_err(|error| Failure::Output(error.to_string()))?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if options.shell == Shell::Bash {
        script = script.replace(" -F _clap_complete_isobench ", " -F _isobench ") + BASH_WORDS;
    }
    output::print(&script)
}

/// Prints the manual page of isobench, or writes those of all commands.
///
/// # Errors
/// They can't be written.
pub fn man(options: &ManOptions) -> Outcome {
    let mut program = program();
    program.build();
    match &options.folder {
        None => {
            let text = page(&program, "isobench").map_err(|error| Failure::Output(error.to_string()))?;
            output::print(&text)
        }
        Some(folder) => fs::create_dir_all(folder)
            .and_then(|()| {
                pages(&program, "isobench")?.iter().try_for_each(|(name, text)| {
                    output::replace(&folder.join(format!("{name}.1")), text).map(drop)
                })
            })
            .map_err(|error| {
                Failure::Output(format!(
                    "could not write the manual pages into \"{}\": {error}",
                    folder.display()
                ))
            }),
    }
}

/// The manual pages of a command and of those below it, with their names.
fn pages(command: &Command, name: &str) -> io::Result<Vec<(String, String)>> {
    let mut all = vec![(name.to_owned(), page(command, name)?)];
    // clap's own help of the commands below a command has no options, and nothing to tell.
    let is_clap_s = |below: &Command| below.get_name() == "help" && name != "isobench";
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && !is_clap_s(below)) {
        all.extend(pages(below, &format!("{name}-{}", below.get_name()))?);
    }
    Ok(all)
}

/// The manual page of a command.
fn page(command: &Command, name: &str) -> io::Result<String> {
    let usage = name.replace('-', " ");
    let command = command.clone().display_name(name.to_owned()).bin_name(usage);
    let page = clap_mangen::Man::new(command.disable_help_subcommand(true));
    let version = concat!("isobench ", env!("CARGO_PKG_VERSION"));
    let page = page.title(name).date(DATE).source(version).manual("isobench");
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(without_idle_breaks(&String::from_utf8_lossy(&text)))
}

/// A page without breaks beside empty lines, which break by themselves (mandoc -T lint).
fn without_idle_breaks(page: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let empty = |index: usize| lines.get(index).is_some_and(|line| line.is_empty());
    let idle =
        |index: usize| lines[index] == ".br" && (empty(index + 1) || index.checked_sub(1).is_some_and(empty));
    (0..lines.len())
        .filter(|index| !idle(*index))
        .fold(String::new(), |text, index| text + lines[index] + "\n")
}

#[cfg(test)]
mod tests {
    use super::{cut, found, plain, program};

    #[test]
    fn a_word_finds_options_of_other_programs_and_pages_in_few_lines() {
        let program = program();
        let jobs = found(&program, "threads");
        assert!(jobs.contains("--jobs"), "{jobs}");
        assert!(found(&program, "anomal").contains("isobench help anomalies"));
        // Nearly all options have it.
        let all = found(&program, "e");
        assert_eq!(all.lines().count(), 20, "{all}");
        assert_eq!(found(&program, "xyzzy"), "");
        assert_eq!(cut("abc de", 5), "abc…");
    }

    #[test]
    fn links_become_their_text() {
        assert_eq!(
            plain("see [the verdict](verdict.md#x), and [a]; f(x)[1](y"),
            "see the verdict, and [a]; f(x)[1](y"
        );
        assert_eq!(plain("no link"), "no link");
    }
}
