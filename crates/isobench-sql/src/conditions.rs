//! Which rows a query finds: its conditions, and those of its joins, in a normal form.

use std::collections::{BTreeMap, BTreeSet};

use crate::bound::{FoundRows, Gap, field, number, objects};
use crate::node::{Node, Object};
use crate::values::{ColumnAt, Mentioned, Scope, Value};

/// The type `text` (`pg_type.dat`).
const TEXT: i64 = 25;

/// A condition that rows have to meet.
enum Condition {
    /// A column equals a value that depends on no row.
    Value(ColumnAt, Value),
    /// Two columns are equal.
    Same(ColumnAt, ColumnAt),
    /// The text of a column equals a value that depends on no row.
    Text(ColumnAt, Value),
    /// Something else.
    Other(Mentioned),
}

/// The conditions of a query, each with the entries of FROM on whose rows it decides.
struct Conditions {
    all: Vec<(Condition, BTreeSet<i64>)>,
    /// The entries that an outer join may leave without a row.
    nullable: BTreeSet<i64>,
}

/// The rows that are found of each entry of a query's FROM, by its number. `top` is true for the statement
/// itself.
pub fn found_rows(query: &Object, scope: &Scope<'_>, top: bool) -> Result<BTreeMap<i64, FoundRows>, Gap> {
    let Conditions { all: conditions, nullable } = conditions(query, scope)?;
    let equal = equal(&conditions);
    // From version 18 on, the groups of GROUP BY are an entry, too.
    let kind = |entry: &&&Object| entry.get("rtekind").and_then(Node::number);
    let groups = scope.entries().iter().filter(|entry| kind(entry) == Some(9)).count();
    let alone = scope.entries().len() - groups == 1;
    let only_values = conditions.iter().all(|(condition, _)| matches!(condition, Condition::Value(..)));
    // HAVING that no row fulfils leaves the scan out, and one that is true gives a row where there is none.
    let condition = field(query, "havingQual")?;
    let exactly = top && alone && is_unlimited(query) && only_values && *condition == Node::Null;
    let mut having = Mentioned::default();
    scope.collect(condition, 0, &mut having)?;
    let ordered = ordered(query, scope)?;
    let mut found: BTreeMap<i64, FoundRows> = BTreeMap::new();
    for entry in (1..).take(scope.entries().len()) {
        let of_entry = |columns: &BTreeSet<ColumnAt>| -> BTreeSet<i32> {
            columns.iter().filter(|(at, _)| *at == entry).map(|(_, column)| *column).collect()
        };
        let mut rows = FoundRows { alone, exactly, ..FoundRows::default() };
        rows.nullable = nullable.contains(&entry);
        rows.equal =
            equal.iter().filter(|((at, _), _)| *at == entry).map(|((_, c), v)| (*c, v.clone())).collect();
        rows.ordered = of_entry(&ordered);
        rows.tested = of_entry(&having.columns);
        for (condition, _) in &conditions {
            match condition {
                // Where it doesn't decide, it is only tested; where it says something else, too.
                Condition::Value(at, value) => {
                    let requires = equal.get(at).is_some_and(|known| known == value);
                    rows.tested.extend(of_entry(&BTreeSet::from([*at])).into_iter().filter(|_| !requires));
                }
                Condition::Same(one, other) => {
                    let columns = of_entry(&BTreeSet::from([*one, *other]));
                    if one.0 != other.0 {
                        rows.joined.extend(columns.iter().copied());
                    }
                    rows.tested.extend(columns.into_iter().filter(|column| !rows.equal.contains_key(column)));
                }
                Condition::Text(at, value) => {
                    let columns = of_entry(&BTreeSet::from([*at]));
                    rows.as_text.extend(columns.iter().map(|column| (*column, value.clone())));
                    rows.tested.extend(columns);
                }
                Condition::Other(mentioned) => {
                    let columns = of_entry(&mentioned.columns);
                    let entries: BTreeSet<i64> = mentioned.columns.iter().map(|(at, _)| *at).collect();
                    if mentioned.outside || mentioned.looks_for_rows || entries.len() > 1 {
                        rows.joined.extend(columns.iter().copied());
                    }
                    rows.tested.extend(columns);
                }
            }
        }
        rows.exactly &= rows.tested.is_empty();
        found.insert(entry, rows);
    }
    Ok(found)
}

/// The columns of a query that are equal to values in each of its rows.
pub fn equal_columns(query: &Object, scope: &Scope<'_>) -> Result<BTreeMap<ColumnAt, Value>, Gap> {
    Ok(equal(&conditions(query, scope)?.all))
}

/// The entries of a query that an outer join may leave without a row.
pub fn nullable(query: &Object) -> Result<BTreeSet<i64>, Gap> {
    let mut nullable = BTreeSet::new();
    restrictions(field(query, "jointree")?, &mut Vec::new(), &mut nullable)?;
    Ok(nullable)
}

/// The columns that are equal to values, as far as that follows from the conditions on their rows.
fn equal(conditions: &[(Condition, BTreeSet<i64>)]) -> BTreeMap<ColumnAt, Value> {
    let mut equal: BTreeMap<ColumnAt, Value> = BTreeMap::new();
    loop {
        let before = equal.len();
        for (condition, entries) in conditions {
            match condition {
                Condition::Value(column, value) if entries.contains(&column.0) => {
                    equal.entry(*column).or_insert_with(|| value.clone());
                }
                Condition::Same(one, other) => {
                    for (from, to) in [(one, other), (other, one)] {
                        if let (Some(value), true) = (equal.get(from).cloned(), entries.contains(&to.0)) {
                            equal.entry(*to).or_insert(value);
                        }
                    }
                }
                Condition::Value(..) | Condition::Text(..) | Condition::Other(_) => {}
            }
        }
        if equal.len() == before {
            return equal;
        }
    }
}

