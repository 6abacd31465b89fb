//! The event source of a table's stream: reads its shards and invokes a function, like Lambda's event source
//! mapping.
//!
//! One task reads each shard in order. Its position moves only past records that the function processed or that were
//! sent to the failure destination: delivery is at least once, also over restarts. `plan` decides the next step after
//! each response, `reader` executes it, `shards` selects the shards to read.

mod checkpoint;
mod event;
mod plan;
mod reader;
mod shards;

use std::{collections::HashMap, sync::Arc, time::Duration};

use antumbra_database::StreamReader;
use antumbra_dynamodb::streams::TableStream;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::dynamodb::Written;
use crate::function::Function;
use crate::task::Running;
use crate::unkind::Unkind;

pub use checkpoint::{CheckpointError, Checkpoints, Position};
pub use plan::RetryPolicy;

/// Pause between two listings of the shards.
const DISCOVERY: Duration = Duration::from_secs(10);

/// Position at which a function starts to read a shard without a stored position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The oldest record.
    TrimHorizon,
    /// After the newest record.
    Latest,
}

#[derive(Clone, Debug)]
pub struct Source {
    pub stream_arn: String,
    /// Used for shards without a stored position.
    pub start: Start,
    /// Maximum number of records of one invocation. One read of the stream returns up to 1000.
    pub batch_size: usize,
    /// Concurrent invocations per shard; records of one item stay in order.
    pub parallelization: usize,
    pub unkind: Unkind,
    pub retry: RetryPolicy,
    /// URL of the queue that receives the metadata of discarded batches.
    pub on_failure: Option<String>,
    /// Pause after a read of less than a page.
    pub poll: Duration,
    /// Signal that ends this pause early.
    pub written: Option<Written>,
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
            // Lambda also polls a shard four times per second.
            poll: Duration::from_millis(250),
            written: None,
        }
    }
}

/// Starts to read the stream and to invoke the function. Positions are stored under the function's name. Shards and
/// their iterators come from the API, records from the storage: those are read too often to be converted twice.
pub fn start(
    streams: aws_sdk_dynamodbstreams::Client,
    records: StreamReader,
    queues: aws_sdk_sqs::Client,
    source: Source,
    function: Function,
    checkpoints: Checkpoints,
) -> Running {
    Running::start(|stop| {
        let pump = Arc::new(Pump {
            stream: TableStream::new(&streams, &source.stream_arn),
            records,
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
    records: StreamReader,
    queues: aws_sdk_sqs::Client,
    source: Source,
    function: Function,
    checkpoints: Checkpoints,
    stop: CancellationToken,
}

impl Pump {
    /// Runs one reader per shard until stopped: children start when their parent is finished.
    async fn run(self: Arc<Self>) {
        let mut readers = JoinSet::new();
        let mut shard_of_task: HashMap<Id, String> = HashMap::new();
        while !self.stop.is_cancelled() {
            let shards = self.stream.shards().await.unwrap_or_else(|error| {
                let stream = &self.source.stream_arn;
                tracing::warn!(stream, %error, "cannot list the shards of the stream");
                Vec::new()
            });
            let is_finished = |shard: &str| self.position(shard) == Some(Position::Finished);
            let is_being_read = |shard: &str| shard_of_task.values().any(|id| id == shard);
            let ready: Vec<_> = shards::ready(&shards, is_finished, is_being_read)
                .into_iter()
                .map(str::to_owned)
                .collect();
            for shard in ready {
                let reader = reader::Reader::new(Arc::clone(&self), shard.clone());
                shard_of_task.insert(readers.spawn(reader.run()).id(), shard);
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(DISCOVERY) => {}
                Some(ended) = readers.join_next_with_id() => {
                    shard_of_task.remove(&match ended {
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
        let stored = self
            .checkpoints
            .advance(self.function.name(), stream, shard, position);
        // Reading continues: a position that is not stored causes duplicates after a restart, but if reading stopped,
        // later records would not be delivered.
        if let Err(error) = stored {
            tracing::error!(
                shard,
                error = &error as &dyn std::error::Error,
                "position not kept"
            );
        }
    }

    /// Waits for the duration. Returns `false` at once when the event source is stopped.
    async fn pause(&self, duration: Duration) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            () = tokio::time::sleep(duration) => true,
        }
    }
}
