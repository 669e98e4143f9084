//! The cycles that the levels of their transactions exclude, where levels differ.
//!
//! A cycle has to have an anti-dependency (otherwise no level permits it), and each of them must
//! leave a transaction that reads one snapshot: then, unless two anti-dependencies follow each other,
//! each transaction took its snapshot, or made its writes, after the one before it, all the way round.
//! For two anti-dependencies in a row, Tin, Tp, Tout, it depends on [`Mixing`]:
//!
//! - With `AmongSerializable` all three have to be serializable. In a cycle, the transaction that
//!   committed first is Tout of such a pair (Fekete et al. 2005), and if all pairs are of serializable
//!   transactions, so is that one; PostgreSQL's predicate.c prevents it. It doesn't look at others:
//!   "The only transactions which create SIREAD locks or check for conflicts with them are
//!   serializable transactions".
//! - With `EachSerializable` Tp has to be serializable, since its reads are as of its commit.
//! - With `AmongEquals` every transaction of the cycle has to be serializable.

use super::dependencies::{Label, Link, Node};
use crate::model::Model;
use crate::promise::Mixing;

/// The promises to the transactions of a graph.
#[derive(Debug)]
pub(super) struct Protection {
    mixing: Mixing,
    /// For each transaction of the graph.
    strengths: Vec<Strength>,
}

/// What a transaction is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// Less than a snapshot. (That statements see one each is `statements.rs`'s.)
    Weak,
    /// One snapshot for all that it reads, and that no one else has since written what it writes.
    Snapshot,
    /// Serializability.
    Serializable,
}

impl Strength {
    pub(super) fn of(model: Model) -> Strength {
        match model {
            Model::Serializable => Strength::Serializable,
            Model::SnapshotIsolation => Strength::Snapshot,
            Model::ReadUncommitted | Model::ReadCommitted | Model::ConsistentView | Model::RepeatableRead => {
                Strength::Weak
            }
        }
    }
}

/// The lowest bits of a state: how it was reached.
mod reached {
    /// By something else than an anti-dependency, or in a way that doesn't matter.
    pub const FREELY: u32 = 0;
    /// By an anti-dependency that no other one may follow.
    pub const LAST: u32 = 1;
    /// By an anti-dependency between serializable transactions, which one to a serializable
    /// transaction may follow. In a fan: by one from a serializable transaction.
    pub const SERIALIZABLE: u32 = 2;
    /// In a fan: by the second anti-dependency of a pair, which must lead to a serializable
    /// transaction.
    pub const SECOND: u32 = 3;
}

impl Protection {
    /// The number of bits of a state that aren't the node's.
    pub(super) const BITS: u32 = 2;

    pub(super) fn new(mixing: Mixing, strengths: Vec<Strength>) -> Protection {
        Protection { mixing, strengths }
    }

    /// The strength of a transaction; `None` for another node.
    fn strength(&self, node: Node) -> Option<Strength> {
        self.strengths.get(node as usize).copied()
    }

    fn is_serializable(&self, node: Node) -> bool {
        self.strength(node) == Some(Strength::Serializable)
    }

    /// The state that an edge leads to; `None` if no such walk has it.
    pub(super) fn follow(&self, state: u32, label: Label, to: Node) -> Option<u32> {
        let (from, how) = (state >> Protection::BITS, state & 3);
        let how = match label {
            Label::Through => how,
            _ if label.is_anti() => self.leave(from, how)?,
            _ => reached::FREELY,
        };
        // What leads to a node of a fan is decided where the fan leads.
        let how = if self.strength(to).is_some() { self.arrive(how, to)? } else { how };
        Some(to << Protection::BITS | how)
    }

    /// The state of a transaction that was reached by an anti-dependency out of one that is promised
    /// less than a snapshot.
    pub(super) fn after_weak(&self, to: Node) -> u32 {
        to << Protection::BITS | self.arrive(reached::LAST, to).unwrap_or(reached::LAST)
    }

    /// Leaves a transaction by an anti-dependency.
    fn leave(&self, from: Node, how: u32) -> Option<u32> {
        let strength = self.strength(from).unwrap_or(Strength::Weak);
        match (self.mixing, strength, how) {
            (_, Strength::Weak, _) | (_, _, reached::LAST) => None,
            (Mixing::AmongEquals, ..) => Some(reached::FREELY),
            (Mixing::EachSerializable, ..) | (Mixing::AmongSerializable, Strength::Snapshot, _) => {
                Some(reached::LAST)
            }
            (Mixing::AmongSerializable, Strength::Serializable, reached::FREELY) => {
                Some(reached::SERIALIZABLE)
            }
            (Mixing::AmongSerializable, Strength::Serializable, _) => Some(reached::SECOND),
        }
    }

    /// Arrives at a transaction.
    fn arrive(&self, how: u32, to: Node) -> Option<u32> {
        let serializable = self.is_serializable(to);
        match (self.mixing, how) {
            (Mixing::AmongEquals, _) => serializable.then_some(reached::FREELY),
            (Mixing::EachSerializable, reached::LAST) if serializable => Some(reached::FREELY),
            (_, reached::FREELY) => Some(reached::FREELY),
            (_, reached::SERIALIZABLE) if serializable => Some(reached::SERIALIZABLE),
            (_, reached::SECOND) => serializable.then_some(reached::SERIALIZABLE),
            _ => Some(reached::LAST),
        }
    }
}

/// True if a closed walk with an anti-dependency, whose transactions have these strengths, is one of a
/// protected view.
pub(super) fn excludes(mixing: Mixing, walk: &[Link], strength: impl Fn(Node) -> Strength) -> bool {
    let serializable = |node: Node| strength(node) == Strength::Serializable;
    if mixing == Mixing::AmongEquals {
        return walk.iter().all(|link| serializable(link.from));
    }
    let before = walk.iter().cycle().skip(walk.len().saturating_sub(1));
    before.zip(walk).all(|(first, second)| {
        if !second.label.is_anti() {
            return true;
        }
        let middle = serializable(second.from);
        let around = middle && serializable(first.from) && serializable(second.to);
        let pair = first.label.is_anti();
        strength(second.from) > Strength::Weak
            && (!pair || around || middle && mixing == Mixing::EachSerializable)
    })
}
