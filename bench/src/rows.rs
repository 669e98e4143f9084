//! The cost of statements that show rows: the same script sent with columns appended and recorded,
//! or sent as written. Also that of a thread that follows what is recorded, or doesn't.
//!
//! Both kinds of clients stay connected to one server and take turns on the same tables, in slices
//! that are short beside the machine's changes of pace. So this measures within one process, with
//! isobench's own runner, as [`crate::observing`] does.

use std::time::Duration;

use isobench_database::{Database, InitOptions, detect, init};
use isobench_isolation::check::Options;
use isobench_isolation::observed::ObservedDescription;
use isobench_isolation::{Guarantee, Model, Order};
use isobench_observation::observe;
use isobench_observer::{LocalServer, Processes};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_runner::{Control, Fleet, Job, RunWorkload, StopCondition, Storage, Watch};
use isobench_script::{Mix, Symbols, Variables, Weighted, parse};
use isobench_sql::Catalog;
use rustix::time::{ClockId, clock_gettime};

use crate::observing::{ObservedCase, SETTINGS, classified, shown, workload};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The cases: one row read, and TPC-B on many and on few rows that all clients contend for.
pub const CASES: [ObservedCase; 4] = [
    ObservedCase { script: "select-only", level: "read committed", clients: 8, scale: 16 },
    ObservedCase { script: "tpcb-like", level: "read committed", clients: 8, scale: 16 },
    ObservedCase { script: "tpcb-like", level: "read committed", clients: 8, scale: 1 },
    ObservedCase { script: "tpcb-like", level: "serializable", clients: 8, scale: 16 },
];

/// The cases of recordings that are followed: lines `--@`, which are sorted, and rows shown. In all of
/// them a look for a broken promise is taken at what is new.
pub const FOLLOWED: [ObservedCase; 3] = [
    ObservedCase { script: REGISTERS, level: "serializable", clients: 8, scale: 1 },
    ObservedCase { script: "select-only", level: "read committed", clients: 8, scale: 16 },
    ObservedCase { script: "tpcb-like", level: "read committed", clients: 8, scale: 16 },
];

/// The script with lines `--@`.
const REGISTERS: &str = "registers";

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Statements that show rows, with statements as written.
    Rows,
    /// Recordings that are followed, with others.
    Following,
}

/// The parameters of the comparison.
#[derive(Clone, Debug)]
pub struct RowsPlan {
    /// What is compared.
    pub compared: Compared,
    /// The number of pairs of slices.
    pub pairs: u32,
    /// The length of a slice.
    pub time: Duration,
    /// The binaries of the embedded server, by default the newest installed.
    pub server_bin: Option<std::path::PathBuf>,
}

/// The results of a slice: committed transactions per second, and the CPU time for each of client
/// and server, in µs.
#[derive(Clone, Copy, Debug)]
struct Slice {
    tps: f64,
    client: f64,
    server: f64,
}

/// The heading of the table. The last columns are those of statements as written, or of recordings
/// that aren't followed.
pub fn heading(compared: Compared) -> String {
    let what = match compared {
        Compared::Rows => "rows shown/as written",
        Compared::Following => "followed/not followed",
    };
    format!(
        "{:36} {:24} {:24} {:24} {:>9} {:>11} {:>11}",
        what, "tps", "client CPU", "server CPU", "tps", "client", "server"
    )
}

