//! Advisory locks that are held until the transaction ends.
//!
//! To whoever waits for one it is a row lock: `SELECT pg_advisory_xact_lock(…)` locks a row that nothing
//! else is done with (PostgreSQL manual, "Advisory Lock Functions"). Locks that a session may give back
//! earlier, or that aren't waited for, protect nothing by themselves, and are left out; so are those in
//! statements that do anything else, whose snapshot is older than the lock.

use std::ops::ControlFlow;

use isobench_robustness::Strength;
use isobench_script::Slot;
use sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, SelectItem,
    SetExpr, Statement, Value,
};

use super::walk::{Node, walk};
use super::{Examiner, ident};

/// Functions of which the same arguments give the same result, by which texts become the numbers of locks.
/// Other arguments may give the same, too: then others wait, which does no harm.
const HASHES: [&str; 6] = ["hashtext", "hashtextextended", "hashint4", "hashint8", "abs", "md5"];

/// An advisory lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdvisoryLock {
    /// Its arguments, with `$1`, `$2`, … in place of variables.
    pub key: String,
    /// The variables, in order.
    pub variables: Vec<Slot>,
    /// How strong it is, as a row lock.
    pub strength: Strength,
    /// Its number is made of the texts of the variables, rather than their numbers.
    pub of_texts: bool,
}

impl Examiner<'_> {
    /// The advisory locks that the statement takes, if it does nothing else.
    pub(crate) fn advisory_locks(&self) -> Vec<AdvisoryLock> {
        let Ok(Statement::Query(query)) = self.parse() else { return Vec::new() };
        let SetExpr::Select(select) = query.body.as_ref() else { return Vec::new() };
        // Anything else may leave its only row out, and then the functions aren't called.
        let plain = query.with.is_none()
            && select.from.is_empty()
            && select.selection.is_none()
            && select.having.is_none()
            && select.distinct.is_none()
            && matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty())
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.order_by.is_none();
        let locks = select.projection.iter().map(|item| match item {
            SelectItem::UnnamedExpr(Expr::Function(function))
            | SelectItem::ExprWithAlias { expr: Expr::Function(function), .. } => {
                self.advisory_lock(function)
            }
            _ => None,
        });
        locks.collect::<Option<Vec<_>>>().filter(|_| plain).unwrap_or_default()
    }

    fn advisory_lock(&self, function: &Function) -> Option<AdvisoryLock> {
        let strength = match ident(function.name.0.last()?.as_ident()?).as_str() {
            "pg_advisory_xact_lock" => Strength::Update,
            "pg_advisory_xact_lock_shared" => Strength::Share,
            _ => return None,
        };
        let FunctionArguments::List(list) = &function.args else { return None };
        let (mut texts, mut variables) = (Vec::new(), Vec::new());
        for argument in &list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else { return None };
            let (text, own) = computed(self, value, &HASHES)?;
            texts.push(text);
            variables.extend(own);
        }
        let key = texts.join(", ");
        let of_texts = key.contains(['(', ':', '\'']);
        Some(AdvisoryLock { key, variables, strength, of_texts })
    }
}

/// True for integers and texts.
fn is_plain(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::SmallInt(None)
            | DataType::Int(None)
            | DataType::Integer(None)
            | DataType::BigInt(None)
            | DataType::Int2(None)
            | DataType::Int4(None)
            | DataType::Int8(None)
            | DataType::Text
            | DataType::Varchar(None)
    )
}

/// An expression of nothing but operators, casts and calls of these functions, of literals and variables,
/// so that the same values give the same one: its text with `$1`, `$2`, … in place of the variables, and
/// these.
fn computed(examiner: &Examiner<'_>, value: &Expr, functions: &[&str]) -> Option<(String, Vec<Slot>)> {
    let (mut slots, mut plain) = (Vec::new(), true);
    let _ = walk(value, &mut |node| {
        match node {
            Node::Expr(Expr::Value(literal)) => match &literal.value {
                Value::Placeholder(name) => match examiner.text.variable(name) {
                    Some(slot) => slots.push(slot),
                    None => plain = false,
                },
                // The functions are strict: of NULL they do nothing.
                Value::Null => plain = false,
                _ => plain &= !examiner.text.is_partly_variable(literal.span.start),
            },
            Node::Expr(Expr::BinaryOp { .. } | Expr::UnaryOp { .. } | Expr::Nested(_)) => {}
            // The value and the text of these follow from each other whatever the settings are.
            Node::Expr(Expr::Cast { data_type, .. }) => plain &= is_plain(data_type),
            Node::Expr(Expr::Function(function)) => {
                let name = function.name.0.last().and_then(|part| part.as_ident()).map(ident);
                plain &= name.is_some_and(|name| functions.contains(&name.as_str()));
            }
            _ => plain = false,
        }
        ControlFlow::Continue(())
    });
    let text = || {
        let mut text = value.to_string();
        // As `$1`, `$2`, … of the variables in order of the text.
        let mut number = 0;
        let mut at = 0;
        while let Some(found) = text[at..].find('$') {
            let start = at + found + 1;
            let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                number += 1;
                text.replace_range(start..start + digits, &number.to_string());
            }
            at = start;
        }
        text
    };
    plain.then(|| (text(), slots))
}
