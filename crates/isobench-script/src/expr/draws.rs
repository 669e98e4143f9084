//! Expressions whose random numbers are chosen by the caller, so that chosen clients meet.

use super::context::{EvalContext, Evaluated};
use super::functions::range;
use super::{Expr, Node, Shown};
use crate::error::EvalError;
use crate::symbols::Symbols;
use crate::value::Value;

impl Expr {
    /// The calls of functions that draw a random number, in the order of evaluation, each as its
    /// range is written: `(1, 10)`. Calls with equal text draw from equal ranges, as long as their
    /// variables are equal.
    pub fn draws(&self, names: &Symbols) -> Vec<String> {
        let mut found = Vec::new();
        self.root.collect_draws(names, &mut found);
        found
    }

    /// Evaluates the expression, with `choose` in place of the random stream: it gets the number of
    /// the call, as in [`Expr::draws`], and the range, and returns a number of that range. It isn't
    /// called for ranges that can't be evaluated, whose errors are those of [`Expr::eval`].
    ///
    /// # Errors
    /// Those of [`Expr::eval`].
    pub fn eval_choosing(
        &self,
        ctx: &mut EvalContext<'_>,
        choose: &mut dyn FnMut(usize, i64, i64) -> i64,
    ) -> Result<Value, EvalError> {
        let mut root = self.root.clone();
        root.choose(&mut 0, ctx, choose);
        root.eval(ctx).map_err(|error| *error)
    }
}

impl Node {
    /// The operands, in the order of evaluation.
    fn operands(&mut self) -> Vec<&mut Node> {
        match self {
            Node::Constant(_) | Node::Variable(_) => Vec::new(),
            Node::Negate(inner) | Node::Not(inner) | Node::Is { operand: inner, .. } => vec![inner],
            Node::And(sides) | Node::Or(sides) | Node::Binary(_, sides) => sides.iter_mut().collect(),
            Node::Case { arms, otherwise } => {
                arms.iter_mut().flatten().chain(otherwise.as_deref_mut()).collect()
            }
            Node::Call(_, arguments) => arguments.iter_mut().collect(),
        }
    }

    fn collect_draws(&self, names: &Symbols, found: &mut Vec<String>) {
        for operand in self.clone().operands() {
            operand.collect_draws(names, found);
        }
        if let Node::Call(function, arguments) = self
            && function.draws
        {
            let shown = |node| Shown { node, names };
            found.push(format!("({}, {})", shown(&arguments[0]), shown(&arguments[1])));
        }
    }

    /// Replaces the calls that draw by the numbers chosen.
    fn choose(
        &mut self,
        number: &mut usize,
        ctx: &mut EvalContext<'_>,
        choose: &mut dyn FnMut(usize, i64, i64) -> i64,
    ) {
        for operand in self.operands() {
            operand.choose(number, ctx, choose);
        }
        let Node::Call(function, arguments) = self else { return };
        if !function.draws {
            return;
        }
        let bounds: Result<Vec<Value>, _> =
            arguments[..2].iter().map(|node| -> Evaluated { node.eval(ctx) }).collect();
        let bounds = bounds.and_then(|bounds| range(&bounds));
        if let Ok((min, max)) = bounds {
            *self = Node::Constant(Value::Int(choose(*number, min, max).clamp(min, max)));
        }
        *number += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::{CommandKind, EvalContext, Prng, Symbols, Value, Variables, parse};

    #[test]
    fn the_caller_chooses_every_number() {
        let mut symbols = Symbols::new();
        let text = "\\set v random(1, 10) + 100 * random_zipfian(:low, 20, 1.5)\nSELECT :v;\n";
        let script = parse("a.sql", text, &mut symbols).unwrap();
        let CommandKind::Set { expr, .. } = &script.commands[0].kind else { panic!("a \\set") };
        assert_eq!(expr.draws(&symbols), ["(1, 10)", "(:low, 20)"]);
        let mut variables = Variables::new(&symbols);
        variables.set(symbols.lookup("low").unwrap(), Value::Int(7));
        let mut asked = Vec::new();
        let mut evaluate = |wanted: i64| {
            let mut rng = Prng::seed(1);
            let mut ctx =
                EvalContext { variables: &variables, names: &symbols, rng: &mut rng, debug: &mut |_| {} };
            expr.eval_choosing(&mut ctx, &mut |number, min, max| {
                asked.push((number, min, max));
                min + wanted
            })
            .unwrap()
        };
        assert_eq!(evaluate(2), Value::Int(903));
        assert_eq!(evaluate(50), Value::Int(2010), "a number outside of the range is its nearest end");
        assert_eq!(asked[..2], [(0, 1, 10), (1, 7, 20)]);
    }

    #[test]
    fn an_empty_range_is_an_error_as_ever() {
        let mut symbols = Symbols::new();
        let script = parse("a.sql", "\\set v random(2, 1)\nSELECT :v;\n", &mut symbols).unwrap();
        let CommandKind::Set { expr, .. } = &script.commands[0].kind else { panic!("a \\set") };
        let (variables, mut rng) = (Variables::new(&symbols), Prng::seed(1));
        let mut ctx =
            EvalContext { variables: &variables, names: &symbols, rng: &mut rng, debug: &mut |_| {} };
        let error = expr.eval_choosing(&mut ctx, &mut |_, min, _| min).unwrap_err();
        assert!(error.to_string().contains("empty range"), "{error}");
    }
}
