//! What stands for AWS IoT Core's rules: messages of the broker that call functions.
//!
//! A rule hands its result to the function asynchronously, as on AWS: the sender waits for nobody, a
//! few calls run at once and the rest waits its turn, in no promised order. A call that fails is not
//! made again, and one that waited too long is not made at all: these functions answer somebody who
//! waits. Both are told to a queue, in the words of Lambda's failure destination. What a rule may say
//! is in `sql`; a rule that says more is refused at the start.

mod failure;
mod sql;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use antumbra_wire::rules::Rule;
use bytes::Bytes;
use tokio::{sync::Semaphore, task::JoinHandle, time::Instant};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    function::Function,
    mqtt::{Broker, Subscription},
};
use failure::Condition;
use sql::Statement;

/// How many calls of one rule run at once.
const CONCURRENCY: usize = 10;

/// How old a message may be when its turn comes: the maximum event age that the template sets.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Where calls that failed are told of.
#[derive(Clone, Debug)]
pub struct OnFailure {
    /// The way to the queue.
    pub queues: aws_sdk_sqs::Client,
    /// Its URL.
    pub queue_url: String,
}

/// A rule that this stack does not understand.
#[derive(Debug, thiserror::Error)]
#[error("rule {rule}: {reason}")]
pub struct RuleError {
    rule: &'static str,
    reason: String,
}

/// Running rules. Dropping it stops them; [`Rules::stop`] also waits.
#[derive(Debug)]
pub struct Rules {
    stop: DropGuard,
    running: JoinHandle<()>,
}

impl Rules {
    /// Takes no more messages, and lets calls that are under way or wait for their turn end.
    pub async fn stop(self) {
        drop(self.stop);
        if let Err(error) = self.running.await {
            tracing::error!(%error, "the rules broke");
        }
    }
}

/// Starts rules, each with the function it calls.
pub fn start(
    broker: &Broker,
    rules: Vec<(Rule, Function)>,
    on_failure: OnFailure,
) -> Result<Rules, RuleError> {
    let read = |(rule, function): (Rule, Function)| {
        let failed = |reason| RuleError {
            rule: rule.name,
            reason,
        };
        let statement = Statement::parse(rule.sql).map_err(failed)?;
        Ok(Arc::new(Evaluated {
            statement,
            function,
            on_failure: on_failure.clone(),
            turns: Semaphore::new(CONCURRENCY),
        }))
    };
    let rules = rules.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (stop, calls) = (CancellationToken::new(), TaskTracker::new());
    // Subscribed before anybody is told that the rules run.
    for rule in rules {
        let messages = broker.subscribe(rule.statement.filter.clone());
        let (stop, called) = (stop.clone(), calls.clone());
        calls.spawn(rule.listen(messages, stop, called));
    }
    calls.close();
    Ok(Rules {
        stop: stop.drop_guard(),
        running: tokio::spawn(async move { calls.wait().await }),
    })
}

struct Evaluated {
    statement: Statement,
    function: Function,
    on_failure: OnFailure,
    turns: Semaphore,
}

impl Evaluated {
    async fn listen(
        self: Arc<Self>,
        mut messages: Subscription,
        stop: CancellationToken,
        calls: TaskTracker,
    ) {
        loop {
            let message = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                message = messages.next() => message,
            };
            let Some(message) = message else { return };
            let event = self.statement.select(&message, milliseconds());
            calls.spawn(Arc::clone(&self).call(event.into(), Instant::now()));
        }
    }

    async fn call(self: Arc<Self>, event: Bytes, since: Instant) {
        // Nobody closes the semaphore.
        let Ok(_turn) = self.turns.acquire().await else {
            return;
        };
        let function = &self.function;
        let (condition, reason) = if since.elapsed() > MAX_AGE {
            (Condition::TooOld, "it waited too long for its turn".into())
        } else {
            match function.invoke(event.clone()).await {
                Ok(_) => return,
                Err(error) => (Condition::Failed, error.to_string()),
            }
        };
        tracing::warn!(function = function.name(), reason, "a request was given up");
        let record = failure::record(&function.arn(), condition, &event, &reason);
        let sent = self.on_failure.queues.send_message();
        let sent = sent.queue_url(&self.on_failure.queue_url);
        if let Err(error) = sent.message_body(record).send().await {
            let error = aws_sdk_sqs::error::DisplayErrorContext(error);
            tracing::error!(%error, "a failure could not be told of");
        }
    }
}

fn milliseconds() -> u64 {
    // Before 1970 the clock is wrong anyway.
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
