//! A recording of the reads and writes of a run's transactions, made while the run goes on, for the
//! isolation checker.
//!
//! Each worker encodes its clients' attempts into a chunk of its own ([`ChunkWriter`]) and hands it
//! over when it is full, so that workers share nothing meanwhile. Not here: the reads and writes of
//! an attempt (`client/operations.rs`).

mod file;
mod following;
mod travelling;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque, vec_deque};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use isobench_isolation::check::{GrowingRecording, Options, Ways, by_use, check, refuse};
use isobench_isolation::history::binary::{Encoder, header, trailer};
use isobench_isolation::history::{Draft, FormatError, Transaction};
use isobench_isolation::observed::{
    CommittedWrites, KeyForm, ObservedDescription, ObservedDraft, ObservedEncoder, resolve,
};
use isobench_isolation::{History, Report};
use isobench_script::{Mix, Script};

pub use travelling::{Adoption, AdoptionError, RecordingHead};

use file::ChunkFile;
use following::{Chunk, Recent};

/// Size at which a worker's chunk is full, bytes.
const CHUNK: usize = 1 << 20;

/// Size of the length in front of a chunk of rows shown, bytes.
const LENGTH: usize = 8;

/// The place where a recording is kept while a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In memory up to this many bytes; the rest in a temporary file without a name.
    Memory(usize),
    /// In this file from the start, so that it survives a crash. It is overwritten.
    File(PathBuf),
}

impl Default for Storage {
    /// 256 MiB of memory, enough for some twenty million operations.
    fn default() -> Storage {
        Storage::Memory(256 << 20)
    }
}

/// A run that can't be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file can't be made.
    #[error("could not make the recording \"{0}\": {1}")]
    File(PathBuf, #[source] io::Error),
    /// The scripts' lines `--@` name more tables than a history can have.
    #[error("the scripts' lines --@ name {0} tables, and a recording has 65,536 at most")]
    Tables(usize),
}

/// The reads and writes of a job's transactions, over all its runs.
#[derive(Debug)]
pub struct Recording {
    tables: Vec<String>,
    /// The numbers of the tables, by name.
    numbers: HashMap<String, u16>,
    sink: Mutex<ChunkSink>,
    /// What the attempts refer to, if the rows that statements show are recorded.
    observed: Option<ObservedDescription>,
    texts: Mutex<Texts>,
    /// What has been sorted for the check while runs went on; the error that ended that.
    sorted: Mutex<Option<Result<GrowingRecording, FormatError>>>,
    /// Set if the recording is followed: the promise that a run ends with, if it is broken.
    followed: OnceLock<Option<Options>>,
    /// What was found to break it.
    broken: OnceLock<String>,
}

/// The texts in the rows shown, by number.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<Box<[u8]>, i64>,
    all: Vec<String>,
}

/// The destination of the workers' chunks.
#[derive(Debug)]
struct ChunkSink {
    /// The first chunks, but for those that have been sorted.
    memory: VecDeque<Chunk>,
    /// The most bytes that `memory` may hold.
    most: usize,
    /// The bytes that it holds.
    held: usize,
    /// The other chunks; created when the first of them arrives.
    store: Option<ChunkFile>,
    transactions: u64,
    /// Those of them in the other chunks.
    stored: u64,
    dropped: u64,
    /// The chunks to be looked at next, if the run may end with a broken promise.
    recent: Option<Recent>,
    /// The reason why transactions are missing.
    problem: Option<String>,
    /// The reason why an attempt is incomplete.
    incomplete: Option<String>,
}

impl Recording {
    /// An empty recording for the scripts' lines `--@`.
    ///
    /// # Errors
    /// The file can't be made, or there are too many tables.
    pub(crate) fn new(mix: &Mix, storage: Storage) -> Result<Recording, RecordingError> {
        let scripts = mix.scripts().iter().map(|weighted| &weighted.script);
        let named = scripts.flat_map(Script::annotations).filter_map(|line| line.what.table());
        let mut known = HashSet::new();
        let tables: Vec<String> = named.filter(|table| known.insert(*table)).map(str::to_owned).collect();
        if tables.len() > 1 << 16 {
            return Err(RecordingError::Tables(tables.len()));
        }
        let (most, store) = match storage {
            Storage::Memory(most) => (most, None),
            Storage::File(path) => {
                let store = ChunkFile::at(&path, &header(&tables, None));
                (0, Some(store.map_err(|error| RecordingError::File(path, error))?))
            }
        };
        Ok(Recording::with(tables, most, store))
    }

