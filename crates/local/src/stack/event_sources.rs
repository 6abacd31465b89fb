//! Starts the event sources that `FUNCTIONS` lists.

use antumbra_dynamodb::MAIN;
use antumbra_lambda_kit::functions::{self, HISTORY_STREAM, STREAM, spec};
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

impl LocalServices {
    /// Starts the event sources of all given functions. `streams` are the ARNs of the tables' streams;
    /// `concurrency` limits the invocations per queue of a function.
    pub(super) fn start_event_sources(
        &self,
        functions: &[Function],
        streams: &[String],
        checkpoints: &Checkpoints,
        concurrency: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<Running>, RuleError> {
        let mut running = Vec::new();
        let mut rules = Vec::new();
        for function in functions {
            match spec(function.name()).event_source {
                functions::EventSource::Streams { queue, batch_size } => {
                    let start = |arn: &String| self.stream(arn, function, checkpoints);
                    running.extend(streams.iter().map(start));
                    running.push(self.queue(self.source(queue, batch_size), function));
                }
                functions::EventSource::MainStream => {
                    let main = streams.iter().filter(|arn| is_main(arn));
                    let start = |arn: &String| self.main_stream(arn, function, checkpoints);
                    running.extend(main.map(start));
                }
                functions::EventSource::Queues(queues) => {
                    for (queue, batch_size) in queues {
                        let mut source = self.source(queue, *batch_size);
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
                    let schedule = schedule::start(period, function.clone(), self.clock.clone());
                    running.push(schedule);
                }
                functions::EventSource::HttpApi => {}
            }
        }
        let queues = self.queues.queues();
        running.push(rules::start(
            &self.broker,
            rules,
            &self.topic_prefix,
            queues,
            &self.unkind,
        )?);
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

    fn queue(&self, source: queue_pump::Source, function: &Function) -> Running {
        let sqs = aws_sdk_sqs::Client::new(&self.sdk());
        queue_pump::start(sqs, source, function.clone())
    }

    fn stream(&self, stream_arn: &str, function: &Function, checkpoints: &Checkpoints) -> Running {
        let source = stream::Source {
            batch_size: STREAM.batch_size as usize,
            parallelization: match self.layout {
                // Order is kept per item, and a shadow has two.
                Layout::Separate if is_main(stream_arn) => 1,
                _ => STREAM.parallelization as usize,
            },
            unkind: self.unkind.clone(),
            written: Some(self.dynamodb.written()),
            on_failure: Some(self.queues.queue_url(STREAM.on_failure)),
            retry: RetryPolicy {
                retries: Some(STREAM.max_retries),
                max_age: Some(STREAM.max_record_age),
                ..RetryPolicy::default()
            },
            ..stream::Source::new(stream_arn)
        };
        self.start_stream(source, function, checkpoints)
    }

    /// The stream of the main table for the history writer. There is no bucket: batches are repeated until they succeed.
    /// It polls, because nobody waits for it, and large batches take less time.
    fn main_stream(&self, arn: &str, function: &Function, checkpoints: &Checkpoints) -> Running {
        let source = stream::Source {
            batch_size: HISTORY_STREAM.batch_size as usize,
            parallelization: HISTORY_STREAM.parallelization as usize,
            unkind: self.unkind.clone(),
            ..stream::Source::new(arn)
        };
        self.start_stream(source, function, checkpoints)
    }

    fn start_stream(
        &self,
        source: stream::Source,
        function: &Function,
        checkpoints: &Checkpoints,
    ) -> Running {
        let sdk = self.sdk();
        let streams = aws_sdk_dynamodbstreams::Client::new(&sdk);
        let sqs = aws_sdk_sqs::Client::new(&sdk);
        let records = self.dynamodb.stream_reader();
        stream::start(
            streams,
            records,
            sqs,
            source,
            function.clone(),
            checkpoints.clone(),
        )
    }
}

fn is_main(stream_arn: &str) -> bool {
    stream_arn.contains(&format!("/{}/", MAIN.name))
}
