//! The parsed form of a script: types only; `parse` builds them, the runner walks over them.

use std::fmt;

use crate::expr::Expr;
use crate::number::leading_int;
use crate::observation::Observation;
use crate::sql::{keyword, sets_level};
use crate::symbols::{Slot, Symbols};
use crate::variables::Variables;

/// One script: what a client executes as one transaction.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name as pgbench prints it: the file name as given, or `<builtin: TPC-B (sort of)>`.
    pub name: String,
    /// The commands in order. Branches refer to one another by index.
    pub commands: Vec<Command>,
}

impl Script {
    /// What its lines `--@` say, in order.
    pub fn observations(&self) -> impl Iterator<Item = &Observation> {
        self.commands.iter().flat_map(|command| match &command.kind {
            CommandKind::Sql(sql) => &sql.observations[..],
            _ => &[],
        })
    }
}

impl Command {
    /// True if it is SQL that sets the isolation level of its transaction or session.
    pub fn sets_level(&self) -> bool {
        let CommandKind::Sql(sql) = &self.kind else { return false };
        let pieces = sql.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text,
            Piece::Variable { written, .. } => written,
        });
        sets_level(&pieces.map(String::as_str).collect::<String>())
    }
}

/// One command of a script.
#[derive(Clone, Debug)]
pub struct Command {
    /// The line it starts on, from 1.
    pub line: u32,
    /// The first line as the per-command report (`-r`) shows it, trimmed.
    pub text: String,
    /// What to do.
    pub kind: CommandKind,
}

/// What a command does.
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
        /// How many units.
        duration: Operand,
        /// The unit, seconds unless written.
        unit: SleepUnit,
    },
    /// `\shell`: runs a program and ignores its output.
    Shell {
        /// The program and its arguments; never empty.
        args: Vec<Argument>,
    },
    /// `\setshell`: runs a program and assigns the integer it prints.
    SetShell {
        /// The variable; check [`Symbols::is_assignable`] before assigning.
        slot: Slot,
        /// The program and its arguments; never empty.
        args: Vec<Argument>,
    },
    /// `\startpipeline`: statements are sent without waiting from here on.
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
    /// The index of the next arm (`\elif`, `\else`) or of the `\endif`: where a false condition
    /// leads.
    pub next: usize,
    /// The index of the `\endif`: where the end of the arm before this one leads.
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
    /// The variables in order of `$1`, `$2`, …; every use has a number of its own.
    pub params: Vec<Slot>,
    /// The kind of each statement, in order.
    pub statements: Vec<Statement>,
    /// What becomes of the result.
    pub store: Store,
    /// What its last statement does with a savepoint, if it does.
    pub savepoint: Option<Savepoint>,
    /// What the lines `--@` before it say it reads and writes.
    pub observations: Vec<Observation>,
}

impl Sql {
    /// How many uses of variables one command may have in the extended and prepared protocols.
    pub const MAX_PARAMS: usize = 255;

    /// Whether pgbench refuses the command in these protocols
    /// (`statement has too many arguments (maximum is 255)`).
    pub fn has_too_many_params(&self) -> bool {
        self.params.len() > Self::MAX_PARAMS
    }

    /// The first of these keywords (in any case) that stands in the command outside of quotations
    /// and comments.
    pub fn keyword<'a>(&self, wanted: &[&'a str]) -> Option<&'a str> {
        keyword(&self.parameterized, wanted)
    }
}

/// A part of the text of an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Text to send as it is.
    Text(String),
    /// A variable to substitute.
    Variable {
        /// The variable.
        slot: Slot,
        /// The reference as written (`:name`), which is sent if the variable is unset.
        written: String,
    },
}

/// The kind of a statement as far as a client must know it, by its leading keywords.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Statement {
    /// `BEGIN`, `START TRANSACTION`: opens a transaction block.
    Begin,
    /// `COMMIT`, `END`, `PREPARE TRANSACTION`: ends a block, keeping its work.
    Commit,
    /// `ROLLBACK`, `ABORT`, but not `ROLLBACK TO` or `ROLLBACK PREPARED`: ends a block, dropping
    /// its work.
    Rollback,
    /// `RELEASE [SAVEPOINT]`.
    Release,
    /// `COPY`: may switch the connection to copy mode, which pgbench refuses.
    Copy,
    /// Anything else.
    Other,
}

/// What a statement does with a savepoint. The name is as SQL compares it: with its quotes, or in
/// lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Savepoint {
    /// `SAVEPOINT name`.
    Set(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
}

/// What becomes of the result of an SQL command.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Store {
    /// It is discarded.
    None,
    /// `\gset`: the one row of the last statement goes into variables named prefix + column.
    Gset {
        /// May be empty.
        prefix: String,
    },
    /// `\aset`: the last row of every statement goes into variables named prefix + column.
    Aset {
        /// May be empty.
        prefix: String,
    },
}

/// An argument of `\shell` or `\setshell`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Argument {
    /// Text (of `::text`, only `:text` is left).
    Literal(String),
    /// The value of a variable; an unset one is an error.
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
    /// How many microseconds one unit has.
    pub fn microseconds(self) -> i64 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
        }
    }
}

/// Why a `\sleep` can't tell its duration. The text is pgbench's, which prints it after `sleep: `.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SleepError {
    /// The variable has no value.
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
    /// The duration in microseconds; a negative number means no pause at all.
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
