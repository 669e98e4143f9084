//! A file that is written in large pieces, and its first error.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

/// The number of bytes that are collected before they are written.
const FULL: usize = 64 * 1024;

/// A log that can't be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// A file can't be created; pgbench's words.
    #[error("could not open logfile \"{name}\": {reason}")]
    Open {
        /// The file.
        name: String,
        /// The system's reason.
        reason: String,
    },
    /// A file can't be written, so lines are missing. pgbench reports nothing then.
    #[error("could not write to logfile \"{name}\": {reason}")]
    Write {
        /// The file.
        name: String,
        /// The system's reason.
        reason: String,
    },
}

/// A file with a buffer, which is written when it is dropped.
pub(super) struct LogFile {
    file: File,
    name: String,
    buffer: Vec<u8>,
    failed: Arc<OnceLock<LogError>>,
}

impl LogFile {
    /// Creates or empties the file. `failed` keeps the first error of all files that share it.
    pub(super) fn create(name: &str, failed: Arc<OnceLock<LogError>>) -> Result<LogFile, LogError> {
        let file = File::create(name)
            .map_err(|error| LogError::Open { name: name.to_owned(), reason: reason(&error) })?;
        // Room for one more line than fits, so that the buffer never grows.
        Ok(LogFile { file, name: name.to_owned(), buffer: Vec::with_capacity(FULL + 512), failed })
    }

    /// The buffer, to which lines are appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the buffer if it is full.
    pub(super) fn write_if_full(&mut self) {
        if self.buffer.len() >= FULL {
            self.write();
        }
    }

    fn write(&mut self) {
        if let Err(error) = self.file.write_all(&self.buffer) {
            // Only the first error is kept.
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

/// The system's error text, without the number that Rust adds.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}
