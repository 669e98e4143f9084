//! The scripts of a workload with every SQL command's messages encoded, as far as they don't depend
//! on variables.
//!
//! Not here: when a command is sent, and the meaning of the reply to the client.

use std::borrow::Cow;

use isobench_isolation::observed::ObservedDescription;
use isobench_pgwire::{ServerError, TransactionStatus, frontend};
use isobench_script::{
    Annotated, Command, CommandKind, Mix, Piece, Savepoint, Script, Slot, Sql, Statement, Store, Symbols,
    Variables,
};

use crate::annotated::{AnnotatedCommand, InsideColumns};
use crate::recording::Recording;
use crate::seen::SeenStatement;
use crate::spec::Protocol;

/// The scripts of a run, the names of their variables, and the variables' initial values.
#[derive(Clone)]
pub struct RunWorkload {
    /// The weighted scripts.
    pub mix: Mix,
    /// The names of the variables.
    pub symbols: Symbols,
    /// The initial values of every client's variables (pgbench: `-D`, `scale`, …).
    pub variables: Variables,
}

/// The meaning of a server's error for the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorClass {
    /// A conflict between transactions; the attempt may be retried.
    Conflict {
        /// The reason, as reports name it.
        reason: Cow<'static, str>,
        /// The table or row that the conflict was about, if the server reports it.
        object: Option<Cow<'static, str>>,
    },
    /// No conflict, but an error that the caller wants to be retried as conflicts are.
    Retried {
        /// The reason, as reports name it.
        reason: Cow<'static, str>,
    },
    /// The server doesn't know whether it committed (SQLSTATE 40003). Never retried.
    Ambiguous,
    /// Anything else.
    Other,
}

/// Classifies a server's error, by the rules of its product.
pub type Classify = dyn Fn(&ServerError) -> ErrorClass + Send + Sync;

/// One SQL command, encoded for sending.
pub(crate) struct SqlRequest {
    /// Index among all SQL commands of the program; numbers the prepared statements.
    pub(crate) number: usize,
    encoding: Encoding,
    /// True where the server may commit while it executes the request.
    commits: Commits,
    pub(crate) store: Store,
    /// One of its statements rolls back the whole transaction.
    pub(crate) rolls_back: bool,
    /// The savepoint that it sets, if retries can start after it.
    pub(crate) savepoint: Option<Box<str>>,
    /// The savepoint that it releases.
    pub(crate) releases: Option<Box<str>>,
    /// Its annotations, in a run that is recorded.
    pub(crate) annotated: Option<Box<AnnotatedCommand>>,
    /// The statements whose rows are observed, if that is how the run is recorded.
    pub(crate) seen: Box<[SeenStatement]>,
    /// The columns that report retries and errors inside the server.
    pub(crate) inside_columns: Option<Box<InsideColumns>>,
}

#[derive(Debug, Clone, Copy)]
struct Commits {
    /// It is one statement, which commits a block.
    alone: bool,
    in_block: bool,
    outside: bool,
}

enum Encoding {
    Simple(Vec<Piece>),
    Extended { text: String, statement: String, params: Vec<Slot>, describe: bool, keep: bool },
}

/// The messages of a request that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// All of them.
    Whole,
    /// Without Parse: the session has the statement prepared.
    Prepared,
}

impl SqlRequest {
    fn new(number: usize, sql: &Sql, file: &str, protocol: Protocol) -> SqlRequest {
        let encoding = match protocol {
            Protocol::Simple => Encoding::Simple(sql.pieces.clone()),
            Protocol::Extended | Protocol::Prepared => {
                let keep = protocol == Protocol::Prepared;
                let statement = if keep { format!("P_{number}") } else { String::new() };
                let describe = sql.store != Store::None;
                let text = sql.parameterized.clone();
                Encoding::Extended { text, statement, params: sql.params.clone(), describe, keep }
            }
        };
        let (savepoint, releases) = match &sql.savepoint {
            Some(Savepoint::Set(name)) => (Some(name.as_str().into()), None),
            Some(Savepoint::Release(name)) => (None, Some(name.as_str().into())),
            None => (None, None),
        };
        SqlRequest {
            number,
            encoding,
            commits: Commits::of(&sql.statements),
            store: sql.store.clone(),
            rolls_back: sql.statements.contains(&Statement::Rollback),
            savepoint,
            releases,
            annotated: None,
            seen: Box::default(),
            inside_columns: InsideColumns::of(sql, file).map(Box::new),
        }
    }

