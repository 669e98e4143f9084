//! SQL read: its words, the catalog of a database, and each statement as PostgreSQL itself analysed it.
//!
//! | file | holds |
//! |---|---|
//! | `text` | the words of a command with their places, the variables in it, and its statements |
//! | `words` | what leading words say: transactions, savepoints, what later statements mean |
//! | `names` | names as SQL has them |
//! | `normal` | what statements with other values have in common |
//! | `reach` | how far a statement of a setup reaches: its schema, its database, the server |
//! | `catalog` | tables, functions, triggers and names, as a server's catalogs say |
//! | `node` | the text in which the server stores trees of nodes |
//! | `bound` | a statement's relations with their columns, its row locks, its calls and its result |
//! | `reader` | these of a tree |
//! | `conditions` | which rows are found: the columns that have to be equal to a value |
//! | `mentions` | how often a statement mentions each column |
//! | `outputs` | the columns of its result, and its shape |
//! | `values` | the columns and values that expressions are |
//! | `server` | asking a server for the tree of a statement, which is never executed |
//!
//! PostgreSQL's rules of names are many: WITH queries that hide tables, aliases that rename columns, functions
//! called by operators. The server applies them when it creates a function whose body is the statement
//! (PostgreSQL manual, "CREATE FUNCTION", `BEGIN ATOMIC`, from version 14 on), and keeps the tree in
//! `pg_proc.prosqlbody`. The transaction is rolled back, so nothing stays.
//!
//! The words only say where something stands in a text. `sqlparser` splits a text into them.
//!
//! ```
//! let tree = "(({QUERY :commandType 1 :utilityStmt <> :resultRelation 0 :hasAggs false :hasWindowFuncs false \
//!              :hasTargetSRFs false :cteList <> :rtable <> :jointree {FROMEXPR :fromlist <> :quals <>} \
//!              :targetList <> :groupClause <> :groupingSets <> :havingQual <> :distinctClause <> :sortClause <> \
//!              :limitOffset <> :limitCount <> :rowMarks <> :setOperations <>}))";
//! let bound = isobench_sql::Bound::read(tree, &isobench_sql::Builtins::default())?;
//! assert!(bound.relations.is_empty() && bound.functions.is_empty());
//! # Ok::<(), isobench_sql::Gap>(())
//! ```
//!
//! Not here: what follows from it for isolation.

mod bound;
mod catalog;
mod conditions;
mod mentions;
mod names;
mod node;
pub mod normal;
mod outputs;
mod reach;
mod reader;
mod server;
mod text;
mod values;
mod words;

pub use bound::{
    Bound, BoundRelation, Command, FoundRows, Gap, LockStrength, Output, Raised, RowLock, Shape, Wait,
};
pub use catalog::{
    Called, Catalog, Check, Column, ColumnType, Events, ForeignKey, FunctionFacts, Hidden, Hides,
    Inheritance, OnChange, Relation, RelationId, RelationKind, Routines, Run, Triggers, Uniqueness,
    Unobservable, changes_with_others, is_system_column,
};
pub use mentions::Mentions;
pub use names::{is_plain, is_reserved, name_in_sql};
pub use node::NodeError;
pub use reach::{Reach, reach, writes_public};
pub use server::{Answers, BUILTINS, Reading, read_statements};
pub use sqlparser::tokenizer::Token;
pub use text::{AskedText, Placed, Text, folded};
pub use values::{Builtins, Value};
pub use words::{
    Mark, chains, changed_names, changes_meaning, may_write, prepares_transaction, savepoint, sets_savepoint,
    word,
};
