//! The strategies that an application has against conflicts, as a table, and the servers that
//! support them.
//!
//! The strategy is a factor of the matrix. For a checked workload, a strategy is the variant of
//! that name; for pgbench's scripts, it is in `pgbench`. `retry` is the unchanged workload.

use isobench_database::{Abilities, Ability, Database};

/// A strategy against conflicts.
#[derive(Debug)]
pub struct Strategy {
    /// The name, in lower case with hyphens.
    pub name: &'static str,
    /// A summary, in a sentence without a full stop.
    pub summary: &'static str,
    /// The client's reaction to a conflict that reaches it.
    pub client: OnConflict,
    /// The capabilities that the server must have.
    needs: &'static [fn(&Abilities) -> Ability],
}

/// The client's reaction to a conflict that reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// It rolls back, and repeats the whole transaction according to the retry policy.
    Retries,
    /// Nothing: the transaction is lost, and a retry policy can't be chosen.
    Never,
    /// It rolls back to the savepoint `cockroach_restart`, and repeats the statements after it in
    /// the same block.
    RetriesBySavepoint,
}

/// All strategies, in listing order.
pub fn strategies() -> &'static [Strategy] {
    &STRATEGIES
}

/// Finds a strategy by its name.
pub fn strategy(name: &str) -> Option<&'static Strategy> {
    STRATEGIES.iter().find(|strategy| strategy.name == name)
}

/// The strategy that leaves a workload as it is, which every workload has.
pub(crate) const UNCHANGED: &str = "retry";

static STRATEGIES: [Strategy; 8] = [
    Strategy {
        name: UNCHANGED,
        summary: "The client repeats the whole transaction after a conflict",
        client: OnConflict::Retries,
        needs: &[],
    },
    Strategy {
        name: "procedure",
        summary: "A PL/pgSQL procedure repeats the transaction inside the server, up to 10 times; \
                  an error of COMMIT itself can't be caught there, so the client repeats the call",
        client: OnConflict::Retries,
        needs: &[|able| able.catches_conflicts, |able| able.procedures_end_transactions],
    },
    Strategy {
        name: "swallow",
        summary: "A PL/pgSQL function catches the conflict and returns normally; the work is lost, \
                  and counted as lost",
        client: OnConflict::Never,
        needs: &[|able| able.catches_conflicts],
    },
    Strategy {
        name: "single-statement",
        summary: "One statement with data-modifying CTEs does everything, as an implicit \
                  transaction; the client repeats it",
        client: OnConflict::Retries,
        needs: &[|able| able.modifying_ctes],
    },
    Strategy {
        name: "savepoint",
        summary: "After a conflict the client rolls back to the savepoint cockroach_restart, and \
                  repeats the statements after it in the same block",
        client: OnConflict::RetriesBySavepoint,
        needs: &[|able| able.restart_savepoint],
    },
    Strategy {
        name: "for-update",
        summary: "Rows that will be written are first locked by SELECT … FOR UPDATE, so that other \
                  transactions wait instead of failing where the level allows it",
        client: OnConflict::Retries,
        needs: &[],
    },
    Strategy {
        name: "advisory-lock",
        summary: "A session-level advisory lock on the contended row's number is taken before \
                  BEGIN, and so before the snapshot, and released after COMMIT",
        client: OnConflict::Retries,
        needs: &[|able| able.advisory_locks],
    },
    Strategy {
        name: "reorder",
        summary: "A retry takes the contended row first instead of last",
        client: OnConflict::Retries,
        needs: &[],
    },
];

impl Strategy {
    /// The reason that this server can't use the strategy, as a sentence; `None` if it can.
    pub fn refusal(&self, database: &Database) -> Option<String> {
        let abilities = &database.product.abilities;
        let missing = self.needs.iter().find_map(|need| need(abilities).missing(database))?;
        let (strategy, product, version) = (self.name, database.product.name, &database.version);
        let server = match product {
            "unknown" => "this server, a product that isobench doesn't know".to_owned(),
            product => format!("{product} {version}").trim_end().to_owned(),
        };
        Some(format!("strategy \"{strategy}\" can't be used on {server}: {missing}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The strategies that each server supports.
    #[test]
    fn each_server_has_its_strategies() {
        let table = [
            (
                "PostgreSQL 15.18 (Debian) on x, compiled by gcc",
                "retry procedure swallow single-statement for-update advisory-lock reorder",
            ),
            (
                "PostgreSQL 10.23 on x, compiled by gcc",
                "retry swallow single-statement for-update advisory-lock reorder",
            ),
            ("CockroachDB CCL v23.2.1 (x)", "retry single-statement savepoint for-update reorder"),
            (
                "PostgreSQL 11.2-YB-2.13.0.0-b0 on x",
                "retry procedure swallow single-statement for-update reorder",
            ),
            (
                "PostgreSQL 15.12-YB-2025.1.0.1-b3 on x",
                "retry procedure swallow single-statement for-update advisory-lock reorder",
            ),
            ("PostgreSQL 8.2.23 server protocol using H2 2.4.240 (2025-09-22)", "retry for-update reorder"),
            ("CrateDB 5.8.1 (built …)", "retry for-update reorder"),
        ];
        for (version, usable) in table {
            let database = Database::from_version_text(version);
            let found = strategies().iter().filter(|strategy| strategy.refusal(&database).is_none());
            assert_eq!(
                found.map(|strategy| strategy.name).collect::<Vec<_>>().join(" "),
                usable,
                "{version}"
            );
        }
    }

    #[test]
    fn refusals_say_what_and_why() {
        let refusal =
            |name: &str, version| strategy(name).unwrap().refusal(&Database::from_version_text(version));
        assert_eq!(
            refusal("procedure", "CockroachDB CCL v24.1.0 (x)").unwrap(),
            "strategy \"procedure\" can't be used on CockroachDB v24.1.0: its PL/pgSQL can't catch \
             a conflict (issue 111446)"
        );
        let savepoint = refusal("savepoint", "PostgreSQL 18.3 on x, compiled by gcc").unwrap();
        assert!(
            savepoint.contains("PostgreSQL 18.3: ROLLBACK TO SAVEPOINT keeps the snapshot"),
            "{savepoint}"
        );
        let unknown = refusal("swallow", "CrateDB 5.8.1 (built …)").unwrap();
        assert!(unknown.contains("this server, a product that isobench doesn't know: "), "{unknown}");
    }
}
