//! Progress lines of an initialisation for standard error, also those of `isobench init`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use isobench_database::Table;
use isobench_database::{InitProgress, InitStep, Timings};

use crate::version::Version;

/// Rows between two lines.
const REPORT_EVERY: u64 = 100_000;
/// Seconds between two lines with `-q`.
const QUIET_EVERY: f64 = 5.0;

/// Step, its text when it starts, its name in the last line.
const STEPS: [(InitStep, &str, &str); 7] = [
    (InitStep::DropTables, "dropping old tables...", "drop tables"),
    (InitStep::CreateTables, "creating tables...", "create tables"),
    (InitStep::ClientGenerate, "generating data (client-side)...", "client-side generate"),
    (InitStep::ServerGenerate, "generating data (server-side)...", "server-side generate"),
    (InitStep::Vacuum, "vacuuming...", "vacuum"),
    (InitStep::PrimaryKeys, "creating primary keys...", "primary keys"),
    (InitStep::ForeignKeys, "creating foreign keys...", "foreign keys"),
];

/// Formats the lines, and remembers the last one.
#[derive(Debug)]
pub struct Lines {
    version: Version,
    quiet: bool,
    /// Lines about rows overwrite each other.
    terminal: bool,
    /// The table whose rows are being reported.
    table: Option<Table>,
    /// Length of the last line about rows; 0 if there is none.
    width: usize,
    /// The next line is due after this many times [`QUIET_EVERY`].
    due: f64,
}

impl Lines {
    /// The lines of a version for this program's standard error. With `quiet` there is one every
    /// five seconds.
    pub fn new(version: Version, quiet: bool) -> Lines {
        let terminal = std::io::stderr().is_terminal();
        Lines { version, quiet, terminal, table: None, width: 0, due: 1.0 }
    }

    /// Returns the text to write, which often is empty.
    pub fn of(&mut self, progress: &InitProgress) -> String {
        match progress {
            InitProgress::Step(step) => format!("{}\n", words(*step).0),
            InitProgress::Partitions(count) => format!("creating {count} partitions...\n"),
            InitProgress::Rows { table, done, total, elapsed } => self.rows(*table, *done, *total, *elapsed),
            InitProgress::Notice(notice) => format!("{}\n", notice.report(None)),
            InitProgress::Note(note) => format!("{note}\n"),
        }
    }

    fn rows(&mut self, table: Table, done: u64, total: u64, elapsed: Duration) -> String {
        if self.table.replace(table) != Some(table) {
            (self.width, self.due) = (0, 1.0);
        }
        let elapsed = elapsed.as_secs_f64();
        let complete = done >= total;
        let due = if self.quiet {
            complete || elapsed >= self.due * QUIET_EVERY
        } else {
            done.is_multiple_of(REPORT_EVERY)
        };
        let mut text = String::new();
        if due {
            self.due = (elapsed / QUIET_EVERY).ceil();
            text = self.row_line(table, done, total, elapsed);
        }
        if complete {
            // The next load of the same table starts again.
            self.table = None;
            text += &self.leave();
        }
        text
    }

    fn row_line(&mut self, table: Table, done: u64, total: u64, elapsed: f64) -> String {
        let remaining = total.saturating_sub(done) as f64 * elapsed / done as f64;
        let of =
            if self.version.names_filled_table() { format!(" of {}", table.name()) } else { String::new() };
        let mut line = format!(
            "{done} of {total} tuples ({}%){of} done (elapsed {elapsed:.2} s, remaining {remaining:.2} s)",
            u128::from(done) * 100 / u128::from(total.max(1))
        );
        let width = line.len();
        // Blanks cover the rest of a longer line, as in pgbench even if lines don't overwrite each
        // other.
        let covered = self.width.saturating_sub(width);
        line.extend(std::iter::repeat_n(' ', covered));
        line.push(if self.terminal { '\r' } else { '\n' });
        self.width = width;
        line
    }

