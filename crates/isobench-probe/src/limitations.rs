//! Known limitations: what a product permits although its manual excludes it, and which is known of
//! it.
//!
//! They are a class of their own, so that a probe that finds nothing else is a success.

use serde::Serialize;

/// What is known of one product and one anomaly.
#[derive(Debug)]
pub struct Limitation {
    /// The product's name.
    pub product: &'static str,
    /// The anomaly's [`name`](crate::anomalies::Probe::name).
    pub anomaly: &'static str,
    /// Versions in which it was seen. Others aren't known to be without it.
    pub seen_in: &'static [&'static str],
    /// Why, in a sentence.
    pub why: &'static str,
    /// SQL for two psql sessions, with `{transactions}` for the number of transactions in between.
    text: &'static str,
}

/// All.
pub static LIMITATIONS: &[Limitation] = &[Limitation {
    product: "PostgreSQL",
    anomaly: "G2-item, summarised",
    seen_in: &["15.18", "15.20", "18.4"],
    why: "PostgreSQL summarises old transactions once more have committed beside an open one than it can keep in detail, and a \
          summary doesn't say with whom a transaction conflicted",
    text: include_str!("limitations/summarisation.sql"),
}];

/// A known limitation as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// The product of which it is known.
    pub product: &'static str,
    /// Versions in which it was seen.
    pub seen_in: &'static [&'static str],
    /// Why, in a sentence.
    pub why: &'static str,
    /// SQL to paste into two psql sessions.
    pub reproduction: String,
}

/// What is known of this product and this anomaly, for a server that needs so many transactions in
/// between.
pub fn known(product: &str, anomaly: &str, transactions: u64) -> Option<Known> {
    let found = LIMITATIONS
        .iter()
        .find(|limitation| limitation.product == product && limitation.anomaly == anomaly)?;
    Some(Known {
        product: found.product,
        seen_in: found.seen_in,
        why: found.why,
        reproduction: found.reproduction(transactions),
    })
}

impl Limitation {
    /// SQL to paste into two psql sessions, with so many transactions in between.
    pub fn reproduction(&self, transactions: u64) -> String {
        self.text.replace("{transactions}", &transactions.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anomalies::PROBES;

    #[test]
    fn limitations_are_of_anomalies_that_are_probed() {
        for limitation in LIMITATIONS {
            assert!(PROBES.iter().any(|probe| probe.name == limitation.anomaly), "{}", limitation.anomaly);
        }
        let found = known("PostgreSQL", "G2-item, summarised", 610).expect("the one");
        assert!(found.reproduction.contains("1..610"), "{}", found.reproduction);
        assert_eq!(known("CockroachDB", "G2-item, summarised", 610), None);
        assert_eq!(known("PostgreSQL", "G2-item", 610), None);
    }
}
