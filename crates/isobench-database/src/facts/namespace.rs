//! The schema or database in which isobench works on a server that isn't its own.
//!
//! Not here: creating and entering it (`namespace.rs`).

/// The facts that decide how a product's namespace for isobench is created, recognised and
/// entered.
#[derive(Debug, Clone, Copy)]
pub struct NamespaceFacts {
    /// The first version in which a schema can be created and marked; older ones get a database.
    /// (0, 0): any version, even an unknown one.
    pub schema_since: (u32, u32),
    /// The sign that a schema is isobench's.
    pub mark: Mark,
    /// The statement that makes a session work in the schema. A start-up parameter won't do:
    /// poolers and proxies refuse or ignore those.
    pub enter: &'static str,
    /// The query for the schema in which a session would create a table.
    pub current: &'static str,
    /// True if DROP can be tried in a transaction and reports dependent objects in notices.
    pub reports_cascade: bool,
    /// True if `pg_try_advisory_lock` works.
    pub advisory_lock: bool,
}

/// The sign by which isobench recognises a schema as its own.
#[derive(Debug, Clone, Copy)]
pub enum Mark {
    /// A comment on the schema.
    Comment {
        /// The query for the comment on schema `isobench`: no row if there is no such schema, an empty
        /// text if there is no comment.
        found: &'static str,
    },
    /// An empty table in it, for products that take no comment on a schema.
    Table,
}

impl NamespaceFacts {
    /// PostgreSQL's facts.
    pub const SCHEMA: NamespaceFacts = NamespaceFacts {
        schema_since: (0, 0),
        mark: Mark::Comment {
            found: "SELECT coalesce(pg_catalog.obj_description(oid, 'pg_namespace'), '') \
                    FROM pg_catalog.pg_namespace WHERE nspname = 'isobench'",
        },
        enter: "SET search_path = isobench",
        current: "SELECT current_schema()",
        reports_cascade: true,
        advisory_lock: true,
    };

    /// A database in every version.
    pub const DATABASE: NamespaceFacts = NamespaceFacts {
        schema_since: (u32::MAX, 0),
        reports_cascade: false,
        advisory_lock: false,
        ..NamespaceFacts::SCHEMA
    };
}
