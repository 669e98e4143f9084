//! One execution of a script, statement by statement: what it sends next, and the answers.

use std::collections::BTreeMap;

use isobench_pgwire::{SqlState, TransactionStatus};
use isobench_script::{
    Command, CommandKind, EvalContext, EvalError, Expr, Piece, Slot, Sql, Statement, Store, Symbols, Value,
    literal_of_variable,
};

use super::program::{CLIENT, Choice, Number, Program, Programs, Targets, Transaction, number_of};
use super::targets::{Compared, Comparison, Origin};
use super::walk::{Numbers, Taken, Walk};
use crate::event::Table;
use crate::tester::Reply;

/// One execution of a script.
#[derive(Debug)]
pub struct Execution<'a> {
    program: &'a Program,
    literals: bool,
    symbols: &'a Symbols,
    choice: &'a Choice,
    targets: &'a Targets,
    /// The number from which those of the choice count, where a draw's range has it.
    start: Option<i64>,
    walk: Walk<'a>,
    /// The statement that is on its way; `None` for the end of a block that isn't the script's own.
    sent: Option<usize>,
    /// True while a block is open that encloses a statement outside of blocks.
    pub enclosed: bool,
    /// The variables that got their values from the server.
    read: Vec<Slot>,
    /// The variables that were drawn, each with its command.
    drawn: BTreeMap<Slot, usize>,
    /// What happened so far.
    pub view: View,
    /// The number of statements that have been answered.
    pub steps: usize,
    /// How it ended.
    pub ending: Ending,
}

/// The state of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It goes on.
    Running,
    /// All its transactions ended.
    Done,
    /// A transaction failed; the reason.
    Failed(String),
}

impl Ending {
    /// Why a transaction failed.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Ending::Failed(why) => Some(why),
            Ending::Running | Ending::Done => None,
        }
    }
}

/// What a script sent, and the answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The commands at which it came out of conditions.
    pub branches: Vec<usize>,
    /// The statements, each by its command.
    pub sent: Vec<(usize, String)>,
    /// What the statements compared columns with.
    pub compared: Vec<Comparison>,
    /// The answers, each with its command.
    pub answers: Vec<(usize, Answer)>,
    /// The commands whose rows went to the client, not into variables.
    pub shown: Vec<usize>,
    /// True if it declined: a test of a value that it had read found no row, or it rolled back by
    /// itself.
    pub declined: bool,
    /// True if it changed rows; where that isn't known, if it sent a statement that may change rows, and
    /// found some.
    pub wrote: bool,
    /// The SQLSTATE of the statement that failed.
    pub failed_with: Option<SqlState>,
}

impl View {
    /// Whether the server doesn't accept a statement as it is written: it has a syntax error, or names
    /// something that doesn't exist or isn't permitted (class 42), or the transaction is read only.
    pub fn is_mistaken(&self) -> bool {
        let is_mistake =
            |code: SqlState| code.as_str().starts_with("42") || code == SqlState::READ_ONLY_SQL_TRANSACTION;
        self.failed_with.is_some_and(is_mistake)
    }

    /// Whether a unique index, or a primary key, refused a row.
    pub fn violates_key(&self) -> bool {
        self.failed_with == Some(SqlState::UNIQUE_VIOLATION)
    }
}

/// The answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Rows of the last statement that returned some; `ordered` if the statement asks for an order.
    Rows {
        /// Whether the order of the rows counts.
        ordered: bool,
        /// The rows.
        table: Table,
    },
    /// The command tag.
    Tag(String),
}

/// What a script does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends this; in a block of its own if `enclose` is true.
    Send {
        /// The SQL.
        sql: String,
        /// Whether the statement stands outside of blocks, and can be in one.
        enclose: bool,
    },
    /// It has come to its end.
    End,
    /// It can't go on.
    Stuck(String),
}

/// The most numbers of a draw that are tried to come to a value.
const MOST_TARGETED: i64 = 4096;

/// The first words of statements that may end transactions themselves, and so stay outside of blocks.
const SELF_ENDING: [&str; 2] = ["call", "do"];

