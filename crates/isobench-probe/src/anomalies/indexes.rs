//! Write skew through an index of each of PostgreSQL's methods: at serializable its locks have to show it.
//!
//! The keys that are searched for aren't there, so no lock on a row of the table shows it. The index has
//! many pages, and the keys belong to different ones, so it isn't shown by a page that all share. A run whose
//! plan doesn't use the index decides nothing.

use isobench_isolation::Anomaly;

use super::{Evidence, Phenomenon, Probe, Takes};

probes! {
    /// The methods.
    INDEXES from "indexes/":
    "btree" "btree", "write skew through btree", G2, Unnamed, Nothing, plans "p1" "p2";
        {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each missed the key that the other one inserted"}
    "hash" "hash", "write skew through hash", G2, Unnamed, Nothing, plans "p1" "p2";
        {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each missed the key that the other one inserted"}
    "gist" "gist", "write skew through gist", G2, Unnamed, Nothing, plans "p1" "p2";
        {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each missed the key that the other one inserted"}
    "spgist" "spgist", "write skew through spgist", G2, Unnamed, Nothing, plans "p1" "p2";
        {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each missed the key that the other one inserted"}
    "gin" "gin", "write skew through gin", G2, Unnamed, Nothing, plans "p1" "p2";
        {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each missed the key that the other one inserted"}
    "brin" "brin", "write skew through brin", G2, Unnamed, Nothing, plans "p1" "p2";
        {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each missed the key that the other one inserted"}
}
