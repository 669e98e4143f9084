//! Scripts whose transactions leave a row with the attempt's number, so that the data tell which
//! attempts were committed.
//!
//! Not here: the table (`isobench-comparison`), and the number (`isobench-runner`).

use crate::annotation::Annotated;
use crate::parse::parse;
use crate::script::{Branch, Command, CommandKind, Script};
use crate::sql::Statement;
use crate::symbols::Symbols;

/// The commands around statements that make a transaction of their own.
const AROUND: &str = "BEGIN;\nEND;";

/// The reason why the transactions of a script can't leave a row each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotLeave {
    /// Some of its runs are no transaction, or several.
    NotOneTransaction,
    /// A function or procedure in it may commit by itself, or repeat the transaction.
    Inside,
    /// The statement isn't one command.
    Statement,
}

impl std::fmt::Display for CannotLeave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CannotLeave::NotOneTransaction => "a run of the script isn't exactly one transaction",
            CannotLeave::Inside => "the transaction is repeated inside the server",
            CannotLeave::Statement => "the statement that is to leave the row can't be parsed",
        })
    }
}

impl std::error::Error for CannotLeave {}

impl Script {
    /// The same script, in which every transaction executes `statement` just before its COMMIT. A
    /// statement outside of a block gets one. What it adds has the line number of the COMMIT.
    ///
    /// # Errors
    /// A run of the script isn't exactly one transaction.
    pub fn leaving(&self, statement: &str, symbols: &mut Symbols) -> Result<Script, CannotLeave> {
        if self.annotations().any(|line| matches!(line.what, Annotated::Inside { .. })) {
            return Err(CannotLeave::Inside);
        }
        let mut one = |text: &str| {
            let script = parse(&self.name, text, symbols).map_err(|_| CannotLeave::Statement)?;
            Ok::<_, CannotLeave>(script.commands)
        };
        let left = one(statement)?;
        let bounds: Vec<(usize, Vec<Statement>)> = self
            .commands
            .iter()
            .enumerate()
            .filter_map(|(index, command)| match &command.kind {
                CommandKind::Sql(sql) => {
                    let bounds = sql
                        .statements
                        .iter()
                        .copied()
                        .filter(|statement| is_bound(*statement))
                        .collect::<Vec<_>>();
                    (!bounds.is_empty()).then_some((index, bounds))
                }
                _ => None,
            })
            .collect();
        let commands = match bounds.as_slice() {
            [] if self.sql().count() == 1 && self.sql().all(|sql| sql.statements.len() == 1) => {
                let around = one(AROUND)?;
                let [begin, end] = <[Command; 2]>::try_from(around).map_err(|_| CannotLeave::Statement)?;
                let inside = self.commands.iter().map(|command| moved(command, 0, 1));
                if self.commands.iter().any(is_branch) {
                    return Err(CannotLeave::NotOneTransaction);
                }
                let line = self.commands.last().map_or(1, |last| last.line);
                let (begin, end) = (Command { line: 1, ..begin }, Command { line, ..end });
                let left = left.into_iter().map(|command| Command { line, ..command });
                std::iter::once(begin).chain(inside).chain(left).chain([end]).collect()
            }
            [(begin, first), (commit, last)]
                if **first == [Statement::Begin]
                    && **last == [Statement::Commit]
                    && self.starts(*begin, Statement::Begin)
                    && self.ends(*commit, Statement::Commit)
                    && self.depth_at(*begin) == 0
                    && self.depth_at(*commit) == 0
                    && self.commands[..*begin]
                        .iter()
                        .chain(&self.commands[commit + 1..])
                        .all(|it| !is_sql(it)) =>
            {
                let line = self.commands[*commit].line;
                let by = left.len();
                let mut commands: Vec<Command> =
                    self.commands.iter().map(|command| moved(command, *commit, by)).collect();
                let left = left.into_iter().map(|command| Command { line, ..command });
                commands.splice(*commit..*commit, left);
                commands
            }
            _ => return Err(CannotLeave::NotOneTransaction),
        };
        Ok(Script { name: self.name.clone(), commands })
    }

    fn starts(&self, index: usize, with: Statement) -> bool {
        matches!(&self.commands[index].kind, CommandKind::Sql(sql) if sql.statements.first() == Some(&with))
    }

    fn ends(&self, index: usize, with: Statement) -> bool {
        matches!(&self.commands[index].kind, CommandKind::Sql(sql) if sql.statements.last() == Some(&with))
    }

    /// The number of branches around a command.
    fn depth_at(&self, index: usize) -> usize {
        self.commands[..index].iter().fold(0, |depth: usize, command| match command.kind {
            CommandKind::If(_) => depth + 1,
            CommandKind::Endif => depth.saturating_sub(1),
            _ => depth,
        })
    }
}

