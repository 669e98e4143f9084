//! What rank 0 orders, and what the others do.

use std::io;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::messages::{nodes, put_picked, put_stretches};
use super::steps;
use super::ways::{Ways, result};
use crate::check::Pieces;
use crate::check::dependencies::{NONE, Node};
use crate::check::emit::Emitted;
use crate::check::numbers::take_numbers;
use crate::check::parts::{Setting, Source, pick_rows};
use crate::check::promises::{Promised, ToEach};
use crate::check::rows::Row;
use crate::check::scope::{Scope, Steps};
use crate::check::spill::{Spill, SpillError, pick_nodes};
use crate::check::status::{CommitStatus, reported};
use crate::check::survey::{Positions, Survey};
use crate::model::Order;
use crate::promise::LevelPromises;

/// An order of rank 0.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Do {
    /// Examine all rows; the numbers of the transactions that are proved to be committed follow.
    Survey(Asked),
    /// Find the strongly connected components of the own pieces.
    Components,
    /// Send the dependencies within classes, which follow by transaction.
    Emit,
    /// Send the operations on these rows.
    Rows(Vec<Row>),
    /// Send the operations of transactions, whose numbers follow.
    Nodes,
    /// Send a part.
    Part(u32),
    /// Nothing more.
    End,
}

/// How rows are to be examined.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) order: Order,
    pub(super) complete: bool,
    pub(super) vouched: bool,
    pub(super) assume: bool,
    /// The promises to the levels of the transactions, if they differ.
    pub(super) promises: Option<LevelPromises>,
    pub(super) pieces: Pieces,
}

/// An order as a message.
pub(super) fn order(what: &Do, body: &[u8]) -> Vec<u8> {
    let head = serde_json::to_vec(what).unwrap_or_default();
    let mut message = (head.len() as u64).to_le_bytes().to_vec();
    message.extend(head);
    message.extend_from_slice(body);
    message
}

fn read_order(message: &[u8]) -> Option<(Do, &[u8])> {
    let (length, rest) = message.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (head, body) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(head).ok()?, body))
}

/// What was examined last.
struct Examined {
    asked: Asked,
    status: Vec<CommitStatus>,
    each: Option<ToEach>,
    survey: Survey,
    /// Until pieces are looked at.
    positions: Option<Positions>,
}

impl Examined {
    fn setting(&self) -> Setting<'_> {
        setting(self.asked, &self.status, self.each.as_ref())
    }
}

fn setting<'s>(asked: Asked, status: &'s [CommitStatus], each: Option<&'s ToEach>) -> Setting<'s> {
    Setting { status, complete: asked.complete, vouched: asked.vouched, assume: asked.assume, each }
}

/// Does what rank 0 orders until it says that this is all.
///
/// # Errors
/// A machine is gone.
pub(super) fn serve(spill: &mut Spill, ways: &mut dyn Ways) -> Result<(), SpillError> {
    let mut examined: Option<Examined> = None;
    loop {
        let message = ways.receive(0).map_err(SpillError::Io)?;
        let Some((what, body)) = read_order(&message) else {
            return Err(SpillError::Io(io::Error::other("rank 0 sent something that isn't an order")));
        };
        let found = match what {
            Do::End => return Ok(()),
            Do::Survey(asked) => {
                spill.set_pieces(asked.pieces);
                examine(spill, asked, &nodes(&mut &*body), ways).and_then(|now| {
                    let bytes = serde_json::to_vec(&now.survey).map_err(io::Error::from);
                    examined = Some(now);
                    bytes.map_err(SpillError::Io)
                })
            }
            Do::Components => components(spill, examined.as_mut(), ways),
            Do::Emit => emit(spill, examined.as_ref(), body),
            Do::Rows(rows) => {
                let rows: FxHashSet<Row> = rows.into_iter().collect();
                pick_rows(spill, &rows).map(|picked| put_picked(&picked))
            }
            Do::Nodes => pick_nodes(spill, &nodes(&mut &*body)).map(|picked| put_picked(&picked)),
            Do::Part(part) => spill.stretches(part).map(|stretches| put_stretches(&stretches)),
        };
        ways.send(
            0,
            match found {
                Ok(bytes) => result(Ok(bytes)),
                Err(error) => result(Err(&error)),
            },
        );
    }
}

fn examine(
    spill: &Spill,
    asked: Asked,
    proved: &[Node],
    ways: &mut dyn Ways,
) -> Result<Examined, SpillError> {
    let transactions = &spill.frame().transactions()[..spill.transactions() as usize];
    let mut status: Vec<CommitStatus> = transactions.iter().map(reported).collect();
    for node in proved {
        status[*node as usize] = CommitStatus::Committed;
    }
    let each = match Promised::of(asked.promises, transactions) {
        Promised::ToEach(each) => Some(each),
        Promised::Nothing | Promised::ToAll(_) => None,
    };
    let positions = Positions::new(spill.frame(), spill.transactions());
    let setting = setting(asked, &status, each.as_ref());
    let survey = steps::survey(spill, setting, asked.order, &positions, ways)?;
    Ok(Examined { asked, status, each, survey, positions: Some(positions) })
}

/// What is missing if rank 0 orders something out of turn.
fn not_examined() -> SpillError {
    SpillError::Io(io::Error::other("nothing was examined"))
}

fn components(
    spill: &Spill,
    examined: Option<&mut Examined>,
    ways: &mut dyn Ways,
) -> Result<Vec<u8>, SpillError> {
    let examined = examined.ok_or_else(not_examined)?;
    let positions = examined.positions.take().ok_or_else(not_examined)?;
    let mut survey = std::mem::take(&mut examined.survey);
    let only_read = FxHashSet::default();
    let order = examined.asked.order;
    let scope = Scope { source: spill, setting: examined.setting(), order, only_read: &only_read };
    Ok(steps::components(&scope, &mut survey, positions, ways)?.put())
}

fn emit(spill: &Spill, examined: Option<&Examined>, body: &[u8]) -> Result<Vec<u8>, SpillError> {
    let examined = examined.ok_or_else(not_examined)?;
    let mut class = vec![NONE; spill.transactions() as usize];
    for (node, own) in take_numbers(&mut &*body) {
        class[node as usize] = own;
    }
    let mut bytes = Vec::new();
    Emitted::joined(spill.emit(examined.setting(), &class)?).put(&mut bytes);
    Ok(bytes)
}
