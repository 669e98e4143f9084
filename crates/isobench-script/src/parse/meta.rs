//! Reads one meta-command. To add one: a variant of `CommandKind`, a row here, and its parser.

use super::dialect::Dialect;
use super::line::{Line, Word};
use super::place::Place;
use crate::error::{ParseError, ParseProblem};
use crate::expr::{Expr, parse_expression};
use crate::number::leading_int;
use crate::script::{Argument, Branch, CommandKind, Operand, SleepUnit, Store};
use crate::symbols::Symbols;

/// The maximum number of words in a meta-command, including its name.
const MAX_WORDS: usize = 256;

/// A meta-command.
pub(super) enum Meta {
    /// One that is a command of its own.
    Command(CommandKind),
    /// `\gset` or `\aset`.
    Store(Store),
}

/// The parser of a meta-command.
type Parse = fn(&Reader<'_>, &mut Symbols) -> Result<Meta, ParseError>;

const COMMANDS: [(&str, Parse); 14] = [
    ("set", set),
    ("if", |reader, symbols| Ok(Meta::Command(CommandKind::If(reader.arm(symbols)?)))),
    ("elif", |reader, symbols| Ok(Meta::Command(CommandKind::Elif(reader.arm(symbols)?)))),
    ("else", |reader, _| reader.alone(CommandKind::Else(Branch { cond: None, next: 0, end: 0 }))),
    ("endif", |reader, _| reader.alone(CommandKind::Endif)),
    ("sleep", sleep),
    ("shell", shell),
    ("setshell", setshell),
    ("gset", |reader, _| Ok(Meta::Store(Store::Gset { prefix: reader.prefix()? }))),
    ("aset", |reader, _| Ok(Meta::Store(Store::Aset { prefix: reader.prefix()? }))),
    ("startpipeline", |reader, _| reader.alone(CommandKind::StartPipeline)),
    ("syncpipeline", |reader, _| reader.alone(CommandKind::SyncPipeline)),
    ("endpipeline", |reader, _| reader.alone(CommandKind::EndPipeline)),
    ("", |reader, _| Err(reader.error("invalid command", None, None))),
];

/// Those that run programs, which recorded scripts don't have.
const PROGRAMS: [&str; 2] = ["shell", "setshell"];

/// The text of a meta-command, its words, and its position.
struct Reader<'a> {
    line: &'a Line<'a>,
    place: Place<'a>,
    command: &'a str,
    /// The words after the command's name; empty for commands that take an expression.
    words: Vec<Word<'a>>,
}

/// Parses the meta-command on a line; `None` if there is only a backslash, or it is passed over. In a
/// script with the mark of `recorded` ones none runs a program.
pub(super) fn parse_meta(
    line: &Line<'_>,
    place: Place<'_>,
    dialect: Dialect,
    recorded: bool,
    symbols: &mut Symbols,
) -> Result<Option<Meta>, ParseError> {
    let mut words = line.words();
    let Some(command) = words.next() else {
        return Ok(None);
    };
    if dialect.passes_over(command.text) {
        return Ok(None);
    }
    let reader = Reader { line, place, command: command.text, words: words.collect() };
    if recorded && PROGRAMS.iter().any(|name| name.eq_ignore_ascii_case(command.text)) {
        return Err(reader.error("a script that begins with --@ recorded runs no program", None, None));
    }
    let takes_expression = ["set", "if", "elif"].iter().any(|name| name.eq_ignore_ascii_case(command.text));
    if !takes_expression && reader.words.len() >= MAX_WORDS {
        return Err(reader.error("too many arguments", None, None));
    }
    let mut known = COMMANDS.iter().filter(|(name, _)| dialect.knows(name));
    let found = known.find(|(name, _)| name.is_empty() || name.eq_ignore_ascii_case(command.text));
    match found {
        Some((_, parse)) => parse(&reader, symbols).map(Some),
        None => Ok(None),
    }
}

impl<'a> Reader<'a> {
    /// An error; `at` is the offset of the caret within the line.
    fn error(&self, message: &'static str, detail: Option<&str>, at: Option<usize>) -> ParseError {
        ParseError {
            column: at.map(|offset| u32::try_from(offset + 1).unwrap_or(u32::MAX)),
            source: self.line.shown().to_owned(),
            ..self.place.error(ParseProblem::Syntax {
                message,
                detail: detail.map(Into::into),
                command: Some(self.command.into()),
            })
        }
    }

    /// The rest of the line from `offset` as an expression.
    fn expression(&self, offset: usize, symbols: &mut Symbols) -> Result<Expr, ParseError> {
        parse_expression(self.line.text, offset, symbols).map_err(|error| {
            // The caret is below the last character of the offending token, which can be the line
            // break.
            let beyond = usize::from(error.at_end && self.line.terminated);
            let caret = (error.offset + beyond).saturating_sub(1);
            self.error(error.message, error.detail.as_deref(), Some(caret))
        })
    }

