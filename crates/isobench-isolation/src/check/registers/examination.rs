//! The state of examining a row.

use super::super::context::{Context, fact};
use super::super::dependencies::OperationRef;
use super::super::findings::Findings;
use super::super::report::WitnessStep;
use super::columns::Columns;
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
    /// The columns that the versions changed, where that is known and counts.
    pub(super) columns: Option<Columns>,
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

pub(super) fn both_from_one(context: Context<'_>, a: OperationRef, b: OperationRef) -> WitnessStep {
    let (first, second) = (a.transaction, b.transaction);
    let why = format!(
        "{} {}, and {} {}: both were made from the same version, so one update is lost",
        context.name(first),
        context.deed(a),
        context.name(second),
        context.deed(b)
    );
    fact(first, second, why)
}
