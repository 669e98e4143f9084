//! Precedence climbing over the tokens of an expression.
//!
//! Levels from loosest to tightest, as in the manual's table: OR; AND; NOT; IS, ISNULL, NOTNULL;
//! comparisons, which don't associate; `| # & << >> ~`; `+ -`; `* / %`; unary minus.

use super::functions::{Arity, find};
use super::lexer::{Keyword, Lexer, Token};
use super::{Binary, Expr, Node, Test};
use crate::symbols::Symbols;
use crate::value::Value;

/// The maximum nesting of expressions. pgbench's limit is about ten thousand; this one keeps
/// parsing, evaluating and dropping well within a thread's stack.
const MAX_NESTING: usize = 200;
/// The maximum depth of a tree. A long chain of operators is deep without being nested.
const MAX_DEPTH: usize = 1000;

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const ADDITIVE: u8 = 7;
const MULTIPLICATIVE: u8 = 8;
const UNARY: u8 = 9;

/// The position and the reason of a syntax error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ExprError {
    /// The offset in bytes just after the offending token.
    pub offset: usize,
    /// True if the offending token is the end of the line.
    pub at_end: bool,
    pub message: &'static str,
    pub detail: Option<String>,
}

/// Parses `source` (one logical line) from `offset` to its end.
pub(crate) fn parse_expression(
    source: &str,
    offset: usize,
    symbols: &mut Symbols,
) -> Result<Expr, ExprError> {
    let lexer = Lexer::new(source, offset);
    let mut parser = Parser { lexer, peeked: None, last_is_end: false, nesting: 0, symbols };
    parser.whole().map_err(|error| parser.last_lexical_error().unwrap_or(error))
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    peeked: Option<Token<'a>>,
    /// True if the last token read is the end of the line.
    last_is_end: bool,
    nesting: usize,
    symbols: &'a mut Symbols,
}

/// A subtree and its depth.
struct Tree {
    node: Node,
    depth: usize,
}

/// The effect of an infix or postfix operator on the expression before it.
#[derive(Copy, Clone)]
enum Infix {
    Binary(Binary),
    /// The operator with its operands swapped.
    Swapped(Binary),
    And,
    Or,
    Is,
    Null {
        negated: bool,
    },
}

