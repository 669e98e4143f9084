//! A recording on its way from one machine to another, which adds it to its own.
//!
//! Not here: the way (the caller's).

use std::cell::RefCell;
use std::io::Read;
use std::sync::PoisonError;

use isobench_isolation::history::FormatError;
use isobench_isolation::history::binary::{Encoder, take_chunk};
use isobench_isolation::observed::ObservedEncoder;
use serde::{Deserialize, Serialize};

use super::{ChunkSink, Recording, ShownChunks, Texts};

/// What belongs to all chunks of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// Tables, conditions and statements to which its numbers refer.
    subjects: String,
    /// The texts, in the order of their numbers.
    texts: Vec<String>,
    dropped: u64,
    problem: Option<String>,
    incomplete: Option<String>,
}

/// How the numbers of another machine's recording are to be read.
#[derive(Debug)]
pub struct Adoption {
    /// The numbers here of its texts.
    texts: Vec<i64>,
    /// The nanoseconds by which its times may be wrong.
    within: u64,
}

/// A recording that can't be added.
#[derive(Debug, thiserror::Error)]
pub enum AdoptionError {
    /// Its numbers mean something else.
    #[error(
        "it has recorded other tables or statements: the catalogs that it sees differ from those seen here"
    )]
    Subjects,
    /// It can't be read.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl Recording {
    /// What belongs to all chunks. Complete between two runs.
    pub fn head(&self) -> RecordingHead {
        let sink = self.sink();
        RecordingHead {
            subjects: self.subjects(),
            texts: self.texts(),
            dropped: sink.dropped,
            problem: sink.problem.clone(),
            incomplete: sink.incomplete.clone(),
        }
    }

    fn subjects(&self) -> String {
        let observed = self.observed.as_ref();
        let seen = observed.map(|seen| (&seen.tables, &seen.predicates, &seen.statements));
        format!("{:?} {seen:?}", self.tables)
    }

    /// Hands over all chunks, one after the other. The recording mustn't have been followed.
    ///
    /// # Errors
    /// They can't be read where they are kept.
    pub fn hand_over(&self, take: &mut dyn FnMut(Vec<u8>)) -> Result<(), FormatError> {
        let mut sink = self.sink();
        if self.observed.is_some() {
            let ChunkSink { memory, store, .. } = &mut *sink;
            let store = RefCell::new(store.as_mut());
            let chunks = ShownChunks { memory: memory.iter(), store: &store, at: 0 };
            for chunk in chunks {
                take(chunk?.into_owned());
            }
            return Ok(());
        }
        while let Some(chunk) = sink.take_first() {
            take(chunk.to_vec());
        }
        let Some(store) = &mut sink.store else { return Ok(()) };
        let mut chunks = store.chunks()?;
        while let Some(chunk) = take_chunk(chunks.by_ref())? {
            take(chunk);
        }
        Ok(())
    }

    /// Prepares to add another machine's recording of the same job, whose times may be wrong by
    /// `within` nanoseconds. What is missing there is missing here.
    ///
    /// # Errors
    /// It is of something else.
    pub fn adoption(&self, head: &RecordingHead, within: u64) -> Result<Adoption, AdoptionError> {
        if head.subjects != self.subjects() {
            return Err(AdoptionError::Subjects);
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = head.texts.iter().map(|text| texts.number(text.as_bytes())).collect();
        drop(texts);
        let mut sink = self.sink();
        sink.dropped += head.dropped;
        sink.problem = sink.problem.take().or_else(|| head.problem.clone());
        sink.incomplete = sink.incomplete.take().or_else(|| head.incomplete.clone());
        Ok(Adoption { texts: numbers, within })
    }

    /// Adds a chunk of another machine's recording.
    ///
    /// # Errors
    /// It can't be read.
    pub fn adopt(&self, adoption: &Adoption, chunk: &[u8]) -> Result<(), AdoptionError> {
        if let Some(description) = &self.observed {
            let mut encoder = ObservedEncoder::default();
            encoder.adopt(chunk, description, adoption.within, &adoption.texts)?;
            self.add_shown(&mut encoder);
        } else {
            let mut encoder = Encoder::new();
            encoder.adopt(chunk, &self.tables, adoption.within)?;
            let transactions = encoder.transactions();
            self.add(encoder.take(), transactions);
        }
        Ok(())
    }
}

impl Texts {
    /// The number of a text; no two texts have the same.
    pub(super) fn number(&mut self, text: &[u8]) -> i64 {
        let next = i64::try_from(self.all.len()).unwrap_or(i64::MAX);
        let number = *self.numbers.entry(text.into()).or_insert(next);
        if number == next {
            self.all.push(String::from_utf8_lossy(text).into_owned());
        }
        number
    }
}
