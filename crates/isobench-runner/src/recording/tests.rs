//! A recording returns everything written to it, wherever it is kept, as far as there is room.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isobench_isolation::history::binary::{read, read_lenient};
use isobench_isolation::history::{Key, Operation, TransactionOutcome, Version};
use isobench_isolation::{Guarantee, Model, Order};

use isobench_script::{Symbols, Weighted, parse};

use super::file::Medium;
use super::*;
use crate::control::{Control, Urgency};

/// A disk of limited size that writes piece by piece.
#[derive(Clone)]
struct Disk {
    bytes: Arc<Mutex<Cursor<Vec<u8>>>>,
    room: usize,
}

impl Disk {
    fn new(room: usize) -> Disk {
        Disk { bytes: Arc::default(), room }
    }

    fn disk(&self) -> MutexGuard<'_, Cursor<Vec<u8>>> {
        self.bytes.lock().expect("no panic")
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let place = usize::try_from(self.disk().position()).expect("a small file");
        let count = bytes.len().min(1000).min(self.room.saturating_sub(place));
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.disk().write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Disk {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk().read(buffer)
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.disk().seek(to)
    }
}

impl Medium for Disk {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.disk().get_mut().truncate(usize::try_from(length).expect("a small file"));
        Ok(())
    }
}

fn disk(room: usize) -> ChunkFile {
    ChunkFile::on(Box::new(Disk::new(room)))
}

fn recording(most: usize, store: Option<ChunkFile>) -> Recording {
    Recording::with(vec!["t".to_owned()], most, store)
}

/// Writes `count` attempts with the numbers from `first` on; returns the problems reported.
fn fill(recording: &Recording, first: u64, count: u64) -> Vec<String> {
    let (mut chunk, mut draft) = (ChunkWriter::default(), Draft::new());
    let mut problems = Vec::new();
    for id in first..first + count {
        draft.clear();
        for step in 0..200 {
            let key = Key { table: 0, id: (id.cast_signed() * 7919 + step * 104_729) % 1_000_003 };
            draft.push(Operation::Write { key, version: Version::valued(id.cast_signed()) });
        }
        let transaction = Transaction {
            id,
            client: 0,
            begin: id,
            end: id,
            outcome: TransactionOutcome::Committed,
            mode: None,
        };
        problems.extend(chunk.write(recording, &transaction, &draft));
    }
    problems.extend(chunk.flush(recording));
    problems
}

fn ids(history: &History) -> Vec<u64> {
    history.transactions().iter().map(|transaction| transaction.id).collect()
}

