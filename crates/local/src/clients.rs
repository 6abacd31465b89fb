//! SDK configuration for the local endpoints.
//!
//! It is built here rather than loaded, so that the profile, region or proxy of the machine does not matter.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_sdk_sqs::config::{
    BehaviorVersion, Credentials, Region, SharedCredentialsProvider, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use aws_types::SdkConfig;
use aws_types::service_config::{LoadServiceConfig, ServiceConfigKey};

use crate::REGION;

pub fn sdk_config(endpoint: SocketAddr) -> SdkConfig {
    sdk_config_with(endpoint, endpoint, plain_http())
}

/// Configuration for SDK clients of all local endpoints, with the given HTTP client: DynamoDB and its
/// streams on one, everything else on the other.
pub(crate) fn sdk_config_with(
    dynamodb: SocketAddr,
    other: SocketAddr,
    http: SharedHttpClient,
) -> SdkConfig {
    let credentials = Credentials::new("local", "local", None, None, "antumbra-local");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static(REGION))
        .endpoint_url(format!("http://{other}"))
        .service_config(DynamoDbEndpoint(format!("http://{dynamodb}")))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http)
        // A long poll receives nothing for up to 20 seconds.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build()
}

#[derive(Debug)]
struct DynamoDbEndpoint(String);

impl LoadServiceConfig for DynamoDbEndpoint {
    fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
        let is_endpoint = key.env() == "AWS_ENDPOINT_URL";
        (is_endpoint && key.service_id().starts_with("DynamoDB")).then(|| self.0.clone())
    }
}

/// Plain HTTP: reading the system's certificates would add a tenth of a second to every start.
pub(crate) fn plain_http() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().build_http()
}

/// The HTTP client of each function's SDK clients, by the function's name. By default they call the services of the
/// stack without a network; tests observe or break calls with others.
#[derive(Clone, Default)]
pub struct HttpClients(Option<Arc<OfFunction>>);

type OfFunction = dyn Fn(&str) -> SharedHttpClient + Send + Sync;

impl HttpClients {
    pub fn new(of: impl Fn(&str) -> SharedHttpClient + Send + Sync + 'static) -> HttpClients {
        HttpClients(Some(Arc::new(of)))
    }

    /// Returns these clients, or the given one for all functions if there are none.
    pub(crate) fn or(self, client: &SharedHttpClient) -> HttpClients {
        match self.0 {
            Some(_) => self,
            None => {
                let client = client.clone();
                HttpClients::new(move |_| client.clone())
            }
        }
    }

    pub(crate) fn of(&self, function: &str) -> SharedHttpClient {
        match &self.0 {
            Some(of) => of(function),
            None => plain_http(),
        }
    }
}

impl fmt::Debug for HttpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClients").finish_non_exhaustive()
    }
}
