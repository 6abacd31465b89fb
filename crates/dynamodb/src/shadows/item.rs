//! Items of shadows: one document or both, with version and writer.

use antumbra_service::shadows::{
    ClientToken, DeletedVersions, Snapshot, State, StoreError, StoredDocument, VERSION_KEPT,
    Version, Write, Zone,
};
use antumbra_shadow::{LeafTimes, Timestamp};
use antumbra_wire::items::ShadowItem;
use antumbra_wire::items::attributes::{
    ACKNOWLEDGED, CLIENT_TOKEN, DELETED_AT, FLEET_KEY, FLEET_SHARD, PREVIOUS_TIMESTAMP,
    TIMES_VERSION, TIMESTAMP, VERSION, ZONE, times_name,
};
use aws_sdk_dynamodb::types::AttributeValue;

use super::keys;
use crate::document;
use crate::table::{Item, Table};
use crate::value::{corrupt, number, optional_number, read_number, text};

/// The item that a write stores, with this version.
pub(super) fn encode(table: &Table, write: &Write, kind: ShadowItem, version: Version) -> Item {
    let mut item = table.attributes(&keys::key(&write.shadow, kind));
    let mut put = |name: &str, value| item.insert(name.to_owned(), value);
    put(FLEET_SHARD, text(write.shadow.fleet_shard()));
    put(FLEET_KEY, text(write.shadow.fleet_key()));
    put(VERSION, number(version));
    put(TIMESTAMP, number(write.timestamp.nanoseconds()));
    if let Some(token) = &write.client_token {
        put(CLIENT_TOKEN, text(token.as_str()));
    }
    for state in kind.states() {
        if let Some(part) = write.part(*state) {
            put(state.as_str(), document::encode(&part.document));
            if let Some(zone) = &part.zone {
                put(ZONE, text(zone.as_str()));
            }
            if let Some(times) = &part.times {
                put(times_name(*state), text(times.encode()));
            }
            if let Some(acknowledged) = &part.acknowledged {
                put(ACKNOWLEDGED, text(acknowledged.encode(version.0)));
            }
        }
    }
    item
}

/// The attributes that a write of times only stores.
pub(super) fn encode_times(write: &Write, kind: ShadowItem, times_version: i64) -> Item {
    let mut item = Item::from([(TIMES_VERSION.to_owned(), number(times_version))]);
    for state in kind.states() {
        if let Some(times) = write.part(*state).and_then(|part| part.times.as_ref()) {
            item.insert(times_name(*state).to_owned(), text(times.encode()));
        }
    }
    item
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) version: Version,
    pub(super) timestamp: Timestamp,
    pub(super) zone: Option<Zone>,
    pub(super) client_token: Option<ClientToken>,
    pub(super) times_version: i64,
}

pub(super) fn decode(item: &Item, kind: ShadowItem) -> Result<Snapshot, StoreError> {
    if is_deleted(item) {
        let version = version(item).unwrap_or_default();
        let version_of = |state| match kind.states().contains(&state) {
            true => version,
            false => Version::NONE,
        };
        let of_states = |time: Option<Timestamp>| {
            [State::Reported, State::Desired]
                .map(|state| time.filter(|_| kind.states().contains(&state)))
        };
        return Ok(Snapshot {
            deleted: DeletedVersions {
                reported: version_of(State::Reported),
                desired: version_of(State::Desired),
                at: deleted_at(item),
                written: of_states(written(item)),
                previous: of_states(time(item, PREVIOUS_TIMESTAMP)),
            },
            ..Snapshot::default()
        });
    }
    let metadata = metadata(item)?;
    let document = |state: State| match kind.states().contains(&state) {
        true => decode_document(item, &metadata, state).map(Some),
        false => Ok(None),
    };
    Ok(Snapshot {
        reported: document(State::Reported)?,
        desired: document(State::Desired)?,
        deleted: DeletedVersions::default(),
    })
}

fn decode_document(
    item: &Item,
    metadata: &Metadata,
    state: State,
) -> Result<StoredDocument, StoreError> {
    let attribute = item.get(state.as_str());
    let attribute = attribute.ok_or_else(|| corrupt(state.as_str(), "missing"))?;
    let document = document::decode(attribute).map_err(|error| corrupt(state.as_str(), error))?;
    // Times that do not fit the document were not written with it and are ignored.
    let times = item
        .get(times_name(state))
        .and_then(|text| text.as_s().ok());
    let times = times.and_then(|text| LeafTimes::decode(text, &document));
    Ok(StoredDocument {
        document,
        version: metadata.version,
        timestamp: metadata.timestamp,
        zone: metadata.zone.clone(),
        client_token: metadata.client_token.clone(),
        times,
        times_version: metadata.times_version,
    })
}