#[test]
fn chunks_come_back_in_their_order() {
    for (most, store) in [(usize::MAX, None), (0, None), (3 << 20, None), (0, Some(disk(usize::MAX)))] {
        let recording = recording(most, store);
        assert_eq!(fill(&recording, 0, 5000), [""; 0]);
        assert_eq!(fill(&recording, 5000, 5000), [""; 0]);
        assert_eq!((recording.transactions(), recording.dropped(), recording.problem()), (10_000, 0, None));
        assert!(recording.size() > 4 << 20);
        let history = recording.into_history().expect("a history");
        assert!(ids(&history).into_iter().eq(0..10_000));
        assert_eq!(history.operation_count(), 2_000_000);
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_is_reported_once() {
    for (most, room) in [(0, 2_500_000), (2_500_000, 1_000_000), (0, 10), (0, 0)] {
        let recording = recording(most, Some(disk(room)));
        let store = recording.sink().store.take();
        if most == 0 {
            recording.sink().store = store;
        } else {
            // Within the limit of the memory.
            assert_eq!(fill(&recording, 0, 1000), [""; 0]);
            recording.sink().store = store;
        }
        let problems = fill(&recording, 1000, 5000);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("the recording ends here, because it can't be written"));
        assert_eq!(fill(&recording, 6000, 1000), [""; 0]);
        assert_eq!(recording.problem().as_ref(), problems.first());
        let (kept, dropped) = (recording.transactions(), recording.dropped());
        assert_eq!(kept + dropped, if most == 0 { 6000 } else { 7000 });
        let history = recording.into_history().expect("what was recorded before");
        assert_eq!((history.transactions().len() as u64, history.dropped()), (kept, dropped));
        assert!(ids(&history).is_sorted());
    }
}

#[test]
fn a_chunk_that_doesnt_fit_leaves_nothing_behind() {
    let disk = Disk::new(5000);
    let mut store = ChunkFile::on(Box::new(disk.clone()));
    store.append(&[1; 3000]).expect("room");
    store.append(&[2; 3000]).expect_err("no room");
    assert_eq!((disk.disk().get_ref().len(), store.length()), (3000, 3000));
    store.append(&[3; 2000]).expect("room");
    let mut chunks = Vec::new();
    store.chunks().expect("chunks").read_to_end(&mut chunks).expect("chunks");
    assert_eq!(chunks, [vec![1; 3000], vec![3; 2000]].concat());
}

/// A linear search for each table would take seconds.
#[test]
fn there_are_no_more_tables_than_a_history_can_have() {
    let recorded = |tables: u32| {
        let lines: Vec<String> =
            (0..tables).map(|number| format!("--@ write t{number} key=1 value=2\n")).collect();
        let script = parse("x.sql", &(lines.concat() + "SELECT 1;"), &mut Symbols::new()).expect("a script");
        let mix = Mix::new(vec![Weighted { script, weight: 1 }]).expect("a mix");
        Recording::new(&mix, Storage::default())
    };
    let refused = recorded(65_537).expect_err("one too many").to_string();
    assert!(refused.contains("65537 tables"), "{refused}");
    let recording = recorded(65_536).expect("as many as there can be");
    assert_eq!((recording.table("t0"), recording.table("t65535")), (0, 65_535));
}

#[test]
fn a_file_that_cant_be_made_is_reported_before_the_run() {
    let text = "--@ write t key=1 value=2\nSELECT 1;";
    let script = parse("x.sql", text, &mut Symbols::new()).expect("a script");
    let mix = Mix::new(vec![Weighted { script, weight: 1 }]).expect("a mix");
    for path in ["/dev/full", "/nowhere/history"] {
        let refused = Recording::new(&mix, Storage::File(path.into())).expect_err("no room");
        assert!(refused.to_string().starts_with(&format!("could not make the recording \"{path}\": ")));
    }
}

#[test]
fn a_file_is_readable_at_any_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history");
    let store = ChunkFile::at(&path, &header(&["t".to_owned()], None)).expect("a file");
    let recording = recording(0, Some(store));
    let contents = || std::fs::read(&path).expect("a file");
    assert_eq!(fill(&recording, 0, 10), [""; 0]);
    let (history, problem) = read_lenient(&contents()[..]).expect("a part");
    assert!(ids(&history).into_iter().eq(0..10) && problem.is_some(), "there is no trailer yet");
    assert_eq!(fill(&recording, 10, 10), [""; 0]);
    recording.drop_one();
    let history = recording.into_history().expect("whole");
    assert_eq!((history.transactions().len(), history.dropped()), (20, 1));
    let written = read(&contents()[..]).expect("whole");
    assert_eq!((written.dropped(), written.operation_count()), (1, history.operation_count()));
    assert!(ids(&written).into_iter().eq(0..20));
}

/// Writes attempts that read and write a register one after the other, the first of them with this
/// version.
fn count_up(recording: &Recording, first: u64, count: u64) {
    let (mut chunk, mut draft) = (ChunkWriter::default(), Draft::new());
    let key = Key { table: 0, id: 1 };
    for version in first..first + count {
        draft.clear();
        draft.push(Operation::Read { key, version: Version::counted(version) });
        let value = Some((recording.transactions() + version).cast_signed());
        draft.push(Operation::Write { key, version: Version { counter: Some(version + 1), value } });
        let (begin, end) = (2 * version, 2 * version + 1);
        let outcome = TransactionOutcome::Committed;
        let transaction = Transaction { id: version, client: 0, begin, end, outcome, mode: None };
        assert_eq!(chunk.write(recording, &transaction, &draft), None);
    }
    assert_eq!(chunk.flush(recording), None);
}

fn serializable() -> Options {
    let promised = Some(Guarantee { model: Model::Serializable, order: Order::RealTime });
    Options { promised, ..Options::default() }
}

/// Looks at what was recorded last.
fn look(recording: &Recording, control: &Control) {
    if let Some(recent) = &mut recording.sink().recent {
        recent.looked = None;
    }
    recording.look(control);
}

/// Follows a recording until all of it is sorted.
fn sort(recording: &Recording) {
    while recording.is_behind() {
        recording.sort_some(Instant::now() + Duration::from_secs(1));
    }
}

