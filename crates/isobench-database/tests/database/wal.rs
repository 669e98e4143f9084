//! Committed writes from the write-ahead log of real servers.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use isobench_database::wal::{
    LeftOutReason, WalError, WalOptions, WalPlugin, WalReader, WalTransaction, WalWrite, WalWriteKind,
    key_text,
};
use isobench_database::{Connector, Database, Error, Namespace, detect};
use isobench_pgserver::Server;
use isobench_pgwire::Connection;

use crate::support;

/// The setting without which the log doesn't tell.
const LOGICAL: (&str, &str) = ("wal_level", "logical");

/// What decodes the log.
const PLUGINS: [WalPlugin; 2] = [WalPlugin::Pgoutput, WalPlugin::TestDecoding];

fn open(server: &Server) -> Connection {
    Connection::open(&support::options(server, server.database())).unwrap()
}

fn connector(server: &Server) -> Connector {
    Connector::direct(support::options(server, server.database()))
}

fn database(server: &Server) -> Database {
    detect(&mut open(server)).unwrap()
}

fn options(plugin: WalPlugin, tables: &[&str]) -> WalOptions {
    let tables = tables.iter().map(|table| ("public".to_owned(), (*table).to_owned())).collect();
    WalOptions::new(tables, plugin)
}

fn try_start(server: &Server, options: &WalOptions) -> Result<WalReader, WalError> {
    WalReader::start(&connector(server), &database(server), options)
}

fn start(server: &Server, plugin: WalPlugin, tables: &[&str]) -> WalReader {
    try_start(server, &options(plugin, tables)).unwrap()
}

/// Servers with these settings, each once for every plugin.
fn cases(test: &str, settings: &[(&str, &str)]) -> impl Iterator<Item = (Server, WalPlugin)> {
    PLUGINS.into_iter().flat_map(move |plugin| {
        let servers = support::servers(test, settings).into_iter();
        servers.map(move |server| (server, plugin))
    })
}

/// The slots and publications on the server.
fn left(conn: &mut Connection) -> Vec<String> {
    let names =
        "select slot_name::text from pg_replication_slots union all select pubname from pg_publication";
    conn.query(names).unwrap().rows.into_iter().flatten().flatten().collect()
}

