//! An item: one document or both, with its version and who wrote it.

use std::collections::HashMap;

use antumbra_service::shadows::{
    ClientToken, DeletedVersions, Snapshot, State, StoreError, StoredDocument, VERSION_KEPT,
    Version, Write, Zone,
};
use antumbra_shadow::{Document, LeafTimes, Timestamp};
use antumbra_wire::items::attributes::times_name;
use aws_sdk_dynamodb::types::AttributeValue;

use super::keys::{Key, Kind};
use crate::document;

/// The attributes of an item.
pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const VERSION: &str = "version";
pub(super) const TIMESTAMP: &str = "timestamp";
pub(super) const ZONE: &str = "tz";
pub(super) const CLIENT_TOKEN: &str = "clientToken";
/// When it was deleted, in nanoseconds since 1970. Such an item holds its version and no document.
pub(super) const DELETED_AT: &str = "deletedAt";
/// When DynamoDB takes it away, in seconds since 1970.
pub(super) const TTL: &str = "ttl";

/// The item that a write makes at a key, with this version.
pub(super) fn encode(write: &Write, kind: Kind, version: Version) -> Item {
    let mut item = Key::new(&write.shadow, kind).attributes();
    let mut put = |name: &str, value| item.insert(name.to_owned(), value);
    put(VERSION, AttributeValue::N(version.to_string()));
    let nanoseconds = write.timestamp.nanoseconds();
    put(TIMESTAMP, AttributeValue::N(nanoseconds.to_string()));
    if let Some(zone) = &write.zone {
        put(ZONE, AttributeValue::S(zone.as_str().to_owned()));
    }
    if let Some(token) = &write.client_token {
        put(CLIENT_TOKEN, AttributeValue::S(token.as_str().to_owned()));
    }
    for state in kind.states() {
        let part = match state {
            State::Reported => &write.reported,
            State::Desired => &write.desired,
        };
        if let Some(part) = part {
            put(state.as_str(), document::encode(&part.document));
            if let Some(times) = &part.times {
                let text = times.encode(seconds(write.timestamp));
                put(times_name(*state), AttributeValue::S(text));
            }
        }
    }
    item
}

/// What an item says besides its documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) version: Version,
    pub(super) timestamp: Timestamp,
    pub(super) zone: Option<Zone>,
    pub(super) client_token: Option<ClientToken>,
}

/// Reads an item of this kind. One that others wrote otherwise than we do is an error of the store,
/// not of who asked.
pub(super) fn decode(item: &Item, kind: Kind) -> Result<Snapshot, StoreError> {
    if is_deleted(item) {
        let version = version(item).unwrap_or_default();
        let of = |state| match kind.states().contains(&state) {
            true => version,
            false => Version::NONE,
        };
        return Ok(Snapshot {
            deleted: DeletedVersions {
                reported: of(State::Reported),
                desired: of(State::Desired),
            },
            ..Snapshot::default()
        });
    }
    let stamp = stamp(item)?;
    let held = |state: State| -> Result<Option<StoredDocument>, StoreError> {
        if !kind.states().contains(&state) {
            return Ok(None);
        }
        let attribute = item.get(state.as_str());
        let attribute = attribute.ok_or_else(|| unreadable(state.as_str(), "missing"))?;
        let document =
            document::decode(attribute).map_err(|error| unreadable(state.as_str(), error))?;
        // Times that do not fit the document were not written with it, and say nothing.
        let times = item
            .get(times_name(state))
            .and_then(|text| text.as_s().ok());
        let times =
            times.and_then(|text| LeafTimes::decode(text, seconds(stamp.timestamp), &document));
        Ok(Some(stamp.clone().held(document, times)))
    };
    Ok(Snapshot {
        reported: held(State::Reported)?,
        desired: held(State::Desired)?,
        deleted: DeletedVersions::default(),
    })
}

impl Stamp {
    fn held(self, document: Document, times: Option<LeafTimes>) -> StoredDocument {
        StoredDocument {
            document,
            version: self.version,
            timestamp: self.timestamp,
            zone: self.zone,
            client_token: self.client_token,
            times,
        }
    }
}

/// Reads what an item says besides its documents.
pub(super) fn stamp(item: &Item) -> Result<Stamp, StoreError> {
    let version = version(item).ok_or_else(|| unreadable(VERSION, "not a whole number"))?;
    let timestamp = number(item, TIMESTAMP).and_then(|text| text.parse().ok());
    let timestamp = timestamp.ok_or_else(|| unreadable(TIMESTAMP, "not a whole number"))?;
    let text = |name: &str| match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(unreadable(name, "not a string")),
    };
    let zone = text(ZONE)?.map(Zone::new).transpose();
    let client_token = text(CLIENT_TOKEN)?.map(ClientToken::new).transpose();
    Ok(Stamp {
        version,
        timestamp: Timestamp::from_nanoseconds(timestamp),
        zone: zone.map_err(|error| unreadable(ZONE, error))?,
        client_token: client_token.map_err(|error| unreadable(CLIENT_TOKEN, error))?,
    })
}

