//! AWS configuration for a function: what a call may take, well below what the function may.

mod shared;

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};

/// One try of one call. A healthy DynamoDB or SQS answers within milliseconds.
const ATTEMPT: Duration = Duration::from_millis(2500);
/// One call with the SDK's own retries.
const OPERATION: Duration = Duration::from_secs(6);
const CONNECT: Duration = Duration::from_millis(1000);
const ATTEMPTS: u32 = 3;

/// The function's region and credentials with these limits. `endpoint` is for local stacks.
pub async fn config(endpoint: Option<String>) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(OPERATION)
        .build();
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(shared::Shared::new())
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
        .timeout_config(timeouts);
    match endpoint {
        Some(endpoint) => loader.endpoint_url(endpoint).load().await,
        None => loader.load().await,
    }
}
