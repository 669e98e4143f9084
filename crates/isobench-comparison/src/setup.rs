//! SQL files of the user's, statement by statement: they create the tables of a workload of one's
//! own (`--setup`), or put its rows back (`--reset`).

use std::path::Path;

use isobench_pgwire::Connection;
use isobench_script::{NotStatements, is_recorded, sql_statements};

use crate::failure::{Failure, Outcome};

/// The statements of a file.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The option that names the file.
    option: &'static str,
    file: String,
    /// Each with the number of its first line.
    statements: Vec<(u32, String)>,
    /// True if nobody who runs it has written it.
    recorded: bool,
}

impl Setup {
    /// Reads the file of an option: SQL statements, each ended by a semicolon.
    ///
    /// # Errors
    /// The file can't be read, holds a backslash command, or ends within a quotation.
    pub fn read(option: &'static str, path: &Path) -> Outcome<Setup> {
        let file = path.display().to_string();
        let text = isobench_trust::read_to_string(path)
            .map_err(|error| Failure::setup(format!("--{option}: could not read \"{file}\": {error}")))?;
        let copies = |line: u32| {
            Failure::setup(format!(
                "--{option}: {file}:{line}: rows that follow a COPY … FROM stdin aren't read; write INSERTs, as pg_dump \
                 --inserts does"
            ))
        };
        let statements = sql_statements(&file, &text).map_err(|error| {
            // Rows hold backslashes.
            let line = text.lines().position(is_copy_of_rows).and_then(|line| u32::try_from(line + 1).ok());
            match (line, error) {
                (Some(line), _) => copies(line),
                (None, NotStatements::Malformed(error)) => Failure::setup(format!("--{option}: {error}")),
                (None, NotStatements::MetaCommand { line, name }) => Failure::setup(format!(
                    "--{option}: {file}:{line}: \\{name} is not SQL; only SQL statements are run"
                )),
            }
        })?;
        if let Some((line, _)) = statements.iter().find(|(_, text)| is_copy_of_rows(text)) {
            return Err(copies(*line));
        }
        Ok(Setup { option, file, statements, recorded: is_recorded(&text) })
    }

    /// Returns a description: the file and the number of its statements.
    pub fn describe(&self) -> String {
        match self.statements.len() {
            1 => format!("{} (1 statement)", self.file),
            several => format!("{} ({several} statements)", self.file),
        }
    }

    /// The statements, each with its place.
    pub fn placed_statements(&self) -> impl Iterator<Item = (String, &str)> {
        self.statements.iter().map(|(line, text)| (format!("{}:{line}", self.file), text.as_str()))
    }

    /// True if it is of a recorded application or a copied database.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// A word in the statements that may concern more than the schema in which they are executed.
    pub fn names_schemas(&self) -> Option<&'static str> {
        let texts: Vec<String> =
            self.statements.iter().map(|(_, statement)| without_values(statement)).collect();
        WIDER.into_iter().find(|wider| texts.iter().any(|statement| concerns(statement, wider)))
    }

    /// Executes the statements, each in its own transaction unless they contain transaction
    /// control.
    ///
    /// # Errors
    /// The server refuses a statement; the message names file and line.
    pub fn run(&self, connection: &mut Connection) -> Outcome {
        for (line, statement) in &self.statements {
            connection.execute(statement).map_err(|error| {
                let report =
                    error.server().map_or_else(|| error.to_string(), |server| server.report(Some(statement)));
                let hint = error.code().map_or("", |code| self.advice(code.as_str(), statement));
                Failure::setup(format!("--{}: {}:{line}: {report}{hint}", self.option, self.file))
            })?;
        }
        Ok(())
    }

    /// Advice on an error of a statement.
    fn advice(&self, code: &str, statement: &str) -> &'static str {
        if EXISTS.contains(&code) {
            return AGAIN;
        }
        if code == NO_RIGHT && self.recorded {
            return CONFINED;
        }
        let of_role = code == UNKNOWN && OF_ROLES.iter().any(|word| has_word(statement, word));
        if of_role { NO_OWNER } else { "" }
    }
}

