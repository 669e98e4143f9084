//! The columns and values that expressions are, where a query stands.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use crate::bound::{Gap, field, number, objects, oid};
use crate::conditions::{equal_columns, nullable};
use crate::node::{Node, Object};

/// A column of an entry of a query's FROM, by the number of the entry.
pub(crate) type ColumnAt = (i64, i32);

/// A value that depends on no row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// That of a parameter, `$1` being 1.
    Parameter(usize),
    /// A constant.
    Constant {
        /// Its type, by OID.
        of_type: u32,
        /// As the server stores it: eight bytes where a value is passed as such, a header of four and the value
        /// otherwise.
        bytes: Vec<u8>,
    },
    /// A text without blanks at its end, as `varchar(n)` has it.
    WithoutBlanks(Box<Value>),
    /// The value of an expression of parameters, constants and functions that give the same for the same values.
    Computed {
        /// The expression, with `$1`, `$2`, … for the parameters in this order. Equal texts are the same
        /// expression.
        text: String,
        /// The parameters.
        parameters: Vec<usize>,
    },
}

/// The server's own functions and operators as far as their meaning matters, and all types, by OID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Builtins {
    /// The operators that mean equality: those of B-trees (PostgreSQL manual, "Index Methods and Operator
    /// Classes"), on one type or on integers. Values of two types may be equal and yet not the same.
    pub equalities: BTreeSet<u32>,
    /// The functions that give the same for the same arguments (PostgreSQL manual, "Function Volatility
    /// Categories"), with their names or those of their operators.
    pub immutable: BTreeMap<u32, String>,
    /// The names of all types.
    pub types: BTreeMap<u32, String>,
}

/// Casts between types of integers, which keep the value or fail (`pg_proc.dat`).
pub(crate) const INTEGER_CASTS: [u32; 6] = [313, 314, 480, 481, 714, 754];

/// The type `real`.
const REAL: u32 = 700;

/// The casts to `char(n)`, of which blanks at the end don't count, and to `varchar(n)`, which may lose some. Where they
/// are implicit, they keep the rest of the value or fail.
const CHAR_CAST: u32 = 668;
const VARCHAR_CAST: u32 = 669;

/// The types of which the text and the value follow from each other whatever the settings are: boolean, integers,
/// texts, OIDs, numbers and UUIDs.
const PLAIN_TEXTS: [u32; 9] = [16, 20, 21, 23, 25, 26, 1043, 1700, 2950];

/// A query's FROM, in which names stand for columns.
#[derive(Clone)]
pub(crate) struct Scope<'o> {
    query: &'o Object,
    entries: Vec<&'o Object>,
    /// The entries that an outer join may leave without a row: their columns may be NULL instead.
    nullable: BTreeSet<i64>,
    /// The query around this one.
    around: Option<Rc<Scope<'o>>>,
    builtins: &'o Builtins,
}

/// The types of integers: what is equal is the same (`pg_type.dat`).
pub(crate) const INTEGERS: [u32; 3] = [20, 21, 23];

/// The columns in a part of a query.
#[derive(Debug, Default)]
pub(crate) struct Mentioned {
    /// Those of the query.
    pub columns: BTreeSet<ColumnAt>,
    /// It has columns of a query around this one.
    pub outside: bool,
    /// It looks for rows of another query: EXISTS, IN, ANY or ALL.
    pub looks_for_rows: bool,
}

