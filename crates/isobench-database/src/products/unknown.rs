//! A product without facts: those of the standard and the protocol.

use crate::facts::abilities::NOTHING_KNOWN;
use crate::facts::conflict::GENERIC;
use crate::facts::dialect::CAUTIOUS;
use crate::facts::level::{SHOW, SetLevel};
use crate::facts::namespace::{Mark, NamespaceFacts};
use crate::facts::object::PG_OBJECTS;
use crate::facts::promises::NAMES_ALONE;
use crate::facts::settings::SettingsSource;
use crate::facts::waiting::WaitView;
use crate::product::{Product, Recognition};

/// Any other product.
pub static UNKNOWN: Product = Product {
    name: "unknown",
    system_name: "other_sql",
    recognition: Recognition { contains: "", lacks: &[], version_after: "PostgreSQL ", confirmed_by: None },
    set_level: SetLevel::SessionCharacteristics,
    effective_level: SHOW,
    promises: NAMES_ALONE,
    // Most products related to PostgreSQL know it; others answer with an error, which is handled.
    session_name: Some("SELECT pg_backend_pid()"),
    waits: WaitView::Time,
    conflicts: &GENERIC,
    impossible: &[],
    objects: &PG_OBJECTS,
    relations: None,
    dialect: CAUTIOUS,
    abilities: NOTHING_KNOWN,
    // Few products take comments on schemas. The standard folds names to upper case, PostgreSQL to lower.
    namespace: NamespaceFacts {
        mark: Mark::Table,
        current: "SELECT lower(current_schema())",
        reports_cascade: false,
        advisory_lock: false,
        ..NamespaceFacts::SCHEMA
    },
    settings: SettingsSource::None,
};
