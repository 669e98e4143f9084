//! The plan of a comparison: what a plan file and the options say together, checked before anything
//! is started.
//!
//! Not here: carrying it out (`commands/compare.rs`, `cell.rs`).

mod standby;
mod values;
mod vary;
mod work;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use isobench_database::{Database, InitOptions};
use isobench_isolation::Level;
use isobench_pgserver::MajorVersion;
use isobench_report as report;
use isobench_runner::{Backoff, OnError, Pacing, Protocol, Restart, RetryPolicy, RunSpec, Stop};
use isobench_script::Prng;
use isobench_workloads::OnConflict;

use crate::failure::{Failure, Outcome};
use crate::plan_text::{PlanOptions, setting};
use crate::setup::Setup;
use crate::workload::{Source, Sources};
use values::{at_least_one, distinct, longest_warmup, parse_all, policies, share, words, wrong};
use vary::{SERVER_VERSION, Vary};
use work::Ground;

pub use standby::{no_serializable, refusal};
pub use values::{milliseconds, pacing, protocol, seconds};
pub use work::Work;

/// With a precision to reach, the time after which no further round begins, in seconds.
const TIME_LIMIT: f64 = 600.0;

/// Into how many bins a step of the warm-up is cut.
const WARMUP_BINS: usize = 25;

/// How long the bins of a course are whose length isn't known, because transactions are counted.
const COUNTED_BIN: Duration = Duration::from_millis(100);

/// How long transactions that are under way may take after the end of a cell.
pub const GRACE: Duration = Duration::from_secs(10);

/// A comparison: one workload, and the factors whose combinations are the cells.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The isolation levels; the first is what the others are compared with.
    pub levels: Vec<Level>,
    /// The scripts without strategies.
    pub sources: Sources,
    /// The scripts and tables of each strategy with each value of the parameters.
    pub works: Vec<Work>,
    /// What parameters the works vary.
    vary: Vec<Vary>,
    /// The versions of the embedded server; empty: whichever there is.
    pub versions: Vec<MajorVersion>,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Worker threads.
    pub jobs: usize,
    /// Scale of the TPC-B-like tables.
    pub scale: u32,
    /// How long a cell is measured.
    pub stop: Stop,
    /// Time before it.
    pub warmup: Duration,
    /// The longest time before it.
    pub max_warmup: Duration,
    /// Repetitions.
    pub rounds: u32,
    /// Whether the first level is measured twice in every round.
    pub calibrate: bool,
    /// How precise the ratios are to be, as a share.
    pub resolve: Option<f64>,
    /// The time after which no further round begins.
    pub time_limit: Option<Duration>,
    /// The most attempts; `None` is unlimited.
    pub max_tries: Option<NonZeroU32>,
    /// Retry policies.
    pub backoff: Vec<Backoff>,
    /// The protocol.
    pub protocol: Protocol,
    /// Transactions per second; empty: as many as possible.
    pub rates: Vec<f64>,
    /// Pause of a client between two transactions.
    pub think_time: Option<Duration>,
    /// Latency limit.
    pub latency_limit: Option<Duration>,
    /// Whether the highest rate within the latency limit is searched for.
    pub sweep: bool,
    /// Seed.
    pub seed: u64,
    /// Refuse a level that the server runs as another one.
    pub strict_levels: bool,
    /// The published experiment that this repeats.
    pub experiment: Option<report::Experiment>,
    /// Settings of the embedded server, from the plan's file.
    pub server_settings: Vec<(String, String)>,
    /// Who names the levels: a level that a server can't run is left out unless the user asked for
    /// it.
    levels_by: By,
    /// Who names the strategies: what a file names and a server can't do is left out.
    strategies_by: By,
    /// Who names the versions: those of a file give way to a server that the options choose.
    versions_by: By,
}

/// Who asks for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Whoever typed the command.
    User,
    /// The plan's file.
    File,
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
    /// The first level once more, to see what equal cells differ by.
    pub calibration: bool,
    /// Its scripts and tables, a place in [`Plan::works`].
    pub work: usize,
    /// Its server, a place in [`Plan::versions`]; 0 if there is one server.
    pub server: usize,
}

