//! A script as it is tried before anything is measured: in a transaction that is rolled back.

use crate::parse::parse;
use crate::script::{Branch, Command, CommandKind, Script, Sql, Statement};
use crate::symbols::Symbols;

/// What stands around a script that is tried.
const AROUND: &str = "BEGIN;\nROLLBACK;\n";

impl Script {
    /// The same script without anything lasting: within one transaction that is rolled back,
    /// without the ends of its own blocks, pauses, and programs that are only called for what they
    /// do. Lines stay as they are.
    ///
    /// `None` if a block begins or ends in the middle of a command, so that it can't be left out.
    /// What transactions can't undo, such as the numbers of sequences, is done.
    pub fn in_rolled_back_transaction(&self, symbols: &mut Symbols) -> Option<Script> {
        let mut around = parse(&self.name, AROUND, symbols).ok()?.commands.into_iter();
        let commands = self.commands.iter().map(harmless).collect::<Option<Vec<Command>>>()?;
        let commands = around.next().into_iter().chain(commands).chain(around).collect();
        Some(Script { name: self.name.clone(), commands })
    }
}

/// The same command, one place later, or one that does nothing.
fn harmless(command: &Command) -> Option<Command> {
    let moved = |arm: &Branch| Branch { next: arm.next + 1, end: arm.end + 1, ..arm.clone() };
    let kind = match &command.kind {
        CommandKind::If(arm) => CommandKind::If(moved(arm)),
        CommandKind::Elif(arm) => CommandKind::Elif(moved(arm)),
        CommandKind::Else(arm) => CommandKind::Else(moved(arm)),
        CommandKind::Sleep { .. } | CommandKind::Shell { .. } => CommandKind::Endif,
        CommandKind::Sql(sql) => match ends_of_blocks(sql) {
            0 => command.kind.clone(),
            // Where there is no condition, its end does nothing.
            _ if sql.statements.len() == 1 => CommandKind::Endif,
            _ => return None,
        },
        other => other.clone(),
    };
    Some(Command { kind, ..command.clone() })
}

/// How many of its statements begin or end a block.
fn ends_of_blocks(sql: &Sql) -> usize {
    let ends = |kind: &&Statement| matches!(kind, Statement::Begin | Statement::Commit | Statement::Rollback);
    sql.statements.iter().filter(ends).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(text: &str) -> Option<Vec<String>> {
        let mut symbols = Symbols::new();
        let script = parse("own.sql", text, &mut symbols).unwrap();
        let tried = script.in_rolled_back_transaction(&mut symbols)?;
        let said = |command: &Command| match &command.kind {
            CommandKind::Sql(sql) => sql.parameterized.clone(),
            CommandKind::If(arm) => format!("if {} {}", arm.next, arm.end),
            other => other.name().to_owned(),
        };
        Some(tried.commands.iter().map(said).collect())
    }

    #[test]
    fn blocks_pauses_and_programs_are_left_out() {
        let script = "BEGIN;\n\\if 1\nUPDATE t SET v = 1;\n\\endif\n\\sleep 1 s\n\\shell rm x\nPREPARE TRANSACTION 'a';\nEND;\n";
        let told = [
            "BEGIN;",
            "endif",
            "if 4 4",
            "UPDATE t SET v = 1;",
            "endif",
            "endif",
            "endif",
            "endif",
            "endif",
            "ROLLBACK;",
        ];
        assert_eq!(tried(script).unwrap(), told);
        assert_eq!(tried("BEGIN\\; UPDATE t SET v = 1\\; COMMIT;\n"), None);
        assert_eq!(tried("SELECT 1\\; SELECT 2;\n").unwrap().len(), 3);
    }
}
