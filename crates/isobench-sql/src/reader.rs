//! Reads the server's tree of a statement.
//!
//! Whatever isn't known of the tree is a gap, so that nothing of a statement can be missed: a node or a kind of
//! relation that isn't listed here, or a field that should be there and isn't.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::bound::{Bound, BoundRelation, Gap, LockStrength, RowLock, Wait, field, number, objects, oid};
use crate::conditions::{found_rows, is_unlimited};
use crate::mentions::count_query;
use crate::node::{Node, Object};
use crate::outputs::{command, kept_up, outputs, raised, shape};
use crate::values::{Builtins, Scope, Value, targets};

/// The nodes that only have values and further nodes in them.
const PLAIN: [&str; 74] = [
    "AGGREF",
    "ALIAS",
    "ARRAY",
    "ARRAYCOERCEEXPR",
    "ARRAYEXPR",
    "BOOLEANTEST",
    "BOOLEXPR",
    "CASE",
    "CASEEXPR",
    "CASETESTEXPR",
    "CASEWHEN",
    "COALESCE",
    "COALESCEEXPR",
    "COERCETODOMAIN",
    "COERCETODOMAINVALUE",
    "COERCEVIAIO",
    "COLLATE",
    "COLLATEEXPR",
    "COMMONTABLEEXPR",
    "CONST",
    "CONVERTROWTYPEEXPR",
    "CTECYCLECLAUSE",
    "CTESEARCHCLAUSE",
    "DISTINCTEXPR",
    "FIELDSELECT",
    "FIELDSTORE",
    "FROMEXPR",
    "FUNCEXPR",
    "GROUPINGFUNC",
    "GROUPINGSET",
    "INFERENCEELEM",
    "JOINEXPR",
    "JSONBEHAVIOR",
    "JSONCONSTRUCTOREXPR",
    "JSONEXPR",
    "JSONFORMAT",
    "JSONISPREDICATE",
    "JSONRETURNING",
    "JSONVALUEEXPR",
    "MERGEACTION",
    "MERGESUPPORTFUNC",
    "MINMAX",
    "MINMAXEXPR",
    "NAMEDARGEXPR",
    "NULLIFEXPR",
    "NULLTEST",
    "ONCONFLICTEXPR",
    "OPEXPR",
    "PARAM",
    "RANGETBLENTRY",
    "RANGETBLFUNCTION",
    "RANGETBLREF",
    "RELABELTYPE",
    "RETURNINGEXPR",
    "ROW",
    "ROWCOMPARE",
    "ROWCOMPAREEXPR",
    "ROWEXPR",
    "ROWMARKCLAUSE",
    "RTE",
    "RTEPERMISSIONINFO",
    "SCALARARRAYOPEXPR",
    "SETOPERATIONSTMT",
    "SETTODEFAULT",
    "SORTGROUPCLAUSE",
    "SQLVALUEFUNCTION",
    "SUBLINK",
    "SUBSCRIPTINGREF",
    "TARGETENTRY",
    "VAR",
    "WHEN",
    "WINDOWCLAUSE",
    "WINDOWFUNC",
    "XMLEXPR",
];

/// The fields that hold a function.
const FUNCTIONS: [&str; 8] = [
    "aggfnoid",
    "endInRangeFunc",
    "funcid",
    "hashfuncid",
    "negfuncid",
    "opfuncid",
    "startInRangeFunc",
    "winfnoid",
];

/// The fields that hold operators, one or a list.
const OPERATORS: [&str; 4] = ["eqop", "opno", "opnos", "sortop"];

/// The bitmaps of columns begin with the lowest system column.
const LOWEST_COLUMN: i32 = -7;

/// A tree as it is read.
pub(crate) struct Reader<'o> {
    bound: Bound,
    builtins: &'o Builtins,
    /// The query around the next one.
    around: Option<Rc<Scope<'o>>>,
    /// What is read next is certainly executed: the statement itself, or a part of its UNION.
    top: bool,
    /// It is a part of a UNION.
    united: bool,
}

impl<'o> Reader<'o> {
    pub(crate) fn read(query: &'o Object, builtins: &'o Builtins) -> Result<Bound, Gap> {
        let mut reader = Reader { bound: Bound::default(), builtins, around: None, top: true, united: false };
        // The statement's own relations come first.
        let own = reader.query(query)?;
        let scope = Rc::new(Scope::of(query, None, builtins)?);
        for relation in reader.bound.relations.iter_mut().take(own.len()) {
            relation.own = true;
        }
        reader.bound.outputs = outputs(query, &scope, &own)?;
        reader.bound.mentions = count_query(&scope, query)?;
        reader.bound.command = command(query)?;
        reader.bound.shape = shape(query, &scope)?;
        Ok(reader.bound)
    }

