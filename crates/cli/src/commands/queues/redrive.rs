//! Putting messages back where they came from.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbShadows, ShadowTableConfig};
use antumbra_local::stream::Range;
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
use crate::connect::Connection;
use crate::error::CliError;

/// How long one message may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Redriving {
    /// The queue: its name, URL or ARN.
    queue: String,
    /// Do it.
    #[arg(long)]
    go: bool,
    /// How many messages at most.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Where messages go that do not say where they came from.
    #[arg(long, value_name = "QUEUE")]
    to: Option<String>,
    /// Delete requests over MQTT that came to nothing.
    #[arg(long)]
    drop_requests: bool,
    /// Move dead letters here rather than having SQS do it.
    #[arg(long)]
    one_by_one: bool,
    /// The registrations as they are deployed.
    #[arg(long, default_value = "registrations", value_name = "DIR")]
    registrations: PathBuf,
    /// The account's data endpoint of AWS IoT, for notifications over MQTT.
    #[arg(long, value_name = "HOST", env = "ANTUMBRA_IOT_ENDPOINT")]
    iot_endpoint: Option<String>,
    /// The queue of deliveries in order.
    #[arg(long, default_value = "antumbra-deliveries.fifo", value_name = "QUEUE")]
    ordered_queue: String,
    /// The queue of deliveries in any order.
    #[arg(long, default_value = "antumbra-deliveries", value_name = "QUEUE")]
    unordered_queue: String,
    /// The member that makes an object a timestamped value, as the deployment has it.
    #[arg(long, default_value_t = Model::default().timestamp_field, value_name = "NAME")]
    timestamp_field: String,
    /// The member that tells elements of an array apart, as the deployment has it.
    #[arg(long, default_value_t = Model::default().id_field, value_name = "NAME")]
    id_field: String,
}

/// What was done, or would be: how many messages, by reason, way and outcome.
#[derive(Debug, Default)]
pub(super) struct RedriveSummary {
    pub(super) rows: BTreeMap<(String, String, Outcome), usize>,
    /// Whether it was done at all.
    pub(super) went: bool,
    /// About how many SQS moved by itself.
    pub(super) by_sqs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Would,
    Moved,
    Dropped,
    Left,
    Failed(String),
}

impl RedriveSummary {
    fn count(&mut self, message: &FailedMessage, way: &RedriveRoute, outcome: Outcome) {
        let row = (message.reason(), way.words(), outcome);
        *self.rows.entry(row).or_default() += 1;
    }

    /// Messages that should have gone and did not.
    pub(super) fn failed(&self) -> usize {
        let failed = self
            .rows
            .iter()
            .filter(|((_, _, outcome), _)| self.went && matches!(outcome, Outcome::Failed(_)));
        failed.map(|(_, count)| count).sum()
    }
}

impl Redriving {
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    pub(super) async fn run(
        &self,
        desk: &QueueClient,
        connection: &Connection,
    ) -> Result<RedriveSummary, CliError> {
        // A message that is refused again comes back at once: it is not sent a second time.
        let start = SystemClock.now();
        let lying = desk.look(self.limit as usize).await?;
        let way = |message: &FailedMessage| message.way(self.to.as_deref());
        if !self.go {
            let mut done = RedriveSummary::default();
            for message in &lying {
                let way = way(message);
                done.count(message, &way, self.outlook(&way));
            }
            return Ok(done);
        }
        let all_dead = !lying.is_empty() && lying.iter().all(FailedMessage::is_dead_letter);
        if all_dead && !self.one_by_one {
            let count = desk.count().await?;
            if desk.start_moving().await?.is_some() {
                return Ok(RedriveSummary {
                    went: true,
                    by_sqs: Some(count),
                    ..RedriveSummary::default()
                });
            }
        }
        let road = Redriver::open(self, &lying, desk, connection).await?;
        self.go(desk, &road, start.nanoseconds() / 1_000_000).await
    }

    /// What would become of a message.
    fn outlook(&self, way: &RedriveRoute) -> Outcome {
        match way {
            RedriveRoute::Request if self.drop_requests => Outcome::Dropped,
            RedriveRoute::Request | RedriveRoute::None(_) => Outcome::Left,
            _ => Outcome::Would,
        }
    }

    async fn go(
        &self,
        desk: &QueueClient,
        road: &Redriver,
        start: i128,
    ) -> Result<RedriveSummary, CliError> {
        let mut done = RedriveSummary {
            went: true,
            ..RedriveSummary::default()
        };
        let mut left: BTreeMap<String, String> = BTreeMap::new();
        let mut held: HashSet<String> = HashSet::new();
        let mut handled = 0;
        let result = loop {
            let taken = match desk.take().await {
                Ok(taken) => taken,
                Err(failure) => break Err(failure),
            };
            let known = taken.iter().all(|message| left.contains_key(&message.id));
            for message in taken {
                let group = message.group.clone().filter(|_| desk.is_fifo());
                let waits = group.as_ref().is_some_and(|group| held.contains(group));
                let is_new = i128::from(message.sent) < start && !left.contains_key(&message.id);
                if !is_new || waits || handled >= self.limit {
                    left.insert(message.id, message.receipt);
                    continue;
                }
                handled += 1;
                let outcome = self.one(desk, road, &message, &mut done).await;
                match outcome {
                    Ok(true) => {}
                    Ok(false) => {
                        held.extend(group);
                        left.insert(message.id, message.receipt);
                    }
                    Err(failure) => {
                        let receipts: Vec<&str> = left.values().map(String::as_str).collect();
                        desk.put_back(&receipts).await?;
                        return Err(failure);
                    }
                }
                if handled % 100 == 0 {
                    anstream::eprintln!("{handled} messages so far");
                }
            }
            if known || handled >= self.limit {
                break Ok(());
            }
        };
        let receipts: Vec<&str> = left.values().map(String::as_str).collect();
        desk.put_back(&receipts).await?;
        result.map(|()| done)
    }

