//! `antumbra clients …`: who is told of sensors, and what they were told.

// The docs of arguments are help texts, read in a terminal.
#![allow(rustdoc::bare_urls)]

mod render;

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries};
use antumbra_publish::SqsChannel;
use antumbra_publish::webhook::{Allow, Guard};
use antumbra_service::clients::{ClientId, ClientPatch, Clients, KEEP_PREVIOUS, Mode, NewClient};
use antumbra_service::clock::SystemClock;
use antumbra_service::deliveries::{Deliveries, DeliveryId, HistoryQuery, Queues, Status, Subject};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::SensorId;
use antumbra_service::store::Version;
use antumbra_shadow::Timestamp;
use clap::{Args, Subcommand};

use crate::connect::Connection;
use crate::error::CliError;
use crate::progress::Progress;

#[derive(Debug, Args)]
pub(crate) struct ClientsArguments {
    /// What webhooks may call beside the public internet, as the deployment has it. With --local this
    /// machine.
    #[arg(long, global = true, value_name = "LIST", env = "WEBHOOK_ALLOW")]
    webhook_allow: Option<Allow>,
    /// The queue of deliveries in order, by name, URL or ARN.
    #[arg(long, global = true, default_value = "antumbra-deliveries.fifo")]
    ordered_queue: String,
    /// The queue of deliveries in any order.
    #[arg(long, global = true, default_value = "antumbra-deliveries")]
    unordered_queue: String,
    #[command(subcommand)]
    command: ClientsCommand,
}

