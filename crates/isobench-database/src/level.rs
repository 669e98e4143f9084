//! Sets the isolation level of a session, and reads the level that it really runs at.

use isobench_isolation::{EffectiveLevel, Level};
use isobench_pgwire::{Connection, Error as WireError, SqlState, TransactionStatus};

use crate::error::Error;
use crate::facts::level::{EffectiveLevelQuery, SetLevel};
use crate::product::Product;

impl Product {
    /// The SQL that sets the level of all later transactions of a session. Sent once per session; `None`
    /// if the server has one level, and can't be asked for another.
    pub fn set_level(&self, level: Level) -> Option<String> {
        match self.set_level {
            SetLevel::SessionCharacteristics => {
                Some(format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {}", level.sql()))
            }
            SetLevel::DefaultTransactionIsolation => {
                Some(format!("SET default_transaction_isolation = '{level}'"))
            }
            SetLevel::Fixed => None,
        }
    }

    /// Sets the level of all later transactions of a session, where it can be set.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub fn apply_level(&self, conn: &mut Connection, level: Level) -> Result<(), WireError> {
        self.set_level(level).map_or(Ok(()), |sql| conn.execute(&sql).map(|_| ()))
    }

    /// The commands that read the effective level inside a transaction.
    pub fn effective_level(&self) -> EffectiveLevelQuery {
        self.effective_level
    }

    /// The query for the level inside a transaction.
    pub fn level_question(&self) -> &'static str {
        self.effective_level.steps.get(self.effective_level.answer).copied().unwrap_or_default()
    }

    /// Reads the level at which this session's transactions run.
    ///
    /// A server that doesn't understand the query is [`EffectiveLevel::Unknown`], not an error.
    ///
    /// # Errors
    /// The connection is lost, or the server reports another error than an unknown name or syntax. An
    /// error without a code is taken for one of these.
    pub fn read_effective(&self, conn: &mut Connection) -> Result<EffectiveLevel, Error> {
        let query = self.effective_level;
        let mut level = EffectiveLevel::Unknown;
        for (index, step) in query.steps.iter().enumerate() {
            match conn.value(step) {
                Ok(Some(answer)) if index == query.answer => level = EffectiveLevel::from_setting(&answer),
                Ok(_) => {}
                Err(error) => {
                    // Class 42: syntax error, unknown function or parameter; 0A: feature not supported.
                    // Some products have no codes.
                    let unknown = error
                        .code()
                        .is_some_and(|code| matches!(code.class(), "42" | "0A") || code == SqlState::MISSING);
                    if conn.transaction_status() != TransactionStatus::Idle {
                        conn.execute("ROLLBACK")?;
                    }
                    return if unknown { Ok(EffectiveLevel::Unknown) } else { Err(Error::of(error, step)) };
                }
            }
        }
        Ok(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::products::{AURORA_DSQL, COCKROACHDB, H2, POSTGRESQL, YUGABYTEDB};

    #[test]
    fn each_product_sets_levels_its_own_way() {
        let sql = |product: &Product, level| product.set_level(level).unwrap_or_default();
        assert_eq!(
            sql(&POSTGRESQL, Level::RepeatableRead),
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        );
        assert_eq!(
            sql(&COCKROACHDB, Level::ReadCommitted),
            "SET default_transaction_isolation = 'read committed'"
        );
        assert_eq!(AURORA_DSQL.set_level(Level::RepeatableRead), None);
        assert_eq!(
            YUGABYTEDB.effective_level().steps[YUGABYTEDB.effective_level().answer],
            "SELECT yb_get_effective_transaction_isolation_level()"
        );
        assert!(sql(&H2, Level::Serializable).starts_with("SET SESSION CHARACTERISTICS"));
    }
}