/// Waits until the server has noticed that sessions have ended.
fn until_nothing_is_left(conn: &mut Connection) {
    isobench_testkit::standby::until("nothing is left", || match left(conn) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

/// Ends the session of a reader, whose lock tells which one it is.
fn kill_the_reader(conn: &mut Connection) {
    let kill = "select pg_terminate_backend(active_pid) from pg_replication_slots";
    assert_eq!(conn.value(kill).unwrap().as_deref(), Some("t"));
    isobench_testkit::standby::until("the slot has ended", || {
        let slots = conn.value("select count(*) from pg_replication_slots").unwrap();
        if slots.as_deref() == Some("0") { Ok(()) } else { Err(format!("{slots:?}")) }
    });
}

/// A transaction as a line: what was written in which table, with the keys.
fn line(transaction: &WalTransaction) -> String {
    let writes = transaction.writes.iter().map(|write| {
        let keys: Vec<_> = write.key_texts().collect();
        format!("{:?} {} {}", write.kind, write.relation.name(), keys.join(" to ")).trim().to_owned()
    });
    writes.collect::<Vec<_>>().join("; ")
}

/// Runs statements, and returns what was read of them.
fn read_of(reader: &mut WalReader, conn: &mut Connection, sql: &str) -> Vec<String> {
    for statement in sql.split('|') {
        conn.execute(statement).unwrap();
    }
    reader.read_all().unwrap().iter().map(line).collect()
}

#[test]
fn every_committed_write_is_read() {
    let test = "every_committed_write_is_read";
    for (server, plugin) in cases(test, &[LOGICAL, ("max_prepared_transactions", "2")]) {
        let mut conn = open(&server);
        conn.execute(
            "create table t (k text primary key, v text); create schema other;
             create table other.audit (id int primary key, what text);
             create table pair (b text, v int, a int, primary key (a, b) include (v));
             create table parent (id int primary key);
             create table child (id int primary key, parent int references parent on delete cascade);
             create function note() returns trigger language plpgsql as
             'begin insert into other.audit values (new.a, new.b); return new; end';
             create trigger noted after insert on pair for each row execute function note();
             create function bump(key text) returns void language sql as
             'update t set v = ''bumped'' where k = key';
             insert into t values ('old', 'before the start')",
        )
        .unwrap();
        let mut options = options(plugin, &["t", "pair", "parent", "child"]);
        options.tables.push(("other".to_owned(), "audit".to_owned()));
        let mut reader = try_start(&server, &options).unwrap();
        for (sql, expected) in [
            ("insert into t values ('a', '1'), ('b', '2')", &["Insert t a; Insert t b"][..]),
            (
                "update t set v = 'x' where k = 'a' | delete from t where k = 'b'",
                &["Update t a", "Delete t b"],
            ),
            ("update t set k = 'c' where k = 'a'", &["Update t a to c"]),
            // A statement that changes nothing in a row writes it nevertheless.
            ("update t set v = v where k = 'old'", &["Update t old"]),
            ("insert into t values ('c') on conflict (k) do update set v = '!'", &["Update t c"]),
            ("select bump('c')", &["Update t c"]),
            (
                "do 'begin perform bump(''c''); commit; perform bump(''old''); end'",
                &["Update t c", "Update t old"],
            ),
            (
                "insert into pair values ('it''s, \\', 0, 7)",
                &["Insert pair 7,it's\\, \\\\; Insert other.audit 7"],
            ),
            (
                "update pair set v = 1 | update pair set b = 'x'",
                &["Update pair 7,it's\\, \\\\", "Update pair 7,it's\\, \\\\ to 7,x"],
            ),
            (
                "insert into parent values (1); insert into child values (10, 1), (11, 1)",
                &["Insert parent 1; Insert child 10; Insert child 11"],
            ),
            ("delete from parent", &["Delete parent 1; Delete child 10; Delete child 11"]),
            (
                "begin; insert into t values ('s1'); savepoint s; insert into t values ('s2'); rollback to s;
                 insert into t values ('s3'); savepoint u; insert into t values ('s4'); commit",
                &["Insert t s1; Insert t s3; Insert t s4"],
            ),
            ("begin; insert into t values ('no'); rollback", &[]),
            ("begin; savepoint s; insert into t values ('no'); rollback to s; commit", &[]),
            // A prepared transaction is committed at COMMIT PREPARED.
            (
                "begin; update t set v = '2' where k = 's1'; prepare transaction 'p' |
                 update t set v = '1' where k = 's3' | commit prepared 'p'",
                &["Update t s3", "Update t s1"],
            ),
            ("begin; delete from t; prepare transaction 'q' | rollback prepared 'q'", &[]),
            (
                "insert into t values (''), (E'Größe\\n数据'), ('NULL')",
                &["Insert t; Insert t Größe\n数据; Insert t NULL"],
            ),
            ("truncate t, parent cascade", &["Truncate t; Truncate parent; Truncate child"]),
            ("create table unread (id int primary key); insert into unread values (1)", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|line| line.trim()).collect();
            assert_eq!(read_of(&mut reader, &mut conn, sql), expected, "{}: {sql}", server.version());
        }
        assert_eq!(left(&mut conn).len(), if plugin == WalPlugin::Pgoutput { 2 } else { 1 });
        reader.stop().unwrap();
        assert_eq!(left(&mut conn), [""; 0]);
    }
}

#[test]
fn values_and_numbers_are_those_of_the_server() {
    for (server, plugin) in cases("values_and_numbers_are_those_of_the_server", &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key, long text, n numeric)").unwrap();
        conn.execute("alter table t alter column long set storage external").unwrap();
        let mut reader = start(&server, plugin, &["t"]);
        conn.execute("begin; insert into t values (1, repeat('x', 100000), 1.50)").unwrap();
        let xid = conn.value("select pg_current_xact_id()").unwrap();
        conn.execute("commit; update t set n = null").unwrap();
        let [insert, update] = &reader.read_all().unwrap()[..] else { panic!() };
        assert_eq!(Some(insert.xid.to_string()), xid);
        assert_eq!((line(insert), line(update)), ("Insert t 1".to_owned(), "Update t 1".to_owned()));
    }
}

/// Keys of every kind of type are as in answers, and a part of a key that is stored outside of the row
/// is there when the row is updated.
#[test]
fn keys_are_written_as_in_answers() {
    for (server, plugin) in cases("keys_are_written_as_in_answers", &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute(
            "create type \"odd \"\"]:type\" as enum ('it''s', 'null'); create domain answer as boolean;
             create table keys (a smallint, b numeric, c double precision, d boolean, e answer, f bit(3), g date,
                h \"odd \"\"]:type\", i int[], j char(4), k uuid, l timestamptz, \"M m\" text, n int,
                primary key (a, b, c, d, e, f, g, h, i, j, k, l, \"M m\"));
             alter table keys alter column \"M m\" set storage external",
        )
        .unwrap();
        let mut reader = start(&server, plugin, &["keys"]);
        conn.execute(
            "insert into keys values (-1, 1.50, '-infinity', true, false, '101', '2026-01-02', 'it''s', '{1,2}', 'x',
                'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2026-01-02 03:04:05.6+02', ' new-tuple: x[integer]:''1''',
                1);
             insert into keys select 2, 'NaN', 'NaN', false, true, '000', '-infinity', 'null', '{}', '', k, 'infinity',
                (select string_agg(md5(x::text), '') from generate_series(1, 60) x), 2 from keys;
             update keys set n = 3 where a = -1; update keys set n = 3 where a = 2; update keys set a = 3 where a = 2;
             delete from keys where a = 3",
        )
        .unwrap();
        let columns = "a, b, c, d, e, f, g, h, i, j, k, l, \"M m\"";
        conn.execute("insert into keys select 9, b, c, d, e, f, g, h, i, j, k, l, \"M m\" from keys")
            .unwrap();
        let rows = conn.query(&format!("select {columns} from keys order by a")).unwrap().rows;
        let transactions = reader.read_all().unwrap();
        let writes: Vec<&WalWrite> = transactions.iter().flat_map(|one| &one.writes).collect();
        assert_eq!(writes[0].key, rows[0], "{plugin:?}");
        assert_eq!(writes[6].key, rows[1], "{plugin:?}");
        let long = writes[1].key.clone();
        assert_eq!(long[12].as_ref().map(String::len), Some(60 * 32));
        assert_eq!(
            (&writes[2].key, &writes[3].key, &writes[3].old_key),
            (&rows[0], &long, &None),
            "{plugin:?}"
        );
        let moved: Vec<Option<String>> =
            std::iter::once(Some("3".to_owned())).chain(long[1..].iter().cloned()).collect();
        assert_eq!((&writes[4].key, writes[4].old_key.as_ref()), (&moved, Some(&long)), "{plugin:?}");
        assert_eq!((writes[5].kind, &writes[5].key), (WalWriteKind::Delete, &moved), "{plugin:?}");
    }
}

#[test]
fn partitions_are_read_as_their_table() {
    for (server, plugin) in cases("partitions_are_read_as_their_table", &[LOGICAL]) {
        let mut conn = open(&server);
        // The columns of a partition may be in another order.
        conn.execute(
            "create table p (id int, part int, v text, primary key (part, id)) partition by list (part);
             create table p1 (v text, part int not null, id int not null);
             alter table p attach partition p1 for values in (1);
             create table p2 partition of p for values in (2, 3) partition by list (part);
             create table p22 partition of p2 for values in (2)",
        )
        .unwrap();
        let mut reader = start(&server, plugin, &["p"]);
        for (sql, expected) in [
            ("insert into p values (5, 1, 'a'), (6, 2, 'b')", "Insert p 1,5; Insert p 2,6"),
            ("update p set v = 'c'", "Update p 1,5; Update p 2,6"),
            ("update p1 set id = 7", "Update p 1,5 to 1,7"),
            ("update p set part = 2 where id = 7", "Delete p 1,7; Insert p 2,7"),
        ] {
            assert_eq!(read_of(&mut reader, &mut conn, sql), [expected], "{}: {sql}", server.version());
        }
        let truncated = match plugin {
            WalPlugin::Pgoutput => "Truncate p",
            WalPlugin::TestDecoding => "Truncate p; Truncate p; Truncate p; Truncate p",
        };
        assert_eq!(read_of(&mut reader, &mut conn, "truncate p"), [truncated]);
        // Lines have names only, which mean something else then.
        conn.execute("create table p23 partition of p2 for values in (3); insert into p values (8, 3)")
            .unwrap();
        let read = reader.read_all();
        match plugin {
            WalPlugin::Pgoutput => assert_eq!(line(&read.unwrap()[0]), "Insert p 3,8"),
            WalPlugin::TestDecoding => {
                let error = read.unwrap_err();
                assert!(matches!(&error, WalError::Altered { table } if table == "p"), "{error}");
                assert!(matches!(reader.read_all(), Err(WalError::Spent)));
            }
        }
    }
}

/// The tables of which nothing can be read, and the reasons.
const OTHERS: [(&str, &str, LeftOutReason); 14] = [
    ("missing", "", LeftOutReason::Missing),
    ("unkeyed", "create table unkeyed (k int, v int)", LeftOutReason::NoPrimaryKey),
    ("deferred", "create table deferred (k int primary key deferrable, v int)", LeftOutReason::DeferrableKey),
    (
        "generated",
        "create table generated (i int, k int generated always as (i) stored primary key, v int)",
        LeftOutReason::GeneratedKey,
    ),
    (
        "whole",
        "create table whole (k int primary key, v int); alter table whole replica identity full",
        LeftOutReason::OtherIdentity,
    ),
    (
        "nothing",
        "create table nothing (k int primary key, v int); alter table nothing replica identity nothing",
        LeftOutReason::OtherIdentity,
    ),
    (
        "indexed",
        "create table indexed (k int primary key, v int not null unique);
         alter table indexed replica identity using index indexed_v_key",
        LeftOutReason::OtherIdentity,
    ),
    ("unlogged", "create unlogged table unlogged (k int primary key, v int)", LeftOutReason::Unlogged),
    (
        "viewed",
        "create table base (k int primary key, v int); create view viewed as table base",
        LeftOutReason::NotATable,
    ),
    ("collected", "create materialized view collected as select 1 as k", LeftOutReason::NotATable),
    (
        "partly",
        "create table partly (k int primary key, v int) partition by range (k);
         create table partly_1 partition of partly default;
         alter table partly_1 replica identity nothing",
        LeftOutReason::OtherIdentity,
    ),
    (
        "partly_unlogged",
        "create table partly_unlogged (k int primary key, v int) partition by range (k);
         create unlogged table partly_unlogged_1 partition of partly_unlogged default",
        LeftOutReason::Unlogged,
    ),
    (
        "keyless",
        "create table keyless (k int, v int) partition by range (k);
         create table keyless_1 partition of keyless default",
        LeftOutReason::NoPrimaryKey,
    ),
    ("it's \"odd\"", "create table \"it's \"\"odd\"\"\" (k int, v int)", LeftOutReason::NoPrimaryKey),
];

#[test]
fn tables_without_a_key_in_the_log_are_left_out_and_work_on() {
    let test = "tables_without_a_key_in_the_log_are_left_out_and_work_on";
    for (server, plugin) in cases(test, &[LOGICAL]) {
        let mut conn = open(&server);
        for (_, sql, _) in OTHERS {
            conn.execute(sql).unwrap();
        }
        // A table that inherits isn't published with its parent, and its rows aren't read.
        conn.execute(
            "create table \"good \"\"one\"\"\" (k int primary key, v int);
             create table heir () inherits (\"good \"\"one\"\"\")",
        )
        .unwrap();
        let names: Vec<_> =
            OTHERS.iter().map(|(name, ..)| *name).chain(["good \"one\"", "good \"one\""]).collect();
        let mut options = options(plugin, &names);
        options.tables.push(("pg_catalog".to_owned(), "pg_class".to_owned()));
        conn.execute("create temporary table passing (k int primary key)").unwrap();
        let schema = conn.value("select pg_my_temp_schema()::regnamespace").unwrap().unwrap();
        options.tables.push((schema, "passing".to_owned()));
        let mut reader = try_start(&server, &options).unwrap();
        assert_eq!(reader.tables(), [("public".to_owned(), "good \"one\"".to_owned())]);
        let mut expected: BTreeMap<_, _> = OTHERS.iter().map(|(name, _, reason)| (*name, *reason)).collect();
        expected.insert("pg_class", LeftOutReason::NotATable);
        expected.insert("passing", LeftOutReason::Temporary);
        let found: BTreeMap<_, _> =
            reader.left_out().iter().map(|table| (table.table.as_str(), table.reason)).collect();
        assert_eq!(found, expected);

        for (name, ..) in
            OTHERS.iter().filter(|(name, ..)| !["missing", "collected", "generated"].contains(name))
        {
            let name = name.replace('"', "\"\"");
            conn.execute(&format!(
                "insert into \"{name}\" values (1, 2); update \"{name}\" set v = 3; delete from \"{name}\""
            ))
            .unwrap();
        }
        conn.execute(
            "insert into generated (i) values (1); update generated set i = 2; delete from generated;
             insert into heir values (1, 2); update heir set v = 3; delete from heir",
        )
        .unwrap();
        let written = read_of(&mut reader, &mut conn, "insert into \"good \"\"one\"\"\" values (1, 2)");
        assert_eq!(written, ["Insert good \"one\" 1"]);
        reader.stop().unwrap();

        let error =
            try_start(&server, &self::options(plugin, &["unkeyed", "missing"])).unwrap_err().to_string();
        for reason in ["\"public.unkeyed\" has no primary key", "\"public.missing\" doesn't exist"] {
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(left(&mut conn), [""; 0]);
    }
}

#[test]
fn nothing_is_left_behind() {
    for server in support::servers("nothing_is_left_behind", &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key)").unwrap();
        drop(start(&server, WalPlugin::Pgoutput, &["t"]));
        assert_eq!(left(&mut conn), [""; 0]);

        // The session is killed: what hasn't been read is lost, and the publication is removed over
        // another one.
        let mut reader = start(&server, WalPlugin::Pgoutput, &["t"]);
        kill_the_reader(&mut conn);
        let error = reader.read_all().unwrap_err();
        assert!(matches!(&error, WalError::Lost(_)), "{error}");
        assert!(error.to_string().contains("max_slot_wal_keep_size"), "{error}");
        assert!(matches!(reader.read_all(), Err(WalError::Spent)));
        reader.stop().unwrap();
        assert_eq!(left(&mut conn), [""; 0]);
        let reader = start(&server, WalPlugin::Pgoutput, &["t"]);
        kill_the_reader(&mut conn);
        drop(reader);
        assert_eq!(left(&mut conn), [""; 0]);

        // The program is killed: the next start removes the publication, and makes its own.
        let reader = start(&server, WalPlugin::Pgoutput, &["t"]);
        kill_the_reader(&mut conn);
        std::mem::forget(reader);
        assert_eq!(left(&mut conn), ["isobench_wal"]);
        let mut reader = start(&server, WalPlugin::Pgoutput, &["t"]);
        assert_eq!(read_of(&mut reader, &mut conn, "insert into t values (1)"), ["Insert t 1"]);

        // One at a time, and somebody else's publication is left alone.
        let error = try_start(&server, &options(WalPlugin::Pgoutput, &["t"])).unwrap_err();
        assert!(matches!(error, WalError::Server(Error::InUse { .. })), "{error}");
        reader.stop().unwrap();
        conn.execute("create publication isobench_wal").unwrap();
        let error = try_start(&server, &options(WalPlugin::Pgoutput, &["t"])).unwrap_err();
        assert!(matches!(error, WalError::Server(Error::NotOurs { .. })), "{error}");
        assert_eq!(left(&mut conn), ["isobench_wal"]);
    }
}

/// Nothing but the slot is made, which ends with the session, and several read side by side.
#[test]
fn a_slot_alone_leaves_nothing_behind() {
    for server in support::servers("a_slot_alone_leaves_nothing_behind", &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key)").unwrap();
        let start = || start(&server, WalPlugin::TestDecoding, &["t"]);
        drop(start());
        assert_eq!(left(&mut conn), [""; 0]);
        let (mut one, mut other) = (start(), start());
        for (reader, expected) in [(&mut one, 1), (&mut other, 2)] {
            let sql = "insert into t values (1); delete from t";
            assert_eq!(read_of(reader, &mut conn, sql), vec!["Insert t 1; Delete t 1"; expected]);
        }
        one.stop().unwrap();
        assert_eq!(left(&mut conn).len(), 1);

        // The session is killed, and what hasn't been read is lost.
        kill_the_reader(&mut conn);
        assert!(matches!(other.read_all(), Err(WalError::Lost(_))));
        other.stop().unwrap();
        let reader = start();
        kill_the_reader(&mut conn);
        drop(reader);

        // The server ends it if the program does nothing for longer than it said.
        let idle = Some(Duration::from_millis(500));
        let options = WalOptions { idle, ..options(WalPlugin::TestDecoding, &["t"]) };
        let reader = try_start(&server, &options).unwrap();
        assert_eq!(left(&mut conn).len(), 1);
        until_nothing_is_left(&mut conn);
        drop(reader);

        WalReader::try_out(&connector(&server), &database(&server)).unwrap();
        assert_eq!(left(&mut conn), [""; 0]);
    }
}

#[test]
fn tables_in_a_schema_of_our_own_are_read() {
    for server in support::servers("tables_in_a_schema_of_our_own_are_read", &[LOGICAL]) {
        let mut watcher = open(&server);
        let db = database(&server);
        let admin = support::options(&server, server.database());
        for killed in [false, true] {
            let namespace = Namespace::claim(&admin, &db).unwrap();
            let connector = namespace.connector();
            let mut conn = connector.open().unwrap();
            conn.execute("create table t (k int primary key)").unwrap();
            let options = WalOptions::new(vec![("isobench".to_owned(), "t".to_owned())], WalPlugin::Pgoutput);
            let mut reader = WalReader::start(&connector, &db, &options).unwrap();
            assert_eq!(read_of(&mut reader, &mut conn, "insert into t values (1)"), ["Insert isobench.t 1"]);
            if killed {
                kill_the_reader(&mut watcher);
            }
            // The schema may be removed first.
            namespace.release().unwrap();
            drop(reader);
            assert_eq!(left(&mut watcher), [""; 0]);
        }
    }
}

#[test]
fn a_log_that_grows_beyond_its_limit_is_lost_with_the_session() {
    let test = "a_log_that_grows_beyond_its_limit_is_lost_with_the_session";
    for (server, plugin) in cases(test, &[LOGICAL, ("max_slot_wal_keep_size", "1MB")]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key)").unwrap();
        let mut reader = start(&server, plugin, &["t"]);
        for number in 0..3 {
            conn.execute(&format!("insert into t values ({number})")).unwrap();
            conn.execute("select pg_switch_wal()").unwrap();
        }
        conn.execute("checkpoint").unwrap();
        let error = reader.read_all().unwrap_err();
        assert!(matches!(&error, WalError::Lost(_)), "{error}");
        drop(reader);
        until_nothing_is_left(&mut conn);
    }
}

#[test]
fn conditions_are_checked_before_anything_is_made() {
    let test = "conditions_are_checked_before_anything_is_made";
    let try_out = |server: &Server| WalReader::try_out(&connector(server), &database(server)).unwrap_err();
    for (server, plugin) in cases(test, &[]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key)").unwrap();
        for error in [try_start(&server, &options(plugin, &["t"])).unwrap_err(), try_out(&server)] {
            assert!(matches!(&error, WalError::Level { found } if found == "replica"), "{error}");
            assert!(error.to_string().contains("ALTER SYSTEM SET wal_level = 'logical'"), "{error}");
        }
        assert_eq!(left(&mut conn), [""; 0]);
    }
    for (server, plugin) in cases(test, &[LOGICAL, ("max_replication_slots", "0")]) {
        for error in [try_start(&server, &options(plugin, &["t"])).unwrap_err(), try_out(&server)] {
            assert!(matches!(&error, WalError::NoSlots(found) if found.contains("is 0")), "{error}");
        }
    }
    for (server, plugin) in cases(test, &[LOGICAL, ("max_replication_slots", "1")]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key)").unwrap();
        let take = "select pg_create_physical_replication_slot('taken')";
        conn.execute(take).unwrap();
        for error in [try_start(&server, &options(plugin, &["t"])).unwrap_err(), try_out(&server)] {
            assert!(matches!(&error, WalError::NoSlots(found) if found.contains("in use")), "{error}");
        }
        assert_eq!(left(&mut conn), ["taken"]);
    }
    for (server, plugin) in cases(test, &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute(
            "create role maker login; grant create on database postgres to maker;
             grant create on schema public to maker; set role maker;
             create table t (k int primary key); reset role",
        )
        .unwrap();
        let mut as_maker = support::options(&server, server.database());
        as_maker.user = "maker".to_owned();
        let as_maker = Connector::direct(as_maker);
        let db = database(&server);
        let mut refused = vec![WalReader::start(&as_maker, &db, &options(plugin, &["t"])).unwrap_err()];
        if plugin == WalPlugin::TestDecoding {
            refused.push(WalReader::try_out(&as_maker, &db).unwrap_err());
        }
        for error in refused {
            assert!(matches!(&error, WalError::NotAllowed { .. }), "{error}");
            assert!(error.to_string().contains("attribute REPLICATION"), "{error}");
        }
        assert_eq!(left(&mut conn), [""; 0]);
        conn.execute("alter role maker replication").unwrap();
        let mut reader = WalReader::start(&as_maker, &db, &options(plugin, &["t"])).unwrap();
        assert_eq!(read_of(&mut reader, &mut conn, "insert into t values (1)"), ["Insert t 1"]);
        reader.stop().unwrap();

        // A transaction that has written and stays open.
        let mut writer = open(&server);
        writer.execute("begin; insert into t values (2)").unwrap();
        let options = WalOptions { patience: Duration::from_millis(50), ..options(plugin, &["t"]) };
        let error = try_start(&server, &options).unwrap_err();
        assert!(matches!(&error, WalError::Open { .. }), "{error}");
        writer.execute("commit").unwrap();
        until_nothing_is_left(&mut conn);
    }
}

