//! Group and deduplication ids of FIFO queues and topics, derived from keys and notification ids.
//!
//! AWS accepts 1 to 128 letters, digits and ASCII punctuation marks, no spaces. A text that conforms is used as it is,
//! so that people recognise it. Any other becomes `~` and its SHA-256 in hexadecimal; so does a text that starts with
//! `~`, so that no text can pass for the hash of another. The same text always gives the same id.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

const ID_CHARACTERS: usize = 128;
const HASHED: char = '~';

/// The message group of an item's key: distinct keys have distinct groups.
pub fn group_id(key: &str) -> String {
    identifier(key)
}

pub fn deduplication_id(notification: &str) -> String {
    identifier(notification)
}

fn identifier(text: &str) -> String {
    let fits = (1..=ID_CHARACTERS).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.starts_with(HASHED);
    if fits { text.to_owned() } else { hashed(text) }
}

fn hashed(text: &str) -> String {
    let mut id = String::from(HASHED);
    for byte in Sha256::digest(text) {
        // Writing to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_valid(id: &str) -> bool {
        const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
        let allowed = |c: char| c.is_ascii_alphanumeric() || PUNCTUATION.contains(c);
        (1..=128).contains(&id.len()) && id.chars().all(allowed)
    }

    #[test]
    fn a_text_that_keeps_the_rule_is_its_own_id() {
        for text in ["a", "DS#boiler-7#DSR#main", &"x".repeat(128), "!\"#$%&'()*"] {
            assert_eq!(group_id(text), text);
        }
    }

    #[test]
    fn any_other_is_hashed() {
        // The SHA-256 of nothing and of "abc" are in the standard.
        assert_eq!(
            group_id(""),
            "~e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(
            hashed("abc"),
            "~ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        for text in ["DS#My House", "DS#Küche", "\u{0}", &"x".repeat(129), "~"] {
            assert_eq!(group_id(text), hashed(text));
        }
    }

    #[test]
    fn nobody_poses_as_a_hash() {
        let hash = group_id("DS#My House");
        assert!(is_valid(&hash));
        assert_ne!(group_id(&hash), hash);
    }

    proptest! {
        #[test]
        fn ids_are_valid_stable_and_distinct(a in key(), b in key()) {
            prop_assert!(is_valid(&group_id(&a)), "{a:?}");
            prop_assert_eq!(group_id(&a), group_id(&a.clone()));
            prop_assert_eq!(a == b, group_id(&a) == group_id(&b));
        }
    }

    /// Keys near all edges of the rule: short, 120 to 140 bytes, with odd characters, hashes.
    fn key() -> impl Strategy<Value = String> {
        let plain = proptest::string::string_regex("[ -~]{0,6}").unwrap();
        let long = proptest::string::string_regex("DS#[a-b]{117,137}").unwrap();
        let text = prop_oneof![plain, long, any::<String>()];
        prop_oneof![3 => text.clone(), 1 => text.prop_map(|text| hashed(&text))]
    }
}
