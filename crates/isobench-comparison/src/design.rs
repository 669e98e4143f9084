//! The plan of a comparison: a plan file and the options combined, and checked before anything is
//! started.
//!
//! Not here: carrying it out (`commands/compare.rs`, `cell.rs`).

mod faults;
mod kept;
mod settle;
mod standby;
mod values;
mod vary;
mod work;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_database::{Database, InitOptions};
use isobench_isolation::Level;
use isobench_plan::{
    BACKGROUND, Background, FAULT, Plan, SERVER_BIN, SERVER_VERSION, SETTING, STANDBY, Setting, Vary,
};
use isobench_result as report;
use isobench_runner::{
    Backoff, OnError, OnLost, Pacing, Protocol, Restart, RetryPolicy, RunSpec, StopCondition,
};
use isobench_script::Prng;
use isobench_workloads::OnConflict;

use crate::conditions::Condition;
use crate::failure::{Failure, Outcome};
use crate::setup::Setup;
use crate::tables::Tables;
use crate::workload::Sources;
use faults::{Standbys, fault_name};
use kept::Kept;
use values::{at_least_one, distinct, longest_warmup, not_empty, wrong};
use work::WorkBase;

pub use faults::FaultPlan;
pub use settle::Settling;
pub use standby::{no_serializable, refusal};
pub use values::{event_loop, milliseconds, pacing, protocol, seconds};
pub use vary::{Assignment, KnownSettings, ServerFactors, ServerPlan, SessionPlan};
pub use work::Work;

/// Default of the time limit if there is a precision to reach, in seconds.
const TIME_LIMIT: f64 = 600.0;

/// Number of bins in a step of the warm-up.
const WARMUP_BINS: usize = 25;

/// Length of the bins of a course of unknown length, because transactions are counted.
const COUNTED_BIN: Duration = Duration::from_millis(100);

/// Time allowed for transactions in progress at the end of a cell.
pub const GRACE: Duration = Duration::from_secs(10);

/// A comparison: the workloads, and the other factors whose combinations are the cells.
#[derive(Debug, Clone)]
pub struct Design {
    /// The plan, with all defaults, as the result shows it.
    pub plan: Plan,
    /// The part of it that the user typed. The rest is adapted to what the server supports.
    typed: Plan,
    /// The workloads, without strategies.
    pub workloads: Vec<Sources>,
    /// The strategies that were left out of a workload that doesn't have them, a sentence each.
    left_out: Vec<String>,
    /// The scripts and tables of each workload with each strategy with each value of the parameters.
    pub works: Vec<Work>,
    /// What is varied about servers and sessions.
    pub server_factors: ServerFactors,
    /// The servers; at least one.
    pub servers: Vec<ServerPlan>,
    /// The settings of sessions; at least one collection, which may be empty.
    pub sessions: Vec<SessionPlan>,
    /// What is altered on a named server while such sessions work, by their index.
    pub altered: Vec<Assignment>,
    /// What happens to the server, as a factor; at least one collection, which may be empty.
    pub faults: Vec<FaultPlan>,
    /// The delays after which clients without a session try to get one; `None`: they end.
    reconnect: Option<Backoff>,
    /// Retry policies.
    pub backoff: Vec<Backoff>,
    /// The end of a cell's measured part.
    pub stop: StopCondition,
    /// The shortest slice of cells that take turns; zero: none do.
    pub slice: Duration,
    /// Length of a step of the warm-up; zero: none.
    pub warmup: Duration,
    /// The longest warm-up.
    pub max_warmup: Duration,
    /// The time for further rounds if the planned ones don't settle the answer; `None`: there are none.
    pub settling: Option<Settling>,
    /// The time after which no further round starts.
    pub time_limit: Option<Duration>,
    /// Latency limit.
    pub latency_limit: Option<Duration>,
    /// The user's own conditions.
    pub conditions: Vec<Condition>,
    protocol: Protocol,
    think_time: Option<Duration>,
}

/// One combination of the factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellPlan {
    /// The level.
    pub level: Level,
    /// Number of clients.
    pub clients: usize,
    /// Delay before a retry.
    pub backoff: Backoff,
    /// Transactions per second; `None`: as many as possible.
    pub rate: Option<f64>,
    /// Repeats the first level, to show the difference between equal cells.
    pub calibration: bool,
    /// Its scripts and tables, an index into [`Plan::works`].
    pub work: usize,
    /// Its server, an index into [`Design::servers`].
    pub server: usize,
    /// The settings of its sessions, an index into [`Design::sessions`].
    pub session: usize,
    /// What happens to the server, an index into [`Design::faults`].
    pub faults: usize,
    /// What goes on beside the clients.
    pub background: Background,
}

