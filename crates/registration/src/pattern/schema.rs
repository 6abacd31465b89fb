//! The JSON Schema of patterns, for editors.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::Pattern;

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        for (name, schema) in definitions() {
            generator.definitions_mut().insert(name.to_owned(), schema);
        }
        let scalar = reference("PatternValues");
        let object = reference("PatternObject");
        json_schema!({
            "description": "A pattern that the change must match, in EventBridge's pattern language.",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": false,
            "properties": {
                "operation": scalar, "id": scalar, "name": scalar, "state": scalar, "version": scalar, "clientToken": scalar,
                "old": object, "new": object,
                "diff": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": false,
                    "properties": {
                        "added": by_pointer(&reference("PatternField")),
                        "removed": by_pointer(&reference("PatternField")),
                        "updated": by_pointer(&json!({
                            "type": "object",
                            "minProperties": 1,
                            "additionalProperties": false,
                            "properties": { "old": reference("PatternField"), "new": reference("PatternField"), "$or": reference("PatternOr") }
                        })),
                        "$or": reference("PatternOr")
                    }
                },
                "$or": { "type": "array", "minItems": 2, "items": reference("Pattern") }
            }
        })
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn by_pointer(value: &Value) -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "properties": { "$or": reference("PatternOr") },
        "patternProperties": { "^/": value },
        "additionalProperties": false
    })
}

fn definitions() -> Vec<(&'static str, Value)> {
    let text = json!({ "type": "string" });
    let folded = single("equals-ignore-case", &text);
    let texts = json!({ "anyOf": [{ "type": "string" }, { "type": "array", "minItems": 1, "items": { "type": "string" } }] });
    let filled = json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "array", "minItems": 1, "items": { "type": "string", "minLength": 1 } }] });
    vec![
        (
            "PatternObject",
            json!({
                "type": "object",
                "minProperties": 1,
                "properties": { "$or": reference("PatternOr") },
                "additionalProperties": reference("PatternField")
            }),
        ),
        (
            "PatternOr",
            json!({
                "description": "One of these objects must match.",
                "type": "array", "minItems": 2, "items": reference("PatternObject")
            }),
        ),
        (
            "PatternField",
            json!({ "anyOf": [reference("PatternValues"), reference("PatternObject")] }),
        ),
        (
            "PatternValues",
            json!({
                "description": "One of these must hold of a value.",
                "type": "array",
                "minItems": 1,
                "items": { "anyOf": [{ "type": ["string", "number", "boolean", "null"] }, reference("PatternOperator")] }
            }),
        ),
        (
            "PatternOperator",
            json!({ "oneOf": [
            single("exactly", &text),
            single("prefix", &json!({ "anyOf": [text, folded] })),
            single("suffix", &json!({ "anyOf": [text, folded] })),
            folded,
            single("wildcard", &json!({ "type": "string", "description": "* is any text, \\* an asterisk, \\\\ a backslash." })),
            single("numeric", &json!({ "oneOf": [
                comparison(&["=", "<", "<=", ">", ">="]),
                { "type": "array", "minItems": 4, "maxItems": 4, "prefixItems": [{ "enum": [">", ">="] }, { "type": "number" }, { "enum": ["<", "<="] }, { "type": "number" }] }
            ] })),
            single("cidr", &text),
            single("exists", &json!({ "type": "boolean" })),
            single("anything-but", &json!({ "anyOf": [
                { "type": ["string", "number"] },
                { "type": "array", "minItems": 1, "items": { "type": "string" } },
                { "type": "array", "minItems": 1, "items": { "type": "number" } },
                single("prefix", &filled),
                single("suffix", &filled),
                single("equals-ignore-case", &texts),
                single("wildcard", &texts)
            ] }))
        ] }),
        ),
    ]
}

fn single(name: &str, value: &Value) -> Value {
    json!({ "type": "object", "properties": { name: value }, "required": [name], "additionalProperties": false })
}

fn comparison(words: &[&str]) -> Value {
    json!({ "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{ "enum": words }, { "type": "number" }] })
}
