//! Every function, made of the product's own parts.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbInbox, DynamoDbProgress, DynamoDbSensors,
    DynamoDbShadows, MAIN, MESSAGES, SensorConfig, ShadowTableConfig, client,
};
use antumbra_liveness_sweep::{Sweeper, gauge};
use antumbra_message_ingest::Ingest as MessageIngest;
use antumbra_message_requests::operations::{
    DeleteMessage, GetMessage, NextMessage, QueryMessages,
};
use antumbra_message_requests::{InboxOperation, Responder, connect};
use antumbra_notify::Listener;
use antumbra_publish::{AwsChannelFactory, SqsChannel, SqsVisibility};
use antumbra_registration::Registrations;
use antumbra_sensor_ingest::{Ingest as SensorIngest, Rules, UnknownSensorPolicy};
use antumbra_service::clients::Clients;
use antumbra_service::deliveries::{Deliver, Deliveries, Policy, Queues};
use antumbra_service::inbox::MessageParser;
use antumbra_service::liveness::Limits;
use antumbra_service::notifications::Channel;
use antumbra_service::quarantine::Quarantine;
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::{Layout, Shadows};
use antumbra_shadow::Model;
use antumbra_shadow_requests::ShadowRequests;
use antumbra_webhook_deliver::Worker;
use aws_config::SdkConfig;

use super::{Function, Instance, called, json};
use crate::clock::VirtualClock;
use crate::endpoint::{AnyUrl, Endpoints};
use crate::profile::Profile;
use antumbra_service::clock::Clock;

/// The queues by name.
pub(crate) mod names {
    pub(crate) const SIGNALS: &str = "signals";
    pub(crate) const SIGNALS_FIFO: &str = "signals.fifo";
    pub(crate) const INBOUND: &str = "inbound";
    pub(crate) const QUARANTINE: &str = "quarantine";
    pub(crate) const UNDELIVERABLE: &str = "undeliverable";
    pub(crate) const ORDERED: &str = "deliveries.fifo";
    pub(crate) const UNORDERED: &str = "deliveries";
    pub(crate) const ORDERED_DEAD: &str = "dead.fifo";
    pub(crate) const UNORDERED_DEAD: &str = "dead";
    /// Where registrations send.
    pub(crate) const CHANGES_FIFO: &str = "changes.fifo";
    pub(crate) const CHANGES: &str = "changes";
}

/// How long the sweep waits for its marker, and for what that overtook, as in production.
const MARKER_WAIT: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(5);

/// What every function is made of.
#[derive(Clone)]
pub(crate) struct Wiring {
    pub(crate) sdk: SdkConfig,
    pub(crate) layout: Layout,
    pub(crate) live_shards: u32,
    pub(crate) signals: &'static str,
    pub(crate) policy: Policy,
    pub(crate) endpoints: Endpoints,
}

impl Wiring {
    pub(crate) fn new(
        sdk: &SdkConfig,
        profile: &Profile,
        policy: Policy,
        endpoints: Endpoints,
    ) -> Wiring {
        Wiring {
            sdk: sdk.clone(),
            layout: match profile.combined {
                true => Layout::Combined,
                false => Layout::Separate,
            },
            live_shards: profile.live_shards,
            signals: match profile.ordered_signals {
                true => names::SIGNALS_FIFO,
                false => names::SIGNALS,
            },
            policy,
            endpoints,
        }
    }

    fn queue(&self, name: &str) -> Arc<dyn Channel> {
        let sqs = aws_sdk_sqs::Client::new(&self.sdk);
        Arc::new(SqsChannel::new(&sqs, &url(name)))
    }

    fn persistence(&self) -> DynamoDbShadows {
        DynamoDbShadows::connect(
            &self.sdk,
            ShadowTableConfig::new(MAIN.name).layout(self.layout),
        )
    }

    fn sensor_store(&self) -> DynamoDbSensors {
        let mut config = SensorConfig::new(MAIN.name);
        config.shards = self.live_shards;
        DynamoDbSensors::connect(&self.sdk, config)
    }

    fn progress(&self) -> DynamoDbProgress {
        DynamoDbProgress::new(client(&self.sdk), MAIN.name)
    }

    /// The SDK, as whoever reports without MQTT has it.
    pub(crate) fn shadows(&self, clock: VirtualClock) -> Shadows<DynamoDbShadows> {
        Shadows::with_clock(self.persistence(), Arc::new(clock))
    }

