//! The display of a running comparison, as lines of text.
//!
//! Pure. Not here: the output on the terminal (`painter`), and the speed of a cell (`speed`).

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::estimate::{Left, spell};
use super::speed::Speed;

/// Maximum number of wait events shown.
const WAITS: usize = 4;

/// Width of the bar.
const BAR: usize = 20;

/// The contents of the display.
#[derive(Debug, Clone, Default)]
pub struct Live {
    /// Number of measured cells, counted once per round.
    pub done: u32,
    /// Number of cells to measure; may grow.
    pub cells: u32,
    /// Time since the start.
    pub elapsed: Duration,
    /// Estimated time left.
    pub left: Left,
    /// The round and the cell that is running; empty before the first.
    pub title: String,
    /// The figures of the running cell; `None` before its clients work.
    pub speed: Option<Speed>,
    /// The cells that take turns; empty if one works alone.
    pub turns: Vec<Turning>,
    /// The wait events of its sessions, with the number of sessions, in descending order.
    pub waits: Vec<(String, u32)>,
    /// The cells measured so far.
    pub results: Vec<Measured>,
}

/// What a cell that takes turns has done so far in this round.
#[derive(Debug, Clone, Default)]
pub struct Turning {
    /// The cell.
    pub name: String,
    /// Committed transactions per second of its own turns.
    pub tps: f64,
    /// Share of the attempts that ended in a conflict.
    pub conflict_ratio: f64,
}

/// The rounds of one cell so far.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The cell.
    pub name: String,
    /// Rounds.
    pub rounds: u32,
    /// Committed transactions per second, summed over the rounds.
    pub tps: f64,
    /// Share of the attempts that ended in a conflict, summed over the rounds.
    pub conflict_ratio: f64,
}

impl Live {
    /// Adds a round of a cell.
    pub fn add(&mut self, name: &str, tps: f64, conflict_ratio: f64) {
        let index = self.results.iter().position(|known| known.name == name).unwrap_or_else(|| {
            self.results.push(Measured { name: name.to_owned(), ..Measured::default() });
            self.results.len() - 1
        });
        let known = &mut self.results[index];
        known.rounds += 1;
        known.tps += tps;
        known.conflict_ratio += conflict_ratio;
    }

    /// Returns all contents, in as many lines as fit on a terminal of `height` lines. The first one
    /// fits into `width` columns.
    pub fn lines(&self, height: usize, width: usize) -> Vec<String> {
        let without_bar = format!("{}  {}, {}", self.count(), spell(self.elapsed), self.left);
        let mut lines = vec![
            first_fitting([format!("{} {without_bar}", self.bar()), without_bar, self.least()], width),
            if self.title.is_empty() { "making ready".to_owned() } else { self.title.clone() },
        ];
        match &self.speed {
            Some(speed) => lines.extend(self.about(speed)),
            None if !self.turns.is_empty() => lines.extend(self.about_turns()),
            None if self.title.is_empty() => {}
            None => lines.push("  making tables, connecting, checking".to_owned()),
        }
        // The line below the last one stays empty.
        let room = height.saturating_sub(lines.len() + 1);
        lines.extend(self.measured(room));
        lines.truncate(height.saturating_sub(1).max(1));
        lines
    }

    /// Returns the most important contents in one line of `width` columns. The time left is never
    /// cut: before it the bar goes, the conflicts, the cell.
    pub fn line(&self, width: usize) -> String {
        let (bar, least) = (self.bar(), self.least());
        let Some(speed) = &self.speed else {
            let running = format!("{least}  {}", self.title).trim_end().to_owned();
            return first_fitting([format!("{bar} {running}"), running, least], width);
        };
        let tps = format!("{:.0} tps", speed.mean);
        let figures = format!("{tps}, {:.0} conflicts/s", speed.conflicts);
        let title = &self.title;
        first_fitting(
            [
                format!("{bar} {least}  {title}: {figures}"),
                format!("{least}  {title}: {figures}"),
                format!("{least}  {title}: {tps}"),
                format!("{least}: {figures}"),
                format!("{least}: {tps}"),
                least,
            ],
            width,
        )
    }

    /// What is shown on the narrowest terminal.
    fn least(&self) -> String {
        format!("{}, {}", self.count(), self.left)
    }

    fn count(&self) -> String {
        format!("{}/{}", self.done, self.cells)
    }

    fn bar(&self) -> String {
        bar(self.done, self.cells)
    }

