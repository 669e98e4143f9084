//! Small random histories: some close to a serial execution, some far from it.

use isobench_isolation::History;
use isobench_isolation::history::{Draft, Key, Operation, Transaction, TransactionOutcome, Version};

/// The operations of a history's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Read and write rows with counters and values.
    Counters,
    /// The same, but only the counters are known.
    CountersOnly,
    /// The same, but only the values are known.
    Values,
    /// Append to lists, read them.
    Lists,
    /// Insert rows into groups, read groups.
    Groups,
    /// All of these, in different tables.
    Mixed,
    /// The same, but only the values of registers are known.
    MixedValues,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Counters,
        Kind::CountersOnly,
        Kind::Values,
        Kind::Lists,
        Kind::Groups,
        Kind::Mixed,
        Kind::MixedValues,
    ];

    fn is_mixed(self) -> bool {
        matches!(self, Kind::Mixed | Kind::MixedValues)
    }

    /// True if the counters of registers aren't known.
    fn values_only(self) -> bool {
        matches!(self, Kind::Values | Kind::MixedValues)
    }
}

/// The tables: registers, lists, groups.
const TABLES: [&str; 3] = ["registers", "lists", "members"];

/// An operation whose result isn't known yet.
#[derive(Debug, Clone, Copy)]
enum Planned {
    Read(i64),
    Write(i64),
    Append(i64, i64),
    ReadList(i64),
    Insert(i64, i64),
    ReadGroup(i64),
}

struct Generator {
    random: fastrand::Rng,
    kind: Kind,
    plans: Vec<Vec<Planned>>,
    outcomes: Vec<TransactionOutcome>,
    /// The transactions in the order of their commits.
    serial: Vec<usize>,
    /// For each transaction, those visible to most of its reads.
    seen: Vec<Vec<usize>>,
    /// The percentage of reads that see anything else.
    chaos: u8,
    /// The counter of each write: (transaction, position).
    counters: Vec<((usize, usize), u64)>,
    /// True if each group has an initial row.
    peopled: bool,
    /// For each list the elements in order, with their writers.
    lists: Vec<Vec<(usize, i64)>>,
}

/// The history for a seed.
pub fn history(kind: Kind, seed: u64) -> History {
    let mut random = fastrand::Rng::with_seed(seed);
    let transactions = random.choice([2, 3, 3, 4, 4, 5, 5, 5]).unwrap_or(5);
    let keys = random.i64(2..=3) - i64::from(transactions < 4 && random.bool());
    let mut fresh = 0;
    let mut plans: Vec<Vec<Planned>> = (0..transactions)
        .map(|_| (0..random.usize(1..=4)).map(|_| plan(&mut random, kind, keys, &mut fresh)).collect())
        .collect();
    let forked = transactions >= 4 && random.u8(0..4) == 0;
    if forked {
        fork(&mut random, kind, &mut plans);
    }
    let rare = random.u8(0..4) * 6;
    let outcomes = (0..transactions)
        .map(|_| match random.u8(0..100) {
            it if it < rare => TransactionOutcome::Aborted,
            it if it < 2 * rare => TransactionOutcome::Unknown,
            _ => TransactionOutcome::Committed,
        })
        .collect();
    let mut serial: Vec<_> = (0..transactions).collect();
    if random.u8(0..3) > 0 {
        random.shuffle(&mut serial);
    }
    let chaos = random.choice([0, 0, 10, 30, 100]).unwrap_or(0);
    let seen = vec![Vec::new(); transactions];
    let peopled = random.u8(0..4) == 0;
    let (counters, lists) = (Vec::new(), Vec::new());
    let mut generator =
        Generator { random, kind, plans, outcomes, serial, seen, chaos, counters, peopled, lists };
    generator.look();
    if forked && generator.random.bool() {
        // Each reader sees one writer.
        generator.seen[..4].clone_from_slice(&[vec![], vec![], vec![0], vec![1]]);
        generator.chaos = 0;
    }
    for key in 0..keys {
        generator.count(key);
        generator.list(key);
    }
    generator.history()
}

