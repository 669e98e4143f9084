//! The cost of the observer for the server: waits and locks sampled ten times a second, or not.
//!
//! The same clients run all the time, and every other interval is observed. So, unlike the rest of
//! this program, this measures within one process, with isobench's own runner: the difference
//! between two programs run one after the other would exceed the effect.

use std::time::Duration;

use isobench_database::{Database, InitOptions, detect, init};
use isobench_observer::{LocalServer, Observer, ObserverOptions, Part, Processes};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_runner::{
    Control, ErrorClass, Fleet, Job, Protocol, RetryPolicy, RunSpec, RunWorkload, StopCondition, Watch,
};
use isobench_script::{Mix, Symbols, Value, Variables, Weighted, find_builtin, parse};
use isobench_stats::{Ratio, paired_ratio};
use procfs::process::Process;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The load of a case.
#[derive(Clone, Copy, Debug)]
pub struct ObservedCase {
    /// The built-in script.
    pub script: &'static str,
    /// The level of the sessions.
    pub level: &'static str,
    /// The number of clients.
    pub clients: usize,
    /// The scale of the tables.
    pub scale: u32,
}

/// The cases: many small transactions, many writing ones, and many conflicting sessions that hold
/// predicate locks.
pub const CASES: [ObservedCase; 3] = [
    ObservedCase { script: "select-only", level: "read committed", clients: 8, scale: 10 },
    ObservedCase { script: "tpcb-like", level: "read committed", clients: 8, scale: 10 },
    ObservedCase { script: "tpcb-like", level: "serializable", clients: 64, scale: 1 },
];

/// The settings of the server: commits don't wait for the disk, so that the CPU is the bottleneck,
/// and there is no irregular background activity.
pub(crate) const SETTINGS: [(&str, &str); 5] = [
    ("max_connections", "100"),
    ("synchronous_commit", "off"),
    ("autovacuum", "off"),
    ("checkpoint_timeout", "1h"),
    ("max_wal_size", "8GB"),
];

/// The parameters of the comparison.
#[derive(Clone, Debug)]
pub struct ObservingPlan {
    /// The number of pairs of intervals, one observed, one not.
    pub pairs: u32,
    /// The length of an interval.
    pub time: Duration,
    /// The time between two samples of the sessions; locks are sampled a tenth as often.
    pub every: Duration,
    /// The binaries of the embedded server, by default the newest installed.
    pub server_bin: Option<std::path::PathBuf>,
}

/// The results of an interval: committed transactions per second, the server's CPU time for each in
/// µs, and the share of the observer's own session in that time.
#[derive(Clone, Copy, Debug)]
struct Interval {
    tps: f64,
    cpu: f64,
    own: f64,
}

/// The line of the table for a case: tps and the server's CPU, observed divided by not observed,
/// with 95 % intervals.
///
/// # Errors
/// If there is no server, or it returns an error.
pub fn line(plan: &ObservingPlan, case: &ObservedCase) -> Result<String, Failure> {
    let server = Server::start(&server_options(plan), &mut |line| eprintln!("{line}"))?;
    let host = Host::unix(server.socket_dir(), server.port());
    let mut options = ConnectOptions::new(host, server.user(), server.database());
    let mut connection = Connection::open(&options)?;
    let database = detect(&mut connection)?;
    let tables = InitOptions { scale: case.scale, ..InitOptions::default() };
    init(&mut connection, &database, &tables, &mut |_| {})?;
    connection.close();
    let processes = Processes::find(LocalServer::Postmaster(server.pid()), None)?;
    let observer = observer(plan, &options, &database);
    observer.before_sessions(Part(0));
    observer.end(Part(0));
    options.options = Some(format!("-cdefault_transaction_isolation={}", case.level.replace(' ', "\\ ")));
    let connect = |_| Connection::open(&options).map(|connection| (connection, ()));
    let job = classified(case, workload(case)?, &database);
    let own = own_process(&options)?;
    let (mut fleet, _) = Fleet::open(&job, &connect)?;
    let mut interval = |observed: bool| -> Result<Interval, Failure> {
        if observed {
            observer.begin(Part(0));
        }
        let begin = (processes.cpu().unwrap_or_default(), cpu_of(&own));
        let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
        let report = |event| eprintln!("{event:?}");
        let outcome =
            fleet.run(&job, StopCondition::Time(plan.time), &Control::new(), &report, watch, &mut [])?;
        let (cpu, own) = (processes.cpu().unwrap_or_default() - begin.0, cpu_of(&own) - begin.1);
        if observed {
            observer.end(Part(0));
        }
        let committed = outcome.ledger().transactions.committed;
        if committed == 0 {
            return Err("no transaction was committed".into());
        }
        let tps = committed as f64 / outcome.elapsed.as_secs_f64();
        Ok(Interval { tps, cpu: cpu * 1e6 / committed as f64, own: own / cpu })
    };
    interval(false)?;
    let mut pairs = Vec::new();
    for pair in 0..plan.pairs {
        // The order alternates, so that a drift affects both equally.
        let first = interval(pair % 2 == 0)?;
        let second = interval(pair % 2 != 0)?;
        pairs.push(if pair % 2 == 0 { (first, second) } else { (second, first) });
    }
    drop(fleet);
    let observed = observer.after_sessions(Part(0));
    for note in &observed.notes {
        eprintln!("note: {note}");
    }
    let ratio = |value: fn(&Interval) -> f64| {
        let values: Vec<_> = pairs.iter().map(|(with, without)| (value(with), value(without))).collect();
        paired_ratio(&values, 1).map_or_else(String::new, shown)
    };
    let mean = |value: fn(&Interval) -> f64| {
        pairs.iter().map(|(_, without)| value(without)).sum::<f64>() / pairs.len() as f64
    };
    let measured = plan.time.as_secs_f64() * f64::from(plan.pairs);
    let own = pairs.iter().map(|(with, _)| with.own).sum::<f64>() / pairs.len() as f64;
    Ok(format!(
        "{:36} {:24} {:24} {:>8.3} % {:>9.0} {:>8.1} µs {:>6.1} {:>6.1}",
        format!("{}/{}/{}", case.script, case.level, case.clients),
        ratio(|interval| interval.tps),
        ratio(|interval| interval.cpu),
        own * 1e2,
        mean(|interval| interval.tps),
        mean(|interval| interval.cpu),
        observed.at_s.len() as f64 / measured,
        observed.lock_samples as f64 / measured,
    ))
}

