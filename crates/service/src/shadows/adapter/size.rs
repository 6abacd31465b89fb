//! Sizes of items by DynamoDB's arithmetic. Every store uses them, so that an item that fits one fits all.
//!
//! | what | bytes |
//! |---|---|
//! | an attribute | its name in UTF-8, and its value |
//! | a string | its bytes in UTF-8 |
//! | a number | 1, and 1 per pair of digits counted from the decimal point, without the pairs `00` at either end, and 1 if negative |
//! | `true`, `false`, `null` | 1 |
//! | a list | 3, and 1 per element, and the elements |
//! | a map | 3, and 1 per member, and the members' names and values |

use antumbra_shadow::{Document, Kind, View};
use antumbra_wire::items::attributes::{
    ACKNOWLEDGED, CLIENT_TOKEN, FLEET_KEY, FLEET_SHARD, TIMES_VERSION, TIMESTAMP, VERSION, ZONE,
    times_name,
};
use antumbra_wire::items::{ItemKind, PARTITION_KEY, SORT_KEY, ShadowItem};

use crate::shadows::{State, Write};

/// Maximum bytes of an item.
pub const ITEM_BYTES: usize = 400 * 1024;

const ITEM: ItemKind = ItemKind::Shadow(ShadowItem::Reported);
/// The item's key attributes with their prefixes, which are as long for every shadow item.
const KEY_BYTES: usize =
    PARTITION_KEY.len() + ITEM.partition_prefix().len() + SORT_KEY.len() + ITEM.sort_prefix().len();
const CONTAINER_BYTES: usize = 3;

/// Returns the bytes of the item that holds these documents of a write.
pub fn item_bytes(write: &Write, states: &[State]) -> usize {
    let mut bytes = KEY_BYTES + write.shadow.id().len() + write.shadow.name().len();
    bytes += FLEET_SHARD.len() + write.shadow.fleet_shard().len();
    bytes += FLEET_KEY.len() + write.shadow.fleet_key().len();
    bytes += TIMESTAMP.len() + number_bytes(&write.timestamp.nanoseconds().to_string());
    if let Some(token) = &write.client_token {
        bytes += CLIENT_TOKEN.len() + token.as_str().len();
    }
    let (mut version, mut zone) = (None, None);
    for state in states {
        if let Some(part) = write.part(*state) {
            bytes += state.as_str().len() + document_bytes(&part.document);
            if let Some(times) = &part.times {
                bytes += times_name(*state).len() + times.encode().len();
            }
            if let Some(acknowledged) = &part.acknowledged {
                let text = acknowledged.encode(part.expected.next().0);
                bytes += ACKNOWLEDGED.len() + text.len();
            }
            if part.times_only && version.is_none() {
                let times_version = (part.expected_times + 1).to_string();
                bytes += TIMES_VERSION.len() + number_bytes(&times_version);
            }
            version = Some(part.expected.next());
            zone = zone.or(part.zone.as_ref());
        }
    }
    if let Some(zone) = zone {
        bytes += ZONE.len() + zone.as_str().len();
    }
    if let Some(version) = version {
        bytes += VERSION.len() + number_bytes(&version.to_string());
    }
    bytes
}

/// Returns the bytes of a document as an attribute's value.
///
/// ```
/// use antumbra_service::shadows::adapter::document_bytes;
/// use antumbra_shadow::Document;
/// assert_eq!(document_bytes(&Document::default()), 3);
/// assert_eq!(document_bytes(&Document::parse(r#"{"on":true}"#)?), 3 + 1 + 2 + 1);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn document_bytes(document: &Document) -> usize {
    value_bytes(document.view())
}

/// Recursive; a document has at most 32 levels.
fn value_bytes(view: View<'_>) -> usize {
    match view.kind() {
        Kind::Null | Kind::Bool => 1,
        Kind::Number => number_bytes(view.raw()),
        Kind::String if view.is_verbatim() => view.raw().len(),
        Kind::String => view.as_str().map_or(0, |text| text.len()),
        Kind::Array => view
            .children()
            .fold(CONTAINER_BYTES, |sum, child| sum + 1 + value_bytes(child)),
        Kind::Object => view.children().fold(CONTAINER_BYTES, |sum, child| {
            sum + 1 + child.key().len() + value_bytes(child)
        }),
    }
}

/// Returns the bytes of a number given in plain decimal form.
///
/// ```
/// use antumbra_service::shadows::adapter::number_bytes;
/// assert_eq!(number_bytes("100.5"), 1 + 2 + 1);
/// ```
pub fn number_bytes(text: &str) -> usize {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (1, digits),
        None => (0, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    // Pairs of zeros at either end of the number carry nothing; those inside it do.
    let pairs_of = |zeros: usize| zeros / 2 * 2;
    let (whole, fraction) = match (whole.len(), fraction.len()) {
        (_, 0) => {
            let zeros = whole.len() - whole.trim_end_matches('0').len();
            (whole.len() - pairs_of(zeros), 0)
        }
        (0, _) => {
            let zeros = fraction.len() - fraction.trim_start_matches('0').len();
            (0, fraction.len() - pairs_of(zeros))
        }
        both => both,
    };
    1 + sign + whole.div_ceil(2) + fraction.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of DynamoDB Local, found by bisecting its limit.
    #[test]
    fn numbers_by_their_pairs_of_digits() {
        for (number, bytes) in [
            ("0", 1),
            ("1", 2),
            ("12", 2),
            ("123", 3),
            ("100", 2),
            ("110", 3),
            ("1000", 2),
            ("1010", 3),
            ("1200000", 3),
            ("1000001", 5),
            ("0.01", 2),
            ("0.001", 2),
            ("0.015", 3),
            ("0.0015", 2),
            ("10000.00001", 7),
            ("0.0000001", 2),
            ("1.5", 3),
            ("1.234", 4),
            ("3.14159", 5),
            ("100.5", 4),
            ("0.15", 2),
            ("-42", 3),
            ("-12345", 5),
            ("-0.15", 3),
            ("12345678901234567890123456789012345678", 20),
        ] {
            assert_eq!(number_bytes(number), bytes, "{number}");
        }
    }

    #[test]
    fn documents_by_what_is_in_them() {
        for (text, bytes) in [
            ("{}", 3),
            (r#"{"a":null}"#, 6),
            (r#"{"å":"ö\n"}"#, 3 + 1 + 2 + 3),
            (r#"{"a":[true,"xy"]}"#, 3 + 1 + 1 + 3 + 1 + 1 + 1 + 2),
            (r#"{"a":{"b":1}}"#, 3 + 1 + 1 + 3 + 1 + 1 + 2),
        ] {
            let document = Document::parse(text).unwrap();
            assert_eq!(document_bytes(&document), bytes, "{text}");
        }
    }
}
