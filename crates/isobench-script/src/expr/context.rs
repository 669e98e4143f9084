//! The context and the result of evaluating expressions.

use crate::error::EvalError;
use crate::random::Prng;
use crate::symbols::Symbols;
use crate::value::Value;
use crate::variables::Variables;

/// The state that evaluating an expression reads and changes.
pub struct EvalContext<'a> {
    /// The client's variables.
    pub variables: &'a Variables,
    /// The names of the variables, for messages.
    pub names: &'a Symbols,
    /// The client's random stream.
    pub rng: &'a mut Prng,
    /// Receives the text of each call of `debug()`, for example `int 5`; see [`debug_line`].
    pub debug: &'a mut dyn FnMut(&str),
}

/// The line that pgbench prints to standard error for `debug()`, without a line break.
///
/// `script` counts from 0, `command` from 1; `text` is what [`EvalContext::debug`] received.
pub fn debug_line(script: usize, command: usize, text: &str) -> String {
    format!("debug(script={script},command={command}): {text}")
}

/// The result of evaluating a node. The error is boxed because returning large values is slow.
pub(super) type Evaluated = Result<Value, Box<EvalError>>;
