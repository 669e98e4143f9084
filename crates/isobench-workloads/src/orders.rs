//! Orders: contended rows that are read, computed and written, with every strategy against
//! conflicts.

use crate::workload::{Invariant, Parameter, ScriptFile, Variant, Weight, Workload};

/// The only script of a variant, in place of the workload's.
macro_rules! script {
    ($file:literal) => {
        &[ScriptFile { name: "order", text: include_str!($file), weight: Weight::Fixed(1) }]
    };
}

/// Orders of products in a few shops.
pub static ORDERS: Workload = Workload {
    name: "orders",
    summary: "An order reads a product's stock and its shop's revenue, computes the new values in \
              the client, and writes them back",
    source: "the read, compute, write cycle of many applications, on two rows of which one is \
             contended; the strategies are those of the published experiments, plans/",
    tables: &["shops", "products"],
    setup: include_str!("orders/tables.sql"),
    load: None,
    scripts: script!("orders/order.sql"),
    rate_of: None,
    parameters: &[
        Parameter::int("shops", 4, (1, 1_000_000), "shops; the fewer, the higher the contention"),
        Parameter::int("products", 100, (1, 100_000), "products of each shop"),
        Parameter::int(
            "initial",
            1_000_000_000,
            (0, 1_000_000_000_000),
            "initial stock of each product; a negative stock is on back order",
        ),
    ],
    at_most: &[],
    variants: &[
        Variant {
            name: "procedure",
            summary: "A PL/pgSQL procedure reads, computes and writes, and retries up to 10 times \
                      after a conflict",
            setup: include_str!("orders/procedure_setup.sql"),
            scripts: script!("orders/procedure.sql"),
            ..Variant::LINES
        },
        Variant {
            name: "swallow",
            summary: "A PL/pgSQL function catches the conflict and returns: the order is lost",
            setup: include_str!("orders/swallow_setup.sql"),
            scripts: script!("orders/swallow.sql"),
            ..Variant::LINES
        },
        Variant {
            name: "single-statement",
            summary: "One statement with data-modifying CTEs computes in SQL what it writes, so no \
                      update is lost at any level",
            scripts: script!("orders/single_statement.sql"),
            ..Variant::LINES
        },
        Variant {
            name: "savepoint",
            summary: "The client repeats the statements after the savepoint cockroach_restart, in \
                      the same block (CockroachDB only)",
            scripts: script!("orders/savepoint.sql"),
            ..Variant::LINES
        },
        Variant {
            name: "for-update",
            summary: "The shop is read first, with SELECT … FOR UPDATE, so that orders of a shop wait for each other",
            scripts: script!("orders/for_update.sql"),
            ..Variant::LINES
        },
        Variant {
            name: "advisory-lock",
            summary: "A session-level advisory lock on the shop's number is taken before BEGIN, and \
                      released after COMMIT",
            scripts: script!("orders/advisory_lock.sql"),
            ..Variant::LINES
        },
        Variant {
            name: "reorder",
            summary: "A retry reads and writes the shop first, then the product",
            scripts: script!("orders/reorder.sql"),
            ..Variant::LINES
        },
    ],
    invariants: &[
        Invariant {
            name: "stock-agrees",
            meaning: "the remaining and the sold quantity of a product add up to its initial \
                      stock; the quantity missing or in excess is counted",
            unit: "units of stock",
            sql: "SELECT CAST(sum(abs(stock + sold - :initial)) AS bigint), \
                  'product ' || CAST(min(CASE WHEN stock + sold <> :initial THEN id END) AS varchar(20)) FROM products",
        },
        Invariant {
            name: "revenue-agrees",
            meaning: "a shop's revenue is the sum of the prices of the products that it sold; the \
                      amount missing or in excess is counted",
            unit: "units of money",
            sql: "SELECT CAST(sum(abs(revenue - earned)) AS bigint), \
                  'shop ' || CAST(min(CASE WHEN revenue <> earned THEN id END) AS varchar(20)) \
                  FROM shops JOIN (SELECT shop, sum(sold * price) AS earned FROM products GROUP BY shop) AS sales \
                  ON sales.shop = shops.id",
        },
    ],
    assertions: &[],
    proves: "Lost updates at read committed: in the history, and as stock and revenue that don't agree \
             with the sales. With for-update, advisory-lock or single-statement there are none. Reads and \
             writes inside functions are observed, too.",
    blind: "Write skew and phantoms: an order writes everything that it reads. Repeatable read and \
            serializable differ only in their conflicts. The server doesn't return what the single \
            statement reads, so isobench takes the versions that it replaced.",
};