    /// True if the statement stays prepared in the session after its first use.
    pub(crate) fn stays_prepared(&self) -> bool {
        matches!(self.encoding, Encoding::Extended { keep: true, .. })
    }

    /// True if the request doesn't need a Sync, because it is a Query message.
    pub(crate) fn is_simple(&self) -> bool {
        matches!(self.encoding, Encoding::Simple(_))
    }

    /// True if the server may commit while it executes this in a block of this status.
    pub(crate) fn may_commit(&self, status: TransactionStatus) -> bool {
        if status == TransactionStatus::Idle { self.commits.outside } else { self.commits.in_block }
    }

    /// True if one of its statements commits a transaction block.
    pub(crate) fn is_commit(&self) -> bool {
        self.commits.in_block
    }

    /// True if it consists of a COMMIT.
    pub(crate) fn only_commits(&self) -> bool {
        self.commits.alone
    }

    /// The text that an error's position refers to, with the current values of the variables.
    /// `None` if only the name of a prepared statement is sent.
    pub(crate) fn text(&self, variables: &Variables) -> Option<String> {
        match &self.encoding {
            Encoding::Simple(pieces) => {
                let mut text = Vec::new();
                write_pieces(pieces, variables, &mut text);
                Some(String::from_utf8_lossy(&text).into_owned())
            }
            Encoding::Extended { keep: true, .. } => None,
            Encoding::Extended { text, .. } => Some(text.clone()),
        }
    }

    /// The text of the prepared statement.
    pub(crate) fn prepared_text(&self) -> Option<String> {
        match &self.encoding {
            Encoding::Simple(_) => None,
            Encoding::Extended { text, .. } => Some(text.clone()),
        }
    }

    /// The name of the prepared statement; empty if it has none.
    pub(crate) fn name(&self) -> String {
        match &self.encoding {
            Encoding::Simple(_) => String::new(),
            Encoding::Extended { statement, .. } => statement.clone(),
        }
    }

    /// The request in messages: its text, or the name of the prepared statement.
    pub(crate) fn label(&self, variables: &Variables) -> String {
        self.text(variables).unwrap_or_else(|| self.name())
    }

    /// Appends the message that prepares the statement under its name, without a Sync.
    pub(crate) fn prepare(&self, out: &mut Vec<u8>) {
        if let Encoding::Extended { text, statement, .. } = &self.encoding {
            frontend::parse(out, statement, text);
        }
    }

    /// Appends the messages that execute another statement, without parameters, and then the request,
    /// without a Sync.
    pub(crate) fn encode_after(
        &self,
        first: &str,
        variables: &Variables,
        sending: Sending,
        out: &mut Vec<u8>,
    ) {
        match &self.encoding {
            Encoding::Simple(pieces) => {
                let mark = frontend::begin_query(out);
                out.extend_from_slice(first.as_bytes());
                out.extend_from_slice(b"; ");
                write_pieces(pieces, variables, out);
                frontend::finish(out, mark);
            }
            Encoding::Extended { .. } => {
                frontend::parse(out, "", first);
                let mark = frontend::begin_bind(out, "", 0);
                frontend::finish_bind(out, mark);
                frontend::execute(out);
                self.encode(variables, sending, out);
            }
        }
    }

    /// Appends the messages that execute the request, without a Sync.
    pub(crate) fn encode(&self, variables: &Variables, sending: Sending, out: &mut Vec<u8>) {
        match &self.encoding {
            Encoding::Simple(pieces) => {
                let mark = frontend::begin_query(out);
                write_pieces(pieces, variables, out);
                frontend::finish(out, mark);
            }
            Encoding::Extended { text, statement, params, describe, .. } => {
                let statement = match sending {
                    Sending::Prepared => statement.as_str(),
                    Sending::Whole => {
                        frontend::parse(out, "", text);
                        ""
                    }
                };
                let count = u16::try_from(params.len()).unwrap_or(u16::MAX);
                let mark = frontend::begin_bind(out, statement, count);
                for slot in params {
                    if variables.is_set(*slot) {
                        frontend::param(out, |out| {
                            variables.write_text(*slot, out);
                        });
                    } else {
                        frontend::null_param(out);
                    }
                }
                frontend::finish_bind(out, mark);
                if *describe {
                    frontend::describe_portal(out, "");
                }
                frontend::execute(out);
            }
        }
    }
}

