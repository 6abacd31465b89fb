//! One HTTP connector for the clients of all AWS services.
//!
//! By default each client creates one when it is created, which reads the certificates, and another at its
//! first call. Here one is created during the function's start, which has a whole processor, and the first
//! call uses it.

use std::panic::catch_unwind;
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
    pub(super) fn new(connect_timeout: Duration) -> Shared {
        let bundle = certificates::bundle().and_then(|path| std::fs::read(path).ok());
        let connector = bundle
            .and_then(|pem| trusting(connect_timeout, pem))
            .unwrap_or_else(|| connector(connect_timeout, TlsContext::default()));
        Shared {
            connector: SharedHttpConnector::new(connector),
        }
    }
}

impl HttpClient for Shared {
    /// All clients use the settings of [`config`](super::config).
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

/// The connector that the SDKs would create.
fn connector(connect_timeout: Duration, context: TlsContext) -> Connector {
    let settings = HttpConnectorSettings::builder().connect_timeout(connect_timeout);
    Connector::builder()
        .connector_settings(settings.build())
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .tls_context(context)
        .build()
}

/// A connector that trusts the certificates of this file only. `None` if the file has none, or an invalid
/// one, at which the builder panics.
fn trusting(connect_timeout: Duration, pem: Vec<u8>) -> Option<Connector> {
    let begin = b"-----BEGIN CERTIFICATE-----";
    pem.windows(begin.len()).find(|window| window == begin)?;
    let make = move || {
        let store = TrustStore::empty().with_pem_certificate(pem);
        let context = TlsContext::builder().with_trust_store(store).build();
        Some(connector(connect_timeout, context.ok()?))
    };
    catch_unwind(make).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = include_str!("../../testdata/bundle.pem");

    fn is_accepted(pem: &str) -> bool {
        trusting(Duration::from_secs(1), pem.into()).is_some()
    }

    #[test]
    fn a_bundle_is_accepted() {
        assert!(is_accepted(TWO));
    }

    #[test]
    fn an_invalid_bundle_is_not_used() {
        let not_a_certificate =
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".to_owned() + TWO;
        let cut_off = &TWO[..TWO.len() - 100];
        let not_base64 = TWO.replacen("MII", "*II", 1);
        for pem in ["", "nothing", &not_a_certificate, cut_off, &not_base64] {
            assert!(!is_accepted(pem), "{pem}");
        }
    }
}
