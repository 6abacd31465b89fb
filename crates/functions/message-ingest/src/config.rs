//! What the function is told by its environment.

use std::time::Duration;

use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
use antumbra_service::inbox::MessageParser;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    pub table: String,
    pub quarantine: String,
    pub intake: MessageParser,
    /// The longest message of the quarantine.
    pub queue_bytes: usize,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn read(environment: &mut Environment) -> Config {
        let days: u16 = environment.or("RETENTION_DAYS", 0);
        let otherwise = MessageParser::default();
        Config {
            table: environment.required("TABLE"),
            quarantine: environment.required("QUARANTINE_QUEUE_URL"),
            intake: MessageParser {
                uuid: environment.or("uuidKey", otherwise.uuid),
                message_id: environment.or("messageIdKey", otherwise.message_id),
                padding: environment.or("MESSAGE_ID_DIGITS", otherwise.padding),
                retention: (days > 0).then(|| DAY * u32::from(days)),
            },
            queue_bytes: environment.or("QUEUE_BYTES", sqs::BYTES),
        }
    }
}
