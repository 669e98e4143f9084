//! Claims of rows that end by themselves or pass to others, while a transaction still writes for them.

use std::collections::BTreeSet;

use isobench_sql::{BoundRelation, Catalog, ColumnType, Relation, Value};

use super::{Beyond, One, changes};
use crate::templates::CLOCKS;

pub(super) fn find(all: &[One<'_>], catalog: &Catalog) -> Vec<Beyond> {
    let mut found = Vec::new();
    for claim in all {
        for (relation, of) in claim.relations(catalog) {
            let Some(column) = claimed(claim, relation, of, all) else { continue };
            let later = || {
                all.iter()
                    .filter(|other| other.script == claim.script && other.transaction > claim.transaction)
            };
            let Some(write) = later().find(|other| other.writes()) else { continue };
            let tests = |other: &One<'_>| {
                let is = |one: &BoundRelation| {
                    one.oid == relation.oid && relation.updated.iter().any(|number| one.read.contains(number))
                };
                other.bound.relations.iter().any(is)
            };
            if !later().filter(|other| other.transaction <= write.transaction).any(tests) {
                found.push(Beyond::Lease {
                    claim: claim.at.clone(),
                    table: of.qualified(),
                    column,
                    write: write.at.clone(),
                });
            }
        }
    }
    found
}

/// The column by which a statement claims a row, if the claim can be lost: it is set to a time or an owner, and
/// tested in the same transaction; and it ends by a clock, or other scripts give the row away.
fn claimed(claim: &One<'_>, relation: &BoundRelation, of: &Relation, all: &[One<'_>]) -> Option<String> {
    if !relation.own || !relation.updates || relation.inserts {
        return None;
    }
    let tells_time = |names: &BTreeSet<String>| CLOCKS.iter().any(|clock| names.contains(*clock));
    let is_time = |kind: ColumnType| matches!(kind, ColumnType::Timestamp | ColumnType::Instant);
    let within = || all.iter().filter(|other| other.transaction == claim.transaction);
    let of_table = |other: &&BoundRelation| other.oid == relation.oid;
    let ends = within().any(|other| {
        other.bound.relations.iter().any(|one| of_table(&one)) && tells_time(&names_in_condition(other))
    });
    let column = of.columns.iter().find(|column| {
        let set = relation.set.get(&column.number);
        let timed = is_time(column.kind) && (tells_time(&claim.names) || set.is_some());
        let owned = matches!(set, Some(Value::Parameter(_)));
        let tested = |one: &BoundRelation| {
            one.found.tested.contains(&column.number) || one.found.equal.contains_key(&column.number)
        };
        let is_tested = within().any(|other| other.bound.relations.iter().filter(of_table).any(tested));
        let given_away = |other: &One<'_>| {
            let takes =
                |one: &BoundRelation| changes(one) && (one.deletes || one.updated.contains(&column.number));
            other.script != claim.script && other.bound.relations.iter().filter(of_table).any(takes)
        };
        relation.updated.contains(&column.number)
            && (timed || owned)
            && is_tested
            && (ends || all.iter().any(given_away))
    })?;
    Some(column.name.clone())
}

/// The names behind WHERE; of a query all names.
fn names_in_condition(one: &One<'_>) -> BTreeSet<String> {
    let tokens = one.tokens();
    let from = tokens.iter().position(|token| token.is("where")).unwrap_or(0);
    let from = if one.writes() { from } else { 0 };
    tokens[from..].iter().filter_map(isobench_sql::Placed::name).collect()
}
