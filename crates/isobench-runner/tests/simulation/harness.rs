//! Runs on the simulated server, and the checks made after each of them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isobench_isolation::History;
use isobench_isolation::observed::ObservedDescription;
use isobench_pgwire::{ServerError, SqlState};
use isobench_runner::{
    AbortCause, ClientEvent, CommandPlace, Control, Detail, EndedTransaction, ErrorClass, FailedStatement,
    Job, Nanos, OnError, OnLost, Pacing, Protocol, Recording, RetryPolicy, Rules, RunOutcome, RunSpec,
    RunWorkload, Simulation, StopCondition, Storage, TransactionEnd, TransactionObserver, Urgency,
};
use isobench_script::{CommandKind, Mix, ObservedStatement, Symbols, Value, Variables, Weighted, parse};
use isobench_stats::Ledger;
use isobench_testkit::simulated::{Answer, Faults, SimulatedServer, SimulationSettings, Truth};

/// One random number, one block, one INSERT. Commands: 0 `\set`, 1 BEGIN, 2 UPDATE, 3 INSERT, 4
/// END.
pub const TRANSFER: &str = "\\set v random(1, 1000000)
BEGIN;
UPDATE t SET v = v + :v;
INSERT INTO h VALUES (:v);
END;
";

/// One INSERT that commits by itself.
pub const INSERT: &str = "INSERT INTO h VALUES (1);\n";

/// The query for a transaction's level.
pub const SNAPSHOT_QUESTION: &str = "SELECT the snapshot";
pub const LEVEL_QUESTION: &str = "SHOW transaction_isolation";

/// Milliseconds in nanoseconds.
pub const fn ms(milliseconds: u64) -> u64 {
    milliseconds * 1_000_000
}

