//! Matches `\if`, `\elif`, `\else` and `\endif`, and resolves their jumps.

use crate::error::{ParseError, ParseProblem};
use crate::script::{Branch, Command, CommandKind};

/// An open conditional block: the indices of its arms.
struct Block {
    arms: Vec<usize>,
    has_else: bool,
}

pub(super) fn resolve(commands: &mut [Command], file: &str) -> Result<(), ParseError> {
    let mut open: Vec<Block> = Vec::new();
    for index in 0..commands.len() {
        let problem = match (&commands[index].kind, open.last_mut()) {
            (CommandKind::If(_), _) => {
                open.push(Block { arms: vec![index], has_else: false });
                None
            }
            (CommandKind::Elif(_), None) => Some("\\elif without matching \\if"),
            (CommandKind::Elif(_), Some(Block { has_else: true, .. })) => Some("\\elif after \\else"),
            (CommandKind::Else(_), None) => Some("\\else without matching \\if"),
            (CommandKind::Else(_), Some(Block { has_else: true, .. })) => Some("\\else after \\else"),
            (CommandKind::Elif(_), Some(block)) => {
                block.arms.push(index);
                None
            }
            (CommandKind::Else(_), Some(block)) => {
                block.arms.push(index);
                block.has_else = true;
                None
            }
            (CommandKind::Endif, _) => match open.pop() {
                None => Some("\\endif without matching \\if"),
                Some(block) => {
                    close(commands, &block.arms, index);
                    None
                }
            },
            _ => None,
        };
        if let Some(message) = problem {
            return Err(error(file, commands[index].line, index + 1, message));
        }
    }
    match open.last().and_then(|block| block.arms.first()) {
        Some(first) => {
            let message = "\\if without matching \\endif";
            Err(error(file, commands[*first].line, commands.len() + 1, message))
        }
        None => Ok(()),
    }
}

/// Links the arms of a closed block: each to the next one, and all to the end.
fn close(commands: &mut [Command], arms: &[usize], end: usize) {
    for (position, arm) in arms.iter().enumerate() {
        let target = arms.get(position + 1).copied().unwrap_or(end);
        if let CommandKind::If(branch) | CommandKind::Elif(branch) | CommandKind::Else(branch) =
            &mut commands[*arm].kind
        {
            *branch = Branch { cond: branch.cond.take(), next: target, end };
        }
    }
}

fn error(file: &str, line: u32, number: usize, message: &'static str) -> ParseError {
    ParseError {
        file: file.to_owned(),
        line,
        column: None,
        source: String::new(),
        problem: ParseProblem::Condition { number, message },
    }
}
