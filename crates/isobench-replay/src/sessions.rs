//! Sessions split into transactions, each with its level and its end.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::rc::Rc;

use isobench_capture::{Answer, Column, Datum, Header, Opened, ReadError, Reader, Record, Source, Statement};
use isobench_isolation::Level;

use crate::statement::{Normal, Role, asks_session_only};
use isobench_script::lexer::{Kind, Token, statements, tokens, words};

/// A statement of the workload, executed.
#[derive(Debug, Clone)]
pub struct Executed {
    /// What it is: part of the workload, or a savepoint.
    pub role: Role,
    /// Its normal form.
    pub normal: Normal,
    /// Its answer; empty if it has none.
    pub answer: Answer,
    /// The columns of its result.
    pub columns: Rc<[Column]>,
    /// When it was sent, in microseconds since recording began.
    pub at: u64,
    /// From then to the end of its answer, in microseconds.
    pub took: u64,
    /// The line of the capture that has it.
    pub line: u64,
    /// Its text, as sent.
    pub sent: Rc<str>,
    /// The values of its parameters.
    pub parameters: Rc<[Option<Datum>]>,
}

/// A statement that may touch rows, and that no script has: `COPY`, `DO`, `TRUNCATE`, `DECLARE`.
#[derive(Debug, Clone)]
pub struct Beyond {
    /// How many statements of its transaction come before it.
    pub after: usize,
    /// Its text, as sent.
    pub sent: Rc<str>,
    /// The values of its parameters.
    pub parameters: Rc<[Option<Datum>]>,
    /// The line of the capture that has it.
    pub line: u64,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// The application rolled it back, without an error before.
    RolledBack,
    /// A statement failed, with this SQLSTATE.
    Failed(String),
    /// The session or the record ended before it did.
    Open,
}

/// A transaction.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// The number of its session.
    pub session: u64,
    /// When its first statement was sent.
    pub at: u64,
    /// When its last statement was sent, which is that of its end if it is a block.
    pub until: u64,
    /// When the answer to that statement came.
    pub ended: u64,
    /// When the server's answer came that it committed, if it did.
    pub acknowledged: Option<u64>,
    /// True if it is a block, false for a statement alone.
    pub block: bool,
    /// Its level, if the application said one; else it is the server's default.
    pub level: Option<Level>,
    /// True if the application said `READ ONLY`.
    pub read_only: bool,
    /// True if the application said `DEFERRABLE`.
    pub deferrable: bool,
    /// Its statements.
    pub statements: Vec<Executed>,
    /// How it ended.
    pub end: End,
    /// The trace that it belongs to, if its statements name one (`traceparent`).
    pub request: Option<String>,
    /// The route of that request, if its statements name one (`route`, or `controller` and `action`).
    pub route: Option<String>,
    /// Statements that may touch rows, and that no script has.
    pub beyond: Vec<Beyond>,
}

/// What a capture holds.
#[derive(Debug)]
pub struct Recorded {
    /// The header.
    pub header: Header,
    /// The transactions with statements of the workload, in the order in which they began.
    pub transactions: Vec<Transaction>,
    /// Transactions without statements of the workload, but with others that may touch rows.
    pub beyond: Vec<Transaction>,
    /// How sessions began, in order.
    pub opened: Vec<Opened>,
    /// The search paths that statements set.
    pub search_paths: BTreeSet<String>,
    /// Statements that change the schema, in order, as sent, if they succeeded.
    pub schema: Vec<String>,
    /// The number of statements that are no part of the workload, by what they are.
    pub left_out: BTreeMap<String, u64>,
    /// The number of all statements.
    pub statements: u64,
    /// What passed unrecorded.
    pub unseen: Vec<String>,
    /// True if the capture ends in order.
    pub whole: bool,
    /// The server's version, if a session named it.
    pub server_version: Option<String>,
}

#[derive(Default)]
struct Session {
    default: Option<Level>,
    open: Option<Transaction>,
    /// Statements that a Sync hasn't ended yet make one transaction.
    implicit: bool,
}

