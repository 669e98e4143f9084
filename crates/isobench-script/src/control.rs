//! Where a client goes on after `\if`, `\elif`, `\else` and `\endif`.

use crate::error::EvalError;
use crate::expr::EvalContext;
use crate::script::{CommandKind, Script};

/// How a client came to the command it is at.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// From the command before it, or from the start of the script.
    Next,
    /// By a jump from an arm whose condition was false.
    Jump,
}

/// Decides a conditional command: the index of the command to go on with and how one gets there, or
/// none if the command at `pc` is no conditional (the caller executes it and goes on at `pc + 1` by
/// [`Step::Next`]).
///
/// Arriving at `\elif` or `\else` by [`Step::Next`] means that the arm before has run, so the rest
/// is skipped.
///
/// # Errors
/// If a condition can't be evaluated.
pub fn branch(
    script: &Script,
    pc: usize,
    step: Step,
    ctx: &mut EvalContext<'_>,
) -> Result<Option<(usize, Step)>, EvalError> {
    let Some(command) = script.commands.get(pc) else {
        return Ok(None);
    };
    let arm = match (&command.kind, step) {
        (CommandKind::Endif, _) => return Ok(Some((pc + 1, Step::Next))),
        (CommandKind::Elif(arm) | CommandKind::Else(arm), Step::Next) => {
            return Ok(Some((arm.end, Step::Jump)));
        }
        (CommandKind::If(arm), _) | (CommandKind::Elif(arm) | CommandKind::Else(arm), Step::Jump) => arm,
        _ => return Ok(None),
    };
    let taken = match &arm.cond {
        Some(cond) => cond.eval(ctx)?.truth(),
        None => true,
    };
    Ok(Some(if taken { (pc + 1, Step::Next) } else { (arm.next, Step::Jump) }))
}
