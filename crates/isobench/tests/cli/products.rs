//! Servers other than PostgreSQL: `CockroachDB` as recorded, and `H2` over the real protocol.

use isobench_testkit::h2::H2;
use isobench_testkit::scripted::ScriptedServer;

use crate::compare::words;
use crate::support::document::{self, assert_invariants_held, cells, count, rounds};
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::skip;

fn on_scripted(scene: &Scene, script: &str, arguments: &[&str]) -> Finished {
    let server =
        ScriptedServer::start_unix(scene.folder(), &entering(&script.replace("{pooler}", NO_POOLER)));
    let folder = scene.folder().display().to_string();
    let named = ["-h", &folder, "-p", "5432", "-U", "test", "-d", "test"];
    let finished = scene.run(&[arguments, &named[..]].concat());
    server.finish();
    finished
}

/// The first query of every session in isobench's own database.
const ENTERED: &str = "> SELECT current_database()
< row isobench
> SELECT coalesce(comment, '') FROM [SHOW DATABASES WITH COMMENT] WHERE database_name = 'isobench'
< columns comment
< row made by isobench; safe to drop
";

/// Returns the script with that query in each of those sessions.
fn entering(script: &str) -> String {
    let mut entering = String::new();
    let mut lines = script.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        entering.extend([line, "\n"]);
        if line == "== connect database=isobench" {
            if let Some(flag) = lines.next_if(|next| next.starts_with('!')) {
                entering.extend([flag, "\n"]);
            }
            entering += ENTERED;
        }
    }
    entering
}

/// Two sessions that are tested for a pooler that shares them.
const NO_POOLER: &str = "
    == connect database=test
    ! no key
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000001
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000001
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000001
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000001
    == connect database=test
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000002
    > BEGIN
    < tag BEGIN
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000002
    > ROLLBACK
    < tag ROLLBACK
    > BEGIN
    < tag BEGIN
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000002
    > ROLLBACK
    < tag ROLLBACK
    > BEGIN
    < tag BEGIN
    > SHOW session_id
    < row 18ea4dff8379b9ce0000000000000002
    > ROLLBACK
    < tag ROLLBACK
";

/// `CockroachDB` v20.1 runs everything at serializable: isobench's database is created, inspected,
/// and removed.
const REFUSAL: &str = r#"
    == connect database=test
    > SELECT version()
    < row CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)
    {pooler}
    == connect database=test
    > SELECT coalesce(comment, '') FROM [SHOW DATABASES WITH COMMENT] WHERE database_name = 'isobench'
    < columns comment
    > CREATE database isobench
    < tag CREATE DATABASE
    > COMMENT ON database isobench IS 'made by isobench; safe to drop'
    < tag COMMENT ON DATABASE
    > SELECT coalesce(comment, '') FROM [SHOW DATABASES WITH COMMENT] WHERE database_name = 'isobench'
    < columns comment
    < row made by isobench; safe to drop
    > DROP database IF EXISTS isobench CASCADE
    < tag DROP DATABASE
    == connect database=isobench
    > SHOW CLUSTER SETTING sql.txn.read_committed_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.read_committed_isolation.enabled\""
    > SHOW CLUSTER SETTING sql.txn.repeatable_read_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.repeatable_read_isolation.enabled\""
    == connect database=isobench
    > SET default_transaction_isolation = 'serializable'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
    > SET default_transaction_isolation = 'read committed'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
"#;

/// The statement that starts the second level there.
const SECOND_LEVEL: &str = "> SET default_transaction_isolation = 'read committed'";

#[test]
fn a_raised_level_is_refused_if_levels_are_strict() {
    let scene = Scene::new();
    let finished =
        on_scripted(&scene, REFUSAL, &["compare", "--levels", "ser,rc", "--strict-levels"]).expect(1);
    let finished = finished.says(&["working in database \"isobench\"", "run one at a time"]);
    finished.says(&["--strict-levels: read committed was asked for, but the server runs serializable"]);
}

/// The conversation of a cell between its tables and its end: the names of tables, a client, and
/// the sums before and after.
fn cell(client: &str, sums: &str) -> String {
    CELL.replace("{client}", client).replace("{sums}", sums)
}

