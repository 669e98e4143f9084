//! WHERE: the condition and the key that a statement searched for, as far as they can be evaluated
//! exactly.

use isobench_isolation::observed::{Case, Comparison, array_elements};
use isobench_script::{SearchValue, SearchWhen, TextPart};
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, ExactNumberInfo, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, Spanned, TimezoneInfo, UnaryOperator, Value, ValueWithSpan,
};
use sqlparser::tokenizer::Token;

use super::from::Item;
use super::walk::conjuncts;
use super::{Condition, Examiner, Search, ident};
use isobench_sql::{ColumnType, Relation, RelationId};

/// The words that end a list of output columns of a SELECT without FROM, or a condition.
pub(super) const LIST_ENDS: [&str; 12] = [
    "where",
    "group",
    "having",
    "window",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
    "union",
    "intersect",
    "except",
];

/// Words that are values or functions without parentheses, not columns, unless they are quoted.
const NOT_COLUMNS: [&str; 12] = [
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "system_user",
    "user",
];

type Key = Option<Vec<SearchValue>>;

impl Examiner<'_> {
    /// The key and the rest of a condition; `None` if it can't be evaluated exactly.
    pub(super) fn condition(
        &self,
        relation: RelationId,
        item: &Item,
        condition: Option<&Expr>,
    ) -> Option<Search> {
        let root = &self.catalog.relations[self.catalog.root(relation)];
        let table = Table { examiner: self, relation: root, item };
        let Some(condition) = condition else {
            return Some(Search {
                key: None,
                condition: Condition::True,
                referred: None,
                when: SearchWhen::Always,
            });
        };
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        let mut conditions: Vec<Condition> = Vec::with_capacity(parts.len());
        for part in parts {
            let condition = table.condition(part)?;
            if condition != Condition::True {
                conditions.push(condition);
            }
        }
        if conditions.iter().map(Condition::lists).sum::<usize>() > 1 {
            return None;
        }
        let key = if root.has_children() { None } else { take_key(root, &mut conditions) };
        let rest = match conditions.len() {
            0 => Condition::True,
            1 => conditions.remove(0),
            _ => Condition::And(conditions),
        };
        Some(Search { key, condition: rest, referred: None, when: SearchWhen::Always })
    }

    /// A condition as written, as far as its place is known: after the WHERE before its first token, up
    /// to the end of the clause.
    pub(super) fn condition_text(&self, condition: &Expr) -> String {
        let tokens = &self.text.tokens;
        let inside = self.text.at(condition.span().start).unwrap_or(self.range.end);
        let upto = inside.min(self.range.end);
        let Some(start) = (self.range.start..upto).rev().find(|place| tokens[*place].is("where")) else {
            return condition.to_string();
        };
        let mut depth = 0_usize;
        let end = (start + 1..self.range.end).find(|place| {
            let token = &tokens[*place];
            match token.token.token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => return true,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth == 0 && (token.is("returning") || LIST_ENDS.iter().any(|word| token.is(word)))
        });
        self.text.named(&(start + 1..end.unwrap_or(self.range.end)))
    }
}

/// Takes the conditions away that require equality with a whole key.
pub(super) fn take_key(relation: &Relation, conditions: &mut Vec<Condition>) -> Key {
    let mut values = Vec::with_capacity(relation.key.len());
    let mut places = Vec::with_capacity(relation.key.len());
    for column in &relation.key {
        let column = &relation.columns[*column];
        if !matches!(column.kind, ColumnType::Integer | ColumnType::Text | ColumnType::Uuid) {
            return None;
        }
        let found = conditions.iter().enumerate().find_map(|(place, condition)| match condition {
            Condition::Compare(name, Comparison::Equal, value)
                if *name == column.name && *value != SearchValue::Null =>
            {
                Some((place, value.clone()))
            }
            _ => None,
        })?;
        places.push(found.0);
        values.push(match found.1 {
            SearchValue::Variable(slot) if column.kind == ColumnType::Uuid => SearchValue::Uuid(slot),
            value => value,
        });
    }
    places.sort_unstable();
    for place in places.into_iter().rev() {
        conditions.remove(place);
    }
    Some(values)
}

