//! The functions of the stack: the same `build` as on AWS, configured for the local services.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MAIN, MESSAGES, SensorConfig};
use antumbra_lambda_kit::Handler;
use antumbra_lambda_kit::functions::queues;
use antumbra_message_requests::InboxFunction;
use antumbra_message_requests::config::{InboxConfig, RequestsConfig, SendConfig};
use antumbra_message_requests::operations::{
    DeleteFunction, GetFunction, NextFunction, Outbound, QueryFunction, SendFunction,
};
use antumbra_publish::sqs::SMALL_BYTES;
use antumbra_registration::Registrations;
use antumbra_sensor_ingest::{AutoRegistration, Rules};
use antumbra_service::clock::Clock;
use antumbra_service::inbox::MessageParser;
use antumbra_service::liveness::Limits;
use antumbra_service::sensors::ValueType;
use antumbra_stream_listener::StreamListener;
use aws_types::SdkConfig;

use super::replaceable::Replaceable;
use super::{LocalServices, StackError, Webhooks};
use crate::function::Function;

/// Maximum wait of the sweep for its marker.
const MARKER_WAIT: Duration = Duration::from_secs(10);
/// Time granted to signals that the marker overtook: the queues are in this process.
const GRACE: Duration = Duration::from_millis(200);

impl LocalServices {
    fn build<H: Handler + 'static>(
        &self,
        name: &'static str,
        build: impl FnOnce(&SdkConfig, Arc<dyn Clock>) -> H,
    ) -> Function {
        let sdk = self.sdk_of(name);
        let handler = build(&sdk, Arc::new(self.clock.clone()));
        (self.wrap)(Function::from_handler(name, self.clock.clone(), handler))
    }

    pub(super) fn message_ingest(&self) -> Function {
        let config = antumbra_message_ingest::Config {
            table: MESSAGES.name.to_owned(),
            quarantine_queue_url: self.queues.queue_url(queues::QUARANTINE),
            queue_bytes: SMALL_BYTES,
            parser: MessageParser::default(),
        };
        self.build(antumbra_message_ingest::NAME, |sdk, clock| {
            antumbra_message_ingest::build(config, sdk, clock)
        })
    }

    pub(super) fn sensor_ingest(
        &self,
        auto_registration: Option<AutoRegistration>,
        allowed: ValueType,
    ) -> Function {
        let config = antumbra_sensor_ingest::Config {
            sensors: SensorConfig::new(MAIN.name),
            quarantine_queue_url: self.queues.queue_url(queues::QUARANTINE),
            queue_bytes: SMALL_BYTES,
            rules: Rules {
                allowed,
                ..Rules::default()
            },
            auto_registration,
        };
        self.build(antumbra_sensor_ingest::NAME, |sdk, clock| {
            antumbra_sensor_ingest::build(config, sdk, clock)
        })
    }

    pub(super) fn liveness_sweep(&self) -> Function {
        let config = antumbra_liveness_sweep::Config {
            sensors: SensorConfig::new(MAIN.name),
            signals_queue_url: Some(self.queues.queue_url(queues::SIGNALS)),
            deliveries_fifo_queue_url: self.queues.queue_url(queues::DELIVERIES_FIFO),
            deliveries_queue_url: self.queues.queue_url(queues::DELIVERIES),
            marker_wait: MARKER_WAIT,
            grace: GRACE,
            limits: Limits::default(),
        };
        self.build(antumbra_liveness_sweep::NAME, |sdk, clock| {
            antumbra_liveness_sweep::build(config, sdk, clock)
        })
    }

    pub(super) fn webhook_deliver(&self, webhooks: &Webhooks) -> Function {
        let config = antumbra_webhook_deliver::Config {
            table: MAIN.name.to_owned(),
            fifo_queue_url: self.queues.queue_url(queues::DELIVERIES_FIFO),
            dead_fifo_queue_url: self.queues.queue_url(queues::DELIVERIES_DEAD_FIFO),
            queue_url: self.queues.queue_url(queues::DELIVERIES),
            dead_queue_url: self.queues.queue_url(queues::DELIVERIES_DEAD),
            quarantine_queue_url: self.queues.queue_url(queues::QUARANTINE),
            allow: webhooks.allow.clone(),
            policy: webhooks.policy,
            timeout: webhooks.timeout,
            ..Default::default()
        };
        self.build(antumbra_webhook_deliver::NAME, |sdk, clock| {
            antumbra_webhook_deliver::build(config, sdk, clock)
        })
    }

    pub(super) fn shadow_requests(&self) -> Function {
        let config = antumbra_shadow_requests::Config {
            table: MAIN.name.to_owned(),
            layout: self.layout,
            topic_prefix: self.topic_prefix.clone(),
            ..Default::default()
        };
        self.build(antumbra_shadow_requests::NAME, |sdk, clock| {
            antumbra_shadow_requests::build(config, sdk, clock)
        })
    }

    pub(super) fn message_requests(&self) -> Vec<Function> {
        vec![
            self.inbox(GetFunction),
            self.inbox(QueryFunction),
            self.inbox(NextFunction),
            self.inbox(DeleteFunction),
            self.message_send(),
        ]
    }

    fn inbox<F: InboxFunction + 'static>(
        &self,
        function: impl FnOnce(DynamoDbInbox) -> F,
    ) -> Function {
        let config = InboxConfig {
            table: MESSAGES.name.to_owned(),
            requests: self.requests_config(),
        };
        self.build(F::NAME, |sdk, clock| {
            antumbra_message_requests::build(function, config, sdk, clock)
        })
    }

    fn requests_config(&self) -> RequestsConfig {
        RequestsConfig {
            topic_prefix: self.topic_prefix.clone(),
            ..Default::default()
        }
    }

    fn message_send(&self) -> Function {
        let config = SendConfig {
            outbound: self.queues.queue_url(queues::OUTBOUND),
            queue_bytes: SMALL_BYTES,
            requests: self.requests_config(),
        };
        self.build(SendFunction::<Outbound>::NAME, |sdk, clock| {
            antumbra_message_requests::build_send(config, sdk, clock)
        })
    }

    /// The function that reads the table's streams, and the handler in which its registrations can be replaced.
    pub(super) fn stream_listener(
        &self,
        registrations: Registrations,
    ) -> Result<(Function, Replaceable<StreamListener>), StackError> {
        let handler = Replaceable::new(self.listener(registrations)?);
        let name = antumbra_stream_listener::NAME;
        let function = Function::from_handler(name, self.clock.clone(), handler.clone());
        Ok(((self.wrap)(function), handler))
    }

    pub(super) fn listener(
        &self,
        registrations: Registrations,
    ) -> Result<StreamListener, StackError> {
        let config = antumbra_stream_listener::Config {
            undeliverable_queue_url: self.queues.queue_url(queues::UNDELIVERABLE),
            spill_queue_url: Some(self.queues.queue_url(queues::SPILL)),
            table: Some(MAIN.name.to_owned()),
            deliveries_fifo_queue_url: Some(self.queues.queue_url(queues::DELIVERIES_FIFO)),
            deliveries_queue_url: Some(self.queues.queue_url(queues::DELIVERIES)),
            queue_bytes: SMALL_BYTES,
            topic_prefix: self.topic_prefix.clone(),
            // The emulated queues do not accept a tenant.
            ..Default::default()
        };
        let sdk = self.sdk_of(antumbra_stream_listener::NAME);
        let clock = Arc::new(self.clock.clone());
        let listener = antumbra_stream_listener::build(config, registrations, &sdk, clock)?;
        Ok(listener)
    }
}
