//! Turns the options as given into a request, with checks of several options in pgbench's order.

use std::time::Duration;

use isobench_database::InitOptions;
use isobench_pgwire::{Env, account_name};

use super::collected::Collected;
use super::request::{Benchmark, Common, Request};
use crate::console::Message;

/// The default number of transactions of each client.
const TRANSACTIONS: u64 = 10;

/// Resolves the options.
///
/// # Errors
/// Options that contradict each other, and too many operands.
pub(super) fn resolve(mut given: Collected, operands: Vec<String>, env: Env<'_>) -> Result<Request, Message> {
    if given.scripts.is_empty() && !given.initialize {
        given.scripts.add_builtin("tpcb-like")?;
    }
    given.scripts.check_parameters(given.protocol)?;
    if given.scripts.total_weight() == 0 && !given.initialize {
        return Err(Message::error("total script weight must not be zero"));
    }
    name_database(&mut given, operands, env)?;
    if given.initialize { initialize(given) } else { benchmark(given) }
}

/// Finds the database's name: the option, an operand, `PGDATABASE`, or the user's name, which is
/// that of `PGUSER` or of the system's account, even with `-U`.
fn name_database(given: &mut Collected, operands: Vec<String>, env: Env<'_>) -> Result<(), Message> {
    let mut operands = operands.into_iter();
    if given.connection.dbname.is_none() {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        given.connection.dbname =
            match operands.next().or_else(|| set("PGDATABASE")).or_else(|| set("PGUSER")) {
                Some(name) => Some(name),
                None => Some(account_name(env).map_err(Message::error)?),
            };
    }
    match operands.next() {
        None => Ok(()),
        Some(extra) => {
            let text = format_args!("too many command-line arguments (first is \"{extra}\")").to_string();
            Err(Message::error(text).hint_at_help())
        }
    }
}

fn common(given: &mut Collected) -> Common {
    Common { version: given.version, debug: given.debug, connection: std::mem::take(&mut given.connection) }
}

/// Converts a number that was checked not to be negative.
fn count(number: i32) -> u32 {
    number.unsigned_abs()
}

fn seconds(number: i32) -> Duration {
    Duration::from_secs(count(number).into())
}

fn initialize(mut given: Collected) -> Result<Request, Message> {
    if given.benchmark_option {
        let text = "some of the specified options cannot be used in initialization (-i) mode";
        return Err(Message::error(text));
    }
    let partitions = given.partitions.map_or(0, count);
    if partitions == 0 && given.partition_method.is_some() {
        return Err(Message::error("--partition-method requires greater than zero --partitions"));
    }
    let common = common(&mut given);
    let steps = given.steps.unwrap_or_default();
    let options = InitOptions {
        steps: if given.no_vacuum { steps.without_vacuum() } else { steps },
        scale: given.scale.map_or(1, count),
        fillfactor: given.fillfactor.and_then(|percent| u8::try_from(percent).ok()).unwrap_or(100),
        unlogged: given.unlogged,
        foreign_keys: given.foreign_keys,
        quiet: given.quiet,
        tablespace: given.tablespace,
        index_tablespace: given.index_tablespace,
        partitions,
        partition_method: given.partition_method.unwrap_or_default(),
        ..InitOptions::default()
    };
    Ok(Request::Initialize(common, options))
}

fn benchmark(mut given: Collected) -> Result<Request, Message> {
    check(&given).map_err(Message::error)?;
    let common = common(&mut given);
    let clients = given.clients.map_or(1, count);
    let default = given.duration.is_none().then_some(TRANSACTIONS);
    Ok(Request::Benchmark(
        common,
        Box::new(Benchmark {
            scripts: given.scripts,
            clients: clients as usize,
            threads: given.threads.map_or(1, count).min(clients) as usize,
            transactions: given.transactions.map(|number| count(number).into()).or(default),
            duration: given.duration.map(seconds),
            connect: given.connect,
            defines: given.defines,
            log: given.log,
            log_prefix: given.log_prefix.unwrap_or_else(|| "pgbench_log".to_owned()),
            sampling_rate: given.sampling_rate,
            aggregate_interval: given.aggregate_interval.map(seconds),
            latency_limit: given.latency_limit,
            protocol: given.protocol,
            no_vacuum: given.no_vacuum,
            vacuum_all: given.vacuum_all,
            progress: given.progress.map(seconds),
            progress_timestamp: given.progress_timestamp,
            per_command: given.per_command,
            rate: given.rate,
            scale: given.scale.map(count),
            failures_detailed: given.failures_detailed,
            max_tries: given.max_tries.unwrap_or(1),
            verbose_errors: given.verbose_errors,
            exit_on_abort: given.exit_on_abort,
            continue_on_error: given.continue_on_error,
            seed: given.seed,
        }),
    ))
}

/// The contradictions of a run, in pgbench's order.
fn check(given: &Collected) -> Result<(), String> {
    let wrong = |text: &str| Err(text.to_owned());
    if given.initialize_option {
        return wrong("some of the specified options cannot be used in benchmarking mode");
    }
    if given.transactions.is_some() && given.duration.is_some() {
        return wrong("specify either a number of transactions (-t) or a duration (-T), not both");
    }
    if given.sampling_rate.is_some() && !given.log {
        return wrong("log sampling (--sampling-rate) is allowed only when logging transactions (-l)");
    }
    if given.sampling_rate.is_some() && given.aggregate_interval.is_some() {
        return wrong(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        );
    }
    if given.aggregate_interval.is_some() && !given.log {
        return wrong("log aggregation is allowed only when actually logging transactions");
    }
    if given.log_prefix.is_some() && !given.log {
        return wrong("log file prefix (--log-prefix) is allowed only when logging transactions (-l)");
    }
    if let (Some(interval), Some(duration)) = (given.aggregate_interval, given.duration) {
        if interval > duration {
            return Err(format!(
                "number of seconds for aggregation ({interval}) must not be higher than test duration ({duration})"
            ));
        }
        if duration % interval != 0 {
            return Err(format!(
                "duration ({duration}) must be a multiple of aggregation interval ({interval})"
            ));
        }
    }
    if given.progress_timestamp && given.progress.is_none() {
        return wrong("--progress-timestamp is allowed only under --progress");
    }
    let limited = given.latency_limit.is_some() || given.duration.is_some();
    if given.max_tries == Some(0) && !limited {
        return wrong(
            "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
        );
    }
    Ok(())
}
