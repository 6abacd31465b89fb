//! Names of shadows and of those who write them, checked once where they come in.

use std::fmt;

use antumbra_wire::items::{ItemKind, ShadowItem};

const ITEM: ItemKind = ItemKind::Shadow(ShadowItem::Reported);

/// The name a shadow has when none is given.
pub const DEFAULT_NAME: &str = "main";
/// Bytes of a shadow's id: a partition key's 2048 without its prefix.
pub const ID_BYTES: usize = 2048 - ITEM.partition_prefix().len();
/// Bytes of a shadow's name: a sort key's 1024 without its prefix.
pub const NAME_BYTES: usize = 1024 - ITEM.sort_prefix().len();
/// Bytes of a client token.
pub const CLIENT_TOKEN_BYTES: usize = 64;
/// Bytes of a time zone's name.
pub const ZONE_BYTES: usize = 64;

/// A shadow's identity: the device's id, and the name of one of its shadows.
///
/// ```
/// use antumbra_service::shadows::ShadowId;
/// let shadow = ShadowId::new("My House#Basement#Lightning Controller")?;
/// assert_eq!(shadow.name(), "main");
/// assert!(ShadowId::new("").is_err());
/// # Ok::<(), antumbra_service::shadows::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShadowId {
    id: String,
    name: String,
}

/// Error of an invalid id, name, token or zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// The text is empty.
    #[error("the {what} is empty")]
    Empty {
        /// Name of the value, for the message.
        what: &'static str,
    },
    /// The text is too long.
    #[error("the {what} has {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Name of the value, for the message.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
        /// Longest length allowed, in bytes.
        limit: usize,
    },
    /// A zone that is not a name of the IANA database's form.
    #[error("{zone:?} is not an IANA time zone name")]
    NotAZone {
        /// Text given.
        zone: String,
    },
}

impl ShadowId {
    /// The device's default shadow.
    pub fn new(id: impl Into<String>) -> Result<ShadowId, InvalidId> {
        ShadowId::named(id, DEFAULT_NAME)
    }

    /// One of the device's shadows by name.
    pub fn named(id: impl Into<String>, name: impl Into<String>) -> Result<ShadowId, InvalidId> {
        Ok(ShadowId {
            id: checked("shadow id", id.into(), ID_BYTES)?,
            name: checked("shadow name", name.into(), NAME_BYTES)?,
        })
    }

    /// The device's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The shadow's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ShadowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.name)
    }
}

/// Token that the last writer stored with a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientToken(String);

impl ClientToken {
    /// At most 64 bytes, and not nothing.
    pub fn new(token: impl Into<String>) -> Result<ClientToken, InvalidId> {
        checked("client token", token.into(), CLIENT_TOKEN_BYTES).map(ClientToken)
    }

    /// The token's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a time zone, such as `Europe/Stockholm`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Zone(String);

impl Zone {
    /// A name of the form the IANA database uses; whether there is such a zone is not looked up.
    pub fn new(zone: impl Into<String>) -> Result<Zone, InvalidId> {
        let zone = checked("time zone", zone.into(), ZONE_BYTES)?;
        let part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphabetic())
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
        };
        if zone.split('/').all(part) {
            Ok(Zone(zone))
        } else {
            Err(InvalidId::NotAZone { zone })
        }
    }

    /// The zone's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn checked(what: &'static str, text: String, limit: usize) -> Result<String, InvalidId> {
    match text.len() {
        0 => Err(InvalidId::Empty { what }),
        bytes if bytes > limit => Err(InvalidId::TooLong { what, bytes, limit }),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_said_with_the_actual_figure() {
        assert!(ShadowId::new("d".repeat(ID_BYTES)).is_ok());
        assert_eq!(
            ShadowId::new("d".repeat(ID_BYTES + 1))
                .unwrap_err()
                .to_string(),
            "the shadow id has 2046 bytes, the limit is 2045"
        );
        assert!(ShadowId::named("d", "n".repeat(NAME_BYTES + 1)).is_err());
        assert!(ShadowId::named("d", "").is_err());
        assert!(ClientToken::new("t".repeat(64)).is_ok());
        assert!(ClientToken::new("t".repeat(65)).is_err());
    }

    #[test]
    fn zones_look_like_zones() {
        for zone in [
            "Europe/Stockholm",
            "UTC",
            "America/Argentina/Buenos_Aires",
            "Etc/GMT+5",
        ] {
            assert!(Zone::new(zone).is_ok(), "{zone}");
        }
        for zone in ["", "Europe/", "+01:00", "Europe Stockholm"] {
            assert!(Zone::new(zone).is_err(), "{zone}");
        }
    }
}
