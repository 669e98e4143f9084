//! A server product as one row of facts.
//!
//! Adding a product is adding a file to `products/`. What a fact means stands at its type
//! (`facts/`); what is done with it stands with the doer (`level`, `conflict`, `init`, `reset`,
//! `namespace`, `settings`).

use isobench_isolation::Level;

use crate::facts::abilities::Abilities;
use crate::facts::conflict::ConflictRule;
use crate::facts::dialect::Dialect;
use crate::facts::home::Home;
use crate::facts::level::{EffectiveLevelQuery, SetLevel};
use crate::facts::object::ObjectMark;
use crate::facts::promises::Promises;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;

/// What isobench knows about a server product: plain facts, no behaviour.
#[derive(Debug)]
pub struct Product {
    /// The name for people and result documents.
    pub name: &'static str,
    /// How it is recognised from the answer to `SELECT version()`.
    pub recognition: Recognition,
    /// How a session's level is set.
    pub set_level: SetLevel,
    /// How the effective level is read.
    pub effective_level: EffectiveLevelQuery,
    /// What its manual promises at each level.
    pub promises: Promises,
    /// The query for what it calls the session that answers; `None` where sessions have no names.
    /// PostgreSQL's is the process that `BackendKeyData` names, too.
    pub session_name: Option<&'static str>,
    /// How it tells that a session waits for another one.
    pub waits: WaitView,
    /// The errors that are conflicts.
    pub conflicts: &'static [ConflictRule],
    /// Conflicts that contradict a level: what a transaction at this level, or a weaker one, can't
    /// meet, by the beginning of the reason. Empty where that isn't known.
    pub impossible: &'static [(Level, &'static str)],
    /// Where they say what the conflict was about.
    pub objects: &'static [ObjectMark],
    /// The query for the tables that errors name by number: number and name; `None` where they have
    /// no numbers.
    pub relations: Option<&'static str>,
    /// How its tables are made, filled and tidied.
    pub dialect: Dialect,
    /// What it can do for applications that cope with conflicts.
    pub abilities: Abilities,
    /// Where isobench works on a server that isn't its own.
    pub home: Home,
    /// Where its settings can be read.
    pub settings: SettingsSource,
}

/// How a product is recognised.
#[derive(Debug, Clone, Copy)]
pub struct Recognition {
    /// What the answer to `SELECT version()` contains.
    pub contains: &'static str,
    /// What it doesn't contain: marks of products that only claim to be this one.
    pub lacks: &'static [&'static str],
    /// The text before the version number.
    pub version_after: &'static str,
}
