//! The real transport: sockets, poll, epoll and threads, against a minimal server in a thread.
//!
//! Not here: the behaviour of clients, which is tested on the simulated server (`simulation/`).

use std::fs::File;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use isobench_isolation::History;
use isobench_isolation::history::{Key, Operation, Version};
use isobench_pgwire::{ConnectOptions, Connection, Host, TransactionStatus, server};
use isobench_runner::{
    AbortCause, ChosenLoop, ClientEvent, Control, EndedTransaction, ErrorClass, EventLoop, Fleet, Job,
    OnError, OpenError, Pacing, Rules, RunOutcome, RunSpec, RunWorkload, StopCondition, Storage,
    TransactionObserver, Urgency, Watch,
};
use isobench_script::{Mix, Streams, Symbols, Variables, Weighted, parse};
use isobench_testkit::handler::{self, Peer};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// A folder for a socket, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("isobench-fleet-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: it is a small folder among the system's temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// When the server sends FATAL and closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionEnd {
    Never,
    /// Instead of the first reply of the first session.
    ToTheFirst,
    /// Together with the first reply of each session.
    WithReplies,
}

/// Answers one session, the `number`th one from 0. True if the server is to end it.
fn serve(peer: &mut Peer, session_end: SessionEnd, number: usize) -> bool {
    peer.welcome();
    while peer.query().is_some() {
        let first = session_end == SessionEnd::ToTheFirst && number == 0;
        let ends = first || session_end == SessionEnd::WithReplies;
        peer.send(|out| {
            if !first {
                server::command_complete(out, "SELECT 0");
                server::ready_for_query(out, TransactionStatus::Idle);
            }
            if ends {
                let fields = [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "57P01"), (b'M', "good-bye")];
                server::error_response(out, &fields);
            }
        });
        if ends {
            return true;
        }
    }
    false
}

/// The settings of a test's run.
struct Case {
    scripts: Vec<&'static str>,
    spec: RunSpec,
    stop: StopCondition,
    session_end: SessionEnd,
}

/// The results of a run.
struct RunResult {
    outcome: RunOutcome,
    events: Vec<ClientEvent>,
    /// For each worker, the ends of transactions reported to its observer.
    ended: Vec<Vec<EndedTransaction>>,
    /// Sessions that the server has accepted.
    sessions: usize,
    /// The recording; empty for most scripts.
    history: History,
}

/// The event loops that are possible here.
fn event_loops() -> Vec<EventLoop> {
    let mut all = vec![EventLoop::Epoll];
    match isobench_ring::Ring::new(1) {
        Ok(_) => all.push(EventLoop::IoUring),
        Err(error) => eprintln!("not tested with io_uring: {error}"),
    }
    all
}

/// Collects the ends of one worker's transactions.
struct EndRecorder {
    worker: usize,
    ended: Arc<Mutex<Vec<Vec<EndedTransaction>>>>,
}

impl TransactionObserver for EndRecorder {
    fn ended(&mut self, transaction: &EndedTransaction) {
        self.ended.lock().expect("no panic")[self.worker].push(*transaction);
    }
}

impl Case {
    /// Clients on this many workers that run a script once.
    fn new(event_loop: EventLoop, script: &'static str, clients: usize, workers: usize) -> Case {
        let spec = RunSpec {
            clients,
            workers,
            seed: 1,
            grace: Duration::from_secs(1),
            event_loop: Some(event_loop),
            ..RunSpec::default()
        };
        Case {
            scripts: vec![script],
            spec,
            stop: StopCondition::Transactions(1),
            session_end: SessionEnd::Never,
        }
    }

    fn workload(&self, folder: &Path) -> RunWorkload {
        let mut symbols = Symbols::new();
        let ended = folder.join(ENDED).display().to_string();
        let scripts = self.scripts.iter().map(|text| {
            let script = parse("test.sql", &text.replace("ENDED", &ended), &mut symbols).expect("a script");
            Weighted { script, weight: 1 }
        });
        let mix = Mix::new(scripts.collect()).expect("a mix");
        RunWorkload { mix, variables: Variables::new(&symbols), symbols }
    }

