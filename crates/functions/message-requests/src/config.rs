use antumbra_lambda_kit::config::FunctionConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_publish::sqs;
pub use antumbra_wire::inbox_request::TokenPolicy;
use antumbra_wire::topic_prefix::TopicPrefix;

/// Configuration that all functions of the inbox have.
#[derive(Debug, Clone, Default)]
pub struct RequestsConfig {
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
    pub topic_prefix: TopicPrefix,
    pub tokens: TokenPolicy,
}

impl FunctionConfig for RequestsConfig {
    fn from_env(environment: &mut Environment) -> RequestsConfig {
        RequestsConfig {
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
            topic_prefix: environment.or("TOPIC_PREFIX", TopicPrefix::default()),
            tokens: environment.or("TOKENS", TokenPolicy::default()),
        }
    }
}

#[derive(Debug)]
pub struct InboxConfig {
    pub table: String,
    pub requests: RequestsConfig,
}

impl FunctionConfig for InboxConfig {
    fn from_env(environment: &mut Environment) -> InboxConfig {
        InboxConfig {
            table: environment.required("TABLE"),
            requests: RequestsConfig::from_env(environment),
        }
    }
}

#[derive(Debug)]
pub struct SendConfig {
    pub outbound: String,
    /// Largest message that the queue accepts.
    pub queue_bytes: usize,
    pub requests: RequestsConfig,
}

impl FunctionConfig for SendConfig {
    fn from_env(environment: &mut Environment) -> SendConfig {
        SendConfig {
            outbound: environment.required("OUTBOUND_QUEUE_URL"),
            queue_bytes: sqs::BYTES,
            requests: RequestsConfig::from_env(environment),
        }
    }
}