const CELL: &str = r"
    == connect database=isobench
    > SELECT table_id, name FROM crdb_internal.tables WHERE database_name = current_database()
    < columns table_id | name
    == connect database=isobench
    ! no key
    > SET default_transaction_isolation = 'serializable'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
    {client}
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
    == connect database=isobench
    > select (select count(*) from isobench.public.pgbench_history), *
    < row 0 | 0 | 0 | 0 | 0
    == connect database=isobench
    > select (select count(*) from isobench.public.pgbench_history), *
    < row {sums}
";

/// The trial of a script: the names of tables, and a session whose transaction is rolled back.
fn trial(work: &str) -> String {
    let (session, _) = CELL.split_once("{client}").expect("a client");
    format!("{session}\n> BEGIN;\n< tag BEGIN\n{work}\n> ROLLBACK;\n< tag ROLLBACK\n")
}

/// The tables are inspected after a cell.
const LOOKED: &str = "== connect database=isobench\n";

/// The tables at scale 1, with statistics by a statement that v20.1 supports.
fn load() -> String {
    let table = |name: &str| format!("> create table isobench.public.{name}(*\n< tag CREATE TABLE\n");
    let copy = |what: &str| {
        let batch = format!("> copy {what} from stdin\n< copy\n< tag COPY 1\n");
        format!("> begin\n< tag BEGIN\n{batch}> commit\n< tag COMMIT\n")
    };
    let statistics = |name: &str| {
        format!("> create statistics isobench from isobench.public.{name}\n< tag CREATE STATISTICS\n")
    };
    let (made, analyzed) = (
        ["pgbench_history", "pgbench_tellers", "pgbench_accounts", "pgbench_branches"].map(table),
        ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"].map(statistics),
    );
    let accounts = copy("isobench.public.pgbench_accounts(aid,bid,abalance,filler)").repeat(10);
    let (branches, tellers) = (
        copy("isobench.public.pgbench_branches(bid,bbalance)"),
        copy("isobench.public.pgbench_tellers(tid,bid,tbalance)"),
    );
    format!(
        "== connect database=isobench\n> drop table if exists isobench.public.pgbench_history, *\n< tag DROP TABLE\n{}\
         > truncate table isobench.public.pgbench_accounts, *\n< tag TRUNCATE\n{branches}{tellers}{accounts}{}",
        made.concat(),
        analyzed.concat()
    )
}

/// The rows restored before the second round.
const PUT_BACK: &str = "
    == connect database=isobench
    > truncate table isobench.public.pgbench_history
    < tag TRUNCATE
    > update isobench.public.pgbench_branches set bbalance = 0 where bbalance <> 0
    < tag UPDATE 1
    > update isobench.public.pgbench_tellers set tbalance = 0 where tbalance <> 0
    < tag UPDATE 1
    > update isobench.public.pgbench_accounts set abalance = 0 where abalance <> 0 and aid between 1 and 100000
    < tag UPDATE 1
";

/// Loading takes minutes there, so it is done once; sessions have no key, and the process isn't
/// queried.
#[test]
fn tables_of_cockroachdb_are_loaded_once_and_put_back() {
    let scene = Scene::new();
    let (head, _) = REFUSAL.split_once(SECOND_LEVEL).expect("two levels");
    let statement =
        "> WITH u_accounts AS (UPDATE isobench.public.pgbench_accounts *\n< columns abalance\n< row 5";
    let cell = cell(statement, "1 | 5 | 5 | 5 | 5");
    let (load, trial) = (load(), trial(statement));
    let script = format!("{head}\n{load}{trial}{PUT_BACK}{cell}{LOOKED}{PUT_BACK}{cell}");
    let options = "compare -w tpcb-like --levels ser --strategies single-statement --clients 1 --transactions 1 --warmup 0 \
        --rounds 2 --no-server-side --json out.json";
    let finished = on_scripted(&scene, &script, &words(options)).expect(0);
    let finished =
        finished.says(&["note: loading takes long on CockroachDB, so the tables were loaded once"]);
    finished.prints(&["tables were loaded once"]);
    let document = document::read(&scene, "out.json");
    let states: Vec<_> = rounds(&document).map(|round| round["starting_state"].clone()).collect();
    assert_eq!(states, ["put-back", "put-back"]);
    assert_invariants_held(&document);
}

