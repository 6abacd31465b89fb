//! Starts the event sources that `FUNCTIONS` lists.

use std::time::Duration;

use antumbra_dynamodb::MAIN;
use antumbra_lambda_kit::functions::{self, STREAM, spec};
use antumbra_service::shadows::Layout;
use antumbra_wire::rules::{AWS_SHADOW_RULES, deployed_rules};

use super::LocalServices;
use crate::function::Function;
use crate::queue_pump;
use crate::queues::queue_arn;
use crate::rules::{self, RuleError, RuleTarget};
use crate::schedule;
use crate::stream::{self, Checkpoints, RetryPolicy};
use crate::task::Running;

#[derive(Debug, Clone)]
pub struct EventSource {
    pub function: String,
    pub kind: EventSourceKind,
}

/// The kind of an event source, with its settings.
#[derive(Debug, Clone)]
pub enum EventSourceKind {
    Stream(stream::Source),
    Queue(queue_pump::Source),
    /// An AWS IoT rule, by name.
    Rule(&'static str),
    Schedule {
        period: Duration,
    },
}

/// Event sources that run together.
pub(super) struct RunningEventSource {
    pub(super) sources: Vec<EventSource>,
    pub(super) running: Running,
}

impl RunningEventSource {
    fn new(function: &Function, kind: EventSourceKind, running: Running) -> RunningEventSource {
        RunningEventSource {
            sources: vec![EventSource::new(function, kind)],
            running,
        }
    }
}

impl EventSource {
    fn new(function: &Function, kind: EventSourceKind) -> EventSource {
        EventSource {
            function: function.name().to_owned(),
            kind,
        }
    }
}

impl LocalServices {
    /// Starts the event sources of all given functions. `streams` are the ARNs of the tables' streams;
    /// `concurrency` limits the invocations per queue of a function.
    pub(super) fn start_event_sources(
        &self,
        functions: &[Function],
        streams: &[String],
        checkpoints: &Checkpoints,
        concurrency: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<RunningEventSource>, RuleError> {
        let mut running = Vec::new();
        let mut rules = Vec::new();
        for function in functions {
            match spec(function.name()).event_source {
                functions::EventSource::Streams { queue, batch_size } => {
                    let start = |arn: &String| self.stream(arn, function, checkpoints);
                    running.extend(streams.iter().map(start));
                    running.push(self.queue(self.source(queue, batch_size), function));
                }
                functions::EventSource::Queues { names, batch_size } => {
                    for queue in names {
                        let mut source = self.source(queue, batch_size);
                        if let Some(concurrency) = concurrency(function.name()) {
                            source.concurrency = concurrency;
                        }
                        running.push(self.queue(source, function));
                    }
                }
                functions::EventSource::Rules(settings) => {
                    let own = deployed_rules()
                        .chain(AWS_SHADOW_RULES)
                        .filter(|rule| rule.function == function.name());
                    rules.extend(own.map(|rule| RuleTarget {
                        rule,
                        function: function.clone(),
                        settings,
                    }));
                }
                functions::EventSource::Schedule { period } => {
                    let kind = EventSourceKind::Schedule { period };
                    let schedule = schedule::start(period, function.clone(), self.clock.clone());
                    running.push(RunningEventSource::new(function, kind, schedule));
                }
                functions::EventSource::HttpApi => {}
            }
        }
        running.push(self.rules(rules)?);
        Ok(running)
    }

    fn source(&self, queue: &str, batch_size: u32) -> queue_pump::Source {
        queue_pump::Source {
            batch_size: i32::try_from(batch_size).unwrap_or(i32::MAX),
            clock: self.clock.clone(),
            unkind: self.unkind.clone(),
            ..queue_pump::Source::new(self.queues.queue_url(queue), queue_arn(queue))
        }
    }

    fn queue(&self, source: queue_pump::Source, function: &Function) -> RunningEventSource {
        let sqs = aws_sdk_sqs::Client::new(&self.sdk());
        let kind = EventSourceKind::Queue(source.clone());
        let pump = queue_pump::start(sqs, source, function.clone());
        RunningEventSource::new(function, kind, pump)
    }

    fn stream(
        &self,
        stream_arn: &str,
        function: &Function,
        checkpoints: &Checkpoints,
    ) -> RunningEventSource {
        let is_main = stream_arn.contains(&format!("/{}/", MAIN.name));
        let source = stream::Source {
            batch_size: STREAM.batch_size as usize,
            parallelization: match self.layout {
                // Order is kept per item, and a shadow has two.
                Layout::Separate if is_main => 1,
                _ => STREAM.parallelization as usize,
            },
            unkind: self.unkind.clone(),
            on_failure: Some(self.queues.queue_url(STREAM.on_failure)),
            retry: RetryPolicy {
                retries: Some(STREAM.max_retries),
                max_age: Some(STREAM.max_record_age),
                ..RetryPolicy::default()
            },
            ..stream::Source::new(stream_arn)
        };
        let sdk = self.sdk();
        let streams = aws_sdk_dynamodbstreams::Client::new(&sdk);
        let sqs = aws_sdk_sqs::Client::new(&sdk);
        let kind = EventSourceKind::Stream(source.clone());
        let checkpoints = checkpoints.clone();
        let pump = stream::start(streams, sqs, source, function.clone(), checkpoints);
        RunningEventSource::new(function, kind, pump)
    }

    fn rules(&self, rules: Vec<RuleTarget>) -> Result<RunningEventSource, RuleError> {
        let sources = rules.iter().map(|target| {
            EventSource::new(&target.function, EventSourceKind::Rule(target.rule.name))
        });
        let sources = sources.collect();
        let queues = self.queues.queues();
        let running = rules::start(&self.broker, rules, queues, &self.unkind)?;
        Ok(RunningEventSource { sources, running })
    }
}