    fn with(tables: Vec<String>, most: usize, store: Option<ChunkFile>) -> Recording {
        let sink = ChunkSink {
            memory: VecDeque::new(),
            most,
            held: 0,
            store,
            transactions: 0,
            stored: 0,
            dropped: 0,
            recent: None,
            problem: None,
            incomplete: None,
        };
        let numbers = (0..=u16::MAX).zip(&tables).map(|(number, name)| (name.clone(), number)).collect();
        let texts = Mutex::default();
        Recording {
            tables,
            numbers,
            sink: Mutex::new(sink),
            observed: None,
            texts,
            sorted: Mutex::default(),
            followed: OnceLock::new(),
            broken: OnceLock::new(),
        }
    }

    /// An empty recording of the rows that statements show.
    ///
    /// It is kept in memory up to this size, and then in a temporary file, until it is a history.
    pub(crate) fn observing(description: ObservedDescription, most: usize) -> Recording {
        // Lines `--@` may leave out the schema.
        let numbers = (0..=u16::MAX).zip(&description.tables);
        let integers = numbers.filter(|(_, table)| table.key == KeyForm::Integer);
        let numbers = integers.map(|(number, table)| {
            let name = table.name.rsplit('.').next().unwrap_or_default();
            (name.to_owned(), number)
        });
        let numbers = numbers.collect();
        Recording { numbers, observed: Some(description), ..Recording::with(Vec::new(), most, None) }
    }

    /// What the attempts refer to, if the rows that statements show are recorded.
    pub(crate) fn observed(&self) -> Option<&ObservedDescription> {
        self.observed.as_ref()
    }

    fn sink(&self) -> MutexGuard<'_, ChunkSink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a table.
    pub(crate) fn table(&self, name: &str) -> u16 {
        self.numbers.get(name).copied().unwrap_or(u16::MAX)
    }

    /// Attempts that were recorded, committed or not. Complete between two runs.
    pub fn transactions(&self) -> u64 {
        self.sink().transactions
    }

    /// Attempts that are missing or incomplete. Complete between two runs.
    pub fn dropped(&self) -> u64 {
        self.sink().dropped
    }

    /// Size of the recording so far, in bytes, but for what has been sorted for the check.
    pub fn size(&self) -> u64 {
        let sink = self.sink();
        sink.held as u64 + sink.store.as_ref().map_or(0, ChunkFile::length)
    }

    /// The reason why the recording ends before the run, such as a full disk.
    pub fn problem(&self) -> Option<String> {
        self.sink().problem.clone()
    }

    /// Counts an attempt that is missing or incomplete.
    pub(crate) fn drop_one(&self) {
        self.sink().dropped += 1;
    }

    /// Counts an attempt that is incomplete for this reason.
    pub(crate) fn drop_for(&self, why: &str) {
        let mut sink = self.sink();
        sink.dropped += 1;
        sink.incomplete.get_or_insert_with(|| why.to_owned());
    }

    /// Adds the committed writes that a second source saw, if rows are recorded.
    pub fn set_committed(&mut self, committed: CommittedWrites) {
        if let Some(description) = &mut self.observed {
            description.committed = Some(committed);
        }
    }

    /// True if the rows that statements show are recorded.
    pub fn shows_rows(&self) -> bool {
        self.observed.is_some()
    }

    /// The reason why an attempt is incomplete, of the first that is.
    pub fn incomplete(&self) -> Option<String> {
        self.sink().incomplete.clone()
    }

    /// Takes a worker's chunk. Returns the reason why this and all later chunks are lost, the first
    /// time.
    fn add(&self, chunk: Vec<u8>, transactions: u64) -> Option<String> {
        self.sink().add(chunk, transactions)
    }

    /// Takes a chunk of rows shown, likewise.
    fn add_shown(&self, encoder: &mut ObservedEncoder) -> Option<String> {
        let attempts = encoder.attempts();
        let body = encoder.take();
        let mut chunk = Vec::with_capacity(LENGTH + body.len());
        chunk.extend_from_slice(&(body.len() as u64).to_le_bytes());
        chunk.extend_from_slice(&body);
        self.add(chunk, attempts)
    }

