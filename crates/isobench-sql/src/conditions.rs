//! Which rows a query finds: its conditions, and those of its joins, in a normal form.

use std::collections::{BTreeMap, BTreeSet};

use crate::bound::{FoundRows, Gap, field, number, objects};
use crate::node::{Node, Object};

/// A column of an entry of a query's FROM, by the number of the entry.
type ColumnAt = (i64, i32);

/// A condition that rows have to meet.
enum Condition {
    /// A column equals a value that depends on no row.
    Value(ColumnAt),
    /// Two columns are equal.
    Same(ColumnAt, ColumnAt),
    /// Something else, of these columns.
    Other(BTreeSet<ColumnAt>),
}

/// The rows that are found of each entry of a query's FROM, by its number. `top` is true for the statement
/// itself.
pub fn found_rows(
    query: &Object,
    top: bool,
    equalities: &BTreeSet<u32>,
) -> Result<BTreeMap<i64, FoundRows>, Gap> {
    if query.get("mergeActionList").is_some_and(|actions| *actions != Node::Null) {
        // The condition of a MERGE stands elsewhere in each version.
        return Ok(BTreeMap::new());
    }
    let mut quals = Vec::new();
    restrictions(field(query, "jointree")?, &mut quals)?;
    // Each condition with the entries whose rows it decides on.
    let mut conditions = Vec::new();
    for (qual, entries) in &quals {
        for conjunct in conjuncts(qual)? {
            conditions.push((condition(conjunct, equalities)?, entries));
        }
    }
    let mut equal: BTreeSet<ColumnAt> = BTreeSet::new();
    loop {
        let before = equal.len();
        for (condition, entries) in &conditions {
            let decides = |(entry, _): &ColumnAt| entries.contains(entry);
            match condition {
                Condition::Value(column) => equal.extend(Some(*column).filter(decides)),
                Condition::Same(one, other) => {
                    for (from, to) in [(one, other), (other, one)] {
                        if equal.contains(from) && decides(to) {
                            equal.insert(*to);
                        }
                    }
                }
                Condition::Other(_) => {}
            }
        }
        if equal.len() == before {
            break;
        }
    }
    let entries = objects(query, "rtable")?;
    // From version 18 on, the groups of GROUP BY are an entry, too.
    let groups =
        entries.iter().filter(|entry| entry.get("rtekind").and_then(Node::number) == Some(9)).count();
    let (entries, only_one) = (entries.len(), entries.len() - groups == 1);
    let unlimited = is_unlimited(query);
    let only_values = conditions.iter().all(|(condition, _)| matches!(condition, Condition::Value(_)));
    let mut found: BTreeMap<i64, FoundRows> = BTreeMap::new();
    for entry in (1..).take(entries) {
        let of_entry = |columns: &BTreeSet<ColumnAt>| -> BTreeSet<i32> {
            columns.iter().filter(|(at, _)| *at == entry).map(|(_, column)| *column).collect()
        };
        let tested = conditions.iter().flat_map(|(condition, _)| match condition {
            Condition::Value(_) => BTreeSet::new(),
            Condition::Same(one, other) => of_entry(&BTreeSet::from([*one, *other])),
            Condition::Other(columns) => of_entry(columns),
        });
        let exactly = top && only_one && unlimited && only_values;
        found.insert(entry, FoundRows { equal: of_entry(&equal), tested: tested.collect(), exactly });
    }
    Ok(found)
}

/// True if a query has no LIMIT and no OFFSET; LIMIT ALL is none.
pub fn is_unlimited(query: &Object) -> bool {
    let is_null = |clause: &Node| {
        let is_null = clause.object().and_then(|constant| constant.get("constisnull")).and_then(Node::token);
        *clause == Node::Null || is_null == Some("true")
    };
    ["limitOffset", "limitCount"].iter().all(|clause| query.get(clause).is_some_and(is_null))
}

/// The conditions of FROM and WHERE, with the entries on whose rows they decide. Returns the entries below a
/// node.
fn restrictions<'o>(
    node: &'o Node,
    found: &mut Vec<(&'o Node, BTreeSet<i64>)>,
) -> Result<BTreeSet<i64>, Gap> {
    let Some(object) = node.object() else { return Ok(BTreeSet::new()) };
    match object.name.as_str() {
        "RANGETBLREF" => Ok(BTreeSet::from([number(object, "rtindex")?])),
        "FROMEXPR" => {
            let mut entries = BTreeSet::new();
            for item in field(object, "fromlist")?.elements() {
                entries.extend(restrictions(item, found)?);
            }
            found.push((field(object, "quals")?, entries.clone()));
            Ok(entries)
        }
        "JOINEXPR" => {
            let left = restrictions(field(object, "larg")?, found)?;
            let right = restrictions(field(object, "rarg")?, found)?;
            let both: BTreeSet<i64> = &left | &right;
            let decided = match number(object, "jointype")? {
                0 => both.clone(),
                1 => right,
                2 => BTreeSet::new(),
                3 => left,
                _ => return Err(Gap::Kind("a join")),
            };
            found.push((field(object, "quals")?, decided));
            Ok(both)
        }
        other => Err(Gap::Node(other.to_owned())),
    }
}