#[test]
fn what_is_sorted_while_a_run_goes_on_is_checked_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = || ChunkFile::at(&folder.path().join("history"), &header(&["t".to_owned()], None));
    let mut reports = Vec::new();
    for (most, named, follows) in [
        (usize::MAX, false, false),
        (usize::MAX, false, true),
        (1 << 19, false, true),
        (0, false, true),
        (0, true, true),
    ] {
        let recording = recording(most, named.then(|| file().expect("a file")));
        for part in 0..4 {
            count_up(&recording, part * 30_000, 30_000);
            // The last part is left to the end.
            if follows && part < 3 {
                sort(&recording);
            }
        }
        recording.drop_one();
        assert_eq!(recording.sorted.lock().expect("no panic").is_some(), follows && most > 0);
        let (witnesses, report) = recording.check(&serializable(), None).expect("a report");
        assert_eq!((witnesses.dropped(), report.examined.committed), (1, 120_000));
        reports.push(report);
    }
    assert!(reports.windows(2).all(|two| two[0] == two[1]), "{reports:#?}");
    assert_eq!(reports[0].verdict.kept, Some(true));
}

#[test]
fn a_run_ends_with_the_first_broken_promise() {
    let broken = |looks: &dyn Fn(&Recording, &Control)| {
        let recording = recording(usize::MAX, None);
        recording.follow(Some(serializable()));
        let control = Control::new();
        looks(&recording, &control);
        assert_eq!(recording.broken().is_some(), control.urgency() == Urgency::Soon);
        recording.broken().map(str::to_owned)
    };
    // Nothing is recorded, or nothing is wrong.
    assert_eq!(broken(&|recording, control| look(recording, control)), None);
    let good = |recording: &Recording, control: &Control| {
        for part in 0..4 {
            count_up(recording, part * 1000, 1000);
            look(recording, control);
        }
    };
    assert_eq!(broken(&good), None);
    // What was recorded before isn't there, and is no reason to accuse.
    assert_eq!(
        broken(&|recording, control| {
            count_up(recording, 1000, 1000);
            look(recording, control);
        }),
        None
    );
    // A version is read and overwritten by two, in one look or in two that follow each other.
    for again in [true, false] {
        let told = broken(&|recording, control| {
            good(recording, control);
            count_up(recording, 4000, 10);
            if again {
                look(recording, control);
            }
            count_up(recording, 4005, 1);
            look(recording, control);
        });
        assert!(
            told.as_ref().is_some_and(|told| told.ends_with("contradicts strict serializable")),
            "{told:?}"
        );
    }
}

#[test]
fn another_machines_recording_is_added_wherever_it_is_kept() {
    for (most, store) in [(usize::MAX, None), (0, None), (3 << 20, None)] {
        let (own, other) = (recording(usize::MAX, None), recording(most, store));
        assert_eq!(fill(&own, 0, 100), [""; 0]);
        assert_eq!(fill(&other, 100, 5000), [""; 0]);
        other.drop_for("a reply was lost");
        let bytes = serde_json::to_vec(&other.head()).expect("a head");
        let head: RecordingHead = serde_json::from_slice(&bytes).expect("a head");
        let adoption = own.adoption(&head, 7).expect("of the same tables");
        let mut chunks = 0;
        other
            .hand_over(&mut |chunk| {
                chunks += 1;
                own.adopt(&adoption, &chunk).expect("a chunk");
            })
            .expect("it can be read");
        assert!(chunks > 2, "{chunks}");
        assert_eq!((own.transactions(), own.dropped()), (5100, 1));
        assert_eq!(own.incomplete().as_deref(), Some("a reply was lost"));
        let history = own.into_history().expect("a history");
        assert!(ids(&history).into_iter().eq(0..5100));
        let times = |id: usize| (history.transactions()[id].begin, history.transactions()[id].end);
        assert_eq!((times(99), times(100), times(5099)), ((99, 99), (93, 107), (5092, 5106)));
    }
}

#[test]
fn a_recording_of_something_else_is_not_added() {
    let own = recording(usize::MAX, None);
    let other = Recording::with(vec!["another".to_owned()], usize::MAX, None);
    let error = own.adoption(&other.head(), 0).expect_err("another table");
    assert!(error.to_string().contains("other tables"), "{error}");
    let adoption = own.adoption(&own.head(), 0).expect("the same tables");
    assert!(own.adopt(&adoption, b"C").is_err(), "it is no chunk");
}