impl CellPlan {
    /// Its name for people, by what varies between cells.
    pub fn name(&self, plan: &Plan) -> String {
        let backoff =
            if plan.backoff.len() > 1 { format!(", backoff {}", self.backoff) } else { String::new() };
        let rate = self.rate.map_or_else(String::new, |rate| format!(", {rate:.0} per s wanted"));
        let again = if self.calibration { ", once more" } else { "" };
        let strategy =
            plan.works[self.work].strategy.as_ref().map_or_else(String::new, |name| format!(", {name}"));
        let varied = plan
            .varied(self)
            .iter()
            .fold(String::new(), |text, (name, value)| format!("{text}, {name} {value}"));
        format!("{}{strategy}, {} clients{varied}{backoff}{rate}{again}", self.level, self.clients)
    }

    /// A name for a file of this cell's in one round, without what differs by plan.
    pub fn file_name(&self, plan: &Plan, round: u32) -> String {
        let plain = |text: &str| text.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let backoff = plain(&self.backoff.to_string());
        let rate = self.rate.map_or_else(String::new, |rate| format!("-rate-{rate}"));
        let work = &plan.works[self.work];
        let strategy = work.strategy.as_ref().map_or_else(String::new, |name| format!("-{}", plain(name)));
        let varied = plan.varied(self).iter().fold(String::new(), |name, (parameter, value)| {
            format!("{name}-{}-{}", plain(parameter), plain(value))
        });
        format!(
            "{}{}{strategy}{varied}-{}-clients-backoff-{backoff}{rate}-round-{round}",
            self.level.name().replace(' ', "-"),
            if self.calibration { "-again" } else { "" },
            self.clients
        )
    }
}