    fn run(self) -> RunResult {
        let folder = Folder::new();
        let sessions = listen(&folder, self.session_end);
        let options = ConnectOptions::new(Host::unix(&folder.0, 5432), "somebody", "something");
        let again = options.clone();
        let reconnect = move |_, _| Connection::open(&again).map_err(|error| error.to_string());
        let job = Job::new(self.spec.clone(), self.workload(&folder.0), Box::new(|_| ErrorClass::Other))
            .reconnecting(Box::new(reconnect))
            .recording(Storage::Memory(0))
            .expect("a recording");
        let connect = |client| Connection::open(&options).map(|connection| (connection, client));
        let (mut fleet, prepared) = Fleet::open(&job, &connect).expect("sessions");
        let at_first = if self.spec.connect_each { 0 } else { self.spec.clients };
        assert_eq!(prepared, (0..at_first).collect::<Vec<_>>());
        let ended = Arc::new(Mutex::new(vec![Vec::new(); self.spec.workers]));
        let mut observers: Vec<Box<dyn TransactionObserver>> = (0..self.spec.workers)
            .map(|worker| {
                Box::new(EndRecorder { worker, ended: Arc::clone(&ended) }) as Box<dyn TransactionObserver>
            })
            .collect();
        let events = Mutex::new(Vec::new());
        let control = Control::new();
        let (done, over) = channel::<()>();
        let outcome = thread::scope(|scope| {
            let control = &control;
            // A run that hangs is cut off, and fails the assertion on its end below.
            scope.spawn(move || {
                if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    control.request(Urgency::Now);
                }
            });
            let report = |event| events.lock().expect("no panic").push(event);
            let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
            let outcome = fleet.run(&job, self.stop, control, &report, watch, &mut observers);
            drop(done);
            outcome.expect("threads")
        });
        outcome.check().expect("a balanced account");
        let used = outcome.event_loop.as_ref().map(|chosen| chosen.event_loop);
        assert!(used.is_some() && (self.spec.event_loop.is_none() || used == self.spec.event_loop));
        assert!(outcome.elapsed < PATIENCE, "it hangs");
        let ended = ended.lock().expect("no panic").clone();
        let sessions = sessions.load(Ordering::Relaxed);
        drop(fleet);
        let history = job.into_recording().expect("a recording").into_history().expect("a history");
        RunResult { outcome, events: events.into_inner().expect("no panic"), ended, sessions, history }
    }
}

/// Answers and counts sessions at a socket in the folder.
fn listen(folder: &Folder, session_end: SessionEnd) -> Arc<AtomicUsize> {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sessions);
    let ended = folder.0.join(ENDED);
    handler::serve_all(&folder.0.join(".s.PGSQL.5432"), move |peer, number| {
        count.fetch_add(1, Ordering::Relaxed);
        if serve(peer, session_end, number) {
            // Closes the connection before the file says so.
            drop(std::mem::replace(peer, Peer::new(Cursor::new(Vec::new()))));
            // The folder is gone if the test is already over.
            let _ = File::create(&ended);
        }
    })
    .expect("a socket");
    sessions
}

/// The file in the server's folder that exists once the server has ended a session.
const ENDED: &str = "ended";

/// The second of two clients keeps their worker busy until the first one's session has ended. So
/// its reply and its end are one event for the first client.
const BUSY: &str = "\\if :client_id = 1
\\shell n=0; until test -e ENDED; do n=$((n+1)); test $n -lt 30000 || exit 1; sleep 0.01; done
\\endif
SELECT 1;
";