impl<'a> Execution<'a> {
    /// Begins an execution as the client of this number. Draws whose range has `start` count from it, the
    /// others from the least of their range.
    pub fn new(
        programs: &'a Programs,
        transaction: &'a Transaction,
        client: usize,
        start: Option<i64>,
    ) -> Execution<'a> {
        let client = match transaction.choice.get(&CLIENT) {
            Some(Number::Is(client)) => *client,
            _ => i64::try_from(client).unwrap_or(0),
        };
        let program = &programs.programs[transaction.program];
        Execution {
            program,
            literals: programs.literals,
            symbols: &programs.symbols,
            choice: &transaction.choice,
            targets: &transaction.targets,
            start,
            walk: Walk::new(program, &programs.symbols, programs.variables_of(client)),
            sent: None,
            enclosed: false,
            read: Vec::new(),
            drawn: BTreeMap::new(),
            view: View::default(),
            steps: 0,
            ending: Ending::Running,
        }
    }

    /// The line of the script with the statement that was sent last; `None` for one that isobench adds.
    pub fn line(&self) -> Option<u32> {
        Some(self.program.script.commands.get(self.sent?)?.line)
    }

    /// Walks to the next statement.
    pub fn next(&mut self, status: TransactionStatus) -> Next {
        if self.enclosed {
            self.enclosed = false;
            self.sent = None;
            return Next::Send { sql: "COMMIT".to_owned(), enclose: false };
        }
        loop {
            match self.take_command() {
                Ok(None) => {}
                Ok(Some(next)) => {
                    let open = status != TransactionStatus::Idle;
                    return match next {
                        Next::Send { enclose, sql } => Next::Send { enclose: enclose && !open, sql },
                        Next::End if open => {
                            Next::Stuck("the script ends within a transaction block".to_owned())
                        }
                        other => other,
                    };
                }
                Err(why) => return Next::Stuck(why),
            }
        }
    }

    /// Takes one command; `None` if there is nothing to send.
    fn take_command(&mut self) -> Result<Option<Next>, String> {
        let mut chosen =
            Chosen { program: self.program, choice: self.choice, targets: self.targets, start: self.start };
        match self.walk.step(&mut chosen)? {
            Taken::End => Ok(Some(Next::End)),
            Taken::Branch { to, .. } => {
                self.view.branches.push(to);
                Ok(None)
            }
            Taken::Set { at, slot } => {
                self.read.retain(|read| *read != slot);
                self.drawn.remove(&slot);
                if self.program.draws.iter().any(|draw| draw.place.0 == at) {
                    self.drawn.insert(slot, at);
                }
                Ok(None)
            }
            Taken::Sql(at) => {
                let CommandKind::Sql(sql) = &self.program.script.commands[at].kind else { return Ok(None) };
                let text = self.text(sql);
                self.view.sent.push((at, text.clone()));
                self.view.compared.extend(self.comparison(sql));
                self.sent = Some(at);
                self.view.declined |= sql.statements.contains(&Statement::Rollback);
                Ok(Some(Next::Send { enclose: is_plain(sql, &text), sql: text }))
            }
            Taken::Other => Ok(None),
        }
    }

    /// The SQL with the values of its variables.
    fn text(&self, sql: &Sql) -> String {
        let mut out = Vec::new();
        for piece in &sql.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Variable { slot, .. } if self.literals => {
                    let mut value = Vec::new();
                    if self.walk.variables.write_text(*slot, &mut value) {
                        let value = literal_of_variable(&String::from_utf8_lossy(&value));
                        out.extend_from_slice(value.as_bytes());
                    } else {
                        out.extend_from_slice(b"NULL");
                    }
                }
                Piece::Variable { slot, written } => {
                    if !self.walk.variables.write_text(*slot, &mut out) {
                        out.extend_from_slice(written.as_bytes());
                    }
                }
            }
        }
        String::from_utf8_lossy(&out).trim().to_owned()
    }

    /// The columns that a statement compares with variables, by equality.
    fn comparison(&self, sql: &Sql) -> Option<Comparison> {
        let mut comparison = Comparison::new();
        for pair in sql.pieces.windows(2) {
            let [Piece::Text(text), Piece::Variable { slot, .. }] = pair else { continue };
            let Some(column) = column_compared(text) else { continue };
            let mut value = Vec::new();
            if self.walk.variables.write_text(*slot, &mut value) {
                let value = String::from_utf8_lossy(&value).into_owned();
                let origin = match self.drawn.get(slot) {
                    Some(command) => Origin::Drawn(*command),
                    None if self.read.contains(slot) => Origin::Found,
                    None => Origin::Computed,
                };
                comparison.insert(column, Compared { value, origin });
            }
        }
        (!comparison.is_empty()).then_some(comparison)
    }

    /// Takes the replies to what was sent. `guards` says whether a condition on this column says
    /// whether a row is still as it was read, rather than which row it is.
    pub fn take(&mut self, replies: Vec<Reply>, guards: &dyn Fn(&str) -> bool) {
        self.steps += 1;
        let mut answer = None;
        let mut rows = Vec::new();
        for reply in replies {
            match reply {
                Reply::Rows(table) => {
                    rows.push(table.clone());
                    answer = Some(Answer::Rows { ordered: false, table });
                }
                Reply::Command(tag) => answer = Some(Answer::Tag(tag)),
                Reply::Error(error) => {
                    let code = error.code;
                    let line = self.sent.map_or(0, |at| self.program.script.commands[at].line);
                    self.view.failed_with = Some(code);
                    self.ending = Ending::Failed(format!("line {line}: {code}: {}", error.message));
                    return;
                }
                Reply::Lost(why) => {
                    self.ending = Ending::Failed(why);
                    return;
                }
                Reply::Copy(_) => {
                    self.ending = Ending::Failed("COPY".to_owned());
                    return;
                }
            }
        }
        let Some(at) = self.sent else { return };
        let Some(Command { kind: CommandKind::Sql(sql), .. }) = self.program.script.commands.get(at) else {
            return;
        };
        if let Some(Answer::Rows { ordered, .. }) = &mut answer {
            *ordered = sql.keyword(&["order"]).is_some();
        }
        let nothing = match &answer {
            Some(Answer::Tag(tag)) => tag.ends_with(" 0"),
            Some(Answer::Rows { table, .. }) => table.rows.is_empty(),
            None => false,
        };
        self.view.wrote |= !nothing && may_write(sql);
        if nothing && sql.keyword(&["update", "delete"]).is_some() && self.tests_what_it_read(sql, guards) {
            self.view.declined = true;
        }
        if matches!(answer, Some(Answer::Rows { .. })) && sql.store == Store::None {
            self.view.shown.push(at);
        }
        if let Some(answer) = answer {
            self.view.answers.push((at, answer));
        }
        self.store(&sql.store, &rows);
    }

    /// True if a condition of a statement compares a column with a variable that was read before, and
    /// the column isn't the one by which the row is found.
    fn tests_what_it_read(&self, sql: &Sql, guards: &dyn Fn(&str) -> bool) -> bool {
        // The condition as far as it has been met, with a mark for each variable.
        let mut condition: Option<String> = None;
        for piece in &sql.pieces {
            match piece {
                Piece::Text(text) => match (text.to_ascii_lowercase().rfind("where"), &mut condition) {
                    (Some(at), _) => condition = Some(text[at + "where".len()..].to_owned()),
                    (None, Some(condition)) => condition.push_str(text),
                    (None, None) => {}
                },
                Piece::Variable { slot, .. } => {
                    let Some(condition) = &mut condition else { continue };
                    if self.read.contains(slot)
                        && column_compared(condition).is_some_and(|column| guards(&column))
                    {
                        return true;
                    }
                    condition.push('?');
                }
            }
        }
        false
    }

    fn store(&mut self, store: &Store, rows: &[Table]) {
        let (prefix, tables) = match store {
            Store::None => return,
            Store::Gset { prefix } => {
                let last = rows.last();
                let count = last.map_or(0, |table| table.rows.len());
                if count != 1 {
                    self.ending = Ending::Failed(format!("\\gset: {count} rows"));
                    return;
                }
                (prefix, &rows[rows.len() - 1..])
            }
            Store::Aset { prefix } => (prefix, rows),
        };
        for table in tables {
            let Some(row) = table.rows.last() else { continue };
            for (column, value) in table.columns.iter().zip(row) {
                let Some(slot) = self.symbols.lookup(&format!("{prefix}{column}")) else { continue };
                self.walk.variables.set_text(slot, value.as_deref().unwrap_or(""));
                self.read.push(slot);
                self.drawn.remove(&slot);
            }
        }
    }
}

