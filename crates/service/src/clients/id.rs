//! Ids of clients.

use std::fmt;
use std::str::FromStr;

/// Characters of an id.
const CHARACTERS: usize = 64;
/// Random bytes of an id nobody chose.
const RANDOM_BYTES: usize = 12;

/// A client's id: 1 to 64 letters, digits, `-` and `_`. No full stop and no colon: ids of deliveries
/// start with it, and a signature covers those between full stops.
///
/// ```
/// use antumbra_service::clients::ClientId;
/// assert!(ClientId::new("night-watch").is_ok());
/// assert!(ClientId::new("night watch").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(String);

/// Error of a text that is not the id of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a client's id has 1 to {CHARACTERS} letters, digits, - and _")]
pub struct InvalidClientId;

impl ClientId {
    /// Reads an id.
    pub fn new(text: &str) -> Result<ClientId, InvalidClientId> {
        let fine = (1..=CHARACTERS).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        fine.then(|| ClientId(text.to_owned()))
            .ok_or(InvalidClientId)
    }

    /// One that nobody else has.
    pub fn random() -> ClientId {
        let random = super::secret::random::<RANDOM_BYTES>();
        ClientId(format!("cl{}", super::secret::hexadecimal(&random)))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ClientId {
    type Err = InvalidClientId;

    fn from_str(text: &str) -> Result<ClientId, InvalidClientId> {
        ClientId::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_the_rule() {
        for fine in ["a", "A-1_b", &"x".repeat(64)] {
            assert_eq!(ClientId::new(fine).unwrap().as_str(), fine);
        }
        for bad in ["", "a b", "a.b", "a:b", "a#b", "å", &"x".repeat(65)] {
            assert_eq!(ClientId::new(bad), Err(InvalidClientId), "{bad}");
        }
    }

    #[test]
    fn a_random_id_is_an_id_and_no_other() {
        let (one, other) = (ClientId::random(), ClientId::random());
        assert_eq!(ClientId::new(one.as_str()).as_ref(), Ok(&one));
        assert_ne!(one, other);
    }
}
