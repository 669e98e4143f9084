//! The parsed form of a script, as types only; `parse` builds it and the runner walks over it.

use std::fmt;

use crate::annotation::{Annotated, Annotation};
use crate::expr::Expr;
use crate::number::leading_int;
use crate::observed::ObservedStatement;
use crate::sql::{Savepoint, Statement, keyword, level_set_at};
use crate::symbols::{Slot, Symbols};
use crate::variables::Variables;

/// A script: the commands that a client executes as one transaction.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name as pgbench prints it: the file name as given, or `<builtin: TPC-B (sort of)>`.
    pub name: String,
    /// The commands in order. Branches refer to one another by index.
    pub commands: Vec<Command>,
}

impl Script {
    /// The commands that send SQL, in order.
    pub fn sql(&self) -> impl Iterator<Item = &Sql> {
        self.commands.iter().filter_map(|command| match &command.kind {
            CommandKind::Sql(sql) => Some(sql),
            _ => None,
        })
    }

    /// The script's lines `--@`, in order.
    pub fn annotations(&self) -> impl Iterator<Item = &Annotation> {
        self.sql().flat_map(|sql| &sql.annotations)
    }
}

impl Command {
    /// True if the command is SQL that sets the isolation level of its transaction or session.
    pub fn sets_level(&self) -> bool {
        self.level_set().is_some()
    }

    /// The line in which the command sets the isolation level of its transaction or session, from 1, with
    /// its text; `None` if it doesn't.
    pub fn level_set(&self) -> Option<(u32, String)> {
        let CommandKind::Sql(sql) = &self.kind else { return None };
        let written = sql.as_written();
        let text = written.trim();
        let (before, after) = text.split_at(level_set_at(text)?);
        let above = u32::try_from(before.matches('\n').count()).unwrap_or(u32::MAX);
        let start = before.rsplit('\n').next().unwrap_or_default();
        let end = after.lines().next().unwrap_or_default();
        Some((self.line.saturating_add(above), format!("{start}{end}").trim().to_owned()))
    }
}

/// One command of a script.
#[derive(Clone, Debug)]
pub struct Command {
    /// The line on which the command starts, from 1.
    pub line: u32,
    /// The first line as the per-command report (`-r`) shows it, trimmed.
    pub text: String,
    /// The action.
    pub kind: CommandKind,
}

/// The action of a command.
#[derive(Clone, Debug)]
pub enum CommandKind {
    /// Sends one or more SQL statements.
    Sql(Sql),
    /// `\set`: assigns the value of an expression to a variable.
    Set {
        /// The variable; check [`Symbols::is_assignable`] before assigning.
        slot: Slot,
        /// The expression.
        expr: Expr,
    },
    /// `\if`: see [`crate::branch`].
    If(Branch),
    /// `\elif`: see [`crate::branch`].
    Elif(Branch),
    /// `\else`: see [`crate::branch`].
    Else(Branch),
    /// `\endif`: nothing to do.
    Endif,
    /// `\sleep`: pauses; see [`Operand::sleep_microseconds`].
    Sleep {
        /// The number of units.
        duration: Operand,
        /// The unit; seconds by default.
        unit: SleepUnit,
    },
    /// `\shell`: runs a program and ignores its output.
    Shell {
        /// The program and its arguments; never empty.
        args: Vec<Argument>,
    },
    /// `\setshell`: runs a program and assigns the integer that it prints.
    SetShell {
        /// The variable; check [`Symbols::is_assignable`] before assigning.
        slot: Slot,
        /// The program and its arguments; never empty.
        args: Vec<Argument>,
    },
    /// `\startpipeline`: from here on statements are sent without waiting for replies.
    StartPipeline,
    /// `\syncpipeline`: a synchronisation point within the pipeline (pgbench 17).
    SyncPipeline,
    /// `\endpipeline`: waits for all replies and leaves pipeline mode.
    EndPipeline,
}

impl CommandKind {
    /// The name of the meta-command without backslash, or `SQL`, as pgbench's messages name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sql(_) => "SQL",
            Self::Set { .. } => "set",
            Self::If(_) => "if",
            Self::Elif(_) => "elif",
            Self::Else(_) => "else",
            Self::Endif => "endif",
            Self::Sleep { .. } => "sleep",
            Self::Shell { .. } => "shell",
            Self::SetShell { .. } => "setshell",
            Self::StartPipeline => "startpipeline",
            Self::SyncPipeline => "syncpipeline",
            Self::EndPipeline => "endpipeline",
        }
    }
}

/// One arm of a conditional block.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The condition; none for `\else`.
    pub cond: Option<Expr>,
    /// The index of the next arm (`\elif`, `\else`) or of the `\endif`, the target of a false
    /// condition.
    pub next: usize,
    /// The index of the `\endif`, the target of the jump at the end of the preceding arm.
    pub end: usize,
}

