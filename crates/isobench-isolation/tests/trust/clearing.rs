//! No transaction on a cycle is cleared, whatever it read without showing it.
//!
//! A small database with snapshots, where the first updater wins, runs random transactions. Some of
//! their reads and writes are hidden: the log of answers doesn't have them, the log of writes has the
//! writes. The true graph is made of all versions read and written, hidden ones included. Commits
//! become visible in another order than that in which they are logged.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Order;
use isobench_isolation::check::{Cleared, Options, check};
use isobench_isolation::history::{Key, Transaction, TransactionOutcome};
use isobench_isolation::observed::{
    CommittedChange, CommittedTransaction, CommittedWrite, CommittedWrites, Comparison, KeyForm, MayRead,
    ObservedColumn, ObservedDescription, ObservedDraft, ObservedEncoder, ObservedOperation, ObservedTable,
    Predicate, Replaced, TakenSnapshot, ValueForm, resolve,
};

use crate::seeds;

const TABLES: u16 = 3;
const ROWS: u16 = 2;
const HORIZON: u32 = 700;
/// A transaction before the horizon wrote all initial versions.
const INITIAL: u32 = 600;

/// The generator `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u16) -> u16 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        u16::try_from((mixed ^ (mixed >> 31)) % u64::from(end)).unwrap_or(0)
    }

    fn chance(&mut self, percent: u16) -> bool {
        self.below(100) < percent
    }
}

#[derive(Debug, Clone, Copy)]
struct Version {
    /// `None`: the initial one.
    writer: Option<usize>,
    value: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Open,
    /// In the log of writes, with locks held, and not visible.
    Logged,
    Visible,
    Aborted,
}

struct Running {
    stage: Stage,
    begin: u64,
    end: u64,
    own: Option<u32>,
    /// The transactions whose writes its snapshot has.
    sees: BTreeSet<usize>,
    next: u32,
    active: Vec<i64>,
    draft: ObservedDraft,
    may_read: u16,
    /// The versions that it read, by key: the places in the row's order.
    read: Vec<(Key, usize)>,
    /// Rows that a search missed: the place of the version that it looked at, and the value wanted.
    missed: Vec<(Key, usize, i64)>,
    hidden_writes: Vec<Key>,
}

/// What a script may read unseen: the number is that of the script.
fn may_read() -> Vec<MayRead> {
    let tables = |tables: &[u16]| MayRead::Tables(tables.iter().copied().collect());
    vec![MayRead::Nothing, tables(&[0]), tables(&[1]), tables(&[0, 2]), MayRead::Anything]
}

struct Database {
    rows: BTreeMap<Key, Vec<Version>>,
    transactions: Vec<Running>,
    next: u32,
    now: u64,
    log: Vec<usize>,
    random: Random,
}

impl Database {
    fn new(seed: u64) -> Database {
        let keys = (0..TABLES).flat_map(|table| (0..ROWS).map(move |id| Key { table, id: id.into() }));
        let rows = keys.map(|key| (key, vec![Version { writer: None, value: 0 }])).collect();
        let random = Random(seed);
        Database { rows, transactions: Vec::new(), next: HORIZON, now: 0, log: Vec::new(), random }
    }

    fn begin(&mut self) {
        self.now += 1;
        let under_way = |one: &&Running| matches!(one.stage, Stage::Open | Stage::Logged);
        let mut active: Vec<i64> =
            self.transactions.iter().filter(under_way).filter_map(|one| one.own.map(i64::from)).collect();
        active.sort_unstable();
        let visible = self.transactions.iter().enumerate().filter(|(_, one)| one.stage == Stage::Visible);
        let sees = visible.map(|(place, _)| place).collect();
        let may_read = if self.random.chance(40) { 0 } else { 1 + self.random.below(4) };
        self.transactions.push(Running {
            stage: Stage::Open,
            begin: self.now,
            end: 0,
            own: None,
            sees,
            next: self.next,
            active,
            draft: ObservedDraft::default(),
            may_read,
            read: Vec::new(),
            missed: Vec::new(),
            hidden_writes: Vec::new(),
        });
    }

    fn key(&mut self) -> Key {
        let table = self.random.below(TABLES);
        Key { table, id: i64::from(self.random.below(ROWS)) }
    }

    /// The place of the version of a row that a transaction sees.
    fn place(&self, one: usize, key: Key) -> usize {
        let sees = |version: &Version| {
            version.writer.is_none_or(|writer| writer == one || self.transactions[one].sees.contains(&writer))
        };
        self.rows[&key].iter().rposition(sees).expect("the initial version")
    }

    fn number(&self, version: Version) -> u32 {
        version.writer.map_or(INITIAL, |writer| self.transactions[writer].own.expect("a writer"))
    }

    fn read(&mut self, one: usize, key: Key, shown: bool) {
        let place = self.place(one, key);
        let version = self.rows[&key][place];
        let writer = self.number(version);
        let running = &mut self.transactions[one];
        running.read.push((key, place));
        if shown {
            running.draft.push(ObservedOperation::Read { key, writer, columns: &[version.value] }, 0);
        }
    }

