//! Stream records in the JSON form of Lambda events.
//!
//! Names and structure are those of AWS, including `eventSourceARN`. Numbers stay strings, as in DynamoDB's JSON, so
//! that they keep all digits.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, StreamRecord};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::ser::Error as _;
use serde_json::{Map, Result, Value, json};

/// The event that Lambda passes to a function for records of one stream: `{"Records": […]}`.
pub fn invocation(stream_arn: &str, records: &[Record]) -> Result<Vec<u8>> {
    let records = records.iter().map(|record| to_json(record, stream_arn));
    let records = records.collect::<Result<Vec<Value>>>()?;
    serde_json::to_vec(&json!({ "Records": records }))
}

/// The approximate size of a record in the event.
pub fn size(record: &Record) -> usize {
    const ENVELOPE: usize = 512;
    let images = record.dynamodb().and_then(|change| change.size_bytes());
    // DynamoDB counts bytes without the names, quotes and escapes of JSON; twice that is a safe estimate.
    ENVELOPE + 2 * usize::try_from(images.unwrap_or_default()).unwrap_or_default()
}

fn to_json(record: &Record, stream_arn: &str) -> Result<Value> {
    let mut json = json!({
        "eventID": record.event_id,
        "eventName": record.event_name.as_ref().map(|name| name.as_str()),
        "eventVersion": record.event_version,
        "eventSource": record.event_source,
        "awsRegion": record.aws_region,
        "eventSourceARN": stream_arn,
    });
    if let Some(change) = &record.dynamodb {
        json["dynamodb"] = change_json(change)?;
    }
    if let Some(identity) = &record.user_identity {
        // The only identity in a stream is that of DynamoDB. dynoxide names these fields differently, so the SDK
        // leaves them empty.
        json["userIdentity"] = json!({
            "type": identity.r#type().unwrap_or("Service"),
            "principalId": identity.principal_id().unwrap_or("dynamodb.amazonaws.com"),
        });
    }
    Ok(json)
}

fn change_json(change: &StreamRecord) -> Result<Value> {
    let mut json = json!({
        "SequenceNumber": change.sequence_number,
        "SizeBytes": change.size_bytes,
        "StreamViewType": change.stream_view_type.as_ref().map(|view| view.as_str()),
    });
    if let Some(time) = &change.approximate_creation_date_time {
        json["ApproximateCreationDateTime"] = time.secs().into();
    }
    for (name, item) in [
        ("Keys", &change.keys),
        ("NewImage", &change.new_image),
        ("OldImage", &change.old_image),
    ] {
        if let Some(item) = item {
            json[name] = item_json(item)?;
        }
    }
    Ok(json)
}

/// An item, sorted, so that the same change always has the same bytes.
fn item_json(item: &HashMap<String, AttributeValue>) -> Result<Value> {
    let sorted: BTreeMap<_, _> = item.iter().collect();
    let members = sorted.into_iter();
    let members = members.map(|(name, value)| Ok((name.clone(), attribute_json(value)?)));
    Ok(Value::Object(members.collect::<Result<Map<_, _>>>()?))
}

fn attribute_json(value: &AttributeValue) -> Result<Value> {
    Ok(match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::B(bytes) => json!({ "B": STANDARD.encode(bytes) }),
        AttributeValue::Bool(flag) => json!({ "BOOL": flag }),
        AttributeValue::Null(is_null) => json!({ "NULL": is_null }),
        AttributeValue::Ss(texts) => json!({ "SS": texts }),
        AttributeValue::Ns(numbers) => json!({ "NS": numbers }),
        AttributeValue::Bs(blobs) => {
            let blobs = blobs.iter().map(|bytes| STANDARD.encode(bytes));
            json!({ "BS": blobs.collect::<Vec<_>>() })
        }
        AttributeValue::L(values) => {
            let values = values.iter().map(attribute_json);
            json!({ "L": values.collect::<Result<Vec<_>>>()? })
        }
        AttributeValue::M(item) => json!({ "M": item_json(item)? }),
        other => {
            let text = format!("an attribute of a type that the SDK does not know: {other:?}");
            return Err(serde_json::Error::custom(text));
        }
    })
}

#[cfg(test)]
mod tests;
