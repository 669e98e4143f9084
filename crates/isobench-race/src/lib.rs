//! Runs commands of an application against each other, statement by statement, and judges every schedule by
//! the serial orders of the same commands.
//!
//! The application stays as it is: its sessions lead through a relay, which passes bytes on unchanged and
//! holds a batch until the schedule lets it pass. Before each schedule the rows are put back.
//!
//! | file | holds |
//! |---|---|
//! | `relay`, `session` | connections, and bytes that are held |
//! | `gate` | which statements may pass, and whose they are |
//! | `statement` | what a text says of itself |
//! | `process` | commands, and whose a connection is |
//! | `serve` | the application that is started |
//! | `stage`, `schedule` | a schedule, and how it is performed |
//! | `ground` | contents of the tables: changes, putting back |
//! | `masks`, `answer` | what says nothing about the order |
//! | `outcome`, `judge`, `verdict` | what came of a schedule, and the verdict on it |
//! | `search`, `report` | the schedules of a level, and what was found |
//!
//! Not here: options, output, copies of databases. It prints nothing, and knows no scripts of isobench's.
//!
//! ```no_run
//! use std::time::Duration;
//! use isobench_race::{Environment, Settings, race};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = isobench_pgwire::Host::unix("/run/postgresql", 5432);
//! let server = isobench_pgwire::ConnectOptions::new(host, "ada", "shop_copy");
//! let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
//! let port = listener.local_addr()?.port().to_string();
//! let settings = Settings {
//!     commands: vec!["psql -c 'UPDATE item SET stock = stock - 1'".to_owned(); 2],
//!     environment: Environment {
//!         set: vec![("PGHOST".to_owned(), "127.0.0.1".to_owned()), ("PGPORT".to_owned(), port)],
//!         unset: Vec::new(),
//!     },
//!     ..Settings::new(server)
//! };
//! let raced = race(&settings, listener, &|| false, &mut |_| {});
//! println!("{} levels", raced.report.levels.len());
//! # Ok(())
//! # }
//! ```

mod answer;
mod error;
mod gate;
mod ground;
mod judge;
mod masks;
mod outcome;
mod process;
mod relay;
mod report;
mod schedule;
mod search;
mod serve;
mod session;
mod stage;
mod statement;
mod verdict;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use isobench_isolation::Level;
use isobench_pgwire::{ConnectOptions, TlsAcceptor};

pub use error::RaceError;
pub use process::Environment;
pub use relay::encrypts;
pub use report::{
    AnswerReport, CommandReport, Count, Difference, Event, Finding, LevelReport, Report, StepReport, Switches,
};
pub use schedule::{MOST_COMMANDS, Schedule, Turn};
pub use serve::{Application, Readiness};
pub use verdict::Verdict;

use crate::gate::Gate;
use crate::ground::Ground;
use crate::judge::{Judge, Learnt, Performer, Settling};
use crate::masks::Contents;
use crate::outcome::Outcome;
use crate::relay::Relay;
use crate::search::{Limits, alone, search};
use crate::serve::Serving;
use crate::stage::Stage;
use crate::statement::in_one_line;

/// The silence after which nothing comes of a command, at first.
const SETTLE: Duration = Duration::from_millis(12);

/// The factor by which it grows.
const LONGER: u32 = 4;

/// The longest such silence.
const LONGEST_SETTLE: Duration = Duration::from_secs(3);

/// The time for which more is waited for after the first run of the commands.
const REST: Duration = Duration::from_secs(1);

/// The same where the application does something at rest: it may look for its work at intervals.
const LONG_REST: Duration = Duration::from_secs(3);

/// The longest time of a schedule, unless the serial orders took longer than a fifth of it.
const PATIENCE: Duration = Duration::from_secs(15);

/// The longest time of a command that runs alone, where nothing can hold it: a test may be compiled first.
const ALONE: Duration = Duration::from_mins(1);

