//! The pgbench script language: parses scripts, evaluates expressions, draws pgbench's random
//! numbers.
//!
//! The crate is pure: it has no sockets, clocks or processes. It turns a script's text into a
//! [`Script`] (a flat list of commands with resolved jumps), evaluates its expressions with the
//! [`Variables`] of one client, and draws the pseudorandom numbers that pgbench draws for the same
//! seed. Executing, retrying and measuring commands is left to the runner.
//!
//! The behaviour follows the manual page of pgbench 18, and the real program, which
//! `tests/language/oracle.rs` uses as an oracle.
//!
//! ```
//! use isobench_script::{CommandKind, EvalContext, Prng, Symbols, Value, Variables, parse};
//!
//! let mut symbols = Symbols::new();
//! let script = parse("demo.sql", "\\set aid random(1, 100)\nSELECT :aid;\n", &mut symbols)?;
//! let CommandKind::Set { slot, expr } = &script.commands[0].kind else { panic!("a \\set") };
//!
//! let mut variables = Variables::new(&symbols);
//! let mut rng = Prng::seed(42);
//! let value = expr.eval(&mut EvalContext {
//!     variables: &variables,
//!     names: &symbols,
//!     rng: &mut rng,
//!     debug: &mut |_| {},
//! })?;
//! variables.set(*slot, value);
//! assert!(matches!(value, Value::Int(1..=100)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annotation;
mod builtin;
mod control;
mod error;
mod expr;
mod insertion;
mod leaving;
mod literal;
mod mix;
mod modes;
mod number;
mod observed;
mod parse;
mod random;
mod recorded;
mod resembles;
mod script;
mod shell;
mod sql;
mod statements;
mod symbols;
mod trial;
mod value;
mod variables;
mod writer;

pub use annotation::{Annotated, Annotation, Source, VersionSource};
pub use builtin::{Builtin, BuiltinError, builtins, find_builtin};
pub use control::{Arrival, branch, branch_by};
pub use error::{EvalError, ParseError, ParseProblem};
pub use expr::{Addend, Amount, EvalContext, Expr, debug_line};
pub use leaving::CannotLeave;
pub use literal::{literal, literal_of_variable};
pub use mix::{Mix, MixError, WeightError, Weighted, split_weight};
pub use modes::{CannotSetModes, NoModes};
pub use observed::{
    ObservedRows, ObservedSearch, ObservedStatement, Referred, RowField, RowLimit, RowRole, SearchOperand,
    SearchValue, SearchWhen, TextPart,
};
pub use parse::{Dialect, parse, parse_as};
pub use random::{Prng, Streams};
pub use recorded::is_recorded;
pub use resembles::resembles_script;
pub use script::{
    Argument, Branch, Command, CommandKind, Operand, Piece, Script, SleepError, SleepUnit, Sql, Store,
};
pub use shell::{ShellError, shell_command_line};
pub use sql::{Savepoint, Statement, lexer};
pub use statements::{NotStatements, sql_statements};
pub use symbols::{Slot, Symbols, is_valid_variable_name};
pub use value::Value;
pub use variables::{Variable, Variables};
pub use writer::{NotOneCommand, Part, Writer};
