//! SQL files of the user's, statement by statement: they create the tables of a workload of one's
//! own (`--setup`), or put its rows back (`--reset`).

use std::path::Path;

use isobench_pgwire::{Connection, Error};
use isobench_script::{NotStatements, is_recorded, lexer, sql_statements};
use isobench_sql::{Reach, reach, writes_public};

use crate::failure::{Failure, Outcome};

/// The statements of a file.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The option that names the file.
    option: &'static str,
    file: String,
    statements: Vec<Statement>,
    /// The furthest that a statement reaches beyond the schema of its session, and its line.
    reach: Option<(Reach, u32)>,
    /// True if nobody who runs it has written it.
    recorded: bool,
}

/// A statement of the file.
#[derive(Debug, Clone)]
struct Statement {
    /// Its first line.
    line: u32,
    text: String,
    /// The rows that follow a COPY … FROM stdin, as they stand there.
    rows: Option<String>,
}

impl Setup {
    /// Reads the file of an option: SQL statements, each ended by a semicolon, and rows after COPY … FROM
    /// stdin.
    ///
    /// # Errors
    /// The file can't be read, holds a backslash command, or ends within a quotation or within rows.
    pub fn read(option: &'static str, path: &Path) -> Outcome<Setup> {
        let file = path.display().to_string();
        let text = isobench_trust::read_to_string(path)
            .map_err(|error| Failure::setup(format!("--{option}: could not read \"{file}\": {error}")))?;
        if let Some(line) = text.lines().position(|line| line.starts_with("\\connect ")) {
            return Err(Failure::setup(format!(
                "--{option}: {file}:{}: \\connect leads to another database; pg_dump without --create leaves it out",
                line + 1
            )));
        }
        let (text, mut copied) = without_rows(text.trim_start_matches(BYTE_ORDER_MARK)).map_err(|line| {
            Failure::setup(format!(
                "--{option}: {file}:{line}: the rows after this COPY … FROM stdin don't end: a line with \\. is missing"
            ))
        })?;
        let found = sql_statements(&file, &text).map_err(|error| match error {
            NotStatements::Malformed(error) => Failure::setup(format!("--{option}: {error}")),
            NotStatements::MetaCommand { line, name } => Failure::setup(format!(
                "--{option}: {file}:{line}: \\{name} is not SQL; only SQL statements are run"
            )),
        })?;
        let with_rows = |(line, text)| {
            let rows = copied.iter().position(|(own, _)| *own == line);
            Statement { line, text, rows: rows.map(|place| copied.swap_remove(place).1) }
        };
        let statements: Vec<Statement> = found.into_iter().map(with_rows).collect();
        let reaching = |one: &Statement| Some((reach(&one.text)?, one.line));
        let reach =
            statements.iter().filter_map(reaching).max_by_key(|(reach, line)| (*reach, u32::MAX - line));
        Ok(Setup { option, file, statements, reach, recorded: is_recorded(&text) })
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
        self.statements.iter().map(|one| (format!("{}:{}", self.file, one.line), one.text.as_str()))
    }

    /// The place of the first rows that follow a COPY … FROM stdin.
    pub fn rows(&self) -> Option<String> {
        let copies = self.statements.iter().find(|one| one.rows.is_some())?;
        Some(format!("{}:{}", self.file, copies.line))
    }

    /// True if it is of a recorded application or a copied database.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// How far the statements reach beyond the schema in which they are executed, and where.
    pub fn reach(&self) -> Option<(Reach, String)> {
        self.reach.map(|(reach, line)| (reach, format!("{}:{line}", self.file)))
    }

