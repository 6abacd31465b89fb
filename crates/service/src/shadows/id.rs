//! Ids and names of shadows, client tokens and time zones: texts that are checked once, when a request is parsed.

use std::fmt;

use antumbra_wire::items::index_keys::fleet_shard;

use crate::fnv::{fnv1a, shard};
use crate::text::{InvalidText, check_text, checked_text};

/// Name of a device's default shadow.
pub const DEFAULT_NAME: &str = "main";
/// Maximum bytes of a shadow's id.
pub const ID_BYTES: usize = 1024;
/// Maximum bytes of a shadow's name. The sort keys of its history hold it with escapes, a time and a version.
pub const NAME_BYTES: usize = 256;
/// Maximum bytes of a client token.
pub const CLIENT_TOKEN_BYTES: usize = 64;
/// Maximum bytes of a time zone's name.
pub const ZONE_BYTES: usize = 64;

/// Partitions of the index of shadows.
pub const FLEET_SHARDS: u32 = 16;
/// Maximum bytes of a key in the index of shadows, which DynamoDB limits to 1024.
const FLEET_KEY_BYTES: usize = 1000;
/// Bytes of an id that a key holds at least.
const FLEET_PREFIX_BYTES: usize = 900;
/// Between id and name. It sorts before every printable character, so that keys are ordered by id.
const FLEET_SEPARATOR: char = '\u{1}';

/// Returns the start of the keys in the index of shadows of all ids that start with a text.
pub fn fleet_prefix(prefix: &str) -> &str {
    &prefix[..prefix.floor_char_boundary(FLEET_PREFIX_BYTES)]
}

/// Returns the start of the keys in the index of shadows of one device, and its partition.
pub fn fleet_of_device(id: &str) -> (String, String) {
    let mut start = fleet_prefix(id).to_owned();
    // The key of a longer id may end it earlier.
    if start.len() == id.len() {
        start.push(FLEET_SEPARATOR);
    }
    (start, fleet_shard(shard(id, FLEET_SHARDS)))
}

/// A shadow's identity: the device's id, and the name of one of its shadows.
///
/// ```
/// use antumbra_service::shadows::ShadowId;
/// let shadow = ShadowId::new("My House#Basement#Lightning Controller")?;
/// assert_eq!(shadow.name(), "main");
/// assert!(ShadowId::new("").is_err());
/// # Ok::<(), antumbra_service::text::InvalidText>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShadowId {
    id: String,
    name: String,
}

impl ShadowId {
    /// Returns the id of the device's default shadow.
    pub fn new(id: impl Into<String>) -> Result<ShadowId, InvalidText> {
        ShadowId::named(id, DEFAULT_NAME)
    }

    /// Returns the id of one of the device's shadows by name.
    pub fn named(id: impl Into<String>, name: impl Into<String>) -> Result<ShadowId, InvalidText> {
        Ok(ShadowId {
            id: check_text("shadow id", id.into(), ID_BYTES, |_| true)?,
            name: check_text("shadow name", name.into(), NAME_BYTES, |_| true)?,
        })
    }

    /// Returns the partition of this shadow in the index of shadows; stable everywhere. All shadows of a device are in
    /// one partition.
    pub fn fleet_shard(&self) -> String {
        fleet_shard(shard(&self.id, FLEET_SHARDS))
    }

    /// Returns the place of this shadow in its partition: id and name; a hash instead of their rest where both are too
    /// long for a key.
    pub fn fleet_key(&self) -> String {
        let whole = format!("{}{FLEET_SEPARATOR}{}", self.id, self.name);
        if whole.len() <= FLEET_KEY_BYTES {
            return whole;
        }
        let (start, hash) = (fleet_prefix(&self.id), fnv1a(whole.as_bytes()));
        format!("{start}{FLEET_SEPARATOR}{hash:016x}")
    }

    /// Returns the device's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the shadow's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ShadowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.name)
    }
}

checked_text! {
    /// Token that the last writer stored with a document: 1 to 64 bytes.
    pub struct ClientToken checked by |text| check_text("client token", text, CLIENT_TOKEN_BYTES, |_| true);
}

checked_text! {
    /// Name of a time zone of the IANA database, such as `Europe/Stockholm`.
    pub struct Zone checked by |text| known_zone(check_zone(text)?);
}

/// The names in the IANA database, in order.
const ZONES: &str = include_str!("zones.txt");

impl Zone {
    /// A zone that is stored already: the database may have lost or not yet have its name.
    pub fn stored(text: impl Into<String>) -> Result<Zone, InvalidText> {
        check_zone(text.into()).map(Zone)
    }
}

fn known_zone(text: String) -> Result<String, InvalidText> {
    match ZONES.lines().any(|zone| zone == text) {
        true => Ok(text),
        false => Err(InvalidText::NotAZone { text }),
    }
}

fn check_zone(text: String) -> Result<String, InvalidText> {
    let text = check_text("time zone", text, ZONE_BYTES, |_| true)?;
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'))
    };
    match text.split('/').all(is_part) {
        true => Ok(text),
        false => Err(InvalidText::NotAZone { text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_state_the_limit_and_the_actual_size() {
        assert!(ShadowId::new("d".repeat(ID_BYTES)).is_ok());
        assert_eq!(
            ShadowId::new("d".repeat(ID_BYTES + 1))
                .unwrap_err()
                .to_string(),
            "the shadow id has 1025 bytes, the limit is 1024"
        );
        assert!(ShadowId::named("d", "n".repeat(NAME_BYTES + 1)).is_err());
        assert!(ShadowId::named("d", "").is_err());
        assert!(ClientToken::new("t".repeat(64)).is_ok());
        assert!(ClientToken::new("t".repeat(65)).is_err());
    }

    #[test]
    fn time_zones_are_those_of_the_iana_database() {
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
            assert!(Zone::stored(zone).is_err(), "{zone}");
        }
        assert!(Zone::new("Mars/Phobos").is_err());
        assert!(Zone::stored("Mars/Phobos").is_ok());
    }
}