/// The parts of a condition that AND connects.
fn conjuncts(qual: &Node) -> Result<Vec<&Node>, Gap> {
    match qual {
        Node::Null => Ok(Vec::new()),
        Node::Object(object)
            if object.name == "BOOLEXPR" && field(object, "boolop")?.token() == Some("and") =>
        {
            let mut all = Vec::new();
            for part in field(object, "args")?.elements() {
                all.extend(conjuncts(part)?);
            }
            Ok(all)
        }
        other => Ok(vec![other]),
    }
}

fn condition(conjunct: &Node, equalities: &BTreeSet<u32>) -> Result<Condition, Gap> {
    if let Some(object) = conjunct.object() {
        // A column of a truth value alone, or its negation.
        let negated = object.name == "BOOLEXPR" && field(object, "boolop")?.token() == Some("not");
        let inner = if negated { field(object, "args")?.elements().first() } else { Some(conjunct) };
        if let Some(column) = inner.map(column).transpose()?.flatten() {
            return Ok(Condition::Value(column));
        }
        // IS NULL, IS TRUE, IS FALSE and IS UNKNOWN.
        let of_one_value = match object.name.as_str() {
            "NULLTEST" => number(object, "nulltesttype")? == 0,
            "BOOLEANTEST" => matches!(number(object, "booltesttype")?, 0 | 2 | 4),
            _ => false,
        };
        if of_one_value && let Some(column) = column(field(object, "arg")?)? {
            return Ok(Condition::Value(column));
        }
        let equality = object.name == "OPEXPR"
            && u32::try_from(number(object, "opno")?).is_ok_and(|operator| equalities.contains(&operator));
        if let (true, [left, right]) =
            (equality, field(object, "args").map(Node::elements).unwrap_or_default())
        {
            match (column(left)?, column(right)?) {
                (Some(one), Some(other)) => return Ok(Condition::Same(one, other)),
                (Some(column), None) if columns_in(right)?.is_some_and(|columns| columns.is_empty()) => {
                    return Ok(Condition::Value(column));
                }
                (None, Some(column)) if columns_in(left)?.is_some_and(|columns| columns.is_empty()) => {
                    return Ok(Condition::Value(column));
                }
                _ => {}
            }
        }
    }
    let mut columns = BTreeSet::new();
    collect(conjunct, 0, &mut columns, &mut false)?;
    Ok(Condition::Other(columns))
}

/// The column of this query that an expression is, whatever its type is called.
fn column(expression: &Node) -> Result<Option<ColumnAt>, Gap> {
    let Some(object) = expression.object() else { return Ok(None) };
    match object.name.as_str() {
        "VAR" if number(object, "varlevelsup")? == 0 => var(object).map(Some),
        "RELABELTYPE" => column(field(object, "arg")?),
        // The text of a system column is another one for each value.
        "COERCEVIAIO" => Ok(column(field(object, "arg")?)?.filter(|(_, column)| *column < 0)),
        _ => Ok(None),
    }
}

fn var(object: &Object) -> Result<ColumnAt, Gap> {
    let column = i32::try_from(number(object, "varattno")?);
    let wrong = |_| Gap::Field { node: object.name.clone(), field: "varattno" };
    Ok((number(object, "varno")?, column.map_err(wrong)?))
}

/// The columns of this query in an expression; `None` if it depends on rows of others.
fn columns_in(expression: &Node) -> Result<Option<BTreeSet<ColumnAt>>, Gap> {
    let (mut columns, mut others) = (BTreeSet::new(), false);
    collect(expression, 0, &mut columns, &mut others)?;
    Ok((!others).then_some(columns))
}

/// Collects the columns of the query that is so many queries around this place, and whether there are those
/// of other queries.
fn collect(node: &Node, depth: i64, columns: &mut BTreeSet<ColumnAt>, others: &mut bool) -> Result<(), Gap> {
    match node {
        Node::Null | Node::Token(_) => Ok(()),
        Node::List(elements) => {
            elements.iter().try_for_each(|element| collect(element, depth, columns, others))
        }
        Node::Object(object) if object.name == "VAR" => {
            if number(object, "varlevelsup")? == depth {
                columns.insert(var(object)?);
            } else {
                *others = true;
            }
            Ok(())
        }
        Node::Object(object) => {
            *others |= object.name == "QUERY";
            let depth = depth + i64::from(object.name == "QUERY");
            object.fields.iter().try_for_each(|(_, value)| collect(value, depth, columns, others))
        }
    }
}
