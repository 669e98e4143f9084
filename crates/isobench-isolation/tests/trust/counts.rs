//! Naive counts of lost updates, and of the anomalies among registers that aren't cycles.

use std::collections::BTreeMap;

use isobench_isolation::Anomaly;
use isobench_isolation::check::Report;
use isobench_isolation::history::{Key, Operation, Version};

use crate::naive::Case;
use crate::naive::explain::{Source, same};

/// A count that is wrong, if any; only for histories of registers with known version orders.
pub fn wrong_count(case: &Case<'_>, report: &Report) -> Option<String> {
    let counts = case.proved();
    let orders: BTreeMap<Key, Vec<usize>> =
        case.known_orders(&counts).into_iter().map(|(key, order)| (key, order.first)).collect();
    let mut expected: BTreeMap<Anomaly, u64> = BTreeMap::new();
    for reader in (0..case.len()).filter(|&index| counts[index]) {
        let mut own: BTreeMap<Key, Version> = BTreeMap::new();
        let mut lost: BTreeMap<Key, bool> = BTreeMap::new();
        for operation in &case.operations[reader] {
            let (key, version) = match *operation {
                Operation::Write { key, version } => {
                    own.insert(key, version);
                    continue;
                }
                Operation::Read { key, version } => (key, version),
                _ => return None,
            };
            if let Some(own) = own.get(&key) {
                if version == Version::INITIAL || !same(version, *own) {
                    *expected.entry(Anomaly::Internal).or_default() += 1;
                }
                continue;
            }
            let order = orders.get(&key).map_or(&[][..], Vec::as_slice);
            let place = |writer: usize| order.iter().position(|&it| it == writer);
            let (anomaly, next) = match case.source(&counts, reader, key, version) {
                Source::Initial => (None, Some(0)),
                Source::Writer(writer, true) => (None, place(writer).map(|it| it + 1)),
                Source::Writer(writer, false) => (Some(Anomaly::G1b), place(writer).map(|it| it + 1)),
                Source::Aborted(_) => (Some(Anomaly::G1a), None),
                // The reader's own later write, or a counter that belongs to another value, is a
                // different anomaly.
                Source::Nobody if case.writers_of(key, version).contains(&reader) => {
                    (Some(Anomaly::Internal), None)
                }
                Source::Nobody if case.is_of_another_counter(key, version) => (None, None),
                Source::Nobody => (Some(Anomaly::GarbageRead), None),
            };
            if let Some(anomaly) = anomaly {
                *expected.entry(anomaly).or_default() += 1;
            }
            let late = matches!((next, place(reader)), (Some(next), Some(own)) if next < own);
            *lost.entry(key).or_default() |= late;
        }
        let pairs = lost.values().filter(|lost| **lost).count() as u64;
        if pairs > 0 {
            *expected.entry(Anomaly::LostUpdate).or_default() += pairs;
        }
    }
    let counted = [Anomaly::GarbageRead, Anomaly::Internal, Anomaly::G1a, Anomaly::G1b, Anomaly::LostUpdate];
    counted.into_iter().find_map(|anomaly| {
        let finding = report.findings.iter().find(|finding| finding.anomaly == anomaly);
        let found = finding.map_or(0, |finding| finding.count.found);
        let expected = expected.get(&anomaly).copied().unwrap_or(0);
        (found != expected).then(|| format!("{anomaly:?}: counted {found}, expected {expected}"))
    })
}
