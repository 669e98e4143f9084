//! Readers that remember the highest number or time that they have seen, and ask for higher ones.

use std::collections::BTreeSet;

use isobench_script::Slot;
use isobench_sql::{BoundRelation, Catalog, Column, ColumnType, Relation, Token};

use super::{Beyond, ColumnNumber, One, Order};
use crate::templates::CLOCKS;

/// Functions by which a reader asks which transactions have ended.
const HORIZONS: [&str; 4] =
    ["pg_snapshot_xmin", "pg_current_snapshot", "txid_snapshot_xmin", "txid_current_snapshot"];

/// What a column has to be above.
enum Above {
    /// The value of a variable.
    Variable(Slot),
    /// What is looked up at these names.
    LookedUp(BTreeSet<String>),
}

pub(super) fn find(all: &[One<'_>], catalog: &Catalog) -> Vec<Beyond> {
    let mut found: Vec<Beyond> = Vec::new();
    for one in all.iter().filter(|one| !is_protected(one, all)) {
        for (column, above) in compared(one) {
            for (relation, known) in one.relations(catalog) {
                let of_name = known.columns.iter().find(|of| of.name == column);
                let Some(of) = of_name.filter(|of| relation.found.tested.contains(&of.number)) else {
                    continue;
                };
                let own = (relation.oid, of.number);
                let Some(order) = order(own, of, known, all) else { continue };
                let seen = found.iter().any(
                    |other| matches!(other, Beyond::Watermark { read, table, .. } if read.script == one.at.script && *table == known.qualified()),
                );
                if !seen && is_remembered(one, &above, own, all) {
                    let (read, table) = (one.at.clone(), known.qualified());
                    found.push(Beyond::Watermark { read, table, column: column.clone(), order });
                }
            }
        }
    }
    found
}

/// True if the script asks which transactions have ended, or keeps writers out while it reads.
fn is_protected(one: &One<'_>, all: &[One<'_>]) -> bool {
    let own = || all.iter().filter(|other| other.script == one.script);
    let asks = |other: &One<'_>| {
        let locks = other.tokens().first().is_some_and(|first| first.is("lock"));
        locks || HORIZONS.iter().any(|name| other.names.contains(*name))
    };
    let advisory = |name: &String| name.starts_with("pg_advisory") || name.starts_with("pg_try_advisory");
    own().any(asks) || own().any(|other| other.names.iter().any(advisory))
}

/// The columns of a statement's condition that have to be above something, by their names: `id > :last`,
/// `:last < id`, `(id, part) > (:last, :part)`.
fn compared(one: &One<'_>) -> Vec<(String, Above)> {
    let tokens = one.tokens();
    let token = |at: usize| tokens.get(at).map(|placed| &placed.token.token);
    let variable =
        |at: usize| one.statement.text.variables_in(one.statement.range.start + at).first().copied();
    let is_minus = |at: usize| matches!(token(at), Some(Token::Minus));
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        match token(at) {
            Some(Token::Gt | Token::GtEq) => {
                let row = matches!(token(at - 1), Some(Token::RParen));
                let left = if row {
                    opening(tokens.len(), at - 1, &token).map(|open| open + 1)
                } else {
                    Some(at - 1)
                };
                let Some(name) = left.and_then(|left| tokens[left].name()) else { continue };
                let right = if row { at + 2 } else { at + 1 };
                match right {
                    // Rows that are a little older are read once more.
                    right if right < tokens.len() && variable(right).is_some() && !is_minus(right + 1) => {
                        found.extend(variable(right).map(|slot| (name, Above::Variable(slot))));
                    }
                    right if !row => {
                        found.extend(looked_up(one, right).map(|names| (name, Above::LookedUp(names))));
                    }
                    _ => {}
                }
            }
            Some(Token::Lt | Token::LtEq) => {
                let mut right = at + 1;
                while matches!(token(right + 1), Some(Token::Period)) {
                    right += 2;
                }
                let name = tokens.get(right).and_then(isobench_sql::Placed::name);
                found.extend(name.zip(variable(at - 1)).map(|(name, slot)| (name, Above::Variable(slot))));
            }
            _ => {}
        }
    }
    found
}

