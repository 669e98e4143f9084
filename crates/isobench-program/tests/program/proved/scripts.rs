//! Random scripts of a few statements over random tables.

use std::fmt;

use super::dice::Dice;
use super::schema::{Schema, Table};

/// A command of a script.
#[derive(Clone)]
pub enum Command {
    Set(String, Value),
    /// A variable and the lowest value for which the arm is taken.
    If(String, i64),
    Else,
    Endif,
    Sql(String, Store),
}

#[derive(Clone)]
pub enum Value {
    Constant(i64),
    Random(i64, i64),
    Alias(String),
    Plus(String, i64),
}

/// What becomes of a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Store {
    Client,
    Gset,
    Aset,
}

#[derive(Clone, Default)]
pub struct Script(pub Vec<Command>);

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|command| match command {
            Command::Set(name, value) => match value {
                Value::Constant(number) => writeln!(f, "\\set {name} {number}"),
                Value::Random(low, high) => writeln!(f, "\\set {name} random({low}, {high})"),
                Value::Alias(other) => writeln!(f, "\\set {name} :{other}"),
                Value::Plus(other, more) => writeln!(f, "\\set {name} :{other} + {more}"),
            },
            Command::If(name, lowest) => writeln!(f, "\\if :{name} >= {lowest}"),
            Command::Else => writeln!(f, "\\else"),
            Command::Endif => writeln!(f, "\\endif"),
            Command::Sql(text, Store::Client) => writeln!(f, "{text};"),
            Command::Sql(text, Store::Gset) => writeln!(f, "{text} \\gset"),
            Command::Sql(text, Store::Aset) => writeln!(f, "{text} \\aset"),
        })
    }
}

impl Script {
    /// A script that is written by hand, in the forms that are made here.
    pub fn read(text: &str) -> Script {
        let command = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let named = |word: &str| word.trim_start_matches(':').to_owned();
            let number = |word: &str| {
                word.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().expect("a number")
            };
            match words.as_slice() {
                ["\\set", name, value] if value.starts_with(':') => {
                    Command::Set((*name).to_owned(), Value::Alias(named(value)))
                }
                ["\\set", name, value] => Command::Set((*name).to_owned(), Value::Constant(number(value))),
                ["\\set", name, low, high] => {
                    Command::Set((*name).to_owned(), Value::Random(number(low), number(high)))
                }
                ["\\set", name, other, "+", more] => {
                    Command::Set((*name).to_owned(), Value::Plus(named(other), number(more)))
                }
                ["\\if", name, ">=", lowest] => Command::If(named(name), number(lowest)),
                ["\\else"] => Command::Else,
                ["\\endif"] => Command::Endif,
                _ => match (line.strip_suffix(" \\gset"), line.strip_suffix(" \\aset")) {
                    (Some(sql), _) => Command::Sql(sql.to_owned(), Store::Gset),
                    (_, Some(sql)) => Command::Sql(sql.to_owned(), Store::Aset),
                    _ => Command::Sql(line.trim_end_matches(';').to_owned(), Store::Client),
                },
            }
        };
        Script(text.lines().map(command).collect())
    }
}

/// Makes a script.
pub struct Maker<'a> {
    pub dice: &'a mut Dice,
    pub schema: &'a Schema,
    /// Variables that the script draws, and those of results.
    drawn: Vec<String>,
    stored: Vec<String>,
    count: usize,
    commands: Vec<Command>,
    /// Values of results, or sums, may be keys, of which there may be no row.
    pub any_key: bool,
}

