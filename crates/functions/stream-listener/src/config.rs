//! Configuration from the environment. Registrations may read more variables.

use std::path::PathBuf;

use antumbra_lambda_kit::config::{FunctionConfig, layout, shadow_model, tenants};
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;
use antumbra_wire::items::StreamKinds;
use antumbra_wire::topic_prefix::TopicPrefix;

#[derive(Debug, Clone)]
pub struct Config {
    pub registrations: PathBuf,
    pub undeliverable_queue_url: String,
    /// Queue for messages of targets that keep failing. Without it, or without the table, they hold up the stream.
    pub spill_queue_url: Option<String>,
    /// Kinds of records that the filters of the event sources let through.
    pub stream_kinds: StreamKinds,
    pub model: Model,
    pub layout: Layout,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
    pub topic_prefix: TopicPrefix,
    /// Without the table, notifications with both documents of a shadow need the combined layout.
    pub table: Option<String>,
    /// Queues of deliveries to clients, for registrations whose target is `clients`.
    pub deliveries_fifo_queue_url: Option<String>,
    pub deliveries_queue_url: Option<String>,
    /// Largest message that the queues accept.
    pub queue_bytes: usize,
    /// Sets the message group of standard queues, for fair queues. Only AWS accepts it.
    pub tenants: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            registrations: PathBuf::from("registrations"),
            undeliverable_queue_url: String::new(),
            spill_queue_url: None,
            stream_kinds: StreamKinds::default(),
            model: Model::default(),
            layout: Layout::default(),
            iot_endpoint: None,
            topic_prefix: TopicPrefix::default(),
            table: None,
            deliveries_fifo_queue_url: None,
            deliveries_queue_url: None,
            queue_bytes: sqs::BYTES,
            tenants: false,
        }
    }
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let default = Config::default();
        Config {
            registrations: environment.or("REGISTRATIONS", default.registrations),
            undeliverable_queue_url: environment.required("UNDELIVERABLE_QUEUE_URL"),
            spill_queue_url: environment.optional("SPILL_QUEUE_URL"),
            stream_kinds: environment.or("STREAM_KINDS", default.stream_kinds),
            model: shadow_model(environment),
            layout: layout(environment),
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            topic_prefix: environment.or("TOPIC_PREFIX", default.topic_prefix),
            table: environment.optional("TABLE"),
            deliveries_fifo_queue_url: environment.optional("DELIVERIES_FIFO_QUEUE_URL"),
            deliveries_queue_url: environment.optional("DELIVERIES_QUEUE_URL"),
            queue_bytes: environment.or("QUEUE_BYTES", default.queue_bytes),
            tenants: tenants(environment),
        }
    }
}