fn infix(token: Token<'_>) -> Option<(u8, Infix)> {
    use Binary as B;
    let (level, operator) = match token {
        Token::Keyword(Keyword::Or) => return Some((OR, Infix::Or)),
        Token::Keyword(Keyword::And) => return Some((AND, Infix::And)),
        Token::Keyword(Keyword::Is) => return Some((IS, Infix::Is)),
        Token::Keyword(Keyword::IsNull) => return Some((IS, Infix::Null { negated: false })),
        Token::Keyword(Keyword::NotNull) => return Some((IS, Infix::Null { negated: true })),
        Token::Symbol(">") => return Some((COMPARISON, Infix::Swapped(B::Less))),
        Token::Symbol(">=") => return Some((COMPARISON, Infix::Swapped(B::LessOrEqual))),
        Token::Symbol("<") => (COMPARISON, B::Less),
        Token::Symbol("<=") => (COMPARISON, B::LessOrEqual),
        Token::Symbol("=") => (COMPARISON, B::Equal),
        Token::Symbol("<>" | "!=") => (COMPARISON, B::NotEqual),
        Token::Symbol("|") => (BITS, B::BitOr),
        Token::Symbol("#") => (BITS, B::BitXor),
        Token::Symbol("&") => (BITS, B::BitAnd),
        Token::Symbol("<<") => (BITS, B::ShiftLeft),
        Token::Symbol(">>") => (BITS, B::ShiftRight),
        Token::Symbol("+") => (ADDITIVE, B::Add),
        Token::Symbol("-") => (ADDITIVE, B::Subtract),
        Token::Symbol("*") => (MULTIPLICATIVE, B::Multiply),
        Token::Symbol("/") => (MULTIPLICATIVE, B::Divide),
        Token::Symbol("%") => (MULTIPLICATIVE, B::Modulo),
        _ => return None,
    };
    Some((level, Infix::Binary(operator)))
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Result<Expr, ExprError> {
        let tree = self.expression(OR)?;
        match self.peek()? {
            Token::End => Ok(Expr { root: tree.node }),
            _ => Err(self.syntax_error()),
        }
    }

    /// The last invalid token in the rest of the line. Before it reports an error, pgbench reads
    /// the rest of the line, and if that has invalid tokens, it reports the last one instead.
    fn last_lexical_error(&mut self) -> Option<ExprError> {
        let mut last = None;
        loop {
            self.peeked = None;
            match self.peek() {
                Ok(Token::End) => return last,
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
    }

    fn peek(&mut self) -> Result<Token<'a>, ExprError> {
        if let Some(token) = self.peeked {
            return Ok(token);
        }
        let token = self.lexer.next().map_err(|error| ExprError {
            offset: self.lexer.offset,
            at_end: false,
            message: error.message,
            detail: Some(error.detail),
        })?;
        self.peeked = Some(token);
        self.last_is_end = token == Token::End;
        Ok(token)
    }

    fn take(&mut self) -> Result<Token<'a>, ExprError> {
        let token = self.peek()?;
        self.peeked = None;
        Ok(token)
    }

    /// An error at the last token read.
    fn error(&self, message: &'static str, detail: Option<&str>) -> ExprError {
        ExprError {
            offset: self.lexer.offset,
            at_end: self.last_is_end,
            message,
            detail: detail.map(str::to_owned),
        }
    }

    fn syntax_error(&self) -> ExprError {
        self.error("syntax error", None)
    }

    fn expect(&mut self, wanted: Token<'_>) -> Result<(), ExprError> {
        if self.take()? == wanted { Ok(()) } else { Err(self.syntax_error()) }
    }

    fn deepen(&self, node: Node, below: usize) -> Result<Tree, ExprError> {
        if below >= MAX_DEPTH {
            return Err(self.error("expression is nested too deeply", None));
        }
        Ok(Tree { node, depth: below + 1 })
    }

    /// An expression whose operators bind at least as tightly as `level`.
    fn expression(&mut self, level: u8) -> Result<Tree, ExprError> {
        if self.nesting >= MAX_NESTING {
            return Err(self.error("expression is nested too deeply", None));
        }
        self.nesting += 1;
        let mut left = self.prefix()?;
        let mut compared = false;
        while let Some((binds, operator)) = infix(self.peek()?).filter(|(binds, _)| *binds >= level) {
            self.take()?;
            if compared && binds == COMPARISON {
                return Err(self.syntax_error());
            }
            compared = binds == COMPARISON;
            left = self.continued(left, binds, operator)?;
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn continued(&mut self, left: Tree, binds: u8, operator: Infix) -> Result<Tree, ExprError> {
        let (test, negated) = match operator {
            Infix::Null { negated } => (Test::Null, negated),
            Infix::Is => self.is_test()?,
            Infix::Binary(_) | Infix::Swapped(_) | Infix::And | Infix::Or => {
                let right = self.expression(binds + 1)?;
                let depth = left.depth.max(right.depth);
                let node = match operator {
                    Infix::Swapped(operator) => Node::Binary(operator, Box::new([right.node, left.node])),
                    Infix::Binary(operator) => Node::Binary(operator, Box::new([left.node, right.node])),
                    Infix::And => Node::And(Box::new([left.node, right.node])),
                    _ => Node::Or(Box::new([left.node, right.node])),
                };
                return self.deepen(node, depth);
            }
        };
        self.deepen(Node::Is { test, negated, operand: Box::new(left.node) }, left.depth)
    }

    /// The right side of `IS`.
    fn is_test(&mut self) -> Result<(Test, bool), ExprError> {
        let negated = self.peek()? == Token::Keyword(Keyword::Not);
        if negated {
            self.take()?;
        }
        match self.take()? {
            Token::Keyword(Keyword::Null) => Ok((Test::Null, negated)),
            Token::Keyword(Keyword::True) => Ok((Test::True, negated)),
            Token::Keyword(Keyword::False) => Ok((Test::False, negated)),
            _ => Err(self.syntax_error()),
        }
    }

    /// An operand with the prefix operators before it.
    fn prefix(&mut self) -> Result<Tree, ExprError> {
        match self.take()? {
            Token::Symbol("+") => self.expression(UNARY),
            Token::Symbol("-") => {
                if self.peek()? == Token::MinMagnitude {
                    self.take()?;
                    return self.deepen(Node::Constant(Value::Int(i64::MIN)), 0);
                }
                let operand = self.expression(UNARY)?;
                self.deepen(Node::Negate(Box::new(operand.node)), operand.depth)
            }
            Token::Symbol("~") => {
                let operand = self.expression(BITS + 1)?;
                let ones = Node::Constant(Value::Int(-1));
                self.deepen(Node::Binary(Binary::BitXor, Box::new([operand.node, ones])), operand.depth)
            }
            Token::Keyword(Keyword::Not) => {
                let operand = self.expression(NOT)?;
                self.deepen(Node::Not(Box::new(operand.node)), operand.depth)
            }
            token => self.primary(token),
        }
    }

    fn primary(&mut self, token: Token<'a>) -> Result<Tree, ExprError> {
        let node = match token {
            Token::Int(value) => Node::Constant(Value::Int(value)),
            Token::Double(value) => Node::Constant(Value::Double(value)),
            Token::Keyword(Keyword::Null) => Node::Constant(Value::Null),
            Token::Keyword(Keyword::True) => Node::Constant(Value::Bool(true)),
            Token::Keyword(Keyword::False) => Node::Constant(Value::Bool(false)),
            Token::Variable(name) => Node::Variable(self.symbols.intern(name)),
            Token::Symbol("(") => {
                let inner = self.expression(OR)?;
                self.expect(Token::Symbol(")"))?;
                return Ok(inner);
            }
            Token::Keyword(Keyword::Case) => return self.case(),
            Token::Name(name) => return self.call(name),
            _ => return Err(self.syntax_error()),
        };
        self.deepen(node, 0)
    }

    fn case(&mut self) -> Result<Tree, ExprError> {
        self.expect(Token::Keyword(Keyword::When))?;
        let mut arms = Vec::new();
        let mut otherwise = None;
        let mut depth = 0;
        loop {
            let condition = self.expression(OR)?;
            self.expect(Token::Keyword(Keyword::Then))?;
            let result = self.expression(OR)?;
            depth = depth.max(condition.depth).max(result.depth);
            arms.push([condition.node, result.node]);
            match self.take()? {
                Token::Keyword(Keyword::When) => {}
                Token::Keyword(Keyword::Else) => {
                    let tree = self.expression(OR)?;
                    depth = depth.max(tree.depth);
                    otherwise = Some(Box::new(tree.node));
                    self.expect(Token::Keyword(Keyword::End))?;
                    break;
                }
                Token::Keyword(Keyword::End) => break,
                _ => return Err(self.syntax_error()),
            }
        }
        self.deepen(Node::Case { arms: arms.into(), otherwise }, depth)
    }

    fn call(&mut self, name: &str) -> Result<Tree, ExprError> {
        let Some(function) = find(name) else {
            return Err(self.error("unexpected function name", Some(name)));
        };
        self.expect(Token::Symbol("("))?;
        let mut args = Vec::new();
        let mut depth = 0;
        if self.peek()? == Token::Symbol(")") {
            self.take()?;
        } else {
            // pgbench ignores a comma before the first argument.
            if self.peek()? == Token::Symbol(",") {
                self.take()?;
            }
            loop {
                let arg = self.expression(OR)?;
                depth = depth.max(arg.depth);
                args.push(arg.node);
                match self.take()? {
                    Token::Symbol(",") => {}
                    Token::Symbol(")") => break,
                    _ => return Err(self.syntax_error()),
                }
            }
        }
        let fits = match function.arity {
            Arity::Exactly(count) => args.len() == count,
            Arity::AtLeastOne if args.is_empty() => {
                return Err(self.error("at least one argument expected", Some(function.name)));
            }
            Arity::AtLeastOne => true,
            Arity::Seeded(count) => {
                if args.len() == count {
                    args.push(Node::Variable(self.symbols.intern("default_seed")));
                    depth = depth.max(1);
                }
                args.len() == count + 1
            }
        };
        if !fits {
            return Err(self.error("unexpected number of arguments", Some(function.name)));
        }
        self.deepen(Node::Call(function, args.into()), depth)
    }
}