/// Whether it is what a delete leaves behind.
pub(super) fn is_deleted(item: &Item) -> bool {
    item.contains_key(DELETED_AT)
}

/// The version a document goes on from that takes the place of this deleted one at that time.
pub(super) fn goes_on_from(item: &Item, now: Timestamp) -> Version {
    let since = number(item, DELETED_AT).and_then(|text| text.parse().ok());
    let since = since.map(Timestamp::from_nanoseconds);
    match since {
        Some(since) if since.after(VERSION_KEPT) > now => version(item).unwrap_or_default(),
        _ => Version::NONE,
    }
}

/// A time in whole seconds since 1970.
pub(super) fn seconds(timestamp: Timestamp) -> i64 {
    let seconds = timestamp.nanoseconds().div_euclid(1_000_000_000);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// The version an item has, if it has one.
pub(super) fn version(item: &Item) -> Option<Version> {
    number(item, VERSION)?.parse().ok().map(Version)
}

fn number<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_n().ok().map(String::as_str)
}

fn unreadable(attribute: &str, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("a stored item's {attribute} is {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use antumbra_service::shadows::adapter::{item_bytes, number_bytes};
    use antumbra_service::shadows::{NewDocument, ShadowId};

    fn write() -> Write {
        let part = |json: &str| {
            Some(NewDocument {
                document: Document::parse(json).unwrap(),
                expected: Version(41),
                min_version: Version::NONE,
                times: Some(LeafTimes::all(
                    &Document::parse(json).unwrap(),
                    1_600_000_000,
                )),
            })
        };
        Write {
            shadow: ShadowId::named("My House#Basement", "boiler").unwrap(),
            reported: part(r#"{"t":{"value":21.5,"timestamp":1700000000},"ä":[true,null,"\n"]}"#),
            desired: part(r#"{"deep":{"er":{}}}"#),
            timestamp: Timestamp::from_nanoseconds(1_700_000_000_123_456_789),
            zone: Some(Zone::new("Europe/Stockholm").unwrap()),
            client_token: Some(ClientToken::new("token").unwrap()),
            other_version: None,
        }
    }

    #[test]
    fn an_item_comes_back_as_it_went() {
        let write = write();
        for kind in [Kind::Reported, Kind::Desired, Kind::Combined] {
            let found = decode(&encode(&write, kind, Version(42)), kind).unwrap();
            for (state, held, part) in [
                (State::Reported, found.reported, &write.reported),
                (State::Desired, found.desired, &write.desired),
            ] {
                assert_eq!(held.is_some(), kind.states().contains(&state));
                if let Some(held) = held {
                    assert_eq!(Some(&held.document), part.as_ref().map(|p| &p.document));
                    assert_eq!(held.times, part.as_ref().and_then(|p| p.times.clone()));
                    assert_eq!(held.version, Version(42));
                    assert_eq!(held.timestamp, write.timestamp);
                    assert_eq!(held.zone, write.zone);
                    assert_eq!(held.client_token, write.client_token);
                }
            }
        }
    }

    /// The arithmetic that stores share knows nothing of this encoding; here they meet.
    #[test]
    fn an_item_is_as_large_as_was_reckoned() {
        fn bytes(value: &AttributeValue) -> usize {
            match value {
                AttributeValue::S(text) => text.len(),
                AttributeValue::N(number) => number_bytes(number),
                AttributeValue::L(list) => 3 + list.iter().map(|v| 1 + bytes(v)).sum::<usize>(),
                AttributeValue::M(map) => {
                    3 + map
                        .iter()
                        .map(|(k, v)| 1 + k.len() + bytes(v))
                        .sum::<usize>()
                }
                _ => 1,
            }
        }
        for write in [
            write(),
            Write {
                zone: None,
                client_token: None,
                ..write()
            },
        ] {
            for kind in [Kind::Reported, Kind::Desired, Kind::Combined] {
                let item = encode(&write, kind, Version(42));
                let size: usize = item.iter().map(|(k, v)| k.len() + bytes(v)).sum();
                assert_eq!(item_bytes(&write, kind.states()), size, "{kind:?}");
            }
        }
    }

    #[test]
    fn what_others_wrote_is_the_stores_fault_and_not_repeated() {
        let whole = encode(&write(), Kind::Reported, Version(1));
        for (name, value) in [
            (VERSION, AttributeValue::S("secret".into())),
            (VERSION, AttributeValue::N("1.5".into())),
            (TIMESTAMP, AttributeValue::Null(true)),
            (ZONE, AttributeValue::N("1".into())),
            (CLIENT_TOKEN, AttributeValue::S("secret".repeat(20))),
            ("reported", AttributeValue::S("secret".into())),
        ] {
            let mut item = whole.clone();
            item.insert(name.to_owned(), value);
            let error = decode(&item, Kind::Reported).unwrap_err();
            assert!(matches!(error, StoreError::Unavailable(_)));
            assert!(error.to_string().contains(name), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            item.remove(name);
            let optional = [ZONE, CLIENT_TOKEN].contains(&name);
            assert_eq!(decode(&item, Kind::Reported).is_ok(), optional, "{name}");
        }
    }
}
