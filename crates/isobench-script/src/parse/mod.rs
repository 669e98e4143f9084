//! Parses whole scripts: alternates between SQL and meta-commands, and assembles the commands.
//! `line` splits a meta-command into words, `meta` parses it, `conditions` resolves jumps,
//! `annotations` parses the lines `--@`.

mod annotations;
mod conditions;
mod dialect;
mod line;
mod meta;
mod place;

use std::mem;

use crate::annotation::Annotation;
use crate::error::{ParseError, ParseProblem};
use crate::recorded::{is_mark, is_recorded};
use crate::script::{Command, CommandKind, Script, Sql, Store};
use crate::sql::{End, Scanned, Scanner, Statement, classify, savepoint, substitute};
use crate::symbols::Symbols;
use annotations::{is_annotatable, misplaced, parse_annotation};
pub use dialect::Dialect;
use line::Line;
use meta::Meta;
use place::Place;

/// Parses a script.
///
/// `name` appears in messages and reports. Variables are interned in `symbols`, which all scripts
/// of a run share.
///
/// # Errors
/// The errors of pgbench, with its messages: see [`ParseError`].
pub fn parse(name: &str, text: &str, symbols: &mut Symbols) -> Result<Script, ParseError> {
    parse_as(Dialect::default(), name, text, symbols)
}

/// Parses a script in the given dialect; see [`parse`].
///
/// # Errors
/// The errors of that version of pgbench.
pub fn parse_as(
    dialect: Dialect,
    name: &str,
    text: &str,
    symbols: &mut Symbols,
) -> Result<Script, ParseError> {
    let recorded = is_recorded(text);
    let mut lines = LineCounter { text, at: 0, line: 1 };
    let mut scanner = Scanner::new(text);
    let mut commands: Vec<Command> = Vec::new();
    loop {
        let (found, end) = scanner.command();
        let annotations = if dialect.annotations && !found.marks.is_empty() {
            observations_of(&found, commands.is_empty(), name, &mut lines, symbols)?
        } else {
            Vec::new()
        };
        if !found.text.is_empty() {
            let line = lines.line_of(found.start);
            commands.push(sql_command(&found, line, annotations, symbols));
        }
        match end {
            End::Semicolon => {}
            End::Input => break,
            End::Backslash => {
                let meta_line = Line::at(text, scanner.at - 1);
                let line = lines.line_of(scanner.at - 1);
                scanner.at = meta_line.after;
                let place = Place { file: name, line };
                match meta::parse_meta(&meta_line, place, dialect, recorded, symbols)? {
                    None => {}
                    Some(Meta::Command(kind)) => {
                        commands.push(Command { line, text: meta_line.shown().to_owned(), kind });
                    }
                    Some(Meta::Store(store)) => attach(&mut commands, store, place)?,
                }
            }
        }
    }
    if commands.is_empty() {
        let place = Place { file: name, line: 1 };
        return Err(place.error(ParseProblem::Empty));
    }
    conditions::resolve(&mut commands, name)?;
    Ok(Script { name: name.to_owned(), commands })
}

/// Counts the lines up to increasing offsets, so that a script is read only once.
struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl LineCounter<'_> {
    fn line_of(&mut self, place: usize) -> u32 {
        if place > self.at {
            let passed = self.text[self.at..place].matches('\n').count();
            self.line = self.line.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
            self.at = place;
        }
        self.line
    }
}

/// The lines `--@` before an SQL command. The mark of a recorded script may stand before the `first` one.
fn observations_of(
    scanned: &Scanned,
    first: bool,
    file: &str,
    lines: &mut LineCounter<'_>,
    symbols: &mut Symbols,
) -> Result<Vec<Annotation>, ParseError> {
    let script = lines.text;
    let mut annotations = Vec::with_capacity(scanned.marks.len());
    for mark in scanned.marks.iter().copied() {
        let text = script[mark..].split(['\n', '\r']).next().unwrap_or_default().trim_end();
        if first && is_mark(text) && (scanned.text.is_empty() || mark < scanned.start) {
            continue;
        }
        let place = Place { file, line: lines.line_of(mark) };
        let misplaced = |message| Err(misplaced(place, message, None));
        if scanned.text.is_empty() {
            return misplaced("an SQL command must follow a line --@");
        }
        if mark > scanned.start {
            return misplaced("a line --@ must precede the SQL command that it describes");
        }
        let before = script[..mark].trim_end_matches([' ', '\t']);
        if !(before.is_empty() || before.ends_with('\n')) {
            return misplaced(
                "a comment --@ must be a line of its own, before the SQL command that it describes",
            );
        }
        let annotation = parse_annotation(text, place, symbols)?;
        let same = |other: &Annotation| mem::discriminant(&other.what) == mem::discriminant(&annotation.what);
        if !annotation.what.is_recorded() && annotations.iter().any(same) {
            return misplaced(
                "a command can have at most one line each of --@ computed, --@ swallowed and --@ inside",
            );
        }
        annotations.push(annotation);
    }
    if let Some(first) = annotations.first()
        && !is_annotatable(&statements_of(scanned))
    {
        let place = Place { file, line: first.line };
        let message = "a command with lines --@ must have exactly one statement besides BEGIN and COMMIT";
        return Err(misplaced(place, message, None));
    }
    Ok(annotations)
}

/// The kind of each statement.
fn statements_of(scanned: &Scanned) -> Vec<Statement> {
    let text = scanned.text.as_str();
    let mut statements = Vec::with_capacity(scanned.breaks.len() + 1);
    let mut from = 0;
    for end in scanned.breaks.iter().copied().chain([text.len()]) {
        statements.extend(classify(&text[from..end]));
        from = end;
    }
    statements
}

fn sql_command(scanned: &Scanned, line: u32, annotations: Vec<Annotation>, symbols: &mut Symbols) -> Command {
    let text = scanned.text.as_str();
    let first_line = text.split(['\n', '\r']).next().unwrap_or(text);
    let found = substitute(text, symbols);
    let kind = CommandKind::Sql(Sql {
        pieces: found.pieces,
        parameterized: found.parameterized,
        params: found.params,
        statements: statements_of(scanned),
        store: Store::None,
        savepoint: savepoint(&text[scanned.breaks.last().copied().unwrap_or(0)..]),
        annotations,
        observed: Vec::new(),
    });
    Command { line, text: first_line.to_owned(), kind }
}

/// `\gset` and `\aset` are part of the SQL command before them.
fn attach(commands: &mut [Command], store: Store, place: Place<'_>) -> Result<(), ParseError> {
    let detail = match commands.last_mut() {
        Some(Command { kind: CommandKind::Sql(sql), .. }) if sql.store == Store::None => {
            sql.store = store;
            return Ok(());
        }
        // pgbench doesn't name an SQL command that already has a `\gset`.
        Some(Command { kind: CommandKind::Sql(_), .. }) | None => None,
        Some(other) => Some(other.text.as_str().into()),
    };
    let message = "\\gset must follow an SQL command";
    Err(place.error(ParseProblem::Syntax { message, detail, command: None }))
}
