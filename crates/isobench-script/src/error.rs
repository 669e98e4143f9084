//! Errors of parsing and of evaluation. Their texts are what pgbench prints after
//! `pgbench: error: `.

use std::fmt;

/// A script that can't be parsed.
///
/// `Display` gives pgbench's message, with the offending command and a caret below it where pgbench
/// shows them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ParseError {
    /// The script's name as given to [`crate::parse()`].
    pub file: String,
    /// The line where the command starts, from 1.
    pub line: u32,
    /// The offset in bytes at which the error was found, from 1 at the start of `source`, if known.
    pub column: Option<u32>,
    /// The text of the command, which may span several lines; empty where pgbench shows none.
    pub source: String,
    /// The problem.
    pub problem: ParseProblem,
}

/// A problem in a script.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ParseProblem {
    /// A command is malformed.
    Syntax {
        /// The thing found or expected.
        message: &'static str,
        /// The offending piece of text, where there is one.
        detail: Option<Box<str>>,
        /// The name of the meta-command without its backslash, if the error is within one.
        command: Option<Box<str>>,
    },
    /// `\if`, `\elif`, `\else` and `\endif` don't match.
    Condition {
        /// The number of the command within the script, from 1.
        number: usize,
        /// The mismatch.
        message: &'static str,
    },
    /// The script has no commands.
    Empty,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problem {
            ParseProblem::Empty => write!(f, "empty command list for script \"{}\"", self.file),
            ParseProblem::Condition { number, message } => {
                write!(f, "condition error in script \"{}\" command {number}: {message}", self.file)
            }
            ParseProblem::Syntax { message, detail, command } => {
                write!(f, "{}:{}: {message}", self.file, self.line)?;
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
                if let Some(command) = command {
                    write!(f, " in command \"{command}\"")?;
                }
                if !self.source.is_empty() {
                    write!(f, "\n{}", self.source)?;
                    if let Some(column) = self.column {
                        write!(f, "\n{:>width$} error found here", '^', width = column as usize)?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// An expression that can't be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum EvalError {
    /// `/`, `%` or `mod` by an integer zero.
    DivisionByZero,
    /// An integer result is outside 64 bits.
    IntOverflow {
        /// `add`, `sub`, `mul` or `div`.
        operation: &'static str,
    },
    /// A double is outside the range of an integer.
    DoubleToIntOverflow {
        /// The double.
        value: f64,
    },
    /// A value's type can't be converted to the required one.
    CannotCoerce {
        /// The value's type.
        from: &'static str,
        /// The required type.
        to: &'static str,
    },
    /// A variable is unset.
    UndefinedVariable {
        /// Its name.
        name: String,
    },
    /// A variable's text isn't a value.
    MalformedVariable {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A variable's text is the sign of an integer without the integer.
    VariableSyntax {
        /// Its text.
        text: String,
    },
    /// A variable's text is an integer outside 64 bits.
    VariableOutOfRange {
        /// Its text.
        text: String,
    },
    /// A call of `greatest` or `least` has more arguments than pgbench evaluates.
    TooManyArguments {
        /// The maximum number of arguments.
        most: usize,
    },
    /// The lower bound given to a random function is above the upper one.
    EmptyRange,
    /// The range given to a random function has 2^63 or more values.
    RangeTooLarge,
    /// The parameter of `random_gaussian` is below 2.
    GaussianParameter {
        /// The parameter.
        value: f64,
    },
    /// The parameter of `random_exponential` isn't above 0.
    ExponentialParameter {
        /// The parameter.
        value: f64,
    },
    /// The parameter of `random_zipfian` is outside 1.001 to 1000.
    ZipfianParameter {
        /// The parameter.
        value: f64,
    },
    /// The size given to `permute` isn't above 0.
    PermuteSize,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::IntOverflow { operation } => write!(f, "bigint {operation} out of range"),
            Self::DoubleToIntOverflow { value } => {
                write!(f, "double to int overflow for {}", Fixed(*value))
            }
            Self::CannotCoerce { from, to } => write!(f, "cannot coerce {from} to {to}"),
            Self::UndefinedVariable { name } => write!(f, "undefined variable \"{name}\""),
            Self::MalformedVariable { name, text } => {
                write!(f, "malformed variable \"{name}\" value: \"{text}\"")
            }
            Self::VariableSyntax { text } => write!(f, "invalid input syntax for type bigint: \"{text}\""),
            Self::VariableOutOfRange { text } => {
                write!(f, "value \"{text}\" is out of range for type bigint")
            }
            Self::TooManyArguments { most } => write!(f, "too many function arguments, maximum is {most}"),
            Self::EmptyRange => f.write_str("empty range given to random"),
            Self::RangeTooLarge => f.write_str("random range is too large"),
            Self::GaussianParameter { value } => {
                write!(f, "gaussian parameter must be at least 2.000000 (not {})", Fixed(*value))
            }
            Self::ExponentialParameter { value } => {
                write!(f, "exponential parameter must be greater than zero (not {})", Fixed(*value))
            }
            Self::ZipfianParameter { value } => {
                write!(f, "zipfian parameter must be in range [1.001, 1000] (not {})", Fixed(*value))
            }
            Self::PermuteSize => f.write_str("permute size parameter must be greater than zero"),
        }
    }
}

impl std::error::Error for EvalError {}

/// A double printed with six decimals, or as `Infinity`, `-Infinity` or `NaN`.
struct Fixed(f64);

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            f.write_str("NaN")
        } else if self.0.is_infinite() {
            f.write_str(if self.0 > 0.0 { "Infinity" } else { "-Infinity" })
        } else {
            write!(f, "{:.6}", self.0)
        }
    }
}
