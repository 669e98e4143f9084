//! Scripts of a capture replayed at the recorded level, and compared with the record.

use std::collections::HashMap;
use std::path::Path;
use std::thread;

use isobench_comparison::{Failure, Outcome, confined};
use isobench_pgserver::Server;
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_replay::{Expected, Folder};
use isobench_script::{Script, Symbols, parse, sql_statements};
use isobench_trust::open_to_show;
use serde::{Deserialize, Serialize};

use super::execution::{Why, carry_out};
use super::fitting::{Fitted, fit};
use crate::options::EmbeddedOptions;
use crate::servers;

/// The file with the outcome, in the folder of the scripts.
pub const FILE: &str = "check.json";

/// The deviation above which no cost of the scripts stands for the application's.
const MOST: f64 = 0.1;

/// The most transactions that are replayed.
const REPLAYED: u64 = 400;

/// The most sessions.
const SESSIONS: usize = 16;

/// How a replay differs from the record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Checked {
    /// Replayed transactions.
    transactions: u64,
    /// Sessions of the replay.
    sessions: usize,
    /// Transactions that failed other than by a conflict.
    failed: u64,
    /// The message of the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// The share of conflicts in the record, and in the replay.
    conflicts: [f64; 2],
    /// The greatest deviation, from 0.
    deviation: f64,
    /// Where it is.
    worst: String,
    /// True if the record doesn't say how many rows statements found, so that this wasn't compared.
    #[serde(default)]
    without_rows: bool,
    /// How the copy was taken back.
    #[serde(default)]
    fitted: Fitted,
}

impl Checked {
    /// The outcome as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).map_or_else(|_| String::new(), |json| json + "\n")
    }

    /// The outcome of the scripts in a folder, if they were checked.
    pub fn read(folder: &Path) -> Option<Checked> {
        serde_json::from_reader(open_to_show(&folder.join(FILE)).ok()?).ok()
    }

    /// The outcome in words.
    pub fn lines(&self) -> Vec<String> {
        let plural = if self.sessions == 1 { "" } else { "s" };
        let mut lines = self.fitted.lines();
        lines.push(format!(
            "Replayed {} transactions in {} session{plural} at the recorded level: conflicts {:.1} % ({:.1} % recorded).",
            self.transactions,
            self.sessions,
            100.0 * self.conflicts[1],
            100.0 * self.conflicts[0]
        ));
        if let Some(failure) = &self.failure {
            lines.push(format!("{} of them failed, the first one by: {failure}", self.failed));
        }
        lines.push(self.claim());
        lines
    }

    /// What costs of the scripts stand for.
    pub fn claim(&self) -> String {
        let percent = 100.0 * self.deviation;
        if let Some(runs_out) = self.fitted.runs_out() {
            return format!(
                "{runs_out} The scripts deviate from the record by {percent:.0} % ({}).",
                self.worst
            );
        }
        if self.without_rows && self.deviation <= MOST {
            format!(
                "The scripts' conflicts and failures deviate from the record by at most {percent:.0} %. A server's log \
                 doesn't say how many rows statements found, so no cost is claimed for the application."
            )
        } else if self.deviation > MOST {
            format!(
                "The scripts deviate from the record by {percent:.0} % ({}), so no cost is claimed for the application.",
                self.worst
            )
        } else {
            format!("The scripts deviate from the record by at most {percent:.0} %.")
        }
    }

    fn note(&mut self, deviation: f64, at: String) {
        if deviation > self.deviation {
            self.deviation = deviation;
            self.worst = at;
        }
    }
}

/// What a session counted: by script and statement, executions, rows and executions without rows.
#[derive(Debug, Default)]
struct Counted {
    statements: HashMap<(usize, usize), (u64, u64, u64)>,
    transactions: u64,
    conflicts: u64,
    failed: u64,
    failure: Option<String>,
}

/// Replays scripts on an embedded server. Where the copy hasn't what they found any more, it is taken back.
///
/// # Errors
/// The server doesn't start, or the tables can't be made.
pub fn check(folder: &mut Folder, path: &Path, embedded: &EmbeddedOptions) -> Outcome<Checked> {
    let server = servers::start(embedded)?;
    let checked = replay(folder, path, &server);
    let stopped = server.stop().map_err(Failure::setup);
    let checked = checked?;
    stopped.map(|()| checked)
}

