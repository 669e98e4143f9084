//! One run on the simulated server, and what is checked after every one.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isobench_pgwire::{ServerError, SqlState};
use isobench_runner::{
    Backoff, Control, ErrorClass, Event, Job, Nanos, OnError, Outcome, Pacing, Protocol, RetryPolicy,
    RunSpec, Simulation, Stop, Urgency, Workload,
};
use isobench_script::{Mix, Symbols, Value, Variables, Weighted, parse};
use isobench_stats::Ledger;
use isobench_testkit::simulated::{Faults, Settings, SimulatedServer, Truth};

/// One random number, one block, one INSERT. Commands: 0 `\set`, 1 BEGIN, 2 UPDATE, 3 INSERT, 4 END.
pub const TRANSFER: &str = "\\set v random(1, 1000000)
BEGIN;
UPDATE t SET v = v + :v;
INSERT INTO h VALUES (:v);
END;
";

/// One INSERT that commits by itself.
pub const INSERT: &str = "INSERT INTO h VALUES (1);\n";

/// Nanoseconds of milliseconds.
pub const fn ms(milliseconds: u64) -> u64 {
    milliseconds * 1_000_000
}

/// A duration of milliseconds.
pub const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// At most so many tries, without backoff.
pub fn tries(most: u32) -> RetryPolicy {
    RetryPolicy { max_tries: NonZeroU32::new(most), backoff: Backoff::None }
}

/// Tries without end, with this backoff.
pub fn backoff(text: &str) -> RetryPolicy {
    RetryPolicy { max_tries: None, backoff: text.parse().expect("a backoff policy") }
}