/// The most characters of a late statement that are shown.
const LATE_TEXT: usize = 100;

/// The time in which an application that is ready ends what it does at its start.
const STARTED: Duration = Duration::from_millis(200);

/// The times that rows are put back while statements come late.
const RESTORED: usize = 3;

/// The time after which a clock shows another second.
const SECOND: Duration = Duration::from_millis(1050);

/// What to try.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server, as the commands reach it. User, password and database are the commands' own.
    pub server: ConnectOptions,
    /// The same for isobench's own session, whose role may put rows back.
    pub admin: ConnectOptions,
    /// The commands, lines of shell; two or three.
    pub commands: Vec<String>,
    /// The environment of commands and application, with the relay's address.
    pub environment: Environment,
    /// The levels; none for the application's own and the stronger ones.
    pub levels: Vec<Level>,
    /// The time for the schedules of each level.
    pub budget: Duration,
    /// The only schedule.
    pub schedule: Option<Schedule>,
    /// Tables, and columns of tables, that aren't compared.
    pub ignored: Vec<String>,
    /// The most megabytes of tables.
    pub size_limit: u64,
    /// Conditions that have to hold after each schedule: names and queries.
    pub conditions: Vec<(String, String)>,
    /// The application to start.
    pub application: Option<Application>,
    /// The time for which the application is watched at rest.
    pub watch: Duration,
    /// The silence after which nothing more comes of a command; none for what its first run shows.
    pub settle: Option<Duration>,
    /// Encrypts connections of applications that demand it.
    pub acceptor: Option<TlsAcceptor>,
}

impl Settings {
    /// The usual ones, for a server.
    pub fn new(server: ConnectOptions) -> Self {
        Self {
            admin: server.clone(),
            server,
            commands: Vec::new(),
            environment: Environment::default(),
            levels: Vec::new(),
            budget: Duration::from_mins(1),
            schedule: None,
            ignored: Vec::new(),
            size_limit: 200,
            conditions: Vec::new(),
            application: None,
            watch: Duration::from_secs(1),
            settle: None,
            acceptor: None,
        }
    }
}

/// The findings, and the error that ended the search.
#[derive(Debug)]
pub struct Raced {
    /// The findings.
    pub report: Report,
    /// The reason why there isn't more.
    pub problem: Option<RaceError>,
}

/// Tries the commands against each other at each level. Connections come to `listener`. Whatever happens,
/// what is held passes, processes that were started are ended, and the rows are put back.
pub fn race(
    settings: &Settings,
    listener: TcpListener,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Event),
) -> Raced {
    let mut report = Report::default();
    let problem = match Ground::open(&settings.admin) {
        Ok(mut ground) => {
            let gate = Arc::new(Gate::default());
            let acceptor = settings.acceptor.clone();
            let tried = Relay::start(&gate, listener, settings.server.clone(), acceptor)
                .map_err(|error| RaceError::Server(format!("connections can't be relayed: {error}")))
                .and_then(|relay| {
                    let settle = settings.settle.unwrap_or(SETTLE);
                    let mut theatre = Theatre {
                        settings,
                        gate: &gate,
                        stopped,
                        tell,
                        serving: None,
                        settle,
                        rest: REST,
                        statements: BTreeMap::new(),
                        works_late: false,
                        learnt: None,
                    };
                    let tried = theatre.open(&mut ground, &mut report);
                    // The application ends before its connections do.
                    drop(theatre);
                    drop(relay);
                    tried
                });
            report.notes = gate.lock().notes.iter().cloned().collect();
            // That rows aren't what they were matters most.
            ground.forget_start();
            ground.restore(0).err().or(tried.err())
        }
        Err(error) => Some(error),
    };
    Raced { report, problem }
}

