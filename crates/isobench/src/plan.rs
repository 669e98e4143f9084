//! The plan of a comparison: what a plan file and the options say together, checked before anything is started.
//!
//! Not here: carrying it out (`commands/compare.rs`, `cell.rs`).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use isobench_database::InitOptions;
use isobench_isolation::Level;
use isobench_report as report;
use isobench_runner::{Backoff, OnError, Pacing, Protocol, RetryPolicy, RunSpec};
use isobench_script::Prng;

use crate::failure::{Failure, Outcome};
use crate::options::PlanOptions;
use crate::setup::Setup;
use crate::tables::Tables;
use crate::workload::{Source, Sources};

/// With a precision to reach, the time after which no further round begins, in seconds.
const TIME_LIMIT: f64 = 600.0;

/// Into how many bins a step of the warm-up is cut.
const WARMUP_BINS: usize = 25;

/// How long transactions that are under way may take after the end of a cell.
pub const GRACE: Duration = Duration::from_secs(10);

/// A comparison: one workload, and the factors whose combinations are the cells.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The isolation levels; the first is what the others are compared with.
    pub levels: Vec<Level>,
    /// The scripts.
    pub sources: Sources,
    /// SQL that makes the tables of a workload of the user's own.
    pub setup: Option<Setup>,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Worker threads.
    pub jobs: usize,
    /// Scale of the TPC-B-like tables.
    pub scale: u32,
    /// Measured time of a cell.
    pub time: Duration,
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
}

impl CellPlan {
    /// A name for a file of this cell's in one round, without what differs by plan.
    pub fn file_name(&self, round: u32) -> String {
        let backoff = self.backoff.to_string().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let rate = self.rate.map_or_else(String::new, |rate| format!("-rate-{rate}"));
        format!(
            "{}{}-{}-clients-backoff-{backoff}{rate}-round-{round}",
            self.level.name().replace(' ', "-"),
            if self.calibration { "-again" } else { "" },
            self.clients
        )
    }
}

impl Plan {
    /// The tables that the scripts work on.
    pub fn tables(&self, pgbench: InitOptions) -> Tables {
        match (self.sources.checked(), &self.setup) {
            (Some(chosen), _) => Tables::Checked(chosen.clone()),
            (None, Some(setup)) => Tables::Own(setup.clone()),
            (None, None) => Tables::Pgbench(pgbench),
        }
    }

    /// Puts options, plan file and defaults together; the earlier one wins.
    ///
    /// # Errors
    /// A file that can't be read, an unknown key, or a value out of range; the message names option or key.
    pub fn resolve(options: &PlanOptions, file: Option<&Path>, defaults: &PlanOptions) -> Outcome<Plan> {
        let given = match file {
            Some(path) => options.clone().or(read(path)?),
            None => options.clone(),
        };
        let given = given.or(defaults.clone());
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
        sources.check(protocol)?;
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
        let resolve = given.resolve.as_deref().map(|text| share("resolve", text)).transpose()?;
        Ok(Plan {
            levels,
            sources,
            setup,
            clients,
            jobs: at_least_one("jobs", given.jobs.unwrap_or(1))?,
            scale: at_least_one("scale", given.scale.unwrap_or(1))?,
            time: seconds("time", given.time.unwrap_or(2.5), 0.01)?,
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
        })
    }

