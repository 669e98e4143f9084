//! The state of examining a row.

use std::collections::BTreeMap;

use super::super::context::{Context, fact};
use super::super::dependencies::OperationRef;
use super::super::findings::Findings;
use super::super::report::WitnessStep;
use super::versions::{Seen, Versions, alike};
use crate::history::Version;

/// The examination of a row.
pub(super) struct Examination<'a, 'h, S> {
    pub(super) context: Context<'h>,
    pub(super) versions: Versions,
    pub(super) found: &'a mut Findings,
    pub(super) sink: &'a mut S,
    pub(super) readers: Vec<Reader>,
    pub(super) followers: Vec<Follower>,
    pub(super) tied: Vec<Tied>,
    /// For statements that read, what of the chain changes their results.
    pub(super) touching: BTreeMap<u16, Touching>,
    pub(super) start: Start,
    /// The counter that was read and is below all those written.
    pub(super) initial_counter: Option<u64>,
}

/// The initial version of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Unknown, except for what counters show.
    Unknown,
    /// Stated by the history.
    Stated(Version),
    /// An unwritten value that was read first.
    Assumed(i64),
    /// An unwritten value that was read first, but isn't to be taken for the initial one.
    Open(i64),
}

impl Start {
    /// True if a version is the initial one.
    pub(super) fn is(self, version: Version) -> bool {
        match self {
            Start::Stated(stated) => {
                let common = version.counter.and(stated.counter).is_some()
                    || version.value.and(stated.value).is_some();
                common && alike(version, stated)
            }
            Start::Assumed(value) => version == Version::valued(value),
            Start::Unknown | Start::Open(_) => false,
        }
    }

    /// True if the origin of a version is unknown.
    pub(super) fn leaves_open(self, version: Version) -> bool {
        matches!(self, Start::Open(value) if version == Version::valued(value))
    }
}

/// A read of a loose version, or of a version before all loose ones.
pub(super) struct Reader {
    pub(super) seen: Seen,
    pub(super) place: OperationRef,
}

/// A version, loose or of the chain, that was made from one that its writer had read.
pub(super) struct Follower {
    pub(super) seen: Seen,
    pub(super) place: OperationRef,
}

/// A write, made from the version before a group of versions whose order is unknown, to which it
/// belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tied {
    /// The position of the group's first version in the chain.
    pub(super) group: usize,
    /// The read of the version before it.
    pub(super) read: OperationRef,
    pub(super) write: OperationRef,
}

/// The places of the chain where versions begin that a statement can tell from the ones before, because
/// the columns that it uses may have changed.
pub(super) struct Touching {
    starts: Vec<usize>,
}

impl Touching {
    /// Those that none of the `untouched` statements wrote alone.
    pub(super) fn of(context: Context<'_>, versions: &Versions, untouched: &[u16]) -> Touching {
        let mut starts = Vec::new();
        let mut start = 0;
        while start < versions.chain.len() {
            let end = versions.group_end(start);
            let same = end == start + 1
                && versions.reborn.binary_search(&start).is_err()
                && context
                    .statement(versions.chain[start].place)
                    .is_some_and(|statement| untouched.binary_search(&statement).is_ok());
            if !same {
                starts.push(start);
            }
            start = end;
        }
        Touching { starts }
    }

    /// The first place from `next` on.
    pub(super) fn next(&self, next: usize) -> Option<usize> {
        self.starts.get(self.starts.partition_point(|start| *start < next)).copied()
    }

    /// The last place up to `seen`; `None` if the statement sees what was there initially.
    pub(super) fn last(&self, seen: usize) -> Option<usize> {
        let end = self.starts.partition_point(|start| *start <= seen);
        end.checked_sub(1).map(|last| self.starts[last])
    }
}

pub(super) fn twice(context: Context<'_>, a: OperationRef, b: OperationRef) -> WitnessStep {
    let why = format!(
        "{} {}, and {} {}, too",
        context.name(a.transaction),
        context.deed(a),
        context.name(b.transaction),
        context.deed(b)
    );
    fact(a.transaction, b.transaction, why)
}
