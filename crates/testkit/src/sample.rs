//! Builders of shadows, documents and writes.

use antumbra_service::shadows::{
    Delete, DocumentSet, ExpectedVersion, NewDocument, Read, ReadConsistency, ShadowId,
    ShadowStore, Snapshot, StoreError, Version, Write, Written,
};
use antumbra_shadow::{Document, Timestamp};

/// Time of all writes.
pub const NOW: Timestamp = Timestamp::from_nanoseconds(1_700_000_000_123_456_789);
/// Time of deletes, so that a document can be created again at [`NOW`].
pub const DELETED: Timestamp = Timestamp::from_nanoseconds(1_700_000_000_123_456_788);

/// The default shadow of a device.
pub fn shadow(id: &str) -> ShadowId {
    ShadowId::new(id).unwrap()
}

/// A named shadow of a device.
pub fn named(id: &str, name: &str) -> ShadowId {
    ShadowId::named(id, name).unwrap()
}

pub fn document(json: &str) -> Document {
    Document::parse(json).unwrap()
}

/// A document that contains a number.
pub fn number(n: i64) -> Document {
    document(&format!(r#"{{"n":{n}}}"#))
}

/// A document to write if the stored version is the expected one.
pub fn new(document: Document, expected: i64) -> Option<NewDocument> {
    Some(NewDocument {
        document,
        expected: Version(expected),
        min_version: Version::NONE,
        times: None,
        expected_times: 0,
        times_only: false,
        zone: None,
        acknowledged: None,
    })
}

/// A write without documents.
pub fn write(shadow: &ShadowId) -> Write {
    Write {
        shadow: shadow.clone(),
        reported: None,
        desired: None,
        timestamp: NOW,
        client_token: None,
        other_version: None,
    }
}

/// A write of `n` to the reported document.
pub fn report_of(shadow: &ShadowId, n: i64, expected: i64) -> Write {
    Write {
        reported: new(number(n), expected),
        ..write(shadow)
    }
}

/// A write of `n` to the desired document.
pub fn desire_of(shadow: &ShadowId, n: i64, expected: i64) -> Write {
    Write {
        desired: new(number(n), expected),
        ..write(shadow)
    }
}

/// A write of `n` to both documents with one expected version, which is valid in every layout.
pub fn whole(shadow: &ShadowId, n: i64, expected: i64) -> Write {
    Write {
        reported: new(number(n), expected),
        desired: new(number(n), expected),
        ..write(shadow)
    }
}

/// A delete of both documents with one expected version, which is valid in every layout.
pub fn delete(shadow: &ShadowId, expect: ExpectedVersion) -> Delete {
    Delete {
        shadow: shadow.clone(),
        reported: Some(expect),
        desired: Some(expect),
        other_version: None,
        time: None,
    }
}

pub async fn write_one<P: ShadowStore>(store: &P, write: Write) -> Result<Written, StoreError> {
    store.write(&write).await
}

pub async fn delete_one<P: ShadowStore>(store: &P, delete: Delete) -> Result<(), StoreError> {
    store.delete(&delete, DELETED).await
}

/// Reads one shadow with strong consistency.
pub async fn read_one<P: ShadowStore>(
    store: &P,
    shadow: &ShadowId,
    parts: DocumentSet,
) -> Result<Snapshot, StoreError> {
    let read = Read {
        shadow: shadow.clone(),
        parts,
    };
    store.read(&read, ReadConsistency::Strong).await
}

/// Text and version of a document; `None` if it is absent.
pub type TextAndVersion = Option<(String, i64)>;

/// Reads text and version of both documents.
pub async fn numbers<P: ShadowStore>(
    store: &P,
    shadow: &ShadowId,
) -> (TextAndVersion, TextAndVersion) {
    let found = match read_one(store, shadow, DocumentSet::Both).await {
        Err(StoreError::NotFound) => Snapshot::default(),
        found => found.unwrap(),
    };
    let of = |held: Option<antumbra_service::shadows::StoredDocument>| {
        held.map(|held| (held.document.to_string(), held.version.0))
    };
    (of(found.reported), of(found.desired))
}

/// Returns the only result of a batch of one.
pub fn only<T: std::fmt::Debug>(results: Vec<T>) -> T {
    let [result] = <[T; 1]>::try_from(results).unwrap();
    result
}