impl<'o> Scope<'o> {
    pub(crate) fn of(
        query: &'o Object,
        around: Option<Rc<Scope<'o>>>,
        builtins: &'o Builtins,
    ) -> Result<Scope<'o>, Gap> {
        Ok(Scope { query, entries: objects(query, "rtable")?, nullable: nullable(query)?, around, builtins })
    }

    pub(crate) fn entries(&self) -> &[&'o Object] {
        &self.entries
    }

    pub(crate) fn builtins(&self) -> &'o Builtins {
        self.builtins
    }

    /// True of the server's own functions that add two values.
    pub(crate) fn is_sum(&self, function: u32) -> bool {
        self.builtins.immutable.get(&function).is_some_and(|name| name == "+")
    }

    pub(crate) fn is_equality(&self, operator: u32) -> bool {
        self.builtins.equalities.contains(&operator)
    }

    /// The column of this query that an expression is, whatever its type is called.
    pub(crate) fn column(&self, expression: &Node) -> Result<Option<ColumnAt>, Gap> {
        let Some(object) = expression.object() else { return Ok(None) };
        match object.name.as_str() {
            // `old.column` in RETURNING is another value than the row has then.
            "VAR" if object.get("varreturningtype").and_then(Node::number) == Some(1) => Ok(None),
            "VAR" if number(object, "varlevelsup")? == 0 => match self.behind(object)? {
                Some(other) => self.column(other),
                None => place(object).map(Some),
            },
            "RELABELTYPE" => self.column(field(object, "arg")?),
            // The text of a system column is another one for each value.
            "COERCEVIAIO" => Ok(self.column(field(object, "arg")?)?.filter(|(_, column)| *column < 0)),
            _ => Ok(None),
        }
    }

    /// The value that an expression has whatever rows there are; `None` if there is none, or it isn't known.
    pub(crate) fn value(&self, expression: &Node) -> Result<Option<Value>, Gap> {
        let Some(object) = expression.object() else { return Ok(None) };
        match object.name.as_str() {
            // Outside of quotes a number with a point isn't of that type where the text is sent.
            "PARAM" if oid(object, "paramtype")? == REAL => return Ok(None),
            "PARAM" => return Ok(parameter(object)?.map(Value::Parameter)),
            "CONST" => {
                let of_type = oid(object, "consttype")?;
                return Ok(match field(object, "constvalue")? {
                    Node::Bytes(bytes) => Some(Value::Constant { of_type, bytes: bytes.clone() }),
                    // NULL is equal to nothing.
                    _ => None,
                });
            }
            "RELABELTYPE" | "COERCETODOMAIN" => return self.value(field(object, "arg")?),
            "FUNCEXPR" if keeps_the_value(object)? => {
                let argument = field(object, "args")?.elements().first();
                let value = argument.map_or(Ok(None), |argument| self.value(argument))?;
                let cuts = oid(object, "funcid")? == VARCHAR_CAST;
                return Ok(
                    value.map(|value| if cuts { Value::WithoutBlanks(Box::new(value)) } else { value })
                );
            }
            "VAR" => {
                return match self.of_the_only_row(object)? {
                    Some((scope, value)) => scope.value(value),
                    None => self.of_every_row(object),
                };
            }
            _ => {}
        }
        let (mut text, mut parameters) = (String::new(), Vec::new());
        let known = self.compute(expression, &mut text, &mut parameters)?;
        // Nothing is around it.
        let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).map(str::to_owned);
        Ok(known.then(|| Value::Computed { text: inner.unwrap_or(text), parameters }))
    }

    /// Writes an expression so that equal texts are equal expressions; false if its value may depend on more than its
    /// parameters.
    fn compute(
        &self,
        expression: &Node,
        text: &mut String,
        parameters: &mut Vec<usize>,
    ) -> Result<bool, Gap> {
        let Some(object) = expression.object() else { return Ok(false) };
        let called = match object.name.as_str() {
            "PARAM" => {
                let Some(number) = parameter(object)? else { return Ok(false) };
                parameters.push(number);
                let _ = write!(text, "${}{}", parameters.len(), as_type(oid(object, "paramtype")?));
                return Ok(true);
            }
            "CONST" => {
                text.push_str(&constant(object)?);
                return Ok(true);
            }
            "RELABELTYPE" | "COERCETODOMAIN" => {
                return self.compute(field(object, "arg")?, text, parameters);
            }
            "COERCEVIAIO" => {
                let to = oid(object, "resulttype")?;
                let known = self.compute(field(object, "arg")?, text, parameters)?;
                let _ = write!(text, "::{}", type_name(to));
                return Ok(known && PLAIN_TEXTS.contains(&to));
            }
            "VAR" => {
                return match self.of_the_only_row(object)? {
                    Some((scope, value)) => scope.compute(value, text, parameters),
                    None => Ok(false),
                };
            }
            "OPEXPR" if field(object, "opretset")?.token() == Some("false") => oid(object, "opfuncid")?,
            "FUNCEXPR" if field(object, "funcretset")?.token() == Some("false") => oid(object, "funcid")?,
            _ => return Ok(false),
        };
        let Some(name) = self.builtins.immutable.get(&called) else { return Ok(false) };
        let arguments = field(object, "args")?.elements();
        let infix = object.name == "OPEXPR" && arguments.len() == 2;
        let (first, between) =
            if infix { ("(".to_owned(), format!(" {name} ")) } else { (format!("{name}("), ", ".to_owned()) };
        text.push_str(&first);
        for (place, argument) in arguments.iter().enumerate() {
            text.push_str(if place > 0 { &between } else { "" });
            if !self.compute(argument, text, parameters)? {
                return Ok(false);
            }
        }
        text.push(')');
        Ok(true)
    }

    /// Collects the columns of this query in a part of it, or of the query so many queries within it.
    pub(crate) fn collect(&self, node: &Node, depth: i64, found: &mut Mentioned) -> Result<(), Gap> {
        match node {
            Node::Null | Node::Token(_) | Node::Bytes(_) => Ok(()),
            Node::List(elements) => {
                elements.iter().try_for_each(|element| self.collect(element, depth, found))
            }
            Node::Object(object) if object.name == "VAR" => {
                let level = number(object, "varlevelsup")?;
                if level == depth {
                    match self.behind(object)? {
                        // It stands in this query itself.
                        Some(other) => self.collect(other, 0, found)?,
                        None => drop(found.columns.insert(place(object)?)),
                    }
                }
                found.outside |= level > depth;
                Ok(())
            }
            Node::Object(object) => {
                found.looks_for_rows |= object.name == "SUBLINK" && number(object, "subLinkType")? <= 2;
                let depth = depth + i64::from(object.name == "QUERY");
                object.fields.iter().try_for_each(|(_, value)| self.collect(value, depth, found))
            }
        }
    }

    pub(crate) fn entry(&self, variable: &Object) -> Result<Option<&'o Object>, Gap> {
        let at = usize::try_from(number(variable, "varno")? - 1).ok();
        Ok(at.and_then(|at| self.entries.get(at)).copied())
    }

    /// The expression behind the column of a join or of a group.
    pub(crate) fn behind(&self, variable: &Object) -> Result<Option<&'o Node>, Gap> {
        let Some(entry) = self.entry(variable)? else { return Ok(None) };
        let all = match number(entry, "rtekind")? {
            2 => field(entry, "joinaliasvars")?,
            9 => field(entry, "groupexprs")?,
            _ => return Ok(None),
        };
        let at = usize::try_from(number(variable, "varattno")? - 1).ok();
        Ok(at.and_then(|at| all.elements().get(at)))
    }

    /// The value of a column of an entry that has one row, which depends on none: `(VALUES ($1, $2)) v (x, y)`.
    fn of_the_only_row(&self, variable: &Object) -> Result<Option<(Scope<'o>, &'o Node)>, Gap> {
        if number(variable, "varlevelsup")? != 0 {
            return Ok(None);
        }
        let Some(entry) = self.entry(variable)? else { return Ok(None) };
        if self.nullable.contains(&number(variable, "varno")?) {
            return Ok(None);
        }
        let at = number(variable, "varattno")?;
        match number(entry, "rtekind")? {
            5 => {
                let [row] = field(entry, "values_lists")?.elements() else { return Ok(None) };
                let value = usize::try_from(at - 1).ok().and_then(|at| row.elements().get(at));
                Ok(value.map(|value| (self.clone(), value)))
            }
            1 => {
                let Some(query) = field(entry, "subquery")?.object() else { return Ok(None) };
                let scope = Scope::of(query, Some(Rc::new(self.clone())), self.builtins)?;
                if !scope.has_one_row(query)? {
                    return Ok(None);
                }
                let values = targets(query, "targetList")?;
                let value = values.into_iter().find(|(column, _)| i64::from(*column) == at);
                Ok(value.map(|(_, value)| (scope, value)))
            }
            _ => Ok(None),
        }
    }

    /// The value that a column has in each row that counts: of a subquery or a WITH query, one that depends on no row, or
    /// that of an integer that its conditions require to be equal to one; of a query around this one, such an integer.
    /// Rows for which this query says something else aren't in the result of the one around it.
    fn of_every_row(&self, variable: &Object) -> Result<Option<Value>, Gap> {
        let levels = number(variable, "varlevelsup")?;
        let Some(scope) = self.outer(levels) else { return Ok(None) };
        if scope.nullable.contains(&number(variable, "varno")?) {
            return Ok(None);
        }
        match scope.of_subquery(variable)? {
            // RETURNING shows a row as it is afterwards.
            None if number(scope.query, "resultRelation")? == number(variable, "varno")?
                && *field(scope.query, "returningList")? != Node::Null =>
            {
                Ok(None)
            }
            None if levels > 0 && INTEGERS.contains(&oid(variable, "vartype")?) => {
                Ok(equal_columns(scope.query, scope)?.remove(&place(variable)?))
            }
            value => Ok(value),
        }
    }

    /// The value that a column of a subquery or of a WITH query of this one has in each of its rows.
    fn of_subquery(&self, variable: &Object) -> Result<Option<Value>, Gap> {
        if let Some(other) = self.behind(variable)? {
            return self.value(other);
        }
        let Some((query, around)) = self.subquery(variable)? else { return Ok(None) };
        let none = |name: &'static str| field(query, name).map(|clause| *clause == Node::Null);
        if number(query, "commandType")? != 1 || !none("setOperations")? || !none("groupingSets")? {
            return Ok(None);
        }
        let at = number(variable, "varattno")?;
        let column = targets(query, "targetList")?.into_iter().find(|(column, _)| i64::from(*column) == at);
        let Some((_, expression)) = column else { return Ok(None) };
        let inner = Scope::of(query, Some(Rc::new(around.clone())), self.builtins)?;
        if let Some(value) = inner.value(expression)? {
            return Ok(Some(value));
        }
        let is_integer = type_of(expression).is_some_and(|of| INTEGERS.contains(&of));
        match inner.column(expression)? {
            Some(column) if is_integer && !inner.nullable.contains(&column.0) => {
                Ok(equal_columns(query, &inner)?.remove(&column))
            }
            _ => Ok(None),
        }
    }

    /// The scope so many queries further out.
    pub(crate) fn so_far_out(self: &Rc<Self>, levels: i64) -> Option<Rc<Scope<'o>>> {
        (0..levels).try_fold(Rc::clone(self), |scope, _| scope.around.clone())
    }

    fn outer(&self, levels: i64) -> Option<&Scope<'o>> {
        (0..levels).try_fold(self, |scope, _| scope.around.as_deref())
    }

    /// The query whose column a variable of this one is, with the scope in which that query stands.
    fn subquery(&self, variable: &Object) -> Result<Option<(&'o Object, &Scope<'o>)>, Gap> {
        let Some(entry) = self.entry(variable)? else { return Ok(None) };
        match number(entry, "rtekind")? {
            1 => Ok(field(entry, "subquery")?.object().map(|query| (query, self))),
            6 => {
                let Some(scope) = self.outer(number(entry, "ctelevelsup")?) else { return Ok(None) };
                let name = field(entry, "ctename")?;
                for with in objects(scope.query, "cteList")? {
                    if field(with, "ctename")? == name
                        && field(with, "cterecursive")?.token() == Some("false")
                    {
                        return Ok(field(with, "ctequery")?.object().map(|query| (query, scope)));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// True if this query certainly returns one row: no FROM, or VALUES of one row, and nothing that leaves it out
    /// or repeats it.
    pub(crate) fn has_one_row(&self, query: &Object) -> Result<bool, Gap> {
        let from = field(query, "jointree")?.object().ok_or(Gap::Kind("a query's FROM"))?;
        let none = |name: &'static str| field(query, name).map(|clause| *clause == Node::Null);
        let one = match (self.entries.as_slice(), field(from, "fromlist")?.elements()) {
            ([], []) => true,
            ([entry], [_]) => {
                number(entry, "rtekind")? == 5 && field(entry, "values_lists")?.elements().len() == 1
            }
            _ => false,
        };
        Ok(one
            && number(query, "commandType")? == 1
            && *field(from, "quals")? == Node::Null
            && none("havingQual")?
            && none("limitOffset")?
            && none("limitCount")?
            && none("setOperations")?
            && none("groupClause")?
            && none("groupingSets")?
            && field(query, "hasTargetSRFs")?.token() == Some("false"))
    }
}

/// The values that a list of targets gives to columns, by their numbers.
pub(crate) fn targets<'o>(query: &'o Object, list: &'static str) -> Result<Vec<(i32, &'o Node)>, Gap> {
    let mut found = Vec::new();
    for target in objects(query, list)? {
        if field(target, "resjunk")?.token() == Some("false") {
            let wrong = |_| Gap::Field { node: target.name.clone(), field: "resno" };
            let column = i32::try_from(number(target, "resno")?).map_err(wrong)?;
            found.push((column, field(target, "expr")?));
        }
    }
    Ok(found)
}

/// The type of an expression's value, by OID, if the node says it.
pub(crate) fn type_of(expression: &Node) -> Option<u32> {
    let object = expression.object()?;
    let name = match object.name.as_str() {
        "VAR" => "vartype",
        "CONST" => "consttype",
        "PARAM" => "paramtype",
        "AGGREF" => "aggtype",
        "WINDOWFUNC" => "wintype",
        "FUNCEXPR" => "funcresulttype",
        "OPEXPR" => "opresulttype",
        "RELABELTYPE" | "COERCEVIAIO" | "COERCETODOMAIN" => "resulttype",
        "CASE" | "CASEEXPR" => "casetype",
        "COALESCE" | "COALESCEEXPR" => "coalescetype",
        "MINMAX" | "MINMAXEXPR" => "minmaxtype",
        _ => return None,
    };
    oid(object, name).ok()
}

/// The number of a parameter of the statement; `None` if it is one of the server's own.
fn parameter(object: &Object) -> Result<Option<usize>, Gap> {
    if number(object, "paramkind")? != 0 {
        return Ok(None);
    }
    let wrong = |_| Gap::Field { node: object.name.clone(), field: "paramid" };
    usize::try_from(number(object, "paramid")?).map(Some).map_err(wrong)
}

fn keeps_the_value(call: &Object) -> Result<bool, Gap> {
    let function = oid(call, "funcid")?;
    // Casts that nobody has written.
    let implicit = number(call, "funcformat")? == 2;
    Ok(INTEGER_CASTS.contains(&function) || implicit && matches!(function, CHAR_CAST | VARCHAR_CAST))
}

fn place(variable: &Object) -> Result<ColumnAt, Gap> {
    let column = i32::try_from(number(variable, "varattno")?);
    let wrong = |_| Gap::Field { node: variable.name.clone(), field: "varattno" };
    Ok((number(variable, "varno")?, column.map_err(wrong)?))
}

/// A constant as text, another one for each type and value.
fn constant(object: &Object) -> Result<String, Gap> {
    let of_type = oid(object, "consttype")?;
    let Node::Bytes(bytes) = field(object, "constvalue")? else { return Ok("NULL".to_owned()) };
    let number = <[u8; 8]>::try_from(bytes.as_slice()).map(i64::from_le_bytes);
    let string = bytes.get(4..).and_then(|bytes| std::str::from_utf8(bytes).ok());
    Ok(match (of_type, number, string) {
        (20 | 21 | 23, Ok(number), _) => number.to_string(),
        (25, _, Some(string)) => format!("'{}'", string.replace('\'', "''")),
        _ => {
            let mut text = String::from("'");
            for byte in bytes {
                let _ = write!(text, "{byte:02x}");
            }
            format!("{text}'::{}", type_name(of_type))
        }
    })
}

/// The cast to a type, in whose values the same number is another one than in integers.
fn as_type(of: u32) -> String {
    if matches!(of, 20 | 21 | 23) { String::new() } else { format!("::{}", type_name(of)) }
}

/// The name of a type of the server (`pg_type.dat`), or its OID.
fn type_name(of: u32) -> String {
    let known = match of {
        16 => "boolean",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        25 => "text",
        26 => "oid",
        701 => "float8",
        1043 => "varchar",
        1082 => "date",
        1114 => "timestamp",
        1184 => "timestamptz",
        1700 => "numeric",
        2950 => "uuid",
        other => return format!("type {other}"),
    };
    known.to_owned()
}