    fn arm(&self, symbols: &mut Symbols) -> Result<Branch, ParseError> {
        let start = self.end_of_command();
        Ok(Branch { cond: Some(self.expression(start, symbols)?), next: 0, end: 0 })
    }

    fn end_of_command(&self) -> usize {
        let mut words = self.line.words();
        words.next();
        words.at
    }

    fn alone(&self, kind: CommandKind) -> Result<Meta, ParseError> {
        if self.words.is_empty() {
            Ok(Meta::Command(kind))
        } else {
            Err(self.error("unexpected argument", None, None))
        }
    }

    fn prefix(&self) -> Result<String, ParseError> {
        match self.words[..] {
            [] => Ok(String::new()),
            [prefix] => Ok(prefix.text.to_owned()),
            _ => Err(self.error("too many arguments", None, None)),
        }
    }

    fn arguments(words: &[Word<'a>], symbols: &mut Symbols) -> Vec<Argument> {
        words.iter().map(|word| argument(word.text, symbols)).collect()
    }
}

fn set(reader: &Reader<'_>, symbols: &mut Symbols) -> Result<Meta, ParseError> {
    let Some(name) = reader.words.first() else {
        // pgbench doesn't show the line for this error.
        return Err(ParseError { source: String::new(), ..reader.error("missing argument", None, None) });
    };
    let expr = reader.expression(name.offset + name.text.len(), symbols)?;
    Ok(Meta::Command(CommandKind::Set { slot: symbols.intern(name.text), expr }))
}

fn shell(reader: &Reader<'_>, symbols: &mut Symbols) -> Result<Meta, ParseError> {
    if reader.words.is_empty() {
        return Err(reader.error("missing command", None, None));
    }
    Ok(Meta::Command(CommandKind::Shell { args: Reader::arguments(&reader.words, symbols) }))
}

fn setshell(reader: &Reader<'_>, symbols: &mut Symbols) -> Result<Meta, ParseError> {
    let [name, command @ ..] = &reader.words[..] else {
        return Err(reader.error("missing argument", None, None));
    };
    if command.is_empty() {
        return Err(reader.error("missing argument", None, None));
    }
    let args = Reader::arguments(command, symbols);
    Ok(Meta::Command(CommandKind::SetShell { slot: symbols.intern(name.text), args }))
}

/// `:name` is a variable, `::text` the text `:text`.
fn argument(word: &str, symbols: &mut Symbols) -> Argument {
    match word.strip_prefix(':') {
        Some(rest) if !rest.starts_with(':') => Argument::Variable(symbols.intern(rest)),
        Some(rest) => Argument::Literal(rest.to_owned()),
        None => Argument::Literal(word.to_owned()),
    }
}

/// `\sleep 10 ms`, and `\sleep 10ms` too.
fn sleep(reader: &Reader<'_>, symbols: &mut Symbols) -> Result<Meta, ParseError> {
    let Some(number) = reader.words.first().copied() else {
        return Err(reader.error("missing argument", None, None));
    };
    if let Some(extra) = reader.words.get(2) {
        return Err(reader.error("too many arguments", None, Some(extra.caret)));
    }
    let mut unit = reader.words.get(1).copied();
    let duration = if let Some(name) = number.text.strip_prefix(':') {
        Operand::Variable(symbols.intern(name))
    } else {
        let signed = usize::from(number.text.starts_with(['+', '-']));
        let digits = number.text[signed..].bytes().take_while(u8::is_ascii_digit).count();
        let end = signed + digits;
        if end < number.text.len() {
            if digits == 0 || unit.is_some() {
                let message = "invalid sleep time, must be an integer";
                return Err(reader.error(message, Some(number.text), Some(number.caret)));
            }
            unit = Some(Word {
                text: &number.text[end..],
                offset: number.offset + end,
                caret: number.caret + end,
            });
        }
        Operand::Number(leading_int(&number.text[..end]).unwrap_or(0))
    };
    let unit = match unit {
        None => SleepUnit::Seconds,
        Some(word) => {
            [("us", SleepUnit::Microseconds), ("ms", SleepUnit::Milliseconds), ("s", SleepUnit::Seconds)]
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(word.text))
                .map(|(_, unit)| *unit)
                .ok_or_else(|| {
                    reader.error(
                        "unrecognized time unit, must be us, ms or s",
                        Some(word.text),
                        Some(word.caret),
                    )
                })?
        }
    };
    Ok(Meta::Command(CommandKind::Sleep { duration, unit }))
}
