//! The statements for each product, by step and options, compared with golden files.

use std::fmt::Write as _;

use isobench_database::tables::{ForeignKeys, actions, put_back};
use isobench_database::{Database, InitOptions, PartitionMethod};
use isobench_isolation::Level;

use crate::support;

/// Golden file, answer to `version()`.
const SERVERS: [(&str, &str); 7] = [
    ("postgresql.txt", "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu"),
    ("postgresql-13.txt", "PostgreSQL 13.14 on x86_64-pc-linux-gnu"),
    ("cockroachdb.txt", "CockroachDB OSS v20.1.5 (x86_64-linux-gnu, built …)"),
    ("yugabytedb.txt", "PostgreSQL 11.2-YB-2.13.0.0-b0 on x86_64-pc-linux-gnu"),
    ("aurora-dsql.txt", "PostgreSQL 16"),
    ("h2.txt", "PostgreSQL 8.2.23 server protocol using H2 2.4.240 (2025-09-22)"),
    ("unknown.txt", "CrateDB 5.8.1 (built …)"),
];

fn options(steps: &str) -> InitOptions {
    InitOptions { steps: steps.parse().unwrap(), ..InitOptions::default() }
}

fn cases() -> Vec<(&'static str, InitOptions)> {
    vec![
        ("-I dtgvpf", options("dtgvpf")),
        ("-I G -s 2", InitOptions { scale: 2, ..options("G") }),
        (
            "-I tgp --unlogged-tables -F 80 --tablespace=fast --index-tablespace='a \"b\"'",
            InitOptions {
                unlogged: true,
                fillfactor: 80,
                tablespace: Some("fast".to_owned()),
                index_tablespace: Some("a \"b\"".to_owned()),
                ..options("tgp")
            },
        ),
        ("-I tg --partitions=3 -s 2", InitOptions { partitions: 3, scale: 2, ..options("tg") }),
        (
            "-I t --partitions=2 --partition-method=hash --unlogged-tables",
            InitOptions {
                partitions: 2,
                partition_method: PartitionMethod::Hash,
                unlogged: true,
                ..options("t")
            },
        ),
    ]
}

#[test]
fn sql_of_each_product() {
    /// The number of first and last batches shown of a long list.
    const SHOWN: usize = 3;
    for (file, version) in SERVERS {
        let db = Database::from_version_text(version);
        let mut text = format!("# {version}\n# {} {}\n\n== levels\n", db.product.name, db.version);
        for level in Level::ALL {
            let sql = db.product.set_level(level);
            writeln!(text, "{}", sql.map_or_else(|| format!("-- {level}: nothing is sent"), |sql| sql + ";"))
                .unwrap();
        }
        let query = db.product.effective_level();
        for (index, step) in query.steps.iter().enumerate() {
            let mark = if index == query.answer { "  -- the answer" } else { "" };
            writeln!(text, "{step};{mark}").unwrap();
        }
        for (name, opts) in cases() {
            writeln!(text, "\n== {name}").unwrap();
            for step in opts.effective_steps().iter() {
                writeln!(text, "-- step {}", step.letter()).unwrap();
                let all = actions(&db, &opts, step);
                for (index, action) in all.iter().enumerate() {
                    let left_out = all.len().saturating_sub(4 * SHOWN);
                    if all.len() > 6 * SHOWN && (2 * SHOWN..2 * SHOWN + left_out).contains(&index) {
                        if index == 2 * SHOWN {
                            writeln!(text, "-- … {left_out} more of these").unwrap();
                        }
                        continue;
                    }
                    writeln!(text, "{action}").unwrap();
                }
            }
        }
        text.push_str("\n== put back at scale 2, by what becomes of the foreign keys\n");
        if db.product.dialect.put_back_after.is_none() {
            text.push_str("-- made anew\n");
        } else {
            for keys in [ForeignKeys::Keep, ForeignKeys::Add, ForeignKeys::Drop] {
                writeln!(text, "-- {keys:?}").unwrap();
                for action in put_back(&db, 2, keys) {
                    writeln!(text, "{action}").unwrap();
                }
            }
        }
        support::golden(file, &text);
    }
}
