//! What machines that check together send to each other, as bytes: numbers of 7 bits per byte
//! ([`crate::history::binary::encode`]).

use crate::check::dependencies::Node;
use crate::check::numbers::{take_node, take_number};
use crate::check::parts::Picked;
use crate::check::spill::{Stretch, decode, encode};
use crate::history::History;
use crate::history::binary::encode::number;

/// Appends ascending numbers of transactions, and how many there are.
pub(super) fn put_nodes(bytes: &mut Vec<u8>, nodes: impl Iterator<Item = Node>) {
    let (mut all, mut count, mut last) = (Vec::new(), 0, 0);
    for node in nodes {
        number(&mut all, u64::from(node - last));
        (count, last) = (count + 1, node);
    }
    number(bytes, count);
    bytes.extend(all);
}

/// Takes what [`put_nodes`] appended.
pub(super) fn nodes(bytes: &mut &[u8]) -> Vec<Node> {
    let mut last = 0;
    let count = take_number(bytes);
    let next = |_| {
        last += take_node(bytes);
        last
    };
    (0..count).map(next).collect()
}

/// The operations that were picked.
pub(super) fn put_picked(picked: &[Picked]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (node, record, operation, statement) in picked.iter().flat_map(Picked::iter) {
        number(&mut bytes, u64::from(node));
        number(&mut bytes, u64::from(record));
        number(&mut bytes, statement.map_or(0, |statement| u64::from(statement) + 1));
        encode(&mut bytes, 0, &operation);
    }
    bytes
}

/// What [`put_picked`] returned.
pub(super) fn take_picked(frame: &History, mut bytes: &[u8]) -> Picked {
    let (mut picked, mut list) = (Picked::new(frame), Vec::new());
    while !bytes.is_empty() {
        let (node, record) = (take_node(&mut bytes), take_node(&mut bytes));
        let statement = take_number(&mut bytes).checked_sub(1).and_then(|number| u16::try_from(number).ok());
        picked.add(node, record, decode(&mut bytes, &mut list), statement);
    }
    picked
}

/// The operations of a part.
pub(super) fn put_stretches(stretches: &[Stretch]) -> Vec<u8> {
    let mut all = Vec::new();
    for Stretch { start, bytes } in stretches {
        number(&mut all, u64::from(start.0));
        number(&mut all, u64::from(start.1));
        number(&mut all, bytes.len() as u64);
        all.extend_from_slice(bytes);
    }
    all
}

/// What [`put_stretches`] returned.
pub(super) fn stretches(mut bytes: &[u8]) -> Vec<Stretch> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let start = (take_node(&mut bytes), take_node(&mut bytes));
        let length = usize::try_from(take_number(&mut bytes)).unwrap_or(usize::MAX);
        let (own, rest) = bytes.split_at(length.min(bytes.len()));
        all.push(Stretch { start, bytes: own.to_vec() });
        bytes = rest;
    }
    all
}