#[test]
fn many_clients_of_several_workers_do_their_work() {
    for event_loop in event_loops() {
        let mut case = Case::new(event_loop, "SELECT 1;\nSELECT 2;\n", 20, 3);
        case.stop = StopCondition::Transactions(50);
        let ran = case.run();
        assert_eq!(ran.outcome.ledger().transactions.committed, 1000);
        assert!(ran.outcome.is_complete() && ran.events.is_empty(), "{:?}", ran.events);
        assert_eq!(ran.sessions, 20);
        // Each observer gets the transactions of its own worker's clients.
        for (ended, (clients, count)) in ran.ended.iter().zip([(0..7, 350), (7..14, 350), (14..20, 300)]) {
            assert_eq!(ended.len(), count);
            assert!(ended.iter().all(|ended| clients.contains(&ended.client)));
        }
    }
}

#[test]
fn every_worker_reports_its_load_and_their_counts_over_time_are_added() {
    for event_loop in event_loops() {
        let mut case = Case::new(event_loop, "SELECT 1;\nSELECT 2;\n", 20, 3);
        case.stop = StopCondition::Transactions(50);
        case.spec.series = Some(Duration::from_micros(500));
        // Every run asserts that the sums over time are the ledger's.
        let ran = case.run();
        let series = ran.outcome.series.expect("a series");
        assert_eq!((series.total().committed, series.total().attempts), (1000, 1000));
        let load = &ran.outcome.load;
        assert_eq!(load.iter().map(|load| load.clients).collect::<Vec<_>>(), [7, 7, 6]);
        for load in load {
            assert!(load.cpu.is_some_and(|cpu| !cpu.is_zero()), "{:?}", load.cpu);
            assert!(load.busy <= load.elapsed && load.elapsed <= ran.outcome.elapsed);
            // Each client starts once and receives 100 replies.
            assert!(load.lag.len() >= 101 * load.clients as u64 && load.timers.is_empty());
            assert!((0.0..=1.0).contains(&load.busy_share()) && load.passes > 0);
        }
    }
}

#[test]
fn the_workers_record_one_history() {
    for event_loop in event_loops() {
        let mut case = Case::new(event_loop, "--@ read t key=:client_id value=$1\nSELECT 1;\n", 20, 3);
        case.stop = StopCondition::Transactions(50);
        let ran = case.run();
        assert!(ran.outcome.is_complete() && ran.events.is_empty(), "{:?}", ran.events);
        let mut ids: Vec<u64> = ran.history.transactions().iter().map(|transaction| transaction.id).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(20..1020));
        for (index, transaction) in ran.history.transactions().iter().enumerate() {
            // The server returns no rows.
            let key = Key { table: 0, id: i64::from(transaction.client) };
            let read = Operation::Read { key, version: Version::INITIAL };
            assert!(ran.history.operations(index).eq([read]));
            assert!(0 < transaction.begin && transaction.begin <= transaction.end);
        }
    }
}

#[test]
fn an_end_that_arrives_together_with_the_last_message_is_noticed() {
    for event_loop in event_loops() {
        // If it weren't noticed, the first client would wait until the end of the run and be cut off.
        let ran = Case { session_end: SessionEnd::ToTheFirst, ..Case::new(event_loop, BUSY, 2, 1) }.run();
        let ledger = ran.outcome.ledger();
        assert_eq!((ledger.transactions.committed, ledger.transactions.cut_off), (1, 0));
        let [ClientEvent::Aborted(_, AbortCause::Lost(_, Some(last)))] = &ran.events[..] else {
            panic!("{:?}", ran.events)
        };
        assert!(last.message.contains("good-bye"), "{last:?}");
        assert_eq!(ran.outcome.aborted_in, Some(0));
    }
}

#[test]
fn a_client_may_have_a_connection_for_each_transaction() {
    for event_loop in event_loops() {
        let mut case = Case::new(event_loop, "SELECT 1;\nSELECT 2;\n", 7, 3);
        case.spec.connect_each = true;
        case.stop = StopCondition::Transactions(10);
        let ran = case.run();
        assert_eq!((ran.outcome.ledger().transactions.committed, ran.sessions), (70, 70));
        assert!(ran.outcome.is_complete() && ran.events.is_empty(), "{:?}", ran.events);
        assert!(ran.outcome.reconnecting > Duration::ZERO);
    }
}

