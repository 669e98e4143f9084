//! Rows that hold lists: the longest list read shows the order of the appends.
//!
//! Elements that were never read were appended after it, in an unknown order.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::{Context, fact, list, row_key};
use super::dependencies::{Label, Node, OperationRef, Sink};
use super::doubt::DoubtKind;
use super::findings::Findings;
use super::infer::OpenRow;
use super::rows::by_transaction;
use super::status::CommitStatus;
use crate::anomaly::Anomaly;
use crate::history::{Initial, Operation};

/// An append of a transaction, committed or not.
#[derive(Debug, Clone, Copy)]
struct Append {
    element: i64,
    place: OperationRef,
    status: CommitStatus,
    /// True if its transaction appended no further element to this row.
    last: bool,
    /// The position of the element in the longest list.
    position: Option<usize>,
}

/// Examines a row that holds a list. Returns the number of pairs of appends whose order is unknown.
pub(super) fn examine<S: Sink>(
    context: Context<'_>,
    places: &[OperationRef],
    found: &mut Findings,
    sink: &mut S,
) -> u64 {
    let mut appends = appends(context, places);
    let mut reads = Reads::new(context, &appends, false);
    let doubtful = |append: &Append| {
        append.status == CommitStatus::Committed && !context.acknowledged(append.place.transaction)
    };
    if appends.iter().any(doubtful) && !reads.agree(places) {
        // An append of unknown outcome was read, and other reads show that it wasn't permanent.
        appends
            .iter_mut()
            .filter(|append| doubtful(append))
            .for_each(|append| append.status = CommitStatus::Aborted);
        reads = Reads::new(context, &appends, true);
    }
    let longest = reads.longest(places);
    let owners = owners(context, &mut appends, &longest, found);
    let initial = initial(&reads, places, &longest, &owners, found);
    let list = List::new(reads, &longest, &appends, owners, initial);
    list.order(found, sink);
    list.made_from_aborted(places, found);
    let rest = list.unread.len() as u64;
    let own_order = list.unread_by_one();
    let mut readers = Vec::new();
    for (transaction, own) in by_transaction(places) {
        if list.reads.count(transaction) {
            list.transaction(own, found, sink, &mut readers);
        }
    }
    list.link_unread(&readers, found, sink);
    (rest * rest.saturating_sub(1) / 2).saturating_sub(own_order)
}

/// The writers of a list whose order isn't known: those of which an append was never read.
pub(super) fn open_row(context: Context<'_>, places: &[OperationRef]) -> OpenRow {
    let appends = appends(context, places);
    let reads = Reads::new(context, &appends, false);
    let read: FxHashSet<i64> = reads.longest(places).iter().copied().collect();
    let unread =
        |append: &&Append| append.status == CommitStatus::Committed && !read.contains(&append.element);
    OpenRow::new(appends.iter().filter(unread).map(|append| append.place).collect(), [])
}

/// The lists read, without the elements of aborted transactions, which may have been there
/// temporarily.
struct Reads<'h> {
    context: Context<'h>,
    aborted: FxHashMap<i64, OperationRef>,
    /// The elements of all appends, if transactions are missing: then the others are left out, too,
    /// because those who appended them may be aborted.
    known: Option<FxHashSet<i64>>,
    /// True to use only acknowledged transactions.
    strict: bool,
}

