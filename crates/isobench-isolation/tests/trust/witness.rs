//! Verifies each step of a witness in the history: that it is the cycle, or the fact, that it
//! claims to be.

mod inferred;

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::check::{Dependency, Finding, Report, WitnessStep};
use isobench_isolation::history::{Key, Operation};
use isobench_isolation::{Anomaly, Order};

use crate::naive::cycles::{class, each_cycle};
use crate::naive::explain::{Edge, Explained, Source};
use crate::naive::judge::needs;
use crate::naive::{Case, KnownOrder};

/// Returns an error in the witnesses of a report.
pub fn verify(case: &Case<'_>, report: &Report) -> Result<(), String> {
    let known = Facts::new(case);
    for finding in &report.findings {
        known
            .verify(finding)
            .map_err(|why| format!("{:?}: {why}\n{:#?}", finding.anomaly, finding.witness))?;
    }
    Ok(())
}

/// The facts that hold in all possible version orders of a history.
struct Facts<'c> {
    case: &'c Case<'c>,
    counts: Vec<bool>,
    orders: BTreeMap<Key, KnownOrder>,
    /// Pairs of a row's writers of which the second read the first's version before writing.
    follows: BTreeMap<Key, Vec<(usize, usize)>>,
    /// The conclusions from one of the possible version orders.
    explained: Explained,
    /// True if it is the only one.
    decided: bool,
}

