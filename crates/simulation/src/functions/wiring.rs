//! Builds every function as on AWS, configured for the simulated services.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{
    DynamoDbClients, DynamoDbDeliveries, DynamoDbHistory, DynamoDbInbox, DynamoDbSensors,
    DynamoDbShadows, Feed, FeedConfig, HISTORY, HistoryConfig, HistoryReader, MAIN, MESSAGES,
    SensorConfig, ShadowTableConfig,
};
use antumbra_lambda_kit::Handler;
use antumbra_message_requests::InboxFunction;
use antumbra_message_requests::config::{InboxConfig, RequestsConfig};
use antumbra_message_requests::operations::{
    DeleteFunction, GetFunction, NextFunction, QueryFunction,
};
use antumbra_notify::files::SHIPPED;
use antumbra_publish::{SqsChannel, sqs};
use antumbra_registration::Registrations;
use antumbra_sensor_ingest::Rules;
use antumbra_service::clients::Clients;
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Deliveries, Policy, Queues};
use antumbra_service::history::DEFAULT_DAYS;
use antumbra_service::history::feed::DEFAULT_FEED_DAYS;
use antumbra_service::inbox::MessageParser;
use antumbra_service::liveness::Limits;
use antumbra_service::notifications::Channel;
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::{Layout, Shadows};
use antumbra_shadow::Model;
use aws_types::SdkConfig;

use super::Function;
use crate::clock::VirtualClock;
use crate::endpoint::{AnyUrl, Endpoints};
use crate::profile::Profile;

pub(crate) mod names {
    pub(crate) const SIGNALS: &str = "signals";
    pub(crate) const SIGNALS_FIFO: &str = "signals.fifo";
    pub(crate) const INBOUND: &str = "inbound";
    pub(crate) const QUARANTINE: &str = "quarantine";
    pub(crate) const UNDELIVERABLE: &str = "undeliverable";
    pub(crate) const SPILL: &str = "spill.fifo";
    pub(crate) const ORDERED: &str = "deliveries.fifo";
    pub(crate) const UNORDERED: &str = "deliveries";
    pub(crate) const ORDERED_DEAD: &str = "dead.fifo";
    pub(crate) const UNORDERED_DEAD: &str = "dead";
    /// Targets of registrations.
    pub(crate) const CHANGES_FIFO: &str = "changes.fifo";
    pub(crate) const CHANGES: &str = "changes";
    /// Target of registrations with leaf conditions.
    pub(crate) const LEAVES: &str = "leaves";
}

