//! AWS configuration of a function, with timeouts well below the function's own.
//!
//! Lambda sets region and credentials in the environment. The SDK's loader would look for them in eight
//! more places, which no function has, and would add the code for all of them.

mod https;

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::certificates;

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
pub fn config(endpoint: Option<String>) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(OPERATION)
        .build();
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(region(variable))
        .http_client(https::Https::new(certificates::tls(), CONNECT))
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
        .timeout_config(timeouts)
        .service_config(Endpoints);
    config.set_credentials_provider(credentials(variable).map(SharedCredentialsProvider::new));
    config.set_endpoint_url(endpoint);
    config.build()
}

fn region(variable: impl Fn(&str) -> Option<String>) -> Option<Region> {
    let name = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
    name.map(Region::new)
}

/// Lambda replaces the whole environment before its credentials expire.
fn credentials(variable: impl Fn(&str) -> Option<String>) -> Option<Credentials> {
    let id = variable("AWS_ACCESS_KEY_ID")?;
    let secret = variable("AWS_SECRET_ACCESS_KEY")?;
    let token = variable("AWS_SESSION_TOKEN");
    Some(Credentials::new(id, secret, token, None, "environment"))
}

/// A variable of the process; an empty one counts as missing.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    value.filter(|value| !value.trim().is_empty())
}

/// Endpoints of single services from the environment.
#[derive(Debug)]
struct Endpoints;

impl LoadServiceConfig for Endpoints {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let service = key.service_id().to_uppercase().replace([' ', '-'], "_");
        (key.env() == ENDPOINT)
            .then(|| variable(&format!("{ENDPOINT}_{service}")))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_and_credentials_are_those_of_lambda() {
        let lambda = |name: &str| match name {
            "AWS_REGION" => Some("eu-central-1".to_owned()),
            "AWS_ACCESS_KEY_ID" => Some("id".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("secret".to_owned()),
            "AWS_SESSION_TOKEN" => Some("token".to_owned()),
            _ => None,
        };
        assert_eq!(region(lambda).unwrap().as_ref(), "eu-central-1");
        let found = credentials(lambda).unwrap();
        let expected = ("id", "secret", Some("token"));
        let (id, secret) = (found.access_key_id(), found.secret_access_key());
        assert_eq!((id, secret, found.session_token()), expected);
        assert!(region(|_| None).is_none() && credentials(|_| None).is_none());
    }
}
