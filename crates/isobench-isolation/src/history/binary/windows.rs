//! Reading a recording in windows: so many transactions at a time, in the order in which they
//! began.
//!
//! The file is read twice: for when the transactions began, and for the transactions. So only those
//! of the windows that overlap the chunk that is being read are in memory, and 8 bytes of each in
//! the first pass. Not here: windows of a history in memory (`history/windows.rs`).

use std::collections::VecDeque;
use std::io::Read;

use super::super::{Draft, FormatError, History};
use super::reader::Reader;

/// The windows of a recording.
#[derive(Debug)]
pub struct Windows<R> {
    plan: Plan,
    reader: Reader<R>,
    chunk: usize,
    /// How many transactions were read.
    place: u64,
    scratch: History,
    draft: Draft,
    /// The windows that are not complete, beginning with that of number `next`.
    open: VecDeque<History>,
    next: usize,
    ended: bool,
}

/// What the first pass found out.
#[derive(Debug)]
struct Plan {
    /// True if there are no instants: then transactions are ordered by their place in the file.
    by_place: bool,
    /// Where windows end, and the next ones begin.
    ends: Vec<u64>,
    /// The lowest instant (or place) in each chunk and all after it.
    lowest: Vec<u64>,
    transactions: u64,
    dropped: u64,
    problem: Option<FormatError>,
}

impl<R: Read> Windows<R> {
    /// Looks through a recording, which `open` opens, and makes windows of `size` transactions. If
    /// it isn't whole, and that is accepted (`partial`), up to where it is.
    ///
    /// # Errors
    /// It is no recording, or isn't whole.
    pub fn new(
        mut open: impl FnMut() -> Result<R, FormatError>,
        size: usize,
        partial: bool,
    ) -> Result<Windows<R>, FormatError> {
        let plan = Plan::of(Reader::open(open()?)?, size.max(1), partial)?;
        let reader = Reader::open(open()?)?;
        let scratch = History::new(reader.tables().to_vec());
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

    /// Why the recording isn't whole, if it isn't.
    pub fn problem(&self) -> Option<&FormatError> {
        self.plan.problem.as_ref()
    }

    /// How many transactions all windows have.
    pub fn transactions(&self) -> u64 {
        self.plan.transactions
    }

    /// How many transactions were carried out and not recorded.
    pub fn dropped(&self) -> u64 {
        self.plan.dropped
    }

    /// The first window that is open, if nothing more can come into it.
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

    /// Reads a chunk into the windows that its transactions belong to.
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
                self.open.push_back(History::new(self.reader.tables().to_vec()));
            }
            self.draft.fill(self.scratch.operations(index));
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

impl Plan {
    fn of<R: Read>(mut reader: Reader<R>, size: usize, partial: bool) -> Result<Plan, FormatError> {
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
        Ok(Plan { by_place, ends, lowest, transactions, dropped, problem })
    }
}
