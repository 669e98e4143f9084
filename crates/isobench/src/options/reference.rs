//! The lists of options in `docs/reference/commands.md`: a line for each option, and each option that several
//! commands share once.
//!
//! Not here: the help that the program prints, which says more about each option (`isobench help COMMAND`).

use std::path::Path;

use clap::{Arg, ArgAction, Command};
use isobench_testkit::golden;

use super::program;

/// The commands without a section on the page.
const ELSEWHERE: [&str; 4] = ["help", "completions", "man", "pgbench"];

/// The most options of another command that a command may lack if the page says that it has all of them.
const MOST_LACKING: usize = 3;

/// The heading of options that pgbench has, too. Its users know them, so the page has only their names.
const OF_PGBENCH: &str = "pgbench's options";

/// The widest column of names.
const WIDEST: usize = 34;

/// An option or argument, as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    id: String,
    /// Its short and long form with its value.
    names: String,
    /// Its short help, with aliases and default.
    says: String,
}

impl Entry {
    fn of(arg: &Arg) -> Entry {
        let short = match (arg.get_short(), arg.get_long()) {
            (Some(short), Some(_)) => format!("-{short}, "),
            (None, Some(_)) => "    ".to_owned(),
            _ => String::new(),
        };
        let mut says = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let mut add = |title: &str, values: Vec<String>| {
            if !values.is_empty() {
                says.extend([" [", title, ": ", &values.join(", "), "]"]);
            }
        };
        let aliases = arg.get_visible_aliases().unwrap_or_default();
        add("alias", aliases.iter().map(|alias| format!("--{alias}")).collect());
        if arg.get_action().takes_values() {
            let values = arg.get_possible_values();
            let shown = values.iter().filter(|value| !value.is_hide_set());
            add("values", shown.map(|value| value.get_name().to_owned()).collect());
            let defaults = arg.get_default_values().iter();
            add("default", defaults.map(|value| value.to_string_lossy().into_owned()).collect());
        }
        Entry { id: arg.get_id().to_string(), names: format!("{short}{arg}"), says }
    }

    /// The long form alone, else what there is.
    fn name(&self) -> &str {
        self.names.split([' ', ',', '=']).rfind(|word| word.starts_with("--")).unwrap_or(&self.names)
    }
}

/// Options under a heading.
type Part = (String, Vec<Entry>);

/// What the page lists of a command.
struct Listed {
    command: String,
    parts: Vec<Part>,
}

/// All options of a command, by heading. Every command has help, so it isn't among them.
fn parts(command: &Command) -> Vec<Part> {
    let is_help =
        |arg: &Arg| matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong);
    let mut parts: Vec<Part> = vec![(String::new(), Vec::new())];
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_help(arg)) {
        // Arguments have the heading of the options before them.
        let heading = arg.get_help_heading().filter(|_| !arg.is_positional()).unwrap_or_default();
        let place = parts.iter().position(|(title, _)| title == heading).unwrap_or(parts.len());
        if place == parts.len() {
            parts.push((heading.to_owned(), Vec::new()));
        }
        parts[place].1.push(Entry::of(arg));
    }
    parts
}

/// The parts without the options that are listed already.
fn new(parts: &[Part], listed: &[Listed]) -> Vec<Part> {
    let known = |entry: &Entry| listed.iter().flat_map(entries).any(|other| other == entry);
    let left = parts.iter().map(|(heading, entries)| {
        (heading.clone(), entries.iter().filter(|entry| !known(entry)).cloned().collect::<Vec<_>>())
    });
    left.filter(|(_, entries)| !entries.is_empty()).collect()
}

fn entries(listed: &Listed) -> impl Iterator<Item = &Entry> {
    listed.parts.iter().flat_map(|(_, entries)| entries)
}

/// The names of options, one after the other.
fn names<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    entries.into_iter().map(Entry::name).collect::<Vec<_>>().join(", ")
}

