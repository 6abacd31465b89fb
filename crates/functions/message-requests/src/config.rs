use antumbra_lambda_kit::config::FunctionConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
pub use antumbra_wire::inbox_request::TokenPolicy;

pub struct InboxConfig {
    pub table: String,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
    pub tokens: TokenPolicy,
}

impl FunctionConfig for InboxConfig {
    fn from_env(environment: &mut Environment) -> InboxConfig {
        InboxConfig {
            table: environment.required("TABLE"),
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            tokens: environment.or("TOKENS", TokenPolicy::default()),
        }
    }
}

pub struct SendConfig {
    pub outbound: String,
    /// Largest message that the queue accepts.
    pub queue_bytes: usize,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
    pub tokens: TokenPolicy,
}

impl FunctionConfig for SendConfig {
    fn from_env(environment: &mut Environment) -> SendConfig {
        SendConfig {
            outbound: environment.required("OUTBOUND_QUEUE_URL"),
            queue_bytes: sqs::BYTES,
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            tokens: environment.or("TOKENS", TokenPolicy::default()),
        }
    }
}