/// Two transactions: a conflict at an UPDATE, and one at RELEASE, which is the real commit and
/// answers COMMIT.
const SAVEPOINTS: &str = r#"
    > BEGIN;
    < tag BEGIN
    > SAVEPOINT cockroach_restart;
    < tag SAVEPOINT
    > UPDATE isobench.public.pgbench_accounts *
    < error 40001 "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write at timestamp 1795331977.157103772,0 too old; wrote at 1795331977.222327290,1"
    > ROLLBACK TO SAVEPOINT cockroach_restart
    < tag ROLLBACK
    {work}
    > SHOW transaction_isolation
    < row serializable
    > RELEASE SAVEPOINT cockroach_restart;
    < tag COMMIT
    > END;
    < tag COMMIT
    > BEGIN;
    < tag BEGIN
    > SAVEPOINT cockroach_restart;
    < tag SAVEPOINT
    {work}
    > RELEASE SAVEPOINT cockroach_restart;
    < error 40001 "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE): \"sql txn\" meta={id=4fcce1a2 key=/Table/461/1/1 pri=0.02392353 epo=0 ts=1795331977.824671693,1 min=1795331977.802441372,0 seq=2} lock=true stat=PENDING rts=1795331977.802441372,0 wto=false max=1795331977.802441372,0"
    > ROLLBACK TO SAVEPOINT cockroach_restart
    < tag ROLLBACK
    {work}
    > RELEASE SAVEPOINT cockroach_restart;
    < tag COMMIT
    > END;
    < tag COMMIT
"#;

/// The statements after the savepoint.
const WORK: &str = "> UPDATE isobench.public.pgbench_accounts *
    < tag UPDATE 1
    > SELECT abalance *
    < row 5
    > UPDATE isobench.public.pgbench_tellers *
    < tag UPDATE 1
    > UPDATE isobench.public.pgbench_branches *
    < tag UPDATE 1
    > INSERT INTO isobench.public.pgbench_history *
    < tag INSERT 0 1";

#[test]
fn a_savepoint_of_cockroachdb_is_gone_back_to() {
    let scene = Scene::new();
    let (head, _) = REFUSAL.split_once(SECOND_LEVEL).expect("two levels");
    let cell = cell(&SAVEPOINTS.replace("{work}", WORK), "2 | 10 | 10 | 10 | 10");
    let tried = format!(
        "> SAVEPOINT cockroach_restart;\n< tag SAVEPOINT\n{WORK}\n> RELEASE SAVEPOINT cockroach_restart;\n< tag COMMIT"
    );
    let script = format!("{head}\n{}{}{cell}{LOOKED}", load(), trial(&tried));
    let options = "compare -w tpcb-like --levels ser --strategies savepoint --clients 1 --transactions 2 --warmup 0 --rounds 1 \
        --no-server-side --json out.json";
    on_scripted(&scene, &script, &words(options)).expect(0);
    let document = document::read(&scene, "out.json");
    let round = rounds(&document).next().expect("a round");
    let attempts = ["started", "committed", "retried"].map(|name| count(round, &format!("/attempts/{name}")));
    assert_eq!(attempts, [4, 2, 2]);
    let reasons = round["conflicts"].to_string();
    assert!(reasons.contains("WriteTooOldError") && reasons.contains("RETRY_SERIALIZABLE"), "{reasons}");
    assert_invariants_held(&document);
}

