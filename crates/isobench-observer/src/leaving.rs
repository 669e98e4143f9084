//! Waits until sessions that have said goodbye have left, which takes the server a moment: only
//! then has it counted all that they did.

use std::thread;
use std::time::{Duration, Instant};

use crate::activity;
use crate::session::ObserverSession;

/// How long sessions may take to leave, and how often it is looked.
const LEAVING: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long they are given where that can't be seen.
const UNSEEN: Duration = Duration::from_millis(250);

/// A session that is still there after so long stays. On a busy machine one that has said goodbye
/// takes some ten milliseconds; taken for one that stays, it would be counted when it leaves.
const STAYING: Duration = Duration::from_millis(250);

/// The sessions that are there now and stay; none if that can't be seen.
pub fn settled(session: &mut ObserverSession) -> Vec<u32> {
    let until = Instant::now() + STAYING;
    loop {
        let present = activity::pids(session).unwrap_or_default();
        if present.is_empty() || Instant::now() > until {
            return present;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Waits until these sessions have left; whether they are known to have. `None` are sessions that
/// can't be seen.
pub fn left(session: &mut ObserverSession, leaving: Option<&[u32]>) -> bool {
    let Some(leaving) = leaving else {
        thread::sleep(UNSEEN);
        return false;
    };
    let until = Instant::now() + LEAVING;
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
