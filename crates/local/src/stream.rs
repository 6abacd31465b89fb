//! The event source of a table's stream: reads its shards and invokes a function, like Lambda's event source
//! mapping.
//!
//! One task reads each shard in order. Its position moves only past records that the function processed or that were
//! sent to the failure destination: delivery is at least once, also over restarts. `plan` decides what follows from
//! a response; this module executes it and never looks into a record.

mod checkpoint;
mod event;
mod plan;
mod reader;
mod shards;

use std::{collections::HashMap, sync::Arc, time::Duration};

use antumbra_dynamodb::streams::TableStream;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::function::Function;
use crate::task::Running;
use crate::unkind::Unkind;

pub use checkpoint::{CheckpointError, Checkpoints, Position};
pub use plan::RetryPolicy;

/// Interval of looking for new shards.
const DISCOVERY: Duration = Duration::from_secs(10);

/// Start of a function without a position in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The oldest record.
    TrimHorizon,
    /// After the newest record.
    Latest,
}

/// A stream and the settings of its event source mapping.
#[derive(Clone, Debug)]
pub struct Source {
    pub stream_arn: String,
    /// Start of a function without a position.
    pub start: Start,
    /// Maximum records of one invocation; a page of the stream has 1000.
    pub batch_size: usize,
    /// Concurrent invocations per shard; records of one item stay in order.
    pub parallelization: usize,
    pub unkind: Unkind,
    pub retry: RetryPolicy,
    /// URL of the queue that receives the metadata of discarded batches.
    pub on_failure: Option<String>,
    /// Pause after an empty read.
    pub poll: Duration,
}

impl Source {
    /// A stream read from its beginning in batches of 100.
    pub fn new(stream_arn: impl Into<String>) -> Self {
        Self {
            stream_arn: stream_arn.into(),
            start: Start::TrimHorizon,
            batch_size: 100,
            parallelization: 1,
            unkind: Unkind::default(),
            retry: RetryPolicy::default(),
            on_failure: None,
            // Lambda polls a shard as often.
            poll: Duration::from_millis(250),
        }
    }
}

/// Starts reading; positions are stored under the function's name.
pub fn start(
    streams: aws_sdk_dynamodbstreams::Client,
    queues: aws_sdk_sqs::Client,
    source: Source,
    function: Function,
    checkpoints: Checkpoints,
) -> Running {
    Running::start(|stop| {
        let pump = Arc::new(Pump {
            stream: TableStream::new(&streams, &source.stream_arn),
            queues,
            source,
            function,
            checkpoints,
            stop,
        });
        pump.run()
    })
}

struct Pump {
    stream: TableStream,
    queues: aws_sdk_sqs::Client,
    source: Source,
    function: Function,
    checkpoints: Checkpoints,
    stop: CancellationToken,
}

impl Pump {
    async fn run(self: Arc<Self>) {
        let mut readers = JoinSet::new();
        let mut reading: HashMap<Id, String> = HashMap::new();
        while !self.stop.is_cancelled() {
            let shards = self.stream.shards().await.unwrap_or_else(|error| {
                let stream = &self.source.stream_arn;
                tracing::warn!(stream, %error, "cannot list the shards of the stream");
                Vec::new()
            });
            let finished = |shard: &str| self.position(shard) == Some(Position::Finished);
            let busy = |shard: &str| reading.values().any(|id| id == shard);
            let ready: Vec<_> = shards::ready(&shards, finished, busy)
                .into_iter()
                .map(str::to_owned)
                .collect();
            for shard in ready {
                let reader = reader::Reader::new(Arc::clone(&self), shard.clone());
                reading.insert(readers.spawn(reader.run()).id(), shard);
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(DISCOVERY) => {}
                Some(ended) = readers.join_next_with_id() => {
                    reading.remove(&match ended {
                        Ok((task, ())) => task,
                        Err(error) => error.id(),
                    });
                }
            }
        }
        while readers.join_next().await.is_some() {}
    }

    fn position(&self, shard: &str) -> Option<Position> {
        let stream = &self.source.stream_arn;
        self.checkpoints
            .position(self.function.name(), stream, shard)
    }

    fn advance(&self, shard: &str, position: Position) {
        let stream = &self.source.stream_arn;
        let kept = self
            .checkpoints
            .advance(self.function.name(), stream, shard, position);
        // Reading continues: a position that is not stored costs duplicates after the next start, stopping would
        // cost records.
        if let Err(error) = kept {
            tracing::error!(
                shard,
                error = &error as &dyn std::error::Error,
                "position not kept"
            );
        }
    }

    /// Waits, and returns whether to continue.
    async fn pause(&self, duration: Duration) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(duration) => true,
        }
    }
}
