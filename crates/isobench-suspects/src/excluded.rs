//! Which templates theory excludes from racing: nothing of theirs that commits can be out of order.
//!
//! It's no proof of the application: which values are equal follows from the recording.

use std::collections::BTreeMap;

use isobench_isolation::Level;
use isobench_robustness::{Program, Struck, decide};

use crate::programs::Programs;
use crate::suspect::{State, Suspect};
use crate::template::Template;
use crate::touched::touched;

/// The most ways through all templates that share tables for which theory decides at once: it takes the third power.
const MOST_WAYS: usize = 60;

/// The most operations of those.
const MOST_OPERATIONS: usize = 400;

/// The state of each template.
pub(crate) fn states(
    templates: &[Template],
    programs: &[Programs; 2],
    suspects: &[Suspect],
    doubt: Option<&str>,
    stopped: &dyn Fn() -> bool,
) -> Vec<State> {
    let unknown = |number: usize| programs.iter().find_map(|one| one.unknown(number));
    let first_unknown = (0..templates.len()).find_map(|number| unknown(number).map(|_| number));
    let mut states: Vec<State> = Vec::new();
    for number in 0..templates.len() {
        let suspect = suspects.iter().any(|one| one.split == number || one.within == number);
        states.push(match programs[0].unknown(number) {
            Some(why) => State::NotAnalysed(why.to_owned()),
            None if suspect => State::Suspect,
            None => State::Undecided("it shares tables with suspects".to_owned()),
        });
    }
    let undecided = |states: &mut Vec<State>, member: usize, why: &str| {
        if matches!(states[member], State::Undecided(_)) {
            states[member] = State::Undecided(why.to_owned());
        }
    };
    let unread = first_unknown.map(|_| "what isn't analysed may write anything");
    if let Some(why) = doubt.or(unread) {
        for member in 0..templates.len() {
            undecided(&mut states, member, why);
        }
        return states;
    }
    for component in components(templates, &programs[1]) {
        let why = if stopped() {
            "it was interrupted".to_owned()
        } else if component.iter().any(|member| states[*member] == State::Suspect) {
            continue;
        } else {
            match safe(&component, templates, &programs[1]) {
                Ok(true) => {
                    for member in &component {
                        states[*member] = State::Excluded;
                    }
                    continue;
                }
                Ok(false) => "theory names schedules that it can't exclude".to_owned(),
                Err(why) => why,
            }
        };
        for member in &component {
            undecided(&mut states, *member, &why);
        }
    }
    states
}

/// Whether all templates of a component are safe together at their levels.
fn safe(component: &[usize], templates: &[Template], programs: &Programs) -> Result<bool, String> {
    let of: Vec<Program> = component.iter().filter_map(|member| programs.program(*member).cloned()).collect();
    let levels: Vec<Level> = component.iter().map(|member| templates[*member].level).collect();
    if of.len() != component.len() {
        return Err("it has no program".to_owned());
    }
    let ways: usize = of.iter().map(|program| program.branches.len()).sum();
    let operations: usize =
        of.iter().flat_map(|program| &program.branches).map(|branch| branch.operations.len()).sum();
    if ways > MOST_WAYS || operations > MOST_OPERATIONS {
        return Err("too many transactions share its tables to look at all of them at once".to_owned());
    }
    Ok(decide(&of, &levels, &Struck::new()).is_none())
}

/// The first member of the set that a template is in.
fn root(roots: &[usize], mut at: usize) -> usize {
    while roots[at] != at {
        at = roots[at];
    }
    at
}

/// Templates that share tables which one of them writes, in sets without anything in common.
fn components(templates: &[Template], programs: &Programs) -> Vec<Vec<usize>> {
    let touched = touched(templates, programs);
    let mut roots: Vec<usize> = (0..templates.len()).collect();
    let mut by_table: BTreeMap<&str, (Vec<usize>, bool)> = BTreeMap::new();
    for (number, own) in touched.iter().enumerate() {
        for table in own.reads.keys() {
            by_table.entry(table).or_default().0.push(number);
        }
        for table in own.writes.keys() {
            let entry = by_table.entry(table).or_default();
            entry.0.push(number);
            entry.1 = true;
        }
    }
    for (members, written) in by_table.values() {
        for pair in members.windows(2).filter(|_| *written) {
            let (one, other) = (root(&roots, pair[0]), root(&roots, pair[1]));
            roots[one.max(other)] = one.min(other);
        }
    }
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for number in 0..templates.len() {
        found.entry(root(&roots, number)).or_default().push(number);
    }
    found.into_values().collect()
}