/// Advice on an error of a statement that lacks a right.
const CONFINED: &str = "; copied and recorded SQL runs without a superuser's rights on a server of isobench's own. If \
    you trust the file, remove its first line (--@ recorded), and that of the scripts";

/// The code of an error for a missing right.
const NO_RIGHT: &str = "42501";

/// True for a statement, as `pg_dump` writes it, that rows of data follow, which only psql sends.
fn is_copy_of_rows(line: &str) -> bool {
    line.starts_with("COPY ") && line.trim_end().ends_with(" FROM stdin;")
}

/// True if a statement has a word of [`WIDER`], as more than the name of a table or a column.
fn concerns(statement: &str, wider: &str) -> bool {
    let executes = EXECUTING.iter().any(|word| has_word(statement, word));
    has_word(statement, wider) && (executes || !NAMES.contains(&wider) || !is_of_tables(statement))
}

/// True for statements in which words of [`NAMES`] are no keywords (PostgreSQL manual, "SQL Commands"), so
/// that they name something: an application may well have a table of roles.
fn is_of_tables(statement: &str) -> bool {
    let words: Vec<String> = statement.split_whitespace().take(3).map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let index = matches!(words.as_slice(), ["create", "index", ..] | ["create", "unique", "index"]);
    let object = matches!(words.as_slice(), ["create" | "alter", "table" | "sequence", ..]);
    index
        || object
        || matches!(words.as_slice(), ["insert" | "update" | "delete" | "truncate" | "analyze", ..])
}

/// Functions and casts that make a name of a literal.
const NAMING: [&str; 7] = ["set_config", "nextval", "setval", "currval", "regclass", "execute", "format"];

/// Those of them by which a literal changes the session, or becomes SQL.
const EXECUTING: [&str; 3] = ["set_config", "execute", "format"];

/// A statement without what its literals hold, where they are values of rows, defaults or labels, and no
/// names.
fn without_values(statement: &str) -> String {
    let kept = statement.contains('\\') || NAMING.iter().any(|word| has_word(statement, word));
    let words: Vec<String> = statement.split_whitespace().take(2).map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let of_values = matches!(words.as_slice(), ["insert", ..] | ["create", "table" | "type"]);
    if kept || !of_values {
        return statement.to_owned();
    }
    // A quotation mark within a literal is doubled, so that another literal follows at once.
    statement.split('\'').step_by(2).collect::<Vec<_>>().join("''")
}

/// Words of statements whose effect isn't confined to the schema of the session.
const WIDER: [&str; 8] =
    ["public", "schema", "search_path", "extension", "database", "role", "tablespace", "publication"];

/// Those of them that may also be the names of tables and columns.
const NAMES: [&str; 4] = ["extension", "database", "role", "publication"];

/// Codes of errors for existing objects: a table, a function, any other object, a schema, a
/// database (PostgreSQL manual, "Error Codes").
const EXISTS: [&str; 5] = ["42P07", "42723", "42710", "42P06", "42P04"];

/// Advice on such an error.
const AGAIN: &str = "; the file is run before each cell, in a schema made anew, but what it makes elsewhere is still \
    there: let it begin with DROP … IF EXISTS for that";

/// The code of an error for an unknown role, and words of statements that name one in a dump.
const UNKNOWN: &str = "42704";
const OF_ROLES: [&str; 3] = ["owner", "grant", "revoke"];

/// Advice on such an error.
const NO_OWNER: &str = "; pg_dump --no-owner --no-privileges leaves roles out";

