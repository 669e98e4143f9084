//! An example of plain SQL whose rows were observed: what of it stayed dark, and witnesses with the
//! SQL of their steps.

use isobench_result::{Document, Observation, ObservedRows, ObservedStatement};

use super::broken_promise;

const STOCK: &str = "SELECT quantity FROM stock WHERE warehouse = :w AND item = :i";
const TAKE: &str = "UPDATE stock SET quantity = quantity - :n WHERE warehouse = :w AND item = :i";
const RESERVED: &str = "SELECT count(*) FROM (SELECT DISTINCT item FROM stock WHERE quantity < 10) AS scarce";

/// A report that is longer than a line.
const REPORT: &str = "WITH sold AS (SELECT item, sum(n) AS n FROM orders WHERE day BETWEEN :from AND :to AND state IN \
    ('paid', 'packed', 'shipped') GROUP BY item) SELECT item, n, quantity FROM sold JOIN stock USING (item) WHERE \
    warehouse = :w AND quantity < n ORDER BY quantity - n, item LIMIT 20";

fn rows(table: &str, key: &str, access: &str, searched: bool) -> ObservedRows {
    ObservedRows {
        table: table.to_owned(),
        key: key.to_owned(),
        access: access.to_owned(),
        order: if access == "writes" { "row lock" } else { "-" }.to_owned(),
        searched,
    }
}

fn statement(line: u32, text: &str, tables: Vec<ObservedRows>, dark: &[&str]) -> ObservedStatement {
    ObservedStatement {
        script: "orders.sql".to_owned(),
        line,
        text: text.to_owned(),
        sent_differently: !tables.is_empty(),
        tables,
        matters: None,
        matters_if_unsearched: None,
        wholly_if: None,
        scans: Vec::new(),
        dark: dark.iter().map(|&sentence| sentence.to_owned()).collect(),
    }
}

/// One workload that was seen in part, and one that wasn't, at levels of which one breaks its
/// promise.
pub fn seen() -> Document {
    let mut document = broken_promise();
    let hidden = "rows of stock that it reads, hidden by DISTINCT";
    let limit = "rows of stock that it missed, because of LIMIT, OFFSET or FETCH";
    let audit = "table audit isn't observed: it has no primary key, nor another unique index of columns that are NOT \
        NULL";
    let key = "(warehouse, item)";
    let statements = vec![
        statement(3, "BEGIN", Vec::new(), &[]),
        statement(4, STOCK, vec![rows("stock", key, "reads", true)], &[]),
        statement(5, TAKE, vec![rows("stock", key, "writes", true)], &[]),
        statement(6, "INSERT INTO audit VALUES (now(), :i, :n)", Vec::new(), &[audit]),
        statement(7, RESERVED, Vec::new(), &[hidden]),
        statement(
            8,
            REPORT,
            vec![rows("stock", key, "reads", false), rows("shop.orders", "(id)", "reads", true)],
            &[limit, "what function sum reads"],
        ),
        statement(9, "LISTEN stock", Vec::new(), &["not observed: the statement isn't understood"]),
        statement(10, "NOTIFY stock", Vec::new(), &["not observed: the statement isn't understood"]),
        statement(11, "COMMIT", Vec::new(), &[]),
    ];
    document.observations = vec![
        Observation { workload: "orders".to_owned(), statements, ..Observation::default() },
        Observation {
            workload: "imports".to_owned(),
            prevented: Some("imports.sql:2\n  ERROR:  permission denied for column \"id\"".to_owned()),
            ..Observation::default()
        },
    ];
    let (read, take) = (format!("orders.sql:4: {STOCK}"), format!("orders.sql:5: {TAKE}"));
    for (cell, place) in document.cells.iter_mut().zip(0_u64..) {
        "orders".clone_into(&mut cell.workload);
        for round in &mut cell.rounds {
            let number = u64::from(round.round);
            let Some(verdict) = &mut round.verdict else { continue };
            verdict.blind.push(format!(
                "The order of {} pairs of versions of the same row is unknown",
                10 + 3 * number + place
            ));
            for anomaly in &mut verdict.anomalies {
                if anomaly.witness.len() == 2 {
                    anomaly.witness = vec![
                        "T12 (client 3) read version 5 (by transaction 2530) of stock (3,7), and T15 (client 1) wrote \
                         version 6 (by transaction 2534)"
                            .to_owned(),
                        "T15 (client 1) read version 8 (by transaction 2519) of stock (3,9), and T12 (client 3) wrote \
                         version 9 (by transaction 2533)"
                            .to_owned(),
                    ];
                    anomaly.statements = vec![
                        vec![read.clone(), take.clone()],
                        vec![format!("orders.sql:8: {REPORT}"), take.clone()],
                    ];
                } else {
                    anomaly.statements = vec![vec![take.clone(), take.clone()]];
                }
            }
        }
    }
    document
}
