//! Files, and standard output and standard error, which may be closed pipes: `isobench compare |
//! head` doesn't panic.
//!
//! Standard output has the results, so failing to write there is an error. Standard error has
//! messages; if it is closed, the run continues. All output is safe for a terminal: it has no
//! control characters from a server, and no password.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use isobench_pgwire::fit;
use isobench_report::{Extent, Terminal, Text};
use isobench_result::Emphasis;
use tempfile::{Builder, NamedTempFile};

use isobench_comparison::{Failure, Outcome};

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed.
/// Only for trusted text.
macro_rules! eprint {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // If this fails, there is no way to report it.
        let _ = write!(std::io::stderr(), $($text)*);
    }};
}

/// Like the standard library's macro of this name, but doesn't panic if standard error is closed,
/// and removes control sequences.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // If this fails, there is no way to report it.
        let _ = writeln!(std::io::stderr(), "{}", isobench_pgwire::fit(&format!($($text)*)));
    }};
}

/// Writes a text to standard output.
///
/// # Errors
/// It is closed, or its disk is full.
pub fn print(text: &str) -> Outcome {
    write(&fit(text))
}

/// The same for a text without passwords and control characters.
///
/// # Errors
/// Standard output is closed, or its disk is full.
pub fn print_fit(text: &str) -> Outcome {
    write(text)
}

/// Writes a report to standard output, between other texts. On a terminal that can show it, or where
/// the environment says so, it has its emphasis. If standard output is taken by a result, it goes to
/// standard error, without emphasis.
///
/// # Errors
/// Standard output is closed, or its disk is full.
pub fn print_report(before: &str, report: &Text, after: &str, stdout_is_taken: bool) -> Outcome {
    let plain = format!("{before}{report}{after}");
    if stdout_is_taken {
        return tell(&plain, true);
    }
    let wanted = shows_emphasis(|name| std::env::var_os(name), io::stdout().is_terminal());
    // What must be hidden, or isn't fit for a terminal, is found in the text as a whole only.
    if !wanted || fit(&plain) != plain {
        return print(&plain);
    }
    write(&format!("{before}{}{after}", painted(report)))
}

/// True if output to a terminal, or to something else, has emphasis, by these environment variables.
/// Source: no-color.org; bixense.com/clicolors. The library anstream differs: there
/// `CLICOLOR_FORCE=0` forces, and `CI` overrules `TERM=dumb`.
fn shows_emphasis(variable: impl Fn(&str) -> Option<OsString>, is_terminal: bool) -> bool {
    let value = |name| variable(name).filter(|value| !value.is_empty());
    if value("NO_COLOR").is_some() {
        return false;
    }
    if value("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    let able = value("TERM").is_some_and(|kind| kind != "dumb");
    is_terminal && able && value("CLICOLOR").is_none_or(|value| value != "0")
}

/// The report with control sequences for its emphasis.
fn painted(report: &Text) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for line in report.lines() {
        for span in line {
            let style = style(span.emphasis);
            // Writing to a String can't fail.
            let _ = write!(text, "{style}{}{style:#}", span.text);
        }
        text.push('\n');
    }
    text
}

/// The look of an emphasis. Red and bold is what is bad, yellow is what is doubtful; none relies on
/// its colour, since the words say the same.
const fn style(emphasis: Emphasis) -> Style {
    match emphasis {
        Emphasis::Plain => Style::new(),
        Emphasis::Grave => AnsiColor::Red.on_default().bold(),
        Emphasis::Caution => AnsiColor::Yellow.on_default(),
        Emphasis::Headline => Style::new().bold(),
        Emphasis::Faint => Style::new().dimmed(),
    }
}

/// The width of a terminal where there is none.
const USUAL: usize = 120;

/// The narrowest width in COLUMNS that texts can be laid out in.
const NARROWEST: usize = 20;

/// The width of the terminal. Where there is none it is that of COLUMNS, or else a usual one.
pub fn width() -> usize {
    match terminal_size::terminal_size() {
        Some((width, _)) => usize::from(width.0),
        None => columns(std::env::var("COLUMNS").ok().as_deref()),
    }
}

/// The width that COLUMNS asks for (POSIX: Environment Variables).
fn columns(given: Option<&str>) -> usize {
    let given = given.and_then(|text| text.trim().parse().ok());
    given.map_or(USUAL, |columns: usize| columns.max(NARROWEST))
}

/// The extent of a report with these options.
pub const fn extent(legend: bool, details: bool) -> Extent {
    match (legend, details) {
        (true, _) => Extent::Legend,
        (false, true) => Extent::Details,
        (false, false) => Extent::Screen,
    }
}

/// The terminal of this process, for a report of this extent.
pub fn terminal(extent: Extent) -> Terminal {
    Terminal { width: width(), extent, unicode: unicode() }
}

/// True if the terminal shows characters of Unicode.
pub fn unicode() -> bool {
    shows_unicode(|name| std::env::var_os(name))
}

/// True if the locale's characters are those of Unicode (POSIX: Internationalization Variables).
fn shows_unicode(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    let locale = locale.to_string_lossy().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

fn write(text: &str) -> Outcome {
    clear_step();
    let mut stdout = stdout().map_err(unwritten)?;
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(unwritten)
}

/// Standard output.
///
/// # Errors
/// It was closed when the program began.
pub fn stdout() -> io::Result<io::StdoutLock<'static>> {
    if isobench_ring::stdout_was_closed() {
        Err(io::Error::other("it is closed"))
    } else {
        Ok(io::stdout().lock())
    }
}