/// Everything but the tables.
struct Theatre<'a> {
    settings: &'a Settings,
    gate: &'a Arc<Gate>,
    stopped: &'a dyn Fn() -> bool,
    tell: &'a mut dyn FnMut(Event),
    serving: Option<Serving>,
    /// The silence after which nothing comes of a command.
    settle: Duration,
    /// The time for which more is waited for after the next first run; zero once that is known.
    rest: Duration,
    /// The most statements of commands in serial orders, and whether some come after the answer.
    statements: BTreeMap<usize, usize>,
    works_late: bool,
    /// What is known from the first level.
    learnt: Option<Learnt>,
}

impl Theatre<'_> {
    fn open(&mut self, ground: &mut Ground, report: &mut Report) -> Result<(), RaceError> {
        report.server = ground.version()?;
        let own = ground.default_level()?.and_then(|name| name.parse().ok()).unwrap_or(Level::ReadCommitted);
        own.name().clone_into(&mut report.own_level);
        let levels = match self.settings.levels.as_slice() {
            [] => Level::ALL.into_iter().filter(|level| *level >= own).collect(),
            levels => levels.to_vec(),
        };
        for (number, level) in levels.into_iter().enumerate() {
            self.serving = None;
            ground.forget_start();
            ground.restore(0)?;
            self.begin(level, own)?;
            if number == 0 {
                self.keep(ground, report)?;
            } else if self.serving.is_some() {
                thread::sleep(STARTED);
                ground.keep_start()?;
            }
            self.level(level, level == own, ground, report)?;
            self.serving = None;
            // Commands that wait for each other do so at every level.
            let never_mix = report
                .levels
                .last()
                .is_some_and(|level| level.tried > 0 && level.count(Verdict::NotInterleaved) == level.tried);
            if never_mix && self.settings.levels.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Sessions begin at this level from now on; the application is restarted for it.
    fn begin(&mut self, level: Level, own: Level) -> Result<(), RaceError> {
        let mut defaults = "-c idle_in_transaction_session_timeout=0".to_owned();
        if level != own {
            let name = level.name().replace(' ', "\\ ");
            defaults = format!("{defaults} -c default_transaction_isolation={name}");
        }
        {
            let mut state = self.gate.lock();
            state.defaults = defaults;
            state.asked.clear();
            // What an application does when it starts belongs to no schedule.
            (state.resting, state.late) = (None, None);
        }
        self.serving = None;
        if let Some(application) = &self.settings.application {
            (self.tell)(Event::Starting);
            self.serving = Some(Serving::start(application, &self.settings.environment, self.stopped)?);
        }
        Ok(())
    }

    /// Keeps the contents, and watches what happens at rest.
    fn keep(&mut self, ground: &mut Ground, report: &mut Report) -> Result<(), RaceError> {
        let mut ignored = self.settings.ignored.clone();
        ground.keep(&ignored, self.settings.size_limit)?;
        if self.serving.is_some() {
            (self.tell)(Event::Watching);
            self.gate.lock().watching = true;
            let end = Instant::now() + self.settings.watch;
            while Instant::now() < end {
                if (self.stopped)() {
                    return Err(RaceError::Interrupted);
                }
                thread::sleep(Duration::from_millis(20));
            }
            let changes = ground.changes()?;
            let mut state = self.gate.lock();
            state.watching = false;
            report.noise = state.noise.len();
            if report.noise > 0 {
                self.rest = LONG_REST;
            }
            report.ignored = changes.iter().map(|change| ground.tables[change.table].name.clone()).collect();
        }
        if !report.ignored.is_empty() {
            ignored.extend(report.ignored.iter().cloned());
            ground.keep(&ignored, self.settings.size_limit)?;
        }
        report.tables = ground.tables.len();
        report.rows = (0..ground.tables.len()).map(|table| ground.base(table).len()).sum();
        Ok(())
    }

    /// Tries one level.
    fn level(
        &mut self,
        level: Level,
        own: bool,
        ground: &mut Ground,
        report: &mut Report,
    ) -> Result<(), RaceError> {
        (self.tell)(Event::Level(level.name().to_owned()));
        let began = Instant::now();
        let stage = Stage {
            gate: Arc::clone(self.gate),
            commands: &self.settings.commands,
            environment: self.settings.environment.clone(),
            stopped: self.stopped,
            patience: ALONE,
            settle: self.settle,
            pauses: BTreeMap::new(),
            statements: self.statements.clone(),
            works_late: self.works_late,
            at_once: false,
            conditions: &self.settings.conditions,
        };
        let mut company =
            Company { stage, ground, by_process: None, fewest: BTreeMap::new(), rest: self.rest };
        let mut judge = Judge::new(&self.settings.commands, &mut company, self.learnt.as_ref())?;
        self.learnt = Some(judge.learnt());
        let longest = judge.serial.iter().map(|(_, outcome)| outcome.took).max().unwrap_or_default();
        company.stage.patience = PATIENCE.max(longest * 5);
        (self.settle, self.rest) = (company.stage.settle, Duration::ZERO);
        (self.statements, self.works_late) = (company.stage.statements.clone(), company.stage.works_late);
        let commands = self.settings.commands.len();
        let statements = alone(&judge, commands).iter().map(Vec::len).collect::<Vec<_>>();
        let described = |(number, (statements, text)): (usize, (&usize, &String))| CommandReport {
            name: schedule::name(number).to_string(),
            command: text.clone(),
            statements: *statements,
        };
        for (command, _) in statements.iter().enumerate().filter(|(_, statements)| **statements == 0) {
            let same = (0..commands).filter(|other| judge.alias(*other) == judge.alias(command));
            let first = same.filter_map(|other| self.statements.get(&other).copied()).max();
            self.gate.note(sends_nothing(command, first.is_some_and(|most| most > 0)));
        }
        if report.commands.is_empty() {
            let all = statements.iter().zip(&self.settings.commands).enumerate();
            report.commands = all.map(described).collect();
        }
        for (command, now) in
            report.commands.iter().zip(&statements).filter(|(first, now)| **now < first.statements)
        {
            self.gate.note(format!(
                "at {} command {} sends {now} statements, and {} at the first level: look whether it still does its \
                 work",
                level.name(),
                command.name,
                command.statements
            ));
        }
        let mut found = LevelReport {
            level: level.name().to_owned(),
            own,
            silent: statements.contains(&0),
            failing: self.failing(&judge),
            serial_seconds: began.elapsed().as_secs_f64(),
            ..LevelReport::default()
        };
        let limits = Limits {
            budget: self.settings.budget,
            only: self.settings.schedule.as_ref(),
            stopped: self.stopped,
        };
        let searched = search(&mut judge, &mut company, &limits, commands, &mut found, self.tell);
        found.asked = self.gate.lock().asked.iter().map(|level| level.name().to_owned()).collect();
        report.levels.push(found);
        searched
    }
}

impl Theatre<'_> {
    /// The commands that fail by an error when they run alone, with their answers: nothing of their work was
    /// tried. A refusal may be meant.
    fn failing(&self, judge: &Judge) -> Vec<String> {
        let (errors, refusals): (Vec<_>, Vec<_>) =
            judge.failing().into_iter().partition(|(_, answer)| answer.is_error());
        for (command, answer) in refusals {
            self.gate.note(format!(
                "command {} is refused when it runs alone: {}; look whether it is what you mean",
                schedule::name(command),
                judge::words_of(answer)
            ));
        }
        let one = |(command, answer): (usize, &answer::Answer)| {
            format!("{} gets {}", schedule::name(command), judge::words_of(answer))
        };
        errors.into_iter().map(one).collect()
    }
}