#[test]
fn many_and_large_transactions_are_read_in_batches() {
    let test = "many_and_large_transactions_are_read_in_batches";
    for (server, plugin) in cases(test, &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key, v text)").unwrap();
        let limit = 10 << 20;
        let mut reader =
            try_start(&server, &WalOptions { memory: limit, ..options(plugin, &["t"]) }).unwrap();
        for start in [0, 40_000] {
            let numbers = format!("generate_series({start}, {})", start + 39_999);
            conn.execute(&format!("insert into t select * from {numbers}")).unwrap();
        }
        let mut next = 0;
        let mut counts = Vec::new();
        let mut check = |transaction: WalTransaction| {
            for write in &transaction.writes {
                assert_eq!(write.key, [Some(next.to_string())]);
                next += 1;
            }
            counts.push(transaction.writes.len());
        };
        reader.read(&mut check).unwrap();
        assert_eq!(counts, [40_000; 2]);

        // A row of many pieces, and one that is larger than permitted.
        let large = |key, megabytes| {
            format!(
                "insert into t values ({key}, (select string_agg(md5(n::text), '') from generate_series(1, {megabytes} \
                * 32768) n))"
            )
        };
        conn.execute(&large(-1, 2)).unwrap();
        let [transaction] = &reader.read_all().unwrap()[..] else { panic!() };
        assert_eq!(line(transaction), "Insert t -1");
        conn.execute(&large(-2, 11)).unwrap();
        let error = reader.read_all().unwrap_err();
        assert!(matches!(error, WalError::TooLarge { limit: found, .. } if found == limit), "{error}");
        drop(reader);
        until_nothing_is_left(&mut conn);
    }
}

