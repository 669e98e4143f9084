//! The beginning: each machine gets the operations on its rows, and the transactions of all.

use std::io;

use serde::{Deserialize, Serialize};

use super::ways::{Ways, answer, owner, result};
use crate::check::parts::Source;
use crate::check::rows::Row;
use crate::check::spill::{PARTS, Spill, SpillError};
use crate::history::binary::{Encoder, read_chunk};
use crate::history::{Draft, FormatError, History};

/// The bytes that are sent to each machine before what it sends is taken.
const TURN: usize = 4 << 20;

/// Transactions that are sent together.
const TOGETHER: usize = 1 << 14;

/// What each machine says of its share.
#[derive(Debug, Serialize, Deserialize)]
struct Share {
    /// Tables and statements, or what they come down to.
    subjects: String,
    /// The same for all, if they are shares of one recording.
    identity: u32,
    transactions: u64,
    operations: u64,
    dropped: u64,
    /// The rows that transactions of unknown outcome wrote.
    unsure_rows: Vec<Row>,
}

/// The first bytes of messages.
mod kind {
    /// The number of a part and operations of it follow.
    pub const PART: u8 = b'P';
    /// Transactions follow.
    pub const TRANSACTIONS: u8 = b'T';
    /// That is all for now; a byte that is 1 if there is more for any machine follows.
    pub const TURN: u8 = b'.';
}

/// Shares out the rows. Returns how many transactions are missing on all machines together.
///
/// # Errors
/// A machine is gone, or can't use its temporary file; the shares don't go together.
pub(super) fn share(
    spill: &mut Spill,
    (dropped, identity): (u64, u32),
    ways: &mut dyn Ways,
) -> Result<u64, FormatError> {
    let (own, machines) = (ways.rank(), ways.number());
    let shares = introduce(spill, dropped, identity, ways)?;
    let counts: Vec<(u64, u64)> = shares.iter().map(|share| (share.transactions, share.operations)).collect();
    spill.share(own, &counts).ok_or_else(|| {
        FormatError::Foreign(
            "all shares together have more than 2^28 transactions or 2^32 operations, which is too much for one check"
                .to_owned(),
        )
    })?;
    spill.add_unsure_rows(shares.iter().flat_map(|share| share.unsure_rows.iter().copied()));
    let mut senders: Vec<Sender> = (0..machines).map(Sender::new).collect();
    senders.remove(own);
    let mut frames: Vec<Vec<Vec<u8>>> = vec![Vec::new(); machines];
    let (mut more, mut sent) = (true, 0);
    while more {
        more = send_transactions(spill, &mut sent, &senders, ways);
        for sender in &mut senders {
            more |= sender.send_some(spill, ways)?;
        }
        for sender in &senders {
            ways.send(sender.to, vec![kind::TURN, u8::from(more)]);
        }
        for rank in senders.iter().map(|sender| sender.to) {
            more |= take_turn(spill, ways, rank, &mut frames[rank])?;
        }
    }
    let mut frame = spill.frame().blank();
    frame.reserve_frames(spill.transactions() as usize);
    let mut chunk = frame.blank();
    for (rank, chunks) in frames.into_iter().enumerate() {
        if rank == own {
            spill.frame().transactions().iter().for_each(|transaction| frame.push_frame(*transaction));
        }
        for bytes in chunks {
            chunk.clear();
            read_chunk(&bytes, &mut chunk)?;
            chunk.transactions().iter().for_each(|transaction| frame.push_frame(*transaction));
        }
    }
    spill.set_frame(frame);
    Ok(shares.iter().map(|share| share.dropped).sum())
}

/// Lets the others, which check a history together, know why this machine has no share of it.
pub fn refuse(ways: &mut dyn Ways, why: &str) {
    let error = SpillError::Io(io::Error::other(why.to_owned()));
    let here = ways.rank();
    for rank in (0..ways.number()).filter(|rank| *rank != here) {
        ways.send(rank, result(Err(&error)));
    }
}

