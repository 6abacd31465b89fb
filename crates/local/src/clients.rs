//! SDK configuration for the local endpoints.
//!
//! Built by hand rather than loaded: the local stack must behave the same
//! whatever profile, region or proxy the machine is set up with.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::{
    Credentials, SharedCredentialsProvider, SharedHttpClient, StalledStreamProtectionConfig,
};

use crate::REGION;

/// Configuration for any SDK client that talks to the given local endpoint.
pub fn sdk_config(endpoint: SocketAddr) -> SdkConfig {
    sdk_config_with(endpoint, plain_http())
}

/// The same, sending by the given client.
pub(crate) fn sdk_config_with(endpoint: SocketAddr, http: SharedHttpClient) -> SdkConfig {
    let anyone = Credentials::new("local", "local", None, None, "antumbra-local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static(REGION))
        .endpoint_url(format!("http://{endpoint}"))
        .credentials_provider(SharedCredentialsProvider::new(anyone))
        .http_client(http)
        // A long poll is silent for up to 20 seconds, and means it.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build()
}

/// Plain HTTP: reading the system's certificates would cost every start a
/// tenth of a second for nothing.
fn plain_http() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().build_http()
}

/// What each function calls AWS with, by the function's name: plain HTTP,
/// unless somebody wants to see or to break what a function calls.
#[derive(Clone)]
pub struct HttpClients(Arc<dyn Fn(&str) -> SharedHttpClient + Send + Sync>);

impl HttpClients {
    /// Another client for each function.
    pub fn new(of: impl Fn(&str) -> SharedHttpClient + Send + Sync + 'static) -> HttpClients {
        HttpClients(Arc::new(of))
    }

    /// The client of one function.
    pub(crate) fn of(&self, function: &str) -> SharedHttpClient {
        (self.0)(function)
    }
}

impl Default for HttpClients {
    fn default() -> HttpClients {
        HttpClients::new(|_| plain_http())
    }
}

impl fmt::Debug for HttpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClients").finish_non_exhaustive()
    }
}
