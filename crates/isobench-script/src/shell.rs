//! The command line of `\shell` and `\setshell`; the runner executes it.

use std::fmt;

use crate::script::Argument;
use crate::symbols::Symbols;
use crate::variables::Variables;

/// The longest command line that pgbench passes to the shell, in bytes.
const MAX_LENGTH: usize = 254;

/// The command line for the shell: the arguments joined by spaces, without quoting.
///
/// # Errors
/// If a variable is unset, or the line is longer than pgbench allows.
pub fn shell_command_line(
    args: &[Argument],
    variables: &Variables,
    names: &Symbols,
) -> Result<String, ShellError> {
    let program = || match args.first() {
        Some(Argument::Literal(text)) => text.clone(),
        Some(Argument::Variable(slot)) => format!(":{}", names.name(*slot)),
        None => String::new(),
    };
    let mut line = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            line.push(b' ');
        }
        match arg {
            Argument::Literal(text) => line.extend_from_slice(text.as_bytes()),
            Argument::Variable(slot) if variables.write_text(*slot, &mut line) => {}
            Argument::Variable(slot) => {
                let name = names.name(*slot).to_owned();
                return Err(ShellError::Undefined { program: program(), name });
            }
        }
        if line.len() > MAX_LENGTH {
            return Err(ShellError::TooLong { program: program() });
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The reason that a command line can't be built.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ShellError {
    /// A variable is unset.
    Undefined {
        /// The first argument as written.
        program: String,
        /// The variable's name, with its colon in messages.
        name: String,
    },
    /// The line is longer than 254 bytes.
    TooLong {
        /// The first argument as written.
        program: String,
    },
}

impl fmt::Display for ShellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { program, name } => write!(f, "{program}: undefined variable \":{name}\""),
            Self::TooLong { program } => write!(f, "{program}: shell command is too long"),
        }
    }
}

impl std::error::Error for ShellError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::CommandKind;
    use crate::value::Value;

    #[test]
    fn arguments_are_joined_and_variables_inserted() {
        let mut symbols = Symbols::new();
        let script = crate::parse("x.sql", "\\shell echo :x ::x a:x 'a  b' \\\n more :1y\n", &mut symbols)
            .expect("valid");
        let CommandKind::Shell { args } = &script.commands[0].kind else { panic!("a \\shell") };
        let mut variables = Variables::new(&symbols);
        variables.set(symbols.intern("x"), Value::Double(1.5));
        let error = shell_command_line(args, &variables, &symbols).map_err(|error| error.to_string());
        assert_eq!(error, Err("echo: undefined variable \":1y\"".to_owned()));
        variables.set_text(symbols.intern("1y"), "z");
        let line = shell_command_line(args, &variables, &symbols);
        assert_eq!(line, Ok("echo 1.5 :x a:x 'a b' more z".to_owned()));
    }

    #[test]
    fn long_lines_are_refused_where_pgbench_does() {
        let symbols = Symbols::new();
        let line = |length: usize| {
            let args = [Argument::Literal("true".to_owned()), Argument::Literal("a".repeat(length))];
            shell_command_line(&args, &Variables::new(&symbols), &symbols).map_err(|error| error.to_string())
        };
        assert!(line(249).is_ok());
        assert_eq!(line(250), Err("true: shell command is too long".to_owned()));
    }
}
