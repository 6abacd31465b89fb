//! The certificates that the system trusts, from one file.
//!
//! Systems keep them twice, as one bundle and as a directory of single files, and what the SDKs use reads
//! both: milliseconds of every cold start. The bundle alone is enough. Where the environment names another
//! place, or there is no bundle, the whole system's store counts, read in the usual way.

use std::path::PathBuf;

use rustls::RootCertStore;

/// Where the system has its bundle, unless the environment names a place of its own.
pub(crate) fn bundle() -> Option<PathBuf> {
    if openssl_probe::has_ssl_cert_env_vars() {
        return None;
    }
    openssl_probe::probe().cert_file
}

/// For connections that are not the SDKs'.
pub fn roots() -> RootCertStore {
    let found = match bundle() {
        Some(bundle) => rustls_native_certs::load_certs_from_paths(Some(&bundle), None),
        None => rustls_native_certs::load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!(errors = ?found.errors, "this system trusts no certificates");
    }
    roots
}
