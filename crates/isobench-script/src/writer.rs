//! Scripts written by a program. SQL from elsewhere stays SQL in them: the writer reads back what it has
//! written, and refuses a text that isn't read as exactly one SQL command.
//!
//! It can write comments, SQL, `\gset`, `\set` and `\sleep`, and nothing else.

use crate::annotation::Annotated;
use crate::parse::parse;
use crate::recorded::RECORDED;
use crate::script::{Command, CommandKind, Piece, Script, Store};
use crate::sql::{End, Scanner, substitute};
use crate::symbols::Symbols;

/// A part of an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Part<'a> {
    /// Text of the program's own, in which `:name` is a variable.
    Own(String),
    /// Text from elsewhere, in which nothing is a variable.
    Foreign(&'a str),
}

/// Why a text can't be written into a script as one SQL command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotOneCommand {
    /// It has a backslash where a script has meta-commands.
    Backslash,
    /// It has a character that no SQL has.
    Zero,
    /// A part of it would be a variable.
    Variable,
    /// It is empty, several commands, or doesn't end.
    Extent,
}

impl std::fmt::Display for NotOneCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NotOneCommand::Backslash => {
                "its SQL has a backslash outside of quotation marks, which a script takes for a meta-command"
            }
            NotOneCommand::Zero => "its SQL has a zero byte",
            NotOneCommand::Variable => {
                "its SQL has a colon before a word, which a script takes for a variable"
            }
            NotOneCommand::Extent => "a script doesn't read its SQL as one command",
        })
    }
}

impl std::error::Error for NotOneCommand {}

/// A command that was written, as it has to be read.
#[derive(Debug, PartialEq)]
enum Written {
    Sql { text: String, store: Store, computed: bool },
    Meta(String),
}

/// What follows a command where it is tried: two statements, so that neither an open quotation nor an
/// open parenthesis goes unnoticed.
const AFTER: &str = "SELECT 1;\nSELECT 1;\n";

/// A script in the making, with the mark of recorded ones.
#[derive(Debug)]
pub struct Writer {
    text: String,
    written: Vec<Written>,
    computed: bool,
}

impl Writer {
    /// An empty script. `about` follows the mark on its first line.
    pub fn new(about: &str) -> Writer {
        Writer { text: format!("{RECORDED}{}\n", line(about)), written: Vec::new(), computed: false }
    }

    /// Says of the next command that what it writes may be computed outside of the script.
    pub fn computed(&mut self) {
        self.computed = true;
    }

    /// `\set`.
    pub fn set(&mut self, name: &str, expression: &str) {
        self.meta(line(&format!("\\set {name} {expression}")));
    }

    /// `\sleep`.
    pub fn sleep(&mut self, microseconds: u64) {
        self.meta(format!("\\sleep {microseconds} us"));
    }

    fn meta(&mut self, text: String) {
        self.text.extend([&text, "\n"]);
        self.written.push(Written::Meta(text));
    }

