//! What the function is told by its environment.

use antumbra_dynamodb::SensorConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::webhook::Allow;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;

use crate::AuthMode;

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    pub table: String,
    pub messages_table: String,
    /// The queue of deliveries in order, and that of the others.
    pub ordered: String,
    pub unordered: String,
    pub door: AuthMode,
    /// What webhooks may reach beside the public internet.
    pub allow: Allow,
    pub sensors: SensorConfig,
    pub model: Model,
    pub layout: Layout,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let table = environment.required("TABLE");
        let mut sensors = SensorConfig::new(&table);
        sensors.shards = environment.or("SHARDS", sensors.shards);
        sensors.retention = environment.or("RETENTION", sensors.retention);
        let otherwise = Model::default();
        let model = Model {
            timestamp_field: environment.or("TIMESTAMP_FIELD", otherwise.timestamp_field),
            id_field: environment.or("ID_FIELD", otherwise.id_field),
            ..Model::default()
        };
        let layout = match environment.or("COMBINED", false) {
            true => Layout::Combined,
            false => Layout::Separate,
        };
        Config {
            table,
            messages_table: environment.required("MESSAGES_TABLE"),
            ordered: environment.required("DELIVERIES_FIFO_QUEUE_URL"),
            unordered: environment.required("DELIVERIES_QUEUE_URL"),
            door: environment.or("AUTH", AuthMode::Gateway),
            allow: environment.or("WEBHOOK_ALLOW", Allow::default()),
            sensors,
            model,
            layout,
        }
    }
}