    /// Reads a query. Returns the entries of its FROM that are relations, in order.
    fn query(&mut self, query: &'o Object) -> Result<Vec<i64>, Gap> {
        if *field(query, "utilityStmt")? != Node::Null {
            return Err(Gap::Kind("what a command does that is no query"));
        }
        let entries: Vec<&Object> = objects(query, "rtable")?;
        let permissions = match query.get("rteperminfos") {
            Some(_) => objects(query, "rteperminfos")?,
            None => Vec::new(),
        };
        let conflict = query.get("onConflict").and_then(Node::object);
        // The row that was to be inserted is like a relation, but none.
        let excluded = match conflict {
            Some(conflict) => number(conflict, "exclRelIndex")?,
            None => 0,
        };
        let target = number(query, "resultRelation")?;
        let merged = match query.get("mergeTargetRelation") {
            Some(_) => number(query, "mergeTargetRelation")?,
            None => 0,
        };
        let mut here: Vec<(i64, BoundRelation)> = Vec::new();
        for (place, entry) in (1..).zip(&entries) {
            if place != excluded
                && let Some(relation) = relation(entry, &permissions)?
            {
                here.push((place, relation));
            }
        }
        let scope = Rc::new(Scope::of(query, self.around.clone(), self.builtins)?);
        let mut found = found_rows(query, &scope, self.top)?;
        let grouped = *field(query, "havingQual")? != Node::Null;
        for (place, relation) in &mut here {
            relation.found = found.remove(place).unwrap_or_default();
            relation.top = self.top;
            relation.in_result = self.top && !self.united && !grouped && !relation.found.nullable;
        }
        if target != 0 {
            let find = |(place, _): &&mut (i64, BoundRelation)| *place == target;
            let (_, relation) = here.iter_mut().find(find).ok_or(Gap::Kind("the target of a command"))?;
            relation.in_result = false;
            write(query, &scope, conflict, relation)?;
        } else if number(query, "commandType")? != 1 || merged != 0 {
            return Err(Gap::Kind("the kind of a command"));
        }
        for mark in objects(query, "rowMarks")? {
            let place = number(mark, "rti")?;
            // Of a subquery, the locks are in it, too.
            if let Some((_, relation)) = here.iter_mut().find(|(known, _)| *known == place) {
                relation.locks.push(lock(mark)?);
            }
        }
        let places = here.iter().map(|(place, _)| *place).collect();
        self.bound.relations.extend(here.into_iter().map(|(_, relation)| relation));
        let unites = *field(query, "setOperations")? != Node::Null;
        let (top, united) = (self.top, self.united);
        let around = self.around.replace(scope);
        let parts_are_executed = top && unites && is_unlimited(query);
        for (name, value) in &query.fields {
            self.top = parts_are_executed && name == "rtable";
            self.united = self.top;
            self.field(query, name, value)?;
        }
        (self.top, self.united, self.around) = (top, united, around);
        Ok(places)
    }

    fn object(&mut self, object: &'o Object) -> Result<(), Gap> {
        if object.name == "QUERY" {
            return self.query(object).map(drop);
        }
        if PLAIN.binary_search(&object.name.as_str()).is_err() {
            return Err(Gap::Node(object.name.clone()));
        }
        match object.name.as_str() {
            "COERCEVIAIO" | "COERCETODOMAIN" => drop(self.bound.types.insert(oid(object, "resulttype")?)),
            "PARAM" => drop(self.bound.types.insert(oid(object, "paramtype")?)),
            "CONST" => drop(self.bound.types.insert(oid(object, "consttype")?)),
            _ => {}
        }
        object.fields.iter().try_for_each(|(name, value)| self.field(object, name, value))
    }

    fn field(&mut self, object: &'o Object, name: &str, value: &'o Node) -> Result<(), Gap> {
        let wrong = |field: &'static str| Gap::Field { node: object.name.clone(), field };
        if let Some(field) = FUNCTIONS.iter().find(|field| **field == name) {
            let function =
                value.number().and_then(|oid| u32::try_from(oid).ok()).ok_or_else(|| wrong(field))?;
            self.bound.functions.extend((function != 0).then_some(function));
            return Ok(());
        }
        if let Some(field) = OPERATORS.iter().find(|field| **field == name) {
            let all = match value {
                // A list of OIDs begins with a letter.
                Node::List(all) => all.get(1..).unwrap_or_default(),
                one => std::slice::from_ref(one),
            };
            // The function of an operator in an expression is in the tree.
            let beside = object.get("opfuncid").is_some_and(|function| function.number() != Some(0));
            for operator in all.iter().filter(|_| !beside) {
                let operator =
                    operator.number().and_then(|oid| u32::try_from(oid).ok()).ok_or_else(|| wrong(field))?;
                self.bound.operators.extend((operator != 0).then_some(operator));
            }
            return Ok(());
        }
        self.node(value)
    }