impl CellPlan {
    /// Its name for people, by what varies between cells.
    pub fn name(&self, design: &Design) -> String {
        let backoff =
            if design.backoff.len() > 1 { format!(", backoff {}", self.backoff) } else { String::new() };
        let rate = self.rate.map_or_else(String::new, |rate| format!(", {rate:.0} per s wanted"));
        let again = if self.calibration { ", once more" } else { "" };
        let strategy =
            design.works[self.work].strategy.as_ref().map_or_else(String::new, |name| format!(", {name}"));
        let varied = design.varied(self).iter().fold(String::new(), |text, (name, value)| {
            format!("{text}, {} {value}", name.strip_prefix(SETTING).unwrap_or(name))
        });
        let plural = if self.clients == 1 { "" } else { "s" };
        let workload =
            design.workload_among_several(self).map_or_else(String::new, |name| format!("{name}, "));
        let clients = self.clients;
        format!("{workload}{}{strategy}, {clients} client{plural}{varied}{backoff}{rate}{again}", self.level)
    }

    /// The name of this cell's files in one round, unique within the plan.
    pub fn file_name(&self, design: &Design, round: u32) -> String {
        let plain = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let backoff = plain(&self.backoff.to_string());
        let rate = self.rate.map_or_else(String::new, |rate| format!("-rate-{rate}"));
        let work = &design.works[self.work];
        let strategy = work.strategy.as_ref().map_or_else(String::new, |name| format!("-{}", plain(name)));
        let varied = design.varied(self).iter().fold(String::new(), |name, (parameter, value)| {
            format!("{name}-{}-{}", plain(parameter), plain(value))
        });
        let workload =
            design.workload_among_several(self).map_or_else(String::new, |name| plain(&name) + "-");
        format!(
            "{workload}{}{}{strategy}{varied}-{}-clients-backoff-{backoff}{rate}-round-{round}",
            self.level.name().replace(' ', "-"),
            if self.calibration { "-again" } else { "" },
            self.clients
        )
    }
}