/// What a test runs.
#[derive(Debug, Clone)]
pub struct Case {
    pub scripts: Vec<(String, u64)>,
    pub spec: RunSpec,
    pub stop: Stop,
    pub settings: Settings,
    /// What variables hold at the start.
    pub variables: Vec<(&'static str, i64)>,
    pub interrupts: Vec<(Duration, Urgency)>,
}

/// A case that is set up, to be run once or several times with the same sessions.
pub struct Stage {
    case: Case,
    job: Job,
    server: SimulatedServer,
    simulation: Simulation<SimulatedServer>,
    control: Arc<Control>,
}

/// What a run brought.
pub struct Ran {
    pub outcome: Outcome,
    pub ledger: Ledger,
    /// What the server has done, from the begin of the first run on.
    pub truth: Truth,
    pub events: Vec<Event>,
}

impl Case {
    /// One client, one transaction, the simple protocol, retries without end or delay, a server that takes 1 ms.
    pub fn new(script: &str) -> Case {
        let spec = RunSpec {
            clients: 1,
            workers: 1,
            pacing: Pacing::Unpaced,
            latency_limit: None,
            retry: RetryPolicy::UNLIMITED,
            protocol: Protocol::Simple,
            on_error: OnError::Abort,
            seed: 1,
            per_command: true,
            grace: Duration::from_secs(5),
            ..RunSpec::default()
        };
        Case {
            scripts: vec![(script.to_owned(), 1)],
            spec,
            stop: Stop::Transactions(1),
            settings: Settings { time_limit: Duration::from_mins(10), ..Settings::default() },
            variables: Vec::new(),
            interrupts: Vec::new(),
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

    pub fn faults(mut self, faults: Faults) -> Case {
        self.settings.faults = faults;
        self
    }

    pub fn transactions(mut self, count: u64) -> Case {
        self.stop = Stop::Transactions(count);
        self
    }

    pub fn time(mut self, time: Duration) -> Case {
        self.stop = Stop::Time(time);
        self
    }

    pub fn interrupt(mut self, at: Duration, urgency: Urgency) -> Case {
        self.interrupts.push((at, urgency));
        self
    }

    /// Connects the clients.
    pub fn stage(self) -> Stage {
        let mut symbols = Symbols::new();
        let scripts = self.scripts.iter().map(|(text, weight)| Weighted {
            script: parse("test.sql", text, &mut symbols).expect("a script"),
            weight: *weight,
        });
        let mix = Mix::new(scripts.collect()).expect("a mix");
        let mut variables = Variables::new(&symbols);
        for (name, value) in &self.variables {
            variables.set(symbols.intern(name), Value::Int(*value));
        }
        let workload = Workload { mix, symbols, variables };
        let job = Job::new(self.spec.clone(), workload, Box::new(classify));
        let server = SimulatedServer::new(self.settings.clone());
        let control = Arc::new(Control::new());
        for (at, urgency) in self.interrupts.iter().copied() {
            let control = Arc::clone(&control);
            server.at(Nanos(0).after(at), move || control.request(urgency));
        }
        let simulation = Simulation::new(&job, server.clone());
        Stage { case: self, job, server, simulation, control }
    }

    /// Runs the case once.
    pub fn run(self) -> Ran {
        let stop = self.stop;
        let mut stage = self.stage();
        let ran = stage.run(stop);
        let truth = stage.end(&[&ran]);
        Ran { truth, ..ran }
    }
}

impl Stage {
    /// Runs the clients until `stop`, and checks that the account balances.
    pub fn run(&mut self, stop: Stop) -> Ran {
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let report = move |event| heard.lock().expect("no panic").push(event);
        let outcome = self.simulation.run(&self.job, stop, &self.server, &self.control, &report, None);
        let truth = self.server.truth();
        let events = std::mem::take(&mut *events.lock().expect("no panic"));
        assert!(!truth.ran_out_of_time, "the run hangs: {:?}", outcome.ledger());
        outcome.check().unwrap_or_else(|error| panic!("{error}\n{:#?}", outcome.ledger()));
        let clients = self.case.spec.clients as u64;
        let time = outcome.ledger().time;
        let spent = time.useful + time.wasted + time.backoff + time.waiting;
        assert!(
            u128::from(spent) <= outcome.elapsed.as_nanos() * u128::from(clients),
            "more time spent than passed"
        );
        Ran { ledger: outcome.ledger(), outcome, truth, events }
    }

    /// Lets the server finish, and holds the accounts of all runs against what it has done.
    pub fn end(self, runs: &[&Ran]) -> Truth {
        self.server.settle();
        let truth = self.server.truth();
        let counts_rows = self.case.scripts.iter().all(|(text, _)| text.matches("INSERT").count() == 1);
        if counts_rows {
            let sum: Ledger = runs.iter().map(|run| &run.ledger).sum();
            let (least, unknown) = (sum.transactions.committed, sum.transactions.ambiguous);
            let rows = truth.committed_rows;
            assert!(
                least <= rows && rows <= least + unknown,
                "{least} committed, {unknown} ambiguous, but {rows} rows in the server\n{sum:#?}"
            );
        }
        truth
    }
}

impl Ran {
    /// Why clients ended before their time.
    pub fn aborts(&self) -> Vec<String> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Aborted(place, cause) => Some(format!("{place:?} {cause:?}")),
            _ => None,
        });
        texts.collect()
    }

    /// Why the only client that ended before its time did so.
    pub fn abort(&self) -> String {
        let [message] = &self.aborts()[..] else { panic!("{:?}", self.events) };
        message.clone()
    }

    /// What `debug()` printed.
    pub fn debugs(&self) -> Vec<&str> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Debug(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

fn classify(error: &ServerError) -> ErrorClass {
    match error.code {
        SqlState::SERIALIZATION_FAILURE => ErrorClass::Conflict(Cow::Borrowed("concurrent update")),
        SqlState::DEADLOCK_DETECTED => ErrorClass::Conflict(Cow::Borrowed("deadlock")),
        SqlState::STATEMENT_COMPLETION_UNKNOWN => ErrorClass::Ambiguous,
        _ => ErrorClass::Other,
    }
}
