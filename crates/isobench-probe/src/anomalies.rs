//! The anomalies that are probed, as a table: an interleaving for each, and the evidence that the
//! level permits it.
//!
//! The interleavings are `anomalies/*.spec`. They follow a rule: a step that may have to wait is
//! the last one of its session until the transaction that it may wait for has ended. So they can't
//! get stuck on any server. Sources: Adya 1999; Berenson et al. 1995; Bailis et al. 2013 (OTV, PMP,
//! and P4 as in Kleppmann's Hermitage); Cerone and Gotsman 2018 (long fork); Fekete, O'Neil and
//! O'Neil 2004 (read-only anomaly).

use isobench_isolation::{Anomaly, Level};
use serde::Serialize;

/// An anomaly and its interleaving.
#[derive(Debug)]
pub struct Probe {
    /// The name in the literature.
    pub name: &'static str,
    /// The common name.
    pub known_as: &'static str,
    /// The dependencies that it shows, which determine the models that exclude it.
    pub anomaly: Anomaly,
    /// The phenomenon of the SQL standard that it is an instance of.
    pub phenomenon: Phenomenon,
    /// The file's name, for messages.
    pub file: &'static str,
    /// The interleaving.
    pub spec: &'static str,
    /// The evidence that it is permitted; any of these suffices.
    pub permitted: &'static [Evidence],
    /// What it takes besides sessions.
    pub takes: Takes,
    /// Steps that explain a plan, which has to use an index.
    pub plans: &'static [&'static str],
}

/// A collection of interleavings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tests {
    /// Those of the literature's anomalies.
    #[default]
    Anomalies,
    /// TPC-C's isolation tests.
    Tpcc,
    /// Races of applications.
    Races,
    /// Write skew through indexes of each method.
    Indexes,
}

/// The collections and their names.
pub(crate) const COLLECTIONS: [(&str, Tests); 4] = [
    ("anomalies", Tests::Anomalies),
    ("tpcc", Tests::Tpcc),
    ("races", Tests::Races),
    ("indexes", Tests::Indexes),
];

impl Tests {
    /// The interleavings.
    pub fn probes(self) -> &'static [Probe] {
        match self {
            Tests::Anomalies => PROBES,
            Tests::Tpcc => tpcc::TPCC,
            Tests::Races => races::RACES,
            Tests::Indexes => indexes::INDEXES,
        }
    }

    /// What they find out, as a title.
    pub const fn title(self) -> &'static str {
        match self {
            Tests::Anomalies => "which anomalies each level permits",
            Tests::Tpcc => "what TPC-C's isolation tests (clause 3.4.2) find at each level",
            Tests::Races => "which races of applications each level permits",
            Tests::Indexes => "through which index methods each level permits write skew",
        }
    }

    /// One of them.
    pub const fn one(self) -> &'static str {
        match self {
            Tests::Anomalies => "anomaly",
            Tests::Tpcc => "test",
            Tests::Races => "race",
            Tests::Indexes => "index method",
        }
    }
}

impl std::str::FromStr for Tests {
    type Err = String;

    fn from_str(text: &str) -> Result<Tests, String> {
        let known = COLLECTIONS.iter().find(|(name, _)| *name == text).map(|(_, tests)| *tests);
        known.ok_or_else(|| "use anomalies, races, indexes or tpcc".to_owned())
    }
}

/// What an interleaving takes besides sessions on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// The step `many` is repeated, and the anomaly is probed only at [`Level::Serializable`]: at
    /// other levels it shows nothing more than plain write skew.
    Transactions,
    /// Sessions whose names begin with `standby` are on a standby, for which the manual promises nothing;
    /// probed where there is one, below [`Level::Serializable`], which it doesn't run.
    Standby,
}

/// Evidence, all of which a run has to show.
#[derive(Debug)]
pub struct Evidence {
    /// Steps and the results of their queries: values separated by blanks, rows by `; `, queries by
    /// ` / `.
    pub read: &'static [(&'static str, &'static str)],
    /// Steps and their command tags.
    pub tags: &'static [(&'static str, &'static str)],
    /// Steps that commit.
    pub committed: &'static [&'static str],
    /// Steps that don't wait.
    pub at_once: &'static [&'static str],
    /// The meaning, in words.
    pub says: &'static str,
}