/// True if a text has a word, in letters of either case, in quotations too.
pub fn has_word(text: &str, word: &str) -> bool {
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|other| !letter(other)).any(|found| found.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Outcome<Setup> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables.sql");
        fs::write(&path, text).unwrap();
        Setup::read("setup", &path)
    }

    #[test]
    fn statements_keep_their_text_and_line() {
        let text = "-- tables\nCREATE TABLE t (v text DEFAULT ';');\n\nDO $$ BEGIN PERFORM 1; END $$;\nINSERT INTO \
            t VALUES (':x');\n";
        let setup = read(text).unwrap();
        let lines: Vec<u32> = setup.statements.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 4, 5]);
        assert!(setup.statements[1].1.starts_with("DO $$ BEGIN PERFORM 1; END $$"));
        assert!(setup.statements[2].1.contains("':x'"));
    }

    #[test]
    fn words_that_reach_further_are_found() {
        let wider = |text: &str| read(text).unwrap().names_schemas();
        assert_eq!(wider("CREATE TABLE t (v int);\nINSERT INTO t SELECT 1;\n"), None);
        assert_eq!(wider("CREATE TABLE publication_list (v int);\n"), None);
        assert_eq!(wider("CREATE TABLE Public.t (v int);\n"), Some("public"));
        assert_eq!(wider("SELECT 1;\nSELECT set_config('search_path', '', false);\n"), Some("search_path"));
        assert_eq!(wider("CREATE EXTENSION citext;\n"), Some("extension"));
        assert_eq!(wider("CREATE TABLE t (role text, database text);\nCREATE ROLE r;\n"), Some("role"));
        assert_eq!(wider("CREATE TABLE t (role text, database text);\n"), None);
        let own = "CREATE TABLE role (id int);\nALTER TABLE ONLY role ADD CONSTRAINT r PRIMARY KEY (id);\n\
                   INSERT INTO \"role\" VALUES (1);\nCREATE UNIQUE INDEX u ON role (id);\n\
                   ALTER SEQUENCE s OWNED BY database.id;\n";
        assert_eq!(wider(own), None);
        assert_eq!(wider("INSERT INTO t SELECT set_config('role', 'x', false);\n"), Some("role"));
        assert_eq!(wider("ALTER TABLE ONLY role ALTER COLUMN id SET DEFAULT nextval('role_id');\n"), None);
        assert_eq!(wider("ALTER TABLE role SET SCHEMA other;\n"), Some("schema"));
        assert_eq!(wider("ALTER ROLE role SET work_mem = 1;\n"), Some("role"));
        assert_eq!(wider("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SET ROLE r';\n"), Some("role"));
        assert_eq!(wider("INSERT INTO t VALUES ('a public role', 'it''s a database');\n"), None);
        assert_eq!(wider("INSERT INTO public.t VALUES ('x');\n"), Some("public"));
        assert_eq!(wider("CREATE TYPE seen AS ENUM ('PUBLIC', 'PRIVATE');\n"), None);
        assert_eq!(wider("CREATE TABLE t (v seen DEFAULT 'PUBLIC'::seen);\n"), None);
        assert_eq!(wider("CREATE TABLE t (v public.seen DEFAULT 'PUBLIC');\n"), Some("public"));
        assert_eq!(wider("CREATE TABLE t (v int DEFAULT nextval('public.s'));\n"), Some("public"));
        assert_eq!(wider("INSERT INTO t VALUES (nextval('public.s'));\n"), Some("public"));
    }

    #[test]
    fn a_dump_is_read() {
        let dump = "\\restrict a1B2\n\nSET lock_timeout = 0;\nCREATE TABLE public.t (v int);\n\n\\unrestrict a1B2\n\n";
        let setup = read(dump).unwrap();
        assert_eq!(setup.statements.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4]);
        let literal = read("INSERT INTO t VALUES ('a\n\\restrict b\nCOPY t FROM stdin;\nc');\n").unwrap();
        assert!(literal.statements[0].1.contains("'a\n\\restrict b\nCOPY t FROM stdin;\nc'"));
        let message = read("COPY public.t (v) FROM stdin;\n1\n\\.\n").unwrap_err().to_string();
        assert!(message.contains("tables.sql:1") && message.contains("--inserts"), "{message}");
    }

    #[test]
    fn a_backslash_command_is_refused_with_its_line() {
        let message = read("CREATE TABLE t (v int);\n\\set x 1\n").unwrap_err().to_string();
        assert!(message.contains("tables.sql:2") && message.contains("\\set"), "{message}");
    }
}
