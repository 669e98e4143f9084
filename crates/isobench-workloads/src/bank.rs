//! Bank: transfers that must preserve the total.

use crate::workload::{Assertion, Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Transfers between accounts, and audits that read all accounts.
pub static BANK: Workload = Workload {
    name: "bank",
    summary: "Transfers between two accounts, computing both balances in the client; audits read \
              all accounts in two scans",
    source: "the bank test of Jepsen (jepsen.tests.bank); the client reads, computes and writes, \
             where pgbench's TPC-B-like script adds in SQL",
    tables: &["accounts"],
    setup: include_str!("bank/tables.sql"),
    load: None,
    scripts: &[
        ScriptFile {
            name: "transfer",
            text: include_str!("bank/transfer.sql"),
            weight: Weight::Parameter("transfers"),
        },
        ScriptFile {
            name: "total",
            text: include_str!("bank/total.sql"),
            weight: Weight::Parameter("totals"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int("accounts", 100, (2, 1_000_000), "accounts"),
        Parameter::int("balance", 1000, (0, 1_000_000_000), "initial balance of each account"),
        Parameter::int("transfers", 95, (0, 1_000_000), "weight of transfers"),
        Parameter::int("totals", 5, (0, 1_000_000), "weight of audits"),
    ],
    at_most: &[],
    variants: &[Variant {
        name: "for-update",
        summary: "Transfers read with SELECT … FOR UPDATE, audits with FOR SHARE, so that they \
                  wait for each other at any level",
        ..Variant::LINES
    }],
    invariants: &[Invariant {
        name: "total-unchanged",
        meaning: "the sum of all balances is the initial one; the amount missing or in excess is counted",
        unit: "units of money",
        sql: "SELECT CAST(abs(sum(balance) - :accounts * :balance) AS bigint), \
              'total ' || CAST(CAST(sum(balance) AS bigint) AS varchar(20)) FROM accounts",
    }],
    assertions: &[Assertion {
        name: "total",
        meaning: "the two scans of an audit add up to the initial total (after a lost update, they never do)",
    }],
    proves: "At read committed: read skew, and lost updates, which change the total for good.",
    blind: "Write skew and phantoms: a transfer writes everything that it reads, and there are no \
            predicate reads. Repeatable read and serializable differ only in their conflicts.",
};
