//! Which addresses belong to the public internet. Pure.
//!
//! IPv4: all but the networks that IANA's registry of special purposes keeps from it. IPv6: only global
//! unicast, less the same; so everything that carries an IPv4 address inside (mapped, translated, 6to4,
//! Teredo) is out, whatever that address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Network, bits of its prefix, what it is.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32, &str); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a carrier"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's metadata"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay of 6to4"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(233, 252, 0, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(255, 255, 255, 255), 32, "broadcast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// Networks within global unicast that are not public.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32, &str); 5] = [
    (v6(0x2001, 0, 0), 32, "Teredo"),
    (v6(0x2001, 0, 0), 23, "reserved"),
    (v6(0x2001, 0xdb8, 0), 32, "for documentation"),
    (v6(0x2002, 0, 0), 16, "6to4"),
    (v6(0x3fff, 0, 0), 20, "for documentation"),
];

/// Networks outside of it that have a name.
const NAMED_V6: [(Ipv6Addr, u32, &str); 9] = [
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (
        Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0),
        96,
        "IPv4-mapped",
    ),
    (v6(0, 0, 0), 96, "IPv4-compatible"),
    (v6(0x64, 0xff9b, 0), 96, "translated IPv4"),
    (v6(0x64, 0xff9b, 1), 48, "translated IPv4"),
    (v6(0xfc00, 0, 0), 7, "unique local"),
    (v6(0xfe80, 0, 0), 10, "link-local"),
    (v6(0xff00, 0, 0), 8, "multicast"),
];

const fn v6(a: u16, b: u16, c: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)
}

/// Why an address is not the public internet's; `None` if it is.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let within = |network: Ipv4Addr, bits: u32| {
                u32::from(address) >> (32 - bits) == u32::from(network) >> (32 - bits)
            };
            find(&NOT_PUBLIC_V4, within)
        }
        IpAddr::V6(address) => {
            let within = |network: Ipv6Addr, bits: u32| {
                u128::from(address) >> (128 - bits) == u128::from(network) >> (128 - bits)
            };
            if within(v6(0x2000, 0, 0), 3) {
                find(&NOT_PUBLIC_V6, within)
            } else {
                find(&NAMED_V6, within).or(Some("not global unicast"))
            }
        }
    }
}

fn find<A: Copy>(
    networks: &[(A, u32, &'static str)],
    within: impl Fn(A, u32) -> bool,
) -> Option<&'static str> {
    let found = networks
        .iter()
        .find(|(network, bits, _)| within(*network, *bits));
    found.map(|(_, _, what)| *what)
}
