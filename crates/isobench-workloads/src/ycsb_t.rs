//! YCSB+T: the closed economy workload, whose money must neither grow nor vanish.

use isobench_script::Value;

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};
use crate::ycsb::{popular, rank};

/// The line that draws a number above 0, up to 1.
macro_rules! draw {
    () => {
        "\\set u random(1, 1000000000000000) / 1e15\n"
    };
}

/// A script that works on one account, `id`.
macro_rules! script {
    ($name:literal, $file:literal, $weight:literal) => {
        ScriptFile {
            name: $name,
            text: concat!(popular!(), draw!(), rank!(), include_str!("ycsb_t/id.sql"), include_str!($file)),
            weight: Weight::Parameter($weight),
        }
    };
}

/// The closed economy workload.
pub static YCSB_T: Workload = Workload {
    name: "ycsb-t",
    summary: "Accounts are read, scanned, opened and deleted, and money goes from one to another; \
              what deleted ones had is kept in pots",
    source: "Dey, Fekete, Nambiar and Röhm, YCSB+T: Benchmarking Web-scale Transactional Databases, \
             ICDE Workshops 2014: the closed economy workload, nine reads to one \
             read-modify-write; the anomaly score is the money missing or in excess, divided by the \
             number of transactions",
    tables: &["economy", "pots"],
    setup: include_str!("ycsb_t/tables.sql"),
    load: None,
    scripts: &[
        script!("read", "ycsb_t/read.sql", "reads"),
        script!("scan", "ycsb_t/scan.sql", "scans"),
        script!("update", "ycsb_t/update.sql", "updates"),
        script!("insert", "ycsb_t/insert.sql", "inserts"),
        script!("delete", "ycsb_t/delete.sql", "deletes"),
        ScriptFile {
            name: "modify",
            text: concat!(
                popular!(),
                // The greater of two numbers, and then the smaller.
                "\\set u sqrt(random(1, 1000000000000000) / 1e15)\n",
                rank!(),
                "\\set one :rank\n",
                "\\set u :u * random(1, 1000000000000000) / 1e15\n",
                rank!(),
                include_str!("ycsb_t/modify.sql"),
            ),
            weight: Weight::Parameter("modifications"),
        },
    ],
    rate_of: None,
    parameters: &[
        Parameter::int("records", 1000, (2, 10_000_000), "accounts"),
        Parameter::int("opening", 1000, (0, 1_000_000_000), "initial balance of each account"),
        Parameter::int("pots", 64, (1, 100_000), "pots; a client uses that of its number"),
        Parameter::int("reads", 90, (0, 1_000_000), "weight of reads of an account"),
        Parameter::int("scans", 0, (0, 1_000_000), "weight of scans of a range of accounts"),
        Parameter::int("updates", 0, (0, 1_000_000), "weight of payments of 1 from the pot to an account"),
        Parameter::int(
            "inserts",
            0,
            (0, 1_000_000),
            "weight of openings of an account with money of the pot",
        ),
        Parameter::int("deletes", 0, (0, 1_000_000), "weight of deletions of an account"),
        Parameter::int("modifications", 10, (0, 1_000_000), "weight of transfers of 1 between two accounts"),
        Parameter::int(
            "longest",
            100,
            (1, 10_000),
            "accounts of the longest scan; all lengths are equally often",
        ),
        Parameter::real(
            "zipfian",
            0.99,
            (0.0, 10.0),
            "constant of the Zipfian distribution of popularity; 0: all accounts are equally popular",
        ),
        Parameter::int(
            "hotspot",
            0,
            (0, 99),
            "percent of the accounts that form a hot spot, instead of the Zipfian distribution; 0: none",
        ),
        Parameter::int("share", 80, (0, 100), "percent of the accounts chosen that are in the hot spot"),
        Parameter::int(
            "moves",
            0,
            (0, 1_000_000),
            "transactions of a client after which the hot spot moves on by its own size (without \
             hotspot, the popular accounts by a hundredth of all); 0: never",
        ),
    ],
    at_most: &[],
    variants: &[
        Variant {
            name: "all",
            summary: "Every kind of operation",
            defaults: &[
                ("reads", Value::Int(30)),
                ("scans", Value::Int(5)),
                ("updates", Value::Int(20)),
                ("inserts", Value::Int(15)),
                ("deletes", Value::Int(5)),
                ("modifications", Value::Int(25)),
            ],
            ..Variant::LINES
        },
        Variant {
            name: "for-update",
            summary: "Whatever is then written is read with SELECT … FOR UPDATE, so that no update is \
                      lost at any level",
            ..Variant::LINES
        },
    ],
    invariants: &[Invariant {
        name: "economy-closed",
        meaning: "the money of all accounts and pots is the initial sum; the amount missing or in \
                  excess is counted",
        unit: "units of money",
        sql: "SELECT CAST(abs(sum(money) - CAST(:records AS bigint) * :opening) AS bigint), \
              'sum ' || CAST(CAST(sum(money) AS bigint) AS varchar(20)) \
              FROM (SELECT balance AS money FROM economy UNION ALL SELECT amount FROM pots) AS everything",
    }],
    assertions: &[],
    proves: "At read committed: lost updates, most of which change the sum for good.",
    blind: "Write skew: a transaction writes what it reads, or reads a single account or range. \
            Repeatable read and serializable differ in little but their conflicts. Money that is lost \
            here and gained there doesn't change the sum. A deleted account is a row without money, so \
            scans miss nothing.",
};
