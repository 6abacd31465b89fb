use serde_json::json;

use super::*;

fn record(sequence_number: &str, created_seconds: i64) -> Record {
    Record {
        sequence_number: sequence_number.to_owned(),
        created_seconds,
        ..Record::default()
    }
}

fn given_up(reason: GivenUp, calls: u32, function_error: bool) -> serde_json::Value {
    let text = failure(&Failure {
        request_id: "r1",
        function_arn: "arn:function",
        reason,
        calls,
        function_error,
        timestamp: "2024-11-15T20:00:00.1234567Z".parse().unwrap(),
        stream_arn: "arn:stream",
        shard_id: "shardId-1",
        records: &[record("101", 1_731_700_000), record("105", 1_731_700_007)],
    });
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_failure_says_where_the_records_are() {
    assert_eq!(
        given_up(GivenUp::RetryAttemptsExhausted, 3, true),
        json!({
            "requestContext": {
                "requestId": "r1",
                "functionArn": "arn:function",
                "condition": "RetryAttemptsExhausted",
                "approximateInvokeCount": 3,
            },
            "responseContext": {
                "statusCode": 200,
                "executedVersion": "$LATEST",
                "functionError": "Unhandled",
            },
            "version": "1.0",
            "timestamp": "2024-11-15T20:00:00.123Z",
            "DDBStreamBatchInfo": {
                "shardId": "shardId-1",
                "startSequenceNumber": "101",
                "endSequenceNumber": "105",
                "approximateArrivalOfFirstRecord": "2024-11-15T19:46:40Z",
                "approximateArrivalOfLastRecord": "2024-11-15T19:46:47Z",
                "batchSize": 2,
                "streamArn": "arn:stream",
            },
        })
    );
}

#[test]
fn the_failure_record_distinguishes_partial_failures_and_function_errors() {
    let partial = given_up(GivenUp::RetryAttemptsExhausted, 1, false);
    assert_eq!(partial["responseContext"].get("functionError"), None);
    let never_called = given_up(GivenUp::RecordAgeExceeded, 0, false);
    assert_eq!(never_called.get("responseContext"), None);
    assert_eq!(
        never_called["requestContext"]["condition"],
        "RecordAgeExceeded"
    );
}
