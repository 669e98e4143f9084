//! The tables and columns that templates read and write.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::{Columns, Kind as Does, Operation};

use crate::programs::Programs;
use crate::template::Template;

/// What a template reads and writes of tables.
#[derive(Default)]
pub(crate) struct Touched {
    pub(crate) reads: BTreeMap<String, Columns>,
    pub(crate) writes: BTreeMap<String, Columns>,
    /// The number of statements with operations.
    pub(crate) statements: usize,
}

/// True if two sets of columns have one in common. Who looks for rows, and who adds or removes them, meet.
pub(crate) fn meet(one: &Columns, other: &Columns) -> bool {
    match (one, other) {
        (Columns::These(one), Columns::These(other)) => !one.is_disjoint(other),
        _ => true,
    }
}

fn add(to: &mut BTreeMap<String, Columns>, table: &str, columns: &Columns) {
    match (to.get_mut(table), columns) {
        (None, _) => drop(to.insert(table.to_owned(), columns.clone())),
        (Some(Columns::These(known)), Columns::These(more)) => known.extend(more.iter().cloned()),
        (Some(known), Columns::All) => *known = Columns::All,
        (Some(Columns::All), _) => {}
    }
}

/// True if an operation changes rows.
pub(crate) fn writes(operation: &Operation) -> bool {
    match operation.kind {
        Does::Insert | Does::Delete => true,
        Does::Update => !operation.writes.is_empty(),
        Does::Read | Does::Search | Does::Lock(_) | Does::Vacant => false,
    }
}

pub(crate) fn touched(templates: &[Template], programs: &Programs) -> Vec<Touched> {
    let of = |template: &Template| {
        let mut touched = Touched::default();
        let mut statements = BTreeSet::new();
        let branches = programs.program(template.number).into_iter().flat_map(|program| &program.branches);
        for operation in branches.flat_map(|branch| &branch.operations) {
            statements.insert(operation.at.clone());
            // Conditions are read, too, and the row's existence.
            add(&mut touched.reads, &operation.table, &operation.reads);
            let known = operation.key.iter().chain(&operation.known).map(|(column, _)| column.clone());
            add(&mut touched.reads, &operation.table, &Columns::These(known.collect()));
            if writes(operation) {
                let columns = match operation.kind {
                    Does::Update => operation.writes.clone(),
                    _ => Columns::All,
                };
                add(&mut touched.writes, &operation.table, &columns);
            }
        }
        touched.statements = statements.len();
        touched
    };
    templates.iter().map(of).collect()
}
