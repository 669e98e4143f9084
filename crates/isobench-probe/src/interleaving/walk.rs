//! The way of a script from one statement to the next: its variables, and what it decides.

use isobench_script::{
    Arrival, CommandKind, EvalContext, EvalError, Expr, Prng, Slot, Symbols, Value, Variables, branch_by,
};

use super::program::Program;

/// A run of a script, without the server.
#[derive(Debug)]
pub struct Walk<'a> {
    program: &'a Program,
    symbols: &'a Symbols,
    /// The variables.
    pub variables: Variables,
    at: usize,
    arrival: Arrival,
}

/// One command that has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A variable got a value.
    Set {
        /// The command.
        at: usize,
        /// The variable.
        slot: Slot,
    },
    /// A condition was evaluated, or an arm was left.
    Branch {
        /// The command.
        at: usize,
        /// The command that follows.
        to: usize,
        /// Whether the condition was true; `None` where none was evaluated.
        held: Option<bool>,
    },
    /// An SQL command is to be sent.
    Sql(usize),
    /// Something that a trial doesn't need.
    Other,
    /// There is no further command.
    End,
}

/// Evaluates the expressions of a script, with numbers in place of what they draw.
pub trait Numbers {
    /// The value of the expression of this command.
    ///
    /// # Errors
    /// It can't be evaluated.
    fn value(&mut self, at: usize, expr: &Expr, ctx: &mut EvalContext<'_>) -> Result<Value, EvalError>;
}

impl<'a> Walk<'a> {
    /// Begins a script with these variables.
    pub fn new(program: &'a Program, symbols: &'a Symbols, variables: Variables) -> Walk<'a> {
        Walk { program, symbols, variables, at: 0, arrival: Arrival::Next }
    }

    /// Takes one command.
    ///
    /// # Errors
    /// An expression can't be evaluated; why, with its line.
    pub fn step(&mut self, numbers: &mut dyn Numbers) -> Result<Taken, String> {
        let (script, at) = (&self.program.script, self.at);
        let Some(command) = script.commands.get(at) else { return Ok(Taken::End) };
        let mut rng = Prng::seed(0);
        let mut ctx = EvalContext {
            variables: &self.variables,
            names: self.symbols,
            rng: &mut rng,
            debug: &mut |_| {},
        };
        let place = |error: EvalError| format!("line {}: {error}", command.line);
        let mut held = None;
        let mut holds = |condition: &Expr| {
            let truth = numbers.value(at, condition, &mut ctx)?.truth();
            held = Some(truth);
            Ok(truth)
        };
        if let Some((to, arrival)) = branch_by(script, at, self.arrival, &mut holds).map_err(place)? {
            (self.at, self.arrival) = (to, arrival);
            return Ok(Taken::Branch { at, to, held });
        }
        (self.at, self.arrival) = (at + 1, Arrival::Next);
        match &command.kind {
            CommandKind::Set { slot, expr } => {
                let value = numbers.value(at, expr, &mut ctx).map_err(place)?;
                self.variables.set(*slot, value);
                Ok(Taken::Set { at, slot: *slot })
            }
            CommandKind::Sql(_) => Ok(Taken::Sql(at)),
            _ => Ok(Taken::Other),
        }
    }
}