/// Makes an operation on a row.
type Make = fn(i64) -> Planned;

/// Two transactions that write one row each, and two that read both rows: the structure of long
/// forks and write skew.
fn fork(random: &mut fastrand::Rng, kind: Kind, plans: &mut [Vec<Planned>]) {
    let kind = if kind.is_mixed() { Kind::Lists } else { kind };
    let (write, read): (Make, Make) = match kind {
        Kind::Lists => (|key| Planned::Append(key, 90 + key), Planned::ReadList),
        Kind::Groups => (|key| Planned::Insert(90 + key, key), Planned::ReadGroup),
        _ => (Planned::Write, Planned::Read),
    };
    for (index, plans) in plans.iter_mut().enumerate().take(4) {
        let own = i64::from(index % 2 == 1);
        *plans = match index {
            0 | 1 if random.u8(0..4) == 0 => vec![read(1 - own), write(own)],
            0 | 1 => vec![write(own)],
            _ => vec![read(own), read(1 - own)],
        };
    }
}

fn plan(random: &mut fastrand::Rng, kind: Kind, keys: i64, fresh: &mut i64) -> Planned {
    let key = random.i64(0..keys);
    let read = random.bool();
    *fresh += 1;
    match kind {
        Kind::Counters | Kind::CountersOnly | Kind::Values if read => Planned::Read(key),
        Kind::Counters | Kind::CountersOnly | Kind::Values => Planned::Write(key),
        Kind::Lists if read => Planned::ReadList(key),
        Kind::Lists => Planned::Append(key, *fresh),
        Kind::Groups if read => Planned::ReadGroup(key),
        Kind::Groups => Planned::Insert(*fresh, key),
        Kind::Mixed | Kind::MixedValues => {
            let one = random.choice([Kind::Counters, Kind::Lists, Kind::Groups]).unwrap_or(Kind::Lists);
            plan(random, one, keys, fresh)
        }
    }
}

impl Generator {
    fn chance(&mut self) -> bool {
        self.random.u8(0..100) < self.chaos
    }

    /// The positions of the matching operations, in the serial order or nearly so.
    fn places(&mut self, fits: impl Fn(Planned) -> bool) -> Vec<(usize, usize)> {
        let mut places: Vec<(usize, usize)> = Vec::new();
        for &transaction in &self.serial {
            let plans = self.plans[transaction].iter().enumerate();
            places.extend(plans.filter(|(_, plan)| fits(**plan)).map(|(place, _)| (transaction, place)));
        }
        if self.chance() && self.chance() && places.len() > 1 {
            // Usually whole transactions are swapped; rarely single operations.
            let mut order: Vec<_> = (0..self.plans.len()).collect();
            self.random.shuffle(&mut order);
            if self.random.u8(0..8) == 0 {
                self.random.shuffle(&mut places);
                let mut sorted = places.clone();
                sorted.sort_unstable();
                // The operations of each transaction keep their order.
                for place in &mut places {
                    let at = sorted.iter().position(|it| it.0 == place.0).unwrap_or(0);
                    *place = sorted.remove(at);
                }
            } else {
                places.sort_by_key(|(transaction, place)| (order[*transaction], *place));
            }
        }
        places
    }

    /// Chooses the version order of a row.
    fn count(&mut self, key: i64) {
        let mut counter = self.random.u64(0..3);
        for (transaction, place) in self.places(|plan| matches!(plan, Planned::Write(row) if row == key)) {
            counter += 1;
            self.counters.push(((transaction, place), counter));
            // The version of an aborted transaction is usually replaced by the next one's. Rarely
            // it isn't, or a counter is used twice (but not without values, when reads would be
            // ambiguous).
            let aborted = self.outcomes[transaction] == TransactionOutcome::Aborted;
            let unknown = self.outcomes[transaction] == TransactionOutcome::Unknown;
            let told = self.kind != Kind::CountersOnly;
            let odd = told && self.random.u8(0..40) == 0;
            let lost = told && unknown && self.random.bool();
            if aborted != odd || lost {
                counter -= 1;
            }
        }
    }