/// Lets all know what all have.
fn introduce(
    spill: &Spill,
    dropped: u64,
    identity: u32,
    ways: &mut dyn Ways,
) -> Result<Vec<Share>, FormatError> {
    let frame: &History = spill.frame();
    let subjects = format!("{:?} {:?}", frame.tables(), frame.provenance());
    let own = Share {
        subjects: format!("{:08x} {}", crc32fast::hash(subjects.as_bytes()), frame.tables().len()),
        identity,
        transactions: frame.transactions().len() as u64,
        operations: spill.operations(),
        dropped,
        unsure_rows: spill.unsure_rows().iter().copied().collect(),
    };
    let bytes = serde_json::to_vec(&own).map_err(io::Error::from)?;
    let here = ways.rank();
    for rank in (0..ways.number()).filter(|rank| *rank != here) {
        ways.send(rank, result(Ok(bytes.clone())));
    }
    let mut shares = Vec::new();
    for rank in 0..ways.number() {
        let bytes = if rank == here { bytes.clone() } else { answer(ways, rank)? };
        let share: Share = serde_json::from_slice(&bytes).map_err(io::Error::from)?;
        if share.subjects != own.subjects {
            return Err(FormatError::Foreign(format!(
                "rank {rank} has a recording of other tables or statements than rank {here}"
            )));
        }
        if share.identity != own.identity {
            return Err(FormatError::Foreign(format!("rank {rank} has another recording than rank {here}")));
        }
        shares.push(share);
    }
    Ok(shares)
}

/// Sends some of this machine's transactions, the first `sent` of which have been sent. Returns whether
/// there are more.
fn send_transactions(spill: &Spill, sent: &mut usize, to: &[Sender], ways: &mut dyn Ways) -> bool {
    let transactions = spill.frame().transactions();
    let (mut bytes, none) = (0, Draft::new());
    while *sent < transactions.len() && bytes < TURN {
        let last = (*sent + TOGETHER).min(transactions.len());
        let mut encoder = Encoder::new();
        transactions[*sent..last].iter().for_each(|transaction| encoder.push(transaction, &none));
        *sent = last;
        let mut message = vec![kind::TRANSACTIONS];
        message.extend(encoder.take());
        bytes += message.len();
        for sender in to {
            ways.send(sender.to, message.clone());
        }
    }
    *sent < transactions.len()
}

/// What is still to be sent to a machine of its parts.
struct Sender {
    to: usize,
    /// The next part, and what is left of it.
    part: u32,
    pieces: Vec<Vec<u8>>,
}

impl Sender {
    fn new(to: usize) -> Sender {
        Sender { to, part: 0, pieces: Vec::new() }
    }

    /// Sends some, and returns whether there is more.
    fn send_some(&mut self, spill: &mut Spill, ways: &mut dyn Ways) -> Result<bool, FormatError> {
        let mut sent = 0;
        while sent < TURN {
            let message = if let Some(piece) = self.pieces.pop() {
                let mut message = vec![kind::PART];
                message.extend_from_slice(&(self.part - 1).to_le_bytes());
                message.extend(piece);
                message
            } else if self.part < PARTS {
                if owner(self.part, ways.number()) == self.to {
                    self.pieces = spill.take_part(self.part)?;
                    self.pieces.reverse();
                }
                self.part += 1;
                continue;
            } else {
                return Ok(false);
            };
            sent += message.len();
            ways.send(self.to, message);
        }
        Ok(true)
    }
}

/// Takes what another machine sends in its turn. Returns whether it has more for any machine.
fn take_turn(
    spill: &mut Spill,
    ways: &mut dyn Ways,
    from: usize,
    frames: &mut Vec<Vec<u8>>,
) -> Result<bool, FormatError> {
    loop {
        let mut message = ways.receive(from)?;
        match message.first() {
            Some(&kind::TRANSACTIONS) => frames.push(message.split_off(1)),
            Some(&kind::PART) if message.len() >= 5 => {
                let bytes = message.split_off(5);
                let part = message[1..].try_into().map_or(0, u32::from_le_bytes);
                spill.put(from, part % PARTS, bytes)?;
            }
            Some(&kind::TURN) => return Ok(message.get(1) == Some(&1)),
            _ => {
                return Err(
                    io::Error::other(format!("rank {from} sent something else than its share")).into()
                );
            }
        }
    }
}
