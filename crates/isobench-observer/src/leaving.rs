//! Waits until closed sessions have ended on the server. Only then has the server counted
//! everything that they did.

use std::thread;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;

use crate::activity;
use crate::session::ObserverSession;

/// The time between two checks.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The wait if sessions can't be seen.
const UNSEEN: Duration = Duration::from_millis(250);

/// A session still present after this time is taken to stay. On a busy machine a closed one needs
/// some ten milliseconds; if it were taken to stay, its end would be counted as a client's.
const STAYING: Duration = Duration::from_millis(250);

/// After so much time without a change none is expected.
const CALM: Duration = Duration::from_millis(50);

/// The sessions that exist now and stay, except those that are `known` to; empty if they can't be
/// seen.
pub fn settled(session: &mut ObserverSession, known: &[u32]) -> Vec<u32> {
    let until = Instant::now() + STAYING;
    loop {
        let mut present = activity::pids(session).unwrap_or_default();
        present.retain(|pid| !known.contains(pid));
        if present.is_empty() || Instant::now() > until {
            return present;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Waits until no session has ended for a moment: those that were just closed would be taken for
/// sessions that stay.
pub fn calm(session: &mut ObserverSession) {
    let until = Instant::now() + STAYING;
    let (mut seen, mut since) = (Vec::new(), Instant::now());
    while Instant::now() < until && since.elapsed() < CALM {
        let Ok(present) = activity::pids(session) else { return };
        if present != seen {
            (seen, since) = (present, Instant::now());
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Waits until these sessions have ended. Returns true if they are known to have. `None` means that
/// they can't be seen.
pub fn left(session: &mut ObserverSession, leaving: Option<&[u32]>) -> bool {
    let Some(leaving) = leaving else {
        thread::sleep(UNSEEN);
        return false;
    };
    let until = Instant::now() + LIMITS.leaving;
    loop {
        let Ok(present) = activity::pids(session) else { return leaving.is_empty() };
        if !leaving.iter().any(|pid| present.contains(pid)) {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
}