fn replay(folder: &mut Folder, path: &Path, server: &Server) -> Outcome<Checked> {
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let mut superuser = Connection::open(&options).map_err(Failure::setup)?;
    confined::make_role(&mut superuser).map_err(Failure::setup)?;
    superuser.close();
    let options = confined::as_role(&options);
    let open = || Connection::open(&options).map_err(Failure::setup);
    let mut connection = open()?;
    make_tables(&mut connection, folder, path)?;
    let mut scripts = Vec::new();
    for script in &folder.expected.scripts {
        let name = path.join(&script.name).display().to_string();
        scripts.push(parse(&name, text(folder, &script.name), &mut Symbols::new()).map_err(Failure::setup)?);
    }
    let fitted = fit(&mut connection, folder, &scripts)?;
    if fitted.statements > 0 {
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").map_err(Failure::setup)?;
        make_tables(&mut connection, folder, path)?;
    }
    connection.close();
    let expected = &folder.expected;
    let order = order(expected, &fitted);
    let sessions = expected.sessions.clamp(1, SESSIONS);
    let counted: Vec<Counted> = thread::scope(|scope| {
        let (order, scripts, open) = (&order, &scripts, &open);
        let work = |session: usize| -> Outcome<Counted> {
            let mut connection = open()?;
            let mut counted = Counted::default();
            if let Some(level) = expected.level {
                let sql =
                    format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {}", level.name());
                connection.execute(&sql).map_err(Failure::setup)?;
            }
            for (number, pass) in order.iter().skip(session).step_by(sessions) {
                let instance = pass % expected.scripts[*number].instances.len().max(1);
                counted.transaction(&mut connection, &scripts[*number], *number, instance);
            }
            connection.close();
            Ok(counted)
        };
        let started: Vec<_> = (0..sessions).map(|session| scope.spawn(move || work(session))).collect();
        let ended = started.into_iter().map(|session| {
            session
                .join()
                .unwrap_or_else(|_| Err(Failure::Incomplete("a session of the check broke off".to_owned())))
        });
        ended.collect::<Outcome<Vec<Counted>>>()
    })?;
    Ok(Checked { fitted, ..compared(expected, &counted, sessions) })
}

/// The text of a file.
fn text<'f>(folder: &'f Folder, wanted: &str) -> &'f str {
    folder.files.iter().find(|(name, _)| name == wanted).map_or("", |(_, text)| text)
}

fn make_tables(connection: &mut Connection, folder: &Folder, path: &Path) -> Outcome {
    let setup = path.join("setup.sql").display().to_string();
    let statements = sql_statements(&setup, text(folder, "setup.sql"))
        .map_err(|error| Failure::setup(format!("--setup: {error}")))?;
    for (line, statement) in statements {
        connection.execute(&statement).map_err(|error| {
            Failure::setup(format!("{setup}:{line}: {error}; --no-check doesn't make the tables"))
        })?;
    }
    Ok(())
}

/// The scripts to be executed, by their weights, one after the other, each with how often it was before;
/// those that use up what they find, once for each instance at most.
fn order(expected: &Expected, fitted: &Fitted) -> Vec<(usize, usize)> {
    let all: u64 = expected.scripts.iter().map(|script| script.count).sum();
    let wanted = all.min(REPLAYED).max(expected.scripts.len() as u64);
    let mut order: Vec<(f64, usize, usize)> = Vec::new();
    for (number, script) in expected.scripts.iter().enumerate() {
        let mut times = (script.count * wanted / all.max(1)).max(1);
        if fitted.left_out.iter().any(|(name, _)| *name == script.name) {
            continue;
        }
        if fitted.once.contains(&script.name) {
            times = times.min(script.instances.len() as u64);
        }
        order
            .extend((0..times).map(|time| {
                ((time as f64 + 0.5) / times as f64, number, usize::try_from(time).unwrap_or(0))
            }));
    }
    order.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    order.into_iter().map(|(_, number, pass)| (number, pass)).collect()
}

impl Counted {
    fn transaction(&mut self, connection: &mut Connection, script: &Script, number: usize, instance: usize) {
        self.transactions += 1;
        let mut count = |statement: usize, rows: u64| {
            let counted = self.statements.entry((number, statement)).or_default();
            counted.0 += 1;
            counted.1 += rows;
            counted.2 += u64::from(rows == 0);
        };
        if let Err(why) = carry_out(connection, script, instance, false, &mut count) {
            match why {
                Why::Conflict => self.conflicts += 1,
                Why::Other(text) | Why::Mistake(text) => {
                    self.failed += 1;
                    self.failure.get_or_insert(format!("{}: {text}", script.name));
                }
            }
            // Outside of a block it is a warning; a lost connection fails again at the next statement.
            let _ = connection.execute("ROLLBACK");
        }
    }
}

fn compared(expected: &Expected, counted: &[Counted], sessions: usize) -> Checked {
    let sum = |of: fn(&Counted) -> u64| counted.iter().map(of).sum::<u64>();
    let transactions = sum(|one| one.transactions);
    let share = |count: u64| count as f64 / transactions.max(1) as f64;
    let failed = sum(|one| one.failed);
    let conflicts = [expected.conflicts, share(sum(|one| one.conflicts))];
    let failure = counted.iter().find_map(|one| one.failure.clone());
    let mut checked = Checked { transactions, sessions, failed, failure, conflicts, ..Checked::default() };
    checked.note(share(failed), "transactions that fail".to_owned());
    checked.note((conflicts[1] - conflicts[0]).abs(), "conflicts".to_owned());
    for (number, script) in expected.scripts.iter().enumerate() {
        for (statement, recorded) in script.rows.iter().enumerate() {
            let Some((mean, none)) = recorded else {
                checked.without_rows = true;
                continue;
            };
            let all = counted.iter().filter_map(|one| one.statements.get(&(number, statement)));
            let (executions, rows, empty) =
                all.fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
            if executions == 0 {
                continue;
            }
            let (rows, empty) = (rows as f64 / executions as f64, empty as f64 / executions as f64);
            let place = format!("statement {} of {}", statement + 1, script.name);
            let apart = (rows - mean).abs() / mean.max(rows).max(1.0);
            // Means of the same rows may differ in their last digits.
            checked.note(if apart < 1e-9 { 0.0 } else { apart }, format!("rows of {place}"));
            checked.note((empty - none).abs(), format!("how often {place} finds no row"));
        }
    }
    checked
}