/// Reads a capture up to its end.
///
/// # Errors
/// It can't be read.
pub fn read(input: impl BufRead) -> Result<Recorded, ReadError> {
    let mut reader = Reader::begin(input)?;
    let mut recorded = Recorded {
        header: reader.header().clone(),
        transactions: Vec::new(),
        beyond: Vec::new(),
        opened: Vec::new(),
        search_paths: BTreeSet::new(),
        schema: Vec::new(),
        left_out: BTreeMap::new(),
        statements: 0,
        unseen: Vec::new(),
        whole: false,
        server_version: None,
    };
    let mut sessions: HashMap<u64, Session> = HashMap::new();
    while let Some(record) = reader.next_record()? {
        match record {
            Record::Opened(opened) => {
                recorded.server_version = opened.server_version.clone().or(recorded.server_version.take());
                let default = at_start(&opened);
                sessions.insert(opened.session, Session { default, ..Session::default() });
                recorded.opened.push(opened);
            }
            Record::Closed(closed) => {
                if let Some(session) = sessions.get_mut(&closed.session) {
                    recorded.finish(session, &End::Open);
                }
            }
            Record::Statement(statement) => {
                let session = sessions.entry(statement.session).or_default();
                let text = reader.text(statement.text).to_owned();
                let columns = |answer: &Answer| -> Rc<[Column]> {
                    answer.columns.map_or(Rc::from([]), |number| reader.columns(number).into())
                };
                recorded.take(session, Sent { statement: &statement, line: reader.line() }, &text, &columns);
            }
            Record::Unseen(unseen) => recorded.unseen.push(unseen.what),
            Record::Ended(end) => recorded.unseen.extend(end.why),
        }
    }
    recorded.whole = reader.ended();
    for session in sessions.values_mut() {
        recorded.finish(session, &End::Open);
    }
    recorded.transactions.sort_by_key(|transaction| (transaction.at, transaction.session));
    Ok(recorded)
}

/// The level that a session's start-up parameters set.
fn at_start(opened: &Opened) -> Option<Level> {
    let named = opened.parameters.get("default_transaction_isolation");
    named.and_then(|level| level.parse().ok()).or_else(|| {
        let options = opened.parameters.get("options")?.replace("\\ ", "_");
        let (_, after) = options.split_once("default_transaction_isolation=")?;
        after.split_whitespace().next()?.trim_matches(['\'', '"']).parse().ok()
    })
}

/// The level that a statement names.
fn level_in(statement: &str) -> Option<Level> {
    let tokens = words(statement);
    let found = tokens.windows(2).position(|pair| pair[0].is("ISOLATION") && pair[1].is("LEVEL"));
    if let Some(at) = found {
        let word = |place: usize| tokens.get(place).map_or("", |token| token.text);
        let two = format!("{} {}", word(at + 2), word(at + 3));
        return two.parse().ok().or_else(|| word(at + 2).parse().ok());
    }
    let setting = |text: &str| {
        let text = text.trim_matches('\'').to_ascii_lowercase();
        text == "default_transaction_isolation" || text == "transaction_isolation"
    };
    let at = tokens.iter().position(|token| setting(token.text))?;
    let value =
        tokens[at + 1..].iter().find(|token| token.kind == Kind::Text || token.text.parse::<Level>().is_ok());
    value?.text.trim_matches('\'').parse().ok()
}

/// True if a statement sets what all later transactions of the session begin with.
fn is_of_session(statement: &str) -> bool {
    let tokens = words(statement);
    let default = |text: &str| text.trim_matches('\'').eq_ignore_ascii_case("default_transaction_isolation");
    let characteristics = tokens.iter().any(|token| token.is("CHARACTERISTICS"));
    characteristics || tokens.iter().any(|token| default(token.text))
}

impl Recorded {
    /// Takes a record of one or more statements.
    fn take(
        &mut self,
        session: &mut Session,
        sent: Sent<'_>,
        text: &str,
        columns: &dyn Fn(&Answer) -> Rc<[Column]>,
    ) {
        let Sent { statement, line } = sent;
        // The rest of a result that was fetched in pieces.
        let parts = if statement.continued { Vec::new() } else { statements(text) };
        let several = parts.len() > 1;
        // A server's log has no status: there a statement outside of a block is a transaction.
        let in_transaction = match statement.status {
            Some(status) => status != 'I',
            None => self.header.source == Source::Protocol,
        };
        for (number, part) in parts.iter().enumerate() {
            self.statements += 1;
            let answer = statement.answers.get(number);
            if answer.is_none() && several && !statement.answers.is_empty() {
                self.leave_out("not executed, after an error");
                continue;
            }
            let text = without_outputs(part, &statement.types);
            let part = Part { text: &text, answer: answer.cloned().unwrap_or_default(), statement, line };
            let columns = columns(&part.answer);
            self.part(session, part, columns, several || in_transaction);
        }
        if statement.status == Some('I') {
            self.finish(session, &End::Committed);
        }
    }

