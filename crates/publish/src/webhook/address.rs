//! Addresses that are not on the public internet.
//!
//! IPv4: the networks of IANA's special-purpose registry. IPv6: everything but global unicast, and the
//! special-purpose networks within it. Addresses that embed an IPv4 address (mapped, translated, 6to4, Teredo) are
//! never public, whichever address they embed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const NOT_PUBLIC_V4: [(Ipv4Net, &str); 18] = [
    (v4([0, 0, 0, 0], 8), "unspecified"),
    (v4([10, 0, 0, 0], 8), "private"),
    (v4([100, 64, 0, 0], 10), "carrier-grade NAT"),
    (v4([127, 0, 0, 0], 8), "loopback"),
    (v4([168, 63, 129, 16], 32), "a cloud metadata service"),
    (v4([169, 254, 0, 0], 16), "link-local"),
    (v4([172, 16, 0, 0], 12), "private"),
    (v4([192, 0, 0, 0], 24), "reserved"),
    (v4([192, 0, 2, 0], 24), "for documentation"),
    (v4([192, 88, 99, 0], 24), "a 6to4 relay"),
    (v4([192, 168, 0, 0], 16), "private"),
    (v4([198, 18, 0, 0], 15), "for benchmarks"),
    (v4([198, 51, 100, 0], 24), "for documentation"),
    (v4([203, 0, 113, 0], 24), "for documentation"),
    (v4([233, 252, 0, 0], 24), "for documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([255, 255, 255, 255], 32), "broadcast"),
    (v4([240, 0, 0, 0], 4), "reserved"),
];

const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0], 3);

const NOT_PUBLIC_V6: [(Ipv6Net, &str); 5] = [
    (v6([0x2001, 0, 0], 32), "Teredo"),
    (v6([0x2001, 0, 0], 23), "reserved"),
    (v6([0x2001, 0xdb8, 0], 32), "for documentation"),
    (v6([0x2002, 0, 0], 16), "6to4"),
    (v6([0x3fff, 0, 0], 20), "for documentation"),
];

/// Networks outside global unicast, for the error message.
const NAMED_V6: [(Ipv6Net, &str); 9] = [
    (Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128), "loopback"),
    (
        Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 128),
        "unspecified",
    ),
    (
        Ipv6Net::new_assert(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
        "IPv4-mapped",
    ),
    (v6([0, 0, 0], 96), "IPv4-compatible"),
    (v6([0x64, 0xff9b, 0], 96), "translated IPv4"),
    (v6([0x64, 0xff9b, 1], 48), "translated IPv4"),
    (v6([0xfc00, 0, 0], 7), "unique local"),
    (v6([0xfe80, 0, 0], 10), "link-local"),
    (v6([0xff00, 0, 0], 8), "multicast"),
];

const fn v4([a, b, c, d]: [u8; 4], bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6([a, b, c]: [u16; 3], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// The kind of a non-public address; `None` if the address is public.
pub(super) fn not_public(address: IpAddr) -> Option<&'static str> {
    let address = match address {
        IpAddr::V4(address) => {
            let mut networks = NOT_PUBLIC_V4.iter();
            return networks
                .find(|(network, _)| network.contains(&address))
                .map(|(_, kind)| *kind);
        }
        IpAddr::V6(address) => address,
    };
    let kind_in = |networks: &[(Ipv6Net, &'static str)]| {
        let mut networks = networks.iter();
        let found = networks.find(|(network, _)| network.contains(&address));
        found.map(|(_, kind)| *kind)
    };
    match GLOBAL_UNICAST.contains(&address) {
        true => kind_in(&NOT_PUBLIC_V6),
        false => kind_in(&NAMED_V6).or(Some("not global unicast")),
    }
}
