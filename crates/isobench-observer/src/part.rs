//! One measured part: what was counted in its windows and in its slices.
//!
//! Not here: reading (`edge`), and the order of the parts (`watcher`).

use std::time::{Duration, Instant};

use crate::compare::ServerCounts;
use crate::counters::{CounterReading, CounterSums};
use crate::edge::Edge;
use crate::observed::ServerProcesses;
use crate::sampler::Sampler;
use crate::scans::ScanSums;

/// The number of a measured part, chosen by the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part(pub usize);

/// Sessions that rest for longer than this may report by themselves. PostgreSQL lets a session
/// report when it has been idle for ten seconds since its first transaction that it hasn't reported
/// (`PGSTAT_IDLE_INTERVAL`), and that one is at most one second older than the last
/// (`PGSTAT_MIN_INTERVAL`).
const REPORTS_BY_ITSELF: Duration = Duration::from_secs(8);

/// The reasons why counts of parts that take turns may differ.
pub const LONG_REST: &str = "sessions that were idle for many seconds may have reported while others ran";
const ENDED_WHILE_RESTING: &str = "sessions ended while others ran";

/// The state of a measured part and its sessions.
#[derive(Default)]
pub struct MeasuredPart {
    /// Sessions that were connected before its clients, except those of other parts.
    pub others: Vec<u32>,
    /// Sessions that had predicate locks before its clients were connected; some have ended.
    pub holders: Vec<u32>,
    /// The clients that were connected at the last look; `None` if they couldn't be seen.
    pub clients: Option<Vec<u32>>,
    /// Its sessions act or rest.
    pub turn: Turn,
    /// It has rested: its sessions take turns with others'.
    pub takes_turns: bool,
    /// The counters are compared since this instant.
    pub since: Option<Instant>,
    /// The number of the observer's session that read all of it.
    pub session: u64,
    /// Sums over its windows.
    pub windows: WindowSums,
    /// Sums over its slices.
    pub slices: SliceSums,
    /// Its samples.
    pub sampler: Sampler,
    /// What couldn't be read.
    pub notes: Vec<String>,
    /// The reason why its counts may differ.
    pub inexact: Option<&'static str>,
}

/// Whether the sessions of a part may act.
pub enum Turn {
    /// They may, since the readings at the beginning of the window, if there are any.
    Acting(Option<Edge>),
    /// They are idle since that instant.
    Resting(Instant),
}

impl Default for Turn {
    fn default() -> Self {
        Turn::Acting(None)
    }
}

/// Sums over the windows of a part.
#[derive(Default)]
pub struct WindowSums {
    /// The counters.
    pub counters: CounterSums,
    /// The use of each table.
    pub tables: ScanSums,
    /// The observer's own transactions, committed and rolled back.
    own: (u64, u64),
    /// The most vacuums and analyses of a table before a window whose transactions were counted in it.
    unreported: u64,
    /// The server's counts fell in a window.
    reset: bool,
}

/// Sums over the slices of a part.
#[derive(Default)]
pub struct SliceSums {
    /// The counters.
    pub counters: CounterSums,
    /// The readings at the beginning of the present slice.
    begun: Option<(CounterReading, Option<f64>)>,
    /// CPU time of the server's processes in seconds; `None` before the first slice.
    cpu_s: Option<f64>,
    /// The CPU time of a slice couldn't be read.
    cpu_unknown: bool,
    /// Memory of the server's processes in bytes.
    memory: Option<u64>,
    /// The memory is to be read, because a slice has ended since.
    memory_due: bool,
}

impl MeasuredPart {
    /// Opens a window.
    pub fn open(&mut self, edge: Option<Edge>) {
        if let Turn::Resting(since) = self.turn {
            if since.elapsed() > REPORTS_BY_ITSELF {
                self.inexact = Some(LONG_REST);
            }
            if let Some(edge) = &edge {
                self.forget_ended(edge);
            }
        }
        self.turn = Turn::Acting(edge);
    }

    /// Closes the window, and adds what was counted in it.
    pub fn close(&mut self, end: &Edge) {
        if let Turn::Acting(Some(begin)) = std::mem::replace(&mut self.turn, Turn::Resting(Instant::now())) {
            self.windows.add(&begin, end);
        }
    }

    /// Takes all present sessions for its clients, except others and those of other parts.
    pub fn see(&mut self, present: Option<&[u32]>, of_other_parts: &[u32]) {
        let own = |pid: &u32| !self.others.contains(pid) && !of_other_parts.contains(pid);
        if let Some(present) = present {
            self.clients = Some(present.iter().copied().filter(own).collect());
        }
    }

