//! URLs of webhooks: every accepted URL leads to the public internet, however it is parsed.
//!
//! The input is a URL, the additionally allowed destinations, and the addresses that names resolve to, one
//! per line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::webhook::{Allow, Guard, addresses};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lines = text.split('\n');
    let (url, allow, found) = (lines.next(), lines.next(), lines.next());
    let url = url.unwrap_or_default();
    let found: Vec<IpAddr> = found
        .unwrap_or_default()
        .split([' ', ','])
        .filter_map(|address| address.parse().ok())
        .collect();
    let closed = check(url, &Allow::default(), &found);
    if let Ok(allow) = allow.unwrap_or_default().parse::<Allow>() {
        let open = check(url, &allow, &found);
        assert!(
            open || !closed,
            "{url} is refused because {allow:?} is allowed"
        );
    }
}

/// Returns whether the URL is accepted, after checking all invariants of an accepted URL.
fn check(text: &str, allow: &Allow, found: &[IpAddr]) -> bool {
    let strict = *allow == Allow::default();
    let guard = Guard::new(allow.clone());
    let Ok(url) = guard.check_text(text) else {
        return false;
    };
    // The guard changes nothing, and accepts its own output.
    assert_eq!(Url::parse(text).as_ref(), Ok(&url));
    assert_eq!(guard.check_text(url.as_str()).as_ref(), Ok(&url));
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    let plain = url.scheme() == "http";
    assert!(!(strict && plain), "{url}");
    let port = url.port_or_known_default().unwrap();
    if strict {
        assert!(port == 443 || port >= 1024, "{url}");
    }
    let host = host(&url, strict);
    called(&url, &host, port);
    if let Ok(reached) = addresses(allow, plain, &host, port, found) {
        assert!(!reached.is_empty());
        for address in reached {
            assert_eq!(address.port(), port, "{url}");
            assert!(!strict || public(address.ip()), "{url} leads to {address}");
        }
    }
    true
}

/// Returns the host that is connected to.
fn host(url: &Url, strict: bool) -> String {
    match url.host().unwrap() {
        Host::Ipv4(address) => {
            assert!(!strict || public(address.into()), "{url}");
            address.to_string()
        }
        Host::Ipv6(address) => {
            assert!(!strict || public(address.into()), "{url}");
            address.to_string()
        }
        Host::Domain(name) => {
            assert!(name.parse::<IpAddr>().is_err(), "{url}");
            assert!(name.is_ascii() && !name.is_empty(), "{url}");
            if strict {
                let bare = name.trim_end_matches('.');
                assert!(bare.contains('.'), "{url}");
                let last = bare.rsplit('.').next().unwrap();
                assert!(!["local", "localhost", "internal"].contains(&last), "{url}");
            }
            name.to_owned()
        }
    }
}

/// The HTTP client parses the URL with its own parser, which must find the same host and port.
fn called(url: &Url, host: &str, port: u16) {
    // An unparsable URL is never requested.
    let Ok(uri) = url.as_str().parse::<hyper::Uri>() else {
        return;
    };
    let seen = uri.host().unwrap();
    assert_eq!(
        seen.trim_start_matches('[').trim_end_matches(']'),
        host,
        "{url}"
    );
    assert_eq!(uri.scheme_str(), Some(url.scheme()));
    let usual = if url.scheme() == "http" { 80 } else { 443 };
    assert_eq!(uri.port_u16().unwrap_or(usual), port, "{url}");
    let user = uri.authority().unwrap().as_str().contains('@');
    assert!(!user, "{url}");
}

/// Returns whether an address is public, according to the standard library and the IANA registries.
fn public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) => public_v6(address),
    }
}

fn public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_unspecified()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || a == 100 && (64..128).contains(&b)
        || a == 198 && (b == 18 || b == 19)
        || (a, b, c) == (192, 0, 0)
        || address == Ipv4Addr::new(168, 63, 129, 16))
}

fn public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let hidden = address.to_ipv4().is_some() || address.to_ipv4_mapped().is_some();
    !(hidden
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || segments[0] == 0x2002
        || segments[..2] == [0x2001, 0]
        || segments[..2] == [0x2001, 0xdb8]
        || segments[..2] == [0x64, 0xff9b])
        && segments[0] & 0xe000 == 0x2000
}
