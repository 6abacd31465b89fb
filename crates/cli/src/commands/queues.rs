//! `antumbra queues …`: undeliverable, quarantined and dead-lettered messages, and their redrive.

pub(crate) mod history;
mod render;

use std::sync::Arc;

use antumbra_dynamodb::streams::StreamRecords;
use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries, DynamoDbShadows, ShadowTableConfig};
use antumbra_lambda_kit::functions::queues;
use antumbra_local::progress::Progress;
use antumbra_notify::Listener;
use antumbra_notify::redrive::{self, NotificationSender, RedriveOptions, RedriveRoute, Resender};
use antumbra_publish::sqs::BYTES;
use antumbra_publish::{
    AwsChannelFactory, ChannelOptions, DeliveryQueues, IotChannel, SqsChannel, SqsFailedQueue,
};
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_shadow::Model;
use antumbra_shadow_requests::ShadowRequests;
use clap::{Args, Subcommand};

use crate::commands::clients::DeliveryQueueNames;
use crate::commands::registrations::Directory;
use crate::connection::{Connection, Service};
use crate::error::CliError;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct QueuesArguments {
    #[command(subcommand)]
    command: QueuesCommand,
}

#[derive(Debug, Subcommand)]
enum QueuesCommand {
    /// Show the messages of a queue and the reasons why they are there. The messages stay.
    ///
    /// Example: antumbra queues show antumbra-quarantine
    Show {
        /// Queue name, URL or ARN.
        queue: String,
        /// Maximum number of messages.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// Show the body of each message.
        #[arg(long)]
        bodies: bool,
    },
    /// Move messages back to their source. Shows the plan; --go executes it.
    ///
    /// Quarantined messages and dead letters go back to their queue, notifications to the target of their
    /// registration, dead webhook deliveries to their client, failed stream records are read again from their
    /// stream, and failed updates of shadows over MQTT are made by their original time. Other failed MQTT requests
    /// stay: their senders have repeated them. With the bucket of the history writer (s3://NAME or its ARN), the changes
    /// in its failed batches are recorded.
    ///
    /// Example: antumbra queues redrive antumbra-quarantine --go
    Redrive(Box<RedriveArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct RedriveArguments {
    /// Queue name, URL or ARN; or the bucket of failed batches, s3://NAME or its ARN.
    queue: String,
    /// Move the messages instead of showing the plan.
    #[arg(long)]
    go: bool,
    /// Maximum number of messages.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Queues that quarantined messages may go back to: names, URLs or ARNs, comma-separated [default: the inbound and
    /// signals queues of the deployment]
    #[arg(long, value_name = "QUEUES", value_delimiter = ',')]
    sources: Option<Vec<String>>,
    /// Queue for messages of unknown source.
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,
    /// Delete failed MQTT requests other than updates of shadows.
    #[arg(long)]
    drop_requests: bool,
    #[command(flatten)]
    registrations: Directory,
    /// Data endpoint of AWS IoT, for notifications over MQTT.
    #[arg(long, value_name = "HOST", env = "ANTUMBRA_IOT_ENDPOINT")]
    iot_endpoint: Option<String>,
    #[command(flatten)]
    delivery_queues: DeliveryQueueNames,
    /// Make an update only in the shadows of the thing named like its client, as in the deployment.
    #[arg(long)]
    own_shadows_only: bool,
    /// Let updates remove the desired values that they reach, as in the deployment.
    #[arg(long)]
    acknowledge: bool,
    #[command(flatten)]
    bucket: history::BucketArguments,
}

pub(crate) async fn run(
    arguments: QueuesArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    if let QueuesCommand::Redrive(arguments) = &arguments.command
        && let Some(bucket) = history::bucket_name(&arguments.queue)
    {
        connection.check(Service::DynamoDb).await?;
        let RedriveArguments { limit, go, .. } = &**arguments;
        let redrive = &arguments.bucket;
        return redrive
            .redrive(bucket, *limit as usize, *go, connection, json)
            .await;
    }
    connection.check(Service::Sqs).await?;
    let sqs = aws_sdk_sqs::Client::new(&connection.aws().await);
    match arguments.command {
        QueuesCommand::Show {
            queue,
            limit,
            bodies,
        } => {
            let queue = SqsFailedQueue::open(&sqs, &queue).await?;
            let peeked = redrive::peek(&queue, limit as usize, usize::MAX).await?;
            output::print(&render::messages(&queue, &peeked, bodies, json))
        }
        QueuesCommand::Redrive(arguments) => {
            let queue = SqsFailedQueue::open(&sqs, &arguments.queue).await?;
            arguments.run(&queue, connection, json).await
        }
    }
}

impl RedriveArguments {
    async fn run(
        &self,
        queue: &SqsFailedQueue,
        connection: &Connection,
        json: bool,
    ) -> Result<(), CliError> {
        let sources = || {
            [queues::INBOUND, queues::SIGNALS]
                .map(|name| connection.queue(name))
                .to_vec()
        };
        let options = RedriveOptions {
            limit: self.limit as usize,
            sources: self.sources.clone().unwrap_or_else(sources),
            to: self.to.clone(),
            holds_deliveries: holds_deliveries(queue.name()),
            drop_requests: self.drop_requests,
            ..RedriveOptions::default()
        };
        let start = SystemClock.now();
        let messages = redrive::peek(queue, options.limit, usize::MAX)
            .await?
            .messages;
        if !self.go {
            let plan = redrive::plan(&messages, &options);
            return output::print(&render::redrive(queue, plan, false, json));
        }
        let needs_resender = |message| RedriveRoute::of(message, &options).needs_resender();
        let resender = match messages.iter().any(needs_resender) {
            true => Some(self.resender(queue, connection).await?),
            false => None,
        };
        let progress = Progress::of(messages.len(), "messages moved");
        let done = redrive::redrive(queue, &options, resender.as_ref(), start, |count| {
            progress.add(count);
            true
        });
        let done = done.await?;
        let failed = done.failed();
        output::print(&render::redrive(queue, done, true, json))?;
        match failed {
            0 => Ok(()),
            failed => Err(CliError::failed(format!(
                "{failed} messages could not be moved"
            ))),
        }
    }

    async fn resender(
        &self,
        queue: &SqsFailedQueue,
        connection: &Connection,
    ) -> Result<Resender, CliError> {
        let aws = connection.aws().await;
        let database = connection.sdk_config().await;
        let table = connection.table();
        // The queues of an emulator have no tenants.
        let is_aws = aws.endpoint_url().is_none();
        let ordered = self.delivery_queues.ordered(connection);
        let unordered = self.delivery_queues.unordered(connection);
        let channels = AwsChannelFactory::new(
            &aws,
            ChannelOptions {
                iot_endpoint: self.iot_endpoint.clone(),
                topic_prefix: connection.topic_prefix(),
                undeliverable: queue.url.clone(),
                queue_bytes: BYTES,
                tenants: is_aws,
                clients: Some(DeliveryQueues {
                    links: Arc::new(DynamoDbClients::connect(&database, table)),
                    deliveries: Arc::new(DynamoDbDeliveries::connect(&database, table)),
                    ordered: ordered.clone(),
                    unordered: unordered.clone(),
                }),
            },
        );
        let sqs = aws_sdk_sqs::Client::new(&aws);
        let deliveries = Deliveries::new(
            DynamoDbClients::connect(&database, table),
            DynamoDbDeliveries::connect(&database, table),
            Queues {
                ordered: Arc::new(SqsChannel::new(&sqs, &ordered)),
                unordered: Arc::new(SqsChannel::new(&sqs, &unordered)),
            },
            Arc::new(SystemClock),
        );
        let settings = connection.settings().await?;
        let model = settings.model(Model::default());
        let clock = Arc::new(SystemClock);
        let table = ShadowTableConfig::new(table).layout(settings.layout);
        let shadows = DynamoDbShadows::connect(&database, table);
        let topic_prefix = connection.topic_prefix();
        let endpoint = self.iot_endpoint.as_deref();
        let responses = IotChannel::connect(&aws, endpoint, topic_prefix.clone());
        let responses = Arc::new(responses);
        let mut config = antumbra_shadow_requests::Config {
            topic_prefix: topic_prefix.clone(),
            own_shadows_only: self.own_shadows_only,
            acknowledge: self.acknowledge,
            ..Default::default()
        };
        config.model = settings.model(config.model);
        let updates = ShadowRequests::new(shadows.clone(), config, responses, clock.clone());
        let registrations = self.registrations.load()?;
        let listener = Listener::new(registrations, &channels, model, clock.clone());
        let listener = listener.map_err(CliError::invalid)?;
        Ok(Resender {
            notifications: Some(Box::new(NotificationSender {
                channels: Box::new(channels),
                listener: listener.with_documents(shadows),
                records: Box::new(StreamRecords::connect(&database)),
            })),
            updates: Box::new(updates),
            deliveries: Box::new(deliveries),
            clock,
        })
    }
}

/// Returns whether a queue holds dead webhook deliveries. The operator names the queue, so no sender decides it.
fn holds_deliveries(name: &str) -> bool {
    let name = name.strip_suffix(".fifo").unwrap_or(name);
    name.ends_with("deliveries-dead")
}
