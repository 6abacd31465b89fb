//! Clients of an endpoint with scripted responses.

use antumbra_testkit::http::Endpoint;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use aws_types::SdkConfig;

/// A client configuration without retries.
pub(crate) fn config(endpoint: &str) -> SdkConfig {
    let anyone = Credentials::new("test", "test", None, None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("us-east-1"))
        .endpoint_url(endpoint)
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(RetryConfig::disabled())
        .credentials_provider(SharedCredentialsProvider::new(anyone))
        .build()
}

pub(crate) fn config_of(endpoint: &Endpoint) -> SdkConfig {
    config(&endpoint.url())
}
