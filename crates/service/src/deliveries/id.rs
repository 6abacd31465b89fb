//! Ids of deliveries.

use std::fmt;
use std::str::FromStr;

use antumbra_shadow::Timestamp;

use crate::clients::ClientId;
use crate::fnv::{fnv1a, shard};

/// Hexadecimal digits of the time in milliseconds, of the sequence number, and of the hash.
const TIME_DIGITS: usize = 12;
const SEQUENCE_DIGITS: usize = 10;
const HASH_DIGITS: usize = 16;
const MILLISECOND: i128 = 1_000_000;

/// Shards of the due index.
pub const DUE_SHARDS: u32 = 16;

/// Returns the shard of the due index for a text.
pub fn due_shard(text: &str) -> u32 {
    shard(text, DUE_SHARDS)
}

/// A delivery's id: `<client>_<time and sequence>_<hash>`, the same on every attempt and however often
/// the change it stems from is read. It also determines the place of the record: with its client, by time.
///
/// ```
/// use antumbra_service::clients::ClientId;
/// use antumbra_service::deliveries::DeliveryId;
/// use antumbra_shadow::Timestamp;
///
/// let client = ClientId::new("night-watch").unwrap();
/// let time = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
/// let id = DeliveryId::new(&client, time, 17, "door-7 state.changed");
/// assert!(id.to_string().starts_with("night-watch_019c13ec9e000000000011_"));
/// assert_eq!(id.to_string().parse(), Ok(id));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId {
    client: ClientId,
    /// Time and sequence number.
    place: String,
    hash: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a delivery")]
pub struct InvalidDeliveryId;

impl DeliveryId {
    /// Creates the id of an event at this time with this number; `what` distinguishes sensors and types.
    pub fn new(client: &ClientId, time: Timestamp, sequence: u64, what: &str) -> DeliveryId {
        let milliseconds = time.nanoseconds().div_euclid(MILLISECOND);
        let milliseconds = u64::try_from(milliseconds).unwrap_or(0);
        // Larger numbers would break the order; neither limit is reached before the year 10889.
        let milliseconds = milliseconds.min((1 << (4 * TIME_DIGITS)) - 1);
        let sequence = sequence.min((1 << (4 * SEQUENCE_DIGITS)) - 1);
        DeliveryId {
            client: client.clone(),
            place: format!("{milliseconds:0TIME_DIGITS$x}{sequence:0SEQUENCE_DIGITS$x}"),
            hash: format!("{:0HASH_DIGITS$x}", fnv1a(what.as_bytes())),
        }
    }

    pub fn client(&self) -> &ClientId {
        &self.client
    }

    /// Returns the sort key within the client: time, sequence number, hash.
    pub fn order(&self) -> String {
        format!("{}_{}", self.place, self.hash)
    }

    /// Returns the lower bound of [`order`](DeliveryId::order) for deliveries of this time or later.
    pub fn order_from(time: Timestamp) -> String {
        let milliseconds = time.nanoseconds().div_euclid(MILLISECOND);
        let milliseconds = u64::try_from(milliseconds).unwrap_or(0);
        format!("{milliseconds:0TIME_DIGITS$x}")
    }

    /// Returns the shard of the due index for this delivery.
    pub fn due_shard(&self) -> u32 {
        due_shard(&self.to_string())
    }

    /// Returns the id of a delivery to a client, from its [`order`](DeliveryId::order).
    pub fn from_order(client: &ClientId, order: &str) -> Result<DeliveryId, InvalidDeliveryId> {
        format!("{client}_{order}").parse()
    }

    /// Returns the time in milliseconds, by the clock of the table.
    pub fn time(&self) -> Timestamp {
        let milliseconds = u64::from_str_radix(&self.place[..TIME_DIGITS], 16).unwrap_or(0);
        Timestamp::from_nanoseconds(i128::from(milliseconds) * MILLISECOND)
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}", self.client, self.place, self.hash)
    }
}

impl FromStr for DeliveryId {
    type Err = InvalidDeliveryId;

    fn from_str(text: &str) -> Result<DeliveryId, InvalidDeliveryId> {
        let mut parts = text.rsplitn(3, '_');
        let (hash, place, client) = (parts.next(), parts.next(), parts.next());
        let hex = |part: Option<&str>, digits: usize| {
            let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            part.filter(|part| part.len() == digits && part.bytes().all(lower))
                .map(str::to_owned)
                .ok_or(InvalidDeliveryId)
        };
        Ok(DeliveryId {
            client: ClientId::new(client.unwrap_or_default()).map_err(|_| InvalidDeliveryId)?,
            place: hex(place, TIME_DIGITS + SEQUENCE_DIGITS)?,
            hash: hex(hash, HASH_DIGITS)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(client: &str, seconds: i128, sequence: u64, what: &str) -> DeliveryId {
        let time = Timestamp::from_nanoseconds(seconds * 1_000_000_000);
        DeliveryId::new(&ClientId::new(client).unwrap(), time, sequence, what)
    }

    #[test]
    fn ids_are_stable_distinct_and_ordered() {
        let one = id("a_b", 1000, 16, "x");
        assert_eq!(one, id("a_b", 1000, 16, "x"));
        assert_ne!(one, id("a_b", 1000, 16, "y"));
        assert_ne!(one, id("a", 1000, 16, "x"));
        assert!(one.order() < id("a_b", 1000, 17, "x").order());
        assert!(id("a_b", 1000, 99, "x").order() < id("a_b", 1001, 1, "x").order());
        assert!(DeliveryId::order_from(one.time()) < one.order());
        assert_eq!(
            one.time(),
            Timestamp::from_nanoseconds(1000 * 1_000_000_000)
        );
        assert_eq!(one.to_string().parse(), Ok(one));
    }

    #[test]
    fn ids_fit_a_queue_with_room_for_a_round() {
        let longest = id(&"x".repeat(64), i128::MAX / 4_000_000_000, u64::MAX, "x");
        assert!(longest.to_string().len() + "-4294967295".len() <= 128);
        assert_eq!(longest.to_string().parse(), Ok(longest));
    }

    #[test]
    fn other_texts_are_rejected() {
        let fine = id("a", 1, 1, "x").to_string();
        let cut = &fine[..fine.len() - 1];
        let upper = fine.to_uppercase();
        for text in [
            "",
            "_",
            "a_b_c",
            cut,
            &format!("{fine}0"),
            &upper,
            &format!("å{fine}"),
        ] {
            assert_eq!(text.parse::<DeliveryId>(), Err(InvalidDeliveryId), "{text}");
        }
    }
}