/// A note on a command that sends no statement, or none after its first run.
fn sends_nothing(command: usize, did_first: bool) -> String {
    let name = schedule::name(command);
    if did_first {
        return format!(
            "command {name} sent statements when it first ran, and none later: if something keeps its result, let \
             it run each time, such as by go test -count=1"
        );
    }
    format!(
        "command {name} sends no statement: look whether it reaches the application, and works through isobench"
    )
}

/// The commands on their stage, with the tables.
struct Company<'a, 'g> {
    stage: Stage<'a>,
    ground: &'g mut Ground,
    /// All sessions so far belong to processes of commands; none before the first one.
    by_process: Option<bool>,
    /// The fewest statements of commands in serial orders of this level that they begin.
    fewest: BTreeMap<usize, usize>,
    /// The time for which more is waited for after a first run.
    rest: Duration,
}

impl Company<'_, '_> {
    /// Puts the rows back. If statements came after all commands had finished, their end is waited for.
    fn restore(&mut self, ahead: i64) -> Result<(), RaceError> {
        for _ in 0..RESTORED {
            match self.ground.restore(ahead) {
                Err(RaceError::NotRestored { .. }) if self.gate_late() => {}
                restored => restored?,
            }
            if !self.gate_late() {
                return Ok(());
            }
            let (late, text) = {
                let mut state = self.stage.gate.lock();
                (state.late.take().unwrap_or_default(), in_one_line(&state.late_text))
            };
            self.settle_longer(late);
            let text: String = text.chars().take(LATE_TEXT).collect();
            self.stage.gate.note(format!(
                "\"{text}\" came after the commands had finished, so a schedule may have been judged too early; \
                 wait longer by --settle"
            ));
            thread::sleep(self.stage.settle);
        }
        self.ground.restore(ahead)
    }