    /// Notes which of its sessions have ended while it rests, and forgets them: they reported what
    /// they had done when they ended. Returns true if there are any.
    pub fn forget_ended(&mut self, edge: &Edge) -> bool {
        let ended = matches!(self.turn, Turn::Resting(_)) && self.misses_sessions(edge);
        if let (true, Some(clients), Some(present)) = (ended, &mut self.clients, &edge.present) {
            self.inexact = Some(ENDED_WHILE_RESTING);
            clients.retain(|pid| present.contains(pid));
        }
        ended
    }

    /// The reason why another part, which acted until that edge, may have got some of this one's
    /// counts.
    pub fn disturbs(&mut self, edge: &Edge) -> Option<&'static str> {
        let Turn::Resting(since) = self.turn else { return None };
        if self.forget_ended(edge) {
            return Some(ENDED_WHILE_RESTING);
        }
        let connected = self.clients.as_ref().is_none_or(|clients| !clients.is_empty());
        (connected && since.elapsed() > REPORTS_BY_ITSELF).then_some(LONG_REST)
    }

    /// Notes the reason why this part may have got counts of another one.
    pub fn is_disturbed(&mut self, why: &'static str) {
        self.inexact = Some(why);
        // The main process takes over the CPU time of a session that ends, all of it.
        self.slices.cpu_unknown |= why == ENDED_WHILE_RESTING;
    }

    fn misses_sessions(&self, edge: &Edge) -> bool {
        let (Some(clients), Some(present)) = (&self.clients, &edge.present) else { return false };
        clients.iter().any(|pid| !present.contains(pid))
    }

    /// Drops all counts, because those of other parts can't be told from them.
    pub fn uncount(&mut self) {
        (self.windows, self.slices.counters) = (WindowSums::default(), CounterSums::default());
        self.since = None;
    }

    /// The facts for the comparison of counts.
    pub fn counts(
        &self,
        autovacuum_visits: u64,
        incomplete: bool,
        inexact: Option<&'static str>,
    ) -> ServerCounts {
        ServerCounts {
            own_committed: self.windows.own.0,
            own_rolled_back: self.windows.own.1,
            others: self.others.len() as u64,
            autovacuum_visits,
            autovacuum_before: self.windows.unreported,
            incomplete,
            reset: self.windows.reset,
            inexact: inexact.or(self.inexact),
        }
    }
}

impl WindowSums {
    fn add(&mut self, begin: &Edge, end: &Edge) {
        self.reset |= begin.commits.zip(end.commits).is_some_and(|(begin, end)| end < begin);
        self.unreported += begin.unreported;
        self.counters.add(&begin.counters, &end.counters);
        self.tables.add(begin.tables.as_ref(), end.tables.as_ref());
        self.own.0 += end.own.0.saturating_sub(begin.own.0);
        self.own.1 += end.own.1.saturating_sub(begin.own.1);
    }
}

impl SliceSums {
    /// Begins a slice with these readings.
    pub fn begin(&mut self, counters: CounterReading, cpu: Option<f64>) {
        self.begun = Some((counters, cpu));
    }

    /// True between the beginning and the end of a slice.
    pub fn is_open(&self) -> bool {
        self.begun.is_some()
    }

    /// Ends the slice, if there is one, with these readings.
    pub fn end(&mut self, counters: &CounterReading, cpu: Option<f64>) {
        let Some((begin, cpu_begin)) = self.begun.take() else { return };
        self.counters.add(&begin, counters);
        match cpu_begin.zip(cpu) {
            // A child whose end the main process hasn't noticed yet may be missing for a moment.
            Some((begin, end)) => *self.cpu_s.get_or_insert(0.0) += (end - begin).max(0.0),
            None => self.cpu_unknown = true,
        }
        self.memory_due = true;
    }

    /// True if a slice has ended since the memory was read.
    pub fn memory_is_due(&self) -> bool {
        self.memory_due
    }

    /// Keeps the memory after the last slice.
    pub fn set_memory(&mut self, memory: Option<u64>) {
        (self.memory, self.memory_due) = (memory, false);
    }

