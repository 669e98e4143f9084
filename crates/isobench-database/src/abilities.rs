//! Checks that a server supports the features that a strategy needs.

use crate::database::Database;
use crate::facts::abilities::Ability;

impl Ability {
    /// The reason why this server doesn't support it, as a clause; `None` if it does.
    pub fn missing(self, database: &Database) -> Option<&'static str> {
        match self {
            Ability::Has => None,
            Ability::Since((major, minor), why) => (!database.at_least(major, minor)).then_some(why),
            Ability::Lacks(why) => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_with_a_version_is_missing_before() {
        let yugabytedb = |version| Database::from_version_text(version);
        let (old, new) = (
            yugabytedb("PostgreSQL 11.2-YB-2.13.0.0-b0 on x86_64"),
            yugabytedb("PostgreSQL 15.12-YB-2.25.1.0-b381 on aarch64"),
        );
        let ability = old.product.abilities.advisory_locks;
        assert!(ability.missing(&old).is_some());
        assert_eq!(ability.missing(&new), None);
    }
}
