//! Reads records again that an event source gave up.
//!
//! The failure message of an event source has a shard and two positions in it. The stream keeps the records for a day.

use serde::Deserialize;

use super::{Client, Position, Record, StreamError, TableStream, event, sequence_number};

/// Records per event, as in the template.
const BATCH_RECORDS: usize = 100;
/// Maximum consecutive pages without a record.
const MAX_EMPTY_PAGES: usize = 20;

/// A range of records of a shard, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct RecordRange {
    pub stream_arn: String,
    pub shard_id: String,
    pub start_sequence_number: String,
    pub end_sequence_number: String,
    /// The number of records.
    #[serde(default)]
    pub batch_size: usize,
}

/// The reason why records cannot be read again.
#[derive(Debug, thiserror::Error)]
pub enum RangeError {
    /// The records cannot be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A record has no JSON form.
    #[error("cannot write a record as JSON: {0}")]
    Record(#[from] serde_json::Error),
}

impl RecordRange {
    /// Parses the failure message of an event source; `None` if it is not one of a stream.
    pub fn parse(text: &str) -> Option<RecordRange> {
        #[derive(Deserialize)]
        struct FailureMessage {
            #[serde(rename = "DDBStreamBatchInfo")]
            records: RecordRange,
        }
        let message: FailureMessage = serde_json::from_str(text).ok()?;
        Some(message.records)
    }

    /// Reads the records as events for a function, in order.
    pub async fn events(&self, client: &Client) -> Result<Vec<Vec<u8>>, RangeError> {
        let records = self.records(client).await?;
        let batches = records.chunks(BATCH_RECORDS);
        let events = batches.map(|batch| event::invocation(&self.stream_arn, batch));
        Ok(events.collect::<Result<_, _>>()?)
    }

    async fn records(&self, client: &Client) -> Result<Vec<Record>, StreamError> {
        let stream = TableStream::new(client, &self.stream_arn);
        let start = Position::At(self.start_sequence_number.clone());
        let mut iterator = match stream.iterator(&self.shard_id, start).await {
            // A shard is dropped with its last record.
            Err(StreamError::NotFound) => return Err(StreamError::Trimmed),
            iterator => iterator?,
        };
        let (mut records, mut empty) = (Vec::new(), 0);
        while let Some(at) = iterator {
            let page = stream.page(&at, None).await?;
            empty = if page.records.is_empty() {
                empty + 1
            } else {
                0
            };
            for record in page.records {
                if is_after(sequence_number(&record), &self.end_sequence_number) {
                    return self.complete(records);
                }
                records.push(record);
            }
            let done = records
                .last()
                .is_some_and(|last| sequence_number(last) == self.end_sequence_number);
            if done || empty >= MAX_EMPTY_PAGES {
                break;
            }
            iterator = page.next;
        }
        self.complete(records)
    }

    /// Checks that both ends are present: a part must not pass for the whole.
    fn complete(&self, records: Vec<Record>) -> Result<Vec<Record>, StreamError> {
        let ends = [records.first(), records.last()].map(|record| record.map(sequence_number));
        let expected = [&self.start_sequence_number, &self.end_sequence_number];
        match ends == expected.map(|number| Some(number.as_str())) {
            true => Ok(records),
            false => Err(StreamError::Trimmed),
        }
    }
}

/// Compares sequence numbers, which are digits of any length.
fn is_after(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|digits| digits.trim_start_matches('0'));
    (one.len(), one) > (other.len(), other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_are_compared_as_numbers() {
        assert!(is_after("100", "99"));
        assert!(is_after("000101", "100"));
        assert!(!is_after("99", "100"));
        assert!(!is_after("100", "0100"));
    }

    #[test]
    fn only_failures_of_stream_sources_are_parsed() {
        let message = r#"{"version":"1.0","DDBStreamBatchInfo":{"shardId":"s","startSequenceNumber":"1",
            "endSequenceNumber":"2","batchSize":2,"streamArn":"arn"}}"#;
        let range = RecordRange::parse(message).unwrap();
        assert_eq!((range.shard_id.as_str(), range.batch_size), ("s", 2));
        assert_eq!(RecordRange::parse(r#"{"requestPayload":{}}"#), None);
        assert_eq!(RecordRange::parse("no"), None);
    }
}
