//! The use cases behind the routes, and their wiring.

use std::fmt;
use std::sync::Arc;

use antumbra_dynamodb::{
    Client, DynamoDbClients, DynamoDbDeliveries, DynamoDbHistory, DynamoDbIdempotency,
    DynamoDbInbox, DynamoDbSensors, DynamoDbShadows, DynamoDbSuspensions, Feed, HistoryReader,
    ShadowTableConfig, client,
};
use antumbra_notify::files::FilesError;
use antumbra_notify::redrive::Resender;
use antumbra_publish::webhook::Guard;
use antumbra_publish::{LazyClient, SqsChannel};
use antumbra_service::clients::Clients;
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::inbox::Outbound;
use antumbra_service::notifications::{Channel, ChannelLimits, Message, SendError};
use antumbra_service::sensors::{Sensors, ValueType};
use antumbra_service::shadows::Shadows;
use antumbra_shadow_requests::ShadowRequests;
use async_trait::async_trait;
use aws_types::SdkConfig;
use axum::Router;
use axum::extract::State;

use crate::failed_messages::FailedMessageQueues;
use crate::outbound_messages::OutboundMessages;
use crate::{AuthMode, Config, router};

type Files = Arc<[(String, String)]>;

/// Reads names and texts of the files of all registrations.
#[derive(Clone)]
pub struct RegistrationFiles(Arc<dyn Fn() -> Result<Files, FilesError> + Send + Sync>);

impl RegistrationFiles {
    pub fn new(
        read: impl Fn() -> Result<Files, FilesError> + Send + Sync + 'static,
    ) -> RegistrationFiles {
        RegistrationFiles(Arc::new(read))
    }

    pub fn read(&self) -> Result<Files, FilesError> {
        (self.0)()
    }
}

impl fmt::Debug for RegistrationFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistrationFiles").finish_non_exhaustive()
    }
}

pub struct Services {
    pub shadows: Shadows<DynamoDbShadows>,
    /// `None` if the history is switched off.
    pub history: Option<HistoryReader>,
    /// `None` if the history or the change feed is switched off.
    pub feed: Option<Feed>,
    /// Responses may be streams, which Lambda does not send.
    pub streams: bool,
    pub messages: DynamoDbInbox,
    pub outbound: Outbound,
    pub outbound_messages: OutboundMessages,
    pub sensors: Sensors<DynamoDbSensors>,
    pub clients: Clients<DynamoDbClients, Guard>,
    pub deliveries: Deliveries<DynamoDbClients, DynamoDbDeliveries>,
    pub registrations: RegistrationFiles,
    /// Registrations whose targets fail.
    pub suspensions: DynamoDbSuspensions,
    pub failed_messages: FailedMessageQueues,
    /// Values that signals may have.
    pub signal_values: ValueType,
    pub idempotency: DynamoDbIdempotency,
    pub clock: Arc<dyn Clock>,
}

pub(crate) type Api = State<Arc<Services>>;

/// Wires the function with a client of DynamoDB.
pub fn build(
    database: Client,
    mut config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Router {
    let auth = std::mem::replace(&mut config.auth, AuthMode::Tokens(Vec::new()));
    router(services_with(database, config, sdk, clock), auth)
}

/// Wires the use cases, without the authentication of callers.
pub fn services(config: Config, sdk: &SdkConfig, clock: Arc<dyn Clock>) -> Services {
    services_with(client(sdk), config, sdk, clock)
}

fn services_with(
    database: Client,
    config: Config,
    sdk: &SdkConfig,
    clock: Arc<dyn Clock>,
) -> Services {
    let table = &config.table;
    let shadows = ShadowTableConfig::new(table).layout(config.layout);
    let shadows = DynamoDbShadows::new(database.clone(), shadows);
    let clients = DynamoDbClients::new(database.clone(), table);
    let sqs = LazyClient::sqs(sdk);
    let queue = |url| {
        let channel = SqsChannel::new(&sqs, url).with_bytes(config.queue_bytes);
        Arc::new(channel.with_tenants(config.tenants))
    };
    let queues = Queues {
        ordered: queue(&config.queues.deliveries_fifo),
        unordered: queue(&config.queues.deliveries),
    };
    let history = config.history.map(|history| {
        let history = DynamoDbHistory::new(database.clone(), history);
        history.reader(shadows.clone(), config.model.clone())
    });
    let feed = history.clone().filter(|_| config.feed);
    let feed = feed.map(|history| history.feed(Arc::clone(&clock)));
    let updates = ShadowRequests::new(
        shadows.clone(),
        config.updates,
        Arc::new(Unpublished),
        Arc::clone(&clock),
    );

    let stored = DynamoDbDeliveries::new(database.clone(), table);
    let deliveries = Deliveries::new(clients.clone(), stored, queues, Arc::clone(&clock));
    let resender = Resender {
        notifications: None,
        updates: Box::new(updates),
        deliveries: Box::new(deliveries.clone()),
        clock: Arc::clone(&clock),
    };
    Services {
        history,
        feed,
        streams: config.streams,
        shadows: Shadows::with_clock(shadows, Arc::clone(&clock)).with_model(config.model),
        messages: DynamoDbInbox::new(database.clone(), config.messages_table),
        outbound: Outbound {
            queue: queue(&config.outbound_queue_url),
            clock: Arc::clone(&clock),
        },
        outbound_messages: OutboundMessages {
            sqs: sqs.clone(),
            url: config.outbound_queue_url,
        },
        sensors: Sensors::with_clock(
            DynamoDbSensors::new(database.clone(), config.sensors),
            Arc::clone(&clock),
        ),
        clients: Clients::new(
            clients,
            Guard::new(config.webhook_allow),
            Arc::clone(&clock),
        ),
        deliveries,
        registrations: config.registrations,
        suspensions: DynamoDbSuspensions::new(database.clone(), table),
        failed_messages: FailedMessageQueues {
            sqs,
            urls: config.queues,
            resender,
            clock: Arc::clone(&clock),
        },
        signal_values: config.signal_values,
        idempotency: DynamoDbIdempotency::new(database, table),
        clock,
    }
}

/// Drops the responses to updates that are made again: nobody waits for them any more.
struct Unpublished;

#[async_trait]
impl Channel for Unpublished {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 1,
            batch_bytes: usize::MAX,
            message_bytes: usize::MAX,
        }
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>> {
        messages.iter().map(|_| Ok(())).collect()
    }
}
