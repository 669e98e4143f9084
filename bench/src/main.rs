//! The command `isobench-bench`: compares isobench with pgbench, or runs the null server or the raw
//! loop.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use isobench_bench::checking::{self, CheckPlan};
use isobench_bench::client::{ClientError, INTERRUPTED};
use isobench_bench::contender::{Contender, Pair, find_pgbench};
use isobench_bench::initializing;
use isobench_bench::loops::{self, Programs};
use isobench_bench::null_server::{NullServer, raise_file_limit};
use isobench_bench::observing::{self, ObservingPlan};
use isobench_bench::options::{
    CheckOptions, ClientOptions, Compare, ExtraOptions, InitOptions, NullOptions, ObserverOptions, Options,
    PrecisionOptions, ProgramOptions, RecordingOptions, ReportOptions, RowsOptions, StartupOptions, Tool,
};
use isobench_bench::precision::{self, PrecisionPlan};
use isobench_bench::ratio::Ratio;
use isobench_bench::raw_loop;
use isobench_bench::recording::{self, RecordingPlan};
use isobench_bench::reporting::{self, ReportPlan};
use isobench_bench::rounds::Rounds;
use isobench_bench::rows::{self, Compared, RowsPlan};
use isobench_bench::servers::{self, ServerPlan, Servers, null_address};
use isobench_bench::starting::{self, Start};
use isobench_bench::table::{self, ContenderIndices};
use isobench_bench::{case, connections, features};
use signal_hook::consts::{SIGINT, SIGTERM};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let options = Options::parse();
    raise_file_limit();
    let result = match options.tool {
        Some(Tool::NullServer(options)) => serve(&options),
        Some(Tool::RawLoop(options)) => raw_loop(&options.into()),
        Some(Tool::Connections(options)) => extra(&options, true),
        Some(Tool::Features(options)) => extra(&options, false),
        Some(Tool::Client(options)) => event_loops(&options),
        Some(Tool::Recording(options)) => recorded(&options),
        Some(Tool::Observer(options)) => observed(&options),
        Some(Tool::Rows(options)) => showing_rows(&options),
        Some(Tool::Check(options)) => checked(&options),
        Some(Tool::Report(options)) => reported(&options),
        Some(Tool::Init(options)) => initialized(&options),
        Some(Tool::Startup(options)) => started(&options),
        Some(Tool::Precision(options)) => known(&options),
        None => compare(&options.compare),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("isobench-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &NullOptions) -> Result<ExitCode, Failure> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let server = NullServer::start(&options.dir, options.port)?;
    println!(
        "-h {} -p {}, or -h 127.0.0.1; stop it with Ctrl-C",
        server.directory().display(),
        server.port()
    );
    signals.forever().next();
    server.stop()?;
    Ok(ExitCode::SUCCESS)
}

fn raw_loop(plan: &raw_loop::RawPlan) -> Result<ExitCode, Failure> {
    let outcome = raw_loop::run(plan)?;
    let tps = outcome.transactions as f64 / outcome.elapsed.as_secs_f64();
    println!("number of transactions actually processed: {}", outcome.transactions);
    println!("tps = {tps:.6} (without initial connection time)");
    Ok(ExitCode::SUCCESS)
}

/// Compares the cost of connections, or of options.
fn extra(options: &ExtraOptions, of_connections: bool) -> Result<ExitCode, Failure> {
    let (isobench, pgbench) = programs(&options.programs)?;
    let (isobench, pgbench) = (Contender::Isobench(isobench), Contender::Pgbench(pgbench));
    let pair = Pair { isobench: &isobench, pgbench: &pgbench };
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    let folder = tempfile::tempdir()?;
    let server = NullServer::start(folder.path(), 0)?;
    let address = null_address(folder.path().to_string_lossy().into_owned(), server.port());
    let logs = tempfile::tempdir()?;
    let time = Duration::from_secs(options.time);
    let table = if of_connections {
        connections::table(pair, &address, options.connections, options.rounds, time)?
    } else {
        features::table(pair, &address, logs.path(), options.rounds, time)?
    };
    print!("{table}");
    server.stop()?;
    Ok(ExitCode::SUCCESS)
}

/// Compares the event loops with pgbench and the raw loops.
fn event_loops(options: &ClientOptions) -> Result<ExitCode, Failure> {
    let (isobench, pgbench) = programs(&options.programs)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    let programs = Programs { isobench, pgbench: pgbench.clone(), own: std::env::current_exe()? };
    let contenders = loops::contenders(&programs, options.postgres);
    let cases = if options.postgres { loops::postgres_cases() } else { loops::null_cases() };
    let (scale, server_bin) = (options.scale, options.server_bin.clone());
    let mut servers = Servers::new(ServerPlan { postgres: None, scale, server_bin });
    if let Some(warning) = table::load_warning(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())
    {
        println!("{warning}");
    }
    println!("{}", loops::heading(&contenders));
    for case in cases {
        let time = Duration::from_secs(options.time * if case.clients >= 512 { 2 } else { 1 });
        let address = servers.address(case.server, &pgbench)?;
        println!("{}", loops::line(&contenders, case, &address, options.rounds, time)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the cost of recording, on the null server and on PostgreSQL.
fn recorded(options: &RecordingOptions) -> Result<ExitCode, Failure> {
    let beside = std::env::current_exe()?.with_file_name("examples").join("record");
    let program = options.program.clone().unwrap_or(beside);
    if !program.is_file() {
        let path = program.display();
        return Err(format!(
            "there is no {path}; run `cargo build --release -p isobench-runner --example record`, or use --program FILE"
        )
        .into());
    }
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    let plan = RecordingPlan { program, rounds: options.rounds, time: Duration::from_secs(options.time) };
    let folder = tempfile::tempdir()?;
    if let Some(warning) = table::load_warning(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())
    {
        println!("{warning}");
    }
    println!("{}", recording::heading());
    let server = NullServer::start(folder.path(), 0)?;
    let address = null_address(folder.path().to_string_lossy().into_owned(), server.port());
    print!("{}", recording::lines(&plan, "null", &address, false, folder.path())?);
    server.stop()?;
    if !options.null_only {
        let server_plan = ServerPlan { postgres: None, scale: 1, server_bin: options.server_bin.clone() };
        let (server, address) = servers::embedded(&server_plan)?;
        print!("{}", recording::lines(&plan, "postgres", &address, true, folder.path())?);
        drop(server);
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the cost of the observer for the server.
fn observed(options: &ObserverOptions) -> Result<ExitCode, Failure> {
    let plan = ObservingPlan {
        pairs: options.pairs,
        time: Duration::from_secs(options.time),
        every: Duration::from_millis(options.every),
        server_bin: options.server_bin.clone(),
    };
    if let Some(warning) = table::load_warning(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())
    {
        println!("{warning}");
    }
    println!("{}", observing::heading());
    for (number, case) in (1..).zip(&observing::CASES) {
        if options.case.is_none_or(|only| only == number) {
            println!("{}", observing::line(&plan, case)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the cost of statements that show rows, or of following what is recorded.
fn showing_rows(options: &RowsOptions) -> Result<ExitCode, Failure> {
    let time = Duration::from_millis(options.time);
    let (compared, cases) = if options.following {
        (Compared::Following, &rows::FOLLOWED[..])
    } else {
        (Compared::Rows, &rows::CASES[..])
    };
    let plan = RowsPlan { compared, pairs: options.pairs, time, server_bin: options.server_bin.clone() };
    if let Some(warning) = table::load_warning(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())
    {
        println!("{warning}");
    }
    println!("{}", rows::heading(compared));
    for (number, case) in (1..).zip(cases) {
        if options.case.is_none_or(|only| only == number) {
            println!("{}", rows::line(&plan, case)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures the time and the size of reports.
fn reported(options: &ReportOptions) -> Result<ExitCode, Failure> {
    let plan = ReportPlan { cells: options.cells.into(), rounds: options.rounds };
    println!("{}", reporting::heading());
    for step in reporting::run(plan)? {
        println!("{}", reporting::line(&step));
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares `-i`.
fn initialized(options: &InitOptions) -> Result<ExitCode, Failure> {
    let (isobench, pgbench) = programs(&options.programs)?;
    warn_of_load();
    let plan = ServerPlan { postgres: None, scale: options.scale, server_bin: options.server_bin.clone() };
    let (server, address) = servers::embedded(&plan)?;
    print!("{}", initializing::table(&initializing::run([&isobench, &pgbench], &address, options.pairs)?));
    drop(server);
    Ok(ExitCode::SUCCESS)
}

/// Measures the start of a comparison.
fn started(options: &StartupOptions) -> Result<ExitCode, Failure> {
    let isobench = isobench(options.isobench.as_ref())?;
    warn_of_load();
    let folder = tempfile::tempdir()?;
    let start = || starting::run(&isobench, options.server_bin.as_deref(), folder.path());
    start()?;
    let starts = (0..options.runs).map(|_| start()).collect::<Result<Vec<Start>, _>>()?;
    for (name, of) in [("first measured transaction", (|start| start.elapsed) as fn(&Start) -> Duration)]
        .into_iter()
        .chain([("of that the warm-up", (|start| start.warmup) as fn(&Start) -> Duration)])
    {
        let times = Ratio::of(starts.iter().map(|start| (of(start).as_secs_f64(), 1.0)));
        println!("{name:28} {} s", times.map_or_else(String::new, |times| times.to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures how precisely comparisons know their ratios.
fn known(options: &PrecisionOptions) -> Result<ExitCode, Failure> {
    let isobench = isobench(options.isobench.as_ref())?;
    warn_of_load();
    let folder = tempfile::tempdir()?;
    let plan =
        PrecisionPlan { runs: options.runs, same: options.same, long: Duration::from_secs(options.long) };
    precision::run(plan, &isobench, &options.further, folder.path(), &mut |lines| print!("{lines}"))?;
    Ok(ExitCode::SUCCESS)
}

fn warn_of_load() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if let Some(warning) = table::load_warning(&load) {
        println!("{warning}");
    }
}

/// Measures the time of a check, or of several.
fn checked(options: &CheckOptions) -> Result<ExitCode, Failure> {
    let CheckOptions { transactions, reads, clients, rows, level, stated, order, way, .. } = *options;
    if !options.millions.is_empty() {
        return check_table(options);
    }
    let plan = CheckPlan { transactions, reads, clients, rows, level, stated, order, way };
    if let Some(path) = &options.write {
        checking::record(&plan, &File::create(path)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Its peak memory would be that of this process.
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history");
    let status = check_in_a_process(options, transactions)?.arg("--write").arg(&path).status()?;
    if !status.success() {
        return Err(format!("the process that makes the history ended with {status}").into());
    }
    let checked = checking::run(&plan, File::open(&path)?)?;
    println!("{}", isobench_isolation::check::summary(&checked.report));
    println!("{}", checking::HEADING);
    println!("{}", checking::line(way, &checked));
    Ok(ExitCode::SUCCESS)
}

/// Measures all ways of checking, each in a process of its own, so that the peak memory is its own.
fn check_table(options: &CheckOptions) -> Result<ExitCode, Failure> {
    println!("{}", checking::HEADING);
    for millions in &options.millions {
        for way in checking::Way::ALL {
            if way != checking::Way::Recording && *millions > options.most_in_memory {
                continue;
            }
            let output = check_in_a_process(options, millions * 1_000_000)?
                .args(["--way", &checking::name(&way)])
                .args(["--order", &options.order.name().replace(' ', "-")])
                .stderr(Stdio::inherit())
                .output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            println!("{}", text.lines().last().unwrap_or("the process printed nothing"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// This program, about a history of so many transactions that is otherwise as the options say.
fn check_in_a_process(options: &CheckOptions, transactions: u64) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["check", "--transactions", &transactions.to_string()])
        .args(["--clients", &options.clients.to_string(), "--rows", &options.rows.to_string()])
        .args(["--reads", &options.reads.to_string(), "--level", &checking::name(&options.level)])
        .args(["--stated", &checking::name(&options.stated)]);
    Ok(command)
}

/// Runs the selected cases; one that fails is reported, and the others still run.
fn compare(options: &Compare) -> Result<ExitCode, Failure> {
    let cases = case::select(&options.cases, options.quick)?;
    let (contenders, indices, pgbench) = contenders(options)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&INTERRUPTED))?;
    }
    let seconds: u64 = cases.iter().map(|case| options.time(case.clients).as_secs()).sum();
    let seconds = seconds * u64::from(options.rounds()) * contenders.len() as u64;
    eprintln!("{} cases, at least {} min {} s", cases.len(), seconds / 60, seconds % 60);
    let mut servers = Servers::new(ServerPlan {
        postgres: options.address(),
        scale: options.scale(),
        server_bin: options.server_bin.clone(),
    });
    if let Some(warning) = table::load_warning(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default())
    {
        println!("{warning}");
    }
    println!("{}", table::heading());
    let mut code = ExitCode::SUCCESS;
    for case in cases {
        let time = options.time(case.clients);
        let result = servers
            .address(case.server, &pgbench)
            .map_err(Failure::from)
            .and_then(|address| Ok(Rounds::run(&contenders, case, &address, options.rounds(), time)?));
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(ClientError::Interrupted.into());
        }
        match result {
            Ok(rounds) => println!("{}", table::line(case, &rounds, indices)),
            Err(error) => {
                println!("{case}: failed, see the message");
                eprintln!("isobench-bench: {case}: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// The contenders in order, and the pgbench that also fills tables.
fn contenders(options: &Compare) -> Result<(Vec<Contender>, ContenderIndices, PathBuf), Failure> {
    let own = std::env::current_exe()?;
    let (isobench, pgbench) = programs(&options.programs)?;
    let mut contenders = vec![Contender::Isobench(isobench), Contender::Pgbench(pgbench.clone())];
    let raw = (!options.no_raw).then_some(contenders.len());
    if raw.is_some() {
        contenders.push(Contender::Raw(own));
    }
    Ok((contenders, ContenderIndices { isobench: 0, pgbench: 1, raw }, pgbench))
}

/// The paths of isobench and pgbench.
fn programs(given: &ProgramOptions) -> Result<(PathBuf, PathBuf), Failure> {
    let isobench = isobench(given.isobench.as_ref())?;
    let pgbench = given.pgbench.clone().or_else(find_pgbench);
    let pgbench = pgbench.ok_or("pgbench is not installed, or not found; say --pgbench FILE")?;
    Ok((isobench, pgbench))
}

/// The path of isobench.
fn isobench(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let isobench = given.cloned().unwrap_or_else(|| own.with_file_name("isobench"));
    if !isobench.is_file() {
        let path = isobench.display();
        return Err(format!(
            "there is no {path}; run `cargo build --release -p isobench`, or use --isobench FILE"
        )
        .into());
    }
    Ok(isobench)
}
