//! The inference for one guarantee, to a fixed point.

use rustc_hash::FxHashSet;

use super::super::dependencies::{Graph, Label, Labels, Node};
use super::open::OpenRow;
use super::paths::{Inferred, Paths, Reached, Shape, VersionPair, has};
use super::proof::{Proof, contradiction};

/// The result for a guarantee.
#[derive(Debug)]
pub(super) enum Outcome {
    /// No contradiction; the order of this many pairs of versions remains open.
    Open(u64),
    /// No version order permits the guarantee.
    Contradicted(Proof),
    /// The effort didn't suffice.
    Cut,
}

/// Infers version orders, until there is a contradiction or nothing more to infer.
pub(super) fn run(graph: &Graph, labels: Labels, shape: Shape, rows: &[OpenRow], effort: u64) -> Outcome {
    let orders = rows.iter().map(|row| KnownOrder::new(row.writers.len())).collect();
    let paths = Paths::new(graph, labels, shape);
    Run { rows, orders, paths, left: effort, emitted: FxHashSet::default(), pass: 0 }.all()
}

/// The order of a row's versions, as far as it is known.
#[derive(Debug)]
struct KnownOrder {
    words: usize,
    /// For each version, the set of those known to be later.
    later: Vec<u64>,
    /// The part of it that follows from dependencies as strong as a write-write dependency, so that
    /// a write-write dependency would add nothing.
    firm: Vec<u64>,
    /// True if everything is known and said.
    done: bool,
}

impl KnownOrder {
    fn new(writers: usize) -> KnownOrder {
        let words = writers.div_ceil(64);
        let empty = vec![0; writers * words];
        KnownOrder { words, later: empty.clone(), firm: empty, done: false }
    }

    fn bit(&self, before: u32, after: u32) -> (usize, u64) {
        (before as usize * self.words + after as usize / 64, 1 << (after % 64))
    }

    fn set(&mut self, before: u32, after: u32, firm: bool) {
        let (word, bit) = self.bit(before, after);
        self.later[word] |= bit;
        if firm {
            self.firm[word] |= bit;
        }
    }

    fn is_later(&self, before: u32, after: u32) -> bool {
        let (word, bit) = self.bit(before, after);
        self.later[word] & bit != 0
    }

    fn is_firm(&self, before: u32, after: u32) -> bool {
        let (word, bit) = self.bit(before, after);
        self.firm[word] & bit != 0
    }

    fn later_than(&self, version: u32) -> &[u64] {
        &self.later[version as usize * self.words..][..self.words]
    }

    /// The number of pairs whose order is known. (A pair ordered both ways is a contradiction, which
    /// the next pass finds.)
    fn decided(&self) -> u64 {
        self.later.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The inference so far.
struct Run<'a> {
    rows: &'a [OpenRow],
    orders: Vec<KnownOrder>,
    paths: Paths<'a>,
    /// The steps left.
    left: u64,
    /// The dependencies inferred, and whether they are anti-dependencies.
    emitted: FxHashSet<(Node, Node, bool)>,
    pass: u32,
}

/// The result of a part of a pass.
enum Pass {
    Done,
    /// A cycle leads through this transaction.
    Cycle(Node),
    Cut,
}

/// A writer of a row within a block of sources.
struct Source {
    row: u32,
    index: u32,
    /// The column of paths that any dependency may begin.
    column: usize,
    /// The column of paths that may follow an anti-dependency.
    after_anti: usize,
}

impl Run<'_> {
    fn all(mut self) -> Outcome {
        loop {
            if !self.charge(self.paths.edges()) {
                return Outcome::Cut;
            }
            let sorted = match self.paths.sorted() {
                Ok(sorted) => sorted,
                Err(left) => return Outcome::Contradicted(contradiction(self.rows, &self.paths, Err(left))),
            };
            self.pass += 1;
            match self.look(&sorted) {
                Pass::Done => {}
                Pass::Cycle(node) => {
                    return Outcome::Contradicted(contradiction(self.rows, &self.paths, Ok(node)));
                }
                Pass::Cut => return Outcome::Cut,
            }
            let Some(more) = self.conclude(&sorted) else { return Outcome::Cut };
            if more.is_empty() {
                let decided: u64 = self.orders.iter().map(KnownOrder::decided).sum();
                let pairs: u64 = self.rows.iter().map(OpenRow::pairs).sum();
                return Outcome::Open(pairs.saturating_sub(decided));
            }
            self.paths.extend(more);
        }
    }

    /// Takes steps; false if there aren't as many left.
    fn charge(&mut self, steps: u64) -> bool {
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        enough
    }

