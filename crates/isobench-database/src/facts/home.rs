//! Where isobench works on somebody else's server.
//!
//! Not here: making the place and going there (`namespace.rs`).

/// Where isobench works on somebody else's server, and how a product is asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    /// The first version in which a schema can be made and marked; older ones get a database. (0,
    /// 0): any version, even an unknown one.
    pub schema_since: (u32, u32),
    /// The query for the comment on schema `isobench`: no row if there is no such schema, an empty
    /// text if there is no comment.
    pub marked: &'static str,
    /// What a session sends to work in the schema. Not a start-up parameter: poolers and proxies
    /// refuse those, or ignore them.
    pub enter: &'static str,
    /// The query for the schema in which a session would make a table.
    pub current: &'static str,
    /// Whether DROP can be tried in a transaction, and tells in notices what it takes along.
    pub tells_cascade: bool,
    /// Whether `pg_try_advisory_lock` works.
    pub advisory_lock: bool,
}

impl Home {
    /// PostgreSQL's ways.
    pub const SCHEMA: Home = Home {
        schema_since: (0, 0),
        marked: "SELECT coalesce(pg_catalog.obj_description(oid, 'pg_namespace'), '') \
                 FROM pg_catalog.pg_namespace WHERE nspname = 'isobench'",
        enter: "SET search_path = isobench",
        current: "SELECT current_schema()",
        tells_cascade: true,
        advisory_lock: true,
    };

    /// A database in every version.
    pub const DATABASE: Home =
        Home { schema_since: (u32::MAX, 0), tells_cascade: false, advisory_lock: false, ..Home::SCHEMA };
}