/// The numbers that are chosen for an execution.
struct Chosen<'a> {
    program: &'a Program,
    choice: &'a Choice,
    targets: &'a Targets,
    start: Option<i64>,
}

impl Chosen<'_> {
    /// The value of an expression; with `moved`, one draw is this far above its first number.
    fn eval(
        &self,
        at: usize,
        expr: &Expr,
        ctx: &mut EvalContext<'_>,
        moved: Option<(usize, i64)>,
    ) -> Result<Value, EvalError> {
        expr.eval_choosing(ctx, &mut |number, least, most| match moved {
            Some((moved, above)) if moved == number => Number::Above(above).of(self.start, least, most),
            _ => number_of(self.choice, (at, number), self.start, least, most),
        })
    }

    /// The target, if one of the draws leads to it, the others being as chosen or the
    /// first ones.
    fn reached(&self, at: usize, expr: &Expr, ctx: &mut EvalContext<'_>, target: i64) -> Option<Value> {
        let first = Chosen { choice: &Choice::new(), ..*self };
        let draws = || self.program.draws.iter().filter(|draw| draw.place.0 == at);
        [self, &first].into_iter().find_map(|chosen| {
            draws().find_map(|draw| {
                let mut at_number = |above: i64| {
                    let value = chosen.eval(at, expr, ctx, Some((draw.place.1, above))).ok()?;
                    if let Value::Int(number) = value { Some(number) } else { None }
                };
                // What grows evenly is found at once.
                let (least, next) = (at_number(0)?, at_number(1)?);
                let far = target.checked_sub(least).zip(next.checked_sub(least));
                let even = far.and_then(|(far, by)| far.checked_div(by));
                let mut candidates = even.into_iter().chain(0..MOST_TARGETED);
                candidates.find_map(|above| (at_number(above)? == target).then_some(Value::Int(target)))
            })
        })
    }
}