    /// Chooses the order of a list's elements.
    fn list(&mut self, key: i64) {
        let places = self.places(|plan| matches!(plan, Planned::Append(row, _) if row == key));
        let mut list = Vec::new();
        for (transaction, place) in places {
            let gone = match self.outcomes[transaction] {
                TransactionOutcome::Committed => false,
                TransactionOutcome::Aborted => self.random.u8(0..4) > 0,
                TransactionOutcome::Unknown => self.random.bool(),
            };
            if let (Planned::Append(_, element), false) = (self.plans[transaction][place], gone) {
                list.push((transaction, element));
            }
        }
        self.lists.push(list);
    }

    fn version(&self, transaction: usize, place: usize) -> Version {
        let counter = self.counters.iter().find(|it| it.0 == (transaction, place)).map(|it| it.1);
        let value = i64::try_from(transaction).ok().map(|it| it + 100);
        match self.kind {
            Kind::CountersOnly => Version { counter, value: None },
            kind if kind.values_only() => Version { counter: None, value },
            _ => Version { counter, value },
        }
    }

    /// True if most reads of `transaction` see `other`.
    fn is_before(&self, other: usize, transaction: usize) -> bool {
        self.seen[transaction].contains(&other)
    }

    /// Chooses what each transaction sees: everything committed before it; everything before a
    /// snapshot; or any causally closed part. A transaction usually sees the writers of the rows
    /// that it writes, because the first committer wins.
    fn look(&mut self) {
        let style = self.random.u8(0..3);
        let careful = self.random.u8(0..4) > 0;
        let rows = |plans: &[Planned]| -> Vec<i64> {
            let row = |plan: &Planned| match *plan {
                Planned::Write(key) => Some(key),
                Planned::Append(key, _) => Some(key + 10),
                _ => None,
            };
            plans.iter().filter_map(row).collect()
        };
        for place in 0..self.serial.len() {
            let own = rows(&self.plans[self.serial[place]]);
            let before = &self.serial[..place];
            let must = |other: usize| careful && rows(&self.plans[other]).iter().any(|row| own.contains(row));
            let least = before.iter().rposition(|&other| must(other)).map_or(0, |last| last + 1);
            let mut seen = match style {
                0 => before.to_vec(),
                1 => before[..self.random.usize(least..=place)].to_vec(),
                _ => before.iter().copied().filter(|&other| must(other) || self.random.bool()).collect(),
            };
            for other in seen.clone() {
                seen.extend(&self.seen[other]);
            }
            self.seen[self.serial[place]] = seen;
        }
    }

    fn read(&mut self, (transaction, place): (usize, usize), key: i64) -> Version {
        let mut writes = Vec::new();
        for &writer in &self.serial {
            for (at, plan) in self.plans[writer].iter().enumerate() {
                if matches!(plan, Planned::Write(row) if *row == key) {
                    writes.push((writer, at));
                }
            }
        }
        if self.chance() {
            if self.random.u8(0..30) == 0 {
                return Version { counter: Some(77), value: Some(77) };
            }
            let choice = self.random.usize(0..=writes.len());
            return writes.get(choice).map_or(Version::INITIAL, |it| self.version(it.0, it.1));
        }
        let seen = |it: &&(usize, usize)| {
            let own = it.0 == transaction && it.1 < place;
            let before =
                self.is_before(it.0, transaction) && self.outcomes[it.0] != TransactionOutcome::Aborted;
            own || before
        };
        let own = writes.iter().rfind(|it| it.0 == transaction && it.1 < place);
        let last = own.or_else(|| {
            let seen: Vec<_> = writes.iter().filter(seen).collect();
            seen.into_iter().max_by_key(|it| self.version(it.0, it.1).counter)
        });
        last.map_or(Version::INITIAL, |it| self.version(it.0, it.1))
    }

