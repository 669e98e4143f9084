//! Isolation levels in JSON and TOML: written by their names in lower case, as SHOW prints them,
//! and read by any of their names.

use std::borrow::Cow;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{EffectiveLevel, Level};

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Level, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for EffectiveLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EffectiveLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EffectiveLevel, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let unknown = name == EffectiveLevel::Unknown.to_string();
        Ok(if unknown { EffectiveLevel::Unknown } else { EffectiveLevel::from_setting(&name) })
    }
}

#[cfg(feature = "schema")]
mod schema {
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{Cow, EffectiveLevel, Level};

    impl JsonSchema for Level {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "Level".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "enum": Level::ALL.map(Level::name) })
        }
    }

    impl JsonSchema for EffectiveLevel {
        fn inline_schema() -> bool {
            true
        }

        fn schema_name() -> Cow<'static, str> {
            "EffectiveLevel".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string" })
        }
    }
}
