//! Recordings are read back as written, and invalid input is refused.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::samples::{Owned, TABLES, transactions};
use super::super::{Draft, FormatError, History, Key, Operation, Transaction, TransactionOutcome, Version};
use super::{CHUNK_HEAD, Encoder, Share, header, read, read_lenient, trailer, unzigzag, zigzag};

fn tables() -> Vec<String> {
    TABLES.iter().map(ToString::to_string).collect()
}

/// A file with `chunk` transactions in each chunk, and its history.
pub fn file(transactions: &[(Transaction, Vec<Owned>)], chunk: usize, dropped: u64) -> (Vec<u8>, History) {
    let (mut bytes, mut history) = (header(&tables(), None), History::new(tables()));
    let (mut encoder, mut draft) = (Encoder::new(), Draft::new());
    for (index, (transaction, operations)) in transactions.iter().enumerate() {
        draft.clear();
        for operation in operations {
            operation.push(&mut draft);
        }
        encoder.push(transaction, &draft);
        history.push(*transaction, &draft);
        if (index + 1) % chunk == 0 {
            bytes.extend(encoder.take());
        }
    }
    bytes.extend(encoder.take());
    bytes.extend(trailer(transactions.len() as u64, dropped));
    history.set_dropped(dropped);
    (bytes, history)
}

fn assert_same(one: &History, other: &History) {
    assert_eq!(one.tables(), other.tables());
    assert_eq!(one.transactions(), other.transactions());
    assert_eq!(one.dropped(), other.dropped());
    for transaction in 0..one.transactions().len() {
        assert!(one.operations(transaction).eq(other.operations(transaction)), "{transaction}");
    }
}

proptest! {
    // Generating whole histories takes a long time, especially in a debug build.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_written_is_read(list in vec(transactions(), 0..20), chunk in 1_usize..8, dropped in 0..3_u64) {
        let (bytes, history) = file(&list, chunk, dropped);
        assert_same(&read(&bytes[..]).expect("whole"), &history);
    }

    #[test]
    fn shares_are_the_whole_in_order(list in vec(transactions(), 0..20), chunk in 1_usize..8, readers in 1_usize..5) {
        let (bytes, mut history) = file(&list, chunk, 3);
        let mut all = History::new(tables());
        let mut identities = Vec::new();
        for reader in 0..readers {
            let mut share = Share::open(Cursor::new(&bytes), reader, readers, false).expect("whole");
            while share.next_chunk(&mut all).expect("whole") {}
            prop_assert_eq!(share.dropped(), 3);
            identities.push(share.identity());
        }
        prop_assert!(identities.iter().all(|identity| *identity == identities[0]));
        history.set_dropped(0);
        assert_same(&all, &history);
        // Without its end.
        let cut = &bytes[..bytes.len() - 1];
        prop_assert!(Share::open(Cursor::new(cut), 0, readers, false).is_err());
        let share = Share::open(Cursor::new(cut), 0, readers, true).expect("a part");
        prop_assert_eq!(share.dropped(), 1);
        prop_assert!(share.problem().is_some());
    }

    #[test]
    fn no_bytes_make_it_panic(garbage in vec(any::<u8>(), 0..200)) {
        let mut bytes = header(&tables(), None);
        prop_assert!(read(&garbage[..]).is_err());
        bytes.extend(garbage);
        prop_assert!(read(&bytes[..]).is_err());
    }

    /// Chunks with a correct checksum and arbitrary contents.
    #[test]
    fn no_chunk_makes_it_panic(body in vec(any::<u8>(), 0..60), transactions in 0..5_u64) {
        let mut history = History::new(tables());
        if super::decode::chunk(&body, transactions, &mut history).is_err() {
            prop_assert_eq!(history.transactions().len() + history.operation_count() + history.numbers.len(), 0);
        }
    }

    #[test]
    fn a_changed_byte_is_noticed(
        list in vec(transactions(), 1..6),
        at in any::<prop::sample::Index>(),
        by in 1..=255_u8,
    ) {
        let (mut bytes, _) = file(&list, 2, 0);
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert!(read(&bytes[..]).is_err());
    }

    #[test]
    fn zigzag_is_reversible(number in any::<i64>()) {
        prop_assert_eq!(unzigzag(zigzag(number)), number);
    }
}

/// A transaction that reads and increments two rows, like those of a benchmark.
fn registers(id: u64, draft: &mut Draft) -> Transaction {
    draft.clear();
    let own = id.cast_signed();
    for step in [7_919, 104_729] {
        let key = Key { table: 0, id: own * step % 1000 };
        let counter = id / 1000;
        let read = Version { counter: Some(counter), value: Some(own - 1500) };
        draft.push(Operation::Read { key, version: read });
        let written = Version { counter: Some(counter + 1), value: Some(own) };
        draft.push(Operation::Write { key, version: written });
    }
    let begin = 1_000_000_000 + id * 30_000;
    Transaction {
        id,
        client: (id % 16) as u32,
        begin,
        end: begin + 900_000,
        outcome: TransactionOutcome::Committed,
        mode: None,
    }
}

fn registers_file(transactions: u64) -> Vec<u8> {
    let (mut bytes, mut encoder, mut draft) = (header(&tables(), None), Encoder::new(), Draft::new());
    for id in 1_000_000..1_000_000 + transactions {
        let transaction = registers(id, &mut draft);
        encoder.push(&transaction, &draft);
        if encoder.len() > 1 << 20 {
            bytes.extend(encoder.take());
        }
    }
    bytes.extend(encoder.take());
    bytes.extend(trailer(transactions, 0));
    bytes
}

