//! The display of a running comparison: on a terminal, on one without control sequences, and
//! without any.

use rustix::process::Signal;

use crate::compare::words;
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::terminal::Terminal;

const COMPARE: &str = "compare -w registers --levels rc,rr --clients 4 --warmup 0 --no-save --slice 0";

/// The characters of the progress bar.
const BAR: [char; 2] = ['█', '░'];

/// Starts a comparison with these options on a terminal of this kind.
fn start(scene: &Scene, terminal: &Terminal, options: &str, kind: &str) -> Running {
    let options = format!("{COMPARE} {options}");
    Running::start_on(scene.isobench(&words(&options)).env("TERM", kind), terminal.end())
}

/// Fails if remains of the updated lines are visible, or the terminal's modes have changed.
fn assert_clean(terminal: &Terminal, finished: &Finished) {
    let left = terminal.at_the_end();
    for text in ["per s, mean", "sessions", "so far", "conflicts/s"] {
        assert!(!left.contains(text), "{left}");
    }
    assert!(!left.contains(BAR), "{left}");
    terminal.assert_as_before();
    assert!(!finished.stdout.contains(BAR) && !finished.stdout.contains('\x1b'), "{}", finished.stdout);
}

#[test]
fn a_running_cell_is_shown_and_removed() {
    let Some(scene) = Scene::with_database("a_running_cell_is_shown_and_removed") else { return };
    let terminal = Terminal::new(24, 100);
    let running = start(&scene, &terminal, "--rounds 2 --time 0.5 --live", "xterm");
    terminal.wait_for(&["0/4", "round 1/2, ", "per s, mean", "conflicts", "% of attempts", "ms mean"]);
    terminal.wait_for(&[
        "2/4",
        "round 2/2, ",
        "so far:",
        "read committed, 4 clients",
        "% conflicts, 1 round",
    ]);
    terminal.wait_for(&["3/4"]);
    let finished = running.finish().expect(0).prints(&["read committed", "repeatable read"]);
    assert_clean(&terminal, &finished);
    scene.assert_clean();
}

#[test]
fn cells_that_take_turns_are_shown_together() {
    let Some(scene) = Scene::with_database("cells_that_take_turns_are_shown_together") else { return };
    let terminal = Terminal::new(24, 100);
    let options = format!("{} --rounds 2 --time 0.6 --live", COMPARE.replace("--slice 0", "--slice 0.1"));
    let running = Running::start_on(scene.isobench(&words(&options)).env("TERM", "xterm"), terminal.end());
    terminal.wait_for(&[
        "0/4",
        "round 1/2, 2 cells in turns",
        "read committed, 4 clients",
        "tps,",
        "% conflicts",
    ]);
    terminal.wait_for(&["2/4", "round 2/2, 2 cells in turns", "so far:"]);
    let finished = running.finish().expect(0).prints(&["2 rounds of 0.6 s in turns of 0.1 s"]);
    assert_clean(&terminal, &finished);
    scene.assert_clean();
}

#[test]
fn a_smaller_window_shows_the_first_lines() {
    let Some(scene) = Scene::with_database("a_smaller_window_shows_the_first_lines") else { return };
    let terminal = Terminal::new(24, 100);
    let running = start(&scene, &terminal, "--rounds 2 --time 600 --live", "xterm");
    terminal.wait_for(&["0/4", "per s, mean", "ms mean"]);
    terminal.resize(4, 40);
    // More lines than fit would scroll the first one out of the window, and longer ones would wrap.
    terminal.wait_for(&["0/4", "round 1/2, ", "committed"]);
    running.signal(Signal::INT);
    let finished = running.finish().expect(2);
    assert_clean(&terminal, &finished);
    scene.assert_clean();
}

#[test]
fn ctrl_c_leaves_the_terminal_as_it_was() {
    let Some(scene) = Scene::with_database("ctrl_c_leaves_the_terminal_as_it_was") else { return };
    let terminal = Terminal::new(24, 100);
    let running = start(&scene, &terminal, "--rounds 2 --time 600 --live", "xterm");
    terminal.wait_for(&["per s, mean"]);
    running.signal(Signal::INT);
    let finished = running.finish().expect(2).prints(&["INCOMPLETE"]);
    assert_clean(&terminal, &finished);
    let said = terminal.text();
    for text in ["stopping; once more to stop at once", "the comparison is incomplete: interrupted"] {
        assert!(said.contains(text), "{said}");
    }
    scene.assert_clean();
}

#[test]
fn without_live_there_is_one_line_and_without_a_terminal_plain_ones() {
    let test = "without_live_there_is_one_line_and_without_a_terminal_plain_ones";
    let Some(scene) = Scene::with_database(test) else { return };
    let terminal = Terminal::new(24, 120);
    let running = start(&scene, &terminal, "--rounds 2 --time 0.5", "xterm");
    terminal.wait_for(&["0/4, ", " left  round 1/2, ", " tps, ", " conflicts/s"]);
    let finished = running.finish().expect(0);
    assert_clean(&terminal, &finished);
    terminal.assert_never_shown("latency");

    let terminal = Terminal::new(24, 120);
    let finished = start(&scene, &terminal, "--rounds 2 --transactions 5 --live", "dumb").finish().expect(0);
    assert_clean(&terminal, &finished);
    let said = terminal.text();
    assert!(said.contains("[1/4] round 1/2, ") && said.contains("[4/4] round 2/2, "), "{said}");

    let options = format!("{COMPARE} --rounds 2 --transactions 5 --live");
    let finished = scene.run(&words(&options)).expect(0).says(&["[1/4] round 1/2, ", "[4/4] round 2/2, "]);
    assert!(!finished.stderr.contains(BAR) && !finished.stderr.contains('\x1b'), "{}", finished.stderr);
    scene.assert_clean();
}
