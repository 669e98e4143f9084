//! Evaluates expression trees: operators, `CASE`, and function calls. This is the hot path and
//! doesn't allocate.

use super::context::{EvalContext, Evaluated};
use super::functions::{MAX_ARGUMENTS, modulo};
use super::{Binary, Expr, Node, Test};
use crate::error::EvalError;
use crate::random::check_range;
use crate::value::Value;
use crate::variables::{Variable, Variables};

/// The number of arguments for which the usual call reserves room; few functions take more.
const FEW: usize = 3;

impl Expr {
    /// Evaluates the expression.
    ///
    /// # Errors
    /// The errors of pgbench: overflow, division by zero, wrong types, undefined variables, empty
    /// ranges.
    pub fn eval(&self, ctx: &mut EvalContext<'_>) -> Result<Value, EvalError> {
        if let Node::Call(function, args) = &self.root
            && function.uniform
            && let Some(value) = uniform(args, ctx)
        {
            return Ok(value);
        }
        self.root.eval(ctx).map_err(|error| *error)
    }
}

impl Node {
    /// The value of an operand. Leaves, which most operands are, are evaluated without a call.
    #[inline]
    fn operand(&self, ctx: &mut EvalContext<'_>) -> Evaluated {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(slot) => Ok(ctx.variables.value(*slot, ctx.names)?),
            _ => self.eval(ctx),
        }
    }

    pub(super) fn eval(&self, ctx: &mut EvalContext<'_>) -> Evaluated {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(slot) => Ok(ctx.variables.value(*slot, ctx.names)?),
            Self::Binary(operator, sides) => {
                let left = sides[0].operand(ctx)?;
                let right = sides[1].operand(ctx)?;
                match (left, right) {
                    (Value::Int(left), Value::Int(right)) => integer(*operator, left, right),
                    _ => binary(*operator, left, right),
                }
            }
            Self::Call(function, args) if args.len() <= FEW => {
                call(function, args, &mut [Value::Null; FEW], ctx)
            }
            Self::Call(function, args) => call_with_many(function, args, ctx),
            Self::Negate(operand) => binary(Binary::Subtract, Value::Int(0), operand.eval(ctx)?),
            Self::Not(operand) => match operand.eval(ctx)? {
                Value::Null => Ok(Value::Null),
                value => Ok(Value::Bool(!value.as_bool()?)),
            },
            Self::And(sides) => logical(sides, false, ctx),
            Self::Or(sides) => logical(sides, true, ctx),
            Self::Is { test, negated, operand } => {
                let value = operand.eval(ctx)?;
                let holds = match test {
                    Test::Null => value.is_null(),
                    Test::True => value == Value::Bool(true),
                    Test::False => value == Value::Bool(false),
                };
                Ok(Value::Bool(holds != *negated))
            }
            Self::Case { arms, otherwise } => {
                for [condition, result] in arms {
                    if condition.eval(ctx)?.truth() {
                        return result.eval(ctx);
                    }
                }
                otherwise.as_ref().map_or(Ok(Value::Null), |node| node.eval(ctx))
            }
        }
    }
}

