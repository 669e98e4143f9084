//! Rows of which the version order isn't known, with what the inference needs of them.

use std::ops::Range;

use super::super::dependencies::{Label, Node, OperationRef, Sink};

/// A row with versions whose order is unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRow {
    /// The last write of each committed transaction that wrote the row, by transaction. Of a list,
    /// only those that appended an element that nobody read.
    pub(crate) writers: Vec<OperationRef>,
    /// The reads of these versions by other transactions: the index of the writer, and the read.
    /// Sorted, one for each pair of transactions.
    pub(crate) readers: Vec<(u32, OperationRef)>,
}

impl OpenRow {
    /// A row with these last writes and reads of them, in any order.
    pub(crate) fn new(
        mut writers: Vec<OperationRef>,
        reads: impl IntoIterator<Item = (Node, OperationRef)>,
    ) -> OpenRow {
        writers.sort_by_key(|place| (place.transaction, place.record));
        let mut last: Vec<OperationRef> = Vec::with_capacity(writers.len());
        for place in writers {
            match last.last_mut().filter(|known| known.transaction == place.transaction) {
                Some(known) => *known = place,
                None => last.push(place),
            }
        }
        let index = |writer: Node| {
            let found = last.binary_search_by_key(&writer, |place| place.transaction);
            found.ok().and_then(|index| u32::try_from(index).ok())
        };
        let mut readers: Vec<(u32, OperationRef)> = reads
            .into_iter()
            .filter(|(writer, read)| *writer != read.transaction)
            .filter_map(|(writer, read)| Some((index(writer)?, read)))
            .collect();
        let key = |(writer, read): &(u32, OperationRef)| (*writer, read.transaction);
        readers.sort_by_key(|reader| (key(reader), reader.1.record));
        readers.dedup_by_key(|reader| key(reader));
        OpenRow { writers: last, readers }
    }

    /// The transaction that wrote a version.
    pub(super) fn writer(&self, index: u32) -> Node {
        self.writers[index as usize].transaction
    }

    /// The readers of a version.
    pub(super) fn readers_of(&self, index: u32) -> &[(u32, OperationRef)] {
        let start = self.readers.partition_point(|(writer, _)| *writer < index);
        let count = self.readers[start..].partition_point(|(writer, _)| *writer == index);
        &self.readers[start..start + count]
    }

    /// The number of pairs of versions.
    pub(super) fn pairs(&self) -> u64 {
        let count = self.writers.len() as u64;
        count * count.saturating_sub(1) / 2
    }

    /// The transactions that read two versions of the row, each with the versions of two of its
    /// reads: the row changed within the transaction, whatever the version order.
    pub(super) fn changed_reads(&self) -> Vec<OpenRow> {
        let mut reads: Vec<(OperationRef, u32)> = self.readers.iter().map(|(w, r)| (*r, *w)).collect();
        reads.sort_by_key(|(read, writer)| (read.transaction, read.record, *writer));
        let chunks = reads.chunk_by(|a, b| a.0.transaction == b.0.transaction);
        let pairs = chunks.filter_map(|own| match own {
            [(first, one), (second, other), ..] => Some(OpenRow::new(
                vec![self.writers[*one as usize], self.writers[*other as usize]],
                [(self.writer(*one), *first), (self.writer(*other), *second)],
            )),
            _ => None,
        });
        pairs.collect()
    }
}

/// A sink for dependencies that are already known.
pub(crate) struct Ignored;

impl Sink for Ignored {
    type Fan = ();

    fn edge(&mut self, _: OperationRef, _: OperationRef, _: Label) {}

    fn fan(&mut self, _: Vec<OperationRef>) {}

    fn link(&mut self, _: OperationRef, (): &mut (), _: Range<usize>, _: Label) {}
}