impl Design {
    /// Combines the options, the plan's file and the defaults of a command, in this order of
    /// precedence, and checks the result. `tables` has the options of pgbench's tables, except for
    /// their scale.
    ///
    /// # Errors
    /// A value is out of range; the message names option or key.
    pub fn resolve(
        options: &Plan,
        file: Option<Plan>,
        defaults: Plan,
        tables: &InitOptions,
    ) -> Outcome<Design> {
        if options.time.is_some() && options.transactions.is_some() {
            return Err(Failure::setup("--time and --transactions exclude each other; give one of them"));
        }
        let given = options.clone().or(file.unwrap_or_default());
        let plan = given.clone().or(defaults).or(Plan::defaults());
        let stop = stop(&plan)?;
        not_empty("levels", plan.levels())?;
        distinct("levels", plan.levels())?;
        distinct("clients", plan.clients())?;
        if plan.clients().contains(&0) {
            return Err(Failure::setup("--clients: 0 clients do nothing; use numbers from 1 up"));
        }
        let backoff = Backoff::list(plan.backoff()).map_err(|error| wrong("backoff", error))?;
        not_empty("backoff", &backoff)?;
        distinct("backoff", &backoff)?;
        let workloads = workloads(&plan)?;
        let protocol = protocol(plan.protocol())?;
        let warmup = seconds("warmup", plan.warmup(), 0.0)?;
        let max_warmup = longest_warmup(warmup, plan.max_warmup)?;
        let think_time = plan.think_time.map(|pause| milliseconds("think-time", pause)).transpose()?;
        distinct("rate", plan.rates())?;
        for rate in plan.rates().iter().map(|rate| Some(*rate)).chain([None]) {
            pacing(rate, plan.think_time)?;
        }
        let latency_limit =
            plan.latency_limit.map(|limit| milliseconds("latency-limit", limit)).transpose()?;
        check_sweep(&plan, stop)?;
        distinct("retry-sqlstate", plan.retried())?;
        let (mut server_factors, vary) = vary::split(plan.vary())?;
        server_factors.standbys = faults::standbys(&plan)?;
        let time = match stop {
            StopCondition::Time(time) | StopCondition::Turn(time) => Some(time),
            StopCondition::Transactions(_) => None,
        };
        let faults = faults::fault_plans(&plan, time)?;
        faults::check(&plan, tables.unlogged)?;
        check_background(&plan)?;
        let reconnect = faults::reconnect(&plan)?;
        let scale = at_least_one("scale", plan.scale())?;
        if given.scale.is_some() && vary.iter().any(|one| one.name == "scale") {
            return Err(wrong("vary", "scale is given by --scale, too; give its values in one place"));
        }
        let tables = InitOptions { scale, ..tables.clone() };
        let (works, mut left_out) = works(&workloads, &plan, &tables, &vary)?;
        let plan = reading(plan, &works, given.levels.is_some(), &mut left_out)?;
        let (scaled, made) = (given.scale.is_some(), !standby::as_made(&tables));
        if works.iter().all(|work| matches!(work.tables, Tables::Checked(_))) && (scaled || made) {
            return Err(not_of_pgbench(&workloads, scaled));
        }
        for work in &works {
            work.sources.check(protocol)?;
            work.sources.leave_level_alone()?;
        }
        at_least_one("jobs", plan.jobs())?;
        at_least_one("rounds", plan.rounds())?;
        let settling = Settling::of(&plan)?;
        let time_limit = plan.time_limit.or(plan.resolve.map(|_| TIME_LIMIT));
        Ok(Design {
            typed: options.clone(),
            workloads,
            left_out,
            works,
            servers: server_factors.servers(),
            sessions: vec![SessionPlan::new()],
            altered: vec![Assignment::new()],
            server_factors,
            faults,
            reconnect,
            stop,
            slice: slice(&plan)?,
            warmup,
            max_warmup,
            time_limit: time_limit.map(|limit| seconds("time-limit", limit, 0.0)).transpose()?,
            settling,
            latency_limit,
            conditions: Condition::list(plan.invariant())?,
            protocol,
            think_time,
            plan: Plan {
                backoff: Some(backoff.iter().map(Backoff::to_string).collect()),
                max_warmup: Some(max_warmup.as_secs_f64()),
                time_limit,
                settle: settling.map(|settling| settling.extra.as_secs_f64()),
                ..plan
            },
            backoff,
        })
    }

    /// Adapts the plan to the server that the options name, or to the choice of embedded programs:
    /// options override the plan's file. `has_standby`: the standby of a named server is named, too. Returns
    /// a description of what was dropped.
    ///
    /// # Errors
    /// The user asked for versions of the embedded server as well as for another server, or for
    /// tables of the user's, which an embedded server doesn't have.
    pub fn choose_server(&mut self, named: bool, embedded: bool, has_standby: bool) -> Outcome<Vec<String>> {
        let mut notes = Vec::new();
        if named {
            faults::for_embedded(&self.plan, has_standby)?;
            self.server_factors.standbys = Standbys::default();
            self.servers = self.server_factors.servers();
        }
        if has_standby && self.plan.readers() == 0 {
            return Err(wrong(
                "standby-server",
                "nobody reads there; say how many clients do, by --readers NUM",
            ));
        }
        if self.schema().is_some() && !named {
            return Err(wrong(
                "schema",
                "names tables of yours, but no server is named that has them, and the embedded one is empty; name it \
                 (-h, -p, -d), or use --setup FILE.sql",
            ));
        }
        let factors = &mut self.server_factors;
        let programs = !factors.versions.is_empty() || !factors.bins.is_empty();
        if programs && (named || embedded) {
            let why = if named {
                "a server is named"
            } else {
                "--server-version or --server-bin chooses another one"
            };
            if self.typed.vary.is_some() {
                return Err(wrong(
                    "vary",
                    format!(
                        "{SERVER_VERSION} and {SERVER_BIN} are for the embedded server, but {why}; leave out one or \
                         the other"
                    ),
                ));
            }
            (factors.versions, factors.bins) = (Vec::new(), Vec::new());
            self.servers = factors.servers();
            if let Some(vary) = &mut self.plan.vary {
                vary.retain(|one| one.name != SERVER_VERSION && one.name != SERVER_BIN);
            }
            notes.push(format!("the plan's versions of the embedded server are left out, because {why}"));
        }
        let settings = self.plan.server_settings.take_if(|settings| named && !settings.is_empty());
        if let Some(settings) = settings {
            let settings: Vec<String> = settings.iter().map(Setting::to_string).collect();
            notes.push(format!(
                "the plan's settings of the embedded server ({}) are left out, because a server is named; set them \
                 there if they matter",
                settings.join(", ")
            ));
        }
        Ok(notes)
    }