/// A duration of milliseconds.
pub const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A duration of microseconds.
pub const fn micros(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

/// At most this many tries, without backoff.
pub fn tries(most: u32) -> RetryPolicy {
    RetryPolicy { max_tries: NonZeroU32::new(most), ..RetryPolicy::NEVER }
}

/// Unlimited tries with this backoff.
pub fn backoff(text: &str) -> RetryPolicy {
    RetryPolicy { backoff: text.parse().expect("a backoff policy"), ..RetryPolicy::UNLIMITED }
}

/// The settings of a test's run.
#[derive(Debug, Clone)]
pub struct Case {
    pub scripts: Vec<(String, u64)>,
    pub spec: RunSpec,
    pub stop: StopCondition,
    pub settings: SimulationSettings,
    /// Initial values of variables.
    pub variables: Vec<(&'static str, i64)>,
    pub interrupts: Vec<(Duration, Urgency)>,
    /// Where to keep the recording, if the case is recorded.
    pub storage: Option<Storage>,
    /// What statements show, by command of the first script, and what it refers to.
    pub shown: Option<(ObservedDescription, Vec<(usize, ObservedStatement)>)>,
    /// Some transactions are asked for their level.
    pub asks: bool,
    /// The first reader, and what readers send before each attempt.
    pub readers: Option<(usize, &'static str)>,
    pub asks_snapshots: bool,
}

/// A case with connected clients, to be run once or several times with the same sessions.
pub struct ConnectedCase {
    pub case: Case,
    job: Job,
    server: SimulatedServer,
    simulation: Simulation<SimulatedServer>,
    control: Arc<Control>,
}

/// The results of a run.
pub struct RunResult {
    pub outcome: RunOutcome,
    pub ledger: Ledger,
    /// The server's actions since the start of the first run.
    pub truth: Truth,
    pub events: Vec<ClientEvent>,
    /// The ends of transactions reported to the observer.
    pub ended: Vec<EndedTransaction>,
}

/// An observer that collects the ends of transactions.
#[derive(Default)]
struct EndRecorder {
    ended: Vec<EndedTransaction>,
}

impl TransactionObserver for EndRecorder {
    fn ended(&mut self, transaction: &EndedTransaction) {
        self.ended.push(*transaction);
    }
}

impl Case {
    /// One client, one transaction, the simple protocol, unlimited retries without delay, a server
    /// that takes 1 ms.
    pub fn new(script: &str) -> Case {
        let spec = RunSpec {
            retry: RetryPolicy::UNLIMITED,
            seed: 1,
            per_command: true,
            grace: Duration::from_secs(5),
            ..RunSpec::default()
        };
        Case {
            scripts: vec![(script.to_owned(), 1)],
            spec,
            stop: StopCondition::Transactions(1),
            settings: SimulationSettings {
                time_limit: Duration::from_mins(10),
                ..SimulationSettings::default()
            },
            variables: Vec::new(),
            interrupts: Vec::new(),
            storage: None,
            shown: None,
            asks: false,
            readers: None,
            asks_snapshots: false,
        }
    }

    pub fn clients(mut self, clients: usize) -> Case {
        self.spec.clients = clients;
        self
    }

    pub fn protocol(mut self, protocol: Protocol) -> Case {
        self.spec.protocol = protocol;
        self
    }

    pub fn retry(mut self, retry: RetryPolicy) -> Case {
        self.spec.retry = retry;
        self
    }

    pub fn pacing(mut self, pacing: Pacing) -> Case {
        self.spec.pacing = pacing;
        self
    }

    pub fn limit(mut self, limit: Duration) -> Case {
        self.spec.latency_limit = Some(limit);
        self
    }

    pub fn rules(mut self, rules: Rules) -> Case {
        self.spec.rules = rules;
        self
    }

    pub fn on_error(mut self, on_error: OnError) -> Case {
        self.spec.on_error = on_error;
        self
    }

    /// Replaces lost sessions; opening one takes this long.
    pub fn reconnects(mut self, backoff: &str, connecting: Duration) -> Case {
        self.spec.on_lost = OnLost::Reconnect(backoff.parse().expect("a policy"));
        self.settings.connecting = connecting;
        self
    }

    pub fn detail(mut self, detail: Detail) -> Case {
        self.spec.detail = detail;
        self
    }

    /// Opens a session for each transaction, which takes this long.
    pub fn connect_each(mut self, connecting: Duration) -> Case {
        self.spec.connect_each = true;
        self.settings.connecting = connecting;
        self
    }

    pub fn faults(mut self, faults: Faults) -> Case {
        self.settings.faults = faults;
        self
    }

    pub fn transactions(mut self, count: u64) -> Case {
        self.stop = StopCondition::Transactions(count);
        self
    }

    /// Counts over time, in bins of this length.
    pub fn series(mut self, bin: Duration) -> Case {
        self.spec.series = Some(bin);
        self
    }

    pub fn time(mut self, time: Duration) -> Case {
        self.stop = StopCondition::Time(time);
        self
    }

    /// Asks some transactions for their level; the server answers with this one.
    /// Transactions are asked for their snapshots, and this is what they answer.
    pub fn asks_snapshots(mut self, answer: [Option<&'static str>; 3]) -> Case {
        self.asks_snapshots = true;
        let fields: Vec<_> = answer.iter().map(|value| ("x", *value)).collect();
        self.settings.answers.insert(0, (SNAPSHOT_QUESTION, Answer::row(&fields)));
        self
    }

    pub fn asks(mut self, level: &'static str) -> Case {
        self.asks = true;
        self.settings.answers.insert(0, (LEVEL_QUESTION, Answer::column("transaction_isolation", &[level])));
        self
    }

    /// Lets the clients from this number on send a statement before each attempt.
    pub fn readers(mut self, first: usize, sql: &'static str) -> Case {
        self.readers = Some((first, sql));
        self
    }

    /// Records the reads and writes of transactions.
    pub fn recorded(mut self) -> Case {
        self.storage = Some(Storage::default());
        self
    }

    pub fn interrupt(mut self, at: Duration, urgency: Urgency) -> Case {
        self.interrupts.push((at, urgency));
        self
    }

    /// Connects the clients.
    pub fn stage(self) -> ConnectedCase {
        let mut symbols = Symbols::new();
        let scripts = self.scripts.iter().map(|(text, weight)| Weighted {
            script: parse("test.sql", text, &mut symbols).expect("a script"),
            weight: *weight,
        });
        let mut mix = Mix::new(scripts.collect()).expect("a mix");
        for (command, statement) in self.shown.iter().flat_map(|(_, shown)| shown) {
            let script = mix.scripts_mut().next().expect("a script");
            let CommandKind::Sql(sql) = &mut script.commands[*command].kind else { panic!("not SQL") };
            sql.observed.push(statement.clone());
        }
        let mut variables = Variables::new(&symbols);
        for (name, value) in &self.variables {
            variables.set(symbols.intern(name), Value::Int(*value));
        }
        let workload = RunWorkload { mix, symbols, variables };
        // Sessions are opened by the simulated server.
        let refuse = |_, _| Err("the simulation has no real connections".to_owned());
        let job = Job::new(self.spec.clone(), workload, Box::new(classify)).reconnecting(Box::new(refuse));
        let job = match &self.storage {
            Some(storage) => job.recording(storage.clone()).expect("a recording"),
            None => job,
        };
        let job = match &self.shown {
            Some((description, _)) => job.observing(description.clone(), 1 << 20),
            None => job,
        };
        let job = match self.readers {
            None => job,
            Some((first, sql)) => {
                let scripts = (0..self.scripts.len()).collect();
                job.with_readers(first, scripts).before_reading(Box::new(move || Some(sql.to_owned())))
            }
        };
        let job = if self.asks { job.asking_level(LEVEL_QUESTION) } else { job };
        let job = if self.asks_snapshots { job.asking_snapshot(SNAPSHOT_QUESTION) } else { job };
        let server = SimulatedServer::new(self.settings.clone());
        let control = Arc::new(Control::new());
        for (at, urgency) in self.interrupts.iter().copied() {
            let control = Arc::clone(&control);
            server.at(Nanos(0).after(at), move || control.request(urgency));
        }
        let simulation = Simulation::new(&job, server.clone());
        ConnectedCase { case: self, job, server, simulation, control }
    }

    /// Runs the case once.
    pub fn run(self) -> RunResult {
        let stop = self.stop;
        let mut stage = self.stage();
        let ran = stage.run(stop);
        let truth = stage.end(&[&ran]);
        RunResult { truth, ..ran }
    }

    /// Runs the case once, and returns what its statements showed: the history, and the reason why it
    /// isn't complete.
    pub fn run_shown(self) -> (RunResult, History, Option<String>) {
        let stop = self.stop;
        let mut stage = self.stage();
        let ran = stage.run(stop);
        let why = stage.recording().incomplete();
        let (truth, history) = stage.end_recorded(&[&ran]);
        (RunResult { truth, ..ran }, history, why)
    }

    /// Runs the case once, and returns the recording too.
    pub fn run_recorded(self) -> (RunResult, History) {
        let stop = self.stop;
        let mut stage = self.recorded().stage();
        let ran = stage.run(stop);
        let (truth, history) = stage.end_recorded(&[&ran]);
        (RunResult { truth, ..ran }, history)
    }
}

impl ConnectedCase {
    /// Runs the clients until `stop`, and checks that the ledger balances.
    pub fn run(&mut self, stop: StopCondition) -> RunResult {
        let ran = self.run_part(stop);
        self.checked(ran)
    }

    /// Runs the clients in this many turns of a length, and checks their sum.
    pub fn run_in_turns(&mut self, turns: u32, length: Duration) -> RunResult {
        let mut sum = self.run_part(StopCondition::Turn(length));
        sum.outcome = sum.outcome.into_turn(length);
        for turn in 1..=turns {
            let last = turn == turns;
            let stop = if last { StopCondition::Time(Duration::ZERO) } else { StopCondition::Turn(length) };
            let next = self.run_part(stop);
            if last {
                sum.outcome.close(next.outcome);
            } else {
                sum.outcome.append(next.outcome);
            }
            sum.events.extend(next.events);
            sum.ended.extend(next.ended);
            sum.truth = next.truth;
        }
        sum.ledger = sum.outcome.ledger();
        assert_eq!(sum.outcome.turns, turns);
        self.checked(sum)
    }

    fn run_part(&mut self, stop: StopCondition) -> RunResult {
        let events = Arc::new(Mutex::new(Vec::new()));
        let observed = Arc::clone(&events);
        let report = move |event| observed.lock().expect("no panic").push(event);
        let mut recorder = EndRecorder::default();
        let outcome =
            self.simulation.run(&self.job, stop, &self.server, &self.control, &report, Some(&mut recorder));
        let truth = self.server.truth();
        let events = std::mem::take(&mut *events.lock().expect("no panic"));
        assert!(!truth.ran_out_of_time, "the run hangs: {:?}", outcome.ledger());
        RunResult { ledger: outcome.ledger(), outcome, truth, events, ended: recorder.ended }
    }

    fn checked(&self, ran: RunResult) -> RunResult {
        let outcome = &ran.outcome;
        outcome.check().unwrap_or_else(|error| panic!("{error}\n{:#?}", outcome.ledger()));
        let clients = self.case.spec.clients as u64;
        let time = outcome.ledger().time;
        let spent = time.useful + time.wasted + time.backoff + time.waiting;
        assert!(
            u128::from(spent) <= outcome.elapsed.as_nanos() * u128::from(clients),
            "more time spent than passed"
        );
        check_load(outcome);
        ran.check_observations(&self.case.spec);
        ran
    }

    /// Lets the server finish, and compares the ledgers of all runs with what it has done.
    pub fn end(self, runs: &[&RunResult]) -> Truth {
        self.settle(runs)
    }

    /// Like [`ConnectedCase::end`], and returns the recording.
    pub fn end_recorded(self, runs: &[&RunResult]) -> (Truth, History) {
        let truth = self.settle(runs);
        let recording = self.job.into_recording().expect("the case is recorded");
        (truth, recording.into_history().expect("a history"))
    }

    /// The recording so far.
    pub fn recording(&self) -> &Recording {
        self.job.recorded().expect("the case is recorded")
    }

    fn settle(&self, runs: &[&RunResult]) -> Truth {
        self.server.settle();
        let truth = self.server.truth();
        let counts_rows = self.case.scripts.iter().all(|(text, _)| text.matches("INSERT").count() == 1);
        let sum: Ledger = runs.iter().map(|run| &run.ledger).sum();
        if self.case.spec.connect_each {
            let begun = sum.transactions.total - sum.transactions.skipped;
            assert_eq!(truth.sessions.iter().sum::<u64>(), begun, "sessions and transactions");
        }
        if counts_rows {
            // A swallowed transaction is acknowledged, and its other work is done.
            let least = sum.transactions.committed + sum.transactions.swallowed;
            let unknown = sum.transactions.ambiguous;
            let rows = truth.committed_rows;
            assert!(
                least <= rows && rows <= least + unknown,
                "{least} committed, {unknown} ambiguous, but {rows} rows in the server\n{sum:#?}"
            );
        }
        truth
    }
}

impl RunResult {
    /// The clients that ended early, with the reason.
    pub fn aborts(&self) -> Vec<(CommandPlace, AbortCause)> {
        let aborts = self.events.iter().filter_map(|event| match event {
            ClientEvent::Aborted(place, cause) => Some((*place, cause.clone())),
            _ => None,
        });
        aborts.collect()
    }

    /// The only client that ended early, with the reason.
    pub fn abort(&self) -> (CommandPlace, AbortCause) {
        let [abort] = &self.aborts()[..] else { panic!("{:?}", self.events) };
        abort.clone()
    }

    /// The error of the server that ended the only client that ended early.
    pub fn server_error(&self) -> (CommandPlace, FailedStatement) {
        match self.abort() {
            (place, AbortCause::Server(failed)) => (place, failed),
            other => panic!("{other:?}"),
        }
    }

    /// The number of transactions that ended like this, as reported to the observer.
    pub fn count(&self, end: TransactionEnd) -> u64 {
        self.ended.iter().filter(|ended| ended.end == end).count() as u64
    }

    /// Compares the observer's reports with the ledger.
    fn check_observations(&self, spec: &RunSpec) {
        let transactions = self.ledger.transactions;
        let further: u64 = self.outcome.scripts.iter().map(|script| script.further_failures).sum();
        let conflicts = self.count(TransactionEnd::Deadlock) + self.count(TransactionEnd::Serialization);
        let given_up = conflicts + further;
        assert_eq!(self.count(TransactionEnd::Committed), transactions.committed);
        assert_eq!(given_up, transactions.given_up);
        assert_eq!(self.count(TransactionEnd::Swallowed), transactions.swallowed);
        assert_eq!(self.count(TransactionEnd::RolledBack), transactions.rolled_back);
        assert_eq!(self.count(TransactionEnd::Skipped), transactions.skipped);
        let deadlocks: u64 = self.outcome.scripts.iter().map(|script| script.deadlock_failures).sum();
        assert_eq!(self.count(TransactionEnd::Deadlock), deadlocks);
        // A transaction that ends with its client isn't reported.
        let (lost, observed) =
            (transactions.ambiguous + transactions.errored, self.count(TransactionEnd::OtherError) - further);
        assert!(observed <= lost && lost - observed <= self.outcome.aborted as u64, "{observed} of {lost}");
        let abandoned: u64 = self.outcome.scripts.iter().map(|script| script.abandoned).sum();
        assert!(
            abandoned <= observed && observed <= abandoned + transactions.ambiguous,
            "{abandoned} of {observed}"
        );
        let reported =
            self.events.iter().filter(|event| matches!(event, ClientEvent::Abandoned(..))).count() as u64;
        // Of those abandoned with their session only that is reported.
        let with_session = self.outcome.lost_sessions;
        assert!((reported..=reported + with_session).contains(&abandoned), "{abandoned}: {:?}", self.events);
        let names: BTreeSet<_> = self.ended.iter().map(|ended| (ended.client, ended.number)).collect();
        assert_eq!(names.len(), self.ended.len(), "a transaction ended twice");
        assert!(self.ended.iter().all(|ended| (ended.tries == 0) == (ended.end == TransactionEnd::Skipped)));
        assert!(self.ended.is_sorted_by_key(|ended| ended.at));
        self.check_observed_times(spec);
        for (number, script) in self.outcome.scripts.iter().enumerate() {
            let of_script = || self.ended.iter().filter(|ended| ended.script == number);
            let committed = of_script().filter(|ended| ended.end == TransactionEnd::Committed).count() as u64;
            assert_eq!(committed, script.ledger.transactions.committed);
            // Of those reported as other errors, retries of the abandoned ones are counted, those
            // of unknown outcome aren't.
            let retried = of_script().filter(|ended| ended.tries > 1);
            let (others, known): (Vec<_>, Vec<_>) =
                retried.partition(|ended| ended.end == TransactionEnd::OtherError);
            let least = known.len() as u64;
            let most = least + (others.len() as u64).min(script.abandoned + script.further_failures);
            assert!((least..=most).contains(&script.retried_transactions), "{script:?}");
            let retries =
                |of: &[&EndedTransaction]| of.iter().map(|ended| u64::from(ended.tries - 1)).sum::<u64>();
            let (least, most) = (retries(&known), retries(&known) + retries(&others));
            assert!((least..=most).contains(&script.retries), "{script:?}");
        }
    }

    fn check_observed_times(&self, spec: &RunSpec) {
        let committed = || self.ended.iter().filter(|ended| ended.end == TransactionEnd::Committed);
        let latencies = || committed().map(|ended| ended.latency as f64 / 1e6);
        let near = |one: f64, other: Option<f64>| {
            let other = other.unwrap_or(0.0);
            assert!((one - other).abs() <= 1e-6 * other.max(1.0), "{one} and {other}");
        };
        near(latencies().fold(0.0, f64::max), self.outcome.latency().max_ms());
        let count = committed().count().max(1) as f64;
        near(latencies().sum::<f64>() / count, self.outcome.latency().mean_ms());
        let late = |ended: &&EndedTransaction| {
            spec.latency_limit.is_some_and(|limit| u128::from(ended.latency) > limit.as_nanos())
        };
        assert_eq!(committed().filter(late).count() as u64, self.ledger.late);
        let most = self.outcome.scripts.iter().filter_map(|script| script.lag.max_ns()).max().unwrap_or(0);
        let began = self.ended.iter().filter(|ended| ended.end != TransactionEnd::Skipped);
        assert!(began.clone().all(|ended| ended.lag <= most && ended.lag <= ended.latency));
    }

    /// The output of `debug()`.
    pub fn debugs(&self) -> Vec<&str> {
        let texts = self.events.iter().filter_map(|event| match event {
            ClientEvent::Debug(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// Compares the worker's load with the whole run.
fn check_load(outcome: &RunOutcome) {
    let [load] = &outcome.load[..] else { panic!("{:?}", outcome.load) };
    assert!(load.busy <= load.elapsed && load.elapsed <= outcome.elapsed, "{load:?}");
    // Every pass serves at least one client, except those that only check for the end.
    assert!(load.timers.len() <= load.lag.len() && load.passes > 0, "{load:?}");
    assert!(u128::from(load.lag.moments().max_ns().unwrap_or(0)) <= load.busy.as_nanos(), "{load:?}");
}

/// The code of an error that is retried although it is no conflict.
pub const FURTHER: SqlState = SqlState(*b"23P01");

fn classify(error: &ServerError) -> ErrorClass {
    let conflict = |reason| ErrorClass::Conflict {
        reason: Cow::Borrowed(reason),
        object: error.context.clone().map(Cow::Owned),
    };
    match error.code {
        SqlState::SERIALIZATION_FAILURE => conflict("concurrent update"),
        SqlState::DEADLOCK_DETECTED => conflict("deadlock"),
        SqlState::STATEMENT_COMPLETION_UNKNOWN => ErrorClass::Ambiguous,
        FURTHER => ErrorClass::Retried { reason: Cow::Borrowed("asked for") },
        _ => ErrorClass::Other,
    }
}

/// Short for a place.
pub fn at(client: usize, script: usize, command: usize) -> CommandPlace {
    CommandPlace { client, script, command }
}
