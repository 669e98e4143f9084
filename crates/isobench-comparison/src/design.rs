//! What a comparison measures: the workloads, and the other factors whose combinations are the
//! cells.
//!
//! Not here: how it comes from options and a plan's file (`resolve.rs`), and from the servers
//! (`phases.rs`); carrying it out (`commands/compare.rs`, `cell.rs`).

mod announcement;
mod candidates;
mod faults;
mod kept;
pub mod phases;
pub mod resolve;
mod settle;
mod standby;
mod values;
mod vary;
mod work;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_database::Database;
use isobench_isolation::{Allocation, EffectiveLevel, Level};
use isobench_limits::LIMITS;
use isobench_plan::{Background, Plan, Requirement, Selector, Setting};
use isobench_result as report;
use isobench_result::factor::{
    self, BACKGROUND, ENDPOINT, FAULT, SERVER_BIN, SERVER_VERSION, SETTING, STANDBY,
};
use isobench_runner::{
    Backoff, OnError, OnLost, Pacing, Protocol, Restart, RetryPolicy, RunSpec, StopCondition,
};
use isobench_script::{Mix, Prng};
use isobench_workloads::OnConflict;

use crate::conditions::Condition;
use crate::failure::Outcome;
use crate::modes;
use crate::tables::Tables;
use crate::workload::Sources;
use faults::fault_name;

pub use candidates::Candidate;
pub use faults::FaultPlan;
pub use settle::Settling;
pub use standby::{no_serializable, refusal};
pub use values::{event_loop, milliseconds, pacing, protocol, seconds};
pub use vary::{Assignment, KnownSettings, ServerFactors, ServerPlan, SessionPlan};
pub use work::Work;

/// Number of bins in a step of the warm-up.
const WARMUP_BINS: usize = 25;

/// Length of the bins of a course of unknown length, because transactions are counted.
const COUNTED_BIN: Duration = Duration::from_millis(100);

/// A first round that takes longer than this comes after the interleavings.
const LONG_ROUND: Duration = Duration::from_mins(1);

/// A comparison: the workloads, and the other factors whose combinations are the cells.
#[derive(Debug, Clone)]
pub struct Design {
    /// The plan, with all defaults, as the result shows it.
    pub plan: Plan,
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
    /// An endpoint shares sessions out, so that all transactions ask for their level and their schema.
    pub shares_sessions: bool,
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
    /// The time for trying interleavings; `None` if none are tried.
    pub trying: Option<Duration>,
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
    /// The level of its sessions, and of all scripts that have none of their own.
    pub level: Level,
    /// Levels for each script, an index into the plan's allocations; `None`: all have one level.
    pub allocation: Option<usize>,
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
    /// The way by which its clients reach the server, an index into [`ServerFactors::endpoints`]; 0 if there
    /// are none.
    pub endpoint: usize,
    /// What happens to the server, an index into [`Design::faults`].
    pub faults: usize,
    /// What another session does at the same time.
    pub background: Background,
}

impl CellPlan {
    /// Its name for people: the level, the clients, and what varies between cells.
    pub fn name(&self, design: &Design) -> String {
        let again = if self.calibration { ", once more" } else { "" };
        design.names(self).for_people().of_cell(&design.assignment(self)) + again
    }

    /// The name of this cell's files in one round, unique within the plan.
    pub fn file_name(&self, design: &Design, round: u32) -> String {
        let again = if self.calibration { "-again" } else { "" };
        format!("{}{again}-round-{round}", design.names(self).of_file(&design.assignment(self)))
    }
}