    /// Decides which of the settings are the servers' own, and which the sessions', now that one of the
    /// servers is known. Returns true if servers are to be started with settings.
    ///
    /// # Errors
    /// A setting is unknown, can't be changed there, or has a value that the server refuses; or it is
    /// one of all servers' settings, too.
    pub fn place_settings(
        &mut self,
        known: &dyn KnownSettings,
        embedded: Option<&[Setting]>,
        alters: bool,
    ) -> Outcome<bool> {
        let twice = |setting: &&Setting| {
            self.server_factors.settings.iter().any(|one| one.name.eq_ignore_ascii_case(&setting.name))
        };
        if let Some(setting) = embedded.unwrap_or_default().iter().find(twice) {
            return Err(wrong(
                "vary",
                format!(
                    "{SETTING}{0}: all servers have {0}={1} already; leave out one of them",
                    setting.name, setting.value
                ),
            ));
        }
        (self.servers, self.sessions, self.altered) =
            self.server_factors.place(known, embedded.is_some(), alters)?;
        if alters && self.has_faults() {
            return Err(wrong(
                "alter-system",
                "settings of a server that is taken away (--fault) couldn't be put back there; leave out one of them",
            ));
        }
        if alters && !self.alters() {
            return Err(wrong(
                "alter-system",
                "no setting is varied that needs it: --vary setting:NAME=… of a whole server, on a named one",
            ));
        }
        Ok(self.servers.iter().any(|server| !server.settings.is_empty()))
    }

    /// Drops strategies from the plan's file that this server doesn't support. Returns a
    /// description of each, with the reason.
    ///
    /// # Errors
    /// The user asked for one of them, or none is left.
    pub fn fit(&mut self, database: &Database) -> Outcome<Vec<String>> {
        let own_durability = database.product.abilities.synchronous_commit.missing(database);
        if let Some(why) = own_durability.filter(|_| self.has_faults()) {
            return Err(wrong("fault", format!("{}: {why}", database.product.name)));
        }
        let mut left_out = Vec::new();
        let refused = |work: &Work| work.refusal(database);
        for refusal in self.works.iter().filter_map(refused) {
            if !left_out.contains(&refusal) {
                left_out.push(refusal);
            }
        }
        self.works.retain(|work| refused(work).is_none());
        if !left_out.is_empty() && (self.typed.strategies.is_some() || self.works.is_empty()) {
            return Err(wrong("strategies", left_out.join("; ")));
        }
        Ok(left_out.into_iter().map(|refusal| format!("left out: {refusal}")).collect())
    }

