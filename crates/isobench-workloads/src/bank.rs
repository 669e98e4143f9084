//! Bank: transfers that must not change the total.

use crate::workload::{Assertion, Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Transfers between accounts, and audits that read them all.
pub static BANK: Workload = Workload {
    name: "bank",
    summary: "Transfers between two accounts, computing both balances itself; audits read all accounts in two scans",
    source: "the bank test of Jepsen (jepsen.tests.bank); an application's read, compute, write, in place of the additions in SQL \
             of pgbench's TPC-B-like script",
    tables: &["accounts"],
    setup: include_str!("bank/tables.sql"),
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
    parameters: &[
        Parameter::int("accounts", 100, (2, 1_000_000), "accounts"),
        Parameter::int("balance", 1000, (0, 1_000_000_000), "what is on each account at the start"),
        Parameter::int("transfers", 95, (0, 1_000_000), "weight of transfers"),
        Parameter::int("totals", 5, (0, 1_000_000), "weight of audits"),
    ],
    at_most: &[],
    variants: &[Variant {
        name: "for-update",
        summary: "Transfers read with SELECT … FOR UPDATE, audits with FOR SHARE, so that they wait for each other at any level",
        ..Variant::LINES
    }],
    invariants: &[Invariant {
        name: "total-unchanged",
        meaning: "the sum of all balances is what it was at the start; what is missing or too much is counted",
        sql: "SELECT CAST(abs(sum(balance) - :accounts * :balance) AS bigint), \
              'total ' || CAST(CAST(sum(balance) AS bigint) AS varchar(20)) FROM accounts",
    }],
    assertions: &[Assertion {
        name: "total",
        meaning: "the two scans of an audit add up to the total at the start (once an update is lost, no audit does)",
    }],
    proves: "Every read and write is observed with its version: lost updates and read skew at read committed. Lost updates change \
             the total for good.",
    blind: "A transfer writes what it reads, so snapshot isolation shows no write skew here: repeatable read and serializable are \
            told apart by their conflicts only. There are no predicates.",
};