/// A client that updates rows in small transactions, and appends its number to each row's list. It
/// rolls some back, uses savepoints, and doesn't always wait for the log.
fn client(mut conn: Connection, seed: u64) {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    conn.execute("set synchronous_commit = off").unwrap();
    for _ in 0..60 {
        // Rows in ascending order, so that there are no deadlocks.
        let (one, other) = (random(3), 3 + random(3));
        let append = |key: u64| {
            format!(
                "update t set writers = writers || pg_current_xact_id()::text::bigint where k = 'row {key}'"
            )
        };
        let end = if random(5) == 0 { "rollback" } else { "commit" };
        let middle = match random(3) {
            0 => format!("savepoint s; {}; rollback to s", append(other)),
            1 => format!("savepoint s; {}; release s", append(other)),
            _ => append(other),
        };
        for sql in ["begin", &append(one), &middle, end] {
            conn.execute(sql).unwrap();
        }
    }
}

#[test]
fn the_order_of_commits_is_that_of_each_rows_versions() {
    let test = "the_order_of_commits_is_that_of_each_rows_versions";
    for (server, plugin) in cases(test, &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute(
            "create table t (k text primary key, writers bigint[] not null default '{}');
             insert into t select 'row ' || n from generate_series(0, 5) n",
        )
        .unwrap();
        let mut reader = start(&server, plugin, &["t"]);
        let clients: Vec<_> = (0..4)
            .map(|seed| {
                let conn = open(&server);
                thread::spawn(move || client(conn, seed))
            })
            .collect();
        // Read while they are at work, then the rest.
        let mut transactions = Vec::new();
        while clients.iter().any(|client| !client.is_finished()) {
            reader.read(&mut |transaction| transactions.push(transaction)).unwrap();
        }
        for client in clients {
            client.join().unwrap();
        }
        reader.read(&mut |transaction| transactions.push(transaction)).unwrap();

        let rows = conn.query("select k, array_to_string(writers, ' ') from t").unwrap().rows;
        let claimed: BTreeMap<String, Vec<u32>> = rows
            .into_iter()
            .map(|row| {
                let [Some(key), Some(writers)] = &row[..] else { panic!("{row:?}") };
                (key_text(&[key]), writers.split(' ').map(|xid| xid.parse().unwrap()).collect())
            })
            .collect();
        assert!(claimed.values().all(|writers: &Vec<u32>| writers.len() > 20), "{claimed:?}");
        assert_eq!(writers_by_key(&transactions), claimed);
    }
}

