//! Observations beside the clients' counts, over all rounds: waits, predicate locks, processor
//! time.

use crate::document::{Round, WaitShare};

/// The sessions' states: each state or wait event's share of all sessions in all samples, the
/// largest first.
pub fn waits(rounds: &[&Round]) -> Vec<WaitShare> {
    let mut sums: Vec<(&str, &str, u64)> = Vec::new();
    for row in rounds.iter().filter_map(|round| round.server.as_ref()).flat_map(|server| &server.waits) {
        let seen: u64 = row.sessions.iter().copied().map(u64::from).sum();
        match sums
            .iter_mut()
            .find(|(kind, event, _)| (*kind, *event) == (row.kind.as_str(), row.event.as_str()))
        {
            Some(sum) => sum.2 += seen,
            None => sums.push((&row.kind, &row.event, seen)),
        }
    }
    let all: u64 = sums.iter().map(|sum| sum.2).sum();
    sums.retain(|sum| sum.2 > 0);
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.2));
    let share = |(kind, event, seen): (&str, &str, u64)| WaitShare {
        kind: kind.to_owned(),
        event: event.to_owned(),
        share: seen as f64 / all as f64,
    };
    sums.into_iter().map(share).collect()
}

/// The most predicate locks that any sample of any round found.
pub fn predicate_locks(rounds: &[&Round]) -> Option<u64> {
    rounds.iter().filter_map(|round| round.server.as_ref()?.most_predicate_locks()).max()
}

/// Microseconds of the measuring process for each committed transaction.
pub fn client_cpu_us(rounds: &[&Round]) -> Option<f64> {
    per_committed(rounds, |round| round.client_cpu_s)
}

/// Microseconds of the server's processes for each committed transaction.
pub fn server_cpu_us(rounds: &[&Round]) -> Option<f64> {
    per_committed(rounds, |round| Some(round.server.as_ref()?.processes?.cpu_s))
}

/// Unknown if it is unknown in any round.
fn per_committed(rounds: &[&Round], seconds: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
    let seconds: Option<Vec<f64>> = rounds.iter().map(|round| seconds(round)).collect();
    let committed: u64 = rounds.iter().map(|round| round.transactions.committed).fold(0, u64::saturating_add);
    let sum: f64 = seconds?.iter().sum();
    (committed > 0).then_some(sum * 1e6 / committed as f64).filter(|each| each.is_finite())
}
