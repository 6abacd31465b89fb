//! Topics and their subscriptions, as data.

use std::collections::BTreeMap;

use antumbra_registration::Pattern;
use antumbra_shadow::Document;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::queue::AttributeValue;

/// All topics by ARN, and all subscriptions by ARN.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Topics {
    pub(crate) topics: BTreeMap<String, Topic>,
    pub(crate) subscriptions: BTreeMap<String, Subscription>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Topic {
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Subscription {
    pub(crate) topic_arn: String,
    pub(crate) protocol: String,
    /// The ARN of a queue.
    pub(crate) endpoint: String,
    pub(crate) attributes: BTreeMap<String, String>,
}

impl Subscription {
    /// Returns `true` if the queue gets the bare message instead of an envelope.
    pub(crate) fn is_raw(&self) -> bool {
        self.attributes
            .get("RawMessageDelivery")
            .is_some_and(|raw| raw == "true")
    }

    /// Returns `true` if the filter policy accepts a message.
    pub(crate) fn accepts(
        &self,
        body: &str,
        attributes: &BTreeMap<String, AttributeValue>,
    ) -> bool {
        let policy = self.attributes.get("FilterPolicy");
        // An empty policy accepts everything.
        let Some(policy) = policy.and_then(|policy| policy.parse::<Pattern>().ok()) else {
            return true;
        };
        let scope = self.attributes.get("FilterPolicyScope");
        let message = match scope.map(String::as_str) {
            Some("MessageBody") => Document::parse(body),
            _ => Document::from_value(&attribute_object(attributes)),
        };
        message.is_ok_and(|message| policy.matches_document(&message))
    }
}

/// Message attributes as the object that a filter policy describes.
fn attribute_object(attributes: &BTreeMap<String, AttributeValue>) -> BTreeMap<&str, Value> {
    let value = |attribute: &AttributeValue| {
        let text = attribute.string_value.clone().unwrap_or_default();
        match attribute.data_type.as_str() {
            "Number" | "String.Array" => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            _ => Value::String(text),
        }
    };
    let members = attributes.iter();
    members
        .map(|(name, attribute)| (name.as_str(), value(attribute)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filter_policies_accept_and_refuse() {
        let message = json!({"state": "desired", "version": 7, "tags": ["a", "b"], "in": {"x": 1}});
        let cases = [
            (json!({"state": ["desired"]}), true),
            (json!({"state": ["reported"]}), false),
            (json!({"state": [{"prefix": "des"}]}), true),
            (
                json!({"state": [{"suffix": "red"}], "version": [7.0]}),
                true,
            ),
            (
                json!({"state": [{"anything-but": ["desired", "x"]}]}),
                false,
            ),
            (json!({"state": [{"equals-ignore-case": "DESIRED"}]}), true),
            (json!({"version": [{"numeric": [">", 5, "<=", 7]}]}), true),
            (json!({"version": [{"numeric": [">", 7]}]}), false),
            (json!({"tags": ["b"]}), true),
            (json!({"missing": [{"exists": false}]}), true),
            (json!({"state": [{"exists": false}]}), false),
            (json!({"in": {"x": [1]}}), true),
            (json!({"in": {"y": [1]}}), false),
        ];
        for (policy, expected) in cases {
            let attributes = [
                ("FilterPolicyScope", "MessageBody".to_owned()),
                ("FilterPolicy", policy.to_string()),
            ];
            let subscription = Subscription {
                attributes: attributes
                    .map(|(name, text)| (name.to_owned(), text))
                    .into(),
                ..Subscription::default()
            };
            let accepts = subscription.accepts(&message.to_string(), &BTreeMap::new());
            assert_eq!(accepts, expected, "{policy}");
        }
    }
}