fn is_bound(statement: Statement) -> bool {
    matches!(statement, Statement::Begin | Statement::Commit | Statement::Rollback)
}

fn is_sql(command: &Command) -> bool {
    matches!(command.kind, CommandKind::Sql(_))
}

fn is_branch(command: &Command) -> bool {
    matches!(command.kind, CommandKind::If(_) | CommandKind::Elif(_) | CommandKind::Else(_))
}

/// The command where everything from `from` on has moved `by` places down.
fn moved(command: &Command, from: usize, by: usize) -> Command {
    let place = |place: usize| if place >= from { place + by } else { place };
    let arm = |arm: &Branch| Branch { next: place(arm.next), end: place(arm.end), ..arm.clone() };
    let kind = match &command.kind {
        CommandKind::If(branch) => CommandKind::If(arm(branch)),
        CommandKind::Elif(branch) => CommandKind::Elif(arm(branch)),
        CommandKind::Else(branch) => CommandKind::Else(arm(branch)),
        other => other.clone(),
    };
    Command { kind, ..command.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> Result<Vec<String>, CannotLeave> {
        let mut symbols = Symbols::new();
        let script = parse("own.sql", text, &mut symbols).unwrap();
        let script = script.leaving("INSERT INTO a VALUES (:attempt_id);", &mut symbols)?;
        assert!(symbols.lookup("attempt_id").is_some());
        let said = |command: &Command| match &command.kind {
            CommandKind::Sql(sql) => format!("{} {}", command.line, sql.parameterized),
            CommandKind::If(arm) => format!("if {} {}", arm.next, arm.end),
            other => other.name().to_owned(),
        };
        Ok(script.commands.iter().map(said).collect())
    }

    #[test]
    fn a_block_leaves_its_row_before_its_commit() {
        assert_eq!(
            left("\\set a 1\nBEGIN;\n\\if :a\nUPDATE t SET v = 1;\n\\endif\nEND;\n\\sleep 1\n").unwrap(),
            [
                "set",
                "2 BEGIN;",
                "if 4 4",
                "4 UPDATE t SET v = 1;",
                "endif",
                "6 INSERT INTO a VALUES ($1);",
                "6 END;",
                "sleep"
            ]
        );
    }

    #[test]
    fn a_branch_that_ends_at_the_commit_ends_at_the_row() {
        let mut symbols = Symbols::new();
        let text =
            "BEGIN;\n\\if 1\nSELECT 1;\n\\else\nSELECT 2;\n\\endif\nCOMMIT;\n\\if 1\n\\set b 1\n\\endif\n";
        let script = parse("own.sql", text, &mut symbols).unwrap();
        let left = script.leaving("SELECT 9;", &mut symbols).unwrap();
        let arms = |script: &Script| -> Vec<(usize, usize)> {
            let arm = |command: &Command| match &command.kind {
                CommandKind::If(arm) | CommandKind::Elif(arm) | CommandKind::Else(arm) => {
                    Some((arm.next, arm.end))
                }
                _ => None,
            };
            script.commands.iter().filter_map(arm).collect()
        };
        let names: Vec<&str> = left.commands.iter().map(|command| command.kind.name()).collect();
        for (next, end) in arms(&left) {
            assert!(["else", "endif"].contains(&names[next]), "{next}: {names:?}");
            assert_eq!(names[end], "endif", "{names:?}");
        }
        assert_eq!(arms(&left).len(), arms(&script).len());
    }

    #[test]
    fn a_statement_of_its_own_gets_a_block() {
        assert_eq!(
            left("\\set a 1\nINSERT INTO t VALUES (:a);\n").unwrap(),
            ["1 BEGIN;", "set", "2 INSERT INTO t VALUES ($1);", "2 INSERT INTO a VALUES ($1);", "2 END;"]
        );
    }

    #[test]
    fn what_isnt_one_transaction_is_refused() {
        for text in [
            "UPDATE t SET v = 1;\nUPDATE t SET v = 2;",
            "BEGIN;\nEND;\nBEGIN;\nEND;",
            "BEGIN;\nSELECT 1;\n\\if 1\nEND;\n\\else\nROLLBACK;\n\\endif",
            "SELECT 1\\; BEGIN;\nEND;",
            "BEGIN;\nEND\\; SELECT 1;",
            "UPDATE t SET v = 1;\nBEGIN;\nSELECT 1;\nEND;",
            "\\if 1\nUPDATE t SET v = 1;\n\\endif",
            "BEGIN;\nSELECT 1;\nROLLBACK;",
        ] {
            assert_eq!(left(text), Err(CannotLeave::NotOneTransaction), "{text}");
        }
    }
}
