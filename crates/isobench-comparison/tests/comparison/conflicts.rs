//! Errors of the server, and how attempts and transactions are counted.

use isobench_pgwire::SqlState;
use isobench_result::{Cell, Round};
use isobench_testkit::simulated::Fault;

use crate::stage::{Ran, Stage, UPDATE};

/// The transactions of both clients.
const ALL: u64 = 60;

/// Runs a comparison of one cell in which these statements have a fault, except the first one, which
/// may be the trial's: those whose number is a multiple of `every`.
fn run(options: &str, part: &'static str, every: usize, fault: Fault) -> Ran {
    let stage = Stage::new(&format!("--transactions 30 {options}"));
    let strikes = move |number: usize| number > 1 && number.is_multiple_of(every);
    stage.rule(part, move |number, _| strikes(number).then_some(fault)).run()
}

fn round(ran: &Ran) -> &Round {
    &ran.document().cells[0].rounds[0]
}

#[test]
fn every_attempt_is_counted_once() {
    let (serialization, deadlock) = (SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED);
    let unknown = Fault::Unknown { committed: true };
    // Reason of the conflicts; attempts committed, retried, given up, and with an unknown outcome.
    for (options, part, every, fault, reason, expected) in [
        ("--levels ser", UPDATE, 3, Fault::Error(serialization), "concurrent update", [ALL, 30, 0, 0]),
        ("--levels rr", "END", 3, Fault::Error(serialization), "concurrent update", [ALL, 29, 0, 0]),
        ("--levels rc", UPDATE, 3, Fault::Error(deadlock), "deadlock t", [ALL, 30, 0, 0]),
        ("--levels ser --max-tries 1", UPDATE, 3, Fault::Error(deadlock), "deadlock t", [40, 0, 20, 0]),
        ("--levels ser --max-tries 3", UPDATE, 1, Fault::Error(deadlock), "deadlock t", [0, 2 * ALL, ALL, 0]),
        ("--levels ser", "END", 3, unknown, "", [40, 0, 0, 20]),
    ] {
        let ran = run(options, part, every, fault);
        assert_eq!(ran.incomplete(), "", "{options}");
        let Round { attempts, transactions, conflicts, contradictions, .. } = round(&ran);
        let found = [attempts.committed, attempts.retried, attempts.given_up, attempts.ambiguous];
        assert_eq!(found, expected, "{options}, {fault:?}");
        assert_eq!(found.iter().sum::<u64>(), attempts.started, "{attempts:?}");
        assert_eq!((transactions.total, transactions.committed), (ALL, attempts.committed));
        assert_eq!(contradictions.len(), 0, "{contradictions:?}");
        assert_eq!(conflicts.is_empty(), reason.is_empty());
        let Some(conflict) = conflicts.first() else { continue };
        let found = [Some(conflict.reason.as_str()), conflict.object.as_deref()];
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>().join(" "), reason);
        assert_eq!((conflict.count, conflicts.len()), (attempts.retried + attempts.given_up, 1));
        assert!(conflict.command.contains(part), "{}", conflict.command);
        // The place is the script's, where a reader finds the command: lines, not commands, count.
        let script = &ran.document().workload.scripts[0];
        let line = usize::try_from(conflict.line.expect("a line")).expect("a small number");
        let text = script.text.lines().nth(line - 1).expect("the script has that line");
        assert!(text.starts_with(&conflict.command), "{}: {text}", conflict.command);
        assert!(conflict.script.is_some(), "the script has a name");
    }
}

#[test]
fn an_impossible_conflict_contradicts_the_level() {
    let ran = run("--levels rc", UPDATE, 50, Fault::Error(SqlState::SERIALIZATION_FAILURE));
    let cell = &ran.document().cells[0];
    let said = ["1 attempts ended in 40001 (concurrent update), which read committed can't have"];
    assert_eq!(cell.rounds[0].contradictions, said);
    assert_eq!(cell.level.effective.to_string(), "another level");
}

#[test]
fn an_error_that_is_no_conflict_ends_its_client() {
    let ran = run("--levels rc", UPDATE, 59, Fault::Error(SqlState(*b"23505")));
    let Round { attempts, errors, complete, .. } = round(&ran);
    assert_eq!((attempts.errored, errors.len(), complete), (1, 1, &false), "{errors:?}");
    assert!((30..ALL).contains(&attempts.committed), "the other client continues: {attempts:?}");
    let reason = "read committed, 2 clients can't be measured: client ";
    assert!(ran.incomplete().starts_with(reason), "{}", ran.incomplete());
}