impl Numbers for Chosen<'_> {
    fn value(&mut self, at: usize, expr: &Expr, ctx: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        let target = self.targets.get(&at).copied();
        match target.and_then(|target| self.reached(at, expr, ctx, target)) {
            Some(value) => Ok(value),
            None => self.eval(at, expr, ctx, None),
        }
    }
}

/// True if a statement may change rows, by the words that it begins with or has.
fn may_write(sql: &Sql) -> bool {
    let text = sql.as_written();
    let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).find(|word| !word.is_empty());
    let first = first.unwrap_or_default().to_ascii_lowercase();
    let reads =
        ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "set", "lock"];
    let writes = ["insert", "update", "delete", "merge", "upsert"];
    match first.as_str() {
        // "FOR UPDATE" isn't one.
        "select" | "values" | "table" => sql.statements.len() > 1,
        "with" => sql.keyword(&writes).is_some(),
        other => !reads.contains(&other),
    }
}

/// True if a statement stands for itself, so that a block around it changes nothing.
fn is_plain(sql: &Sql, text: &str) -> bool {
    let first = text.split(|letter: char| !letter.is_ascii_alphabetic()).find(|word| !word.is_empty());
    let ends_itself =
        first.is_some_and(|first| SELF_ENDING.iter().any(|word| word.eq_ignore_ascii_case(first)));
    matches!(sql.statements.as_slice(), [Statement::Other]) && !ends_itself
}

/// The column of a comparison by equality that this text ends with, type casts and the quotation mark of what
/// it is compared with aside: `… AND a.version = `, `xmin::text = '`, `(id, version) = (?, `.
fn column_compared(text: &str) -> Option<String> {
    let text = text.strip_suffix('\'').unwrap_or(text).trim_end();
    if text.ends_with([',', '(']) {
        let (before, values) = text.rsplit_once('(').filter(|(_, values)| !values.contains(')'))?;
        let (_, columns) =
            before.trim_end().strip_suffix('=')?.trim_end().strip_suffix(')')?.rsplit_once('(')?;
        return column_named(columns.split(',').nth(values.matches(',').count())?);
    }
    let lower = text.to_ascii_lowercase();
    let sign = ["=", "is not distinct from"].into_iter().find(|sign| lower.ends_with(sign))?;
    column_named(&text[..text.len() - sign.len()])
}

/// The column that this text ends with, without its table and type casts.
fn column_named(text: &str) -> Option<String> {
    let mut text = text.trim_end();
    loop {
        let start = text.rfind(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '"'));
        let (before, name) = text.split_at(start.map_or(0, |at| at + 1));
        let Some(transactions) = before.strip_suffix("::") else {
            let name = name.trim_matches('"');
            return (!name.is_empty()).then(|| name.to_ascii_lowercase());
        };
        text = transactions.trim_end();
    }
}

#[cfg(test)]
mod tests {
    use isobench_script::{Symbols, Variables, parse};

    use super::*;

    const EDIT: &str = "\\set id random(1, 8)\nBEGIN;\nSELECT v FROM t WHERE id = :id \\gset\n\
                        \\if :v > 5\nDELETE FROM t WHERE id = :id;\n\\endif\n\
                        UPDATE t SET v = :v + 1 WHERE id = :id AND v = :v;\nCOMMIT;\nSELECT 1;\n";

    fn programs(text: &str) -> Programs {
        let mut symbols = Symbols::new();
        let script = parse("edit.sql", text, &mut symbols).unwrap();
        let variables = Variables::new(&symbols);
        Programs::new([&script], symbols, variables)
    }

