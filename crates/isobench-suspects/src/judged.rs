//! Suspects and proofs of all templates.

use crate::excluded::states;
use crate::judge::{Found, Judge};
use crate::programs::Programs;
use crate::suspect::{State, Suspect};
use crate::template::Template;

/// What was found.
#[derive(Debug)]
pub struct Judged {
    /// The suspects, the gravest first.
    pub suspects: Vec<Suspect>,
    /// The state of each template.
    pub states: Vec<State>,
    /// Pairs that need the level at which they ran: at read committed they could race.
    pub held: usize,
    /// Pairs that were looked at.
    pub pairs: usize,
}

/// Looks for the suspects among templates. `doubt`: why nothing can be proved, such as a copy that lacks something.
/// `stopped` is asked between pairs.
pub fn judge(
    templates: &[Template],
    programs: &[Programs; 2],
    doubt: Option<&str>,
    stopped: &dyn Fn() -> bool,
) -> Judged {
    let judge = Judge::new(templates, &programs[0]);
    let mut found = Judged { suspects: Vec::new(), states: Vec::new(), held: 0, pairs: 0 };
    for [one, other] in judge.pairs() {
        if stopped() {
            break;
        }
        found.pairs += 1;
        match judge.pair(one, other) {
            Found::Suspects(suspects) => found.suspects.extend(suspects),
            Found::Held => found.held += 1,
            Found::Nothing => {}
        }
    }
    found.suspects.sort_by(|a, b| {
        let count = |suspect: &Suspect| templates[suspect.split].count.min(templates[suspect.within].count);
        (a.kind, std::cmp::Reverse(count(a)), a.split, a.within).cmp(&(
            b.kind,
            std::cmp::Reverse(count(b)),
            b.split,
            b.within,
        ))
    });
    found.states = states(templates, programs, &found.suspects, doubt, stopped);
    found
}
