//! Configuration of the function.

use antumbra_dynamodb::SensorConfig;
use antumbra_lambda_kit::config::{self, FunctionConfig};
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_publish::webhook::Allow;
use antumbra_service::sensors::ValueType;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;

use crate::AuthMode;

#[derive(Debug)]
pub struct Config {
    pub table: String,
    pub messages_table: String,
    /// Queue of deliveries in mode `every`.
    pub ordered_queue_url: String,
    /// Queue of deliveries in mode `latest`.
    pub unordered_queue_url: String,
    /// Largest message that the queues accept.
    pub queue_bytes: usize,
    pub auth: AuthMode,
    /// Destinations of webhooks beside the public internet.
    pub webhook_allow: Allow,
    pub sensors: SensorConfig,
    /// Values that signals may have.
    pub signal_values: ValueType,
    pub model: Model,
    pub layout: Layout,
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
            ordered_queue_url: environment.required("DELIVERIES_FIFO_QUEUE_URL"),
            unordered_queue_url: environment.required("DELIVERIES_QUEUE_URL"),
            queue_bytes: sqs::BYTES,
            auth: environment.or("AUTH", AuthMode::Gateway),
            webhook_allow: environment.or("WEBHOOK_ALLOW", Allow::default()),
            sensors,
            signal_values: environment.or("DATA", ValueType::default()),
            model: config::merge_model(environment),
            layout: config::layout(environment),
        }
    }
}