    /// Returns the text after the last row of a table.
    fn leave(&mut self) -> String {
        let width = std::mem::take(&mut self.width);
        match (self.terminal && width > 0, self.version.erases_row_line()) {
            (false, _) => String::new(),
            (true, true) => format!("{:width$}\r", ""),
            (true, false) => "\n".to_owned(),
        }
    }

    /// The last line: the duration of the whole and of each step.
    pub fn summary(timings: &Timings) -> String {
        let mut line = format!("done in {:.2} s (", timings.total.as_secs_f64());
        for (index, (step, took)) in timings.steps.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            // Writing to a String can't fail.
            let _ = write!(line, "{comma}{} {:.2} s", words(*step).1, took.as_secs_f64());
        }
        line.push_str(").\n");
        line
    }
}

/// The text when a step starts, and its name.
fn words(step: InitStep) -> (&'static str, &'static str) {
    STEPS.iter().find(|row| row.0 == step).map_or(("", ""), |row| (row.1, row.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(version: Version, quiet: bool, terminal: bool) -> Lines {
        Lines { terminal, ..Lines::new(version, quiet) }
    }

    fn written(lines: &mut Lines, every: u64, total: u64, milliseconds: u64) -> String {
        (1..=total / every)
            .map(|number| {
                let elapsed = Duration::from_millis(number * milliseconds);
                lines.of(&InitProgress::Rows { table: Table::Accounts, done: number * every, total, elapsed })
            })
            .collect()
    }

    #[test]
    fn rows_in_a_file() {
        assert_eq!(
            written(&mut lines(Version::V18, false, false), 50_000, 300_000, 1_000),
            "100000 of 300000 tuples (33%) of pgbench_accounts done (elapsed 2.00 s, remaining 4.00 s)\n\
             200000 of 300000 tuples (66%) of pgbench_accounts done (elapsed 4.00 s, remaining 2.00 s)\n\
             300000 of 300000 tuples (100%) of pgbench_accounts done (elapsed 6.00 s, remaining 0.00 s)\n"
        );
        // A shorter line is padded.
        assert_eq!(
            written(&mut lines(Version::V15, false, false), 100_000, 300_000, 6_000),
            "100000 of 300000 tuples (33%) done (elapsed 6.00 s, remaining 12.00 s)\n\
             200000 of 300000 tuples (66%) done (elapsed 12.00 s, remaining 6.00 s)\n\
             300000 of 300000 tuples (100%) done (elapsed 18.00 s, remaining 0.00 s)\n"
        );
    }

    #[test]
    fn rows_on_a_terminal() {
        let new = written(&mut lines(Version::V18, false, true), 50_000, 100_000, 1_000);
        let (line, rest) = new.split_once('\r').unwrap();
        assert_eq!(rest, format!("{}\r", " ".repeat(line.len())));
        let old = written(&mut lines(Version::V16, false, true), 50_000, 100_000, 1_000);
        assert!(old.ends_with("remaining 0.00 s)\r\n"), "{old:?}");
        // Nothing was written, so nothing is erased.
        assert_eq!(written(&mut lines(Version::V18, false, true), 10, 10, 1_000), "");
    }

    #[test]
    fn quiet_lines_are_five_seconds_apart() {
        let text = written(&mut lines(Version::V18, true, false), 100, 2_000, 700);
        let counts: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(counts, ["800", "1500", "2000"]);
    }

    #[test]
    fn the_last_line_has_all_steps() {
        let timings = Timings {
            steps: vec![
                (InitStep::DropTables, Duration::from_millis(4)),
                (InitStep::ServerGenerate, Duration::from_millis(160)),
            ],
            total: Duration::from_millis(310),
        };
        let line = "done in 0.31 s (drop tables 0.00 s, server-side generate 0.16 s).\n";
        assert_eq!(Lines::summary(&timings), line);
        assert_eq!(Lines::summary(&Timings::default()), "done in 0.00 s ().\n");
    }
}