/// The one table that a condition is about.
pub(super) struct Table<'e, 'a> {
    pub(super) examiner: &'e Examiner<'a>,
    pub(super) relation: &'e Relation,
    pub(super) item: &'e Item,
}

impl Table<'_, '_> {
    /// A condition that can be evaluated exactly.
    pub(super) fn condition(&self, expr: &Expr) -> Option<Condition> {
        match expr {
            Expr::Nested(inner) => self.condition(inner),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Some(not(self.condition(expr)?)),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                Some(Condition::And(vec![self.condition(left)?, self.condition(right)?]))
            }
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                Some(Condition::Or(vec![self.condition(left)?, self.condition(right)?]))
            }
            Expr::BinaryOp { left, op, right } => {
                let op = comparison(op)?;
                if let (Expr::Tuple(left), Expr::Tuple(right)) = (plain(left), plain(right)) {
                    return self.rows(left, op, right);
                }
                match (number(left), number(right)) {
                    (Some(left), Some(right)) => {
                        Some(negated_if(!op.holds(left.cmp(&right)), Condition::True))
                    }
                    _ => self.comparison(left, op, right),
                }
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => self.among(left, right),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => {
                Some(not(self.among(left, right)?))
            }
            Expr::Between { expr, negated, low, high } => {
                let low = self.comparison(expr, Comparison::GreaterOrEqual, low)?;
                let high = self.comparison(expr, Comparison::LessOrEqual, high)?;
                Some(negated_if(*negated, Condition::And(vec![low, high])))
            }
            Expr::InList { expr, list, negated } => {
                if let Expr::Tuple(left) = plain(expr) {
                    let rows = list.iter().map(|row| match plain(row) {
                        Expr::Tuple(right) => self.rows(left, Comparison::Equal, right),
                        _ => None,
                    });
                    return Some(negated_if(*negated, Condition::Or(rows.collect::<Option<_>>()?)));
                }
                let (name, kind) = self.column(expr)?;
                let values = list.iter().map(|value| self.value(value, kind)).collect::<Option<_>>()?;
                Some(negated_if(*negated, Condition::In(name, values)))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                Some(negated_if(*negated, self.like(expr, pattern, escape_char.as_deref())?))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                let name = self.text_column(expr)?;
                let value = self.value(pattern, ColumnType::Text)?;
                let folded = Condition::Folded { name, case: Case::Lower, value, both: true, pattern: true };
                Some(negated_if(*negated, folded))
            }
            Expr::Value(ValueWithSpan { value: Value::Boolean(truth), .. }) => {
                Some(if *truth { Condition::True } else { not(Condition::True) })
            }
            Expr::IsNull(expr) => self.null(expr),
            Expr::IsNotNull(expr) => Some(not(self.null(expr)?)),
            Expr::IsTrue(expr) => self.truth(expr, true),
            Expr::IsNotTrue(expr) => Some(not(self.truth(expr, true)?)),
            Expr::IsFalse(expr) => self.truth(expr, false),
            Expr::IsNotFalse(expr) => Some(not(self.truth(expr, false)?)),
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let (name, kind) = self.column(expr)?;
                (kind == ColumnType::Boolean)
                    .then(|| Condition::Compare(name, Comparison::Equal, boolean(true)))
            }
            _ => None,
        }
    }

    /// A column compared with a value, on either side.
    fn comparison(&self, left: &Expr, op: Comparison, right: &Expr) -> Option<Condition> {
        if let (Comparison::Equal | Comparison::NotEqual, Some(folded)) =
            (op, self.folded(left, right, false).or_else(|| self.folded(right, left, false)))
        {
            return Some(negated_if(op == Comparison::NotEqual, folded));
        }
        let (column, value, op) = match self.column(left) {
            Some(column) => (column, right, op),
            None => (self.column(right)?, left, turned(op)),
        };
        let (name, kind) = column;
        let ordered = !matches!(op, Comparison::Equal | Comparison::NotEqual);
        if ordered && kind == ColumnType::Decimal {
            return Some(Condition::Decimal(name, op, self.value(value, kind)?));
        }
        if ordered && !kind.is_ordered() {
            return None;
        }
        Some(Condition::Compare(name, op, self.value(value, kind)?))
    }

    /// `upper(column)` or `lower(column)` compared with a value, perhaps in the same case.
    fn folded(&self, column: &Expr, value: &Expr, pattern: bool) -> Option<Condition> {
        let (case, inner) = cased(column)?;
        let name = self.text_column(inner)?;
        let (value, both) = match cased(value) {
            Some((other, value)) if other == case => (self.value(value, ColumnType::Text)?, true),
            Some(_) => return None,
            None => (self.value(value, ColumnType::Text)?, false),
        };
        Some(Condition::Folded { name, case, value, both, pattern })
    }

    /// A column of texts whose letters have their usual case.
    fn text_column(&self, expr: &Expr) -> Option<String> {
        let (name, ColumnType::Text) = self.column(expr)? else { return None };
        let column = &self.relation.columns[self.relation.column(&name)?];
        (column.plain_case && column.kind == ColumnType::Text).then_some(name)
    }

    /// A comparison of rows: `(a, b) = (1, 2)`, `(a, b) < (1, 2)`.
    fn rows(&self, left: &[Expr], op: Comparison, right: &[Expr]) -> Option<Condition> {
        if left.len() != right.len() || left.is_empty() {
            return None;
        }
        let equal = |count: usize| -> Option<Vec<Condition>> {
            let pairs = left.iter().zip(right).take(count);
            pairs.map(|(left, right)| self.comparison(left, Comparison::Equal, right)).collect()
        };
        let strict = match op {
            Comparison::Equal => return Some(Condition::And(equal(left.len())?)),
            Comparison::NotEqual => return Some(not(Condition::And(equal(left.len())?))),
            Comparison::Less | Comparison::LessOrEqual => Comparison::Less,
            Comparison::Greater | Comparison::GreaterOrEqual => Comparison::Greater,
        };
        // The first pair that isn't equal decides.
        let mut ways = Vec::with_capacity(left.len());
        for place in 0..left.len() {
            let own = if place + 1 == left.len() { op } else { strict };
            let mut way = equal(place)?;
            way.push(self.comparison(&left[place], own, &right[place])?);
            ways.push(Condition::And(way));
        }
        Some(Condition::Or(ways))
    }

    /// `column = ANY (array)`
    fn among(&self, column: &Expr, array: &Expr) -> Option<Condition> {
        let (name, kind) = self.column(column)?;
        match array {
            Expr::Nested(inner) => self.among(column, inner),
            Expr::Cast { expr, data_type: DataType::Array(of), format: None, .. } => {
                let (ArrayElemTypeDef::SquareBracket(of, None) | ArrayElemTypeDef::Qualified(of, None)) = of
                else {
                    return None;
                };
                let same = cast_type(of) == Some(kind) || kind == ColumnType::Enum;
                if same { self.among(column, expr) } else { None }
            }
            Expr::Array(array) => {
                let values = array.elem.iter().map(|value| self.value(value, kind)).collect::<Option<_>>()?;
                Some(Condition::In(name, values))
            }
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text)
                    if !self.examiner.text.is_partly_variable(value.span.start) =>
                {
                    let element = |text: Option<&str>| match text {
                        None => Some(SearchValue::Null),
                        Some(text) => constant(text, kind),
                    };
                    let elements = array_elements(text)?.into_iter().map(element);
                    Some(Condition::In(name, elements.collect::<Option<_>>()?))
                }
                Value::Placeholder(_) => Some(Condition::Among(name, self.literal(value, kind)?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// `column LIKE pattern`
    fn like(&self, expr: &Expr, pattern: &Expr, escape: Option<&Expr>) -> Option<Condition> {
        if escape.is_none()
            && let Some(folded) = self.folded(expr, pattern, true)
        {
            return Some(folded);
        }
        let (name, ColumnType::Text) = self.column(expr)? else { return None };
        let escape = match escape {
            None => Some('\\'),
            Some(Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. })) => {
                let mut chars = text.chars();
                let escape = chars.next();
                chars.next().is_none().then_some(escape)?
            }
            Some(_) => return None,
        };
        let pattern = self.value(pattern, ColumnType::Text)?;
        let special = |char: char| matches!(char, '%' | '_') || Some(char) == escape;
        let plain = matches!(&pattern, SearchValue::Constant(text) if !text.contains(special));
        Some(if plain {
            Condition::Compare(name, Comparison::Equal, pattern)
        } else {
            Condition::Like(name, pattern, escape)
        })
    }

    fn null(&self, expr: &Expr) -> Option<Condition> {
        let (name, kind) = self.any_column(expr)?;
        (kind != ColumnType::Composite).then_some(Condition::IsNull(name))
    }

    /// `column IS TRUE`, which is never NULL.
    fn truth(&self, expr: &Expr, wanted: bool) -> Option<Condition> {
        let (name, ColumnType::Boolean) = self.column(expr)? else { return None };
        let known = not(Condition::IsNull(name.clone()));
        Some(Condition::And(vec![known, Condition::Compare(name, Comparison::Equal, boolean(wanted))]))
    }

    /// A column whose values can be compared.
    pub(super) fn column(&self, expr: &Expr) -> Option<(String, ColumnType)> {
        self.any_column(expr).filter(|(_, kind)| !matches!(kind, ColumnType::Scalar | ColumnType::Composite))
    }

    fn any_column(&self, expr: &Expr) -> Option<(String, ColumnType)> {
        let name = match expr {
            Expr::Nested(inner) => return self.any_column(inner),
            Expr::Cast { expr, data_type, format: None, .. }
                if cast_type(data_type) == Some(ColumnType::Text) =>
            {
                let (name, kind) = self.any_column(expr)?;
                return matches!(kind, ColumnType::Text | ColumnType::Enum)
                    .then_some((name, ColumnType::Text));
            }
            Expr::Identifier(name) => {
                let word = name.quote_style.is_none() && NOT_COLUMNS.contains(&ident(name).as_str());
                (!word).then_some(name)?
            }
            Expr::CompoundIdentifier(parts) => {
                let (name, qualifier) = parts.split_last()?;
                self.is_table(qualifier).then_some(name)?
            }
            _ => return None,
        };
        let name = ident(name);
        let column = &self.relation.columns[self.relation.column(&name)?];
        Some((name, column.kind))
    }

    /// True if a qualifier is the table: its alias, or its name, perhaps with the schema.
    fn is_table(&self, qualifier: &[Ident]) -> bool {
        match qualifier {
            [name] => ident(name) == self.item.name,
            // With an alias, the server would refuse it.
            [schema, name] => ident(schema) == self.relation.schema && ident(name) == self.item.name,
            _ => false,
        }
    }

    /// A constant or a variable, as a value of a type.
    pub(super) fn value(&self, expr: &Expr, kind: ColumnType) -> Option<SearchValue> {
        match expr {
            Expr::Nested(inner) => self.value(inner, kind),
            Expr::Value(value) => self.literal(value, kind),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } if kind == ColumnType::Decimal => {
                let SearchValue::Constant(digits) = self.value(expr, kind)? else { return None };
                if digits.starts_with('-') { None } else { constant(&format!("-{digits}"), kind) }
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } if kind == ColumnType::Integer => {
                let SearchValue::Constant(digits) = self.value(expr, kind)? else { return None };
                let number: i64 = digits.parse().ok()?;
                Some(SearchValue::Constant(number.checked_neg()?.to_string()))
            }
            Expr::Cast { expr, data_type, format: None, .. } => {
                let value = self.value(expr, kind)?;
                if let (Some(scale), ColumnType::Decimal) = (scale(data_type), kind) {
                    return scaled(value, scale);
                }
                keeps(data_type, kind).then_some(value)
            }
            // A day of a time without a zone has 24 hours.
            Expr::BinaryOp { left, op: op @ (BinaryOperator::Plus | BinaryOperator::Minus), right }
                if kind == ColumnType::Timestamp =>
            {
                let Expr::Cast { data_type, .. } = plain(left) else { return None };
                (cast_type(data_type) == Some(kind)).then_some(())?;
                let by = moved_by(right)?;
                let by = if *op == BinaryOperator::Minus { by.checked_neg()? } else { by };
                Some(SearchValue::Moved(Box::new(self.value(left, kind)?), by))
            }
            Expr::BinaryOp { op: BinaryOperator::StringConcat, .. } if kind == ColumnType::Text => {
                let mut parts = Vec::new();
                self.parts_of_text(expr, &mut parts)?;
                // Two variables: the server doesn't know that texts are meant.
                let constant = parts.iter().any(|part| matches!(part, TextPart::Text(_)));
                constant.then_some(SearchValue::Joined { parts, literal: false })
            }
            _ => None,
        }
    }

    /// The parts of texts that are joined by `||`.
    fn parts_of_text(&self, expr: &Expr, parts: &mut Vec<TextPart>) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.parts_of_text(inner, parts),
            Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
                self.parts_of_text(left, parts)?;
                self.parts_of_text(right, parts)
            }
            Expr::Cast { expr, data_type, format: None, .. } => {
                (cast_type(data_type)? == ColumnType::Text).then_some(())?;
                self.parts_of_text(expr, parts)
            }
            Expr::Value(value) => {
                parts.push(match (&value.value, self.literal(value, ColumnType::Text)?) {
                    (Value::SingleQuotedString(_), SearchValue::Constant(text)) => TextPart::Text(text),
                    (Value::Placeholder(_), SearchValue::Variable(slot)) => TextPart::Variable(slot),
                    (Value::Placeholder(_), SearchValue::Parameter(number)) => TextPart::Parameter(number),
                    _ => return None,
                });
                Some(())
            }
            _ => None,
        }
    }

    fn literal(&self, value: &ValueWithSpan, kind: ColumnType) -> Option<SearchValue> {
        match (&value.value, kind) {
            (Value::Null, _) => Some(SearchValue::Null),
            (Value::Placeholder(name), _) => self.examiner.parameter(name),
            (Value::Number(digits, false), ColumnType::Integer | ColumnType::Decimal) => {
                constant(digits, kind)
            }
            (Value::Boolean(truth), ColumnType::Boolean) => Some(boolean(*truth)),
            (Value::SingleQuotedString(text), _) => {
                if self.examiner.text.is_partly_variable(value.span.start) {
                    let parts = self.examiner.text.parts_of_literal(value.span.start)?;
                    return (kind == ColumnType::Text)
                        .then_some(SearchValue::Joined { parts, literal: true });
                }
                constant(text, kind)
            }
            _ => None,
        }
    }
}

