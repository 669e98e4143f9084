//! Reasons and objects of real conflicts on the installed PostgreSQL.

use std::thread;

use isobench_database::{Database, Relations, detect};
use isobench_pgwire::{Connection, Error};

use crate::support;

/// Two sessions with tables `t` and `c`, whose rows reference those of `t`.
fn sessions(server: &isobench_pgserver::Server) -> (Connection, Connection, Database) {
    let open = || Connection::open(&support::options(server, server.database())).unwrap();
    let (mut one, other) = (open(), open());
    let db = detect(&mut one).unwrap();
    one.execute(
        "create table t (k int primary key, v int); insert into t values (1, 0), (2, 0), (3, 0);
         create table c (id int primary key, k int references t)",
    )
    .unwrap();
    (one, other, db)
}

/// Reason and object of a statement's conflict, if it met one.
fn conflict(db: &Database, met: Result<(), Error>) -> Option<(String, Option<String>)> {
    let Err(Error::Server(error)) = met else { return None };
    let conflict = db.product.conflict(&error)?;
    Some((conflict.reason.into_owned(), conflict.object.map(std::borrow::Cow::into_owned)))
}

fn run(session: &mut Connection, sql: &str) -> Result<(), Error> {
    session.execute(sql).map(drop)
}

#[test]
fn conflicts_tell_their_reason_and_where_possible_their_object() {
    let test = "conflicts_tell_their_reason_and_where_possible_their_object";
    let Some((server, _)) = support::postgresql(test) else { return };
    let (mut one, mut other, db) = sessions(&server);
    let write_dependency = "read/write dependencies: identification as a pivot, during write";
    // The other session's statements after one's snapshot, then one's own, and the expected
    // conflict.
    let cases = [
        ("update t set v = 1 where k = 1", "update t set v = 2 where k = 1", "concurrent update", None),
        ("delete from t where k = 3", "update t set v = 2 where k = 3", "concurrent delete", None),
        ("update t set k = 20 where k = 2", "insert into c values (1, 2)", "concurrent update", Some("t")),
        (
            "begin isolation level serializable; select sum(v) from t; update t set v = 3 where k = 1; commit",
            "update t set v = 3 where k = 20",
            write_dependency,
            None,
        ),
    ];
    for (theirs, ours, reason, object) in cases {
        run(&mut one, "begin isolation level serializable; select sum(v) from t").unwrap();
        run(&mut other, theirs).unwrap();
        let met = conflict(&db, run(&mut one, ours));
        assert_eq!(met, Some((reason.to_owned(), object.map(str::to_owned))), "{theirs}; {ours}");
        run(&mut one, "rollback").unwrap();
    }
}

#[test]
fn a_deadlock_tells_its_table() {
    let Some((server, _)) = support::postgresql("a_deadlock_tells_its_table") else { return };
    let (mut one, mut other, db) = sessions(&server);
    run(&mut one, "begin; update t set v = 1 where k = 1").unwrap();
    run(&mut other, "begin; update t set v = 1 where k = 2").unwrap();
    let theirs = thread::spawn(move || run(&mut other, "update t set v = 1 where k = 1; commit"));
    let ours = run(&mut one, "update t set v = 1 where k = 2; commit");
    // Either of them may be the victim.
    let met: Vec<_> =
        [ours, theirs.join().unwrap()].into_iter().filter_map(|met| conflict(&db, met)).collect();
    assert_eq!(met, [("deadlock".to_owned(), Some("t".to_owned()))]);
}

#[test]
fn numbers_of_tables_become_their_names() {
    let Some((server, _)) = support::postgresql("numbers_of_tables_become_their_names") else { return };
    let (mut one, mut other, db) = sessions(&server);
    let relations = Relations::read(&mut one, &db);
    run(&mut one, "begin; lock table t").unwrap();
    run(&mut other, "begin; lock table c").unwrap();
    let theirs = thread::spawn(move || run(&mut other, "lock table t; commit"));
    let ours = run(&mut one, "lock table c; commit");
    let met: Vec<_> = [(ours, "c"), (theirs.join().unwrap(), "t")]
        .into_iter()
        .filter_map(|(met, table)| Some((conflict(&db, met)?.1?, table)))
        .collect();
    let [(object, table)] = &met[..] else { panic!("{met:?}") };
    assert!(object.starts_with("relation "), "{object}");
    assert_eq!(relations.name(object.clone().into()), *table);
    assert_eq!(Relations::read(&mut one, &Database::from_version_text("")), Relations::default());
}
