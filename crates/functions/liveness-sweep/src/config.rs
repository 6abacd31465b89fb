use std::time::Duration;

use antumbra_dynamodb::{HistoryConfig, SensorConfig};
use antumbra_lambda_kit::config::{FunctionConfig, history, tenants};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::liveness::Limits;

#[derive(Debug, Clone)]
pub struct Config {
    pub sensors: SensorConfig,
    /// The history of shadows, whose purges are carried out; `None` if it is switched off.
    pub history: Option<HistoryConfig>,
    /// Queue that markers are sent through, to learn how far it was read.
    pub signals_queue_url: Option<String>,
    /// Queues of deliveries in order and in any order.
    pub deliveries_fifo_queue_url: String,
    pub deliveries_queue_url: String,
    /// Sets the message group of standard queues, for fair queues. Only AWS accepts it.
    pub tenants: bool,
    /// Maximum wait for the marker.
    pub marker_wait: Duration,
    /// Time granted to signals that the marker overtook.
    pub grace: Duration,
    pub limits: Limits,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let mut sensors = SensorConfig::new(environment.required("TABLE"));
        sensors.shards = environment.or("SHARDS", sensors.shards);
        Config {
            sensors,
            history: history(environment).map(|(table, days)| HistoryConfig { table, days }),
            signals_queue_url: environment.optional("SIGNALS_QUEUE_URL"),
            deliveries_fifo_queue_url: environment.required("DELIVERIES_FIFO_QUEUE_URL"),
            deliveries_queue_url: environment.required("DELIVERIES_QUEUE_URL"),
            tenants: tenants(environment),
            marker_wait: environment.seconds("MARKER_WAIT_SECONDS", Duration::from_secs(10)),
            grace: environment.seconds("GRACE_SECONDS", Duration::from_secs(5)),
            limits: Limits {
                at_once: environment.or("CONCURRENCY", Limits::default().at_once),
                ..Limits::default()
            },
        }
    }
}
