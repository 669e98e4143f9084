//! What the server does by itself when rows are put back, and how it is kept from it: triggers would write
//! again, and foreign keys refuse or delete rows.
//!
//! A role that may set `session_replication_role` switches them off for its session, apart from triggers that
//! are to fire always. Any other one owns the tables that it has made: triggers are disabled, and foreign
//! keys are dropped and added again, in the transaction that puts rows back.

use std::fmt::Write as _;

use isobench_database::Product;
use isobench_database::products::POSTGRESQL;

use super::TryError;
use super::tables::{Row, query};
use crate::tester::{Patience, TestSession};

/// The triggers and foreign keys that have to be switched off to put rows back.
#[derive(Debug, Default)]
pub struct SideEffects(Vec<SideEffect>);

/// A trigger, or a foreign key.
#[derive(Debug)]
struct SideEffect {
    /// The object ids of the tables in which rows change.
    tables: Vec<String>,
    off: String,
    on: String,
}

/// Statements around those that put rows back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Before them.
    pub before: String,
    /// After them.
    pub after: String,
}

const AS_REPLICA: &str = "SET session_replication_role = replica";

/// The user's triggers: table, statement that switches it off, statement that switches it on.
const TRIGGERS: &str = "SELECT c.oid, NULL, format('ALTER TABLE %I.%I DISABLE TRIGGER %I', n.nspname, c.relname, \
    t.tgname), format('ALTER TABLE %I.%I ENABLE %s TRIGGER %I', n.nspname, c.relname, CASE t.tgenabled WHEN 'R' THEN \
    'REPLICA' WHEN 'A' THEN 'ALWAYS' ELSE '' END, t.tgname) FROM pg_catalog.pg_trigger t \
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = current_schema() AND c.relkind = 'r' AND NOT t.tgisinternal AND strpos('FIRES', t.tgenabled::text) > 0 \
    AND t.tgname <> '!isobench' ORDER BY c.oid, t.tgname";

/// The foreign keys, apart from those that partitions have from their tables. Rows that are there needn't
/// be checked again; a partitioned table has no keys that aren't.
const FOREIGN_KEYS: &str = "SELECT k.conrelid, k.confrelid, format('ALTER TABLE %I.%I DROP CONSTRAINT %I', n.nspname, \
    c.relname, k.conname), format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s%s', n.nspname, c.relname, k.conname, \
    pg_catalog.pg_get_constraintdef(k.oid), CASE WHEN k.convalidated AND c.relkind = 'r' THEN ' NOT VALID' ELSE '' END) \
    FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND k.contype = 'f' \
    AND coalesce(pg_catalog.to_jsonb(k) ->> 'conparentid', '0') = '0' ORDER BY k.oid";

/// Foreign keys of partitioned tables concern partitions.
const PARTITIONED: &str = "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
    ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'p' LIMIT 1";

/// Other products: user triggers and foreign keys, which can't be switched off there.
const ANY: &str = "SELECT 1 FROM (SELECT tgrelid AS r FROM pg_catalog.pg_trigger UNION ALL SELECT conrelid \
    FROM pg_catalog.pg_constraint WHERE contype = 'f') t JOIN pg_catalog.pg_class c ON c.oid = t.r \
    JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = current_schema() LIMIT 1";

impl SideEffects {
    /// Switches them off for the session, or finds out how that is done each time.
    ///
    /// # Errors
    /// The role may do neither; the server refuses or is gone.
    pub fn find(
        control: &mut TestSession,
        product: &Product,
        patience: Patience<'_>,
    ) -> Result<SideEffects, TryError> {
        let as_replica = match query(control, AS_REPLICA, patience) {
            Ok(_) => true,
            Err(TryError::Server(_)) => false,
            Err(error) => return Err(error),
        };
        if as_replica && product.name != POSTGRESQL.name {
            return Ok(SideEffects::default());
        }
        if product.name != POSTGRESQL.name {
            let found = query(control, ANY, patience)?;
            return if found.is_empty() { Ok(SideEffects::default()) } else { Err(TryError::Privilege) };
        }
        let fires = if as_replica { "AR" } else { "ARO" };
        let mut rows = query(control, &TRIGGERS.replace("'FIRES'", &format!("'{fires}'")), patience)?;
        let keys = if as_replica { Vec::new() } else { query(control, FOREIGN_KEYS, patience)? };
        let by_table = query(control, PARTITIONED, patience)?.is_empty();
        let triggers = rows.len();
        rows.extend(keys);
        let found = (0..).zip(rows).map(|(number, row)| SideEffect::of(row, by_table || number < triggers));
        let found = SideEffects(found.collect::<Result<_, _>>()?);
        let Around { before, after } = found.around(&|_| true);
        match query(control, &(before + &after), patience) {
            Err(TryError::Server(_)) => Err(TryError::Privilege),
            tried => tried.map(|_| found),
        }
    }

    /// The statements that switch those off and on again that concern some of the tables.
    pub fn around(&self, concerns: &dyn Fn(&str) -> bool) -> Around {
        let concerned =
            |one: &&SideEffect| one.tables.is_empty() || one.tables.iter().any(|oid| concerns(oid));
        let mut around = Around::default();
        for one in self.0.iter().filter(concerned) {
            if around.after.is_empty() {
                // No table can be altered that has checks to come.
                around.after.push_str("SET CONSTRAINTS ALL IMMEDIATE;");
            }
            // Writing to a String can't fail.
            let _ = write!(around.before, "{};", one.off);
            let _ = write!(around.after, "{};", one.on);
        }
        around
    }
}

impl SideEffect {
    fn of(row: Row, by_table: bool) -> Result<SideEffect, TryError> {
        let [one, other, Some(off), Some(on)] =
            <[_; 4]>::try_from(row).map_err(|_| TryError::Answer("the list of triggers"))?
        else {
            return Err(TryError::Answer("the list of triggers"));
        };
        let tables = if by_table { one.into_iter().chain(other).collect() } else { Vec::new() };
        Ok(SideEffect { tables, off, on })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_concerns_a_table_is_switched_off() {
        let one = |tables: &[&str], name: &str| SideEffect {
            tables: tables.iter().map(|oid| (*oid).to_owned()).collect(),
            off: format!("off {name}"),
            on: format!("on {name}"),
        };
        let all = SideEffects(vec![one(&["1"], "a"), one(&["1", "2"], "b"), one(&["3"], "c"), one(&[], "d")]);
        let around = all.around(&|oid| oid == "2");
        assert_eq!(around.before, "off b;off d;");
        assert_eq!(around.after, "SET CONSTRAINTS ALL IMMEDIATE;on b;on d;");
        assert_eq!(SideEffects::default().around(&|_| true), Around::default());
    }
}
