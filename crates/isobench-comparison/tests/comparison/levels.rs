//! Levels that the server replaces by others, and a hot standby.

use isobench_result::StartingState;

use crate::stage::Stage;

const SHOW: &str = "SHOW transaction_isolation";

#[test]
fn a_level_that_runs_as_another_one_is_reported_and_stored() {
    let ran = Stage::new("--levels rc,ser --clients 1,2").answering(SHOW, "serializable").run();
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1; 4]));
    assert_eq!(ran.count("warning: read committed was asked for, but the server runs serializable"), 1);
    let levels =
        ran.document().cells.iter().map(|cell| (cell.level.effective.to_string(), cell.level.differs()));
    let serializable = |differs| ("serializable".to_owned(), differs);
    assert_eq!(levels.collect::<Vec<_>>(), [true, false, true, false].map(serializable));
    assert!(ran.document().cells[0].summary.level_differs);
}

#[test]
fn strict_levels_are_refused_before_tables_are_made() {
    let ran = Stage::new("--levels rc,ser --strict-levels").answering(SHOW, "serializable").run();
    let failure = ran.failure();
    assert!(failure.starts_with("--strict-levels: read committed was asked for, but "), "{failure}");
    assert_eq!((ran.truth.count("CREATE TABLE"), &ran.heard[..]), (0, &[][..]));
}

#[test]
fn a_standby_is_read_below_serializable() {
    let stage = Stage::builtin("--workload select-only").answering("pg_is_in_recovery", "t");
    let ran = stage.answering("count(*) from pgbench_branches", "7").run();
    assert_eq!(
        (ran.incomplete(), ran.count("left out: a hot standby runs no transactions at serializable")),
        ("", 1)
    );
    let document = ran.document();
    assert_eq!((document.server.hot_standby, document.plan.scale, document.cells.len()), (true, Some(7), 2));
    for cell in &document.cells {
        assert!(!cell.level.differs() && cell.scale == 7);
        assert_eq!(cell.rounds[0].starting_state, StartingState::Found);
        assert!(cell.rounds[0].invariants[0].detail.starts_with("nothing is written on a standby"));
    }
    for statement in ["create table", "copy ", "truncate table", "checkpoint", "CREATE SCHEMA"] {
        assert_eq!(ran.truth.count(statement), 0, "{statement}");
    }
}
