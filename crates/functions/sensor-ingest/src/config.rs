//! What the function is told by its environment.

use antumbra_dynamodb::SensorConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_service::sensors::{DEFAULT_SILENCE_SECONDS, SensorType};

use crate::rules::{AutoRegistration, Rules};

/// Where a sensor is that registered itself by speaking, until somebody says better.
const NOWHERE: &str = "unknown/unknown/unknown/unknown";

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    pub sensors: SensorConfig,
    pub quarantine: String,
    /// The longest message of the quarantine.
    pub queue_bytes: usize,
    pub rules: Rules,
    /// What is said of a sensor that nobody registered, if it may register itself.
    pub newcomer: Option<AutoRegistration>,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn read(environment: &mut Environment) -> Config {
        let mut sensors = SensorConfig::new(environment.required("TABLE"));
        sensors.shards = environment.or("SHARDS", sensors.shards);
        sensors.retention = environment.or("RETENTION", sensors.retention);
        let anyone: bool = environment.or("AUTO_REGISTER", false);
        Config {
            sensors,
            quarantine: environment.required("QUARANTINE_QUEUE_URL"),
            queue_bytes: environment.or("QUEUE_BYTES", sqs::BYTES),
            rules: Rules {
                allowed: environment.or("DATA", Rules::default().allowed),
                ids: environment.parsed("SENSOR_ID_PATTERN"),
            },
            newcomer: newcomer(environment).filter(|_| anyone),
        }
    }
}

fn newcomer(environment: &mut Environment) -> Option<AutoRegistration> {
    let newcomer = AutoRegistration::new(
        &environment.or("AUTO_REGISTER_LOCATION", NOWHERE.to_owned()),
        &environment.or("AUTO_REGISTER_TYPE", SensorType::default().to_string()),
        environment.or(
            "AUTO_REGISTER_SILENCE_SECONDS",
            u64::from(DEFAULT_SILENCE_SECONDS),
        ),
    );
    newcomer
        .map_err(|fault| environment.fault(format_args!("AUTO_REGISTER_*: {fault}")))
        .ok()
}
