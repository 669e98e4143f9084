//! Comparisons that end early, and their results.

use std::sync::Arc;

use isobench_testkit::simulated::{Fault, Loss};

use crate::stage::{Stage, UPDATE, committed};

#[test]
fn an_interrupt_between_cells_keeps_those_before() {
    for (last, measured) in [(("start", 1), 0), (("finished", 4), 4)] {
        let ran = Stage { last: Some(last), ..Stage::new("--levels rc,rr,ser --rounds 1000") }.run();
        assert_eq!((ran.incomplete(), ran.rounds().iter().sum()), ("interrupted", measured));
        assert!(ran.document().cells.iter().flat_map(|cell| &cell.rounds).all(|round| round.complete));
        assert_eq!((ran.count("finished"), ran.count("close")), (measured, 1));
    }
}

#[test]
fn an_interrupt_during_a_cell_keeps_its_transactions() {
    let stage = Stage::new("--levels rc,ser --transactions 1000");
    let control = Arc::clone(&stage.control);
    let stage = stage.rule(UPDATE, move |number, _| {
        if number == 10 {
            control.interrupt();
        }
        None
    });
    let ran = stage.run();
    assert_eq!((ran.incomplete(), ran.rounds().iter().sum()), ("interrupted", 1));
    let round = ran.document().cells.iter().find_map(|cell| cell.rounds.first()).expect("a round");
    assert!(!round.complete && (1..2000).contains(&round.transactions.committed), "{round:?}");
    assert_eq!(ran.count("can't be measured"), 0, "no cell is to blame");
}

/// A comparison that loses a connection at a statement, alone or with the whole server.
fn lost(statement: usize, server: bool) -> Stage {
    Stage::new("--levels rc,ser --rounds 3").rule(UPDATE, move |number, asked| {
        if number == statement && server {
            asked.server.end();
        }
        (number == statement).then_some(Fault::Lost(Loss::Closed))
    })
}

#[test]
fn a_server_that_is_lost_ends_the_comparison() {
    // A server that still answers may have restarted, and lost its unlogged tables.
    for (server, clients) in [(true, 2), (false, 1)] {
        // One trial, then five transactions of two clients at each level in the first round.
        let ran = lost(1 + 20 + 3, server).run();
        assert_eq!(ran.rounds().iter().sum::<usize>(), 3);
        assert!(ran.incomplete().contains("server closed the connection"), "{}", ran.incomplete());
        let cells = &ran.document().cells;
        assert!(cells.iter().all(|cell| committed(cell)[0] == 10 && cell.rounds[0].complete));
        let lost = cells.iter().find_map(|cell| cell.rounds.get(1)).expect("a second round");
        assert!(!lost.complete && lost.errors.len() == clients, "{lost:?}");
        assert_eq!(ran.count("can't be measured"), 0);
    }
}

#[test]
fn without_anything_measured_a_lost_server_is_an_error() {
    let failure = lost(1, true).run().failure();
    assert!(failure.contains("server closed the connection"), "{failure}");
}

#[test]
fn a_result_that_cannot_be_saved_is_reported_once() {
    let stage = Stage::new("--levels rc,ser --rounds 2");
    let ran = Stage { unsaved: Some("the disk is full"), ..stage }.run();
    assert_eq!((ran.incomplete(), ran.rounds(), ran.saved.len()), ("", vec![2, 2], 5));
    assert_eq!(ran.count("warning: the disk is full"), 1);
}