    /// The registry of sensors.
    pub(crate) fn sensors(&self, clock: VirtualClock) -> Sensors<DynamoDbSensors> {
        Sensors::with_clock(self.sensor_store(), Arc::new(clock))
    }

    /// The desk of clients.
    pub(crate) fn clients(&self, clock: VirtualClock) -> Clients<DynamoDbClients, AnyUrl> {
        Clients::new(
            DynamoDbClients::connect(&self.sdk, MAIN.name),
            AnyUrl,
            Arc::new(clock),
        )
    }

    /// The history of deliveries.
    pub(crate) fn redeliveries(
        &self,
        clock: VirtualClock,
    ) -> Deliveries<DynamoDbClients, DynamoDbDeliveries> {
        let queues = Queues {
            ordered: self.queue(names::ORDERED),
            unordered: self.queue(names::UNORDERED),
        };
        let clients = DynamoDbClients::connect(&self.sdk, MAIN.name);
        let history = DynamoDbDeliveries::connect(&self.sdk, MAIN.name);
        Deliveries::new(clients, history, queues, Arc::new(clock))
    }

    pub(crate) fn listener(&self) -> Function {
        self.function("stream-listener", 30, |wiring, clock| {
            let links = DynamoDbClients::connect(&wiring.sdk, MAIN.name);
            let channels = AwsChannelFactory::new(&wiring.sdk, None, url(names::UNDELIVERABLE))
                .with_tenants(true)
                .with_clients(Arc::new(links), url(names::ORDERED), url(names::UNORDERED));
            let listener = Listener::new(registrations(), &channels, Model::default(), clock);
            let listener = listener.unwrap_or_else(|error| unwired(&error));
            let documents = Arc::new(Arc::new(wiring.persistence()));
            let listener = listener.with_documents(documents);
            called(listener, |listener, event, deadline| {
                let handling = listener.handle(event, deadline);
                Box::pin(async move {
                    json(
                        handling
                            .await
                            .map(|handled| antumbra_stream_listener::response(&handled)),
                    )
                })
            })
        })
    }

    pub(crate) fn message_ingest(&self) -> Function {
        self.function("message-ingest", 10, |wiring, clock| {
            let inbox = DynamoDbInbox::connect(&wiring.sdk, MESSAGES.name);
            let quarantine = Quarantine::new(wiring.queue(names::QUARANTINE));
            let sources = inbox.clone();
            let intake = MessageParser::default();
            let ingest = MessageIngest::new(inbox, sources, quarantine, intake, clock);
            called(ingest, |ingest, event, deadline| {
                let handling = ingest.handle(event, deadline);
                Box::pin(async move { json(handling.await.map(|handled| handled.response())) })
            })
        })
    }

    pub(crate) fn sensor_ingest(&self) -> Function {
        self.function("sensor-ingest", 10, |wiring, clock| {
            let ingest = SensorIngest::new(
                wiring.sensor_store(),
                wiring.progress(),
                UnknownSensorPolicy::<DynamoDbSensors>::Quarantine,
                Quarantine::new(wiring.queue(names::QUARANTINE)),
                Rules::default(),
                clock,
            );
            called(ingest, |ingest, event, deadline| {
                Box::pin(async move {
                    let handled = ingest.handle(event, deadline).await;
                    json(handled.map_err(|error| error.to_string())?.response())
                })
            })
        })
    }

    pub(crate) fn sweep(&self) -> Function {
        self.function("liveness-sweep", 55, |wiring, clock| {
            let queue = wiring.queue(wiring.signals);
            let gauge = gauge(queue, &url(wiring.signals), MARKER_WAIT, SETTLE);
            let sweeper = Sweeper::new(
                wiring.sensor_store(),
                wiring.progress(),
                Some(gauge),
                Limits::default(),
                clock,
            );
            called(sweeper, |sweeper, _, deadline| {
                Box::pin(async move {
                    let swept = sweeper.run(deadline).await;
                    sweeper.purge(deadline).await;
                    json(swept)
                })
            })
        })
    }

