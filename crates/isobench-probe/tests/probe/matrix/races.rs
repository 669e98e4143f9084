//! Races of applications, compared with the truth in `examples/public-races/races.tsv`, which was found by
//! executing the applications' scripts in many interleavings.

use isobench_isolation::Level;
use isobench_probe::anomalies::{Probe, Tests};
use isobench_probe::{CellOutcome, Options, Tables};

use super::{all, probed_with};

const TRUTH: &str = include_str!("../../../../../examples/public-races/races.tsv");

/// The levels that the corpus tells apart, in its order.
const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The levels at which something goes wrong in the race of the corpus that a probe is made from.
fn wrong_at(probe: &Probe) -> Vec<Level> {
    let number = probe.spec.split_once("# ").and_then(|(_, rest)| rest.split_once('-')).expect("a number").0;
    let line = TRUTH.lines().find(|line| line.split('\t').next() == Some(number)).expect("its line");
    let marks: Vec<&str> = line.split('\t').skip(3).take(3).collect();
    assert!(marks.iter().all(|mark| matches!(*mark, "A" | "C")), "{line}");
    LEVELS.into_iter().zip(marks).filter(|(_, mark)| *mark == "A").map(|(level, _)| level).collect()
}

#[test]
fn races_show_where_the_applications_scripts_go_wrong() {
    for place in all("races_show_where_the_applications_scripts_go_wrong") {
        for tables in [Tables::Ordinary, Tables::Partitioned] {
            let matrix = probed_with(&place, Options { tests: Tests::Races, tables, ..Options::default() });
            for probe in Tests::Races.probes() {
                for level in LEVELS {
                    let row = matrix.levels.iter().find(|row| row.requested == level.name()).expect("a row");
                    let cell = row.cells.iter().find(|cell| cell.name == probe.name).expect("a cell");
                    let goes_wrong = match &cell.outcome {
                        CellOutcome::Permitted(_) => true,
                        CellOutcome::Prevented(_) => false,
                        other => panic!("{} at {level}: {other:?}", probe.name),
                    };
                    let truth = wrong_at(probe).contains(&level);
                    assert_eq!(goes_wrong, truth, "{} at {level}: {:?}", probe.name, cell.outcome);
                }
            }
            assert_eq!(matrix.broken().count(), 0, "{}", place.database.version);
        }
    }
}
