//! A recording of the reads and writes of a run's transactions, made while the run goes on, for the
//! isolation checker.
//!
//! Each worker encodes its clients' attempts into a chunk of its own ([`ChunkWriter`]) and hands it
//! over when it is full, so that workers share nothing meanwhile. Not here: the reads and writes of
//! an attempt (`client/operations.rs`).

mod file;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use isobench_isolation::History;
use isobench_isolation::history::binary::{Encoder, header, read, trailer};
use isobench_isolation::history::{Draft, FormatError, Transaction};
use isobench_script::{Mix, Script};

use file::ChunkFile;

/// Size at which a worker's chunk is full, bytes.
const CHUNK: usize = 1 << 20;

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
}

/// The destination of the workers' chunks.
#[derive(Debug)]
struct ChunkSink {
    /// The first chunks.
    memory: VecDeque<Vec<u8>>,
    /// The most bytes that `memory` may hold.
    most: usize,
    /// The bytes that it holds.
    held: usize,
    /// The other chunks; created when the first of them arrives.
    store: Option<ChunkFile>,
    transactions: u64,
    dropped: u64,
    /// The reason why transactions are missing.
    problem: Option<String>,
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
            dropped: 0,
            problem: None,
        };
        let numbers = (0..=u16::MAX).zip(&tables).map(|(number, name)| (name.clone(), number)).collect();
        Recording { tables, numbers, sink: Mutex::new(sink) }
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

    /// Size of the recording so far, in bytes.
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

    /// Takes a worker's chunk. Returns the reason why this and all later chunks are lost, the first
    /// time.
    fn add(&self, chunk: Vec<u8>, transactions: u64) -> Option<String> {
        self.sink().add(chunk, transactions)
    }

    /// Writes the recording to a file. If it is kept in this file already, finishes it.
    ///
    /// # Errors
    /// The file can't be written, or the recording can't be read where it is kept.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut sink = self.sink();
        let end = trailer(sink.transactions, sink.dropped);
        if let Some(store) = sink.store.as_mut().filter(|store| store.is_at(path)) {
            return store.finish(&end);
        }
        let mut file = File::create(path)?;
        file.write_all(&header(&self.tables, None))?;
        for chunk in &sink.memory {
            file.write_all(chunk)?;
        }
        if let Some(store) = &mut sink.store {
            io::copy(&mut store.chunks()?, &mut file)?;
        }
        file.write_all(&end)?;
        file.flush()
    }

    /// Turns the recording into a history and frees its memory on the way. A file that it is kept
    /// in is finished.
    ///
    /// # Errors
    /// It can't be read where it is kept.
    pub fn into_history(self) -> Result<History, FormatError> {
        let mut sink = self.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (start, end) = (header(&self.tables, None), trailer(sink.transactions, sink.dropped));
        let memory = MemoryChunks { chunks: std::mem::take(&mut sink.memory), read: 0 };
        match &mut sink.store {
            None => read(start.as_slice().chain(memory).chain(end.as_slice())),
            Some(store) => {
                if store.is_named() {
                    store.finish(&end)?;
                }
                let chunks = store.chunks()?;
                read(start.as_slice().chain(memory).chain(chunks).chain(end.as_slice()))
            }
        }
    }
}

impl ChunkSink {
    fn add(&mut self, mut chunk: Vec<u8>, transactions: u64) -> Option<String> {
        if self.problem.is_some() {
            self.dropped += transactions;
            return None;
        }
        // Once a chunk is in the file all later ones follow it there, which keeps them in order.
        if self.store.is_none() && self.held + chunk.len() <= self.most {
            chunk.shrink_to_fit();
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

/// Reads chunks in memory, and frees each when it has been read.
struct MemoryChunks {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that have been read.
    read: usize,
}

impl Read for MemoryChunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.chunks.front() {
            let left = &first[self.read..];
            if !left.is_empty() {
                let count = left.len().min(buffer.len());
                buffer[..count].copy_from_slice(&left[..count]);
                self.read += count;
                return Ok(count);
            }
            self.chunks.pop_front();
            self.read = 0;
        }
        Ok(0)
    }
}

/// One worker's chunk: the attempts of its clients that haven't been handed over yet.
#[derive(Debug, Default)]
pub(crate) struct ChunkWriter {
    encoder: Encoder,
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

    /// Hands over the chunk. Returns the reason why the recording has ended, the first time.
    pub(crate) fn flush(&mut self, recording: &Recording) -> Option<String> {
        if self.encoder.is_empty() {
            return None;
        }
        let transactions = self.encoder.transactions();
        recording.add(self.encoder.take(), transactions)
    }
}

#[cfg(test)]
mod tests;
