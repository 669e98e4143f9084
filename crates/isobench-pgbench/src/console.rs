//! Messages on standard error in the form of PostgreSQL's programs: `pgbench: error: …`, in the
//! colours of `PG_COLOR`.
//!
//! Not here: the messages' texts, and results, which go to standard output.

use std::fmt::{self, Display};
use std::io::{IsTerminal as _, Write as _};

use isobench_pgwire::{Env, fit};

/// The start of every message, under whatever name the program was started.
const PROGRAM: &str = "pgbench";

/// The kind of a part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Error,
    Warning,
    Info,
    Detail,
    Hint,
    /// A line without the program's name.
    Plain,
}

impl PartKind {
    /// The word after the program's name, and its colour.
    fn label(self) -> Option<(&'static str, Colour)> {
        match self {
            PartKind::Error => Some(("error: ", Colour::Error)),
            PartKind::Warning => Some(("warning: ", Colour::Warning)),
            PartKind::Detail => Some(("detail: ", Colour::Note)),
            PartKind::Hint => Some(("hint: ", Colour::Note)),
            PartKind::Info | PartKind::Plain => None,
        }
    }
}

/// A message of one or more parts, each of one or more lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    parts: Vec<(PartKind, Vec<u8>)>,
}

impl Message {
    fn new(kind: PartKind, text: &impl Display) -> Message {
        Message { parts: vec![(kind, text.to_string().into_bytes())] }
    }

    /// `pgbench: error: …`
    pub fn error(text: impl Display) -> Message {
        Message::new(PartKind::Error, &text)
    }

    /// `pgbench: warning: …`
    pub fn warning(text: impl Display) -> Message {
        Message::new(PartKind::Warning, &text)
    }

    /// `pgbench: …`
    pub fn info(text: impl Display) -> Message {
        Message::new(PartKind::Info, &text)
    }

    /// Text without the program's name before it.
    pub fn plain(text: impl Display) -> Message {
        Message::new(PartKind::Plain, &text)
    }

    /// The same for text that may not be UTF-8.
    pub fn plain_bytes(text: Vec<u8>) -> Message {
        Message { parts: vec![(PartKind::Plain, text)] }
    }

    #[must_use]
    fn and(mut self, kind: PartKind, text: &impl Display) -> Message {
        self.parts.push((kind, text.to_string().into_bytes()));
        self
    }

    /// Adds `pgbench: detail: …`
    #[must_use]
    pub fn detail(self, text: impl Display) -> Message {
        self.and(PartKind::Detail, &text)
    }

    /// Adds `pgbench: hint: …`
    #[must_use]
    pub fn hint(self, text: impl Display) -> Message {
        self.and(PartKind::Hint, &text)
    }

    /// Adds the hint to use `--help`.
    #[must_use]
    pub(crate) fn hint_at_help(self) -> Message {
        self.hint("Try \"pgbench --help\" for more information.")
    }

    /// Adds a further error.
    #[must_use]
    pub fn then_error(self, text: impl Display) -> Message {
        self.and(PartKind::Error, &text)
    }

    /// Adds text without the program's name before it.
    #[must_use]
    pub fn then_plain(self, text: impl Display) -> Message {
        self.and(PartKind::Plain, &text)
    }

    /// The lines, each with its line end.
    fn render(&self, palette: Option<&Palette>) -> Vec<u8> {
        let paint = |text: &str, colour: Colour| match palette.and_then(|palette| palette.code(colour)) {
            Some(code) => format!("\x1b[{code}m{text}\x1b[0m"),
            None => text.to_owned(),
        };
        let mut out = Vec::new();
        for (kind, text) in &self.parts {
            // Text that isn't UTF-8 is a command-line option, not a server's text.
            let text = std::str::from_utf8(text).map_or_else(|_| text.clone(), |text| fit(text).into_bytes());
            if *kind != PartKind::Plain {
                out.extend(paint(&format!("{PROGRAM}: "), Colour::Locus).bytes());
            }
            if let Some((label, colour)) = kind.label() {
                out.extend(paint(label, colour).bytes());
            }
            // libpq's messages include the end of their last line.
            out.extend(text.strip_suffix(b"\n").unwrap_or(&text));
            out.push(b'\n');
        }
        out
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.render(None)).into_owned();
        f.write_str(text.strip_suffix('\n').unwrap_or(&text))
    }
}

/// The coloured parts of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Error,
    Warning,
    Note,
    Locus,
}

/// Names in `PG_COLORS`, and the codes without it.
const COLOURS: [(Colour, &str, &str); 4] = [
    (Colour::Error, "error", "01;31"),
    (Colour::Warning, "warning", "01;35"),
    (Colour::Note, "note", "01;36"),
    (Colour::Locus, "locus", "01"),
];

/// The codes of the colours in use.
#[derive(Debug, PartialEq, Eq)]
struct Palette {
    codes: Vec<(Colour, String)>,
}

