//! Rows that are overwritten: their versions in the order of their counters, and the dependencies
//! of their readers and writers.
//!
//! Versions with counters form a *chain*. Versions without counters (*loose* versions) are only
//! known to follow the initial one, and the version that their writer had read before. That
//! suffices for anti-dependencies; write-write dependencies between loose versions add nothing to
//! the write-read ones. What else follows from a guarantee is in `infer.rs`.

mod columns;
mod doubtful;
mod examination;
mod loose;
mod versions;

use super::context::{Context, fact};
use super::dependencies::{Label, Node, OperationRef, Sink};
use super::findings::Findings;
use super::infer::{Ignored, OpenRow};
use crate::anomaly::Anomaly;
use crate::history::{Operation, Version};

use super::report::WitnessStep;
use columns::Columns;
use examination::{Examination, Follower, Reader, Start, Tied, both_from_one, twice};
use versions::{Access, Others, Seen, Versions, Written, accesses, alike, apart, by_transaction};

/// Examines a row that is overwritten. Returns the number of pairs of versions whose order is
/// unknown.
pub(super) fn examine<S: Sink>(
    context: Context<'_>,
    places: &[OperationRef],
    found: &mut Findings,
    sink: &mut S,
) -> u64 {
    let mut row = examined(context, places, found, sink);
    let tied = if context.observed() { row.versions.tied() } else { 0 };
    if row.versions.loose.is_empty() {
        return tied;
    }
    tied.saturating_add(row.loose_order())
}

/// The writers and readers of a row with an unknown version order; `None` if its versions may be of
/// several objects, whose order isn't that of versions.
pub(super) fn open_row(context: Context<'_>, places: &[OperationRef]) -> Option<OpenRow> {
    let (mut found, mut sink) = (Findings::default(), Ignored);
    let row = examined(context, places, &mut found, &mut sink);
    let versions = &row.versions;
    if context.observed() && !versions.reborn.is_empty() {
        return None;
    }
    let last = |written: &&Written| written.last;
    let writers = versions.chain.iter().chain(&versions.loose).filter(last).map(|written| written.place);
    let read = |reader: &Reader| Some((versions.written(reader.seen)?.place.transaction, reader.place));
    Some(OpenRow::new(writers.collect(), row.readers.iter().filter_map(read)))
}

/// Examines a row, except for the order of its loose versions.
fn examined<'a, 'h, S: Sink>(
    context: Context<'h>,
    places: &[OperationRef],
    found: &'a mut Findings,
    sink: &'a mut S,
) -> Examination<'a, 'h, S> {
    let accesses = accesses(context, places);
    let versions = Versions::of(context, &accesses);
    let columns = if context.observed() { Columns::of(context, &versions) } else { None };
    let mut row = Examination {
        context,
        versions,
        found,
        sink,
        readers: Vec::new(),
        followers: Vec::new(),
        tied: Vec::new(),
        columns,
        start: Start::Unknown,
        initial_counter: None,
    };
    row.start = row.start(&accesses);
    if row.versions.none() {
        row.nothing_written(&accesses);
        return row;
    }
    row.not_unique(&accesses);
    row.duplicates();
    row.suspect_counters(&accesses);
    row.chain_order();
    row.missed(places);
    for (transaction, own) in by_transaction(&accesses) {
        if context.counts(transaction) {
            row.transaction(transaction, own);
        }
    }
    row.lost_among_tied();
    row
}

impl<S: Sink> Examination<'_, '_, S> {
    /// A row that was never written: all reads must be of the initial version.
    fn nothing_written(&mut self, accesses: &[Access]) {
        if self.context.complete && !self.context.whole() {
            return self.never_written(accesses);
        }
        let start = self.start;
        let known = |version: Version| version.counter.is_none() && version.value.is_some();
        for access in accesses.iter().filter(|access| known(access.version) && !start.is(access.version)) {
            if self.context.whole() && self.context.counts(access.place.transaction) {
                self.garbage(access.place);
            }
        }
    }

    fn garbage(&mut self, place: OperationRef) {
        let context = self.context;
        self.found.note(Anomaly::GarbageRead, place.transaction, || {
            let why = format!(
                "{} {}, which no transaction wrote",
                context.name(place.transaction),
                context.deed(place)
            );
            vec![fact(place.transaction, place.transaction, why)]
        });
    }

