//! Documents as attribute maps. Numbers keep their text, so that they stay exact.

use std::collections::HashMap;

use antumbra_shadow::{Document, DocumentError, Kind, View, text};
use aws_sdk_dynamodb::types::AttributeValue;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotADocument {
    /// A set or a binary value, which JSON does not have.
    #[error("a value of a type that JSON does not have")]
    Type,
    #[error(transparent)]
    Document(#[from] DocumentError),
}

pub(crate) fn encode(document: &Document) -> AttributeValue {
    encode_value(document.view())
}

fn encode_value(view: View<'_>) -> AttributeValue {
    match view.kind() {
        Kind::Null => AttributeValue::Null(true),
        Kind::Bool => AttributeValue::Bool(view.raw() == "true"),
        Kind::Number => AttributeValue::N(view.raw().to_owned()),
        Kind::String => AttributeValue::S(view.as_str().unwrap_or_default().into_owned()),
        Kind::Array => AttributeValue::L(view.children().map(encode_value).collect()),
        Kind::Object => AttributeValue::M(
            view.children()
                .map(|child| (child.key().into_owned(), encode_value(child)))
                .collect(),
        ),
    }
}

pub(crate) fn decode(attribute: &AttributeValue) -> Result<Document, NotADocument> {
    let mut json = String::new();
    decode_value(attribute, &mut json)?;
    Ok(Document::parse(&json)?)
}

fn decode_value(attribute: &AttributeValue, json: &mut String) -> Result<(), NotADocument> {
    match attribute {
        AttributeValue::Null(_) => json.push_str("null"),
        AttributeValue::Bool(value) => json.push_str(if *value { "true" } else { "false" }),
        AttributeValue::N(number) => json.push_str(number),
        AttributeValue::S(value) => decode_string(value, json),
        AttributeValue::L(elements) => {
            json.push('[');
            for (position, element) in elements.iter().enumerate() {
                if position > 0 {
                    json.push(',');
                }
                decode_value(element, json)?;
            }
            json.push(']');
        }
        AttributeValue::M(members) => decode_members(members, json)?,
        _ => return Err(NotADocument::Type),
    }
    Ok(())
}

/// Decodes members in a document's order, so that parsing does not have to sort them.
fn decode_members(
    members: &HashMap<String, AttributeValue>,
    json: &mut String,
) -> Result<(), NotADocument> {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    json.push('{');
    for (position, (name, value)) in sorted.into_iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        decode_string(name, json);
        json.push(':');
        decode_value(value, json)?;
    }
    json.push('}');
    Ok(())
}

fn decode_string(plain: &str, json: &mut String) {
    json.push('"');
    text::escape_into(json, plain);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn documents_are_decoded_as_encoded() {
        for json in [
            "{}",
            r#"{"":null,"a":[],"b":{},"c":[true,false,null,[0]],"d":{"å\n\"":"\\\u0001"}}"#,
            r#"{"n":[12345678901234567890123456789012345678,-0.5,1e125,1e-130,0]}"#,
        ] {
            let document = Document::parse(json).unwrap();
            assert_eq!(decode(&encode(&document)), Ok(document));
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|b| b.to_string()),
            "-?(0|[1-9][0-9]{0,18})(\\.[0-9]{1,18})?(e-?[0-9]{1,2})?",
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        ];
        let value = leaf.prop_recursive(6, 48, 6, |inner| {
            let members = prop::collection::btree_map(".{1,6}", inner.clone(), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(|all| format!("[{}]", all.join(","))),
                members.prop_map(object),
            ]
        });
        prop::collection::btree_map(".{1,6}", value, 0..6).prop_map(object)
    }

    fn object(members: std::collections::BTreeMap<String, String>) -> String {
        let members = members.into_iter().map(|(name, value)| {
            let name = serde_json::to_string(&name).unwrap();
            format!("{name}:{value}")
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }

    proptest! {
        #[test]
        fn any_document_is_decoded_as_encoded(json in json()) {
            let document = Document::parse(&json).unwrap();
            prop_assert_eq!(decode(&encode(&document)), Ok(document));
        }
    }

    #[test]
    fn foreign_attributes_are_rejected() {
        for (attribute, error) in [
            (AttributeValue::Ss(vec!["a".into()]), NotADocument::Type),
            (
                AttributeValue::L(vec![]),
                NotADocument::Document(DocumentError::NotAnObject { found: "an array" }),
            ),
        ] {
            assert_eq!(decode(&attribute), Err(error));
        }
        let hidden = AttributeValue::M(HashMap::from([(
            "a".to_owned(),
            AttributeValue::L(vec![AttributeValue::Ns(vec!["1".into()])]),
        )]));
        assert_eq!(decode(&hidden), Err(NotADocument::Type));
    }
}
