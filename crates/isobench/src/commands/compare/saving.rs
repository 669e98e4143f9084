//! The result while it is measured: a file that grows by each round, so that saving doesn't take
//! longer the more there is.
//!
//! Not here: what is written (`isobench_result::Journal`), and the whole result at the end
//! (`files.rs`).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use isobench_pgwire::fit;
use isobench_result::{Document, Journal};

use crate::output;

/// A result that is being saved; nothing at first.
#[derive(Debug, Default)]
pub struct Saving {
    journal: Journal,
    file: Option<File>,
}

impl Saving {
    /// Appends what is new to a path's file. The first time, after a failure, or if the file isn't
    /// there any more, puts a new one in its place, as a whole or not at all.
    ///
    /// # Errors
    /// It can't be written.
    pub fn save(&mut self, path: &Path, document: &Document) -> io::Result<()> {
        let known = self.file.take().filter(|file| leads_to(path, file));
        let Some(mut file) = known else {
            self.journal = Journal::default();
            self.file = Some(output::replace(path, &fit(&self.journal.text(document)))?);
            return Ok(());
        };
        file.write_all(fit(&self.journal.text(document)).as_bytes())?;
        self.file = Some(file);
        Ok(())
    }
}

/// True if this is the file at a path.
fn leads_to(path: &Path, file: &File) -> bool {
    let same = |one: fs::Metadata, other: fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    fs::metadata(path).and_then(|there| Ok(same(there, file.metadata()?))).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use isobench_isolation::EffectiveLevel;
    use isobench_result::{Cell, CellLevel, Client, Plan, Round, Server};
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;

    fn document() -> Document {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        let level = CellLevel::new(None, EffectiveLevel::from_setting("serializable"));
        document.cells = vec![Cell::new("orders", level)];
        document
    }

    fn measure(document: &mut Document, number: u32) {
        let second = std::time::Duration::from_secs(1);
        let nothing = (Ledger::default(), LatencyHistogram::default());
        document.cells[0].rounds.push(Round::from_ledger(number, &nothing.0, &nothing.1, second, Vec::new()));
    }

    fn numbers(path: &Path) -> Vec<u32> {
        let read = Document::from_json(fs::read(path).expect("a file")).expect("a result");
        read.cells[0].rounds.iter().map(|round| round.round).collect()
    }

    #[test]
    fn what_was_saved_stays_and_what_is_new_is_appended() {
        let scene = tempfile::tempdir().expect("a folder");
        let path = scene.path().join("result.json");
        let (mut saving, mut document) = (Saving::default(), document());
        let mut lengths = Vec::new();
        for number in 1..=3 {
            measure(&mut document, number);
            saving.save(&path, &document).expect("it is written");
            lengths.push(fs::metadata(&path).expect("a file").len());
            assert_eq!(numbers(&path).last(), Some(&number));
        }
        assert_eq!(lengths[2] - lengths[1], lengths[1] - lengths[0], "only the new round is written");
        // Whatever happens to the file, the next save has everything.
        fs::remove_file(&path).expect("it was there");
        saving.save(&path, &document).expect("it is written");
        assert_eq!(numbers(&path), [1, 2, 3]);
        fs::rename(&path, scene.path().join("elsewhere")).expect("it was there");
        measure(&mut document, 4);
        saving.save(&path, &document).expect("it is written");
        assert_eq!(numbers(&path), [1, 2, 3, 4]);
        assert_eq!(numbers(&scene.path().join("elsewhere")), [1, 2, 3]);
    }
}
