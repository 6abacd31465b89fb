//! The certificates that a process trusts, and its TLS configuration.
//!
//! Functions on Lambda trust Mozilla's list, which is compiled in as keys and names that are ready to use. The system's
//! bundle there has the same list as text, and decoding it was three quarters of a cold start. Elsewhere, and where the
//! environment names another place, the system's certificates are read.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// Variables that name another place for certificates.
const PLACES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// TLS 1.2 and 1.3, for servers whose certificates lead to a trusted one.
pub fn tls() -> ClientConfig {
    trusting(roots())
}

fn roots() -> RootCertStore {
    match are_compiled_in(|name| std::env::var_os(name).is_some()) {
        true => compiled_in(),
        false => system(),
    }
}

/// TLS 1.2 and 1.3, for servers whose certificates lead to one of these roots.
#[allow(clippy::expect_used)]
pub fn trusting(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn are_compiled_in(is_set: impl Fn(&str) -> bool) -> bool {
    is_set("AWS_LAMBDA_RUNTIME_API") && !PLACES.iter().any(|name| is_set(name))
}

pub(crate) fn compiled_in() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

fn system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!(errors = ?found.errors, "no trusted certificates found");
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_trusted_outside_of_lambda_and_where_the_environment_names_a_place() {
        for (set, expected) in [
            (&["AWS_LAMBDA_RUNTIME_API"][..], true),
            (&["AWS_LAMBDA_RUNTIME_API", "SSL_CERT_FILE"], false),
            (&["AWS_LAMBDA_RUNTIME_API", "SSL_CERT_DIR"], false),
            (&[], false),
        ] {
            assert_eq!(
                are_compiled_in(|name| set.contains(&name)),
                expected,
                "{set:?}"
            );
        }
    }

    /// The roots of Amazon Trust Services, to which the certificates of AWS lead.
    #[test]
    fn the_roots_of_aws_are_compiled_in() {
        let roots = compiled_in();
        let named = |name: &str| {
            let contains = |subject: &[u8]| {
                subject
                    .windows(name.len())
                    .any(|part| part == name.as_bytes())
            };
            roots
                .roots
                .iter()
                .any(|root| contains(root.subject.as_ref()))
        };
        for name in [
            "Amazon Root CA 1",
            "Amazon Root CA 2",
            "Amazon Root CA 3",
            "Amazon Root CA 4",
            "Starfield Services Root Certificate Authority - G2",
        ] {
            assert!(named(name), "{name}");
        }
        assert!(!named("Amazon Root CA 5"));
    }
}