    pub(crate) fn webhook_deliver(&self) -> Function {
        self.function("webhook-deliver", 30, |wiring, clock| {
            let ledger = DynamoDbDeliveries::connect(&wiring.sdk, MAIN.name);
            let sender = wiring.endpoints.clone();
            let deliver = Deliver::new(ledger, sender, clock, wiring.policy);
            let urls = [url(names::ORDERED), url(names::UNORDERED)];
            let postpone = SqsVisibility::new(aws_sdk_sqs::Client::new(&wiring.sdk), urls);
            called(Worker::new(deliver, postpone), |worker, event, deadline| {
                let handling = worker.handle(event, deadline);
                Box::pin(async move { json(handling.await.map(|handled| handled.response())) })
            })
        })
    }

    pub(crate) fn shadow_requests(&self) -> Function {
        self.function("shadow-requests", 10, |wiring, clock| {
            let answers = antumbra_shadow_requests::connect::answers(&wiring.sdk, None);
            let persistence = wiring.persistence();
            let requests = ShadowRequests::new(persistence, Model::default(), answers, clock);
            called(requests, |requests, event, deadline| {
                let handling = requests.handle(event, deadline);
                Box::pin(async move { json(handling.await.map(drop)) })
            })
        })
    }

    /// The four requests of the inbox, by name.
    pub(crate) fn message_requests(&self) -> [(&'static str, Function); 4] {
        [
            ("get", self.inbox_request("message-get", GetMessage)),
            ("query", self.inbox_request("message-query", QueryMessages)),
            ("next", self.inbox_request("message-next", NextMessage)),
            (
                "delete",
                self.inbox_request("message-delete", DeleteMessage),
            ),
        ]
    }

    fn inbox_request<S: InboxOperation + 'static>(
        &self,
        name: &'static str,
        serve: fn(DynamoDbInbox) -> S,
    ) -> Function {
        self.function(name, 10, move |wiring, clock| {
            let inbox = DynamoDbInbox::connect(&wiring.sdk, MESSAGES.name);
            let answers = connect::answers(&wiring.sdk, None);
            let responder = Responder::new(serve(inbox), answers, clock);
            called(responder, |responder, event, deadline| {
                let handling = responder.handle(event, "invocation", deadline);
                Box::pin(async move { json(handling.await.map(drop)) })
            })
        })
    }

    fn function(
        &self,
        name: &'static str,
        seconds: u64,
        make: impl Fn(&Wiring, Arc<dyn Clock>) -> Arc<dyn Instance> + Send + Sync + 'static,
    ) -> Function {
        let wiring = self.clone();
        let timeout = Duration::from_secs(seconds);
        Function::new(
            name,
            timeout,
            Box::new(move |clock| make(&wiring, Arc::new(clock))),
        )
    }
}

/// A queue's URL.
pub(crate) fn url(name: &str) -> String {
    format!("{}{name}", crate::cloud::URL)
}

/// The registrations of the simulation: the shipped ones that everybody has, and one to every kind of
/// target that is simulated, one of which does not exist.
fn registrations() -> Registrations {
    let own = [
        (
            "in-order.json",
            r#"{"name": "in-order", "send": ["old", "new", "diff"], "to": {"sqs": {"queue": "changes.fifo"}}}"#,
        ),
        (
            "in-any-order.json",
            r#"{"name": "in-any-order", "send": ["new"], "to": {"sqs": {"queue": "changes"}}}"#,
        ),
        (
            "told.json",
            r#"{"name": "told", "send": ["new"], "to": {"mqtt": {"topic": "changed/${id}/${state}"}}}"#,
        ),
        (
            "nowhere.json",
            r#"{"name": "nowhere", "send": ["new"], "to": {"sqs": {"queue": "missing"}}}"#,
        ),
    ];
    let shipped = [
        (
            "sensor-clients.json",
            include_str!("../../../../registrations/sensor-clients.json"),
        ),
        (
            "shadow-delta.json",
            include_str!("../../../../registrations/shadow-delta.json"),
        ),
        (
            "shadow-documents.json",
            include_str!("../../../../registrations/shadow-documents.json"),
        ),
        (
            "inbox-notifications.json",
            include_str!("../../../../registrations/inbox-notifications.json"),
        ),
    ];
    let loaded = Registrations::load(own.into_iter().chain(shipped), &|_| None);
    loaded.unwrap_or_else(|errors| unwired(&errors))
}

/// A mistake of the simulation's own.
fn unwired(error: &dyn std::fmt::Display) -> ! {
    panic!("the simulation is not wired: {error}")
}
