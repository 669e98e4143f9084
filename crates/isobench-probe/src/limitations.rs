//! Known limitations: anomalies that a product is known to permit although its manual excludes
//! them.
//!
//! They are reported separately, so that a probe that finds nothing else succeeds.

use serde::Serialize;

/// A known limitation of a product.
#[derive(Debug)]
pub struct Limitation {
    /// The product's name.
    pub product: &'static str,
    /// The anomaly's [`name`](crate::anomalies::Probe::name).
    pub anomaly: &'static str,
    /// The versions in which it was observed. Other versions may have it too.
    pub seen_in: &'static [&'static str],
    /// The reason, as a sentence.
    pub why: &'static str,
    /// SQL for two psql sessions; `{transactions}` is the number of transactions in between.
    text: &'static str,
}

/// All known limitations.
pub static LIMITATIONS: &[Limitation] = &[
    Limitation {
        product: "PostgreSQL",
        anomaly: "G2-item, summarised",
        seen_in: &["10.4 to 18.6", "19rc1"],
        why: "PostgreSQL summarises old transactions if more commit during an open one than it can \
          track individually, and a \
          summary doesn't record which transactions conflicted",
        text: include_str!("limitations/summarisation.sql"),
    },
    Limitation {
        product: "PostgreSQL",
        anomaly: "gist",
        seen_in: &["14.23", "15.18", "15.19", "16.15", "17.11", "18.6"],
        why: "an insert enlarges a page of a GiST index over a key that its transaction has looked for in vain, \
              and an insert of that key by another one is checked on this page alone, which the first hasn't locked",
        text: include_str!("limitations/gist.sql"),
    },
];

/// A known limitation found by a probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownLimitation {
    /// The product.
    pub product: &'static str,
    /// The versions in which it was observed.
    pub seen_in: &'static [&'static str],
    /// The reason, as a sentence.
    pub why: &'static str,
    /// SQL to paste into two psql sessions.
    pub reproduction: String,
}

/// The known limitation of a product for an anomaly, for a server that needs this many transactions
/// in between.
pub fn known(product: &str, anomaly: &str, transactions: u64) -> Option<KnownLimitation> {
    let found = LIMITATIONS
        .iter()
        .find(|limitation| limitation.product == product && limitation.anomaly == anomaly)?;
    Some(KnownLimitation {
        product: found.product,
        seen_in: found.seen_in,
        why: found.why,
        reproduction: found.reproduction(transactions),
    })
}

impl Limitation {
    /// SQL to paste into two psql sessions, with this many transactions in between.
    pub fn reproduction(&self, transactions: u64) -> String {
        self.text.replace("{transactions}", &transactions.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anomalies::COLLECTIONS;

    #[test]
    fn limitations_are_of_anomalies_that_are_probed() {
        for limitation in LIMITATIONS {
            let mut all = COLLECTIONS.iter().flat_map(|(_, tests)| tests.probes());
            assert!(all.any(|probe| probe.name == limitation.anomaly), "{}", limitation.anomaly);
        }
        let found = known("PostgreSQL", "G2-item, summarised", 610).expect("the one");
        assert!(found.reproduction.contains("1..610"), "{}", found.reproduction);
        assert_eq!(known("CockroachDB", "G2-item, summarised", 610), None);
        assert_eq!(known("PostgreSQL", "G2-item", 610), None);
    }
}
