//! The message of a stream's event source to its failure destination. Pure.

use antumbra_database::Record;

use super::plan::GivenUp;

pub(crate) struct Failure<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) function_arn: &'a str,
    pub(crate) reason: GivenUp,
    pub(crate) calls: u32,
    /// The last invocation ended with a function error rather than a response.
    pub(crate) function_error: bool,
    pub(crate) timestamp: jiff::Timestamp,
    pub(crate) stream_arn: &'a str,
    pub(crate) shard_id: &'a str,
    pub(crate) records: &'a [Record],
}

/// The message for the failure destination: the position of the records, not their content.
pub(crate) fn failure(failure: &Failure<'_>) -> String {
    let (first, last) = (failure.records.first(), failure.records.last());
    let arrival = |record: Option<&Record>| record.map(|record| rfc3339(record.created_seconds));
    let number = |record: Option<&Record>| record.map(|record| record.sequence_number.clone());
    let condition = match failure.reason {
        GivenUp::RetryAttemptsExhausted => "RetryAttemptsExhausted",
        GivenUp::RecordAgeExceeded => "RecordAgeExceeded",
    };
    let mut message = serde_json::json!({
        "requestContext": {
            "requestId": failure.request_id,
            "functionArn": failure.function_arn,
            "condition": condition,
            "approximateInvokeCount": failure.calls,
        },
        "version": "1.0",
        "timestamp": failure.timestamp.round(jiff::Unit::Millisecond).unwrap_or(failure.timestamp).to_string(),
        "DDBStreamBatchInfo": {
            "shardId": failure.shard_id,
            "startSequenceNumber": number(first),
            "endSequenceNumber": number(last),
            "approximateArrivalOfFirstRecord": arrival(first),
            "approximateArrivalOfLastRecord": arrival(last),
            "batchSize": failure.records.len(),
            "streamArn": failure.stream_arn,
        },
    });
    if failure.calls > 0 {
        let mut response = serde_json::json!({"statusCode": 200, "executedVersion": "$LATEST"});
        if failure.function_error {
            response["functionError"] = "Unhandled".into();
        }
        message["responseContext"] = response;
    }
    message.to_string()
}

fn rfc3339(seconds: i64) -> String {
    let seconds = jiff::Timestamp::from_second(seconds);
    seconds.map(|t| t.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