    fn search(&mut self, one: usize, table: u16, wanted: i64, shown: bool) {
        let mut found = Vec::new();
        for id in (0..ROWS).map(i64::from) {
            let key = Key { table, id };
            let place = self.place(one, key);
            if self.rows[&key][place].value == wanted {
                self.read(one, key, shown);
                found.push(id);
            } else {
                self.transactions[one].missed.push((key, place, wanted));
            }
        }
        if shown {
            let search = ObservedOperation::Search {
                table,
                predicate: 0,
                key: None,
                operands: &[wanted],
                found: &found,
            };
            self.transactions[one].draft.push(search, 0);
        }
    }

    fn write(&mut self, one: usize, key: Key, shown: bool) {
        // The first updater wins: the newest version must be one that it sees.
        if self.place(one, key) + 1 != self.rows[&key].len() {
            return self.abort(one);
        }
        let value = i64::from(self.random.below(3));
        let next = self.next;
        let own = *self.transactions[one].own.get_or_insert(next);
        self.next += u32::from(own == next);
        let last = self.rows[&key].last().expect("a version").writer;
        let rows = self.rows.get_mut(&key).expect("a row");
        if last == Some(one) {
            rows.pop();
        }
        rows.push(Version { writer: Some(one), value });
        let running = &mut self.transactions[one];
        let again = last == Some(one);
        if again {
            // That is another matter, see the tests of what is observed.
            return self.abort(one);
        }
        if shown {
            let (writer, replaced) = (own, Replaced::Unknown);
            running.draft.push(ObservedOperation::Write { key, writer, replaced, columns: &[value] }, 0);
        } else {
            running.hidden_writes.push(key);
        }
    }

    fn abort(&mut self, one: usize) {
        self.rows.values_mut().for_each(|versions| versions.retain(|version| version.writer != Some(one)));
        self.now += 1;
        (self.transactions[one].stage, self.transactions[one].end) = (Stage::Aborted, self.now);
    }

    /// Goes on with a transaction.
    fn step(&mut self, one: usize) {
        match self.transactions[one].stage {
            Stage::Logged => {
                self.now += 1;
                let running = &mut self.transactions[one];
                (running.stage, running.end) = (Stage::Visible, self.now);
                return;
            }
            Stage::Open => {}
            Stage::Visible | Stage::Aborted => return,
        }
        let hides = may_read()[usize::from(self.transactions[one].may_read)].clone();
        let (key, shown) = (self.key(), self.random.chance(50));
        let may_hide = match hides {
            MayRead::Nothing => false,
            MayRead::Tables(tables) => tables.contains(&key.table),
            MayRead::Anything => true,
        };
        let wanted = i64::from(self.random.below(3));
        let written_openly = self.random.chance(67);
        match self.random.below(8) {
            0 | 1 => self.read(one, key, shown || !may_hide),
            2 | 3 => self.search(one, key.table, wanted, shown || !may_hide),
            4 | 5 => self.write(one, key, written_openly),
            _ if self.transactions[one].own.is_some() => {
                self.transactions[one].stage = Stage::Logged;
                self.log.push(one);
            }
            _ => {
                self.now += 1;
                let running = &mut self.transactions[one];
                (running.stage, running.end) = (Stage::Visible, self.now);
            }
        }
    }

    fn committed(&self) -> Vec<usize> {
        let all = 0..self.transactions.len();
        all.filter(|one| self.transactions[*one].stage == Stage::Visible).collect()
    }

    /// The true dependencies.
    fn dependencies(&self) -> BTreeSet<(usize, usize)> {
        let mut edges = BTreeSet::new();
        let mut add = |from: Option<usize>, to: Option<usize>| {
            if let (Some(from), Some(to)) = (from, to)
                && from != to
            {
                edges.insert((from, to));
            }
        };
        for versions in self.rows.values() {
            versions.windows(2).for_each(|pair| add(pair[0].writer, pair[1].writer));
        }
        for one in self.committed() {
            let running = &self.transactions[one];
            for (key, place) in &running.read {
                let versions = &self.rows[key];
                add(versions[*place].writer, Some(one));
                add(Some(one), versions.get(place + 1).and_then(|next| next.writer));
            }
            for (key, place, wanted) in &running.missed {
                let versions = &self.rows[key];
                let began = versions[..=*place].iter().rposition(|version| version.value == *wanted);
                let began = began.map(|matching| matching + 1);
                add(began.and_then(|began| versions[began].writer), Some(one));
                let ended = versions[place + 1..].iter().find(|version| version.value == *wanted);
                add(Some(one), ended.and_then(|version| version.writer));
            }
        }
        edges
    }

