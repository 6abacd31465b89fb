//! What the function is told by its environment. What registrations ask of it is theirs.

use std::path::PathBuf;

use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_shadow::Model;

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    /// The directory of registrations.
    pub registrations: PathBuf,
    pub undeliverable: String,
    pub model: Model,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
    /// Without the table, only shadows that are kept as one item can be told of as a whole.
    pub table: Option<String>,
    /// The queue of deliveries in order and that of the others, where registrations tell clients.
    pub ordered: Option<String>,
    pub unordered: Option<String>,
    /// The longest message of a queue.
    pub queue_bytes: usize,
    /// Whether queues are told whose message it is; only AWS's own take that.
    pub tenants: bool,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn read(environment: &mut Environment) -> Config {
        let otherwise = Model::default();
        Config {
            registrations: environment.or("REGISTRATIONS", PathBuf::from("registrations")),
            undeliverable: environment.required("UNDELIVERABLE_QUEUE_URL"),
            model: Model {
                timestamp_field: environment.or("TIMESTAMP_FIELD", otherwise.timestamp_field),
                id_field: environment.or("ID_FIELD", otherwise.id_field),
                ..Model::default()
            },
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            table: environment.optional("TABLE"),
            ordered: environment.optional("DELIVERIES_FIFO_QUEUE_URL"),
            unordered: environment.optional("DELIVERIES_QUEUE_URL"),
            queue_bytes: environment.or("QUEUE_BYTES", sqs::BYTES),
            tenants: environment.optional("AWS_ENDPOINT_URL").is_none(),
        }
    }
}
