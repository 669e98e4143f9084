//! Retries from a savepoint on the installed PostgreSQL, where ROLLBACK TO resolves a deadlock.

use std::time::Duration;

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host, SqlState};
use isobench_runner::{
    Control, ErrorClass, Fleet, Job, Protocol, Restart, RetryPolicy, RunOutcome, RunSpec, RunWorkload,
    StopCondition, Watch,
};
use isobench_script::{Mix, Symbols, Value, Variables, Weighted, parse};
use isobench_testkit::installed::{postgresql_programs, skip};

/// The clients update the two rows in opposite orders. Work before the savepoint is done once.
const CROSSING: &str = "\\set first 1 + :client_id
\\set second 2 - :client_id
BEGIN;
UPDATE t SET v = v + 1 WHERE id = 3 + :client_id;
SAVEPOINT restart;
UPDATE t SET v = v + 1 WHERE id = :first;
SELECT meet(:round, :client_id);
UPDATE t SET v = v + 1 WHERE id = :second;
RELEASE SAVEPOINT restart;
COMMIT;
";

/// Waits until the other client has come here, too, so that each has locked its first row. The
/// locks last as long as the sessions, so that later calls return at once.
const MEET: &str = "CREATE FUNCTION meet(round int, me int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock(round, me);
    WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted
                      AND classid = round AND objid = 1 - me) LOOP
        PERFORM pg_sleep(0.001);
    END LOOP;
END $$";

const TRANSACTIONS: u64 = 5;

#[test]
fn a_deadlock_is_answered_at_the_savepoint() {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip("a_deadlock_is_answered_at_the_savepoint", "no installed PostgreSQL (pg_config)");
        return;
    };
    let options = ServerOptions { bin: Some(bin), ..Default::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let mut session = Connection::open(&options).expect("a session");
    session.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)").expect("a table");
    session.execute(MEET).expect("a function");
    for (round, protocol) in (1..).zip(Protocol::ALL) {
        session.execute("TRUNCATE t").expect("an empty table");
        session.execute("INSERT INTO t SELECT id, 0 FROM generate_series(1, 4) id").expect("rows");
        let outcome = run(&options, protocol, round);
        let ledger = outcome.ledger();
        outcome.check().expect("a balanced account");
        assert_eq!(ledger.transactions.committed, 2 * TRANSACTIONS, "{:?}", outcome.conflicts);
        assert!(ledger.attempts.retried > 0, "there was no deadlock");
        assert!(
            outcome.conflicts.iter().all(|conflict| conflict.sqlstate == SqlState::DEADLOCK_DETECTED),
            "{:?}",
            outcome.conflicts
        );
        let sums = session.value("SELECT string_agg(v::text, ' ' ORDER BY id) FROM t").expect("sums");
        let (shared, own) = (2 * TRANSACTIONS, TRANSACTIONS);
        assert_eq!(sums, Some(format!("{shared} {shared} {own} {own}")));
        let begun = outcome.scripts[0].commands[2].latency.count();
        assert_eq!(begun, 2 * TRANSACTIONS, "BEGIN is executed once for each transaction");
    }
}

fn run(options: &ConnectOptions, protocol: Protocol, round: i64) -> RunOutcome {
    let spec = RunSpec {
        clients: 2,
        protocol,
        retry: RetryPolicy { restart: Restart::Savepoint, ..RetryPolicy::UNLIMITED },
        per_command: true,
        grace: Duration::from_mins(5),
        ..RunSpec::default()
    };
    let mut symbols = Symbols::new();
    let script = parse("crossing.sql", CROSSING, &mut symbols).expect("a script");
    let mix = Mix::new(vec![Weighted { script, weight: 1 }]).expect("a mix");
    let mut variables = Variables::new(&symbols);
    variables.set(symbols.intern("round"), Value::Int(round));
    let workload = RunWorkload { mix, variables, symbols };
    let job = Job::new(
        spec,
        workload,
        Box::new(|error| match error.code {
            SqlState::DEADLOCK_DETECTED => ErrorClass::Conflict { reason: "deadlock".into(), object: None },
            _ => ErrorClass::Other,
        }),
    );
    let connect = |_| -> Result<_, isobench_pgwire::Error> {
        let mut session = Connection::open(options)?;
        session.execute("SET deadlock_timeout = '20ms'; SET statement_timeout = '5min'")?;
        Ok((session, ()))
    };
    let (mut fleet, _) = Fleet::open(&job, &connect).expect("sessions");
    let report = |event| eprintln!("{event:?}");
    let watch = Watch { every: Duration::MAX, latencies: false, show: &mut |_, _| {} };
    fleet
        .run(&job, StopCondition::Transactions(TRANSACTIONS), &Control::new(), &report, watch, &mut [])
        .expect("threads")
}
