//! Writes a history in memory as a recording.

use std::io::{self, Write};

use super::super::{Draft, History};
use super::{Encoder, header, trailer};

/// The size at which a chunk is finished, in bytes.
const CHUNK: usize = 1 << 20;

/// Writes a history as a recording.
///
/// # Errors
/// If the output can't be written.
pub fn write(history: &History, mut output: impl Write) -> io::Result<()> {
    output.write_all(&header(history.tables(), history.provenance()))?;
    let (mut encoder, mut draft) = (Encoder::like(history), Draft::new());
    for (index, transaction) in history.transactions().iter().enumerate() {
        draft.fill(history, index);
        encoder.push(transaction, &draft);
        if encoder.len() >= CHUNK {
            output.write_all(&encoder.take())?;
        }
    }
    output.write_all(&encoder.take())?;
    output.write_all(&trailer(history.transactions().len() as u64, history.dropped()))?;
    output.flush()
}
