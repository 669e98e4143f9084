//! The check of a history by several machines, with the result of one.
//!
//! - **Rows are shared out**: the parts of the history ([`super::parts`]) have owners, and each machine
//!   sends the operations that it has to the owners of their rows. All have all transactions, without
//!   operations.
//! - **Time is shared out**: a piece of the history ([`super::survey`]) has an owner, too. Each machine
//!   sends it the dependencies within the piece that its rows show, and the owner looks for cycles.
//! - **Rank 0 decides**: it carries out the check as for a history of its own, of which parts are
//!   elsewhere, and the others do what it orders.
//!
//! A machine's memory is that of its rows, and some 45 bytes for each transaction of all. Not here:
//! the ways between the machines (the caller's).

mod messages;
mod orders;
mod sharing;
mod steps;
mod ways;

use std::io;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashSet;

use super::Options;
use super::Pieces;
use super::dependencies::Node;
use super::emit::Emitted;
use super::numbers::put_numbers;
use super::parts::{Part, Picked, Setting, Source, pick_rows, sorted};
use super::report::Report;
use super::rows::Row;
use super::scope::{Cyclic, Scope, Steps};
use super::spill::{PARTS, Spill, SpillError, gathered, part_of_stretches, pick_nodes};
use super::spilled::check_spilled;
use super::status::CommitStatus;
use super::survey::{Positions, Survey};
use crate::history::{FormatError, History, TransactionOutcome};
use crate::model::Order;
use messages::{put_nodes, stretches, take_picked};
use orders::{Asked, Do, order};
pub use sharing::refuse;
pub use ways::Ways;
use ways::{answer, owner};

/// Checks a history of which each machine has a share. Rank 0 returns the report, and a history with at
/// least the transactions of its witnesses; the others return nothing. The order of the transactions is
/// that of the ranks.
///
/// # Errors
/// A machine is gone, or can't use its temporary file; the shares are of different tables, or too large
/// together.
pub(super) fn check_together(
    mut spill: Spill,
    (dropped, identity): (u64, u32),
    options: &Options,
    ways: &mut dyn Ways,
) -> Result<Option<(Report, History)>, FormatError> {
    let dropped = sharing::share(&mut spill, (dropped, identity), ways)?;
    if ways.rank() > 0 {
        orders::serve(&mut spill, ways)?;
        return Ok(None);
    }
    spill.set_dropped(dropped);
    spill.set_pieces(options.pieces);
    Ok(Some(check_spilled(Together { own: spill, ways: Mutex::new(ways) }, options)?))
}

/// The history as rank 0 has it: the parts that it owns, and ways to the others, which serve until it is
/// dropped.
struct Together<'w> {
    own: Spill,
    ways: Mutex<&'w mut dyn Ways>,
}

impl Together<'_> {
    /// Lets all others do something.
    fn order_all(&self, what: &Do, body: &[u8]) {
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        for rank in 1..ways.number() {
            ways.send(rank, order(what, body));
        }
    }

    /// Works with the ways to the others.
    fn with_ways<T>(&self, work: impl FnOnce(&mut dyn Ways) -> T) -> T {
        work(&mut **self.ways.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The answers of all others, in the order of their ranks.
    fn answers(&self) -> Result<Vec<Vec<u8>>, SpillError> {
        self.with_ways(|ways| (1..ways.number()).map(|rank| answer(ways, rank)).collect())
    }

    /// What all pick, this machine included.
    fn picked(
        &self,
        what: &Do,
        body: &[u8],
        own: Result<Vec<Picked>, SpillError>,
    ) -> Result<Vec<Picked>, SpillError> {
        self.order_all(what, body);
        let answers = self.answers();
        let mut all = own?;
        all.extend(answers?.iter().map(|bytes| take_picked(self.frame(), bytes)));
        Ok(all)
    }
}

impl Drop for Together<'_> {
    fn drop(&mut self) {
        self.order_all(&Do::End, &[]);
    }
}

