//! Tables, reset, namespace, invariants and settings on the installed PostgreSQL, with the real
//! pgbench as the oracle.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use isobench_database::Table;
use isobench_database::{
    Baseline, Database, Error, Expectation, InitOptions, InitProgress, Namespace, PartitionMethod, Writes,
    baseline, check, checkpoint, detect, init, put_back, reset, scale_of, settings,
};
use isobench_isolation::{EffectiveLevel, Level};
use isobench_pgserver::Server;
use isobench_pgwire::{ConnectOptions, Connection};

use crate::support;

/// No test waits longer for something that must happen.
const PATIENCE: Duration = Duration::from_mins(5);

/// Everything in a dump of the tables, and the data: kind, name, detail.
const CATALOG: &str = "
    with tables as (select * from pg_class where relname like 'pgbench%' and relkind in ('r', 'p'))
    select '1 table', relname, concat_ws(' ', relkind, case when relkind = 'r' then relpersistence end, reloptions,
        pg_get_partkeydef(oid), pg_get_expr(relpartbound, oid),
        (select spcname from pg_tablespace s where s.oid = reltablespace)) from tables
    union all select '2 column', relname, concat_ws(' ', attnum, attname, format_type(atttypid, atttypmod), attnotnull)
        from tables join pg_attribute on attrelid = tables.oid where attnum > 0
    union all select '3 constraint', relname, conname || ' ' || pg_get_constraintdef(c.oid)
        from tables join pg_constraint c on conrelid = tables.oid
    union all select '4 index', relname, pg_get_indexdef(indexrelid) from tables join pg_index on indrelid = tables.oid
    union all select '5 size', relname, concat_ws(' ', pg_relation_size(tables.oid), reltuples, relallvisible)
        from tables
        where relname <> 'pgbench_history'
    union all select '5 stored', 'pgbench_accounts', md5(string_agg(ctid::text || aid, ' ' order by ctid))
        from pgbench_accounts
    union all select '5 statistics', tablename, concat_ws(' ', attname, null_frac, avg_width, n_distinct, correlation)
        from pg_stats where tablename like 'pgbench%' and attname <> 'aid'
    union all select '6 data', 'pgbench_branches', md5(string_agg(t::text, ' ' order by bid)) from pgbench_branches t
    union all select '6 data', 'pgbench_tellers', md5(string_agg(t::text, ' ' order by tid)) from pgbench_tellers t
    union all select '6 data', 'pgbench_accounts', md5(string_agg(t::text, ' ' order by aid)) from pgbench_accounts t
    union all select '6 data', 'pgbench_history', count(*)::text from pgbench_history
    order by 1, 2, 3";

fn catalog(conn: &mut Connection) -> Vec<String> {
    let rows = conn.query(CATALOG).unwrap().rows;
    rows.iter().map(|row| row.iter().flatten().cloned().collect::<Vec<_>>().join(" | ")).collect()
}

