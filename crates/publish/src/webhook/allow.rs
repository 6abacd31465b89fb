//! What a deployment opens beside the public internet.
//!
//! A list, separated by commas or spaces. Each entry opens only what it says:
//!
//! | entry | opens |
//! |---|---|
//! | `hooks.example.internal` | this name, wherever it leads |
//! | `10.20.0.0/16`, `10.1.2.3`, `[fd00::]/8` | these addresses, under any name |
//! | `…:8443` | the same on this port alone |
//! | `http://…` | the same, over plain HTTP as well |

use std::net::IpAddr;
use std::str::FromStr;

/// A list of exceptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allow {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    plain: bool,
    what: What,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Name(String),
    Network(IpAddr, u32),
}

/// An entry that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is no host name, address or network, with or without http:// and a port")]
pub struct InvalidAllow {
    entry: String,
}

impl Allow {
    /// Whether a name is opened, wherever it leads.
    pub(super) fn name(&self, plain: bool, name: &str, port: u16) -> bool {
        let named = |rule: &Rule| matches!(&rule.what, What::Name(open) if open == name);
        self.rules
            .iter()
            .any(|rule| rule.fits(plain, port) && named(rule))
    }

    /// Whether an address is opened.
    pub(super) fn address(&self, plain: bool, address: IpAddr, port: u16) -> bool {
        let within = |rule: &Rule| matches!(rule.what, What::Network(network, bits) if within(address, network, bits));
        self.rules
            .iter()
            .any(|rule| rule.fits(plain, port) && within(rule))
    }

    /// Whether plain HTTP is opened for some addresses, so that a name may lead there.
    pub(super) fn some_plain_network(&self, port: u16) -> bool {
        let network = |rule: &Rule| matches!(rule.what, What::Network(..));
        self.rules
            .iter()
            .any(|rule| rule.fits(true, port) && network(rule))
    }

    /// Whether an entry names this port.
    pub(super) fn port(&self, port: u16) -> bool {
        self.rules.iter().any(|rule| rule.port == Some(port))
    }
}

impl Rule {
    fn fits(&self, plain: bool, port: u16) -> bool {
        (self.plain || !plain) && self.port.is_none_or(|open| open == port)
    }
}

impl FromStr for Allow {
    type Err = InvalidAllow;

    fn from_str(text: &str) -> Result<Allow, InvalidAllow> {
        let entries = text
            .split([',', ' ', '\n'])
            .filter(|entry| !entry.is_empty());
        let rule = |entry: &str| {
            rule(entry).ok_or_else(|| InvalidAllow {
                entry: entry.to_owned(),
            })
        };
        Ok(Allow {
            rules: entries.map(rule).collect::<Result<_, _>>()?,
        })
    }
}

fn rule(entry: &str) -> Option<Rule> {
    let (plain, rest) = match entry.strip_prefix("http://") {
        Some(rest) => (true, rest),
        None => (false, entry.strip_prefix("https://").unwrap_or(entry)),
    };
    // An IPv6 address without brackets has colons that are no port's.
    if let Some(what) = network(rest) {
        let port = None;
        return Some(Rule { plain, what, port });
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        None => (rest, None),
    };
    let what = network(host).or_else(|| name(host))?;
    Some(Rule { plain, what, port })
}

fn network(text: &str) -> Option<What> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (text, None),
    };
    let address = address
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(address);
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(longest);
    // A network that opens everything is a mistake.
    (1..=longest)
        .contains(&bits)
        .then_some(What::Network(address, bits))
}

fn name(text: &str) -> Option<What> {
    let fine = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let lower = text.to_ascii_lowercase();
    let letter = lower.bytes().any(|byte| byte.is_ascii_alphabetic());
    (letter && lower.split('.').all(fine)).then_some(What::Name(lower))
}

fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            u32::from(address) >> (32 - bits) == u32::from(network) >> (32 - bits)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            u128::from(address) >> (128 - bits) == u128::from(network) >> (128 - bits)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_or_refused() {
        for fine in [
            "",
            "hooks.example",
            "10.0.0.0/8",
            "fd00::/8",
            "[fd00::]/8",
            "[::1]:8080",
            "::1",
            "http://127.0.0.1:8080",
            "http://localhost, https://a.b:1 10.1.1.1",
        ] {
            assert!(fine.parse::<Allow>().is_ok(), "{fine}");
        }
        for bad in [
            "ftp://a",
            "a/b",
            "10.0.0.0/0",
            "::/0",
            "10.0.0.0/33",
            "10.0.0.0/x",
            "a:b",
            "a:0",
            "a:65536",
            "*",
            "*.example",
            "user@host",
            "1.2.3",
            "a..b",
            "http://",
        ] {
            assert!(bad.parse::<Allow>().is_err(), "{bad}");
        }
    }
}
