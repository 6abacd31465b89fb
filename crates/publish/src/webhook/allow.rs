//! Exceptions that a deployment makes from the rule "HTTPS to the public internet" (`WEBHOOK_ALLOW`).
//!
//! A list, separated by commas or spaces. Each entry opens only what it names:
//!
//! | entry | opens |
//! |---|---|
//! | `hooks.example.internal` | this name, whatever it resolves to |
//! | `10.20.0.0/16`, `10.1.2.3`, `[fd00::]/8` | these addresses, under any name |
//! | `…:8443` | the same on this port only |
//! | `http://…` | the same, over plain HTTP as well |

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allow {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    plain: bool,
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    Network(IpNet),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{entry:?} is not a host name, address or network, with or without http:// and a port")]
pub struct InvalidAllow {
    entry: String,
}

impl Allow {
    pub(super) fn name(&self, plain: bool, name: &str, port: u16) -> bool {
        self.any(
            plain,
            port,
            |host| matches!(host, Host::Name(open) if open == name),
        )
    }

    pub(super) fn address(&self, plain: bool, address: IpAddr, port: u16) -> bool {
        self.any(
            plain,
            port,
            |host| matches!(host, Host::Network(network) if network.contains(&address)),
        )
    }

    /// Returns `true` if an entry opens plain HTTP to a network on this port. A name may then resolve to it.
    pub(super) fn some_plain_network(&self, port: u16) -> bool {
        self.any(true, port, |host| matches!(host, Host::Network(_)))
    }

    /// Returns `true` if an entry opens a network on exactly this port. A name may then resolve to it.
    pub(super) fn some_network_on(&self, port: u16) -> bool {
        let opens = |rule: &Rule| rule.port == Some(port) && matches!(rule.host, Host::Network(_));
        self.rules.iter().any(opens)
    }

    fn any(&self, plain: bool, port: u16, matches: impl Fn(&Host) -> bool) -> bool {
        self.rules.iter().any(|rule| {
            (rule.plain || !plain)
                && rule.port.is_none_or(|open| open == port)
                && matches(&rule.host)
        })
    }
}

impl FromStr for Allow {
    type Err = InvalidAllow;

    fn from_str(text: &str) -> Result<Allow, InvalidAllow> {
        let entries = text
            .split([',', ' ', '\n'])
            .filter(|entry| !entry.is_empty());
        let rule = |entry: &str| {
            parse_rule(entry).ok_or_else(|| InvalidAllow {
                entry: entry.to_owned(),
            })
        };
        Ok(Allow {
            rules: entries.map(rule).collect::<Result<_, _>>()?,
        })
    }
}

fn parse_rule(entry: &str) -> Option<Rule> {
    let (plain, rest) = match entry.strip_prefix("http://") {
        Some(rest) => (true, rest),
        None => (false, entry.strip_prefix("https://").unwrap_or(entry)),
    };
    // The colons of an IPv6 address without brackets do not start a port.
    if let Some(host) = parse_network(rest) {
        let port = None;
        return Some(Rule { plain, host, port });
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok().filter(|port| *port > 0)?)),
        None => (rest, None),
    };
    let host = parse_network(host).or_else(|| parse_name(host))?;
    Some(Rule { plain, host, port })
}

fn parse_network(text: &str) -> Option<Host> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse().ok()?)),
        None => (text, None),
    };
    let address = address
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(address);
    let address: IpAddr = address.parse().ok()?;
    let network = match bits {
        // A network of all addresses is a mistake.
        Some(0) => return None,
        Some(bits) => IpNet::new(address, bits).ok()?,
        None => address.into(),
    };
    Some(Host::Network(network))
}

fn parse_name(text: &str) -> Option<Host> {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let name = text.to_ascii_lowercase();
    let has_letter = name.bytes().any(|byte| byte.is_ascii_alphabetic());
    (has_letter && name.split('.').all(is_label)).then_some(Host::Name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_parsed_or_rejected() {
        for valid in [
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
            assert!(valid.parse::<Allow>().is_ok(), "{valid}");
        }
        for invalid in [
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
            assert!(invalid.parse::<Allow>().is_err(), "{invalid}");
        }
    }
}
