//! The version that each read refers to, and the dependencies that follow from a choice of
//! committed transactions and version orders.

use std::collections::BTreeSet;

use isobench_isolation::Anomaly;
use isobench_isolation::check::Dependency;
use isobench_isolation::history::{Initial, Key, Operation, Version};

use super::{Case, VersionOrders};

/// A dependency between two transactions.
pub type Edge = (usize, usize, Dependency);

/// The conclusions from the data, without the orders of sessions and time.
#[derive(Debug, Default)]
pub struct Explained {
    /// The anomalies that aren't cycles.
    pub flags: BTreeSet<Anomaly>,
    /// The dependencies.
    pub edges: BTreeSet<Edge>,
}

/// The version that a read refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The initial version.
    Initial,
    /// A committed transaction's last write, or (false) an earlier one.
    Writer(usize, bool),
    /// A write of another transaction.
    Aborted(usize),
    /// None.
    Nobody,
}

impl Case<'_> {
    /// The transactions that wrote this version of a row.
    pub fn writers_of(&self, key: Key, read: Version) -> Vec<usize> {
        let wrote = |index: &usize| {
            self.operations[*index].iter().any(|operation| match *operation {
                Operation::Write { key: row, version } => row == key && same(read, version),
                _ => false,
            })
        };
        // The initial version has no writer.
        (0..self.len()).filter(|index| read != Version::INITIAL && wrote(index)).collect()
    }

    /// The version that a read of a row by `reader` refers to, if the reader had not written the
    /// row before.
    pub fn source(&self, counts: &[bool], reader: usize, key: Key, read: Version) -> Source {
        let stated = match self.history.initial().get(&key) {
            Some(Initial::Version(version)) => version.value.is_some() && version.value == read.value,
            _ => false,
        };
        if read == Version::INITIAL || stated {
            return Source::Initial;
        }
        let writers = self.writers_of(key, read);
        let last = |writer: usize| {
            let mut writes = self.operations[writer].iter().filter_map(|operation| match *operation {
                Operation::Write { key: row, version } if row == key => Some(version),
                _ => None,
            });
            writes.next_back().is_some_and(|version| same(read, version))
        };
        let committed = || writers.iter().copied().filter(|&writer| counts[writer] && writer != reader);
        if let Some(writer) = committed().find(|&writer| last(writer)) {
            return Source::Writer(writer, true);
        }
        if let Some(writer) = committed().next() {
            return Source::Writer(writer, false);
        }
        if let Some(&writer) = writers.iter().find(|&&writer| !counts[writer]) {
            return Source::Aborted(writer);
        }
        let lowest = self.counters(key, |_| true).into_iter().min();
        let one_below =
            |lowest: u64| read.counter.is_some_and(|counter| counter.checked_add(1) == Some(lowest));
        if !self.is_of_another_counter(key, read)
            && writers.is_empty()
            && lowest.map_or(read.counter.is_some(), one_below)
        {
            return Source::Initial;
        }
        Source::Nobody
    }

    /// True if the value read was written with another counter.
    pub fn is_of_another_counter(&self, key: Key, read: Version) -> bool {
        let other = |operation: &Operation<'_>| match *operation {
            Operation::Write { key: row, version } => {
                row == key
                    && read.value.is_some()
                    && version.value == read.value
                    && version.counter != read.counter
            }
            _ => false,
        };
        read.counter.is_some() && self.operations.iter().flatten().any(other)
    }

    /// Derives all conclusions.
    pub fn explain(&self, counts: &[bool], orders: &VersionOrders) -> Explained {
        let mut explained = Explained::default();
        for (&key, order) in orders {
            for pair in order.windows(2) {
                explained.edges.insert((pair[0], pair[1], Dependency::WriteWrite));
            }
            self.explain_writes(counts, key, order, &mut explained);
        }
        for reader in (0..self.len()).filter(|&index| counts[index]) {
            for place in 0..self.operations[reader].len() {
                match self.operations[reader][place] {
                    Operation::Read { key, version } => {
                        self.explain_read(counts, orders, (reader, place), key, version, &mut explained);
                    }
                    Operation::ReadList { key, elements } => {
                        self.explain_list(counts, orders, (reader, place), key, elements, &mut explained);
                    }
                    Operation::ReadGroup { table, group, rows } => {
                        self.explain_group(counts, (reader, place), (table, group), rows, &mut explained);
                    }
                    _ => {}
                }
            }
        }
        explained
    }

    /// Examines versions written twice, updates of aborted versions, and inconsistent lists.
    fn explain_writes(&self, counts: &[bool], key: Key, order: &[usize], explained: &mut Explained) {
        let committed = self.counters(key, |index| counts[index]);
        let aborted = self.counters(key, |index| !counts[index]);
        for (place, counter) in committed.iter().enumerate() {
            if committed[..place].contains(counter) {
                explained.flags.insert(Anomaly::LostUpdate);
            }
            let below = counter.checked_sub(1);
            if below.is_some_and(|below| !committed.contains(&below) && aborted.contains(&below)) {
                explained.flags.insert(Anomaly::DirtyUpdate);
            }
        }
        for (place, &writer) in order.iter().enumerate() {
            for operation in &self.operations[writer] {
                let twice = |other: &usize| match *operation {
                    Operation::Write { key: row, version } => {
                        row == key && version.counter.is_none() && self.operations[*other].contains(operation)
                    }
                    Operation::Insert { key: row, .. } => {
                        let inserts =
                            |it: &Operation<'_>| matches!(*it, Operation::Insert { key, .. } if key == row);
                        row == key && self.operations[*other].iter().any(inserts)
                    }
                    _ => false,
                };
                if order[..place].iter().any(twice) {
                    explained.flags.insert(Anomaly::DuplicateWrite);
                }
            }
        }
        for &writer in order {
            let own = self.counters(key, |index| index == writer);
            if !own.is_sorted_by(|one, next| one < next) {
                explained.flags.insert(Anomaly::IncompatibleOrder);
            }
        }
        if self.interleaved(counts, key) {
            explained.flags.insert(Anomaly::G1b);
        }
        let longest = self.longest_list(counts, key);
        for reader in (0..self.len()).filter(|&index| counts[index]) {
            for operation in &self.operations[reader] {
                if let Operation::ReadList { key: row, elements } = *operation
                    && row == key
                    && !self.agrees(counts, key, &longest, elements)
                {
                    explained.flags.insert(Anomaly::IncompatibleOrder);
                }
            }
        }
    }

    /// True if a transaction wrote a row again after another transaction had updated its first
    /// write, which was thus an intermediate version.
    pub fn interleaved(&self, counts: &[bool], key: Key) -> bool {
        let mut written: Vec<(u64, usize)> = Vec::new();
        for writer in (0..self.len()).filter(|&index| counts[index]) {
            written.extend(
                self.counters(key, |index| index == writer).into_iter().map(|counter| (counter, writer)),
            );
        }
        written.sort_unstable();
        for element in &self.longest_list(counts, key) {
            let writer = self.appender(key, *element).filter(|&writer| counts[writer]);
            written.extend(writer.map(|writer| (0, writer)));
        }
        let mut writers: Vec<_> = written.into_iter().map(|(_, writer)| writer).collect();
        // Unread writes come later, starting with that of the last one.
        let last = writers.last().copied();
        let longest = self.longest_list(counts, key);
        let unread = |operation: &Operation<'_>| match *operation {
            Operation::Append { key: row, element } => row == key && !longest.contains(&element),
            _ => false,
        };
        let mut rest: Vec<_> =
            (0..self.len()).filter(|&it| counts[it] && self.operations[it].iter().any(unread)).collect();
        rest.sort_by_key(|it| Some(*it) != last);
        writers.extend(rest);
        writers.dedup();
        let apart: BTreeSet<_> = writers.iter().collect();
        apart.len() < writers.len()
    }

    pub fn without_aborted(&self, counts: &[bool], key: Key, elements: &[i64]) -> Vec<i64> {
        let of_aborted = |element: i64| self.appender(key, element).is_some_and(|writer| !counts[writer]);
        elements.iter().copied().filter(|&element| !of_aborted(element)).collect()
    }

    fn agrees(&self, counts: &[bool], key: Key, longest: &[i64], elements: &[i64]) -> bool {
        let elements = self.without_aborted(counts, key, elements);
        longest.starts_with(&elements) || elements.starts_with(longest)
    }

    fn explain_read(
        &self,
        counts: &[bool],
        orders: &VersionOrders,
        (reader, place): (usize, usize),
        key: Key,
        version: Version,
        explained: &mut Explained,
    ) {
        let own = self.operations[reader][..place].iter().rev().find_map(|operation| match *operation {
            Operation::Write { key: row, version } if row == key => Some(version),
            _ => None,
        });
        if let Some(own) = own {
            if version == Version::INITIAL || !same(version, own) {
                explained.flags.insert(Anomaly::Internal);
            }
            return;
        }
        let order = orders.get(&key).map_or(&[][..], Vec::as_slice);
        let source = self.source(counts, reader, key, version);
        if source == Source::Nobody && self.writers_of(key, version).contains(&reader) {
            // It read its own later write.
            explained.flags.insert(Anomaly::Internal);
            return;
        }
        Case::depend(source, order, reader, explained);
    }

    /// Adds the dependencies of a read of a row: from the version's writer, and to the writer of
    /// the next version.
    fn depend(source: Source, order: &[usize], reader: usize, explained: &mut Explained) {
        let next = match source {
            Source::Nobody => {
                explained.flags.insert(Anomaly::GarbageRead);
                return;
            }
            Source::Aborted(_) => {
                explained.flags.insert(Anomaly::G1a);
                return;
            }
            Source::Initial => 0,
            Source::Writer(writer, last) => {
                if !last {
                    explained.flags.insert(Anomaly::G1b);
                }
                explained.edges.insert((writer, reader, Dependency::WriteRead));
                order.iter().position(|&it| it == writer).map_or(order.len(), |place| place + 1)
            }
        };
        if let Some(&next) = order.get(next)
            && next != reader
        {
            explained.edges.insert((reader, next, Dependency::ReadWrite));
        }
    }

    fn explain_list(
        &self,
        counts: &[bool],
        orders: &VersionOrders,
        (reader, place): (usize, usize),
        key: Key,
        elements: &[i64],
        explained: &mut Explained,
    ) {
        let appended = |operations: &[Operation<'_>]| -> Vec<i64> {
            let element = |operation: &Operation<'_>| match *operation {
                Operation::Append { key: row, element } if row == key => Some(element),
                _ => None,
            };
            operations.iter().filter_map(element).collect()
        };
        let own = appended(&self.operations[reader][..place]);
        let elements = &self.noting_aborted(counts, key, elements, explained)[..];
        let Some(external) = elements.strip_suffix(own.as_slice()) else {
            explained.flags.insert(Anomaly::Internal);
            return;
        };
        if !own.is_empty() && external.iter().any(|element| own.contains(element)) {
            explained.flags.insert(Anomaly::Internal);
        }
        let mut last = Source::Initial;
        for (place, element) in external.iter().enumerate() {
            if external[..place].contains(element) {
                explained.flags.insert(Anomaly::DuplicateWrite);
            }
            match self.appender(key, *element) {
                Some(writer) if writer == reader => explained.flags.insert(Anomaly::Internal),
                Some(writer) => {
                    let its = appended(&self.operations[writer]);
                    let shown: Vec<i64> = external.iter().copied().filter(|it| its.contains(it)).collect();
                    if !its.starts_with(&shown)
                        && shown.iter().all(|it| external.iter().filter(|other| *other == it).count() == 1)
                    {
                        explained.flags.insert(Anomaly::IncompatibleOrder);
                    }
                    last = Source::Writer(writer, its.len() <= shown.len());
                    its.len() > shown.len() && explained.flags.insert(Anomaly::G1b)
                }
                None => explained.flags.insert(Anomaly::GarbageRead),
            };
        }
        let order = orders.get(&key).map_or(&[][..], Vec::as_slice);
        Case::depend(last, order, reader, explained);
    }

    /// A list without the elements of transactions that aren't committed; records the anomalies of
    /// reading them, or appending to them.
    fn noting_aborted(
        &self,
        counts: &[bool],
        key: Key,
        elements: &[i64],
        explained: &mut Explained,
    ) -> Vec<i64> {
        let aborted = |element: i64| self.appender(key, element).is_some_and(|writer| !counts[writer]);
        if elements.iter().any(|&element| aborted(element)) {
            explained.flags.insert(Anomaly::G1a);
        }
        let upon =
            |pair: &[i64]| aborted(pair[0]) && self.appender(key, pair[1]).is_some_and(|it| counts[it]);
        if elements.windows(2).any(upon) {
            explained.flags.insert(Anomaly::DirtyUpdate);
        }
        self.without_aborted(counts, key, elements)
    }

    /// True if a row has no insert, and every read of the group found it: it existed initially.
    pub fn is_initial_member(&self, counts: &[bool], (table, group): (u16, i64), id: i64) -> bool {
        let inserts =
            |it: &Operation<'_>| matches!(*it, Operation::Insert { key, .. } if key == Key { table, id });
        let misses = |it: &Operation<'_>| match *it {
            Operation::ReadGroup { table: of, group: its, rows } => {
                (of, its) == (table, group) && !rows.contains(&id)
            }
            _ => false,
        };
        !self.operations.iter().flatten().any(inserts)
            && !(0..self.len())
                .filter(|&reader| counts[reader])
                .any(|reader| self.operations[reader].iter().any(misses))
    }

    fn explain_group(
        &self,
        counts: &[bool],
        (reader, place): (usize, usize),
        (table, group): (u16, i64),
        rows: &[i64],
        explained: &mut Explained,
    ) {
        for &id in rows {
            let insert = Operation::Insert { key: Key { table, id }, group };
            let inserted = |index: &usize| self.operations[*index].contains(&insert);
            let writers = || (0..self.len()).filter(inserted);
            if self.operations[reader][..place].contains(&insert) {
                continue;
            }
            if let Some(writer) = writers().find(|&writer| counts[writer] && writer != reader) {
                explained.edges.insert((writer, reader, Dependency::WriteRead));
            } else if writers().any(|writer| writer == reader) {
                explained.flags.insert(Anomaly::Internal);
            } else if writers().next().is_some() {
                explained.flags.insert(Anomaly::G1a);
            } else if !self.is_initial_member(counts, (table, group), id) {
                explained.flags.insert(Anomaly::GarbageRead);
            }
        }
        for writer in (0..self.len()).filter(|&index| counts[index]) {
            for (when, operation) in self.operations[writer].iter().enumerate() {
                let Operation::Insert { key, group: its } = *operation else { continue };
                if key.table != table || its != group || rows.contains(&key.id) {
                    continue;
                }
                if writer != reader {
                    explained.edges.insert((reader, writer, Dependency::PredicateReadWrite));
                } else if when < place {
                    explained.flags.insert(Anomaly::Internal);
                }
            }
        }
    }
}

/// True if neither counters nor values differ, as far as both are known.
pub fn same(read: Version, written: Version) -> bool {
    let counters = read.counter.is_none() || written.counter.is_none() || read.counter == written.counter;
    let values = read.value.is_none() || written.value.is_none() || read.value == written.value;
    counters && values
}
