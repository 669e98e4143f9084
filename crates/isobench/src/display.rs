//! Progress of a comparison on standard error: one line that is updated on a terminal, several with
//! `--live`, or else one plain line for each cell.
//!
//! Not here: the text of the lines (`display/live`), and their output on the terminal
//! (`display/painter`).

mod estimate;
mod live;
mod painter;
mod speed;

use std::io::{IsTerminal, Write as _, stderr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use isobench_pgwire::fit;
use terminal_size::terminal_size_of;

use self::estimate::{Estimate, Left};
use self::live::{Live, Turning};
use self::painter::{Painter, room};
use isobench_comparison::{CellPlan, Design, Listener, SoFar};

pub use self::estimate::spell;

/// Interval at which the time is updated.
const TICK: Duration = Duration::from_millis(250);

/// Tables that take this long get a line of their own.
const LONG: Duration = Duration::from_secs(5);

/// The size of a terminal of unknown size.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// The current screen, for messages from code that has no display at hand.
static SHOWN: Mutex<Weak<Mutex<Screen>>> = Mutex::new(Weak::new());

/// Shows the running cell and the time left.
pub struct Display {
    /// The terminal; `None` if there is none, and plain lines are printed.
    screen: Option<Arc<Mutex<Screen>>>,
    live: bool,
    cells: u32,
    cells_of_round: u32,
    rounds: u32,
    done: u32,
    estimate: Estimate,
    /// The time set aside for trying interleavings.
    trying: Duration,
    /// After this time no further round is begun.
    limit: Option<Duration>,
    /// True if rounds follow until the ratios are precise enough.
    resolves: bool,
    /// Start of the comparison.
    started: Instant,
    /// Start of the running cell, or of the first of those that take turns.
    began: Instant,
    /// The cells that have started since and aren't finished.
    pending: u32,
    /// The time that each of them took, once the first is finished.
    each: Option<Duration>,
}

/// The lines on the terminal.
struct Screen {
    state: Live,
    painter: Painter,
    /// True for several lines, false for the most important one.
    in_full: bool,
    closed: bool,
    began: Instant,
    painted: Instant,
    /// Time of the last estimate of the time left, and the estimate.
    estimate: (Instant, Left),
}

impl Display {
    /// Creates an empty display. `live` shows more of the running cell, on a terminal.
    pub fn new(live: bool) -> Display {
        Display {
            live,
            screen: None,
            cells: 0,
            cells_of_round: 0,
            rounds: 0,
            done: 0,
            estimate: Estimate::default(),
            trying: Duration::ZERO,
            limit: None,
            resolves: false,
            started: Instant::now(),
            began: Instant::now(),
            pending: 0,
            each: None,
        }
    }

    /// Changes the contents and repaints.
    fn renew(&self, change: impl FnOnce(&mut Live)) {
        if let Some(screen) = &self.screen {
            let mut screen = lock(screen);
            change(&mut screen.state);
            screen.paint();
        }
    }

    /// Updates the number of cells and their time.
    fn count(&self) {
        if let Some(screen) = &self.screen {
            let mut screen = lock(screen);
            (screen.state.done, screen.state.cells) = (self.done, self.cells);
            screen.estimate = (Instant::now(), self.left());
            screen.paint();
        }
    }

    /// Time left, estimated from the tables and cells so far, with that for trying interleavings.
    fn left(&self) -> Left {
        let cells = self.cells.saturating_sub(self.done);
        let Some(limit) = self.limit else {
            return Left { least: self.trying + self.estimate.left(cells), most: None };
        };
        let limit = limit.saturating_sub(self.started.elapsed());
        let for_rounds = limit.saturating_sub(self.trying);
        let least = self.trying + self.estimate.left_within(cells, self.cells_of_round, for_rounds);
        Left { least, most: self.resolves.then_some(limit) }
    }

    fn title(&self, design: &Design, cell: &CellPlan, round: u32) -> String {
        let rounds = self.rounds;
        // After the last round come the steps of a search, whose number isn't known in advance.
        let step = if round > rounds { "search".to_owned() } else { format!("round {round}/{rounds}") };
        format!("{step}, {}", cell.name(design))
    }
}

impl Listener for Display {
    fn start(&mut self, design: &Design) {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        self.screen = (stderr().is_terminal() && !dumb).then(|| Screen::open(self.live));
        self.live &= self.screen.is_some();
        self.cells_of_round = u32::try_from(design.cells().len()).unwrap_or(u32::MAX);
        self.estimate = Estimate::new(design.time().unwrap_or_default() + design.warmup);
        (self.limit, self.resolves) = (design.time_limit, design.plan.resolve.is_some());
        self.started = Instant::now();
        self.set_rounds(design.plan.rounds());
    }

    fn shows_waits(&self) -> bool {
        self.live
    }

    fn set_rounds(&mut self, rounds: u32) {
        self.rounds = rounds;
        self.cells = self.cells_of_round.saturating_mul(rounds);
        self.count();
    }

    fn set_trying(&mut self, left: Duration) {
        self.trying = left;
        self.count();
    }

    fn trying(&mut self) {
        self.renew(|state| {
            "trying interleavings".clone_into(&mut state.title);
            state.speed = None;
            state.turns.clear();
            state.waits.clear();
        });
    }

    fn preparing(&mut self, design: &Design, cell: &CellPlan, round: u32) {
        if self.each.take().is_some() || self.pending == 0 {
            (self.began, self.pending) = (Instant::now(), 0);
        }
        self.pending += 1;
        self.renew(|state| {
            state.title = self.title(design, cell, round);
            state.speed = None;
            state.turns.clear();
            state.waits.clear();
        });
    }

    /// If the first tables took long, the time left is printed again.
    fn prepared(&mut self, took: Duration, again: bool) {
        let first = self.estimate.prepared(took, again);
        if first && took >= LONG {
            self.say(&format!("note: the tables took {}; about {}", spell(took), self.left()));
        }
        self.count();
    }

    fn running(&self, design: &Design, cell: &CellPlan, round: u32, so_far: &SoFar, waits: &[(String, u32)]) {
        self.renew(|state| {
            state.title = self.title(design, cell, round);
            state.speed.get_or_insert_default().see(so_far.elapsed, &so_far.progress);
            state.waits = waits.to_vec();
        });
    }

    fn in_turns(
        &self,
        design: &Design,
        cells: &[CellPlan],
        round: u32,
        so_far: &[SoFar],
        waits: &[(String, u32)],
    ) {
        self.renew(|state| {
            let number = cells.len();
            state.title = format!("round {round}/{}, {number} cells in turns", self.rounds);
            state.speed = None;
            state.turns = cells
                .iter()
                .zip(so_far)
                .map(|(cell, SoFar { elapsed, progress, .. })| Turning {
                    name: cell.name(design),
                    tps: progress.ledger.transactions.committed as f64 / elapsed.as_secs_f64().max(1e-3),
                    conflict_ratio: progress.ledger.conflict_ratio(),
                })
                .collect();
            state.waits = waits.to_vec();
        });
    }

    fn finished(
        &mut self,
        design: &Design,
        cell: &CellPlan,
        round: u32,
        tps: Option<f64>,
        conflict_ratio: f64,
    ) {
        self.done += 1;
        let each = *self.each.get_or_insert(self.began.elapsed() / self.pending.max(1));
        self.pending = self.pending.saturating_sub(1);
        self.estimate.measured(each);
        let tps = tps.unwrap_or(0.0);
        if self.screen.is_some() {
            self.renew(|state| {
                state.speed = None;
                state.turns.clear();
                state.add(&cell.name(design), tps, conflict_ratio);
            });
            self.count();
            return;
        }
        eprintln!(
            "[{}/{}] {}: {tps:.0} tps, {:.0} % of attempts conflicted ({})",
            self.done,
            self.cells,
            self.title(design, cell, round),
            conflict_ratio * 100.0,
            self.left(),
        );
    }

    /// Prints a line that stays.
    fn say(&self, text: &str) {
        if let Some(screen) = &self.screen {
            lock(screen).say(text);
        } else {
            eprintln!("{text}");
        }
    }

    /// Removes the lines that are updated.
    fn close(&self) {
        if let Some(screen) = &self.screen {
            lock(screen).close();
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.close();
    }
}

impl Screen {
    /// Opens a screen, and starts to update the time on it.
    fn open(in_full: bool) -> Arc<Mutex<Screen>> {
        let now = Instant::now();
        let screen = Arc::new(Mutex::new(Screen {
            state: Live::default(),
            painter: Painter::default(),
            in_full,
            closed: false,
            began: now,
            painted: now,
            estimate: (now, Left::default()),
        }));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&screen);
        let shown = Arc::downgrade(&screen);
        // Without a thread the time is updated with the other contents.
        let _ = thread::Builder::new().name("display".to_owned()).spawn(move || {
            while let Some(screen) = shown.upgrade() {
                let mut screen = lock(&screen);
                if screen.closed {
                    break;
                }
                if screen.painted.elapsed() >= TICK {
                    screen.paint();
                }
                drop(screen);
                thread::sleep(TICK);
            }
        });
        screen
    }

    fn lines(&mut self, height: usize, width: usize) -> Vec<String> {
        self.state.elapsed = self.began.elapsed();
        self.state.left = self.estimate.1.after(self.estimate.0.elapsed());
        let room = room(width);
        if self.in_full { self.state.lines(height, room) } else { vec![self.state.line(room)] }
    }

    fn paint(&mut self) {
        if !self.closed {
            let (width, height) = size();
            let lines = self.lines(height, width);
            write(&self.painter.paint(&lines, width));
            self.painted = Instant::now();
        }
    }

    fn say(&mut self, text: &str) {
        if self.closed {
            eprintln!("{text}");
            return;
        }
        let (width, height) = size();
        let lines = self.lines(height, width);
        write(&self.painter.paint_below(&fit(text), &lines, width));
    }

    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            write(&self.painter.clear(size().0));
        }
    }
}