    fn part(&mut self, session: &mut Session, part: Part<'_>, columns: Rc<[Column]>, implicit: bool) {
        let role = Role::of(part.text);
        let failed = part.answer.error.as_ref().map(|error| error.code.clone());
        let level = level_in(part.text);
        if failed.is_none() {
            self.note_beyond(session, &role, &part, implicit);
        }
        match &role {
            Role::Begin => {
                if session.open.as_ref().is_none_or(|open| !open.block) {
                    self.finish(session, &End::Committed);
                    let mut begun = part.begins(true, level.or(session.default));
                    begun.note_modes(part.text);
                    session.open = Some(begun);
                }
                session.implicit = false;
            }
            Role::Commit | Role::Rollback => {
                if let (Some(open), Some(code)) = (&mut session.open, &failed) {
                    open.fail(code);
                }
                if let Some(open) = &mut session.open {
                    open.note_end(&part, part.answer.tag.as_deref() == Some("COMMIT"));
                }
                // COMMIT of a block that failed is answered by ROLLBACK.
                let undone = role == Role::Rollback || part.answer.tag.as_deref() == Some("ROLLBACK");
                self.finish(session, if undone { &End::RolledBack } else { &End::Committed });
                if words(part.text).windows(2).any(|pair| pair[0].is("AND") && pair[1].is("CHAIN")) {
                    session.open = Some(part.begins(true, session.default));
                }
            }
            Role::Setting => {
                self.leave_out("settings and questions about the session");
                if failed.is_none() && level.is_some() {
                    match &mut session.open {
                        Some(open) if !is_of_session(part.text) => open.level = level,
                        _ if is_of_session(part.text) => session.default = level,
                        _ => {}
                    }
                }
                if let Some(open) = &mut session.open {
                    open.note_modes(part.text);
                }
            }
            Role::Catalog => self.leave_out("catalog queries"),
            Role::Schema => {
                self.leave_out("changes of the schema");
                if failed.is_none() {
                    self.schema.push(part.text.to_owned());
                }
            }
            Role::Other(what) => self.leave_out(what),
            Role::Work | Role::Savepoint(..) => {
                let default = session.default;
                let open = session.open.get_or_insert_with(|| part.begins(false, default));
                if let Some(code) = &failed {
                    open.fail(code);
                }
                let rolled_back = matches!(&role, Role::Savepoint("ROLLBACK TO SAVEPOINT", _));
                if rolled_back && failed.is_none() && matches!(open.end, End::Failed(_)) {
                    open.end = End::Open;
                }
                let mut normal = Normal::of(part.text, &part.statement.parameters);
                if let Role::Savepoint(words, _) = &role {
                    // Frameworks number their savepoints.
                    (*words).clone_into(&mut normal.key);
                }
                open.request = open.request.take().or_else(|| trace(part.statement.comment.as_deref()));
                open.route = open.route.take().or_else(|| route(part.statement.comment.as_deref()));
                // Outside of a block the server has committed when it says that it is idle.
                open.note_end(&part, part.statement.status == Some('I') && part.answer.tag.is_some());
                open.statements.push(Executed {
                    role,
                    normal,
                    answer: part.answer,
                    columns,
                    at: part.statement.at,
                    took: part.statement.took,
                    line: part.line,
                    sent: part.text.into(),
                    parameters: part.statement.parameters.clone().into(),
                });
                session.implicit |= implicit && !open.block;
                if !open.block && !implicit && !session.implicit {
                    self.finish(session, &End::Committed);
                }
            }
        }
    }