/// The case of `upper(…)` or `lower(…)`, and what is in it.
fn cased(expr: &Expr) -> Option<(Case, &Expr)> {
    let Expr::Function(function) = plain(expr) else { return None };
    let [name] = function.name.0.as_slice() else { return None };
    let case = match ident(name.as_ident()?).as_str() {
        "lower" => Case::Lower,
        "upper" => Case::Upper,
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] = list.args.as_slice() else { return None };
    let bare = function.over.is_none() && function.filter.is_none() && list.clauses.is_empty();
    bare.then_some((case, inner))
}

/// An expression without the parentheses around it.
fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => plain(inner),
        other => other,
    }
}

/// The microseconds of `interval '1 day'` or `7 * interval '1 day'`; of no unit that is longer.
fn moved_by(expr: &Expr) -> Option<i64> {
    match plain(expr) {
        Expr::BinaryOp { left, op: BinaryOperator::Multiply, right } => match (whole(left), whole(right)) {
            (Some(times), None) => moved_by(right)?.checked_mul(times),
            (None, Some(times)) => moved_by(left)?.checked_mul(times),
            _ => None,
        },
        Expr::Interval(interval) => {
            let plain = interval.leading_field.is_none()
                && interval.leading_precision.is_none()
                && interval.last_field.is_none()
                && interval.fractional_seconds_precision.is_none();
            let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = &*interval.value
            else {
                return None;
            };
            let (count, unit) = text.split_once(' ').filter(|_| plain)?;
            let seconds = match unit.strip_suffix('s').unwrap_or(unit) {
                "second" => 1,
                "minute" => 60,
                "hour" => 3600,
                "day" => 86_400,
                _ => return None,
            };
            integer(count)?.parse::<i64>().ok()?.checked_mul(seconds * 1_000_000)
        }
        _ => None,
    }
}

