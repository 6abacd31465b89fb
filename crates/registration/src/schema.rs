//! The JSON Schema of registration files, derived from their types: `registrations/registration.schema.json`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::change::Operation;
use crate::registration::{Operations, PARTS, Parts, Registration};
use crate::target::QualityOfService;

/// Returns the schema.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Registration>()
        .to_value();
    // Editors find the schema by this member, which is not part of the registration.
    if let Some(properties) = schema
        .pointer_mut("/properties")
        .and_then(|found| found.as_object_mut())
    {
        properties.insert(
            "$schema".to_owned(),
            serde_json::json!({ "type": "string" }),
        );
    }
    schema
}

/// The words of `on.state`.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[allow(dead_code)]
pub(crate) enum StateWord {
    Reported,
    Desired,
    Both,
}

impl JsonSchema for Operations {
    fn schema_name() -> Cow<'static, str> {
        "Operations".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = Operation::ALL.map(Operation::as_str);
        json_schema!({ "type": "array", "items": { "enum": words }, "uniqueItems": true, "minItems": 1 })
    }
}

impl JsonSchema for Parts {
    fn schema_name() -> Cow<'static, str> {
        "Parts".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = PARTS.map(|(word, _)| word);
        json_schema!({
            "type": "array", "items": { "enum": words }, "uniqueItems": true, "minItems": 1, "default": ["diff"]
        })
    }
}

impl JsonSchema for QualityOfService {
    fn schema_name() -> Cow<'static, str> {
        "QualityOfService".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "enum": [0, 1] })
    }
}