/// The heading of the table. The last columns are those without the observer, and the number of
/// samples of sessions and locks per second in the observed intervals.
pub fn heading() -> String {
    format!(
        "{:36} {:24} {:24} {:>10} {:>9} {:>11} {:>6} {:>6}",
        "observed/not observed", "tps", "server CPU", "its own", "tps", "CPU", "looks", "locks"
    )
}

/// The process of the observer's session.
fn own_process(options: &ConnectOptions) -> Result<Process, Failure> {
    let name = ObserverOptions::default().application_name;
    let query = format!("select pid from pg_stat_activity where application_name = '{name}'");
    let pid = Connection::open(options)?.value(&query)?.ok_or("the observer has no session")?;
    Ok(Process::new(pid.parse()?)?)
}

/// The CPU time of a process so far, in seconds.
fn cpu_of(process: &Process) -> f64 {
    process.schedstat().map_or(0.0, |stat| stat.sum_exec_runtime as f64 / 1e9)
}

pub(crate) fn shown(ratio: Ratio) -> String {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{:.4} ({low:.4}..{high:.4})", ratio.mean),
        None => format!("{:.4}", ratio.mean),
    }
}

fn server_options(plan: &ObservingPlan) -> ServerOptions {
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    ServerOptions { bin: plan.server_bin.clone(), settings, ..ServerOptions::default() }
}

fn observer(plan: &ObservingPlan, options: &ConnectOptions, database: &Database) -> Observer {
    let options = options.clone();
    let settings =
        ObserverOptions { every: plan.every, locks_every: plan.every * 10, ..ObserverOptions::default() };
    let connect = Box::new(move || Ok(Connection::open(&options)?));
    Observer::start(connect, database, None, &settings)
}

/// The script of a case, with its variables.
pub(crate) fn workload(case: &ObservedCase) -> Result<RunWorkload, Failure> {
    let mut symbols = Symbols::new();
    let builtin = find_builtin(case.script)?;
    let script = parse(builtin.description, builtin.text, &mut symbols)?;
    let mix = Mix::new(vec![Weighted { script, weight: 1 }])?;
    let scale = symbols.intern("scale");
    let mut variables = Variables::new(&symbols);
    variables.set(scale, Value::Int(case.scale.into()));
    Ok(RunWorkload { mix, symbols, variables })
}

/// The job of a case, with the conflicts of the product.
pub(crate) fn classified(case: &ObservedCase, workload: RunWorkload, database: &Database) -> Job {
    let spec = RunSpec {
        clients: case.clients,
        protocol: Protocol::Prepared,
        retry: RetryPolicy::UNLIMITED,
        seed: 1,
        grace: Duration::from_secs(10),
        ..RunSpec::default()
    };
    let product = database.product;
    let classify = move |error: &isobench_pgwire::ServerError| {
        product.conflict(error).map_or(ErrorClass::Other, |conflict| ErrorClass::Conflict {
            reason: conflict.reason,
            object: conflict.object,
        })
    };
    Job::new(spec, workload, Box::new(classify))
}
