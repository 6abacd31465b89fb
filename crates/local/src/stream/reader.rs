//! Reading one shard to its end, or until told to stop.

use std::{
    collections::VecDeque,
    ops::{ControlFlow, Range},
    sync::Arc,
    time::{Duration, SystemTime},
};

use antumbra_dynamodb::streams::event::{invocation, size};
use antumbra_dynamodb::streams::{Position as ReadFrom, Record, StreamError, sequence_number};
use aws_sdk_sqs::error::DisplayErrorContext;

use super::{
    Position, Pump, Start, event,
    plan::{self, Batch, GivenUp, Outcome},
};
use crate::batch_response;

/// The most that one page of a stream holds.
const PAGE: usize = 1000;

/// The most that Lambda hands to a function in one call.
const MAX_EVENT_BYTES: usize = 6 * 1024 * 1024;

/// How long to wait after a request that failed.
const AFTER_ERROR: Duration = Duration::from_secs(1);

pub(super) struct Reader {
    pump: Arc<Pump>,
    shard: String,
    /// The stream has dropped the records after our position.
    trimmed: bool,
}

/// `Break` is the end of the reading: told to stop, or the shard is finished.
type Flow<T = ()> = ControlFlow<(), T>;

impl Reader {
    pub(super) fn new(pump: Arc<Pump>, shard: String) -> Self {
        Self {
            pump,
            shard,
            trimmed: false,
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
            let limit = i32::try_from(self.page_size()).ok();
            let page = match self.pump.stream.page(&iterator, limit).await {
                Ok(page) => page,
                Err(error) => return self.after_error(error).await,
            };
            let records = page.records;
            self.work_off(&records).await?;
            match page.next {
                Some(next) => iterator = next,
                None => {
                    self.pump.advance(&self.shard, Position::Finished);
                    return Flow::Break(());
                }
            }
            if records.is_empty() {
                self.pause(self.pump.source.poll).await?;
            }
        }
    }

    async fn iterator(&self) -> Flow<String> {
        let from = match (self.pump.position(&self.shard), self.pump.source.start) {
            (Some(Position::Finished), _) => return Flow::Break(()),
            _ if self.trimmed => ReadFrom::TrimHorizon,
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

    async fn after_error(&mut self, error: StreamError) -> Flow {
        match error {
            StreamError::ExpiredIterator => Flow::Continue(()),
            StreamError::Trimmed => {
                self.trimmed = true;
                Flow::Continue(())
            }
            error => {
                tracing::warn!(shard = self.shard, %error, "cannot read the shard");
                self.pause(AFTER_ERROR).await
            }
        }
    }

    /// Calls the function until every record of the page is dealt with.
    async fn work_off(&mut self, records: &[Record]) -> Flow {
        let source = &self.pump.source;
        let sizes: Vec<_> = records.iter().map(size).collect();
        let mut batches: VecDeque<Batch> =
            plan::cut(&sizes, source.batch_size, MAX_EVENT_BYTES).into();
        let mut done_to = 0;
        while let Some(batch) = batches.pop_front() {
            if self.pump.stop.is_cancelled() {
                return Flow::Break(());
            }
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
                done_to = next.done_to;
                let number = sequence_number(&records[done_to - 1]);
                let position = Position::After(number.to_owned());
                self.pump.advance(&self.shard, position);
                self.trimmed = false;
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

    /// One call; the flag says whether it ended in a function error.
    async fn call(&self, batch: &Batch, records: &[Record]) -> (Outcome, bool) {
        let Range { start, end } = batch.records;
        let event = match invocation(&self.pump.source.stream_arn, &records[start..end]) {
            Ok(event) => event,
            Err(error) => {
                tracing::error!(shard = self.shard, %error, "records without a JSON form");
                return (Outcome::Failed, true);
            }
        };
        let function = &self.pump.function;
        match function.invoke(event.into()).await {
            Ok(_) if !self.pump.source.retry.report_failures => (Outcome::Done, false),
            Ok(response) => {
                let answer = batch_response::read(&response);
                let outcome = plan::outcome(batch, &answer, |r| sequence_number(&records[r]));
                (outcome, false)
            }
            Err(error) => {
                tracing::warn!(function = function.name(), %error, "the function failed");
                (Outcome::Failed, true)
            }
        }
    }

    /// Tells the failure destination, for as long as it takes: the position
    /// must not move past records that nobody has heard of.
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
                    tracing::warn!(queue, reason, "the failure destination does not take it");
                    self.pause(AFTER_ERROR).await?;
                }
            }
        }
    }

    fn page_size(&self) -> usize {
        self.pump.source.batch_size.clamp(1, PAGE)
    }

    async fn pause(&self, duration: Duration) -> Flow {
        if self.pump.pause(duration).await {
            Flow::Continue(())
        } else {
            Flow::Break(())
        }
    }
}

fn age(record: &Record, now: SystemTime) -> Duration {
    let created = record
        .dynamodb()
        .and_then(|change| change.approximate_creation_date_time())
        .and_then(|time| SystemTime::try_from(*time).ok());
    created
        .and_then(|created| now.duration_since(created).ok())
        .unwrap_or_default()
}
