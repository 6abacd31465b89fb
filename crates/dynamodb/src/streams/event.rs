//! Stream records in the JSON form of Lambda events.
//!
//! Names and structure are those of AWS, including `eventSourceARN`. Numbers stay strings, as in DynamoDB's JSON, so
//! that they keep all digits.

use std::collections::HashMap;

use aws_sdk_dynamodbstreams::types::{AttributeValue, Record};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

/// The event that Lambda passes to a function for records of one stream: `{"Records": […]}`.
pub fn invocation(stream_arn: &str, records: &[Record]) -> serde_json::Result<Vec<u8>> {
    let records: Vec<_> = records
        .iter()
        .map(|record| EventRecord { record, stream_arn })
        .collect();
    serde_json::to_vec(&Event { records })
}

/// The approximate size of a record in the event.
pub fn size(record: &Record) -> usize {
    const ENVELOPE: usize = 512;
    let images = record.dynamodb().and_then(|change| change.size_bytes());
    // DynamoDB counts bytes without the names, quotes and escapes of JSON; twice that is a safe estimate.
    ENVELOPE + 2 * usize::try_from(images.unwrap_or_default()).unwrap_or_default()
}

#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "Records")]
    records: Vec<EventRecord<'a>>,
}

struct EventRecord<'a> {
    record: &'a Record,
    stream_arn: &'a str,
}

impl Serialize for EventRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = self.record;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("eventID", &record.event_id)?;
        let name = record.event_name.as_ref().map(|name| name.as_str());
        map.serialize_entry("eventName", &name)?;
        map.serialize_entry("eventVersion", &record.event_version)?;
        map.serialize_entry("eventSource", &record.event_source)?;
        map.serialize_entry("awsRegion", &record.aws_region)?;
        if let Some(change) = &record.dynamodb {
            map.serialize_entry("dynamodb", &Change(change))?;
        }
        if let Some(identity) = &record.user_identity {
            // The only identity in a stream is that of DynamoDB. dynoxide names these fields differently, so the SDK
            // leaves them empty.
            let identity = UserIdentity {
                kind: identity.r#type().unwrap_or("Service"),
                principal_id: identity.principal_id().unwrap_or("dynamodb.amazonaws.com"),
            };
            map.serialize_entry("userIdentity", &identity)?;
        }
        map.serialize_entry("eventSourceARN", self.stream_arn)?;
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserIdentity<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    principal_id: &'a str,
}

struct Change<'a>(&'a aws_sdk_dynamodbstreams::types::StreamRecord);

impl Serialize for Change<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let change = self.0;
        let mut map = serializer.serialize_map(None)?;
        if let Some(time) = &change.approximate_creation_date_time {
            map.serialize_entry("ApproximateCreationDateTime", &time.secs())?;
        }
        for (name, item) in [
            ("Keys", &change.keys),
            ("NewImage", &change.new_image),
            ("OldImage", &change.old_image),
        ] {
            if let Some(item) = item {
                map.serialize_entry(name, &Item(item))?;
            }
        }
        map.serialize_entry("SequenceNumber", &change.sequence_number)?;
        map.serialize_entry("SizeBytes", &change.size_bytes)?;
        let view = change.stream_view_type.as_ref().map(|view| view.as_str());
        map.serialize_entry("StreamViewType", &view)?;
        map.end()
    }
}

struct Item<'a>(&'a HashMap<String, AttributeValue>);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Sorted, so that the same change always has the same bytes.
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_unstable_by_key(|(name, _)| *name);
        serializer.collect_map(
            entries
                .into_iter()
                .map(|(name, value)| (name, Value(value))),
        )
    }
}

struct Value<'a>(&'a AttributeValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.0 {
            AttributeValue::S(text) => map.serialize_entry("S", text)?,
            AttributeValue::N(number) => map.serialize_entry("N", number)?,
            AttributeValue::B(bytes) => map.serialize_entry("B", &STANDARD.encode(bytes))?,
            AttributeValue::Bool(flag) => map.serialize_entry("BOOL", flag)?,
            AttributeValue::Null(null) => map.serialize_entry("NULL", null)?,
            AttributeValue::Ss(texts) => map.serialize_entry("SS", texts)?,
            AttributeValue::Ns(numbers) => map.serialize_entry("NS", numbers)?,
            AttributeValue::Bs(blobs) => {
                let blobs: Vec<_> = blobs.iter().map(|bytes| STANDARD.encode(bytes)).collect();
                map.serialize_entry("BS", &blobs)?;
            }
            AttributeValue::L(values) => map.serialize_entry("L", &List(values))?,
            AttributeValue::M(item) => map.serialize_entry("M", &Item(item))?,
            other => {
                let text = format!("an attribute of a type that the SDK does not know: {other:?}");
                return Err(serde::ser::Error::custom(text));
            }
        }
        map.end()
    }
}

struct List<'a>(&'a [AttributeValue]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for value in self.0 {
            list.serialize_element(&Value(value))?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests;