impl<'h> Reads<'h> {
    fn new(context: Context<'h>, appends: &[Append], strict: bool) -> Reads<'h> {
        let mut aborted: FxHashMap<i64, OperationRef> = FxHashMap::default();
        for append in appends.iter().filter(|append| append.status == CommitStatus::Aborted) {
            aborted.insert(append.element, append.place);
        }
        if !aborted.is_empty() {
            for append in appends.iter().filter(|append| append.status != CommitStatus::Aborted) {
                aborted.remove(&append.element);
            }
        }
        let known = (!context.complete).then(|| appends.iter().map(|append| append.element).collect());
        Reads { context, aborted, known, strict }
    }

    /// True if a transaction's reads are used.
    fn count(&self, transaction: Node) -> bool {
        if self.strict { self.context.acknowledged(transaction) } else { self.context.counts(transaction) }
    }

    fn clean(&self, elements: &'h [i64]) -> Cow<'h, [i64]> {
        let missing = |element: &i64| self.known.as_ref().is_some_and(|known| !known.contains(element));
        if self.dirty(elements).is_none() && !elements.iter().any(missing) {
            return Cow::Borrowed(elements);
        }
        let clean = |element: &i64| !self.aborted.contains_key(element) && !missing(element);
        Cow::Owned(elements.iter().copied().filter(clean).collect())
    }

    /// The append of the first element that an aborted transaction appended.
    fn dirty(&self, elements: &[i64]) -> Option<OperationRef> {
        if self.aborted.is_empty() {
            return None;
        }
        elements.iter().find_map(|element| self.aborted.get(element).copied())
    }

    fn all(&self, places: &[OperationRef]) -> impl Iterator<Item = (OperationRef, &'h [i64])> {
        places.iter().filter(|place| self.count(place.transaction)).filter_map(|&place| {
            match self.context.operation(place) {
                Operation::ReadList { elements, .. } => Some((place, elements)),
                _ => None,
            }
        })
    }

    /// The longest list that was read.
    fn longest(&self, places: &[OperationRef]) -> Cow<'h, [i64]> {
        let mut longest: Cow<'h, [i64]> = Cow::Borrowed(&[]);
        for (_, elements) in self.all(places) {
            if elements.len() > longest.len() {
                let clean = self.clean(elements);
                if clean.len() > longest.len() {
                    longest = clean;
                }
            }
        }
        longest
    }

    /// True if every list read is a prefix of the longest one.
    fn agree(&self, places: &[OperationRef]) -> bool {
        let longest = self.longest(places);
        self.all(places).all(|(_, elements)| longest.starts_with(&self.clean(elements)))
    }
}

/// All appends, in the order of the transactions.
fn appends(context: Context<'_>, places: &[OperationRef]) -> Vec<Append> {
    let mut appends: Vec<Append> = Vec::new();
    for &place in places {
        if let Operation::Append { element, .. } = context.operation(place) {
            let status = context.status(place.transaction);
            if let Some(before) = appends.last_mut().filter(|a| a.place.transaction == place.transaction) {
                before.last = false;
            }
            appends.push(Append { element, place, status, last: true, position: None });
        }
    }
    appends
}

/// The append of each element of the longest list; records elements that were appended twice or
/// occur twice.
fn owners(
    context: Context<'_>,
    appends: &mut [Append],
    longest: &[i64],
    found: &mut Findings,
) -> Vec<Option<usize>> {
    // A committed append takes precedence over an aborted one of the same element.
    let rank = |append: &Append| match append.status {
        CommitStatus::Committed => 0,
        CommitStatus::Unsure => 1,
        CommitStatus::Aborted => 2,
    };
    let mut order: Vec<usize> = (0..appends.len()).collect();
    order.sort_by_key(|index| (appends[*index].element, rank(&appends[*index])));
    for pair in order.windows(2) {
        let (a, b) = (appends[pair[0]], appends[pair[1]]);
        if a.element != b.element || b.status == CommitStatus::Aborted {
            continue;
        }
        let why = || {
            format!(
                "{} {}, and so did {}",
                context.name(a.place.transaction),
                context.deed(a.place),
                context.name(b.place.transaction)
            )
        };
        found.doubts.note(DoubtKind::NotUnique, 1, why);
        if b.status == CommitStatus::Committed {
            found.note(Anomaly::DuplicateWrite, b.place.transaction, || {
                vec![fact(a.place.transaction, b.place.transaction, why())]
            });
        }
    }
    let mut owners = Vec::with_capacity(longest.len());
    for (position, element) in longest.iter().enumerate() {
        let first = order.partition_point(|index| appends[*index].element < *element);
        let owner = order.get(first).copied().filter(|index| appends[*index].element == *element);
        if let Some(index) = owner
            && appends[index].position.is_none()
        {
            appends[index].position = Some(position);
        }
        owners.push(owner);
    }
    owners
}

/// The number of initial elements: those that are stated, or, in a history that isn't vouched for,
/// a prefix of every list read that consists of elements never appended.
fn initial(
    reads: &Reads<'_>,
    places: &[OperationRef],
    longest: &[i64],
    owners: &[Option<usize>],
    found: &mut Findings,
) -> usize {
    let context = reads.context;
    let key = places.first().and_then(|place| row_key(&context.operation(*place)));
    if let Some(Initial::List(stated)) = key.and_then(|key| context.history.initial().get(&key)) {
        return if longest.starts_with(stated) { stated.len() } else { 0 };
    }
    let unowned = owners.iter().take_while(|owner| owner.is_none()).count();
    let everywhere = || reads.all(places).all(|(_, elements)| reads.clean(elements).len() >= unowned);
    if unowned == 0 || context.whole() || !context.complete || !context.assume || !everywhere() {
        return 0;
    }
    if let Some((place, _)) = reads.all(places).next() {
        found.assume(|| {
            format!(
                "{} {}, but no transaction appended {}",
                context.name(place.transaction),
                context.deed(place),
                list(&longest[..unowned])
            )
        });
    }
    unowned
}

/// A list with all its elements.
struct List<'a, 'h> {
    context: Context<'h>,
    reads: Reads<'h>,
    longest: &'a [i64],
    appends: &'a [Append],
    owners: Vec<Option<usize>>,
    /// For each position, and the end, the next one at or after it that a committed transaction
    /// appended.
    next: Vec<usize>,
    /// The first position of an element that was never appended.
    garbage: Option<usize>,
    /// The indices of committed appends that were never read.
    unread: Vec<usize>,
}

impl<'a, 'h> List<'a, 'h> {
    fn new(
        reads: Reads<'h>,
        longest: &'a [i64],
        appends: &'a [Append],
        owners: Vec<Option<usize>>,
        initial: usize,
    ) -> List<'a, 'h> {
        let context = reads.context;
        let mut next = vec![longest.len(); longest.len() + 1];
        for position in (0..longest.len()).rev() {
            let committed =
                owners[position].is_some_and(|index: usize| appends[index].status == CommitStatus::Committed);
            next[position] = if committed { position } else { next[position + 1] };
        }
        let garbage = (initial..longest.len()).find(|at| owners[*at].is_none()).filter(|_| context.complete);
        let unread = (0..appends.len())
            .filter(|index| {
                appends[*index].status == CommitStatus::Committed && appends[*index].position.is_none()
            })
            .collect();
        List { context, reads, longest, appends, owners, next, garbage, unread }
    }