/// The conditions of a query and of the joins in it.
fn conditions(query: &Object, scope: &Scope<'_>) -> Result<Conditions, Gap> {
    let (mut quals, mut nullable) = (Vec::new(), BTreeSet::new());
    restrictions(field(query, "jointree")?, &mut quals, &mut nullable)?;
    let actions = match query.get("mergeActionList") {
        Some(_) => objects(query, "mergeActionList")?,
        None => Vec::new(),
    };
    if !actions.is_empty() {
        // It decides on rows of the target; from version 17 on, it stands apart, and other rows may be meant.
        let any = actions.iter().any(|action| action.get("matchKind").and_then(Node::number) == Some(1));
        let decided = if any { BTreeSet::new() } else { BTreeSet::from([number(query, "resultRelation")?]) };
        if let Some((_, entries)) = quals.last_mut() {
            entries.clone_from(&decided);
        }
        quals.extend(query.get("mergeJoinCondition").map(|condition| (condition, decided)));
    }
    let mut all = Vec::new();
    for (qual, entries) in quals {
        for conjunct in conjuncts(qual)? {
            all.push((condition(conjunct, scope)?, entries.clone()));
        }
    }
    Ok(Conditions { all, nullable })
}

/// The columns by which a query orders its rows.
fn ordered(query: &Object, scope: &Scope<'_>) -> Result<BTreeSet<ColumnAt>, Gap> {
    let mut mentioned = Mentioned::default();
    for clause in objects(query, "sortClause")? {
        let wanted = number(clause, "tleSortGroupRef")?;
        for target in objects(query, "targetList")? {
            if number(target, "ressortgroupref")? == wanted {
                scope.collect(field(target, "expr")?, 0, &mut mentioned)?;
            }
        }
    }
    Ok(mentioned.columns)
}

/// True if a query has no LIMIT and no OFFSET; LIMIT ALL is none.
pub fn is_unlimited(query: &Object) -> bool {
    let is_null = |clause: &Node| {
        let is_null = clause.object().and_then(|constant| constant.get("constisnull")).and_then(Node::token);
        *clause == Node::Null || is_null == Some("true")
    };
    ["limitOffset", "limitCount"].iter().all(|clause| query.get(clause).is_some_and(is_null))
}

/// The conditions of FROM and WHERE, with the entries on whose rows they decide, and the entries that may be
/// without a row. Returns the entries below a node.
fn restrictions<'o>(
    node: &'o Node,
    found: &mut Vec<(&'o Node, BTreeSet<i64>)>,
    nullable: &mut BTreeSet<i64>,
) -> Result<BTreeSet<i64>, Gap> {
    let Some(object) = node.object() else { return Ok(BTreeSet::new()) };
    match object.name.as_str() {
        "RANGETBLREF" => Ok(BTreeSet::from([number(object, "rtindex")?])),
        "FROMEXPR" => {
            let mut entries = BTreeSet::new();
            for item in field(object, "fromlist")?.elements() {
                entries.extend(restrictions(item, found, nullable)?);
            }
            found.push((field(object, "quals")?, entries.clone()));
            Ok(entries)
        }
        "JOINEXPR" => {
            let left = restrictions(field(object, "larg")?, found, nullable)?;
            let right = restrictions(field(object, "rarg")?, found, nullable)?;
            let both: BTreeSet<i64> = &left | &right;
            let (decided, missing) = match number(object, "jointype")? {
                0 => (both.clone(), BTreeSet::new()),
                1 => (right.clone(), right),
                2 => (BTreeSet::new(), both.clone()),
                3 => (left.clone(), left),
                _ => return Err(Gap::Kind("a join")),
            };
            nullable.extend(missing);
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

fn condition(conjunct: &Node, scope: &Scope<'_>) -> Result<Condition, Gap> {
    if let Some(object) = conjunct.object().filter(|object| object.name == "OPEXPR")
        && u32::try_from(number(object, "opno")?).is_ok_and(|operator| scope.is_equality(operator))
        && let [left, right] = field(object, "args")?.elements()
    {
        let sides = [(left, right), (right, left)];
        for (one, other) in sides {
            if let (Some(column), Some(value)) = (scope.column(one)?, scope.value(other)?) {
                return Ok(Condition::Value(column, value));
            }
        }
        for (one, other) in sides {
            let of_text = as_text(one)?.map_or(Ok(None), |inner| scope.column(inner))?;
            if let (Some(column), Some(value)) = (of_text, scope.value(other)?) {
                return Ok(Condition::Text(column, value));
            }
        }
        if let (Some(one), Some(other)) = (scope.column(left)?, scope.column(right)?) {
            return Ok(Condition::Same(one, other));
        }
    }
    let mut mentioned = Mentioned::default();
    scope.collect(conjunct, 0, &mut mentioned)?;
    Ok(Condition::Other(mentioned))
}

/// What a value is the text of, in the same characters as in a result; `None` if it is something else.
pub fn as_text(expression: &Node) -> Result<Option<&Node>, Gap> {
    match expression.object().filter(|object| object.name == "COERCEVIAIO") {
        Some(object) if number(object, "resulttype")? == TEXT => field(object, "arg").map(Some),
        _ => Ok(None),
    }
}
