//! YCSB: the Yahoo! Cloud Serving Benchmark, with transactions of several operations, and a hot
//! spot that can move.

use isobench_script::Value;

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// Lines that say which records are popular in this transaction: `hot`, `shift`. They use the
/// parameters `records`, `hotspot` and `moves`.
macro_rules! popular {
    () => {
        include_str!("ycsb/popular.sql")
    };
}
pub(crate) use popular;

/// Lines that set `rank`, the rank of a record by popularity, from the variable `u`, after those of
/// `popular`. They use the parameters `records`, `zipfian`, `hotspot` and `share`.
macro_rules! rank {
    () => {
        include_str!("ycsb/rank.sql")
    };
}
pub(crate) use rank;

/// The weights of the operations.
const OPERATIONS: [&str; 5] = ["reads", "updates", "inserts", "scans", "modifications"];

/// Core workloads A to F.
pub static YCSB: Workload = Workload {
    name: "ycsb",
    summary: "Each transaction reads, updates, inserts, scans or reads, modifies and writes some \
              records, most often popular ones",
    source: "Cooper, Silberstein, Tam, Ramakrishnan and Sears, Benchmarking Cloud Serving Systems \
             with YCSB, SoCC 2010, core workloads A to E, and F of the YCSB project, with its 1,000 \
             records of 1 KB. There an operation is a transaction of its own: operations=1",
    tables: &["usertable"],
    setup: include_str!("ycsb/tables.sql"),
    load: None,
    scripts: &[ScriptFile {
        name: "ycsb",
        text: concat!(
            popular!(),
            include_str!("ycsb/start.sql"),
            "--*operations\n",
            // The greatest of as many numbers below the last one as are left.
            "\\set u :u * pow(random(1, 1000000000000000) / 1e15, 1.0 / :left)\n",
            "\\set left :left - 1\n",
            rank!(),
            include_str!("ycsb/operation.sql"),
            "--*\n",
            include_str!("ycsb/end.sql"),
        ),
        weight: Weight::Any(&OPERATIONS),
    }],
    rate_of: None,
    parameters: &[
        Parameter::int("records", 1000, (1, 10_000_000), "records at the beginning"),
        Parameter::int("fields", 10, (1, 100), "fields of a record; an update writes the first"),
        Parameter::int("length", 100, (20, 1000), "characters of a field"),
        Parameter::int("operations", 4, (1, 32), "operations of a transaction"),
        Parameter::int("reads", 50, (0, 1_000_000), "weight of reads of all fields of a record"),
        Parameter::int("updates", 50, (0, 1_000_000), "weight of updates of a record that isn't read"),
        Parameter::int("inserts", 0, (0, 1_000_000), "weight of insertions of a record"),
        Parameter::int("scans", 0, (0, 1_000_000), "weight of scans of a range of records"),
        Parameter::int("modifications", 0, (0, 1_000_000), "weight of read-modify-writes of a record"),
        Parameter::int(
            "longest",
            100,
            (1, 10_000),
            "records of the longest scan; all lengths are equally often",
        ),
        Parameter::real(
            "zipfian",
            0.99,
            (0.0, 10.0),
            "constant of the Zipfian distribution of popularity; 0: all records are equally popular",
        ),
        Parameter::int("latest", 0, (0, 1), "1: the records inserted last are the most popular"),
        Parameter::int(
            "hotspot",
            0,
            (0, 99),
            "percent of the records that form a hot spot, instead of the Zipfian distribution; 0: none",
        ),
        Parameter::int("share", 80, (0, 100), "percent of the operations that are in the hot spot"),
        Parameter::int(
            "moves",
            0,
            (0, 1_000_000),
            "transactions of a client after which the hot spot moves on by its own size (without \
             hotspot, the popular records by a hundredth of all); 0: never",
        ),
    ],
    at_most: &[],
    variants: &[
        Variant {
            name: "a",
            summary: "Update heavy",
            defaults: &[("reads", Value::Int(50)), ("updates", Value::Int(50))],
            ..Variant::LINES
        },
        Variant {
            name: "b",
            summary: "Read mostly",
            defaults: &[("reads", Value::Int(95)), ("updates", Value::Int(5))],
            ..Variant::LINES
        },
        Variant {
            name: "c",
            summary: "Read only",
            defaults: &[("reads", Value::Int(100)), ("updates", Value::Int(0))],
            ..Variant::LINES
        },
        Variant {
            name: "d",
            summary: "Read latest",
            defaults: &[
                ("reads", Value::Int(95)),
                ("updates", Value::Int(0)),
                ("inserts", Value::Int(5)),
                ("latest", Value::Int(1)),
            ],
            ..Variant::LINES
        },
        Variant {
            name: "e",
            summary: "Short ranges",
            defaults: &[
                ("reads", Value::Int(0)),
                ("updates", Value::Int(0)),
                ("inserts", Value::Int(5)),
                ("scans", Value::Int(95)),
            ],
            ..Variant::LINES
        },
        Variant {
            name: "f",
            summary: "Read, modify, write",
            defaults: &[("updates", Value::Int(0)), ("modifications", Value::Int(50))],
            ..Variant::LINES
        },
        Variant {
            name: "for-update",
            summary: "As f, reading with SELECT … FOR UPDATE what is then modified, so that no \
                      modification is lost at any level",
            defaults: &[("updates", Value::Int(0)), ("modifications", Value::Int(50))],
            ..Variant::LINES
        },
    ],
    invariants: &[
        Invariant {
            name: "modifications-counted",
            meaning: "a record's value is the number of its read-modify-writes; each lost one is counted",
            unit: "modifications",
            sql: "SELECT CAST(coalesce(sum(abs(modified - val)), 0) AS bigint), \
                  'record ' || CAST(min(CASE WHEN modified <> val THEN number END) AS varchar(20)) FROM usertable",
        },
        Invariant {
            name: "records-present",
            meaning: "the record that was inserted before another one is there; counts the missing ones",
            unit: "records",
            sql: "SELECT count(*), 'record ' || CAST(min(later.previous) AS varchar(20)) FROM usertable AS later \
                  LEFT JOIN usertable AS earlier ON earlier.number = later.previous \
                  WHERE later.previous > 0 AND earlier.number IS NULL",
        },
    ],
    assertions: &[],
    proves: "Several operations: lost updates, read skew and long forks at read committed, write skew at \
             repeatable read. With f, lost updates at read committed also with one operation, and in the \
             tables. On PostgreSQL e and d show the records that ranges and reads missed: write skew on a \
             predicate.",
    blind: "Anomalies with operations=1, except in f and e; any in c. d and e need more insertions than \
            published (inserts=50) to show much. Deadlocks, unless clients' hot spots differ (moves). By \
            lines --@ alone, records that a scan missed.",
};