    fn rows(column: &str, value: &str) -> Vec<Reply> {
        let table = Table { columns: vec![column.to_owned()], rows: vec![vec![Some(value.to_owned())]] };
        vec![Reply::Rows(table)]
    }

    fn sends(execution: &mut Execution<'_>, status: TransactionStatus) -> (String, bool) {
        match execution.next(status) {
            Next::Send { sql, enclose } => (sql, enclose),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_script_runs_with_chosen_numbers_and_what_it_is_told() {
        use TransactionStatus::{Idle, InTransaction};
        let programs = programs(EDIT);
        let transaction = Transaction::with(0, Choice::from([((0, 0), Number::Above(2))]));
        let mut execution = Execution::new(&programs, &transaction, 0, None);
        let guards = |column: &str| column == "v";
        let tag = |tag: &str| vec![Reply::Command(tag.to_owned())];
        assert_eq!(sends(&mut execution, Idle), ("BEGIN;".to_owned(), false));
        execution.take(tag("BEGIN"), &guards);
        assert_eq!(sends(&mut execution, InTransaction).0, "SELECT v FROM t WHERE id = 3");
        execution.take(rows("v", "4"), &guards);
        assert_eq!(sends(&mut execution, InTransaction).0, "UPDATE t SET v = 4 + 1 WHERE id = 3 AND v = 4;");
        execution.take(tag("UPDATE 0"), &guards);
        assert!(execution.view.declined, "the version had changed");
        assert_eq!(sends(&mut execution, InTransaction).0, "COMMIT;");
        execution.take(tag("COMMIT"), &guards);
        assert_eq!(sends(&mut execution, Idle), ("SELECT 1;".to_owned(), true));
        execution.enclosed = true;
        execution.take(rows("?column?", "1"), &guards);
        assert_eq!(sends(&mut execution, InTransaction), ("COMMIT".to_owned(), false));
        assert_eq!(execution.next(Idle), Next::End);
    }

    #[test]
    fn a_parameter_is_a_literal() {
        let mut programs = programs(EDIT);
        programs.literals = true;
        let transaction = Transaction::with(0, Choice::from([((0, 0), Number::Above(2))]));
        let mut execution = Execution::new(&programs, &transaction, 0, None);
        let guards = |_: &str| true;
        let status = TransactionStatus::InTransaction;
        sends(&mut execution, status);
        execution.take(vec![Reply::Command("BEGIN".to_owned())], &guards);
        assert_eq!(sends(&mut execution, status).0, "SELECT v FROM t WHERE id = '3'");
        execution.take(rows("v", "4"), &guards);
        let update = "UPDATE t SET v = '4' + 1 WHERE id = '3' AND v = '4';";
        assert_eq!(sends(&mut execution, status).0, update);
    }

    #[test]
    fn a_row_that_is_gone_is_no_refusal() {
        let programs = programs(EDIT);
        let transaction = Transaction::of(0);
        let mut execution = Execution::new(&programs, &transaction, 0, None);
        // Only the key is compared with what was read.
        let guards = |_: &str| false;
        for reply in [vec![Reply::Command("BEGIN".to_owned())], rows("v", "4")] {
            sends(&mut execution, TransactionStatus::InTransaction);
            execution.take(reply, &guards);
        }
        sends(&mut execution, TransactionStatus::InTransaction);
        execution.take(vec![Reply::Command("UPDATE 0".to_owned())], &guards);
        assert!(!execution.view.declined);
    }

    #[test]
    fn the_column_of_a_comparison_is_found() {
        assert_eq!(column_compared(" id = 3 AND a.\"Version\" = ").unwrap(), "version");
        assert_eq!(column_compared(" xmin::text::bigint = ").unwrap(), "xmin");
        assert_eq!(column_compared(" id = 3 AND updated_at = '").unwrap(), "updated_at");
        assert_eq!(column_compared(" id = 3 AND note IS NOT DISTINCT FROM ").unwrap(), "note");
        assert_eq!(column_compared("(id, d.version) = (").unwrap(), "id");
        assert_eq!(column_compared("(id, d.version) = (?, ").unwrap(), "version");
        assert_eq!(column_compared("(id, version) = (?, ?, "), None);
        assert_eq!(column_compared("id IN (?, "), None);
        assert_eq!(column_compared(" n > "), None);
        assert_eq!(column_compared(" n = 'a"), None);
        assert_eq!(column_compared(" = "), None);
    }
}
