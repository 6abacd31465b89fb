//! DynamoDB Streams: reads the changes of a table outside Lambda.
//!
//! [`TableStream`] lists shards and reads their pages; [`StreamFollower`] reads all changes from now on,
//! [`StreamRecords`] reads records again that an event source gave up. [`event`] writes records as the event that Lambda passes to a function.

pub mod event;
mod follower;
mod range;

use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::ShardIteratorType;

pub use aws_sdk_dynamodbstreams::Client;
pub use aws_sdk_dynamodbstreams::types::Record;
pub use follower::StreamFollower;
pub use range::StreamRecords;

/// The stream of a table.
#[derive(Debug, Clone)]
pub struct TableStream {
    client: Client,
    arn: String,
}

/// A shard of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Shard {
    pub id: String,
    /// The shard that this one continues; it may no longer exist.
    pub parent: Option<String>,
}

/// A position in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// The oldest record.
    TrimHorizon,
    /// After the newest record.
    Latest,
    /// The record with this sequence number.
    At(String),
    /// After the record with this sequence number.
    After(String),
}

/// A page of records.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)]
pub struct Page {
    pub records: Vec<Record>,
    /// The iterator of the next page; `None` at the end of the shard.
    pub next: Option<String>,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The records at the position were dropped: they were older than a day.
    #[error("the stream has dropped the records")]
    Trimmed,
    /// The stream or the shard does not exist, or no longer.
    #[error("the stream or its shard does not exist")]
    NotFound,
    /// The iterator was not used for too long.
    #[error("the shard iterator has expired")]
    ExpiredIterator,
    /// There are too many readers.
    #[error("{0}")]
    Throttled(String),
    /// Any other failure.
    #[error("{0}")]
    Failed(String),
}

#[allow(missing_docs)]
impl TableStream {
    pub fn new(client: &Client, arn: &str) -> TableStream {
        TableStream {
            client: client.clone(),
            arn: arn.to_owned(),
        }
    }

    pub async fn shards(&self) -> Result<Vec<Shard>, StreamError> {
        let mut shards = Vec::new();
        let mut last = None;
        loop {
            let call = self.client.describe_stream().stream_arn(&self.arn);
            let response = call.set_exclusive_start_shard_id(last).send().await;
            let response = response.map_err(|error| stream_error("DescribeStream", error))?;
            let Some(stream) = response.stream_description else {
                return Ok(shards);
            };
            let page = stream.shards.unwrap_or_default().into_iter();
            shards.extend(page.filter_map(|shard| {
                Some(Shard {
                    id: shard.shard_id?,
                    parent: shard.parent_shard_id,
                })
            }));
            last = stream.last_evaluated_shard_id;
            if last.is_none() {
                return Ok(shards);
            }
        }
    }

    /// Returns an iterator at a position; `None` if the shard has ended.
    pub async fn iterator(
        &self,
        shard: &str,
        position: Position,
    ) -> Result<Option<String>, StreamError> {
        let (kind, number) = match position {
            Position::TrimHorizon => (ShardIteratorType::TrimHorizon, None),
            Position::Latest => (ShardIteratorType::Latest, None),
            Position::At(number) => (ShardIteratorType::AtSequenceNumber, Some(number)),
            Position::After(number) => (ShardIteratorType::AfterSequenceNumber, Some(number)),
        };
        let call = self.client.get_shard_iterator().stream_arn(&self.arn);
        let call = call.shard_id(shard).shard_iterator_type(kind);
        let response = call.set_sequence_number(number).send().await;
        let response = response.map_err(|error| stream_error("GetShardIterator", error))?;
        Ok(response.shard_iterator)
    }

    /// Reads the page of an iterator, with at most `limit` records.
    pub async fn page(&self, iterator: &str, limit: Option<i32>) -> Result<Page, StreamError> {
        let call = self.client.get_records().shard_iterator(iterator);
        let response = call.set_limit(limit).send().await;
        let response = response.map_err(|error| stream_error("GetRecords", error))?;
        Ok(Page {
            records: response.records.unwrap_or_default(),
            next: response.next_shard_iterator,
        })
    }
}

/// The sequence number of a record; empty if it has none.
pub fn sequence_number(record: &Record) -> &str {
    let change = record.dynamodb();
    change.and_then(|c| c.sequence_number()).unwrap_or_default()
}

fn stream_error<E: ProvideErrorMetadata>(call: &str, error: SdkError<E>) -> StreamError {
    let reason = match &error {
        SdkError::TimeoutError(_) => "no response in time",
        SdkError::DispatchFailure(_) => "no connection",
        _ => error.code().unwrap_or("the response cannot be read"),
    };
    match error.code().unwrap_or_default() {
        "TrimmedDataAccessException" => StreamError::Trimmed,
        "ResourceNotFoundException" => StreamError::NotFound,
        "ExpiredIteratorException" => StreamError::ExpiredIterator,
        code @ ("LimitExceededException" | "ThrottlingException") => {
            StreamError::Throttled(format!("{call}: {code}"))
        }
        _ => StreamError::Failed(format!("{call}: {reason}")),
    }
}
