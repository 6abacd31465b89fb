//! `antumbra queues redrive`: moves failed messages back to their source.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::streams::RecordRange;
use antumbra_dynamodb::{DynamoDbClients, DynamoDbShadows, ShadowTableConfig};
use antumbra_notify::{Listener, UndeliverableNotification, files};
use antumbra_publish::AwsChannelFactory;
use antumbra_publish::sqs::{BYTES, SMALL_BYTES};
use antumbra_registration::Registrations;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_shadow::Model;
use aws_config::SdkConfig;
use clap::Args;

use super::client::QueueClient;
use super::route::{FailedMessage, RedriveRoute};
use crate::connection::Connection;
use crate::error::CliError;

/// Timeout of one message.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct RedriveArguments {
    /// Queue name, URL or ARN.
    queue: String,
    /// Move the messages instead of showing the plan.
    #[arg(long)]
    go: bool,
    /// Maximum number of messages.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Queue for messages of unknown source.
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,
    /// Delete failed MQTT requests.
    #[arg(long)]
    drop_requests: bool,
    /// Move dead letters one by one instead of letting SQS do it.
    #[arg(long)]
    one_by_one: bool,
    /// Directory of the deployed registrations.
    #[arg(long, default_value = "registrations", value_name = "DIR")]
    registrations: PathBuf,
    /// Data endpoint of AWS IoT, for notifications over MQTT.
    #[arg(long, value_name = "HOST", env = "ANTUMBRA_IOT_ENDPOINT")]
    iot_endpoint: Option<String>,
    /// Queue of ordered deliveries (mode every).
    #[arg(long, default_value = "antumbra-deliveries.fifo", value_name = "QUEUE")]
    ordered_queue: String,
    /// Queue of unordered deliveries (mode latest).
    #[arg(long, default_value = "antumbra-deliveries", value_name = "QUEUE")]
    unordered_queue: String,
    /// Member that makes an object a timestamped value, as in the deployment.
    #[arg(long, default_value_t = Model::default().timestamp_field, value_name = "NAME")]
    timestamp_field: String,
    /// Member that identifies elements of an array, as in the deployment.
    #[arg(long, default_value_t = Model::default().id_field, value_name = "NAME")]
    id_field: String,
}

/// Number of messages by reason, route and outcome.
#[derive(Debug, Default)]
pub(super) struct RedriveSummary {
    pub(super) rows: BTreeMap<(String, String, Outcome), usize>,
    /// False if only the plan was made.
    pub(super) executed: bool,
    /// Approximate number of messages that SQS moved itself.
    pub(super) moved_by_sqs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Planned,
    Moved,
    Dropped,
    Left,
    Failed(String),
}

impl RedriveSummary {
    fn count(&mut self, message: &FailedMessage, route: &RedriveRoute, outcome: Outcome) {
        let row = (message.reason(), route.describe(), outcome);
        *self.rows.entry(row).or_default() += 1;
    }

    /// Returns the number of messages that could not be moved.
    pub(super) fn failed(&self) -> usize {
        let failed = self
            .rows
            .iter()
            .filter(|((_, _, outcome), _)| self.executed && matches!(outcome, Outcome::Failed(_)));
        failed.map(|(_, count)| count).sum()
    }
}

impl RedriveArguments {
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    pub(super) async fn run(
        &self,
        queue: &QueueClient,
        connection: &Connection,
    ) -> Result<RedriveSummary, CliError> {
        // A message that fails again reappears at once; it is not moved a second time.
        let start = SystemClock.now();
        let messages = queue.peek(self.limit as usize).await?;
        let route = |message: &FailedMessage| message.route(self.to.as_deref());
        if !self.go {
            let mut summary = RedriveSummary::default();
            for message in &messages {
                let route = route(message);
                summary.count(message, &route, self.plan(&route));
            }
            return Ok(summary);
        }
        let all_dead = !messages.is_empty() && messages.iter().all(FailedMessage::is_dead_letter);
        if all_dead && !self.one_by_one {
            let count = queue.count().await?;
            if queue.redrive_by_sqs().await? {
                return Ok(RedriveSummary {
                    executed: true,
                    moved_by_sqs: Some(count),
                    ..RedriveSummary::default()
                });
            }
        }
        let redriver = Redriver::open(self, &messages, queue, connection).await?;
        self.execute(queue, &redriver, start.nanoseconds() / 1_000_000)
            .await
    }