impl Plan {
    /// Puts options, plan file and defaults together; the earlier one wins. `tables` says how
    /// pgbench's tables are made, but for their scale.
    ///
    /// # Errors
    /// A value is out of range; the message names option or key.
    pub fn resolve(
        options: &PlanOptions,
        file: Option<PlanOptions>,
        defaults: &PlanOptions,
        tables: &InitOptions,
    ) -> Outcome<Plan> {
        let by = |option: &Option<Vec<String>>| if option.is_some() { By::User } else { By::File };
        let (strategies_by, versions_by) = (by(&options.strategies), by(&options.vary));
        let levels_by = by(&options.levels);
        let given = options.clone().or(file.unwrap_or_default()).or(defaults.clone());
        let stop = stop(options, &given)?;
        let levels =
            parse_all("levels", &given.levels.unwrap_or_else(|| words("rc,rr,ser")), str::parse::<Level>)?;
        distinct("levels", &levels)?;
        let clients = given.clients.unwrap_or_else(|| vec![8]);
        distinct("clients", &clients)?;
        if clients.contains(&0) {
            return Err(Failure::setup("--clients: 0 clients do nothing; use numbers from 1 up"));
        }
        let backoff = given.backoff.unwrap_or_else(|| words("none"));
        let backoff: Vec<String> = backoff.iter().flat_map(|list| policies(list)).collect();
        let backoff = parse_all("backoff", &backoff, str::parse::<Backoff>)?;
        distinct("backoff", &backoff)?;
        let workload = given.workload.unwrap_or_else(|| words("tpcb-like"));
        let sources = Sources::named(&workload, Source::builtin_or_file)?;
        let setup = given.setup.as_deref().map(Setup::read).transpose()?;
        if setup.is_some() && sources.checked().is_some() {
            return Err(Failure::setup(format!(
                "--setup: workload {} makes its own tables; leave out one or the other",
                sources.name()
            )));
        }
        let protocol = protocol(given.protocol.as_deref().unwrap_or("simple"))?;
        let warmup = seconds("warmup", given.warmup.unwrap_or(0.5), 0.0)?;
        let rates = given.rate.unwrap_or_default();
        distinct("rate", &rates)?;
        let think_time = given.think_time.map(|pause| milliseconds("think-time", pause)).transpose()?;
        for rate in rates.iter().map(|rate| Some(*rate)).chain([None]) {
            pacing(rate, given.think_time)?;
        }
        let latency_limit =
            given.latency_limit.map(|limit| milliseconds("latency-limit", limit)).transpose()?;
        let sweep = given.sweep.unwrap_or(false);
        if sweep && (latency_limit.is_none() || !rates.is_empty() || think_time.is_some()) {
            return Err(Failure::setup(
                "--sweep searches for the highest rate within a latency limit: give --latency-limit, and neither --rate nor \
                 --think-time",
            ));
        }
        if sweep && matches!(stop, Stop::Transactions(_)) {
            return Err(Failure::setup(
                "--sweep measures rates over a time: give --time instead of --transactions",
            ));
        }
        if let Some(strategies) = &given.strategies {
            distinct("strategies", strategies)?;
        }
        let (versions, vary) = vary::read(given.vary.as_deref().unwrap_or_default())?;
        let scale = at_least_one("scale", given.scale.unwrap_or(1))?;
        if given.scale.is_some() && vary.iter().any(|one| one.name == "scale") {
            return Err(wrong("vary", "scale is given by --scale, too; give its values in one place"));
        }
        let tables = InitOptions { scale, ..tables.clone() };
        let ground = Ground { sources: &sources, setup: setup.as_ref(), tables: &tables };
        let works = ground.works(given.strategies.as_deref(), &vary)?;
        for work in &works {
            work.sources.check(protocol)?;
            work.sources.leave_level_alone()?;
        }
        let resolve = given.resolve.as_deref().map(|text| share("resolve", text)).transpose()?;
        Ok(Plan {
            levels,
            sources,
            works,
            vary,
            versions,
            clients,
            jobs: at_least_one("jobs", given.jobs.unwrap_or(1))?,
            scale,
            stop,
            warmup,
            max_warmup: longest_warmup(warmup, given.max_warmup)?,
            rounds: at_least_one("rounds", given.rounds.unwrap_or(5))?,
            calibrate: given.calibrate.unwrap_or(false),
            resolve,
            time_limit: given
                .time_limit
                .or(resolve.map(|_| TIME_LIMIT))
                .map(|limit| seconds("time-limit", limit, 0.0))
                .transpose()?,
            max_tries: NonZeroU32::new(given.max_tries.unwrap_or(0)),
            backoff,
            protocol,
            rates,
            think_time,
            latency_limit,
            sweep,
            seed: given.seed.unwrap_or(1),
            strict_levels: given.strict_levels.unwrap_or(false),
            experiment: given.experiment,
            server_settings: parse_all_settings(given.server_settings.as_deref().unwrap_or_default())?,
            levels_by,
            strategies_by,
            versions_by,
        })
    }

    /// Adapts the plan to the server that the options name, or the programs of the embedded one
    /// that they choose: what the plan's file says gives way. Returns what gives way, in words.
    ///
    /// # Errors
    /// The user asked for versions of the embedded server as well as for another server.
    pub fn choose_server(&mut self, named: bool, embedded: bool) -> Outcome<Vec<String>> {
        let mut notes = Vec::new();
        if !self.versions.is_empty() && (named || embedded) {
            let why = if named {
                "a server is named"
            } else {
                "--server-version or --server-bin chooses another one"
            };
            if self.versions_by == By::User {
                return Err(wrong(
                    "vary",
                    format!(
                        "{SERVER_VERSION} is for the embedded server, but {why}; leave out one or the other"
                    ),
                ));
            }
            self.versions.clear();
            notes.push(format!("the plan's versions of the embedded server are left out, because {why}"));
        }
        if named && !self.server_settings.is_empty() {
            let settings: Vec<String> =
                self.server_settings.drain(..).map(|(name, value)| format!("{name}={value}")).collect();
            notes.push(format!(
                "the plan's settings of the embedded server ({}) are left out, because a server is named; set them there \
                 if they matter",
                settings.join(", ")
            ));
        }
        Ok(notes)
    }

