//! Cells that take turns: which do, in what order, where their tables lie, and what a round of them
//! has.
//!
//! Not here: what turns do to clients (`isobench_runner`), and real servers (`isobench/tests/cli`).

use crate::stage::{Stage, committed};

/// Cells of 50 ms in slices of 10 ms, of a script that only reads.
fn reading(options: &str) -> Stage {
    Stage::builtin(&format!("--workload select-only --time 0.05 --slice 0.01 {options}"))
}

#[test]
fn cells_that_differ_in_level_take_turns_with_tables_of_their_own() {
    let ran = reading("--levels rc,rr,ser --rounds 2").run();
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![2, 2, 2]));
    let mut steps = vec!["start".to_owned()];
    for round in 1..=2 {
        let names = || ran.design.cells().into_iter().map(|cell| cell.name(&ran.design));
        for name in names() {
            steps.push(format!("preparing {name}, round {round}"));
            steps.push("prepared, as before every cell".to_owned());
        }
        steps.extend(names().map(|name| format!("finished {name}, round {round}")));
    }
    steps.push("close".to_owned());
    assert_eq!(ran.count("so each has a schema of its own: isobench_1 and so on"), 1);
    // Whether a display is due in slices so short depends on the machine.
    let other = |step: &&String| !step.starts_with("turns of") && !step.starts_with("cells take turns");
    let heard: Vec<&String> = ran.heard.iter().filter(other).collect();
    assert_eq!(heard, steps.iter().collect::<Vec<_>>());
    for cell in &ran.document().cells {
        for round in &cell.rounds {
            let turns = round.turns.expect("slices");
            let series = round.series.as_ref().expect("a series");
            assert_eq!((turns.count, series.committed.len()), (5, 5));
            assert!((turns.length_s - 0.01).abs() < 1e-9 && round.seconds >= 0.05);
            assert!((0.0..1.0).contains(&turns.idle_share), "{turns:?}");
            assert_eq!(series.committed.iter().sum::<u64>(), round.transactions.committed);
        }
        let mut orders: Vec<_> = cell.rounds.iter().filter_map(|round| round.order).collect();
        orders.sort_unstable();
        assert!(orders.iter().all(|order| (1..=3).contains(order)), "{orders:?}");
    }
    for room in ["isobench_1", "isobench_2", "isobench_3"] {
        let count = |sql: &str| ran.truth.count(&format!("{sql} {room}"));
        assert_eq!(count("CREATE schema"), 1);
        // In each round for its tables, its clients, and what watches over them.
        assert!(count("SET search_path =") >= 2 * 3, "{room}");
        assert_eq!(ran.truth.count(&format!("create table {room}.pgbench_accounts")), 2);
    }
    assert_eq!(ran.truth.count("CREATE schema isobench_4"), 0);
    // One for the tables of all cells in each round, and none for those on which scripts are tried.
    assert_eq!(ran.truth.count("checkpoint"), 2);
}

#[test]
fn cells_that_arent_compared_dont_wait_for_each_other() {
    let ran = reading("--levels rc,ser --clients 1,2").run();
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1; 4]));
    let prepared: Vec<&str> = ran
        .heard
        .iter()
        .map(String::as_str)
        .filter(|step| step.starts_with("preparing") || step.starts_with("finished"))
        .collect();
    assert_eq!(prepared.len(), 8);
    for block in prepared.chunks(4) {
        let clients = |step: &&str| step.split(", ").nth(1).map(str::to_owned);
        assert!(block.iter().all(|step| clients(step) == clients(&block[0])), "{prepared:#?}");
        assert!(block[1].starts_with("preparing") && block[2].starts_with("finished"));
    }
}

#[test]
fn where_slices_wouldnt_be_fair_cells_are_measured_in_one_piece_and_that_is_said() {
    for (options, why) in [
        ("--workload select-only --transactions 5", None),
        ("--workload select-only --time 0.05 --slice 0.03", Some("is shorter than two slices")),
        ("--workload select-only --time 0.05 --slice 0", None),
        (
            "--workload select-only --time 0.05 --slice 0.01 --clients 60",
            Some("more than max_connections (100) allows"),
        ),
    ] {
        let ran = Stage::builtin(&format!("--levels rc,ser {options}")).run();
        assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1, 1]), "{options}");
        let notes: Vec<&String> =
            ran.document().warnings.iter().filter(|warning| warning.contains("in one piece")).collect();
        match (why, &notes[..]) {
            (None, []) => {}
            (Some(why), [note]) => {
                assert!(note.contains(why), "{note}");
                assert_eq!(ran.count(&format!("note: {note}")), 1);
            }
            _ => panic!("{options}: {notes:#?}"),
        }
        assert!(ran.document().cells.iter().all(|cell| cell.rounds[0].turns.is_none()), "{options}");
        assert_eq!(ran.truth.count("CREATE schema isobench_1"), 0, "{options}");
    }
    // A --setup on a server that isn't isobench's may lead anywhere.
    let ran = Stage::new("--levels rc,ser --time 0.05 --slice 0.01").run();
    let [note] = &ran.document().warnings[..] else { panic!("{:?}", ran.document().warnings) };
    assert!(note.contains("a --setup of your own might use other schemas"), "{note}");
    // What a session keeps after its transaction would reach into the turns of others.
    let locks = "BEGIN;\nSELECT pg_advisory_lock(1);\nUPDATE t SET v = v + 1;\nEND;\n";
    let ran = Stage::new("--levels rc,ser --time 0.05 --slice 0.01").script(locks).run();
    let [note] = &ran.document().warnings[..] else { panic!("{:?}", ran.document().warnings) };
    assert!(note.contains("own.sql:2 sessions would keep advisory locks while other cells"), "{note}");
    assert!(ran.document().cells.iter().all(|cell| cell.rounds[0].turns.is_none()));
    // A single cell takes no turns.
    let ran = reading("--levels ser").run();
    assert_eq!((ran.document().warnings.len(), ran.document().cells[0].rounds[0].turns), (0, None));
}

#[test]
fn a_cell_that_fails_leaves_the_turns_to_the_others() {
    let stage = reading("--levels rc,rr,ser");
    // Everything that repeatable read sends fails from some transaction on.
    let stage = stage.failing("FROM isobench_2.pgbench_accounts", *b"42501", 3..);
    let ran = stage.run();
    assert_eq!(ran.rounds(), [1, 1, 1]);
    assert!(
        ran.incomplete().starts_with("repeatable read, 2 clients can't be measured"),
        "{}",
        ran.incomplete()
    );
    let cells = &ran.document().cells;
    assert_eq!((cells[0].rounds[0].complete, cells[1].rounds[0].complete), (true, false));
    assert!(cells[1].rounds[0].turns.is_some_and(|turns| turns.count < 5));
    assert!(committed(&cells[2]).iter().all(|count| *count > 0));
}

#[test]
fn an_interrupt_ends_all_cells_of_a_block() {
    let ran =
        Stage { last: Some(("preparing serializable", 2)), ..reading("--levels rc,ser --rounds 3") }.run();
    assert_eq!(ran.incomplete(), "interrupted");
    assert_eq!(ran.rounds(), [1, 1], "what was measured before is kept");
}
