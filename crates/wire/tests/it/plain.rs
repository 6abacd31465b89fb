//! A plain JSON value, to compare both readers by: members sorted, numbers as text.

use std::collections::BTreeMap;

use antumbra_shadow::{Kind, View};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_dynamo::AttributeValue;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Plain>),
    Object(BTreeMap<String, Plain>),
}

impl Plain {
    /// The value as the reader of this crate returns it.
    pub(crate) fn of_view(view: View<'_>) -> Plain {
        match view.kind() {
            Kind::Null => Plain::Null,
            Kind::Bool => Plain::Bool(view.as_bool().unwrap()),
            Kind::Number => Plain::Number(view.as_number().unwrap().to_owned()),
            Kind::String => Plain::String(view.as_str().unwrap().into_owned()),
            Kind::Array => Plain::Array(view.children().map(Plain::of_view).collect()),
            Kind::Object => Plain::Object(
                view.children()
                    .map(|member| (member.key().into_owned(), Plain::of_view(member)))
                    .collect(),
            ),
        }
    }

    /// The value as serde_json returns it.
    pub(crate) fn of_item(item: serde_dynamo::Item) -> Plain {
        let members: std::collections::HashMap<_, _> = item.into();
        Plain::Object(
            members
                .into_iter()
                .map(|(name, value)| (name, Plain::of_attribute(value)))
                .collect(),
        )
    }

    fn of_attribute(value: AttributeValue) -> Plain {
        let strings =
            |list: Vec<String>| Plain::Array(list.into_iter().map(Plain::String).collect());
        match value {
            AttributeValue::N(text) => Plain::Number(text),
            AttributeValue::S(text) => Plain::String(text),
            AttributeValue::Bool(value) => Plain::Bool(value),
            AttributeValue::B(bytes) => Plain::String(STANDARD.encode(bytes)),
            AttributeValue::Null(_) => Plain::Null,
            AttributeValue::M(members) => Plain::of_item(members.into()),
            AttributeValue::L(list) => {
                Plain::Array(list.into_iter().map(Plain::of_attribute).collect())
            }
            AttributeValue::Ss(list) => strings(list),
            AttributeValue::Ns(list) => Plain::Array(list.into_iter().map(Plain::Number).collect()),
            AttributeValue::Bs(list) => strings(
                list.into_iter()
                    .map(|bytes| STANDARD.encode(bytes))
                    .collect(),
            ),
        }
    }

    /// Returns `true` if every number is one by JSON's grammar, which serde_json does not check.
    pub(crate) fn numbers_are_json(&self) -> bool {
        match self {
            Plain::Number(text) => {
                let mut scanner = antumbra_shadow::scan::Scanner::new(text);
                scanner.number().is_ok() && scanner.at == text.len()
            }
            Plain::Array(list) => list.iter().all(Plain::numbers_are_json),
            Plain::Object(members) => members.values().all(Plain::numbers_are_json),
            _ => true,
        }
    }

    pub(crate) fn is_empty_object(&self) -> bool {
        matches!(self, Plain::Object(members) if members.is_empty())
    }
}