pub(super) fn metadata(item: &Item) -> Result<Metadata, StoreError> {
    let text = |name: &str| match item.get(name) {
        None => Ok(None),
        Some(AttributeValue::S(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(corrupt(name, "not a string")),
    };
    let zone = text(ZONE)?.map(Zone::stored).transpose();
    let client_token = text(CLIENT_TOKEN)?.map(ClientToken::new).transpose();
    Ok(Metadata {
        version: Version(read_number(item, VERSION)?),
        timestamp: Timestamp::from_nanoseconds(read_number(item, TIMESTAMP)?),
        zone: zone.map_err(|error| corrupt(ZONE, error))?,
        client_token: client_token.map_err(|error| corrupt(CLIENT_TOKEN, error))?,
        times_version: optional_number(item, TIMES_VERSION)?.unwrap_or(0),
    })
}

/// Returns whether the document was deleted and only its version remains.
pub(super) fn is_deleted(item: &Item) -> bool {
    item.contains_key(DELETED_AT)
}

fn deleted_at(item: &Item) -> Option<Timestamp> {
    time(item, DELETED_AT)
}

/// The time of the last write of an item, also of one that deleted the document.
pub(super) fn written(item: &Item) -> Option<Timestamp> {
    time(item, TIMESTAMP)
}

fn time(item: &Item, name: &str) -> Option<Timestamp> {
    let time = optional_number(item, name).ok().flatten();
    time.map(Timestamp::from_nanoseconds)
}

/// The version that a document created at this time in place of a deleted one continues from.
pub(super) fn remembered_version(item: &Item, now: Timestamp) -> Version {
    match deleted_at(item) {
        Some(deleted_at) if deleted_at.after(VERSION_KEPT) > now => {
            version(item).unwrap_or_default()
        }
        _ => Version::NONE,
    }
}

pub(super) fn version(item: &Item) -> Option<Version> {
    optional_number(item, VERSION).ok().flatten().map(Version)
}

#[cfg(test)]
mod tests {
    use antumbra_service::shadows::adapter::{item_bytes, number_bytes};
    use antumbra_service::shadows::{NewDocument, ShadowId};
    use antumbra_shadow::{AcknowledgedLeaves, Document};

    use super::*;

    fn encode(write: &Write, kind: ShadowItem, version: Version) -> Item {
        super::encode(&Table::for_tests(), write, kind, version)
    }

    fn write() -> Write {
        let part = |json: &str| {
            Some(NewDocument {
                document: Document::parse(json).unwrap(),
                expected: Version(41),
                min_version: Version::NONE,
                times: Some(LeafTimes::all(
                    &Document::parse(json).unwrap(),
                    Timestamp::from_nanoseconds(1_600_000_000_123_456_000),
                )),
                expected_times: 0,
                times_only: false,
                zone: Some(Zone::new("Europe/Stockholm").unwrap()),
                acknowledged: None,
            })
        };
        Write {
            shadow: ShadowId::named("My House#Basement", "boiler").unwrap(),
            reported: part(r#"{"t":{"value":21.5,"timestamp":1700000000},"ä":[true,null,"\n"]}"#),
            desired: part(r#"{"deep":{"er":{}}}"#),
            timestamp: Timestamp::from_nanoseconds(1_700_000_000_123_456_789),
            client_token: Some(ClientToken::new("token").unwrap()),
            other_version: None,
        }
    }

    /// A write that withdrew a desired value and acknowledged another one.
    fn acknowledging() -> Write {
        let [stored, updated, left] = [r#"{"a":1,"b":2,"deep":{}}"#, r#"{"a":1,"deep":{}}"#, "{}"]
            .map(|json| Document::parse(json).unwrap());
        let mut write = write();
        if let Some(desired) = &mut write.desired {
            let model = antumbra_shadow::Model::default();
            desired.acknowledged = AcknowledgedLeaves::between(&stored, &updated, &left, &model);
        }
        write
    }

    #[test]
    fn acknowledged_leaves_are_stored_with_the_version_they_belong_to() {
        for (kind, expected) in [
            (ShadowItem::Reported, None),
            (ShadowItem::Desired, Some("42:1+1,1+1")),
            (ShadowItem::Combined, Some("42:1+1,1+1")),
        ] {
            let item = encode(&acknowledging(), kind, Version(42));
            let stored = item.get(ACKNOWLEDGED).and_then(|value| value.as_s().ok());
            assert_eq!(stored.map(String::as_str), expected, "{kind:?}");
        }
    }

    #[test]
    fn an_item_is_decoded_as_encoded() {
        let write = write();
        for kind in ShadowItem::ALL {
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
                    assert_eq!(held.zone, part.as_ref().and_then(|p| p.zone.clone()));
                    assert_eq!(held.client_token, write.client_token);
                }
            }
        }
    }

    #[test]
    fn the_computed_size_of_an_item_is_its_size() {
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
                client_token: None,
                ..write()
            },
            acknowledging(),
        ] {
            for kind in ShadowItem::ALL {
                let item = encode(&write, kind, Version(42));
                let size: usize = item.iter().map(|(k, v)| k.len() + bytes(v)).sum();
                assert_eq!(item_bytes(&write, kind.states()), size, "{kind:?}");
            }
        }
    }

    #[test]
    fn a_corrupt_item_is_the_stores_fault_and_is_not_repeated() {
        let whole = encode(&write(), ShadowItem::Reported, Version(1));
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
            let error = decode(&item, ShadowItem::Reported).unwrap_err();
            assert!(error.is_retryable(), "{error}");
            assert!(error.to_string().contains(name), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            item.remove(name);
            let optional = [ZONE, CLIENT_TOKEN].contains(&name);
            assert_eq!(
                decode(&item, ShadowItem::Reported).is_ok(),
                optional,
                "{name}"
            );
        }
    }
}
