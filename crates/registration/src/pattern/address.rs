//! Internet addresses and networks.
//!
//! As in EventBridge, a string that is an address equals every other spelling of it. Unlike there, a network never
//! contains an address of the other family.

use std::net::Ipv6Addr;

/// An address as a number, with its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    v6: bool,
    bits: u128,
}

/// A range of addresses of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) low: Address,
    pub(crate) high: Address,
}

impl Address {
    /// Parses an address. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        match text.as_bytes().first()? {
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b':' => {}
            _ => return None,
        }
        if text.len() > 39 {
            return None;
        }
        if !text.contains(':') {
            return Some(Address {
                v6: false,
                bits: v4(text)?.into(),
            });
        }
        if text.contains('.') {
            return None;
        }
        let address: Ipv6Addr = text.parse().ok()?;
        Some(match address.to_ipv4_mapped() {
            Some(mapped) => Address {
                v6: false,
                bits: mapped.to_bits().into(),
            },
            None => Address {
                v6: true,
                bits: address.to_bits(),
            },
        })
    }
}

/// Parses four decimal numbers; leading zeros do not mean octal.
fn v4(text: &str) -> Option<u32> {
    let mut bits = 0u32;
    let mut numbers = 0;
    for part in text.split('.') {
        numbers += 1;
        if numbers > 4
            || part.is_empty()
            || part.len() > 3
            || !part.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        bits = bits << 8 | u32::from(part.parse::<u8>().ok()?);
    }
    (numbers == 4).then_some(bits)
}

impl Network {
    pub(crate) fn parse(text: &str) -> Result<Network, String> {
        let (address, bits) = text
            .split_once('/')
            .ok_or("a network has the form address/bits, such as 10.0.0.0/8")?;
        let address =
            Address::parse(address).ok_or_else(|| format!("{address:?} is not an address"))?;
        let width = if address.v6 { 128 } else { 32 };
        let fixed = bits
            .parse::<u32>()
            .ok()
            .filter(|fixed| *fixed < width)
            .ok_or_else(|| format!("the number of bits must be below {width}; for a single address use a plain value"))?;
        let free = (1u128 << (width - fixed - 1) << 1).wrapping_sub(1);
        let low = Address {
            bits: address.bits & !free,
            ..address
        };
        let high = Address {
            bits: address.bits | free,
            ..address
        };
        Ok(Network { low, high })
    }

    pub(crate) fn contains(&self, address: Address) -> bool {
        self.low <= address && address <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address() {
        for (a, b) in [
            ("10.0.0.1", "10.0.0.001"),
            ("::1", "0:0:0:0:0:0:0:1"),
            ("ABCD::", "abcd:0::"),
            ("::ffff:a00:1", "10.0.0.1"),
        ] {
            assert_eq!(
                Address::parse(a).unwrap(),
                Address::parse(b).unwrap(),
                "{a} {b}"
            );
        }
        for text in [
            "",
            "10.0.0",
            "10.0.0.0.1",
            "256.0.0.1",
            "1.2.3.",
            "g::1",
            "10",
            "::1%eth0",
            "::ffff:10.0.0.1",
            ":",
            "1.2.3.0004",
            "+1.2.3.4",
        ] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn networks_hold_their_family() {
        let inside = |network: &str, address: &str| {
            Network::parse(network)
                .unwrap()
                .contains(Address::parse(address).unwrap())
        };
        assert!(inside("10.1.2.3/8", "10.255.255.255"));
        assert!(!inside("10.0.0.0/8", "11.0.0.0"));
        assert!(inside("0.0.0.0/0", "255.255.255.255"));
        assert!(!inside("0.0.0.0/0", "::1"));
        assert!(inside("::/0", "ffff::1"));
        assert!(!inside("::/0", "10.0.0.1"));
        assert!(inside("10.0.0.0/31", "10.0.0.1"));
        assert!(inside("2001:db8::/127", "2001:db8::1"));
        assert!(!inside("2001:db8::/127", "2001:db8::2"));
        for text in [
            "10.0.0.0",
            "10.0.0.0/32",
            "::/128",
            "10.0.0.0/-1",
            "10.0.0.0/x",
            "x/8",
            "10.0.0.0/8/8",
        ] {
            assert!(Network::parse(text).is_err(), "{text}");
        }
    }
}