    /// Turns the recording into a history and frees its memory on the way. A file that it is kept
    /// in is finished.
    ///
    /// # Errors
    /// It can't be read where it is kept.
    pub fn into_history(mut self) -> Result<History, FormatError> {
        match self.observed.take() {
            Some(description) => self.resolve(description),
            None => self.complete().and_then(|(recording, dropped)| recording.into_history(dropped)),
        }
    }

    /// Checks the recording and frees its memory on the way, together with those of other machines if
    /// there are ways to them ([`Recording::check_share`]). A file that it is kept in is finished.
    /// Returns the report, and a history with at least the transactions of its witnesses; with all,
    /// if the rows that statements show are recorded.
    ///
    /// # Errors
    /// It can't be read where it is kept.
    pub fn check(
        mut self,
        options: &Options,
        ways: Option<&mut dyn Ways>,
    ) -> Result<(History, Report), FormatError> {
        if let Some(description) = self.observed.take() {
            let history = self.resolve(description)?;
            let report = check(&history, options);
            return Ok(by_use(history, report, options));
        }
        let Some(ways) = ways else {
            let (recording, dropped) = self.complete()?;
            let (report, witnesses) = recording.check(dropped, options)?;
            return Ok((witnesses, report));
        };
        let (recording, dropped) = self.complete_for(ways)?;
        let checked = recording.check_together(dropped, options, ways)?;
        let (report, witnesses) = checked.ok_or_else(|| io::Error::other("only rank 0 has the verdict"))?;
        Ok((witnesses, report))
    }

    /// Checks the recording together with that of rank 0, which has the report. Its times may be wrong by
    /// `within` nanoseconds; what is missing in it is counted there. It has lines `--@`.
    ///
    /// # Errors
    /// It can't be read where it is kept, or a machine is gone.
    pub fn check_share(self, within: u64, ways: &mut dyn Ways) -> Result<(), FormatError> {
        let (mut recording, _) = self.complete_for(ways)?;
        recording.widen(within);
        recording.check_together(0, &Options::default(), ways).map(|_| ())
    }

    /// As [`Recording::complete`]. If that fails, the others hear of it.
    fn complete_for(self, ways: &mut dyn Ways) -> Result<(GrowingRecording, u64), FormatError> {
        let completed = self.complete();
        if let Err(error) = &completed {
            refuse(ways, &error.to_string());
        }
        completed
    }

    /// Sorts what hasn't been sorted yet. Returns the number of dropped transactions, too.
    fn complete(self) -> Result<(GrowingRecording, u64), FormatError> {
        let sorted = self.sorted.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut recording = sorted.unwrap_or_else(|| Ok(GrowingRecording::new(&self.tables)))?;
        let mut sink = self.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        sink.recent = None;
        while let Some(chunk) = sink.take_first() {
            recording.add(&chunk)?;
        }
        if let Some(store) = &mut sink.store {
            let (start, end) = (header(&self.tables, None), trailer(sink.stored, sink.dropped));
            if store.is_named() {
                store.finish(&end)?;
            }
            recording.add_recording(start.chain(store.chunks()?).chain(end.as_slice()))?;
        }
        Ok((recording, sink.dropped))
    }
}

impl Recording {
    /// The history that the rows shown prove.
    fn resolve(&self, mut description: ObservedDescription) -> Result<History, FormatError> {
        let mut sink = self.sink();
        description.texts = self.texts();
        description.dropped = sink.dropped;
        let ChunkSink { memory, store, .. } = &mut *sink;
        let store = RefCell::new(store.as_mut());
        resolve(description, || Ok(ShownChunks { memory: memory.iter(), store: &store, at: 0 }))
    }

    /// The texts in the rows shown, in the order of their numbers.
    fn texts(&self) -> Vec<String> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }
}

/// A chunk of rows shown, without its length.
fn body(chunk: &[u8]) -> &[u8] {
    chunk.get(LENGTH..).unwrap_or_default()
}

/// The chunks of rows shown: those in memory, then those in the file, where each starts with its
/// length.
struct ShownChunks<'a, 'f> {
    memory: vec_deque::Iter<'a, Chunk>,
    store: &'a RefCell<Option<&'f mut ChunkFile>>,
    /// Bytes of the file that have been read.
    at: u64,
}