    /// Returns warnings about the scripts that bear on the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.left_out.clone();
        for warning in self.works.iter().flat_map(|work| work.sources.warnings()) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        if self.works.iter().any(|work| matches!(work.tables, Tables::Kept(None))) {
            warnings.push(
                "each measurement starts with the data that the one before it left, so a difference between levels may \
                 be one between data; --reset FILE.sql puts them back before each"
                    .to_owned(),
            );
        }
        warnings
    }

    /// Returns the name of a cell's workload, if the plan has several.
    pub fn workload_among_several(&self, cell: &CellPlan) -> Option<String> {
        let several = self.workloads.len() > 1;
        several.then(|| self.workloads[self.works[cell.work].workload].name())
    }

    /// Returns whether a history can be recorded on such a server: the scripts of a workload are
    /// annotated, or rows show who wrote them.
    pub fn is_recorded(&self, database: &Database) -> bool {
        let annotated = self.workloads.iter().any(Sources::is_annotated);
        let paced = self.cells().iter().all(|cell| self.spec(cell).pacing != Pacing::Unpaced);
        let shown = database.product.abilities.shows_writers.missing(database).is_none();
        annotated || shown && !paced && self.plan.observe().shows_rows()
    }

    /// Returns the parameters of a cell that the plan varies, those of its server and of its sessions
    /// included.
    pub fn varied(&self, cell: &CellPlan) -> BTreeMap<String, String> {
        let mut varied = self.works[cell.work].varied.clone();
        let ServerPlan { version, bin, settings, standby, .. } = &self.servers[cell.server];
        varied.extend(version.map(|version| (SERVER_VERSION.to_owned(), version.to_string())));
        varied.extend(bin.as_ref().map(|bin| (SERVER_BIN.to_owned(), bin.display().to_string())));
        let of_sessions = self.sessions[cell.session].iter().map(|setting| (&setting.name, &setting.value));
        let settings = settings.iter().chain(of_sessions);
        let settings = settings.chain(&self.altered[cell.session]);
        varied.extend(settings.map(|(name, value)| (format!("{SETTING}{name}"), value.clone())));
        varied.extend(standby.map(|mode| (STANDBY.to_owned(), mode.to_string())));
        if self.plan.background() != [Background::None] {
            varied.insert(BACKGROUND.to_owned(), cell.background.to_string());
        }
        if self.faults.len() > 1 || !self.faults_of(cell).is_empty() {
            varied.insert(FAULT.to_owned(), fault_name(self.faults_of(cell)));
        }
        varied
    }

    /// What happens to the server of a cell.
    pub fn faults_of(&self, cell: &CellPlan) -> &FaultPlan {
        &self.faults[cell.faults]
    }

    /// True if settings of a named server are altered.
    pub fn alters(&self) -> bool {
        self.altered.iter().any(|settings| !settings.is_empty())
    }

    /// True if something goes on beside the clients of any cell.
    pub fn has_background(&self) -> bool {
        self.plan.background().iter().any(|one| *one != Background::None)
    }

    /// True if clients reach the embedded servers by relays.
    pub fn is_relayed(&self) -> bool {
        faults::are_on_the_way(&self.plan)
    }

    /// True if something happens to the server in any cell.
    pub fn has_faults(&self) -> bool {
        self.faults.iter().any(|plan| !plan.is_empty())
    }

    /// The measured time of a cell; `None` if transactions are counted.
    pub fn time(&self) -> Option<Duration> {
        match self.stop {
            StopCondition::Time(time) | StopCondition::Turn(time) => Some(time),
            StopCondition::Transactions(_) => None,
        }
    }

    /// All combinations of the factors, in the order of the table.
    pub fn cells(&self) -> Vec<CellPlan> {
        let rates: Vec<Option<f64>> = match self.plan.rates() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let mut cells = Vec::new();
        let sessions = (0..self.servers.len())
            .flat_map(|server| (0..self.sessions.len()).map(move |session| (server, session)));
        let places = sessions.flat_map(|(server, session)| {
            (0..self.faults.len()).map(move |faults| (server, session, faults))
        });
        let places = places.flat_map(|(server, session, faults)| {
            self.plan.background().iter().map(move |background| (server, session, faults, *background))
        });
        for (server, session, faults, background) in places {
            for (work, clients) in self.pairs() {
                for &backoff in &self.backoff {
                    for &rate in &rates {
                        let cell = |(level, calibration)| CellPlan {
                            level,
                            clients,
                            backoff,
                            rate,
                            calibration,
                            work,
                            server,
                            session,
                            faults,
                            background,
                        };
                        cells.extend(self.rows().map(cell));
                    }
                }
            }
        }
        cells
    }

    /// The levels, the first one twice if the plan calibrates.
    fn rows(&self) -> impl Iterator<Item = (Level, bool)> + '_ {
        let levels = self.plan.levels();
        let again = levels.first().filter(|_| self.plan.calibrates()).map(|&level| (level, true));
        let mut plain = levels.iter().map(|&level| (level, false));
        plain.next().into_iter().chain(again).chain(plain)
    }

    /// The order in which a round measures the cells: shuffled by the seed, differently in every
    /// round, so that a machine that gets slower or faster favours no level.
    pub fn order(&self, round: u32) -> Vec<usize> {
        self.shuffled(round, self.cells().len())
    }

    /// Returns the numbers below `places`, shuffled by the seed, differently in every round.
    pub fn shuffled(&self, round: u32, places: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..places).collect();
        Prng::seed(self.seed() ^ (u64::from(round) << 32)).shuffle(&mut order);
        order
    }

    /// The runner's settings for a cell.
    pub fn spec(&self, cell: &CellPlan) -> RunSpec {
        let retry =
            RetryPolicy { max_tries: self.max_tries(), backoff: cell.backoff, ..RetryPolicy::UNLIMITED };
        RunSpec {
            clients: cell.clients + self.plan.readers() as usize,
            workers: self.plan.jobs() as usize,
            pacing: match (cell.rate, self.think_time) {
                (Some(rate), _) => Pacing::Rate(rate),
                (None, Some(pause)) => Pacing::ThinkTime(pause),
                (None, None) => Pacing::Unpaced,
            },
            latency_limit: self.latency_limit,
            series: Some(self.bin()),
            retry: match self.works[cell.work].on_conflict() {
                OnConflict::Retries => retry,
                OnConflict::Never => RetryPolicy::NEVER,
                OnConflict::RetriesBySavepoint => RetryPolicy { restart: Restart::Savepoint, ..retry },
            },
            protocol: self.protocol,
            on_error: if self.plan.continues() { OnError::Continue } else { OnError::Abort },
            on_lost: self.reconnect.map_or(OnLost::End, OnLost::Reconnect),
            keeps_attempts: self.has_faults(),
            seed: self.seed(),
            connect_each: self.plan.connects(),
            event_loop: event_loop(self.plan.event_loop()),
            grace: GRACE,
            ..RunSpec::default()
        }
    }

    /// The index of a cell among [`Design::cells`], and its rate if that isn't the plan's.
    pub fn place_of(&self, cell: &CellPlan) -> (usize, Option<f64>) {
        let cells = self.cells();
        if let Some(place) = cells.iter().position(|one| one == cell) {
            return (place, None);
        }
        let place = cells.iter().position(|one| CellPlan { rate: cell.rate, ..*one } == *cell);
        (place.unwrap_or(usize::MAX), cell.rate)
    }

    /// The largest number of clients of any cell.
    pub fn most_clients(&self) -> usize {
        (self.plan.clients().iter().copied().max().unwrap_or(1) + self.plan.readers()) as usize
    }

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.plan.seed.unwrap_or_default()
    }

    fn max_tries(&self) -> Option<NonZeroU32> {
        self.plan.max_tries().and_then(NonZeroU32::new)
    }

    /// Each work with each number of clients; works vary faster.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let of = |&clients: &u32| (0..self.works.len()).map(move |work| (work, clients as usize));
        self.plan.clients().iter().flat_map(of)
    }

    /// Length of the bins of a cell's course: a hundred in the measured time, and enough in a step
    /// of the warm-up to detect a steady rate.
    fn bin(&self) -> Duration {
        let Some(time) = self.time() else { return COUNTED_BIN };
        let time = time.as_secs_f64();
        let warmup = self.warmup.as_secs_f64() / WARMUP_BINS as f64;
        let bin = if warmup > 0.0 { warmup.min(time / 100.0).max(time / 600.0) } else { time / 100.0 };
        Duration::from_secs_f64(bin.max(0.005))
    }

    /// A cell of the result document, without rounds yet.
    pub fn entry(
        &self,
        cell: &CellPlan,
        level: report::CellLevel,
        settings: BTreeMap<String, String>,
    ) -> report::Cell {
        let work = &self.works[cell.work];
        report::Cell {
            server: cell.server,
            settings,
            strategy: work.strategy.clone(),
            varied: self.varied(cell),
            calibration: cell.calibration,
            clients: count(cell.clients),
            ..cell_entry(&self.workloads[work.workload], work.scale, &self.spec(cell), level)
        }
    }

    /// The plan of the result, with the settings that the server was started with.
    pub fn document_plan(&self, server_settings: &[(String, String)]) -> Plan {
        let setting = |(name, value): &(String, String)| Setting { name: name.clone(), value: value.clone() };
        let mut strategies: Vec<String> = Vec::new();
        for name in self.works.iter().filter_map(|work| work.strategy.as_ref()) {
            if !strategies.contains(name) {
                strategies.push(name.clone());
            }
        }
        Plan {
            strategies: (!strategies.is_empty()).then_some(strategies),
            server_settings: Some(server_settings.iter().map(setting).collect()),
            ..self.plan.clone()
        }
    }

    /// The scripts of the result, in full.
    pub fn document_workload(&self) -> report::Workload {
        let mut strategies: Vec<report::PlannedStrategy> = Vec::new();
        let mut scripts: Vec<report::PlannedScript> = Vec::new();
        let mut seen: Vec<(usize, Option<&String>)> = Vec::new();
        for work in &self.works {
            let id = (work.workload, work.strategy.as_ref());
            // Parameters change no script's text that a reader would look for.
            if seen.contains(&id) {
                continue;
            }
            let name =
                if self.workloads.len() > 1 { self.workloads[work.workload].name() } else { String::new() };
            if seen.iter().all(|(workload, _)| *workload != work.workload) {
                scripts.extend(work.sources.planned(&name));
            }
            seen.push(id);
            let Some(planned) = work.planned(&name) else { continue };
            match strategies.iter_mut().find(|known| known.name == planned.name) {
                Some(known) => known.add(planned),
                None => strategies.push(planned),
            }
        }
        report::Workload { scripts, strategies }
    }
}