/// A whole number that stands in a statement, perhaps with a sign and a type.
fn whole(expr: &Expr) -> Option<i64> {
    match plain(expr) {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => whole(expr)?.checked_neg(),
        Expr::Cast { expr, data_type, format: None, .. } => {
            let number = matches!(cast_type(data_type), Some(ColumnType::Integer | ColumnType::Decimal));
            if number { whole(expr) } else { None }
        }
        other => number(other),
    }
}

/// An integer that stands in a statement.
fn number(expr: &Expr) -> Option<i64> {
    match plain(expr) {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, false), .. }) => {
            integer(digits)?.parse().ok()
        }
        _ => None,
    }
}

/// A literal as a value of a type; `None` if the server may read it in another way.
fn constant(text: &str, kind: ColumnType) -> Option<SearchValue> {
    let text = match kind {
        ColumnType::Integer => integer(text)?,
        ColumnType::Boolean => match text {
            "t" | "true" => "true".to_owned(),
            "f" | "false" => "false".to_owned(),
            _ => return None,
        },
        ColumnType::Date | ColumnType::Timestamp | ColumnType::Instant => {
            kind.form()?.moment(text)?;
            text.to_owned()
        }
        _ => kind.form()?.canonical(text)?.into_owned(),
    };
    Some(SearchValue::Constant(text))
}

