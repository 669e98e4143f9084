//! The functions of expressions, one row each: to add a function, add a row and a golden test.

use super::context::{EvalContext, Evaluated};
use crate::error::EvalError;
use crate::random::{check_range, fnv1a, murmur2, permute};
use crate::value::Value;

/// The maximum number of arguments of `greatest` and `least`, as in pgbench.
pub(super) const MAX_ARGUMENTS: usize = 16;

/// A function of the language.
#[derive(Debug)]
pub(super) struct Function {
    /// The name, in lower case; scripts may write it in any case.
    pub name: &'static str,
    pub arity: Arity,
    /// True if a `NULL` argument makes the result `NULL` without a call.
    pub strict: bool,
    /// True for `random`, which has a fast path.
    pub uniform: bool,
    /// True for a function that draws a number between its first two arguments.
    pub draws: bool,
    pub eval: fn(&[Value], &mut EvalContext<'_>) -> Evaluated,
}

/// The number of arguments that a function takes.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Arity {
    Exactly(usize),
    AtLeastOne,
    /// This many, and an optional seed, by default `:default_seed`.
    Seeded(usize),
}

type Eval = fn(&[Value], &mut EvalContext<'_>) -> Evaluated;

const fn row(name: &'static str, arity: Arity, eval: Eval) -> Function {
    Function { name, arity, strict: true, uniform: false, draws: false, eval }
}

const fn drawing(name: &'static str, arguments: usize, eval: Eval) -> Function {
    Function { draws: true, ..row(name, Exactly(arguments), eval) }
}

use Arity::{AtLeastOne, Exactly, Seeded};

static FUNCTIONS: [Function; 21] = [
    row("abs", Exactly(1), |args, _| match args[0] {
        Value::Int(value) => Ok(Value::Int(value.wrapping_abs())),
        other => Ok(Value::Double(other.as_double()?.abs())),
    }),
    Function {
        name: "debug",
        arity: Exactly(1),
        strict: false,
        uniform: false,
        draws: false,
        eval: |args, ctx| {
            let value = args[0];
            let text =
                if value.is_null() { "null".to_owned() } else { format!("{} {value}", value.type_name()) };
            (ctx.debug)(&text);
            Ok(value)
        },
    },
    row("double", Exactly(1), |args, _| Ok(Value::Double(args[0].as_double()?))),
    row("exp", Exactly(1), |args, _| Ok(Value::Double(args[0].as_double()?.exp()))),
    row("greatest", AtLeastOne, |args, _| extreme(args, |old, new| old > new, |old, new| old > new)),
    row("hash", Seeded(1), |args, _| hash(args, murmur2)),
    row("hash_fnv1a", Seeded(1), |args, _| hash(args, fnv1a)),
    row("hash_murmur2", Seeded(1), |args, _| hash(args, murmur2)),
    row("int", Exactly(1), |args, _| Ok(Value::Int(args[0].as_int()?))),
    row("least", AtLeastOne, |args, _| extreme(args, |old, new| old < new, |old, new| old < new)),
    row("ln", Exactly(1), |args, _| Ok(Value::Double(args[0].as_double()?.ln()))),
    row("mod", Exactly(2), |args, _| modulo(args[0].as_int()?, args[1].as_int()?)),
    row("permute", Seeded(2), |args, _| {
        let (value, size, seed) = (args[0].as_int()?, args[1].as_int()?, args[2].as_int()?);
        let size = u64::try_from(size).ok().filter(|size| *size > 0).ok_or(EvalError::PermuteSize)?;
        Ok(Value::Int(permute(value, size, seed.cast_unsigned())))
    }),
    row("pi", Exactly(0), |_, _| Ok(Value::Double(std::f64::consts::PI))),
    row("pow", Exactly(2), power),
    row("power", Exactly(2), power),
    Function {
        uniform: true,
        ..drawing("random", 2, |args, ctx| {
            let (min, max) = range(args)?;
            Ok(Value::Int(ctx.rng.int_between(min, max)))
        })
    },
    drawing("random_exponential", 3, |args, ctx| {
        let (min, max) = range(args)?;
        Ok(Value::Int(ctx.rng.exponential(min, max, args[2].as_double()?)?))
    }),
    drawing("random_gaussian", 3, |args, ctx| {
        let (min, max) = range(args)?;
        Ok(Value::Int(ctx.rng.gaussian(min, max, args[2].as_double()?)?))
    }),
    drawing("random_zipfian", 3, |args, ctx| {
        let (min, max) = range(args)?;
        Ok(Value::Int(ctx.rng.zipfian(min, max, args[2].as_double()?)?))
    }),
    row("sqrt", Exactly(1), |args, _| Ok(Value::Double(args[0].as_double()?.sqrt()))),
];

/// Finds a function by its name in any case.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// `%` and `mod`: the remainder has the sign of the dividend.
pub(super) fn modulo(left: i64, right: i64) -> Evaluated {
    if right == 0 {
        return Err(EvalError::DivisionByZero.into());
    }
    Ok(Value::Int(left.wrapping_rem(right)))
}

fn power(args: &[Value], _: &mut EvalContext<'_>) -> Evaluated {
    Ok(Value::Double(args[0].as_double()?.powf(args[1].as_double()?)))
}

pub(super) fn range(args: &[Value]) -> Result<(i64, i64), Box<EvalError>> {
    let (min, max) = (args[0].as_int()?, args[1].as_int()?);
    check_range(min, max)?;
    Ok((min, max))
}

fn hash(args: &[Value], function: fn(u64, u64) -> u64) -> Evaluated {
    let (value, seed) = (args[0].as_int()?, args[1].as_int()?);
    Ok(Value::Int(function(value.cast_unsigned(), seed.cast_unsigned()).cast_signed()))
}

/// `greatest` and `least`: doubles if any argument is one, else integers.
///
/// A value replaces the previous one unless the previous one is better, so NaN is replaced by any
/// argument after it, as in pgbench.
fn extreme(args: &[Value], int_stays: fn(i64, i64) -> bool, double_stays: fn(f64, f64) -> bool) -> Evaluated {
    if args.iter().any(|arg| matches!(arg, Value::Double(_))) {
        let mut best = args[0].as_double()?;
        for arg in &args[1..] {
            let value = arg.as_double()?;
            best = if double_stays(best, value) { best } else { value };
        }
        return Ok(Value::Double(best));
    }
    let mut best = args[0].as_int()?;
    for arg in &args[1..] {
        let value = arg.as_int()?;
        best = if int_stays(best, value) { best } else { value };
    }
    Ok(Value::Int(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_found_in_any_case() {
        assert!(FUNCTIONS.is_sorted_by_key(|function| function.name));
        assert_eq!(find("RANDOM").map(|function| function.name), Some("random"));
        assert!(find("rand").is_none());
    }
}
