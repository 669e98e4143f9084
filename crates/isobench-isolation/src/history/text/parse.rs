//! Parses the text format.

use std::io::BufRead;

use rustc_hash::FxHashMap;

use super::super::{
    Draft, FormatError, History, Initial, Key, Mode, Operation, Provenance, TextError, Transaction,
    TransactionOutcome, Version,
};
use super::cursor::Cursor;
use super::{DEFERRABLE, OBSERVED, READ_ONLY};
use crate::level::Level;

/// Reads a history from a text.
///
/// # Errors
/// If the text doesn't match the grammar; the error has the position.
pub fn parse(text: &str) -> Result<History, FormatError> {
    read(text.as_bytes())
}

/// Reads a history from a file, line by line.
///
/// # Errors
/// If the file can't be read, or doesn't match the grammar; the error has the position.
pub fn read(mut input: impl BufRead) -> Result<History, FormatError> {
    let mut reading = HistoryBuilder::default();
    let (mut line, mut number) = (Vec::new(), 0);
    while input.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        let text = str::from_utf8(&line).map_err(|_| {
            FormatError::Text(TextError {
                line: number,
                column: 0,
                problem: "this isn't UTF-8 text".to_owned(),
            })
        })?;
        let text = text.trim_end_matches(['\n', '\r']);
        reading.line(&mut Cursor::new(text, number)).map_err(FormatError::Text)?;
        line.clear();
    }
    reading.finish().map_err(FormatError::Text)
}

/// The history read so far.
#[derive(Default)]
struct HistoryBuilder {
    history: History,
    /// The transactions without an explicit client or instants.
    without_client: Vec<usize>,
    without_instants: Vec<usize>,
    /// The line of each transaction, by its number.
    lines: FxHashMap<u64, u64>,
    provenance: Option<Provenance>,
    draft: Draft,
    name: String,
    list: Vec<i64>,
}

impl HistoryBuilder {
    fn line(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        if cursor.at_end() {
            return Ok(());
        }
        if cursor.word() == "dropped" {
            cursor.pass("dropped")?;
            let more: u64 = cursor.number("a number of transactions")?;
            self.history.set_dropped(self.history.dropped().saturating_add(more));
        } else if cursor.word() == "initial" {
            cursor.pass("initial")?;
            self.initial(cursor)?;
        } else if cursor.word() == "observed" {
            cursor.pass("observed")?;
            self.observed(cursor)?;
        } else if matches!(cursor.word(), "statement" | "key") {
            self.described(cursor)?;
        } else if cursor.eat("T") {
            self.transaction(cursor)?;
        } else {
            return Err(cursor.expected(
                "a transaction (T1: …), \"initial ROW = …\", \"dropped N\", \"observed …\" or a comment",
            ));
        }
        if cursor.at_end() { Ok(()) } else { Err(cursor.expected("the end of the line")) }
    }

    fn transaction(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        let index = self.history.transactions().len();
        let id = cursor.number("the transaction's number")?;
        if let Some(before) = self.lines.insert(id, cursor.line_number()) {
            return Err(cursor.error(format!("T{id} is already defined in line {before}")));
        }
        let mut transaction = Transaction {
            id,
            client: 0,
            begin: 0,
            end: 0,
            outcome: TransactionOutcome::Committed,
            mode: None,
        };
        let (mut client, mut instants, mut outcome) = (false, false, false);
        let mut mode = ModeWords::default();
        while !cursor.eat(":") {
            if cursor.at_number() && !instants {
                instants = true;
                (transaction.begin, transaction.end) = between(cursor, id)?;
                continue;
            }
            let word = cursor.word();
            let ended = TransactionOutcome::ALL.into_iter().find(|outcome| outcome.name() == word);
            match ended {
                Some(ended) if !outcome => {
                    outcome = true;
                    cursor.pass(word)?;
                    transaction.outcome = ended;
                }
                None if word == "client" && !client => {
                    client = true;
                    cursor.pass(word)?;
                    cursor.pass("=")?;
                    transaction.client = cursor.number("a client's number")?;
                }
                None if mode.takes(word) => cursor.pass(word)?,
                _ => {
                    let given = [client, instants, outcome, mode.level.is_some()];
                    let words = ["client=N", "BEGIN..END", "committed, aborted, unknown", "ru, rc, rr, ser"];
                    return Err(expected_word(cursor, std::array::from_fn(|at| (given[at], words[at]))));
                }
            }
        }
        transaction.mode = mode.mode(cursor)?;
        if !client {
            self.without_client.push(index);
        }
        if !instants {
            self.without_instants.push(index);
        }
        self.operations(cursor)?;
        self.history.push(transaction, &self.draft);
        Ok(())
    }