impl Design {
    /// The schema of the user's own tables, if the plan works on them.
    pub fn schema(&self) -> Option<&str> {
        self.plan.schema.as_deref()
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

    /// What a cell is, among the factors of results.
    pub fn assignment(&self, cell: &CellPlan) -> factor::Assignment {
        factor::Assignment::of(&self.unmeasured(cell))
    }

    /// The cell of the result document, without what only the server knows.
    fn unmeasured(&self, cell: &CellPlan) -> report::Cell {
        let level = match self.mixed(cell) {
            Some(allocation) => {
                let mix = self.works[cell.work].sources.mix();
                let levels = modes::levels(mix, allocation, |_| EffectiveLevel::Unknown);
                report::CellLevel::mixed(allocation.clone(), levels)
            }
            None => report::CellLevel::new(Some(cell.level), EffectiveLevel::Unknown),
        };
        self.entry(cell, level, BTreeMap::new())
    }

    /// The levels of a cell's scripts, if each has its own.
    pub fn mixed(&self, cell: &CellPlan) -> Option<&Allocation> {
        self.plan.allocations().get(cell.allocation?)
    }

    /// The levels of a cell's scripts.
    pub fn allocation(&self, cell: &CellPlan) -> Allocation {
        self.mixed(cell).cloned().unwrap_or(Allocation::uniform(cell.level))
    }

    /// Lets the transactions of scripts ask for their levels, if those of any cell do; and for the schema of
    /// their tables, if their sessions can't have it.
    ///
    /// # Errors
    /// A script's transactions can't.
    pub fn ask_for_levels(&self, cell: &CellPlan, schema: Option<&str>, mix: &mut Mix) -> Outcome {
        if self.plan.allocations().is_empty() && !self.shares_sessions {
            return Ok(());
        }
        let schema = schema.filter(|_| self.shares_sessions);
        modes::ask(mix, &self.allocation(cell), schema, self.protocol)
    }

    /// True if clients send statements by the simple protocol.
    pub fn sends_simple(&self) -> bool {
        self.protocol == Protocol::Simple
    }

    /// What distinguishes the cells of the plan, and this one. A search has cells of its own.
    fn names(&self, cell: &CellPlan) -> factor::Names {
        let all: Vec<factor::Assignment> =
            self.cells().iter().chain([cell]).map(|cell| self.assignment(cell)).collect();
        factor::Names::of(all.iter())
    }

    /// Returns why a threshold concerns no cell, as far as that is known without a server; `None` if each
    /// concerns one.
    pub fn unmatched_requirement(&self) -> Option<String> {
        let cells: Vec<report::Cell> = self.cells().iter().map(|cell| self.unmeasured(cell)).collect();
        let is_setting = |name: &String| name.starts_with(SETTING);
        let selects_none = |selector: &Selector| {
            !selector.varied.keys().any(is_setting)
                && !cells.iter().any(|cell| factor::selects(cell, selector))
        };
        let required = self.plan.required().iter();
        let mut unmatched = required.filter(|one| one.of.selector.as_ref().is_some_and(selects_none));
        let why = |one: &Requirement| format!("--require \"{one}\": the plan has no such cell");
        self.plan.unmatched_requirement().or_else(|| unmatched.next().map(why))
    }

    /// Returns whether SQL of a recorded application or a copied database is executed.
    pub fn runs_recorded_sql(&self) -> bool {
        self.works.iter().any(|work| work.sources.are_recorded() || work.tables.are_recorded())
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
        let endpoint = self.server_factors.endpoints.get(cell.endpoint);
        varied.extend(endpoint.map(|endpoint| (ENDPOINT.to_owned(), endpoint.clone())));
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

    /// True if another session works along with the clients of any cell.
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

    /// The time that all cells of a round take with their warm-ups, without their tables; `None` if
    /// transactions are counted.
    pub fn time_of_round(&self) -> Option<Duration> {
        let cells = u32::try_from(self.cells().len()).unwrap_or(u32::MAX);
        Some((self.time()? + self.warmup).saturating_mul(cells))
    }

    /// True if interleavings are tried before the first round, and not after it: because that takes long
    /// or nobody knows how long, so that they would be lost with what is interrupted; or because it may
    /// be the only one, after which nothing follows.
    pub fn tries_first(&self) -> bool {
        self.plan.stops_on_broken() || self.time_of_round().is_none_or(|time| time > LONG_ROUND)
    }

    /// All combinations of the factors, in the order of the table.
    pub fn cells(&self) -> Vec<CellPlan> {
        let rates: Vec<Option<f64>> = match self.plan.rates() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let rows: Vec<(Level, Option<usize>, bool)> = self.rows().collect();
        let Some(&(level, allocation, calibration)) = rows.first() else { return Vec::new() };
        let first = CellPlan {
            level,
            allocation,
            clients: 1,
            backoff: RetryPolicy::NEVER.backoff,
            rate: None,
            calibration,
            work: 0,
            server: 0,
            session: 0,
            endpoint: 0,
            faults: 0,
            background: Background::None,
        };
        // The last factor varies fastest.
        let cells = times(vec![first], 0..self.servers.len(), |cell, server| cell.server = server);
        let cells = times(cells, 0..self.sessions.len(), |cell, session| cell.session = session);
        let ways = 0..self.server_factors.endpoints.len().max(1);
        let cells = times(cells, ways, |cell, endpoint| cell.endpoint = endpoint);
        let cells = times(cells, 0..self.faults.len(), |cell, faults| cell.faults = faults);
        let cells = times(cells, self.plan.background(), |cell, work| cell.background = *work);
        let cells = times(cells, self.plan.clients(), |cell, clients| cell.clients = *clients as usize);
        let cells = times(cells, 0..self.works.len(), |cell, work| cell.work = work);
        let cells = times(cells, &self.backoff, |cell, backoff| cell.backoff = *backoff);
        let cells = times(cells, &rates, |cell, rate| cell.rate = *rate);
        let mut cells = times(cells, rows, |cell, row| (cell.level, cell.allocation, cell.calibration) = row);
        cells.retain(|cell| self.works[cell.work].rows.as_ref().is_none_or(|rows| rows.has(cell)));
        cells
    }

    /// The levels, the first one twice if the plan calibrates, and then the allocations.
    fn rows(&self) -> impl Iterator<Item = (Level, Option<usize>, bool)> + '_ {
        let levels = self.plan.levels();
        let again = levels.first().filter(|_| self.plan.calibrates()).map(|&level| (level, None, true));
        let mut plain = levels.iter().map(|&level| (level, None, false));
        let mixed = self.plan.allocations().iter().enumerate();
        let mixed = mixed.map(|(number, allocation)| (allocation.rest.level, Some(number), false));
        plain.next().into_iter().chain(again).chain(plain).chain(mixed)
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
            grace: LIMITS.grace,
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

    /// Values of variables are sent as parameters, not as a part of the text.
    pub fn sends_parameters(&self) -> bool {
        matches!(self.plan.protocol(), "extended" | "prepared")
    }

    /// The seed of all random numbers.
    pub fn seed(&self) -> u64 {
        self.plan.seed.unwrap_or_default()
    }

    fn max_tries(&self) -> Option<NonZeroU32> {
        self.plan.max_tries().and_then(NonZeroU32::new)
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

/// Every cell with every value of a factor.
fn times<T: Clone>(
    cells: Vec<CellPlan>,
    values: impl IntoIterator<Item = T>,
    set: fn(&mut CellPlan, T),
) -> Vec<CellPlan> {
    let values: Vec<T> = values.into_iter().collect();
    let with = |mut cell: CellPlan, value: &T| {
        set(&mut cell, value.clone());
        cell
    };
    cells.into_iter().flat_map(|cell| values.iter().map(move |value| with(cell, value))).collect()
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
