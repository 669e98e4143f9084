//! Waits until sessions that have said goodbye have left, which takes the server a moment: only then has it counted all that they
//! did.

use std::thread;
use std::time::{Duration, Instant};

use crate::activity;
use crate::session::Session;

/// How long sessions may take to leave, and how often it is looked.
const LEAVING: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long they are given where that can't be seen.
const UNSEEN: Duration = Duration::from_millis(250);

/// Sessions that have said goodbye are gone when two looks in a row show the same; so many looks at most.
const LOOKS: u32 = 20;

/// The sessions that are there now and stay; none if that can't be seen.
pub fn settled(session: &mut Session) -> Vec<u32> {
    let mut last = activity::pids(session).unwrap_or_default();
    for _ in 0..LOOKS {
        if last.is_empty() {
            break;
        }
        thread::sleep(LOOK_AGAIN);
        let Ok(now) = activity::pids(session) else { break };
        if now == last {
            break;
        }
        last = now;
    }
    last
}

/// Waits until these sessions have left; whether they are known to have. `None` are sessions that can't be seen.
pub fn left(session: &mut Session, leaving: Option<&[u32]>) -> bool {
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
