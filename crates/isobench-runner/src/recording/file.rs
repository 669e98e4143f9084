//! The file that chunks of a recording go to when memory isn't to hold them, or no more of them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What a recording needs of a file.
pub(super) trait Medium: Read + Write + Seek + Send {
    /// Makes the file this long.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Medium for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// A file of whole chunks, maybe after a header.
pub(super) struct ChunkFile {
    medium: Box<dyn Medium>,
    path: Option<PathBuf>,
    /// Where the chunks begin.
    start: u64,
    /// Where they end; what is beyond was not written as a whole, or is the trailer.
    end: u64,
}

impl ChunkFile {
    /// A file of this name, which begins with the header.
    pub(super) fn at(path: &Path, header: &[u8]) -> io::Result<ChunkFile> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        let mut store = ChunkFile { path: Some(path.to_owned()), ..ChunkFile::on(Box::new(file)) };
        store.append(header)?;
        store.start = store.end;
        Ok(store)
    }

    /// A file without a name in the folder for temporary files, which is gone with the process.
    pub(super) fn temporary() -> io::Result<ChunkFile> {
        Ok(ChunkFile::on(Box::new(tempfile::tempfile()?)))
    }

    /// An empty one.
    pub(super) fn on(medium: Box<dyn Medium>) -> ChunkFile {
        ChunkFile { medium, path: None, start: 0, end: 0 }
    }

    /// True if it is the file of this name.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        self.path.as_deref() == Some(path)
    }

    /// True if it stays.
    pub(super) fn is_named(&self) -> bool {
        self.path.is_some()
    }

    /// How many bytes the chunks have.
    pub(super) fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Writes a chunk, as a whole or (as far as the file system lets it) not at all.
    pub(super) fn append(&mut self, chunk: &[u8]) -> io::Result<()> {
        let written = self.medium.seek(SeekFrom::Start(self.end)).and_then(|_| self.medium.write_all(chunk));
        if let Err(error) = written {
            // If this fails too, the file ends in the middle of a chunk, which its readers notice.
            let _ = self.medium.cut(self.end);
            return Err(error);
        }
        self.end += chunk.len() as u64;
        Ok(())
    }

    /// Writes the trailer; more chunks may follow, and another trailer.
    pub(super) fn finish(&mut self, trailer: &[u8]) -> io::Result<()> {
        let end = self.end;
        self.append(trailer)?;
        let whole = std::mem::replace(&mut self.end, end);
        self.medium.cut(whole)?;
        self.medium.flush()
    }

    /// The chunks, from the first on.
    pub(super) fn chunks(&mut self) -> io::Result<impl Read> {
        self.medium.seek(SeekFrom::Start(self.start))?;
        Ok((&mut self.medium).take(self.end - self.start))
    }
}

impl std::fmt::Debug for ChunkFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkFile").field("path", &self.path).field("end", &self.end).finish_non_exhaustive()
    }
}
