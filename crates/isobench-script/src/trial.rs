//! The form of a script that is tried before measuring: in a transaction that is rolled back.

use crate::parse::parse;
use crate::script::{Branch, Command, CommandKind, Script, Sql};
use crate::sql::Statement;
use crate::symbols::Symbols;

/// The commands around a script that is tried.
const AROUND: &str = "BEGIN;\nROLLBACK;\n";

impl Script {
    /// The script without lasting effects: in one transaction that is rolled back, without its own
    /// block boundaries, pauses, and programs whose output isn't used. Line numbers stay the same.
    ///
    /// `None` if a block starts or ends within a command of several statements, and so can't be
    /// left out. Effects that a rollback doesn't undo, such as advanced sequences, remain.
    pub fn in_rolled_back_transaction(&self, symbols: &mut Symbols) -> Option<Script> {
        let mut around = parse(&self.name, AROUND, symbols).ok()?.commands.into_iter();
        let commands = self.commands.iter().map(harmless).collect::<Option<Vec<Command>>>()?;
        let commands = around.next().into_iter().chain(commands).chain(around).collect();
        Some(Script { name: self.name.clone(), commands })
    }
}

/// The command moved one place down, or a command without effect in its place.
fn harmless(command: &Command) -> Option<Command> {
    let moved = |arm: &Branch| Branch { next: arm.next + 1, end: arm.end + 1, ..arm.clone() };
    let kind = match &command.kind {
        CommandKind::If(arm) => CommandKind::If(moved(arm)),
        CommandKind::Elif(arm) => CommandKind::Elif(moved(arm)),
        CommandKind::Else(arm) => CommandKind::Else(moved(arm)),
        CommandKind::Sleep { .. } | CommandKind::Shell { .. } => CommandKind::Endif,
        CommandKind::Sql(sql) => match ends_of_blocks(sql) {
            0 => command.kind.clone(),
            // Without a condition, `\endif` has no effect.
            _ if sql.statements.len() == 1 => CommandKind::Endif,
            _ => return None,
        },
        other => other.clone(),
    };
    Some(Command { kind, ..command.clone() })
}

/// The number of statements that start or end a block.
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
        let script = "BEGIN;\n\\if 1\nUPDATE t SET v = 1;\n\\endif\n\\sleep 1 s\n\\shell rm x\n\
                      PREPARE TRANSACTION 'a';\nEND;\n";
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