impl<'c> Facts<'c> {
    fn new(case: &'c Case<'c>) -> Facts<'c> {
        let counts = case.proved();
        let orders = case.known_orders(&counts);
        let follows = orders.keys().map(|&key| (key, write_follows_read(case, &counts, key))).collect();
        let any = |order: &KnownOrder| order.first.iter().chain(&order.rest).copied().collect();
        let explained =
            case.explain(&counts, &orders.iter().map(|(&key, order)| (key, any(order))).collect());
        let twice = explained.flags.contains(&Anomaly::LostUpdate);
        let decided = !twice && orders.values().all(|order| order.rest.len() < 2);
        Facts { case, counts, orders, follows, explained, decided }
    }

    /// True if the reads contradict each other, or transactions wrote a row in turns.
    fn is_nonsense(&self) -> bool {
        let nonsense =
            [Anomaly::GarbageRead, Anomaly::Internal, Anomaly::IncompatibleOrder, Anomaly::DuplicateWrite];
        nonsense.iter().any(|anomaly| self.explained.flags.contains(anomaly))
            || self.orders.keys().any(|&key| self.case.interleaved(&self.counts, key))
    }

    /// True if one writer's version of a row precedes another's in all possible orders.
    fn is_before(&self, key: Key, one: usize, other: usize) -> bool {
        let Some(order) = self.orders.get(&key) else { return false };
        let place = |writer| order.first.iter().position(|&it| it == writer);
        if !order.rest.contains(&other) {
            return place(one).is_some() && place(one) < place(other);
        }
        let mut reached = vec![one];
        let mut next = 0;
        while let Some(&writer) = reached.get(next) {
            for &(before, after) in &self.follows[&key] {
                if before == writer && !reached.contains(&after) {
                    reached.push(after);
                }
            }
            next += 1;
        }
        place(one).is_some() || one != other && reached.contains(&other)
    }

    fn verify(&self, finding: &Finding) -> Result<(), String> {
        let steps = &finding.witness.steps;
        if steps.is_empty() {
            return Err("no steps".to_owned());
        }
        for step in steps {
            for index in [step.from, step.to] {
                let transaction = self.case.history.transactions().get(index).ok_or("no such transaction")?;
                let named = format!("T{}", transaction.id);
                if !step.why.contains(&named) {
                    return Err(format!("{named} isn't named in: {}", step.why));
                }
            }
        }
        if finding.count.found == 0 {
            return Err("found, but counted 0 times".to_owned());
        }
        if finding.witness.is_inferred() {
            // If the reads contradict each other, the dependencies are ambiguous.
            if self.is_nonsense() { Ok(()) } else { self.verify_inferred(finding) }
        } else if steps.iter().any(|step| step.dependency.is_some()) {
            self.verify_cycle(finding, steps)
        } else {
            self.verify_fact(finding, steps)
        }
    }

    fn verify_cycle(&self, finding: &Finding, steps: &[WitnessStep]) -> Result<(), String> {
        let mut cycle: Vec<Edge> = Vec::new();
        for (place, step) in steps.iter().enumerate() {
            let dependency = step.dependency.ok_or("a step without dependency in a cycle")?;
            if step.to != steps[(place + 1) % steps.len()].from {
                return Err(format!("step {place} doesn't lead to the next"));
            }
            if !self.counts[step.from] || !self.counts[step.to] {
                return Err(format!("step {place}: a transaction that nothing proves to be committed"));
            }
            // If no version order explains the reads, the dependencies are ambiguous.
            if !self.is_nonsense()
                && !self.holds((step.from, step.to, dependency))
                && !self.is_lost(finding, step)
            {
                return Err(format!("step {place} doesn't hold"));
            }
            cycle.push((step.from, step.to, dependency));
        }
        self.verify_joined(finding, &cycle)?;
        let distinct: BTreeSet<_> = cycle.iter().map(|edge| edge.0).collect();
        if distinct.len() != cycle.len() {
            return Err("a transaction twice in the cycle".to_owned());
        }
        let order = cycle.iter().map(|edge| needs(edge.2)).max().unwrap_or(Order::Data);
        if order != finding.order {
            return Err(format!("the witness needs {order:?}, the finding says {:?}", finding.order));
        }
        let class = match class(&cycle) {
            // If the version order is unknown, two transactions that read the same version and
            // wrote the row are evidence.
            Anomaly::GSingle | Anomaly::G2Item if finding.anomaly == Anomaly::LostUpdate => {
                Anomaly::LostUpdate
            }
            class => class,
        };
        if class != finding.anomaly {
            return Err(format!("the cycle is {class:?}"));
        }
        self.verify_smallest(finding, cycle.len())
    }

    /// Consecutive steps of sessions and of time are reported as one, if a single order justifies
    /// it.
    fn verify_joined(&self, finding: &Finding, cycle: &[Edge]) -> Result<(), String> {
        for (place, one) in cycle.iter().enumerate() {
            let two = cycle[(place + 1) % cycle.len()];
            let outside = needs(one.2) > Order::Data && needs(two.2) > Order::Data;
            if outside && self.case.precedes(one.0, two.1, finding.order).is_some() {
                return Err(format!("step {place} and the next could be one"));
            }
        }
        Ok(())
    }

    fn verify_smallest(&self, finding: &Finding, length: usize) -> Result<(), String> {
        // A read of an intermediate version can be taken for the version before or after it.
        let unclear = self.is_nonsense() || self.explained.flags.contains(&Anomaly::G1b);
        if !finding.witness.smallest || !self.decided || unclear || self.case.len() > 6 {
            return Ok(());
        }
        let edges = self.case.edges(&self.counts, &self.explained, finding.order);
        let mut least = usize::MAX;
        each_cycle(&edges, self.case.len(), &mut |cycle| {
            if class(cycle) == finding.anomaly && !(finding.anomaly == Anomaly::GSingle && self.loses(cycle))
            {
                least = least.min(cycle.len());
            }
        });
        if least < length { Err(format!("there is a cycle of {least}")) } else { Ok(()) }
    }

    /// True if the anti-dependency of a cycle belongs to a lost update, which isn't also reported
    /// as G-single.
    fn loses(&self, cycle: &[Edge]) -> bool {
        cycle
            .iter()
            .filter(|edge| edge.2 == Dependency::ReadWrite)
            .any(|edge| self.orders.keys().any(|&key| self.is_before(key, edge.1, edge.0)))
    }

    /// True if a step leads from a version lost by a lost update to the one that overwrote it:
    /// there may be others in between.
    fn is_lost(&self, finding: &Finding, step: &WitnessStep) -> bool {
        finding.anomaly == Anomaly::LostUpdate
            && step.dependency == Some(Dependency::WriteWrite)
            && self.orders.keys().any(|&key| self.is_before(key, step.from, step.to))
    }

    /// True if the history proves this dependency.
    fn holds(&self, (from, to, dependency): Edge) -> bool {
        match dependency {
            Dependency::Session => self.case.precedes(from, to, Order::Session) == Some(dependency),
            Dependency::RealTime => {
                let (a, b) = (self.case.history.transactions()[from], self.case.history.transactions()[to]);
                self.case.precedes(from, to, Order::RealTime).is_some() && a.end < b.begin
            }
            Dependency::WriteRead | Dependency::PredicateReadWrite => {
                self.explained.edges.contains(&(from, to, dependency))
            }
            Dependency::WriteWrite if self.wrote_next(from, to) => true,
            _ if self.decided => self.explained.edges.contains(&(from, to, dependency)),
            Dependency::WriteWrite => self.orders.keys().any(|&key| self.is_before(key, from, to)),
            Dependency::ReadWrite => self.orders.iter().any(|(&key, order)| {
                from != to
                    && order.first.iter().chain(&order.rest).any(|&writer| writer == to)
                    && self.sources(from, key).iter().any(|source| match *source {
                        Source::Initial => true,
                        Source::Writer(writer, _) => self.is_before(key, writer, to),
                        _ => false,
                    })
            }),
        }
    }

    /// True if one transaction wrote the version of a row that directly follows one of the other's
    /// versions, not necessarily its last one.
    fn wrote_next(&self, from: usize, to: usize) -> bool {
        self.orders.keys().any(|&key| {
            let mut written: Vec<(u64, usize)> = Vec::new();
            for writer in (0..self.case.len()).filter(|&index| self.counts[index]) {
                let counters = self.case.counters(key, |index| index == writer);
                written.extend(counters.into_iter().map(|counter| (counter, writer)));
            }
            written.sort_unstable();
            let elements = self.case.longest_list(&self.counts, key).into_iter();
            written.extend(elements.filter_map(|element| Some((0, self.case.appender(key, element)?))));
            written.windows(2).any(|pair| (pair[0].1, pair[1].1) == (from, to))
        })
    }

    /// The versions that a transaction's reads of a row refer to, except for its own writes.
    fn sources(&self, reader: usize, key: Key) -> Vec<Source> {
        let mut sources = Vec::new();
        let other = |element: &i64| {
            let writer = self.case.appender(key, *element)?;
            (writer != reader && self.counts[writer]).then_some(Source::Writer(writer, true))
        };
        for operation in &self.case.operations[reader] {
            match *operation {
                Operation::Read { key: row, version } if row == key => {
                    sources.push(self.case.source(&self.counts, reader, key, version));
                }
                Operation::ReadList { key: row, elements } if row == key => {
                    sources.push(elements.iter().rev().find_map(other).unwrap_or(Source::Initial));
                }
                Operation::Write { key: row, .. } if row == key => break,
                _ => {}
            }
        }
        sources
    }

    /// Verifies a finding other than a cycle: the history shows this anomaly, and the witness has
    /// the right transactions.
    fn verify_fact(&self, finding: &Finding, steps: &[WitnessStep]) -> Result<(), String> {
        if finding.order != Order::Data {
            return Err("no order is needed for this".to_owned());
        }
        if self.is_nonsense() {
            // The same contradiction can be called by several names.
            return Ok(());
        }
        if !self.explained.flags.contains(&finding.anomaly) && finding.anomaly != Anomaly::LostUpdate {
            return Err("the history doesn't show this".to_owned());
        }
        let aborted = |index: usize| !self.counts[index];
        match finding.anomaly {
            Anomaly::G1a | Anomaly::DirtyUpdate => {
                let proof = steps.iter().any(|step| aborted(step.from) && !aborted(step.to));
                proof
                    .then_some(())
                    .ok_or_else(|| "no step from an aborted transaction to a committed one".to_owned())
            }
            _ if steps.iter().any(|step| aborted(step.from) && aborted(step.to)) => {
                Err("aborted transactions only".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Pairs of a row's writers of which the second read the first's version before writing.
fn write_follows_read(case: &Case<'_>, counts: &[bool], key: Key) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for writer in (0..case.len()).filter(|&index| counts[index]) {
        let wrote = |it: &Operation<'_>| matches!(*it, Operation::Write { key: row, .. } if row == key);
        let Some(until) = case.operations[writer].iter().position(wrote) else { continue };
        for operation in &case.operations[writer][..until] {
            if let Operation::Read { key: row, version } = *operation
                && row == key
                && let Source::Writer(before, _) = case.source(counts, writer, key, version)
            {
                pairs.push((before, writer));
            }
        }
    }
    pairs
}
