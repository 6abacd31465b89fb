//! Names of this machine.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::uri::Authority;

/// Returns whether a host name, without its port, always means this machine.
pub fn is_loopback(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_address = address
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback());
    let name = name.to_ascii_lowercase();
    is_address || name == "localhost" || name.ends_with(".localhost")
}

/// The only `Host` of a request, if it names this machine.
pub(super) fn loopback_host(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return None;
    };
    let host = host.to_str().ok().filter(|host| !host.contains('@'))?;
    let authority: Authority = host.parse().ok()?;
    is_loopback(authority.host()).then_some(host)
}
