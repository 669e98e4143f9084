//! Reads a recording in windows of a number of transactions, in the order of their starts.
//!
//! The file is read twice: first for the starts of the transactions, then for the transactions. So
//! memory holds only the windows that overlap the current chunk, and in the first pass 8 bytes per
//! transaction. Windows of a history in memory are in `history/windows.rs`.

use std::collections::VecDeque;
use std::io::Read;

use super::super::{Draft, FormatError, History};
use super::reader::Reader;

/// The windows of a recording.
#[derive(Debug)]
pub struct Windows<R> {
    plan: WindowPlan,
    reader: Reader<R>,
    chunk: usize,
    /// The number of transactions read.
    place: u64,
    scratch: History,
    draft: Draft,
    /// The incomplete windows, starting with the one numbered `next`.
    open: VecDeque<History>,
    next: usize,
    ended: bool,
}

/// The result of the first pass.
#[derive(Debug)]
struct WindowPlan {
    /// True if there are no instants; then transactions are ordered by their position in the file.
    by_place: bool,
    /// The boundaries between windows.
    ends: Vec<u64>,
    /// The lowest instant (or position) in each chunk and all chunks after it.
    lowest: Vec<u64>,
    transactions: u64,
    dropped: u64,
    problem: Option<FormatError>,
}

impl<R: Read> Windows<R> {
    /// Scans a recording, opened by `open`, and makes windows of `size` transactions. An incomplete
    /// recording is accepted if `partial`, and used as far as it goes.
    ///
    /// # Errors
    /// If the input isn't a recording, or isn't complete.
    pub fn new(
        mut open: impl FnMut() -> Result<R, FormatError>,
        size: usize,
        partial: bool,
    ) -> Result<Windows<R>, FormatError> {
        let plan = WindowPlan::of(Reader::open(open()?)?, size.max(1), partial)?;
        let reader = Reader::open(open()?)?;
        let scratch = reader.blank();
        Ok(Windows {
            plan,
            reader,
            chunk: 0,
            place: 0,
            scratch,
            draft: Draft::new(),
            open: VecDeque::new(),
            next: 0,
            ended: false,
        })
    }

    /// The reason that the recording isn't complete, if so.
    pub fn problem(&self) -> Option<&FormatError> {
        self.plan.problem.as_ref()
    }

    /// The number of transactions in all windows.
    pub fn transactions(&self) -> u64 {
        self.plan.transactions
    }

    /// The number of transactions executed but not recorded.
    pub fn dropped(&self) -> u64 {
        self.plan.dropped
    }

    /// Returns the first incomplete window, if no more transactions can belong to it.
    fn complete(&mut self) -> Option<History> {
        let lowest = self.plan.lowest.get(self.chunk);
        let end = self.plan.ends.get(self.next);
        let complete = match (lowest, end) {
            (Some(lowest), Some(end)) => lowest >= end,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if !complete || self.open.is_empty() {
            return None;
        }
        self.next += 1;
        let mut window = self.open.pop_front()?;
        let others = self.plan.transactions.saturating_sub(window.transactions().len() as u64);
        window.set_dropped(self.plan.dropped.saturating_add(others));
        Some(window)
    }

    /// Reads a chunk, and adds its transactions to the windows they belong to.
    fn read(&mut self) -> Result<(), FormatError> {
        self.scratch.clear();
        if self.chunk >= self.plan.lowest.len() || !self.reader.next_chunk(&mut self.scratch)? {
            self.ended = true;
            return Ok(());
        }
        self.chunk += 1;
        for (index, transaction) in self.scratch.transactions().iter().enumerate() {
            let at = if self.plan.by_place { self.place } else { transaction.begin };
            self.place += 1;
            let window = self.plan.ends.partition_point(|end| *end <= at).saturating_sub(self.next);
            while self.open.len() <= window {
                self.open.push_back(self.reader.blank());
            }
            self.draft.fill(&self.scratch, index);
            self.open[window].push(*transaction, &self.draft);
        }
        Ok(())
    }
}

impl<R: Read> Iterator for Windows<R> {
    type Item = Result<History, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.complete() {
                Some(window) if window.transactions().is_empty() => {}
                Some(window) => return Some(Ok(window)),
                None if self.ended => return None,
                None => {
                    if let Err(error) = self.read() {
                        self.ended = true;
                        self.open.clear();
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

impl WindowPlan {
    fn of<R: Read>(mut reader: Reader<R>, size: usize, partial: bool) -> Result<WindowPlan, FormatError> {
        let mut chunk = History::new(reader.tables().to_vec());
        let (mut begins, mut lowest) = (Vec::new(), Vec::new());
        let problem = loop {
            chunk.clear();
            match reader.next_chunk(&mut chunk) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) if partial && error.leaves_a_part() => break Some(error),
                Err(error) => return Err(error),
            }
            let of_chunk = chunk.transactions().iter().map(|transaction| transaction.begin);
            lowest.push((of_chunk.clone().min().unwrap_or(u64::MAX), begins.len() as u64));
            begins.extend(of_chunk);
        };
        let transactions = begins.len() as u64;
        let by_place = begins.iter().all(|begin| *begin == 0);
        if by_place {
            begins = (0..transactions).collect();
        } else {
            begins.sort_unstable();
        }
        let ends = begins.chunks(size).skip(1).map(|window| window[0]).collect();
        let mut lowest: Vec<u64> =
            lowest.into_iter().map(|(begin, place)| if by_place { place } else { begin }).collect();
        for index in (1..lowest.len()).rev() {
            lowest[index - 1] = lowest[index - 1].min(lowest[index]);
        }
        let dropped = reader.dropped().unwrap_or(0);
        let dropped = if problem.is_some() { dropped.max(1) } else { dropped };
        Ok(WindowPlan { by_place, ends, lowest, transactions, dropped, problem })
    }
}
