//! The guard decides which URLs and addresses webhooks may be sent to: the public internet over HTTPS, and the
//! exceptions of [`Allow`].
//!
//! A URL is checked when a client is created or changed ([`UrlPolicy`]). For every connection, `connect` resolves the
//! name and checks its addresses again. In this module `plain` means HTTP without TLS.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clients::{UrlPolicy, UrlRejection};
use url::{Host, Url};

use super::address::not_public;
use super::allow::Allow;
use super::resolve::{Resolve, SystemResolver};

/// The lowest port allowed besides 443 (80 for plain HTTP). Lower ports belong to services with other protocols, which
/// could take a request for one of theirs.
const LEAST_PORT: u16 = 1024;
/// Time limit for resolving the name of a new URL.
const RESOLVE_TIME: Duration = Duration::from_secs(2);
/// Domains that are never on the public internet.
const PRIVATE_SUFFIXES: [&str; 6] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "home.arpa",
    "localdomain",
];

#[derive(Clone)]
pub struct Guard {
    allow: Arc<Allow>,
    resolver: Arc<dyn Resolve>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint<'a> {
    pub(super) plain: bool,
    /// A name, or an address without brackets.
    pub(super) host: &'a str,
    pub(super) port: u16,
}

impl Guard {
    pub fn new(allow: Allow) -> Guard {
        Guard::with_resolver(allow, Arc::new(SystemResolver))
    }

    pub fn with_resolver(allow: Allow, resolver: Arc<dyn Resolve>) -> Guard {
        Guard {
            allow: Arc::new(allow),
            resolver,
        }
    }

    /// Parses and checks a URL without resolving its name.
    pub fn check_text(&self, text: &str) -> Result<Url, UrlRejection> {
        let rejected = |reason: &str| UrlRejection(reason.to_owned());
        // The URL parser would silently remove or convert these.
        if text
            .chars()
            .any(|c| c.is_control() || c == ' ' || c == '\\')
        {
            return Err(rejected("it has spaces, backslashes or control characters"));
        }
        let url = Url::parse(text).map_err(|fault| UrlRejection(fault.to_string()))?;
        let plain = match url.scheme() {
            "https" => false,
            "http" => true,
            _ => return Err(rejected("its scheme is not https")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(rejected("it has a user or password"));
        }
        if url.fragment().is_some() {
            return Err(rejected("it has a fragment"));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        match url.host() {
            None => return Err(rejected("it has no host")),
            Some(Host::Domain(name)) => self.check_name(plain, name, port)?,
            Some(Host::Ipv4(address)) => self.check_address(plain, address.into(), port)?,
            Some(Host::Ipv6(address)) => self.check_address(plain, address.into(), port)?,
        }
        Ok(url)
    }

    fn check_name(&self, plain: bool, name: &str, port: u16) -> Result<(), UrlRejection> {
        let name = name.strip_suffix('.').unwrap_or(name);
        // A name may end with one dot. If more were accepted, `localhost..` would look like a public name.
        if name.split('.').any(str::is_empty) {
            return Err(UrlRejection("its host is not a valid name".to_owned()));
        }
        if self.allow.name(plain, name, port) {
            return Ok(());
        }
        let private = PRIVATE_SUFFIXES.iter().any(|suffix| {
            name.strip_suffix(suffix)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        if private || !name.contains('.') {
            return Err(UrlRejection("its host is a private name".to_owned()));
        }
        if plain && !self.allow.some_plain_network(port) {
            return Err(UrlRejection("it is not https".to_owned()));
        }
        // An exception for a network and port applies to that network only, which is known when the name is resolved:
        // accept the port here, `addresses` checks it with the address.
        match self.allow.some_network_on(port) {
            true => Ok(()),
            false => check_port(plain, port),
        }
    }

    fn check_address(&self, plain: bool, address: IpAddr, port: u16) -> Result<(), UrlRejection> {
        if self.allow.address(plain, address, port) {
            return Ok(());
        }
        if let Some(kind) = not_public(address) {
            return Err(UrlRejection(format!("its address is {kind}")));
        }
        if plain {
            return Err(UrlRejection("it is not https".to_owned()));
        }
        check_port(plain, port)
    }

    /// Resolves the addresses of an endpoint. If one of them is not allowed, all are rejected: a public name that also
    /// resolves to a private address is an attack.
    pub(super) async fn addresses(
        &self,
        endpoint: Endpoint<'_>,
    ) -> Result<Vec<SocketAddr>, UrlRejection> {
        let Endpoint { plain, host, port } = endpoint;
        if let Ok(address) = host.parse::<IpAddr>() {
            self.check_address(plain, address, port)?;
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        self.check_name(plain, host, port)?;
        let found = self.resolver.resolve(host, port).await;
        let found =
            found.map_err(|fault| UrlRejection(format!("its name cannot be resolved: {fault}")))?;
        if found.is_empty() {
            return Err(UrlRejection("its name resolves to no address".to_owned()));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        if !self.allow.name(plain, name, port) {
            for address in &found {
                self.check_address(plain, address.ip(), port)?;
            }
        }
        // Use the port that was checked, not the one from the resolver.
        let addresses = found.iter().map(|found| SocketAddr::new(found.ip(), port));
        Ok(addresses.collect())
    }
}

fn check_port(plain: bool, port: u16) -> Result<(), UrlRejection> {
    let default = if plain { 80 } else { 443 };
    match port == default || port >= LEAST_PORT {
        true => Ok(()),
        false => Err(UrlRejection(format!("its port is {port}"))),
    }
}

impl UrlPolicy for Guard {
    async fn check(&self, text: &str) -> Result<String, UrlRejection> {
        let url = self.check_text(text)?;
        if let Some(Host::Domain(host)) = url.host() {
            let endpoint = Endpoint {
                plain: url.scheme() == "http",
                host,
                port: url.port_or_known_default().unwrap_or(0),
            };
            // A name that cannot be resolved now is accepted; it is resolved and checked again before each request.
            let resolved =
                tokio::time::timeout(RESOLVE_TIME, self.resolver.resolve(host, endpoint.port));
            if let Ok(Ok(found)) = resolved.await
                && !found.is_empty()
            {
                // Check the addresses just found instead of resolving the name a second time.
                let resolved_guard = Guard::with_resolver(
                    Allow::clone(&self.allow),
                    Arc::new(super::resolve::Known(found)),
                );
                resolved_guard.addresses(endpoint).await?;
            }
        }
        Ok(url.to_string())
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard")
            .field("allow", &self.allow)
            .finish_non_exhaustive()
    }
}
