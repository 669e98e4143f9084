//! The queue of a worker's timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Nanos;

/// Instants at which clients want to be called. Timers aren't removed: a client that no longer
/// needs its call ignores it.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl Timers {
    /// Asks for `client` to be called at `at`.
    pub(crate) fn set(&mut self, at: Nanos, client: usize) {
        self.queue.push(Reverse((at, client)));
    }

    /// The earliest instant asked for.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes a timer that is due, and returns its instant and client.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<(Nanos, usize)> {
        if self.next()? > now {
            return None;
        }
        self.queue.pop().map(|Reverse(due)| due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_not_early() {
        let mut timers = Timers::default();
        timers.set(Nanos(30), 3);
        timers.set(Nanos(10), 1);
        timers.set(Nanos(20), 2);
        assert_eq!(timers.next(), Some(Nanos(10)));
        assert_eq!(timers.due(Nanos(9)), None);
        assert_eq!(timers.due(Nanos(25)), Some((Nanos(10), 1)));
        assert_eq!(timers.due(Nanos(25)), Some((Nanos(20), 2)));
        assert_eq!(timers.due(Nanos(25)), None);
    }
}
