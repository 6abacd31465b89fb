//! What the function is told by its environment.

use antumbra_dynamodb::SensorConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_service::sensors::{DEFAULT_SILENCE_SECONDS, SensorType};

use crate::rules::{Newcomer, Rules};

/// Where a sensor is that registered itself by speaking, until somebody says better.
const NOWHERE: &str = "unknown/unknown/unknown/unknown";

/// What the function is told.
#[allow(missing_docs)]
pub struct Settings {
    pub sensors: SensorConfig,
    pub quarantine: String,
    /// The longest message of the quarantine.
    pub queue_bytes: usize,
    pub rules: Rules,
    /// What is said of a sensor that nobody registered, if it may register itself.
    pub newcomer: Option<Newcomer>,
}

impl antumbra_lambda_kit::settings::Settings for Settings {
    fn read(environment: &mut Environment) -> Settings {
        let mut sensors = SensorConfig::new(environment.required("TABLE"));
        sensors.shards = environment.or("SHARDS", sensors.shards);
        sensors.retention = environment.or("RETENTION", sensors.retention);
        let anyone: bool = environment.or("AUTO_REGISTER", false);
        Settings {
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

fn newcomer(environment: &mut Environment) -> Option<Newcomer> {
    let newcomer = Newcomer::new(
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