    /// CPU and memory of the server's processes; `None` if they weren't seen.
    pub fn processes(&self) -> Option<ServerProcesses> {
        let cpu_s = self.cpu_s.filter(|_| !self.cpu_unknown)?;
        Some(ServerProcesses { cpu_s, memory_bytes: self.memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(commits: f64, own: u64, present: &[u32]) -> Edge {
        let counters = CounterReading::from([((0, String::new(), 0), commits)]);
        Edge {
            own: (own, 0),
            counters,
            commits: Some(commits),
            tables: None,
            present: Some(present.to_vec()),
            unreported: 0,
        }
    }

    /// A part whose sessions 7 and 8 rest for so long.
    fn resting(time: Duration) -> MeasuredPart {
        let mut part = MeasuredPart { others: vec![5], ..MeasuredPart::default() };
        part.open(Some(edge(10.0, 1, &[5])));
        part.see(Some(&[5, 6, 7, 8]), &[6]);
        part.close(&edge(14.0, 2, &[5, 6, 7, 8]));
        part.turn = Turn::Resting(Instant::now().checked_sub(time).expect("a machine that is up"));
        part
    }

    #[test]
    fn windows_are_added_without_what_is_in_between() {
        let mut part = resting(Duration::ZERO);
        part.open(Some(edge(100.0, 20, &[7, 8])));
        part.close(&edge(103.0, 25, &[7, 8]));
        let facts = part.counts(0, false, None);
        assert_eq!((facts.own_committed, facts.reset, facts.inexact), (6, false, None));
        assert_eq!((facts.others, part.clients.as_deref()), (1, Some(&[7, 8][..])));
        part.close(&edge(999.0, 99, &[]));
        assert_eq!(part.counts(0, false, None).own_committed, 6, "it rests already");
    }

    #[test]
    fn a_reset_in_a_window_is_remembered_and_one_in_between_does_no_harm() {
        let mut part = resting(Duration::ZERO);
        part.open(Some(edge(1.0, 3, &[7, 8])));
        part.close(&edge(5.0, 3, &[7, 8]));
        assert!(!part.counts(0, false, None).reset);
        part.open(Some(edge(5.0, 3, &[7, 8])));
        part.close(&edge(2.0, 3, &[7, 8]));
        part.open(Some(edge(2.0, 3, &[7, 8])));
        part.close(&edge(200.0, 3, &[7, 8]));
        assert!(part.counts(0, false, None).reset);
    }

    #[test]
    fn a_long_rest_is_a_reason_for_both_parts() {
        let present = edge(0.0, 0, &[5, 7, 8]);
        assert_eq!(resting(Duration::ZERO).disturbs(&present), None);
        let long = REPORTS_BY_ITSELF + Duration::from_secs(1);
        let mut part = resting(long);
        assert_eq!(part.disturbs(&present), Some(LONG_REST));
        part.open(Some(present.clone()));
        assert_eq!(part.inexact, Some(LONG_REST));
        assert_eq!(part.disturbs(&present), None, "it acts itself");
        assert_eq!(part.counts(0, false, Some("by nodes")).inexact, Some("by nodes"));
    }

    #[test]
    fn sessions_that_end_in_anothers_window_are_a_reason_once() {
        let mut part = resting(REPORTS_BY_ITSELF + Duration::from_secs(1));
        let mut other = resting(Duration::ZERO);
        assert!(!other.forget_ended(&edge(0.0, 0, &[7, 8, 9])));
        other.slices.begin(CounterReading::new(), Some(1.0));
        other.slices.end(&CounterReading::new(), Some(3.5));
        assert!(other.slices.processes().is_some_and(|used| (used.cpu_s - 2.5).abs() < 1e-9));
        let without = edge(0.0, 0, &[5]);
        let why = part.disturbs(&without);
        assert_eq!((why, part.inexact), (Some(ENDED_WHILE_RESTING), Some(ENDED_WHILE_RESTING)));
        other.is_disturbed(why.unwrap());
        assert_eq!(other.slices.processes(), None, "it includes all that they have used");
        assert_eq!(part.disturbs(&without), None, "nobody is left who could report");
    }

    #[test]
    fn slices_are_added() {
        let mut slices = SliceSums::default();
        slices.end(&CounterReading::new(), Some(9.0));
        assert_eq!((slices.processes(), slices.memory_is_due()), (None, false), "none has begun");
        for begin in [1.0, 5.0] {
            slices.begin(CounterReading::new(), Some(begin));
            assert!(slices.is_open());
            slices.end(&CounterReading::new(), Some(begin + 0.5));
        }
        assert!(slices.memory_is_due() && !slices.is_open());
        slices.set_memory(Some(4096));
        let used = ServerProcesses { cpu_s: 1.0, memory_bytes: Some(4096) };
        assert_eq!((slices.processes(), slices.memory_is_due()), (Some(used), false));
        slices.begin(CounterReading::new(), Some(7.0));
        slices.end(&CounterReading::new(), None);
        assert_eq!(slices.processes(), None, "a part of the CPU time is none");
    }
}
