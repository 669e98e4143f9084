//! By how much the clocks of two machines differ, from messages that go there and back.
//!
//! Source: Cristian, "Probabilistic Clock Synchronization", 1989: of several exchanges the fastest bounds
//! the difference best, to half of its duration.

use std::time::Duration;

use crate::{Peers, PeersError};

/// Exchanges with each machine.
const EXCHANGES: usize = 20;

/// What reading a clock twice in place of once may add, in nanoseconds.
const READING_NS: u64 = 1000;

/// By how much rank 0's clock is ahead of a machine's, both counted from when they joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds to be added to the machine's clock.
    pub ahead_ns: i64,
    /// The most by which this may be wrong, in nanoseconds.
    pub within_ns: u64,
    /// The fastest exchange, in nanoseconds.
    pub fastest_ns: u64,
}

impl ClockOffset {
    /// The time of rank 0's clock at which the machine's shows this; never before zero.
    pub fn at_rank_zero(&self, own: Duration) -> Duration {
        let own = i64::try_from(own.as_nanos()).unwrap_or(i64::MAX);
        Duration::from_nanos(u64::try_from(own.saturating_add(self.ahead_ns)).unwrap_or(0))
    }

    /// The time of the machine's clock at which rank 0's shows this; never before zero.
    pub fn own(&self, at_rank_zero: Duration) -> Duration {
        let there = i64::try_from(at_rank_zero.as_nanos()).unwrap_or(i64::MAX);
        Duration::from_nanos(u64::try_from(there.saturating_sub(self.ahead_ns)).unwrap_or(0))
    }

    /// By how much times can be wrong that were told by this offset until it was found to be
    /// `after`: what is unknown of both, and how far the clocks went apart meanwhile.
    pub fn within_until(&self, after: &ClockOffset) -> u64 {
        2 * self.within_ns.max(after.within_ns) + self.ahead_ns.abs_diff(after.ahead_ns) + READING_NS
    }

    /// What an exchange shows: sent and returned at these times of rank 0, answered at that of the other.
    fn of(sent: Duration, answered: Duration, returned: Duration) -> ClockOffset {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let taken = nanos(returned.saturating_sub(sent)).unsigned_abs();
        let middle = nanos(sent).midpoint(nanos(returned));
        ClockOffset {
            ahead_ns: middle.saturating_sub(nanos(answered)),
            within_ns: taken.div_ceil(2),
            fastest_ns: taken,
        }
    }
}

impl Peers {
    /// Compares the clocks of all machines with rank 0's. There, returns the offsets of all, by rank;
    /// elsewhere the own one alone. Ends the phase.
    ///
    /// # Errors
    /// A machine is gone, or doesn't answer within `limit`.
    pub fn compare_clocks(&mut self, limit: Duration) -> Result<Vec<ClockOffset>, PeersError> {
        const WHAT: &str = "comparing the clocks";
        if self.rank() > 0 {
            for _ in 0..EXCHANGES {
                self.receive_from(0, WHAT, limit)?;
                self.send(0, nanos(self.now()).to_le_bytes().to_vec());
            }
            let own = decode(&self.receive_from(0, WHAT, limit)?);
            self.barrier(WHAT, limit)?;
            return Ok(vec![own]);
        }
        let mut offsets = vec![ClockOffset::default()];
        for rank in 1..self.number() {
            let mut best: Option<ClockOffset> = None;
            for _ in 0..EXCHANGES {
                let sent = self.now();
                self.send(rank, Vec::new());
                let answer = self.receive_from(rank, WHAT, limit)?;
                let found = ClockOffset::of(sent, Duration::from_nanos(number(&answer, 0)), self.now());
                if best.is_none_or(|best| found.within_ns < best.within_ns) {
                    best = Some(found);
                }
            }
            let best = best.unwrap_or_default();
            self.send(rank, encode(best));
            offsets.push(best);
        }
        self.barrier(WHAT, limit)?;
        Ok(offsets)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn encode(offset: ClockOffset) -> Vec<u8> {
    let mut bytes = offset.ahead_ns.to_le_bytes().to_vec();
    bytes.extend(offset.within_ns.to_le_bytes());
    bytes.extend(offset.fastest_ns.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> ClockOffset {
    ClockOffset {
        ahead_ns: number(bytes, 0).cast_signed(),
        within_ns: number(bytes, 8),
        fastest_ns: number(bytes, 16),
    }
}

/// The number at this place of a message.
fn number(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    found.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::engine::tests::{LIMIT, all};

    #[test]
    fn an_exchange_bounds_the_difference() {
        let ms = Duration::from_millis;
        let found = ClockOffset::of(ms(100), ms(40), ms(110));
        let expected = ClockOffset { ahead_ns: 65_000_000, within_ns: 5_000_000, fastest_ns: 10_000_000 };
        assert_eq!(found, expected);
        assert_eq!((found.at_rank_zero(ms(40)), found.own(ms(105))), (ms(105), ms(40)));
        let later = ClockOffset { ahead_ns: 65_300_000, within_ns: 6_000_000, ..found };
        assert_eq!(found.within_until(&later), 12_301_000);
        assert_eq!(decode(&encode(found)), found);
        let behind = ClockOffset::of(ms(10), ms(90), ms(10));
        assert_eq!((behind.ahead_ns, behind.at_rank_zero(ms(1))), (-80_000_000, Duration::ZERO));
    }

    #[test]
    fn the_true_difference_lies_within_the_bound() {
        let found = all(3, |mut peers| {
            // Machines join at different times, so their clocks differ.
            let before = peers.compare_clocks(LIMIT).expect("all answer");
            thread::sleep(Duration::from_millis(20));
            let after = peers.compare_clocks(LIMIT).expect("all answer");
            peers.leave(LIMIT).expect("all leave");
            (before, after)
        });
        for rank in 1..3 {
            let (before, after) = (&found[rank].0[0], &found[rank].1[0]);
            assert_eq!(*before, found[0].0[rank], "both know the same");
            let apart = before.ahead_ns.abs_diff(after.ahead_ns);
            assert!(apart <= before.within_ns + after.within_ns, "{before:?} {after:?}");
        }
    }
}
