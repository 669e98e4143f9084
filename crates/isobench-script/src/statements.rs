//! Files of SQL alone: dumps and set-ups. No meta-command in them is ever executed.

use crate::error::ParseError;
use crate::parse::{Dialect, parse_as};
use crate::script::CommandKind;
use crate::symbols::Symbols;

/// A file can't be read as SQL alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NotStatements {
    /// It isn't a script, either.
    Malformed(ParseError),
    /// It has a meta-command.
    MetaCommand {
        /// The number of its line, from 1.
        line: u32,
        /// Its name, without the backslash.
        name: &'static str,
    },
}

impl std::fmt::Display for NotStatements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotStatements::Malformed(error) => error.fmt(f),
            NotStatements::MetaCommand { line, name } => {
                write!(f, "line {line}: \\{name} is not SQL; only SQL statements are run")
            }
        }
    }
}

impl std::error::Error for NotStatements {}

/// The statements of a file of SQL, each with the number of its first line. The commands by which newer
/// versions of `pg_dump` enclose a dump (`\restrict`, `\unrestrict`) are passed over where they are
/// commands, and kept where they are part of a literal.
///
/// # Errors
/// The file has another meta-command, or ends within a quotation.
pub fn sql_statements(name: &str, text: &str) -> Result<Vec<(u32, String)>, NotStatements> {
    let dialect = Dialect { annotations: false, dumps: true, ..Dialect::default() };
    let script = parse_as(dialect, name, text, &mut Symbols::new()).map_err(NotStatements::Malformed)?;
    let statements = script.commands.into_iter().map(|command| match &command.kind {
        CommandKind::Sql(sql) if sql.store == crate::Store::None => Ok((command.line, sql.as_written())),
        CommandKind::Sql(_) => Err(NotStatements::MetaCommand { line: command.line, name: "gset" }),
        other => Err(NotStatements::MetaCommand { line: command.line, name: other.name() }),
    });
    statements.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(u32, String)>, String> {
        sql_statements("a.sql", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_dump_is_read_without_what_encloses_it() {
        let dump = "\\restrict a1\n\nCREATE TABLE t (v int);\n\\unrestrict a1\n";
        assert_eq!(read(dump).unwrap(), [(3, "CREATE TABLE t (v int);".to_owned())]);
    }

    #[test]
    fn lines_of_literals_stay() {
        let insert = "INSERT INTO t VALUES ('a\n\\restrict b\n\\unrestrict c\n\\shell id\nd');";
        assert_eq!(read(insert).unwrap(), [(1, insert.to_owned())]);
    }

    #[test]
    fn every_other_meta_command_is_refused() {
        for (text, why) in [
            ("SELECT 1 \\shell id", "line 1: \\shell"),
            ("SELECT 1;\n\\setshell x id", "line 2: \\setshell"),
            ("SELECT 1;\n\\! id", "invalid command"),
            ("SELECT 1 \\gset", "\\gset"),
            ("SELECT 1;\n\\set x 1", "line 2: \\set"),
            ("SELECT 1 \\g |id", "invalid command"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