    /// An SQL command, without its semicolon; `gset` is the prefix of the variables that take its result.
    ///
    /// # Errors
    /// It wouldn't be read as this one command.
    pub fn sql(&mut self, parts: &[Part<'_>], gset: Option<&str>) -> Result<(), NotOneCommand> {
        let (mut text, mut variables) = (String::new(), Vec::new());
        for part in parts {
            match part {
                Part::Own(own) => {
                    variables.extend(variables_of(own));
                    text.push_str(own);
                }
                Part::Foreign(foreign) => text.push_str(foreign),
            }
        }
        if text.contains('\0') {
            return Err(NotOneCommand::Zero);
        }
        let (ending, store) = match gset {
            Some("") => (" \\gset\n".to_owned(), Store::Gset { prefix: String::new() }),
            Some(prefix) => (format!(" \\gset {prefix}\n"), Store::Gset { prefix: prefix.to_owned() }),
            None => (";\n".to_owned(), Store::None),
        };
        let sent = if gset.is_none() { format!("{text};") } else { format!("{text} ") };
        let expected = Written::Sql { text: sent, store, computed: self.computed };
        let comment = if self.computed { "--@ computed\n" } else { "" };
        let command = format!("{comment}{text}{ending}");
        require_one(&command, &expected, &variables)?;
        self.text.push_str(&command);
        self.written.push(expected);
        self.computed = false;
        Ok(())
    }

    /// The script, which has exactly the commands that were written.
    ///
    /// # Errors
    /// It hasn't.
    pub fn finish(self) -> Result<String, NotOneCommand> {
        let read = parse("script", &self.text, &mut Symbols::new()).map_err(|_| NotOneCommand::Extent)?;
        let back: Option<Vec<Written>> = read.commands.iter().map(read_back).collect();
        if back.as_ref() == Some(&self.written) { Ok(self.text) } else { Err(NotOneCommand::Extent) }
    }
}

/// A text as one line.
fn line(text: &str) -> String {
    let mut one = String::new();
    for letter in text.chars() {
        one.push(if letter.is_control() { ' ' } else { letter });
    }
    one
}

/// The names of the variables of a text, in order.
fn variables_of(text: &str) -> Vec<String> {
    written_variables(&substitute(text, &mut Symbols::new()).pieces)
}

fn written_variables(pieces: &[Piece]) -> Vec<String> {
    let variable = |piece: &Piece| match piece {
        Piece::Variable { written, .. } => Some(written.clone()),
        Piece::Text(_) => None,
    };
    pieces.iter().filter_map(variable).collect()
}

/// Makes sure that a command is read as expected, with these variables only, and that nothing of what
/// follows it is taken for a part of it.
fn require_one(command: &str, expected: &Written, variables: &[String]) -> Result<(), NotOneCommand> {
    let tried = format!("{command}{AFTER}");
    let why = || if leaves_sql(expected) { NotOneCommand::Backslash } else { NotOneCommand::Extent };
    let read: Script = parse("script", &tried, &mut Symbols::new()).map_err(|_| why())?;
    let [first, after @ ..] = read.commands.as_slice() else { return Err(why()) };
    let follows = |command: &Command| match &command.kind {
        CommandKind::Sql(sql) => sql.as_written() == "SELECT 1;" && sql.store == Store::None,
        _ => false,
    };
    if after.len() != 2 || !after.iter().all(follows) || read_back(first).as_ref() != Some(expected) {
        return Err(why());
    }
    match &first.kind {
        CommandKind::Sql(sql) if written_variables(&sql.pieces) == variables => Ok(()),
        _ => Err(NotOneCommand::Variable),
    }
}

/// True if a backslash in the text of a command isn't part of the SQL.
fn leaves_sql(expected: &Written) -> bool {
    let Written::Sql { text, .. } = expected else { return false };
    let (scanned, end) = Scanner::new(text).command();
    end == End::Backslash || text.contains('\\') && !scanned.text.contains('\\')
}

/// A command as it is read, if it is of a kind that can be written.
fn read_back(command: &Command) -> Option<Written> {
    match &command.kind {
        CommandKind::Sql(sql) => {
            let computed = match sql.annotations.as_slice() {
                [] => false,
                [line] if line.what == Annotated::Computed => true,
                _ => return None,
            };
            Some(Written::Sql { text: sql.as_written(), store: sql.store.clone(), computed })
        }
        CommandKind::Set { .. } | CommandKind::Sleep { .. } => Some(Written::Meta(command.text.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a text from elsewhere between a query that takes inputs and a COMMIT.
    fn written(foreign: &str, gset: Option<&str>) -> Result<String, NotOneCommand> {
        let mut writer = Writer::new(" once");
        writer.set("i_row", "random(1, 3)");
        writer.sql(&[Part::Own("SELECT i_id FROM inputs WHERE i_row = :i_row".to_owned())], Some(""))?;
        writer.computed();
        writer.sql(&[Part::Foreign(foreign), Part::Own(" :i_id".to_owned())], gset)?;
        writer.sleep(200);
        writer.sql(&[Part::Own("COMMIT".to_owned())], None)?;
        writer.finish()
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(
            written("SELECT E'\\\\', '\\shell id', $a$\n\\! id;$a$ /* \\set */ =", Some("r1_")).unwrap(),
            "--@ recorded once\n\\set i_row random(1, 3)\nSELECT i_id FROM inputs WHERE i_row = :i_row \\gset\n\
             --@ computed\nSELECT E'\\\\', '\\shell id', $a$\n\\! id;$a$ /* \\set */ = :i_id \\gset r1_\n\
             \\sleep 200 us\nCOMMIT;\n"
        );
    }

    #[test]
    fn what_leaves_the_command_is_refused() {
        use NotOneCommand::{Backslash, Extent, Variable, Zero};
        for (text, why) in [
            ("SELECT 1 \\shell id", Backslash),
            ("SELECT 1 \\ shell id", Backslash),
            ("SELECT 1\n\\shell id\n", Backslash),
            ("SELECT 1\r\\setshell x id\n", Backslash),
            ("SELECT 1\u{2028}\\! id", Backslash),
            ("SELECT 1 \\gset x\n", Backslash),
            ("SELECT 1 \\\n", Backslash),
            ("SELECT 1 \\; SELECT 2", Backslash),
            ("SELECT 'a' \\: 'b'", Backslash),
            ("SELECT 'a\\' \\shell id '", Backslash),
            ("SELECT 1; SELECT 2", Extent),
            ("SELECT 1;", Extent),
            ("SELECT 'a", Extent),
            ("SELECT \"a", Extent),
            ("SELECT (1", Extent),
            ("SELECT 1 /* ", Extent),
            ("SELECT 1 -- ", Extent),
            ("SELECT $a$ 1", Extent),
            ("--@ inside\nSELECT 1", Extent),
            ("--@ recorded\nSELECT 1", Extent),
            (" SELECT 1", Extent),
            ("", Extent),
            ("SELECT :x", Variable),
            ("SELECT ':x'", Variable),
            ("SELECT :é", Variable),
            ("SELECT :{?x}", Extent),
            ("SELECT '\0'", Zero),
        ] {
            for gset in [None, Some("r1_")] {
                let refused = written(text, gset).expect_err(text);
                // Where the end of a command isn't seen, two reasons are right.
                let alike = refused == why || (why, refused) == (Extent, Variable);
                assert!(alike, "{text:?} {gset:?}: {refused:?}");
            }
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                "\n\\shell id\n",
                "\\setshell x id",
                "\\!",
                "\\",
                "\\;",
                "\\gset x\n",
                "'",
                "''",
                "E'",
                "\"",
                "$$",
                "$a$",
                "/*",
                "*/",
                "--",
                "--@ recorded",
                "--@ computed",
                "\n",
                "\r",
                "\u{2028}",
                "\u{a0}",
                ";",
                "(",
                ")",
                ":x",
                "::int",
                ":{?x}",
                "U&'",
                "SELECT 1",
                "BEGIN",
                "END",
                "CREATE FUNCTION f() BEGIN ATOMIC",
                "SET standard_conforming_strings = off",
                " ",
                "x",
                "1",
                "é",
            ])
            .prop_map(str::to_owned),
            "\\PC{0,3}",
        ];
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn a_hostile_text_is_one_command_or_refused(text in hostile(), stores in any::<bool>()) {
            if let Ok(script) = written(&text, stores.then_some("r1_")) {
                let read = parse("a.sql", &script, &mut Symbols::new()).unwrap();
                let names: Vec<&str> = read.commands.iter().map(|command| command.kind.name()).collect();
                prop_assert_eq!(names, ["set", "SQL", "SQL", "sleep", "SQL"]);
                let CommandKind::Sql(sql) = &read.commands[2].kind else { unreachable!("it is SQL") };
                prop_assert!(sql.as_written().starts_with(&format!("{text} :i_id")), "{}", script);
                prop_assert_eq!(sql.params.len(), 1);
            }
        }
    }
}