/// Prints a message above the current lines, from any thread.
pub fn note(text: &str) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
    if let Some(screen) = shown {
        lock(&screen).say(text);
    } else {
        eprintln!("{text}");
    }
}

/// Removes the current lines, from any thread, before the program ends without cleaning up. Doesn't
/// wait for locks.
pub fn abandon() {
    let Ok(shown) = SHOWN.try_lock() else { return };
    if let Some(screen) = shown.upgrade()
        && let Ok(mut screen) = screen.try_lock()
    {
        screen.close();
    }
}

fn lock(screen: &Mutex<Screen>) -> MutexGuard<'_, Screen> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the current width and height of the terminal, which may change at any time.
fn size() -> (usize, usize) {
    let size = terminal_size_of(stderr());
    // A height or width of 0 means unknown.
    let known = size.map(|(width, height)| (usize::from(width.0), usize::from(height.0)));
    known.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(USUAL_SIZE)
}

fn write(text: &str) {
    let mut terminal = stderr().lock();
    // If this fails, there is no way to report it.
    let _ = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_is_part_of_the_time_left_until_it_is_done() {
        let seconds = Duration::from_secs;
        let mut display = Display::new(false);
        (display.estimate, display.cells) = (Estimate::new(seconds(3)), 10);
        display.set_trying(seconds(5));
        assert_eq!(display.left().least, seconds(35));
        display.set_trying(Duration::ZERO);
        assert_eq!(display.left().least, seconds(30));
    }
}
