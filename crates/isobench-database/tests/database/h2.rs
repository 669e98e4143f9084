//! H2 over the real protocol: levels, tables, conflicts and namespace. Skipped without Java or H2's
//! jar.

use isobench_database::{
    Database, Expectation, InitOptions, Namespace, Writes, baseline, check, detect, init, put_back, reset,
    scale_of, settings,
};
use isobench_isolation::{EffectiveLevel, Level};
use isobench_pgwire::{Connection, Error as WireError};
use isobench_testkit::h2::H2;
use isobench_testkit::installed::skip;

#[test]
fn h2_over_the_real_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let h2 = match H2::start(folder.path()) {
        Ok(h2) => h2,
        Err(why) => return skip("h2_over_the_real_protocol", &why),
    };
    let options = h2.options();
    let mut conn = Connection::open(&options).unwrap();
    let db = detect(&mut conn).unwrap();
    assert_eq!((db.product.name, db.version.as_str()), ("H2", "2.4.240"));
    for level in Level::ALL {
        db.product.apply_level(&mut conn, level).unwrap();
        assert_eq!(db.product.read_effective(&mut conn).unwrap(), EffectiveLevel::Standard(level));
    }
    assert!(settings(&mut conn, &db).unwrap().note.is_none());
    assert!(isobench_database::environment(&mut conn, &db).notes[0].ends_with("this product (H2)"));
    assert_eq!(scale_of(&mut conn).unwrap(), None);

    let namespace = Namespace::claim(&options, &db).unwrap();
    let mut inside = namespace.connector().open().unwrap();
    for steps in ["dtgvpf", "dtGvp"] {
        let opts = InitOptions { steps: steps.parse().unwrap(), ..InitOptions::default() };
        init(&mut inside, &db, &opts, &mut |_| {}).unwrap();
        let sizes = "select count(*) || ' ' || max(bid) || ' ' || max(aid) from pgbench_accounts";
        assert_eq!(inside.value(sizes).unwrap().as_deref(), Some("100000 1 100000"));
        let tellers = "select count(*) || ' ' || max(bid) || ' ' || sum(tbalance) from pgbench_tellers";
        assert_eq!(inside.value(tellers).unwrap().as_deref(), Some("10 1 0"));
    }
    assert_eq!(scale_of(&mut inside).unwrap(), Some(1));
    let before = baseline(&mut inside, &db).unwrap();
    transaction(&mut inside);
    let once = Expectation { committed: 1, ambiguous: 0 };
    let checked = check(&mut inside, &db, &before, once, &[Writes::AllTables]).unwrap();
    assert!(checked.iter().all(|checked| checked.held), "{checked:?}");
    conflict(&db, &namespace);
    let made: InitOptions = InitOptions { steps: "dtGvp".parse().unwrap(), ..InitOptions::default() };
    let with_keys = InitOptions { foreign_keys: true, ..made.clone() };
    for (from, to) in [(&made, &with_keys), (&with_keys, &made)] {
        transaction(&mut inside);
        put_back(&mut inside, &db, from, to).unwrap();
        assert_eq!(baseline(&mut inside, &db).unwrap(), before);
    }
    let server_side = InitOptions { steps: "dtG".parse().unwrap(), ..InitOptions::default() };
    let note = reset(&mut inside, &db, &server_side).unwrap();
    assert!(note.notes.is_empty(), "{note:?}");
    assert_eq!(baseline(&mut inside, &db).unwrap(), before);
    inside.close();

    namespace.release().unwrap();
    let left = "select count(*) from information_schema.schemata where schema_name = 'isobench'";
    assert_eq!(conn.value(left).unwrap().as_deref(), Some("0"));
    assert_eq!(scale_of(&mut conn).unwrap(), None);
}

/// One TPC-B-like transaction.
fn transaction(conn: &mut Connection) {
    for sql in [
        "begin",
        "update pgbench_accounts set abalance = abalance + 5 where aid = 7",
        "update pgbench_tellers set tbalance = tbalance + 5 where tid = 3",
        "update pgbench_branches set bbalance = bbalance + 5 where bid = 1",
        "insert into pgbench_history (tid, bid, aid, delta, mtime) values (3, 1, 7, 5, current_timestamp)",
        "commit",
    ] {
        conn.execute(sql).unwrap();
    }
}

/// An update of a row that has changed since the snapshot.
fn conflict(db: &Database, namespace: &Namespace) {
    let mut late = namespace.connector().open().unwrap();
    let mut early = namespace.connector().open().unwrap();
    db.product.apply_level(&mut late, Level::RepeatableRead).unwrap();
    late.execute("begin").unwrap();
    late.query("select bbalance from pgbench_branches where bid = 1").unwrap();
    let update = "update pgbench_branches set bbalance = bbalance + 1 where bid = 1";
    early.execute(update).unwrap();
    let WireError::Server(error) = late.execute(update).unwrap_err() else {
        panic!("not the server's error")
    };
    let found = db.product.conflict(&error).unwrap();
    assert_eq!(found.reason, "deadlock or concurrent update");
    late.execute("rollback").unwrap();
}
