//! Isolation levels in JSON: their names in lower case, as SHOW prints them.
//!
//! Not here: what the names mean.

use isobench_isolation::{EffectiveLevel, Level};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

fn names() -> Vec<&'static str> {
    Level::ALL.iter().map(|level| level.name()).collect()
}

fn parse<E: Error>(name: &str) -> Result<Level, E> {
    name.parse().map_err(E::custom)
}

/// A level or null.
pub mod optional {
    use super::{Deserialize, Deserializer, Level, Serializer, parse};

    #[expect(
        clippy::ref_option,
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes fields by reference"
    )]
    pub fn serialize<S: Serializer>(level: &Option<Level>, serializer: S) -> Result<S::Ok, S::Error> {
        match level {
            Some(level) => serializer.serialize_str(level.name()),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Level>, D::Error> {
        Option::<String>::deserialize(deserializer)?.map(|name| parse(&name)).transpose()
    }
}

/// A list of levels.
pub mod list {
    use super::{Deserialize, Deserializer, Level, Serializer, parse};

    pub fn serialize<S: Serializer>(levels: &[Level], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(levels.iter().map(|level| level.name()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
        Vec::<String>::deserialize(deserializer)?.iter().map(|name| parse(name)).collect()
    }
}

/// What the server says it runs.
pub mod effective {
    use super::{Deserialize, Deserializer, EffectiveLevel, Serializer};

    pub fn serialize<S: Serializer>(level: &EffectiveLevel, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(level)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EffectiveLevel, D::Error> {
        let name = String::deserialize(deserializer)?;
        let unknown = name == EffectiveLevel::Unknown.to_string();
        Ok(if unknown { EffectiveLevel::Unknown } else { EffectiveLevel::from_setting(&name) })
    }
}

/// The schema of [`optional`].
pub fn optional_schema(_: &mut SchemaGenerator) -> Schema {
    let mut names: Vec<Option<&str>> = names().into_iter().map(Some).collect();
    names.push(None);
    json_schema!({ "type": ["string", "null"], "enum": names })
}

/// The schema of [`list`].
pub fn list_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "enum": names() } })
}