    fn operations(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        self.draft.clear();
        if cursor.at_end() {
            return Ok(());
        }
        self.operation(cursor)?;
        while cursor.eat(",") {
            self.operation(cursor)?;
        }
        if cursor.at_end() { Ok(()) } else { Err(cursor.expected("\",\" or the end of the line")) }
    }

    /// Parses the initial contents of rows: `ROW = VERSION` or `ROW = LIST`, separated by `,`.
    fn initial(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        loop {
            let key = self.row(cursor)?;
            cursor.pass("=")?;
            let initial = if cursor.at_list() {
                self.numbers(cursor)?;
                Initial::List(self.list.clone())
            } else {
                Initial::Version(version(cursor)?)
            };
            if !self.history.set_initial(key, initial) {
                return Err(cursor.error("the row's initial value was already stated".to_owned()));
            }
            if !cursor.eat(",") {
                return Ok(());
            }
        }
    }

    fn operation(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        let kind = cursor.word();
        if !matches!(kind, "r" | "w" | "i" | "a" | "l" | "g" | "m") {
            return Err(cursor.expected("an operation (r, w, i, a, l, g or m)"));
        }
        cursor.pass(kind)?;
        let key = self.row(cursor)?;
        let operation = match kind {
            "i" => {
                cursor.pass("in")?;
                Operation::Insert { key, group: cursor.number("a group")? }
            }
            "a" => {
                cursor.pass("+=")?;
                Operation::Append { key, element: cursor.number("an element")? }
            }
            "m" => {
                Operation::Missed { key, after: limit(cursor, "after")?, before: limit(cursor, "before")? }
            }
            _ => {
                cursor.pass("=")?;
                match kind {
                    "r" => Operation::Read { key, version: version(cursor)? },
                    "w" => Operation::Write { key, version: version(cursor)? },
                    _ => {
                        self.numbers(cursor)?;
                        let list = self.list.as_slice();
                        match kind {
                            "l" => Operation::ReadList { key, elements: list },
                            _ => Operation::ReadGroup { table: key.table, group: key.id, rows: list },
                        }
                    }
                }
            }
        };
        if cursor.eat("@") {
            self.draft.push_by(operation, cursor.number("a statement's number, from 0")?);
        } else {
            self.draft.push(operation);
        }
        Ok(())
    }

    /// Parses the numbers of an observed history.
    fn observed(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        let mut numbers = [0; OBSERVED.len()];
        for (name, number) in OBSERVED.into_iter().zip(&mut numbers) {
            cursor.pass(name)?;
            cursor.pass("=")?;
            *number = cursor.number("a number")?;
        }
        self.provenance = Some(Provenance::of_numbers(numbers));
        Ok(())
    }

    /// Parses a statement or a key's text, of an observed history.
    fn described(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        let Some(mut provenance) = self.provenance.take() else {
            return Err(cursor.expected("a line \"observed …\" before it"));
        };
        if cursor.eat("statement") {
            cursor.name(&mut self.name)?;
            provenance.statements.push(self.name.clone());
        } else {
            cursor.pass("key")?;
            let table = self.table(cursor)?;
            cursor.name(&mut self.name)?;
            provenance.keys.entry(table).or_default().push(self.name.clone());
        }
        self.provenance = Some(provenance);
        Ok(())
    }

    fn row(&mut self, cursor: &mut Cursor<'_>) -> Result<Key, TextError> {
        let table = self.table(cursor)?;
        let id = if cursor.at_number() { cursor.number("a key")? } else { 0 };
        Ok(Key { table, id })
    }

