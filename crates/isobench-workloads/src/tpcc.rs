//! TPC-C's five transactions and nine tables, with its twelve consistency conditions.
//!
//! Facts (constants, cardinalities, conditions): TPC Benchmark C, Standard Specification, Revision
//! 5.11, 2010. What deviates is in decision 0055.

use crate::workload::{Invariant, Load, Parameter, RateOf, ScriptFile, Variant, Weight, Workload};

/// A workload like TPC-C.
pub static TPCC: Workload = Workload {
    name: "tpcc",
    summary: "New-Order, Payment, Order-Status, Delivery and Stock-Level of a wholesale supplier; \
              TPC-C-like, not a TPC result",
    source: "TPC Benchmark C, Standard Specification, Revision 5.11, 2010. By default a warehouse \
             has a tenth of the standard's customers, orders and items, so that the tables of three \
             levels fit into a small server's cache and are made anew within a second; the \
             standard's own: customers=3000,items=100000, and think=100",
    tables: &[
        "warehouse",
        "district",
        "customer",
        "history",
        "item",
        "stock",
        "orders",
        "new_order",
        "order_line",
    ],
    setup: include_str!("tpcc/tables.sql"),
    load: Some(Load {
        sql: include_str!("tpcc/load.sql"),
        count: "warehouses",
        keys: include_str!("tpcc/keys.sql"),
    }),
    scripts: &[
        ScriptFile {
            name: "new-order",
            text: include_str!("tpcc/new_order.sql"),
            weight: Weight::Parameter("new_orders"),
        },
        ScriptFile {
            name: "payment",
            text: include_str!("tpcc/payment.sql"),
            weight: Weight::Parameter("payments"),
        },
        ScriptFile {
            name: "order-status",
            text: include_str!("tpcc/order_status.sql"),
            weight: Weight::Parameter("order_statuses"),
        },
        ScriptFile {
            name: "delivery",
            text: include_str!("tpcc/delivery.sql"),
            weight: Weight::Parameter("deliveries"),
        },
        ScriptFile {
            name: "stock-level",
            text: include_str!("tpcc/stock_level.sql"),
            weight: Weight::Parameter("stock_levels"),
        },
    ],
    rate_of: Some(RateOf { script: "new-order", note: "TPC-C-like, not a TPC result" }),
    parameters: &[
        Parameter::int("warehouses", 1, (1, 10_000), "warehouses; each client is a terminal of one"),
        Parameter::int(
            "customers",
            300,
            (10, 30_000),
            "customers of each of a warehouse's ten districts, and as many orders (the standard: 3000)",
        ),
        Parameter::int(
            "items",
            10_000,
            (100, 900_000),
            "items, each in stock everywhere (the standard: 100000)",
        ),
        Parameter::int(
            "think",
            0,
            (0, 100),
            "percent of the standard's keying and think times, which are then part of each latency; 0: none",
        ),
        Parameter::int("new_orders", 45, (0, 1_000_000), "weight of New-Order"),
        Parameter::int("payments", 43, (0, 1_000_000), "weight of Payment"),
        Parameter::int("order_statuses", 4, (0, 1_000_000), "weight of Order-Status"),
        Parameter::int("deliveries", 4, (0, 1_000_000), "weight of Delivery"),
        Parameter::int("stock_levels", 4, (0, 1_000_000), "weight of Stock-Level"),
    ],
    at_most: &[],
    variants: &[Variant {
        name: "for-update",
        summary: "Delivery reads the oldest order with SELECT … FOR UPDATE, so that no order is \
                  delivered twice at read committed",
        ..Variant::LINES
    }],
    invariants: &CONDITIONS,
    assertions: &[],
    proves: "Under snapshot isolation TPC-C is serializable (Fekete et al., Making Snapshot Isolation \
             Serializable, ACM TODS 30(2), 2005), so repeatable read should keep all twelve conditions. \
             At read committed two Deliveries can deliver the same order: customers are credited twice \
             (conditions 10, 11 and 12), and the history has a lost update. Order-Status and Stock-Level \
             show read skew.",
    blind: "Rows that searches with LIMIT missed, stocks that Stock-Level didn't find low, and table \
            history. By lines --@ alone (--rate, other products) Stock-Level shows only the district, \
            Delivery no order lines, and versions are those of rows, so a history may have write skew at \
            repeatable read that no column shows.",
};