/// Maximum wait of the sweep for its marker, and the time granted to signals that it overtook, as in production.
const MARKER_WAIT: Duration = Duration::from_secs(10);
const GRACE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Wiring {
    pub(crate) sdk: SdkConfig,
    pub(crate) layout: Layout,
    pub(crate) live_shards: u32,
    pub(crate) feed_partitions: u32,
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
            feed_partitions: profile.feed_partitions,
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

    fn sensor_config(&self) -> SensorConfig {
        let mut config = SensorConfig::new(MAIN.name);
        config.shards = self.live_shards;
        config
    }

    fn shadow_store(&self) -> DynamoDbShadows {
        let table = ShadowTableConfig::new(MAIN.name).layout(self.layout);
        DynamoDbShadows::connect(&self.sdk, table)
    }

    /// Shadows through the SDK, for devices that do not use MQTT.
    pub(crate) fn shadows(&self, clock: VirtualClock) -> Shadows<DynamoDbShadows> {
        Shadows::with_clock(self.shadow_store(), Arc::new(clock))
    }

    /// The past of shadows, as the HTTP API reads it.
    pub(crate) fn history_reader(&self) -> HistoryReader {
        let history = DynamoDbHistory::connect(&self.sdk, history_config());
        history.reader(self.shadow_store(), Model::default())
    }

    /// The change feed, as the HTTP API reads it.
    pub(crate) fn change_feed(&self, clock: VirtualClock) -> Feed {
        self.history_reader().feed(Arc::new(clock))
    }

    pub(crate) fn history_writer(&self) -> Function {
        self.function(antumbra_history_writer::NAME, |wiring, clock| {
            let config = antumbra_history_writer::Config {
                history: history_config(),
                feed: Some(FeedConfig {
                    days: DEFAULT_FEED_DAYS,
                    partitions: wiring.feed_partitions,
                }),
                model: Model::default(),
            };
            antumbra_history_writer::build(config, &wiring.sdk, clock)
        })
    }

    pub(crate) fn sensors(&self, clock: VirtualClock) -> Sensors<DynamoDbSensors> {
        let store = DynamoDbSensors::connect(&self.sdk, self.sensor_config());
        Sensors::with_clock(store, Arc::new(clock))
    }

    pub(crate) fn clients(&self, clock: VirtualClock) -> Clients<DynamoDbClients, AnyUrl> {
        let store = DynamoDbClients::connect(&self.sdk, MAIN.name);
        Clients::new(store, AnyUrl, Arc::new(clock))
    }

    pub(crate) fn deliveries(
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
        self.function(antumbra_stream_listener::NAME, |wiring, clock| {
            let config = antumbra_stream_listener::Config {
                undeliverable_queue_url: url(names::UNDELIVERABLE),
                spill_queue_url: Some(url(names::SPILL)),
                table: Some(MAIN.name.to_owned()),
                deliveries_fifo_queue_url: Some(url(names::ORDERED)),
                deliveries_queue_url: Some(url(names::UNORDERED)),
                layout: wiring.layout,
                tenants: true,
                ..Default::default()
            };
            let listener =
                antumbra_stream_listener::build(config, registrations(), &wiring.sdk, clock);
            listener.unwrap_or_else(|error| invalid(&error))
        })
    }

    pub(crate) fn message_ingest(&self) -> Function {
        self.function(antumbra_message_ingest::NAME, |wiring, clock| {
            let config = antumbra_message_ingest::Config {
                table: MESSAGES.name.to_owned(),
                quarantine_queue_url: url(names::QUARANTINE),
                queue_bytes: sqs::BYTES,
                parser: MessageParser::default(),
            };
            antumbra_message_ingest::build(config, &wiring.sdk, clock)
        })
    }

    pub(crate) fn sensor_ingest(&self) -> Function {
        self.function(antumbra_sensor_ingest::NAME, |wiring, clock| {
            let config = antumbra_sensor_ingest::Config {
                sensors: wiring.sensor_config(),
                quarantine_queue_url: url(names::QUARANTINE),
                queue_bytes: sqs::BYTES,
                rules: Rules::default(),
                auto_registration: None,
            };
            antumbra_sensor_ingest::build(config, &wiring.sdk, clock)
        })
    }

    pub(crate) fn sweep(&self) -> Function {
        self.function(antumbra_liveness_sweep::NAME, |wiring, clock| {
            let config = antumbra_liveness_sweep::Config {
                sensors: wiring.sensor_config(),
                history: Some(history_config()),
                signals_queue_url: Some(url(wiring.signals)),
                deliveries_fifo_queue_url: url(names::ORDERED),
                deliveries_queue_url: url(names::UNORDERED),
                tenants: true,
                marker_wait: MARKER_WAIT,
                grace: GRACE,
                limits: Limits::default(),
            };
            antumbra_liveness_sweep::build(config, &wiring.sdk, clock)
        })
    }

    pub(crate) fn webhook_deliver(&self) -> Function {
        self.function(antumbra_webhook_deliver::NAME, |wiring, clock| {
            let config = antumbra_webhook_deliver::Config {
                table: MAIN.name.to_owned(),
                fifo_queue_url: url(names::ORDERED),
                dead_fifo_queue_url: url(names::ORDERED_DEAD),
                queue_url: url(names::UNORDERED),
                dead_queue_url: url(names::UNORDERED_DEAD),
                quarantine_queue_url: url(names::QUARANTINE),
                policy: wiring.policy,
                tenants: true,
                ..Default::default()
            };
            let sender = wiring.endpoints.clone();
            antumbra_webhook_deliver::build_with_sender(config, &wiring.sdk, sender, clock)
        })
    }

    pub(crate) fn shadow_requests(&self) -> Function {
        self.function(antumbra_shadow_requests::NAME, |wiring, clock| {
            let config = antumbra_shadow_requests::Config {
                table: MAIN.name.to_owned(),
                layout: wiring.layout,
                ..Default::default()
            };
            antumbra_shadow_requests::build(config, &wiring.sdk, clock)
        })
    }

    /// The functions of four inbox operations, by the operation's name.
    pub(crate) fn message_requests(&self) -> [(&'static str, Function); 4] {
        [
            ("get", self.inbox(GetFunction)),
            ("query", self.inbox(QueryFunction)),
            ("next", self.inbox(NextFunction)),
            ("delete", self.inbox(DeleteFunction)),
        ]
    }

    fn inbox<F: InboxFunction + 'static>(&self, function: fn(DynamoDbInbox) -> F) -> Function {
        self.function(F::NAME, move |wiring, clock| {
            let config = InboxConfig {
                table: MESSAGES.name.to_owned(),
                requests: RequestsConfig::default(),
            };
            antumbra_message_requests::build(function, config, &wiring.sdk, clock)
        })
    }

    fn function<H: Handler + 'static>(
        &self,
        name: &'static str,
        build: impl Fn(&Wiring, Arc<dyn Clock>) -> H + Send + Sync + 'static,
    ) -> Function {
        let wiring = self.clone();
        let build = move |clock| Arc::new(build(&wiring, Arc::new(clock))) as Arc<dyn Handler>;
        Function::new(name, Box::new(build))
    }
}

