//! Random scripts over two small tables.

use isobench_isolation::observed::{Comparison, NULL};

use super::condition::{Columns, Condition, Test};
use super::database::Statement;

/// How a script is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// One statement after the other, and COMMIT once all are answered.
    Block,
    /// All at once with the COMMIT, as a single statement is.
    AtOnce,
}

/// The statements of one transaction.
#[derive(Debug, Clone)]
pub struct Script {
    pub statements: Vec<Statement>,
    pub sent: Sent,
    /// True if it ends in ROLLBACK.
    pub rolls_back: bool,
}

/// What the scripts of a workload do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Anything,
    /// Read a row, write it.
    ReadThenWrite,
    /// Read two rows, write one of them.
    TwoRows,
    /// Search, and change what is found by the same search.
    SearchThenWrite,
    /// Write a row several times, in savepoints and outside, or read it.
    OneRow,
    /// Single statements.
    Single,
}

impl Style {
    pub const ALL: [Style; 6] = [
        Style::Anything,
        Style::ReadThenWrite,
        Style::TwoRows,
        Style::SearchThenWrite,
        Style::OneRow,
        Style::Single,
    ];
}

pub struct Generator<'r> {
    pub random: &'r mut fastrand::Rng,
    pub style: Style,
    pub keys: i64,
    /// True if only blocks are wanted.
    pub blocks: bool,
}

impl Generator<'_> {
    pub fn script(&mut self) -> Script {
        let statements = match self.style {
            Style::Anything => self.mixture(),
            Style::ReadThenWrite => {
                let (key, lock) = (self.key(), self.random.u8(0..10) == 0);
                vec![self.select(Condition::key(key), lock), self.update(Condition::key(key))]
            }
            Style::TwoRows => {
                let (one, other) = (self.key(), self.key());
                let mut both = vec![self.select(Condition::key(one), false)];
                both.push(self.select(Condition::key(other), false));
                if self.random.u8(0..3) > 0 {
                    let written = Condition::key(if self.random.bool() { one } else { other });
                    both.push(self.update(written));
                }
                both
            }
            Style::SearchThenWrite => self.search_then_write(),
            Style::OneRow => self.one_row(),
            Style::Single => vec![self.any()],
        };
        let at_once = !self.blocks && (statements.len() == 1 || self.random.u8(0..8) == 0);
        let sent = if at_once { Sent::AtOnce } else { Sent::Block };
        Script { statements, sent, rolls_back: self.random.u8(0..20) == 0 }
    }

    /// Any statements, some of them within savepoints.
    fn mixture(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut open = 0;
        for _ in 0..self.random.usize(1..=4) {
            if self.random.u8(0..6) == 0 && open < 2 {
                statements.push(Statement::Savepoint);
                open += 1;
            }
            statements.push(self.any());
            if open > 0 && self.random.bool() {
                open -= 1;
                if self.random.bool() {
                    statements.push(Statement::RollbackTo);
                }
                statements.push(Statement::Release);
            }
        }
        statements
    }

    fn one_row(&mut self) -> Vec<Statement> {
        let key = self.random.i64(1..=2);
        let mut statements = vec![self.select(Condition::key(key), false)];
        let mut inside = false;
        for _ in 0..self.random.usize(0..5) {
            if self.random.u8(0..3) == 0 {
                if inside && self.random.u8(0..4) == 0 {
                    statements.push(Statement::RollbackTo);
                }
                statements.push(if inside { Statement::Release } else { Statement::Savepoint });
                inside = !inside;
            }
            statements.push(match self.random.u8(0..8) {
                0 => Statement::Delete { table: 0, condition: Condition::key(key) },
                1..=2 => {
                    let columns = [key, self.value(), self.value()];
                    Statement::Upsert { table: 0, columns, column: self.column() }
                }
                3 => self.select(Condition::key(key), false),
                _ => self.update(Condition::key(key)),
            });
        }
        statements
    }

    fn search_then_write(&mut self) -> Vec<Statement> {
        let condition = Condition { key: None, test: Test::equal(self.column(), self.random.i64(0..3)) };
        let first = self.select(condition.clone(), false);
        let Test::Compare(column, _, value) = condition.test else { return vec![first] };
        let second = match self.random.u8(0..4) {
            0 => self.update(condition),
            1 => Statement::Delete { table: 0, condition: Condition::key(self.key()) },
            2 => Statement::Update { table: 0, condition: Condition::key(self.key()), column, value },
            _ => {
                let mut columns = self.columns();
                columns[column] = value;
                Statement::Insert { table: 0, columns }
            }
        };
        vec![first, second]
    }

    fn any(&mut self) -> Statement {
        let condition = self.condition();
        let table = self.table();
        match self.random.u8(0..20) {
            0..=6 => self.select(condition, false),
            7 => self.select(condition, true),
            8..=12 => self.update(condition),
            13..=14 => Statement::Delete { table, condition },
            15..=17 => Statement::Insert { table, columns: self.columns() },
            _ => Statement::Upsert { table, columns: self.columns(), column: self.column() },
        }
    }

    fn select(&mut self, condition: Condition, lock: bool) -> Statement {
        Statement::Select { table: self.table(), condition, lock }
    }

    fn update(&mut self, condition: Condition) -> Statement {
        Statement::Update { table: self.table(), condition, column: self.column(), value: self.value() }
    }

    fn table(&mut self) -> u16 {
        u16::from(self.style == Style::Anything && self.random.u8(0..4) == 0)
    }

    fn key(&mut self) -> i64 {
        self.random.i64(1..=self.keys)
    }

    fn column(&mut self) -> usize {
        self.random.usize(1..=2)
    }

    pub fn value(&mut self) -> i64 {
        if self.random.u8(0..8) == 0 { NULL } else { self.random.i64(0..4) }
    }

    pub fn columns(&mut self) -> Columns {
        [self.key(), self.value(), self.value()]
    }

    fn condition(&mut self) -> Condition {
        let key = (self.random.u8(0..5) < 3).then(|| self.key());
        let simple = key.is_some() && self.random.u8(0..6) > 0;
        let test = if simple { Test::All } else { self.test(2) };
        Condition { key, test }
    }

    fn test(&mut self, depth: u8) -> Test {
        let column = self.random.usize(0..=2);
        let (one, other) = (self.value(), self.value());
        let inner = |generator: &mut Self| Box::new(generator.test(depth - 1));
        match self.random.u8(0..if depth > 0 { 12 } else { 8 }) {
            0..=2 => Test::equal(column, one),
            3 => Test::Compare(column, Comparison::Less, one),
            4 => Test::Compare(column, self.comparison(), one),
            5 => Test::In(column, vec![one, other]),
            6 => Test::Between(column, one.min(other), one.max(other)),
            7 => Test::IsNull(column),
            8 => Test::Not(inner(self)),
            9 => Test::And(inner(self), inner(self)),
            10 => Test::Or(inner(self), inner(self)),
            _ => Test::All,
        }
    }

    fn comparison(&mut self) -> Comparison {
        let all =
            [Comparison::NotEqual, Comparison::LessOrEqual, Comparison::Greater, Comparison::GreaterOrEqual];
        all[self.random.usize(0..all.len())]
    }
}
