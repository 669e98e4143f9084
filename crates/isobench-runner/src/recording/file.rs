//! The file for chunks of a recording that aren't to be kept in memory, or don't fit.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The file operations that a recording needs. A trait, so that tests can simulate a full disk.
pub(super) trait Medium: Read + Write + Seek + Send {
    /// Truncates the file to this length.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// A file of whole chunks, possibly after a header.
pub(super) struct ChunkFile {
    medium: Box<dyn Medium>,
    /// True if it has a name.
    named: bool,
    /// Offset of the first chunk.
    start: u64,
    /// Offset after the last chunk. What follows was written incompletely, or is the trailer.
    end: u64,
}

impl ChunkFile {
    /// Creates a file of this name that starts with the header.
    pub(super) fn at(path: &Path, header: &[u8]) -> io::Result<ChunkFile> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        let mut store = ChunkFile { named: true, ..ChunkFile::on(Box::new(file)) };
        store.append(header)?;
        store.start = store.end;
        Ok(store)
    }

    /// Creates a file without a name in the folder for temporary files. It vanishes with the
    /// process.
    pub(super) fn temporary() -> io::Result<ChunkFile> {
        Ok(ChunkFile::on(Box::new(tempfile::tempfile()?)))
    }

    /// An empty file.
    pub(super) fn on(medium: Box<dyn Medium>) -> ChunkFile {
        ChunkFile { medium, named: false, start: 0, end: 0 }
    }

    /// True if the file has a name, so that it outlives the process.
    pub(super) fn is_named(&self) -> bool {
        self.named
    }

    /// Size of the chunks in bytes.
    pub(super) fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Writes a chunk completely or, as far as the file system allows, not at all.
    pub(super) fn append(&mut self, chunk: &[u8]) -> io::Result<()> {
        let written = self.medium.seek(SeekFrom::Start(self.end)).and_then(|_| self.medium.write_all(chunk));
        if let Err(error) = written {
            // If this fails too, the file ends in the middle of a chunk, which readers notice.
            let _ = self.medium.cut(self.end);
            return Err(error);
        }
        self.end += chunk.len() as u64;
        Ok(())
    }

    /// Writes the trailer.
    pub(super) fn finish(&mut self, trailer: &[u8]) -> io::Result<()> {
        let end = self.end;
        self.append(trailer)?;
        let whole = std::mem::replace(&mut self.end, end);
        self.medium.cut(whole)?;
        self.medium.flush()
    }

    /// Returns the chunk at this offset, which starts with its length (8 bytes, little-endian).
    pub(super) fn chunk_at(&mut self, offset: u64) -> io::Result<Vec<u8>> {
        self.medium.seek(SeekFrom::Start(self.start + offset))?;
        let mut length = [0; 8];
        self.medium.read_exact(&mut length)?;
        let length = u64::from_le_bytes(length).min(self.length());
        let mut chunk = Vec::new();
        (&mut self.medium).take(length).read_to_end(&mut chunk)?;
        Ok(chunk)
    }

    /// Returns a reader of all chunks.
    pub(super) fn chunks(&mut self) -> io::Result<impl Read> {
        self.medium.seek(SeekFrom::Start(self.start))?;
        Ok((&mut self.medium).take(self.end - self.start))
    }
}

impl std::fmt::Debug for ChunkFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkFile")
            .field("named", &self.named)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