    /// Leaves out the strategies that this server can't do, if the plan's file and not the user
    /// named them. Returns what was left out, and why.
    ///
    /// # Errors
    /// The user named one of them, or nothing is left.
    pub fn fit(&mut self, database: &Database) -> Outcome<Vec<String>> {
        let mut left_out = Vec::new();
        let refused = |work: &Work| work.refusal(database);
        for refusal in self.works.iter().filter_map(refused) {
            if !left_out.contains(&refusal) {
                left_out.push(refusal);
            }
        }
        self.works.retain(|work| refused(work).is_none());
        if !left_out.is_empty() && (self.strategies_by == By::User || self.works.is_empty()) {
            return Err(wrong("strategies", left_out.join("; ")));
        }
        Ok(left_out.into_iter().map(|refusal| format!("left out: {refusal}")).collect())
    }

    /// Things that a user should know of the scripts before believing the figures.
    ///
    /// # Errors
    /// A script has an error.
    pub fn warnings(&self) -> Outcome<Vec<String>> {
        let mut warnings = Vec::new();
        for work in &self.works {
            let found = work.sources.warnings()?;
            warnings
                .extend(found.into_iter().filter(|warning| !warnings.contains(warning)).collect::<Vec<_>>());
        }
        Ok(warnings)
    }

    /// What the plan varies of a cell: parameters, and the server's version.
    pub fn varied(&self, cell: &CellPlan) -> BTreeMap<String, String> {
        let mut varied = self.works[cell.work].varied.clone();
        if let Some(version) = self.versions.get(cell.server) {
            varied.insert(SERVER_VERSION.to_owned(), version.to_string());
        }
        varied
    }

    /// How long a cell is measured, if it isn't transactions that are counted.
    pub fn time(&self) -> Option<Duration> {
        match self.stop {
            Stop::Time(time) => Some(time),
            Stop::Transactions(_) => None,
        }
    }