#[test]
fn an_error_that_the_plan_names_is_retried_beside_the_conflicts() {
    let unique = Fault::Error(SqlState(*b"23505"));
    let ran = run("--levels ser --retry-sqlstate 23505", UPDATE, 3, unique);
    assert_eq!(ran.incomplete(), "");
    let found = round(&ran);
    assert_eq!((found.attempts.committed, found.attempts.retried), (ALL, 30));
    assert_eq!((found.conflicts.len(), found.ledger().conflict_ratio()), (0, 0.0));
    let [error] = &found.further_errors[..] else { panic!("{:?}", found.further_errors) };
    assert_eq!((error.sqlstate.as_str(), error.count), ("23505", 30));
    assert!(error.command.contains(UPDATE), "{}", error.command);
    assert!((found.ledger().retries_per_transaction() - 0.5).abs() < 1e-9);
    // A conflict stays one, though the plan names it, too.
    let conflict = Fault::Error(SqlState::SERIALIZATION_FAILURE);
    let ran = run("--levels ser --retry-sqlstate 23505,40001", UPDATE, 3, conflict);
    assert_eq!((round(&ran).conflicts[0].count, round(&ran).further_errors.len()), (30, 0));
}

#[test]
fn clients_go_on_after_an_error_if_the_plan_says_so() {
    let unique = Fault::Error(SqlState(*b"23505"));
    let ran = run("--levels rc --continue-on-error", UPDATE, 3, unique);
    assert_eq!(ran.incomplete(), "");
    let Round { attempts, transactions, errors, complete, .. } = round(&ran);
    assert_eq!((attempts.committed, attempts.errored, attempts.started), (40, 20, ALL));
    assert_eq!((transactions.errored, complete), (20, &true));
    // One error of each code is enough.
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert!(error.contains("23505") && error.contains("UPDATE t"), "{error}");
}

#[test]
fn a_trial_passes_over_errors_of_data_only_where_the_clients_go_on() {
    for (options, code, measured) in [
        ("--levels rc --continue-on-error", *b"23505", true),
        ("--levels rc --retry-sqlstate 23505", *b"23505", true),
        ("--levels rc", *b"23505", false),
        ("--levels rc --continue-on-error", *b"42P01", false),
    ] {
        let fault = Fault::Error(SqlState(code));
        let stage = Stage::new(options).rule(UPDATE, move |number, _| (number == 1).then_some(fault));
        let ran = stage.run();
        if measured {
            assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1]), "{options}");
        } else {
            let failure = ran.failure();
            assert!(
                failure.contains("can't be measured") && failure.contains(UPDATE),
                "{options}: {failure}"
            );
        }
    }
}

#[test]
fn workloads_are_measured_each_on_its_own_tables() {
    let ran = Stage::new("--levels rc,ser --workload tpcb-like").run();
    assert_eq!(ran.incomplete(), "");
    let cells = &ran.document().cells;
    let names: Vec<&str> = cells.iter().map(|cell| cell.workload.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["tpcb-like", "tpcb-like", "own.sql", "own.sql"]);
    // Each is compared with the first level of its own workload, and only built-in scripts have
    // invariants.
    assert!(cells.iter().all(|cell| cell.rounds[0].transactions.committed == 10));
    let held = |cell: &Cell| cell.rounds[0].invariants.iter().filter(|one| one.held == Some(true)).count();
    assert_eq!(cells.iter().map(held).collect::<Vec<_>>(), [4, 4, 0, 0]);
    let tps = |cell: &Cell| cell.rounds[0].tps.expect("a rate");
    for (cell, first) in cells.iter().zip([0, 0, 2, 2]) {
        let ratio = cell.summary.ratio.as_ref().expect("a ratio").mean;
        assert!((ratio - tps(cell) / tps(&cells[first])).abs() < 1e-9, "{}: {ratio}", cell.workload);
    }
    let scripts = &ran.document().workload.scripts;
    assert_eq!((scripts.len(), scripts[0].workload.as_str()), (2, "tpcb-like"));
}

#[test]
fn the_tables_agree_with_what_was_counted() {
    let stage = Stage::builtin("--levels ser --rounds 2 --transactions 20 --max-tries 2");
    let stage = stage.rule("pgbench_branches SET", |number, _| {
        number.is_multiple_of(3).then_some(Fault::Error(SqlState::SERIALIZATION_FAILURE))
    });
    // Half of the COMMITs with an unknown outcome take effect.
    let ran = stage.rule("END;", |number, _| {
        number.is_multiple_of(5).then_some(Fault::Unknown { committed: number.is_multiple_of(2) })
    });
    let ran = ran.run();
    assert_eq!(ran.incomplete(), "");
    let rounds = &ran.document().cells[0].rounds;
    let sum = |count: fn(&Round) -> u64| rounds.iter().map(count).sum::<u64>();
    assert!(sum(|round| round.attempts.retried) > 0);
    let (least, unknown) = (sum(|round| round.attempts.committed), sum(|round| round.attempts.ambiguous));
    assert!((least + 1..least + unknown).contains(&ran.truth.committed_rows), "{least}, {unknown}");
    for round in rounds {
        assert_eq!(round.invariants.len(), 4);
        assert!(round.invariants.iter().all(|one| one.held == Some(true)), "{:?}", round.invariants);
    }
    assert_eq!(ran.document().server.relations[0].name, "pgbench_accounts");
}
