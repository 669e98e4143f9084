//! Influence from outside while a run goes on: requests to stop it.

use std::sync::atomic::{AtomicU8, Ordering};

use isobench_pgwire::Patience;

/// A request to end the run early, shared with signal handling.
#[derive(Debug, Default)]
pub struct Control {
    urgency: AtomicU8,
    patience: Patience,
}

/// The urgency of a request to end the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No request: continue.
    None,
    /// Start nothing new, finish transactions under way.
    Soon,
    /// Cancel transactions under way.
    Now,
}

impl Control {
    /// A control without a request.
    pub fn new() -> Self {
        Control::default()
    }

    /// Requests the end of the run on behalf of the user: the first call with [`Urgency::Soon`],
    /// later ones with [`Urgency::Now`]. Blocking calls that share this control's
    /// [`patience`](Control::patience) are cut short, too.
    pub fn interrupt(&self) -> Urgency {
        let urgency = if self.patience.requests() == 0 { Urgency::Soon } else { Urgency::Now };
        self.patience.hurry();
        self.request(urgency);
        urgency
    }

    /// The patience of blocking calls that are to end with the run; belongs in the connection
    /// options.
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Requests the end of the run. Never makes an earlier request less urgent.
    pub fn request(&self, urgency: Urgency) {
        self.urgency.fetch_max(urgency as u8, Ordering::Relaxed);
    }

    /// The most urgent request so far.
    pub fn urgency(&self) -> Urgency {
        match self.urgency.load(Ordering::Relaxed) {
            0 => Urgency::None,
            1 => Urgency::Soon,
            _ => Urgency::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_never_taken_back() {
        let control = Control::new();
        assert_eq!(control.urgency(), Urgency::None);
        control.request(Urgency::Now);
        control.request(Urgency::Soon);
        assert_eq!(control.urgency(), Urgency::Now);
    }

    #[test]
    fn an_interrupt_is_for_waits_too() {
        let control = Control::new();
        // A request by the run itself isn't an interrupt.
        control.request(Urgency::Now);
        assert_eq!(control.patience().requests(), 0);
        let control = Control::new();
        assert_eq!((control.interrupt(), control.urgency()), (Urgency::Soon, Urgency::Soon));
        assert_eq!((control.interrupt(), control.urgency()), (Urgency::Now, Urgency::Now));
        assert_eq!(control.patience().requests(), 2);
    }
}