/// The parenthesis that the one at a place closes.
fn opening<'t>(count: usize, close: usize, token: &impl Fn(usize) -> Option<&'t Token>) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close.min(count)).rev() {
        match token(at) {
            Some(Token::RParen) => depth += 1,
            Some(Token::LParen) if depth == 1 => return Some(at),
            Some(Token::LParen) => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The names in a subquery that begins here, perhaps within a function's parentheses.
fn looked_up(one: &One<'_>, at: usize) -> Option<BTreeSet<String>> {
    let tokens = one.tokens();
    let is_open = |at: usize| matches!(tokens.get(at).map(|placed| &placed.token.token), Some(Token::LParen));
    let open = if is_open(at) { at } else { at + 1 };
    if !is_open(open) {
        return None;
    }
    let (mut depth, mut names) = (0_usize, BTreeSet::new());
    for placed in &tokens[open..] {
        match placed.token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 1 => break,
            Token::RParen => depth -= 1,
            _ => names.extend(placed.name()),
        }
    }
    names.contains("select").then_some(names)
}

/// The order in which a column's values come, if it isn't that of the commits and rows are written.
fn order(own: ColumnNumber, column: &Column, of: &Relation, all: &[One<'_>]) -> Option<Order> {
    let is_time = matches!(column.kind, ColumnType::Date | ColumnType::Timestamp | ColumnType::Instant);
    let writes = |other: &One<'_>, is: &dyn Fn(&BoundRelation) -> bool| {
        other.bound.relations.iter().any(|relation| relation.oid == own.0 && is(relation))
    };
    let by_default =
        |other: &One<'_>| writes(other, &|relation| relation.inserts && !relation.inserted.contains(&own.1));
    let named = |other: &One<'_>, names: &[&str]| {
        other.given().contains(&own) && names.iter().any(|name| other.names.contains(*name))
    };
    let by_trigger = |other: &One<'_>| {
        writes(other, &|relation| {
            relation.inserts && of.triggers.on_insert.contains(&column.name)
                || relation.updates && of.triggers.on_update.contains(&column.name)
        })
    };
    let any = |is: &dyn Fn(&One<'_>) -> bool| all.iter().any(is);
    if column.kind == ColumnType::Integer {
        let numbered = column.fresh && any(&by_default) || any(&|other| named(other, &["nextval"]));
        return numbered.then_some(Order::Sequence);
    }
    let timed = column.clock && any(&by_default) || any(&|other| named(other, &CLOCKS)) || any(&by_trigger);
    (is_time && timed).then_some(Order::Clock)
}

/// True if what is compared is kept by the script: in a column that it writes, too, or in a variable from one run to
/// the next.
fn is_remembered(one: &One<'_>, above: &Above, own: ColumnNumber, all: &[One<'_>]) -> bool {
    let script = || all.iter().filter(|other| other.script == one.script);
    let kept: BTreeSet<ColumnNumber> =
        script().flat_map(One::given).filter(|column| *column != own).collect();
    match above {
        Above::Variable(slot) => script().any(|other| {
            let outputs = other.bound.outputs.iter().zip(&other.gives);
            outputs.filter(|(_, given)| **given == Some(*slot)).any(|(output, _)| {
                let before = (other.command, other.at.place) < (one.command, one.at.place);
                let mentions = |column: &ColumnNumber| output.mentions.contains_key(column);
                // It is given by this run for the next one.
                before && kept.iter().any(mentions) || !before && mentions(&own)
            })
        }),
        Above::LookedUp(names) => one.bound.relations.iter().any(|relation| {
            let is = |(oid, number): &ColumnNumber| *oid == relation.oid && relation.read.contains(number);
            let columns = kept.iter().filter(|column| is(column));
            columns
                .filter_map(|(_, number)| one.statement.name_of(relation, *number))
                .any(|name| names.contains(&name))
        }),
    }
}
