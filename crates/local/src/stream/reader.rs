//! Reads one shard to its end, or until the event source stops.

use std::{
    collections::{BTreeMap, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::{ControlFlow, Range},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use antumbra_database::{Record, invocation};
use antumbra_dynamodb::streams::Position as ReadFrom;
use aws_sdk_sqs::error::DisplayErrorContext;
use futures_util::future::join_all;
use serde_json::value::RawValue;

use super::{
    Position, Pump, Start, event,
    plan::{self, Batch, GivenUp, Outcome},
};
use crate::batch_response;
use crate::dynamodb::Written;

/// Maximum records of one page of a stream.
const PAGE: usize = 1000;

/// Maximum bytes of an event that Lambda passes to a function.
const MAX_EVENT_BYTES: usize = 6 * 1024 * 1024;

/// Least time between two reads that do not fill a page.
const MIN_INTERVAL: Duration = Duration::from_millis(20);

/// Pause after a failed request.
const AFTER_ERROR: Duration = Duration::from_secs(1);

pub(super) struct Reader {
    pump: Arc<Pump>,
    shard: String,
    written: Option<Written>,
}

/// `Break` ends reading: the event source stops, or the shard is finished.
type Flow<T = ()> = ControlFlow<(), T>;

impl Reader {
    pub(super) fn new(pump: Arc<Pump>, shard: String) -> Self {
        Self {
            written: pump.source.written.clone(),
            pump,
            shard,
        }
    }

    pub(super) async fn run(mut self) {
        while self.read_on().await.is_continue() {}
    }

    /// Takes an iterator at the kept position and follows it as far as it goes.
    async fn read_on(&mut self) -> Flow {
        let mut iterator = self.iterator().await?;
        loop {
            if self.pump.stop.is_cancelled() {
                return Flow::Break(());
            }
            let (limit, next_read) = (self.page_size(), Instant::now() + MIN_INTERVAL);
            if let Some(written) = &mut self.written {
                written.mark_unchanged();
            }
            let page = match self.pump.records.page(&iterator, limit).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(shard = self.shard, error, "cannot read the shard");
                    return self.pause(AFTER_ERROR).await;
                }
            };
            let is_last = page.records.len() < limit;
            self.process(page.records).await?;
            iterator = page.next;
            if is_last {
                self.wait_for_records(next_read).await?;
            }
        }
    }

    /// Waits until there may be records, but not before the time of the next read: a batch should fill.
    async fn wait_for_records(&mut self, next_read: Instant) -> Flow {
        let poll = self.pump.source.poll;
        let written = async {
            let is_written = match &mut self.written {
                // The sender is gone when the service stops.
                Some(written) => written.changed().await.is_ok(),
                None => false,
            };
            if !is_written {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.pump.stop.cancelled() => return Flow::Break(()),
            () = tokio::time::sleep(poll) => {}
            () = written => {}
        }
        self.pause(next_read.saturating_duration_since(Instant::now()))
            .await
    }

    async fn iterator(&self) -> Flow<String> {
        let from = match (self.pump.position(&self.shard), self.pump.source.start) {
            (Some(Position::Finished), _) => return Flow::Break(()),
            (Some(Position::After(number)), _) => ReadFrom::After(number),
            (None, Start::TrimHorizon) => ReadFrom::TrimHorizon,
            (None, Start::Latest) => ReadFrom::Latest,
        };
        loop {
            match self.pump.stream.iterator(&self.shard, from.clone()).await {
                Ok(Some(iterator)) => return Flow::Continue(iterator),
                Ok(None) => return Flow::Break(()),
                Err(error) => {
                    tracing::warn!(shard = self.shard, %error, "cannot get a shard iterator");
                    self.pause(AFTER_ERROR).await?;
                }
            }
        }
    }

    /// Invokes the function until every record of the page is processed or given up.
    async fn process(&mut self, records: Vec<Record>) -> Flow {
        let numbers: Vec<String> = records
            .iter()
            .map(|record| record.sequence_number.clone())
            .collect();
        let progress = Mutex::new(Progress::new(records.len()));
        let lanes = lanes(records, self.pump.source.parallelization);
        let lanes = lanes.iter().map(|(positions, records)| {
            let done = |from: usize, to: usize| {
                let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
                // Under the lock, so that positions are stored in order.
                if let Some(last) = progress.done(&positions[from..to]) {
                    let position = Position::After(numbers[last].clone());
                    self.pump.advance(&self.shard, position);
                }
            };
            self.process_lane(records, done)
        });
        let ended = join_all(lanes).await;
        ended
            .into_iter()
            .find(|flow| flow.is_break())
            .unwrap_or(Flow::Continue(()))
    }

    /// Processes records in order; calls `done` with each processed range.
    async fn process_lane(&self, records: &[Record], done: impl Fn(usize, usize)) -> Flow {
        let source = &self.pump.source;
        let sizes: Vec<_> = records.iter().map(Record::size).collect();
        let mut batches: VecDeque<Batch> =
            plan::cut(&sizes, source.batch_size, MAX_EVENT_BYTES).into();
        let mut done_to = 0;
        while let Some(batch) = batches.pop_front() {
            self.pause(source.unkind.latency()).await?;
            let now = SystemTime::now();
            let expired = plan::expire(&batch, &source.retry, |r| age(&records[r], now));
            let (next, calls, function_error) = match expired {
                Some(next) => (next, batch.calls, false),
                None => {
                    let (outcome, function_error) = self.call(&batch, records).await;
                    let next = plan::decide(&batch, &outcome, &source.retry);
                    (next, batch.calls + 1, function_error)
                }
            };
            if let Some((range, reason)) = next.given_up {
                self.give_up(&records[range.clone()], reason, calls, function_error)
                    .await?;
            }
            if next.done_to > done_to {
                done(done_to, next.done_to);
                done_to = next.done_to;
            }
            if !next.wait.is_zero() {
                self.pause(next.wait).await?;
            }
            for batch in next.batches.into_iter().rev() {
                batches.push_front(batch);
            }
        }
        Flow::Continue(())
    }

    /// Makes one call. The flag is true if it ended in a function error.
    async fn call(&self, batch: &Batch, records: &[Record]) -> (Outcome, bool) {
        let Range { start, end } = batch.records;
        let event = invocation(&self.pump.source.stream_arn, &records[start..end]);
        let function = &self.pump.function;
        match function.invoke(event.into()).await {
            Ok(_) if !self.pump.source.retry.report_failures => (Outcome::Done, false),
            Ok(response) => {
                let answer = batch_response::read(&response);
                let outcome = plan::outcome(batch, &answer, |r| &records[r].sequence_number);
                (outcome, false)
            }
            Err(error) => {
                tracing::warn!(function = function.name(), %error, "the function failed");
                (Outcome::Failed, true)
            }
        }
    }

    /// Sends the metadata to the failure destination, for as long as it takes: the position must not move past records
    /// that are recorded nowhere.
    async fn give_up(
        &self,
        records: &[Record],
        reason: GivenUp,
        calls: u32,
        function_error: bool,
    ) -> Flow {
        let count = records.len();
        tracing::warn!(shard = self.shard, count, ?reason, "records given up");
        let Some(queue) = &self.pump.source.on_failure else {
            return Flow::Continue(());
        };
        let message = event::failure(&event::Failure {
            request_id: &uuid::Uuid::new_v4().to_string(),
            function_arn: &self.pump.function.arn(),
            reason,
            calls,
            function_error,
            timestamp: jiff::Timestamp::now(),
            stream_arn: &self.pump.source.stream_arn,
            shard_id: &self.shard,
            records,
        });
        loop {
            let send = self.pump.queues.send_message().queue_url(queue);
            match send.message_body(&message).send().await {
                Ok(_) => return Flow::Continue(()),
                Err(error) => {
                    let reason = DisplayErrorContext(error).to_string();
                    tracing::warn!(queue, reason, "failure destination not reachable");
                    self.pause(AFTER_ERROR).await?;
                }
            }
        }
    }

    fn page_size(&self) -> usize {
        let source = &self.pump.source;
        (source.batch_size * source.parallelization).clamp(1, PAGE)
    }

    async fn pause(&self, duration: Duration) -> Flow {
        if self.pump.pause(duration).await {
            Flow::Continue(())
        } else {
            Flow::Break(())
        }
    }
}

/// Divides records into at most `count` lanes, with their positions. All records of an item are in one lane.
fn lanes(records: Vec<Record>, count: usize) -> Vec<(Vec<usize>, Vec<Record>)> {
    if count <= 1 {
        return vec![((0..records.len()).collect(), records)];
    }
    let mut lanes = vec![(Vec::new(), Vec::new()); count];
    for (position, record) in records.into_iter().enumerate() {
        let at = usize::try_from(item_hash(&record) % lanes.len() as u64).unwrap_or_default();
        lanes[at].0.push(position);
        lanes[at].1.push(record);
    }
    lanes.retain(|(positions, _)| !positions.is_empty());
    lanes
}

/// Hash of an item's key, whose attributes stand in any order.
fn item_hash(record: &Record) -> u64 {
    let keys: BTreeMap<&str, &RawValue> = serde_json::from_str(&record.keys).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    for (name, value) in keys {
        (name, value.get()).hash(&mut hasher);
    }
    hasher.finish()
}

struct Progress {
    is_done: Vec<bool>,
    /// Every record before this one is processed.
    done_to: usize,
}

impl Progress {
    fn new(count: usize) -> Progress {
        Progress {
            is_done: vec![false; count],
            done_to: 0,
        }
    }

    /// Marks records; returns the last one of those without a gap before them, if it is another than before.
    fn done(&mut self, positions: &[usize]) -> Option<usize> {
        for position in positions {
            self.is_done[*position] = true;
        }
        let before = self.done_to;
        let rest = self.is_done[before..].iter();
        self.done_to += rest.take_while(|is_done| **is_done).count();
        (self.done_to > before).then(|| self.done_to - 1)
    }
}

fn age(record: &Record, now: SystemTime) -> Duration {
    let seconds = u64::try_from(record.created_seconds).unwrap_or_default();
    let created = UNIX_EPOCH + Duration::from_secs(seconds);
    now.duration_since(created).unwrap_or_default()
}