/// Checks what clients on a standby are to run. A standby runs no serializable transactions, so that level is
/// dropped unless it was asked for.
fn reading(mut plan: Plan, works: &[Work], asked: bool, left_out: &mut Vec<String>) -> Outcome<Plan> {
    if plan.readers() == 0 {
        if !plan.read_scripts().is_empty() {
            return Err(wrong(
                "read-script",
                "nobody runs it; give the number of clients that do (--readers)",
            ));
        }
        return Ok(plan);
    }
    for work in works {
        if work.sources.reading().is_empty() {
            return Err(wrong(
                "readers",
                format!(
                    "workload {} has no script that only reads; give one (--read-script FILE)",
                    work.sources.name()
                ),
            ));
        }
    }
    let why = format!("{} (--readers)", no_serializable(Level::Serializable));
    if plan.levels().contains(&Level::Serializable) {
        if asked || plan.levels() == [Level::Serializable] {
            return Err(wrong("levels", why));
        }
        if let Some(levels) = &mut plan.levels {
            levels.retain(|level| *level != Level::Serializable);
        }
        left_out.push(format!("left out: {why}"));
    }
    if !plan.faults().is_empty() {
        return Err(wrong(
            "readers",
            "the standby on which they read may become the primary; leave out --fault or --readers",
        ));
    }
    if plan.connects() {
        return Err(wrong("readers", "they keep their sessions; leave out --connect"));
    }
    Ok(plan)
}

