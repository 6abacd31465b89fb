//! Ids of notifications: unique, and the same at every attempt.

use std::fmt;
use std::hash::Hasher;

use antumbra_registration::State;
use siphasher::sip128::{Hasher128, SipHasher24};

/// Identifies a notification across targets and attempts.
///
/// SipHash-2-4 with 128 bits and a key of zeros over the stream event's id, the registration's name and, for
/// a shadow, `reported` or `desired`, each followed by the byte 0xff, which no text contains.
/// Written as 32 hexadecimal digits it is a valid deduplication id of SQS and SNS.
///
/// ```
/// use antumbra_registration::State;
/// use antumbra_wire::notification::NotificationId;
///
/// let id = NotificationId::new("c4ca4238a0b923820dcc509a6f75849b", "lights", Some(State::Reported));
/// assert_eq!(id.to_string(), "0e737c8eeac46eda5e06e543e39a0cff");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NotificationId(u128);

impl NotificationId {
    /// The id for a stream event and a registration.
    pub fn new(event_id: &str, registration: &str, state: Option<State>) -> NotificationId {
        let mut hasher = SipHasher24::new();
        for part in [event_id, registration, state.map_or("", State::as_str)] {
            hasher.write(part.as_bytes());
            hasher.write_u8(0xff);
        }
        NotificationId(hasher.finish128().as_u128())
    }

    /// Returns the hexadecimal digits.
    pub fn digits(self) -> String {
        let mut digits = String::with_capacity(32);
        self.write(&mut digits);
        digits
    }

    /// Appends the hexadecimal digits.
    pub fn write(self, out: &mut String) {
        for byte in self.0.to_be_bytes() {
            out.push(digit(byte >> 4));
            out.push(digit(byte & 15));
        }
    }
}

fn digit(value: u8) -> char {
    char::from(match value {
        0..10 => b'0' + value,
        _ => b'a' + value - 10,
    })
}

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digits())
    }
}
