//! Facts about the server that a result states once, besides its settings: version, extensions,
//! settings of role and database, sizes of tables.
//!
//! Nothing here fails: what the server doesn't show, or doesn't permit the role to see, becomes a
//! note. Not here: `settings`.

use std::collections::BTreeMap;

use isobench_pgwire::{Connection, Rows, cut};

use crate::database::Database;
use crate::error::Error;
use crate::facts::settings::SettingsSource;
use crate::quoting::literal;
use crate::settings::NEVER;

/// The properties of a server that don't change while it is measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The whole answer to `SELECT version()`.
    pub version_text: String,
    /// The extensions of the database, with their versions.
    pub extensions: BTreeMap<String, String>,
    /// Settings attached to the role, the database, or both, as "role:
    /// `default_transaction_isolation` = serializable". Without the names of role and database.
    pub role_settings: Vec<String>,
    /// Sentences about what couldn't be read, with the reason.
    pub notes: Vec<String>,
}

/// Name and size of a table or an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelationSize {
    /// Its name.
    pub name: String,
    /// "table" or "index".
    pub kind: String,
    /// Size in bytes. A table's includes its TOAST table and maps, but not its indexes.
    pub bytes: u64,
    /// The server's estimate of the number of rows; `None` for an index, and for a table that was
    /// never analyzed.
    pub rows: Option<u64>,
}

/// The most tables and indexes that are listed, the largest first.
const MOST_RELATIONS: usize = 50;

/// PostgreSQL manual, "`pg_extension`".
const EXTENSIONS: &str = "select extname, extversion from pg_catalog.pg_extension order by 1";

/// PostgreSQL manual, "`pg_db_role_setting`". 0 means all roles or all databases.
const ROLE_SETTINGS: &str = "select case when setrole = 0 and setdatabase = 0 then 'all' \
    when setdatabase = 0 then 'role' when setrole = 0 then 'database' else 'role in database' end, \
    split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1) \
    from pg_catalog.pg_db_role_setting, unnest(setconfig) setting \
    where setdatabase in (0, (select oid from pg_catalog.pg_database where datname = current_database())) \
    and setrole in (0, (select oid from pg_catalog.pg_roles where rolname = current_user)) \
    and not lower(split_part(setting, '=', 1)) like any (array[{never}]) order by 1, 2";

/// PostgreSQL manual, "Database Object Size Functions", "`pg_class`". A relation dropped meanwhile
/// has no size.
const RELATIONS: &str = "select relname, case relkind when 'i' then 'index' else 'table' end, \
    coalesce(pg_catalog.pg_table_size(c.oid), 0), \
    case when relkind <> 'i' and reltuples >= 0 then reltuples::bigint end \
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = relnamespace \
    where nspname = current_schema() and relkind in ('r', 'm', 'i') order by 3 desc, 1 limit {most}";

/// Reads the properties of the server.
pub fn environment(conn: &mut Connection, db: &Database) -> Environment {
    let mut environment = Environment { version_text: db.version_text.clone(), ..Environment::default() };
    if let Some(note) = without_catalogs(db) {
        environment.notes.push(note);
        return environment;
    }
    match read(conn, "the extensions", EXTENSIONS) {
        Ok(rows) => {
            environment.extensions = rows
                .rows
                .into_iter()
                .filter_map(|row| {
                    let mut cells = row.into_iter();
                    Some((cells.next()??, cut(&cells.next().flatten().unwrap_or_default()).into_owned()))
                })
                .collect();
        }
        Err(note) => environment.notes.push(note),
    }
    match read(conn, "the settings of role and database", &ROLE_SETTINGS.replace("{never}", NEVER)) {
        Ok(rows) => {
            let shown = |row: Vec<Option<String>>| match &row[..] {
                [Some(of), Some(name), Some(value)] => Some(format!("{of}: {name} = {}", cut(value))),
                _ => None,
            };
            environment.role_settings = rows.rows.into_iter().filter_map(shown).collect();
        }
        Err(note) => environment.notes.push(note),
    }
    environment
}

/// The tables and indexes in the schema in which new tables are created, the largest first; at most
/// fifty.
///
/// # Errors
/// A note with the reason why they can't be read.
pub fn relation_sizes(conn: &mut Connection, db: &Database) -> Result<Vec<RelationSize>, String> {
    if let Some(note) = without_catalogs(db) {
        return Err(note);
    }
    let rows = read(conn, "the sizes of tables", &RELATIONS.replace("{most}", &MOST_RELATIONS.to_string()))?;
    let relation = |row: Vec<Option<String>>| match &row[..] {
        [Some(name), Some(kind), Some(bytes), rows] => Some(RelationSize {
            name: name.clone(),
            kind: kind.clone(),
            bytes: bytes.parse().ok()?,
            rows: rows.as_ref().and_then(|rows| rows.parse().ok()),
        }),
        _ => None,
    };
    Ok(rows.rows.into_iter().filter_map(relation).collect())
}

/// The names of the tables in the schema that statements name, or where the session makes new ones, as
/// identifiers with their schema.
///
/// # Errors
/// The server refuses or is gone.
pub fn tables(conn: &mut Connection, db: &Database) -> Result<Vec<String>, Error> {
    let schema = match &db.schema {
        Some(schema) => format!("c.relnamespace = {}::pg_catalog.regnamespace", literal(schema)),
        None => "n.nspname = pg_catalog.current_schema()".to_owned(),
    };
    let query = format!(
        "SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND {schema} ORDER BY 1"
    );
    let rows = conn.query(&query).map_err(|error| Error::of(error, &query))?.rows;
    Ok(rows.into_iter().filter_map(|mut row| row.pop().flatten()).collect())
}

/// The reason why nothing can be read from a product without PostgreSQL's catalogs. Products with
/// `pg_settings` have the other catalogs, too.
fn without_catalogs(db: &Database) -> Option<String> {
    (!matches!(db.product.settings, SettingsSource::PgSettings)).then(|| {
        format!(
            "isobench doesn't know how to read extensions, settings of roles and sizes of tables of this product ({})",
            db.product.name
        )
    })
}

fn read(conn: &mut Connection, what: &str, query: &str) -> Result<Rows, String> {
    conn.query(query).map_err(|error| {
        let why = error.server().map_or_else(|| error.to_string(), |error| cut(&error.message).into_owned());
        format!("{what} can't be read: {why}")
    })
}
