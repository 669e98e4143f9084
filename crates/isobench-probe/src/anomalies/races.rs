//! Races of applications, from the corpus in `examples/public-races`, reduced to the statements that race. The
//! names say the damage; the values that show it are of the tables afterwards.
//!
//! A race that depends on rows by a condition is G2, which only serializable excludes.

use isobench_isolation::Anomaly;

use super::{Evidence, Phenomenon, Probe, Takes};

probes! {
    /// The races, lost updates first.
    RACES from "races/":
    "lost-edit" "lost edit", "lost update", LostUpdate, NonrepeatableRead, Nothing;
        {read [("r1", "0 0"), ("r2", "0 0"), ("end", "7 0")]; tags []; committed ["c1", "c2"];
         "T1's change is gone, as T2 wrote the whole row back"}
        {read [("r1", "0 0"), ("r2", "0 0"), ("end", "0 1")]; tags []; committed ["c1", "c2"];
         "T2's change is gone, as T1 wrote the whole row back"}
    "number-twice" "number used twice", "lost update", LostUpdate, NonrepeatableRead, Nothing;
        {read [("end", "41; 41")]; tags []; committed ["c1", "c2"];
         "two receipts have number 41"}
    "issued-twice" "invoice issued twice", "lost update", LostUpdate, NonrepeatableRead, Nothing;
        {read [("r1", "0"), ("r2", "0"), ("end", "1; 1")]; tags []; committed ["c1", "c2"];
         "the invoice has two tax records"}
    "double-booking" "double booking", "write skew on a predicate", G2, Unnamed, Nothing;
        {read [("r1", "0"), ("r2", "0"), ("end", "10 13; 12 15")]; tags []; committed ["c1", "c2"];
         "two bookings of the venue overlap"}
    "refunded-twice" "more refunded than paid", "write skew on a predicate", G2, Unnamed, Nothing;
        {read [("r1", "0"), ("r2", "0"), ("end", "120")]; tags []; committed ["c1", "c2"];
         "120 of 100 are refunded"}
    "oversold" "oversold stock", "write skew", G2, Unnamed, Nothing;
        {read [("r1", "2"), ("r2", "2"), ("end", "-2")]; tags []; committed ["c1", "c2"];
         "4 of 2 are allocated"}
    "no-administrator" "no administrator left", "write skew", G2, Unnamed, Nothing;
        {read [("r1", "1; 2"), ("r2", "1; 2"), ("end", "0")]; tags []; committed ["c1", "c2"];
         "both resigned, as the other one would remain"}
    "number-behind-lock" "number used twice behind a lock", "write skew on a predicate", G2, Unnamed, Nothing;
        {read [("r1", "1"), ("r2", "1"), ("end", "1; 2; 2")]; tags []; committed ["c1", "c2"];
         "two entries have number 2, though each locked the journal first"}
}