/// True if a cast to a type leaves values as they are.
fn keeps(data_type: &DataType, kind: ColumnType) -> bool {
    match data_type {
        // By way of a text, or at once.
        DataType::Custom(..) => kind == ColumnType::Enum,
        DataType::Text | DataType::Varchar(None) if kind == ColumnType::Enum => true,
        _ => cast_type(data_type) == Some(kind),
    }
}

/// The number of digits after the point in `numeric(12, 2)`.
fn scale(data_type: &DataType) -> Option<u16> {
    match data_type {
        DataType::Numeric(ExactNumberInfo::PrecisionAndScale(_, scale))
        | DataType::Decimal(ExactNumberInfo::PrecisionAndScale(_, scale)) => u16::try_from(*scale).ok(),
        DataType::Numeric(ExactNumberInfo::Precision(_))
        | DataType::Decimal(ExactNumberInfo::Precision(_)) => Some(0),
        _ => None,
    }
}

/// A number in a type with so many digits after the point; `None` if it would be another one.
fn scaled(value: SearchValue, scale: u16) -> Option<SearchValue> {
    match value {
        SearchValue::Null => Some(value),
        SearchValue::Constant(ref text) => (decimals(text) <= usize::from(scale)).then_some(value),
        SearchValue::Variable(_) | SearchValue::Parameter(_) | SearchValue::Scaled(..) => {
            Some(SearchValue::Scaled(Box::new(value), scale))
        }
        _ => None,
    }
}

