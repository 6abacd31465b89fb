//! Stream events, record by record.

use serde_json::{Map, Value, json};

/// One record; tests change its fields before it is written.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) partition: String,
    pub(crate) sort: String,
    pub(crate) sequence: u64,
    /// The item before, as plain JSON, without its keys.
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    /// `true` if the item expired.
    pub(crate) expired: bool,
}

impl Record {
    pub(crate) fn new(partition: &str, sort: &str, sequence: u64) -> Record {
        Record {
            partition: partition.to_owned(),
            sort: sort.to_owned(),
            sequence,
            old: None,
            new: None,
            expired: false,
        }
    }

    /// A reported document that becomes another.
    pub(crate) fn reported(id: &str, sequence: u64, old: Value, new: Value) -> Record {
        let image = |version: u64, document: Value| {
            Some(json!({
                "version": version,
                "timestamp": 1_731_700_000_000_000_000_u64 + version,
                "clientToken": format!("token-{version}"),
                "reported": document,
            }))
        };
        Record {
            old: image(sequence, old),
            new: image(sequence + 1, new),
            ..Record::new(&format!("DS#{id}"), "DSR#main", sequence)
        }
    }

    /// A small change of a device of this name.
    pub(crate) fn small(id: &str, sequence: u64) -> Record {
        let document = |n| json!({ "n": n });
        Record::reported(id, sequence, document(sequence), document(sequence + 1))
    }

    pub(crate) fn operation(&self) -> &'static str {
        match (&self.old, &self.new) {
            (None, _) => "INSERT",
            (Some(_), Some(_)) => "MODIFY",
            (Some(_), None) => "REMOVE",
        }
    }

    /// As the stream writes it.
    pub(crate) fn json(&self) -> Value {
        let keys = json!({ "PK": { "S": self.partition }, "SK": { "S": self.sort } });
        let image = |item: &Value| {
            let mut image = keys.clone();
            let attributes = item.as_object().unwrap();
            for (name, value) in attributes {
                image[name] = attribute(value);
            }
            image
        };
        let mut change = json!({
            "ApproximateCreationDateTime": 1_731_700_000.0,
            "Keys": keys,
            "SequenceNumber": sequence_number(self.sequence),
            "SizeBytes": 100,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        });
        for (name, item) in [("OldImage", &self.old), ("NewImage", &self.new)] {
            if let Some(item) = item {
                change[name] = image(item);
            }
        }
        let mut record = json!({
            "eventID": event_id(self.sequence),
            "eventName": self.operation(),
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "eu-west-1",
            "dynamodb": change,
            "eventSourceARN": ARN,
        });
        if self.expired {
            record["userIdentity"] =
                json!({ "type": "Service", "principalId": "dynamodb.amazonaws.com" });
        }
        record
    }
}

pub(crate) const ARN: &str =
    "arn:aws:dynamodb:eu-west-1:123456789012:table/antumbra/stream/2026-01-01T00:00:00.000";

pub(crate) fn event_id(sequence: u64) -> String {
    format!("{:032x}", u128::from(sequence) * 0x9e37_79b9_7f4a_7c15)
}

/// They have 21 digits and more on AWS, and do not fit a 64-bit number.
pub(crate) fn sequence_number(sequence: u64) -> String {
    format!("1{sequence:024}")
}

/// A plain value as DynamoDB writes it.
fn attribute(value: &Value) -> Value {
    match value {
        Value::Null => json!({ "NULL": true }),
        Value::Bool(value) => json!({ "BOOL": value }),
        Value::Number(value) => json!({ "N": value.to_string() }),
        Value::String(value) => json!({ "S": value }),
        Value::Array(values) => json!({ "L": values.iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(members) => {
            let members: Map<_, _> = members
                .iter()
                .map(|(name, value)| (name.clone(), attribute(value)))
                .collect();
            json!({ "M": members })
        }
    }
}

/// Removes images of a record.
pub(crate) fn without(record: &Record, images: &[&str]) -> Value {
    let mut record = record.json();
    let change = record["dynamodb"].as_object_mut().unwrap();
    change.retain(|name, _| !images.contains(&name.as_str()));
    record
}

/// The bytes of an event with these records.
pub(crate) fn event(records: impl IntoIterator<Item = Value>) -> Vec<u8> {
    let records: Vec<Value> = records.into_iter().collect();
    serde_json::to_vec(&json!({ "Records": records })).unwrap()
}

pub(crate) fn event_of(records: &[Record]) -> Vec<u8> {
    event(records.iter().map(Record::json))
}
