//! Reads all changes from now on. No position is stored.

use std::collections::HashSet;

use super::{Client, Position, Record, StreamError, TableStream, sequence_number};

/// Reads a stream from now on: existing shards from their newest record, later shards from their oldest, so that no
/// change after the start is missed.
#[derive(Debug)]
pub struct StreamFollower {
    stream: TableStream,
    reading: Vec<OpenShard>,
    /// Shards that are being read, were read, or had ended at the start.
    known: HashSet<String>,
}

#[derive(Debug)]
struct OpenShard {
    id: String,
    iterator: String,
    /// Sequence number of the newest record read.
    last: Option<String>,
}

impl StreamFollower {
    /// Starts: every change after this returns will be read.
    pub async fn start(client: &Client, stream_arn: &str) -> Result<StreamFollower, StreamError> {
        let mut follower = StreamFollower {
            stream: TableStream::new(client, stream_arn),
            reading: Vec::new(),
            known: HashSet::new(),
        };
        let shards = follower.stream.shards().await?;
        let parents: HashSet<_> = shards
            .iter()
            .filter_map(|shard| shard.parent.as_ref())
            .collect();
        for shard in &shards {
            // A shard with children has ended.
            if !parents.contains(&shard.id) {
                follower.open(&shard.id, Position::Latest).await?;
            }
        }
        follower.known = shards.into_iter().map(|shard| shard.id).collect();
        Ok(follower)
    }

    /// Returns the records since the last call, in order within each shard; often none.
    pub async fn next(&mut self) -> Result<Vec<Record>, StreamError> {
        let mut records = Vec::new();
        let open = std::mem::take(&mut self.reading);
        let count = open.len();
        for mut shard in open {
            if self.read_page(&mut shard, &mut records).await? {
                self.reading.push(shard);
            }
        }
        // Other shards continue those that ended.
        if self.reading.is_empty() || self.reading.len() < count {
            self.discover().await?;
        }
        Ok(records)
    }

    /// Opens new shards whose parents were read.
    async fn discover(&mut self) -> Result<(), StreamError> {
        for shard in self.stream.shards().await? {
            let waits = shard.parent.is_some_and(|parent| {
                let mut reading = self.reading.iter();
                reading.any(|shard| shard.id == parent)
            });
            if !waits && self.known.insert(shard.id.clone()) {
                self.open(&shard.id, Position::TrimHorizon).await?;
            }
        }
        Ok(())
    }

    async fn open(&mut self, id: &str, position: Position) -> Result<(), StreamError> {
        if let Some(iterator) = self.stream.iterator(id, position).await? {
            self.reading.push(OpenShard {
                id: id.to_owned(),
                iterator,
                last: None,
            });
        }
        Ok(())
    }

    /// Reads one page; `false` at the end of the shard.
    async fn read_page(
        &self,
        shard: &mut OpenShard,
        records: &mut Vec<Record>,
    ) -> Result<bool, StreamError> {
        let next = match self.stream.page(&shard.iterator, None).await {
            Ok(page) => {
                if let Some(record) = page.records.last() {
                    shard.last = Some(sequence_number(record).to_owned());
                }
                records.extend(page.records);
                page.next
            }
            // Other readers use the shard as well: try again with the next call.
            Err(StreamError::Throttled(_)) => return Ok(true),
            // After the machine slept, the iterator is too old; after a day, the records are.
            Err(StreamError::ExpiredIterator) => {
                let position = shard.last.clone().map_or(Position::Latest, Position::After);
                self.stream.iterator(&shard.id, position).await?
            }
            Err(StreamError::Trimmed) => {
                let oldest = Position::TrimHorizon;
                self.stream.iterator(&shard.id, oldest).await?
            }
            Err(error) => return Err(error),
        };
        let open = next.is_some();
        if let Some(iterator) = next {
            shard.iterator = iterator;
        }
        Ok(open)
    }
}