    fn table(&mut self, cursor: &mut Cursor<'_>) -> Result<u16, TextError> {
        cursor.name(&mut self.name)?;
        let table = self.history.table(&self.name);
        table.ok_or_else(|| cursor.error("there are more than 65,536 tables".to_owned()))
    }

    fn numbers(&mut self, cursor: &mut Cursor<'_>) -> Result<(), TextError> {
        self.list.clear();
        cursor.pass("[")?;
        while !cursor.eat("]") {
            self.list.push(cursor.number("a number or \"]\"")?);
            cursor.eat(",");
        }
        Ok(())
    }

    /// Fills in omitted clients.
    fn finish(mut self) -> Result<History, TextError> {
        let transactions = &mut self.history.transactions;
        if self.without_instants.len() < transactions.len() {
            for index in self.without_instants {
                transactions[index].end = u64::MAX;
            }
        }
        if let Some(provenance) = self.provenance {
            self.history.set_provenance(provenance);
        }
        if !self.history.give_clients(&self.without_client) {
            let problem = "there are too many clients".to_owned();
            return Err(TextError { line: 0, column: 0, problem });
        }
        Ok(self.history)
    }
}

/// The words for a transaction's modes.
#[derive(Default)]
struct ModeWords {
    level: Option<Level>,
    read_only: bool,
    deferrable: bool,
}

impl ModeWords {
    /// Takes a word, if it is one of them and wasn't given before.
    fn takes(&mut self, word: &str) -> bool {
        let level = Level::ALL.into_iter().find(|level| level.short() == word);
        match (level, word) {
            (Some(level), _) if self.level.is_none() => {
                self.level = Some(level);
                true
            }
            (None, READ_ONLY) => !std::mem::replace(&mut self.read_only, true),
            (None, DEFERRABLE) => !std::mem::replace(&mut self.deferrable, true),
            _ => false,
        }
    }

    fn mode(&self, cursor: &Cursor<'_>) -> Result<Option<Mode>, TextError> {
        let ModeWords { level, read_only, deferrable } = *self;
        match level {
            Some(level) => Ok(Some(Mode { level, read_only, deferrable })),
            None if read_only || deferrable => {
                Err(cursor.error(format!("{READ_ONLY} and {DEFERRABLE} need a level: ru, rc, rr or ser")))
            }
            None => Ok(None),
        }
    }
}

/// The start and end of a transaction: `BEGIN..END` or `BEGIN..`.
fn between(cursor: &mut Cursor<'_>, id: u64) -> Result<(u64, u64), TextError> {
    let begin = cursor.number("an instant")?;
    cursor.pass("..")?;
    let end = if cursor.at_number() { cursor.number("an instant")? } else { u64::MAX };
    if end < begin {
        return Err(cursor.error(format!("T{id} ends at {end}, before it starts at {begin}")));
    }
    Ok((begin, end))
}

/// The error for a wrong word before the colon, listing the words that are still possible.
fn expected_word(cursor: &Cursor<'_>, words: [(bool, &str); 4]) -> TextError {
    let possible = words.into_iter().filter(|(given, _)| !given).map(|(_, word)| word);
    let mut possible: Vec<&str> = possible.collect();
    possible.push("\":\"");
    cursor.expected(&format!("one of {}", possible.join(", ")))
}

/// A counter after this word, if the word is next.
fn limit(cursor: &mut Cursor<'_>, word: &str) -> Result<Option<u64>, TextError> {
    if cursor.word() != word {
        return Ok(None);
    }
    cursor.pass(word)?;
    cursor.pass("v")?;
    cursor.number("a counter").map(Some)
}

fn version(cursor: &mut Cursor<'_>) -> Result<Version, TextError> {
    const WHAT: &str = "a version (v3/17, v3, 17 or init)";
    if cursor.word() == "init" {
        cursor.pass("init")?;
        return Ok(Version::INITIAL);
    }
    if cursor.at_number() {
        return Ok(Version { counter: None, value: Some(cursor.number("a value")?) });
    }
    if cursor.word() != "v" {
        return Err(cursor.expected(WHAT));
    }
    cursor.pass("v")?;
    let counter = Some(cursor.number("a counter")?);
    let value = if cursor.eat("/") { Some(cursor.number("a value")?) } else { None };
    Ok(Version { counter, value })
}
