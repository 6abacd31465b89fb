//! Records that an event source gave up, read again from their stream.
//!
//! What a failure destination is told names a shard and two positions in it, for as long as the stream
//! keeps the records: a day.

use aws_sdk_dynamodbstreams::{
    Client,
    error::DisplayErrorContext,
    operation::{get_records::GetRecordsError, get_shard_iterator::GetShardIteratorError},
    types::{Record, ShardIteratorType},
};
use serde::Deserialize;

use super::event;

/// Records of one event, as the mapping in the template has it.
const BATCH: usize = 100;
/// Pages without a record that are read before the rest is taken to be gone.
const EMPTY_PAGES: usize = 20;

/// Records of a shard, from the first to the last of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The stream.
    pub stream_arn: String,
    /// The shard.
    pub shard_id: String,
    /// The first record.
    pub start_sequence_number: String,
    /// The last record.
    pub end_sequence_number: String,
    /// How many there were.
    #[serde(default)]
    pub batch_size: usize,
}

/// Why records cannot be read again.
#[derive(Debug, thiserror::Error)]
pub enum RangeError {
    /// They are older than a day.
    #[error("the stream has dropped the records")]
    Dropped,
    /// The stream does not answer, or says no.
    #[error("{0}")]
    Stream(String),
    /// A record has no JSON form.
    #[error("a record cannot be written: {0}")]
    Record(#[from] serde_json::Error),
}

impl Range {
    /// Reads what a failure destination was told; `None` if it does not tell of a stream.
    pub fn read(text: &str) -> Option<Range> {
        #[derive(Deserialize)]
        struct Told {
            #[serde(rename = "DDBStreamBatchInfo")]
            records: Range,
        }
        let told: Told = serde_json::from_str(text).ok()?;
        Some(told.records)
    }

    /// The events that a function would be called with for these records, in order.
    pub async fn events(&self, client: &Client) -> Result<Vec<Vec<u8>>, RangeError> {
        let records = self.records(client).await?;
        let batches = records.chunks(BATCH);
        let events = batches.map(|batch| event::invocation(&self.stream_arn, batch));
        Ok(events.collect::<Result<_, _>>()?)
    }

    async fn records(&self, client: &Client) -> Result<Vec<Record>, RangeError> {
        let first = client
            .get_shard_iterator()
            .stream_arn(&self.stream_arn)
            .shard_id(&self.shard_id)
            .shard_iterator_type(ShardIteratorType::AtSequenceNumber)
            .sequence_number(&self.start_sequence_number)
            .send()
            .await
            .map_err(|error| {
                let trimmed = error.as_service_error().is_some_and(|error| {
                    GetShardIteratorError::is_trimmed_data_access_exception(error)
                        || GetShardIteratorError::is_resource_not_found_exception(error)
                });
                gone(trimmed, &error)
            })?;
        let (mut iterator, mut records, mut empty) = (first.shard_iterator, Vec::new(), 0);
        while let Some(at) = iterator {
            let page = client.get_records().shard_iterator(at).send().await;
            let page = page.map_err(|error| {
                let trimmed = error
                    .as_service_error()
                    .is_some_and(GetRecordsError::is_trimmed_data_access_exception);
                gone(trimmed, &error)
            })?;
            let found = page.records.unwrap_or_default();
            empty = if found.is_empty() { empty + 1 } else { 0 };
            for record in found {
                if is_after(number(&record), &self.end_sequence_number) {
                    return self.all(records);
                }
                records.push(record);
            }
            let done = records
                .last()
                .is_some_and(|last| number(last) == self.end_sequence_number);
            if done || empty >= EMPTY_PAGES {
                break;
            }
            iterator = page.next_shard_iterator;
        }
        self.all(records)
    }

    /// All of them, or nothing: a part would pass for the whole.
    fn all(&self, records: Vec<Record>) -> Result<Vec<Record>, RangeError> {
        let ends = [records.first(), records.last()].map(|record| record.map(number));
        let wanted = [&self.start_sequence_number, &self.end_sequence_number];
        match ends == wanted.map(|number| Some(number.as_str())) {
            true => Ok(records),
            false => Err(RangeError::Dropped),
        }
    }
}

fn gone(trimmed: bool, error: &dyn std::error::Error) -> RangeError {
    match trimmed {
        true => RangeError::Dropped,
        false => RangeError::Stream(DisplayErrorContext(error).to_string()),
    }
}

fn number(record: &Record) -> &str {
    let change = record.dynamodb();
    change.and_then(|c| c.sequence_number()).unwrap_or_default()
}

/// Whether one sequence number comes after another: they are digits of any length.
fn is_after(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|digits| digits.trim_start_matches('0'));
    (one.len(), one) > (other.len(), other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(is_after("100", "99"));
        assert!(is_after("000101", "100"));
        assert!(!is_after("99", "100"));
        assert!(!is_after("100", "0100"));
    }

    #[test]
    fn only_stream_failure_records_are_read() {
        let told = r#"{"version":"1.0","DDBStreamBatchInfo":{"shardId":"s","startSequenceNumber":"1",
            "endSequenceNumber":"2","batchSize":2,"streamArn":"arn"}}"#;
        let range = Range::read(told).unwrap();
        assert_eq!((range.shard_id.as_str(), range.batch_size), ("s", 2));
        assert_eq!(Range::read(r#"{"requestPayload":{}}"#), None);
        assert_eq!(Range::read("no"), None);
    }
}
