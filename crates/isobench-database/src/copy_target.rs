//! A table that is about to be filled by one COPY: whether its rows can be frozen, and whether the
//! server can fill in the columns that are the same in all rows.
//!
//! Most of the time of a COPY into the accounts is the server's, and a quarter of that is spent on
//! reading the two columns that are `0` and blank in every row, and on padding the latter. As
//! defaults of columns that the COPY leaves out they are computed only once. So the table gets
//! these defaults for the duration of the COPY, in the same transaction and under the lock of its
//! TRUNCATE. No other session ever sees them, and the stored rows are the same, byte by byte.

use isobench_pgwire::Connection;

use crate::database::Database;
use crate::error::Error;
use crate::schema::OwnNames;
use crate::table::Table;
use crate::tables::Freeze;

/// The properties of a table that decide how it is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyTarget {
    /// Rows are frozen.
    pub(crate) freeze: bool,
    /// The server fills in the columns that are the same in all rows.
    pub(crate) constants_by_server: bool,
}

/// Condition: the accounts are exactly as created (their columns in order, nothing added that acts
/// on single rows) and belong to us, so that changing their defaults has no other effect.
const AS_MADE: &str = "pg_catalog.pg_has_role(relowner, 'usage') and relchecks = 0 and not relhastriggers and 4 = all \
    (select count(*) from pg_catalog.pg_attribute where attrelid = pg_class.oid and attnum > 0 union all \
    select count(*) from pg_catalog.pg_attribute where attrelid = pg_class.oid and not attisdropped \
    and not atthasdef and attidentity = '' and (attnum, attname::text, atttypid::pg_catalog.regtype::text) in \
    ((1, 'aid', 'integer'), (1, 'aid', 'bigint'), (2, 'bid', 'integer'), (3, 'abalance', 'integer'), \
    (4, 'filler', 'character')))";

impl CopyTarget {
    /// Reads the table's properties from the server.
    pub(crate) fn look(
        conn: &mut Connection,
        db: &Database,
        table: Table,
        freeze: Freeze,
    ) -> Result<CopyTarget, Error> {
        // Much older versions lack the catalogs that the query needs.
        if !db.at_least(14, 0) {
            return Ok(CopyTarget { freeze: freeze == Freeze::Always, constants_by_server: false });
        }
        let as_made = if table == Table::Accounts { AS_MADE } else { "false" };
        let ours = OwnNames::default();
        let table = db.place(table.name(), &ours);
        let question = format!(
            "select relkind = 'p', {as_made} from pg_catalog.pg_class where oid = '{table}'::pg_catalog.regclass"
        );
        let rows = conn.query(&question).map_err(|error| Error::of(error, &question))?.rows;
        let answer = |column: usize| {
            rows.first().and_then(|row| row.get(column)).is_some_and(|value| value.as_deref() == Some("t"))
        };
        let freeze = match freeze {
            Freeze::Never => false,
            Freeze::Possible => !answer(0),
            Freeze::Always => true,
        };
        Ok(CopyTarget { freeze, constants_by_server: answer(1) })
    }

    /// Before the COPY: turns the constants into defaults, if the server is to fill them in.
    pub(crate) fn let_server_fill(self, conn: &mut Connection, db: &Database) -> Result<(), Error> {
        self.alter(conn, db, "alter abalance set default 0, alter filler set default ''")
    }

    /// After the COPY: removes the defaults.
    pub(crate) fn restore(self, conn: &mut Connection, db: &Database) -> Result<(), Error> {
        self.alter(conn, db, "alter abalance drop default, alter filler drop default")
    }

    fn alter(self, conn: &mut Connection, db: &Database, how: &str) -> Result<(), Error> {
        if self.constants_by_server {
            // The COPY of a partitioned table uses its own defaults, not those of its partitions.
            let statement = format!("alter table only {} {how}", Table::Accounts.name());
            let statement = db.place(&statement, &OwnNames::default());
            conn.execute(&statement).map_err(|error| Error::of(error, &statement))?;
        }
        Ok(())
    }
}
