use aws_sdk_dynamodbstreams::primitives::{Blob, DateTime};
use aws_sdk_dynamodbstreams::types::{Identity, OperationType, StreamRecord, StreamViewType};
use serde_json::json;

use super::*;

fn record(sequence_number: &str, second: i64) -> Record {
    let text = |s: &str| AttributeValue::S(s.into());
    Record::builder()
        .event_id("e1")
        .event_name(OperationType::Modify)
        .event_version("1.1")
        .event_source("aws:dynamodb")
        .aws_region("us-east-1")
        .dynamodb(
            StreamRecord::builder()
                .approximate_creation_date_time(DateTime::from_secs(second))
                .keys("PK", text("DS#1"))
                .new_image("big", AttributeValue::N("12345678901234567890.5".into()))
                .new_image("bin", AttributeValue::B(Blob::new([0, 255])))
                .new_image("bins", AttributeValue::Bs(vec![Blob::new([1])]))
                .new_image("flag", AttributeValue::Bool(true))
                .new_image(
                    "list",
                    AttributeValue::L(vec![text("a"), AttributeValue::Null(true)]),
                )
                .new_image("map", AttributeValue::M([("k".into(), text("v"))].into()))
                .new_image("names", AttributeValue::Ss(vec!["x".into(), "y".into()]))
                .new_image("numbers", AttributeValue::Ns(vec!["1".into()]))
                .old_image("PK", text("DS#1"))
                .sequence_number(sequence_number)
                .size_bytes(42)
                .stream_view_type(StreamViewType::NewAndOldImages)
                .build(),
        )
        .build()
}

#[test]
fn events_have_the_names_of_lambda_and_exact_values() {
    let mut expired = record("102", 1_731_700_001);
    expired.user_identity = Some(
        Identity::builder()
            .r#type("Service")
            .principal_id("dynamodb.amazonaws.com")
            .build(),
    );
    let bytes = invocation("arn:stream", &[record("101", 1_731_700_000), expired]).unwrap();
    let event: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let expected = json!({
        "eventID": "e1",
        "eventName": "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_731_700_000,
            "Keys": {"PK": {"S": "DS#1"}},
            "NewImage": {
                "big": {"N": "12345678901234567890.5"},
                "bin": {"B": "AP8="},
                "bins": {"BS": ["AQ=="]},
                "flag": {"BOOL": true},
                "list": {"L": [{"S": "a"}, {"NULL": true}]},
                "map": {"M": {"k": {"S": "v"}}},
                "names": {"SS": ["x", "y"]},
                "numbers": {"NS": ["1"]},
            },
            "OldImage": {"PK": {"S": "DS#1"}},
            "SequenceNumber": "101",
            "SizeBytes": 42,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": "arn:stream",
    });
    assert_eq!(event["Records"][0], expected);
    assert_eq!(
        event["Records"][1]["userIdentity"],
        json!({"type": "Service", "principalId": "dynamodb.amazonaws.com"})
    );
}
