//! Parses whole scripts: alternates between SQL and meta-commands, and puts the commands together.
//! `line` splits a meta-command into words, `meta` reads it, `conditions` resolves the jumps.

mod conditions;
mod line;
mod meta;

use crate::error::{ParseError, ParseProblem};
use crate::script::{Command, CommandKind, Script, Sql, Store};
use crate::sql::{End, Scanned, Scanner, classify, substitute};
use crate::symbols::Symbols;
use line::Line;
use meta::Meta;

/// Parses a script.
///
/// `name` appears in messages and reports. Variables are interned in `symbols`, which all scripts of a run share.
///
/// # Errors
/// What pgbench refuses, with its message: see [`ParseError`].
pub fn parse(name: &str, text: &str, symbols: &mut Symbols) -> Result<Script, ParseError> {
    parse_as(Dialect::default(), name, text, symbols)
}

/// What the language has, which differs by the version of pgbench.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Dialect {
    /// `\syncpipeline` is a meta-command, as it is since pgbench 17.
    pub syncpipeline: bool,
}

impl Default for Dialect {
    /// All there is.
    fn default() -> Self {
        Self { syncpipeline: true }
    }
}

impl Dialect {
    fn knows(self, meta_command: &str) -> bool {
        self.syncpipeline || meta_command != "syncpipeline"
    }
}

/// Parses a script in the language of some version; see [`parse`].
///
/// # Errors
/// What pgbench of this version refuses.
pub fn parse_as(
    dialect: Dialect,
    name: &str,
    text: &str,
    symbols: &mut Symbols,
) -> Result<Script, ParseError> {
    let mut lines = LineCounter { text, at: 0, line: 1 };
    let mut scanner = Scanner::new(text);
    let mut commands: Vec<Command> = Vec::new();
    loop {
        let (found, end) = scanner.command();
        if !found.text.is_empty() {
            let line = lines.line_of(found.start);
            commands.push(sql_command(&found, line, symbols));
        }
        match end {
            End::Semicolon => {}
            End::Input => break,
            End::Backslash => {
                let meta_line = Line::at(text, scanner.at - 1);
                let line = lines.line_of(scanner.at - 1);
                scanner.at = meta_line.after;
                let place = Place { file: name, line };
                match meta::parse_meta(&meta_line, place, dialect, symbols)? {
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

/// Where a command stands, for errors.
#[derive(Copy, Clone)]
struct Place<'a> {
    file: &'a str,
    line: u32,
}

impl Place<'_> {
    fn error(self, problem: ParseProblem) -> ParseError {
        ParseError {
            file: self.file.to_owned(),
            line: self.line,
            column: None,
            source: String::new(),
            problem,
        }
    }
}

/// Counts lines up to ever later places, so that a script is read once.
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

fn sql_command(scanned: &Scanned, line: u32, symbols: &mut Symbols) -> Command {
    let text = scanned.text.as_str();
    let first_line = text.split(['\n', '\r']).next().unwrap_or(text);
    let mut statements = Vec::with_capacity(scanned.breaks.len() + 1);
    let mut from = 0;
    for end in scanned.breaks.iter().copied().chain([text.len()]) {
        statements.extend(classify(&text[from..end]));
        from = end;
    }
    let found = substitute(text, symbols);
    let kind = CommandKind::Sql(Sql {
        pieces: found.pieces,
        parameterized: found.parameterized,
        params: found.params,
        statements,
        store: Store::None,
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
        // pgbench doesn't name an SQL command that has its `\gset` already.
        Some(Command { kind: CommandKind::Sql(_), .. }) | None => None,
        Some(other) => Some(other.text.as_str().into()),
    };
    let message = "\\gset must follow an SQL command";
    Err(place.error(ParseProblem::Syntax { message, detail, command: None }))
}