/// Appends the text with the variables' values. A variable that isn't set stays as written.
fn write_pieces(pieces: &[Piece], variables: &Variables, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Variable { slot, written } => {
                if !variables.write_text(*slot, out) {
                    out.extend_from_slice(written.as_bytes());
                }
            }
        }
    }
}

impl Commits {
    /// Follows the statements of one request through the blocks that they open and close.
    ///
    /// A statement outside a block commits by itself. RELEASE may be a commit, because it is one
    /// with CockroachDB's retry savepoint.
    fn of(statements: &[Statement]) -> Commits {
        let follow = |mut in_block: bool| {
            let mut commits = false;
            for statement in statements {
                match statement {
                    Statement::Begin => in_block = true,
                    Statement::Commit => {
                        commits |= in_block;
                        in_block = false;
                    }
                    Statement::Rollback => in_block = false,
                    Statement::Release => commits = true,
                    _ => commits |= !in_block,
                }
            }
            commits
        };
        Commits {
            alone: matches!(statements, [Statement::Commit]),
            in_block: follow(true),
            outside: follow(false),
        }
    }
}

/// The scripts of a run with their SQL commands encoded.
pub(crate) struct Program {
    /// For each script and command: the request, if it is SQL.
    requests: Vec<Vec<Option<SqlRequest>>>,
    /// Number of SQL commands.
    pub(crate) statements: usize,
    /// A command reports retries and errors inside the server.
    pub(crate) reports_inside: bool,
    /// For each script, the names of its assertions; empty unless the run is recorded.
    pub(crate) assertions: Vec<Vec<String>>,
}

impl Program {
    pub(crate) fn new(mix: &Mix, protocol: Protocol) -> Program {
        let mut statements = 0;
        let mut encode = |command: &Command, file: &str| match &command.kind {
            CommandKind::Sql(sql) => {
                statements += 1;
                Some(SqlRequest::new(statements - 1, sql, file, protocol))
            }
            _ => None,
        };
        let mut requests: Vec<Vec<Option<SqlRequest>>> = Vec::with_capacity(mix.scripts().len());
        for script in mix.scripts().iter().map(|weighted| &weighted.script) {
            let mut of_script: Vec<_> =
                script.commands.iter().map(|command| encode(command, &script.name)).collect();
            forget_late_savepoints(script, &mut of_script);
            requests.push(of_script);
        }
        let reports_inside =
            requests.iter().flatten().flatten().any(|request| request.inside_columns.is_some());
        let assertions = vec![Vec::new(); requests.len()];
        Program { requests, statements, reports_inside, assertions }
    }

    /// Prepares the annotations of the scripts, which must be those of [`Program::new`].
    pub(crate) fn annotate(&mut self, mix: &Mix, recording: &Recording) {
        let scripts = mix.scripts().iter().map(|weighted| &weighted.script);
        for ((script, requests), assertions) in scripts.zip(&mut self.requests).zip(&mut self.assertions) {
            for annotation in script.annotations() {
                if let Annotated::Holds { name, .. } = &annotation.what
                    && !assertions.contains(name)
                {
                    assertions.push(name.clone());
                }
            }
            for (command, request) in script.commands.iter().zip(requests) {
                if let (CommandKind::Sql(sql), Some(request)) = (&command.kind, request) {
                    request.annotated =
                        AnnotatedCommand::of(sql, &script.name, recording, assertions).map(Box::new);
                }
            }
        }
    }

    /// Prepares the statements whose rows are observed, and adds their texts to the description. The
    /// scripts must be those of [`Program::new`].
    pub(crate) fn show_rows(&mut self, mix: &Mix, description: &mut ObservedDescription) {
        let mut next = 0;
        let scripts = mix.scripts().iter().map(|weighted| &weighted.script);
        for (script, requests) in scripts.zip(&mut self.requests) {
            for (command, request) in script.commands.iter().zip(requests) {
                let (CommandKind::Sql(sql), Some(request)) = (&command.kind, request) else { continue };
                request.seen = SeenStatement::all(sql, &mut next, description);
                let text = format!("{}:{}: {}", script.name, command.line, command.text.trim_end());
                description.statements.extend(request.seen.iter().map(|_| text.clone()));
            }
        }
    }

