//! `SmallBank`: five transactions on two accounts per customer, and the published ways to make them
//! serializable.

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// The `SmallBank` benchmark.
pub static SMALLBANK: Workload = Workload {
    name: "smallbank",
    summary: "Balance, DepositChecking, TransactSaving, Amalgamate and WriteCheck on customers' \
              saving and checking accounts",
    source: "Alomari, Cahill, Fekete and Röhm, The Cost of Serializability on Platforms That Use \
             Snapshot Isolation, ICDE 2008: 18,000 customers, 90 % of the transactions among \
             1,000, each kind of transaction equally often. For more contention: hotspot=10",
    tables: &["account", "saving", "checking"],
    setup: include_str!("smallbank/tables.sql"),
    load: None,
    scripts: &[
        ScriptFile {
            name: "balance",
            text: include_str!("smallbank/balance.sql"),
            weight: Weight::Parameter("balances"),
        },
        ScriptFile {
            name: "deposit-checking",
            text: include_str!("smallbank/deposit_checking.sql"),
            weight: Weight::Parameter("deposits"),
        },
        ScriptFile {
            name: "transact-saving",
            text: include_str!("smallbank/transact_saving.sql"),
            weight: Weight::Parameter("savings"),
        },
        ScriptFile {
            name: "amalgamate",
            text: include_str!("smallbank/amalgamate.sql"),
            weight: Weight::Parameter("amalgamations"),
        },
        ScriptFile {
            name: "write-check",
            text: include_str!("smallbank/write_check.sql"),
            weight: Weight::Parameter("checks"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int("customers", 18_000, (2, 10_000_000), "customers"),
        Parameter::int("hotspot", 1000, (1, 10_000_000), "customers of the hot spot"),
        Parameter::int("share", 90, (0, 100), "percent of the customers chosen that are in the hot spot"),
        Parameter::int("opening", 1000, (0, 1_000_000_000), "initial balance of each account"),
        Parameter::int("balances", 20, (0, 1_000_000), "weight of Balance"),
        Parameter::int("deposits", 20, (0, 1_000_000), "weight of DepositChecking"),
        Parameter::int("savings", 20, (0, 1_000_000), "weight of TransactSaving"),
        Parameter::int("amalgamations", 20, (0, 1_000_000), "weight of Amalgamate"),
        Parameter::int("checks", 20, (0, 1_000_000), "weight of WriteCheck"),
    ],
    at_most: &[("hotspot", "customers")],
    variants: &[
        Variant {
            name: "promote-wt",
            summary: "WriteCheck also updates the saving account it read (PromoteWT-upd)",
            ..Variant::LINES
        },
        Variant {
            name: "promote-bw",
            summary: "Balance also updates the checking account it read (PromoteBW-upd)",
            ..Variant::LINES
        },
        Variant {
            name: "materialize-wt",
            summary: "WriteCheck and TransactSaving update the customer's row in an additional \
                      table (MaterializeWT)",
            tables: &["conflict"],
            ..Variant::LINES
        },
        Variant {
            name: "materialize-bw",
            summary: "Balance and WriteCheck update the customer's row in an additional table \
                      (MaterializeBW)",
            tables: &["conflict"],
            ..Variant::LINES
        },
    ],
    invariants: &[
        Invariant {
            name: "money-conserved",
            meaning: "the sum of all balances is the initial one plus inflow minus outflow; the \
                      difference is counted",
            unit: "units of money",
            sql: "SELECT CAST(abs(sum(balance) - sum(inflow) - 2 * :customers * :opening) AS bigint), \
                  'balances ' || CAST(CAST(sum(balance) AS bigint) AS varchar(20)) \
                  FROM (SELECT balance, inflow FROM saving UNION ALL SELECT balance, inflow FROM checking) AS accounts",
        },
        Invariant {
            name: "savings-not-negative",
            meaning: "no saving account has a negative balance; counts those that have",
            unit: "accounts",
            sql: "SELECT count(*), 'customer ' || CAST(min(customer) AS varchar(20)) FROM saving WHERE balance < 0",
        },
    ],
    assertions: &[],
    proves: "Lost updates at read committed, and under snapshot isolation the one dangerous structure: a \
             Balance that saw a TransactSaving but not the WriteCheck before it. Each variant removes it \
             at repeatable read.",
    blind: "Phantoms. The dangerous structure takes three concurrent transactions of a customer, so it is \
            rare with the published hot spot, and leaves no trace in the tables. TransactSaving adds in \
            SQL to the balance it read, so the history shows an update in between as lost, although it \
            isn't. Without funds it commits unchanged, where the paper rolls back.",
};