/// An SQL command, which may hold several statements joined by `\;`.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The text for the simple protocol, split at the variables.
    pub pieces: Vec<Piece>,
    /// The text for the extended and prepared protocols, with `$1`, `$2`, … in place of the
    /// variables.
    pub parameterized: String,
    /// The variables in order of `$1`, `$2`, …; each reference has its own number.
    pub params: Vec<Slot>,
    /// The kind of each statement, in order.
    pub statements: Vec<Statement>,
    /// The use of the result.
    pub store: Store,
    /// The effect of the last statement on a savepoint, if any.
    pub savepoint: Option<Savepoint>,
    /// The lines `--@` before the command.
    pub annotations: Vec<Annotation>,
    /// The statements whose rows are observed, in order; empty unless the script was made
    /// observable.
    pub observed: Vec<ObservedStatement>,
}

impl Sql {
    /// True if what it writes may be computed from what was read before, outside of the script.
    pub fn computes_elsewhere(&self) -> bool {
        self.annotations.iter().any(|line| line.what == Annotated::Computed)
    }

    /// The maximum number of variable references per command in the extended and prepared
    /// protocols.
    pub const MAX_PARAMS: usize = 255;

    /// The text for the simple protocol, with the names of its variables.
    pub fn as_written(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Variable { written, .. } => written,
        });
        pieces.collect()
    }

    /// True for a query that takes the inputs of a script, as those of recorded applications do: a row
    /// of a table `isobench_inputs_N`, or of no table. No transaction depends on its level, and it does no
    /// harm to repeat it.
    pub fn takes_inputs(&self) -> bool {
        let text = self.as_written();
        let mut words = text.split_whitespace();
        let reads = words.next().is_some_and(|word| word.eq_ignore_ascii_case("select"));
        let from = words.find(|word| word.eq_ignore_ascii_case("from")).and_then(|_| words.next());
        let stores = matches!(self.store, Store::Gset { .. });
        let of_inputs = from.is_none_or(|table| table.starts_with("isobench_inputs_"));
        reads && stores && of_inputs && self.statements.len() == 1
    }

    /// True if pgbench refuses the command in these protocols (`statement has too many arguments
    /// (maximum is 255)`).
    pub fn has_too_many_params(&self) -> bool {
        self.params.len() > Self::MAX_PARAMS
    }

    /// The first of these keywords (in any case) that occurs in the command outside quotes and
    /// comments.
    pub fn keyword<'a>(&self, wanted: &[&'a str]) -> Option<&'a str> {
        keyword(&self.parameterized, wanted)
    }
}

/// A part of the text of an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Text to send verbatim.
    Text(String),
    /// A variable to substitute.
    Variable {
        /// The variable.
        slot: Slot,
        /// The reference as written (`:name`), which is sent if the variable is unset.
        written: String,
    },
}

/// The use of the result of an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Store {
    /// It is discarded.
    None,
    /// `\gset`: the one row of the last statement goes into variables named prefix + column.
    Gset {
        /// The prefix; may be empty.
        prefix: String,
    },
    /// `\aset`: the last row of every statement goes into variables named prefix + column.
    Aset {
        /// The prefix; may be empty.
        prefix: String,
    },
}

/// An argument of `\shell` or `\setshell`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Argument {
    /// Text (for `::text`, this is `:text`).
    Literal(String),
    /// The value of a variable; it is an error if it is unset.
    Variable(Slot),
}

/// The duration of a `\sleep`.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Operand {
    /// A number written in the script.
    Number(i64),
    /// A variable that holds an integer.
    Variable(Slot),
}

/// The unit of a `\sleep`.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum SleepUnit {
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`, the default
    Seconds,
}

impl SleepUnit {
    /// The number of microseconds in a unit.
    pub fn microseconds(self) -> i64 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
        }
    }
}

/// The reason that a `\sleep` has no duration. The text is pgbench's, which prints it after `sleep:
/// `.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SleepError {
    /// The variable is unset.
    Undefined {
        /// The variable's name.
        name: String,
    },
    /// The variable's text doesn't start with a number.
    NotANumber {
        /// The variable's name.
        name: String,
        /// Its text.
        text: String,
    },
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { name } => write!(f, "undefined variable \"{name}\""),
            Self::NotANumber { name, text } => {
                write!(f, "invalid sleep time \"{text}\" for variable \"{name}\"")
            }
        }
    }
}

impl std::error::Error for SleepError {}

impl Operand {
    /// The duration in microseconds; negative numbers mean no pause.
    ///
    /// # Errors
    /// If the variable is unset or its text doesn't start with a number (trailing text is ignored,
    /// as by pgbench).
    pub fn sleep_microseconds(
        self,
        unit: SleepUnit,
        variables: &Variables,
        names: &Symbols,
    ) -> Result<u64, SleepError> {
        let count = match self {
            Self::Number(number) => number,
            Self::Variable(slot) => {
                let mut bytes = Vec::new();
                if !variables.write_text(slot, &mut bytes) {
                    return Err(SleepError::Undefined { name: names.name(slot).to_owned() });
                }
                let text = String::from_utf8_lossy(&bytes);
                leading_int(&text).ok_or_else(|| SleepError::NotANumber {
                    name: names.name(slot).to_owned(),
                    text: text.clone().into_owned(),
                })?
            }
        };
        Ok(u64::try_from(count.saturating_mul(unit.microseconds())).unwrap_or(0))
    }
}