    /// Plans the outcome of a message.
    fn plan(&self, route: &RedriveRoute) -> Outcome {
        match route {
            RedriveRoute::Request if self.drop_requests => Outcome::Dropped,
            RedriveRoute::Request | RedriveRoute::None(_) => Outcome::Left,
            _ => Outcome::Planned,
        }
    }

    async fn execute(
        &self,
        queue: &QueueClient,
        redriver: &Redriver,
        start: i128,
    ) -> Result<RedriveSummary, CliError> {
        let mut summary = RedriveSummary {
            executed: true,
            ..RedriveSummary::default()
        };
        let mut left: BTreeMap<String, String> = BTreeMap::new();
        let mut blocked_groups: HashSet<String> = HashSet::new();
        let mut handled = 0;
        let result = loop {
            let received = match queue.receive().await {
                Ok(received) => received,
                Err(error) => break Err(error),
            };
            let only_known = received
                .iter()
                .all(|message| left.contains_key(&message.id));
            for message in received {
                let group = message.group.clone().filter(|_| queue.is_fifo());
                let is_blocked = group
                    .as_ref()
                    .is_some_and(|group| blocked_groups.contains(group));
                let is_new = i128::from(message.sent) < start && !left.contains_key(&message.id);
                if !is_new || is_blocked || handled >= self.limit {
                    left.insert(message.id, message.receipt);
                    continue;
                }
                handled += 1;
                let outcome = self
                    .move_message(queue, redriver, &message, &mut summary)
                    .await;
                match outcome {
                    Ok(true) => {}
                    Ok(false) => {
                        blocked_groups.extend(group);
                        left.insert(message.id, message.receipt);
                    }
                    Err(error) => {
                        let receipts: Vec<&str> = left.values().map(String::as_str).collect();
                        queue.release(&receipts).await?;
                        return Err(error);
                    }
                }
                if handled % 100 == 0 {
                    anstream::eprintln!("{handled} messages so far");
                }
            }
            if only_known || handled >= self.limit {
                break Ok(());
            }
        };
        let receipts: Vec<&str> = left.values().map(String::as_str).collect();
        queue.release(&receipts).await?;
        result.map(|()| summary)
    }

    /// Moves one message and returns true if it left the queue. It is deleted only after it was sent.
    async fn move_message(
        &self,
        queue: &QueueClient,
        redriver: &Redriver,
        message: &FailedMessage,
        summary: &mut RedriveSummary,
    ) -> Result<bool, CliError> {
        let route = message.route(self.to.as_deref());
        let outcome = match self.plan(&route) {
            Outcome::Planned => match redriver.send(queue, message, &route).await {
                Ok(()) => Outcome::Moved,
                Err(reason) => Outcome::Failed(reason.chars().take(200).collect()),
            },
            other => other,
        };
        let is_done = matches!(outcome, Outcome::Moved | Outcome::Dropped);
        if is_done {
            queue.delete(message).await?;
        }
        summary.count(message, &route, outcome);
        Ok(is_done)
    }
}

/// Sends messages back. Channels and listener are opened only if a message needs them.
struct Redriver {
    sender: Option<Sender>,
}

struct Sender {
    registrations: Registrations,
    channels: AwsChannelFactory,
    listener: Listener,
    streams: aws_sdk_dynamodbstreams::Client,
}

