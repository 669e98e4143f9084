//! A server product as a table of facts.
//!
//! To add a product, add a file to `products/`. Facts are documented at their types (`facts/`);
//! they are used by `level`, `conflict`, `init`, `reset`, `namespace` and `settings`.

use isobench_isolation::{Level, LevelPromises};

use crate::facts::abilities::Abilities;
use crate::facts::conflict::ConflictRule;
use crate::facts::dialect::Dialect;
use crate::facts::level::{EffectiveLevelQuery, SetLevel};
use crate::facts::namespace::NamespaceFacts;
use crate::facts::object::ObjectMark;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;

/// The facts about a server product.
#[derive(Debug)]
pub struct Product {
    /// The name for users and result documents.
    pub name: &'static str,
    /// The name in OpenTelemetry's attribute `db.system.name`; `other_sql` for one that isn't known.
    pub system_name: &'static str,
    /// Its marks in the answer to `SELECT version()`.
    pub recognition: Recognition,
    /// The way to set a session's level.
    pub set_level: SetLevel,
    /// The commands that read the effective level.
    pub effective_level: EffectiveLevelQuery,
    /// The promises of its manual for each level.
    pub promises: LevelPromises,
    /// The query for the server's identifier of the session; `None` if there is none. PostgreSQL's
    /// is the process that `BackendKeyData` names.
    pub session_name: Option<&'static str>,
    /// The view that shows that a session waits for another one.
    pub waits: WaitView,
    /// The errors that are conflicts.
    pub conflicts: &'static [ConflictRule],
    /// Conflicts that contradict a level: those that a transaction at this level or a weaker one
    /// can't meet, by the start of their reason. Empty if that is unknown.
    pub impossible: &'static [(Level, &'static str)],
    /// Where the errors name the object of the conflict.
    pub objects: &'static [ObjectMark],
    /// The query for the tables that errors name by number: number and name; `None` if they aren't
    /// numbered.
    pub relations: Option<&'static str>,
    /// The facts that decide how its tables are created, filled and maintained.
    pub dialect: Dialect,
    /// Its features for applications that handle conflicts.
    pub abilities: Abilities,
    /// The schema or database in which isobench works on a server that isn't its own.
    pub namespace: NamespaceFacts,
    /// The source of its settings.
    pub settings: SettingsSource,
}

/// The marks of a product in the answer to `SELECT version()`.
#[derive(Debug, Clone, Copy)]
pub struct Recognition {
    /// Text that the answer to `SELECT version()` contains.
    pub contains: &'static str,
    /// Texts that it doesn't contain, which identify other products that claim to be this one.
    pub lacks: &'static [&'static str],
    /// The text before the version number.
    pub version_after: &'static str,
    /// A query that only this product answers, where the text doesn't decide.
    pub confirmed_by: Option<&'static str>,
}
