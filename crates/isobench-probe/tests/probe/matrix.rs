//! The anomalies that real servers permit, compared with published results, and those of H2.
//!
//! PostgreSQL: Kleppmann's Hermitage (read committed prevents G0, G1 and OTV; repeatable read
//! everything except write skew; serializable everything), and the manual's table of isolation
//! levels. Write skew after summarisation was observed on 15.18 and 18.4.

mod indexes;
mod limitations;
mod races;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isobench_database::products::POSTGRESQL;
use isobench_database::{Database, EffectiveLevelQuery, Product, WaitView, detect};
use isobench_isolation::Level;
use isobench_pgwire::Connection;
use isobench_probe::anomalies::{PROBES, Takes};
use isobench_probe::{
    CellOutcome, Event, Matrix, Opener, Options, Progress, PromiseComparison, Record, Spec, StepRecord,
    Tester, WaitDetection, probe, render,
};
use isobench_testkit::h2::H2;
use isobench_testkit::installed::{pgbenches, skip};

use crate::support::clock::{self, WAITING, advance_once, condition};
use crate::support::{TestServer, installed, opener};

/// The anomalies permitted at repeatable read; read committed permits more.
const WRITE_SKEW: [&str; 3] = ["G2-item", "read-only anomaly", "G2"];
const PREVENTED_AT_READ_COMMITTED: [&str; 5] = ["G0", "G1a", "G1b", "G1c", "OTV"];

/// PostgreSQL servers found next to a pgbench, one for each major version.
fn all(test: &str) -> Vec<TestServer> {
    let found: Vec<TestServer> =
        pgbenches().into_iter().filter_map(|pgbench| pgbench.server).map(TestServer::start).collect();
    if found.is_empty() {
        skip(test, "no PostgreSQL is installed (ISOBENCH_PGBENCH can name some)");
    }
    found
}

/// Probes in a schema outside the search path, so every statement has to name it.
fn probed(place: &TestServer) -> Matrix {
    probed_with(place, Options::default())
}

fn probed_with(place: &TestServer, options: Options) -> Matrix {
    let anywhere = place.opener();
    anywhere("setup")
        .and_then(|mut session| Ok(session.execute("CREATE SCHEMA IF NOT EXISTS isobench")?))
        .expect("a schema");
    let lost: Opener = Arc::new(move |name| {
        let mut session = anywhere(name)?;
        session.execute("SET search_path = pg_catalog")?;
        Ok(session)
    });
    let database = Database { schema: Some("isobench".to_owned()), ..place.database.clone() };
    let (matrix, outcome) = probe(&lost, &database, &Level::ALL, options, &|| false, &mut |_| {});
    outcome.unwrap_or_else(|error| panic!("{}: {error}", place.database.version));
    matrix
}

fn permitted(matrix: &Matrix, level: Level) -> Vec<&str> {
    let row = matrix.levels.iter().find(|row| row.requested == level.name()).expect("the level");
    let permitted = row.cells.iter().filter(|cell| matches!(cell.outcome, CellOutcome::Permitted(_)));
    permitted.map(|cell| cell.name.as_str()).collect()
}

#[test]
fn postgresql_permits_what_is_published() {
    for place in all("postgresql_permits_what_is_published") {
        let matrix = probed(&place);
        let version = &place.database.version;
        let at_read_committed: Vec<&str> = PROBES
            .iter()
            .filter(|probe| {
                probe.takes == Takes::Nothing && !PREVENTED_AT_READ_COMMITTED.contains(&probe.name)
            })
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
        assert_eq!((matrix.broken().count(), matrix.limited().count()), (0, 1), "{version}");
        let text = render(&matrix);
        assert!(text.contains("repeatable read requested, runs snapshot isolation: write skew, "), "{text}");
    }
}

/// Without many transactions in between, the interleaving of the summarisation probe is plain write
/// skew, and fails.
#[test]
fn nothing_is_summarised_after_one_transaction() {
    let Some(place) = installed("nothing_is_summarised_after_one_transaction") else { return };
    let probe = PROBES.iter().find(|probe| probe.takes == Takes::Transactions).expect("the probe");
    let spec = Spec::parse(probe.file, probe.spec).expect("a specification");
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
    let failed = record.steps.iter().find(|step| step.error.is_some()).expect("a failure");
    assert_eq!(failed.name, "w2");
    assert!(!record.step("c2").expect("the step").committed());
}

/// PostgreSQL with other queries for the effective level and for waiting sessions.
fn postgresql_with(effective: &'static [&'static str], waits: WaitView) -> &'static Product {
    Box::leak(Box::new(Product {
        name: "Sample",
        effective_level: EffectiveLevelQuery { steps: effective, answer: 0 },
        waits,
        ..POSTGRESQL
    }))
}

