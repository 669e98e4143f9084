//! Variables that have one number whenever a statement is sent: `\set` gives it to them before, the same
//! in all scripts, and nothing else assigns them.

use std::collections::{BTreeMap, BTreeSet};

use isobench_script::{CommandKind, Piece, Script, Slot, Sql, Store};

use crate::statement::Numbers;
use isobench_sql::Catalog;
use isobench_sql::Text;

/// The variables that every assignment in any script gives the same number.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    numbers: BTreeMap<Slot, i64>,
    /// The names of variables that results are stored in.
    stored: BTreeSet<String>,
    /// The prefixes of such names, where the result's columns aren't known.
    prefixes: BTreeSet<String>,
}

impl Constants {
    pub(crate) fn of(scripts: &[&mut Script], catalog: &Catalog) -> Constants {
        let mut found = Constants::default();
        let mut others = BTreeSet::new();
        for command in scripts.iter().flat_map(|script| &script.commands) {
            match &command.kind {
                CommandKind::Set { slot, expr } => match expr.number() {
                    Some(number) if found.numbers.get(slot).is_none_or(|known| *known == number) => {
                        found.numbers.insert(*slot, number);
                    }
                    _ => {
                        others.insert(*slot);
                    }
                },
                CommandKind::SetShell { slot, .. } => {
                    others.insert(*slot);
                }
                CommandKind::Sql(sql) => found.store(sql, catalog),
                _ => {}
            }
        }
        found.numbers.retain(|slot, _| !others.contains(slot));
        found
    }

    /// Notes the variables in which a command's results are stored.
    fn store(&mut self, sql: &Sql, catalog: &Catalog) {
        let (Store::Gset { prefix } | Store::Aset { prefix }) = &sql.store else { return };
        let given = |text: &Text<'_>| {
            let columns = text.statements().into_iter().map(|range| {
                let bound = catalog.reading(&text.asked(&range).text).ok()?;
                Some(bound.outputs.iter().map(|output| &output.name).collect::<Vec<_>>())
            });
            columns.collect::<Option<Vec<_>>>()
        };
        match Text::scan(sql).as_ref().and_then(given) {
            Some(columns) => {
                let names = columns.into_iter().flatten().map(|column| format!("{prefix}{column}"));
                self.stored.extend(names);
            }
            None => {
                self.prefixes.insert(prefix.clone());
            }
        }
    }

    /// True if a variable, `:name`, may be assigned by a result.
    fn may_be_stored(&self, written: &str) -> bool {
        let name = written.trim_start_matches(':');
        self.stored.contains(name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }

    /// The numbers of a command's variables, of those that `set` names.
    pub(crate) fn numbers(&self, sql: &Sql, set: &BTreeSet<Slot>) -> Numbers {
        let number = |piece: &Piece| match piece {
            Piece::Variable { slot, written } if set.contains(slot) && !self.may_be_stored(written) => {
                Some((*slot, self.numbers.get(slot)?.to_string()))
            }
            _ => None,
        };
        sql.pieces.iter().filter_map(number).collect()
    }
}

/// The variables that a script's commands so far have set whatever its branches.
#[derive(Debug, Default)]
pub(crate) struct Assigned {
    pub(crate) slots: BTreeSet<Slot>,
    /// The number of open `\if`.
    depth: usize,
}

impl Assigned {
    /// Passes a command.
    pub(crate) fn pass(&mut self, command: &CommandKind) {
        match command {
            CommandKind::If(_) => self.depth += 1,
            CommandKind::Endif => self.depth = self.depth.saturating_sub(1),
            CommandKind::Set { slot, .. } if self.depth == 0 => {
                self.slots.insert(*slot);
            }
            _ => {}
        }
    }
}
