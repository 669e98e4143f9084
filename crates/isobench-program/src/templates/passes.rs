//! What statements mean for each other: names that change, code behind them, values that no other transaction has.

use std::collections::BTreeSet;

use isobench_robustness::Columns;
use isobench_script::Symbols;
use isobench_sql::{Catalog, RelationId, RelationKind, is_system_column};

use super::TemplateStatement;
use super::read::{Read, touches_rows};
use super::variables::Variables;
use crate::flow::Flows;
use crate::statement::{Access, Deed};

/// The tables that statements may touch: one that isn't understood may touch all of these, and others.
pub(super) fn touched(read: &mut [Vec<Vec<Read>>]) -> BTreeSet<RelationId> {
    let statements = || read.iter().flatten().flatten();
    let mut all: BTreeSet<RelationId> = statements().flat_map(Read::touched).collect();
    all.extend(statements().flat_map(|statement| &statement.behind));
    for statement in read.iter_mut().flatten().flatten() {
        if statement.is_unknown() {
            statement.tables.clone_from(&all);
        }
    }
    all
}

/// Looks at the code behind statements that aren't understood.
pub(super) fn look_behind(read: &mut [Vec<Vec<Read>>], catalog: &Catalog) {
    let stores = |id: &RelationId| catalog.relations[*id].kind != RelationKind::System;
    let touched: BTreeSet<RelationId> =
        read.iter().flatten().flatten().flat_map(Read::touched).map(|id| catalog.root(id)).collect();
    for statement in read.iter_mut().flatten().flatten().filter(|one| one.accesses.is_err()) {
        let mut hides = catalog.hidden.behind(&statement.text);
        let named = (0..catalog.relations.len())
            .filter(|id| hides.words.contains(&catalog.relations[*id].name.to_lowercase()))
            .filter(stores);
        statement.behind = named.map(|id| catalog.root(id)).collect();
        if hides.wild {
            statement.behind.extend(&touched);
        }
        if statement.names_by_variable {
            let all = (0..catalog.relations.len()).filter(stores);
            statement.behind.extend(all.map(|id| catalog.root(id)));
        }
        // A row that a trigger keeps as it is was read as it is.
        let keeps = |table: &RelationId| catalog.triggers(*table).before_row.update;
        hides.looks |= hides.upserts && statement.behind.iter().any(keeps);
        statement.hides = Some(hides);
    }
}

/// Takes statements for not understood in which a variable outside of quotes may be anything else than a number: a
/// column, a condition, a query.
pub(super) fn parts_of_text(read: &mut [Vec<Vec<Read>>], variables: &Variables, symbols: &Symbols) {
    for statement in read.iter_mut().flatten().flatten() {
        let text = statement.unquoted.iter().find(|slot| !variables.is_number(**slot));
        if let (Some(slot), true) = (text, touches_rows(statement.kind, &statement.text)) {
            let name = symbols.name(*slot);
            statement
                .forget(format!("variable {name} stands outside of quotes, and may be more than a number"));
            statement.names_by_variable = true;
        }
    }
}

/// Drops the checks of unique indexes for values of sequences and random UUIDs, unless rows get such values otherwise,
/// too.
pub(super) fn drop_fresh(read: &mut [Vec<Vec<Read>>]) {
    let statements = || read.iter().flatten().flatten();
    let accesses =
        statements().filter_map(|statement| statement.accesses.as_ref().ok().or(statement.code.as_ref()));
    let accesses = accesses.flatten();
    let given = accesses.filter(|access| access.deed == Deed::Vacant && !access.fresh);
    let given: Vec<(RelationId, Columns)> =
        given.map(|access| (access.table, access.reads.clone())).collect();
    let behind: BTreeSet<RelationId> = statements().flat_map(|statement| statement.behind.clone()).collect();
    let is_given = |access: &Access| {
        let same = |(table, reads): &(RelationId, Columns)| *table == access.table && *reads == access.reads;
        behind.contains(&access.table) || given.iter().any(same)
    };
    for statement in read.iter_mut().flatten().flatten() {
        let code = statement.code.as_mut();
        if let Some(accesses) = statement.accesses.as_mut().ok().or(code) {
            accesses.retain(|access| !access.fresh || is_given(access));
        }
    }
}

/// Takes statements for not understood whose names may mean something else by then, because a script
/// changes what names mean.
pub(super) fn renamed(read: &mut [Vec<Vec<Read>>]) {
    let all = || read.iter().flatten().flatten();
    let names: BTreeSet<String> = all().flat_map(|statement| &statement.renames).cloned().collect();
    let everything = all().rfind(|statement| statement.changes_meaning);
    let everything = everything.map(|statement| statement.at.clone());
    // A statement that creates something names it itself.
    let own = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        matches!(first.as_str(), "create" | "alter" | "drop" | "import")
    };
    for statement in read.iter_mut().flatten().flatten() {
        // Code may have any of these names.
        if everything.is_some() || !names.is_empty() {
            statement.code = None;
        }
        if !touches_rows(statement.kind, &statement.text) || own(&statement.text) {
            continue;
        }
        let named = statement.named.iter().find(|name| names.contains(*name));
        let why = match (&everything, named) {
            (Some(at), _) => format!("{at} changes what names mean"),
            (None, Some(name)) => format!("a script makes or changes {name}"),
            (None, None) => continue,
        };
        statement.forget(why);
    }
}

/// Lets who takes the first of several rows wait for it where the transaction doesn't take it out of their
/// number: it changes what is left of a credit, rather than the state of a job.
pub(super) fn wait_for_adjusted(statements: &mut [TemplateStatement], numbers: &[usize], flows: &Flows) {
    for at in 0..statements.len() {
        let writers = flows.writers_after(numbers[at]);
        let adjusted = |writer: &usize| {
            let place = numbers.iter().position(|number| number == writer);
            place.is_some_and(|place| statements[place].constants.is_empty())
                && flows.adjusts(numbers[at], *writer)
        };
        let waits = !writers.is_empty() && writers.iter().all(adjusted);
        for lock in statements[at].locks_within.iter_mut().filter(|_| waits) {
            lock.skips_locked = false;
        }
    }
}

/// Lets each change of a row change also the columns by which scripts read its version, if any does.
pub(super) fn change_versions(read: &mut [Vec<Vec<Read>>]) {
    let accesses =
        || read.iter().flatten().flatten().flat_map(|statement| statement.accesses.iter().flatten());
    let mentioned = accesses().flat_map(|access| match &access.reads {
        Columns::These(names) => names.iter().filter(|name| is_system_column(name)).cloned().collect(),
        Columns::All => Vec::new(),
    });
    let versions: BTreeSet<String> = mentioned.collect();
    for statement in read.iter_mut().flatten().flatten() {
        let code = statement.code.iter_mut().flatten();
        for access in statement.accesses.iter_mut().flatten().chain(code) {
            if let (Deed::Update | Deed::InsertOrUpdate, Columns::These(set)) =
                (access.deed, &mut access.writes)
            {
                set.extend(versions.iter().cloned());
            }
        }
    }
}
