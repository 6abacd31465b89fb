//! What the function is told by its environment.

use std::time::Duration;

use antumbra_dynamodb::SensorConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::liveness::Limits;

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    pub sensors: SensorConfig,
    /// The queue that a marker is sent through, where there is one.
    pub signals: Option<String>,
    /// How long to wait for the marker, and for what it overtook.
    pub wait: Duration,
    pub settle: Duration,
    pub limits: Limits,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn read(environment: &mut Environment) -> Config {
        let mut sensors = SensorConfig::new(environment.required("TABLE"));
        sensors.shards = environment.or("SHARDS", sensors.shards);
        Config {
            sensors,
            signals: environment.optional("SIGNALS_QUEUE_URL"),
            wait: Duration::from_secs(environment.or("MARKER_WAIT_SECONDS", 10)),
            settle: Duration::from_secs(environment.or("GRACE_SECONDS", 5)),
            limits: Limits {
                at_once: environment.or("CONCURRENCY", Limits::default().at_once),
                ..Limits::default()
            },
        }
    }
}