    /// All combinations of the factors, in the order of the table.
    pub fn cells(&self) -> Vec<CellPlan> {
        let rates: Vec<Option<f64>> = match self.rates.as_slice() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let mut cells = Vec::new();
        for server in 0..self.versions.len().max(1) {
            for (work, &clients) in pairs(self.works.len(), &self.clients) {
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
                        };
                        cells.extend(self.rows().map(cell));
                    }
                }
            }
        }
        cells
    }

    /// The levels, the first one twice if it is to be calibrated.
    fn rows(&self) -> impl Iterator<Item = (Level, bool)> + '_ {
        let again = self.levels.first().filter(|_| self.calibrate).map(|&level| (level, true));
        let mut plain = self.levels.iter().map(|&level| (level, false));
        plain.next().into_iter().chain(again).chain(plain)
    }

    /// The order in which a round measures the cells: shuffled by the seed, differently in every
    /// round, so that a machine that gets slower or faster favours no level.
    pub fn order(&self, round: u32) -> Vec<usize> {
        self.shuffled(round, self.cells().len())
    }

    /// So many places, shuffled by the seed, differently in every round.
    pub fn shuffled(&self, round: u32, places: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..places).collect();
        let mut rng = Prng::seed(self.seed ^ (u64::from(round) << 32));
        for last in (1..order.len()).rev() {
            let other = rng.int_between(0, i64::try_from(last).unwrap_or(i64::MAX));
            order.swap(last, usize::try_from(other).unwrap_or(0));
        }
        order
    }

    /// The runner's settings for a cell.
    pub fn spec(&self, cell: &CellPlan) -> RunSpec {
        let retry =
            RetryPolicy { max_tries: self.max_tries, backoff: cell.backoff, ..RetryPolicy::UNLIMITED };
        RunSpec {
            clients: cell.clients,
            workers: self.jobs,
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
            on_error: OnError::Abort,
            seed: self.seed,
            grace: GRACE,
            ..RunSpec::default()
        }
    }

    /// How long the bins of a cell's course are: a hundred in the measured time, and enough in a
    /// step of the warm-up to see whether it is steady.
    fn bin(&self) -> Duration {
        let Some(time) = self.time() else { return COUNTED_BIN };
        let time = time.as_secs_f64();
        let warmup = self.warmup.as_secs_f64() / WARMUP_BINS as f64;
        let bin = if warmup > 0.0 { warmup.min(time / 100.0).max(time / 600.0) } else { time / 100.0 };
        Duration::from_secs_f64(bin.max(0.005))
    }

    /// A cell of the result document, without rounds yet.
    pub fn entry(&self, cell: &CellPlan, level: report::CellLevel) -> report::Cell {
        let work = &self.works[cell.work];
        report::Cell {
            strategy: work.strategy.clone(),
            varied: self.varied(cell),
            calibration: cell.calibration,
            ..cell_entry(&self.sources, work.scale, &self.spec(cell), level)
        }
    }

    /// What the result document says of the plan.
    ///
    /// # Errors
    /// A script has an error.
    pub fn document(&self, server_settings: &[(String, String)]) -> Outcome<report::Plan> {
        let mut strategies: Vec<report::PlannedStrategy> = Vec::new();
        for work in &self.works {
            let planned = work.planned()?;
            strategies.extend(planned.filter(|one| strategies.iter().all(|known| known.name != one.name)));
        }
        let versions = (!self.versions.is_empty()).then(|| report::VariedParameter {
            name: SERVER_VERSION.to_owned(),
            values: self.versions.iter().map(ToString::to_string).collect(),
        });
        let vary = self
            .vary
            .iter()
            .map(|one| report::VariedParameter { name: one.name.clone(), values: one.values.clone() });
        Ok(report::Plan {
            levels: self.levels.clone(),
            workload: self.works.first().map_or_else(Vec::new, |work| work.sources.planned()),
            strategies,
            vary: vary.chain(versions).collect(),
            clients: self.clients.iter().map(|&clients| count(clients)).collect(),
            jobs: count(self.jobs),
            scale: self.scale,
            time_s: self.time().map(|time| time.as_secs_f64()),
            transactions: match self.stop {
                Stop::Transactions(transactions) => Some(transactions),
                Stop::Time(_) => None,
            },
            warmup_s: self.warmup.as_secs_f64(),
            rounds: self.rounds,
            max_tries: self.max_tries.map(NonZeroU32::get),
            backoff: self.backoff.iter().map(Backoff::to_string).collect(),
            protocol: self.protocol.name().to_owned(),
            seed: Some(self.seed),
            strict_levels: self.strict_levels,
            rates: self.rates.clone(),
            latency_limit_ms: self.latency_limit.map(|limit| limit.as_secs_f64() * 1e3),
            connect_each: false,
            think_time_ms: self.think_time.map(|pause| pause.as_secs_f64() * 1e3),
            max_warmup_s: self.max_warmup.as_secs_f64(),
            calibrate: self.calibrate,
            resolve: self.resolve,
            time_limit_s: self.time_limit.map(|limit| limit.as_secs_f64()),
            sweep: self.sweep,
            server_settings: server_settings.iter().cloned().collect::<BTreeMap<_, _>>(),
            ..report::Plan::default()
        })
    }
}

/// Each work with each number of clients; strategies vary faster.
fn pairs(works: usize, clients: &[usize]) -> impl Iterator<Item = (usize, &usize)> {
    clients.iter().flat_map(move |clients| (0..works).map(move |work| (work, clients)))
}

/// How long a cell is measured: a time, or transactions of each client.
fn stop(options: &PlanOptions, given: &PlanOptions) -> Outcome<Stop> {
    if options.time.is_some() && options.transactions.is_some() {
        return Err(Failure::setup("--time and --transactions exclude each other; give one of them"));
    }
    match given.transactions {
        Some(transactions) => Ok(Stop::Transactions(at_least_one("transactions", transactions)?)),
        None => Ok(Stop::Time(seconds("time", given.time.unwrap_or(2.5), 0.01)?)),
    }
}

/// Settings of the server, as a plan's file has them.
fn parse_all_settings(texts: &[String]) -> Outcome<Vec<(String, String)>> {
    texts.iter().map(|text| setting(text).map_err(|error| wrong("server-settings", error))).collect()
}

/// Pacing as the result document has it: transactions per second, and the pause between two in ms.
pub fn pacing_figures(pacing: Pacing) -> (Option<f64>, Option<f64>) {
    match pacing {
        Pacing::Unpaced => (None, None),
        Pacing::Rate(rate) => (Some(rate), None),
        Pacing::ThinkTime(pause) => (None, Some(pause.as_secs_f64() * 1e3)),
    }
}

