//! Validation of requests before they reach a store.

use antumbra_shadow::{Document, Kind, View, limits};

use super::size::{ITEM_BYTES, item_bytes};
use crate::paging::page_limit;
use crate::shadows::id::ID_BYTES;
use crate::shadows::{Delete, Layout, NewDocument, ShadowId, State, StoreError, Version, Write};

/// A timestamp has at most as many digits as a number.
const TIMESTAMP_LIMIT: u128 = 10u128.pow(38);
/// Nested objects and arrays; the last level is for scalars.
const CONTAINER_LEVELS: usize = limits::DEPTH - 1;
/// Bytes of a member's name.
const NAME_BYTES: usize = 65_535;

/// Rejects a write that is invalid whatever is stored.
pub fn check_write(write: &Write, layout: Layout) -> Result<(), StoreError> {
    match (layout, &write.reported, &write.desired) {
        (_, None, None) => return invalid("a write carries a document"),
        (Layout::Combined, Some(reported), Some(desired)) => {
            if (reported.expected, reported.times_only) != (desired.expected, desired.times_only) {
                return invalid("both documents are kept as one and have one version");
            }
        }
        (Layout::Combined, ..) => {
            return invalid("both documents are kept as one and are written together");
        }
        (Layout::Separate, ..) => {}
    }
    let both = write.reported.is_some() && write.desired.is_some();
    check_other(write.other_version, both || layout == Layout::Combined)?;
    if write.timestamp.nanoseconds().unsigned_abs() >= TIMESTAMP_LIMIT {
        return invalid("the timestamp is out of range");
    }
    let parts = [
        (State::Reported, &write.reported),
        (State::Desired, &write.desired),
    ];
    for (_, part) in &parts {
        if let Some(NewDocument { expected, .. }) = part
            && !(0..i64::MAX).contains(&expected.0)
        {
            return invalid(format!("{expected} is no version a document can have"));
        }
        if let Some(NewDocument { document, .. }) = part {
            check_document(document)?;
        }
    }
    match layout {
        Layout::Combined => check_size(write, &[State::Reported, State::Desired]),
        Layout::Separate => parts
            .iter()
            .filter(|(_, part)| part.is_some())
            .try_for_each(|(state, _)| check_size(write, &[*state])),
    }
}

/// Rejects a document that DynamoDB does not accept.
pub fn check_document(document: &Document) -> Result<(), StoreError> {
    check_values(document.view(), 1)
}

/// Rejects content that DynamoDB does not accept: at any depth, names that are empty or too long; on the last
/// level, a container, even an empty one.
fn check_values(view: View<'_>, level: usize) -> Result<(), StoreError> {
    if view.is_container() && level > CONTAINER_LEVELS {
        return invalid(format!(
            "objects and arrays are nested {level} levels deep, the limit is {CONTAINER_LEVELS}"
        ));
    }
    let named = view.kind() == Kind::Object;
    view.children().try_for_each(|child| {
        if named && child.raw_key().is_empty() {
            return invalid("a name in a document is empty");
        }
        let bytes = child.key().len();
        if bytes > NAME_BYTES {
            return invalid(format!(
                "a name in a document has {bytes} bytes, the limit is {NAME_BYTES}"
            ));
        }
        check_values(child, level + 1)
    })
}

fn check_size(write: &Write, states: &[State]) -> Result<(), StoreError> {
    let bytes = item_bytes(write, states);
    if bytes > ITEM_BYTES {
        return Err(StoreError::TooLarge {
            bytes,
            limit: ITEM_BYTES,
        });
    }
    Ok(())
}

/// Rejects a delete that is invalid whatever is stored.
pub fn check_delete(delete: &Delete, layout: Layout) -> Result<(), StoreError> {
    match (layout, delete.reported, delete.desired) {
        (_, None, None) => return invalid("a delete names a document"),
        (Layout::Combined, reported, desired) if reported != desired => {
            return invalid("both documents are kept as one and are deleted together");
        }
        _ => {}
    }
    for expect in [delete.reported, delete.desired].into_iter().flatten() {
        if let (Some(version), _) = expect.parts()
            && version < Version::NONE
        {
            return invalid(format!("{version} is no version a document can have"));
        }
    }
    let both = delete.reported.is_some() && delete.desired.is_some();
    check_other(delete.other_version, both || layout == Layout::Combined)
}

/// Rejects a condition on the other document if there is no other one.
fn check_other(version: Option<Version>, no_other: bool) -> Result<(), StoreError> {
    match version {
        Some(_) if no_other => {
            invalid("only a document that is kept apart and does not change can be held")
        }
        Some(version) if version < Version::NONE => {
            invalid(format!("{version} is no version a document can have"))
        }
        _ => Ok(()),
    }
}

/// Rejects an invalid prefix or limit.
pub fn check_prefix(prefix: &str, limit: usize) -> Result<(), StoreError> {
    page_limit(limit)?;
    match prefix.len() {
        0..=ID_BYTES => Ok(()),
        bytes => invalid(format!(
            "the prefix has {bytes} bytes, the limit is {ID_BYTES}"
        )),
    }
}

/// Rejects an invalid id or limit of a listing.
pub fn check_list(id: &str, limit: usize) -> Result<(), StoreError> {
    page_limit(limit)?;
    match ShadowId::new(id) {
        Ok(_) => Ok(()),
        Err(error) => invalid(error.to_string()),
    }
}

fn invalid(reason: impl Into<String>) -> Result<(), StoreError> {
    Err(StoreError::Invalid(reason.into()))
}
