//! One HTTP client for all clients of AWS's services.
//!
//! Left alone, each client of a service makes one of its own, and each of those reads the system's trusted
//! certificates into a store at its making: half a millisecond of a cold start, several times over. Shared,
//! that is done once.

use std::sync::Once;

use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::{
    RuntimeComponents, RuntimeComponentsBuilder,
};
use aws_smithy_types::config_bag::ConfigBag;

#[derive(Debug)]
pub(super) struct Shared {
    client: SharedHttpClient,
    certificates: Once,
}

impl Shared {
    /// The client the SDKs would make.
    pub(super) fn new() -> Shared {
        let builder = aws_smithy_http_client::Builder::new();
        Shared {
            client: builder
                .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
                .build_https(),
            certificates: Once::new(),
        }
    }
}

impl HttpClient for Shared {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.client.http_connector(settings, components)
    }

    /// Reads the certificates, which the process then keeps, while it starts and has a whole processor;
    /// once, whoever asks.
    fn validate_base_client_config(
        &self,
        components: &RuntimeComponentsBuilder,
        config: &ConfigBag,
    ) -> Result<(), BoxError> {
        let mut read = Ok(());
        self.certificates.call_once(|| {
            read = HttpClient::validate_base_client_config(&self.client, components, config);
        });
        read
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        self.client.connector_metadata()
    }
}
