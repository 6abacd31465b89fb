use antumbra_dynamodb::SensorConfig;
use antumbra_lambda_kit::config::FunctionConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_service::sensors::{DEFAULT_SILENCE_SECONDS, SensorType};

use crate::rules::{AutoRegistration, Rules};

/// Location of automatically registered sensors, unless configured otherwise.
const UNKNOWN_LOCATION: &str = "unknown/unknown/unknown/unknown";

#[derive(Debug, Clone)]
pub struct Config {
    pub sensors: SensorConfig,
    pub quarantine_queue_url: String,
    /// Largest message that the quarantine queue accepts.
    pub queue_bytes: usize,
    pub rules: Rules,
    /// Properties of automatically registered sensors; `None` to quarantine signals of unknown sensors.
    pub auto_registration: Option<AutoRegistration>,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let mut sensors = SensorConfig::new(environment.required("TABLE"));
        sensors.shards = environment.or("SHARDS", sensors.shards);
        sensors.retention = environment.or("RETENTION", sensors.retention);
        let auto_register: bool = environment.or("AUTO_REGISTER", false);
        Config {
            sensors,
            quarantine_queue_url: environment.required("QUARANTINE_QUEUE_URL"),
            queue_bytes: environment.or("QUEUE_BYTES", sqs::BYTES),
            rules: Rules {
                allowed: environment.or("DATA", Rules::default().allowed),
                ids: environment.parsed("SENSOR_ID_PATTERN"),
            },
            auto_registration: auto_registration(environment).filter(|_| auto_register),
        }
    }
}

fn auto_registration(environment: &mut Environment) -> Option<AutoRegistration> {
    let registration = AutoRegistration::new(
        &environment.or("AUTO_REGISTER_LOCATION", UNKNOWN_LOCATION.to_owned()),
        &environment.or("AUTO_REGISTER_TYPE", SensorType::default().to_string()),
        environment.or(
            "AUTO_REGISTER_SILENCE_SECONDS",
            u64::from(DEFAULT_SILENCE_SECONDS),
        ),
    );
    registration
        .map_err(|fault| environment.fault(format_args!("AUTO_REGISTER_*: {fault}")))
        .ok()
}
