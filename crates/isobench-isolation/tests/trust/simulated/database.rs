//! A multi-version database in a few hundred lines. It implements each level correctly, except for
//! one planted defect.
//!
//! It doesn't know clients, nor time except that of its commits. It logs the effects of the defect.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::history::{Draft, Key, Operation, Version};

use super::defect::Defect;

/// The isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Reads see uncommitted versions; rows are locked for writing until the end.
    ReadUncommitted,
    /// Each statement sees what was committed when it started; rows are locked for writing.
    ReadCommitted,
    /// All statements see one snapshot; the first committer wins.
    Snapshot,
    /// Snapshots, and a commit fails if it would close a cycle of dependencies.
    Certified,
    /// Strict two-phase locking of rows and groups.
    Locked,
}

impl Level {
    pub const ALL: [Level; 5] =
        [Level::ReadUncommitted, Level::ReadCommitted, Level::Snapshot, Level::Certified, Level::Locked];
}

/// A client's request.
#[derive(Debug, Clone, Copy)]
pub enum Statement {
    Read(Key),
    Write(Key),
    Append(Key),
    ReadList(Key),
    Insert { table: u16, group: i64 },
    ReadGroup { table: u16, group: i64 },
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// It waits for these transactions to end.
    Wait(BTreeSet<usize>),
    /// The transaction has failed.
    Failed,
}

/// The parts of register versions that clients see: counters, values, or both.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    pub counters: bool,
    pub values: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Register(u64),
    List(Vec<i64>),
    Member(i64),
}

/// A version of a row.
#[derive(Debug, Clone)]
pub struct Stored {
    pub writer: usize,
    /// The commit that made it visible, if any.
    pub published: Option<u64>,
    pub content: Content,
}

/// A transaction.
#[derive(Debug, Clone, Default)]
pub struct Tx {
    /// Its operations, as known to its client.
    pub draft: Draft,
    /// The writer of each row version that it read, except for its own.
    pub reads: Vec<(Key, Option<usize>)>,
    /// The rows of each group that it read.
    pub group_reads: Vec<(u16, i64, BTreeSet<i64>)>,
    pub written: BTreeSet<Key>,
    pub committed: bool,
    snapshot: Option<u64>,
    /// Transactions missing from its snapshot although they committed before it was taken.
    hidden: BTreeSet<usize>,
}

