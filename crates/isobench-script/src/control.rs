//! The flow of control through `\if`, `\elif`, `\else` and `\endif`.

use crate::error::EvalError;
use crate::expr::{EvalContext, Expr};
use crate::script::{CommandKind, Script};

/// The way a client reached its current command.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Arrival {
    /// From the preceding command, or from the start of the script.
    Next,
    /// By a jump from an arm whose condition was false.
    Jump,
}

/// Evaluates a conditional command. Returns the index of the next command and how it is reached, or
/// `None` if the command at `pc` isn't conditional (the caller executes it and continues at `pc +
/// 1` with [`Arrival::Next`]).
///
/// Reaching `\elif` or `\else` by [`Arrival::Next`] means that the preceding arm was executed, so
/// the remaining arms are skipped.
///
/// # Errors
/// If a condition can't be evaluated.
pub fn branch(
    script: &Script,
    pc: usize,
    arrival: Arrival,
    ctx: &mut EvalContext<'_>,
) -> Result<Option<(usize, Arrival)>, EvalError> {
    branch_by(script, pc, arrival, &mut |condition| Ok(condition.eval(ctx)?.truth()))
}

/// The same as [`branch`], with a caller that evaluates the conditions.
///
/// # Errors
/// Those of `holds`.
pub fn branch_by<E>(
    script: &Script,
    pc: usize,
    arrival: Arrival,
    holds: &mut dyn FnMut(&Expr) -> Result<bool, E>,
) -> Result<Option<(usize, Arrival)>, E> {
    let Some(command) = script.commands.get(pc) else {
        return Ok(None);
    };
    let arm = match (&command.kind, arrival) {
        (CommandKind::Endif, _) => return Ok(Some((pc + 1, Arrival::Next))),
        (CommandKind::Elif(arm) | CommandKind::Else(arm), Arrival::Next) => {
            return Ok(Some((arm.end, Arrival::Jump)));
        }
        (CommandKind::If(arm), _) | (CommandKind::Elif(arm) | CommandKind::Else(arm), Arrival::Jump) => arm,
        _ => return Ok(None),
    };
    let taken = match &arm.cond {
        Some(condition) => holds(condition)?,
        None => true,
    };
    Ok(Some(if taken { (pc + 1, Arrival::Next) } else { (arm.next, Arrival::Jump) }))
}
