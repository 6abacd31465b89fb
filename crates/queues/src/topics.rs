//! Topics and their subscriptions, as data.

use std::collections::BTreeMap;

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

#[derive(Debug, Clone, Serialize, Deserialize)]
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
        let Some(policy) = policy.and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            return true;
        };
        let scope = self.attributes.get("FilterPolicyScope");
        match scope.map(String::as_str) {
            Some("MessageBody") => {
                serde_json::from_str(body).is_ok_and(|body| matches(&policy, &body))
            }
            _ => matches(&policy, &attribute_object(attributes)),
        }
    }
}

/// Message attributes as the object that a filter policy describes.
fn attribute_object(attributes: &BTreeMap<String, AttributeValue>) -> Value {
    let value = |attribute: &AttributeValue| {
        let text = attribute.string_value.clone().unwrap_or_default();
        match attribute.data_type.as_str() {
            "Number" | "String.Array" => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            _ => Value::String(text),
        }
    };
    let members = attributes
        .iter()
        .map(|(name, attribute)| (name.clone(), value(attribute)));
    Value::Object(members.collect())
}

/// Returns `true` if every member of the policy matches.
fn matches(policy: &Value, message: &Value) -> bool {
    let Value::Object(members) = policy else {
        return false;
    };
    members.iter().all(|(name, wanted)| {
        let found = message.get(name);
        match wanted {
            Value::Array(conditions) => conditions.iter().any(|condition| meets(condition, found)),
            nested => found.is_some_and(|found| matches(nested, found)),
        }
    })
}

fn meets(condition: &Value, found: Option<&Value>) -> bool {
    if let Some(exists) = condition.get("exists").and_then(Value::as_bool) {
        return exists == found.is_some();
    }
    match found {
        None => false,
        Some(Value::Array(values)) => values.iter().any(|value| meets_value(condition, value)),
        Some(value) => meets_value(condition, value),
    }
}

fn meets_value(condition: &Value, value: &Value) -> bool {
    let Value::Object(operator) = condition else {
        return condition == value
            || matches!((condition.as_f64(), value.as_f64()), (Some(a), Some(b)) if a == b);
    };
    let Some((operator, operand)) = operator.iter().next() else {
        return false;
    };
    let texts = || Some((value.as_str()?, operand.as_str()?));
    match operator.as_str() {
        "prefix" => texts().is_some_and(|(value, prefix)| value.starts_with(prefix)),
        "suffix" => texts().is_some_and(|(value, suffix)| value.ends_with(suffix)),
        "equals-ignore-case" => {
            texts().is_some_and(|(value, text)| value.eq_ignore_ascii_case(text))
        }
        "anything-but" => match operand {
            Value::Array(values) => !values.iter().any(|operand| meets_value(operand, value)),
            operand => !meets_value(operand, value),
        },
        "numeric" => value.as_f64().is_some_and(|value| in_range(operand, value)),
        _ => false,
    }
}

/// Returns `true` if a number meets pairs of comparison and bound, such as `[">=", 0, "<", 10]`.
fn in_range(bounds: &Value, value: f64) -> bool {
    let bounds = bounds.as_array().map(Vec::as_slice).unwrap_or_default();
    bounds.chunks(2).all(|pair| {
        let [comparison, bound] = pair else {
            return false;
        };
        let Some(bound) = bound.as_f64() else {
            return false;
        };
        match comparison.as_str() {
            Some("=") => value == bound,
            Some("<") => value < bound,
            Some("<=") => value <= bound,
            Some(">") => value > bound,
            Some(">=") => value >= bound,
            _ => false,
        }
    })
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
            assert_eq!(matches(&policy, &message), expected, "{policy}");
        }
    }
}
