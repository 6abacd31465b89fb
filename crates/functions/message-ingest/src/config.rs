use std::time::Duration;

use antumbra_lambda_kit::config::FunctionConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_service::inbox::MessageParser;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone)]
pub struct Config {
    pub table: String,
    pub quarantine_queue_url: String,
    /// Largest message that the quarantine queue accepts.
    pub queue_bytes: usize,
    pub parser: MessageParser,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let days: u16 = environment.or("MESSAGE_RETENTION_DAYS", 0);
        let default = MessageParser::default();
        Config {
            table: environment.required("TABLE"),
            quarantine_queue_url: environment.required("QUARANTINE_QUEUE_URL"),
            queue_bytes: environment.or("QUEUE_BYTES", sqs::BYTES),
            parser: MessageParser {
                uuid: environment.or("uuidKey", default.uuid),
                message_id: environment.or("messageIdKey", default.message_id),
                padding: environment.or("MESSAGE_ID_DIGITS", default.padding),
                retention: (days > 0).then(|| DAY * u32::from(days)),
            },
        }
    }
}