    fn node(&mut self, node: &'o Node) -> Result<(), Gap> {
        match node {
            Node::Null | Node::Token(_) | Node::Bytes(_) => Ok(()),
            Node::List(elements) => elements.iter().try_for_each(|element| self.node(element)),
            Node::Object(object) => self.object(object),
        }
    }
}

/// Notes what a command does with its target.
fn write<'o>(
    query: &'o Object,
    scope: &Rc<Scope<'o>>,
    conflict: Option<&Object>,
    relation: &mut BoundRelation,
) -> Result<(), Gap> {
    match number(query, "commandType")? {
        2 => {
            relation.updates = true;
            let targets = targets(query, "targetList")?;
            let target = number(query, "resultRelation")?;
            for (column, value) in &targets {
                let place = (target, *column);
                relation.kept_up.extend(kept_up(place, value, scope)?.map(|times| (*column, times)));
                relation.raised.extend(raised(place, value, scope)?.map(|raised| (*column, raised)));
            }
            relation.set = values(scope, targets)?;
        }
        3 => {
            relation.inserts = true;
            (relation.rows, relation.lists_rows) = rows(query, scope)?;
            // OVERRIDING USER VALUE: an identity column has another value than the one given.
            if number(query, "override")? == 1 {
                relation.rows.iter_mut().for_each(BTreeMap::clear);
            }
            if let Some(conflict) = conflict {
                relation.arbiter = arbiter(conflict)?;
                relation.arbiter_is_partial = *field(conflict, "arbiterWhere")? != Node::Null;
                match number(conflict, "action")? {
                    1 => relation.skips_conflicts = true,
                    2 => {
                        relation.updates = true;
                        relation.may_keep = *field(conflict, "onConflictWhere")? != Node::Null;
                    }
                    _ => return Err(Gap::Kind("the action of ON CONFLICT")),
                }
            }
        }
        4 => relation.deletes = true,
        // MERGE from version 15 on; before, no such command has a target.
        5 => {
            relation.merges = true;
            (relation.inserts, relation.updates, relation.deletes) = merge(query)?;
            for action in objects(query, "mergeActionList")? {
                if number(action, "commandType")? == 3 {
                    relation.rows.push(values(scope, targets(action, "targetList")?)?);
                }
            }
        }
        _ => return Err(Gap::Kind("the kind of a command")),
    }
    Ok(())
}

/// The values of columns that depend on no row.
fn values(scope: &Scope<'_>, targets: Vec<(i32, &Node)>) -> Result<BTreeMap<i32, Value>, Gap> {
    let mut found = BTreeMap::new();
    for (column, value) in targets {
        if let Some(value) = scope.value(value)? {
            found.insert(column, value);
        }
    }
    Ok(found)
}

/// The rows that an INSERT adds, and whether it lists them.
fn rows(query: &Object, scope: &Scope<'_>) -> Result<(Vec<BTreeMap<i32, Value>>, bool), Gap> {
    let targets = targets(query, "targetList")?;
    let from = field(query, "jointree")?.object().ok_or(Gap::Kind("the rows of an INSERT"))?;
    match field(from, "fromlist")?.elements() {
        [] => {
            // A function that returns sets may return none.
            let one = *field(from, "quals")? == Node::Null
                && field(query, "hasTargetSRFs")?.token() == Some("false");
            Ok((vec![values(scope, targets)?], one))
        }
        [source] => {
            let source = source.object().ok_or(Gap::Kind("the rows of an INSERT"))?;
            let place = usize::try_from(number(source, "rtindex")? - 1).ok();
            let entry = place.and_then(|place| scope.entries().get(place)).copied();
            let entry = entry.ok_or(Gap::Kind("the rows of an INSERT"))?;
            if number(entry, "rtekind")? != 5 {
                return Ok((vec![values(scope, targets)?], false));
            }
            let mut rows = Vec::new();
            for list in field(entry, "values_lists")?.elements() {
                let of_list = |value: &'_ Node| -> Result<Option<Value>, Gap> {
                    match value.object().filter(|object| object.name == "VAR") {
                        Some(variable) if number(variable, "varlevelsup")? == 0 => {
                            let at = usize::try_from(number(variable, "varattno")? - 1).ok();
                            let value = at.and_then(|at| list.elements().get(at));
                            value.map_or(Ok(None), |value| scope.value(value))
                        }
                        Some(_) => Ok(None),
                        None => scope.value(value),
                    }
                };
                let mut row = BTreeMap::new();
                for (column, value) in &targets {
                    if let Some(value) = of_list(value)? {
                        row.insert(*column, value);
                    }
                }
                rows.push(row);
            }
            Ok((rows, true))
        }
        _ => Err(Gap::Kind("the rows of an INSERT")),
    }
}