/// A cell of the result document, without rounds yet.
pub fn cell_entry(sources: &Sources, scale: u32, spec: &RunSpec, level: report::CellLevel) -> report::Cell {
    let mut cell = report::Cell::new(sources.name(), level);
    cell.scale = scale;
    cell.clients = count(spec.clients);
    cell.jobs = count(spec.workers);
    spec.protocol.name().clone_into(&mut cell.protocol);
    cell.backoff = spec.retry.backoff.to_string();
    cell.rate = pacing_figures(spec.pacing).0;
    cell
}

/// A count as the result document has it.
pub fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::plan_text::{Size, read};

    fn resolve(options: &PlanOptions) -> Outcome<Plan> {
        Plan::resolve(options, None, &PlanOptions::default(), &InitOptions::default())
    }

    /// What options and the plan's file say, with these defaults.
    fn of_file(options: &PlanOptions, path: &Path, defaults: &PlanOptions) -> Outcome<Plan> {
        Plan::resolve(options, Some(read(path, Size::Quick)?), defaults, &InitOptions::default())
    }

    fn message<T: std::fmt::Debug>(outcome: Outcome<T>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_three_levels_and_eight_clients() {
        let plan = resolve(&PlanOptions::default()).unwrap();
        assert_eq!(plan.levels, [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable]);
        assert_eq!(plan.cells().len(), 3);
        assert_eq!((plan.clients.as_slice(), plan.scale, plan.rounds), (&[8_usize][..], 1, 5));
        assert_eq!(plan.max_tries, None);
        // The promise: under a minute, with room for resetting the tables.
        let measured = (plan.time().unwrap() + plan.warmup) * plan.rounds * 3;
        assert!(measured <= Duration::from_secs(48), "{measured:?}");
    }

    #[test]
    fn factors_multiply_and_levels_vary_fastest() {
        let plan = resolve(&PlanOptions {
            levels: Some(words("rc,ser")),
            clients: Some(vec![1, 4]),
            backoff: Some(vec!["none".to_owned(), "exponential:base=1ms,max=9ms".to_owned()]),
            ..PlanOptions::default()
        })
        .unwrap();
        let cells = plan.cells();
        assert_eq!(cells.len(), 8);
        assert_eq!(cells[0].level, Level::ReadCommitted);
        assert_eq!(cells[1].level, Level::Serializable);
        assert_eq!(cells[1].clients, 1);
        assert_eq!(cells[4].clients, 4);
    }

    #[test]
    fn strategies_and_parameters_are_factors() {
        let plan = resolve(&PlanOptions {
            levels: Some(words("rc,ser")),
            strategies: Some(words("retry,single-statement,for-update")),
            vary: Some(vec!["foreign-keys=off,on".to_owned(), "script-scale=1".to_owned()]),
            ..PlanOptions::default()
        })
        .unwrap();
        let cells = plan.cells();
        assert_eq!(cells.len(), 12);
        let told = |cell: &CellPlan| {
            let work = &plan.works[cell.work];
            (cell.level.short(), work.strategy.clone().unwrap(), plan.varied(cell)["foreign-keys"].clone())
        };
        assert_eq!(told(&cells[0]), ("rc", "retry".to_owned(), "off".to_owned()));
        assert_eq!(told(&cells[3]), ("ser", "single-statement".to_owned(), "off".to_owned()));
        assert_eq!(told(&cells[11]), ("ser", "for-update".to_owned(), "on".to_owned()));
        let document = plan.document(&[]).unwrap();
        let trips: Vec<(u32, u32)> =
            document.strategies.iter().map(|one| (one.round_trips_least, one.round_trips_most)).collect();
        assert_eq!(trips[..2], [(7, 7), (1, 1)]);
        assert_eq!(document.vary[0].values, ["off", "on"]);
        // Every cell's files have names of their own.
        let mut names: Vec<String> = cells.iter().map(|cell| cell.file_name(&plan, 1)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 12);
    }

    #[test]
    fn a_checked_workload_has_its_variants_as_strategies_and_parameters_of_its_own() {
        let plan = resolve(&PlanOptions {
            workload: Some(words("write-skew:shifts=5")),
            strategies: Some(words("retry,for-update,materialized-conflict")),
            vary: Some(vec!["doctors=2,3".to_owned()]),
            ..PlanOptions::default()
        })
        .unwrap();
        let names: Vec<String> = plan.works.iter().map(|work| work.sources.name()).collect();
        assert_eq!(names[1], "write-skew+for-update:shifts=5");
        assert_eq!(names[5], "write-skew+materialized-conflict:shifts=5,doctors=3");
        assert_eq!(plan.sources.name(), "write-skew:shifts=5");
        let unknown = |options| message(resolve(&options));
        let wrong = unknown(PlanOptions {
            workload: Some(words("write-skew+for-update")),
            strategies: Some(words("retry")),
            ..PlanOptions::default()
        });
        assert!(wrong.contains("name it among the strategies"), "{wrong}");
        let wrong = unknown(PlanOptions {
            workload: Some(words("registers")),
            vary: Some(words("doors=1")),
            ..PlanOptions::default()
        });
        assert!(wrong.contains("doors") && wrong.contains("keys"), "{wrong}");
    }

    #[test]
    fn what_a_server_cannot_do_is_refused_or_left_out() {
        let strategies = || Some(words("retry,savepoint"));
        let postgresql = Database::from_version_text("PostgreSQL 18.3 on x");
        let mut asked = resolve(&PlanOptions { strategies: strategies(), ..PlanOptions::default() }).unwrap();
        let message = asked.fit(&postgresql).unwrap_err().to_string();
        assert!(message.starts_with("--strategies: ") && message.contains("savepoint"), "{message}");
        let file = PlanOptions { strategies: strategies(), ..PlanOptions::default() };
        let none = PlanOptions::default();
        let mut planned = Plan::resolve(&none, Some(file), &none, &InitOptions::default()).unwrap();
        let left_out = planned.fit(&postgresql).unwrap();
        assert_eq!((left_out.len(), planned.works.len(), planned.cells().len()), (1, 1, 3));
    }

    #[test]
    fn versions_of_the_server_give_way_to_a_server_that_is_chosen() {
        let vary = PlanOptions { vary: Some(words("server-version=14")), ..PlanOptions::default() };
        let none = PlanOptions::default();
        let mut asked = resolve(&vary).unwrap();
        assert_eq!(asked.choose_server(false, false).unwrap(), [""; 0]);
        assert!(asked.choose_server(true, false).is_err());
        let mut planned = Plan::resolve(&none, Some(vary), &none, &InitOptions::default()).unwrap();
        assert_eq!(planned.varied(&planned.cells()[0])["server-version"], "14");
        assert_eq!(planned.choose_server(true, false).unwrap().len(), 1);
        assert!(planned.versions.is_empty() && planned.varied(&planned.cells()[0]).is_empty());
    }

    #[test]
    fn a_list_of_policies_is_split_between_them_only() {
        assert_eq!(policies("none,fixed:5ms"), ["none", "fixed:5ms"]);
        let list = "exponential:base=1ms,factor=2,none,exponential,fixed:1s";
        assert_eq!(policies(list), ["exponential:base=1ms,factor=2", "none", "exponential", "fixed:1s"]);
        assert_eq!(policies("exponential:base=1ms,exponential:base=2ms,max=9ms").len(), 2);
    }

    #[test]
    fn every_round_has_every_cell_in_an_order_of_its_own() {
        let plan = resolve(&PlanOptions { clients: Some(vec![1, 2, 3]), ..PlanOptions::default() }).unwrap();
        let mut orders: Vec<Vec<usize>> = (1..=5).map(|round| plan.order(round)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..9).collect::<Vec<_>>());
        }
        assert_eq!(orders[0], plan.order(1), "the seed decides");
        orders.dedup();
        assert!(orders.len() > 1);
    }

    #[test]
    fn a_wrong_value_names_its_option() {
        for (options, option) in [
            (PlanOptions { levels: Some(words("snapshot")), ..PlanOptions::default() }, "--levels"),
            (PlanOptions { levels: Some(words("rc,rc")), ..PlanOptions::default() }, "--levels"),
            (PlanOptions { clients: Some(vec![0]), ..PlanOptions::default() }, "--clients"),
            (PlanOptions { time: Some(f64::NAN), ..PlanOptions::default() }, "--time"),
            (PlanOptions { warmup: Some(-1.0), ..PlanOptions::default() }, "--warmup"),
            (PlanOptions { scale: Some(0), ..PlanOptions::default() }, "--scale"),
            (PlanOptions { backoff: Some(words("sometimes")), ..PlanOptions::default() }, "--backoff"),
            (PlanOptions { protocol: Some("fast".to_owned()), ..PlanOptions::default() }, "--protocol"),
            (PlanOptions { rate: Some(vec![0.0]), ..PlanOptions::default() }, "--rate"),
            (PlanOptions { rate: Some(vec![5.0, 5.0]), ..PlanOptions::default() }, "--rate"),
            (PlanOptions { resolve: Some("0%".to_owned()), ..PlanOptions::default() }, "--resolve"),
            (PlanOptions { resolve: Some("two".to_owned()), ..PlanOptions::default() }, "--resolve"),
            (PlanOptions { time_limit: Some(-1.0), ..PlanOptions::default() }, "--time-limit"),
            (PlanOptions { max_warmup: Some(0.1), ..PlanOptions::default() }, "--max-warmup"),
            (PlanOptions { sweep: Some(true), ..PlanOptions::default() }, "--sweep"),
            (
                PlanOptions { strategies: Some(words("retry,retry")), ..PlanOptions::default() },
                "--strategies",
            ),
            (PlanOptions { strategies: Some(words("hope")), ..PlanOptions::default() }, "--strategies"),
            (PlanOptions { vary: Some(words("color=red")), ..PlanOptions::default() }, "--vary"),
            (PlanOptions { vary: Some(words("foreign-keys=maybe")), ..PlanOptions::default() }, "--vary"),
            (PlanOptions { vary: Some(words("scale=0")), ..PlanOptions::default() }, "--vary"),
            (
                PlanOptions { vary: Some(words("scale=2")), scale: Some(1), ..PlanOptions::default() },
                "--vary",
            ),
            (PlanOptions { transactions: Some(0), ..PlanOptions::default() }, "--transactions"),
            (PlanOptions { transactions: Some(1), time: Some(1.0), ..PlanOptions::default() }, "--time"),
        ] {
            let message = message(resolve(&options));
            assert!(message.starts_with(option), "{message}");
        }
    }

    #[test]
    fn a_plan_file_has_the_options_names_and_options_win() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        fs::write(&path, "levels = [\"rc\", \"ser\"]\nclients = [4]\nmax-tries = 3\nscale = 2\n").unwrap();
        let options = PlanOptions { scale: Some(7), ..PlanOptions::default() };
        let plan = of_file(&options, &path, &PlanOptions::default()).unwrap();
        assert_eq!((plan.clients.as_slice(), plan.scale), (&[4_usize][..], 7));
        assert_eq!(plan.max_tries, NonZeroU32::new(3));
        // What the file says wins over other defaults, as audit has them.
        let defaults = PlanOptions { clients: Some(vec![16]), rounds: Some(1), ..PlanOptions::default() };
        let plan = of_file(&options, &path, &defaults).unwrap();
        assert_eq!((plan.clients.as_slice(), plan.rounds), (&[4_usize][..], 1));
        fs::write(&path, "level = [\"rc\"]\n").unwrap();
        let unknown = message(of_file(&PlanOptions::default(), &path, &PlanOptions::default()));
        assert!(unknown.contains("unknown field `level`") && unknown.contains("levels"), "{unknown}");
    }

    #[test]
    fn files_in_a_plan_are_relative_to_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.sql"), "SELECT 1;\n").unwrap();
        let path = folder.path().join("plan.toml");
        fs::write(&path, "workload = [\"mine.sql@3\", \"select-only\"]\n").unwrap();
        let plan = of_file(&PlanOptions::default(), &path, &PlanOptions::default()).unwrap();
        assert!(plan.sources.name().ends_with("mine.sql@3+select-only@1"), "{}", plan.sources.name());
    }
}