impl Source for Together<'_> {
    type Error = SpillError;

    fn frame(&self) -> &History {
        self.own.frame()
    }

    fn transactions(&self) -> u32 {
        self.own.transactions()
    }

    fn operations(&self) -> u64 {
        self.own.operations()
    }

    fn parts(&self) -> u32 {
        PARTS
    }

    fn pieces(&self) -> Pieces {
        self.own.pieces()
    }

    fn unsure_rows(&self) -> &FxHashSet<Row> {
        self.own.unsure_rows()
    }

    fn filled(&self) -> Vec<u32> {
        (0..PARTS).collect()
    }

    fn load(&self, part: u32) -> Result<Part, SpillError> {
        let bytes = self.with_ways(|ways| {
            let owner = owner(part, ways.number());
            (owner > 0).then(|| {
                ways.send(owner, order(&Do::Part(part), &[]));
                answer(ways, owner)
            })
        });
        match bytes {
            None => self.own.load(part),
            Some(bytes) => Ok(part_of_stretches(self.frame(), &stretches(&bytes?))),
        }
    }

    fn gather(&self, wanted: &[Node]) -> Result<History, SpillError> {
        let mut body = Vec::new();
        put_nodes(&mut body, wanted.iter().copied());
        let picked = self.picked(&Do::Nodes, &body, pick_nodes(&self.own, wanted))?;
        Ok(gathered(self.frame(), wanted, &picked))
    }

    fn whole(&self) -> Result<&History, SpillError> {
        Err(SpillError::WholeNeeded)
    }

    fn only_rows(&self, rows: &FxHashSet<Row>) -> Result<(History, Vec<Node>), SpillError> {
        let order = Do::Rows(rows.iter().copied().collect());
        let picked = self.picked(&order, &[], pick_rows(&self.own, rows))?;
        Ok(sorted(self.frame(), &picked))
    }
}

impl Steps for Together<'_> {
    fn survey(
        &self,
        setting: Setting<'_>,
        order: Order,
        positions: &Positions,
    ) -> Result<Survey, SpillError> {
        let asked = Asked {
            order,
            complete: setting.complete,
            vouched: setting.vouched,
            assume: setting.assume,
            promises: setting.each.map(|each| each.promises),
            pieces: self.pieces(),
        };
        let proved = |node: &Node| {
            setting.status[*node as usize] == CommitStatus::Committed
                && self.frame().transactions()[*node as usize].outcome == TransactionOutcome::Unknown
        };
        let mut body = Vec::new();
        if !self.unsure_rows().is_empty() {
            put_nodes(&mut body, (0..self.transactions()).filter(proved));
        }
        self.order_all(&Do::Survey(asked), &body);
        let own = self.with_ways(|ways| steps::survey(&self.own, setting, order, positions, ways));
        let answers = self.answers();
        let mut survey = own?;
        for bytes in answers? {
            let more = serde_json::from_slice(&bytes).map_err(io::Error::from).map_err(SpillError::Io)?;
            survey.join_others(more);
        }
        Ok(survey)
    }

    fn components(
        &self,
        scope: &Scope<'_, Self>,
        survey: &mut Survey,
        positions: Positions,
    ) -> Result<Cyclic, SpillError> {
        self.order_all(&Do::Components, &[]);
        let Scope { setting, order, only_read, .. } = *scope;
        let local = Scope { source: &self.own, setting, order, only_read };
        let own = self.with_ways(|ways| steps::components(&local, survey, positions, ways));
        let answers = self.answers();
        let mut all = own?;
        for bytes in answers? {
            all.add(&mut bytes.as_slice(), self.transactions() as usize);
        }
        Ok(all)
    }

    fn emit(&self, setting: Setting<'_>, class: &[u32]) -> Result<Vec<Emitted>, SpillError> {
        let mut body = Vec::new();
        put_numbers(&mut body, class);
        self.order_all(&Do::Emit, &body);
        let own = self.own.emit(setting, class);
        let answers = self.answers();
        let mut all = own?;
        all.extend(answers?.iter().map(|bytes| Emitted::take(&mut bytes.as_slice())));
        Ok(all)
    }
}