#[test]
fn the_end_of_a_connection_that_was_left_is_ignored() {
    for event_loop in event_loops() {
        // The first client's reply and the end of its connection are one event; the reply makes it
        // leave the session.
        for pacing in [Pacing::Unpaced, Pacing::ThinkTime(Duration::from_millis(1))] {
            let mut case = Case { session_end: SessionEnd::WithReplies, ..Case::new(event_loop, BUSY, 2, 1) };
            case.spec.connect_each = true;
            case.spec.pacing = pacing;
            case.stop = StopCondition::Transactions(2);
            let ran = case.run();
            assert_eq!(
                (ran.outcome.ledger().transactions.committed, ran.sessions),
                (4, 4),
                "{:?}",
                ran.events
            );
            assert!(ran.outcome.is_complete() && ran.events.is_empty(), "{:?}", ran.events);
        }
    }
}

#[test]
fn asked_to_the_run_ends_with_the_first_client_of_any_worker() {
    for event_loop in event_loops() {
        let mut case =
            Case { session_end: SessionEnd::ToTheFirst, ..Case::new(event_loop, "SELECT 1;\n", 6, 3) };
        case.spec.on_error = OnError::EndRun;
        case.stop = StopCondition::Time(2 * PATIENCE);
        let ran = case.run();
        assert!(ran.outcome.interrupted && ran.outcome.aborted == 1, "{:?}", ran.events);
        assert!(ran.outcome.aborted_in.is_some());
    }
}

#[test]
fn by_pgbenchs_rules_the_clients_of_a_worker_share_its_choice_of_scripts() {
    let mut case = Case::new(EventLoop::Epoll, "SELECT 1;\n", 2, 2);
    case.scripts.push("SELECT 2;\n");
    case.spec.rules = Rules::Pgbench;
    case.stop = StopCondition::Transactions(30);
    // pgbench's order: each client's expressions, the variable default_seed, then for each thread
    // the choice of scripts, the schedule and the sampling.
    let mix = case.workload(Path::new("")).mix;
    let mut streams = Streams::new(case.spec.seed);
    let _expressions = (streams.split(), streams.split(), streams.number());
    let expected: Vec<Vec<usize>> = (0..2)
        .map(|_| {
            let (mut choice, _schedule, _sampling) = (streams.split(), streams.split(), streams.split());
            (0..30).map(|_| mix.choose(&mut choice)).collect()
        })
        .collect();
    let chosen: Vec<Vec<usize>> =
        case.run().ended.iter().map(|ended| ended.iter().map(|ended| ended.script).collect()).collect();
    assert_eq!(chosen, expected);
}

#[test]
fn sessions_are_plain_connections_again() {
    for event_loop in event_loops() {
        let case = Case::new(event_loop, "SELECT 1;\n", 6, 2);
        let folder = Folder::new();
        let sessions = listen(&folder, SessionEnd::Never);
        let options = ConnectOptions::new(Host::unix(&folder.0, 5432), "somebody", "something");
        let job = Job::new(case.spec.clone(), case.workload(&folder.0), Box::new(|_| ErrorClass::Other));
        let connect = |client| Connection::open(&options).map(|connection| (connection, client));
        let (mut fleet, _) = Fleet::open(&job, &connect).expect("sessions");
        // A second run continues with the same sessions.
        for _ in 0..2 {
            let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
            let stop = StopCondition::Transactions(10);
            let outcome = fleet.run(&job, stop, &Control::new(), &|_| {}, watch, &mut []).expect("threads");
            assert_eq!(outcome.ledger().transactions.committed, 60);
        }
        let mut back = fleet.into_sessions(&options);
        assert_eq!((back.len(), sessions.load(Ordering::Relaxed)), (6, 6));
        for connection in &mut back {
            connection.execute("SELECT 1").expect("a reply");
        }
    }
}

