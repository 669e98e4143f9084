//! One execution of a script, or of one transaction of it again: its variables, its answers, and which
//! of them count.

use std::collections::{BTreeMap, BTreeSet};

use super::scripts::{Command, Script, Store, Value};
use super::sessions::Reply;

/// An answer of a transaction: the place of its command, and the rows with their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub place: usize,
    pub store: bool,
    pub rows: Vec<Vec<Option<String>>>,
    /// Something used it.
    pub used: bool,
}

/// A transaction as executed.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "what is noted of a transaction, each on its own")]
pub struct Transaction {
    /// Where it began, with which variables.
    pub place: usize,
    pub variables: BTreeMap<String, String>,
    pub chained: bool,
    pub answers: Vec<Answer>,
    pub committed: bool,
    /// It may have changed rows.
    pub wrote: bool,
    /// It returned rows to the client.
    pub shows: bool,
    /// A change that it tried with a value of a result found no row.
    pub refused: bool,
}

impl Transaction {
    /// The answers that count: all that clients see, and values that are used. Who writes nothing does
    /// nothing but read.
    pub fn counted(&self) -> BTreeSet<usize> {
        let counts = |answer: &&Answer| !answer.store || answer.used || !self.wrote;
        self.answers.iter().filter(counts).map(|answer| answer.place).collect()
    }

    /// What was read at these places, in order.
    pub fn shown(&self, places: &BTreeSet<usize>) -> Vec<(usize, &Vec<Vec<Option<String>>>)> {
        let of = self.answers.iter().filter(|answer| places.contains(&answer.place));
        of.map(|answer| (answer.place, &answer.rows)).collect()
    }

    /// It did nothing, because what it had read wasn't so any more.
    pub fn declined(&self) -> bool {
        self.refused && !self.wrote && !self.shows
    }
}

/// A result that a value is of: the transaction and the answer, by their places.
type Origin = (usize, usize);

#[expect(clippy::struct_excessive_bools, reason = "where it is, and how it is executed")]
pub struct Run<'a> {
    script: &'a Script,
    /// The numbers that each command draws.
    draws: &'a [i64],
    place: usize,
    variables: BTreeMap<String, String>,
    origins: BTreeMap<String, BTreeSet<Origin>>,
    in_block: bool,
    pub transactions: Vec<Transaction>,
    open: bool,
    /// One transaction is executed again, and nothing else.
    only_one: bool,
    pub done: bool,
    /// BEGIN of a chained transaction that is executed alone.
    begin_first: bool,
    pub failure: Option<String>,
}