    /// Moves one message; whether it is gone from here. It goes only once it is elsewhere.
    async fn one(
        &self,
        desk: &QueueClient,
        road: &Redriver,
        message: &FailedMessage,
        done: &mut RedriveSummary,
    ) -> Result<bool, CliError> {
        let way = message.way(self.to.as_deref());
        let outcome = match self.outlook(&way) {
            Outcome::Would => match road.send(desk, message, &way).await {
                Ok(()) => Outcome::Moved,
                Err(reason) => Outcome::Failed(reason.chars().take(200).collect()),
            },
            other => other,
        };
        let gone = matches!(outcome, Outcome::Moved | Outcome::Dropped);
        if gone {
            desk.delete(message).await?;
        }
        done.count(message, &way, outcome);
        Ok(gone)
    }
}

/// What it takes to send notifications again; opened only where there are some.
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
        redriving: &Redriving,
        lying: &[FailedMessage],
        desk: &QueueClient,
        connection: &Connection,
    ) -> Result<Redriver, CliError> {
        let needed = lying.iter().any(|message| {
            matches!(
                message.way(None),
                RedriveRoute::Registration(_) | RedriveRoute::Stream(_)
            )
        });
        let sender = match needed {
            true => Some(Sender::open(redriving, desk, connection).await?),
            false => None,
        };
        Ok(Redriver { sender })
    }

    async fn send(
        &self,
        desk: &QueueClient,
        message: &FailedMessage,
        way: &RedriveRoute,
    ) -> Result<(), String> {
        match (way, &self.sender) {
            (RedriveRoute::Queue(queue), _) => desk.send(message, queue).await,
            (RedriveRoute::Registration(parked), Some(sender)) => sender.notification(parked).await,
            (RedriveRoute::Stream(range), Some(sender)) => sender.records(range).await,
            _ => Err("it came while others were moved: once more".to_owned()),
        }
    }
}

impl Sender {
    async fn open(
        redriving: &Redriving,
        desk: &QueueClient,
        connection: &Connection,
    ) -> Result<Sender, CliError> {
        let load = || {
            files::load(&redriving.registrations, &|name| std::env::var(name).ok()).map_err(
                |error| CliError::invalid(format!("registrations: {}", error.lines().join("\n"))),
            )
        };
        let aws = connection.aws().await;
        let database = connection.sdk_config().await;
        let channels = channels(redriving, desk, connection, &aws, &database);
        let model = Model {
            timestamp_field: redriving.timestamp_field.clone(),
            id_field: redriving.id_field.clone(),
            ..Model::default()
        };
        let shadows =
            DynamoDbShadows::connect(&database, ShadowTableConfig::new(connection.table()));
        let listener = Listener::new(load()?, &channels, model, Arc::new(SystemClock))
            .map_err(CliError::invalid)?
            .with_documents(Arc::new(Arc::new(shadows)));
        Ok(Sender {
            registrations: load()?,
            channels,
            listener,
            streams: aws_sdk_dynamodbstreams::Client::new(&database),
        })
    }

    async fn notification(&self, parked: &UndeliverableNotification) -> Result<(), String> {
        let deadline = SystemClock.now().after(PATIENCE);
        let sent = parked.send(&self.registrations, &self.channels, deadline, &SystemClock);
        sent.await.map_err(|error| error.to_string())
    }

    /// Does what the listener would have done. What it parks lies in the undeliverable queue anew.
    async fn records(&self, range: &Range) -> Result<(), String> {
        let events = range.events(&self.streams).await;
        for event in events.map_err(|error| error.to_string())? {
            let deadline = SystemClock.now().after(PATIENCE);
            let handled = self.listener.handle(&event, deadline).await;
            let handled = handled.map_err(|error| error.to_string())?;
            if let Some(record) = handled.resume_at {
                return Err(format!(
                    "not everything could be sent from record {record} on"
                ));
            }
        }
        Ok(())
    }
}

fn channels(
    redriving: &Redriving,
    desk: &QueueClient,
    connection: &Connection,
    aws: &SdkConfig,
    database: &SdkConfig,
) -> AwsChannelFactory {
    let endpoint = redriving.iot_endpoint.as_deref();
    // An emulator's queues take less, and know no tenants.
    let real = aws.endpoint_url().is_none();
    AwsChannelFactory::new(aws, endpoint, desk.url.clone())
        .with_queue_bytes(if real { BYTES } else { SMALL_BYTES })
        .with_tenants(real)
        .with_clients(
            Arc::new(DynamoDbClients::connect(database, connection.table())),
            redriving.ordered_queue.clone(),
            redriving.unordered_queue.clone(),
        )
}
