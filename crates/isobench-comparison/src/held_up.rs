//! Clients that still wait at the end of a measurement for advisory locks which other sessions of
//! theirs keep since an error: a session's lock isn't given back when its transaction fails
//! (PostgreSQL manual, "Advisory Locks").

use std::time::Duration;

use isobench_result::{Conflict, Round};

/// Returns a sentence if the clients of a round were held up until they were cut off, `grace` after
/// its planned time. `before` has the errors of the warm-up.
pub fn held_up(round: &Round, before: &[Conflict], planned: Duration, grace: Duration) -> Option<String> {
    let cut_off = round.attempts.cut_off > 0 && round.seconds >= (planned + grace).as_secs_f64();
    let waits = &round.server.as_ref()?.waits;
    let advisory = waits.iter().find(|wait| wait.kind == "Lock" && wait.event == "advisory")?;
    if !cut_off || advisory.sessions.last().is_none_or(|waiting| *waiting == 0) {
        return None;
    }
    // What fails because of the wait itself is no reason for it.
    let errors = || before.iter().chain(&round.conflicts).chain(&round.further_errors);
    let waits_itself = |error: &&Conflict| error.command.to_ascii_lowercase().contains("advisory");
    let error = errors().find(|error| !waits_itself(error)).or_else(|| errors().next())?;
    let place = match (&error.script, error.line) {
        (Some(script), Some(line)) => format!("{script}:{line}"),
        _ => error.command.clone(),
    };
    Some(format!(
        "sessions wait for advisory locks that others hold since their error at {place} ({}), which skipped the unlock",
        error.sqlstate
    ))
}

#[cfg(test)]
mod tests {
    use isobench_result::{ServerSide, WaitRow};
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;

    fn error(sqlstate: &str, command: &str, line: u32) -> Conflict {
        Conflict {
            sqlstate: sqlstate.to_owned(),
            command: command.to_owned(),
            script: Some("use.sql".to_owned()),
            line: Some(line),
            reason: String::new(),
            object: None,
            count: 1,
        }
    }

    fn round(seconds: f64, cut_off: u64, waiting: &[u32]) -> Round {
        let conflicts = vec![error("40P01", "SELECT pg_advisory_lock(:id);", 4)];
        let elapsed = Duration::from_secs_f64(seconds);
        let mut round =
            Round::from_ledger(1, &Ledger::default(), &LatencyHistogram::new(), elapsed, conflicts);
        round.attempts.cut_off = cut_off;
        let waits = vec![WaitRow {
            kind: "Lock".to_owned(),
            event: "advisory".to_owned(),
            sessions: waiting.to_vec(),
        }];
        round.server = Some(ServerSide { waits, ..ServerSide::default() });
        round
    }

    #[test]
    fn the_error_after_which_locks_were_kept_is_named() {
        let (second, grace) = (Duration::from_secs(1), Duration::from_secs(10));
        let update = [error("40001", "UPDATE quota SET used = 1;", 6)];
        let text = held_up(&round(11.0, 8, &[3, 8]), &update, second, grace).expect("held up");
        assert!(
            text.starts_with(
                "sessions wait for advisory locks that others hold since their error at use.sql:6"
            )
        );
        let text = held_up(&round(11.0, 8, &[8]), &[], second, grace).expect("held up");
        assert!(text.contains("at use.sql:4 (40P01)"), "{text}");
        for (seconds, cut_off, waiting) in [(2.0, 8, &[8][..]), (11.0, 0, &[8]), (11.0, 8, &[8, 0])] {
            assert_eq!(held_up(&round(seconds, cut_off, waiting), &update, second, grace), None);
        }
    }
}