    /// What the check clears; `None` if nothing was committed.
    fn cleared(&self) -> Option<Cleared> {
        let mut encoder = ObservedEncoder::default();
        for (client, running) in (0_u32..).zip(&self.transactions) {
            let outcome = match running.stage {
                Stage::Visible => TransactionOutcome::Committed,
                _ => TransactionOutcome::Aborted,
            };
            let mut draft = running.draft.clone();
            if outcome == TransactionOutcome::Committed {
                let Running { own, next, ref active, .. } = *running;
                let snapshot = Some(TakenSnapshot { own, next, active });
                draft.push(ObservedOperation::Script { script: running.may_read, snapshot }, 0);
            }
            let Running { begin, end, .. } = *running;
            encoder.push(&Transaction { id: client.into(), client, begin, end, outcome, mode: None }, &draft);
        }
        let table = |number: u16| ObservedTable {
            name: format!("t{number}"),
            key: KeyForm::Integer,
            columns: vec![ObservedColumn { name: "v".to_owned(), form: ValueForm::Integer }],
            closed: true,
        };
        let written = |one: &usize| {
            let keys =
                self.rows.iter().filter(|(_, row)| row.iter().any(|version| version.writer == Some(*one)));
            let write = |key: &Key| CommittedWrite {
                table: key.table,
                key: key.id.to_string(),
                what: CommittedChange::Updated,
            };
            CommittedTransaction {
                transaction: self.transactions[*one].own.expect("a writer"),
                writes: keys.map(|(key, _)| write(key)).collect(),
            }
        };
        let predicate = Predicate::Compare { column: 0, comparison: Comparison::Equal, operand: 0 };
        let description = ObservedDescription {
            tables: (0..TABLES).map(table).collect(),
            predicates: vec![predicate],
            statements: vec!["a statement".to_owned()],
            horizon: HORIZON,
            fresh: true,
            committed: Some(CommittedWrites {
                tables: (0..TABLES).collect(),
                transactions: self.log.iter().map(written).collect(),
            }),
            may_read: may_read(),
            ..ObservedDescription::default()
        };
        let chunk = encoder.take();
        let history = resolve(description, || Ok([Ok(chunk.as_slice())].into_iter())).expect("a log");
        let report = check(&history, &Options { order: Order::Data, vouched: false, ..Options::default() });
        assert_eq!(report.cleared.is_none(), self.committed().is_empty());
        report.cleared
    }
}

/// A run of a few transactions, of which so many are under way at the same time.
fn run(seed: u64, together: usize) -> Database {
    let mut database = Database::new(seed);
    for _ in 0..together {
        database.begin();
    }
    let most = 3 + usize::from(database.random.below(8));
    loop {
        let ended = |stage: &Stage| matches!(stage, Stage::Visible | Stage::Aborted);
        let open: Vec<usize> = (0..database.transactions.len())
            .filter(|one| !ended(&database.transactions[*one].stage))
            .collect();
        if open.len() < together && database.transactions.len() < most {
            database.begin();
        } else if open.is_empty() {
            return database;
        } else {
            let chosen = open[usize::from(database.random.below(u16::try_from(open.len()).unwrap()))];
            database.step(chosen);
        }
    }
}

/// The committed transactions that may have read unseen and lie on a cycle.
fn on_cycles(database: &Database) -> usize {
    let edges = database.dependencies();
    let count = database.transactions.len();
    let mut reach = vec![vec![false; count]; count];
    for (from, to) in edges {
        reach[from][to] = true;
    }
    for middle in 0..count {
        for from in 0..count {
            for to in 0..count {
                reach[from][to] |= reach[from][middle] && reach[middle][to];
            }
        }
    }
    let dark = |one: &usize| database.transactions[*one].may_read > 0;
    database.committed().into_iter().filter(dark).filter(|one| reach[*one][*one]).count()
}

#[test]
fn no_transaction_on_a_cycle_is_cleared() {
    let (mut cleared, mut cyclic, mut dark) = (0, 0, 0);
    for seed in seeds(20_000) {
        let database = run(seed, [2, 3, 4, 5][usize::try_from(seed % 4).unwrap()]);
        let Some(found) = database.cleared() else { continue };
        assert_eq!(found.why_not, None, "seed {seed}");
        let on_cycles = on_cycles(&database) as u64;
        let committed = database.committed().into_iter();
        let all = committed.filter(|one| database.transactions[*one].may_read > 0).count() as u64;
        assert!(found.dark >= all, "seed {seed}: {found:?}");
        assert!(found.open() >= on_cycles, "seed {seed}: {on_cycles} on cycles, {found:?}");
        cleared += found.cleared;
        cyclic += on_cycles;
        dark += found.dark;
    }
    // Both happen often enough for the test to mean something.
    assert!(cleared * 10 > dark, "{cleared} of {dark} cleared");
    assert!(cyclic * 50 > dark, "{cyclic} of {dark} on cycles");
}

#[test]
fn what_runs_one_after_another_is_cleared() {
    for seed in seeds(500) {
        let database = run(seed, 1);
        let Some(found) = database.cleared() else { continue };
        assert_eq!((found.open(), found.why_not), (0, None), "seed {seed}");
    }
}
