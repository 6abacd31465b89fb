//! The certificates that the system trusts, read from one file, once.
//!
//! Systems keep them twice, as one bundle and as a directory of single files, and what the SDKs use reads
//! both: milliseconds of every cold start. The bundle alone is enough. Where the environment names another
//! place, or the bundle holds anything that is not a certificate, nothing is taken from here and the whole
//! system's store counts, read in the usual way.

use std::path::PathBuf;
use std::sync::LazyLock;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

static BUNDLE: LazyLock<Option<Bundle>> =
    LazyLock::new(|| std::fs::read(path()?).ok().and_then(Bundle::read));

/// One file of certificates, each of which can be trusted.
pub(crate) struct Bundle {
    pem: Vec<u8>,
    roots: RootCertStore,
}

impl Bundle {
    fn read(pem: Vec<u8>) -> Option<Bundle> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate.ok()?).ok()?;
        }
        (!roots.is_empty()).then_some(Bundle { pem, roots })
    }

    /// The file as it is.
    pub(crate) fn pem(&self) -> &[u8] {
        &self.pem
    }
}

pub(crate) fn bundle() -> Option<&'static Bundle> {
    BUNDLE.as_ref()
}

/// For connections that are not the SDKs'. `None` where the whole system's store is to be read.
pub fn roots() -> Option<RootCertStore> {
    bundle().map(|bundle| bundle.roots.clone())
}

/// Where the system has its bundle, unless the environment names a place of its own.
fn path() -> Option<PathBuf> {
    if openssl_probe::has_ssl_cert_env_vars() {
        return None;
    }
    openssl_probe::probe().cert_file
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = include_str!("../testdata/bundle.pem");

    fn trusted(pem: &str) -> Option<usize> {
        Bundle::read(pem.into()).map(|bundle| bundle.roots.len())
    }

    #[test]
    fn a_bundle_is_all_of_its_certificates() {
        assert_eq!(trusted(TWO), Some(2));
    }

    /// The SDKs' client would panic at them.
    #[test]
    fn what_cannot_be_trusted_leaves_the_rest_to_the_systems_store() {
        let not_a_certificate =
            "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".to_owned() + TWO;
        let cut_off = &TWO[..TWO.len() - 100];
        let not_base64 = TWO.replacen("MII", "*II", 1);
        for pem in ["", "nothing", &not_a_certificate, cut_off, &not_base64] {
            assert_eq!(trusted(pem), None, "{pem}");
        }
    }
}
