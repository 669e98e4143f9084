//! pgbench's built-in scripts as a table.

use std::fmt;

/// A built-in script.
#[derive(Debug, Eq, PartialEq)]
pub struct Builtin {
    /// The name for `-b`.
    pub name: &'static str,
    /// The name that reports print.
    pub description: &'static str,
    /// The script, as `--show-script` prints it.
    pub text: &'static str,
}

static BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        text: "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
",
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        text: "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
",
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        text: "\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
",
    },
];

/// All built-in scripts, in the order of `-b list`.
pub fn builtins() -> &'static [Builtin] {
    &BUILTINS
}

/// Finds a built-in script by its name or an unambiguous prefix of it.
///
/// # Errors
/// If no name, or more than one, starts with `prefix`.
pub fn find_builtin(prefix: &str) -> Result<&'static Builtin, BuiltinError> {
    let mut found = BUILTINS.iter().filter(|builtin| builtin.name.starts_with(prefix));
    match (found.next(), found.next()) {
        (Some(builtin), None) => Ok(builtin),
        (Some(_), Some(_)) => Err(BuiltinError::Ambiguous {
            prefix: prefix.to_owned(),
            count: BUILTINS.iter().filter(|builtin| builtin.name.starts_with(prefix)).count(),
        }),
        (None, _) => Err(BuiltinError::Unknown { prefix: prefix.to_owned() }),
    }
}

/// A name that doesn't select one built-in script.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BuiltinError {
    /// No script has such a name.
    Unknown {
        /// The name given.
        prefix: String,
    },
    /// Several names start with the prefix.
    Ambiguous {
        /// The prefix given.
        prefix: String,
        /// The number of scripts that match.
        count: usize,
    },
}

impl fmt::Display for BuiltinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { prefix } => write!(f, "no builtin script found for name \"{prefix}\""),
            Self::Ambiguous { prefix, count } => {
                write!(f, "ambiguous builtin name: {count} builtin scripts found for prefix \"{prefix}\"")
            }
        }
    }
}

impl std::error::Error for BuiltinError {}
