//! The order of the committed writers of one row, proved.
//!
//! **By what was replaced.** Where the server shows the version that a write replaced (PostgreSQL
//! 18: `OLD` in RETURNING; before, `xmin` of a deleted row), the writer follows that version's.
//!
//! **By the row lock.** A transaction that writes a row holds the row's lock from before the
//! statement is answered until it has committed, and no other can write the row meanwhile
//! (PostgreSQL manual, "Row-Level Locks"; the wait of an INSERT for another transaction's deletion
//! or insertion of the same key in a unique index is of the same kind). Let `acquired` be an
//! instant at which the client had seen the write answered, and `sent` one at which it hadn't sent
//! COMMIT yet. If W2 came before W1, W2 had released the lock before W1 got it, so W2's COMMIT had
//! been sent before W1's write was answered. Therefore
//!
//! > `W2.sent > W1.acquired` proves that W1 came before W2.
//!
//! When each write of two transactions is answered before their COMMIT is sent, as in a block of
//! separate statements, one of the two inequalities always holds, and not both. A statement that is
//! its own transaction, or is sent together with its COMMIT, has `sent < acquired`; two of them that
//! overlap in time can't be ordered in this way.
//!
//! (Equal instants would do, if the clock told all instants apart.)
//!
//! Assumptions: one clock for all clients, which never goes backward; locks are held until the end
//! of the transaction, which PostgreSQL breaks only for a subtransaction that is rolled back; the
//! key is unique at every moment. If the server breaks the promise of the lock itself, both
//! inequalities can hold; then nothing is claimed.

/// A committed transaction that wrote the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Writer {
    /// The transaction.
    pub(super) attempt: u32,
    /// An instant at which its first write of the row had been answered.
    pub(super) acquired: u64,
    /// An instant at which its COMMIT hadn't been sent.
    pub(super) sent: u64,
    /// The transaction whose version its first write of the row replaced, if that is known and
    /// wrote the row.
    pub(super) replaced: Option<u32>,
}

/// Sorts the writers of a row. Returns the start of each group of writers whose order among
/// themselves is unknown, most of them of one writer; `None` if the two sources contradict each
/// other.
pub(super) fn prove(writers: &mut [Writer]) -> Option<Vec<usize>> {
    writers.sort_by_key(|writer| (writer.acquired, writer.sent, writer.attempt));
    let mut sent_from = vec![u64::MAX; writers.len() + 1];
    for (index, writer) in writers.iter().enumerate().rev() {
        sent_from[index] = sent_from[index + 1].min(writer.sent);
    }
    let (mut starts, mut sent_until) = (Vec::new(), 0);
    for index in 0..writers.len() {
        // All before come before all from here on, and not the other way round.
        let first = index == 0
            || sent_from[index] > writers[index - 1].acquired && sent_until <= writers[index].acquired;
        if first {
            starts.push(index);
        }
        sent_until = sent_until.max(writers[index].sent);
    }
    let mut groups = Vec::with_capacity(starts.len());
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(writers.len());
        let group = &mut writers[*start..end];
        if group.len() > 1 && follow(group) {
            groups.extend(*start..end);
        } else {
            groups.push(*start);
        }
    }
    agrees(writers, &groups).then_some(groups)
}

/// Sorts a group by what its members replaced. Returns false, with an arbitrary order, if that
/// doesn't tell the whole order.
fn follow(group: &mut [Writer]) -> bool {
    let follower = |of: u32, group: &[Writer]| group.iter().position(|writer| writer.replaced == Some(of));
    let inside = |writer: &Writer, group: &[Writer]| {
        writer.replaced.is_some_and(|replaced| group.iter().any(|other| other.attempt == replaced))
    };
    let mut heads = (0..group.len()).filter(|index| !inside(&group[*index], group));
    let (Some(head), None) = (heads.next(), heads.next()) else { return false };
    drop(heads);
    group.swap(0, head);
    for done in 1..group.len() {
        let before = group[done - 1].attempt;
        let Some(next) = follower(before, &group[done..]) else { return false };
        group.swap(done, done + next);
    }
    true
}