impl Redriver {
    async fn open(
        arguments: &RedriveArguments,
        messages: &[FailedMessage],
        queue: &QueueClient,
        connection: &Connection,
    ) -> Result<Redriver, CliError> {
        let needed = messages.iter().any(|message| {
            matches!(
                message.route(None),
                RedriveRoute::Registration(_) | RedriveRoute::Stream(_)
            )
        });
        let sender = match needed {
            true => Some(Sender::open(arguments, queue, connection).await?),
            false => None,
        };
        Ok(Redriver { sender })
    }

    async fn send(
        &self,
        queue: &QueueClient,
        message: &FailedMessage,
        route: &RedriveRoute,
    ) -> Result<(), String> {
        match (route, &self.sender) {
            (RedriveRoute::Queue(to), _) => queue.send(message, to).await,
            (RedriveRoute::Registration(notification), Some(sender)) => {
                sender.notification(notification).await
            }
            (RedriveRoute::Stream(range), Some(sender)) => sender.records(range).await,
            _ => Err("it arrived during the redrive; run the command again".to_owned()),
        }
    }
}

impl Sender {
    async fn open(
        arguments: &RedriveArguments,
        queue: &QueueClient,
        connection: &Connection,
    ) -> Result<Sender, CliError> {
        let load = || {
            files::load(&arguments.registrations, &|name| std::env::var(name).ok()).map_err(
                |error| CliError::invalid(format!("registrations: {}", error.lines().join("\n"))),
            )
        };
        let aws = connection.aws().await;
        let database = connection.sdk_config().await;
        let channels = channels(arguments, queue, connection, &aws, &database);
        let model = Model {
            timestamp_field: arguments.timestamp_field.clone(),
            id_field: arguments.id_field.clone(),
            ..Model::default()
        };
        let shadows =
            DynamoDbShadows::connect(&database, ShadowTableConfig::new(connection.table()));
        let listener = Listener::new(load()?, &channels, model, Arc::new(SystemClock))
            .map_err(CliError::invalid)?
            .with_documents(Arc::new(shadows));
        Ok(Sender {
            registrations: load()?,
            channels,
            listener,
            streams: aws_sdk_dynamodbstreams::Client::new(&database),
        })
    }

    async fn notification(&self, notification: &UndeliverableNotification) -> Result<(), String> {
        let deadline = SystemClock.now().after(TIMEOUT);
        let sent = notification.send(&self.registrations, &self.channels, deadline, &SystemClock);
        sent.await.map_err(|error| error.to_string())
    }

    /// Passes the records to the listener. New undeliverable notifications go to the undeliverable queue again.
    async fn records(&self, range: &RecordRange) -> Result<(), String> {
        let events = range.events(&self.streams).await;
        for event in events.map_err(|error| error.to_string())? {
            let deadline = SystemClock.now().after(TIMEOUT);
            let handled = self.listener.handle(&event, deadline).await;
            let handled = handled.map_err(|error| error.to_string())?;
            if let Some(record) = handled.resume_at {
                return Err(format!(
                    "not all notifications from record {record} on could be sent"
                ));
            }
        }
        Ok(())
    }
}

fn channels(
    arguments: &RedriveArguments,
    queue: &QueueClient,
    connection: &Connection,
    aws: &SdkConfig,
    database: &SdkConfig,
) -> AwsChannelFactory {
    let endpoint = arguments.iot_endpoint.as_deref();
    // The queues of an emulator have a smaller size limit and no tenants.
    let is_aws = aws.endpoint_url().is_none();
    AwsChannelFactory::new(aws, endpoint, queue.url.clone())
        .with_queue_bytes(if is_aws { BYTES } else { SMALL_BYTES })
        .with_tenants(is_aws)
        .with_clients(
            Arc::new(DynamoDbClients::connect(database, connection.table())),
            arguments.ordered_queue.clone(),
            arguments.unordered_queue.clone(),
        )
}