/// What a MERGE may do: insert, update, delete.
fn merge(query: &Object) -> Result<(bool, bool, bool), Gap> {
    let mut kinds = BTreeSet::new();
    for action in objects(query, "mergeActionList")? {
        kinds.insert(number(action, "commandType")?);
    }
    Ok((kinds.contains(&3), kinds.contains(&2), kinds.contains(&4)))
}

/// The columns by which ON CONFLICT finds a row; those of expressions aren't among them.
fn arbiter(conflict: &Object) -> Result<BTreeSet<i32>, Gap> {
    let mut columns = BTreeSet::new();
    for element in objects(conflict, "arbiterElems")? {
        if let Some(column) = field(element, "expr")?.object().filter(|expression| expression.name == "VAR") {
            columns.extend(i32::try_from(number(column, "varattno")?).ok());
        }
    }
    Ok(columns)
}

/// The relation of an entry in a list of FROM; `None` if it is something else that is known.
fn relation(entry: &Object, permissions: &[&Object]) -> Result<Option<BoundRelation>, Gap> {
    if !matches!(entry.name.as_str(), "RANGETBLENTRY" | "RTE") {
        return Err(Gap::Node(entry.name.clone()));
    }
    match number(entry, "rtekind")? {
        0 => {}
        // Subqueries, joins, functions, VALUES, WITH queries, no FROM at all, and groups.
        1 | 2 | 3 | 5 | 6 | 8 | 9 => return Ok(None),
        _ => return Err(Gap::Kind("what stands in FROM")),
    }
    if *field(entry, "tablesample")? != Node::Null {
        return Err(Gap::Kind("TABLESAMPLE"));
    }
    let oid = oid(entry, "relid")?;
    // From version 16 on, the columns are in an entry of their own.
    let columns = match entry.get("perminfoindex") {
        Some(_) => {
            let place = usize::try_from(number(entry, "perminfoindex")? - 1).ok();
            let found = place.and_then(|place| permissions.get(place)).copied();
            let found = found.ok_or(Gap::Kind("the columns of a relation"))?;
            if self::oid(found, "relid")? != oid {
                return Err(Gap::Kind("the columns of a relation"));
            }
            found
        }
        None => entry,
    };
    let name = field(entry, "eref")?.object().ok_or(Gap::Kind("the name of a relation"))?;
    Ok(Some(BoundRelation {
        oid,
        alias: field(name, "aliasname")?.token().unwrap_or_default().to_owned(),
        only: field(entry, "inh")?.token() == Some("false"),
        read: self::columns(columns, "selectedCols")?,
        inserted: self::columns(columns, "insertedCols")?,
        updated: self::columns(columns, "updatedCols")?,
        ..BoundRelation::default()
    }))
}

fn lock(mark: &Object) -> Result<RowLock, Gap> {
    let strength = match number(mark, "strength")? {
        1 => LockStrength::KeyShare,
        2 => LockStrength::Share,
        3 => LockStrength::NoKeyUpdate,
        4 => LockStrength::Update,
        _ => return Err(Gap::Kind("a row lock")),
    };
    let wait = match number(mark, "waitPolicy")? {
        0 => Wait::Blocks,
        1 => Wait::Skips,
        2 => Wait::Fails,
        _ => return Err(Gap::Kind("a row lock")),
    };
    Ok(RowLock { strength, wait })
}

/// The columns of a bitmap such as `(b 8 9)`.
fn columns(object: &Object, name: &'static str) -> Result<BTreeSet<i32>, Gap> {
    let wrong = || Gap::Field { node: object.name.clone(), field: name };
    let Node::List(bits) = field(object, name)? else { return Err(wrong()) };
    let Some((letter, bits)) = bits.split_first() else { return Err(wrong()) };
    if letter.token() != Some("b") {
        return Err(wrong());
    }
    let column = |bit: &Node| {
        let bit = bit.number().and_then(|bit| i32::try_from(bit).ok()).ok_or_else(wrong)?;
        bit.checked_add(LOWEST_COLUMN).ok_or_else(wrong)
    };
    bits.iter().map(column).collect()
}
