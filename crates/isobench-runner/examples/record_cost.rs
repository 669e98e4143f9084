//! Measures what recording costs the client's own code, without the system's part: the replies come
//! from memory.
//!
//! `cargo run --release -p isobench-runner --example record_cost -- [ROUNDS]`
//!
//! Each round runs the same transactions (two reads and two writes of registers) with and without a
//! recording. The minimum over all rounds is printed, because disturbances only make a run longer.

use std::io;
use std::time::Instant;

use isobench_pgwire::TransactionStatus::{self, Idle, InTransaction};
use isobench_pgwire::server;
use isobench_runner::{
    Clock, Connect, Control, ErrorClass, Job, Nanos, Protocol, Received, RunSpec, RunWorkload, Simulation,
    StopCondition, Storage, Transport,
};
use isobench_script::{Mix, Symbols, Variables, Weighted, parse};

const SCRIPT: &str = "\\set first random(1, 500)
\\set second random(501, 1000)
BEGIN;
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer FROM registers WHERE id = :first;
--@ read registers key=$1 version=$2 value=$3
SELECT id, version, writer FROM registers WHERE id = :second;
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :first RETURNING id, version, writer;
--@ write registers key=$1 version=$2 value=$3
UPDATE registers SET version = version + 1, writer = :attempt_id WHERE id = :second RETURNING id, version, writer;
COMMIT;
";

const TRANSACTIONS: u64 = 100_000;

/// A connection with a fixed cycle of replies.
struct Memory {
    replies: [Vec<u8>; 6],
    turn: usize,
    asked: bool,
}

impl Memory {
    fn new() -> Memory {
        let reply = |row: bool, tag: &str, status: TransactionStatus| {
            let mut out = Vec::new();
            server::bind_complete(&mut out);
            if row {
                server::data_row(&mut out, &[Some(&b"417"[..]), Some(&b"1234"[..]), Some(&b"1234567"[..])]);
            }
            server::command_complete(&mut out, tag);
            server::ready_for_query(&mut out, status);
            out
        };
        let replies = [
            reply(false, "BEGIN", InTransaction),
            reply(true, "SELECT 1", InTransaction),
            reply(true, "SELECT 1", InTransaction),
            reply(true, "UPDATE 1", InTransaction),
            reply(true, "UPDATE 1", InTransaction),
            reply(false, "COMMIT", Idle),
        ];
        Memory { replies, turn: 0, asked: false }
    }
}

impl Transport for Memory {
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self) {}

    fn send(&mut self, _connection: usize, bytes: &[u8]) -> io::Result<usize> {
        self.asked = true;
        Ok(bytes.len())
    }

    fn next(&mut self) -> Option<usize> {
        std::mem::take(&mut self.asked).then_some(0)
    }

    fn receive(&mut self) -> io::Result<Received<'_>> {
        let reply = &self.replies[self.turn];
        self.turn = (self.turn + 1) % self.replies.len();
        Ok(Received::Bytes(reply))
    }

    fn watch_writable(&mut self, _connection: usize, _on: bool) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, _now: Nanos, _until: Nanos) -> io::Result<()> {
        Ok(())
    }

    fn cancel(&mut self, _connection: usize) {}

    fn close(&mut self, _connection: usize) {}

    fn open(
        &mut self,
        _connection: usize,
        _connect: &Connect<'_>,
        _limit: Option<std::time::Duration>,
    ) -> Result<Vec<u8>, String> {
        Err("there is but one connection".to_owned())
    }
}

/// A clock that stands still: reading it isn't what is measured.
struct Still;

impl Clock for Still {
    fn now(&self) -> Nanos {
        Nanos(1)
    }
}

/// Returns nanoseconds per transaction.
fn run(record: bool) -> Result<f64, Box<dyn std::error::Error>> {
    let mut symbols = Symbols::new();
    let script = parse("registers.sql", SCRIPT, &mut symbols)?;
    let mix = Mix::new(vec![Weighted { script, weight: 1 }])?;
    let workload = RunWorkload { mix, variables: Variables::new(&symbols), symbols };
    let spec = RunSpec { protocol: Protocol::Extended, ..RunSpec::default() };
    let mut job = Job::new(spec, workload, Box::new(|_| ErrorClass::Other));
    if record {
        job = job.recording(Storage::default())?;
    }
    let mut simulation = Simulation::new(&job, Memory::new());
    let report = |event| eprintln!("{event:?}");
    let began = Instant::now();
    let outcome = simulation.run(
        &job,
        StopCondition::Transactions(TRANSACTIONS),
        &Still,
        &Control::new(),
        &report,
        None,
    );
    let taken = began.elapsed();
    assert_eq!(outcome.ledger().transactions.committed, TRANSACTIONS);
    assert!(job.recorded().is_none_or(|recording| recording.transactions() == TRANSACTIONS));
    Ok(taken.as_secs_f64() * 1e9 / TRANSACTIONS as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(20), |text| text.parse())?;
    let (mut without, mut with) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        without = without.min(run(false)?);
        with = with.min(run(true)?);
    }
    println!(
        "without: {without:.0} ns, with a recording: {with:.0} ns, so {:.0} ns more a transaction",
        with - without
    );
    Ok(())
}
