//! A run from connecting to the exit status.
//!
//! Not here: the meaning of the options (`options.rs`), and the output (`summary.rs`,
//! `progress.rs`, the runner's `wording.rs`).

use std::io::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use isobench_database::products::UNKNOWN;
use isobench_pgwire::{Connection, Host, ServerError, fit, process_environment};
use isobench_runner::wording::{self, MessageForm};
use isobench_runner::{
    ClientEvent, Control, Detail, ErrorClass, Fleet, Job, LogSettings, LoggedRun, OnError, OnLost, OpenError,
    Pacing, RetryPolicy, Rules, RunOutcome, RunSpec, StopCondition, Watch,
};

use crate::console::{Console, Message};
use crate::interrupt::Interrupt;
use crate::options::{Benchmark, Common};
use crate::progress::ProgressLines;
use crate::setup::{self, Login, Tables};
use crate::summary::Summary;
use crate::version::Version;

/// The run is complete.
const DONE: u8 = 0;
/// Nothing was measured.
const FAILED: u8 = 1;
/// The measurement is incomplete.
const INCOMPLETE: u8 = 2;

/// Carries out a run, prints its results, and returns the exit status.
pub fn benchmark(common: &Common, options: Benchmark, console: Console) -> u8 {
    match Prepared::new(common, options, console).and_then(|prepared| prepared.run()) {
        Ok(status) => status,
        Err(message) => {
            console.say(&message);
            FAILED
        }
    }
}

/// The state before the clients connect.
struct Prepared {
    console: Console,
    version: Version,
    job: Job,
    login: Login,
    tables: Tables,
    stop: StopCondition,
    options: Benchmark,
}

impl Prepared {
    fn new(common: &Common, mut options: Benchmark, console: Console) -> Result<Prepared, Message> {
        let refused = |why: String| setup::no_session(why, "setup");
        let mut login = Login::new(&common.connection, &process_environment).map_err(refused)?;
        let mut connection = login.first().map_err(refused)?;
        print(&setup::header(common.version, connection.parameter("server_version")));
        tell_settings(console, &login, &options);
        let tables = tables(&mut connection, &login, (common.version, &options), console)?;
        let scripts = std::mem::take(&mut options.scripts);
        let workload = scripts.workload(tables.scale, options.seed, &options.defines)?;
        if !options.no_vacuum {
            let tell = |step: setup::Vacuum<'_>| setup::tell_vacuum(console, step);
            setup::vacuum(&mut connection, options.vacuum_all, &tell).map_err(Message::error)?;
        }
        connection.close();
        let stop = match (options.transactions, options.duration) {
            (_, Some(duration)) => StopCondition::Time(duration),
            (count, None) => StopCondition::Transactions(count.unwrap_or(10)),
        };
        let reconnect = login.clone();
        let job = Job::new(spec(common.debug, &options), workload, Box::new(classify))
            .reconnecting(Box::new(move |_, _| reconnect.open()));
        Ok(Prepared { console, version: common.version, job, login, tables, stop, options })
    }

    /// Returns the exit status.
    ///
    /// # Errors
    /// The run didn't take place, for this reason.
    fn run(&self) -> Result<u8, Message> {
        let options = &self.options;
        let mut fleet = self.connect()?;
        let control = Arc::new(Control::new());
        let interrupt = Interrupt::watch(&control).map_err(Message::error)?;
        let mut lines = ProgressLines::new(self.job.spec(), options.progress_timestamp);
        let report = |event: ClientEvent| self.tell(&event);
        let watch = Watch {
            every: options.progress.unwrap_or(Duration::MAX),
            latencies: false,
            show: &mut |elapsed, progress| {
                self.console.say(&Message::plain(lines.line(elapsed, &progress)));
            },
        };
        let log = self.log_settings();
        let run = fleet.run_logged(&self.job, self.stop, &control, &report, watch, log.as_ref());
        let LoggedRun { outcome, logged } = run.map_err(Message::error)?;
        let connecting = fleet.connecting();
        drop(fleet);
        if let Err(error) = logged {
            self.console.error(error);
        }
        let status = self.conclude(&outcome, connecting);
        interrupt.obey();
        Ok(status)
    }

    /// Prints a client's message.
    fn tell(&self, event: &ClientEvent) {
        for (kind, text) in wording::messages(event, &self.job, self.version.dialect()) {
            match kind {
                MessageForm::Error => self.console.error(text),
                MessageForm::Info => self.console.info(text),
                MessageForm::Plain => self.console.say(&Message::plain(text)),
            }
        }
    }