    fn read_list(&mut self, (transaction, place): (usize, usize), key: i64) -> Vec<i64> {
        let list = self.lists[usize::try_from(key).unwrap_or(0)].clone();
        let own: Vec<_> = self.plans[transaction][..place]
            .iter()
            .filter_map(|plan| match *plan {
                Planned::Append(row, element) if row == key => Some(element),
                _ => None,
            })
            .collect();
        let others = list.iter().filter(|it| it.0 != transaction);
        let mut elements: Vec<i64> = if self.random.u8(0..100) < self.chaos {
            let shown = self.random.usize(0..=list.len());
            list.iter().take(shown).filter(|it| !own.contains(&it.1)).map(|it| it.1).collect()
        } else {
            others.take_while(|it| self.is_before(it.0, transaction)).map(|it| it.1).collect()
        };
        elements.extend(own);
        if self.chance() && self.random.u8(0..12) == 0 {
            match self.random.u8(0..4) {
                0 => elements.push(77),
                1 => elements.extend(elements.first().copied()),
                2 => elements.reverse(),
                _ => drop(elements.pop()),
            }
        }
        elements
    }

    fn read_group(&mut self, (transaction, place): (usize, usize), group: i64) -> Vec<i64> {
        let mut rows = Vec::new();
        if self.peopled && !(self.chance() && self.random.u8(0..10) == 0) {
            rows.push(50 + group);
        }
        for writer in 0..self.plans.len() {
            for at in 0..self.plans[writer].len() {
                let Planned::Insert(id, its) = self.plans[writer][at] else { continue };
                if its != group && !(self.chance() && self.random.u8(0..40) == 0) {
                    continue;
                }
                let own = writer == transaction;
                let seen = if self.chance() && (!own || self.random.u8(0..10) == 0) {
                    self.random.bool()
                } else if own {
                    at < place
                } else {
                    self.is_before(writer, transaction)
                        && self.outcomes[writer] != TransactionOutcome::Aborted
                };
                if seen {
                    rows.push(id);
                }
            }
        }
        self.random.shuffle(&mut rows);
        rows
    }

    fn history(mut self) -> History {
        let mut history = History::new(TABLES.map(str::to_owned).to_vec());
        let clients = self.random.u32(1..=4);
        let timed = self.random.u8(0..4) > 0;
        let mut ended = vec![0; clients as usize];
        for index in 0..self.plans.len() {
            let client = self.random.u32(0..clients);
            let begin = ended[client as usize] + self.random.u64(1..12);
            let end = begin + self.random.u64(1..12);
            ended[client as usize] = end;
            let outcome = self.outcomes[index];
            let unseen = outcome == TransactionOutcome::Unknown && self.random.bool();
            let (begin, end) = match (timed, unseen) {
                (false, _) => (0, 0),
                (true, true) => (begin, u64::MAX),
                (true, false) => (begin, end),
            };
            let draft = self.operations(index);
            history
                .push(Transaction { id: index as u64 + 1, client, begin, end, outcome, mode: None }, &draft);
        }
        history
    }

    fn operations(&mut self, transaction: usize) -> Draft {
        let mut draft = Draft::new();
        for place in 0..self.plans[transaction].len() {
            let at = (transaction, place);
            let row = |table, id| Key { table, id };
            match self.plans[transaction][place] {
                Planned::Read(id) => {
                    let version = self.read(at, id);
                    draft.push(Operation::Read { key: row(0, id), version });
                }
                Planned::Write(id) => {
                    let version = self.version(transaction, place);
                    draft.push(Operation::Write { key: row(0, id), version });
                }
                Planned::Append(id, element) => draft.push(Operation::Append { key: row(1, id), element }),
                Planned::ReadList(id) => {
                    let elements = self.read_list(at, id);
                    draft.push(Operation::ReadList { key: row(1, id), elements: &elements });
                }
                Planned::Insert(id, group) => draft.push(Operation::Insert { key: row(2, id), group }),
                Planned::ReadGroup(group) => {
                    let rows = self.read_group(at, group);
                    draft.push(Operation::ReadGroup { table: 2, group, rows: &rows });
                }
            }
        }
        draft
    }
}
