//! Write skew through an index of each of PostgreSQL's methods: at serializable its locks have to show it.
//!
//! The keys that are searched for aren't there, so no lock on a row of the table shows it. The index has
//! many pages, and the keys belong to different ones, so it isn't shown by a page that all share. A run whose
//! plan doesn't use the index decides nothing.

use isobench_isolation::Anomaly;

use super::{Evidence, Phenomenon, Probe, Takes};

/// Declares a row for each method, all with the same steps.
macro_rules! methods {
    ($($method:literal)*) => {
        probes! {
            /// The methods.
            INDEXES from "indexes/":
            $($method $method, concat!("write skew through ", $method), G2, Unnamed, Nothing, plans "p1" "p2";
                {read [("r1", "0"), ("r2", "0")]; tags []; committed ["c1", "c2"];
                 "T1 and T2 each missed the key that the other one inserted"})*
        }
    };
}

methods! { "btree" "hash" "gist" "spgist" "gin" "brin" }