impl Palette {
    /// Parses `PG_COLORS`, for example `error=01;31:locus=01`. Parts that it doesn't name have no
    /// colour.
    fn new(colours: Option<&str>) -> Palette {
        let Some(text) = colours else {
            let codes = COLOURS.iter().map(|(colour, _, code)| (*colour, (*code).to_owned())).collect();
            return Palette { codes };
        };
        let assignments = text.split(':').filter_map(|part| part.split_once('='));
        let codes = assignments
            .filter_map(|(name, code)| {
                let row = COLOURS.iter().find(|row| row.1 == name)?;
                Some((row.0, code.to_owned()))
            })
            .collect();
        Palette { codes }
    }

    /// Returns the last code given for a colour.
    fn code(&self, colour: Colour) -> Option<&str> {
        self.codes.iter().rev().find(|(other, _)| *other == colour).map(|(_, code)| code.as_str())
    }
}

/// The destination of messages. Each message is written in one piece, from any thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Console {
    /// Debugging messages are shown (`--debug`).
    pub debugging: bool,
    palette: Option<&'static Palette>,
}

impl Console {
    /// A console with the colours that `PG_COLOR` (`always`, `auto`) and `PG_COLORS` ask for.
    ///
    /// Source: PostgreSQL: Color Support.
    pub fn new(env: Env<'_>) -> Console {
        let coloured = match env("PG_COLOR").as_deref() {
            Some("always") => true,
            Some("auto") => std::io::stderr().is_terminal(),
            _ => false,
        };
        // There is one console in a program, shared by all threads.
        let palette = coloured.then(|| &*Box::leak(Box::new(Palette::new(env("PG_COLORS").as_deref()))));
        Console { debugging: false, palette }
    }

    /// The same console with or without debugging messages.
    #[must_use]
    pub fn with_debugging(self, debugging: bool) -> Console {
        Console { debugging, ..self }
    }

    /// Writes a message, after flushing standard output.
    pub fn say(self, message: &Message) {
        let text = message.render(self.palette);
        // If standard output or error is closed, there is nobody to report that to.
        let _ = std::io::stdout().flush();
        let _ = std::io::stderr().lock().write_all(&text);
    }

    /// Writes a part of a line in our own words, after flushing standard output.
    pub fn write(self, text: impl Display) {
        let _ = std::io::stdout().flush();
        let _ = write!(std::io::stderr().lock(), "{text}");
    }

    /// `pgbench: error: …`
    pub fn error(self, text: impl Display) {
        self.say(&Message::error(text));
    }

    /// `pgbench: warning: …`
    pub fn warning(self, text: impl Display) {
        self.say(&Message::warning(text));
    }

    /// `pgbench: …`
    pub fn info(self, text: impl Display) {
        self.say(&Message::info(text));
    }

    /// `pgbench: …` if debugging messages are shown. Pass `format_args!`, so that the text is
    /// formatted only then.
    pub fn debug(self, text: impl Display) {
        if self.debugging {
            self.say(&Message::info(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_form_of_pgbench() {
        let message = Message::error("a\nb\n").detail("c").hint("d").then_error("e").then_plain("f\n");
        let text = "pgbench: error: a\nb\npgbench: detail: c\npgbench: hint: d\npgbench: error: e\nf";
        assert_eq!(message.to_string(), text);
        assert_eq!(Message::warning("w").to_string(), "pgbench: warning: w");
        assert_eq!(Message::info("i").to_string(), "pgbench: i");
    }

    #[test]
    fn a_terminal_is_not_at_the_servers_command() {
        let message = Message::error("\u{1b}[2Ja\nb").detail("\u{9b}31m").to_string();
        assert_eq!(message, "pgbench: error: \\u001b[2Ja\nb\npgbench: detail: \\u009b31m");
    }

    #[test]
    fn colours_have_the_bytes_of_pgbench() {
        let shown = |colours: Option<&str>| {
            let text = Message::error("a").hint("b").render(Some(&Palette::new(colours)));
            String::from_utf8_lossy(&text).replace('\x1b', "^")
        };
        assert_eq!(
            shown(None),
            "^[01mpgbench: ^[0m^[01;31merror: ^[0ma\n^[01mpgbench: ^[0m^[01;36mhint: ^[0mb\n"
        );
        assert_eq!(shown(Some("error=35")), "pgbench: ^[35merror: ^[0ma\npgbench: hint: b\n");
        assert_eq!(
            shown(Some(":locus=1:foo=3:note=:error")),
            "^[1mpgbench: ^[0merror: a\n^[1mpgbench: ^[0m^[mhint: ^[0mb\n"
        );
        assert_eq!(shown(Some("")), "pgbench: error: a\npgbench: hint: b\n");
    }

    #[test]
    fn colours_are_for_those_who_ask() {
        let console = |value: Option<&'static str>| {
            Console::new(&|name: &str| (name == "PG_COLOR").then_some(value).flatten().map(str::to_owned))
        };
        assert!(console(Some("always")).palette.is_some());
        for other in [None, Some(""), Some("never"), Some("ALWAYS")] {
            assert!(console(other).palette.is_none(), "{other:?}");
        }
    }
}