    /// Connects all clients.
    fn connect(&self) -> Result<Fleet, Message> {
        let connect = |client: usize| match self.login.open() {
            Ok(connection) => Ok((connection, ())),
            Err(why) => Err(setup::no_session(why, format_args!("client {client}"))),
        };
        let opened = Fleet::open(&self.job, &connect);
        opened.map(|(fleet, _)| fleet).map_err(|error| match error {
            OpenError::Session(message) => message,
            OpenError::EventLoop(..) | OpenError::NoRing(_) | OpenError::Threads(_) => Message::error(error),
        })
    }

    fn log_settings(&self) -> Option<LogSettings> {
        let options = &self.options;
        options.log.then(|| LogSettings {
            prefix: options.log_prefix.clone(),
            sampling_rate: options.sampling_rate,
            aggregate_interval: options.aggregate_interval,
            failures_detailed: options.failures_detailed,
            other_failures: self.version.continue_on_error(),
        })
    }

    /// Prints the results of a run, and returns the exit status.
    fn conclude(&self, outcome: &RunOutcome, connecting: Duration) -> u8 {
        let options = &self.options;
        if options.exit_on_abort && outcome.aborted > 0 {
            let thread = outcome.aborted_in.unwrap_or(0);
            self.console.error(format_args!("Run was aborted due to an error in thread {thread}"));
            return INCOMPLETE;
        }
        let summary = Summary {
            version: self.version,
            job: &self.job,
            run: outcome,
            stop: self.stop,
            scale: self.tables.scale,
            partitions: self.tables.partitions,
            connecting,
            failures_detailed: options.failures_detailed,
            per_command: options.per_command,
            progress: options.progress.is_some(),
        };
        print(&summary.render());
        if let Err(error) = outcome.check() {
            self.console.error(error);
            return INCOMPLETE;
        }
        if outcome.is_complete() {
            return DONE;
        }
        self.console.error("Run was aborted; the above results are incomplete.");
        INCOMPLETE
    }
}

/// The scale of the tables: counted if a built-in script is used, since its tables are known;
/// otherwise as given.
fn tables(
    connection: &mut Connection,
    login: &Login,
    (version, options): (Version, &Benchmark),
    console: Console,
) -> Result<Tables, Message> {
    let given = options.scale.map(i64::from);
    if !options.scripts.has_builtin() {
        return Ok(Tables { scale: given.unwrap_or(1), partitions: None });
    }
    let tables = setup::tables(connection, &login.options().dbname, version)?;
    if given.is_some() {
        console.warning(format_args!(
            "scale option ignored, using count from pgbench_branches table ({})",
            tables.scale
        ));
    }
    Ok(tables)
}

/// Prints the settings of a run, for debugging.
fn tell_settings(console: Console, login: &Login, options: &Benchmark) {
    let server = login.options();
    let host = server.hosts.first();
    let how_long = match (options.duration, options.transactions) {
        (Some(duration), _) => format!("duration: {}", duration.as_secs()),
        (None, count) => format!("nxacts: {}", count.unwrap_or(10)),
    };
    console.debug(format_args!(
        "pghost: {} pgport: {} nclients: {} {how_long} dbName: {}",
        host.map(Host::name).unwrap_or_default(),
        host.map_or(0, |host| host.port),
        options.clients,
        server.dbname
    ));
}

fn spec(debug: bool, options: &Benchmark) -> RunSpec {
    let detail = Detail { errors: options.verbose_errors, steps: debug, variables: false };
    RunSpec {
        share: None,
        clients: options.clients,
        workers: options.threads,
        pacing: options.rate.map_or(Pacing::Unpaced, Pacing::Rate),
        latency_limit: options.latency_limit,
        retry: RetryPolicy { max_tries: NonZeroU32::new(options.max_tries), ..RetryPolicy::NEVER },
        protocol: options.protocol,
        on_error: match (options.exit_on_abort, options.continue_on_error) {
            (_, true) => OnError::Continue,
            (true, false) => OnError::EndRun,
            (false, false) => OnError::Abort,
        },
        on_lost: OnLost::End,
        seed: options.seed,
        attempts_from: 0,
        event_loop: None,
        connect_each: options.connect,
        rules: Rules::Pgbench,
        detail,
        per_command: options.per_command,
        series: None,
        keeps_attempts: false,
        // pgbench waits without limit for transactions in progress.
        grace: Duration::MAX,
    }
}

/// Distinguishes the two kinds of errors that pgbench retries, on a server of unknown product.
fn classify(error: &ServerError) -> ErrorClass {
    UNKNOWN
        .conflict(error)
        .map_or(ErrorClass::Other, |conflict| ErrorClass::Conflict { reason: conflict.reason, object: None })
}

/// Prints on standard output.
pub fn print(text: &str) {
    // If the reader has gone away, the error can't be reported anywhere.
    let _ = std::io::stdout().write_all(fit(text).as_bytes()).and_then(|()| std::io::stdout().flush());
}