/// As on `CockroachDB`: the promise for requesting read committed is serializable, if that is what
/// runs.
#[test]
fn a_server_is_judged_by_the_level_that_it_says_it_runs() {
    let Some(place) = installed("a_server_is_judged_by_the_level_that_it_says_it_runs") else { return };
    let probed = |effective| {
        let product = postgresql_with(effective, POSTGRESQL.waits);
        let database = Database { product, ..place.database.clone() };
        let levels = [Level::ReadCommitted];
        let (matrix, outcome) =
            probe(&place.opener(), &database, &levels, Options::default(), &|| false, &mut |_| {});
        outcome.unwrap_or_else(|error| panic!("{error}"));
        matrix
    };
    let raised = probed(&["SELECT 'serializable'"]);
    let broken: Vec<&str> = raised.broken().map(|(_, cell)| cell.name.as_str()).collect();
    assert_eq!(broken, permitted(&raised, Level::ReadCommitted));
    assert!(broken.contains(&"P4") && broken.contains(&"G2"), "{broken:?}");
    let stronger = raised.levels[0].cells.iter().filter(|cell| cell.standing == PromiseComparison::Stronger);
    assert_eq!(stronger.count(), 0, "what serializable promises isn't stronger than promised");
    let unknown = probed(&["SELECT ''"]);
    assert_eq!(unknown.broken().count(), 0, "no level is accused where it isn't known what runs");
    assert!(unknown.levels[0].cells.iter().all(|cell| cell.standing == PromiseComparison::Open));
}

/// A view that never shows waiting sessions, as behind a proxy: one step is cancelled, and from
/// then on waiting is detected by time.
#[test]
fn a_view_of_who_waits_that_says_nothing_is_not_believed_for_long() {
    let Some(place) = installed("a_view_of_who_waits_that_says_nothing_is_not_believed_for_long") else {
        return;
    };
    let waits = WaitView::Query { own_name: "SELECT 1", waits: &["SELECT false"] };
    let database =
        Database { product: postgresql_with(&["SELECT 'repeatable read'"], waits), ..place.database.clone() };
    let limits = Options { step_timeout: Duration::from_hours(1), now: clock::now, ..Options::default() };
    let (cancelled, started) = (Cell::new(0), Instant::now());
    let waiting = condition(&place, WAITING);
    let expire = advance_once(&waiting, limits.step_timeout + Duration::from_millis(1));
    let stopped = || {
        if cancelled.get() == 0 {
            expire();
        } else if waiting() {
            clock::advance(limits.waits_after);
        }
        started.elapsed() > Duration::from_mins(10)
    };
    let (matrix, outcome) =
        probe(&place.opener(), &database, &[Level::RepeatableRead], limits, &stopped, &mut |progress| {
            let event = matches!(progress, Progress::Event(Event::Cancelling { .. }));
            cancelled.set(cancelled.get() + u32::from(event));
        });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cancelled.get(), 1);
    let text = render(&matrix);
    assert!(text.contains("prevented: 40001 at step w2, after it had waited"), "{text}");
    assert!(!text.contains("undecided"), "{text}");
    assert_eq!(permitted(&matrix, Level::RepeatableRead), WRITE_SKEW, "{text}");
}

/// The server's own time limit isn't related to its isolation.
#[test]
fn a_statement_that_the_server_cancels_decides_nothing() {
    let Some(place) = installed("a_statement_that_the_server_cancels_decides_nothing") else { return };
    let mut admin = place.open().expect("a connection");
    admin.execute("ALTER ROLE CURRENT_USER SET lock_timeout = '1ms'").expect("a setting");
    let levels = [Level::ReadCommitted];
    let (matrix, outcome) =
        probe(&place.opener(), &place.database, &levels, Options::default(), &|| false, &mut |_| {});
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let why = "55P03 at step w2: canceling statement due to lock timeout".to_owned();
    assert_eq!(matrix.levels[0].cells[0].outcome, CellOutcome::Undecided(why));
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
    let open = opener(h2.options());
    let database = detect(&mut Connection::open(&options).expect("a connection")).expect("a product");
    let levels = [Level::ReadUncommitted];
    let (matrix, outcome) = probe(&open, &database, &levels, Options::default(), &|| false, &mut |_| {});
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let text = render(&matrix);
    let permitted = permitted(&matrix, Level::ReadUncommitted);
    for dirty in ["G1a", "G1b", "G1c", "P4", "G2"] {
        assert!(permitted.contains(&dirty), "{dirty}\n{text}");
    }
    // Its own view shows waiting sessions.
    assert_eq!(
        matrix.levels[0].cells[0].outcome,
        CellOutcome::Prevented("blocked at step w2".to_owned()),
        "{text}"
    );
    assert_eq!(
        (matrix.levels[0].not_contradicted.join(" and "), matrix.broken().count()),
        ("read uncommitted".to_owned(), 0),
        "{text}"
    );
}

/// H2's serializable is snapshot isolation.
#[test]
fn write_skew_shows_on_h2() {
    let Some((_folder, h2)) = h2("write_skew_shows_on_h2") else { return };
    let probe = PROBES.iter().find(|probe| probe.name == "G2-item").expect("the probe");
    let spec = Spec::parse(probe.file, probe.spec).expect("a specification");
    let tester = Tester {
        open: opener(h2.options()),
        product: &isobench_database::products::H2,
        level: Some(Level::Serializable),
        options: Options::default(),
        wait_detection: WaitDetection::View,
        stopped: &|| false,
    };
    let mut record = Record::default();
    tester.run(&spec, &mut |event| record.take(&event)).expect("it runs");
    let committed = ["c1", "c2"].map(|step| record.step(step).is_some_and(StepRecord::committed));
    assert_eq!(committed, [true, true], "{record:?}");
}