/// The failure to write to standard output.
#[expect(clippy::needless_pass_by_value, reason = "so that it can be handed to map_err")]
pub fn unwritten(error: io::Error) -> Failure {
    Failure::Output(format!("could not write to standard output: {error}"))
}

/// Writes a message to standard error.
pub fn say(text: &str) {
    clear_step();
    eprintln!("{text}");
}

/// True if a line with a step stands on the terminal.
static STEP: AtomicBool = AtomicBool::new(false);

/// Writes what is done now to standard error: on a terminal in place of the step before, until anything else is
/// written.
pub fn step(text: &str) {
    if !io::stderr().is_terminal() {
        return say(text);
    }
    let room = terminal_size::terminal_size_of(io::stderr()).map_or(USUAL, |(width, _)| usize::from(width.0));
    let shown: String = fit(text).chars().take(room.saturating_sub(1)).collect();
    eprint!("\r\x1b[K{shown}");
    STEP.store(true, Ordering::Relaxed);
}

/// Takes the step off the terminal.
fn clear_step() {
    if STEP.swap(false, Ordering::Relaxed) {
        eprint!("\r\x1b[K");
    }
}

/// Writes a text for people: to standard output, or to standard error if that is taken by a
/// result.
///
/// # Errors
/// Standard output is closed, or its disk is full.
pub fn tell(text: &str, stdout_is_taken: bool) -> Outcome {
    if stdout_is_taken {
        clear_step();
        eprint!("{}", fit(text));
        return Ok(());
    }
    print(text)
}

/// Writes a file as a whole or not at all; anything other than a regular file (a pipe, a device) is
/// written to directly. `-` is standard output.
///
/// # Errors
/// It can't be written; the message names it.
pub fn save(path: &Path, text: &str) -> Outcome {
    save_fit(path, &fit(text))
}

/// The same for a text without passwords and control characters.
///
/// # Errors
/// It can't be written; the message names it.
pub fn save_fit(path: &Path, text: &str) -> Outcome {
    if is_stream(path) {
        return print_fit(text);
    }
    let shown = path.display();
    let failure = |error: io::Error| {
        Failure::Output(format!("could not write \"{shown}\": {error}; the results above are not saved"))
    };
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, text).map_err(failure);
    }
    replace(path, text).map(drop).map_err(failure)
}

/// Puts a new file in the place of a path, and returns it. Its name until then can't be foreseen, so nobody else
/// can have put a link there.
pub fn replace(path: &Path, text: &str) -> io::Result<File> {
    let mut file = begin(path)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)
}

/// Makes a file beside a path, to be persisted there when it is whole.
pub fn begin(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The user's mask takes away what others mustn't have.
    let permissions = Permissions::from_mode(0o666);
    Builder::new().prefix(".isobench-").permissions(permissions).tempfile_in(folder)
}

/// Returns whether the path means standard input or output.
pub fn is_stream(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns a file's name for messages.
pub fn shown(path: &Path) -> String {
    if is_stream(path) { "standard input".to_owned() } else { format!("\"{}\"", path.display()) }
}

#[cfg(test)]
mod tests {
    use isobench_result::{Client, Document, Plan, Server};

    use super::*;

    #[test]
    fn columns_say_how_wide_a_text_is_without_a_terminal() {
        for (given, expected) in [
            (Some("100"), 100),
            (Some(" 80 "), 80),
            (Some("1"), 20),
            (Some(""), 120),
            (Some("wide"), 120),
            (None, 120),
        ] {
            assert_eq!(columns(given), expected, "{given:?}");
        }
    }

    #[test]
    fn the_environment_decides_on_emphasis() {
        for (variables, on_terminal, in_pipe) in [
            (&[("TERM", "xterm")][..], true, false),
            (&[], false, false),
            (&[("TERM", "dumb")], false, false),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], false, false),
            (&[("TERM", "xterm"), ("NO_COLOR", "")], true, false),
            (&[("TERM", "xterm"), ("CLICOLOR", "0")], false, false),
            (&[("TERM", "xterm"), ("CLICOLOR_FORCE", "0")], true, false),
            (&[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], true, true),
            (&[("TERM", "xterm"), ("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false, false),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            let found = (shows_emphasis(variable, true), shows_emphasis(variable, false));
            assert_eq!(found, (on_terminal, in_pipe), "{variables:?}");
        }
    }

    #[test]
    fn the_locale_decides_on_marks() {
        for (variables, shown) in [
            (&[][..], false),
            (&[("LANG", "C")], false),
            (&[("LANG", "de_DE.UTF-8")], true),
            (&[("LANG", "C"), ("LC_CTYPE", "C.utf8")], true),
            (&[("LC_ALL", "POSIX"), ("LANG", "en_US.UTF-8")], false),
            (&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")], true),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(shows_unicode(variable), shown, "{variables:?}");
        }
    }

    #[test]
    fn without_control_sequences_the_text_is_the_same() {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.warnings = vec!["the machine was busy".to_owned()];
        let report = Terminal::of_width(80).render(&document);
        let painted = painted(&report);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), report.to_string());
        for (emphasis, words) in [
            ("\x1b[1m\x1b[31m", "INCOMPLETE: "),
            ("\x1b[33m", "the machine was busy"),
            ("\x1b[1m", "Nothing was measured"),
        ] {
            assert!(painted.contains(&format!("{emphasis}{words}")), "{painted:?}");
        }
    }
}
