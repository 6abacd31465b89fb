//! What the functions are told by their environment.

use antumbra_lambda_kit::config::FunctionConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;

/// What a function that reads or writes the inbox is told.
#[allow(missing_docs)]
pub struct OnInbox {
    pub table: String,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
}

impl FunctionConfig for OnInbox {
    fn from_env(environment: &mut Environment) -> OnInbox {
        OnInbox {
            table: environment.required("TABLE"),
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
        }
    }
}

/// What the function that sends to devices is told.
#[allow(missing_docs)]
pub struct OnQueue {
    pub outbound: String,
    /// Largest message that the queue accepts.
    pub queue_bytes: usize,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
}

impl FunctionConfig for OnQueue {
    fn from_env(environment: &mut Environment) -> OnQueue {
        OnQueue {
            outbound: environment.required("OUTBOUND_QUEUE_URL"),
            queue_bytes: sqs::BYTES,
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
        }
    }
}