/// The workloads that a plan names: each a value of the factor, or a mix as the only one.
fn workloads(plan: &Plan) -> Outcome<Vec<Sources>> {
    if plan.mixes() {
        if plan.workload.is_some() {
            return Err(Failure::setup(
                "--workload names workloads to compare, --file and --builtin the scripts of one mix; give one or the \
                 other",
            ));
        }
        let mixed = Sources::mixed(plan.builtins(), plan.files())?;
        return Ok(vec![mixed.with_readers(plan.read_scripts())?]);
    }
    not_empty("workload", plan.workload())?;
    distinct("workload", plan.workload())?;
    let named = |name: &String| Sources::named(name)?.with_readers(plan.read_scripts());
    let workloads: Vec<Sources> = plan.workload().iter().map(named).collect::<Outcome<_>>()?;
    distinct("workload", &workloads.iter().map(Sources::name).collect::<Vec<_>>())?;
    Ok(workloads)
}

/// The works of all workloads, and what was left out of some of them, a sentence each.
fn works(
    workloads: &[Sources],
    plan: &Plan,
    tables: &InitOptions,
    vary: &[Vary],
) -> Outcome<(Vec<Work>, Vec<String>)> {
    distinct("strategies", plan.strategies())?;
    let setup = plan.setup.as_deref().map(|file| Setup::read("setup", file)).transpose()?;
    if setup.is_some() && workloads.iter().all(|sources| sources.checked().is_some()) {
        return Err(Failure::setup(format!(
            "--setup: workload {} makes its own tables; leave out one or the other",
            workloads.first().map_or_else(String::new, Sources::name)
        )));
    }
    let own = workloads.iter().any(Sources::is_own);
    let (mut works, mut left_out) = (Vec::new(), Vec::new());
    for (workload, sources) in workloads.iter().enumerate() {
        // Beside scripts of the user's own, a built-in one keeps its own tables.
        let setup = setup.as_ref().filter(|_| sources.is_own() || !own);
        let kept = Kept::of(plan, sources, tables)?;
        let base = WorkBase { workload, sources, setup, kept: kept.as_ref(), tables };
        let strategies = plan.strategies.as_deref();
        let strategies = strategies.map(|names| strategies_of(workload, workloads, names, &mut left_out));
        works.extend(base.works(strategies.as_deref(), vary)?);
    }
    Ok((works, left_out))
}

