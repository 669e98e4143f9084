//! One statement as PostgreSQL itself analysed it.
//!
//! | file | holds |
//! |---|---|
//! | `node` | the text in which the server stores trees of nodes |
//! | `bound` | a statement's relations with their columns, its row locks and its calls |
//! | `reader` | these of a tree |
//! | `conditions` | which rows are found: the columns that have to be equal to a value |
//! | `values` | the columns and values that expressions are |
//! | `server` | asking a server for the tree of a statement, which is never executed |
//!
//! PostgreSQL's rules of names are many: WITH queries that hide tables, aliases that rename columns, functions
//! called by operators. The server applies them when it creates a function whose body is the statement
//! (PostgreSQL manual, "CREATE FUNCTION", `BEGIN ATOMIC`, from version 14 on), and keeps the tree in
//! `pg_proc.prosqlbody`. The transaction is rolled back, so nothing stays.
//!
//! ```
//! let tree = "(({QUERY :commandType 1 :utilityStmt <> :resultRelation 0 :cteList <> :rtable <> \
//!              :jointree {FROMEXPR :fromlist <> :quals <>} :targetList <> :havingQual <> :sortClause <> \
//!              :limitOffset <> :limitCount <> :rowMarks <> :setOperations <>}))";
//! let bound = isobench_sql::Bound::read(tree, &isobench_sql::Builtins::default())?;
//! assert!(bound.relations.is_empty() && bound.functions.is_empty());
//! # Ok::<(), isobench_sql::Gap>(())
//! ```
//!
//! Not here: what follows from it for isolation.

mod bound;
mod conditions;
mod node;
mod reader;
mod server;
mod values;

pub use bound::{Bound, BoundRelation, FoundRows, Gap, LockStrength, RowLock, Wait};
pub use node::NodeError;
pub use server::{Answers, BUILTINS, Reading, read_statements};
pub use values::{Builtins, Value};
