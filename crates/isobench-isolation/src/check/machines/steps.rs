//! The steps that all machines take together, each with its own rows and pieces.

use super::ways::{Ways, answer, result};
use crate::check::dependencies::{NONE, Node};
use crate::check::emit::{Emitted, Which, emit, put_edges, take_edges};
use crate::check::parts::{Setting, Source};
use crate::check::scope::{Cyclic, Scope};
use crate::check::spill::{Spill, SpillError};
use crate::check::survey::{Positions, Survey};
use crate::model::Order;

/// Exchanges a message with each other machine: those to each, by rank, against those from each. The own
/// one comes back. If there are none to be sent, the others learn why.
fn exchange(
    ways: &mut dyn Ways,
    to_each: Result<Vec<Vec<u8>>, SpillError>,
) -> Result<Vec<Vec<u8>>, SpillError> {
    let (own, machines) = (ways.rank(), ways.number());
    let others = || (0..machines).filter(|rank| *rank != own);
    let mut all = match to_each {
        Ok(all) => all,
        Err(error) => {
            others().for_each(|rank| ways.send(rank, result(Err(&error))));
            // What the others send must not be taken for something else.
            others().for_each(|rank| drop(answer(ways, rank)));
            return Err(error);
        }
    };
    for rank in others() {
        ways.send(rank, result(Ok(std::mem::take(&mut all[rank]))));
    }
    let mut failed = None;
    for rank in others() {
        match answer(ways, rank) {
            Ok(bytes) => all[rank] = bytes,
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(all), Err)
}

/// Examines the rows of this machine. In the end `positions` has what leads back of all.
pub(super) fn survey(
    spill: &Spill,
    setting: Setting<'_>,
    order: Order,
    positions: &Positions,
    ways: &mut dyn Ways,
) -> Result<Survey, SpillError> {
    let survey = Survey::of(spill, setting, positions);
    if order >= Order::Session {
        positions.sessions(spill.frame(), setting.status, spill.own_nodes());
    }
    let (own, machines) = (ways.rank(), ways.number());
    let (survey, to_each) = match survey {
        Ok(survey) => (Some(survey), Ok(vec![positions.put(); machines])),
        Err(error) => (None, Err(error)),
    };
    for (rank, bytes) in exchange(ways, to_each)?.iter().enumerate() {
        if rank != own {
            positions.add(bytes);
        }
    }
    Ok(survey.unwrap_or_default())
}

/// Finds the strongly connected components of the pieces of this machine.
pub(super) fn components(
    scope: &Scope<'_, Spill>,
    survey: &mut Survey,
    positions: Positions,
    ways: &mut dyn Ways,
) -> Result<Cyclic, SpillError> {
    let (own, machines) = (ways.rank(), ways.number());
    let Scope { source, setting, .. } = *scope;
    // All find the same, so either all of them end here or none.
    let (mut class, longest) = positions.cut(setting.status);
    if longest < 2 {
        return Ok(Cyclic::default());
    }
    let owner = |class: u32| {
        let owner = u64::from(class) * machines as u64 / class_count(source);
        usize::try_from(owner).unwrap_or(0).min(machines - 1)
    };
    let (emitted, near) = match survey.take_near(longest).map(|near| near.within(&class)) {
        Some(near) => (emit(source, setting, &class, Which::Some(&near.wide)), near.edges),
        None => (emit(source, setting, &class, Which::All), Vec::new()),
    };
    let to_each = emitted.map(|emitted| {
        let emitted = Emitted::joined(emitted);
        let mut all = Vec::new();
        for rank in 0..machines {
            let is_its = |node: Node| class[node as usize] != NONE && owner(class[node as usize]) == rank;
            let mut bytes = Vec::new();
            emitted.within(&is_its).put(&mut bytes);
            let edges: Vec<(Node, u32)> = near.iter().filter(|(from, _)| is_its(*from)).copied().collect();
            put_edges(&mut bytes, &edges);
            all.push(bytes);
        }
        all
    });
    drop(near);
    let (mut emitted, mut near) = (Vec::new(), Vec::new());
    for bytes in exchange(ways, to_each)? {
        let mut bytes = bytes.as_slice();
        emitted.push(Emitted::take(&mut bytes));
        near.extend(take_edges(&mut bytes));
    }
    for class in &mut class {
        if *class != NONE && owner(*class) != own {
            *class = NONE;
        }
    }
    scope.components_within(&class, &near, |class| {
        let is_in = |node: Node| class[node as usize] != NONE;
        Ok(emitted.iter().map(|emitted| emitted.within(&is_in)).collect())
    })
}

/// Classes have numbers below this: those of positions.
fn class_count(source: &Spill) -> u64 {
    u64::from(source.transactions()).max(1)
}