    /// A line for each cell that takes turns.
    fn about_turns(&self) -> Vec<String> {
        let longest = self.turns.iter().map(|cell| cell.name.chars().count()).max().unwrap_or(0);
        let line = |cell: &Turning| {
            let (tps, conflicts) = (cell.tps, cell.conflict_ratio * 100.0);
            format!("  {:longest$} {tps:>8.0} tps, {conflicts:>3.0} % conflicts", cell.name)
        };
        self.turns.iter().map(line).chain(self.sessions()).collect()
    }

    /// What sessions wait for. Without wait events from the server, the line is omitted.
    fn sessions(&self) -> Option<String> {
        let waits: Vec<String> =
            self.waits.iter().take(WAITS).map(|(event, sessions)| format!("{sessions} {event}")).collect();
        (!waits.is_empty()).then(|| format!("  sessions  {}", waits.join(", ")))
    }

    fn about(&self, speed: &Speed) -> Vec<String> {
        let latency = speed.latency_ms.map_or_else(|| "–".to_owned(), |latency| format!("{latency:.2} ms"));
        let mut lines = vec![
            format!(
                "  committed {:>8.0} per s, mean {:.0}  {}",
                speed.now(),
                speed.mean,
                sparkline(speed.recent.iter().copied())
            ),
            format!(
                "  conflicts {:>8.0} per s, {:.0} % of attempts; {} retries",
                speed.conflicts,
                speed.conflict_ratio * 100.0,
                speed.retries
            ),
            format!("  latency   {latency:>8} mean"),
        ];
        lines.extend(self.sessions());
        lines
    }

    /// Returns lines with the measured cells, the latest ones that fit.
    fn measured(&self, room: usize) -> Vec<String> {
        if self.results.is_empty() || room < 2 {
            return Vec::new();
        }
        let left_out = self.results.len().saturating_sub(room - 1);
        let more = if left_out > 0 { format!(" (and {left_out} more)") } else { String::new() };
        let shown = &self.results[left_out..];
        let longest = shown.iter().map(|cell| cell.name.chars().count()).max().unwrap_or(0);
        let mut lines = vec![format!("so far{more}:")];
        lines.extend(shown.iter().map(|cell| {
            let rounds = f64::from(cell.rounds.max(1));
            let plural = if cell.rounds == 1 { "" } else { "s" };
            format!(
                "  {:longest$} {:>8.0} tps, {:>3.0} % conflicts, {} round{plural}",
                cell.name,
                cell.tps / rounds,
                cell.conflict_ratio / rounds * 100.0,
                cell.rounds
            )
        }));
        lines
    }
}

fn bar(done: u32, all: u32) -> String {
    let share = f64::from(done) / f64::from(all.max(1));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the bar's width")]
    let full = ((share * BAR as f64) as usize).min(BAR);
    "█".repeat(full) + &"░".repeat(BAR - full)
}

/// Returns a bar chart of numbers from zero up, a character each.
pub fn sparkline(values: impl Iterator<Item = f64> + Clone) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.clone().fold(0.0, f64::max);
    values
        .map(|value| {
            let share = if most > 0.0 { value / most } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 7")]
            let step = (share * 7.0).round() as usize;
            STEPS[step.min(7)]
        })
        .collect()
}

