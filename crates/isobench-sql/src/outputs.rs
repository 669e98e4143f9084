//! The columns of a statement's result, and the shape of a query.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::bound::{Command, Gap, Output, Raised, Shape, field, number, objects, oid};
use crate::conditions::{as_text, is_unlimited, nullable};
use crate::mentions::{Mentions, count};
use crate::node::{Node, Object};
use crate::values::{INTEGER_CASTS, INTEGERS, Scope, Value, type_of};

/// The kind of a command.
pub(crate) fn command(query: &Object) -> Result<Command, Gap> {
    match number(query, "commandType")? {
        1 => Ok(Command::Query),
        2 => Ok(Command::Update),
        3 => Ok(Command::Insert),
        4 => Ok(Command::Delete),
        5 => Ok(Command::Merge),
        _ => Err(Gap::Kind("the kind of a command")),
    }
}

/// The columns of a list of targets. `relations` are the entries of FROM that are relations, in order.
pub(crate) fn outputs<'o>(
    query: &'o Object,
    scope: &Rc<Scope<'o>>,
    relations: &[i64],
) -> Result<Vec<Output>, Gap> {
    let list = if command(query)? == Command::Query { "targetList" } else { "returningList" };
    let mut found = Vec::new();
    for target in objects(query, list)? {
        if field(target, "resjunk")?.token() != Some("false") {
            continue;
        }
        let expression = field(target, "expr")?;
        let mut mentions = Mentions::new();
        count(scope, expression, &mut mentions)?;
        let column = scope.column(as_text(expression)?.unwrap_or(expression))?.and_then(|(entry, column)| {
            Some((relations.iter().position(|relation| *relation == entry)?, column))
        });
        found.push(Output {
            name: field(target, "resname")?.token().unwrap_or("?column?").to_owned(),
            of_type: type_of(expression),
            column,
            mentions,
            call: call(expression, scope)?,
        });
    }
    Ok(found)
}

/// The function that an expression calls and its arguments, if they depend on no row.
fn call(expression: &Node, scope: &Scope<'_>) -> Result<Option<(u32, Vec<Value>)>, Gap> {
    let Some(object) = expression.object().filter(|object| object.name == "FUNCEXPR") else {
        return Ok(None);
    };
    let mut values = Vec::new();
    for argument in field(object, "args")?.elements() {
        let Some(value) = scope.value(argument)? else { return Ok(None) };
        values.push(value);
    }
    Ok(Some((oid(object, "funcid")?, values)))
}

/// The shape of a statement.
pub(crate) fn shape(query: &Object, scope: &Scope<'_>) -> Result<Shape, Gap> {
    let none = |name: &'static str| field(query, name).map(|clause| *clause == Node::Null);
    let has = |name: &'static str| field(query, name).map(|flag| flag.token() != Some("false"));
    let is_query = command(query)? == Command::Query;
    let (distinct, ordered) = (!none("distinctClause")?, !none("sortClause")?);
    let grouped = !none("groupClause")? || !none("groupingSets")? || !none("havingQual")?;
    let mut kinds = BTreeSet::new();
    for entry in scope.entries() {
        kinds.insert(number(entry, "rtekind")?);
    }
    // Relations and joins.
    let of_tables = kinds.contains(&0) && kinds.is_subset(&BTreeSet::from([0, 2]));
    let computes = has("hasAggs")? || has("hasWindowFuncs")? || has("hasTargetSRFs")?;
    let one_part = none("setOperations")? && none("cteList")?;
    Ok(Shape {
        shows_rows: is_query
            && of_tables
            && one_part
            && !(computes || distinct || grouped)
            && nullable(query)?.is_empty(),
        any_values: is_query && none("setOperations")? && !(distinct || ordered || grouped),
        ordered,
        limited: !is_unlimited(query),
        one_row: is_query && none("distinctClause")? && !ordered && scope.has_one_row(query)?,
    })
}

/// What an UPDATE raises by a number: the value of a column or of a parameter, of which the column gets the next ones.
pub(crate) fn raised(column: (i64, i32), value: &Node, scope: &Scope<'_>) -> Result<Option<Raised>, Gap> {
    let Some(object) = value.object() else { return Ok(None) };
    if object.name == "FUNCEXPR" && INTEGER_CASTS.contains(&oid(object, "funcid")?) {
        return match field(object, "args")?.elements() {
            [argument] => raised(column, argument, scope),
            _ => Ok(None),
        };
    }
    if object.name != "OPEXPR" || !scope.is_sum(oid(object, "opfuncid")?) {
        return Ok(None);
    }
    let [left, right] = field(object, "args")?.elements() else { return Ok(None) };
    for (of, by) in [(left, right), (right, left)] {
        if !scope.value(by)?.is_some_and(|by| is_above_zero(&by)) {
            continue;
        }
        if scope.column(of)? == Some(column) {
            return Ok(Some(Raised::Itself));
        }
        if let Some(Value::Parameter(number)) = scope.value(of)? {
            return Ok(Some(Raised::Parameter(number)));
        }
    }
    Ok(None)
}

fn is_above_zero(value: &Value) -> bool {
    match value {
        Value::Constant { of_type, bytes } if INTEGERS.contains(of_type) => {
            <[u8; 8]>::try_from(bytes.as_slice()).is_ok_and(|bytes| i64::from_le_bytes(bytes) > 0)
        }
        _ => false,
    }
}

/// The number of times that a column is mentioned in the value that an UPDATE sets it to, if nothing else is.
pub(crate) fn kept_up<'o>(
    column: (i64, i32),
    value: &'o Node,
    scope: &Rc<Scope<'o>>,
) -> Result<Option<usize>, Gap> {
    let (mut mentioned, mut mentions) = (crate::values::Mentioned::default(), Mentions::new());
    scope.collect(value, 0, &mut mentioned)?;
    count(scope, value, &mut mentions)?;
    let alone = mentioned.columns == BTreeSet::from([column]) && mentions.len() == 1;
    Ok(mentions.into_values().next().filter(|_| alone))
}
