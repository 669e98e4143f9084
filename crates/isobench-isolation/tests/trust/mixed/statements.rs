//! Random observed histories of a few transactions whose statements are known, and the definition for
//! those of read committed: each statement sees what was committed before it, so a later one sees no
//! less.

use isobench_isolation::History;
use isobench_isolation::Level;
use isobench_isolation::history::{
    Draft, Key, Mode, Operation, Provenance, Transaction, TransactionOutcome, Version,
};

/// An operation of a transaction: of this row, a write, or a read of the version at this place of the
/// row's order, by this statement.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    row: i64,
    write: bool,
    place: usize,
    statement: u16,
}

/// A history to be made.
#[derive(Debug)]
pub struct Plan {
    pub levels: Vec<Level>,
    transactions: Vec<Vec<Access>>,
    /// For each row, the transactions that write it, in order.
    orders: [Vec<usize>; 2],
}

/// A dependency, with the place of the operation that reads among those of its transaction.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    anti: bool,
    /// The read's transaction is `from` of an anti-dependency, and `to` of another one.
    read: Option<usize>,
}

impl Plan {
    pub fn random(random: &mut fastrand::Rng) -> Plan {
        let count = random.usize(2..=3);
        let levels = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
        let mut orders = [Vec::new(), Vec::new()];
        for order in &mut orders {
            order.extend((0..count).filter(|_| random.bool()));
            random.shuffle(order);
        }
        let mut transactions = Vec::new();
        for own in 0..count {
            let mut accesses: Vec<Access> = Vec::new();
            let mut statement = 0;
            for _ in 0..random.usize(0..=3) {
                let row = random.usize(0..2);
                statement += u16::from(random.u8(0..4) > 0);
                let place = random.usize(0..=orders[row].len());
                let sees_own = place.checked_sub(1).is_some_and(|place| orders[row][place] == own);
                if !sees_own {
                    let row = i64::try_from(row).unwrap_or(0);
                    accesses.push(Access { row, write: false, place, statement });
                }
            }
            for (row, order) in (0..).zip(&orders) {
                if let Some(place) = order.iter().position(|writer| *writer == own) {
                    accesses.push(Access { row, write: true, place: place + 1, statement: statement + 1 });
                }
            }
            transactions.push(accesses);
        }
        Plan { levels: (0..count).map(|_| levels[random.usize(0..3)]).collect(), transactions, orders }
    }

    pub fn history(&self) -> History {
        let mut history = History::new(vec!["rows".to_owned()]);
        let statements = (0..8).map(|number| format!("a.sql:{number}: SELECT")).collect();
        history.set_provenance(Provenance { statements, ..Provenance::default() });
        for (own, accesses) in self.transactions.iter().enumerate() {
            let mut draft = Draft::new();
            for access in accesses {
                let key = Key { table: 0, id: access.row };
                let writer = access.place.checked_sub(1).map(|place| self.order(access.row)[place]);
                let value = writer.and_then(|writer| i64::try_from(writer).ok()).map(|writer| writer + 100);
                let counter = value.map(|_| access.place as u64);
                let version = Version { counter, value };
                let operation = if access.write {
                    Operation::Write { key, version }
                } else {
                    Operation::Read { key, version }
                };
                draft.push_by(operation, access.statement);
            }
            let (id, client) = (own as u64 + 1, u32::try_from(own).unwrap_or(u32::MAX));
            let (outcome, mode) = (TransactionOutcome::Committed, Some(Mode::of(self.levels[own])));
            history.push(Transaction { id, client, begin: 0, end: 0, outcome, mode }, &draft);
        }
        history
    }

    fn order(&self, row: i64) -> &[usize] {
        &self.orders[usize::try_from(row).unwrap_or(0)]
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges: Vec<Edge> = Vec::new();
        for order in &self.orders {
            edges.extend(order.windows(2).map(|pair| Edge {
                from: pair[0],
                to: pair[1],
                anti: false,
                read: None,
            }));
        }
        for (own, accesses) in self.transactions.iter().enumerate() {
            for (at, access) in accesses.iter().enumerate().filter(|(_, access)| !access.write) {
                let order = self.order(access.row);
                if let Some(place) = access.place.checked_sub(1) {
                    edges.push(Edge { from: order[place], to: own, anti: false, read: Some(at) });
                }
                if let Some(next) = order.get(access.place).filter(|next| **next != own) {
                    edges.push(Edge { from: own, to: *next, anti: true, read: Some(at) });
                }
            }
        }
        edges
    }

    /// True if there is a simple cycle that the levels of its transactions exclude.
    pub fn breaks_a_promise(&self) -> bool {
        let edges = self.edges();
        (0..self.levels.len()).any(|start| self.extend(&edges, start, &mut Vec::new()))
    }

    fn extend(&self, edges: &[Edge], start: usize, path: &mut Vec<Edge>) -> bool {
        let at = path.last().map_or(start, |edge| edge.to);
        edges.iter().filter(|edge| edge.from == at).any(|edge| {
            let visited = path.iter().any(|step| step.from == edge.to);
            path.push(*edge);
            let found = if edge.to == start {
                self.excludes(path)
            } else {
                edge.to > start && !visited && self.extend(edges, start, path)
            };
            path.pop();
            found
        })
    }

    fn excludes(&self, cycle: &[Edge]) -> bool {
        let serializable = |transaction: usize| self.levels[transaction] == Level::Serializable;
        (0..cycle.len()).all(|place| {
            let before = cycle[(place + cycle.len() - 1) % cycle.len()];
            let edge = cycle[place];
            let next = cycle[(place + 1) % cycle.len()];
            if !edge.anti {
                return true;
            }
            let pair = !next.anti || [edge.from, edge.to, next.to].into_iter().all(serializable);
            pair && (self.levels[edge.from] > Level::ReadCommitted || self.sees_less(before, edge))
        })
    }

    /// True if the read of the second dependency is of a later statement than that of the first one.
    fn sees_less(&self, before: Edge, edge: Edge) -> bool {
        let (false, Some(first), Some(second)) = (before.anti, before.read, edge.read) else { return false };
        let own = &self.transactions[edge.from];
        first < second && own[first].statement != own[second].statement
    }
}
