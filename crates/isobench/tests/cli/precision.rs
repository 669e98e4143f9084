//! Duration and precision of a comparison: A/A cells, resolution, time limit, rates, sweeps.

use rustix::process::Signal;
use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, assert_invariants_held, cells, count, number};
use crate::support::program::Running;
use crate::support::scene::Scene;

/// Short cells without disk flushes.
const QUICK: &str = "compare --clients 2 --warmup 0.1 --server-setting fsync=off --json out.json";

fn run(scene: &Scene, options: &str, status: i32) -> (String, Value) {
    let finished = scene.run(&words(&line(options))).expect(status);
    scene.assert_clean();
    (finished.stdout, document::read(scene, "out.json"))
}

fn line(options: &str) -> String {
    let levels = if options.contains("--levels") { "" } else { " --levels rc,ser" };
    // Only searches for rates need a time.
    let length = if options.contains("--sweep") { " --time 0.2" } else { " --transactions 10" };
    format!("{QUICK}{length}{levels} {options}")
}

#[test]
fn the_first_level_is_measured_twice_to_learn_the_noise() {
    let Some(scene) = Scene::with_server("the_first_level_is_measured_twice_to_learn_the_noise") else {
        return;
    };
    let (table, document) = run(&scene, "--rounds 2 --calibrate", 0);
    assert!(table.contains("again (A/A)") && table.contains("\nNoise: read committed"), "{table}");
    let levels: Vec<_> = cells(&document)
        .iter()
        .map(|cell| (cell["level"]["requested"].as_str().unwrap_or_default(), cell["calibration"] == true))
        .collect();
    assert_eq!(levels, [("read committed", false), ("read committed", true), ("serializable", false)]);
    let noise = number(&cells(&document)[1], "/summary/ratio/noise");
    let ratio = &cells(&document)[2]["summary"]["ratio"];
    assert_eq!(number(ratio, "/noise").to_bits(), noise.to_bits(), "one machine has one noise");
    let size = number(ratio, "/mean").ln().abs();
    assert!(ratio["significant"] == false || size > noise.ln_1p(), "{ratio}");
    assert_invariants_held(&document);
}

#[test]
fn rounds_go_on_until_the_ratios_are_known() {
    let Some(scene) = Scene::with_server("rounds_go_on_until_the_ratios_are_known") else { return };
    // Two rounds always differ by more than 0.1 %, so there is a third one.
    let line = line("--rounds 2 --resolve 0.1% --time-limit 3600");
    let running = Running::start(&mut scene.isobench(&words(&line)));
    running.wait_for_stderr("] round 3/");
    running.signal(Signal::INT);
    let finished = running.finish().expect(2).prints(&["\nResolution: ± "]);
    let document = document::read(&scene, "out.json");
    assert_eq!(document["incomplete_reason"], "interrupted", "{}", finished.stdout);
    assert!(number(&document, "/resolution/reached") > 0.001);
    // A number, or none if it would be too large to show.
    assert_ne!(document["resolution"]["more_rounds"], 0);
    // The second round can't start in time.
    let (_, document) = run(&scene, "--rounds 1 --resolve 0.1% --time-limit 0.001", 0);
    assert_eq!(document["complete"], true, "a precision that isn't reached is no failure");
    assert_eq!(cells(&document)[0]["rounds"].as_array().map(Vec::len), Some(1));
    // A single level has no ratio to resolve.
    let (_, document) = run(&scene, "--levels rc --rounds 2 --resolve 1% --time-limit 600", 0);
    assert_eq!(cells(&document)[0]["rounds"].as_array().map(Vec::len), Some(2));
    assert_eq!(number(&document, "/resolution/reached").to_bits(), 0.0_f64.to_bits());
    assert_eq!(count(&document, "/resolution/more_rounds"), 0);
}

#[test]
fn a_time_limit_ends_the_rounds() {
    let Some(scene) = Scene::with_server("a_time_limit_ends_the_rounds") else { return };
    let (table, document) = run(&scene, "--rounds 1000 --time-limit 0.001", 2);
    assert!(table.contains("INCOMPLETE"), "{table}");
    let reason = document["incomplete_reason"].as_str().expect("a reason");
    assert_eq!(reason, "the time limit was reached after 1 of 1000 rounds");
    // The first round always runs; another one starts only if it can end in time.
    let lengths: Vec<usize> =
        cells(&document).iter().map(|cell| cell["rounds"].as_array().expect("rounds").len()).collect();
    assert_eq!(lengths, [1, 1]);
}

#[test]
fn rates_are_a_factor() {
    let Some(scene) = Scene::with_server("rates_are_a_factor") else { return };
    let (table, document) = run(&scene, "--rounds 1 --rate 20,80 --seed 1", 0);
    let rates: Vec<f64> = cells(&document).iter().map(|cell| number(cell, "/rate")).collect();
    assert_eq!(rates, [20.0, 20.0, 80.0, 80.0]);
    assert!(table.contains("rate"), "{table}");
    for cell in cells(&document) {
        let round = &cell["rounds"][0];
        assert_eq!(count(round, "/transactions/committed"), 20);
        // However slow the machine is, transactions don't start before they are due.
        assert!(number(round, "/seconds") * number(cell, "/rate") > 10.0, "{round:#}");
    }
    // The ratio is taken between levels at the same rate.
    assert!(cells(&document).iter().all(|cell| cell["summary"]["ratio"]["to"] == "read committed"));
}

#[test]
fn a_sweep_finds_the_highest_rate() {
    let Some(scene) = Scene::with_server("a_sweep_finds_the_highest_rate") else { return };
    let (table, document) = run(&scene, "--rounds 1 --sweep --latency-limit 60000", 0);
    assert!(table.contains("\nHighest rate: read committed"), "{table}");
    let sweeps = document["sweeps"].as_array().expect("sweeps");
    assert_eq!(sweeps.len(), 2);
    for sweep in sweeps {
        // A minute is plenty: the closed loop's own rate is kept.
        let tried = sweep["tried"].as_array().expect("steps");
        assert!(!tried.is_empty());
        let kept: Vec<f64> =
            tried.iter().filter(|step| step["kept"] == true).map(|step| number(step, "/rate")).collect();
        let highest = kept.into_iter().reduce(f64::max).expect("a rate that is kept");
        assert_eq!(number(sweep, "/highest_kept").to_bits(), highest.to_bits());
    }
    assert_invariants_held(&document);
}

#[test]
fn a_sweep_needs_a_limit_and_no_rate() {
    let scene = Scene::new();
    for options in
        ["--sweep", "--sweep --latency-limit 5 --rate 7", "--sweep --latency-limit 5 --think-time 1"]
    {
        scene
            .run(&words(&format!("compare {options}")))
            .expect(1)
            .says(&["--sweep searches for", "--latency-limit"]);
    }
}
