//! The levels at which scripts are proved to be safe together, by the robustness of their templates.

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_robustness::{Struck, decide};
use isobench_script::{Script, Symbols};

use crate::templates::templates;
use isobench_sql::Catalog;

/// The most scripts for which that is decided: the schedules of more take long.
const MOST_SCRIPTS: usize = 12;

/// The levels at which whatever commits is serializable if all transactions of the scripts run there and
/// nothing else writes their tables, the weakest first; none where values are carried from one transaction
/// to another, which no level protects, or of many scripts. `sends_parameters`: see
/// [`Catalog::sends_parameters`].
pub fn proved_levels(
    scripts: &[Script],
    symbols: &Symbols,
    catalog: &Catalog,
    sends_parameters: bool,
) -> Vec<Level> {
    if scripts.len() > MOST_SCRIPTS {
        return Vec::new();
    }
    let catalog = &Catalog { sends_parameters, ..catalog.clone() };
    let found = templates(scripts, symbols, catalog, &BTreeSet::new());
    if !found.carried.is_empty() {
        return Vec::new();
    }
    let is_safe = |level: &Level| {
        decide(&found.programs, &vec![*level; found.programs.len()], &Struck::new()).is_none()
    };
    let mut proved: Vec<Level> =
        [Level::ReadCommitted, Level::RepeatableRead].into_iter().filter(is_safe).collect();
    // What serializable promises says nothing of the scripts.
    if !proved.is_empty() && is_safe(&Level::Serializable) {
        proved.push(Level::Serializable);
    }
    proved
}
