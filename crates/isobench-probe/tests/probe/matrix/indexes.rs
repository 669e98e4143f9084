//! Write skew through indexes of each method.

use isobench_isolation::Level;
use isobench_probe::anomalies::{Probe, Tests};
use isobench_probe::{
    CellOutcome, Options, PromiseComparison, Record, Spec, StepRecord, Tables, Tester, WaitDetection,
};

use super::{all, permitted, probed_with};
use crate::support::TestServer;

/// The methods whose locks are on pages, apart from gist; the others lock the index as a whole (PostgreSQL manual, "Index
/// Access Method Functions", `ampredlocks`).
const ON_PAGES: [&str; 3] = ["btree", "hash", "gin"];

#[test]
fn serializable_prevents_write_skew_through_each_method_but_gist() {
    for place in all("serializable_prevents_write_skew_through_each_method_but_gist") {
        for tables in [Tables::Ordinary, Tables::Partitioned] {
            let matrix = probed_with(&place, Options { tests: Tests::Indexes, tables, ..Options::default() });
            let methods: Vec<&str> = Tests::Indexes.probes().iter().map(|probe| probe.name).collect();
            let version = &place.database.version;
            assert_eq!(permitted(&matrix, Level::RepeatableRead), methods, "{version}, {tables}");
            let row = matrix.levels.iter().find(|row| row.requested == "serializable").expect("a row");
            for cell in &row.cells {
                if cell.name == "gist" {
                    assert_eq!(cell.standing, PromiseComparison::KnownLimitation, "{version}, {tables}");
                    continue;
                }
                let conflict =
                    matches!(&cell.outcome, CellOutcome::Prevented(how) if how.starts_with("40001 "));
                assert!(conflict, "{version}, {tables}, {}: {:?}", cell.name, cell.outcome);
            }
        }
    }
}

/// The same at serializable with keys that the other transaction doesn't look for, on other pages. Where locks
/// are on pages both commit, so what is prevented with the keys looked for isn't prevented by a page that all share.
#[test]
fn keys_on_other_pages_are_no_conflict() {
    for place in all("keys_on_other_pages_are_no_conflict") {
        // What gist permits needs no such comparison.
        for probe in Tests::Indexes.probes().iter().filter(|probe| probe.name != "gist") {
            let both = commits_with_other_keys(&place, probe);
            assert_eq!(both, ON_PAGES.contains(&probe.name), "{}, {}", place.database.version, probe.name);
        }
    }
}

fn commits_with_other_keys(place: &TestServer, probe: &Probe) -> bool {
    let mut spec = Spec::parse(probe.file, probe.spec).expect("a specification");
    for step in spec.sessions.iter_mut().flat_map(|session| &mut session.steps) {
        if step.name.starts_with('w') {
            step.sql = step.sql.replace("9001", "5001").replace("1001", "7001");
        }
    }
    let tester = Tester {
        open: place.opener(),
        product: place.database.product,
        level: Some(Level::Serializable),
        options: Options::default(),
        wait_detection: WaitDetection::View,
        stopped: &|| false,
    };
    let mut record = Record::default();
    tester.run(&spec, &mut |event| record.take(&event)).expect("it runs");
    ["c1", "c2"].iter().all(|step| record.step(step).is_some_and(StepRecord::committed))
}