fn pgbench(bin: &Path, server: &Server, dbname: &str, arguments: &[&str]) -> String {
    let output = Command::new(bin.join("pgbench"))
        .args(arguments)
        .arg("-h")
        .arg(server.socket_dir())
        .args(["-p", &server.port().to_string(), "-U", server.user(), dbname])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Creates a database and a session in it.
fn database(server: &Server, name: &str) -> (Connection, Database) {
    let mut admin = Connection::open(&support::options(server, server.database())).unwrap();
    admin.execute(&format!("create database {name}")).unwrap();
    let mut conn = Connection::open(&support::options(server, name)).unwrap();
    let db = detect(&mut conn).unwrap();
    (conn, db)
}

fn with_steps(steps: &str) -> InitOptions {
    InitOptions { steps: steps.parse().unwrap(), ..InitOptions::default() }
}

#[test]
fn tables_equal_those_of_pgbench() {
    let Some((server, bin)) = support::postgresql("tables_equal_those_of_pgbench") else { return };
    let (mut theirs, _) = database(&server, "theirs");
    let (mut ours, db) = database(&server, "ours");
    let unlogged = InitOptions { unlogged: true, fillfactor: 80, foreign_keys: true, ..with_steps("dtgvp") };
    let hash = PartitionMethod::Hash;
    let partitioned = InitOptions { partitions: 3, ..with_steps("dtgvpf") };
    let cases: [(&[&str], InitOptions); 6] = [
        (&["-I", "dtgvp", "-s", "2"], InitOptions { scale: 2, ..with_steps("dtgvp") }),
        (&["-I", "dtGvp", "-s", "2"], InitOptions { scale: 2, ..with_steps("dtGvp") }),
        (&["-I", "dtgp"], with_steps("dtgp")),
        (&["-F", "80", "--unlogged-tables", "--foreign-keys"], unlogged),
        (&["-I", "dtgvpf", "--partitions=3"], partitioned),
        (
            &["-I", "dtGvpf", "--partitions=3", "--partition-method=hash"],
            InitOptions { partition_method: hash, partitions: 3, ..with_steps("dtGvpf") },
        ),
    ];
    for (arguments, opts) in cases {
        let arguments = [&["-i", "-q"], arguments].concat();
        pgbench(&bin, &server, "theirs", &arguments);
        init(&mut ours, &db, &opts, &mut |_| {}).unwrap();
        let (theirs, ours) = (catalog(&mut theirs), catalog(&mut ours));
        // Ours freezes the small tables as well, so their pages are all-visible even without a
        // vacuum. A table that was never analyzed has no statistics to compare.
        let comparable = |line: &&String| !line.starts_with("5 s") || arguments.contains(&"dtgvp");
        let theirs: Vec<_> = theirs.iter().filter(comparable).collect();
        let ours: Vec<_> = ours.iter().filter(comparable).collect();
        assert_eq!(ours, theirs, "pgbench {arguments:?}");
        assert!(theirs.len() > 20, "the catalog query finds too little: {theirs:?}");
    }
    assert_eq!(scale_of(&mut ours).unwrap(), Some(1));
}

#[test]
fn progress_and_refusals_are_data() {
    let Some((server, _)) = support::postgresql("progress_and_refusals_are_data") else { return };
    let (mut ours, db) = database(&server, "ours");
    assert_eq!(scale_of(&mut ours).unwrap(), None);
    let mut reported = Vec::new();
    let timings = init(&mut ours, &db, &with_steps("dtgvpf"), &mut |progress| {
        reported.push(match progress {
            InitProgress::Step(step) => step.letter().to_string(),
            InitProgress::Rows { table, done, total, .. } if done == total => {
                format!("{total} {}", table.name())
            }
            InitProgress::Rows { done, .. } => {
                assert!(done % 100 == 0);
                return;
            }
            InitProgress::Notice(notice) => notice.to_string(),
            InitProgress::Note(note) => note,
            InitProgress::Partitions(count) => count.to_string(),
        });
    });
    let notice = |table| format!("NOTICE:  table \"pgbench_{table}\" does not exist, skipping");
    let expected: Vec<String> = std::iter::once("d".to_owned())
        .chain(["accounts", "branches", "history", "tellers"].map(notice))
        .chain(["t", "g", "100000 pgbench_accounts", "v", "p", "f"].map(str::to_owned))
        .collect();
    assert_eq!(reported, expected);
    assert_eq!(timings.unwrap().steps.len(), 6);

    let refused = |conn: &mut Connection, prepare: &str, steps: &str| {
        conn.execute(prepare).unwrap();
        init(conn, &db, &with_steps(steps), &mut |_: InitProgress| {}).unwrap_err()
    };
    let error = refused(&mut ours, "select 1", "dg");
    assert_eq!(
        error.to_string(),
        "query failed: ERROR:  relation \"pgbench_accounts\" does not exist\nQuery was: truncate table \
         pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"
    );
    // The failed transaction was rolled back, so the session still works.
    init(&mut ours, &db, &with_steps("dt"), &mut |_| {}).unwrap();
    let error = refused(&mut ours, "alter table pgbench_accounts add check (aid < 70000)", "g");
    assert!(matches!(&error, Error::CopyFailed { table: Table::Accounts, .. }), "{error}");
    let whole_rows = error.to_string();
    assert!(whole_rows.ends_with("line 70000: \"70000\t1\t0\t\""), "{whole_rows}");
    ours.execute(
        "create role plain login; grant all on all tables in schema public to plain; \
         revoke insert on pgbench_tellers from plain",
    )
    .unwrap();
    let mut plain = support::options(&server, "ours");
    plain.user = "plain".to_owned();
    let mut conn = Connection::open(&plain).unwrap();
    let error = refused(&mut conn, "select 1", "g");
    assert!(matches!(&error, Error::CopyRefused { table: Table::Tellers, .. }), "{error}");
}

/// Changes that a user may have made to the accounts before they are filled again.
const ODD_ACCOUNTS: [&str; 9] = [
    "select 1",
    "alter table pgbench_accounts alter abalance set default 7, alter filler set default 'x'",
    "alter table pgbench_accounts alter filler set default 'x'",
    "alter table pgbench_accounts alter abalance type numeric",
    "alter table pgbench_accounts rename bid to b; alter table pgbench_accounts rename aid to bid; \
     alter table pgbench_accounts rename b to aid",
    "create function nothing() returns trigger language plpgsql as 'begin return new; end'; \
     create trigger t before insert on pgbench_accounts for each row execute function nothing()",
    "alter table pgbench_accounts add check (aid > 0)",
    "alter table pgbench_accounts alter abalance set not null, alter abalance add generated by default as identity",
    "create role plain login; alter table pgbench_accounts owner to plain",
];

#[test]
fn odd_tables_keep_what_they_have() {
    let Some((server, _)) = support::postgresql("odd_tables_keep_what_they_have") else { return };
    let (mut conn, db) = database(&server, "ours");
    let columns = "select string_agg(concat_ws(' ', attname, attidentity, pg_get_expr(adbin, adrelid)), ',' \
        order by attnum) \
        from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum \
        where attrelid = 'pgbench_accounts'::regclass and attnum > 0";
    let contents = "select concat_ws(' ', count(*), sum(greatest(aid, bid)), sum(least(aid, bid)), max(abalance), \
        min(length(filler)), max(octet_length(filler)), max(length(filler))) from pgbench_accounts";
    for what in ODD_ACCOUNTS {
        init(&mut conn, &db, &with_steps("dt"), &mut |_| {}).unwrap();
        conn.execute(what).unwrap();
        let before = conn.value(columns).unwrap();
        init(&mut conn, &db, &with_steps("g"), &mut |_| {}).unwrap();
        assert_eq!(conn.value(columns).unwrap(), before, "{what}");
        let stored = conn.value(contents).unwrap().unwrap();
        assert_eq!(stored, "100000 5000050000 100000 0 0 84 0", "{what}");
    }
}

#[test]
fn a_reset_restores_the_same_state() {
    let Some((server, bin)) = support::postgresql("a_reset_restores_the_same_state") else { return };
    let (mut conn, db) = database(&server, "ours");
    let opts = InitOptions { foreign_keys: true, ..with_steps("dt") };
    assert!(reset(&mut conn, &db, &opts).unwrap().notes.is_empty());
    let fresh = catalog(&mut conn);
    pgbench(&bin, &server, "ours", &["-n", "-c", "2", "-t", "200"]);
    assert_ne!(catalog(&mut conn), fresh);
    reset(&mut conn, &db, &opts).unwrap();
    assert_eq!(catalog(&mut conn), fresh);

    // A role without the right to run a checkpoint gets a note.
    conn.execute("create role plain login; create schema plain authorization plain").unwrap();
    let mut plain = support::options(&server, "ours");
    plain.user = "plain".to_owned();
    plain.options = Some("-csearch_path=plain".to_owned());
    let mut conn = Connection::open(&plain).unwrap();
    assert!(reset(&mut conn, &db, &InitOptions::default()).unwrap().notes.is_empty());
    let notes = checkpoint(&mut conn, &db).unwrap();
    assert!(notes[0].starts_with("no right to run CHECKPOINT"), "{notes:?}");
}

/// Putting rows back as on other products (never done here, because of the bloat): rows, keys and
/// constraints, but not the rows' places.
#[test]
fn rows_that_are_put_back_are_the_rows_of_the_start() {
    let test = "rows_that_are_put_back_are_the_rows_of_the_start";
    let Some((server, bin)) = support::postgresql(test) else { return };
    let (mut conn, db) = database(&server, "ours");
    let logical =
        |conn: &mut Connection| catalog(conn).into_iter().filter(|row| !row.starts_with('5')).collect();
    let without = InitOptions { scale: 2, ..InitOptions::default() };
    let with = InitOptions { foreign_keys: true, ..without.clone() };
    let fresh: Vec<Vec<String>> = [&without, &with]
        .map(|opts| {
            reset(&mut conn, &db, opts).unwrap();
            logical(&mut conn)
        })
        .into();
    assert_ne!(fresh[0], fresh[1]);
    // From, to, and the result; first the tables are created as in the second one.
    for (made, wanted, expected) in
        [(&with, &with, 1), (&with, &without, 0), (&without, &without, 0), (&without, &with, 1)]
    {
        pgbench(&bin, &server, "ours", &["-n", "-c", "2", "-t", "100"]);
        assert_ne!(logical(&mut conn), fresh[expected]);
        assert!(put_back(&mut conn, &db, made, wanted).unwrap().notes.is_empty());
        assert_eq!(logical(&mut conn), fresh[expected], "{expected}");
    }
}

#[test]
fn invariants_hold_after_pgbench_and_not_after_a_lost_update() {
    let Some((server, bin)) = support::postgresql("invariants") else { return };
    let (mut conn, db) = database(&server, "ours");
    init(&mut conn, &db, &InitOptions::default(), &mut |_| {}).unwrap();
    let zero = Baseline { history_rows: 0, history: 0, accounts: 0, tellers: 0, branches: 0 };
    assert_eq!(baseline(&mut conn, &db).unwrap(), zero);
    let mut before = zero;
    for (script, committed) in [("tpcb-like", 40), ("simple-update", 40), ("select-only", 0)] {
        pgbench(&bin, &server, "ours", &["-n", "-c", "4", "-t", "10", "-b", script]);
        let mix = [Writes::of_builtin(script).unwrap()];
        let expectation = Expectation { committed, ambiguous: 0 };
        let checked = check(&mut conn, &db, &before, expectation, &mix).unwrap();
        assert!(checked.iter().all(|checked| checked.held), "{script}: {checked:?}");
        before = baseline(&mut conn, &db).unwrap();
    }
    conn.execute("update pgbench_branches set bbalance = bbalance + 1 where bid = 1").unwrap();
    let checked = check(&mut conn, &db, &before, Expectation::default(), &[Writes::AllTables]).unwrap();
    let violated: Vec<_> = checked.iter().filter(|checked| !checked.held).collect();
    assert_eq!(violated.len(), 1);
    assert_eq!(violated[0].detail, "branches changed by 1, history by 0");
}

#[test]
fn levels_and_settings_are_read() {
    let Some((server, _)) = support::postgresql("levels_and_settings_are_read") else { return };
    let (mut conn, db) = database(&server, "ours");
    assert_eq!(db.product.name, "PostgreSQL");
    assert_eq!(db.version, server.version());
    for level in Level::ALL {
        db.product.apply_level(&mut conn, level).unwrap();
        assert_eq!(db.product.read_effective(&mut conn).unwrap(), EffectiveLevel::Standard(level));
    }
    conn.execute("alter database ours set random_page_cost = 1.5").unwrap();
    let mut conn = Connection::open(&support::options(&server, "ours")).unwrap();
    let settings = settings(&mut conn, &db).unwrap();
    assert_eq!(settings.note, None);
    assert_eq!(settings.values["random_page_cost"], "1.5");
    assert_eq!(settings.values["fsync"], "on");
    assert_eq!(settings.values["shared_buffers"], "128MB");
    for private in ["listen_addresses", "unix_socket_directories", "data_directory", "lc_messages"] {
        assert!(!settings.values.contains_key(private), "{private} is reported");
    }
}

/// Claims the namespace once the server has released the lock of a session that has ended.
fn claim_when_free(options: &ConnectOptions, db: &Database) -> Result<Namespace, Error> {
    let limit = Instant::now() + PATIENCE;
    loop {
        match Namespace::claim(options, db) {
            Err(Error::InUse { .. }) => {
                assert!(Instant::now() < limit, "the lock isn't released");
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// Names of schemas that `isobench` made.
fn schemas(conn: &mut Connection) -> Option<String> {
    conn.value("select nspname from pg_namespace where nspname = 'isobench'").unwrap()
}

#[test]
fn a_namespace_is_made_used_and_removed() {
    let Some((server, _)) = support::postgresql("a_namespace_is_made_used_and_removed") else { return };
    let (mut conn, db) = database(&server, "somebodys");
    conn.execute("create table pgbench_accounts(precious int); insert into pgbench_accounts values (1)")
        .unwrap();
    let mut options = support::options(&server, "somebodys");
    options.options = Some("-c work_mem=5MB".to_owned());

    let namespace = Namespace::claim(&options, &db).unwrap();
    let line = namespace.describe();
    assert!(line.starts_with("working in schema \"isobench\" on "), "{line}");
    assert!(line.ends_with("no other table is touched, and it is removed at the end"), "{line}");
    let mut inside = namespace.connector().open().unwrap();
    assert_eq!(inside.value("show work_mem").unwrap().as_deref(), Some("5MB"));
    init(&mut inside, &db, &InitOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(inside.value("select count(*) from pgbench_accounts").unwrap().as_deref(), Some("100000"));
    assert_eq!(conn.value("select precious from pgbench_accounts").unwrap().as_deref(), Some("1"));

    let error = Namespace::claim(&options, &db).unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error}");

    // Another session terminates our idle connection: the release opens a new one.
    conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'COMMENT ON schema isobench%'",
    )
    .unwrap();
    namespace.release().unwrap();
    assert_eq!(schemas(&mut conn), None);
}

#[test]
fn leftovers_are_replaced_and_strangers_left_alone() {
    let Some((server, _)) = support::postgresql("leftovers_are_replaced") else { return };
    let (mut conn, db) = database(&server, "somebodys");
    let options = support::options(&server, "somebodys");

    let kept = Namespace::claim(&options, &db).unwrap();
    kept.connector().open().unwrap().execute("create table t(k int)").unwrap();
    kept.keep();
    assert!(schemas(&mut conn).is_some());
    let namespace = claim_when_free(&options, &db).unwrap();
    assert!(namespace.describe().contains("in place of one that an earlier run left behind"));
    assert!(namespace.connector().open().unwrap().execute("select * from t").is_err());

    // A panic or an early return removes it, too.
    drop(namespace);
    assert_eq!(schemas(&mut conn), None);

    conn.execute("create role plain login").unwrap();
    let mut plain = options.clone();
    plain.user = "plain".to_owned();
    let error = Namespace::claim(&plain, &db).unwrap_err();
    assert!(matches!(error, Error::MayNotCreate { .. }), "{error}");

    conn.execute("create schema isobench; create table isobench.precious(k int)").unwrap();
    let error = claim_when_free(&options, &db).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert!(conn.execute("select * from isobench.precious").is_ok());
}

/// DROP … CASCADE would also remove what a user has built on tables that a kept run left behind.
#[test]
fn what_depends_on_leftovers_stays() {
    let Some((server, _)) = support::postgresql("what_depends_on_leftovers_stays") else { return };
    let (mut conn, db) = database(&server, "somebodys");
    let options = support::options(&server, "somebodys");
    let kept = Namespace::claim(&options, &db).unwrap();
    kept.connector()
        .open()
        .unwrap()
        .execute("create table t(k int primary key); create view own as table t")
        .unwrap();
    kept.keep();
    let claim = || claim_when_free(&options, &db);
    for (make, drop, named) in [
        ("create view precious as select k from isobench.t", "drop view precious", "view public.precious"),
        (
            "create table precious (k int references isobench.t); insert into isobench.t values (1); \
             insert into precious values (1)",
            "drop table precious",
            "constraint precious_k_fkey on table public.precious",
        ),
    ] {
        conn.execute(make).unwrap();
        let error = claim().unwrap_err();
        assert!(matches!(error, Error::Depends { .. }) && error.to_string().contains(named), "{error}");
        assert!(conn.execute("select * from precious").is_ok() && schemas(&mut conn).is_some());
        conn.execute(drop).unwrap();
    }
    claim().unwrap().release().unwrap();
    assert_eq!(schemas(&mut conn), None);
}

#[test]
fn the_environment_is_read() {
    let Some((server, _)) = support::postgresql("the_environment_is_read") else { return };
    let (mut conn, db) = database(&server, "described");
    conn.execute("alter database described set default_transaction_isolation = 'repeatable read'").unwrap();
    conn.execute("alter role postgres in database described set statement_timeout = '1h'").unwrap();
    conn.execute("alter role postgres set application_name = 'private'").unwrap();
    conn.execute("create role other; alter role other set work_mem = '1GB'").unwrap();
    let environment = isobench_database::environment(&mut conn, &db);
    assert_eq!(environment.version_text, db.version_text);
    assert!(environment.extensions.contains_key("plpgsql"), "{environment:?}");
    assert_eq!(
        environment.role_settings,
        [
            "database: default_transaction_isolation = repeatable read",
            "role in database: statement_timeout = 1h"
        ]
    );
    assert_eq!(environment.notes, Vec::<String>::new());

    init(&mut conn, &db, &with_steps("dtgvp"), &mut |_| {}).unwrap();
    let relations = isobench_database::relation_sizes(&mut conn, &db).unwrap();
    assert_eq!(relations.len(), 7, "{relations:?}");
    let largest = &relations[0];
    assert_eq!((largest.name.as_str(), largest.kind.as_str()), ("pgbench_accounts", "table"));
    assert_eq!(largest.rows, Some(100_000));
    assert!(largest.bytes > 10_000_000, "{largest:?}");
    let key = relations.iter().find(|relation| relation.name == "pgbench_accounts_pkey").unwrap();
    assert!(key.kind == "index" && key.rows.is_none() && key.bytes > 1_000_000, "{key:?}");

    // Without rights there are notes.
    conn.execute("revoke select on all tables in schema pg_catalog from public; create role plain login")
        .unwrap();
    let mut plain = Connection::open(&ConnectOptions {
        user: "plain".to_owned(),
        ..support::options(&server, "described")
    })
    .unwrap();
    let environment = isobench_database::environment(&mut plain, &db);
    assert_eq!(environment.notes.len(), 2, "{environment:?}");
    assert_eq!(
        environment.notes[0],
        "the extensions can't be read: permission denied for table pg_extension"
    );
    assert!(
        isobench_database::relation_sizes(&mut plain, &db).unwrap_err().starts_with("the sizes of tables")
    );
}
