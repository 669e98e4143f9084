//! How often a statement mentions each column of its tables, wherever that is.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bound::{Gap, number, oid};
use crate::node::{Node, Object};
use crate::values::Scope;

/// Columns of relations, by the relations' OIDs and the columns' numbers, each with the number of times that a part of
/// a statement mentions it: 0 is the whole row, and system columns are negative. A column by which rows are sorted,
/// grouped or made distinct counts once more.
pub type Mentions = BTreeMap<(u32, i32), usize>;

/// Counts the columns that a part of a query mentions.
pub(crate) fn count<'o>(scope: &Rc<Scope<'o>>, node: &'o Node, found: &mut Mentions) -> Result<(), Gap> {
    match node {
        Node::Null | Node::Token(_) | Node::Bytes(_) => Ok(()),
        Node::List(elements) => elements.iter().try_for_each(|element| count(scope, element, found)),
        Node::Object(object) => match object.name.as_str() {
            "VAR" => variable(scope, object, found),
            "QUERY" => {
                let inner = Rc::new(Scope::of(object, Some(Rc::clone(scope)), scope.builtins())?);
                fields(&inner, object, found)
            }
            // What stands behind the columns of joins and groups counts where they are mentioned.
            "RANGETBLENTRY" | "RTE" if matches!(number(object, "rtekind")?, 2 | 9) => Ok(()),
            "TARGETENTRY" if number(object, "ressortgroupref")? != 0 => {
                fields(scope, object, found)?;
                fields(scope, object, found)
            }
            _ => fields(scope, object, found),
        },
    }
}

/// The same of a whole query, of which this is the scope.
pub(crate) fn count_query<'o>(scope: &Rc<Scope<'o>>, query: &'o Object) -> Result<Mentions, Gap> {
    let mut found = Mentions::new();
    fields(scope, query, &mut found)?;
    Ok(found)
}

fn fields<'o>(scope: &Rc<Scope<'o>>, object: &'o Object, found: &mut Mentions) -> Result<(), Gap> {
    object.fields.iter().try_for_each(|(_, value)| count(scope, value, found))
}

fn variable(scope: &Rc<Scope<'_>>, variable: &Object, found: &mut Mentions) -> Result<(), Gap> {
    let outside = || Gap::Kind("the query of a column");
    let scope = Scope::so_far_out(scope, number(variable, "varlevelsup")?).ok_or_else(outside)?;
    if let Some(expression) = scope.behind(variable)? {
        return count(&scope, expression, found);
    }
    let entry = scope.entry(variable)?.ok_or_else(outside)?;
    if number(entry, "rtekind")? == 0 {
        let column = i32::try_from(number(variable, "varattno")?);
        let column = column.map_err(|_| Gap::Field { node: variable.name.clone(), field: "varattno" })?;
        *found.entry((oid(entry, "relid")?, column)).or_default() += 1;
    }
    Ok(())
}