/// The committed writers of each row in the order of their commits.
fn writers_by_key(transactions: &[WalTransaction]) -> BTreeMap<String, Vec<u32>> {
    let mut rows: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for transaction in transactions {
        for key in transaction.writes.iter().flat_map(WalWrite::key_texts) {
            rows.entry(key).or_default().push(transaction.xid);
        }
    }
    rows
}

#[test]
fn numbers_in_rows_may_be_subtransactions() {
    for (server, plugin) in cases("numbers_in_rows_may_be_subtransactions", &[LOGICAL]) {
        let mut conn = open(&server);
        conn.execute("create table t (k int primary key, v int); insert into t values (1, 0)").unwrap();
        let mut reader = start(&server, plugin, &["t"]);
        let update = "update t set v = v + 1 returning xmin";
        let number = |conn: &mut Connection| conn.value(update).unwrap().unwrap().parse::<u32>().unwrap();
        let first = number(&mut conn);
        conn.execute("begin; savepoint s").unwrap();
        let sub = number(&mut conn);
        conn.execute("commit").unwrap();
        let last = number(&mut conn);
        let transactions = reader.read_all().unwrap();
        assert!(transactions.iter().all(|one| one.writes[0].kind == WalWriteKind::Update && one.xid != sub));
        let writers: Vec<u32> = transactions.iter().map(|transaction| transaction.xid).collect();
        assert_eq!((writers.len(), writers[0], writers[2]), (3, first, last));
    }
}