/// The strategies of one of several workloads: without those that only others have, if any is left.
fn strategies_of<'a>(
    workload: usize,
    workloads: &[Sources],
    names: &'a [String],
    left_out: &mut Vec<String>,
) -> Vec<&'a str> {
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let sources = &workloads[workload];
    let elsewhere = |name: &str| workloads.iter().any(|other| other.has_strategy(name));
    let (kept, dropped): (Vec<&str>, Vec<&str>) =
        all.iter().partition(|name| sources.has_strategy(name) || !elsewhere(name));
    if kept.is_empty() {
        // The error about the first one says which there are.
        return all;
    }
    left_out.extend(dropped.iter().map(|name| {
        format!("workload {} has no strategy {name}, so it is measured without", sources.name())
    }));
    kept
}

/// The refusal of options of pgbench's tables where every workload has tables of its own.
fn not_of_pgbench(workloads: &[Sources], scaled: bool) -> Failure {
    let options = if scaled { "--scale is" } else { "options such as --fillfactor and --foreign-keys are" };
    let name = workloads.first().map_or_else(String::new, Sources::name);
    Failure::setup(format!(
        "{options} for pgbench's tables, but workload {name} makes its own; name a script that uses them, such as -w \
         tpcb-like, or leave it out (isobench workloads {name} lists the workload's parameters)"
    ))
}

/// The end of a cell's measured part: a time, or a number of transactions of each client.
fn stop(plan: &Plan) -> Outcome<StopCondition> {
    match plan.transactions {
        Some(transactions) => Ok(StopCondition::Transactions(at_least_one("transactions", transactions)?)),
        None => Ok(StopCondition::Time(seconds("time", plan.time.unwrap_or_default(), 0.01)?)),
    }
}

/// The shortest slice.
fn slice(plan: &Plan) -> Outcome<Duration> {
    match plan.slice.unwrap_or_default() {
        0.0 => Ok(Duration::ZERO),
        given => seconds("slice", given, 0.01),
    }
}

/// # Errors
/// What goes on beside the clients is there twice, or wouldn't survive what else the plan wants.
fn check_background(plan: &Plan) -> Outcome {
    not_empty("background", plan.background())?;
    distinct("background", plan.background())?;
    let beside = plan.background().iter().any(|one| *one != Background::None);
    let why = if !plan.faults().is_empty() {
        "what happens to the server (--fault) would end it"
    } else if plan.sweeps() {
        "a search for the highest rate (--sweep) needs a server that does nothing else"
    } else {
        return Ok(());
    };
    if beside { Err(wrong("background", why)) } else { Ok(()) }
}

fn check_sweep(plan: &Plan, stop: StopCondition) -> Outcome {
    let fixed = !plan.rates().is_empty() || plan.think_time.is_some();
    if plan.sweeps() && (plan.latency_limit.is_none() || fixed) {
        return Err(Failure::setup(
            "--sweep searches for the highest rate within a latency limit: give --latency-limit, and neither \
             --rate nor --think-time",
        ));
    }
    if plan.sweeps() && matches!(stop, StopCondition::Transactions(_)) {
        return Err(Failure::setup(
            "--sweep measures rates over a time: give --time instead of --transactions",
        ));
    }
    Ok(())
}

/// A cell of the result document, without rounds yet.
pub fn cell_entry(sources: &Sources, scale: u32, spec: &RunSpec, level: report::CellLevel) -> report::Cell {
    let mut cell = report::Cell::new(sources.name(), level);
    cell.scale = scale;
    cell.clients = count(spec.clients);
    cell.jobs = count(spec.workers);
    spec.protocol.name().clone_into(&mut cell.protocol);
    cell.backoff = spec.retry.backoff.to_string();
    cell.rate = match spec.pacing {
        Pacing::Rate(rate) => Some(rate),
        Pacing::Unpaced | Pacing::ThinkTime(_) => None,
    };
    cell
}

/// Converts a count to the type of the result document.
pub fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
