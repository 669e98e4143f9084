//! What a script leaves in its session beyond a transaction and other sessions of the database
//! meet: session advisory locks, prepared transactions, notifications, temporary tables.
//!
//! Not here: what follows from it for cells that could take turns (`comparison/fair.rs`).

use isobench_pgwire::Connection;
use isobench_script::Sql;

use crate::failure::{Failure, Outcome};
use crate::setup::{Setup, has_word};
use crate::site::Site;
use crate::workload::Sources;

/// A kind of such state.
struct Kept {
    /// A word of statements that make it.
    words: &'static [&'static str],
    /// A further word of such statements; empty if one is enough.
    and: &'static str,
    /// Its name, as in "sessions would keep …".
    name: &'static str,
}

/// The kinds, as PostgreSQL's manual has them: "Advisory Lock Functions", PREPARE TRANSACTION,
/// LISTEN, "Temporary Tables" in CREATE TABLE.
const KINDS: [Kept; 4] = [
    Kept {
        words: &[
            "pg_advisory_lock",
            "pg_advisory_lock_shared",
            "pg_try_advisory_lock",
            "pg_try_advisory_lock_shared",
        ],
        and: "",
        name: "advisory locks",
    },
    Kept { words: &["prepare"], and: "transaction", name: "prepared transactions" },
    Kept { words: &["listen"], and: "", name: "channels to listen on" },
    Kept { words: &["temp", "temporary", "pg_temp"], and: "", name: "temporary tables" },
];

/// The words of statements that make functions, whose bodies run in the scripts' sessions.
const ROUTINES: [&str; 2] = ["function", "procedure"];

/// The first place at which a user's script, or a function of its set-up, leaves something in its
/// session, with its name: ("use.sql:4", "advisory locks"). Scripts that come with isobench
/// take advisory locks by keys of their schema, and are left out. The bodies of functions that
/// exist already aren't examined.
pub fn kept(sources: &Sources, setup: Option<&Setup>) -> Option<(String, &'static str)> {
    let of_scripts = sources.own_statements().map(|(place, sql)| (place, of_script(sql)));
    let routine = |(_, text): &(String, &str)| ROUTINES.iter().any(|word| has_word(text, word));
    let statements = setup.into_iter().flat_map(Setup::placed_statements).filter(routine);
    // Their bodies are quotations.
    let routines = statements.map(|(place, text)| (place, kind(|word| has_word(text, word))));
    of_scripts.chain(routines).find_map(|(place, name)| Some((place, name?)))
}

/// True if a user's script leaves prepared transactions, which outlast even its sessions.
pub fn keeps_prepared(sources: &Sources) -> bool {
    let prepares = |sql: &Sql| sql.keyword(&["prepare"]).is_some() && sql.keyword(&["transaction"]).is_some();
    sources.own_statements().any(|(_, sql)| prepares(sql))
}

/// Rolls back the prepared transactions that hold locks on tables of a site, so that its tables can
/// be made anew.
///
/// # Errors
/// The server refuses or is gone.
pub fn roll_back_prepared(site: &Site) -> Outcome {
    let mut connection = site.open().map_err(Failure::setup)?;
    let done = roll_back(&mut connection);
    connection.close();
    done
}

fn roll_back(connection: &mut Connection) -> Outcome {
    let names = connection.query(PREPARED).map_err(Failure::setup)?;
    for name in names.rows.iter().flatten().flatten() {
        connection
            .execute(&format!("ROLLBACK PREPARED '{}'", name.replace('\'', "''")))
            .map_err(Failure::setup)?;
    }
    Ok(())
}

/// The names of the prepared transactions with a lock on a table of the session's schema. Locks of a
/// prepared transaction have the same virtual transaction as that on its own number.
const PREPARED: &str = "SELECT DISTINCT prepared.gid FROM pg_catalog.pg_prepared_xacts prepared \
     JOIN pg_catalog.pg_locks own ON own.transactionid = prepared.transaction AND own.pid IS NULL \
     JOIN pg_catalog.pg_locks held ON held.virtualtransaction = own.virtualtransaction AND held.pid IS NULL \
     JOIN pg_catalog.pg_class class ON class.oid = held.relation \
     WHERE prepared.database = current_database() \
     AND class.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())";

fn of_script(sql: &Sql) -> Option<&'static str> {
    kind(|word| sql.keyword(&[word]).is_some())
}

fn kind(has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let makes =
        |kept: &&Kept| kept.words.iter().any(|word| has(word)) && (kept.and.is_empty() || has(kept.and));
    KINDS.iter().find(makes).map(|kept| kept.name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workload::Source;

    fn kept_by(script: &str, setup: &str) -> Option<(String, &'static str)> {
        let folder = tempfile::tempdir().unwrap();
        let (use_sql, setup_sql) = (folder.path().join("use.sql"), folder.path().join("setup.sql"));
        fs::write(&use_sql, script).unwrap();
        fs::write(&setup_sql, setup).unwrap();
        let sources = Sources::new(vec![Source::file(&use_sql.display().to_string()).unwrap()]).unwrap();
        let setup = Setup::read("setup", &setup_sql).unwrap();
        let (place, name) = kept(&sources, Some(&setup))?;
        Some((place.replace(&format!("{}/", folder.path().display()), ""), name))
    }

    #[test]
    fn what_outlasts_a_transaction_is_found_with_its_place() {
        for (script, setup, expected) in [
            ("SELECT 1;", "SELECT 1;", None),
            ("BEGIN;\nSELECT pg_advisory_lock(1);\nEND;", "", Some(("use.sql:2", "advisory locks"))),
            ("SELECT pg_catalog.pg_try_advisory_lock(1);", "", Some(("use.sql:1", "advisory locks"))),
            ("SELECT pg_advisory_xact_lock(1);", "", None),
            ("SELECT 'pg_advisory_lock'; -- pg_advisory_lock", "", None),
            ("BEGIN;\nPREPARE TRANSACTION 'x';", "", Some(("use.sql:2", "prepared transactions"))),
            ("PREPARE q AS SELECT 1;", "", None),
            ("LISTEN news;", "", Some(("use.sql:1", "channels to listen on"))),
            ("CREATE TEMP TABLE t (v int);", "", Some(("use.sql:1", "temporary tables"))),
            ("SELECT 1;", "CREATE TEMP TABLE t (v int);", None),
            (
                "SELECT f();",
                "SELECT 1;\nCREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT pg_advisory_lock(1) $$;",
                Some(("setup.sql:2", "advisory locks")),
            ),
            (
                "SELECT f();",
                "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ SELECT pg_advisory_xact_lock(1) $$;",
                None,
            ),
        ] {
            let setup = if setup.is_empty() { "SELECT 1;" } else { setup };
            let expected = expected.map(|(place, name)| (place.to_owned(), name));
            assert_eq!(kept_by(script, setup), expected, "{script} {setup}");
        }
    }

    #[test]
    fn scripts_of_isobenchs_own_are_left_out() {
        let (sources, _) =
            Sources::named("tpcb-like").unwrap().coping("advisory-lock").expect("its strategy");
        assert!(sources.mix().scripts()[0].script.sql().any(|sql| of_script(sql).is_some()));
        assert_eq!(kept(&sources, None), None);
    }
}