    /// Records versions of different transactions that are indistinguishable, or that were made
    /// from the same one.
    fn duplicates(&mut self) {
        let context = self.context;
        if context.observed() {
            return;
        }
        for bounds in self.versions.groups.windows(2) {
            let group = &self.versions.chain[bounds[0]..bounds[1]];
            let step = |a: Written, b: Written| vec![both_from_one(context, a.place, b.place)];
            self.found.break_lost(&apart(group), |written: Written| written.place.transaction, step);
            for pair in group.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                if a.place.transaction == b.place.transaction {
                    continue;
                }
                if a.version == b.version && a.version.value.is_some() {
                    self.found.note(Anomaly::DuplicateWrite, b.place.transaction, || {
                        vec![twice(context, a.place, b.place)]
                    });
                } else {
                    self.found.note(Anomaly::LostUpdate, b.place.transaction, || step(a, b));
                }
            }
        }
        let mut loose: Vec<&Written> =
            self.versions.loose.iter().filter(|w| w.version.value.is_some()).collect();
        loose.sort_by_key(|written| written.version.value);
        for pair in loose.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if a.version.value == b.version.value && a.place.transaction != b.place.transaction {
                self.found.note(Anomaly::DuplicateWrite, b.place.transaction, || {
                    vec![twice(context, a.place, b.place)]
                });
            }
        }
    }

    /// Adds write-write dependencies along the chain, and records updates of aborted work.
    ///
    /// Between two versions with the same counter, it is unknown from which the next version was
    /// made, and whether the other came later.
    fn chain_order(&mut self) {
        if self.context.observed() {
            return self.proved_order();
        }
        let mut before: Option<Written> = None;
        let mut counter_before = None;
        let mut start = 0;
        while start < self.versions.chain.len() {
            let end = self.versions.group_end(start);
            for index in start..end {
                if let Some(before) = before {
                    self.sink.edge(before.place, self.versions.chain[index].place, Label::WriteWrite);
                }
            }
            let counter = self.versions.chain[start].counter();
            if counter_before != counter.checked_sub(1) && !self.versions.aborted.is_empty() {
                self.made_from_aborted(start, counter);
            }
            if end == start + 1 {
                before = Some(self.versions.chain[start]);
            }
            (start, counter_before) = (end, Some(counter));
        }
        let context = self.context;
        for &place in &self.versions.backward {
            self.found.note(Anomaly::IncompatibleOrder, place.transaction, || {
                let (who, done) = (context.name(place.transaction), context.deed(place));
                let why = format!("{who} {done}, and then made a version that precedes it");
                vec![fact(place.transaction, place.transaction, why)]
            });
        }
    }

    /// Adds write-write dependencies between versions whose counters are proved: each is followed by
    /// all those with the next counter, unless it is left out.
    fn proved_order(&mut self) {
        if let Some(columns) = self.columns.take() {
            self.proved_order_of(&columns);
            self.columns = Some(columns);
            return;
        }
        let mut start = 0;
        while start < self.versions.chain.len() {
            let middle = self.versions.group_end(start);
            let end = self.versions.group_end(middle);
            if !self.versions.same_object(middle..end) {
                start = middle;
                continue;
            }
            let targets: Vec<OperationRef> =
                self.versions.chain[middle..end].iter().map(|written| written.place).collect();
            let count = targets.len();
            let mut fan = self.sink.fan(targets);
            for written in &self.versions.chain[start..middle] {
                self.sink.link(written.place, &mut fan, 0..count, Label::WriteWrite);
            }
            start = middle;
        }
    }

    /// The same, column by column.
    fn proved_order_of(&mut self, columns: &Columns) {
        let mut start = 0;
        while start < self.versions.chain.len() {
            let end = self.versions.group_end(start);
            if self.versions.reborn.binary_search(&start).is_err() {
                for before in columns.replaced(start) {
                    self.link_groups(before, start);
                }
            }
            start = end;
        }
    }

    /// Adds write-write dependencies between all versions of two groups.
    fn link_groups(&mut self, before: usize, after: usize) {
        let group = |start: usize| start..self.versions.group_end(start);
        let place = |written: &Written| written.place;
        let targets: Vec<OperationRef> = self.versions.chain[group(after)].iter().map(place).collect();
        let sources: Vec<OperationRef> = self.versions.chain[group(before)].iter().map(place).collect();
        let count = targets.len();
        let mut fan = self.sink.fan(targets);
        for source in sources {
            self.sink.link(source, &mut fan, 0..count, Label::WriteWrite);
        }
    }

    /// Adds the dependencies of searches that missed the row.
    fn missed(&mut self, places: &[OperationRef]) {
        let context = self.context;
        for place in places.iter().filter(|place| context.counts(place.transaction)) {
            let Operation::Missed { after, before, .. } = context.operation(*place) else { continue };
            let versions = &self.versions;
            let counted = |counter: Option<u64>| {
                let first = counter.map_or(versions.chain.len(), |counter| versions.at_or_after(counter));
                let versions = versions.chain[first..].iter();
                versions.take_while(move |written| Some(written.counter()) == counter)
            };
            for written in counted(after) {
                self.sink.edge(written.place, *place, Label::WriteRead);
            }
            for written in counted(before) {
                self.sink.edge(*place, written.place, Label::PredicateReadWrite);
            }
        }
    }

    /// Records a version whose predecessor was written by an aborted transaction only.
    fn made_from_aborted(&mut self, index: usize, counter: u64) {
        let context = self.context;
        let Some(below) = counter.checked_sub(1).map(Version::counted) else { return };
        if !context.complete || self.versions.unsure.find(below).is_some() {
            return;
        }
        let Some(aborted) = self.versions.aborted.find(below) else { return };
        let place = self.versions.chain[index].place;
        if context.whole() { self.dirty_update(aborted, place) } else { self.unaccounted(aborted, place) }
    }

    fn dirty_update(&mut self, aborted: OperationRef, place: OperationRef) {
        let context = self.context;
        self.found.note(Anomaly::DirtyUpdate, place.transaction, || {
            let why = format!(
                "{} {} and was rolled back, but {} {} on top of it",
                context.name(aborted.transaction),
                context.deed(aborted),
                context.name(place.transaction),
                context.deed(place)
            );
            vec![fact(aborted.transaction, place.transaction, why)]
        });
    }

    /// Examines the operations of a committed transaction on the row.
    fn transaction(&mut self, transaction: Node, own: &[Access]) {
        let first_write = own.iter().find(|access| access.write).map(|access| (access.place, access.version));
        let mut written: Option<Version> = None;
        let mut last_seen = None;
        let mut lost = false;
        for &Access { place, version, write } in own {
            if write {
                if let (None, Some(seen)) = (written, last_seen)
                    && (version.counter.is_none() || matches!(seen, Seen::Loose(_)))
                {
                    self.followers.push(Follower { seen, place });
                }
                written = Some(version);
            } else if let Some(written) = written {
                let gone = version == Version::INITIAL && written != Version::INITIAL;
                if gone || !alike(version, written) {
                    self.not_own(transaction, place, written);
                }
            } else if let Some(seen) = self.resolve(version, place)
                && self.read(place, version, seen, first_write, &mut lost)
            {
                last_seen = Some(seen);
            }
        }
    }

    fn not_own(&mut self, transaction: Node, place: OperationRef, written: Version) {
        let context = self.context;
        self.found.note(Anomaly::Internal, transaction, || {
            let why = format!(
                "{} {} after it had itself written {}",
                context.name(transaction),
                context.deed(place),
                super::context::version_name(context.history, written)
            );
            vec![fact(transaction, transaction, why)]
        });
    }

    /// Records a read. Returns false if no dependencies follow from it.
    fn read(
        &mut self,
        place: OperationRef,
        version: Version,
        seen: Seen,
        first_write: Option<(OperationRef, Version)>,
        lost: &mut bool,
    ) -> bool {
        let context = self.context;
        if let Some(written) = self.versions.written(seen) {
            let writer = written.place.transaction;
            if writer == place.transaction {
                // It can be the reader's own version only if no other transaction wrote an
                // identical one.
                if let Some(aborted) = self.versions.aborted.find(version) {
                    self.aborted_read(aborted, place, version);
                    return false;
                }
                // So may a transaction that is missing have.
                let missing = !context.complete && version.value.is_none();
                if missing || self.versions.unsure.find(version).is_some() {
                    return false;
                }
                self.found.note(Anomaly::Internal, writer, || {
                    let why = format!("{} {} before writing it", context.name(writer), context.deed(place));
                    vec![fact(writer, writer, why)]
                });
                return false;
            }
            for source in self.sources(seen, written, place) {
                self.sink.edge(source, place, Label::WriteRead);
            }
            if !written.last {
                self.found.note(Anomaly::G1b, place.transaction, || {
                    let why = format!(
                        "{} {}, which {} overwrote itself",
                        context.name(place.transaction),
                        context.deed(place),
                        context.name(writer)
                    );
                    vec![fact(writer, place.transaction, why)]
                });
                return false;
            }
        }
        let next = self.versions.after(seen);
        if context.observed() {
            let nexts = match &self.columns {
                Some(columns) => columns.changes(context.used(place), next).into_iter().collect(),
                None => vec![next],
            };
            for next in nexts {
                self.read_proved(place, next, first_write, lost);
            }
            if !self.versions.loose.is_empty() || !self.versions.groups.is_empty() {
                self.readers.push(Reader { seen, place });
            }
            return true;
        }
        let end = if self.versions.doubtful(seen) { next } else { self.versions.group_end(next) };
        let group = &self.versions.chain[next..end];
        let mut label = Label::ReadWrite;
        if let (Some((write, Version { counter: Some(counter), .. })), Some(first)) =
            (first_write, group.first())
            && !matches!(seen, Seen::Loose(_))
        {
            let between = first.counter() < counter && first.place.transaction != place.transaction;
            if between && !*lost {
                let other = first.place;
                self.found.note(Anomaly::LostUpdate, place.transaction, || {
                    vec![
                        context.step(place, other, Label::Lost),
                        context.step(other, write, Label::WriteWrite),
                    ]
                });
                *lost = true;
            }
            let by_transaction = |written: &Written| written.place.transaction;
            let own =
                group.len() > 1 && group.binary_search_by_key(&place.transaction, by_transaction).is_ok();
            if between || own {
                label = Label::Lost;
            }
        }
        // One of several versions with the same counter suffices: the duplicates are a more severe
        // finding than these dependencies.
        if let Some(next) = group.iter().find(|written| written.place.transaction != place.transaction) {
            self.sink.edge(place, next.place, label);
        }
        if !self.versions.loose.is_empty() {
            self.readers.push(Reader { seen, place });
        }
        true
    }

    /// The writes that a read depends on: that of the version read, or those of the columns in use.
    fn sources(&self, seen: Seen, written: Written, read: OperationRef) -> Vec<OperationRef> {
        let (Seen::Chain(index), Some(columns)) = (seen, &self.columns) else { return vec![written.place] };
        let groups = columns.sources(self.context.used(read), index);
        let writes = |start: usize| {
            let group = start..self.versions.group_end(start);
            // Of several whose order isn't known, the others come before the last one.
            if group.contains(&index) {
                &self.versions.chain[index..=index]
            } else {
                &self.versions.chain[group]
            }
        };
        groups.into_iter().flat_map(writes).map(|written| written.place).collect()
    }

    /// Adds anti-dependencies on the versions that follow the one read, which start at `next`, in an
    /// observed history.
    fn read_proved(
        &mut self,
        place: OperationRef,
        next: usize,
        first_write: Option<(OperationRef, Version)>,
        lost: &mut bool,
    ) {
        let context = self.context;
        let end = self.versions.group_end(next);
        let group = &self.versions.chain[next..end];
        let own = group.iter().any(|written| written.place.transaction == place.transaction);
        if own || !self.versions.same_object(next..end) {
            if let (true, Some((write, _)), 2..) = (own, first_write, group.len())
                && context.depends(write, place)
                && self.versions.same_object(next..end)
            {
                self.tied.push(Tied { group: next, read: place, write });
            }
            return;
        }
        let mut label = Label::ReadWrite;
        if let (Some((write, Version { counter: Some(counter), .. })), Some(first)) =
            (first_write, group.first())
            && first.counter() < counter
            && context.depends(write, place)
            && self.versions.same_object(next..self.versions.at_or_after(counter) + 1)
            && self
                .columns
                .as_ref()
                .is_none_or(|columns| columns.overlap(next, self.versions.at_or_after(counter)))
        {
            label = Label::Lost;
            if !*lost {
                let other = first.place;
                self.found.note(Anomaly::LostUpdate, place.transaction, || {
                    vec![
                        context.step(place, other, Label::Lost),
                        context.step(other, write, Label::WriteWrite),
                    ]
                });
                *lost = true;
            }
        }
        let targets: Vec<OperationRef> = group.iter().map(|written| written.place).collect();
        let count = targets.len();
        let mut fan = self.sink.fan(targets);
        self.sink.link(place, &mut fan, 0..count, label);
    }

    /// Records updates that were lost among versions whose order is unknown: of several transactions
    /// that made one of them from the same version before all of them, each but the first overwrote
    /// the first one's without having seen it, whichever that was.
    fn lost_among_tied(&mut self) {
        let context = self.context;
        let mut tied = std::mem::take(&mut self.tied);
        tied.sort_by_key(|one| (one.group, one.write.transaction));
        tied.dedup_by_key(|one| (one.group, one.write.transaction));
        let step = |a: Tied, b: Tied| {
            let (first, second) = (a.write.transaction, b.write.transaction);
            let why = format!(
                "{} and {} both {}, and then {} {}, and {} {}: whichever was first, the other one overwrote it",
                context.name(first),
                context.name(second),
                context.deed(a.read),
                context.name(first),
                context.deed(a.write),
                context.name(second),
                context.deed(b.write)
            );
            vec![WitnessStep {
                statements: context.statements([a.read, a.write]),
                ..fact(first, second, why)
            }]
        };
        for group in tied.chunk_by(|a, b| a.group == b.group) {
            for pair in group.windows(2) {
                let (a, b) = (pair[0], pair[1]);
                self.found.note(Anomaly::LostUpdate, b.write.transaction, || step(a, b));
            }
            self.found.break_lost(group, |tied: Tied| tied.write.transaction, step);
        }
    }

    /// Finds the version that was read; records it if it can't exist.
    fn resolve(&mut self, version: Version, place: OperationRef) -> Option<Seen> {
        if version == Version::INITIAL || self.start.is(version) {
            return Some(Seen::Initial);
        }
        if let Some(counter) = version.counter {
            let first = self.versions.at_or_after(counter);
            let group =
                self.versions.chain[first..].iter().take_while(|written| written.counter() == counter);
            // Where versions are observed they are wholly known; one without a value is a deletion,
            // which nobody reads.
            let observed = self.context.observed();
            let is_it = |written: &Written| {
                if observed { written.version == version } else { alike(written.version, version) }
            };
            if let Some(index) = group.clone().position(is_it) {
                return Some(Seen::Chain(first + index));
            }
        }
        let by_value = version.value.and_then(|value| self.versions.by_value(value));
        if let Some(seen) = by_value {
            let written = self.versions.written(seen)?;
            if alike(written.version, version) {
                return Some(seen);
            }
            self.contradictory(place, written.place);
            return None;
        }
        if let Some(aborted) = self.versions.aborted.find(version) {
            self.aborted_read(aborted, place, version);
            return None;
        }
        if self.versions.unsure.find(version).is_some() {
            return None;
        }
        if version.counter.is_some_and(|counter| self.before_all(counter)) {
            self.counted_initial(version, place);
            return Some(Seen::Initial);
        }
        if self.start.leaves_open(version) {
            return None;
        }
        let (counter, value, neither) = self.versions.unknown;
        let may_be = match (version.counter, version.value) {
            (Some(_), Some(_)) => neither,
            (Some(_), None) => counter,
            (None, _) => value,
        };
        if self.context.complete && !may_be {
            self.garbage(place);
        }
        None
    }

    /// A read from an aborted transaction, if the value says so, or if no other transaction can
    /// have written the version.
    fn aborted_read(&mut self, aborted: OperationRef, place: OperationRef, version: Version) {
        let by_value = version.value.is_some_and(|value| self.versions.aborted.has(value));
        if by_value || self.context.whole() {
            self.found.aborted_read(self.context, aborted, place);
        } else {
            self.unaccounted(aborted, place);
        }
    }

    /// True if a counter is below all those written.
    fn before_all(&self, counter: u64) -> bool {
        let lowest = [&self.versions.aborted, &self.versions.unsure].map(Others::lowest);
        let chain = self.versions.chain.first().map(Written::counter);
        lowest.into_iter().chain([chain]).flatten().all(|lowest| counter < lowest)
    }

    fn contradictory(&mut self, place: OperationRef, written: OperationRef) {
        let context = self.context;
        self.found.note(Anomaly::IncompatibleOrder, place.transaction, || {
            let (writer, reader) = (written.transaction, place.transaction);
            let why = format!(
                "{} {}, but {} {}",
                context.name(reader),
                context.deed(place),
                context.name(writer),
                context.deed(written)
            );
            vec![fact(writer, reader, why)]
        });
    }
}