    pub(crate) fn request(&self, script: usize, command: usize) -> Option<&SqlRequest> {
        self.requests[script][command].as_ref()
    }
}

/// Keeps retries from starting at a savepoint after the script's first recorded command.
///
/// The operations before such a savepoint would belong to every attempt at once.
fn forget_late_savepoints(script: &Script, requests: &mut [Option<SqlRequest>]) {
    let observed = |command: &Command| match &command.kind {
        CommandKind::Sql(sql) => !sql.annotations.is_empty() || !sql.observed.is_empty(),
        _ => false,
    };
    let first = script.commands.iter().position(observed).unwrap_or(requests.len());
    for request in requests.iter_mut().skip(first).flatten() {
        request.savepoint = None;
    }
}

/// The number of commits when a script runs from its first to its last command, counting every
/// branch.
///
/// A conflict restarts the *script*, so one that commits more than once repeats work that is
/// already committed (PostgreSQL: pgbench, Failures and Serialization/Deadlock Retries: "it is
/// assumed that one transaction script contains only one transaction").
pub fn commit_points(script: &Script) -> usize {
    let mut in_block = false;
    let mut points = 0;
    for statement in script.sql().flat_map(|sql| &sql.statements) {
        match statement {
            Statement::Begin => in_block = true,
            Statement::Rollback => in_block = false,
            Statement::Commit => {
                points += usize::from(in_block);
                in_block = false;
            }
            _ => points += usize::from(!in_block),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_script::{Weighted, parse};

    fn workload(text: &str) -> (Mix, Symbols) {
        let mut symbols = Symbols::new();
        let script = parse("test.sql", text, &mut symbols).unwrap();
        (Mix::new(vec![Weighted { script, weight: 1 }]).unwrap(), symbols)
    }

    fn commits(text: &str) -> (bool, bool) {
        let (mix, _) = workload(text);
        let program = Program::new(&mix, Protocol::Simple);
        let request = program.request(0, 0).unwrap();
        (request.may_commit(TransactionStatus::InTransaction), request.may_commit(TransactionStatus::Idle))
    }

    #[test]
    fn a_commit_depends_on_the_block_it_is_in() {
        assert_eq!(commits("BEGIN;"), (false, false));
        assert_eq!(commits("UPDATE t SET v = 1;"), (false, true));
        assert_eq!(commits("END;"), (true, false));
        assert_eq!(commits("BEGIN\\; UPDATE t SET v = 1;"), (false, false));
        assert_eq!(commits("BEGIN\\; UPDATE t SET v = 1\\; COMMIT;"), (true, true));
        assert_eq!(commits("ROLLBACK;"), (false, false));
    }

    #[test]
    fn commit_points_are_counted_over_the_script() {
        let points = |text: &str| commit_points(&workload(text).0.scripts()[0].script);
        assert_eq!(points("BEGIN;\nUPDATE t SET v = 1;\nUPDATE t SET v = 2;\nEND;"), 1);
        assert_eq!(points("UPDATE t SET v = 1;\nUPDATE t SET v = 2;"), 2);
    }

    #[test]
    fn simple_requests_hold_the_text_and_leave_unset_variables() {
        let (mix, symbols) = workload("SELECT :a, :b;");
        let program = Program::new(&mix, Protocol::Simple);
        let mut variables = Variables::new(&symbols);
        variables.set(symbols.lookup("a").unwrap(), isobench_script::Value::Int(7));
        let mut out = Vec::new();
        program.request(0, 0).unwrap().encode(&variables, Sending::Whole, &mut out);
        assert_eq!(out[0], b'Q');
        assert!(out.ends_with(b"SELECT 7, :b;\0"), "{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn a_prepared_request_is_sent_without_its_text() {
        let (mix, symbols) = workload("SELECT :a;");
        let program = Program::new(&mix, Protocol::Prepared);
        let variables = Variables::new(&symbols);
        let request = program.request(0, 0).unwrap();
        let (mut first, mut later) = (Vec::new(), Vec::new());
        request.prepare(&mut first);
        request.encode(&variables, Sending::Prepared, &mut later);
        assert_eq!(first[0], b'P');
        assert_eq!(later[0], b'B');
        assert_eq!(request.name(), "P_0");
        assert_eq!(request.text(&variables), None);
        assert_eq!(request.prepared_text().as_deref(), Some("SELECT $1;"));
    }
}
