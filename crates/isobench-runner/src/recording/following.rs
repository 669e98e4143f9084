//! Follows a recording while the run goes on: sorts what is recorded, so that less is left for the
//! check at the end, and looks for a broken promise.
//!
//! It works beside the clients and the server, so it takes the time that they leave: at the lowest
//! priority, and not more than a fixed share of a core.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use isobench_isolation::check::{GrowingRecording, Options, check};
use isobench_isolation::history::FormatError;
use isobench_isolation::history::binary::read_chunk;
use isobench_isolation::observed::resolve;
use isobench_isolation::{History, Report};

use super::{Recording, body};
use crate::control::{Control, Urgency};

/// The time between two looks at what is new, at least.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Of the chunks of a look, the last of so many are seen again in the next one.
const SEEN_AGAIN: usize = 4;

/// The shortest rest, unless there is more to be sorted.
const SHORTEST_REST: Duration = Duration::from_millis(50);

/// A rest lasts this many times as long as the work before it, so that a quarter of a core is taken
/// at most.
const REST: u32 = 3;

/// The longest rest.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// The longest time for sorting without a rest.
const LONGEST_WORK: Duration = Duration::from_millis(20);

/// The most bytes that are looked at together. If more is new, the oldest of it isn't looked at
/// before the end.
const MOST_LOOKED_AT: usize = 32 << 20;

/// The lowest priority of a thread (nice(2)).
const LOWEST: i32 = 19;

/// A chunk that is kept, sorted and looked at.
pub(super) type Chunk = Arc<Vec<u8>>;

/// The chunks that were recorded last, for a look at whether they break a promise.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Those that no look has seen.
    new: VecDeque<Chunk>,
    bytes: usize,
    /// The last of the last look, which are seen again: what contradicts is often near in time.
    seen: Vec<Chunk>,
    /// When that look began.
    pub(super) looked: Option<Instant>,
}

impl Recent {
    /// Adds a chunk.
    pub(super) fn push(&mut self, chunk: &Chunk) {
        self.new.push_back(Arc::clone(chunk));
        self.bytes += chunk.len();
        while self.bytes > MOST_LOOKED_AT && self.new.len() > 1 {
            self.bytes -= self.new.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    /// The chunks to look at, if it is time, and there are new ones.
    fn take(&mut self) -> Option<Vec<Chunk>> {
        let due = self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY);
        if !due || self.new.is_empty() {
            return None;
        }
        self.looked = Some(Instant::now());
        self.bytes = 0;
        let again = self.new.len().div_ceil(SEEN_AGAIN);
        let last = self.new.iter().skip(self.new.len() - again).cloned().collect();
        let mut all = std::mem::replace(&mut self.seen, last);
        all.extend(self.new.drain(..));
        Some(all)
    }
}

impl Recording {
    /// Follows the recording in the runs from now on. If something recorded breaks the promise of
    /// these options, the run is ended as if it had been interrupted, and
    /// [`Recording::broken`] says so. Only what no further transaction can explain does that.
    pub fn follow(&self, promise: Option<Options>) {
        let mut sink = self.sink();
        if promise.is_none() && (self.shows_rows() || sink.most == 0) {
            // What rows show can't be sorted before all of them are known; what isn't in memory is
            // read at the end.
            return;
        }
        sink.recent = promise.as_ref().map(|_| Recent::default());
        let _ = self.followed.set(promise);
    }

    /// True if the recording is followed.
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.get().is_some()
    }

    /// What was found to break the promise while a run went on, in a few words.
    pub fn broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }

    /// Works until the run is over, which closes the channel.
    pub(crate) fn keep_up(&self, control: &Control, over: &Receiver<()>) {
        // Without the right to it, the share of a core is the limit.
        let _ = rustix::process::nice(LOWEST);
        let mut rest = SHORTEST_REST;
        while over.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
            let began = Instant::now();
            self.sort_some(began + LONGEST_WORK);
            if self.broken().is_none() {
                self.look(control);
            }
            let least = if self.is_behind() { Duration::ZERO } else { SHORTEST_REST };
            rest = (began.elapsed() * REST).clamp(least, LONGEST_REST);
        }
    }

    /// True if there are chunks in memory to be sorted.
    pub(super) fn is_behind(&self) -> bool {
        self.observed.is_none() && !self.sink().memory.is_empty()
    }

    /// Sorts chunks in memory for the check at the end, until this instant.
    pub(super) fn sort_some(&self, until: Instant) {
        if self.observed.is_some() {
            return;
        }
        let mut sorted = self.sorted.lock().unwrap_or_else(PoisonError::into_inner);
        while Instant::now() < until {
            let growing = sorted.get_or_insert_with(|| Ok(GrowingRecording::new(&self.tables)));
            let (Ok(recording), Some(chunk)) = (growing, self.sink().take_first()) else { break };
            if let Err(error) = recording.add(&chunk) {
                // Told at the end.
                *sorted = Some(Err(error));
            }
        }
    }

    /// Looks at what was recorded last, if it is time.
    pub(super) fn look(&self, control: &Control) {
        let Some(Some(promise)) = self.followed.get() else { return };
        let Some(recent) = self.sink().recent.as_mut().and_then(Recent::take) else { return };
        // What can't be read is told at the end.
        let Ok(history) = self.part(&recent) else { return };
        let report = check(&history, promise);
        if report.verdict.kept == Some(false) {
            let _ = self.broken.set(what(&report));
            control.request(Urgency::Soon);
        }
    }

    /// The history of some chunks. Other transactions are missing.
    fn part(&self, chunks: &[Chunk]) -> Result<History, FormatError> {
        if let Some(description) = &self.observed {
            let mut description = description.clone();
            description.texts = self.texts();
            description.dropped = 1;
            return resolve(description, || Ok(chunks.iter().map(|chunk| Ok(body(chunk)))));
        }
        let mut history = History::new(self.tables.clone());
        for chunk in chunks {
            read_chunk(chunk, &mut history)?;
        }
        history.set_dropped(1);
        Ok(history)
    }
}

/// What breaks a promise: the names of the anomalies.
fn what(report: &Report) -> String {
    let Some(promised) = report.verdict.promised else { return String::new() };
    let contradicting = report.findings.iter().filter(|finding| finding.contradicts(promised));
    let names: Vec<&str> = contradicting.map(|finding| finding.anomaly.facts().name).collect();
    format!("{} contradicts {promised}", names.join(", "))
}