/// The line of the table for a case: tps and CPU with what is compared, divided by those without, with
/// 95 % intervals.
///
/// # Errors
/// If there is no server, or it returns an error.
pub fn line(plan: &RowsPlan, case: &ObservedCase) -> Result<String, Failure> {
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let server_options = ServerOptions { bin: plan.server_bin.clone(), settings, ..ServerOptions::default() };
    let server = Server::start(&server_options, &mut |line| eprintln!("{line}"))?;
    let host = Host::unix(server.socket_dir(), server.port());
    let mut options = ConnectOptions::new(host, server.user(), server.database());
    let mut connection = Connection::open(&options)?;
    let database = detect(&mut connection)?;
    let tables = InitOptions { scale: case.scale, ..InitOptions::default() };
    init(&mut connection, &database, &tables, &mut |_| {})?;
    let jobs = match plan.compared {
        Compared::Rows => [as_written(case, &database)?, showing_rows(case, &database, &mut connection)?],
        Compared::Following => {
            let mut job = |number| match case.script {
                REGISTERS => annotated(case, &database, &mut connection, number),
                _ => showing_rows(case, &database, &mut connection),
            };
            let jobs = [job(1)?, job(2)?];
            let promised = Some(promised(case));
            let options = Options { promised, vouched: case.script == REGISTERS, ..Options::default() };
            if let Some(recording) = jobs[1].recorded() {
                recording.follow(Some(options));
            }
            jobs
        }
    };
    connection.close();
    let processes = Processes::find(LocalServer::Postmaster(server.pid()), None)?;
    options.options = Some(format!("-cdefault_transaction_isolation={}", case.level.replace(' ', "\\ ")));
    let connect = |_| Connection::open(&options).map(|connection| (connection, ()));
    let mut fleets = [Fleet::open(&jobs[0], &connect)?.0, Fleet::open(&jobs[1], &connect)?.0];
    let mut slice = |with: bool| -> Result<Slice, Failure> {
        let which = usize::from(with);
        let begin = (client_cpu(), processes.cpu().unwrap_or_default());
        let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
        let report = |event| eprintln!("{event:?}");
        let stop = StopCondition::Time(plan.time);
        let outcome = fleets[which].run(&jobs[which], stop, &Control::new(), &report, watch, &mut [])?;
        if let Some(broken) = jobs[which].recorded().and_then(|recording| recording.broken()) {
            return Err(broken.into());
        }
        let spent = (client_cpu() - begin.0, processes.cpu().unwrap_or_default() - begin.1);
        let committed = outcome.ledger().transactions.committed;
        if committed == 0 {
            return Err("no transaction was committed".into());
        }
        let each = |seconds: f64| seconds * 1e6 / committed as f64;
        let tps = committed as f64 / outcome.elapsed.as_secs_f64();
        Ok(Slice { tps, client: each(spent.0), server: each(spent.1) })
    };
    for with in [false, true] {
        slice(with)?;
    }
    let mut pairs = Vec::new();
    for pair in 0..plan.pairs {
        // The order alternates, so that a drift affects both equally.
        let first = slice(pair % 2 == 0)?;
        let second = slice(pair % 2 != 0)?;
        pairs.push(if pair % 2 == 0 { (first, second) } else { (second, first) });
    }
    let ratio = |value: fn(&Slice) -> f64| {
        let values: Vec<_> = pairs.iter().map(|(with, without)| (value(with), value(without))).collect();
        isobench_stats::paired_ratio(&values, 1).map_or_else(String::new, shown)
    };
    let mean = |value: fn(&Slice) -> f64| {
        pairs.iter().map(|(_, without)| value(without)).sum::<f64>() / pairs.len() as f64
    };
    Ok(format!(
        "{:36} {:24} {:24} {:24} {:>9.0} {:>8.1} µs {:>8.1} µs",
        format!("{}/{}/{}/scale {}", case.script, case.level, case.clients, case.scale),
        ratio(|slice| slice.tps),
        ratio(|slice| slice.client),
        ratio(|slice| slice.server),
        mean(|slice| slice.tps),
        mean(|slice| slice.client),
        mean(|slice| slice.server),
    ))
}

/// The CPU time of this process so far, in seconds.
fn client_cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn as_written(case: &ObservedCase, database: &Database) -> Result<Job, Failure> {
    Ok(classified(case, workload(case)?, database))
}

/// The job of the script with lines `--@`, on a table of this number, because the lines tell of its
/// own transactions only.
fn annotated(
    case: &ObservedCase,
    database: &Database,
    connection: &mut Connection,
    number: u8,
) -> Result<Job, Failure> {
    let numbered = |text: &str| text.replace(REGISTERS, &format!("{REGISTERS}_{number}"));
    connection.execute(&numbered(include_str!("recording/tables.sql")))?;
    let mut symbols = Symbols::new();
    let script = parse(REGISTERS, &numbered(include_str!("recording/registers.sql")), &mut symbols)?;
    let mix = Mix::new(vec![Weighted { script, weight: 1 }])?;
    let variables = Variables::new(&symbols);
    let job = classified(case, RunWorkload { mix, symbols, variables }, database);
    Ok(job.recording(Storage::default())?)
}

/// What the level of a case promises.
fn promised(case: &ObservedCase) -> Guarantee {
    let model = if case.level == "serializable" { Model::Serializable } else { Model::ReadCommitted };
    Guarantee { model, order: Order::Data }
}

fn showing_rows(
    case: &ObservedCase,
    database: &Database,
    connection: &mut Connection,
) -> Result<Job, Failure> {
    let catalog = Catalog::load(&mut |sql: &str| connection.query(sql).map(|rows| rows.rows))?;
    let RunWorkload { mut mix, symbols, variables } = workload(case)?;
    let observed = observe(mix.scripts_mut(), &catalog);
    let next = connection.value("SELECT pg_snapshot_xmax(pg_current_snapshot())")?;
    let description = ObservedDescription {
        tables: observed.tables,
        predicates: observed.predicates,
        horizon: next.ok_or("no number")?.parse()?,
        ..ObservedDescription::default()
    };
    let job = classified(case, RunWorkload { mix, symbols, variables }, database);
    Ok(job.observing(description, 1 << 30))
}
