//! Checks a history window by window, so that memory is bounded by the size of a window;
//! dependencies between windows aren't seen.
//!
//! The reports are combined: counts are added, and the verdict is what no window contradicts.
//! Splitting a history into windows is in `history/windows.rs` and `history/binary/windows.rs`.

use std::collections::HashMap;

use crate::check::{
    Blind, Doubt, Doubts, Examined, Finding, Options, Report, Verdict, Witness, check, kept, nothing_checked,
};
use crate::history::{Draft, History};
use crate::model::{Guarantee, Model, Order};

/// Checks the windows of a history, one after the other. Returns the report, and a history with
/// only the transactions of its witnesses, to which their steps refer. `dropped` is the number of
/// transactions that aren't in any window.
///
/// # Errors
/// If a window can't be read.
pub fn check_windows<E>(
    windows: impl IntoIterator<Item = Result<History, E>>,
    dropped: u64,
    options: &Options,
) -> Result<(History, Report), E> {
    let mut together = CombinedReport::default();
    for window in windows {
        let window = window?;
        let report = check(&window, options);
        together.add(&window, report);
    }
    Ok(together.finish(dropped, options))
}

/// The combined reports so far.
#[derive(Default)]
struct CombinedReport {
    windows: u64,
    /// The transactions of the witnesses.
    kept: History,
    draft: Draft,
    examined: Examined,
    anomalous: u64,
    findings: Vec<Finding>,
    not_contradicted: Vec<Vec<Guarantee>>,
    unknown: u64,
    undecided: u64,
    searches_left: u64,
    reads_left: u64,
    orders_differ: u64,
    not_inferred: u64,
    no_instants: bool,
    /// The reasons for withholding the verdicts of windows.
    doubts: Doubts,
    /// The number of windows without a predicate read, and of those in which nothing was shared.
    no_predicates: u64,
    nothing_shared: u64,
}

impl CombinedReport {
    fn add(&mut self, window: &History, report: Report) {
        if self.windows == 0 {
            self.kept = window.blank();
        }
        self.windows += 1;
        self.examined = sum(self.examined, report.examined);
        self.anomalous += report.anomalous;
        for finding in report.findings {
            self.add_finding(window, finding);
        }
        let Verdict { not_contradicted: guarantees, withheld, .. } = report.verdict;
        let judged = withheld.is_empty();
        // Another window may have the missing transactions.
        self.doubts.join(withheld.into_iter().filter(Doubt::is_contradiction).collect());
        if judged && !self.not_contradicted.contains(&guarantees) {
            self.not_contradicted.push(guarantees);
        }
        for blind in report.blind {
            match blind {
                Blind::NoPredicates => self.no_predicates += 1,
                Blind::UnknownOutcomes(more) => self.unknown += more,
                Blind::UndecidedOrder(more) => self.undecided += more,
                // Those of the whole history, which every window repeats.
                Blind::Searches(left) => self.searches_left = left,
                Blind::UnseenWriters(left) => self.reads_left = left,
                Blind::OrdersDiffer(rows) => self.orders_differ = rows,
                Blind::OrderNotInferred(more) => self.not_inferred = self.not_inferred.max(more),
                Blind::NoInstants => self.no_instants = true,
                Blind::NothingShared => self.nothing_shared += 1,
                // Transactions of other windows, which aren't missing.
                Blind::Dropped(_)
                | Blind::Windows(_)
                | Blind::AssumedInitial { .. }
                | Blind::Incomplete { .. } => {}
            }
        }
    }

    fn add_finding(&mut self, window: &History, mut finding: Finding) {
        let known = self.findings.iter().position(|known| known.anomaly == finding.anomaly);
        let Some(known) = known else {
            finding.witness = self.keep(window, finding.witness);
            self.findings.push(finding);
            return;
        };
        let worth = |finding: &Finding| (finding.order, finding.witness.steps.len());
        if worth(&finding) < worth(&self.findings[known]) {
            self.findings[known].witness = self.keep(window, finding.witness);
            self.findings[known].order = finding.order;
        }
        let count = &mut self.findings[known].count;
        count.found = count.found.saturating_add(finding.count.found);
        count.complete &= finding.count.complete;
    }

    /// Copies the transactions of a witness, because its window is discarded.
    fn keep(&mut self, window: &History, mut witness: Witness) -> Witness {
        let mut places = HashMap::new();
        let mut place = |index: usize| {
            *places.entry(index).or_insert_with(|| {
                self.draft.fill(window, index);
                self.kept.push(window.transactions()[index], &self.draft);
                self.kept.transactions().len() - 1
            })
        };
        for step in &mut witness.steps {
            step.from = place(step.from);
            step.to = place(step.to);
        }
        // A smaller one may extend over several windows.
        witness.smallest &= witness.steps.len() <= 2;
        witness
    }