    /// Executes the statements, each in its own transaction unless they contain transaction
    /// control. On a server of isobench's `own` the roles that they give objects to are made, and those
    /// that they create may be there already.
    ///
    /// # Errors
    /// The server refuses a statement; the message names file and line. On a server of the user's a file that
    /// makes tables writes the schema `public`.
    pub fn run(&self, connection: &mut Connection, own: bool) -> Outcome {
        let outside =
            self.statements.iter().find(|one| !own && self.option == SETUP && writes_public(&one.text));
        if let Some(outside) = outside {
            return Err(Failure::setup(format!("--{SETUP}: {}:{} {YOURS}", self.file, outside.line)));
        }
        for statement in &self.statements {
            let mut done = match statement.of_all_tables().filter(|_| !own) {
                Some(command) => on_own_tables(command, connection),
                None => statement.send(connection),
            };
            while own
                && !self.recorded
                && let Err(error) = &done
                && let Some(role) = statement.missing_role(error)
            {
                let name = role.replace('"', "\"\"");
                connection.execute(&format!("CREATE ROLE \"{name}\"")).map_err(Failure::setup)?;
                done = statement.send(connection);
            }
            match done {
                Err(error) if own && statement.has_role_already(&error) => {}
                Err(error) => return Err(self.refused(statement, &error)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn refused(&self, Statement { line, text, .. }: &Statement, error: &Error) -> Failure {
        let report = error.server().map_or_else(|| error.to_string(), |server| server.report(Some(text)));
        let hint = error.code().map_or("", |code| self.advice(code.as_str(), text));
        Failure::setup(format!("--{}: {}:{line}: {report}{hint}", self.option, self.file))
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

impl Statement {
    fn send(&self, connection: &mut Connection) -> Result<(), Error> {
        let Some(rows) = &self.rows else { return connection.execute(&self.text).map(drop) };
        let mut rest = rows.as_bytes();
        let fill = &mut |out: &mut Vec<u8>| {
            let (now, later) = rest.split_at(rest.len().min(COPIED_AT_ONCE));
            out.extend_from_slice(now);
            rest = later;
            !rest.is_empty()
        };
        connection.copy_in(&self.text, fill).map(drop)
    }

    /// The command, if it is a VACUUM or ANALYZE of all tables of the database.
    fn of_all_tables(&self) -> Option<&str> {
        let command = self.text.trim().trim_end_matches(';').trim_end();
        let separates = |letter: char| letter.is_whitespace() || "(),".contains(letter);
        let mut words = command.split(separates).filter(|word| !word.is_empty()).peekable();
        let known = |word: &str, list: &[&str]| list.iter().any(|known| word.eq_ignore_ascii_case(known));
        words.peek().filter(|first| known(first, &["vacuum", "analyze", "analyse"]))?;
        words.all(|word| known(word, &MAINTENANCE)).then_some(command)
    }

    /// The role that the server doesn't know, if the statement gives something to it.
    fn missing_role(&self, error: &Error) -> Option<String> {
        let server = error.server().filter(|server| server.code.as_str() == UNKNOWN)?;
        let of_role = OF_ROLES.iter().any(|word| has_word(&self.text, word));
        let named = server.message.split('"').nth(1).filter(|name| self.text.contains(name))?;
        of_role.then(|| named.to_owned())
    }

    /// True if it creates a role that is there.
    fn has_role_already(&self, error: &Error) -> bool {
        let mut words = self.text.split_whitespace();
        let mut next = |wanted: &[&str]| {
            words.next().is_some_and(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
        };
        error.code().is_some_and(|code| code.as_str() == DUPLICATE)
            && next(&["create"])
            && next(&["role", "user", "group"])
    }
}

/// Words of VACUUM and ANALYZE that aren't names of tables (PostgreSQL manual, "VACUUM").
const MAINTENANCE: [&str; 10] =
    ["vacuum", "analyze", "analyse", "verbose", "full", "freeze", "skip_locked", "on", "true", "parallel"];

/// Sends a VACUUM or ANALYZE for each table of the session's schema, so that it leaves those of the user's
/// alone.
fn on_own_tables(command: &str, connection: &mut Connection) -> Result<(), Error> {
    const OWN: &str = "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c \
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'm')";
    let tables = connection.query(OWN)?.rows;
    tables
        .into_iter()
        .flatten()
        .flatten()
        .try_for_each(|table| connection.execute(&format!("{command} {table}")).map(drop))
}

/// The character that some editors write at the beginning of a file.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// The most bytes of rows that are handed over at once.
const COPIED_AT_ONCE: usize = 1 << 16;

/// A text without the rows that follow COPY … FROM stdin, as `pg_dump` writes them; each line keeps its
/// number. Rows have the line of their COPY; a line within a literal is none. The error is the line of rows
/// that don't end.
fn without_rows(text: &str) -> Result<(String, Vec<(u32, String)>), u32> {
    let (mut kept, mut copied) = (String::with_capacity(text.len()), Vec::new());
    let (mut lines, mut from) = ((1..).zip(text.split_inclusive('\n')), 0);
    while let Some((number, line)) = lines.next() {
        let in_literal = || lexer::tokens(&kept[from..]).iter().any(|token| !token.closed);
        let copies = is_copy_of_rows(line) && !in_literal();
        kept.push_str(line);
        if !copies {
            continue;
        }
        let mut rows = String::new();
        loop {
            let (_, line) = lines.next().ok_or(number)?;
            kept.push('\n');
            if line.trim_end_matches(['\r', '\n']) == "\\." {
                break;
            }
            rows.push_str(line);
        }
        copied.push((number, rows));
        from = kept.len();
    }
    Ok((kept, copied))
}

/// True for a statement that rows of data follow, which only psql sends.
fn is_copy_of_rows(line: &str) -> bool {
    let line = line.trim_end().to_ascii_lowercase();
    line.starts_with("copy ") && line.contains(" from stdin") && line.ends_with(';')
}

/// Codes of errors for existing objects: a table, a function, any other object, a schema, a
/// database (PostgreSQL manual, "Error Codes").
const EXISTS: [&str; 5] = ["42P07", "42723", "42710", "42P06", "42P04"];

/// Advice on such an error.
const AGAIN: &str = "; the file is run before each cell, in a schema made anew, but what it makes elsewhere is still \
    there: let it begin with DROP … IF EXISTS for that";

/// The option of files that make tables, which lie in a schema of isobench's.
const SETUP: &str = "setup";

/// Why such a file isn't executed on a server of the user's, and what to do.
const YOURS: &str = "writes the schema \"public\" of this server, which isobench leaves alone: leave its name and \
    set_config('search_path', …) out, so that isobench makes the tables in its own schema, such as by sed 's/public\\.//g; \
    /set_config/d'; or name no server, so that isobench starts one of its own";

/// The codes of errors for an unknown role and for one that is there, and words of statements that name one
/// in a dump.
const UNKNOWN: &str = "42704";
const DUPLICATE: &str = "42710";
const OF_ROLES: [&str; 4] = ["owner", "grant", "revoke", "privileges"];

/// Advice on such an error.
const NO_OWNER: &str = "; pg_dump --no-owner --no-privileges leaves roles out";

/// Advice on an error of a statement that lacks a right.
const CONFINED: &str = "; copied and recorded SQL runs without a superuser's rights on a server of isobench's own. If \
    you trust the file, remove its first line (--@ recorded), and that of the scripts";

/// The code of an error for a missing right.
const NO_RIGHT: &str = "42501";

/// True if a text has a word, in letters of either case, in quotations too.
pub fn has_word(text: &str, word: &str) -> bool {
    let letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.split(|other| !letter(other)).any(|found| found.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Outcome<Setup> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables.sql");
        std::fs::write(&path, text).unwrap();
        Setup::read("setup", &path)
    }

    #[test]
    fn statements_keep_their_text_and_line() {
        let text = "-- tables\nCREATE TABLE t (v text DEFAULT ';');\n\nDO $$ BEGIN PERFORM 1; END $$;\nINSERT INTO \
            t VALUES (':x');\n";
        let setup = read(text).unwrap();
        let lines: Vec<u32> = setup.statements.iter().map(|one| one.line).collect();
        assert_eq!(lines, [2, 4, 5]);
        assert!(setup.statements[1].text.starts_with("DO $$ BEGIN PERFORM 1; END $$"));
        assert!(setup.statements[2].text.contains("':x'"));
    }

    #[test]
    fn the_furthest_reach_is_found_with_its_line() {
        let reach = |text: &str| {
            let (reach, place) = read(text).unwrap().reach()?;
            Some((reach.word(), place.rsplit(':').next().unwrap().to_owned()))
        };
        assert_eq!(reach("CREATE TABLE t (v int);\nINSERT INTO t SELECT 1;\n"), None);
        assert_eq!(reach("CREATE TABLE t (role text, public bool); -- CREATE EXTENSION\n"), None);
        let text = "CREATE TABLE public.t (v int);\n\nCREATE TABLE public.u ();\n";
        assert_eq!(reach(text), Some(("public", "1".to_owned())));
        let text = "CREATE TABLE public.t (v int);\nCREATE ROLE r;\n";
        assert_eq!(reach(text), Some(("role", "2".to_owned())));
    }

    #[test]
    fn maintenance_of_all_tables_is_known() {
        let all = |text: &str| {
            let setup = read(&format!("{text};\n")).unwrap();
            setup.statements[0].of_all_tables().map(str::to_owned)
        };
        assert_eq!(all("ANALYZE").as_deref(), Some("ANALYZE"));
        assert_eq!(all("vacuum (analyze, freeze on)").as_deref(), Some("vacuum (analyze, freeze on)"));
        for named in ["ANALYZE t", "VACUUM FULL t", "VACUUM (ANALYZE) t", "SELECT 1"] {
            assert_eq!(all(named), None, "{named}");
        }
    }

    #[test]
    fn a_dump_is_read() {
        let dump = "\\restrict a1B2\n\nSET lock_timeout = 0;\nCREATE TABLE public.t (v int);\n\n\\unrestrict a1B2\n\n";
        let setup = read(dump).unwrap();
        assert_eq!(setup.statements.iter().map(|one| one.line).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn rows_of_a_dump_belong_to_their_copy() {
        let dump = "\u{feff}SELECT 1;\nCOPY public.t (v) FROM stdin;\n1\t;\n\\N\t'\n\\.\n\n\nCOPY u FROM STDIN WITH \
                    (FORMAT csv);\n\\.\nSELECT 2;\n";
        let setup = read(dump).unwrap();
        let found: Vec<(u32, Option<&str>)> =
            setup.statements.iter().map(|one| (one.line, one.rows.as_deref())).collect();
        assert_eq!(found, [(1, None), (2, Some("1\t;\n\\N\t'\n")), (8, Some("")), (10, None)]);
        assert!(setup.rows().unwrap().ends_with("tables.sql:2"));
        let literal = read("INSERT INTO t VALUES ('a\nCOPY t FROM stdin;\nb');\n").unwrap();
        assert!(literal.rows().is_none() && literal.statements.len() == 1);
        let message = read("SELECT 1;\nCOPY public.t (v) FROM stdin;\n1\n").unwrap_err().to_string();
        assert!(message.contains("tables.sql:2: the rows after this COPY"), "{message}");
    }

    #[test]
    fn a_backslash_command_is_refused_with_its_line() {
        let message = read("CREATE TABLE t (v int);\n\\set x 1\n").unwrap_err().to_string();
        assert!(message.contains("tables.sql:2") && message.contains("\\set"), "{message}");
        let message = read("CREATE DATABASE d;\n\\connect d\n").unwrap_err().to_string();
        assert!(message.contains("tables.sql:2") && message.contains("without --create"), "{message}");
    }
}