#[derive(Debug, Subcommand)]
enum ClientsCommand {
    /// Make a client. Its secret is shown this once.
    ///
    /// Example: antumbra clients create "Night watch" https://hooks.example.com/in --id night-watch
    Create {
        /// What people call it.
        name: String,
        /// Where deliveries are POSTed.
        url: String,
        /// Its id; one is made up without it.
        #[arg(long)]
        id: Option<ClientId>,
        /// every: all changes in order; latest: only what is still so.
        #[arg(long, default_value = "every")]
        mode: Mode,
    },
    /// Show a client.
    ///
    /// Example: antumbra clients show night-watch
    Show {
        /// The client.
        id: ClientId,
    },
    /// List all clients.
    ///
    /// Example: antumbra clients list --limit 20
    List(Paging),
    /// Change a client.
    ///
    /// Example: antumbra clients update night-watch --url https://hooks.example.com/new
    Update {
        /// The client.
        id: ClientId,
        /// Another name.
        #[arg(long)]
        name: Option<String>,
        /// Another URL.
        #[arg(long)]
        url: Option<String>,
        /// Another mode.
        #[arg(long)]
        mode: Option<Mode>,
        /// Only if this version is stored.
        #[arg(long)]
        expected: Option<i64>,
    },
    /// Delete a client.
    ///
    /// Example: antumbra clients delete night-watch --cascade
    Delete {
        /// The client.
        id: ClientId,
        /// With its links to sensors.
        #[arg(long)]
        cascade: bool,
        /// Only if this version is stored.
        #[arg(long)]
        expected: Option<i64>,
    },
    /// Make a new secret, shown this once; the one before goes on signing for a while.
    ///
    /// Example: antumbra clients rotate-secret night-watch --keep-seconds 3600
    RotateSecret {
        /// The client.
        id: ClientId,
        /// How long both secrets sign.
        #[arg(long, default_value_t = KEEP_PREVIOUS.as_secs())]
        keep_seconds: u64,
    },
    /// Send to a client again, with what was parked meanwhile.
    ///
    /// Example: antumbra clients enable night-watch
    Enable {
        /// The client.
        id: ClientId,
    },
    /// Stop sending to a client; what occurs is kept.
    ///
    /// Example: antumbra clients disable night-watch --reason "moving house"
    Disable {
        /// The client.
        id: ClientId,
        /// Why.
        #[arg(long, default_value = "asked for")]
        reason: String,
    },
    /// Have a client told of a sensor.
    ///
    /// Example: antumbra clients link night-watch door-7
    Link {
        /// The client.
        id: ClientId,
        /// The sensor.
        sensor: String,
    },
    /// Have a client told of a sensor no more.
    ///
    /// Example: antumbra clients unlink night-watch door-7
    Unlink {
        /// The client.
        id: ClientId,
        /// The sensor.
        sensor: String,
    },
    /// The sensors a client is told of.
    ///
    /// Example: antumbra clients sensors night-watch
    Sensors {
        /// The client.
        id: ClientId,
        #[command(flatten)]
        paging: Paging,
    },
    /// Send a client a delivery that tells nothing but that it arrives.
    ///
    /// Example: antumbra clients test night-watch
    Test {
        /// The client.
        id: ClientId,
    },
    /// What a client was sent, the newest first.
    ///
    /// Example: antumbra clients deliveries night-watch --status dead
    Deliveries {
        /// The client.
        id: ClientId,
        /// Only what occurred since this time (RFC 3339).
        #[arg(long)]
        since: Option<String>,
        /// Only what has come to this: delivered, failed, dead, parked, skipped, superseded or pending.
        #[arg(long)]
        status: Option<Status>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Send one delivery again, or all of a client that did not arrive since a time.
    ///
    /// Example: antumbra clients redeliver night-watch --since 2026-01-31T12:00:00Z
    Redeliver {
        /// A delivery's id, or with --since a client's.
        id: String,
        /// All since this time (RFC 3339).
        #[arg(long)]
        since: Option<String>,
        /// Those that did arrive too.
        #[arg(long, requires = "since")]
        delivered: bool,
    },
}

#[derive(Debug, Args)]
struct Paging {
    /// How many to show at most.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on where an earlier listing stopped.
    #[arg(long)]
    cursor: Option<String>,
}

impl Paging {
    fn cursor(&self) -> Option<Cursor> {
        self.cursor.clone().map(Cursor)
    }
}

type Desk = Clients<DynamoDbClients, Guard>;
type Books = Deliveries<DynamoDbClients, DynamoDbDeliveries>;

pub(crate) async fn run(
    arguments: ClientsArguments,
    connection: &Connection,
    json: bool,
) -> Result<String, CliError> {
    let database = connection.sdk_config().await;
    let store = DynamoDbClients::connect(&database, connection.table());
    let allow = match &arguments.webhook_allow {
        Some(allow) => allow.clone(),
        None if connection.is_local() => antumbra_local::stack::Webhooks::default().allow,
        None => Allow::default(),
    };
    let desk: Desk = Clients::new(store.clone(), Guard::new(allow), Arc::new(SystemClock));
    let aws = connection.aws().await;
    let sqs = aws_sdk_sqs::Client::new(&aws);
    let queues = Queues {
        ordered: Arc::new(SqsChannel::new(&sqs, &arguments.ordered_queue)),
        unordered: Arc::new(SqsChannel::new(&sqs, &arguments.unordered_queue)),
    };
    let history = DynamoDbDeliveries::connect(&database, connection.table());
    let books: Books = Deliveries::new(store, history, queues, Arc::new(SystemClock));
    act(arguments.command, &desk, &books, json).await
}

async fn act(
    command: ClientsCommand,
    desk: &Desk,
    books: &Books,
    json: bool,
) -> Result<String, CliError> {
    use ClientsCommand as C;
    match command {
        C::Create {
            name,
            url,
            id,
            mode,
        } => {
            let new = NewClient {
                id,
                name,
                url,
                mode,
                requested: None,
            };
            let made = desk.create(new).await?;
            Ok(render::created(&made.client, &made.secret, json))
        }
        C::Show { id } => Ok(render::client(&desk.get(&id).await?, json)),
        C::List(paging) => {
            let page = desk
                .list(paging.limit as usize, paging.cursor().as_ref())
                .await?;
            Ok(render::clients(&page, json))
        }
        C::Update {
            id,
            name,
            url,
            mode,
            expected,
        } => {
            let patch = ClientPatch { name, url, mode };
            Ok(render::client(
                &desk.update(&id, patch, expected.map(Version)).await?,
                json,
            ))
        }
        C::Delete {
            id,
            cascade,
            expected,
        } => {
            desk.delete(&id, expected.map(Version), cascade).await?;
            Ok(render::said("deleted", &id.to_string(), json))
        }
        C::RotateSecret { id, keep_seconds } => {
            let keep = Duration::from_secs(keep_seconds);
            let rotated = desk.rotate_secret(&id, keep, None).await?;
            Ok(render::secret(&id, &rotated.secret, json))
        }
        C::Enable { id } => {
            let sent = books.enable(&id).await?;
            Ok(render::counted(
                "enabled",
                sent,
                "parked deliveries were queued",
                json,
            ))
        }
        C::Disable { id, reason } => Ok(render::client(&desk.disable(&id, &reason).await?, json)),
        C::Link { id, sensor } => {
            desk.link(&id, &sensor_id(sensor)?).await?;
            Ok(render::said("linked", &id.to_string(), json))
        }
        C::Unlink { id, sensor } => {
            desk.unlink(&id, &sensor_id(sensor)?).await?;
            Ok(render::said("unlinked", &id.to_string(), json))
        }
        C::Sensors { id, paging } => {
            let limit = paging.limit as usize;
            let page = desk
                .links_of_client(&id, limit, paging.cursor().as_ref())
                .await?;
            Ok(render::links(&page, json))
        }
        C::Test { id } => {
            let delivery = books.test(&id).await?;
            Ok(render::said("queued", &delivery.to_string(), json))
        }
        C::Deliveries {
            id,
            since,
            status,
            paging,
        } => {
            let query = HistoryQuery {
                from: since.as_deref().map(time).transpose()?,
                status,
                limit: paging.limit as usize,
                ..HistoryQuery::of(Subject::Client(id))
            };
            let page = books.list(&query, paging.cursor().as_ref()).await?;
            Ok(render::deliveries(&page, json))
        }
        C::Redeliver {
            id,
            since,
            delivered,
        } => match since {
            None => {
                let id: DeliveryId = id.parse().map_err(CliError::invalid)?;
                books.redeliver(&id).await?;
                Ok(render::said("queued", &id.to_string(), json))
            }
            Some(since) => {
                let client: ClientId = id.parse().map_err(CliError::invalid)?;
                let queued = all_since(books, &client, time(&since)?, delivered).await?;
                Ok(render::counted("queued", queued, "deliveries", json))
            }
        },
    }
}

/// A page at a time, saying how far it is.
async fn all_since(
    books: &Books,
    client: &ClientId,
    since: Timestamp,
    delivered: bool,
) -> Result<usize, CliError> {
    let progress = Progress::new("deliveries queued");
    let mut queued = 0;
    let mut cursor = None;
    loop {
        let done = books
            .redeliver_since(client, since, delivered, cursor.as_ref())
            .await?;
        queued += done.queued;
        cursor = done.next;
        if cursor.is_none() {
            return Ok(queued);
        }
        progress.step(done.queued);
    }
}

fn sensor_id(text: String) -> Result<SensorId, CliError> {
    SensorId::new(text).map_err(CliError::invalid)
}

fn time(text: &str) -> Result<Timestamp, CliError> {
    Timestamp::parse(text).ok_or_else(|| {
        CliError::invalid(format!("{text:?} is no time such as 2026-01-31T12:00:00Z"))
    })
}
