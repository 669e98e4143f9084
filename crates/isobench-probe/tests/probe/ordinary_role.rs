//! A role that is no superuser: rows are put back without side effects, so that it finds the same.

use std::sync::Arc;
use std::time::Duration;

use isobench_isolation::{Allocation, Level};
use isobench_probe::Options;
use isobench_probe::interleaving::{Found, Programs, TryError, Trying, explore};
use isobench_script::{Symbols, Variables, parse};

use crate::support::{TestServer, installed};

/// Keys that cascade, refer to their own table and to each other, triggers, partitions and a deferred check.
const SETUP: &str = "CREATE TABLE shop (id int PRIMARY KEY, best int, sold int NOT NULL DEFAULT 0); \
    CREATE TABLE item (id int PRIMARY KEY, shop int NOT NULL REFERENCES shop ON DELETE CASCADE ON UPDATE CASCADE, \
        part_of int REFERENCES item, stock int NOT NULL, UNIQUE (shop, id) DEFERRABLE INITIALLY DEFERRED); \
    ALTER TABLE shop ADD FOREIGN KEY (best) REFERENCES item ON DELETE SET NULL DEFERRABLE; \
    CREATE TABLE sale (id int, item int REFERENCES item ON DELETE RESTRICT, PRIMARY KEY (id)) PARTITION BY RANGE (id); \
    CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (100); \
    CREATE TABLE seen (item int, stock int); \
    INSERT INTO shop VALUES (1, NULL), (2, NULL); INSERT INTO item VALUES (1, 1, NULL, 5), (2, 1, 1, 5), (3, 2, NULL, 5); \
    UPDATE shop SET best = 2 WHERE id = 1; INSERT INTO sale VALUES (1, 3); \
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        INSERT INTO seen VALUES (NEW.id, NEW.stock); RETURN NULL; END $$; \
    CREATE TRIGGER note AFTER INSERT OR UPDATE ON item FOR EACH ROW EXECUTE FUNCTION note(); \
    CREATE FUNCTION sold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        UPDATE shop SET sold = sold + 1 WHERE id = 1; RETURN NULL; END $$; \
    CREATE TRIGGER sold AFTER INSERT ON sale FOR EACH ROW EXECUTE FUNCTION sold(); \
    ALTER TABLE item ENABLE ALWAYS TRIGGER note";

const SCRIPTS: [&str; 4] = [
    "\\set i random(1, 3)\nBEGIN;\nSELECT stock AS s FROM item WHERE id = :i \\gset\n\
        UPDATE item SET stock = :s - 1 WHERE id = :i;\nCOMMIT;\n",
    "BEGIN;\nDELETE FROM shop WHERE id = 1;\nCOMMIT;\n",
    "BEGIN;\nSELECT count(*) + 10 AS n FROM sale \\gset\nINSERT INTO sale VALUES (:n, 3);\nCOMMIT;\n",
    "BEGIN;\nUPDATE shop SET id = 7 WHERE id = 2;\nSELECT sum(stock) FROM item;\nCOMMIT;\n",
];

/// Tries the scripts in sessions that begin with this statement.
fn tried(server: &TestServer, first: &'static str) -> Result<Found, TryError> {
    let mut symbols = Symbols::new();
    let scripts: Vec<_> = SCRIPTS
        .iter()
        .zip(1..)
        .map(|(text, number)| parse(&format!("{number}.sql"), text, &mut symbols).expect("a script"))
        .collect();
    let variables = Variables::new(&symbols);
    let programs = Programs::new(&scripts, symbols, variables);
    let open = server.opener();
    explore(
        &programs,
        &Trying {
            combinations: None,
            open: Arc::new(move |name| {
                let mut session = open(name)?;
                session.execute(first).expect("a role");
                Ok(session)
            }),
            product: server.database.product,
            allocations: &[Level::ReadCommitted, Level::Serializable].map(Allocation::uniform),
            budget: Duration::from_secs(8),
            conditions: &[],
            options: Options { waits_after: Duration::from_millis(50), ..Options::default() },
            stopped: &|| false,
        },
    )
}

#[test]
fn a_role_without_superuser_finds_the_same() {
    let Some(server) = installed("a_role_without_superuser_finds_the_same") else { return };
    let mut admin = server.open().expect("a connection");
    admin.execute("CREATE ROLE plain; CREATE ROLE guest").expect("roles");
    let mut made = |owner: &str| {
        let sql = "RESET SESSION AUTHORIZATION; DROP SCHEMA public CASCADE; CREATE SCHEMA public";
        admin.execute(sql).expect("an empty schema");
        admin
            .execute(&format!("GRANT ALL ON SCHEMA public TO plain, guest; SET ROLE {owner}"))
            .expect("a role");
        admin.execute(SETUP).expect("tables");
        admin.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO guest; RESET ROLE").expect("rights");
    };
    let wrong = |found: &Found| {
        let level =
            |level: &isobench_probe::interleaving::LevelFound| (level.damage.is_some(), level.trials > 0);
        found.levels.iter().map(level).collect::<Vec<_>>()
    };
    made("plain");
    let plain = tried(&server, "SET SESSION AUTHORIZATION plain").expect("interleavings");
    assert_eq!(wrong(&plain), [(true, true), (false, true)], "{plain:#?}");
    made("plain");
    let superuser = tried(&server, "SELECT 1").expect("interleavings");
    assert_eq!(wrong(&superuser), wrong(&plain), "{superuser:#?}");
    // Neither the owner nor a role that may set it.
    made("plain");
    let refused = tried(&server, "SET SESSION AUTHORIZATION guest").expect_err("a refusal");
    let text = refused.to_string();
    assert!(text.contains("GRANT SET ON PARAMETER session_replication_role"), "{text}");
}
