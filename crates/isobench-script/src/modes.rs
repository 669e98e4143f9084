//! Scripts whose transactions ask for their own modes, the isolation level among them.
//!
//! Not here: which modes (`isobench_isolation`), and what a server makes of them.

use std::fmt;

use crate::script::{Command, CommandKind, Piece, Script, Sql};
use crate::sql::{Statement, may_commit_inside, modes_place, sets_level, statement_end};

/// The reason why modes can't be sent with a script's transactions, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotSetModes {
    /// The line, from 1.
    pub line: u32,
    /// The reason.
    pub why: NoModes,
}

/// Why modes can't be sent with a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoModes {
    /// The script sets its level itself.
    SetsLevel,
    /// A block begins after another statement of the same command.
    LateBegin,
    /// A block begins or ends in one arm of a condition and not in the others.
    OneArm,
    /// A statement outside of a block may commit by itself.
    OwnCommits,
    /// A statement is outside of a block, and the protocol sends one statement in a message.
    OutsideBlock,
}

impl fmt::Display for CannotSetModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            NoModes::SetsLevel => "the script sets its isolation level itself; leave that to --allocation",
            NoModes::LateBegin => {
                "BEGIN comes after another statement of the same command; give it a command of its own"
            }
            NoModes::OneArm => {
                "a block begins or ends in one arm of \\if only, so it isn't known which statements are in it"
            }
            NoModes::OwnCommits => {
                "a procedure or DO outside of a block may commit by itself, so no level can be sent with it; \
                 put it between BEGIN and COMMIT"
            }
            NoModes::OutsideBlock => {
                "a statement outside of a block gets its level in one message, which only --protocol simple can \
                 send; use that, or put the statement between BEGIN and COMMIT"
            }
        })
    }
}

impl std::error::Error for CannotSetModes {}

impl Script {
    /// The same script, in which every transaction asks for these modes, such as
    /// `ISOLATION LEVEL SERIALIZABLE, READ ONLY`: a block with its BEGIN, statements outside of a
    /// block with a `SET TRANSACTION` in front of them in the same message, which makes them one
    /// transaction (PostgreSQL manual, "Multiple Statements in a Simple Query"). `also` is a further
    /// statement that each transaction executes first. `one_message` is false for protocols that can't send
    /// several statements so.
    ///
    /// # Errors
    /// The script sets its level itself, or it isn't clear which statements are in a block.
    pub fn in_modes(
        &self,
        modes: &str,
        also: Option<&str>,
        one_message: bool,
    ) -> Result<Script, CannotSetModes> {
        let asked = Asked { modes, also, one_message };
        let mut blocks = Blocks { in_block: false, arms: Vec::new() };
        let commands = self.commands.iter().map(|command| {
            let no = |why| CannotSetModes { line: command.line, why };
            let kind = match &command.kind {
                CommandKind::Sql(sql) => CommandKind::Sql(blocks.sql(sql, asked).map_err(no)?),
                other => {
                    blocks.follow(other).map_err(no)?;
                    other.clone()
                }
            };
            Ok(Command { kind, ..command.clone() })
        });
        Ok(Script { name: self.name.clone(), commands: commands.collect::<Result<_, _>>()? })
    }
}

/// What transactions ask for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    modes: &'a str,
    /// A statement that each of them executes first, and that returns no rows.
    also: Option<&'a str>,
    /// Several statements can be sent in one message.
    one_message: bool,
}

/// Whether commands are in a block.
struct Blocks {
    in_block: bool,
    /// Of each condition around: whether its first command was in a block, whether the ends of its
    /// arms so far are, and whether it has an arm for every case.
    arms: Vec<Arms>,
}

struct Arms {
    before: bool,
    after: Option<bool>,
    has_else: bool,
}

