//! What calls the functions: the stack's event sources, started, and what each is set to.

use std::time::Duration;

use antumbra_wire::rules::Rule;
use tokio::task::JoinSet;

use super::{LocalServices, UNDELIVERABLE};
use crate::function::Function;
use crate::queue_pump::{self, QueuePump};
use crate::queues::queue_arn;
use crate::rules::{self, OnFailure, RuleError, Rules};
use crate::schedule::{self, Schedule};
use crate::stream::{self, Checkpoints, RetryPolicy, StreamPump};

/// How long a stream's records are tried, as the template says: half of the day that a stream keeps them.
const STREAM_RETRIES: u32 = 100;
const STREAM_AGE: Duration = Duration::from_secs(12 * 60 * 60);

/// One thing that calls a function.
#[derive(Debug, Clone)]
pub struct EventSource {
    /// The function's name.
    pub function: String,
    /// What it is called for.
    pub origin: EventSourceKind,
}

/// What a function is called for.
#[derive(Debug, Clone)]
pub enum EventSourceKind {
    /// Changes of a table.
    Stream(stream::Source),
    /// Messages of a queue.
    Queue(queue_pump::Source),
    /// Messages over MQTT that a rule selects.
    Rule(&'static str),
    /// The clock, once in each period.
    Schedule(Duration),
}

/// Event sources that run together.
pub(super) struct RunningEventSource {
    sources: Vec<EventSource>,
    running: Running,
}

enum Running {
    Stream(StreamPump),
    Queue(QueuePump),
    Rules(Rules),
    Schedule(Schedule),
    Repeater(JoinSet<()>),
}

impl RunningEventSource {
    fn of(function: &Function, origin: EventSourceKind, running: Running) -> RunningEventSource {
        RunningEventSource {
            sources: vec![EventSource::of(function, origin)],
            running,
        }
    }

    /// Something that calls no function.
    pub(super) fn repeater(repeating: JoinSet<()>) -> RunningEventSource {
        RunningEventSource {
            sources: Vec::new(),
            running: Running::Repeater(repeating),
        }
    }

    pub(super) fn sources(&self) -> &[EventSource] {
        &self.sources
    }

    pub(super) async fn stop(self) {
        match self.running {
            Running::Stream(pump) => pump.stop().await,
            Running::Queue(pump) => pump.stop().await,
            Running::Rules(rules) => rules.stop().await,
            Running::Schedule(schedule) => schedule.stop().await,
            Running::Repeater(mut repeating) => repeating.shutdown().await,
        }
    }
}

impl EventSource {
    fn of(function: &Function, origin: EventSourceKind) -> EventSource {
        EventSource {
            function: function.name().to_owned(),
            origin,
        }
    }
}

impl LocalServices {
    /// Feeds a function from one of the stack's queues.
    pub(super) fn feed_from_queue(&self, name: &str, function: Function) -> RunningEventSource {
        self.feed_from_source(self.source(name), function)
    }

    /// One of the stack's queues, read as any other.
    pub(super) fn source(&self, name: &str) -> queue_pump::Source {
        queue_pump::Source {
            clock: self.clock.clone(),
            ..queue_pump::Source::new(self.queues.queue_url(name), queue_arn(name))
        }
    }

    /// Feeds a function from a queue that is read in a way of its own.
    pub(super) fn feed_from_source(
        &self,
        source: queue_pump::Source,
        function: Function,
    ) -> RunningEventSource {
        let sqs = aws_sdk_sqs::Client::new(&self.aws());
        let function = (self.wrap)(function);
        let origin = EventSourceKind::Queue(source.clone());
        let pump = queue_pump::start(sqs, source, function.clone());
        RunningEventSource::of(&function, origin, Running::Queue(pump))
    }

    /// Feeds a function from a table's stream. A table just made has one, which its definition asks for.
    pub(super) fn feed_from_stream(
        &self,
        stream_arn: Option<String>,
        function: Function,
        checkpoints: Checkpoints,
    ) -> RunningEventSource {
        let source = stream::Source {
            on_failure: Some(self.queues.queue_url(UNDELIVERABLE)),
            retry: RetryPolicy {
                retries: Some(STREAM_RETRIES),
                max_age: Some(STREAM_AGE),
                ..RetryPolicy::default()
            },
            ..stream::Source::new(stream_arn.unwrap_or_default())
        };
        let streams = aws_sdk_dynamodbstreams::Client::new(&self.database());
        let sqs = aws_sdk_sqs::Client::new(&self.aws());
        let function = (self.wrap)(function);
        let origin = EventSourceKind::Stream(source.clone());
        let pump = stream::start(streams, sqs, source, function.clone(), checkpoints);
        RunningEventSource::of(&function, origin, Running::Stream(pump))
    }

    /// Feeds functions from messages of the broker, as rules say.
    pub(super) fn feed_from_rules(
        &self,
        rules: Vec<(Rule, Function)>,
    ) -> Result<RunningEventSource, RuleError> {
        let on_failure = OnFailure {
            queues: aws_sdk_sqs::Client::new(&self.aws()),
            queue_url: self.queues.queue_url(UNDELIVERABLE),
        };
        let rules: Vec<_> = rules
            .into_iter()
            .map(|(rule, function)| (rule, (self.wrap)(function)))
            .collect();
        let sources = rules.iter();
        let sources = sources
            .map(|(rule, function)| EventSource::of(function, EventSourceKind::Rule(rule.name)));
        Ok(RunningEventSource {
            sources: sources.collect(),
            running: Running::Rules(rules::start(&self.broker, rules, on_failure)?),
        })
    }

    /// Feeds a function, which passed through what all pass through, from the clock.
    pub(super) fn feed_from_schedule(
        &self,
        period: Duration,
        function: Function,
    ) -> RunningEventSource {
        let origin = EventSourceKind::Schedule(period);
        let schedule = schedule::start(period, function.clone(), self.clock.clone());
        RunningEventSource::of(&function, origin, Running::Schedule(schedule))
    }
}