/// The consistency conditions of clause 3.3.2. The eleventh is the standard's at any time, not only
/// before the first Delivery: what has been delivered since is added.
static CONDITIONS: [Invariant; 12] = [
    Invariant {
        name: "1-warehouse-ytd",
        meaning: "(3.3.2.1) w_ytd is the sum of the districts' d_ytd; counts the warehouses where it isn't",
        unit: "warehouses",
        sql: "SELECT count(*), 'warehouse ' || CAST(min(w_id) AS varchar(20)) FROM warehouse \
              JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) AS sums \
              ON d_w_id = w_id WHERE w_ytd <> ytd",
    },
    Invariant {
        name: "2-next-order",
        meaning: "(3.3.2.2) d_next_o_id - 1 is the greatest o_id and, if there are new orders, the \
                  greatest no_o_id; counts the districts where it isn't",
        unit: "districts",
        sql: "SELECT count(*), 'district ' || CAST(min(d_w_id * 100 + d_id) AS varchar(20)) FROM district \
              LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) AS placed \
              ON o_w_id = d_w_id AND o_d_id = d_id \
              LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS newest FROM new_order GROUP BY no_w_id, no_d_id) \
              AS waiting ON no_w_id = d_w_id AND no_d_id = d_id \
              WHERE d_next_o_id - 1 <> coalesce(placed.newest, 0) \
              OR d_next_o_id - 1 <> coalesce(waiting.newest, d_next_o_id - 1)",
    },
    Invariant {
        name: "3-new-orders-dense",
        meaning: "(3.3.2.3) the numbers of a district's new orders have no gaps; counts the districts \
                  where they have",
        unit: "districts",
        sql: "SELECT count(*), 'district ' || CAST(min(no_w_id * 100 + no_d_id) AS varchar(20)) FROM \
              (SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id \
              HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) AS gaps",
    },
    Invariant {
        name: "4-lines-of-districts",
        meaning: "(3.3.2.4) the sum of o_ol_cnt is the number of order lines; counts the districts where \
                  it isn't",
        unit: "districts",
        sql: "SELECT count(*), 'district ' || CAST(min(w * 100 + d) AS varchar(20)) FROM (SELECT w, d FROM \
              (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS lines FROM orders GROUP BY o_w_id, o_d_id \
              UNION ALL SELECT ol_w_id, ol_d_id, -count(*) FROM order_line GROUP BY ol_w_id, ol_d_id) AS counted \
              GROUP BY w, d HAVING sum(lines) <> 0) AS differing",
    },
    Invariant {
        name: "5-carriers",
        meaning: "(3.3.2.5) an order has no carrier if and only if it is a new order; counts the orders \
                  of which that isn't true",
        unit: "orders",
        sql: "SELECT count(*), 'district ' || CAST(min(o_w_id * 100 + o_d_id) AS varchar(20)) FROM orders \
              LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
              WHERE CASE WHEN o_carrier_id IS NULL THEN 1 ELSE 0 END <> CASE WHEN no_o_id IS NULL THEN 0 ELSE 1 END",
    },
    Invariant {
        name: "6-lines-of-orders",
        meaning: "(3.3.2.6) o_ol_cnt is the number of the order's lines; counts the orders where it isn't",
        unit: "orders",
        sql: "SELECT count(*), 'district ' || CAST(min(o_w_id * 100 + o_d_id) AS varchar(20)) FROM orders \
              LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines FROM order_line \
              GROUP BY ol_w_id, ol_d_id, ol_o_id) AS counted \
              ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_ol_cnt <> coalesce(lines, 0)",
    },
    Invariant {
        name: "7-delivery-dates",
        meaning: "(3.3.2.7) an order line has no delivery date if and only if its order has no carrier; \
                  counts the lines of which that isn't true",
        unit: "order lines",
        sql: "SELECT count(*), 'district ' || CAST(min(ol_w_id * 100 + ol_d_id) AS varchar(20)) FROM order_line \
              LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id \
              WHERE CASE WHEN ol_delivery_d IS NULL THEN 1 ELSE 0 END <> CASE WHEN o_carrier_id IS NULL THEN 1 ELSE 0 \
              END",
    },
    Invariant {
        name: "8-warehouse-payments",
        meaning: "(3.3.2.8) w_ytd is the sum of the warehouse's h_amount; counts the warehouses where it isn't",
        unit: "warehouses",
        sql: "SELECT count(*), 'warehouse ' || CAST(min(w_id) AS varchar(20)) FROM warehouse \
              LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) AS payments \
              ON h_w_id = w_id WHERE w_ytd <> coalesce(paid, 0)",
    },
    Invariant {
        name: "9-district-payments",
        meaning: "(3.3.2.9) d_ytd is the sum of the district's h_amount; counts the districts where it isn't",
        unit: "districts",
        sql: "SELECT count(*), 'district ' || CAST(min(d_w_id * 100 + d_id) AS varchar(20)) FROM district \
              LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS \
              payments ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> coalesce(paid, 0)",
    },
    Invariant {
        name: "10-balances",
        meaning: "(3.3.2.10) c_balance is the sum of ol_amount of the customer's delivered lines minus the \
                  sum of h_amount; counts the customers where it isn't",
        unit: "customers",
        sql: "SELECT count(*), 'district ' || CAST(min(w * 100 + d) AS varchar(20)) FROM (SELECT w, d, c FROM \
              (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance AS amount FROM customer \
              UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) FROM history \
              GROUP BY h_c_w_id, h_c_d_id, h_c_id \
              UNION ALL SELECT o_w_id, o_d_id, o_c_id, -sum(ol_amount) FROM orders JOIN order_line \
              ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
              GROUP BY o_w_id, o_d_id, o_c_id) AS amounts GROUP BY w, d, c HAVING sum(amount) <> 0) AS differing",
    },
    Invariant {
        name: "11-undelivered",
        meaning: "(3.3.2.11) a district's orders minus its new orders are those delivered at first (the \
                  standard: 2100) and, since then, the sum of c_delivery_cnt; counts the districts where \
                  they aren't",
        unit: "districts",
        sql: "SELECT count(*), 'district ' || CAST(min(w * 100 + d) AS varchar(20)) FROM (SELECT w, d FROM \
              (SELECT o_w_id AS w, o_d_id AS d, count(*) AS number FROM orders GROUP BY o_w_id, o_d_id \
              UNION ALL SELECT no_w_id, no_d_id, -count(*) FROM new_order GROUP BY no_w_id, no_d_id \
              UNION ALL SELECT c_w_id, c_d_id, -sum(c_delivery_cnt) FROM customer GROUP BY c_w_id, c_d_id) AS counted \
              GROUP BY w, d HAVING sum(number) <> :customers * 7 / 10) AS differing",
    },
    Invariant {
        name: "12-balances-and-payments",
        meaning: "(3.3.2.12) c_balance + c_ytd_payment is the sum of ol_amount of the customer's delivered \
                  lines; counts the customers where it isn't",
        unit: "customers",
        sql: "SELECT count(*), 'district ' || CAST(min(w * 100 + d) AS varchar(20)) FROM (SELECT w, d, c FROM \
              (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance + c_ytd_payment AS amount FROM customer \
              UNION ALL SELECT o_w_id, o_d_id, o_c_id, -sum(ol_amount) FROM orders JOIN order_line \
              ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
              GROUP BY o_w_id, o_d_id, o_c_id) AS amounts GROUP BY w, d, c HAVING sum(amount) <> 0) AS differing",
    },
];
