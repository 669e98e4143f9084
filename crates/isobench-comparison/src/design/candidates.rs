//! Rows that a command adds to a design: levels for each script, some with changed scripts.

use std::collections::BTreeSet;

use isobench_isolation::{Allocation, Level};
use isobench_plan::DEFAULT_STRATEGY;

use super::{CellPlan, Design};
use crate::failure::Outcome;
use crate::workload::Sources;

/// A row that is measured.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its levels.
    pub allocation: Allocation,
    /// Changed scripts, with the name of the change; `None`: they are as they are.
    pub changed: Option<(String, Sources)>,
}

/// The rows in which a work is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    levels: BTreeSet<Level>,
    /// Indices of the plan's allocations.
    allocations: BTreeSet<usize>,
}

impl Rows {
    /// True if a cell is in one of these rows.
    pub fn has(&self, cell: &CellPlan) -> bool {
        match cell.allocation {
            Some(allocation) => self.allocations.contains(&allocation),
            None => self.levels.contains(&cell.level),
        }
    }
}

impl Design {
    /// Measures only the scripts of these names. The plan has one work.
    ///
    /// # Errors
    /// None is left.
    pub fn measure_scripts(&mut self, names: &[String]) -> Outcome {
        self.works.truncate(1);
        self.works[0] = self.works[0].with_sources(self.works[0].sources.among(names)?);
        Ok(())
    }

    /// Measures these rows, in place of the levels and allocations of the plan. The plan has one work.
    ///
    /// # Errors
    /// A script can't ask for its level.
    pub fn measure(&mut self, candidates: Vec<Candidate>) -> Outcome {
        let mut levels: BTreeSet<Level> = BTreeSet::new();
        let mut allocations: Vec<Allocation> = Vec::new();
        let mut number = |allocation: &Allocation| {
            allocations.iter().position(|known| known == allocation).unwrap_or_else(|| {
                allocations.push(allocation.clone());
                allocations.len() - 1
            })
        };
        let mut plain = Rows::default();
        let mut changed = Vec::new();
        for candidate in candidates {
            // One level for all is a row of the levels.
            let uniform = candidate.allocation.level();
            levels.extend(uniform);
            let mut rows = Rows::default();
            match (uniform, candidate.changed.is_some()) {
                (Some(level), true) => rows.levels.extend([level]),
                (Some(level), false) => {
                    plain.levels.insert(level);
                    continue;
                }
                (None, true) => rows.allocations.extend([number(&candidate.allocation)]),
                (None, false) => plain.allocations.extend([number(&candidate.allocation)]),
            }
            if let Some((name, sources)) = candidate.changed {
                let mut work = self.works[0].with_sources(sources);
                (work.strategy, work.rows) = (Some(name), Some(rows));
                changed.push(work);
            }
        }
        self.plan.levels = Some(levels.into_iter().collect());
        self.plan.allocation = (!allocations.is_empty()).then_some(allocations);
        self.works.truncate(1);
        self.works[0].rows = Some(plain);
        if !changed.is_empty() {
            self.works[0].strategy = Some(DEFAULT_STRATEGY.to_owned());
        }
        self.works.extend(changed);
        for work in &self.works {
            for allocation in self.plan.allocations() {
                crate::modes::ask(&mut work.sources.mix().clone(), allocation, None, self.protocol)?;
            }
        }
        Ok(())
    }
}
