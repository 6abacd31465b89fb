//! AWS configuration of a function, with timeouts well below the function's own.
//!
//! Lambda sets region and credentials in the environment. The SDK's loader would look for them in eight
//! more places, which no function has, and would add the code for all of them.

mod shared;

use std::time::Duration;

use aws_config::environment::{
    EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider,
};
use aws_config::identity::IdentityCache;
use aws_config::meta::region::ProvideRegion;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

/// Timeout of one attempt. A healthy DynamoDB or SQS responds within milliseconds.
const ATTEMPT: Duration = Duration::from_millis(2500);
/// Timeout of one call with the SDK's retries.
const OPERATION: Duration = Duration::from_secs(6);
const CONNECT: Duration = Duration::from_millis(1000);
const ATTEMPTS: u32 = 3;
/// Endpoint of all services; with a service's name appended, of that service.
const ENDPOINT: &str = "AWS_ENDPOINT_URL";

/// Returns the configuration. `endpoint` is for local stacks; an endpoint of a single service in the
/// environment, such as `AWS_ENDPOINT_URL_SQS`, takes precedence.
pub async fn config(endpoint: Option<String>) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(OPERATION)
        .build();
    let credentials = EnvironmentVariableCredentialsProvider::new();
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(EnvironmentVariableRegionProvider::new().region().await)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .identity_cache(IdentityCache::lazy().build())
        .http_client(shared::Shared::new(CONNECT))
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
        .timeout_config(timeouts)
        .service_config(Endpoints);
    config.set_endpoint_url(endpoint);
    config.build()
}

/// Endpoints of single services from the environment.
#[derive(Debug)]
struct Endpoints;

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace([' ', '-'], "_");
        let variable = format!("{ENDPOINT}_{service}");
        (key.env() == ENDPOINT)
            .then(|| std::env::var(variable).ok())
            .flatten()
            .filter(|endpoint| !endpoint.is_empty())
    }
}