    /// Notes a statement that is no part of scripts, if it may touch rows or changes what names mean.
    fn note_beyond(&mut self, session: &mut Session, role: &Role, part: &Part<'_>, implicit: bool) {
        let tokens = words(part.text);
        let first = |names: &[&str]| tokens.first().is_some_and(|token| token.is_any(names));
        if *role == Role::Setting
            && tokens.iter().any(|token| token.text.contains("search_path"))
            && !first(&["SHOW"])
        {
            self.search_paths.insert(part.text.to_owned());
        }
        let touches = match role {
            Role::Schema => first(&["TRUNCATE"]),
            Role::Setting => first(&["SELECT"]) && !asks_session_only(&tokens),
            Role::Catalog => !reads_catalogs_only(&tokens),
            Role::Other(_) => {
                let executes = first(&["EXPLAIN"]) && tokens.iter().any(|token| token.is("ANALYZE"));
                executes || !first(&HARMLESS)
            }
            _ => false,
        };
        if !touches {
            return;
        }
        let mut own = None;
        let open = match &mut session.open {
            Some(open) => open,
            None => own.insert(part.begins(false, session.default)),
        };
        open.beyond.push(Beyond {
            after: open.statements.len(),
            sent: part.text.into(),
            parameters: part.statement.parameters.clone().into(),
            line: part.line,
        });
        match own {
            // Further statements of its message, or before its Sync, are in the same transaction.
            Some(own) if implicit && !matches!(role, Role::Setting | Role::Catalog) => {
                session.open = Some(own);
                session.implicit = true;
            }
            Some(own) => self.beyond.push(own),
            None => {}
        }
    }

    fn leave_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    /// Ends the open transaction of a session.
    fn finish(&mut self, session: &mut Session, end: &End) {
        session.implicit = false;
        let Some(mut open) = session.open.take() else { return };
        if open.end == End::Open {
            open.end = end.clone();
        }
        // Several statements of one message, or before one Sync, are one transaction.
        open.block |= open.statements.len() > 1;
        if open.statements.iter().any(|executed| executed.role == Role::Work) {
            self.transactions.push(open);
        } else if !open.beyond.is_empty() {
            self.beyond.push(open);
        }
    }
}

/// The type of parameters that stand for the results of a function (`pg_type.dat`).
const VOID: u32 = 2278;

/// A statement without the parameters that the server drops from calls, since they have no type: pgjdbc sends one for
/// the result of `{? = call f(?)}`.
fn without_outputs<'a>(text: &'a str, types: &[u32]) -> Cow<'a, str> {
    if !types.contains(&VOID) {
        return Cow::Borrowed(text);
    }
    let is_output = |token: &Token<'_>| {
        let number = (token.kind == Kind::Parameter).then(|| token.text[1..].parse::<usize>().ok()).flatten();
        number.is_some_and(|number| number > 0 && types.get(number - 1) == Some(&VOID))
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut dropped = false;
    for token in &tokens(text) {
        if is_output(token) {
            dropped = true;
        } else if dropped && token.is(",") {
            dropped = false;
        } else {
            // It was the last argument: the comma before it goes.
            if dropped && token.is(")") {
                let comma =
                    kept.iter().rposition(|text| !text.trim().is_empty()).filter(|at| kept[*at] == ",");
                kept.truncate(comma.unwrap_or(kept.len()));
            }
            dropped &= token.kind == Kind::Blank;
            kept.push(token.text);
        }
    }
    Cow::Owned(kept.concat())
}

/// One of the statements of a record.
struct Part<'a> {
    text: &'a str,
    answer: Answer,
    statement: &'a Statement,
    line: u64,
}

/// A record of statements, with its line.
#[derive(Clone, Copy)]
struct Sent<'a> {
    statement: &'a Statement,
    line: u64,
}

impl Part<'_> {
    fn begins(&self, block: bool, level: Option<Level>) -> Transaction {
        Transaction {
            session: self.statement.session,
            at: self.statement.at,
            until: self.statement.at,
            ended: self.statement.at + self.statement.took,
            acknowledged: None,
            block,
            level,
            read_only: false,
            deferrable: false,
            statements: Vec::new(),
            end: End::Open,
            request: trace(self.statement.comment.as_deref()),
            route: route(self.statement.comment.as_deref()),
            beyond: Vec::new(),
        }
    }
}

impl Transaction {
    /// Notes a statement that may be the last one.
    fn note_end(&mut self, last: &Part<'_>, acknowledged: bool) {
        self.until = last.statement.at;
        self.ended = last.statement.at + last.statement.took;
        self.acknowledged = acknowledged.then_some(self.ended);
    }

