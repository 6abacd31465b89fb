//! A message for a topic, and the forms in which queues receive it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::form::Form;
use crate::error::ApiError;
use crate::queue::{AttributeValue, NewMessage};
use crate::service::now_ms;

const MAX_MESSAGE_BYTES: usize = 256 * 1024;

pub(super) struct Publication {
    pub(super) message: String,
    pub(super) subject: Option<String>,
    pub(super) attributes: BTreeMap<String, AttributeValue>,
    pub(super) group: Option<String>,
    pub(super) deduplication_id: Option<String>,
}

impl Publication {
    pub(super) fn read(form: &Form, prefix: &str) -> Result<Publication, ApiError> {
        let of = |name: &str| form.get(&format!("{prefix}{name}")).map(str::to_owned);
        let mut attributes = BTreeMap::new();
        for n in 1.. {
            let entry = format!("MessageAttributes.entry.{n}.");
            let Some(name) = of(&format!("{entry}Name")) else {
                break;
            };
            let value = AttributeValue {
                data_type: of(&format!("{entry}Value.DataType")).unwrap_or_default(),
                string_value: of(&format!("{entry}Value.StringValue")),
                binary_value: of(&format!("{entry}Value.BinaryValue")),
            };
            attributes.insert(name, value);
        }
        let message = of("Message").unwrap_or_default();
        if message.is_empty() {
            return Err(ApiError::parameter("Empty message"));
        }
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(ApiError::parameter("Message too long"));
        }
        Ok(Publication {
            message,
            subject: of("Subject"),
            attributes,
            group: of("MessageGroupId"),
            deduplication_id: of("MessageDeduplicationId"),
        })
    }

    /// The bare message with its attributes. Queues know no arrays; they arrive as strings.
    pub(super) fn raw(&self) -> NewMessage {
        let mut attributes = self.attributes.clone();
        for value in attributes
            .values_mut()
            .filter(|value| value.data_type == "String.Array")
        {
            "String".clone_into(&mut value.data_type);
        }
        NewMessage {
            body: self.message.clone(),
            attributes,
            ..NewMessage::default()
        }
    }

    /// The message inside the JSON envelope of SNS.
    pub(super) fn in_envelope(&self, id: &str, topic_arn: &str) -> NewMessage {
        let attribute = |(name, value): (&String, &AttributeValue)| {
            let text = value.string_value.as_ref().or(value.binary_value.as_ref());
            (
                name.clone(),
                json!({ "Type": value.data_type, "Value": text }),
            )
        };
        let mut envelope = json!({
            "Type": "Notification",
            "MessageId": id,
            "TopicArn": topic_arn,
            "Message": self.message,
            "Timestamp": timestamp(now_ms()),
            "SignatureVersion": "1",
            "Signature": "EXAMPLE",
            "SigningCertURL": "EXAMPLE",
            "UnsubscribeURL": "EXAMPLE",
        });
        if let Some(subject) = &self.subject {
            envelope["Subject"] = subject.clone().into();
        }
        if !self.attributes.is_empty() {
            envelope["MessageAttributes"] =
                Value::Object(self.attributes.iter().map(attribute).collect());
        }
        NewMessage {
            body: envelope.to_string(),
            ..NewMessage::default()
        }
    }

    /// The deduplication id of a FIFO queue: the publisher's, or the content's.
    pub(super) fn deduplication_key(&self, id: &str) -> String {
        use sha2::Digest as _;
        match (&self.deduplication_id, &self.group) {
            (Some(id), _) => id.clone(),
            (None, Some(_)) => {
                let hash = sha2::Sha256::digest(self.message.as_bytes());
                hash.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            (None, None) => id.to_owned(),
        }
    }
}

/// RFC 3339 with milliseconds, from Unix milliseconds.
fn timestamp(ms: u64) -> String {
    let time = jiff::Timestamp::from_millisecond(ms as i64).unwrap_or_default();
    time.strftime("%FT%T.%3fZ").to_string()
}
