//! Decodes the transactions of a chunk, the inverse of `encode.rs`. No input makes it panic, or use
//! more memory than a small multiple of the input's size.

use super::super::{History, Kind, Mode, Record, Transaction, TransactionOutcome};
use super::{KINDS, MODE, OPEN_END, Reference, bits, unzigzag, value};

/// A problem in a chunk. Since its checksum is right, the program that wrote it is at fault.
pub(crate) type Problem = &'static str;

const ENDED: Problem = "it ends in the middle of a transaction";

/// Adds the transactions of a chunk to a history, all or none of them.
pub(super) fn chunk(body: &[u8], transactions: u64, history: &mut History) -> Result<(), Problem> {
    let before = (history.transactions.len(), history.records.len(), history.numbers.len());
    let outcome = all(&mut Bytes { left: body }, transactions, history);
    if outcome.is_err() {
        history.transactions.truncate(before.0);
        history.ends.truncate(before.0);
        history.records.truncate(before.1);
        history.numbers.truncate(before.2);
    }
    outcome
}

fn all(bytes: &mut Bytes<'_>, transactions: u64, history: &mut History) -> Result<(), Problem> {
    let (mut id, mut begin) = (0, 0);
    for _ in 0..transactions {
        let transaction = transaction(bytes, id, begin, history)?;
        (id, begin) = (transaction.id, transaction.begin);
        history.end_transaction(transaction);
    }
    if bytes.left.is_empty() { Ok(()) } else { Err("there are bytes after its last transaction") }
}

/// Decodes a transaction; its operations are added to the history.
fn transaction(
    bytes: &mut Bytes<'_>,
    id_before: u64,
    begin_before: u64,
    history: &mut History,
) -> Result<Transaction, Problem> {
    let mut head = bytes.number()?;
    let mut mode = None;
    if head & 3 == MODE {
        mode = Some(Mode::of_code(head >> 2).ok_or("a transaction has modes that do not exist")?);
        head = bytes.number()?;
    }
    let code = usize::try_from(head & 3).unwrap_or(usize::MAX);
    let outcome =
        *TransactionOutcome::ALL.get(code).ok_or("a transaction has an outcome that does not exist")?;
    let id = id_before.wrapping_add_signed(bytes.signed()?);
    let client = u32::try_from(bytes.number()?).map_err(|_| "a client's number is too large")?;
    let begin = begin_before.wrapping_add_signed(bytes.signed()?);
    let end = if head & OPEN_END == 0 { begin.wrapping_add(bytes.number()?) } else { u64::MAX };
    let mut before = Reference::START;
    for _ in 0..bytes.count(head >> 3)? {
        let mut record = operation(bytes, id, &mut before, history)?;
        if history.provenance.is_some() && record.has_statement() {
            let number = bytes.number()?;
            record.length = u32::try_from(number).map_err(|_| "a statement's number is too large")?;
        }
        history.records.push(record);
    }
    Ok(Transaction { id, client, begin, end, outcome, mode })
}

#[inline]
fn operation(
    bytes: &mut Bytes<'_>,
    own: u64,
    before: &mut Reference,
    history: &mut History,
) -> Result<Record, Problem> {
    let head = bytes.byte()?;
    let kind = *KINDS.get(usize::from(head & 7)).ok_or("an operation is of a kind that does not exist")?;
    let mut record = Record { kind, flags: 0, table: before.table, length: 0, id: before.id, a: 0, b: 0 };
    if head & bits::SAME_TABLE == 0 {
        record.table = u16::try_from(bytes.number()?).map_err(|_| "a table's number is too large")?;
    }
    if usize::from(record.table) >= history.tables.len() {
        return Err("an operation is on a table that the header does not name");
    }
    if head & bits::SAME_KEY == 0 {
        record.id = before.id.wrapping_add(bytes.signed()?);
    }
    if head & bits::COUNTER != 0 {
        record.a = before.counter.wrapping_add_signed(bytes.signed()?);
        record.flags |= 1;
        before.counter = record.a;
    }
    let own = own.cast_signed();
    let given = match head >> bits::VALUE_SHIFT {
        value::OWN => Some(own),
        value::RELATIVE => Some(own.wrapping_add(bytes.signed()?)),
        value::ABSOLUTE => Some(bytes.signed()?),
        _ => None,
    };
    record.b = given.unwrap_or(0);
    record.flags |= u8::from(given.is_some()) << 1;
    match kind {
        Kind::Read | Kind::Write | Kind::Missed => {}
        Kind::Append if record.flags == 2 => {}
        Kind::Append => return Err("an append has no element, or a counter"),
        _ if record.flags != 0 => return Err("an operation has a version that it can't have"),
        // The group of an insert is stored in place of the counter.
        Kind::Insert => (record.a, record.flags) = (bytes.signed()?.cast_unsigned(), 1),
        Kind::ReadList | Kind::ReadGroup => {
            record.a = history.numbers.len() as u64;
            record.length = list(bytes, &mut history.numbers)?;
        }
    }
    before.now(&record);
    Ok(record)
}

fn list(bytes: &mut Bytes<'_>, numbers: &mut Vec<i64>) -> Result<u32, Problem> {
    let announced = bytes.number()?;
    let count = bytes.count(announced)?;
    let mut this: i64 = 0;
    for _ in 0..count {
        this = this.wrapping_add(bytes.signed()?);
        numbers.push(this);
    }
    u32::try_from(count).map_err(|_| "a list is too long")
}

/// The rest of a chunk.
pub(crate) struct Bytes<'c> {
    pub(crate) left: &'c [u8],
}

impl<'c> Bytes<'c> {
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Problem> {
        let (first, rest) = self.left.split_first().ok_or(ENDED)?;
        self.left = rest;
        Ok(*first)
    }

    /// A number with 7 bits per byte.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, Problem> {
        let first = self.byte()?;
        let mut number = u64::from(first & 0x7f);
        if first < 0x80 {
            return Ok(number);
        }
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number has more than 64 bits")
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64, Problem> {
        self.number().map(unzigzag)
    }

    /// The number of items that follow. Each takes at least one byte, so no more memory is
    /// allocated than the input justifies.
    pub(crate) fn count(&self, announced: u64) -> Result<usize, Problem> {
        usize::try_from(announced).ok().filter(|count| *count <= self.left.len()).ok_or(ENDED)
    }

    /// The next bytes.
    pub(super) fn take(&mut self, count: u64) -> Result<&'c [u8], Problem> {
        let count = self.count(count)?;
        let (taken, left) = self.left.split_at(count);
        self.left = left;
        Ok(taken)
    }
}