/// The number of digits after the point of a decimal number.
fn decimals(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// Digits as the server prints them; `None` if they aren't digits alone, or too many.
fn integer(digits: &str) -> Option<String> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse::<i64>().ok()).flatten().map(|number| number.to_string())
}

fn boolean(truth: bool) -> SearchValue {
    SearchValue::Constant(truth.to_string())
}

fn not(condition: Condition) -> Condition {
    Condition::Not(Box::new(condition))
}

fn negated_if(negated: bool, condition: Condition) -> Condition {
    if negated { not(condition) } else { condition }
}

fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The comparison with its sides changed.
fn turned(op: Comparison) -> Comparison {
    match op {
        Comparison::Equal | Comparison::NotEqual => op,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
    }
}

/// The type of values that a cast makes, if it doesn't change them otherwise.
pub(super) fn cast_type(data_type: &DataType) -> Option<ColumnType> {
    match data_type {
        DataType::Int(None)
        | DataType::Integer(None)
        | DataType::Int2(None)
        | DataType::Int4(None)
        | DataType::Int8(None)
        | DataType::SmallInt(None)
        | DataType::BigInt(None) => Some(ColumnType::Integer),
        DataType::Text | DataType::Varchar(None) => Some(ColumnType::Text),
        DataType::Uuid => Some(ColumnType::Uuid),
        DataType::Numeric(ExactNumberInfo::None) | DataType::Decimal(ExactNumberInfo::None) => {
            Some(ColumnType::Decimal)
        }
        DataType::Date => Some(ColumnType::Date),
        DataType::Timestamp(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Some(ColumnType::Timestamp)
        }
        DataType::Timestamp(None | Some(6), TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            Some(ColumnType::Instant)
        }
        DataType::Boolean | DataType::Bool => Some(ColumnType::Boolean),
        _ => None,
    }
}
