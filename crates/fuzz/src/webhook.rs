//! The URL guard of webhooks, included from the `publish` crate without its SDKs.

// They are public in their own crate.
#![allow(unreachable_pub)]

#[path = "../../publish/src/webhook/address.rs"]
mod address;
#[path = "../../publish/src/webhook/allow.rs"]
mod allow;
#[path = "../../publish/src/webhook/guard.rs"]
mod guard;
#[path = "../../publish/src/webhook/resolve.rs"]
mod resolve;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use antumbra_service::clients::UrlRejection;
use futures_util::FutureExt as _;

pub(crate) use allow::Allow;
pub(crate) use guard::Guard;

/// Returns the addresses that requests to a URL may use if its name resolves to `found`.
pub(crate) fn addresses(
    allow: &Allow,
    plain: bool,
    host: &str,
    port: u16,
    found: &[IpAddr],
) -> Result<Vec<SocketAddr>, UrlRejection> {
    let found = found.iter().map(|ip| SocketAddr::new(*ip, 1)).collect();
    let guard = Guard::with_resolver(allow.clone(), Arc::new(resolve::Known(found)));
    let endpoint = guard::Endpoint { plain, host, port };
    // The resolver responds at once.
    guard.addresses(endpoint).now_or_never().unwrap()
}