    fn finish(mut self, dropped: u64, options: &Options) -> (History, Report) {
        self.findings.sort_by_key(|finding| finding.anomaly);
        let mut blind = Vec::new();
        let mut note = |is: bool, what: Blind| blind.extend(is.then_some(what));
        note(self.windows > 1, Blind::Windows(self.windows));
        note(self.no_predicates == self.windows, Blind::NoPredicates);
        note(self.unknown > 0, Blind::UnknownOutcomes(self.unknown));
        note(dropped > 0, Blind::Dropped(dropped));
        note(self.undecided > 0, Blind::UndecidedOrder(self.undecided));
        note(self.searches_left > 0, Blind::Searches(self.searches_left));
        note(self.reads_left > 0, Blind::UnseenWriters(self.reads_left));
        note(self.orders_differ > 0, Blind::OrdersDiffer(self.orders_differ));
        note(self.not_inferred > 0, Blind::OrderNotInferred(self.not_inferred));
        note(self.no_instants, Blind::NoInstants);
        note(self.nothing_shared == self.windows, Blind::NothingShared);
        let most = if self.no_instants { options.order.min(Order::Session) } else { options.order };
        let kept = options.promised.and_then(|promised| kept(&self.findings, most, promised));
        let not_contradicted = common(&self.not_contradicted);
        let promised = options.promised;
        self.doubts.join(nothing_checked(&self.examined).into_iter().collect());
        let verdict = Verdict { not_contradicted, promised, kept, withheld: Vec::new() };
        let verdict = verdict.withheld(self.doubts.into_vec());
        self.kept.set_dropped(dropped);
        (
            self.kept,
            Report {
                examined: self.examined,
                findings: self.findings,
                anomalous: self.anomalous,
                verdict,
                blind,
            },
        )
    }
}

/// The strongest guarantees that every window permits.
fn common(windows: &[Vec<Guarantee>]) -> Vec<Guarantee> {
    let all = Model::ALL
        .into_iter()
        .flat_map(|model| Order::ALL.into_iter().map(move |order| Guarantee { model, order }));
    let allowed: Vec<Guarantee> = all
        .filter(|one| windows.iter().all(|window| window.iter().any(|strongest| strongest.implies(*one))))
        .collect();
    let weaker = |one: Guarantee| allowed.iter().any(|other| *other != one && other.implies(one));
    allowed.iter().copied().filter(|one| !weaker(*one)).collect()
}

fn sum(one: Examined, other: Examined) -> Examined {
    Examined {
        committed: one.committed + other.committed,
        aborted: one.aborted + other.aborted,
        unknown: one.unknown + other.unknown,
        proved_committed: one.proved_committed + other.proved_committed,
        operations: one.operations + other.operations,
        write_write: one.write_write + other.write_write,
        write_read: one.write_read + other.write_read,
        read_write: one.read_write + other.read_write,
        predicate: one.predicate + other.predicate,
        // Those of the whole history, which every window repeats.
        confirmed_orders: one.confirmed_orders.max(other.confirmed_orders),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::anomaly::Anomaly;
    use crate::history::{text, windows};

    fn checked(history: &History, size: usize, options: &Options) -> (History, Report) {
        let windows = windows(history, size).map(Ok::<_, Infallible>);
        check_windows(windows, history.dropped(), options).expect("nothing is read")
    }

    const LOST: &str = "\
T1 client=0 10..20: r x = v0, w x = v1/1
T2 client=1 10..20: r x = v0, w x = v1/2
T3 client=0 30..40: r x = v1/1, w x = v2/3
T4 client=1 50..60: r x = v2/3, w x = v3/4
T5 client=0 70..80: r x = v3/4, w x = v4/5
T6 client=1 70..80: r x = v3/4, w x = v4/6
";

    #[test]
    fn counts_add_up_and_the_verdict_is_what_all_allow() {
        let history = text::parse(LOST).expect("parses");
        let promised = Some(Guarantee::of(Model::Serializable));
        let options = Options { promised, ..Options::default() };
        let whole = check(&history, &options);
        let (kept, report) = checked(&history, 2, &options);
        let count = |report: &Report| {
            let lost = |finding: &&Finding| finding.anomaly == Anomaly::LostUpdate;
            report.findings.iter().find(lost).map(|finding| finding.count.found)
        };
        assert_eq!(count(&report), count(&whole), "{report:#?}\n{whole:#?}");
        assert_eq!(report.verdict.kept, Some(false));
        assert_eq!((report.examined.committed, report.anomalous, whole.anomalous), (6, 2, 2));
        assert!(report.blind.contains(&Blind::Windows(3)), "{:?}", report.blind);
        assert!(!report.blind.iter().any(|blind| matches!(blind, Blind::Dropped(_))), "{:?}", report.blind);
        for finding in &report.findings {
            assert!(
                finding.witness.steps.iter().all(|step| step.from.max(step.to) < kept.transactions().len())
            );
        }
        let serializable = |one: &Guarantee| one.model == Model::Serializable;
        assert!(!report.verdict.not_contradicted.iter().any(serializable));
    }

    /// A version that another window wrote isn't a garbage read.
    #[test]
    fn what_reaches_into_another_window_accuses_nobody() {
        let history = text::parse(
            "T1 client=0 1..2: w x = v1/1, w y = 7, a l += 1\nT2 client=0 3..4: r x = v1/1, r y = 7, l l = [1]",
        )
        .expect("parses");
        let (_, report) = checked(&history, 1, &Options::default());
        assert_eq!(report.findings, []);
        assert!(report.blind.contains(&Blind::Windows(2)));
    }

    #[test]
    fn one_window_is_the_history() {
        let history = text::parse(LOST).expect("parses");
        let options = Options::default();
        let (_, report) = checked(&history, 100, &options);
        let whole = check(&history, &options);
        assert_eq!(report.verdict, whole.verdict);
        assert_eq!(report.examined, whole.examined);
        assert_eq!(report.findings.len(), whole.findings.len());
    }
}
