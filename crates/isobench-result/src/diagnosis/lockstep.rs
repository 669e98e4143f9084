//! Retries in lockstep: transactions that failed together start again together, and fail again.
//!
//! It shows in what was measured: with more clients a transaction takes more attempts and fewer commit, or
//! the same clients commit more if they wait before a retry.

use super::{Diagnosis, DiagnosisKind, place};
use crate::document::{Cell, Document};
use crate::factor::{Assignment, FactorId};
use crate::numbers::{counted, short};
use crate::rounds::counted_ledger;

/// The retry policy without a delay.
const AT_ONCE: &str = "none";

/// Fewer attempts for each commit than this are no problem.
const MANY: f64 = 1.5;

/// Attempts for each commit have to grow by this factor with the clients, or shrink by it with a delay.
const GROWS: f64 = 1.3;

/// Throughput has to differ by this factor.
const DIFFERS: f64 = 1.1;

/// What a row's clients did.
struct Work<'a> {
    cell: &'a Cell,
    /// Attempts for each commit.
    attempts: f64,
    /// Commits per second.
    tps: f64,
}

impl<'a> Work<'a> {
    fn of(cell: &'a Cell) -> Option<Work<'a>> {
        let ledger = counted_ledger(cell);
        let committed = ledger.transactions.committed;
        let attempts = ledger.attempts.started as f64 / committed as f64;
        Some(Work { cell, attempts, tps: cell.summary.tps.mean? }).filter(|_| committed > 0)
    }

    /// "6.2 attempts a commit, 890 commits per second".
    fn said(&self) -> String {
        format!("{} attempts a commit, {} commits per second", short(self.attempts), short(self.tps))
    }
}

/// Diagnoses a row whose retries start at once; `None` if nothing shows that they meet again.
pub(super) fn of(document: &Document, cell: &Cell) -> Option<Diagnosis> {
    if cell.backoff != AT_ONCE || cell.rate.is_some() {
        return None;
    }
    let own = Work::of(cell).filter(|work| work.attempts >= MANY)?;
    let assignment = &Assignment::of(cell);
    let others = |id: FactorId| {
        let other =
            move |other: &&Cell| !other.calibration && assignment.differs_only_in(&Assignment::of(other), id);
        document.cells.iter().filter(other).filter_map(Work::of).collect::<Vec<_>>()
    };
    let delayed = others(FactorId::Backoff).into_iter().max_by(|one, other| one.tps.total_cmp(&other.tps));
    let (found, remedy) = if let Some(delayed) = delayed {
        let helps = delayed.tps >= own.tps * DIFFERS && own.attempts >= delayed.attempts * GROWS;
        let backoff = helps.then_some(&delayed.cell.backoff)?;
        (format!("with --backoff {backoff} {}", delayed.said()), format!("Use --backoff {backoff}."))
    } else {
        let fewer = others(FactorId::Clients).into_iter().filter(|it| it.cell.clients < cell.clients);
        let best = fewer.max_by(|one, other| one.tps.total_cmp(&other.tps))?;
        let grows = own.attempts >= best.attempts * GROWS && best.tps >= own.tps * DIFFERS;
        let clients = counted(u64::from(grows.then_some(best.cell.clients)?), "client");
        (
            format!("with {clients} {}", best.said()),
            "Compare with a delay: --backoff none,exponential.".to_owned(),
        )
    };
    let sentence = format!(
        "Retries at {} start at once (--backoff {AT_ONCE}) and may meet again: {}; {found}. {remedy}",
        place(document, cell),
        own.said()
    );
    let conflict_ratio = cell.summary.conflict_ratio;
    Some(Diagnosis { kind: DiagnosisKind::Lockstep, relations: Vec::new(), conflict_ratio, sentence })
}
