//! One statement: its accesses to rows, the values that pass through it, and other ways to write it.
//!
//! | file | holds |
//! |---|---|
//! | `accesses` | what it does with rows, by the server's tree and the catalog |
//! | `code` | the same with the functions and triggers that it reaches |
//! | `checks` | what follows for other rows: foreign keys and unique indexes |
//! | `operand` | values in a script's variables |
//! | `passage` | the values that it takes from variables and gives to them, by the server's tree |
//! | `advisory` | advisory locks, by the server's tree |
//! | `changes` | other ways to write it, by its words: locks, and values that are left out |
//! | `assignments` | those of an UPDATE, one by one |
//! | `places` | where a lock or a condition can stand |
//! | `partial` | the partial unique index that it may miss |
//! | `set_lock` | the lock of the rows that it counts, as a statement before it |
//! | `overlap` | the exclusion constraint that it may miss |

mod accesses;
mod advisory;
mod assignments;
mod changes;
mod checks;
mod code;
mod operand;
mod overlap;
mod partial;
mod passage;
mod places;
mod set_lock;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isobench_script::{Slot, TextPart};
use isobench_sql::{AskedText, Bound, BoundRelation, Catalog, RelationId, Text, Token, Value};

pub(crate) use accesses::{Access, Deed, anything};
pub(crate) use advisory::AdvisoryLock;
pub(crate) use assignments::Assigned;
pub use assignments::Rewritten;
pub use changes::{Fix, LockWithin};
pub(crate) use operand::{Operand, WITHOUT_BLANKS};
pub use overlap::Overlap;
pub use partial::PartialKey;
pub(crate) use passage::{ColumnName, Counted, Given, Passage};
pub(crate) use places::Conditioned;

/// A statement in its text, as the server reads it.
pub(crate) struct Statement<'a> {
    pub catalog: &'a Catalog,
    pub text: &'a Text<'a>,
    /// Its tokens.
    pub range: Range<usize>,
    /// The server's reading of it, or why there is none.
    pub bound: Result<&'a Bound, String>,
    /// For the parameters in that, `$1` being the first, their numbers in the command.
    parameters: Vec<usize>,
    /// The texts of the literals in which variables are substituted, with their parts; no parts if that isn't plain.
    literals: BTreeMap<String, Option<Vec<TextPart>>>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(catalog: &'a Catalog, text: &'a Text<'a>, range: Range<usize>) -> Self {
        let AskedText { text: asked, parameters } = text.asked(&range);
        let literals = text.literals_with_variables(&range);
        Self { catalog, text, range, bound: catalog.reading(&asked), parameters, literals }
    }

    /// The variable of a parameter in what the server says.
    fn variable(&self, parameter: usize) -> Option<Slot> {
        self.text.variable_at(*self.parameters.get(parameter.checked_sub(1)?)?)
    }

    /// The variable that is a value as it is.
    fn variable_of(&self, value: &Value) -> Option<Slot> {
        match value {
            Value::Parameter(number) => self.variable(*number),
            _ => None,
        }
    }

    /// The name of a column of a relation that the statement names.
    pub(crate) fn name_of(&self, relation: &BoundRelation, column: i32) -> Option<String> {
        self.catalog.column_name(self.catalog.relation_of(relation)?, column)
    }

    /// The tables that it names. If the server doesn't say them, its words do, whatever they mean.
    pub(crate) fn named_tables(&self) -> BTreeSet<RelationId> {
        let of_tree = self.bound.iter().flat_map(|bound| &bound.relations);
        let mut tables: BTreeSet<RelationId> =
            of_tree.filter_map(|relation| self.catalog.relation_of(relation)).collect();
        if self.bound.is_err() {
            let tokens = &self.text.tokens;
            for place in self.range.clone() {
                let Some(name) = tokens[place].name() else { continue };
                let point = place.checked_sub(2).filter(|at| self.range.contains(at));
                let schema = point
                    .filter(|at| tokens[at + 1].token.token == Token::Period)
                    .and_then(|at| tokens[at].name());
                tables.extend(self.catalog.resolve(schema.as_deref(), &name));
            }
        }
        tables.into_iter().map(|id| self.catalog.root(id)).collect()
    }

    /// For each token the number of parentheses around it.
    fn depths(&self) -> Vec<usize> {
        let mut depth = 0_usize;
        let mut depths = Vec::new();
        for token in &self.text.tokens[self.range.clone()] {
            if token.token.token == Token::RParen {
                depth = depth.saturating_sub(1);
            }
            depths.push(depth);
            if token.token.token == Token::LParen {
                depth += 1;
            }
        }
        depths
    }

    /// The places of a word outside of parentheses.
    fn outer(&self, word: &str) -> Vec<usize> {
        let depths = self.depths();
        let own = |place: &usize| depths[place - self.range.start] == 0 && self.text.tokens[*place].is(word);
        self.range.clone().filter(own).collect()
    }
}
