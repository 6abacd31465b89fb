//! The certificates that the system trusts, read from one file.
//!
//! Systems have them twice, as one bundle and as a directory of single files. The SDKs read both, which
//! costs milliseconds in every cold start; the bundle is enough. If the environment names another place, or
//! there is no bundle, the system's store is read by `rustls_native_certs`.

use std::path::PathBuf;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

/// Path of the system's bundle; `None` if the environment names another place.
pub(crate) fn bundle() -> Option<PathBuf> {
    if openssl_probe::has_ssl_cert_env_vars() {
        return None;
    }
    openssl_probe::probe().cert_file
}

/// Trusted roots for connections that are not made by the SDKs.
pub fn roots() -> RootCertStore {
    let bundle = bundle().and_then(|path| std::fs::read(path).ok());
    let mut roots = RootCertStore::empty();
    if let Some(pem) = bundle {
        let pem = std::str::from_utf8(&pem).unwrap_or_default();
        roots.add_parsable_certificates(certificates(pem));
    }
    if roots.is_empty() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            tracing::warn!(errors = ?found.errors, "no trusted certificates found");
        }
    }
    roots
}

/// Certificates of a PEM file. They are public, so the decoder need not run in constant time.
fn certificates(pem: &str) -> impl Iterator<Item = CertificateDer<'static>> {
    pem.split("-----BEGIN CERTIFICATE-----")
        .skip(1)
        .filter_map(|section| section.split_once("-----END CERTIFICATE-----"))
        .filter_map(|(body, _)| base64_simd::forgiving_decode_to_vec(body.as_bytes()).ok())
        .map(CertificateDer::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject as _;

    const TWO: &str = include_str!("../testdata/bundle.pem");

    #[test]
    fn certificates_are_those_that_rustls_reads() {
        let read: Vec<_> = CertificateDer::pem_slice_iter(TWO.as_bytes())
            .map(Result::unwrap)
            .collect();
        assert_eq!(certificates(TWO).collect::<Vec<_>>(), read);
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn invalid_sections_are_skipped() {
        for (pem, left) in [
            ("", 0),
            ("nothing", 0),
            (&TWO[..TWO.len() - 100], 1),
            (&TWO.replacen("MII", "*II", 1), 1),
            (&TWO.replace("CERTIFICATE", "PRIVATE KEY"), 0),
        ] {
            assert_eq!(certificates(pem).count(), left, "{pem}");
        }
    }

    #[test]
    fn the_systems_bundle_is_read_as_rustls_reads_it() {
        let Some(pem) = bundle().and_then(|path| std::fs::read(path).ok()) else {
            return;
        };
        let read: Vec<_> = CertificateDer::pem_slice_iter(&pem).flatten().collect();
        let ours: Vec<_> = certificates(std::str::from_utf8(&pem).unwrap()).collect();
        assert_eq!(ours, read);
    }
}
