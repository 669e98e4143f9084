//! The cells of a plan, their rounds and order; factors, calibration, precision, time limit, sweep.

use isobench_result::StartingState;

use crate::stage::{Ran, Stage, committed};

#[test]
fn every_cell_is_measured_in_every_round_in_shuffled_order() {
    let ran = Stage::new("--levels rc,rr,ser --rounds 2").run();
    let mut steps = vec!["start".to_owned()];
    for round in 1..=2 {
        for index in ran.design.order(round) {
            let name = ran.design.cells()[index].name(&ran.design);
            steps.push(format!("preparing {name}, round {round}"));
            steps.push("prepared, as before every cell".to_owned());
            steps.push(format!("finished {name}, round {round}"));
        }
    }
    steps.push("close".to_owned());
    assert_eq!(ran.heard, steps);
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![2, 2, 2]));
    for (index, cell) in ran.document().cells.iter().enumerate() {
        assert!(!cell.level.differs(), "{:?}", cell.level);
        assert_eq!(committed(cell), [10, 10]);
        for round in &cell.rounds {
            let place = ran.design.order(round.round).iter().position(|place| *place == index);
            assert_eq!(round.order, place.and_then(|place| u32::try_from(place + 1).ok()));
            assert_eq!((round.complete, round.starting_state), (true, StartingState::Made));
        }
    }
    assert_eq!((ran.document().plan.transactions, ran.document().plan.time), (Some(5), None));
    // After every cell, and at the end.
    let lengths = ran.saved.iter().map(|saved| saved.cells.iter().map(|cell| cell.rounds.len()).sum());
    assert_eq!(lengths.collect::<Vec<usize>>(), [1, 2, 3, 4, 5, 6, 6]);
    assert!(ran.saved[..6].iter().all(|saved| !saved.complete));
    // Before the measurements the scripts are tried, the set-up is run again, and all levels are set
    // once.
    assert_eq!(ran.truth.count("CREATE TABLE t"), 8);
    assert_eq!(ran.truth.count("ISOLATION LEVEL REPEATABLE READ"), 1 + 2 * 2);
}

#[test]
fn factors_multiply_whatever_the_protocol() {
    for protocol in ["simple", "extended", "prepared"] {
        let options = "--levels rc,ser --backoff none --backoff fixed:1ms --vary x=1,2 --rate 5000,9000";
        let stage = Stage::new(&format!("{options} --transactions 2 --jobs 2 --protocol {protocol}"));
        let ran = stage.script("BEGIN;\nUPDATE t SET v = :x;\nEND;\n").run();
        let cells = &ran.document().cells;
        assert_eq!((ran.incomplete(), cells.len()), ("", 16));
        for cell in cells {
            assert_eq!((cell.protocol.as_str(), cell.jobs, &committed(cell)[..]), (protocol, 2, &[4][..]));
            assert!(cell.summary.ratio.as_ref().is_some_and(|ratio| ratio.to == "read committed"));
        }
        let mut orders: Vec<_> = cells.iter().filter_map(|cell| cell.rounds[0].order).collect();
        assert!(!orders.is_sorted(), "the order is shuffled");
        orders.sort_unstable();
        assert_eq!(orders, (1..=16).collect::<Vec<_>>());
        // Tried, and measured at each rate with each backoff at both levels.
        let of = |x| ran.truth.count(&format!("SET v = {x}"));
        assert_eq!((of(1), of(2)), (1 + 8 * 4, 1 + 8 * 4), "{protocol}");
    }
}

#[test]
fn the_first_level_is_measured_twice_to_estimate_the_noise() {
    let ran = Stage::new("--levels rc,ser --rounds 3 --calibrate").run();
    let cells = &ran.document().cells;
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![3, 3, 3]));
    assert_eq!(cells.iter().map(|cell| cell.calibration).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(cells[1].level, cells[0].level);
    let noise = |index: usize| cells[index].summary.ratio.as_ref().and_then(|ratio| ratio.noise);
    assert!(noise(1).is_some() && noise(1) == noise(2), "the noise is the machine's");
}

#[test]
fn rounds_end_with_the_time_or_the_precision() {
    let limit = "the time limit was reached after 1 of 9 rounds";
    for (options, rounds, reason) in [
        // The first round is never left out.
        ("--levels rc,ser --rounds 9 --time-limit 0", &[1, 1][..], limit),
        // A precision that isn't reached is no failure.
        ("--levels rc,ser --resolve 0.1% --time-limit 0", &[1, 1], ""),
        // A level compared with itself alone is known at once.
        ("--levels rc --rounds 2 --resolve 1% --time-limit 60", &[2], ""),
    ] {
        let ran = Stage::new(options).run();
        assert_eq!((ran.incomplete(), &ran.rounds()[..]), (reason, rounds), "{options}");
        let known = ran.document().resolution.map(|known| (known.reached, known.more_rounds));
        assert_eq!(known.is_some(), options.contains("resolve"));
        assert_eq!(known == Some((Some(0.0), Some(0))), options.contains("--levels rc "), "{known:?}");
    }
}

#[test]
fn rounds_continue_until_the_ratios_are_known() {
    // Two rounds always differ by more than a tenth of a percent, so there is a third one.
    let options = "--levels rc,ser --rounds 2 --resolve 0.1%";
    let ran = Stage { last: Some(("round 3", 1)), ..Stage::new(options) }.run();
    assert_eq!((ran.incomplete(), ran.rounds()[0].min(ran.rounds()[1])), ("interrupted", 2));
    let known = ran.document().resolution.expect("a precision");
    assert!(known.reached.is_none_or(|reached| reached > 0.001) && known.more_rounds != Some(0), "{known:?}");
    let place = |part: &str| ran.heard.iter().position(|step| step.ends_with(part));
    assert!(place(" rounds").is_some() && place(" rounds") < place("round 3"), "{:#?}", ran.heard);
}

#[test]
fn a_sweep_tries_rates_of_every_level_after_the_rounds() {
    // A busy machine commits nothing in the shortest of these times.
    let times = ["0.01", "0.1", "1", "10"]
        .map(|time| format!("--levels rc,ser --calibrate --time {time} --sweep --latency-limit 60000"));
    let mut runs = times.iter().map(|options| (options.as_str(), Stage::new(options).run()));
    let measured = |ran: &Ran| ran.document().sweeps.iter().all(|sweep| sweep.capacity > 0.0);
    let (options, ran) = runs.find(|(_, ran)| measured(ran)).expect("something is committed");
    assert_eq!((ran.incomplete(), ran.rounds()), ("", vec![1, 1, 1]));
    let sweeps = &ran.document().sweeps;
    assert_eq!(sweeps.len(), 2, "none for the level that is measured twice");
    for sweep in sweeps {
        let kept = sweep.tried.iter().filter(|step| step.kept).map(|step| step.rate);
        assert_eq!(sweep.highest_kept, kept.reduce(f64::max));
        assert!(!sweep.tried.is_empty(), "{sweep:?}");
    }
    let tried: usize = sweeps.iter().map(|sweep| sweep.tried.len()).sum();
    assert_eq!(ran.count("sweep: "), tried);

    let ran = Stage { last: Some(("sweep: ", 1)), ..Stage::new(options) }.run();
    assert_eq!((ran.incomplete(), ran.rounds()), ("interrupted", vec![1, 1, 1]));
    let tried: usize = ran.document().sweeps.iter().map(|sweep| sweep.tried.len()).sum();
    assert_eq!(tried, 1, "the other level isn't searched any more");
}