    fn at(&self, position: usize) -> Option<&'a Append> {
        self.owners.get(position).copied().flatten().map(|index| &self.appends[index])
    }

    /// The pairs of unread appends whose order is known because one transaction made both.
    fn unread_by_one(&self) -> u64 {
        let one =
            |a: &usize, b: &usize| self.appends[*a].place.transaction == self.appends[*b].place.transaction;
        self.unread.chunk_by(one).map(|own| own.len() as u64).map(|own| own * (own - 1) / 2).sum()
    }

    /// Adds write-write dependencies, and records updates of aborted work and elements in an
    /// impossible order.
    fn order<S: Sink>(&self, found: &mut Findings, sink: &mut S) {
        let context = self.context;
        let mut before: Option<OperationRef> = None;
        let mut at = self.next[0];
        while let Some(append) = self.at(at) {
            if let Some(before) = before {
                sink.edge(before, append.place, Label::WriteWrite);
            }
            before = Some(append.place);
            if append.position != Some(at) {
                found.note(Anomaly::DuplicateWrite, append.place.transaction, || {
                    let who = append.place.transaction;
                    let why = format!(
                        "{} {} once, but one list that was read has it twice",
                        context.name(who),
                        context.deed(append.place)
                    );
                    vec![fact(who, who, why)]
                });
            }
            at = self.next[at + 1];
        }
        if let Some(before) = before {
            for index in &self.unread {
                sink.edge(before, self.appends[*index].place, Label::WriteWrite);
            }
        }
        for pair in self.appends.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let one = a.place.transaction == b.place.transaction && a.status == CommitStatus::Committed;
            if one && b.position.is_some() && a.position.is_none_or(|a| Some(a) > b.position) {
                found.note(Anomaly::IncompatibleOrder, a.place.transaction, || {
                    let why = format!(
                        "{} {} and then {}, but a list has them in another order",
                        context.name(a.place.transaction),
                        context.deed(a.place),
                        b.element
                    );
                    vec![fact(a.place.transaction, b.place.transaction, why)]
                });
            }
        }
    }

    /// Records committed appends directly after those of aborted transactions.
    fn made_from_aborted(&self, places: &[OperationRef], found: &mut Findings) {
        if self.reads.aborted.is_empty() {
            return;
        }
        let context = self.context;
        let committed = self.appends.iter().filter(|append| append.status == CommitStatus::Committed);
        let committed: FxHashMap<i64, &Append> = committed.map(|append| (append.element, append)).collect();
        let mut known: FxHashSet<i64> = FxHashSet::default();
        for (_, elements) in self.reads.all(places) {
            for pair in elements.windows(2) {
                let Some(&below) = self.reads.aborted.get(&pair[0]) else { continue };
                let Some(append) = committed.get(&pair[1]).filter(|_| known.insert(pair[1])) else {
                    continue;
                };
                found.note(Anomaly::DirtyUpdate, append.place.transaction, || {
                    let why = format!(
                        "{} {} and was rolled back, but {} {} after it",
                        context.name(below.transaction),
                        context.deed(below),
                        context.name(append.place.transaction),
                        context.deed(append.place)
                    );
                    vec![fact(below.transaction, append.place.transaction, why)]
                });
            }
        }
    }

    /// Examines the reads and appends of a committed transaction. Those that read everything known
    /// are added to `readers`.
    fn transaction<S: Sink>(
        &self,
        own: &[OperationRef],
        found: &mut Findings,
        sink: &mut S,
        readers: &mut Vec<OperationRef>,
    ) {
        let context = self.context;
        let first_own = self.own_appends(own).first();
        let mut appended: Vec<i64> = Vec::new();
        let mut lost = false;
        for &place in own {
            match context.operation(place) {
                Operation::Append { element, .. } => appended.push(element),
                Operation::ReadList { elements: raw, .. } => {
                    let elements = &*self.reads.clean(raw);
                    let fits = elements.ends_with(&appended)
                        && (!appended.is_empty()
                            || first_own.is_none_or(|own| own.position.is_none_or(|p| p >= elements.len())));
                    self.aborted_read(place, raw, found);
                    if !fits {
                        self.internal(place, found);
                        continue;
                    }
                    if !self.longest.starts_with(elements) {
                        self.incompatible(place, found);
                        continue;
                    }
                    self.unclean(place, elements.len(), found);
                    if appended.is_empty() && self.read(place, elements.len(), found, sink) {
                        self.overwritten(place, elements.len(), first_own, &mut lost, found, sink, readers);
                    }
                }
                _ => {}
            }
        }
    }

    fn own_appends(&self, own: &[OperationRef]) -> &'a [Append] {
        let Some(who) = own.first().map(|place| place.transaction) else { return &[] };
        let start = self.appends.partition_point(|append| append.place.transaction < who);
        let end = self.appends.partition_point(|append| append.place.transaction <= who);
        &self.appends[start..end]
    }

    fn internal(&self, place: OperationRef, found: &mut Findings) {
        let context = self.context;
        found.note(Anomaly::Internal, place.transaction, || {
            let who = place.transaction;
            let why =
                format!("{} {}, which doesn't match its own appends", context.name(who), context.deed(place));
            vec![fact(who, who, why)]
        });
    }

    fn incompatible(&self, place: OperationRef, found: &mut Findings) {
        let context = self.context;
        found.note(Anomaly::IncompatibleOrder, place.transaction, || {
            let who = place.transaction;
            let why = format!(
                "{} {}, which is not a prefix of the longest list read, {}",
                context.name(who),
                context.deed(place),
                list(self.longest)
            );
            vec![fact(who, who, why)]
        });
    }

    /// Records elements that were never appended.
    fn unclean(&self, place: OperationRef, length: usize, found: &mut Findings) {
        let context = self.context;
        let who = place.transaction;
        if let Some(position) = self.garbage.filter(|position| *position < length) {
            found.note(Anomaly::GarbageRead, who, || {
                let element = self.longest[position];
                let why = format!(
                    "{} {}; no transaction appended {element}",
                    context.name(who),
                    context.deed(place)
                );
                vec![fact(who, who, why)]
            });
        }
    }

    fn aborted_read(&self, place: OperationRef, elements: &[i64], found: &mut Findings) {
        let Some(aborted) = self.reads.dirty(elements) else { return };
        found.aborted_read(self.context, aborted, place);
    }

    /// Adds the write-read dependency. Returns false if the version read isn't a final one.
    fn read<S: Sink>(&self, place: OperationRef, length: usize, found: &mut Findings, sink: &mut S) -> bool {
        let context = self.context;
        let last = (0..length).rev().find_map(|p| self.at(p).filter(|a| a.status == CommitStatus::Committed));
        let Some(last) = last else { return true };
        sink.edge(last.place, place, Label::WriteRead);
        if last.last || last.place.transaction == place.transaction {
            return true;
        }
        found.note(Anomaly::G1b, place.transaction, || {
            let (writer, reader) = (last.place.transaction, place.transaction);
            let why = format!(
                "{} {} and appended more, but {} {}",
                context.name(writer),
                context.deed(last.place),
                context.name(reader),
                context.deed(place)
            );
            vec![fact(writer, reader, why)]
        });
        false
    }

    /// Adds the anti-dependency on the next append.
    #[expect(
        clippy::too_many_arguments,
        reason = "the loop's state; a struct for it would be used here only"
    )]
    fn overwritten<S: Sink>(
        &self,
        place: OperationRef,
        length: usize,
        first_own: Option<&Append>,
        lost: &mut bool,
        found: &mut Findings,
        sink: &mut S,
        readers: &mut Vec<OperationRef>,
    ) {
        let context = self.context;
        let next = self.next[length];
        let Some(append) = self.at(next) else {
            readers.push(place);
            return;
        };
        let between = append.place.transaction != place.transaction
            && first_own.is_some_and(|own| own.position.is_none_or(|position| position > next));
        let label = if between { Label::Lost } else { Label::ReadWrite };
        sink.edge(place, append.place, label);
        if let Some(own) = first_own.filter(|_| between && !*lost) {
            *lost = true;
            found.note(Anomaly::LostUpdate, place.transaction, || {
                vec![
                    context.step(place, append.place, Label::Lost),
                    context.step(append.place, own.place, Label::WriteWrite),
                ]
            });
        }
    }

    /// Orders the readers of everything known before the appends that were never read.
    fn link_unread<S: Sink>(&self, readers: &[OperationRef], found: &mut Findings, sink: &mut S) {
        let context = self.context;
        if self.unread.is_empty() {
            return;
        }
        let targets: Vec<OperationRef> = self.unread.iter().map(|index| self.appends[*index].place).collect();
        let own = |reader: &OperationRef| -> (usize, usize) {
            let who = reader.transaction;
            let start = targets.partition_point(|target: &OperationRef| target.transaction < who);
            (start, targets.partition_point(|target| target.transaction <= who))
        };
        let mut updating: Vec<(Node, OperationRef, OperationRef)> = Vec::new();
        for reader in readers {
            let (start, end) = own(reader);
            if start < end && updating.last().is_none_or(|(who, ..)| *who != reader.transaction) {
                updating.push((reader.transaction, *reader, targets[start]));
            }
        }
        let steps = |a: (Node, OperationRef, OperationRef), b: (Node, OperationRef, OperationRef)| {
            vec![context.step(a.1, b.2, Label::Lost), context.step(b.1, a.2, Label::Lost)]
        };
        for pair in updating.windows(2) {
            found.note(Anomaly::LostUpdate, pair[1].0, || steps(pair[0], pair[1]));
        }
        found.break_lost(&updating, |(who, ..)| who, steps);
        let several = updating.len() > 1;
        let ranges: Vec<(usize, usize)> = readers.iter().map(own).collect();
        let total = targets.len();
        let mut fan = sink.fan(targets);
        for (reader, (start, end)) in readers.iter().zip(ranges) {
            let label = if several && start < end { Label::Lost } else { Label::ReadWrite };
            sink.link(*reader, &mut fan, 0..start, label);
            sink.link(*reader, &mut fan, end..total, label);
        }
    }
}