    fn fail(&mut self, code: &str) {
        // What fails afterwards (25P02) fails because of the first error.
        if !matches!(self.end, End::Failed(_)) {
            self.end = End::Failed(code.to_owned());
        }
    }

    /// Notes `READ ONLY` and `DEFERRABLE`.
    fn note_modes(&mut self, statement: &str) {
        let tokens = words(statement);
        let pair =
            |one: &str, other: &str| tokens.windows(2).any(|pair| pair[0].is(one) && pair[1].is(other));
        self.read_only |= pair("READ", "ONLY");
        let deferrable = tokens.iter().any(|token| token.is("DEFERRABLE")) && !pair("NOT", "DEFERRABLE");
        self.deferrable |= deferrable;
    }

    /// True if it failed because of what other transactions did at the same time (40001, 40P01).
    pub fn conflicted(&self) -> bool {
        matches!(&self.end, End::Failed(code) if code == "40001" || code == "40P01")
    }
}

/// First words of statements that touch no rows of tables themselves, and leave what names mean.
const HARMLESS: [&str; 12] = [
    "LISTEN",
    "UNLISTEN",
    "NOTIFY",
    "CLOSE",
    "EXPLAIN",
    "CHECKPOINT",
    "LOAD",
    "FETCH",
    "MOVE",
    "PREPARE",
    "COMMIT",
    "ROLLBACK",
];

/// True for a query of which all tables are the server's own.
fn reads_catalogs_only(tokens: &[Token<'_>]) -> bool {
    const ENDS: [&str; 8] = ["WHERE", "ON", "GROUP", "ORDER", "UNION", "LIMIT", "SELECT", "HAVING"];
    let own = |name: &str| name.starts_with("pg_") || name == "information_schema";
    let mut in_from = false;
    let mut of_tables = true;
    for pair in tokens.windows(2) {
        in_from = (in_from || pair[0].is_any(&["FROM", "JOIN"])) && !pair[0].is_any(&ENDS);
        let begins = in_from && pair[0].is_any(&["FROM", "JOIN", ","]);
        let named = pair[1].name().filter(|_| begins && !pair[1].is_any(&["LATERAL", "SELECT", "ONLY"]));
        of_tables &= named.is_none_or(|name| own(&name));
    }
    let reads = tokens.first().is_some_and(|first| first.is_any(&["SELECT", "WITH"]));
    of_tables && reads && !tokens.iter().any(|token| token.is_any(&["INSERT", "UPDATE", "DELETE", "MERGE"]))
}

/// The route in a comment of `sqlcommenter`, decoded as far as it is ASCII.
fn route(comment: Option<&str>) -> Option<String> {
    let value = |name: &str| {
        let (_, after) = comment?.split_once(&format!("{name}="))?;
        let text = after.strip_prefix('\'')?.split('\'').next()?;
        Some(decoded(text))
    };
    value("route").or_else(|| Some(format!("{}#{}", value("controller")?, value("action")?)))
}

/// A text with `%2F` as `/`.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code =
            part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok()).filter(u8::is_ascii_graphic);
        match code {
            Some(code) => out.extend([char::from(code).to_string().as_str(), &part[2..]]),
            None => out.extend(["%", part]),
        }
    }
    out
}

/// The number of the trace in a comment of `sqlcommenter` (`traceparent='00-TRACE-SPAN-01'`).
fn trace(comment: Option<&str>) -> Option<String> {
    let (_, after) = comment?.split_once("traceparent=")?;
    let number = after.trim_start_matches(['\'', '"']).split('-').nth(1)?;
    (number.len() == 32 && number.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_for_results_of_functions_are_no_arguments() {
        for (text, types, expected) in [
            ("select * from f($1,$2)  as result", &[VOID, 23][..], "select * from f($2)  as result"),
            ("select * from f($1, $2) as result", &[23, VOID], "select * from f($1) as result"),
            ("select f( $1 , $2 , $3 )", &[23, VOID, 23], "select f( $1 ,   $3 )"),
            ("select f($1)", &[VOID], "select f()"),
            ("select f($1,$2)", &[23, 23], "select f($1,$2)"),
        ] {
            assert_eq!(without_outputs(text, types), expected);
        }
    }
}
