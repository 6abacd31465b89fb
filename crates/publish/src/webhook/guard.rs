//! The guard: which URLs may be called, and which of the addresses their names lead to.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clients::{UrlPolicy, UrlRejection};
use url::{Host, Url};

use super::address::not_public;
use super::allow::Allow;
use super::resolve::{Resolve, SystemResolver};

/// The least port that may be called beside 443 and, where plain HTTP is open, 80: those below belong to
/// services that speak no HTTP and may take a request for something else.
const LEAST_PORT: u16 = 1024;
/// How long a name is looked up when a URL is first given.
const LOOK_UP: Duration = Duration::from_secs(2);
/// Names that never lead to the public internet.
const PRIVATE_SUFFIXES: [&str; 6] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "home.arpa",
    "localdomain",
];

/// Says where requests may go: to the public internet over HTTPS, and to what is allowed besides.
#[derive(Clone)]
pub struct Guard {
    allow: Arc<Allow>,
    resolver: Arc<dyn Resolve>,
}

/// Where a request goes, as the guard sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// Over plain HTTP.
    pub(super) plain: bool,
    /// A name, or an address without brackets.
    pub(super) host: &'a str,
    pub(super) port: u16,
}

impl Guard {
    /// With the system's resolver.
    pub fn new(allow: Allow) -> Guard {
        Guard::with_resolver(allow, Arc::new(SystemResolver))
    }

    /// With another one.
    pub fn with_resolver(allow: Allow, resolver: Arc<dyn Resolve>) -> Guard {
        Guard {
            allow: Arc::new(allow),
            resolver,
        }
    }

    /// Checks what a URL says by itself, the address included if it names one.
    pub fn check_text(&self, text: &str) -> Result<Url, UrlRejection> {
        let refused = |reason: &str| UrlRejection(reason.to_owned());
        // Parsers of URLs drop these without a word.
        if text
            .chars()
            .any(|c| c.is_control() || c == ' ' || c == '\\')
        {
            return Err(refused("it has spaces, backslashes or control characters"));
        }
        let url = Url::parse(text).map_err(|fault| UrlRejection(fault.to_string()))?;
        let plain = match url.scheme() {
            "https" => false,
            "http" => true,
            _ => return Err(refused("its scheme is not https")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it has a user or password"));
        }
        if url.fragment().is_some() {
            return Err(refused("it has a fragment"));
        }
        let port = url.port_or_known_default().unwrap_or(0);
        match url.host() {
            None => return Err(refused("it has no host")),
            Some(Host::Domain(name)) => self.check_name(plain, name, port)?,
            Some(Host::Ipv4(address)) => self.check_address(plain, address.into(), port)?,
            Some(Host::Ipv6(address)) => self.check_address(plain, address.into(), port)?,
        }
        Ok(url)
    }

    fn check_name(&self, plain: bool, name: &str, port: u16) -> Result<(), UrlRejection> {
        let name = name.strip_suffix('.').unwrap_or(name);
        // One full stop may end a name; behind more of them `localhost..` would look like a public one.
        if name.split('.').any(str::is_empty) {
            return Err(UrlRejection("its host is no name".to_owned()));
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
        self.check_port(plain, port)
    }

    fn check_port(&self, plain: bool, port: u16) -> Result<(), UrlRejection> {
        let usual = if plain { 80 } else { 443 };
        if port == usual || port >= LEAST_PORT || self.allow.port(port) {
            return Ok(());
        }
        Err(UrlRejection(format!("its port is {port}")))
    }

    fn check_address(&self, plain: bool, address: IpAddr, port: u16) -> Result<(), UrlRejection> {
        if self.allow.address(plain, address, port) {
            return Ok(());
        }
        if let Some(what) = not_public(address) {
            return Err(UrlRejection(format!("its address is {what}")));
        }
        if plain {
            return Err(UrlRejection("it is not https".to_owned()));
        }
        self.check_port(plain, port)
    }

    /// The addresses a request may be sent to. If the name leads to any that may not be called, it may
    /// not be called at all: nobody's name leads half into a private network by accident.
    pub(super) async fn addresses(
        &self,
        place: Place<'_>,
    ) -> Result<Vec<SocketAddr>, UrlRejection> {
        let Place { plain, host, port } = place;
        if let Ok(address) = host.parse::<IpAddr>() {
            self.check_address(plain, address, port)?;
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        self.check_name(plain, host, port)?;
        let found = self.resolver.resolve(host, port).await;
        let found =
            found.map_err(|fault| UrlRejection(format!("its name leads nowhere: {fault}")))?;
        if found.is_empty() {
            return Err(UrlRejection("its name leads nowhere".to_owned()));
        }
        if !self
            .allow
            .name(plain, host.strip_suffix('.').unwrap_or(host), port)
        {
            for address in &found {
                self.check_address(plain, address.ip(), port)?;
            }
        }
        // The port that was checked, whatever the resolver says.
        let ported = found.iter().map(|found| SocketAddr::new(found.ip(), port));
        Ok(ported.collect())
    }
}

impl UrlPolicy for Guard {
    async fn check(&self, text: &str) -> Result<String, UrlRejection> {
        let url = self.check_text(text)?;
        if let Some(Host::Domain(host)) = url.host() {
            let place = Place {
                plain: url.scheme() == "http",
                host,
                port: url.port_or_known_default().unwrap_or(0),
            };
            // A name that cannot be looked up now may be tomorrow; it is looked up again when it counts.
            let looked_up = tokio::time::timeout(LOOK_UP, self.resolver.resolve(host, place.port));
            if let Ok(Ok(found)) = looked_up.await
                && !found.is_empty()
            {
                let known = Guard::with_resolver(
                    Allow::clone(&self.allow),
                    Arc::new(super::resolve::Known(found)),
                );
                known.addresses(place).await?;
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
