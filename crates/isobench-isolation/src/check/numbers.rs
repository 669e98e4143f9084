//! Numbers of 7 bits per byte ([`crate::history::binary::encode`]), in memory and in messages.

use super::dependencies::{NONE, Node};
use crate::history::binary::encode::number;

/// Takes a number that [`number`] wrote. What is written here is read here, so that it needs no
/// examination.
pub(super) fn take_number(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((first, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(first & 0x7f) << (shift & 63);
        shift += 7;
        if *first < 0x80 {
            break;
        }
    }
    number
}

/// Takes a number of 32 bits.
pub(super) fn take_node(bytes: &mut &[u8]) -> u32 {
    u32::try_from(take_number(bytes)).unwrap_or(u32::MAX)
}

/// Appends a number for each transaction, where most have none ([`NONE`]).
pub(super) fn put_numbers(bytes: &mut Vec<u8>, numbers: &[u32]) {
    let with = || (0_u32..).zip(numbers).filter(|(_, own)| **own != NONE);
    number(bytes, with().count() as u64);
    let mut last = 0;
    for (node, own) in with() {
        number(bytes, u64::from(node - last));
        number(bytes, u64::from(*own));
        last = node;
    }
}

/// Takes what [`put_numbers`] appended: the transactions that have a number, and this.
pub(super) fn take_numbers(bytes: &mut &[u8]) -> Vec<(Node, u32)> {
    let mut last = 0;
    let count = take_number(bytes);
    let next = |_| {
        last += take_node(bytes);
        (last, take_node(bytes))
    };
    (0..count).map(next).collect()
}
