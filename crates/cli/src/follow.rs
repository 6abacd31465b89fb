//! Following a table's stream: what changes from now on, page by page.
//!
//! Every shard is read from its newest record, and shards that come later from their oldest: nothing
//! written after the beginning is left out. Nothing is kept; whoever follows again begins anew.

use std::collections::HashSet;

use aws_config::SdkConfig;
use aws_sdk_dynamodbstreams::Client;
use aws_sdk_dynamodbstreams::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodbstreams::types::{Record, ShardIteratorType};

use crate::error::CliError;

/// A reader of one stream.
pub(crate) struct Follower {
    streams: Client,
    stream: String,
    reading: Vec<Shard>,
    /// Every shard that was read, is read, or was past when this began.
    known: HashSet<String>,
}

struct Shard {
    id: String,
    iterator: String,
    /// The newest record seen.
    last: Option<String>,
}

/// What is asked of a shard next.
enum Turn {
    Goes,
    Ended,
}

/// A shard as the stream describes it: its own name and its parent's.
type Described = (String, Option<String>);

impl Follower {
    /// Begins now: what is written after this returns will be read.
    pub(crate) async fn begin(sdk: &SdkConfig, stream: String) -> Result<Follower, CliError> {
        let mut follower = Follower {
            streams: Client::new(sdk),
            stream,
            reading: Vec::new(),
            known: HashSet::new(),
        };
        let shards = follower.describe().await?;
        let parents: HashSet<&String> = shards.iter().filter_map(|(_, of)| of.as_ref()).collect();
        for (id, _) in &shards {
            // A shard with children has ended: nothing new comes in it.
            if !parents.contains(id) {
                follower.read(id, ShardIteratorType::Latest).await?;
            }
        }
        follower.known = shards.into_iter().map(|(id, _)| id).collect();
        Ok(follower)
    }

    /// What came since the last time, in order within each shard; often nothing.
    pub(crate) async fn next(&mut self) -> Result<Vec<Record>, CliError> {
        let mut records = Vec::new();
        let before = std::mem::take(&mut self.reading);
        let count = before.len();
        for mut shard in before {
            if let Turn::Goes = self.page(&mut shard, &mut records).await? {
                self.reading.push(shard);
            }
        }
        // New shards take the place of some that ended.
        if self.reading.is_empty() || self.reading.len() < count {
            self.discover().await?;
        }
        Ok(records)
    }

    /// Begins with shards that were not there before, once their parents are read.
    async fn discover(&mut self) -> Result<(), CliError> {
        for (id, parent) in self.describe().await? {
            let waits = parent.is_some_and(|parent| {
                let mut reading = self.reading.iter();
                reading.any(|shard| shard.id == parent)
            });
            if !waits && self.known.insert(id.clone()) {
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

    /// One page of a shard.
    async fn page(&self, shard: &mut Shard, records: &mut Vec<Record>) -> Result<Turn, CliError> {
        let request = self.streams.get_records().shard_iterator(&shard.iterator);
        let page = match request.send().await {
            Ok(page) => page,
            Err(error) => return self.again(shard, error).await,
        };
        let newest = page.records().last().and_then(|record| record.dynamodb());
        if let Some(number) = newest.and_then(|change| change.sequence_number()) {
            shard.last = Some(number.to_owned());
        }
        records.extend(page.records.unwrap_or_default());
        Ok(match page.next_shard_iterator {
            Some(iterator) => {
                shard.iterator = iterator;
                Turn::Goes
            }
            None => Turn::Ended,
        })
    }

    /// After a machine has slept an iterator is too old, and after a day so are the records behind it.
    async fn again<E>(&self, shard: &mut Shard, error: SdkError<E>) -> Result<Turn, CliError>
    where
        E: ProvideErrorMetadata,
    {
        let code = error.code().unwrap_or_default();
        let from = match (code, &shard.last) {
            // Others read the shard too; a moment later it is our turn.
            ("LimitExceededException" | "ThrottlingException", _) => return Ok(Turn::Goes),
            ("ExpiredIteratorException", Some(_)) => ShardIteratorType::AfterSequenceNumber,
            ("ExpiredIteratorException", None) => ShardIteratorType::Latest,
            ("TrimmedDataAccessException", _) => ShardIteratorType::TrimHorizon,
            _ => return Err(failure("GetRecords", &error)),
        };
        let after = shard
            .last
            .clone()
            .filter(|_| from == ShardIteratorType::AfterSequenceNumber);
        Ok(match self.iterator(&shard.id, from, after).await? {
            Some(iterator) => {
                shard.iterator = iterator;
                Turn::Goes
            }
            None => Turn::Ended,
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
        let answer = request.send().await;
        let answer = answer.map_err(|error| failure("GetShardIterator", &error))?;
        Ok(answer.shard_iterator)
    }

    /// All shards, over all pages.
    async fn describe(&self) -> Result<Vec<Described>, CliError> {
        let mut shards = Vec::new();
        let mut last = None;
        loop {
            let request = self.streams.describe_stream().stream_arn(&self.stream);
            let answer = request.set_exclusive_start_shard_id(last).send().await;
            let answer = answer.map_err(|error| failure("DescribeStream", &error))?;
            let Some(stream) = answer.stream_description else {
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

fn failure<E: ProvideErrorMetadata>(call: &str, error: &SdkError<E>) -> CliError {
    let what = match error {
        SdkError::TimeoutError(_) => "no answer in time",
        SdkError::DispatchFailure(_) => "no connection",
        _ => error.code().unwrap_or("the answer cannot be read"),
    };
    CliError::unavailable(format!("{call}: {what}"))
}
