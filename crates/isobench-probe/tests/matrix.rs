//! Which anomalies real servers permit, held against what is published, and what H2 does.
//!
//! PostgreSQL: Kleppmann's Hermitage (read committed prevents G0, G1 and OTV; repeatable read all but write skew; serializable
//! all), and the manual's table of isolation levels. Write skew after summarisation was seen on 15.18 and 18.4.

mod support;

use isobench_database::detect;
use isobench_isolation::Level;
use isobench_pgwire::Connection;
use isobench_probe::anomalies::PROBES;
use isobench_probe::{Matrix, Options, Outcome, Record, Spec, StepRecord, Tester, probe, render};
use isobench_testkit::h2::H2;
use isobench_testkit::installed::{pgbenches, skip};

use crate::support::{Place, installed};

/// Names of what is permitted at read committed and, beyond them, at repeatable read.
const WRITE_SKEW: [&str; 3] = ["G2-item", "read-only anomaly", "G2"];
const PREVENTED_AT_READ_COMMITTED: [&str; 5] = ["G0", "G1a", "G1b", "G1c", "OTV"];

/// All PostgreSQL servers that can be found beside a pgbench, one of each major version.
fn all(test: &str) -> Vec<Place> {
    let found: Vec<Place> =
        pgbenches().into_iter().filter_map(|pgbench| pgbench.server).map(Place::start).collect();
    if found.is_empty() {
        skip(test, "no PostgreSQL is installed (ISOBENCH_PGBENCH can name some)");
    }
    found
}

fn probed(place: &Place) -> Matrix {
    let (matrix, outcome) =
        probe(&|| place.open(), &place.database, &Level::ALL, Options::default(), &|| false, &mut |_| {});
    outcome.unwrap_or_else(|error| panic!("{}: {error}", place.database.version));
    matrix
}

fn permitted(matrix: &Matrix, level: Level) -> Vec<&str> {
    let row = matrix.levels.iter().find(|row| row.requested == level.name()).expect("the level");
    let permitted = row.cells.iter().filter(|cell| matches!(cell.outcome, Outcome::Permitted(_)));
    permitted.map(|cell| cell.name.as_str()).collect()
}

#[test]
fn postgresql_permits_what_is_published() {
    for place in all("postgresql_permits_what_is_published") {
        let matrix = probed(&place);
        let version = &place.database.version;
        let at_read_committed: Vec<&str> = PROBES
            .iter()
            .filter(|probe| !probe.repeats && !PREVENTED_AT_READ_COMMITTED.contains(&probe.name))
            .map(|probe| probe.name)
            .collect();
        assert_eq!(permitted(&matrix, Level::ReadUncommitted), at_read_committed, "{version}");
        assert_eq!(permitted(&matrix, Level::ReadCommitted), at_read_committed, "{version}");
        assert_eq!(permitted(&matrix, Level::RepeatableRead), WRITE_SKEW, "{version}");
        let serializable = permitted(&matrix, Level::Serializable);
        assert_eq!(serializable, ["G2-item, summarised"], "{version}");
        let left: Vec<String> = matrix.levels.iter().map(|row| row.not_contradicted.join(" and ")).collect();
        assert_eq!(
            left,
            ["read committed", "read committed", "snapshot isolation", "serializable"],
            "{version}"
        );
        assert!(matrix.complete);
        assert_eq!(matrix.broken().count(), 1, "{version}");
        let text = render(&matrix);
        assert!(text.contains("repeatable read asked, runs snapshot isolation: write skew, "), "{text}");
    }
}

/// Without many transactions in between, the interleaving of the summarisation probe is plain write skew, and fails.
#[test]
fn nothing_is_summarised_after_one_transaction() {
    let Some(place) = installed("nothing_is_summarised_after_one_transaction") else { return };
    let probe = PROBES.iter().find(|probe| probe.repeats).expect("the probe");
    let spec = Spec::parse(probe.file, probe.spec).expect("a specification");
    let tester = Tester {
        open: &|| place.open(),
        product: place.database.product,
        level: Some(Level::Serializable),
        options: Options::default(),
        stopped: &|| false,
    };
    let mut record = Record::default();
    tester.run(&spec, &mut |event| record.take(&event)).expect("it runs");
    let failed = record.steps.iter().find(|step| step.error.is_some()).expect("a failure");
    assert_eq!(failed.name, "w2");
    assert!(!record.step("c2").expect("the step").committed());
}

fn h2(test: &str) -> Option<(tempfile::TempDir, H2)> {
    let folder = tempfile::tempdir().expect("a folder");
    match H2::start(folder.path()) {
        Ok(h2) => Some((folder, h2)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

#[test]
fn h2_is_probed_as_far_as_it_goes() {
    let Some((_folder, h2)) = h2("h2_is_probed_as_far_as_it_goes") else { return };
    let options = h2.options();
    let open = || Ok(Connection::open(&options)?);
    let database = detect(&mut Connection::open(&options).expect("a connection")).expect("a product");
    let levels = [Level::ReadUncommitted];
    let (matrix, outcome) = probe(&open, &database, &levels, Options::default(), &|| false, &mut |_| {});
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let text = render(&matrix);
    let permitted = permitted(&matrix, Level::ReadUncommitted);
    for dirty in ["G1a", "G1b", "G1c", "P4", "G2"] {
        assert!(permitted.contains(&dirty), "{dirty}\n{text}");
    }
    // Its own view tells who waits.
    assert_eq!(
        matrix.levels[0].cells[0].outcome,
        Outcome::Prevented("blocked at step w2".to_owned()),
        "{text}"
    );
    assert_eq!(
        (matrix.levels[0].not_contradicted.join(" and "), matrix.broken().count()),
        ("read uncommitted".to_owned(), 0),
        "{text}"
    );
}

/// Its serializable is a snapshot.
#[test]
fn write_skew_shows_on_h2() {
    let Some((_folder, h2)) = h2("write_skew_shows_on_h2") else { return };
    let options = h2.options();
    let probe = PROBES.iter().find(|probe| probe.name == "G2-item").expect("the probe");
    let spec = Spec::parse(probe.file, probe.spec).expect("a specification");
    let tester = Tester {
        open: &|| Ok(Connection::open(&options)?),
        product: &isobench_database::products::H2,
        level: Some(Level::Serializable),
        options: Options::default(),
        stopped: &|| false,
    };
    let mut record = Record::default();
    tester.run(&spec, &mut |event| record.take(&event)).expect("it runs");
    let committed = ["c1", "c2"].map(|step| record.step(step).is_some_and(StepRecord::committed));
    assert_eq!(committed, [true, true], "{record:?}");
}