fn history_config() -> HistoryConfig {
    HistoryConfig {
        table: HISTORY.name.to_owned(),
        days: DEFAULT_DAYS,
    }
}

pub(crate) fn url(name: &str) -> String {
    format!("{}{name}", crate::cloud::URL)
}

/// The registrations of the simulation: the shipped ones, one for every kind of simulated target, and one
/// for a queue that does not exist.
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
            "mqtt.json",
            r#"{"name": "mqtt", "send": ["new"], "to": {"mqtt": {"topic": "changed/${id}/${state}"}}}"#,
        ),
        (
            "acknowledged.json",
            r#"{"name": "acknowledged", "on": {"state": "desired", "leaf": {"path": "/**", "change": ["acknowledged"]}},
                "to": {"sqs": {"queue": "leaves"}}}"#,
        ),
        (
            "withdrawn.json",
            r#"{"name": "withdrawn", "on": {"state": "desired", "leaf": {"path": "/**", "change": ["removed"]}},
                "to": {"sqs": {"queue": "leaves"}}}"#,
        ),
        (
            "warm.json",
            r#"{"name": "warm", "on": {"state": "reported", "leaf": {"path": "/temp*", "change": ["added", "updated"],
                "new": {"value": [{"numeric": [">", 5]}]}}}, "to": {"sqs": {"queue": "leaves"}}}"#,
        ),
        (
            "nowhere.json",
            r#"{"name": "nowhere", "send": ["new"], "to": {"sqs": {"queue": "missing"}}}"#,
        ),
    ];
    let loaded = Registrations::load(own.into_iter().chain(SHIPPED), &|_| None);
    loaded.unwrap_or_else(|errors| invalid(&errors))
}

/// Ends the simulation because of a mistake in its own set-up.
fn invalid(error: &dyn std::fmt::Display) -> ! {
    panic!("invalid set-up of the simulation: {error}")
}
