//! TPC-C's isolation tests (clause 3.4.2), reduced to the tables and columns that they need. A test is
//! failed if the anomaly shows that it looks for.
//!
//! New-Orders and Payments add to what is there, as isobench's workload `tpcc` does.

use isobench_isolation::Anomaly;

use super::{Evidence, Phenomenon, Probe, Takes};

probes! {
    /// The tests, in their order.
    TPCC from "tpcc/":
    "1" "TPC-C 1", "order seen before its commit", G1a, DirtyRead, Nothing;
        {read [("s2", "3001")]; tags []; committed ["c1"]; at_once "s2";
         "Order-Status saw the order before its New-Order had committed"}
        {read [("s3", "3000")]; tags []; committed ["c1"];
         "Order-Status missed the order after its New-Order had committed"}
    "2" "TPC-C 2", "order of a rollback", G1a, DirtyRead, Nothing;
        {read [("s2", "3001")]; tags []; committed [];
         "Order-Status saw the order of a New-Order that was rolled back"}
        {read [("s3", "3001")]; tags []; committed [];
         "Order-Status saw the order after its New-Order had been rolled back"}
    "3" "TPC-C 3", "order number used twice", LostUpdate, NonrepeatableRead, Nothing;
        {read [("n1", "3001"), ("n2", "3001")]; tags []; committed ["c1", "c2"];
         "both New-Orders committed with number 3001"}
        {read [("end", "3002")]; tags []; committed ["c1", "c2"];
         "the district counted one of two New-Orders"}
    "4" "TPC-C 4", "order number of a rollback", G1a, DirtyRead, Nothing;
        {read [("n2", "3002")]; tags []; committed ["c2"];
         "the second New-Order's number follows that of the first, which was rolled back"}
        {read [("end", "3003")]; tags []; committed ["c2"];
         "the district counted the New-Order that was rolled back"}
    "5" "TPC-C 5", "balance without a Delivery or a Payment", LostUpdate, NonrepeatableRead, Nothing;
        {read [("end", "-30")]; tags []; committed ["c1", "c2"];
         "the balance lacks the Delivery, which committed"}
        {read [("end", "100")]; tags []; committed ["c1", "c2"];
         "the balance lacks the Payment, which committed"}
    "6" "TPC-C 6", "balance with a Delivery of a rollback", G1a, DirtyRead, Nothing;
        {read [("end", "70")]; tags []; committed ["c2"];
         "the balance has the Delivery, which was rolled back"}
    "7" "TPC-C 7", "two prices of an item", GSingle, NonrepeatableRead, Nothing;
        {read [("x2", "100"), ("y2", "220 / 110")]; tags []; committed ["w3", "c2"];
         "New-Order read 100 for an item, and then 110"}
    "8" "TPC-C 8", "phantom of a New-Order for a Delivery", GSinglePredicate, Phantom, Nothing;
        {read [("r1", ""), ("s1", "3001")]; tags []; committed ["n2", "c1"];
         "Delivery found no order, and then order 3001"}
    "9" "TPC-C 9", "phantom of a New-Order for an Order-Status", GSinglePredicate, Phantom, Nothing;
        {read [("r1", "3000"), ("s1", "3001")]; tags []; committed ["n2", "c1"];
         "Order-Status found order 3000 last, and then order 3001"}
}