impl<'a> Run<'a> {
    pub fn new(script: &'a Script, draws: &'a [i64]) -> Run<'a> {
        Run {
            script,
            draws,
            place: 0,
            variables: BTreeMap::new(),
            origins: BTreeMap::new(),
            in_block: false,
            transactions: Vec::new(),
            open: false,
            only_one: false,
            done: false,
            begin_first: false,
            failure: None,
        }
    }

    /// The same transaction again.
    pub fn again(script: &'a Script, draws: &'a [i64], transaction: &Transaction) -> Run<'a> {
        let mut run = Run::new(script, draws);
        run.place = transaction.place;
        run.variables = transaction.variables.clone();
        run.only_one = true;
        run.begin_first = transaction.chained;
        run
    }

    /// The next statement to send; `None` at the end.
    pub fn next(&mut self) -> Option<String> {
        if self.begin_first {
            return Some("BEGIN".to_owned());
        }
        while !self.done {
            let Some(command) = self.script.0.get(self.place) else {
                self.done = true;
                break;
            };
            match command {
                Command::Set(name, value) => self.set(name, value),
                Command::If(name, lowest) => {
                    self.use_of(name);
                    let value: i64 = self.variables[name].parse().unwrap_or_default();
                    if value < *lowest {
                        self.skip_to(|command| matches!(command, Command::Else | Command::Endif));
                    }
                }
                Command::Else => self.skip_to(|command| matches!(command, Command::Endif)),
                Command::Endif => {}
                // Nothing of the next one is executed.
                Command::Sql(text, _) if self.only_one && text == "COMMIT AND CHAIN" => {
                    return Some("COMMIT".to_owned());
                }
                Command::Sql(text, _) => return Some(self.substituted(text)),
            }
            self.place += 1;
        }
        None
    }

    fn skip_to(&mut self, ends: impl Fn(&Command) -> bool) {
        self.place += 1;
        while !ends(&self.script.0[self.place]) {
            self.place += 1;
        }
    }

    fn set(&mut self, name: &str, value: &Value) {
        let (number, of) = match value {
            Value::Constant(number) => (number.to_string(), None),
            Value::Random(low, high) => (self.draws[self.place].clamp(*low, *high).to_string(), None),
            Value::Alias(other) => (self.variables[other].clone(), Some(other)),
            Value::Plus(other, more) => {
                let number: i64 = self.variables[other].parse().unwrap_or_default();
                ((number + more).to_string(), Some(other))
            }
        };
        let origins = of.and_then(|other| self.origins.get(other).cloned()).unwrap_or_default();
        self.variables.insert(name.to_owned(), number);
        self.origins.insert(name.to_owned(), origins);
    }

    fn use_of(&mut self, name: &str) {
        for (transaction, answer) in self.origins.get(name).cloned().unwrap_or_default() {
            self.transactions[transaction].answers[answer].used = true;
        }
    }

    fn substituted(&mut self, text: &str) -> String {
        let mut parts = text.split(':');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        let parts: Vec<&str> = parts.collect();
        for part in parts {
            let end = part.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(part.len());
            let name = &part[..end];
            if let Some(value) = self.variables.get(name) {
                sql.push_str(value);
            } else {
                sql.push(':');
                sql.push_str(name);
            }
            self.use_of(name);
            sql.push_str(&part[end..]);
        }
        sql
    }

    fn begin(&mut self, chained: bool) {
        self.open = true;
        let (place, variables) = (self.place, self.variables.clone());
        self.transactions.push(Transaction { place, variables, chained, ..Transaction::default() });
    }

    fn end(&mut self, committed: bool) {
        self.transactions.last_mut().expect("a transaction").committed = committed;
        self.open = false;
        self.done |= self.only_one;
    }

    /// Goes on after a reply.
    pub fn take(&mut self, reply: Result<Reply, String>) {
        if self.begin_first {
            self.begin_first = false;
            self.begin(true);
            self.in_block = true;
            return;
        }
        let Command::Sql(text, store) = &self.script.0[self.place] else { panic!("a statement") };
        if !self.open {
            self.begin(false);
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(why) => {
                self.failure = Some(why);
                self.end(false);
                self.done = true;
                return;
            }
        };
        match text.as_str() {
            "BEGIN" => self.in_block = true,
            "COMMIT" | "COMMIT AND CHAIN" => {
                self.end(true);
                self.in_block = false;
                if text.ends_with("CHAIN") && !self.done {
                    self.place += 1;
                    self.begin(true);
                    self.in_block = true;
                    return;
                }
            }
            _ => {
                let found = self.answered(text, *store, reply);
                if !found {
                    self.failure = Some("no row".to_owned());
                    self.end(!self.in_block);
                    self.done = true;
                } else if !self.in_block {
                    self.end(true);
                }
            }
        }
        self.place += 1;
    }

    /// Notes an answer; false if there is none, though the script needs one.
    fn answered(&mut self, text: &str, store: Store, reply: Reply) -> bool {
        let number = self.transactions.len() - 1;
        let of_result = |name: &str| {
            let origins = self.origins.get(name);
            origins.is_some_and(|origins| origins.iter().any(|(transaction, _)| *transaction == number))
        };
        let condition = text.split_once(" WHERE ").map_or("", |(_, condition)| condition);
        let tests = condition
            .split(':')
            .skip(1)
            .map(|part| part.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default())
            .any(of_result);
        let transaction = &mut self.transactions[number];
        transaction.refused |= reply.changed == Some(0) && tests;
        transaction.wrote |= reply.changed.is_some_and(|rows| rows > 0);
        let within = ["INSERT", "UPDATE", "DELETE"].iter().any(|word| text.contains(&format!("({word} ")));
        transaction.wrote |= text.starts_with("WITH") && within;
        if reply.columns.is_empty() {
            return true;
        }
        let stores = store != Store::Client;
        transaction.shows |= !stores;
        let mut rows = reply.rows;
        rows.sort();
        let last = rows.last().cloned();
        let answer = transaction.answers.len();
        transaction.answers.push(Answer { place: self.place, store: stores, rows, used: false });
        if !stores {
            return true;
        }
        let Some(last) = last else { return store == Store::Aset };
        for (column, value) in reply.columns.iter().zip(last) {
            self.variables.insert(column.clone(), value.unwrap_or_default());
            self.origins.insert(column.clone(), [(number, answer)].into());
        }
        true
    }

    /// True if a transaction hasn't ended.
    pub fn is_in_block(&self) -> bool {
        self.open && self.in_block
    }
}
