//! The choice among candidates without damage, by what they cost.
//!
//! | of the candidates | chosen |
//! |---|---|
//! | the weakest level measured is one of them, and all stronger ones cost the same | the strongest |
//! | the weakest level measured is one of them, and none is shown to be cheaper | the weakest: it is enough |
//! | one is cheaper than all others | it |
//! | the cheapest, and stronger ones that cost the same | the strongest of these |
//! | the cheapest, and others that can't be told from it | all of these |
//!
//! Only levels of one strategy are weighed against each other: the first strategy of which none else
//! is shown to be cheaper. Not here: the sentences (`rules`).

use super::evidence::{Candidate, Evidence};
use super::price::{Price, are_short};
use crate::words::distinct;

/// The candidates that are chosen, in the order of the table.
#[derive(Debug, Clone)]
pub struct Choice<'b, 'a> {
    /// The candidates: more than one if the rounds don't tell which of them is cheaper.
    pub best: Vec<&'b Candidate<'a>>,
    /// The cheapest of them by estimate; of those that cost the same, a weaker one than `best`.
    pub cheapest: &'b Candidate<'a>,
    /// How they were chosen.
    pub by: By,
    /// True if more rounds could change it.
    pub open: bool,
}

/// The ground of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The weakest level measured is without damage, and no other one is shown to be cheaper.
    Enough,
    /// It is the strongest of those that cost the same as the cheapest.
    Free,
    /// It is the cheapest.
    Cheapest,
    /// They can't be told apart.
    Unsettled,
}

/// Chooses; `None` without candidates.
pub fn choose<'b, 'a>(evidence: &'b Evidence<'a>) -> Option<Choice<'b, 'a>> {
    let eligible = evidence.eligible();
    let fastest = evidence.fastest(&eligible)?;
    let not_dearer = |candidate: &&&Candidate<'_>| {
        std::ptr::eq(candidate.cell, fastest.cell) || evidence.price(candidate, fastest) != Price::Dearer
    };
    let strategies = distinct(evidence.candidates.iter().map(|candidate| candidate.cell.strategy()));
    let as_cheap: Vec<&str> = eligible.iter().filter(not_dearer).map(|it| it.cell.strategy()).collect();
    let strategy = strategies.into_iter().find(|strategy| as_cheap.contains(strategy))?;
    let own: Vec<_> = eligible.into_iter().filter(|it| it.cell.strategy() == strategy).collect();
    let weakest = evidence.candidates.iter().filter(|candidate| candidate.cell.strategy() == strategy);
    let weakest = weakest.min_by_key(|candidate| candidate.cell.level.range())?;
    if own.iter().any(|candidate| std::ptr::eq(candidate.cell, weakest.cell))
        && let Some(choice) = enough(evidence, weakest, &own)
    {
        return Some(choice);
    }
    cheapest(evidence, &own)
}

/// The choice where the weakest level is without damage; `None` if another one is cheaper.
fn enough<'b, 'a>(
    evidence: &Evidence<'a>,
    weakest: &'b Candidate<'a>,
    own: &[&'b Candidate<'a>],
) -> Option<Choice<'b, 'a>> {
    let others = || own.iter().copied().filter(|other| !std::ptr::eq(other.cell, weakest.cell));
    let prices: Vec<Price> = others().map(|other| evidence.price(other, weakest)).collect();
    // What the estimates of a round or two say is no reason to leave the level that is enough.
    let short = are_short(own);
    if prices.contains(&Price::Cheaper) && !short {
        return None;
    }
    let free = !prices.is_empty() && prices.iter().all(|price| *price == Price::Same);
    let best = if free { strongest(own)? } else { weakest };
    Some(Choice {
        best: vec![best],
        cheapest: weakest,
        by: if free { By::Free } else { By::Enough },
        // As soon as one of the others costs something, the weakest is the answer.
        open: !short && prices.contains(&Price::Open) && !prices.contains(&Price::Dearer),
    })
}

/// The choice by cost alone.
fn cheapest<'b, 'a>(evidence: &Evidence<'a>, own: &[&'b Candidate<'a>]) -> Option<Choice<'b, 'a>> {
    let fastest = evidence.fastest(own)?;
    let price = |candidate: &Candidate<'_>| {
        if std::ptr::eq(candidate.cell, fastest.cell) {
            Price::Same
        } else {
            evidence.price(candidate, fastest)
        }
    };
    let as_cheap: Vec<_> = own.iter().copied().filter(|it| price(it) != Price::Dearer).collect();
    let choice = |best: Vec<&'b Candidate<'a>>, by| {
        let open = by == By::Unsettled && !are_short(own);
        Some(Choice { best, cheapest: fastest, by, open })
    };
    if as_cheap.len() == 1 {
        return choice(as_cheap, By::Cheapest);
    }
    if as_cheap.iter().all(|candidate| price(candidate) == Price::Same) {
        let best = strongest(&as_cheap)?;
        // It may itself be the fastest of those that cost the same.
        let cheapest = as_cheap.iter().copied().find(|other| !std::ptr::eq(other.cell, best.cell))?;
        return Some(Choice { best: vec![best], cheapest, by: By::Free, open: false });
    }
    choice(as_cheap, By::Unsettled)
}

/// The candidate at the strongest level.
fn strongest<'b, 'a>(of: &[&'b Candidate<'a>]) -> Option<&'b Candidate<'a>> {
    of.iter().copied().max_by_key(|candidate| candidate.cell.level.range())
}