    /// All combinations of the factors, in the order of the table.
    pub fn cells(&self) -> Vec<CellPlan> {
        let rates: Vec<Option<f64>> = match self.rates.as_slice() {
            [] => vec![None],
            rates => rates.iter().copied().map(Some).collect(),
        };
        let mut cells = Vec::new();
        for &clients in &self.clients {
            for &backoff in &self.backoff {
                for &rate in &rates {
                    let cell = |(level, calibration)| CellPlan { level, clients, backoff, rate, calibration };
                    cells.extend(self.rows().map(cell));
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

    /// The order in which a round measures the cells: shuffled by the seed, differently in every round, so that a machine
    /// that gets slower or faster favours no level.
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
            retry: RetryPolicy { max_tries: self.max_tries, backoff: cell.backoff },
            protocol: self.protocol,
            on_error: OnError::Abort,
            seed: self.seed,
            grace: GRACE,
            ..RunSpec::default()
        }
    }

    /// How long the bins of a cell's course are: a hundred in the measured time, and enough in a step of the warm-up to see
    /// whether it is steady.
    fn bin(&self) -> Duration {
        let time = self.time.as_secs_f64();
        let warmup = self.warmup.as_secs_f64() / WARMUP_BINS as f64;
        let bin = if warmup > 0.0 { warmup.min(time / 100.0).max(time / 600.0) } else { time / 100.0 };
        Duration::from_secs_f64(bin.max(0.005))
    }

    /// What the result document says of the plan.
    pub fn document(&self, server_settings: &[(String, String)]) -> report::Plan {
        report::Plan {
            levels: self.levels.clone(),
            workload: self.sources.planned(),
            clients: self.clients.iter().map(|&clients| count(clients)).collect(),
            jobs: count(self.jobs),
            scale: self.scale,
            time_s: Some(self.time.as_secs_f64()),
            transactions: None,
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
        }
    }
}

impl PlanOptions {
    /// What is given here, else what `other` has.
    pub fn or(self, other: PlanOptions) -> PlanOptions {
        PlanOptions {
            levels: self.levels.or(other.levels),
            workload: self.workload.or(other.workload),
            setup: self.setup.or(other.setup),
            clients: self.clients.or(other.clients),
            jobs: self.jobs.or(other.jobs),
            scale: self.scale.or(other.scale),
            time: self.time.or(other.time),
            warmup: self.warmup.or(other.warmup),
            max_warmup: self.max_warmup.or(other.max_warmup),
            calibrate: self.calibrate.or(other.calibrate),
            resolve: self.resolve.or(other.resolve),
            time_limit: self.time_limit.or(other.time_limit),
            sweep: self.sweep.or(other.sweep),
            rounds: self.rounds.or(other.rounds),
            max_tries: self.max_tries.or(other.max_tries),
            backoff: self.backoff.or(other.backoff),
            protocol: self.protocol.or(other.protocol),
            rate: self.rate.or(other.rate),
            latency_limit: self.latency_limit.or(other.latency_limit),
            think_time: self.think_time.or(other.think_time),
            seed: self.seed.or(other.seed),
            strict_levels: self.strict_levels.or(other.strict_levels),
        }
    }
}

/// Reads a plan file. Names of files in it are relative to the plan's own folder.
fn read(path: &Path) -> Outcome<PlanOptions> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::setup(format!("could not read plan \"{shown}\": {error}")))?;
    let mut plan: PlanOptions =
        toml::from_str(&text).map_err(|error| Failure::setup(format!("plan \"{shown}\": {error}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    plan.setup = plan.setup.map(|setup| folder.join(setup));
    for workload in plan.workload.iter_mut().flatten() {
        let file = folder.join(workload.rsplit_once('@').map_or(workload.as_str(), |(name, _)| name));
        if file.is_file() {
            *workload = folder.join(&*workload).display().to_string();
        }
    }
    Ok(plan)
}

/// Splits a list of retry policies at those commas that don't separate the parameters of one.
fn policies(list: &str) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for part in list.split(',') {
        match policies.last_mut() {
            Some(last) if last.starts_with("exponential") && part.contains('=') && !part.contains(':') => {
                last.push(',');
                last.push_str(part);
            }
            _ => policies.push(part.to_owned()),
        }
    }
    policies
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

fn parse_all<T, E: Display>(
    option: &str,
    texts: &[String],
    parse: impl Fn(&str) -> Result<T, E>,
) -> Outcome<Vec<T>> {
    if texts.is_empty() {
        return Err(Failure::setup(format!("--{option}: the list is empty")));
    }
    let parse = |text: &String| parse(text).map_err(|error| wrong(option, error));
    texts.iter().map(parse).collect()
}

fn wrong(option: &str, problem: impl Display) -> Failure {
    Failure::setup(format!("--{option}: {problem}"))
}

fn distinct<T: PartialEq>(option: &str, values: &[T]) -> Outcome {
    let repeated = values.iter().enumerate().any(|(index, value)| values[..index].contains(value));
    if repeated { Err(wrong(option, "the same value twice")) } else { Ok(()) }
}

fn at_least_one<T: PartialEq + Default>(option: &str, value: T) -> Outcome<T> {
    if value == T::default() { Err(wrong(option, "must be at least 1")) } else { Ok(value) }
}

/// The longest time that any option takes, in seconds: over eleven days.
const LONGEST: f64 = 1e6;

/// A time in seconds.
///
/// # Errors
/// Not a number from `least` to 1,000,000.
pub fn seconds(option: &str, value: f64, least: f64) -> Outcome<Duration> {
    if (least..=LONGEST).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    Err(wrong(option, format!("{value} is no number of seconds from {least} to {LONGEST}")))
}

/// The longest warm-up, three steps if it isn't given.
fn longest_warmup(warmup: Duration, given: Option<f64>) -> Outcome<Duration> {
    let Some(given) = given else { return Ok(warmup * 3) };
    let longest = seconds("max-warmup", given, 0.0)?;
    if longest < warmup {
        let (longest, warmup) = (longest.as_secs_f64(), warmup.as_secs_f64());
        return Err(wrong("max-warmup", format!("{longest} s is less than --warmup ({warmup} s)")));
    }
    Ok(longest)
}

/// A share: "2%" or "2 %" or 0.02.
///
/// # Errors
/// Not a number above 0 and up to 1.
pub fn share(option: &str, text: &str) -> Outcome<f64> {
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>().map(|number| number / unit) {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(wrong(option, format!("\"{text}\" is no percentage above 0 and up to 100, such as 2%"))),
    }
}

/// A time in milliseconds.
///
/// # Errors
/// Not a number above 0 and up to 1,000,000,000.
pub fn milliseconds(option: &str, value: f64) -> Outcome<Duration> {
    if value > 0.0 && value <= LONGEST * 1e3 {
        return Ok(Duration::from_secs_f64(value / 1e3));
    }
    Err(wrong(option, format!("{value} is no number of milliseconds above 0")))
}

/// Pacing from the options that concern it.
///
/// # Errors
/// Both are given, or one is out of range.
pub fn pacing(rate: Option<f64>, think_time: Option<f64>) -> Outcome<Pacing> {
    match (rate, think_time) {
        (Some(_), Some(_)) => Err(Failure::setup("--rate and --think-time exclude each other")),
        (Some(rate), None) if rate > 0.0 && rate.is_finite() => Ok(Pacing::Rate(rate)),
        (Some(rate), None) => {
            Err(wrong("rate", format!("{rate} is no number of transactions per second above 0")))
        }
        (None, Some(pause)) => Ok(Pacing::ThinkTime(milliseconds("think-time", pause)?)),
        (None, None) => Ok(Pacing::Unpaced),
    }
}

/// A protocol by its name.
///
/// # Errors
/// There is none.
pub fn protocol(name: &str) -> Outcome<Protocol> {
    Protocol::ALL.into_iter().find(|protocol| protocol.name() == name).ok_or_else(|| {
        wrong("protocol", format!("invalid query mode: \"{name}\"; use simple, extended or prepared"))
    })
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
    use super::*;

    fn resolve(options: &PlanOptions) -> Outcome<Plan> {
        Plan::resolve(options, None, &PlanOptions::default())
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
        let measured = (plan.time + plan.warmup) * plan.rounds * 3;
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
        let plan = Plan::resolve(&options, Some(&path), &PlanOptions::default()).unwrap();
        assert_eq!((plan.clients.as_slice(), plan.scale), (&[4_usize][..], 7));
        assert_eq!(plan.max_tries, NonZeroU32::new(3));
        // What the file says wins over other defaults, as audit has them.
        let defaults = PlanOptions { clients: Some(vec![16]), rounds: Some(1), ..PlanOptions::default() };
        let plan = Plan::resolve(&options, Some(&path), &defaults).unwrap();
        assert_eq!((plan.clients.as_slice(), plan.rounds), (&[4_usize][..], 1));
        fs::write(&path, "level = [\"rc\"]\n").unwrap();
        let unknown = message(Plan::resolve(&PlanOptions::default(), Some(&path), &PlanOptions::default()));
        assert!(unknown.contains("unknown field `level`") && unknown.contains("levels"), "{unknown}");
    }

    #[test]
    fn files_in_a_plan_are_relative_to_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine.sql"), "SELECT 1;\n").unwrap();
        let path = folder.path().join("plan.toml");
        fs::write(&path, "workload = [\"mine.sql@3\", \"select-only\"]\n").unwrap();
        let plan = Plan::resolve(&PlanOptions::default(), Some(&path), &PlanOptions::default()).unwrap();
        assert!(plan.sources.name().ends_with("mine.sql@3+select-only@1"), "{}", plan.sources.name());
    }
}