    /// Finds the versions that are ordered by paths.
    fn look(&mut self, sorted: &[u32]) -> Pass {
        let shape = self.paths.shape;
        let each = if shape == Shape::Apart { 2 } else { 1 };
        let mut sources: Vec<(Node, u32, u32)> = Vec::new();
        for (row, open) in (0..).zip(self.rows).filter(|(row, _)| !self.orders[*row as usize].done) {
            sources.extend((0..).zip(&open.writers).map(|(index, place)| (place.transaction, row, index)));
        }
        sources.sort_unstable();
        let nodes: Vec<&[(Node, u32, u32)]> = sources.chunk_by(|a, b| a.0 == b.0).collect();
        let at_once = self.paths.columns() / each;
        let blocks = nodes.len().div_ceil(at_once) as u64;
        if self.left < blocks.saturating_mul(self.paths.edges()) {
            return Pass::Cut;
        }
        let mut reached = Reached::default();
        for block in nodes.chunks(at_once) {
            let mut starts = Vec::with_capacity(block.len() * each);
            let mut members: Vec<Source> = Vec::new();
            for own in block {
                let column = starts.len();
                starts.push(shape.start(own[0].0));
                if each == 2 {
                    starts.push(shape.start_after_anti(own[0].0));
                }
                let after_anti = starts.len() - 1;
                members.extend(own.iter().map(|&(_, row, index)| Source { row, index, column, after_anti }));
            }
            self.paths.reach(sorted, &starts, &mut reached);
            if shape == Shape::Single
                && let Some(own) = block.iter().zip(0..).find_map(|(own, column)| {
                    let after = shape.states(own[0].0).end - 1;
                    has(reached.of(after), column).then_some(own[0].0)
                })
            {
                return Pass::Cycle(own);
            }
            members.sort_by_key(|source| (source.row, source.index));
            let mut steps = self.paths.edges();
            for members in members.chunk_by(|a, b| a.row == b.row) {
                steps += self.order_row(members, &reached);
            }
            if !self.charge(steps) {
                return Pass::Cut;
            }
        }
        Pass::Done
    }

    /// Orders the versions of a row after those of the sources. Returns the number of steps.
    fn order_row(&mut self, sources: &[Source], reached: &Reached) -> u64 {
        let shape = self.paths.shape;
        let row = sources[0].row as usize;
        let (open, order) = (&self.rows[row], &mut self.orders[row]);
        for (index, place) in (0..).zip(&open.writers) {
            let states = shape.states(place.transaction);
            let direct = reached.of(states.start);
            let any = reached.of(states.end - 1);
            for source in sources.iter().filter(|source| source.index != index) {
                // The version isn't after that of a transaction which it precedes.
                let precedes = has(direct, source.column) || has(any, source.column);
                if precedes {
                    order.set(source.index, index, has(direct, source.after_anti));
                }
            }
        }
        for &(index, read) in &open.readers {
            let before = reached.of(shape.end_before_anti(read.transaction));
            for source in sources {
                let own = source.index == index || open.writer(source.index) == read.transaction;
                // Nor after a version of which it precedes a reader.
                if !own && has(before, source.after_anti) {
                    order.set(source.index, index, false);
                }
            }
        }
        (sources.len() as u64).saturating_mul((open.writers.len() + open.readers.len()) as u64)
    }

    /// The dependencies that follow from the version orders and aren't known yet; `None` if the
    /// effort doesn't suffice.
    fn conclude(&mut self, sorted: &[u32]) -> Option<Vec<Inferred>> {
        let mut position = vec![0_u32; self.paths.states() as usize];
        for (at, state) in (0..).zip(sorted) {
            position[*state as usize] = at;
        }
        let mut more = Vec::new();
        for row in 0..self.rows.len() {
            if self.orders[row].done {
                continue;
            }
            let said = more.len();
            let steps = self.conclude_row(u32::try_from(row).unwrap_or(u32::MAX), &position, &mut more);
            if !self.charge(steps) {
                return None;
            }
            let all = self.orders[row].decided() == self.rows[row].pairs();
            self.orders[row].done = all && said == more.len();
        }
        Some(more)
    }

    /// The same for one row. Returns the number of steps.
    fn conclude_row(&mut self, row: u32, position: &[u32], more: &mut Vec<Inferred>) -> u64 {
        let (open, order) = (&self.rows[row as usize], &self.orders[row as usize]);
        let shape = self.paths.shape;
        let mut steps = 0_u64;
        let mut by_position: Vec<u32> = (0..).take(open.writers.len()).collect();
        by_position.sort_by_key(|index| position[shape.start(open.writer(*index)) as usize]);
        let mut covered = vec![0_u64; order.words];
        for before in (0..).take(open.writers.len()) {
            covered.fill(0);
            steps += by_position.len() as u64;
            for &after in by_position.iter().filter(|after| order.is_later(before, **after)) {
                if covered[after as usize / 64] >> (after % 64) & 1 == 1 {
                    // Versions in between lead to it.
                    continue;
                }
                covered.iter_mut().zip(order.later_than(after)).for_each(|(all, more)| *all |= more);
                let versions = VersionPair { row, before, after };
                let to = open.writer(after);
                let mut emit = |from: Node, label: Label| {
                    if from != to && self.emitted.insert((from, to, label.is_anti())) {
                        more.push(Inferred { from, to, label, versions, pass: self.pass });
                    }
                };
                if !order.is_firm(before, after) {
                    emit(open.writer(before), Label::WriteWrite);
                }
                let readers = open.readers_of(before);
                for (_, read) in readers {
                    emit(read.transaction, Label::ReadWrite);
                }
                steps += (readers.len() + order.words) as u64;
            }
        }
        steps
    }
}
