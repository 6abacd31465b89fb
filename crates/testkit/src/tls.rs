//! Certificates of TLS endpoints, with their own authority.

use std::sync::Arc;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{RootCertStore, ServerConfig};

/// A certificate for a name and the authority that signed it.
pub fn certificate(name: &str) -> (ServerConfig, RootCertStore) {
    let mut authority = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let own = authority.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(authority, key);
    let server_key = rcgen::KeyPair::generate().unwrap();
    let server = rcgen::CertificateParams::new(vec![name.to_owned()])
        .unwrap()
        .signed_by(&server_key, &issuer)
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivatePkcs8KeyDer::from(server_key.serialize_der());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![server.der().clone()], key.into())
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.der().clone()).unwrap();
    (config, roots)
}