impl Node {
    /// The value of an integer constant or variable, and `None` for any other node.
    #[inline]
    fn plain_leaf(&self, variables: &Variables) -> Option<i64> {
        match self {
            Self::Constant(Value::Int(value)) => Some(*value),
            Self::Variable(slot) => match variables.get(*slot) {
                Variable::Value(Value::Int(value)) => Some(*value),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of a leaf, of a negated leaf, or of `+`, `-` or `*` applied to two leaves; `None`
    /// for any other node and on errors. Because nothing is drawn or printed, the caller can
    /// evaluate the node again in the general way, which reports the error.
    #[inline]
    fn plain_int(&self, variables: &Variables) -> Option<i64> {
        match self {
            Self::Binary(operator, sides) => {
                let (left, right) = (sides[0].plain_leaf(variables)?, sides[1].plain_leaf(variables)?);
                match operator {
                    Binary::Add => left.checked_add(right),
                    Binary::Subtract => left.checked_sub(right),
                    Binary::Multiply => left.checked_mul(right),
                    _ => None,
                }
            }
            Self::Negate(operand) => 0_i64.checked_sub(operand.plain_leaf(variables)?),
            leaf => leaf.plain_leaf(variables),
        }
    }
}

/// A fast path for `random(1, 100000 * :scale)` and similar calls, the most frequent in benchmark
/// scripts.
fn uniform(args: &[Node], ctx: &mut EvalContext<'_>) -> Option<Value> {
    let [min, max] = args else { return None };
    let (min, max) = (min.plain_int(ctx.variables)?, max.plain_int(ctx.variables)?);
    check_range(min, max).ok()?;
    Some(Value::Int(ctx.rng.int_between(min, max)))
}

/// `AND` and `OR`: `decisive` is the value of the left operand that determines the result.
///
/// As in pgbench, a `NULL` on the left gives `NULL` without evaluating the right operand, even for
/// `NULL AND FALSE`.
fn logical(sides: &[Node; 2], decisive: bool, ctx: &mut EvalContext<'_>) -> Evaluated {
    let left = sides[0].eval(ctx)?;
    if left.is_null() {
        return Ok(Value::Null);
    }
    if left.as_bool()? == decisive {
        return Ok(Value::Bool(decisive));
    }
    match sides[1].eval(ctx)? {
        Value::Null => Ok(Value::Null),
        right => Ok(Value::Bool(right.as_bool()?)),
    }
}

/// A call with more than a few arguments, kept out of [`Node::eval`] so that its stack frame stays
/// small.
#[inline(never)]
fn call_with_many(function: &super::Function, args: &[Node], ctx: &mut EvalContext<'_>) -> Evaluated {
    call(function, args, &mut [Value::Null; MAX_ARGUMENTS], ctx)
}

/// Evaluates all arguments, even after a `NULL` (they may draw random numbers), then calls the
/// function.
fn call(
    function: &super::Function,
    args: &[Node],
    room: &mut [Value],
    ctx: &mut EvalContext<'_>,
) -> Evaluated {
    let values = room.get_mut(..args.len()).ok_or(EvalError::TooManyArguments { most: MAX_ARGUMENTS })?;
    let mut any_null = false;
    for (value, arg) in values.iter_mut().zip(args) {
        *value = arg.operand(ctx)?;
        any_null |= value.is_null();
    }
    if any_null && function.strict {
        return Ok(Value::Null);
    }
    (function.eval)(values, ctx)
}

fn binary(operator: Binary, left: Value, right: Value) -> Evaluated {
    use Binary as B;
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    let any_double = matches!((left, right), (Value::Double(_), _) | (_, Value::Double(_)));
    let integers_only =
        matches!(operator, B::Modulo | B::BitAnd | B::BitOr | B::BitXor | B::ShiftLeft | B::ShiftRight);
    if any_double && !integers_only {
        Ok(double(operator, left.as_double()?, right.as_double()?))
    } else {
        integer(operator, left.as_int()?, right.as_int()?)
    }
}

/// The shift count: the low six bits, as in pgbench, which leaves it to the processor.
fn shift_count(value: i64) -> u32 {
    u32::try_from(value & 63).unwrap_or(0)
}

fn integer(operator: Binary, left: i64, right: i64) -> Evaluated {
    use Binary as B;
    let (result, operation) = match operator {
        B::Add => (left.checked_add(right), "add"),
        B::Subtract => (left.checked_sub(right), "sub"),
        B::Multiply => (left.checked_mul(right), "mul"),
        B::Divide if right == 0 => return Err(EvalError::DivisionByZero.into()),
        B::Divide => (left.checked_div(right), "div"),
        B::Equal => return Ok(Value::Bool(left == right)),
        B::NotEqual => return Ok(Value::Bool(left != right)),
        B::Less => return Ok(Value::Bool(left < right)),
        B::LessOrEqual => return Ok(Value::Bool(left <= right)),
        B::Modulo => return modulo(left, right),
        B::BitAnd => (Some(left & right), ""),
        B::BitOr => (Some(left | right), ""),
        B::BitXor => (Some(left ^ right), ""),
        B::ShiftLeft => (Some(left.wrapping_shl(shift_count(right))), ""),
        B::ShiftRight => (Some(left.wrapping_shr(shift_count(right))), ""),
    };
    result.map(Value::Int).ok_or_else(|| EvalError::IntOverflow { operation }.into())
}

#[expect(clippy::float_cmp, reason = "= and <> of the language compare doubles exactly")]
fn double(operator: Binary, left: f64, right: f64) -> Value {
    use Binary as B;
    match operator {
        B::Add => Value::Double(left + right),
        B::Subtract => Value::Double(left - right),
        B::Multiply => Value::Double(left * right),
        B::Divide => Value::Double(left / right),
        B::Equal => Value::Bool(left == right),
        B::NotEqual => Value::Bool(left != right),
        B::Less => Value::Bool(left < right),
        B::LessOrEqual => Value::Bool(left <= right),
        // Unreachable: the caller handles integer operators. NULL can't be mistaken for a result.
        B::Modulo | B::BitAnd | B::BitOr | B::BitXor | B::ShiftLeft | B::ShiftRight => Value::Null,
    }
}
