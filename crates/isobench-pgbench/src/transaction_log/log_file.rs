//! A file that is written in large pieces, and the first error that it met.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

/// So many bytes are collected before they are written.
const FULL: usize = 64 * 1024;

/// A log that can't be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A file can't be made; pgbench's words.
    #[error("could not open logfile \"{name}\": {reason}")]
    Open {
        /// The file.
        name: String,
        /// The system's reason.
        reason: String,
    },
    /// A file can't be written, so that lines are missing. pgbench says nothing then.
    #[error("could not write to logfile \"{name}\": {reason}")]
    Write {
        /// The file.
        name: String,
        /// The system's reason.
        reason: String,
    },
}

/// A file with what is to be written to it. What is left is written when it is dropped.
pub(super) struct LogFile {
    file: File,
    name: String,
    buffer: Vec<u8>,
    failed: Arc<OnceLock<LogError>>,
}

impl LogFile {
    /// Creates the file, or empties it. Of all files that share `failed` the first error is kept
    /// there.
    pub(super) fn create(name: &str, failed: Arc<OnceLock<LogError>>) -> Result<LogFile, LogError> {
        let file = File::create(name)
            .map_err(|error| LogError::Open { name: name.to_owned(), reason: reason(&error) })?;
        // A line more than what makes it full, so that it never grows.
        Ok(LogFile { file, name: name.to_owned(), buffer: Vec::with_capacity(FULL + 512), failed })
    }

    /// Where lines are appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes what has been collected if that is enough.
    pub(super) fn write_if_full(&mut self) {
        if self.buffer.len() >= FULL {
            self.write();
        }
    }

    fn write(&mut self) {
        if let Err(error) = self.file.write_all(&self.buffer) {
            // Only the first one is told.
            let _ = self.failed.set(LogError::Write { name: self.name.clone(), reason: reason(&error) });
        }
        self.buffer.clear();
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.write();
    }
}

/// The system's words, without the number that Rust adds to them.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}