/// True if no writer replaced another version than the one directly before it, as far as known.
fn agrees(writers: &[Writer], groups: &[usize]) -> bool {
    groups.iter().enumerate().all(|(number, start)| {
        let end = groups.get(number + 1).copied().unwrap_or(writers.len());
        let before = number.checked_sub(1).map_or(0..0, |before| groups[before]..*start);
        let single = end - start == 1 && before.len() <= 1;
        let candidates = if single { before } else { before.start..end };
        writers[*start..end].iter().all(|writer| {
            let Some(replaced) = writer.replaced else { return true };
            writers[candidates.clone()].iter().any(|other| other.attempt == replaced)
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn writer(attempt: u32, acquired: u64, sent: u64) -> Writer {
        Writer { attempt, acquired, sent, replaced: None }
    }

    fn order(writers: &[Writer]) -> Vec<u32> {
        writers.iter().map(|writer| writer.attempt).collect()
    }

    #[test]
    fn blocks_are_ordered_by_the_lock() {
        let mut writers = [writer(3, 50, 60), writer(1, 10, 20), writer(2, 21, 40)];
        assert_eq!(prove(&mut writers), Some(vec![0, 1, 2]));
        assert_eq!(order(&writers), [1, 2, 3]);
    }

    #[test]
    fn single_statements_that_overlap_are_not_ordered() {
        let mut writers = [writer(1, 20, 5), writer(2, 30, 10), writer(3, 50, 35)];
        assert_eq!(prove(&mut writers), Some(vec![0, 2]));
        assert_eq!(order(&writers)[2], 3);
    }

    #[test]
    fn what_was_replaced_orders_the_rest() {
        let mut writers = [writer(1, 20, 5), writer(2, 19, 10), writer(3, 50, 35)];
        writers[1].replaced = Some(1);
        assert_eq!(prove(&mut writers), Some(vec![0, 1, 2]));
        assert_eq!(order(&writers), [1, 2, 3]);
    }

    #[test]
    fn equal_instants_prove_nothing() {
        // A block that was answered, and whose COMMIT was sent, at 20, and a single statement that was
        // answered in the same tick, and may have waited for it.
        let mut writers = [writer(1, 20, 10), writer(2, 20, 20)];
        assert_eq!(prove(&mut writers), Some(vec![0]));
    }

    #[test]
    fn contradictions_prove_nothing() {
        // Both held the lock at the same time.
        let mut writers = [writer(1, 10, 30), writer(2, 20, 40)];
        assert_eq!(prove(&mut writers), Some(vec![0]));
        // The third replaced the first one's version, although the second came between.
        let mut writers = [writer(1, 10, 20), writer(2, 21, 40), writer(3, 50, 60)];
        writers[2].replaced = Some(1);
        assert_eq!(prove(&mut writers), None);
    }

    proptest! {
        /// Whatever the client saw of a true order, the proof doesn't contradict it.
        #[test]
        fn nothing_false_is_proved(
            steps in proptest::collection::vec((1..20_u64, 1..20_u64, 0..30_u64, 0..30_u64, any::<bool>(), any::<bool>()), 1..12),
        ) {
            let mut now = 100;
            let mut writers = Vec::new();
            for (attempt, (wait, hold, early, late, block, shown)) in (0_u32..).zip(steps) {
                let locked = now + wait;
                let released = locked + hold;
                now = released;
                // A block's client has seen the answer before it sends COMMIT.
                let middle = locked + hold / 2;
                let (acquired, sent) = if block { (middle, middle) } else { (released + late, locked.saturating_sub(early)) };
                let replaced = attempt.checked_sub(1).filter(|_| shown);
                writers.push(Writer { attempt, acquired, sent, replaced });
            }
            let mut sorted = writers.clone();
            sorted.reverse();
            let groups = prove(&mut sorted).expect("no contradiction");
            for (number, start) in groups.iter().enumerate() {
                let end = groups.get(number + 1).copied().unwrap_or(sorted.len());
                let own = sorted[*start..end].iter().map(|writer| writer.attempt);
                let members: std::collections::BTreeSet<u32> = own.collect();
                prop_assert_eq!(members, (u32::try_from(*start).unwrap()..u32::try_from(end).unwrap()).collect());
            }
        }
    }
}
