//! Ids of clients.

use crate::fnv::shard;
use crate::text::{check_text, checked_text};

const CHARACTERS: usize = 64;
const RANDOM_BYTES: usize = 12;

checked_text! {
    /// A client's id: 1 to 64 letters, digits, `-`, `_` and `:`. No full stop: delivery ids start with it, and signed
    /// content separates its parts with full stops. With colons, a grant covers all clients of a tenant.
    pub struct ClientId checked by |text| check_text("client id", text, CHARACTERS, |c| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')
    });
}

impl ClientId {
    /// Returns the shard of this id; stable everywhere.
    pub fn shard(&self, shards: u32) -> u32 {
        shard(&self.0, shards)
    }

    /// Makes an id that no other client has.
    pub fn random() -> ClientId {
        let random = super::secret::random::<RANDOM_BYTES>();
        ClientId(format!("cl{}", super::secret::hexadecimal(&random)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_64_letters_digits_hyphens_underscores_and_colons() {
        for valid in ["a", "A-1_b", "tenant:a", &"x".repeat(64)] {
            assert_eq!(ClientId::new(valid).unwrap().as_str(), valid);
        }
        for invalid in ["", "a b", "a.b", "a/b", "a#b", "å", &"x".repeat(65)] {
            assert!(ClientId::new(invalid).is_err(), "{invalid}");
        }
        let (one, other) = (ClientId::random(), ClientId::random());
        assert_eq!(ClientId::new(one.as_str()).as_ref(), Ok(&one));
        assert_ne!(one, other);
    }
}
