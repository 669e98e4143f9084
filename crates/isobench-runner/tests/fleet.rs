//! The real transport: sockets, epoll and threads, against a few lines of server in a thread.
//!
//! Not here: what a client does in which state; that is tested on the simulated server (`simulation/`).

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use isobench_pgwire::server::{self, FrontendMessage};
use isobench_pgwire::{ConnectOptions, Connection, FrameBuffer, Host, TransactionStatus};
use isobench_runner::{
    Cause, Control, ErrorClass, Event, Fleet, Job, OnError, Outcome, Pacing, Protocol, RetryPolicy, RunSpec,
    Stop, Urgency, Watch, Workload,
};
use isobench_script::{Mix, Symbols, Variables, Weighted, parse};

/// No run gets there unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

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
        // What remains is a small folder in the system's folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Answers one session; `farewell` says whether FATAL and the end of the connection follow the first query at once.
fn serve(mut stream: UnixStream, farewell: bool) -> std::io::Result<()> {
    let mut begin = Vec::new();
    let mut chunk = [0; 4096];
    while server::parse_initial(&begin).map_err(std::io::Error::other)?.is_none() {
        let count = stream.read(&mut chunk)?;
        begin.extend_from_slice(&chunk[..count]);
    }
    let mut out = Vec::new();
    server::authentication_ok(&mut out);
    server::parameter_status(&mut out, "server_version", "15.0");
    server::backend_key_data(&mut out, 1, &[0; 4]);
    server::ready_for_query(&mut out, TransactionStatus::Idle);
    stream.write_all(&out)?;
    let mut buffer = FrameBuffer::new();
    loop {
        let count = stream.read(&mut chunk)?;
        let mut frames = buffer.feed(&chunk[..count]);
        out.clear();
        while let Some(frame) = frames.next().map_err(std::io::Error::other)? {
            match server::parse(frame).map_err(std::io::Error::other)? {
                FrontendMessage::Query(_) if farewell => {
                    let fields = [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "57P01"), (b'M', "good-bye")];
                    server::error_response(&mut out, &fields);
                    return stream.write_all(&out);
                }
                FrontendMessage::Query(_) => {
                    server::command_complete(&mut out, "SELECT 0");
                    server::ready_for_query(&mut out, TransactionStatus::Idle);
                }
                _ => return Ok(()),
            }
        }
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&out)?;
    }
}

/// Runs a script; the first session to connect gets a farewell if asked for.
fn run(script: &str, clients: usize, workers: usize, stop: Stop, farewell: bool) -> (Outcome, Vec<Event>) {
    let mut symbols = Symbols::new();
    let script = parse("test.sql", script, &mut symbols).expect("a script");
    let workload = Workload {
        mix: Mix::new(vec![Weighted { script, weight: 1 }]).expect("a mix"),
        variables: Variables::new(&symbols),
        symbols,
    };
    let spec = RunSpec {
        clients,
        workers,
        pacing: Pacing::Unpaced,
        latency_limit: None,
        retry: RetryPolicy::UNLIMITED,
        protocol: Protocol::Simple,
        on_error: OnError::Abort,
        seed: 1,
        per_command: false,
        grace: Duration::from_secs(1),
        ..RunSpec::default()
    };
    let job = Job::new(spec, workload, Box::new(|_| ErrorClass::Other));
    let folder = Folder::new();
    let listener = UnixListener::bind(folder.0.join(".s.PGSQL.5432")).expect("a socket");
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            // A session that breaks shows on the other side.
            thread::spawn(move || serve(stream, farewell && number == 0));
        }
    });
    let options = ConnectOptions::new(Host::unix(&folder.0, 5432), "somebody", "something");
    let (mut fleet, prepared) =
        Fleet::open(&job, &|_| Connection::open(&options).map(|connection| (connection, ())))
            .expect("sessions");
    assert_eq!(prepared.len(), clients);
    let events = Mutex::new(Vec::new());
    let control = Control::new();
    let (done, over) = channel::<()>();
    let outcome = thread::scope(|scope| {
        let control = &control;
        // A run that hangs becomes one that is cut off.
        scope.spawn(move || {
            if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                control.request(Urgency::Now);
            }
        });
        let report = |event| events.lock().expect("no panic").push(event);
        let outcome = {
            let watch = Watch { every: Duration::MAX, show: &mut |_, _| {} };
            fleet.run(&job, stop, control, &report, watch, &mut [])
        };
        drop(done);
        outcome
    });
    outcome.check().expect("a balanced account");
    (outcome, events.into_inner().expect("no panic"))
}

#[test]
fn many_clients_of_several_workers_do_their_work() {
    let (outcome, events) = run("SELECT 1;\nSELECT 2;\n", 20, 3, Stop::Transactions(50), false);
    assert_eq!(outcome.ledger().transactions.committed, 1000);
    assert!(outcome.is_complete() && events.is_empty(), "{events:?}");
}

#[test]
fn an_end_that_arrives_together_with_the_last_words_is_noticed() {
    // While the second client keeps the worker busy, the first one's farewell and end of connection arrive, and become
    // one event. Unnoticed, the first client would wait until the end of the run and be cut off.
    let script = "\\if :client_id = 1\n\\shell sleep 0.3\n\\endif\nSELECT 1;\n";
    let (outcome, events) = run(script, 2, 1, Stop::Transactions(1), true);
    let ledger = outcome.ledger();
    assert_eq!((ledger.transactions.committed, ledger.transactions.cut_off), (1, 0));
    assert!(
        matches!(&events[..], [Event::Aborted(_, Cause::Lost(_, Some(last)))] if last.message.contains("good-bye")),
        "{events:?}"
    );
}