/// One client, two transactions: conflicts at COMMIT and in a statement, a COMMIT that answers
/// ROLLBACK.
const RETRIES: &str = r#"
    == connect database=test
    > SELECT version()
    < row CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)
    {pooler}
    == connect database=test
    > SHOW CLUSTER SETTING sql.txn.read_committed_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.read_committed_isolation.enabled\""
    > SHOW CLUSTER SETTING sql.txn.repeatable_read_isolation.enabled
    < error XXUUU "unknown setting: \"sql.txn.repeatable_read_isolation.enabled\""
    == connect database=test
    > SELECT table_id, name FROM crdb_internal.tables WHERE database_name = current_database()
    < columns table_id | name
    < row 53 | u
    < row 54 | t
    == connect database=test
    > SET default_transaction_isolation = 'read committed'
    < tag SET
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < tag UPDATE 1
    > SHOW transaction_isolation
    < row serializable
    > commit;
    < error 40001 "restart transaction: TransactionRetryWithProtoRefreshError: TransactionRetryError: retry txn (RETRY_SERIALIZABLE): \"sql txn\""
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < error 40001 "restart transaction: TransactionRetryWithProtoRefreshError: WriteTooOldError: write for key /Table/54/1/1/0 at timestamp 1,0 too old; wrote at 1,1"
    > ROLLBACK
    < tag ROLLBACK
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < tag UPDATE 1
    > SHOW transaction_isolation
    < row serializable
    > commit;
    < tag COMMIT
    > begin;
    < tag BEGIN
    > update t set v = v + 1 where k = 1;
    < tag UPDATE 1
    > commit;
    < error 40003 "result is ambiguous (removing async checkpoint: context deadline exceeded)"
    > BEGIN
    < tag BEGIN
    > SHOW transaction_isolation
    < row serializable
    > COMMIT
    < tag COMMIT
"#;

#[test]
fn conflicts_of_cockroachdb_are_retried_and_an_ambiguous_commit_is_not() {
    let scene = Scene::new();
    scene.write("add.sql", "begin;\nupdate t set v = v + 1 where k = 1;\ncommit;\n");
    let options = "run --isolation rc -f add.sql -t 2 --max-tries 5 --no-server-side --json out.json";
    let finished = on_scripted(&scene, RETRIES, &words(options));
    let level = "isolation level: read committed was asked for, but the server runs serializable";
    let reasons = ["40001 RETRY_SERIALIZABLE", "40001 WriteTooOldError on t/1/1/0"];
    let finished = finished.expect(0).prints(&[level]).prints(&reasons);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["server"]["product"], "CockroachDB");
    let round = rounds(&document).next().expect("a round");
    let attempts = ["started", "committed", "retried", "ambiguous"];
    let attempts = attempts.map(|name| count(round, &format!("/attempts/{name}")));
    assert_eq!(attempts, [4, 1, 2, 1], "{}", finished.stdout);
    assert_eq!(cells(&document)[0]["level"]["effective"], "serializable");
}

/// H2 supports neither END nor BEGIN ISOLATION LEVEL; its tables are created by a script.
#[test]
fn compare_on_h2() {
    let scene = Scene::new();
    let h2 = match H2::start(scene.folder()) {
        Ok(h2) => h2,
        Err(why) => return skip("compare_on_h2", &why),
    };
    scene.write(
        "tables.sql",
        "drop table if exists counters;\n\
         create table counters (k int primary key, v int);\n\
         insert into counters values (1, 0), (2, 0);\n",
    );
    scene.write(
        "add.sql",
        "\\set k random(1, 2)\n\
         begin;\n\
         select v from counters where k = :k;\n\
         update counters set v = v + 1 where k = :k;\n\
         commit;\n",
    );
    let options = "compare --levels rc,rr,ser --clients 4 --setup tables.sql --workload add.sql --transactions 10 \
        --warmup 0 --rounds 1 --json out.json -h 127.0.0.1 -U sa -d test --port";
    let mut command = scene.isobench(&[&words(options)[..], &[&h2.port.to_string()]].concat());
    let finished = Running::start(command.env("PGPASSWORD", "sa")).finish().expect(0);
    let finished = finished.says(&["working in schema \"isobench\""]);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["server"]["product"], "H2");
    for cell in cells(&document) {
        assert_eq!(cell["level"]["requested"], cell["level"]["effective"]);
        assert!(count(&cell["rounds"][0], "/transactions/committed") > 0, "{}", finished.stdout);
        assert_eq!(count(&cell["rounds"][0], "/attempts/errored"), 0);
    }
    assert!(
        cells(&document)[1]["rounds"][0]["conflicts"].to_string().contains("40001"),
        "{}",
        finished.stdout
    );
}