#[test]
fn a_few_bytes_per_operation() {
    let bytes = registers_file(1000).len() as u64 - registers_file(0).len() as u64;
    assert!(bytes < 4 * 1000 * 8, "{bytes} bytes for 4000 operations");
}

#[test]
fn a_file_that_ends_too_soon_is_truncated_wherever_it_ends() {
    let whole = registers_file(3);
    let start = header(&tables(), None).len();
    for end in 0..whole.len() {
        let error = read(&whole[..end]).expect_err("truncated");
        let lenient = read_lenient(&whole[..end]);
        if end < start {
            assert!(lenient.is_err(), "{end}");
            continue;
        }
        assert!(matches!(error, FormatError::Truncated(_)), "{end}: {error}");
        let (history, problem) = lenient.expect("a part");
        assert!(problem.is_some());
        let chunk_is_there = end >= whole.len() - trailer(0, 0).len();
        assert_eq!(history.transactions().len(), if chunk_is_there { 3 } else { 0 }, "{end}");
        assert_eq!(history.dropped(), 1);
    }
}

#[test]
fn messages_say_where_and_why() {
    let says = |bytes: &[u8], text: &str| {
        let message = read(bytes).expect_err(text).to_string();
        assert!(message.contains(text), "{message}");
    };
    let (start, whole) = (header(&tables(), None), registers_file(3));
    says(b"", "isn't a recording");
    says(b"T1 committed", "isn't a recording");
    says(&start[..7], "truncated");
    says(&start, "without a trailer");
    says(&[&start[..], b"x"].concat(), "neither a chunk nor the trailer");
    says(&[&whole[..], b"x"].concat(), "after the trailer");
    let mut newer = start.clone();
    newer[8] = 2;
    says(&newer, "version 2");
    let mut damaged = whole.clone();
    damaged[start.len() + CHUNK_HEAD + 4] ^= 1;
    says(&damaged, "checksum of the chunk");
    let mut short = start.clone();
    short.extend(trailer(7, 0));
    says(&short, "its trailer says 7");
    assert_eq!(read_lenient(&short[..]).expect("a part").0.dropped(), 7);
}

/// A length that no file has doesn't cause an allocation.
#[test]
fn absurd_lengths_are_only_words() {
    let mut bytes = header(&tables(), None);
    bytes.push(b'C');
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend([0; 40]);
    assert!(matches!(read(&bytes[..]), Err(FormatError::Truncated(_))));
    let mut history = History::new(tables());
    // A transaction with 2^60 operations, a list with 2^60 elements.
    let many = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
    assert!(super::decode::chunk(&many, 1, &mut history).is_err());
    let list = [&[1 << 3, 0, 0, 0, 0, 4 | 3 << 3][..], &many].concat();
    assert!(super::decode::chunk(&list, u64::MAX, &mut history).is_err());
}

/// The layout documented in the manual: changing these bytes requires a new version of the format.
#[test]
fn the_layout_is_that_of_the_manual() {
    let text = "dropped 2\n\
        T300 client=1 1000..1500: r t 5 = v3/300, w t 5 = v4/301, w u 5 = -2\n\
        T299 client=130 900.. unknown: i t -1 in 7, a t -1 += 299, l t 0 = [4 3], g t 9 = []\n";
    let history = super::super::text::parse(text).expect("parses");
    let mut bytes = Vec::new();
    super::write(&history, &mut bytes).expect("memory");
    let parts: [&[u8]; 10] = [
        b"\x89IBH\r\n\x1a\n\x01",
        // Length; two tables: "t", "u"; checksum.
        b"\x05\0\0\0\x02\x01t\x01u\xff\xff\xff\xff",
        // Length, transactions, checksum.
        b"C\x23\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff",
        // 3 operations, committed; 300; client 1; 1000; 500 ns.
        b"\x18\xd8\x04\x01\xd0\x0f\xf4\x03",
        // Read: same table, counter, own value: key 5, counter 3. Write: same key, counter 1 more,
        // value 1 more.
        b"\xe8\x0a\x06\xb9\x02\x02",
        // Write: another table, number 1; same key; value -2.
        b"\x51\x01\x03",
        // 4 operations, open, unknown; 299; client 130; 900.
        b"\x26\x01\x82\x01\xc7\x01",
        // Insert of -1 in group 7, append of the own number, list of 4 and 3.
        b"\x0a\x01\x0e\xdb\x0c\x02\x02\x08\x01",
        // Group 9 is empty.
        b"\x0d\x12\0",
        b"E\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff",
    ];
    let expected = parts.concat();
    assert_eq!(bytes.len(), expected.len(), "{}", bytes.escape_ascii());
    let sums = [18..22, 39..43, bytes.len() - 4..bytes.len()];
    for (place, (byte, expected)) in bytes.iter().zip(&expected).enumerate() {
        let sum = sums.iter().any(|sum| sum.contains(&place));
        assert!(sum || byte == expected, "byte {place}: {}", bytes.escape_ascii());
    }
    // CRC-32 as in zlib: of the header, for example.
    assert_eq!(bytes[18..22], crc32fast::hash(&bytes[..18]).to_le_bytes());
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
}
