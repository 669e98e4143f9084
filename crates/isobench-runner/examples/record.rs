//! Runs a script for some seconds, recorded or not, and prints the lines of pgbench's summary that
//! report the work done.
//!
//! `cargo run --release -p isobench-runner --example record -- HOST PORT USER DATABASE CLIENTS
//! SECONDS PROTOCOL SCRIPT [SETUP] [--record]`
//!
//! SETUP is a file with SQL that is executed first. Measures the cost of recording (`bench/`).

use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_runner::{
    Control, ErrorClass, Fleet, Job, Protocol, RetryPolicy, RunSpec, RunWorkload, StopCondition, Storage,
    Watch,
};
use isobench_script::{Mix, Symbols, Variables, Weighted, parse};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument == "--record");
    let [host, port, user, database, clients, seconds, protocol, script, setup @ ..] = &words[..] else {
        return Err("see the first lines of this example for what it takes".into());
    };
    let host =
        if host.starts_with('/') { Host::unix(host, port.parse()?) } else { Host::tcp(host, port.parse()?) };
    let options = ConnectOptions::new(host, user, database);
    for file in setup {
        Connection::open(&options)?.execute(&std::fs::read_to_string(file)?)?;
    }
    let protocol =
        Protocol::ALL.into_iter().find(|known| known.name() == protocol).ok_or("no such protocol")?;
    let spec = RunSpec {
        clients: clients.parse()?,
        protocol,
        retry: RetryPolicy::UNLIMITED,
        seed: 1,
        grace: Duration::from_secs(10),
        ..RunSpec::default()
    };
    let mut symbols = Symbols::new();
    let script = parse(script, &std::fs::read_to_string(script)?, &mut symbols)?;
    let mix = Mix::new(vec![Weighted { script, weight: 1 }])?;
    let workload = RunWorkload { mix, variables: Variables::new(&symbols), symbols };
    // At the levels measured here conflicts are negligible.
    let mut job = Job::new(
        spec,
        workload,
        Box::new(|_| ErrorClass::Conflict { reason: "conflict".into(), object: None }),
    );
    if !flags.is_empty() {
        job = job.recording(Storage::default())?;
    }
    let connect = |_| Connection::open(&options).map(|connection| (connection, ()));
    let (mut fleet, _) = Fleet::open(&job, &connect)?;
    let report = |event| eprintln!("{event:?}");
    let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
    let stop = StopCondition::Time(Duration::from_secs(seconds.parse()?));
    let outcome = fleet.run(&job, stop, &Control::new(), &report, watch, &mut [])?;
    let committed = outcome.ledger().transactions.committed;
    println!("number of transactions actually processed: {committed}");
    println!("tps = {:.6}", committed as f64 / outcome.elapsed.as_secs_f64());
    if let Some(recording) = job.recorded() {
        println!("recorded: {} attempts, {} bytes", recording.transactions(), recording.size());
    }
    Ok(())
}