/// An effect of the planted defect.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// The reader saw the writer's uncommitted version.
    DirtyRead { reader: usize, writer: usize },
    /// The transaction overwrote another's version that is missing from its snapshot. `visible` is
    /// true if the history shows it.
    LostUpdate { writer: usize, lost: usize, visible: bool },
    /// The transaction didn't see its own write, or saw an unwritten version.
    Nonsense { reader: usize },
    /// An element was appended twice.
    Twice { key: Key, element: i64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lock {
    Row(Key),
    Group(u16, i64),
}

pub struct Database {
    pub level: Level,
    pub defect: Option<Defect>,
    pub shown: Shown,
    /// The counter of initial rows; `None` if there are none.
    pub first: Option<u64>,
    /// The versions of each row, the oldest first.
    pub rows: BTreeMap<Key, Vec<Stored>>,
    pub txs: Vec<Tx>,
    pub effects: Vec<Effect>,
    random: fastrand::Rng,
    commits: u64,
    fresh: i64,
    locks: BTreeMap<Lock, (Option<usize>, BTreeSet<usize>)>,
    /// Commits that are only partly visible.
    torn: Vec<usize>,
}

impl Database {
    pub fn new(level: Level, defect: Option<Defect>, shown: Shown, random: fastrand::Rng) -> Database {
        let mut random = random;
        let first = if random.bool() { Some(random.u64(0..5)) } else { None };
        Database {
            level,
            defect,
            shown,
            first,
            rows: BTreeMap::new(),
            txs: Vec::new(),
            effects: Vec::new(),
            random,
            commits: 0,
            fresh: 0,
            locks: BTreeMap::new(),
            torn: Vec::new(),
        }
    }

    pub fn begin(&mut self) -> usize {
        self.txs.push(Tx::default());
        self.txs.len() - 1
    }

    /// True at random, if this is the planted defect.
    pub fn errs(&mut self, defect: Defect) -> bool {
        self.defect == Some(defect) && self.random.u8(0..100) < defect.frequency()
    }

    /// Executes a statement, or returns what it has to wait for.
    pub fn execute(&mut self, tx: usize, statement: Statement) -> Answer {
        if self.txs[tx].snapshot.is_none() {
            self.take_snapshot(tx);
        }
        if let Some(answer) = self.lock(tx, statement) {
            return answer;
        }
        match statement {
            Statement::Read(key) => self.read(tx, key),
            Statement::ReadList(key) => self.read_list(tx, key),
            Statement::ReadGroup { table, group } => self.read_group(tx, table, group),
            Statement::Write(key) | Statement::Append(key) => return self.write(tx, key, statement),
            Statement::Insert { table, group } => {
                self.fresh += 1;
                let key = Key { table, id: self.fresh };
                self.store(tx, key, Content::Member(group));
                self.txs[tx].draft.push(Operation::Insert { key, group });
            }
        }
        Answer::Done
    }

    fn take_snapshot(&mut self, tx: usize) {
        let mut snapshot = self.commits;
        if self.errs(Defect::StaleSnapshot) {
            snapshot = snapshot.saturating_sub(self.random.u64(1..5));
        }
        if self.errs(Defect::LongFork) {
            let recent: Vec<_> =
                (0..self.txs.len()).rev().filter(|&it| self.txs[it].committed).take(4).collect();
            if let Some(left_out) = self.random.choice(recent) {
                self.hide(tx, left_out);
            }
        }
        self.txs[tx].snapshot = Some(snapshot);
    }

    /// Removes a transaction from a snapshot, with everything that saw it or overwrote it.
    fn hide(&mut self, tx: usize, left_out: usize) {
        let mut hidden = BTreeSet::from([left_out]);
        loop {
            let depends = |it: usize| {
                let its = &self.txs[it];
                let read = its.reads.iter().any(|read| read.1.is_some_and(|writer| hidden.contains(&writer)));
                let inserted = |table: u16, id: &i64| {
                    let row = self.rows.get(&Key { table, id: *id });
                    row.is_some_and(|row| hidden.contains(&row[0].writer))
                };
                let found = its.group_reads.iter().any(|read| read.2.iter().any(|id| inserted(read.0, id)));
                let overwrote = its.written.iter().any(|key| {
                    let versions = &self.rows[key];
                    versions.windows(2).any(|pair| pair[1].writer == it && hidden.contains(&pair[0].writer))
                });
                read || found || overwrote
            };
            let more = (0..self.txs.len())
                .find(|&it| self.txs[it].committed && !hidden.contains(&it) && depends(it));
            match more {
                Some(it) => hidden.insert(it),
                None => break,
            };
        }
        self.txs[tx].hidden = hidden;
    }

    /// Takes the locks that the level requires; returns an answer if it can't.
    fn lock(&mut self, tx: usize, statement: Statement) -> Option<Answer> {
        if self.level != Level::Locked {
            return None;
        }
        let (lock, exclusive) = match statement {
            Statement::Read(key) | Statement::ReadList(key) => (Lock::Row(key), false),
            Statement::Write(key) | Statement::Append(key) => (Lock::Row(key), true),
            _ if self.defect == Some(Defect::PhantomIgnored) => return None,
            Statement::ReadGroup { table, group } => (Lock::Group(table, group), false),
            Statement::Insert { table, group } => (Lock::Group(table, group), true),
        };
        let (writer, readers) = self.locks.entry(lock).or_default();
        let mut holders: BTreeSet<usize> = writer.iter().copied().filter(|&it| it != tx).collect();
        if exclusive {
            holders.extend(readers.iter().filter(|&&it| it != tx));
        }
        if !holders.is_empty() {
            return Some(Answer::Wait(holders));
        }
        if exclusive {
            *writer = Some(tx);
        } else {
            readers.insert(tx);
        }
        None
    }

    /// True if a transaction sees a version.
    fn sees(&self, tx: usize, stored: &Stored) -> bool {
        let Some(published) = stored.published else {
            return stored.writer == tx || self.level == Level::ReadUncommitted;
        };
        match self.level {
            Level::Snapshot | Level::Certified => {
                let its = &self.txs[tx];
                its.snapshot.is_some_and(|snapshot| published <= snapshot)
                    && !its.hidden.contains(&stored.writer)
            }
            _ => true,
        }
    }

    /// The version that a transaction reads; its own writes are ignored if the defect says so.
    fn look(&mut self, tx: usize, key: Key) -> Option<Stored> {
        let versions = self.rows.get(&key).cloned().unwrap_or_default();
        let last = versions.last().cloned();
        if let Some(last) = &last
            && last.published.is_none()
            && last.writer != tx
            && self.errs(Defect::DirtyRead)
        {
            self.effects.push(Effect::DirtyRead { reader: tx, writer: last.writer });
            return Some(last.clone());
        }
        let overlooked = last.is_some_and(|it| it.writer == tx) && self.errs(Defect::OwnWriteOverlooked);
        if overlooked {
            self.effects.push(Effect::Nonsense { reader: tx });
        }
        versions.into_iter().rfind(|it| self.sees(tx, it) && !(overlooked && it.writer == tx))
    }

    /// Records the version that a read refers to.
    fn note(&mut self, tx: usize, key: Key, seen: Option<&Stored>) {
        let writer = seen.map(|it| it.writer);
        if writer != Some(tx) {
            self.txs[tx].reads.push((key, writer));
        }
    }

    fn version(&self, writer: usize, counter: u64) -> Version {
        let value = i64::try_from(writer).unwrap_or(0) + 1000;
        Version { counter: self.shown.counters.then_some(counter), value: self.shown.values.then_some(value) }
    }

    fn read(&mut self, tx: usize, key: Key) {
        let seen = self.look(tx, key);
        self.note(tx, key, seen.as_ref());
        let mut version = match (&seen, self.first) {
            (Some(Stored { writer, content: Content::Register(counter), .. }), _) => {
                self.version(*writer, *counter)
            }
            (None, Some(first)) if self.shown.counters => {
                Version { counter: Some(first), value: self.shown.values.then_some(0) }
            }
            _ => Version::INITIAL,
        };
        if seen.is_none_or(|it| it.writer != tx) && self.shown.values && self.errs(Defect::Garbage) {
            version.value = Some(-7);
            version.counter = version.counter.map(|it| it + 1000);
            self.effects.push(Effect::Nonsense { reader: tx });
        }
        self.txs[tx].draft.push(Operation::Read { key, version });
    }

    fn read_list(&mut self, tx: usize, key: Key) {
        let seen = self.look(tx, key);
        self.note(tx, key, seen.as_ref());
        let elements = match seen {
            Some(Stored { content: Content::List(elements), .. }) => elements,
            _ => Vec::new(),
        };
        self.txs[tx].draft.push(Operation::ReadList { key, elements: &elements });
    }

    fn read_group(&mut self, tx: usize, table: u16, group: i64) {
        let keys: Vec<Key> = self
            .rows
            .iter()
            .filter(|(key, versions)| key.table == table && versions[0].content == Content::Member(group))
            .map(|(key, _)| *key)
            .collect();
        let mut rows: Vec<i64> =
            keys.into_iter().filter(|key| self.look(tx, *key).is_some()).map(|key| key.id).collect();
        self.random.shuffle(&mut rows);
        self.txs[tx].draft.push(Operation::ReadGroup { table, group, rows: &rows });
        self.txs[tx].group_reads.push((table, group, rows.into_iter().collect()));
    }

    fn write(&mut self, tx: usize, key: Key, statement: Statement) -> Answer {
        let last = self.rows.get(&key).and_then(|versions| versions.last()).cloned();
        let mut base = last.as_ref().map(|it| it.content.clone());
        if let Some(last) = last.filter(|it| it.writer != tx) {
            if last.published.is_none() && !self.errs(Defect::DirtyWrite) {
                return Answer::Wait(BTreeSet::from([last.writer]));
            }
            if matches!(self.level, Level::Snapshot | Level::Certified) && !self.sees(tx, &last) {
                if !self.errs(Defect::LostUpdate) {
                    return Answer::Failed;
                }
                let read_before = self.txs[tx].reads.iter().any(|read| read.0 == key);
                let forgets = self.random.bool() && matches!(statement, Statement::Write(_));
                if forgets {
                    let versions = self.rows[&key].clone();
                    base = versions.into_iter().rfind(|it| self.sees(tx, it)).map(|it| it.content);
                }
                let visible = forgets && self.shown.counters || read_before;
                self.effects.push(Effect::LostUpdate { writer: tx, lost: last.writer, visible });
            }
        }
        let (content, operation) = self.make(tx, key, statement, base);
        self.store(tx, key, content);
        self.txs[tx].draft.push(operation);
        Answer::Done
    }

    /// The new version, and the parts known to the client.
    fn make(
        &mut self,
        tx: usize,
        key: Key,
        statement: Statement,
        base: Option<Content>,
    ) -> (Content, Operation<'static>) {
        if matches!(statement, Statement::Append(_)) {
            let mut elements = match base {
                Some(Content::List(elements)) => elements,
                _ => Vec::new(),
            };
            self.fresh += 1;
            let element = self.fresh;
            elements.push(element);
            if self.errs(Defect::AppendedTwice) {
                elements.push(element);
                self.effects.push(Effect::Twice { key, element });
            }
            return (Content::List(elements), Operation::Append { key, element });
        }
        let counter = match base {
            Some(Content::Register(counter)) => counter + 1,
            _ => self.first.unwrap_or(0) + 1,
        };
        (Content::Register(counter), Operation::Write { key, version: self.version(tx, counter) })
    }

    fn store(&mut self, tx: usize, key: Key, content: Content) {
        let versions = self.rows.entry(key).or_default();
        match versions.last_mut() {
            Some(last) if last.writer == tx => last.content = content,
            _ => versions.push(Stored { writer: tx, published: None, content }),
        }
        self.txs[tx].written.insert(key);
    }

    /// Commits; returns false if the transaction failed instead.
    pub fn commit(&mut self, tx: usize) -> bool {
        self.txs[tx].committed = true;
        if self.level == Level::Certified && self.closes_cycle(tx) {
            self.abort(tx);
            return false;
        }
        self.commits += 1;
        let half = if self.txs[tx].written.len() > 1 && self.errs(Defect::TornCommit) {
            self.torn.push(tx);
            self.txs[tx].written.len() / 2
        } else {
            usize::MAX
        };
        let mut keys: Vec<_> = self.txs[tx].written.iter().copied().collect();
        if half < usize::MAX {
            self.random.shuffle(&mut keys);
        }
        keys.truncate(half);
        self.publish(tx, &keys);
        self.unlock(tx);
        true
    }

    fn publish(&mut self, tx: usize, keys: &[Key]) {
        let commits = self.commits;
        for key in keys {
            for stored in self.rows.get_mut(key).into_iter().flatten().filter(|it| it.writer == tx) {
                stored.published.get_or_insert(commits);
            }
        }
    }

    /// Makes the rest of a torn commit visible.
    pub fn mend(&mut self) {
        if let Some(tx) = self.torn.pop() {
            self.commits += 1;
            let keys: Vec<_> = self.txs[tx].written.iter().copied().collect();
            self.publish(tx, &keys);
        }
    }

    pub fn abort(&mut self, tx: usize) {
        self.txs[tx].committed = false;
        for versions in self.rows.values_mut() {
            versions.retain(|it| it.writer != tx);
        }
        self.rows.retain(|_, versions| !versions.is_empty());
        self.unlock(tx);
    }

    fn unlock(&mut self, tx: usize) {
        for (writer, readers) in self.locks.values_mut() {
            writer.take_if(|it| *it == tx);
            readers.remove(&tx);
        }
    }
}
