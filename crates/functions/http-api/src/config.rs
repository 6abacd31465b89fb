//! Configuration of the function.

use std::path::PathBuf;
use std::sync::Arc;

use antumbra_dynamodb::{HistoryConfig, SensorConfig};
use antumbra_lambda_kit::config::{self, FunctionConfig};
use antumbra_lambda_kit::environment::Environment;
use antumbra_notify::files;
use antumbra_publish::sqs;
use antumbra_publish::webhook::Allow;
use antumbra_service::sensors::ValueType;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;

use crate::RegistrationFiles;
use crate::auth::{AuthMode, GatewayGrants, SCOPE};
use crate::failed_messages::QueueUrls;

#[derive(Debug)]
pub struct Config {
    pub table: String,
    pub messages_table: String,
    pub queues: QueueUrls,
    /// Queue of messages to devices.
    pub outbound_queue_url: String,
    /// Largest message that the queues accept.
    pub queue_bytes: usize,
    /// Sets the message group of standard queues, for fair queues. Only AWS accepts it.
    pub tenants: bool,
    pub auth: AuthMode,
    /// Destinations of webhooks beside the public internet.
    pub webhook_allow: Allow,
    pub sensors: SensorConfig,
    /// Values that signals may have.
    pub signal_values: ValueType,
    pub model: Model,
    pub layout: Layout,
    /// The history of shadows, unless it is switched off.
    pub history: Option<HistoryConfig>,
    /// The change feed can be read.
    pub feed: bool,
    /// Responses may be streams, which Lambda does not send.
    pub streams: bool,
    pub registrations: RegistrationFiles,
    /// Rules of updates over MQTT, to make failed ones again.
    pub updates: antumbra_shadow_requests::Config,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let table = environment.required("TABLE");
        let mut sensors = SensorConfig::new(&table);
        sensors.shards = environment.or("SHARDS", sensors.shards);
        sensors.retention = environment.or("RETENTION", sensors.retention);
        Config {
            table,
            messages_table: environment.required("MESSAGES_TABLE"),
            queues: QueueUrls {
                undeliverable: environment.required("UNDELIVERABLE_QUEUE_URL"),
                quarantine: environment.required("QUARANTINE_QUEUE_URL"),
                dead: environment.required("DELIVERIES_DEAD_QUEUE_URL"),
                dead_fifo: environment.required("DELIVERIES_DEAD_FIFO_QUEUE_URL"),
                deliveries: environment.required("DELIVERIES_QUEUE_URL"),
                deliveries_fifo: environment.required("DELIVERIES_FIFO_QUEUE_URL"),
                inbound: environment.required("INBOUND_QUEUE_URL"),
                signals: environment.required("SIGNALS_QUEUE_URL"),
                spill: environment.required("SPILL_QUEUE_URL"),
            },
            outbound_queue_url: environment.required("OUTBOUND_QUEUE_URL"),
            queue_bytes: sqs::BYTES,
            tenants: config::tenants(environment),
            auth: auth(environment),
            webhook_allow: environment.or("WEBHOOK_ALLOW", Allow::default()),
            sensors,
            signal_values: environment.or("DATA", ValueType::default()),
            model: config::merge_model(environment),
            layout: config::layout(environment),
            history: config::history(environment)
                .map(|(table, days)| HistoryConfig { table, days }),
            feed: config::feed_days(environment) > 0,
            streams: false,
            registrations: files_of(environment.or("REGISTRATIONS", "registrations".into())),
            updates: antumbra_shadow_requests::Config::without_responses(environment),
        }
    }
}

fn auth(environment: &mut Environment) -> AuthMode {
    let gateway = AuthMode::Gateway(GatewayGrants {
        claim: environment.or("GRANTS_CLAIM", SCOPE.to_owned()),
        iam: environment.parsed("IAM_GRANTS"),
    });
    match environment.optional("AUTH").as_deref() {
        None | Some("gateway") => gateway,
        Some("none") => AuthMode::Open,
        Some(_) => {
            environment.fault("AUTH must be gateway or none");
            gateway
        }
    }
}

/// Registrations in a directory. It is read at the first request, and only then: a layer does not change.
fn files_of(directory: PathBuf) -> RegistrationFiles {
    let read = std::sync::OnceLock::new();
    RegistrationFiles::new(move || {
        if let Some(files) = read.get() {
            return Ok(Arc::clone(files));
        }
        let files = Arc::from(files::read(&directory)?);
        Ok(Arc::clone(read.get_or_init(|| files)))
    })
}
