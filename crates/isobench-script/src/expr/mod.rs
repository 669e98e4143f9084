//! Expressions of `\set`, `\if` and `\elif`: the tree, its printed form, and the context of
//! evaluation. `lexer` and `parser` build the tree, `eval` evaluates it, `functions` is the table
//! of functions. `draws` evaluates it with random numbers that the caller chooses.

mod context;
mod draws;
mod eval;
mod functions;
mod lexer;
mod parser;

use std::fmt;

pub use context::{EvalContext, debug_line};
pub(crate) use parser::parse_expression;

use crate::symbols::{Slot, Symbols};
use crate::value::Value;
use functions::Function;

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    root: Node,
}

impl Expr {
    /// The variable that the expression consists of, if it is nothing else.
    pub fn variable(&self) -> Option<Slot> {
        match self.root {
            Node::Variable(slot) => Some(slot),
            _ => None,
        }
    }

    /// The integer that the expression consists of, if it is nothing else.
    pub fn integer(&self) -> Option<i64> {
        match self.root {
            Node::Constant(Value::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// The variable than whose value the expression's is certainly greater: `random(:a + 1, 10)`,
    /// `:a + 1`.
    pub fn above(&self) -> Option<Slot> {
        let least = match &self.root {
            Node::Call(function, arguments) if function.name == "random" => arguments.first()?,
            other => other,
        };
        let Node::Binary(Binary::Add, sides) = least else { return None };
        match &**sides {
            [Node::Variable(slot), Node::Constant(Value::Int(1..))] => Some(*slot),
            _ => None,
        }
    }

    /// The lowest and the highest value of `random(1, 6)`, if it is nothing else.
    pub fn range(&self) -> Option<[i64; 2]> {
        let Node::Call(function, arguments) = &self.root else { return None };
        match &**arguments {
            [Node::Constant(Value::Int(lowest)), Node::Constant(Value::Int(highest))]
                if function.name == "random" && lowest <= highest =>
            {
                Some([*lowest, *highest])
            }
            _ => None,
        }
    }

    /// The variable to whose value the expression adds something, or from which it takes something:
    /// `:a + :b`, `5 + :a`, `:a - 5`. The variable that is written first, if both are.
    pub fn change(&self) -> Option<(Slot, Addend)> {
        let Node::Binary(operator @ (Binary::Add | Binary::Subtract), sides) = &self.root else {
            return None;
        };
        let minus = *operator == Binary::Subtract;
        let (slot, other) = match &**sides {
            [Node::Variable(slot), other] => (slot, other),
            [other, Node::Variable(slot)] if !minus => (slot, other),
            _ => return None,
        };
        match other {
            Node::Variable(of) if of != slot => Some((*slot, Addend { minus, of: Amount::Variable(*of) })),
            Node::Constant(Value::Int(number @ 0..)) => {
                Some((*slot, Addend { minus, of: Amount::Integer(*number) }))
            }
            _ => None,
        }
    }

    /// The variables whose values certainly differ if the expression is true: `:a < :b`, `:a <> :b`.
    pub fn apart(&self) -> Option<(Slot, Slot)> {
        let Node::Binary(Binary::Less | Binary::NotEqual, sides) = &self.root else { return None };
        match &**sides {
            [Node::Variable(one), Node::Variable(other)] => Some((*one, *other)),
            _ => None,
        }
    }

    /// Prints the expression fully parenthesised, so that it parses back to the same expression.
    pub fn display<'a>(&'a self, names: &'a Symbols) -> impl fmt::Display + 'a {
        Shown { node: &self.root, names }
    }

    /// The integer that it is, if it is nothing else.
    pub fn number(&self) -> Option<i64> {
        match &self.root {
            Node::Constant(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// The integers that are written in it, in any order, perhaps repeatedly.
    pub fn integers(&self) -> Vec<i64> {
        let mut found = Vec::new();
        self.root.leaves(&mut |leaf| {
            if let Node::Constant(Value::Int(number)) = leaf {
                found.push(*number);
            }
        });
        found
    }

    /// True if its value is certainly an integer, where these variables have integers.
    pub fn is_integer(&self, is_integer: &dyn Fn(Slot) -> bool) -> bool {
        self.root.is_integer(is_integer)
    }

    /// True if its value may be NULL: NULL is written in it, it is a CASE without ELSE, or one of these variables may
    /// be NULL.
    pub fn may_be_null(&self, may_be_null: &dyn Fn(Slot) -> bool) -> bool {
        self.root.may_be_null(may_be_null)
    }

    /// The variables that the value depends on, in any order, perhaps repeatedly.
    pub fn variables(&self) -> Vec<Slot> {
        let mut found = Vec::new();
        self.root.leaves(&mut |leaf| {
            if let Node::Variable(slot) = leaf {
                found.push(*slot);
            }
        });
        found
    }
}

/// What is added to a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addend {
    /// It is taken from it instead.
    pub minus: bool,
    /// What it is.
    pub of: Amount,
}

/// A plain amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// The value of a variable.
    Variable(Slot),
    /// A number from 0.
    Integer(i64),
}

/// A node of the tree.
#[derive(Clone, Debug)]
enum Node {
    Constant(Value),
    Variable(Slot),
    Negate(Box<Node>),
    Not(Box<Node>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Is { test: Test, negated: bool, operand: Box<Node> },
    Binary(Binary, Box<[Node; 2]>),
    Case { arms: Box<[[Node; 2]]>, otherwise: Option<Box<Node>> },
    Call(&'static Function, Box<[Node]>),
}

/// The functions whose results are integers, and those whose results are if their arguments are (pgbench manual,
/// "Built-In Functions").
const INTEGERS: [&str; 9] = [
    "hash",
    "hash_fnv1a",
    "hash_murmur2",
    "int",
    "permute",
    "random",
    "random_exponential",
    "random_gaussian",
    "random_zipfian",
];
const INTEGERS_OF_INTEGERS: [&str; 5] = ["abs", "debug", "greatest", "least", "mod"];

impl Node {
    fn is_integer(&self, of: &dyn Fn(Slot) -> bool) -> bool {
        match self {
            Node::Constant(value) => matches!(value, Value::Int(_)),
            Node::Variable(slot) => of(*slot),
            Node::Negate(inner) => inner.is_integer(of),
            Node::Not(_)
            | Node::And(_)
            | Node::Or(_)
            | Node::Is { .. }
            | Node::Binary(Binary::Equal | Binary::NotEqual | Binary::Less | Binary::LessOrEqual, _) => false,
            Node::Binary(_, sides) => sides.iter().all(|side| side.is_integer(of)),
            Node::Case { arms, otherwise } => {
                arms.iter().all(|[_, result]| result.is_integer(of))
                    && otherwise.as_ref().is_some_and(|result| result.is_integer(of))
            }
            Node::Call(function, arguments) => {
                INTEGERS.contains(&function.name)
                    || INTEGERS_OF_INTEGERS.contains(&function.name)
                        && arguments.iter().all(|argument| argument.is_integer(of))
            }
        }
    }

    fn may_be_null(&self, of: &dyn Fn(Slot) -> bool) -> bool {
        match self {
            Node::Constant(value) => matches!(value, Value::Null),
            Node::Variable(slot) => of(*slot),
            Node::Is { .. } => false,
            Node::Negate(inner) | Node::Not(inner) => inner.may_be_null(of),
            Node::And(sides) | Node::Or(sides) | Node::Binary(_, sides) => {
                sides.iter().any(|side| side.may_be_null(of))
            }
            Node::Case { arms, otherwise } => {
                arms.iter().any(|[_, result]| result.may_be_null(of))
                    || otherwise.as_ref().is_none_or(|result| result.may_be_null(of))
            }
            Node::Call(_, arguments) => arguments.iter().any(|argument| argument.may_be_null(of)),
        }
    }

    /// Visits the constants and variables.
    fn leaves(&self, visit: &mut dyn FnMut(&Node)) {
        match self {
            Node::Constant(_) | Node::Variable(_) => visit(self),
            Node::Negate(inner) | Node::Not(inner) | Node::Is { operand: inner, .. } => inner.leaves(visit),
            Node::And(sides) | Node::Or(sides) | Node::Binary(_, sides) => {
                sides.iter().for_each(|side| side.leaves(visit));
            }
            Node::Case { arms, otherwise } => {
                arms.iter().flatten().for_each(|node| node.leaves(visit));
                if let Some(node) = otherwise {
                    node.leaves(visit);
                }
            }
            Node::Call(_, arguments) => arguments.iter().for_each(|node| node.leaves(visit)),
        }
    }
}

/// The right side of `IS`.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Test {
    Null,
    True,
    False,
}

/// An operator that evaluates both operands, left first. There is no `>`: `a > b` is `b < a`, so
/// `b` is evaluated first, as in pgbench, where the order shows when both draw random numbers. `~a`
/// is `a # -1`.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
}

impl Binary {
    fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::BitAnd => "&",
            Self::BitOr => "|",
            Self::BitXor => "#",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
        }
    }
}

struct Shown<'a> {
    node: &'a Node,
    names: &'a Symbols,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |node| Shown { node, names: self.names };
        match self.node {
            Node::Constant(Value::Null) => f.write_str("NULL"),
            Node::Constant(Value::Bool(value)) => f.write_str(if *value { "TRUE" } else { "FALSE" }),
            Node::Constant(Value::Int(value)) => write!(f, "{value}"),
            Node::Constant(Value::Double(value)) => write!(f, "{value:?}"),
            Node::Variable(slot) => write!(f, ":{}", self.names.name(*slot)),
            Node::Negate(operand) => write!(f, "(- {})", show(operand)),
            Node::Not(operand) => write!(f, "(NOT {})", show(operand)),
            Node::And(sides) => write!(f, "({} AND {})", show(&sides[0]), show(&sides[1])),
            Node::Or(sides) => write!(f, "({} OR {})", show(&sides[0]), show(&sides[1])),
            Node::Is { test, negated, operand } => {
                let not = if *negated { "NOT " } else { "" };
                let test = match test {
                    Test::Null => "NULL",
                    Test::True => "TRUE",
                    Test::False => "FALSE",
                };
                write!(f, "({} IS {not}{test})", show(operand))
            }
            Node::Binary(operator, sides) => {
                write!(f, "({} {} {})", show(&sides[0]), operator.symbol(), show(&sides[1]))
            }
            Node::Case { arms, otherwise } => {
                f.write_str("CASE")?;
                for [condition, result] in arms {
                    write!(f, " WHEN {} THEN {}", show(condition), show(result))?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " ELSE {}", show(otherwise))?;
                }
                f.write_str(" END")
            }
            Node::Call(function, args) => {
                write!(f, "{}(", function.name)?;
                for (index, arg) in args.iter().enumerate() {
                    write!(f, "{}{}", if index > 0 { ", " } else { "" }, show(arg))?;
                }
                f.write_str(")")
            }
        }
    }
}