impl<'a> Maker<'a> {
    pub fn new(dice: &'a mut Dice, schema: &'a Schema) -> Maker<'a> {
        let any_key = dice.chance(40);
        let (drawn, stored, commands) = (Vec::new(), Vec::new(), Vec::new());
        Maker { dice, schema, drawn, stored, count: 0, commands, any_key }
    }

    pub fn script(mut self) -> Script {
        for name in ["a", "b"] {
            let high = 2 + i64::from(self.dice.chance(20));
            let value = if self.dice.chance(15) { Value::Constant(1) } else { Value::Random(1, high) };
            self.commands.push(Command::Set(name.to_owned(), value));
            self.drawn.push(name.to_owned());
        }
        if self.dice.chance(15) {
            let other = Value::Plus("a".to_owned(), 1);
            let value = if self.dice.chance(50) { Value::Alias("a".to_owned()) } else { other };
            self.commands.push(Command::Set("c".to_owned(), value));
            self.drawn.push("c".to_owned());
        }
        match self.dice.below(10) {
            0 => {
                self.block(1, 3, "COMMIT");
                self.block(1, 2, "COMMIT");
            }
            1 => {
                self.block(1, 3, "COMMIT AND CHAIN");
                self.inside(1, 2);
                self.sql("COMMIT".to_owned());
            }
            2 => self.inside(1, 2),
            3 => {
                self.inside(1, 1);
                self.block(1, 3, "COMMIT");
            }
            _ => self.block(2, 4, "COMMIT"),
        }
        Script(self.commands)
    }

    fn sql(&mut self, text: String) {
        self.commands.push(Command::Sql(text, Store::Client));
    }

    fn block(&mut self, least: i64, most: i64, end: &str) {
        self.sql("BEGIN".to_owned());
        self.inside(least, most);
        self.sql(end.to_owned());
    }

    fn inside(&mut self, least: i64, most: i64) {
        let in_block = matches!(self.commands.last(), Some(Command::Sql(..)));
        for _ in 0..self.dice.number(least, most) {
            match self.dice.below(20) {
                0 => {
                    let name = if self.dice.chance(50) { "a" } else { "b" }.to_owned();
                    let more = Value::Plus(name.clone(), 1);
                    let value = if self.dice.chance(50) { Value::Random(1, 2) } else { more };
                    self.commands.push(Command::Set(name, value));
                    self.statement();
                }
                1 if in_block => {
                    self.sql("SAVEPOINT s".to_owned());
                    self.statement();
                    self.sql("ROLLBACK TO SAVEPOINT s".to_owned());
                }
                2..=4 => self.conditional(),
                6..=11 if in_block => self.dependent(),
                5 => {
                    self.statement();
                    let last = self.commands.last().cloned();
                    self.commands.extend(last);
                }
                _ => self.statement(),
            }
        }
    }

    fn conditional(&mut self) {
        let all: Vec<&str> = self.drawn.iter().chain(&self.stored).map(String::as_str).collect();
        let name = self.dice.one_of(&all).to_owned();
        let lowest = self.dice.number(1, 2);
        self.commands.push(Command::If(name, lowest));
        let known = self.stored.clone();
        self.statement();
        self.stored.clone_from(&known);
        if self.dice.chance(30) {
            self.commands.push(Command::Else);
            self.statement();
            self.stored = known;
        }
        self.commands.push(Command::Endif);
    }

    /// A read, and what depends on it: lost updates, write skew, reports of two states.
    fn dependent(&mut self) {
        let (table, other) = (self.keyed(), self.keyed());
        let (named, name) = (table.name.as_str(), self.fresh());
        let (key, its) = (self.by_key(table, named), self.by_key(other, &other.name));
        let lock = if self.dice.chance(50) { self.lock() } else { "" };
        let read = match self.dice.below(12) {
            10 => {
                let mode = self.dice.one_of(&["SHARE ROW EXCLUSIVE", "EXCLUSIVE", "SHARE"]);
                self.sql(format!("LOCK TABLE {named} IN {mode} MODE"));
                format!(
                    "SELECT coalesce(sum(v), 0) AS {name} FROM {named} WHERE v >= {}",
                    self.dice.number(0, 2)
                )
            }
            11 => {
                // A set of rows that is locked, and then read.
                let set = format!("{named}.{} = {}", self.value_column(table), self.value());
                let lock = self.dice.one_of(&["FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE"]);
                let order = self.dice.one_of(&["", " ORDER BY v"]);
                self.sql(format!("SELECT v FROM {named} WHERE {set}{order} {lock}"));
                let more = if self.dice.chance(50) { " AND v >= 1" } else { "" };
                format!("SELECT coalesce(sum(v), 0) + count(*) AS {name} FROM {named} WHERE {set}{more}")
            }
            0..=5 => format!("SELECT {named}.v AS {name} FROM {named} WHERE {key}{lock}"),
            6 | 7 => format!(
                "SELECT coalesce(sum(v), 0) AS {name} FROM {named} WHERE {}",
                self.condition(table, named)
            ),
            _ => format!("SELECT count(*) AS {name} FROM {named} WHERE v >= {}", self.dice.number(1, 2)),
        };
        self.commands.push(Command::Sql(read, Store::Gset));
        let write = match self.dice.below(7) {
            0 | 1 => format!("UPDATE {named} SET v = :{name} + 1 WHERE {key}"),
            2 => format!("UPDATE {named} SET v = :{name} + 1 WHERE {key} AND v = :{name}"),
            3 | 4 => format!("UPDATE {} SET v = :{name} + 2 WHERE {its}", other.name),
            5 if other.changing => self.insert(other),
            _ => {
                let shown = format!("SELECT w, v FROM {} WHERE {its}", other.name);
                self.commands.push(Command::Sql(shown, Store::Client));
                format!("UPDATE {named} SET w = :{name} WHERE {key}")
            }
        };
        if self.dice.chance(25) {
            self.commands.push(Command::If(name.clone(), 2));
            self.commands.push(Command::Sql(write, Store::Client));
            self.commands.push(Command::Endif);
        } else {
            self.commands.push(Command::Sql(write, Store::Client));
        }
        self.stored.push(name);
    }

    fn statement(&mut self) {
        let (text, store) = if self.dice.chance(50) { self.query() } else { (self.write(), Store::Client) };
        self.commands.push(Command::Sql(text, store));
    }

    fn table(&mut self) -> &'a Table {
        &self.schema.tables[self.dice.below(self.schema.tables.len())]
    }

    /// A table whose rows have keys.
    fn keyed(&mut self) -> &'a Table {
        let all: Vec<&Table> = self.schema.tables.iter().filter(|table| !table.key.is_empty()).collect();
        all[self.dice.below(all.len())]
    }

    fn drawn(&mut self) -> String {
        let place = self.dice.below(self.drawn.len());
        format!(":{}", self.drawn[place])
    }

    fn stored(&mut self) -> Option<String> {
        let count = self.stored.len();
        (count > 0).then(|| format!(":{}", self.stored[self.dice.below(count)]))
    }

    /// A value of a key.
    fn key_value(&mut self) -> String {
        match self.dice.below(10) {
            0..=5 => self.drawn(),
            6 if self.any_key => self.stored().unwrap_or_else(|| "1".to_owned()),
            7 if self.any_key => format!("{} + 1", self.drawn()),
            _ => self.dice.number(1, 2).to_string(),
        }
    }

    /// Another value.
    fn value(&mut self) -> String {
        match self.dice.below(10) {
            0..=1 => self.drawn(),
            2..=5 => {
                let other = self.drawn();
                self.stored().unwrap_or(other)
            }
            6 | 7 => {
                let other = self.drawn();
                format!("{} + 1", self.stored().unwrap_or(other))
            }
            _ => self.dice.number(0, 3).to_string(),
        }
    }

    fn value_column(&mut self, table: &Table) -> &'static str {
        let rest = &table.columns[table.key.len()..];
        if self.dice.chance(60) { "v" } else { rest[self.dice.below(rest.len())] }
    }

    /// A condition on all columns of the key; on another one where there is no key.
    fn by_key(&mut self, table: &Table, alias: &str) -> String {
        if table.key.is_empty() {
            return format!("{alias}.v = {}", self.value());
        }
        let mut parts = Vec::new();
        for column in &table.key {
            parts.push(format!("{alias}.{column} = {}", self.key_value()));
        }
        parts.join(" AND ")
    }

    fn condition(&mut self, table: &Table, alias: &str) -> String {
        let column = self.value_column(table);
        match self.dice.below(100) {
            0..=54 => {
                let key = self.by_key(table, alias);
                if self.dice.chance(30) { format!("{key} AND {}", self.guard(table, alias)) } else { key }
            }
            55..=64 => format!("{alias}.{column} = {}", self.value()),
            65..=69 => format!("{alias}.{column} >= {}", self.value()),
            70..=74 => format!("{alias}.v + {alias}.w > {}", self.value()),
            75..=79 => {
                let key = table.key.first().unwrap_or(&"v");
                format!("{alias}.{key} IN ({}, {})", self.key_value(), self.key_value())
            }
            80..=83 => {
                let key = table.key.first().unwrap_or(&"v");
                format!("{alias}.{key} = {}", self.key_value())
            }
            84..=87 => format!("({} OR {alias}.{column} = {})", self.by_key(table, alias), self.value()),
            88..=90 => format!("{alias}.{column} IS NOT NULL"),
            91..=93 => format!("NOT {alias}.{column} = {}", self.value()),
            94..=96 => {
                let other = self.table();
                let (named, inner) = (other.name.as_str(), self.by_key(other, "i"));
                format!("{alias}.{column} IN (SELECT i.v FROM {named} i WHERE {inner})")
            }
            _ => self.guard(table, alias),
        }
    }

    /// Another condition beside the key.
    fn guard(&mut self, table: &Table, alias: &str) -> String {
        let column = self.value_column(table);
        match self.dice.below(6) {
            0 => format!("{alias}.{column} >= {}", self.dice.number(0, 2)),
            1 | 2 => format!("{alias}.{column} = {}", self.value()),
            3 => format!("{} >= {}", self.value(), self.dice.number(1, 2)),
            4 => {
                let other = self.table();
                let not = self.dice.one_of(&["", "NOT "]);
                let inner = self.by_key(other, "e");
                let more = if self.dice.chance(40) { " AND e.v > 0" } else { "" };
                format!("{not}EXISTS (SELECT 1 FROM {} e WHERE {inner}{more})", other.name)
            }
            _ => {
                let other = self.table();
                let inner = self.by_key(other, "e");
                format!("{alias}.w <= (SELECT coalesce(max(e.v), 0) FROM {} e WHERE {inner})", other.name)
            }
        }
    }

    fn lock(&mut self) -> &'static str {
        let all = [" FOR UPDATE", " FOR NO KEY UPDATE", " FOR SHARE", " FOR KEY SHARE"];
        if self.dice.chance(35) { self.dice.one_of(&all) } else { "" }
    }

    /// A name for a value of a result.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("x{}", self.count)
    }

    /// One value of at most one row, and whether it becomes a variable.
    fn store(&mut self, name: &str, one_row: bool) -> Store {
        match self.dice.below(10) {
            0..=4 => Store::Client,
            5 if !one_row => {
                if self.stored.iter().any(|known| known == name) {
                    Store::Aset
                } else {
                    Store::Client
                }
            }
            _ => {
                self.stored.push(name.to_owned());
                Store::Gset
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table: each form of a query")]
    fn query(&mut self) -> (String, Store) {
        let table = self.table();
        let named = table.name.as_str();
        let name = self.fresh();
        match self.dice.below(22) {
            0..=6 => {
                let table = self.keyed();
                let (named, column) = (&table.name, self.value_column(table));
                let mut condition = self.by_key(table, named);
                if self.dice.chance(20) {
                    condition = format!("{condition} AND {}", self.guard(table, named));
                }
                let lock = self.lock();
                let store =
                    if column == "v" || column == "w" { self.store(&name, false) } else { Store::Client };
                (format!("SELECT {named}.{column} AS {name} FROM {named} WHERE {condition}{lock}"), store)
            }
            7..=9 => {
                let what = self.dice.one_of(&["count(*)", "coalesce(sum(v), 0)", "coalesce(max(w), 0)"]);
                let condition = self.condition(table, named);
                let store = self.store(&name, true);
                (format!("SELECT {what} AS {name} FROM {named} WHERE {condition}"), store)
            }
            10 | 11 => (self.join(), Store::Client),
            12 => {
                let other = self.table();
                let inner = self.by_key(other, "i");
                let outer = self.by_key(table, named);
                let text = format!(
                    "SELECT coalesce(sum({named}.w), 0) + (SELECT coalesce(sum(i.v), 0) FROM {} i WHERE {inner}) AS {name} \
                     FROM {named} WHERE {outer}",
                    other.name
                );
                (text, self.store(&name, true))
            }
            13 => {
                let other = self.table();
                let what = self.dice.one_of(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
                let (one, two) = (self.condition(table, "l"), self.condition(other, "r"));
                let other = &other.name;
                (
                    format!(
                        "SELECT l.v FROM {named} l WHERE {one} {what} SELECT r.w FROM {other} r WHERE {two}"
                    ),
                    Store::Client,
                )
            }
            14 => {
                let condition = self.condition(table, named);
                let lock = self.lock();
                let text = if self.dice.chance(30) {
                    let other = self.table();
                    let outer = self.by_key(other, "o");
                    format!(
                        "WITH q AS (SELECT v FROM {named} WHERE {condition}{lock}) SELECT coalesce(max(o.v), 0) AS {name} \
                         FROM {} o WHERE {outer}",
                        other.name
                    )
                } else {
                    format!(
                        "WITH q AS (SELECT v FROM {named} WHERE {condition}{lock}) SELECT count(*) AS {name} FROM q"
                    )
                };
                (text, self.store(&name, true))
            }
            15 => {
                let inner = self.write_returning();
                let text = if self.dice.chance(30) {
                    let other = self.table();
                    let outer = self.by_key(other, "o");
                    format!(
                        "WITH q AS ({inner}) SELECT coalesce(max(o.v), 0) AS {name} FROM {} o WHERE {outer}",
                        other.name
                    )
                } else {
                    format!("WITH q AS ({inner}) SELECT coalesce(sum(v), 0) AS {name} FROM q")
                };
                (text, self.store(&name, true))
            }
            16 => {
                let condition = self.condition(table, named);
                let lock = self.lock();
                let columns = table.columns.join(", ");
                let first = self.value_column(table);
                let text = format!(
                    "SELECT {columns} FROM {named} WHERE {condition} ORDER BY {first}, {columns} LIMIT 1{lock}"
                );
                (text, Store::Client)
            }
            17 => {
                let condition = self.condition(table, named);
                let lock = self.lock();
                let text = format!(
                    "SELECT coalesce(sum(q.v), 0) AS {name} FROM (SELECT v FROM {named} WHERE {condition}{lock}) q"
                );
                (text, self.store(&name, true))
            }
            18 => {
                let condition = self.condition(table, named);
                let text = format!(
                    "SELECT v, count(*) FROM {named} WHERE {condition} GROUP BY v HAVING max(w) >= 0"
                );
                (text, Store::Client)
            }
            _ => {
                let condition = self.condition(table, named);
                let lock = self.lock();
                let columns = if self.dice.chance(50) { "v".to_owned() } else { table.columns.join(", ") };
                (format!("SELECT {columns} FROM {named} WHERE {condition}{lock}"), Store::Client)
            }
        }
    }

    fn join(&mut self) -> String {
        let (one, other) = (self.table(), self.keyed());
        let from = if one.parent.is_some() && self.dice.chance(60) { "p" } else { self.value_column(one) };
        let kind = self.dice.one_of(&["JOIN", "JOIN", "LEFT JOIN"]);
        let (lock, of) = (self.lock(), self.dice.one_of(&[" OF l", ""]));
        let lock = match (lock, kind) {
            ("", _) => String::new(),
            (lock, "JOIN") => format!("{lock}{of}"),
            (lock, _) => format!("{lock} OF l"),
        };
        let mut condition = self.by_key(one, "l");
        if self.dice.chance(25) {
            condition = format!("{condition} AND {}", self.guard(other, "r"));
        }
        format!(
            "SELECT l.v, r.w FROM {} l {kind} {} r ON r.k = l.{from} WHERE {condition}{lock}",
            one.name, other.name
        )
    }

    fn assignment(&mut self, table: &Table) -> String {
        let column = self.value_column(table);
        match self.dice.below(20) {
            0..=3 => "v = v + 1".to_owned(),
            4 | 5 => "v = 2 * v + 1".to_owned(),
            6..=11 => format!("{} = {}", if column == "p" { "w" } else { column }, self.value()),
            12 => "v = w".to_owned(),
            13 => format!("{column} = {column}"),
            14 if table.parent.is_some() => format!("p = {}", self.key_value()),
            15 if table.changing && !table.key.is_empty() => format!("k = {}", self.key_value()),
            16 if table.columns.contains(&"u") => format!("u = {}", self.value()),
            17 => {
                let other = self.table();
                let inner = self.condition(other, "i");
                format!("v = (SELECT coalesce(sum(i.w), 0) FROM {} i WHERE {inner})", other.name)
            }
            18 => "w = w + 1, v = v - 1".to_owned(),
            _ => "w = 1 - w".to_owned(),
        }
    }

    fn write_returning(&mut self) -> String {
        let text = self.write();
        if text.contains(" RETURNING ") {
            return text;
        }
        let target =
            text.split_whitespace().find(|word| self.schema.tables.iter().any(|table| table.name == *word));
        let target = target.unwrap_or_default();
        let alias = if text.starts_with("INSERT INTO") && text.contains(" AS n ") { "n" } else { target };
        format!("{text} RETURNING {alias}.v")
    }

    fn write(&mut self) -> String {
        let table = self.table();
        let named = table.name.as_str();
        let returning = if self.dice.chance(15) { format!(" RETURNING {named}.v") } else { String::new() };
        match self.dice.below(20) {
            0..=10 => {
                let (assignment, condition) = (self.assignment(table), self.condition(table, named));
                format!("UPDATE {named} SET {assignment} WHERE {condition}{returning}")
            }
            11 if table.key.len() == 1 && table.stored.len() == 1 && self.dice.chance(40) => {
                let (column, lock) = (self.value_column(table), self.lock());
                let first = format!(
                    "SELECT f.k FROM {named} f WHERE {} ORDER BY f.{column}, f.k LIMIT 1{lock}",
                    self.condition(table, "f")
                );
                format!("UPDATE {named} SET {} WHERE {named}.k = ({first})", self.assignment(table))
            }
            11 => {
                let other = self.keyed();
                if other.stored.len() > 1 {
                    return format!("UPDATE {named} SET w = w + 1 WHERE {}", self.condition(table, named));
                }
                let (own, its) = (self.by_key(table, named), self.by_key(other, "o"));
                format!("UPDATE {named} SET v = o.w FROM {} o WHERE {own} AND {its}{returning}", other.name)
            }
            12 | 13 if table.changing => {
                let condition = self.condition(table, named);
                format!("DELETE FROM {named} WHERE {condition}{returning}")
            }
            14 if table.changing => {
                let other = self.keyed();
                let (own, its) = (self.condition(table, named), self.by_key(other, "o"));
                format!("DELETE FROM {named} USING {} o WHERE {own} AND {its}", other.name)
            }
            15..=18 if table.changing => self.insert(table),
            _ => {
                let condition = self.by_key(table, named);
                format!("UPDATE {named} SET v = v + 1 WHERE {condition}{returning}")
            }
        }
    }

    fn row(&mut self, table: &Table) -> Vec<String> {
        let value = |column: &&str| match *column {
            "k" | "k2" => match self.dice.below(4) {
                0 => self.dice.number(1, 3).to_string(),
                1 => format!("{} + 1", self.drawn()),
                _ => self.key_value(),
            },
            "p" => self.key_value(),
            _ => self.value(),
        };
        table.columns.iter().map(value).collect()
    }

    fn insert(&mut self, table: &Table) -> String {
        let (named, columns) = (table.name.as_str(), table.columns.join(", "));
        let source = if self.dice.chance(20) {
            let other = self.table();
            let mut row = self.row(table);
            let at = row.len() - 1;
            row[at] =
                if self.dice.chance(50) { "count(*)".to_owned() } else { "coalesce(max(o.v), 0)".to_owned() };
            format!("SELECT {} FROM {} o WHERE {}", row.join(", "), other.name, self.condition(other, "o"))
        } else {
            let rows = if self.dice.chance(20) { 2 } else { 1 };
            let rows: Vec<String> = (0..rows).map(|_| format!("({})", self.row(table).join(", "))).collect();
            format!("VALUES {}", rows.join(", "))
        };
        let conflict = match self.dice.below(10) {
            0..=1 => " ON CONFLICT DO NOTHING".to_owned(),
            2 if !table.conflict.is_empty() => {
                format!(" ON CONFLICT ({}) DO NOTHING", table.conflict.join(", "))
            }
            3..=5 if !table.conflict.is_empty() => {
                let set = self.dice.one_of(&["v = n.v + 1", "v = excluded.v", "w = excluded.w", "v = n.w"]);
                let condition = if self.dice.chance(30) { " WHERE n.v < 3" } else { "" };
                format!(" ON CONFLICT ({}) DO UPDATE SET {set}{condition}", table.conflict.join(", "))
            }
            _ => String::new(),
        };
        format!("INSERT INTO {named} AS n ({columns}) {source}{conflict}")
    }
}
