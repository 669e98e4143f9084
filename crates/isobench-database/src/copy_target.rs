//! A table that is about to be filled by one COPY: whether its rows can be frozen, and whether the
//! server can fill in what is the same in all of them.
//!
//! Of the time that a COPY of the accounts takes, most is the server's, and a quarter of that goes
//! into reading the two columns that are `0` and blank in every row, and padding the latter. As
//! defaults of columns that the COPY leaves out they are computed once. So the table gets these
//! defaults for the time of the COPY, in the same transaction and under the lock of its TRUNCATE,
//! so that nobody else ever sees them; what is stored is the same, byte by byte.

use isobench_pgwire::Connection;

use crate::database::Database;
use crate::error::Error;
use crate::schema::Names;
use crate::table::Table;
use crate::tables::Freeze;

/// What a table is like, as far as filling it depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyTarget {
    /// Its rows are frozen.
    pub(crate) freeze: bool,
    /// The server fills in the columns that are the same in all rows.
    pub(crate) constants_by_server: bool,
}

/// Whether the accounts are exactly as they were made (their columns in their order, nothing added
/// that sees single rows) and belong to us, so that their defaults can be changed without anybody
/// noticing.
const AS_MADE: &str = "pg_catalog.pg_has_role(relowner, 'usage') and relchecks = 0 and not relhastriggers and 4 = all \
    (select count(*) from pg_catalog.pg_attribute where attrelid = pg_class.oid and attnum > 0 union all \
    select count(*) from pg_catalog.pg_attribute where attrelid = pg_class.oid and not attisdropped \
    and not atthasdef and attidentity = '' and (attnum, attname::text, atttypid::pg_catalog.regtype::text) in \
    ((1, 'aid', 'integer'), (1, 'aid', 'bigint'), (2, 'bid', 'integer'), (3, 'abalance', 'integer'), \
    (4, 'filler', 'character')))";

impl CopyTarget {
    /// Asks the server what the table is like.
    pub(crate) fn look(
        conn: &mut Connection,
        db: &Database,
        table: Table,
        freeze: Freeze,
    ) -> Result<CopyTarget, Error> {
        // What is asked for in the catalogues isn't there in much older versions.
        if !db.at_least(14, 0) {
            return Ok(CopyTarget { freeze: freeze == Freeze::Always, constants_by_server: false });
        }
        let as_made = if table == Table::Accounts { AS_MADE } else { "false" };
        let ours = Names::default();
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

    /// Before the COPY: makes the constants defaults, if the server shall fill them in.
    pub(crate) fn let_server_fill(self, conn: &mut Connection, db: &Database) -> Result<(), Error> {
        self.alter(conn, db, "alter abalance set default 0, alter filler set default ''")
    }

    /// After the COPY: takes the defaults back.
    pub(crate) fn restore(self, conn: &mut Connection, db: &Database) -> Result<(), Error> {
        self.alter(conn, db, "alter abalance drop default, alter filler drop default")
    }

    fn alter(self, conn: &mut Connection, db: &Database, how: &str) -> Result<(), Error> {
        if self.constants_by_server {
            // A partitioned table's own defaults are the ones that its COPY uses.
            let statement = format!("alter table only {} {how}", Table::Accounts.name());
            let statement = db.place(&statement, &Names::default());
            conn.execute(&statement).map_err(|error| Error::of(error, &statement))?;
        }
        Ok(())
    }
}
