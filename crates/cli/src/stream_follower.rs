//! Follows a table's stream from now on.
//!
//! Existing shards are read from their newest record and later shards from their oldest, so that no change
//! after the start is missed. No position is stored.

use std::collections::HashSet;

use aws_config::SdkConfig;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{Record, ShardIteratorType};

use crate::error::CliError;

/// A reader of one stream.
pub(crate) struct StreamFollower {
    streams: Client,
    stream: String,
    reading: Vec<Shard>,
    /// Shards that are being read, were read, or had ended at the start.
    known: HashSet<String>,
}

struct Shard {
    id: String,
    iterator: String,
    /// Sequence number of the newest record read.
    last: Option<String>,
}

enum ShardState {
    Open,
    Ended,
}

/// Id of a shard and of its parent.
type Described = (String, Option<String>);

impl StreamFollower {
    /// Starts: every change after this returns will be read.
    pub(crate) async fn start(sdk: &SdkConfig, stream: String) -> Result<StreamFollower, CliError> {
        let mut follower = StreamFollower {
            streams: Client::new(sdk),
            stream,
            reading: Vec::new(),
            known: HashSet::new(),
        };
        let shards = follower.describe().await?;
        let parents: HashSet<&String> = shards.iter().filter_map(|(_, of)| of.as_ref()).collect();
        for (id, _) in &shards {
            // A shard with children has ended.
            if !parents.contains(id) {
                follower.read(id, ShardIteratorType::Latest).await?;
            }
        }
        follower.known = shards.into_iter().map(|(id, _)| id).collect();
        Ok(follower)
    }

    /// Returns the records since the last call, in order within each shard; often none.
    pub(crate) async fn next(&mut self) -> Result<Vec<Record>, CliError> {
        let mut records = Vec::new();
        let before = std::mem::take(&mut self.reading);
        let count = before.len();
        for mut shard in before {
            if let ShardState::Open = self.page(&mut shard, &mut records).await? {
                self.reading.push(shard);
            }
        }
        // New shards replace those that ended.
        if self.reading.is_empty() || self.reading.len() < count {
            self.discover().await?;
        }
        Ok(records)
    }

    /// Starts reading new shards whose parents have been read.
    async fn discover(&mut self) -> Result<(), CliError> {
        for (id, parent) in self.describe().await? {
            let parent_is_open = parent.is_some_and(|parent| {
                let mut reading = self.reading.iter();
                reading.any(|shard| shard.id == parent)
            });
            if !parent_is_open && self.known.insert(id.clone()) {
                self.read(&id, ShardIteratorType::TrimHorizon).await?;
            }
        }
        Ok(())
    }

    async fn read(&mut self, id: &str, from: ShardIteratorType) -> Result<(), CliError> {
        if let Some(iterator) = self.iterator(id, from, None).await? {
            self.reading.push(Shard {
                id: id.to_owned(),
                iterator,
                last: None,
            });
        }
        Ok(())
    }

    /// Reads one page of a shard.
    async fn page(
        &self,
        shard: &mut Shard,
        records: &mut Vec<Record>,
    ) -> Result<ShardState, CliError> {
        let request = self.streams.get_records().shard_iterator(&shard.iterator);
        let page = match request.send().await {
            Ok(page) => page,
            Err(error) => return self.renew_iterator(shard, error).await,
        };
        let newest = page.records().last().and_then(|record| record.dynamodb());
        if let Some(number) = newest.and_then(|change| change.sequence_number()) {
            shard.last = Some(number.to_owned());
        }
        records.extend(page.records.unwrap_or_default());
        Ok(match page.next_shard_iterator {
            Some(iterator) => {
                shard.iterator = iterator;
                ShardState::Open
            }
            None => ShardState::Ended,
        })
    }

    /// Gets a new iterator after the old one expired, or after its records were trimmed.
    async fn renew_iterator<E>(
        &self,
        shard: &mut Shard,
        error: SdkError<E>,
    ) -> Result<ShardState, CliError>
    where
        E: ProvideErrorMetadata,
    {
        let code = error.code().unwrap_or_default();
        let from = match (code, &shard.last) {
            // Other readers use the shard too; the next poll reads it.
            ("LimitExceededException" | "ThrottlingException", _) => return Ok(ShardState::Open),
            ("ExpiredIteratorException", Some(_)) => ShardIteratorType::AfterSequenceNumber,
            ("ExpiredIteratorException", None) => ShardIteratorType::Latest,
            ("TrimmedDataAccessException", _) => ShardIteratorType::TrimHorizon,
            _ => return Err(stream_error("GetRecords", &error)),
        };
        let after = shard
            .last
            .clone()
            .filter(|_| from == ShardIteratorType::AfterSequenceNumber);
        Ok(match self.iterator(&shard.id, from, after).await? {
            Some(iterator) => {
                shard.iterator = iterator;
                ShardState::Open
            }
            None => ShardState::Ended,
        })
    }

    async fn iterator(
        &self,
        shard: &str,
        from: ShardIteratorType,
        after: Option<String>,
    ) -> Result<Option<String>, CliError> {
        let request = self.streams.get_shard_iterator();
        let request = request.stream_arn(&self.stream).shard_id(shard);
        let request = request.shard_iterator_type(from).set_sequence_number(after);
        let response = request.send().await;
        let response = response.map_err(|error| stream_error("GetShardIterator", &error))?;
        Ok(response.shard_iterator)
    }

    /// Lists all shards.
    async fn describe(&self) -> Result<Vec<Described>, CliError> {
        let mut shards = Vec::new();
        let mut last = None;
        loop {
            let request = self.streams.describe_stream().stream_arn(&self.stream);
            let response = request.set_exclusive_start_shard_id(last).send().await;
            let response = response.map_err(|error| stream_error("DescribeStream", &error))?;
            let Some(stream) = response.stream_description else {
                return Ok(shards);
            };
            last = stream.last_evaluated_shard_id;
            let page = stream.shards.unwrap_or_default().into_iter();
            shards.extend(page.filter_map(|shard| Some((shard.shard_id?, shard.parent_shard_id))));
            if last.is_none() {
                return Ok(shards);
            }
        }
    }
}

fn stream_error<E: ProvideErrorMetadata>(call: &str, error: &SdkError<E>) -> CliError {
    let reason = match error {
        SdkError::TimeoutError(_) => "the call timed out",
        SdkError::DispatchFailure(_) => "cannot connect",
        _ => error.code().unwrap_or("the response could not be parsed"),
    };
    CliError::unavailable(format!("{call}: {reason}"))
}
