//! The use cases over fresh tables. The tests of the console use this file too.

use std::sync::Arc;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbHistory, DynamoDbIdempotency, DynamoDbInbox,
    DynamoDbSensors, DynamoDbShadows, DynamoDbSuspensions, HISTORY, HistoryConfig, MAIN, MESSAGES,
    SensorConfig, ShadowTableConfig,
};
use antumbra_http_api::{
    FailedMessageQueues, OutboundMessages, QueueUrls, RegistrationFiles, Services,
};
use antumbra_notify::redrive::Resender;
use antumbra_publish::webhook::Guard;
use antumbra_service::clients::Clients;
use antumbra_service::clock::{ManualClock, SystemClock};
use antumbra_service::deliveries::{Deliveries, Queues};
use antumbra_service::inbox::Outbound;
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::Shadows;
use antumbra_shadow::{Model, Timestamp};
use antumbra_shadow_requests::ShadowRequests;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::{Endpoint, TestTable};

/// Names and texts of registration files.
pub(crate) type Files = Arc<[(String, String)]>;

/// The use cases, and what is behind them.
pub(crate) struct TestServices {
    pub(crate) services: Services,
    /// Proxy of all calls to DynamoDB.
    pub(crate) endpoint: Endpoint,
    pub(crate) database: aws_sdk_dynamodb::Client,
    pub(crate) table: String,
    pub(crate) history: DynamoDbHistory,
    pub(crate) clock: Arc<ManualClock>,
    /// Queues of the modes `every` and `latest`, and the outbound queue.
    pub(crate) queues: [Arc<RecordingChannel>; 3],
}

impl TestServices {
    /// Starts at noon. Calls of SQS go to a client, and to the URL of the outbound queue.
    pub(crate) async fn start(
        sqs: aws_sdk_sqs::Client,
        urls: QueueUrls,
        outbound: String,
        files: Files,
    ) -> TestServices {
        let main = TestTable::create(MAIN).await;
        let messages = main.another(MESSAGES).await;
        let history = HistoryConfig {
            table: main.another(HISTORY).await,
            days: 30,
        };
        let (client, table) = (main.client, main.name);
        let queues: [Arc<RecordingChannel>; 3] = Default::default();
        let noon = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let clock = Arc::new(ManualClock::new(noon));
        let shadows = DynamoDbShadows::new(client.clone(), ShadowTableConfig::new(&table));
        let history = DynamoDbHistory::new(client.clone(), history);
        let clients = DynamoDbClients::new(client.clone(), &table);
        let deliveries = Deliveries::new(
            clients.clone(),
            DynamoDbDeliveries::new(client.clone(), &table),
            Queues {
                ordered: queues[0].clone(),
                unordered: queues[1].clone(),
            },
            clock.clone(),
        );
        let updates = ShadowRequests::new(
            shadows.clone(),
            Default::default(),
            Arc::new(RecordingChannel::default()),
            clock.clone(),
        );
        let sensors = DynamoDbSensors::new(client.clone(), SensorConfig::new(&table));
        let guard = Guard::new("http://127.0.0.0/8".parse().unwrap());
        let reader = history.clone().reader(shadows.clone(), Model::default());
        let services = Services {
            feed: Some(reader.clone().feed(clock.clone())),
            history: Some(reader),
            streams: true,
            shadows: Shadows::with_clock(shadows, clock.clone()),
            messages: DynamoDbInbox::new(client.clone(), &messages),
            outbound: Outbound {
                queue: queues[2].clone(),
                clock: clock.clone(),
            },
            outbound_messages: OutboundMessages {
                sqs: (&sqs).into(),
                url: outbound,
            },
            registrations: RegistrationFiles::new(move || Ok(Arc::clone(&files))),
            suspensions: DynamoDbSuspensions::new(client.clone(), &table),
            failed_messages: FailedMessageQueues {
                sqs: (&sqs).into(),
                urls,
                resender: Resender {
                    notifications: None,
                    updates: Box::new(updates),
                    deliveries: Box::new(deliveries.clone()),
                    clock: clock.clone(),
                },
                // SQS has the time of the system.
                clock: Arc::new(SystemClock),
            },
            sensors: Sensors::with_clock(sensors, clock.clone()),
            clients: Clients::new(clients, guard, clock.clone()),
            deliveries,
            signal_values: Default::default(),
            idempotency: DynamoDbIdempotency::new(client.clone(), &table),
            clock: clock.clone(),
        };
        TestServices {
            services,
            endpoint: main.endpoint,
            database: client,
            table,
            history,
            clock,
            queues,
        }
    }
}