    fn gate_late(&self) -> bool {
        self.stage.gate.lock().late.is_some()
    }
}

impl Performer for Company<'_, '_> {
    fn run(&mut self, schedule: &Schedule, ahead: i64) -> Result<Outcome, RaceError> {
        self.restore(ahead)?;
        self.stage.perform(schedule, self.ground, Duration::ZERO)
    }

    fn run_first(&mut self, schedule: &Schedule) -> Result<Outcome, RaceError> {
        self.restore(0)?;
        self.stage.perform(schedule, self.ground, self.rest)
    }

    fn contents(&self) -> &dyn Contents {
        self.ground
    }

    fn settle_longer(&mut self, pause: Duration) -> bool {
        self.stage.works_late = true;
        // The pause isn't the same each time.
        let longer = (self.stage.settle * LONGER).max(pause * 2).min(LONGEST_SETTLE);
        std::mem::replace(&mut self.stage.settle, longer) < longer
    }

    fn settling(&self) -> Settling {
        Settling { silence: self.stage.settle, works_late: self.stage.works_late }
    }

    fn settle_as(&mut self, before: Settling) {
        (self.stage.settle, self.stage.works_late) = (before.silence, before.works_late);
    }

    fn learn(&mut self, outcome: &Outcome) {
        for (command, pause) in &outcome.pauses {
            let known = self.stage.pauses.entry(*command).or_default();
            *known = (*known).max(*pause);
        }
        for step in &outcome.steps {
            self.stage.statements.entry(step.command).or_default();
        }
        for (command, most) in &mut self.stage.statements {
            *most = (*most).max(outcome.steps.iter().filter(|step| step.command == *command).count());
        }
        let all = outcome.steps.iter().all(|step| step.by_process);
        if let Some(command) = outcome.schedule.0.first().map(|turn| turn.command) {
            let sent = outcome.steps.iter().filter(|step| step.command == command).count();
            let fewest = self.fewest.entry(command).or_insert(sent);
            *fewest = sent.min(*fewest);
        }
        self.by_process = Some(self.by_process.unwrap_or(true) && all);
        self.stage.at_once = self.by_process == Some(true);
    }

    fn fewest(&self, command: usize) -> usize {
        self.fewest.get(&command).copied().unwrap_or_default()
    }

    fn next_second(&mut self, outcome: &Outcome) {
        thread::sleep(SECOND.saturating_sub(outcome.took));
    }
}
