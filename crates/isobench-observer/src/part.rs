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
            if edge.as_ref().is_some_and(|edge| self.misses_sessions(edge)) {
                self.inexact = Some(ENDED_WHILE_RESTING);
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

    /// Notes what another part, which acted until that edge, may have got of this one's counts, or
    /// the reason why it can't have got anything is none. Forgets sessions that have ended.
    pub fn disturbed(&mut self, edge: &Edge) -> Option<&'static str> {
        let Turn::Resting(since) = self.turn else { return None };
        if self.misses_sessions(edge) {
            self.inexact = Some(ENDED_WHILE_RESTING);
            if let (Some(clients), Some(present)) = (&mut self.clients, &edge.present) {
                clients.retain(|pid| present.contains(pid));
            }
            return self.inexact;
        }
        let connected = self.clients.as_ref().is_none_or(|clients| !clients.is_empty());
        (connected && since.elapsed() > REPORTS_BY_ITSELF).then_some(LONG_REST)
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
            incomplete,
            reset: self.windows.reset,
            inexact: inexact.or(self.inexact),
        }
    }
}

impl WindowSums {
    fn add(&mut self, begin: &Edge, end: &Edge) {
        self.reset |= begin.commits.zip(end.commits).is_some_and(|(begin, end)| end < begin);
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
