//! Retries hidden between clients and server: the server rolled back more than the clients saw fail.

use super::{Diagnosis, DiagnosisKind, place};
use crate::document::{Cell, Document};
use crate::factor::{Assignment, ENDPOINT};
use crate::numbers::{count, counted};
use crate::rounds::{counted_ledger, counted_rounds};

/// Fewer rollbacks than this, and than this share of the attempts, may have other reasons.
const FEW: u64 = 10;
const SHARE: f64 = 0.01;

/// What the server and the clients counted of rollbacks.
struct Counted {
    ours: u64,
    servers: u64,
}

impl Counted {
    /// In all rounds of a row; `None` if the server's counts are unknown.
    fn of(cell: &Cell) -> Option<Counted> {
        let servers = counted_rounds(cell).into_iter().filter_map(|round| round.server.as_ref());
        let rows = servers.flat_map(|server| &server.comparison).filter(|row| row.what == "rollbacks");
        rows.fold(None, |sum: Option<Counted>, row| {
            let sum = sum.unwrap_or(Counted { ours: 0, servers: 0 });
            Some(Counted {
                ours: sum.ours.saturating_add(row.ours),
                servers: sum.servers.saturating_add(row.servers),
            })
        })
    }

    fn extra(&self) -> u64 {
        self.servers.saturating_sub(self.ours)
    }
}

/// Diagnoses a row whose clients reach the server by an endpoint that isn't the direct one.
pub(super) fn of(document: &Document, cell: &Cell) -> Option<Diagnosis> {
    let endpoint = cell.varied.get(ENDPOINT).filter(|endpoint| *endpoint != DIRECT)?;
    let found = Counted::of(cell)?;
    let attempts = counted_ledger(cell).attempts;
    // Attempts whose end is unknown may have been rolled back.
    let uncertain = attempts.cut_off.saturating_add(attempts.ambiguous);
    let extra = found.extra().saturating_sub(uncertain);
    if extra < FEW || (extra as f64) < SHARE * attempts.started as f64 {
        return None;
    }
    // Other users of the database would roll back meanwhile, too.
    let rest = |cell: &Cell| Assignment::of(cell).without(|name| name == ENDPOINT);
    let direct = |other: &&Cell| {
        !other.calibration
            && other.varied.get(ENDPOINT).is_some_and(|way| way == DIRECT)
            && rest(other) == rest(cell)
    };
    let beside = document.cells.iter().find(direct).and_then(Counted::of)?;
    if beside.extra().saturating_mul(10) > extra {
        return None;
    }
    let sentence = format!(
        "At {} the server rolled back {}, but the clients saw only {} fail; by the direct way the difference is {}. \
         Something at {endpoint} may retry them: its retries are in the latencies, and not in the conflict ratio.",
        place(document, cell),
        counted(found.servers, "transaction"),
        count(found.ours),
        count(beside.extra()),
    );
    let conflict_ratio = cell.summary.conflict_ratio;
    Some(Diagnosis { kind: DiagnosisKind::HiddenRetries, relations: Vec::new(), conflict_ratio, sentence })
}

/// The name of the way without anything in between.
const DIRECT: &str = "direct";