/// Returns the first of these lines that fits, or else the last one.
fn first_fitting<const N: usize>(lines: [String; N], width: usize) -> String {
    let last = N - 1;
    let chosen = lines.iter().position(|line| line.width() <= width).unwrap_or(last);
    lines.into_iter().nth(chosen).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Live {
        let speed = Speed {
            recent: [0.0, 200.0, 400.0, 380.0, 390.0].into(),
            mean: 371.4,
            conflicts: 733.0,
            conflict_ratio: 0.657,
            retries: 4321,
            latency_ms: Some(20.127),
            ..Speed::default()
        };
        let mut live = Live {
            done: 7,
            cells: 15,
            elapsed: Duration::from_millis(42_900),
            left: Left { least: Duration::from_secs(64), most: None },
            title: "round 3/5, serializable, 8 clients".to_owned(),
            speed: Some(speed),
            waits: [("Lock/tuple", 5), ("Lock/transactionid", 2), ("CPU", 1), ("IO/WalSync", 1), ("idle", 1)]
                .map(|(event, sessions)| (event.to_owned(), sessions))
                .to_vec(),
            ..Live::default()
        };
        live.add("read committed, 8 clients", 400.0, 0.0);
        live.add("repeatable read, 8 clients", 192.0, 0.7);
        live.add("read committed, 8 clients", 384.0, 0.0);
        live
    }

    #[test]
    fn a_running_cell_in_full() {
        assert_eq!(
            running().lines(24, 100),
            [
                "█████████░░░░░░░░░░░ 7/15  42s, 1m 4s left",
                "round 3/5, serializable, 8 clients",
                "  committed      390 per s, mean 371  ▁▅███",
                "  conflicts      733 per s, 66 % of attempts; 4321 retries",
                "  latency   20.13 ms mean",
                "  sessions  5 Lock/tuple, 2 Lock/transactionid, 1 CPU, 1 IO/WalSync",
                "so far:",
                "  read committed, 8 clients       392 tps,   0 % conflicts, 2 rounds",
                "  repeatable read, 8 clients      192 tps,  70 % conflicts, 1 round",
            ]
        );
    }

    #[test]
    fn cells_that_take_turns_have_a_line_each() {
        let turning =
            |name: &str, tps, conflict_ratio| Turning { name: name.to_owned(), tps, conflict_ratio };
        let live = Live {
            title: "round 3/5, 2 cells in turns".to_owned(),
            speed: None,
            turns: vec![
                turning("read committed, 8 clients", 4012.4, 0.0),
                turning("serializable, 8 clients", 933.0, 0.4),
            ],
            results: Vec::new(),
            ..running()
        };
        assert_eq!(
            live.lines(24, 100)[1..],
            [
                "round 3/5, 2 cells in turns",
                "  read committed, 8 clients     4012 tps,   0 % conflicts",
                "  serializable, 8 clients        933 tps,  40 % conflicts",
                "  sessions  5 Lock/tuple, 2 Lock/transactionid, 1 CPU, 1 IO/WalSync",
            ]
        );
        assert_eq!(live.line(60), "7/15, 1m 4s left  round 3/5, 2 cells in turns");
    }

    #[test]
    fn one_line_drops_what_matters_less_than_the_time_left() {
        let live = running();
        for (width, line) in [
            (
                100,
                "█████████░░░░░░░░░░░ 7/15, 1m 4s left  round 3/5, serializable, 8 clients: 371 tps, 733 conflicts/s",
            ),
            (80, "7/15, 1m 4s left  round 3/5, serializable, 8 clients: 371 tps, 733 conflicts/s"),
            (77, "7/15, 1m 4s left  round 3/5, serializable, 8 clients: 371 tps"),
            (50, "7/15, 1m 4s left: 371 tps, 733 conflicts/s"),
            (30, "7/15, 1m 4s left: 371 tps"),
            (20, "7/15, 1m 4s left"),
            (3, "7/15, 1m 4s left"),
        ] {
            assert_eq!(live.line(width), line, "{width}");
        }
        let ready = Live { speed: None, ..running() };
        assert_eq!(ready.line(60), "7/15, 1m 4s left  round 3/5, serializable, 8 clients");
        assert_eq!(ready.line(30), "7/15, 1m 4s left");
        assert_eq!(live.lines(24, 40)[0], "7/15  42s, 1m 4s left");
        assert_eq!(live.lines(24, 20)[0], "7/15, 1m 4s left");
    }

    #[test]
    fn before_anything_works() {
        let left = Left { least: Duration::from_secs(45), most: None };
        let live = Live { cells: 15, left, ..Live::default() };
        assert_eq!(live.lines(24, 80), ["░░░░░░░░░░░░░░░░░░░░ 0/15  0s, 45s left", "making ready"]);
        assert_eq!(live.line(80), "░░░░░░░░░░░░░░░░░░░░ 0/15, 45s left");
        let live = Live { speed: None, waits: Vec::new(), ..running() };
        assert_eq!(live.lines(4, 80)[2], "  making tables, connecting, checking");
    }

    #[test]
    fn a_low_terminal_shows_the_latest() {
        let live = running();
        for height in 0..12 {
            let lines = live.lines(height, 80);
            assert!(
                !lines.is_empty() && lines.len() <= height.saturating_sub(1).max(1),
                "{height}: {lines:?}"
            );
        }
        let lines = live.lines(9, 80);
        assert_eq!(lines[6], "so far (and 1 more):");
        assert!(lines[7].contains("repeatable read"));
    }

    #[test]
    fn pictures_of_numbers() {
        assert_eq!(sparkline([].into_iter()), "");
        assert_eq!(sparkline([0.0, 0.0].into_iter()), "▁▁");
        assert_eq!(sparkline([0.0, 1.0, 2.0, 4.0].into_iter()), "▁▃▅█");
    }

    #[test]
    fn bars_never_overflow() {
        for (done, all) in [(0, 0), (3, 0), (7, 5), (u32::MAX, 1)] {
            assert_eq!(bar(done, all).chars().count(), BAR);
        }
    }
}
