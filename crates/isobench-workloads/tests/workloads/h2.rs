//! The tables and invariants of all workloads on H2, a second engine. Skipped without Java or H2's
//! jar.

use isobench_database::detect;
use isobench_pgwire::Connection;
use isobench_testkit::h2::H2;
use isobench_testkit::installed::skip;
use isobench_workloads::Chosen;

use crate::support;

/// The scripts need RETURNING and ON CONFLICT … DO UPDATE, which H2 doesn't have.
#[test]
fn tables_are_made_and_invariants_hold() {
    let folder = tempfile::tempdir().unwrap();
    let h2 = match H2::start(folder.path()) {
        Ok(h2) => h2,
        Err(why) => return skip("tables_are_made_and_invariants_hold", &why),
    };
    let mut conn = Connection::open(&h2.options()).unwrap();
    let database = detect(&mut conn).unwrap();
    assert_eq!(database.product.name, "H2");
    // A variant without its own tables would repeat the same test.
    let different = |chosen: &Chosen| chosen.variant().is_none_or(|variant| !variant.tables.is_empty());
    for chosen in support::every().iter().map(support::smaller).filter(different) {
        // Variants drop the tables of the preceding workload.
        let notes = isobench_workloads::make(&mut conn, &mut [], &database, &chosen).unwrap();
        assert!(notes.is_empty(), "{}: {notes:?}", chosen.name());
        for violations in isobench_workloads::check(&mut conn, &database, &chosen).unwrap() {
            assert_eq!(violations.found, 0, "{violations:?}");
        }
    }
}