#[test]
fn long_requests_and_replies_are_neither_cut_nor_mixed() {
    for event_loop in event_loops() {
        // Far more than a socket takes at once.
        let text: &'static str = Box::leak(format!("SELECT '{}';\n", "x".repeat(3 << 20)).into_boxed_str());
        let mut case = Case::new(event_loop, text, 5, 1);
        case.stop = StopCondition::Transactions(3);
        let ran = case.run();
        assert_eq!(ran.outcome.ledger().transactions.committed, 15);
        assert!(ran.outcome.is_complete() && ran.events.is_empty(), "{:?}", ran.events);
    }
}

/// `EPERM`, the answer of a seccomp filter, and `ENOSYS`, that of a kernel without the call.
const EPERM: u32 = 1;
const ENOSYS: u32 = 38;

/// The first call of `io_uring`. Numbers from 424 on are the same on all architectures (Linux:
/// `unistd.h`).
const IO_URING_SETUP: i64 = 425;

/// Answers calls of the system with an error, for this thread and those that it starts.
fn forbid(calls: impl IntoIterator<Item = i64>, error: u32) {
    let filter = SeccompFilter::new(
        calls.into_iter().map(|call| (call, Vec::new())).collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(error),
        std::env::consts::ARCH.try_into().expect("a known architecture"),
    );
    let program: BpfProgram = filter.expect("a filter").try_into().expect("a program");
    seccompiler::apply_filter(&program).expect("a thread may restrict itself");
}

#[test]
fn where_io_uring_is_forbidden_the_choice_says_so() {
    let restricted = thread::spawn(|| {
        forbid([IO_URING_SETUP], EPERM);
        let mut case = Case::new(EventLoop::Epoll, "SELECT 1;\n", 20, 1);
        case.spec.event_loop = None;
        case.stop = StopCondition::Transactions(10);
        let ran = case.run();
        assert_eq!(ran.outcome.ledger().transactions.committed, 200);
        let reason = "the system forbids io_uring (Operation not permitted (os error 1))".to_owned();
        let expected = ChosenLoop { event_loop: EventLoop::Epoll, reason: Some(reason) };
        assert_eq!(ran.outcome.event_loop, Some(expected));

        let case = Case::new(EventLoop::IoUring, "SELECT 1;\n", 20, 1);
        let folder = Folder::new();
        listen(&folder, SessionEnd::Never);
        let options = ConnectOptions::new(Host::unix(&folder.0, 5432), "somebody", "something");
        let job = Job::new(case.spec.clone(), case.workload(&folder.0), Box::new(|_| ErrorClass::Other));
        let connect = |client| Connection::open(&options).map(|connection| (connection, client));
        let refused = Fleet::open(&job, &connect).map(drop).expect_err("it is forbidden");
        assert!(matches!(refused, OpenError::NoRing(_)), "{refused}");
        assert!(refused.to_string().contains("forbids io_uring"), "{refused}");
    });
    restricted.join().expect("no panic");
}

/// Linux 4.18, which distributions of that age still have, ends before 424.
#[test]
fn a_kernel_without_newer_calls_suffices() {
    let old = thread::spawn(|| {
        forbid(424..600, ENOSYS);
        let mut case = Case::new(EventLoop::Epoll, "\\sleep 1500 us\nSELECT 1;\n", 20, 2);
        case.spec.event_loop = None;
        case.stop = StopCondition::Transactions(10);
        let ran = case.run();
        assert_eq!(ran.outcome.ledger().transactions.committed, 200);
    });
    old.join().expect("no panic");
}

#[test]
fn few_clients_and_short_connections_are_left_to_epoll() {
    for (clients, connect_each, reason) in [(1, false, "fewer than"), (20, true, "a connection of its own")] {
        let mut case = Case::new(EventLoop::Epoll, "SELECT 1;\n", clients, 1);
        case.spec.event_loop = None;
        case.spec.connect_each = connect_each;
        let chosen = case.run().outcome.event_loop.expect("a real run");
        assert_eq!(chosen.event_loop, EventLoop::Epoll);
        assert!(chosen.reason.expect("a reason").contains(reason));
    }
}