/// The standard's phenomena in their broad interpretation (Berenson et al. 1995, §3), and its other
/// requirements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phenomenon {
    /// "No updates will be lost", at any level.
    DirtyWrite,
    /// P1.
    DirtyRead,
    /// P2.
    NonrepeatableRead,
    /// P3.
    Phantom,
    /// None of them, but the definition of serializable excludes it too.
    Unnamed,
}

impl Phenomenon {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Phenomenon::DirtyWrite => "dirty write",
            Phenomenon::DirtyRead => "dirty read (P1)",
            Phenomenon::NonrepeatableRead => "nonrepeatable read (P2)",
            Phenomenon::Phantom => "phantom (P3)",
            Phenomenon::Unnamed => "unnamed",
        }
    }

    /// True if the standard excludes it at a level. Source: SQL:2016 part 2, §4.41.4, table 9.
    pub fn excluded_at(self, level: Level) -> bool {
        level
            >= match self {
                Phenomenon::DirtyWrite => Level::ReadUncommitted,
                Phenomenon::DirtyRead => Level::ReadCommitted,
                Phenomenon::NonrepeatableRead => Level::RepeatableRead,
                Phenomenon::Phantom | Phenomenon::Unnamed => Level::Serializable,
            }
    }
}

/// Declares the rows; the file's name selects the interleaving.
macro_rules! probes {
    ($(#[$doc:meta])* $list:ident from $folder:literal: $($file:literal $name:literal, $known_as:expr, $anomaly:ident, $phenomenon:ident, $takes:ident $(, plans $($plan:literal)+)?;
        $({read $read:expr; tags $tags:expr; committed $committed:expr; $(at_once $at_once:literal;)?
            $says:literal})+)*) => {
        $(#[$doc])*
        pub static $list: &[Probe] = &[$(Probe {
            name: $name,
            known_as: $known_as,
            anomaly: Anomaly::$anomaly,
            phenomenon: Phenomenon::$phenomenon,
            file: concat!($file, ".spec"),
            spec: include_str!(concat!($folder, $file, ".spec")),
            permitted: &[$(Evidence {
                read: &$read,
                tags: &$tags,
                committed: &$committed,
                at_once: &[$($at_once)?],
                says: $says,
            }),+],
            takes: Takes::$takes,
            plans: &[$($($plan),+)?],
        }),*];
    };
}

pub mod indexes;
pub mod races;
pub mod tpcc;

probes! {
    /// All probes, the most severe anomaly first.
    PROBES from "anomalies/":
    "dirty-write" "G0", "dirty write", G0, DirtyWrite, Nothing;
        {read [("end", "12; 11")]; tags []; committed ["c1", "c2"];
         "row 1 ended with T2's value, row 2 with T1's"}
        {read [("end", "11; 12")]; tags []; committed ["c1", "c2"];
         "row 1 ended with T1's value, row 2 with T2's"}
    "aborted-read" "G1a", "aborted read", G1a, DirtyRead, Nothing;
        {read [("r2", "101")]; tags []; committed ["c2"];
         "T2 read 101, which T1 rolled back"}
    "intermediate-read" "G1b", "intermediate read", G1b, DirtyRead, Nothing;
        {read [("r2", "101")]; tags []; committed ["c1", "c2"];
         "T2 read 101, which T1 overwrote before it committed"}
    "circular-flow" "G1c", "circular information flow", G1c, DirtyRead, Nothing;
        {read [("r1", "22"), ("r2", "11")]; tags []; committed ["c1", "c2"];
         "T1 read T2's 22, and T2 read T1's 11"}
    "vanishing" "OTV", "observed transaction vanishes", GSingle, DirtyRead, Nothing;
        {read [("r3", "12 / 19")]; tags []; committed ["c1", "c2", "c3"];
         "T3 read T2's 12, and then 19, which T2 overwrote"}
    "predicate-read" "PMP", "phantom", GSinglePredicate, Phantom, Nothing;
        {read [("r1", ""), ("s1", "3 30")]; tags []; committed ["w2", "c1"];
         "T1 found no row with 30, and then T2's row with 30"}
    "predicate-write" "PMP write", "phantom of a write", GSinglePredicate, Phantom, Nothing;
        {read [("r2", "1 20")]; tags []; committed ["c1", "c2"];
         "T2 deleted all rows with 20, and then read one"}
    "lost-update" "P4", "lost update", LostUpdate, NonrepeatableRead, Nothing;
        {read [("r1", "10"), ("r2", "10")]; tags []; committed ["c1", "c2"];
         "T1 and T2 both read 10, and both wrote"}
    "read-skew" "G-single", "read skew", GSingle, NonrepeatableRead, Nothing;
        {read [("r1x", "10"), ("r1y", "18")]; tags []; committed ["w2", "c1"];
         "T1 read 10 from before T2 and 18 from after it"}
    "read-skew-predicate" "G-single by predicates", "read skew by predicates", GSingle, NonrepeatableRead, Nothing;
        {read [("r1", "1 10; 2 20"), ("s1", "1 12")]; tags []; committed ["w2", "c1"];
         "T1 read 10 by one predicate, and T2's 12 by another"}
    "read-skew-write" "G-single by a write", "read skew of a write", GSingle, NonrepeatableRead, Nothing;
        {read [("r1", "10")]; tags [("d1", "DELETE 0")]; committed ["w2", "c1"];
         "T1 read 10 from before T2, and its DELETE looked at the rows after it"}
    "long-fork" "G-nonadjacent", "long fork", GNonadjacent, NonrepeatableRead, Nothing;
        {read [("r3y", "20"), ("r3x", "11"), ("r4x", "10"), ("r4y", "21")]; tags [];
         committed ["c1", "c2", "c3", "c4"];
         "T3 saw T1's write and not T2's, T4 saw T2's and not T1's"}
    "write-skew" "G2-item", "write skew", G2Item, Unnamed, Nothing;
        {read [("r1", "10; 20"), ("r2", "10; 20")]; tags []; committed ["c1", "c2"];
         "T1 and T2 both read 10 and 20, and each wrote one of them"}
    "read-only" "read-only anomaly", "read-only anomaly", G2Item, Unnamed, Nothing;
        {read [("r2", "0; 0"), ("r3", "0; 20")]; tags []; committed ["w1", "r3", "c2"];
         "T3 read T1's deposit without T2's withdrawal, and T2 did not see the deposit"}
    "write-skew-predicate" "G2", "write skew on a predicate", G2, Unnamed, Nothing;
        {read [("r1", "30"), ("r2", "300")]; tags []; committed ["c1", "c2"];
         "T1 and T2 each summed the class into which the other one inserted"}
    "summarisation" "G2-item, summarised", "write skew after summarisation", G2Item, Unnamed, Transactions;
        {read [("r2", "10"), ("w1", "20")]; tags []; committed ["w1", "c2"];
         "T2 read what T1 overwrote, and overwrote what T1 had read"}
    "long-fork-standby" "G-nonadjacent, standby", "long fork with a standby", GNonadjacent, Unnamed, Standby;
        {read [("r3y", "21"), ("r3x", "10"), ("r4x", "11"), ("r4y", "20")]; tags [];
         committed ["c1", "c2", "c3", "c4"];
         "on the standby T3 saw T2's write and not T1's, on the server T4 saw T1's and not T2's"}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    /// Each file has one interleaving, and the evidence names its steps.
    #[test]
    fn all_interleavings_are_read() {
        for probe in COLLECTIONS.iter().flat_map(|(_, tests)| tests.probes()) {
            let spec = Spec::parse(probe.file, probe.spec).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                (spec.given.as_ref().map(Vec::len), spec.unused().len()),
                (Some(1), 0),
                "{}",
                probe.file
            );
            for evidence in probe.permitted {
                let named = evidence.read.iter().chain(evidence.tags).map(|(step, _)| step);
                for step in named.chain(evidence.committed).chain(evidence.at_once).chain(probe.plans) {
                    assert!(spec.find(step).is_some(), "{}: {step}", probe.file);
                }
            }
            assert_eq!(spec.find("many").is_some(), probe.takes == Takes::Transactions, "{}", probe.file);
            let on_standby = spec.sessions.iter().any(|session| session.name.starts_with("standby"));
            assert_eq!(on_standby, probe.takes == Takes::Standby, "{}", probe.file);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> =
            COLLECTIONS.iter().flat_map(|(_, tests)| tests.probes()).map(|probe| probe.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