impl Blocks {
    fn follow(&mut self, kind: &CommandKind) -> Result<(), NoModes> {
        match kind {
            CommandKind::If(_) => {
                self.arms.push(Arms { before: self.in_block, after: None, has_else: false });
            }
            CommandKind::Elif(_) | CommandKind::Else(_) => {
                let Some(arms) = self.arms.last_mut() else { return Ok(()) };
                arms.end(self.in_block)?;
                arms.has_else = matches!(kind, CommandKind::Else(_));
                self.in_block = arms.before;
            }
            CommandKind::Endif => {
                let Some(mut arms) = self.arms.pop() else { return Ok(()) };
                arms.end(self.in_block)?;
                if !arms.has_else {
                    arms.end(arms.before)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn sql(&mut self, sql: &Sql, asked: Asked<'_>) -> Result<Sql, NoModes> {
        let Asked { modes, also, one_message } = asked;
        if sets_level(&sql.as_written()) {
            return Err(NoModes::SetsLevel);
        }
        let began_outside = !self.in_block;
        for (place, statement) in sql.statements.iter().enumerate() {
            match statement {
                Statement::Begin if place > 0 && !self.in_block => return Err(NoModes::LateBegin),
                Statement::Begin => self.in_block = true,
                Statement::Commit | Statement::Rollback => self.in_block = false,
                Statement::Release | Statement::Copy | Statement::Modes | Statement::Other => {}
            }
        }
        match sql.statements.first() {
            Some(Statement::Begin) if began_outside => {
                let place = modes_place(&sql.parameterized);
                let Some(also) = also else { return Ok(inserted(sql, place, &format!(" {modes}"))) };
                if !one_message {
                    return Err(NoModes::OutsideBlock);
                }
                let end = statement_end(&sql.parameterized);
                let mut sql = inserted(sql, end, &format!("; {also}"));
                sql.statements.insert(1, Statement::Modes);
                sql.observed.iter_mut().for_each(|observed| observed.statement += 1);
                Ok(inserted(&sql, place, &format!(" {modes}")))
            }
            Some(Statement::Commit | Statement::Rollback) | None => Ok(sql.clone()),
            Some(_) if began_outside && sql.takes_inputs() => Ok(sql.clone()),
            Some(_) if began_outside => {
                if may_commit_inside(&sql.parameterized) {
                    return Err(NoModes::OwnCommits);
                }
                if !one_message {
                    return Err(NoModes::OutsideBlock);
                }
                let also = also.map(|also| format!("{also}; "));
                let front = format!("SET TRANSACTION {modes}; {}", also.as_deref().unwrap_or_default());
                let mut sql = inserted(sql, 0, &front);
                let more = 1 + u32::from(also.is_some());
                sql.statements.splice(0..0, std::iter::repeat_n(Statement::Modes, more as usize));
                sql.observed.iter_mut().for_each(|observed| observed.statement += more);
                Ok(sql)
            }
            Some(_) => Ok(sql.clone()),
        }
    }
}

impl Arms {
    /// Notes whether the end of an arm is in a block.
    fn end(&mut self, in_block: bool) -> Result<(), NoModes> {
        match self.after.replace(in_block) {
            Some(other) if other != in_block => Err(NoModes::OneArm),
            _ => Ok(()),
        }
    }
}

/// The command with more text at a place before its first variable.
fn inserted(sql: &Sql, place: usize, text: &str) -> Sql {
    let mut sql = sql.clone();
    sql.parameterized.insert_str(place, text);
    match sql.pieces.first_mut() {
        Some(Piece::Text(first)) => first.insert_str(place, text),
        Some(Piece::Variable { .. }) | None => sql.pieces.insert(0, Piece::Text(text.to_owned())),
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::symbols::Symbols;

    fn in_modes(text: &str, one_message: bool) -> Result<Vec<String>, CannotSetModes> {
        let script = parse("own.sql", text, &mut Symbols::new()).unwrap();
        let changed = script.in_modes("ISOLATION LEVEL SERIALIZABLE", None, one_message)?;
        Ok(changed.sql().map(Sql::as_written).collect())
    }

    #[test]
    fn blocks_ask_with_their_begin_and_lone_statements_in_their_message() {
        for (text, sent) in [
            ("BEGIN;", "BEGIN ISOLATION LEVEL SERIALIZABLE;"),
            ("/* a */ begin work;", "/* a */ begin work ISOLATION LEVEL SERIALIZABLE;"),
            ("start transaction read only;", "start transaction ISOLATION LEVEL SERIALIZABLE read only;"),
            (
                "BEGIN\\; UPDATE t SET v = :v\\; COMMIT;",
                "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE t SET v = :v; COMMIT;",
            ),
            ("SELECT :v;", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT :v;"),
            (
                "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING;",
                "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING;",
            ),
            (":statement", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; :statement"),
        ] {
            assert_eq!(in_modes(text, true).unwrap(), [sent], "{text}");
        }
        let script = "BEGIN;\nSELECT 1;\n\\if 1\nEND;\n\\else\nROLLBACK;\n\\endif\nSELECT 2;\n";
        let sent = in_modes(script, true).unwrap();
        assert_eq!(sent[1..4], ["SELECT 1;", "END;", "ROLLBACK;"]);
        assert_eq!(sent[4], "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT 2;");
        assert_eq!(in_modes("BEGIN;\nBEGIN;\nEND;", false).unwrap()[1], "BEGIN;");
    }

    #[test]
    fn the_parameters_keep_their_numbers() {
        let script = parse("own.sql", "UPDATE t SET v = :v;", &mut Symbols::new()).unwrap();
        let changed = script.in_modes("ISOLATION LEVEL SERIALIZABLE", None, true).unwrap();
        let sql = changed.sql().next().unwrap();
        assert_eq!(sql.parameterized, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; UPDATE t SET v = $1;");
        assert_eq!(sql.statements, [Statement::Modes, Statement::Other]);
    }

    #[test]
    fn a_further_statement_follows_the_modes() {
        let also = Some("SET LOCAL search_path = a");
        for (text, sent, statements) in [
            ("BEGIN;", "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL search_path = a;", 2),
            (
                "start transaction /* ; */ read only;",
                "start transaction ISOLATION LEVEL SERIALIZABLE /* ; */ read only; SET LOCAL search_path = a;",
                2,
            ),
            (
                "BEGIN\\; UPDATE t SET v = :v\\; COMMIT;",
                "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL search_path = a; UPDATE t SET v = :v; COMMIT;",
                4,
            ),
            (
                "SELECT :v;",
                "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SET LOCAL search_path = a; SELECT :v;",
                3,
            ),
        ] {
            let script = parse("own.sql", text, &mut Symbols::new()).unwrap();
            let changed = script.in_modes("ISOLATION LEVEL SERIALIZABLE", also, true).unwrap();
            let sql = changed.sql().next().unwrap();
            assert_eq!((sql.as_written().as_str(), sql.statements.len()), (sent, statements), "{text}");
        }
        let script = parse("own.sql", "BEGIN;", &mut Symbols::new()).unwrap();
        assert!(script.in_modes("ISOLATION LEVEL SERIALIZABLE", also, false).is_err());
    }

    #[test]
    fn what_is_in_doubt_is_refused_with_its_line() {
        for (text, line, why) in [
            ("SELECT 1;\nSET TRANSACTION ISOLATION LEVEL SERIALIZABLE;", 2, NoModes::SetsLevel),
            ("BEGIN ISOLATION LEVEL READ COMMITTED;", 1, NoModes::SetsLevel),
            ("SELECT 1\\; BEGIN;", 1, NoModes::LateBegin),
            ("\\if 1\nBEGIN;\n\\endif\nSELECT 1;", 3, NoModes::OneArm),
            ("BEGIN;\n\\if 1\nEND;\n\\else\nSELECT 1;\n\\endif", 6, NoModes::OneArm),
            ("\n\nCALL p();", 3, NoModes::OwnCommits),
            ("do $$BEGIN END$$;", 1, NoModes::OwnCommits),
        ] {
            assert_eq!(in_modes(text, true), Err(CannotSetModes { line, why }), "{text}");
        }
        let outside = CannotSetModes { line: 1, why: NoModes::OutsideBlock };
        assert_eq!(in_modes("SELECT 1;", false), Err(outside));
    }
}
