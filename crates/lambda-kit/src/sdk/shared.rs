//! One HTTP connector for all clients of AWS's services.
//!
//! Left alone, each client of a service makes its own at its making, to have read the certificates, and
//! another at its first call. Here one is made while the function starts and has a whole processor, and
//! the first call finds it ready.

use std::time::Duration;

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::connector_metadata::ConnectorMetadata;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use crate::certificates;

#[derive(Debug)]
pub(super) struct Shared {
    connector: SharedHttpConnector,
}

impl Shared {
    /// As the SDKs would make it, but for where the certificates come from.
    pub(super) fn new(connect_timeout: Duration) -> Shared {
        let settings = HttpConnectorSettings::builder().connect_timeout(connect_timeout);
        let mut builder = Connector::builder()
            .connector_settings(settings.build())
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc));
        if let Some(bundle) = certificates::bundle() {
            let store = TrustStore::empty().with_pem_certificate(bundle.pem());
            let context = TlsContext::builder().with_trust_store(store).build();
            builder.set_tls_context(context.unwrap_or_default());
        }
        Shared {
            connector: SharedHttpConnector::new(builder.build()),
        }
    }
}

impl HttpClient for Shared {
    /// All clients have the settings of [`config`](super::config).
    fn http_connector(
        &self,
        _: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.connector.clone()
    }

    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        Some(ConnectorMetadata::new("hyper", Some("1.x".into())))
    }
}
