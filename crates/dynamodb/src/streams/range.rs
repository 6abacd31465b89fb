//! Reads records again that an event source gave up.
//!
//! The failure message of an event source has a shard and two positions in it. The stream keeps the records for a day.

use std::sync::OnceLock;

use antumbra_service::redrive::{RecordRange, RecordSource};
use async_trait::async_trait;
use aws_types::SdkConfig;

use super::{Client, Position, Record, StreamError, TableStream, event, sequence_number};

/// Records per event, as in the template.
const BATCH_RECORDS: usize = 100;
/// Maximum consecutive pages without a record.
const MAX_EMPTY_PAGES: usize = 20;

/// Reads records again from all streams of an account.
#[derive(Debug, Clone)]
pub struct StreamRecords {
    sdk: SdkConfig,
    client: OnceLock<Client>,
}

impl StreamRecords {
    /// Reads with the credentials, region and limits of an SDK configuration. The first read creates the client.
    pub fn connect(sdk: &SdkConfig) -> StreamRecords {
        StreamRecords {
            sdk: sdk.clone(),
            client: OnceLock::new(),
        }
    }
}

#[async_trait]
impl RecordSource for StreamRecords {
    async fn events(&self, range: &RecordRange) -> Result<Vec<Vec<u8>>, String> {
        let client = self.client.get_or_init(|| Client::new(&self.sdk));
        let records = records(range, client).await;
        let records = records.map_err(|error| error.to_string())?;
        let events = records.chunks(BATCH_RECORDS).map(|batch| {
            let event = event::invocation(&range.stream_arn, batch);
            event.map_err(|error| format!("cannot write a record as JSON: {error}"))
        });
        events.collect()
    }
}

async fn records(range: &RecordRange, client: &Client) -> Result<Vec<Record>, StreamError> {
    let stream = TableStream::new(client, &range.stream_arn);
    let start = Position::At(range.start_sequence_number.clone());
    let mut iterator = match stream.iterator(&range.shard_id, start).await {
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
            if is_after(sequence_number(&record), &range.end_sequence_number) {
                return complete(range, records);
            }
            records.push(record);
        }
        let done = records
            .last()
            .is_some_and(|last| sequence_number(last) == range.end_sequence_number);
        if done || empty >= MAX_EMPTY_PAGES {
            break;
        }
        iterator = page.next;
    }
    complete(range, records)
}

/// Checks that both ends are present: a part must not pass for the whole.
fn complete(range: &RecordRange, records: Vec<Record>) -> Result<Vec<Record>, StreamError> {
    let ends = [records.first(), records.last()].map(|record| record.map(sequence_number));
    let expected = [&range.start_sequence_number, &range.end_sequence_number];
    match ends == expected.map(|number| Some(number.as_str())) {
        true => Ok(records),
        false => Err(StreamError::Trimmed),
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
}
