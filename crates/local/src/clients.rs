//! SDK configuration for the local endpoints.
//!
//! Built by hand rather than loaded: the local stack must behave the same
//! whatever profile, region or proxy the machine is set up with.

use std::net::SocketAddr;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider, StalledStreamProtectionConfig};

use crate::REGION;

/// Configuration for any SDK client that talks to the given local endpoint.
pub fn sdk_config(endpoint: SocketAddr) -> SdkConfig {
    let anyone = Credentials::new("local", "local", None, None, "antumbra-local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static(REGION))
        .endpoint_url(format!("http://{endpoint}"))
        .credentials_provider(SharedCredentialsProvider::new(anyone))
        // Plain HTTP: reading the system's certificates would cost every start
        // a tenth of a second for nothing.
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        // A long poll is silent for up to 20 seconds, and means it.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build()
}