impl<'a> Iterator for ShownChunks<'a, '_> {
    type Item = Result<Cow<'a, [u8]>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(chunk) = self.memory.next() {
            return Some(Ok(Cow::Borrowed(body(chunk))));
        }
        let mut store = self.store.borrow_mut();
        let store = store.as_mut()?;
        if self.at >= store.length() {
            return None;
        }
        let chunk = store.chunk_at(self.at);
        // After an error there is no next one.
        self.at = chunk.as_ref().map_or(u64::MAX, |chunk| self.at + (LENGTH + chunk.len()) as u64);
        Some(chunk.map(Cow::Owned).map_err(FormatError::from))
    }
}

impl ChunkSink {
    /// Takes out the first chunk in memory.
    fn take_first(&mut self) -> Option<Chunk> {
        let chunk = self.memory.pop_front()?;
        self.held -= chunk.len();
        Some(chunk)
    }

    fn add(&mut self, mut chunk: Vec<u8>, transactions: u64) -> Option<String> {
        if self.problem.is_some() {
            self.dropped += transactions;
            return None;
        }
        chunk.shrink_to_fit();
        let chunk: Chunk = Arc::new(chunk);
        if let Some(recent) = &mut self.recent {
            recent.push(&chunk);
        }
        // Once a chunk is in the file all later ones follow it there, which keeps them in order.
        if self.store.is_none() && self.held + chunk.len() <= self.most {
            self.held += chunk.len();
            self.memory.push_back(chunk);
            self.transactions += transactions;
            return None;
        }
        let kept = match &mut self.store {
            Some(store) => store.append(&chunk),
            None => ChunkFile::temporary().and_then(|store| self.store.insert(store).append(&chunk)),
        };
        match kept {
            Ok(()) => {
                self.transactions += transactions;
                self.stored += transactions;
                None
            }
            Err(error) => {
                self.dropped += transactions;
                let problem = format!(
                    "the recording ends here, because it can't be written: {error}; \
                     what follows is measured and not checked"
                );
                self.problem = Some(problem.clone());
                Some(problem)
            }
        }
    }
}

/// One worker's chunk: the attempts of its clients that haven't been handed over yet.
#[derive(Debug, Default)]
pub(crate) struct ChunkWriter {
    encoder: Encoder,
    observed: ObservedEncoder,
    /// The numbers of texts that this worker has met.
    texts: HashMap<Box<[u8]>, i64>,
}

/// The numbers of texts in the rows shown, the same for all workers.
pub(crate) struct TextNumbers<'a> {
    known: &'a mut HashMap<Box<[u8]>, i64>,
    recording: &'a Recording,
}

impl TextNumbers<'_> {
    /// The number of a text; no two texts have the same.
    pub(crate) fn number(&mut self, text: &[u8]) -> i64 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let mut texts = self.recording.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let number = texts.number(text);
        drop(texts);
        self.known.insert(text.into(), number);
        number
    }
}

impl ChunkWriter {
    /// Adds an attempt. Returns the reason why the recording has ended, the first time.
    pub(crate) fn write(
        &mut self,
        recording: &Recording,
        transaction: &Transaction,
        operations: &Draft,
    ) -> Option<String> {
        self.encoder.push(transaction, operations);
        if self.encoder.len() >= CHUNK { self.flush(recording) } else { None }
    }

    /// Adds a transaction by the rows shown. Returns the reason why the recording has ended, the
    /// first time.
    pub(crate) fn write_observed(
        &mut self,
        recording: &Recording,
        transaction: &Transaction,
        rows: &ObservedDraft,
    ) -> Option<String> {
        self.observed.push(transaction, rows);
        if self.observed.len() >= CHUNK { self.flush(recording) } else { None }
    }

    /// The numbers of texts.
    pub(crate) fn numbers<'a>(&'a mut self, recording: &'a Recording) -> TextNumbers<'a> {
        TextNumbers { known: &mut self.texts, recording }
    }

    /// Hands over the chunk. Returns the reason why the recording has ended, the first time.
    pub(crate) fn flush(&mut self, recording: &Recording) -> Option<String> {
        if !self.observed.is_empty() {
            return recording.add_shown(&mut self.observed);
        }
        if self.encoder.is_empty() {
            return None;
        }
        let transactions = self.encoder.transactions();
        recording.add(self.encoder.take(), transactions)
    }
}

#[cfg(test)]
mod tests;