/// A line for each command that lists options which this one has, too.
fn shared(parts: &[Part], listed: &[Listed]) -> String {
    let all: Vec<&Entry> = parts.iter().flat_map(|(_, entries)| entries).collect();
    let lacks = |entry: &&Entry| !all.iter().any(|own| own.id == entry.id);
    let has = |entry: &&Entry| all.contains(entry);
    let mut lines = String::new();
    for other in listed {
        let lacking: Vec<&Entry> = entries(other).filter(lacks).collect();
        let common = entries(other).filter(has).count();
        if common == 0 {
            continue;
        }
        let what = if lacking.len() <= MOST_LACKING && common > lacking.len() && other.parts.len() > 1 {
            let but = if lacking.is_empty() { String::new() } else { format!(" except {}", names(lacking)) };
            format!("all other options{but}")
        } else {
            let part = |(heading, entries): &Part| {
                let common: Vec<&Entry> = entries.iter().filter(has).collect();
                let whole =
                    !heading.is_empty() && common.len() > 1 && !entries.iter().any(|entry| lacks(&entry));
                let title = heading.split(" (").next().unwrap_or_default();
                (!common.is_empty()).then(|| if whole { title.to_owned() } else { names(common) })
            };
            other.parts.iter().filter_map(part).collect::<Vec<_>>().join("; ")
        };
        lines.extend(["As in ", &other.command, ": ", &what, "\n"]);
    }
    lines
}

/// The list of a command and of those below it, and what it lists.
fn section(command: &Command, name: &str, listed: &mut Vec<Listed>) -> String {
    let parts = parts(command);
    let own = new(&parts, listed);
    let width = own.iter().flat_map(|(_, entries)| entries).map(|entry| entry.names.chars().count());
    let width = width.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let mut paragraphs = Vec::new();
    for (heading, entries) in &own {
        if heading == OF_PGBENCH {
            paragraphs.push(format!("{heading}: {}\n", names(entries)));
            continue;
        }
        let lines = entries.iter().map(|entry| format!("  {:<width$}  {}\n", entry.names, entry.says));
        let title = if heading.is_empty() { String::new() } else { format!("{heading}:\n") };
        paragraphs.push(title + &lines.collect::<String>());
    }
    paragraphs.push(shared(&parts, listed));
    listed.push(Listed { command: name.to_owned(), parts: own });
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        let name = format!("{name} {}", below.get_name());
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        paragraphs.push(format!("{name}: {about}\n{}", section(below, &name, listed)));
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n")
}

/// The commands that have a section on a page, in its order.
fn on_page(page: &str) -> Vec<String> {
    page.lines().filter_map(|line| line.strip_prefix("## isobench ")).map(str::to_owned).collect()
}

#[test]
fn option_lists_of_the_reference_are_those_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let mut page = std::fs::read_to_string(&path).expect("the page can be read");
    let mut program = program();
    program.build();
    let mut all: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
    all.retain(|name| !ELSEWHERE.contains(name));
    let order = on_page(&page);
    let (mut sorted, mut expected) = (order.clone(), all);
    sorted.sort();
    expected.sort_unstable();
    assert_eq!(sorted, expected, "the page has a section for each command");
    let mut listed = Vec::new();
    for name in order {
        let command = program.find_subcommand(&name).expect("a command");
        golden::fill(&mut page, &name, &section(command, &name, &mut listed));
    }
    golden::expect(path, &page);
}

#[test]
fn an_option_is_listed_once_and_named_where_it_is_shared() {
    let arg = |name: &'static str, heading: &'static str| {
        Arg::new(name)
            .long(name)
            .help(format!("Help on {name}"))
            .action(ArgAction::SetTrue)
            .help_heading(heading)
    };
    let first = Command::new("first").args([
        arg("a", "Few"),
        arg("b", "Few"),
        arg("c", "Server"),
        arg("d", "Server"),
    ]);
    let built = |mut command: Command| {
        command.build();
        command
    };
    let listed = &mut Vec::new();
    let text = section(&built(first), "first", listed);
    assert_eq!(
        text,
        "Few:\n      --a  Help on a\n      --b  Help on b\n\nServer:\n      --c  Help on c\n      --d  Help on d\n"
    );
    // It lacks one of two; has another help on the other one, and the whole of the other heading.
    let second =
        Command::new("second").args([arg("b", "Few").help("Else"), arg("c", "Server"), arg("d", "Server")]);
    let second = second.args([arg("e", "More"), arg("f", "More"), arg("g", "More")]);
    assert_eq!(
        section(&built(second), "second", listed),
        "Few:\n      --b  Else\n\nMore:\n      --e  Help on e\n      --f  Help on f\n      --g  Help on g\n\n\
         As in first: all other options except --a\n"
    );
    let third = Command::new("third").args([arg("e", "More"), arg("c", "Server"), arg("d", "Server")]);
    assert_eq!(section(&built(third), "third", listed), "As in first: Server\nAs in second: --e\n");
}
