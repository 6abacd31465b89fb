//! Which subscriptions want the bare message rather than SNS's envelope.
//!
//! The embedded SNS delivers raw, but then refuses every message that has
//! attributes, and all of ours have. So it is told that a subscription is not
//! raw, we remember that it is, and take the envelope off on the way to the
//! queue, which turns its attributes into the queue's own as AWS does. Binary
//! attributes are empty by then: the envelope does not carry them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use rustack_sqs_model::types::MessageAttributeValue;
use serde::Deserialize;

/// Pairs of topic and queue; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct RawSubscriptions(Arc<Mutex<HashSet<(String, String)>>>);

impl RawSubscriptions {
    pub(super) fn set(&self, topic_arn: &str, queue_arn: &str, raw: bool) {
        let mut pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (topic_arn.to_owned(), queue_arn.to_owned());
        if raw {
            pairs.insert(pair);
        } else {
            pairs.remove(&pair);
        }
    }

    pub(super) fn contains(&self, topic_arn: &str, queue_arn: &str) -> bool {
        let pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.contains(&(topic_arn.to_owned(), queue_arn.to_owned()))
    }

    /// What the queue gets for an envelope: itself, or what is in it.
    pub(super) fn open(&self, queue_arn: &str, envelope: &str) -> Delivery {
        match serde_json::from_str::<Envelope>(envelope) {
            Ok(opened) if self.contains(&opened.topic_arn, queue_arn) => Delivery {
                body: opened.message,
                attributes: opened
                    .message_attributes
                    .into_iter()
                    .map(attribute)
                    .collect(),
            },
            _ => Delivery {
                body: envelope.to_owned(),
                attributes: HashMap::new(),
            },
        }
    }
}

/// A message for a queue.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) body: String,
    pub(super) attributes: HashMap<String, MessageAttributeValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope {
    topic_arn: String,
    message: String,
    #[serde(default)]
    message_attributes: HashMap<String, EnvelopeAttribute>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EnvelopeAttribute {
    r#type: String,
    value: String,
}

fn attribute((name, of): (String, EnvelopeAttribute)) -> (String, MessageAttributeValue) {
    // A queue knows no arrays; AWS hands them on as strings.
    let data_type = match of.r#type.as_str() {
        "String.Array" => "String".to_owned(),
        _ => of.r#type,
    };
    let value = MessageAttributeValue {
        data_type,
        string_value: Some(of.value),
        binary_value: None,
    };
    (name, value)
}
